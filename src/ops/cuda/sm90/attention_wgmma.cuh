/* attention_wgmma.cuh - what attention by warpgroups shares forward and backward: sizes, and how
 * a group's 64 x 64 leaves its registers. */
#ifndef CGS_OPS_CUDA_SM90_ATTENTION_WGMMA_CUH
#define CGS_OPS_CUDA_SM90_ATTENTION_WGMMA_CUH

#include "ops/cuda/attention/mma.cuh"
#include "ops/cuda/ptx/wgmma.cuh"

enum {
    BLOCK = 64,   /* rows of a group */
    WHOLE = 256,  /* tokens that groups take; those beyond are few and handled apart */
    EXTRA = 8,    /* at most so many are beyond */
    PADDED = 272, /* rows in shared memory: a product's inner index goes in steps of 16 */
    SLACK = ATOM  /* bytes, so that matrices can begin at a multiple of ATOM */
};
static const size_t MATRIX = PADDED * WIDTH; /* elements */

/* what both kernels are for; not where `take` has joined, because they make all rows */
static inline bool fits_warpgroups(const cgs_device *d, const cgs_record *r) {
    int T = r->in[0]->dim[1];
    return cgs_cuda_of(d)->capability == 90 && is_bf16_attention(r) && !r->arg.attention.causal &&
           r->arg.attention.dropout <= 0 && T >= WHOLE && T <= WHOLE + EXTRA &&
           !cgs_cuda_is(r->next, CGS_OP_take);
}

/* the first multiple of ATOM in shared memory */
static __device__ __forceinline__ bf16 *first_matrix(unsigned char *shared) {
    return (bf16 *)(shared + (-(uint32_t)__cvta_generic_to_shared(shared) & (ATOM - 1)));
}

/* number of the thread's group, in a form that the compiler knows to be the same in a warp */
static __device__ __forceinline__ int own_group() {
    return __shfl_sync(0xffffffffu, (int)threadIdx.x / WARPGROUP, 0);
}

/* Writes v (64,64), times a factor for each of the lane's two rows, to rows row0 .. of `to`.
 * place: 64 rows of shared memory that are free. */
static __device__ __forceinline__ void give_block(bf16 *to, const float (&v)[32], float upper,
                                                  float lower, bf16 *place, int row0, int rows,
                                                  size_t stride, bool add) {
    int lane = threadIdx.x % 32, mine = threadIdx.x % WARPGROUP / 32 * 16;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int row = mine + lane / 4 + 8 * half;
        float factor = half ? lower : upper;
#pragma unroll
        for (int n = 0; n < 8; n++) {
            float pair[2] = {v[4 * n + 2 * half] * factor, v[4 * n + 2 * half + 1] * factor};
            if (!add)
                store<2>(const_cast<bf16 *>(chunk_at(place, row, n)) + 2 * (lane % 4), pair);
            else if (row0 + row < rows)
                give<2>(to + (row0 + row) * stride + 8 * n + 2 * (lane % 4), pair, true);
        }
    }
    if (add) return;
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int row = mine + 4 * i + lane / 8;
        if (row0 + row < rows)
            *reinterpret_cast<uint4 *>(to + (row0 + row) * stride + lane % 8 * 8) =
                *reinterpret_cast<const uint4 *>(chunk_at(place, row, lane % 8));
    }
    __syncwarp();
}

#endif /* CGS_OPS_CUDA_SM90_ATTENTION_WGMMA_CUH */

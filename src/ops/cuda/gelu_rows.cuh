/* gelu_rows.cuh - what the kernels share that multiply rows of 192 with the weights of 128 columns,
 * which stay in a block, and have GELU or its slope behind it. */
#ifndef CGS_OPS_CUDA_GELU_ROWS_CUH
#define CGS_OPS_CUDA_GELU_ROWS_CUH

#include "ops/cuda/group_rows.cuh"

namespace {

enum { K = WIDE, SLAB = 128 };
enum { PLACES = 132 }; /* blocks, about: the multiprocessors of the GPU this is for */
enum { LEAST = 1024 }; /* rows for which this is worth a block's start */
enum { BEHIND = 1 };   /* barriers: one for each group */

struct shape {
    size_t n, m;
    bool add; /* dh is added to */
};

/* blocks that share a slab's rows */
inline unsigned sharers(const shape &s, int groups) {
    unsigned most = blocks_for(s.n, (size_t)groups * ROWS), slabs = (unsigned)(s.m / SLAB);
    unsigned places = slabs < PLACES ? PLACES / slabs : 1;
    return most < places ? most : places;
}

/* 128 columns of a result: of W (m,192) these rows, as (3,128,64), or of V (192,m) these columns,
 * as (2,192,64) */
template <bool BACK, int THREADS>
__device__ __forceinline__ void fetch_weights(bf16 *to, const bf16 *weights, size_t m, int col0) {
    for (int e = threadIdx.x; e < SLAB * K / 8; e += THREADS) {
        int cols = BACK ? SLAB / 8 : K / 8, row = e / cols, chunk = e % cols;
        const bf16 *from = BACK ? weights + row * m + col0 : weights + (size_t)(col0 + row) * K;
        bf16 *piece = to + chunk / 8 * (BACK ? K : SLAB) * PIECE;
        copy16(piece_at(piece, row, chunk % 8), from + chunk * 8);
    }
}

/* the warp's 16 x 64 of results, rounded, to `turn` */
__device__ __forceinline__ void turn_rows(bf16 *turn, const float (&c)[32], const float *bias) {
    int lane = threadIdx.x % 32;
    __syncwarp(); /* the last results have left */
#pragma unroll
    for (int n = 0; n < 8; n += 2) {
        float s0[2] = {0, 0}, s1[2] = {0, 0};
        if (bias) {
            load<2>(s0, bias + 8 * n + 2 * (lane % 4));
            load<2>(s1, bias + 8 * n + 8 + 2 * (lane % 4));
        }
        const float *v = c + 4 * n;
        store_matrices(piece_at(turn, lane % 16, n + lane / 16), pack(v[0] + s0[0], v[1] + s0[1]),
                       pack(v[2] + s0[0], v[3] + s0[1]), pack(v[4] + s1[0], v[5] + s1[1]),
                       pack(v[6] + s1[0], v[7] + s1[1]));
    }
    __syncwarp();
}

__device__ __forceinline__ void add_to(float4 &sum, const float *v) {
    sum = make_float4(sum.x + v[0], sum.y + v[1], sum.z + v[2], sum.w + v[3]);
}

/* to (128) = the sums of all warps, (warps,2,2,32) */
__device__ __forceinline__ void add_up(float *to, const float4 *sums, int warps) {
    __syncthreads();
    if (threadIdx.x >= SLAB) return;
    const float *column = (const float *)sums;
    int half = threadIdx.x / PIECE, eight = threadIdx.x % PIECE / 8, k = threadIdx.x % 8;
    float all = 0;
    for (int w = 0; w < warps; w++)
        for (int l = eight; l < 32; l += 8) /* the lanes that had this column */
            all += column[(((w * 2 + half) * 2 + k / 4) * 32 + l) * 4 + k % 4];
    to[threadIdx.x] = all;
}

} // namespace

#endif /* CGS_OPS_CUDA_GELU_ROWS_CUH */

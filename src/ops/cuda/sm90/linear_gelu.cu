/* linear_gelu.cu - a linear layer and the GELU after it in one kernel, and backward the gradient of
 * GELU with the linear layer that reads its result, by warpgroups (wgmma): for a width of 192, many
 * rows and compute capability 9.0.
 *
 *   forward    h = x W^T + b, g = gelu(h)          x (n,192), W (m,192), h and g (n,m)
 *   backward   dh = (dy V) gelu'(h), db = sum dh    dy (n,192), V (192,m), h and dh (n,m)
 *
 * where V is the weight of the layer that reads g.
 *
 * A block keeps the weights of 128 columns in shared memory as long as it lives.  Its four groups
 * work by themselves: each fetches 64 rows of x or dy, multiplies them, and while it computes and
 * writes the results the next rows are on their way and tensor cores work for the other groups.
 * Blocks of different columns walk over the rows at the same pace, so x comes from memory once.
 *
 * Results are rounded and transposed in shared memory, 16 rows x 64 columns of a warp at a time, so
 * that rows leave in pieces of 128 bytes; GELU is computed on the way out. */
#include "ops/cuda/ptx/wgmma.cuh"

namespace {

enum { GROUPS = 4, ALL = GROUPS * WARPGROUP, K = 192, SLAB = 128 };
enum { ROWS = 64 /* of a group */, PIECE = 64 /* columns: 128 bytes of a row */ };
enum { PLACES = 132 }; /* blocks, about: the multiprocessors of the GPU this is for */
enum { LEAST = 1024 }; /* rows for which this is worth a block's start */
enum { GROUP = 1 };    /* named barriers: the first of one per group */

struct shape {
    size_t n, m;
    bool add; /* dh is added to */
};

/* blocks that share a slab's rows */
unsigned sharers(const shape &s) {
    unsigned most = blocks_for(s.n, GROUPS * ROWS), slabs = (unsigned)(s.m / SLAB);
    unsigned places = slabs < PLACES ? PLACES / slabs : 1;
    return most < places ? most : places;
}

/* Shared memory of a block. */
struct block_memory {
    bf16 weights[SLAB * K]; /* forward (3,128,64), backward (2,192,64) */
    bf16 x[GROUPS][K / PIECE][ROWS * PIECE];
    bf16 staged[4 * GROUPS][16 * PIECE];
    float4 sums[4 * GROUPS][2][2][32]; /* of dh, in a lane's 8 columns of both halves */
    float bias[SLAB];
};

#if CGS_HAS_WGMMA

/* chunk c of row r of a matrix with rows of 64 */
__device__ __forceinline__ bf16 *piece_at(bf16 *m, int row, int chunk) {
    return m + row * PIECE + ((chunk ^ (row & 7)) << 3);
}

/* 128 columns of the result: of W (m,192) these rows, as (3,128,64), or of V (192,m) these columns,
 * as (2,192,64) */
template <bool BACK>
__device__ __forceinline__ void fetch_weights(bf16 *to, const bf16 *weights, size_t m, int col0) {
    for (int e = threadIdx.x; e < SLAB * K / 8; e += ALL) {
        int cols = BACK ? SLAB / 8 : K / 8, row = e / cols, chunk = e % cols;
        const bf16 *from = BACK ? weights + row * m + col0 : weights + (size_t)(col0 + row) * K;
        bf16 *piece = to + chunk / 8 * (BACK ? K : SLAB) * PIECE;
        cp_async_16(piece_at(piece, row, chunk % 8), from + chunk * 8);
    }
}

/* 64 rows of x for a group; rows that are not there keep what was in their place */
__device__ __forceinline__ void fetch_rows(bf16 (&to)[K / PIECE][ROWS * PIECE], const bf16 *x,
                                           size_t row0, size_t n) {
    int row = threadIdx.x % WARPGROUP / 8, chunk = threadIdx.x % 8; /* and every 16th row on */
    const bf16 *from = x + (row0 + row) * K + chunk * 8;
#pragma unroll
    for (int i = 0; i < ROWS / 16; i++)
        if (row0 + row + 16 * i < n)
#pragma unroll
            for (int piece = 0; piece < K / PIECE; piece++)
                cp_async_16(piece_at(to[piece], row, chunk) + 16 * i * PIECE,
                            from + 16 * i * K + piece * PIECE);
}

/* four 8 x 8 matrices to shared memory; lane l names row l%8 of matrix l/8 */
__device__ __forceinline__ void store_matrices(bf16 *p, uint32_t a, uint32_t b, uint32_t c,
                                               uint32_t d) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                     (uint32_t)__cvta_generic_to_shared(p)),
                 "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
}

/* the warp's 16 x 64 of results, rounded, to `staged` */
__device__ __forceinline__ void stage_rows(bf16 *staged, const float (&c)[32], const float *bias) {
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
        store_matrices(piece_at(staged, lane % 16, n + lane / 16), pack(v[0] + s0[0], v[1] + s0[1]),
                       pack(v[2] + s0[0], v[3] + s0[1]), pack(v[4] + s1[0], v[5] + s1[1]),
                       pack(v[6] + s1[0], v[7] + s1[1]));
    }
    __syncwarp();
}

/* h of a warp's 16 x 64, on its way; h points at this lane's first row */
__device__ __forceinline__ void read_ahead(uint4 (&to)[4], const bf16 *h, size_t row, size_t n,
                                           size_t m) {
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (row + 4 * i < n) to[i] = *reinterpret_cast<const uint4 *>(h + 4 * i * m);
}

__device__ __forceinline__ void add_to(float4 &sum, const float *v) {
    sum = make_float4(sum.x + v[0], sum.y + v[1], sum.z + v[2], sum.w + v[3]);
}

/* to (128) = the sums of all warps, (warps,2,2,32) */
__device__ __forceinline__ void add_up(float *to, const float4 *sums) {
    __syncthreads();
    if (threadIdx.x >= SLAB) return;
    const float *column = (const float *)sums;
    int half = threadIdx.x / PIECE, eight = threadIdx.x % PIECE / 8, k = threadIdx.x % 8;
    float all = 0;
    for (int w = 0; w < 4 * GROUPS; w++)
        for (int l = eight; l < 32; l += 8) /* the lanes that had this column */
            all += column[(((w * 2 + half) * 2 + k / 4) * 32 + l) * 4 + k % 4];
    to[threadIdx.x] = all;
}

#endif

/* parts (blocks in y, m): sums of dh over a block's rows, or NULL */
template <bool BACK>
__global__ void __launch_bounds__(ALL, 1)
    product_gelu(bf16 *h, bf16 *out, float *parts, const bf16 *x, const bf16 *weights,
                 const float *bias, shape s) {
#if CGS_HAS_WGMMA
    extern __shared__ __align__(16) unsigned char shared[];
    block_memory &m =
        *(block_memory *)(shared + (-(uint32_t)__cvta_generic_to_shared(shared) & (ATOM - 1)));
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int group = __shfl_sync(0xffffffffu, warp / 4, 0), col0 = blockIdx.x * SLAB;
    size_t step = (size_t)gridDim.y * GROUPS * ROWS;
    size_t row0 = ((size_t)blockIdx.y * GROUPS + group) * ROWS;
    fetch_weights<BACK>(m.weights, weights, s.m, col0);
    fetch_rows(m.x[group], x, row0, s.n);
    cp_async_commit();
    for (int i = threadIdx.x; i < SLAB; i += ALL) m.bias[i] = bias ? bias[col0 + i] : 0.0f;
    cp_async_wait<0>();
    fence_proxy_async();
    __syncthreads();

    bf16 *staged = m.staged[warp];
    for (int i = 0; BACK && i < 4; i++) (&m.sums[warp][0][0][0])[i * 32 + lane] = float4();
#pragma unroll 1
    for (; row0 < s.n; row0 += step) {
        uint64_t rows = smem_descriptor(m.x[group]), slab = smem_descriptor(m.weights);
        float c[2][32];
        wgmma_fence();
#pragma unroll
        for (int j = 0; j < 2; j++)
#pragma unroll
            for (int k = 0; k < K / 16; k++) {
                const int piece = k / 4, inside = k % 4, unit = ATOM / 8 >> 4; /* of a row */
                uint64_t a = advance_along_rows(rows + piece * ROWS * unit, inside);
                uint64_t b =
                    BACK ? advance_down_rows(slab + j * K * unit, k)
                         : advance_along_rows(slab + (piece * SLAB + j * PIECE) * unit, inside);
                wgmma<false, BACK>(c[j], a, b, k > 0);
            }
        wgmma_commit();
        /* this lane's part of a warp's 16 x 64 in rows: 8 columns in every fourth row */
        size_t row = row0 + warp % 4 * 16 + lane / 8, at = row * s.m + col0 + lane % 8 * 8;
        uint4 ahead[4];
        if (BACK) read_ahead(ahead, h + at, row, s.n, s.m);
        wgmma_wait<0>();
        wgmma_fence_registers(c[0]);
        wgmma_fence_registers(c[1]);
        bar_sync(GROUP + group, WARPGROUP); /* all warps of the group have used the rows */
        if (row0 + step < s.n) {
            fetch_rows(m.x[group], x, row0 + step, s.n);
            cp_async_commit();
        }
#pragma unroll
        for (int j = 0; j < 2; j++) {
            float sum[8] = {0};
            stage_rows(staged, c[j], BACK ? NULL : m.bias + j * PIECE);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                if (row + 4 * i >= s.n) continue;
                size_t to = at + 4 * i * s.m + j * PIECE;
                const bf16 *row_piece = piece_at(staged, 4 * i + lane / 8, lane % 8);
                float v[8];
                load<8>(v, row_piece);
                if constexpr (!BACK) {
                    *reinterpret_cast<uint4 *>(h + to) =
                        *reinterpret_cast<const uint4 *>(row_piece);
#pragma unroll
                    for (int k = 0; k < 8; k++) v[k] = gelu_rounded(v[k]);
                    store<8>(out + to, v);
                } else {
                    float x8[8];
                    unpack(x8, ahead[i]);
#pragma unroll
                    for (int k = 0; k < 8; k++) {
                        v[k] *= gelu_derivative_rounded(x8[k]);
                        sum[k] += v[k];
                    }
                    give<8>(out + to, v, s.add);
                }
            }
            if constexpr (BACK) {
                if (j == 0) read_ahead(ahead, h + at + PIECE, row, s.n, s.m);
                add_to(m.sums[warp][j][0][lane], sum);
                add_to(m.sums[warp][j][1][lane], sum + 4);
            }
        }
        cp_async_wait<0>();
        fence_proxy_async();
        bar_sync(GROUP + group, WARPGROUP); /* the next rows are there */
    }
    if constexpr (BACK)
        if (parts) add_up(parts + blockIdx.y * s.m + col0, &m.sums[0][0][0][0]);
#endif
}

template <bool BACK>
void launch(cgs_device *d, bf16 *h, bf16 *out, float *parts, const bf16 *x, const bf16 *weights,
            const float *bias, shape s) {
    dim3 grid((unsigned)(s.m / SLAB), sharers(s));
    product_gelu<BACK><<<grid, ALL, sizeof(block_memory) + ATOM, stream_of(d)>>>(h, out, parts, x,
                                                                                 weights, bias, s);
    LAUNCHED(d, BACK ? "gelu and linear backward" : "linear and gelu");
}

/* act: GELU of or before a linear layer with this weight; narrow, wide: the layer's rows */
bool fits(const cgs_device *d, const cgs_record *act, const cgs_tensor *narrow,
          const cgs_tensor *wide, const cgs_tensor *W) {
    return cgs_cuda_of(d)->capability == 90 && act->arg.activation.kind == CGS_GELU &&
           cgs_cols(narrow) == K && cgs_cols(wide) % SLAB == 0 && cgs_rows(narrow) >= LEAST &&
           W->bf16 && narrow->dtype == CGS_BF16 && wide->dtype == CGS_BF16;
}

template <bool BACK> cgs_status prepare() {
    cudaError_t e =
        cudaFuncSetAttribute(product_gelu<BACK>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             (int)sizeof(block_memory) + ATOM);
    return e == cudaSuccess ? CGS_OK : cgs_cuda_failed(e, "linear layer with GELU");
}

} // namespace

extern "C" {

bool cgs_cuda_gelu_wgmma_fits(const cgs_device *d, const cgs_record *, const cgs_record *linear,
                              const cgs_record *act) {
    return act->out->dtype == CGS_BF16 && fits(d, act, linear->in[0], linear->out, linear->in[1]);
}

cgs_status cgs_cuda_gelu_wgmma_prepare(cgs_device *, const cgs_record *) {
    return prepare<false>();
}

bool cgs_cuda_gelu_wgmma_gradient_fits(const cgs_device *d, const cgs_record *act,
                                       const cgs_record *linear, const cgs_record *) {
    return act->in[0]->dtype == CGS_BF16 && linear->in[0] == act->out &&
           fits(d, act, linear->out, linear->in[0], linear->in[1]);
}

cgs_status cgs_cuda_gelu_wgmma_gradient_prepare(cgs_device *d, const cgs_record *linear) {
    shape s = {cgs_rows(linear->in[0]), (size_t)cgs_cols(linear->in[0]), false};
    CGS_TRY(cgs_cuda_need_parts(d, sharers(s) * s.m));
    return prepare<true>();
}

void cgs_cuda_gelu_wgmma_forward(cgs_device *d, const cgs_record *linear) {
    const cgs_tensor *x = linear->in[0], *W = linear->in[1], *b = linear->in[2], *h = linear->out;
    shape s = {cgs_rows(x), (size_t)cgs_cols(h), false};
    launch<false>(d, (bf16 *)h->data, (bf16 *)linear->next->out->data, NULL, (const bf16 *)x->data,
                  (const bf16 *)W->bf16, b ? (const float *)b->data : NULL, s);
}

/* of the linear layer that reads GELU's result; GELU's gradient, and the bias gradient of the layer
 * before it, come on the way */
void cgs_cuda_gelu_wgmma_gradient_backward(cgs_device *d, const cgs_record *linear) {
    const cgs_record *act = linear->before, *made = act->before;
    const cgs_tensor *h = act->in[0], *dy = linear->out, *W = linear->in[1];
    if (cgs_wants(act, 0)) {
        bool bias = made && cgs_wants(made, 2);
        shape s = {cgs_rows(dy), (size_t)cgs_cols(h), act->accumulate[0]};
        float *parts = bias ? cgs_cuda_parts(d, sharers(s) * s.m) : NULL;
        launch<true>(d, (bf16 *)h->data, (bf16 *)h->grad, parts, (const bf16 *)dy->grad,
                     (const bf16 *)W->bf16, NULL, s);
        if (bias) cgs_cuda_give_parts(d, made, 2, parts, sharers(s), s.m, s.m);
    }
    cgs_cuda_linear_backward_parameters(d, linear);
}

} /* extern "C" */

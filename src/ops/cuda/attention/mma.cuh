/* mma.cuh - pieces of attention in shared memory and in the registers of a warp,
 * for bf16 heads of width W, 64 or 32.
 *
 * Rows of 64 in shared memory are 8 chunks of 16 bytes, stored at chunk ^ (row % 8) so that 8
 * rows of a chunk lie in different banks; of rows of 32 two share the banks, and their 4 chunks
 * are at chunk ^ (row / 2 % 4). */
#ifndef CGS_OPS_CUDA_ATTENTION_MMA_CUH
#define CGS_OPS_CUDA_ATTENTION_MMA_CUH

#include "ops/cuda/attention/attention.cuh"
#include "ops/cuda/ptx/mma.cuh"

enum { WIDTH = 64, HALF_WIDTH = 32, TILE = 16 };

/* what forms on tensor cores are for: heads of one width, most of WIDTH */
static inline bool is_bf16_attention(const cgs_record *r, int width = WIDTH) {
    return r->in[0]->dtype == CGS_BF16 && r->out->dtype == CGS_BF16 &&
           r->arg.attention.width == width;
}

/* Where backward puts `count` rows of partial sums of a joined linear layer's bias gradient; NULL:
 * there is no such layer, or its bias wants none. */
static inline float *bias_parts(cgs_device *d, const cgs_record *r, size_t count) {
    if (!r->before || !cgs_wants(r->before, 2)) return NULL;
    return cgs_cuda_parts(d, count * (size_t)cgs_cols(r->in[0]));
}
/* ... and gives the bias their sums */
static inline void give_bias_parts(cgs_device *d, const cgs_record *r, const float *parts,
                                   size_t count) {
    size_t columns = (size_t)cgs_cols(r->in[0]);
    if (parts) cgs_cuda_give_parts(d, r->before, 2, parts, count, columns, columns);
}
/* for prepare: scratch for row dots, and `count` rows of these sums */
static inline cgs_status need_row_dots(cgs_device *d, const cgs_record *r, size_t count) {
    CGS_TRY(cgs_cuda_need(d, cgs_numel(r->saved[0]) * sizeof(float)));
    bool sums = r->before && cgs_wants(r->before, 2);
    return sums ? cgs_cuda_need_parts(d, count * (size_t)cgs_cols(r->in[0])) : CGS_OK;
}
static const float LOG2E = 1.4426950408889634f;

/* ---- tiles in shared memory --------------------------------------------------------------- */

template <int W = WIDTH>
static __device__ __forceinline__ const bf16 *chunk_at(const bf16 *m, int row, int chunk) {
    return m + row * W + ((chunk ^ (row / (64 / W) & (W / 8 - 1))) << 3);
}

/* Copies `rows` rows, `stride` apart, and zeroes up to `padded`; cp_async_wait_all() waits. */
template <int W = WIDTH>
static __device__ __forceinline__ void copy_rows(bf16 *to, const bf16 *from, int rows, int padded,
                                                 size_t stride) {
    const int chunks = W / 8;
    for (int e = threadIdx.x; e < padded * chunks; e += blockDim.x) {
        int row = e / chunks, chunk = e % chunks;
        bf16 *at = const_cast<bf16 *>(chunk_at<W>(to, row, chunk));
        if (row < rows) {
            cp_async_16(at, from + row * stride + chunk * 8);
        } else {
            *reinterpret_cast<uint4 *>(at) = make_uint4(0, 0, 0, 0);
        }
    }
}
static __device__ __forceinline__ void cp_async_wait_all() {
    cp_async_commit();
    cp_async_wait<0>();
    __syncthreads();
}

/* B of a product whose columns are rows n0 .. n0+15 of m and whose inner index is column
 * 16 k .. of m: two pairs of registers, for columns 0-7 and 8-15 */
template <int W>
static __device__ __forceinline__ void load_transposed(regs4 &r, const bf16 *m, int n0, int k) {
    int lane = threadIdx.x % 32, matrix = lane / 8;
    const bf16 *p = chunk_at<W>(m, n0 + (matrix / 2) * 8 + lane % 8, 2 * k + matrix % 2);
    ldmatrix_x4(r, p);
}

/* B of a product whose inner index is row k0 .. k0+15 of m and whose columns are columns
 * 16 n .. of m */
template <int W>
static __device__ __forceinline__ void load_plain(regs4 &r, const bf16 *m, int k0, int n) {
    int lane = threadIdx.x % 32, matrix = lane / 8;
    const bf16 *p = chunk_at<W>(m, k0 + (matrix % 2) * 8 + lane % 8, 2 * n + matrix / 2);
    ldmatrix_x4_trans(r, p);
}

/* ---- tiles in registers ------------------------------------------------------------------- */

/* A of a product: 16 rows of 16 K, straight from memory; rows from `rows` on are 0 */
template <int K>
static __device__ __forceinline__ void load_rows(regs4 (&a)[K], const bf16 *from, int row0,
                                                 int rows, size_t stride) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int row = row0 + lane / 4 + 8 * half;
        const bf16 *p = from + row * stride + 2 * (lane % 4);
#pragma unroll
        for (int k = 0; k < K; k++) {
            a[k][half] = row < rows ? *reinterpret_cast<const uint32_t *>(p + 16 * k) : 0;
            a[k][half + 2] = row < rows ? *reinterpret_cast<const uint32_t *>(p + 16 * k + 8) : 0;
        }
    }
}

/* 16 x 16 of results becomes A of the next product */
static __device__ __forceinline__ void as_factor(regs4 &a, const float (&s)[2][4]) {
    a[0] = pack(s[0][0], s[0][1]);
    a[1] = pack(s[0][2], s[0][3]);
    a[2] = pack(s[1][0], s[1][1]);
    a[3] = pack(s[1][2], s[1][3]);
}

/* s (16,16) = a (16,W) times the transpose of rows n0 .. n0+15 of m; W = 16 K */
template <int K>
static __device__ __forceinline__ void product_transposed(float (&s)[2][4], const regs4 (&a)[K],
                                                          const bf16 *m, int n0) {
#pragma unroll
    for (int i = 0; i < 4; i++) s[0][i] = s[1][i] = 0;
#pragma unroll
    for (int k = 0; k < K; k++) {
        regs4 b;
        load_transposed<16 * K>(b, m, n0, k);
        mma(s[0], a[k], b[0], b[1]);
        mma(s[1], a[k], b[2], b[3]);
    }
}

/* sum (16,W) += a (16,16) times rows k0 .. k0+15 of m; W = 8 N */
template <int N>
static __device__ __forceinline__ void product_plain(float (&sum)[N][4], const regs4 &a,
                                                     const bf16 *m, int k0) {
#pragma unroll
    for (int n = 0; n < N / 2; n++) {
        regs4 b;
        load_plain<8 * N>(b, m, k0, n);
        mma(sum[2 * n], a, b[0], b[1]);
        mma(sum[2 * n + 1], a, b[2], b[3]);
    }
}

/* stores 16 x W, times a factor for each of the lane's two rows; those before `first` are left */
template <int N>
static __device__ __forceinline__ void store_rows(bf16 *to, const float (&v)[N][4], int row0,
                                                  int rows, size_t stride, float upper, float lower,
                                                  bool add, int first = 0) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int row = row0 + lane / 4 + 8 * half;
        if (row < first || row >= rows) continue;
        bf16 *p = to + row * stride + 2 * (lane % 4);
        float factor = half ? lower : upper;
#pragma unroll
        for (int n = 0; n < N; n++) {
            float pair[2] = {v[n][2 * half] * factor, v[n][2 * half + 1] * factor};
            give<2>(p + 8 * n, pair, add);
        }
    }
}

/* v, times a factor for each of the lane's two rows, becomes the rounding residual of store_rows */
template <int N>
static __device__ __forceinline__ void leave_residual(float (&v)[N][4], float upper, float lower) {
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float x = v[n][i] * (i / 2 ? lower : upper);
            v[n][i] = x - widen(narrow<bf16>(x));
        }
}

static __device__ __forceinline__ float quad_max(float v) {
    v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, 1));
    return fmaxf(v, __shfl_xor_sync(0xffffffffu, v, 2));
}
static __device__ __forceinline__ float quad_sum(float v) {
    v += __shfl_xor_sync(0xffffffffu, v, 1);
    return v + __shfl_xor_sync(0xffffffffu, v, 2);
}

/* Adds the columns of v (16,W), times `scale`, to sums (W) in shared memory that is the
 * warp's own; rows from `rows` on do not count. */
template <int N>
static __device__ __forceinline__ void add_columns(float *sums, const float (&v)[N][4], int row0,
                                                   int rows, float scale) {
    int lane = threadIdx.x % 32;
    bool upper = row0 + lane / 4 < rows, lower = row0 + lane / 4 + 8 < rows;
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float sum = (upper ? v[n][i] : 0.0f) + (lower ? v[n][i + 2] : 0.0f);
#pragma unroll
            for (int o = 4; o < 32; o <<= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
            if (lane < 4) sums[8 * n + 2 * lane + i] += scale * sum;
        }
}

/* to (W) = the sums of all warps, (warps,W) */
template <int WARPS, int W>
__device__ __forceinline__ void gather_columns(float *to, const float (&sums)[WARPS][W]) {
    __syncthreads();
    if (threadIdx.x >= W) return;
    float all = 0;
    for (int w = 0; w < WARPS; w++) all += sums[w][threadIdx.x];
    to[threadIdx.x] = all;
}

/* ---- dropout ------------------------------------------------------------------------------ */

/* factors of probabilities: of the lane's rows i0 + l/4 and i0 + l/4 + 8, keys j */
struct keep_all {
    static const bool some = false;
    __device__ __forceinline__ keep_all() {}
    __device__ __forceinline__ keep_all(const attention_shape &, int, int, int) {}
    __device__ __forceinline__ float operator()(int, int) const { return 1; }
};
struct keep_drawn {
    static const bool some = true;
    uint64_t key, row;
    int T;
    float p, scale;
    __device__ __forceinline__ keep_drawn(const attention_shape &s, int b, int h, int i0)
        : key(s.draw_key()), row(((uint64_t)b * s.heads + h) * s.T + i0), T(s.T), p(s.dropout),
          scale(s.keep) {}
    /* i, j: row after i0, and key */
    __device__ __forceinline__ float operator()(int i, int j) const {
        return keep_factor(key, (row + i) * T + j, p, scale);
    }
};

/* ---- softmax of one row of tiles ---------------------------------------------------------- */

/* What a warp keeps of its 16 queries; [half]: rows l/4 and l/4 + 8.  The result is divided by the
 * sum of probabilities as they were multiplied, that is rounded, lse has the sum before: then what
 * all of them are rounded by, where they are alike, cancels in rowsum(P dP). */
template <int W = WIDTH> struct running {
    float out[W / 8][4];
    float top[2], sum[2];    /* of scores in units of log 2; partial sums of the lane */
    float drawn[2], kept[2]; /* sums after dropout, and after rounding */
};

/* the sum of two that were packed */
static __device__ __forceinline__ float both(uint32_t pair) {
    return __uint_as_float(pair << 16) + __uint_as_float(pair & 0xffff0000u);
}

/* adds keys j0 .. j0 + 16 N - 1 of k and v, whose first is key `base` of all */
template <int N, int W, class Keep = keep_all>
static __device__ __forceinline__ void
add_keys(running<W> &w, const regs4 (&q)[W / 16], const bf16 *k, const bf16 *v, int j0,
         const int (&limit)[2], float scale, const Keep &keep = Keep(), int base = 0) {
    int lane = threadIdx.x % 32;
    float s[N][2][4];
#pragma unroll
    for (int n = 0; n < N; n++) product_transposed(s[n], q, k, j0 + 16 * n);
    float top[2] = {w.top[0], w.top[1]};
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int t = 0; t < 2; t++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int j = j0 + 16 * n + 8 * t + 2 * (lane % 4) + i % 2, half = i / 2;
                s[n][t][i] = j < limit[half] ? s[n][t][i] * scale : -INFINITY;
                top[half] = fmaxf(top[half], s[n][t][i]);
            }
    top[0] = quad_max(top[0]);
    top[1] = quad_max(top[1]);
    /* the maximum soon stops growing: then nothing has to be rescaled */
    if (__any_sync(0xffffffffu, top[0] > w.top[0] || top[1] > w.top[1])) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float shrink = top[half] == -INFINITY ? 1.0f : exp2_fast(w.top[half] - top[half]);
            w.sum[half] *= shrink;
            w.drawn[half] *= shrink;
            w.kept[half] *= shrink;
            w.top[half] = top[half];
#pragma unroll
            for (int n = 0; n < W / 8; n++) {
                w.out[n][2 * half] *= shrink;
                w.out[n][2 * half + 1] *= shrink;
            }
        }
    }
#pragma unroll
    for (int n = 0; n < N; n++) {
#pragma unroll
        for (int t = 0; t < 2; t++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                /* a row beyond the last token has no key and no maximum */
                float top = w.top[i / 2] == -INFINITY ? 0.0f : w.top[i / 2];
                s[n][t][i] = exp2_fast(s[n][t][i] - top);
                w.sum[i / 2] += s[n][t][i];
                int j = base + j0 + 16 * n + 8 * t + 2 * (lane % 4) + i % 2;
                if (Keep::some) w.drawn[i / 2] += s[n][t][i] *= keep(lane / 4 + 8 * (i / 2), j);
            }
        regs4 p;
        as_factor(p, s[n]);
        w.kept[0] += both(p[0]) + both(p[2]);
        w.kept[1] += both(p[1]) + both(p[3]);
        product_plain(w.out, p, v, j0 + 16 * n);
    }
}

/* what the result is divided by; total: the sum of all lanes */
template <class Keep, int W>
static __device__ __forceinline__ float weight_of(const running<W> &w, int half, float total) {
    float kept = quad_sum(w.kept[half]);
    if (!Keep::some) return kept;
    float drawn = quad_sum(w.drawn[half]);
    return drawn > 0 ? total * kept / drawn : total;
}

#endif /* CGS_OPS_CUDA_ATTENTION_MMA_CUH */

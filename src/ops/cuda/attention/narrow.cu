/* narrow.cu - attention of tokens that are narrower than its heads, from the tokens.
 *
 * Heads are 64 wide, but tokens x (T,k) with k <= 32 give their queries, keys and values only k
 * dimensions.  A score is
 *     q_i . k_j = x_i Wq^T Wk x_j = (x_i M) . x_j          M (k,k), one per head
 * and a result is
 *     sum_j p_ij Wv x_j = Wv (sum_j p_ij x_j)
 * so the tokens themselves are keys and values of every head: products of 32 columns instead of
 * 64, half of the reads from shared memory, and qkv, 110 times as wide as x in the patch predictor,
 * is never made.  Forward only: gradients need q, k and v as they are.
 *
 * A block takes one head of one batch element with all tokens in shared memory; a warp takes 16
 * queries at a time, the last first, because they see most.  Where qkv would have been rounded to
 * bf16, M, x_i M and the weighted sums of tokens are. */
#include "ops/cuda/attention/mma.cuh"

namespace {

enum { WARPS = 5, COLUMNS = 32, STRIDE = COLUMNS + 8 /* so that 8 rows lie in different banks */ };

/* tokens are 4 chunks of 16 bytes; rows 2n and 2n + 1 share 128 bytes, and chunks change places
 * from one such pair to the next, so that 8 rows of a chunk lie in different banks */
__device__ __forceinline__ const bf16 *token_chunk(const bf16 *m, int row, int chunk) {
    return m + row * COLUMNS + ((chunk ^ (row >> 1 & 3)) << 3);
}

/* columns 2w, 2w + 1 of a row of k numbers, 0 beyond them */
__device__ __forceinline__ uint32_t word_of(const bf16 *row, int w, int k) {
    return 2 * w < k ? reinterpret_cast<const uint32_t *>(row)[w] : 0;
}
__device__ __forceinline__ uint32_t two(const bf16 *low, const bf16 *high) {
    return (uint32_t) * reinterpret_cast<const uint16_t *>(low) |
           (uint32_t) * reinterpret_cast<const uint16_t *>(high) << 16;
}

/* transposed (32,STRIDE) = scale * (Wq^T Wk)^T, row c of which is column c of M: warps 0 and 1 make
 * 16 rows each.  q, k: the head's rows of Wq and Wk, (64,columns). */
__device__ __forceinline__ void make_form(bf16 *transposed, const bf16 *q, const bf16 *k,
                                          int columns, float scale) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, r0 = 16 * warp + lane / 4;
    if (warp > 1) return;
    float sum[4][4] = {{0}};
#pragma unroll
    for (int step = 0; step < WIDTH / 16; step++) {
        regs4 a;
#pragma unroll
        for (int part = 0; part < 4; part++) {
            int d = 16 * step + 2 * (lane % 4) + 8 * (part / 2), c = r0 + 8 * (part % 2);
            const bf16 *at = k + d * columns + c;
            a[part] = c < columns ? two(at, at + columns) : 0;
        }
#pragma unroll
        for (int n = 0; n < 4; n++) {
            int d = 16 * step + 2 * (lane % 4), c = 8 * n + lane / 4;
            const bf16 *at = q + d * columns + c;
            uint32_t b0 = c < columns ? two(at, at + columns) : 0;
            uint32_t b1 = c < columns ? two(at + 8 * columns, at + 9 * columns) : 0;
            mma(sum[n], a, b0, b1);
        }
    }
#pragma unroll
    for (int n = 0; n < 4; n++)
#pragma unroll
        for (int half = 0; half < 2; half++)
            *reinterpret_cast<uint32_t *>(transposed + (r0 + 8 * half) * STRIDE + 8 * n +
                                          2 * (lane % 4)) =
                pack(scale * sum[n][2 * half], scale * sum[n][2 * half + 1]);
}

/* result (16, 8 N) = a (16,32) times the transpose of m (8 N, STRIDE) */
template <int N>
__device__ __forceinline__ void times_transposed(float (&result)[N][4], const regs4 (&a)[2],
                                                 const bf16 *m) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < N; n++) {
        const uint32_t *row = reinterpret_cast<const uint32_t *>(m + (8 * n + lane / 4) * STRIDE);
#pragma unroll
        for (int i = 0; i < 4; i++) result[n][i] = 0;
#pragma unroll
        for (int k = 0; k < 2; k++)
            mma(result[n], a[k], row[8 * k + lane % 4], row[8 * k + 4 + lane % 4]);
    }
}

/* 16 x 32 of results becomes A of the next product */
__device__ __forceinline__ void as_rows(regs4 (&a)[2], const float (&v)[4][4], float upper,
                                        float lower) {
#pragma unroll
    for (int k = 0; k < 2; k++)
#pragma unroll
        for (int part = 0; part < 2; part++) {
            const float(&s)[4] = v[2 * k + part];
            a[k][2 * part] = pack(s[0] * upper, s[1] * upper);
            a[k][2 * part + 1] = pack(s[2] * lower, s[3] * lower);
        }
}

/* what a warp keeps of its 16 queries; [half]: rows l/4 and l/4 + 8 */
struct gathered {
    float sum_x[4][4];    /* of tokens, weighted */
    float top[2], sum[2]; /* of scores in units of log 2; partial sum of the lane */
};

/* adds tokens j0 .. j0 + 31; MASKED: only those below limit[half] */
template <bool MASKED>
__device__ __forceinline__ void add_tokens(gathered &w, const regs4 (&q)[2], const bf16 *x, int j0,
                                           const int (&limit)[2]) {
    int lane = threadIdx.x % 32, matrix = lane / 8;
    float s[4][4];
#pragma unroll
    for (int n = 0; n < 4; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) s[n][i] = 0;
#pragma unroll
    for (int n = 0; n < 2; n++)
#pragma unroll
        for (int k = 0; k < 2; k++) {
            regs4 b;
            ldmatrix_x4(
                b, token_chunk(x, j0 + 16 * n + (matrix / 2) * 8 + lane % 8, 2 * k + matrix % 2));
            mma(s[2 * n], q[k], b[0], b[1]);
            mma(s[2 * n + 1], q[k], b[2], b[3]);
        }
    float top[2] = {w.top[0], w.top[1]};
#pragma unroll
    for (int n = 0; n < 4; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int j = j0 + 8 * n + 2 * (lane % 4) + i % 2;
            if (MASKED && j >= limit[i / 2]) s[n][i] = -INFINITY;
            top[i / 2] = fmaxf(top[i / 2], s[n][i]);
        }
    top[0] = quad_max(top[0]);
    top[1] = quad_max(top[1]);
    /* the maximum soon stops growing: then nothing has to be rescaled */
    if (__any_sync(0xffffffffu, top[0] > w.top[0] || top[1] > w.top[1])) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float shrink = exp2_fast(w.top[half] - top[half]); /* every query sees token 0 */
            w.sum[half] *= shrink;
            w.top[half] = top[half];
#pragma unroll
            for (int n = 0; n < 4; n++) {
                w.sum_x[n][2 * half] *= shrink;
                w.sum_x[n][2 * half + 1] *= shrink;
            }
        }
    }
#pragma unroll
    for (int n = 0; n < 2; n++) {
        regs4 p;
#pragma unroll
        for (int t = 0; t < 2; t++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                float a = exp2_fast(s[2 * n + t][2 * half] - w.top[half]);
                float b = exp2_fast(s[2 * n + t][2 * half + 1] - w.top[half]);
                w.sum[half] += a + b;
                p[2 * t + half] = pack(a, b);
            }
#pragma unroll
        for (int c = 0; c < 2; c++) {
            regs4 b;
            ldmatrix_x4_trans(
                b, token_chunk(x, j0 + 16 * n + (matrix % 2) * 8 + lane % 8, 2 * c + matrix / 2));
            mma(w.sum_x[2 * c], p, b[0], b[1]);
            mma(w.sum_x[2 * c + 1], p, b[2], b[3]);
        }
    }
}

__device__ __forceinline__ int padded(int T) { return (T + 31) / 32 * 32; }

/* x (B,T,columns), W (3*heads*64, columns) */
__global__ void __launch_bounds__(32 * WARPS, 4)
    narrow_forward(bf16 *out, float *lse, const bf16 *x, const bf16 *W, int columns,
                   attention_shape s) {
    extern __shared__ __align__(16) bf16 tokens[]; /* (padded T, 32) */
    __shared__ __align__(16) bf16 form[COLUMNS * STRIDE];
    __shared__ __align__(16) bf16 values[WIDTH * STRIDE];
    int b = blockIdx.x / s.heads, h = blockIdx.x % s.heads, lane = threadIdx.x % 32;
    const bf16 *mine = x + (size_t)b * s.T * columns, *Wq = W + (size_t)h * WIDTH * columns;
    const bf16 *Wk = Wq + (size_t)s.part() * columns, *Wv = Wk + (size_t)s.part() * columns;
#pragma unroll 4
    for (int e = threadIdx.x; e < padded(s.T) * (COLUMNS / 2); e += 32 * WARPS) {
        int row = e / (COLUMNS / 2), w = e % (COLUMNS / 2);
        uint32_t v = row < s.T ? word_of(mine + row * columns, w, columns) : 0;
        bf16 *to = const_cast<bf16 *>(token_chunk(tokens, row, w / 4));
        reinterpret_cast<uint32_t *>(to)[w % 4] = v;
    }
    for (int e = threadIdx.x; e < WIDTH * (COLUMNS / 2); e += 32 * WARPS) {
        int row = e / (COLUMNS / 2), w = e % (COLUMNS / 2);
        reinterpret_cast<uint32_t *>(values + row * STRIDE)[w] =
            word_of(Wv + row * columns, w, columns);
    }
    make_form(form, Wq, Wk, columns, s.scale * LOG2E);
    __syncthreads();
    int last = (s.end - 1) / TILE, first = s.first / TILE;
    for (int tile = last - (int)threadIdx.x / 32; tile >= first; tile -= WARPS) {
        int i0 = tile * TILE, end = i0 + TILE < s.T ? i0 + TILE : s.T, limit[2];
        int whole = s.limit(i0), seen = s.limit(end - 1); /* by all 16 queries, by any */
        for (int half = 0; half < 2; half++) {
            int i = i0 + lane / 4 + 8 * half;
            limit[half] = s.limit(i < s.T ? i : s.T - 1);
        }
        regs4 q[2];
#pragma unroll
        for (int k = 0; k < 2; k++) /* A: rows 0-7 and 8-15, then the same of 8 columns on */
            ldmatrix_x4(q[k],
                        token_chunk(tokens, i0 + lane / 8 % 2 * 8 + lane % 8, 2 * k + lane / 16));
        {
            float transposed[4][4];
            times_transposed(transposed, q, form);
            as_rows(q, transposed, 1, 1);
        }
        gathered w = {};
        w.top[0] = w.top[1] = -INFINITY;
        int j0 = 0;
        for (; j0 + 32 <= whole; j0 += 32) add_tokens<false>(w, q, tokens, j0, limit);
        for (; j0 < seen; j0 += 32) add_tokens<true>(w, q, tokens, j0, limit);
        float total[2] = {quad_sum(w.sum[0]), quad_sum(w.sum[1])};
        float result[8][4];
        as_rows(q, w.sum_x, 1.0f / total[0], 1.0f / total[1]);
        times_transposed(result, q, values);
        store_rows(out + s.out(b, h), result, i0, s.end, s.out_row(), 1, 1, false, s.first);
        for (int half = 0; half < 2; half++) {
            int i = i0 + lane / 4 + 8 * half;
            if (lane % 4 == 0 && i < s.T)
                lse[(size_t)blockIdx.x * s.T + i] = w.top[half] / LOG2E + logf(total[half]);
        }
    }
}

const size_t FIXED = (COLUMNS + WIDTH) * STRIDE * sizeof(bf16);

size_t shared_bytes(const cgs_record *r) {
    return ((size_t)r->in[0]->dim[1] + 31) / 32 * 32 * COLUMNS * sizeof(bf16);
}

} // namespace

extern "C" {

bool cgs_cuda_attention_narrow_fits(const cgs_device *d, const cgs_record *linear,
                                    const cgs_record *r, const cgs_record *) {
    const cgs_tensor *x = linear->in[0], *W = linear->in[1];
    return r->in[0] == linear->out && !r->out->wants_grad && !linear->in[2] && x->rank == 3 &&
           cgs_cols(x) <= COLUMNS && cgs_cols(x) % 2 == 0 && x->dtype == CGS_BF16 && W->bf16 &&
           is_bf16_attention(r) && r->arg.attention.dropout <= 0 && r->in[0]->dim[1] >= TILE &&
           shared_bytes(r) + FIXED <= (size_t)cgs_cuda_of(d)->max_shared;
}

cgs_status cgs_cuda_attention_narrow_prepare(cgs_device *d, const cgs_record *) {
    cudaError_t e =
        cudaFuncSetAttribute(narrow_forward, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             cgs_cuda_of(d)->max_shared - (int)FIXED);
    return e == cudaSuccess ? CGS_OK : cgs_cuda_failed(e, "attention");
}

void cgs_cuda_attention_narrow_forward(cgs_device *d, const cgs_record *r) {
    attention_shape s = attention_of(d, r);
    const cgs_tensor *x = r->before->in[0], *W = r->before->in[1];
    unsigned heads = (unsigned)(x->dim[0] * s.heads);
    narrow_forward<<<heads, 32 * WARPS, shared_bytes(r), stream_of(d)>>>(
        (bf16 *)attention_result(r), (float *)r->saved[0]->data, (const bf16 *)x->data,
        (const bf16 *)W->bf16, cgs_cols(x), s);
    LAUNCHED(d, "attention of narrow tokens");
}

} /* extern "C" */

/* mma.cu - attention on tensor cores for windows that fit into shared memory: bf16
 * heads of width 64 or 32, no dropout.  stream.cu takes what is longer, or has dropout.
 *
 * A block takes one head of one batch element.  Two of its matrices lie in shared memory
 * whole; a warp takes 16 rows of the others in registers and walks over the former in tiles
 * of 16, so that scores never leave registers:
 *   forward   k, v shared; a warp has 16 queries, and a running maximum and sum for each
 *   dq        k, v shared; a warp has 16 queries and their dout
 *   dk, dv    q, dout shared; a warp has 16 keys and values
 * Backward computes the probabilities twice, from lse; in return nothing has to be added
 * across warps, and every sum has one order. */
#include "ops/cuda/attention/mma.cuh"

namespace {

enum { WARPS = 6 };
const size_t FIXED = 4096; /* bytes of shared memory that kernels declare themselves, at most */

__device__ __forceinline__ int padded(int T) { return (T + TILE - 1) / TILE * TILE; }

/* ---- forward ------------------------------------------------------------------------------- */

template <int W>
__global__ void __launch_bounds__(32 * WARPS, 3)
    tiles_forward(bf16 *out, bf16 *residual, float *lse, const bf16 *qkv, attention_shape s) {
    extern __shared__ __align__(16) bf16 shared[]; /* k, v: (padded T, W) */
    int b = blockIdx.x / s.heads, h = blockIdx.x % s.heads, Tp = padded(s.T);
    size_t in_row = s.in_row(), out_row = s.out_row();
    const bf16 *q = qkv + s.q(b, h);
    bf16 *k = shared, *v = shared + (size_t)Tp * W;
    copy_rows<W>(k, q + s.part(), s.T, Tp, in_row);
    copy_rows<W>(v, q + 2 * s.part(), s.T, Tp, in_row);
    cp_async_wait_all();
    int lane = threadIdx.x % 32;
    int first = s.first / TILE * TILE; /* rows before it nobody reads */
    for (int i0 = first + threadIdx.x / 32 * TILE; i0 < s.end; i0 += WARPS * TILE) {
        running<W> w = {};
        w.top[0] = w.top[1] = -INFINITY;
        regs4 rows[W / 16];
        load_rows(rows, q, i0, s.T, in_row);
        int limit[2], keys = s.limit(i0 + TILE - 1 < s.T ? i0 + TILE - 1 : s.T - 1);
        for (int half = 0; half < 2; half++) {
            int i = i0 + lane / 4 + 8 * half;
            limit[half] = i < s.T ? s.limit(i) : 0;
        }
        float scale = s.scale * LOG2E;
        int j0 = 0;
        for (; j0 + 16 < keys; j0 += 32) add_keys<2>(w, rows, k, v, j0, limit, scale);
        if (j0 < keys) add_keys<1>(w, rows, k, v, j0, limit, scale);
        float total[2] = {quad_sum(w.sum[0]), quad_sum(w.sum[1])};
        float upper = 1.0f / weight_of<keep_all>(w, 0, total[0]);
        float lower = 1.0f / weight_of<keep_all>(w, 1, total[1]);
        store_rows(out + s.out(b, h), w.out, i0, s.end, out_row, upper, lower, false, s.first);
        if (residual) {
            leave_residual(w.out, upper, lower);
            store_rows(residual + s.out(b, h), w.out, i0, s.end, out_row, 1, 1, false);
        }
        for (int half = 0; half < 2; half++) {
            int i = i0 + lane / 4 + 8 * half;
            if (lane % 4 == 0 && i < s.T)
                lse[(size_t)blockIdx.x * s.T + i] = w.top[half] / LOG2E + logf(total[half]);
        }
    }
}

/* ---- backward -------------------------------------------------------------------------------- */

/* row_dots (B,heads,T) = <dout, out>, which is rowsum(P dP), of `out` before it was rounded: what
 * rounding adds is the same for all keys, and where tokens are alike it outweighs the differences
 * from which q and k learn.  A lane has 8 columns of a row. */
template <int W>
__global__ void __launch_bounds__(256)
    row_dot_products(float *row_dots, const bf16 *dout, const bf16 *out, const bf16 *residual,
                     size_t rows, int T, int heads) {
    const int lanes = W / 8;
    size_t at = ((size_t)blockIdx.x * 256 + threadIdx.x) / lanes; /* (B,T,heads) */
    float sum = 0;
    if (at < rows) {
        float a[8], b[8], c[8];
        load<8>(a, dout + at * W + threadIdx.x % lanes * 8);
        load<8>(b, out + at * W + threadIdx.x % lanes * 8);
        load<8>(c, residual + at * W + threadIdx.x % lanes * 8);
#pragma unroll
        for (int i = 0; i < 8; i++) sum += a[i] * (b[i] + c[i]);
    }
#pragma unroll
    for (int o = lanes / 2; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
    size_t h = at % heads, t = at / heads % T, b = at / heads / T;
    if (at < rows && threadIdx.x % lanes == 0) row_dots[(b * heads + h) * T + t] = sum;
}

/* parts (B, 3*heads*W): sums over tokens of what goes to dqkv, or NULL */
template <int W>
__global__ void __launch_bounds__(32 * WARPS, 2)
    tiles_dq(bf16 *dqkv, bool add, float *parts, const bf16 *dout, const float *lse,
             const float *row_dots, const bf16 *qkv, attention_shape s) {
    extern __shared__ __align__(16) bf16 shared[]; /* k, v: (padded T, W) */
    __shared__ float columns[WARPS][W];
    for (int i = threadIdx.x; i < WARPS * W; i += 32 * WARPS) (&columns[0][0])[i] = 0;
    int b = blockIdx.x / s.heads, h = blockIdx.x % s.heads, Tp = padded(s.T);
    size_t in_row = s.in_row(), out_row = s.out_row();
    const bf16 *q = qkv + s.q(b, h);
    bf16 *k = shared, *v = shared + (size_t)Tp * W;
    copy_rows<W>(k, q + s.part(), s.T, Tp, in_row);
    copy_rows<W>(v, q + 2 * s.part(), s.T, Tp, in_row);
    cp_async_wait_all();
    int lane = threadIdx.x % 32;
    float scale = s.scale * LOG2E;
    for (int i0 = threadIdx.x / 32 * TILE; i0 < s.T; i0 += WARPS * TILE) {
        regs4 rows[W / 16], grads[W / 16];
        load_rows(rows, q, i0, s.T, in_row);
        load_rows(grads, dout + s.out(b, h), i0, s.T, out_row);
        int limit[2], keys = s.limit(i0 + TILE - 1 < s.T ? i0 + TILE - 1 : s.T - 1);
        float norm[2], sum[2], dq[W / 8][4] = {{0}};
        for (int half = 0; half < 2; half++) {
            int i = i0 + lane / 4 + 8 * half;
            size_t at = (size_t)blockIdx.x * s.T + i;
            limit[half] = i < s.T ? s.limit(i) : 0;
            norm[half] = i < s.T ? lse[at] * LOG2E : 0;
            sum[half] = i < s.T ? row_dots[at] : 0;
        }
        for (int j0 = 0; j0 < keys; j0 += 16) {
            float p[2][4], dp[2][4];
            product_transposed(p, rows, k, j0);
            product_transposed(dp, grads, v, j0);
#pragma unroll
            for (int t = 0; t < 2; t++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    int j = j0 + 8 * t + 2 * (lane % 4) + i % 2, half = i / 2;
                    float P = j < limit[half] ? exp2_fast(p[t][i] * scale - norm[half]) : 0.0f;
                    p[t][i] = P * (dp[t][i] - sum[half]);
                }
            regs4 ds;
            as_factor(ds, p);
            product_plain(dq, ds, k, j0);
        }
        store_rows(dqkv + s.q(b, h), dq, i0, s.T, in_row, s.scale, s.scale, add);
        if (parts) add_columns(columns[threadIdx.x / 32], dq, i0, s.T, s.scale);
    }
    if (parts) gather_columns(parts + (size_t)b * in_row + h * W, columns);
}

template <int W>
__global__ void __launch_bounds__(32 * WARPS, 2)
    tiles_dkv(bf16 *dqkv, bool add, float *parts, const bf16 *dout, const float *lse,
              const float *row_dots, const bf16 *qkv, attention_shape s) {
    extern __shared__ __align__(16) bf16 shared[]; /* q, dout: (padded T, W); norms, sums: (T) */
    __shared__ float columns[2][WARPS][W];
    for (int i = threadIdx.x; i < 2 * WARPS * W; i += 32 * WARPS) (&columns[0][0][0])[i] = 0;
    int b = blockIdx.x / s.heads, h = blockIdx.x % s.heads, Tp = padded(s.T);
    size_t in_row = s.in_row(), out_row = s.out_row();
    const bf16 *from = qkv + s.q(b, h);
    bf16 *q = shared, *g = shared + (size_t)Tp * W;
    float *norms = (float *)(g + (size_t)Tp * W), *sums = norms + Tp;
    copy_rows<W>(q, from, s.T, Tp, in_row);
    copy_rows<W>(g, dout + s.out(b, h), s.T, Tp, out_row);
    for (int i = threadIdx.x; i < Tp; i += 32 * WARPS) {
        /* beyond the last token every probability is exp(-inf) = 0 */
        norms[i] = i < s.T ? lse[(size_t)blockIdx.x * s.T + i] * LOG2E : INFINITY;
        sums[i] = i < s.T ? row_dots[(size_t)blockIdx.x * s.T + i] : 0;
    }
    cp_async_wait_all();
    int lane = threadIdx.x % 32;
    float scale = s.scale * LOG2E;
    for (int j0 = threadIdx.x / 32 * TILE; j0 < s.T; j0 += WARPS * TILE) {
        regs4 keys[W / 16], values[W / 16];
        load_rows(keys, from + s.part(), j0, s.T, in_row);
        load_rows(values, from + 2 * s.part(), j0, s.T, in_row);
        float dk[W / 8][4] = {{0}}, dv[W / 8][4] = {{0}};
        /* queries before the block of the first key see none of these keys */
        int first = s.causal ? j0 / s.block * s.block / TILE * TILE : 0;
        for (int i0 = first; i0 < s.T; i0 += 16) {
            float p[2][4], dp[2][4]; /* rows are keys, columns queries */
            product_transposed(p, keys, q, i0);
            product_transposed(dp, values, g, i0);
#pragma unroll
            for (int t = 0; t < 2; t++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    int query = i0 + 8 * t + 2 * (lane % 4) + i % 2;
                    int key = j0 + lane / 4 + 8 * (i / 2);
                    bool seen = !s.causal || key < s.limit(query);
                    float P = seen ? exp2_fast(p[t][i] * scale - norms[query]) : 0.0f;
                    p[t][i] = P;
                    dp[t][i] = P * (dp[t][i] - sums[query]);
                }
            regs4 a;
            as_factor(a, p);
            product_plain(dv, a, g, i0);
            as_factor(a, dp);
            product_plain(dk, a, q, i0);
        }
        bf16 *to = dqkv + s.q(b, h);
        store_rows(to + s.part(), dk, j0, s.T, in_row, s.scale, s.scale, add);
        store_rows(to + 2 * s.part(), dv, j0, s.T, in_row, 1.0f, 1.0f, add);
        if (!parts) continue;
        add_columns(columns[0][threadIdx.x / 32], dk, j0, s.T, s.scale);
        add_columns(columns[1][threadIdx.x / 32], dv, j0, s.T, 1.0f);
    }
    if (!parts) return;
    gather_columns(parts + (size_t)b * in_row + s.part() + h * W, columns[0]);
    gather_columns(parts + (size_t)b * in_row + 2 * s.part() + h * W, columns[1]);
}

size_t shared_bytes(const cgs_record *r, bool norms) {
    size_t T = ((size_t)r->in[0]->dim[1] + TILE - 1) / TILE * TILE;
    size_t width = (size_t)r->arg.attention.width;
    return 2 * T * width * sizeof(bf16) + (norms ? 2 * T * sizeof(float) : 0);
}

/* one block for each head */
unsigned heads_of(const cgs_record *r) {
    return (unsigned)(r->in[0]->dim[0] * r->arg.attention.heads);
}

template <int W> cudaError_t raise_limits(int bytes) {
    cudaFuncAttribute what = cudaFuncAttributeMaxDynamicSharedMemorySize;
    cudaError_t e = cudaFuncSetAttribute(tiles_forward<W>, what, bytes);
    if (e == cudaSuccess) e = cudaFuncSetAttribute(tiles_dq<W>, what, bytes);
    if (e == cudaSuccess) e = cudaFuncSetAttribute(tiles_dkv<W>, what, bytes);
    return e;
}

template <int W> void forward(cgs_device *d, const cgs_record *r) {
    tiles_forward<W><<<heads_of(r), 32 * WARPS, shared_bytes(r, false), stream_of(d)>>>(
        (bf16 *)attention_result(r), attention_residual(r), (float *)r->saved[0]->data,
        (const bf16 *)r->in[0]->data, attention_of(d, r));
    LAUNCHED(d, "attention");
}

template <int W> void dot_rows(cgs_device *d, const cgs_record *r, float *row_dots) {
    size_t rows = cgs_numel(r->saved[0]);
    row_dot_products<W><<<blocks_for(rows * (W / 8), 256), 256, 0, stream_of(d)>>>(
        row_dots, (const bf16 *)r->out->grad, (const bf16 *)r->out->data, attention_residual(r),
        rows, r->out->dim[1], r->arg.attention.heads);
    LAUNCHED(d, "attention backward");
}

template <int W> void backward(cgs_device *d, const cgs_record *r) {
    attention_shape s = attention_of(d, r);
    const cgs_tensor *x = r->in[0], *y = r->out;
    float *row_dots = cgs_cuda_attention_row_dots(d, r),
          *parts = bias_parts(d, r, (size_t)x->dim[0]);
    const float *lse = (const float *)r->saved[0]->data;
    const bf16 *dout = (const bf16 *)y->grad, *qkv = (const bf16 *)x->data;
    tiles_dq<W><<<heads_of(r), 32 * WARPS, shared_bytes(r, false), stream_of(d)>>>(
        (bf16 *)x->grad, r->accumulate[0], parts, dout, lse, row_dots, qkv, s);
    LAUNCHED(d, "attention backward");
    tiles_dkv<W><<<heads_of(r), 32 * WARPS, shared_bytes(r, true), stream_of(d)>>>(
        (bf16 *)x->grad, r->accumulate[0], parts, dout, lse, row_dots, qkv, s);
    LAUNCHED(d, "attention backward");
    give_bias_parts(d, r, parts, (size_t)x->dim[0]);
}

bool is_wide(const cgs_record *r) { return r->arg.attention.width == WIDTH; }
bool fits_a_width(const cgs_record *r) {
    return (is_bf16_attention(r) || is_bf16_attention(r, HALF_WIDTH)) && r->in[0]->dim[1] >= TILE;
}

} // namespace

extern "C" {

/* qkv's gradient is summed over rows where it is made */
bool cgs_cuda_attention_bias_fits(const cgs_device *, const cgs_record *, const cgs_record *r,
                                  const cgs_record *) {
    return fits_a_width(r);
}

bool cgs_cuda_attention_mma_fits(const cgs_device *d, const cgs_record *, const cgs_record *r,
                                 const cgs_record *) {
    return fits_a_width(r) && r->arg.attention.dropout <= 0 &&
           shared_bytes(r, true) + FIXED <= (size_t)cgs_cuda_of(d)->max_shared;
}

cgs_status cgs_cuda_attention_mma_prepare(cgs_device *d, const cgs_record *r) {
    CGS_TRY(need_row_dots(d, r, (size_t)r->in[0]->dim[0]));
    int most = cgs_cuda_of(d)->max_shared - (int)FIXED;
    cudaError_t e = is_wide(r) ? raise_limits<WIDTH>(most) : raise_limits<HALF_WIDTH>(most);
    return e == cudaSuccess ? CGS_OK : cgs_cuda_failed(e, "attention");
}

void cgs_cuda_attention_mma_forward(cgs_device *d, const cgs_record *r) {
    is_wide(r) ? forward<WIDTH>(d, r) : forward<HALF_WIDTH>(d, r);
}

float *cgs_cuda_attention_row_dots(cgs_device *d, const cgs_record *r) {
    float *row_dots = (float *)cgs_cuda_of(d)->scratch;
    is_wide(r) ? dot_rows<WIDTH>(d, r, row_dots) : dot_rows<HALF_WIDTH>(d, r, row_dots);
    return row_dots;
}

void cgs_cuda_attention_mma_backward(cgs_device *d, const cgs_record *r) {
    is_wide(r) ? backward<WIDTH>(d, r) : backward<HALF_WIDTH>(d, r);
}

} /* extern "C" */

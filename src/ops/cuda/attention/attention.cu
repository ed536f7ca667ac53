/* attention.cu - softmax(q k^T / sqrt(width)) v, for any type, width, mask and dropout.
 *   qkv (B,T,3*heads*width): all heads' q, then all k, then all v
 *   out (B,T,heads*width);  saved: lse (B,heads,T)
 *
 * Here are the generic form, for f32 tensors mainly, and the variant for short windows.  The other
 * variants and what each is for are in the table, ops/cuda/variants.h.
 *
 *   short    a warp holds a whole head of up to 8 tokens in registers
 *   generic  a warp takes one row of the matrix of probabilities, which it keeps in shared memory
 */
#include "ops/cuda/attention/attention.cuh"

namespace {

/* ---- short windows --------------------------------------------------------------------------- */

enum { WARPS = 4, SHORT = 8 };

/* one head: lane l holds columns l, l+32 .. of up to N rows */
template <int N, int E, class T>
__device__ __forceinline__ void load_rows(float (&to)[N][E], const T *from, int rows, int stride,
                                          int width) {
#pragma unroll
    for (int i = 0; i < N; i++)
#pragma unroll
        for (int e = 0; e < E; e++) {
            int c = threadIdx.x + 32 * e;
            to[i][e] = i < rows && c < width ? widen(from[(size_t)i * stride + c]) : 0.0f;
        }
}

template <int E> __device__ __forceinline__ float dot(const float (&a)[E], const float (&b)[E]) {
    float sum = 0;
#pragma unroll
    for (int e = 0; e < E; e++) sum += a[e] * b[e];
    return warp_sum(sum);
}

template <int N, int E, class TI, class TO>
__global__ void __launch_bounds__(32 * WARPS)
    short_forward(TO *out, float *lse, const TI *qkv, size_t count, attention_shape s) {
    size_t bh = (size_t)blockIdx.x * WARPS + threadIdx.y;
    if (bh >= count) return;
    int b = (int)(bh / s.heads), h = (int)(bh % s.heads);
    float q[N][E], k[N][E], v[N][E];
    const TI *from = qkv + s.q(b, h);
    load_rows(q, from, s.T, s.in_row(), s.width);
    load_rows(k, from + s.part(), s.T, s.in_row(), s.width);
    load_rows(v, from + 2 * s.part(), s.T, s.in_row(), s.width);
    uint64_t drawn = s.draw_key();
    out += s.out(b, h);
#pragma unroll
    for (int i = 0; i < N; i++) {
        if (i < s.first || i >= s.end) continue;
        int limit = s.limit(i);
        float p[N], top = -INFINITY, sum = 0, y[E] = {0};
#pragma unroll
        for (int j = 0; j < N; j++) {
            p[j] = j < limit ? dot(q[i], k[j]) * s.scale : -INFINITY;
            top = fmaxf(top, p[j]);
        }
#pragma unroll
        for (int j = 0; j < N; j++) {
            p[j] = expf(p[j] - top);
            sum += p[j];
        }
#pragma unroll
        for (int j = 0; j < N; j++) {
            if (j >= limit) break;
            float w = p[j] / sum * s.kept(drawn, b, h, i, j);
#pragma unroll
            for (int e = 0; e < E; e++) y[e] += w * v[j][e];
        }
#pragma unroll
        for (int e = 0; e < E; e++) {
            int c = threadIdx.x + 32 * e;
            if (c < s.width) out[(size_t)i * s.out_row() + c] = narrow<TO>(y[e]);
        }
        if (threadIdx.x == 0) lse[bh * s.T + i] = top + logf(sum);
    }
}

template <int N, int E, class TI, class TO>
__global__ void __launch_bounds__(32 * WARPS)
    short_backward(TI *dqkv, bool add, const TO *dout, const float *lse, const TI *qkv,
                   size_t count, attention_shape s) {
    size_t bh = (size_t)blockIdx.x * WARPS + threadIdx.y;
    if (bh >= count) return;
    int b = (int)(bh / s.heads), h = (int)(bh % s.heads);
    float k[N][E], v[N][E], dk[N][E] = {{0}}, dv[N][E] = {{0}};
    const TI *from = qkv + s.q(b, h);
    TI *to = dqkv + s.q(b, h);
    load_rows(k, from + s.part(), s.T, s.in_row(), s.width);
    load_rows(v, from + 2 * s.part(), s.T, s.in_row(), s.width);
    uint64_t drawn = s.draw_key();
    dout += s.out(b, h);
#pragma unroll 1
    for (int i = 0; i < s.T; i++) {
        int limit = s.limit(i);
        float q[1][E], g[1][E], p[N], dp[N], p_dp = 0, dq[E] = {0};
        load_rows(q, from + (size_t)i * s.in_row(), 1, 0, s.width);
        load_rows(g, dout + (size_t)i * s.out_row(), 1, 0, s.width);
        float norm = lse[bh * s.T + i];
#pragma unroll
        for (int j = 0; j < N; j++) {
            p[j] = dp[j] = 0;
            if (j >= limit) continue;
            float keep = s.kept(drawn, b, h, i, j);
            p[j] = expf(dot(q[0], k[j]) * s.scale - norm);
            dp[j] = dot(g[0], v[j]) * keep;
            p_dp += p[j] * dp[j];
#pragma unroll
            for (int e = 0; e < E; e++) dv[j][e] += p[j] * keep * g[0][e];
        }
#pragma unroll
        for (int j = 0; j < N; j++) {
            float ds = p[j] * (dp[j] - p_dp) * s.scale;
#pragma unroll
            for (int e = 0; e < E; e++) {
                dq[e] += ds * k[j][e];
                dk[j][e] += ds * q[0][e];
            }
        }
#pragma unroll
        for (int e = 0; e < E; e++) {
            int c = threadIdx.x + 32 * e;
            if (c < s.width) give_one(to + (size_t)i * s.in_row() + c, dq[e], add);
        }
    }
#pragma unroll
    for (int j = 0; j < N; j++)
#pragma unroll
        for (int e = 0; e < E; e++) {
            int c = threadIdx.x + 32 * e;
            if (j >= s.T || c >= s.width) continue;
            TI *row = to + (size_t)j * s.in_row() + c;
            give_one(row + s.part(), dk[j][e], add);
            give_one(row + 2 * s.part(), dv[j][e], add);
        }
}

/* ---- the generic form ------------------------------------------------------------------------ */

/* <a, row> where a is in shared memory */
template <class T>
__device__ __forceinline__ float row_dot(const float *a, const T *row, int width) {
    float sum = 0;
    for (int c = 0; c < width; c++) sum += a[c] * widen(row[c]);
    return sum;
}

/* this warp's row of (b, h, i), and its piece of shared memory */
struct place {
    int b, h, i;
    bool inside;
    float *mine;
};
__device__ __forceinline__ place find_place(const attention_shape &s, size_t count, float *shared,
                                            int floats) {
    size_t at = (size_t)blockIdx.x * blockDim.y + threadIdx.y;
    place p;
    p.inside = at < count;
    p.i = (int)(at % s.T);
    p.h = (int)(at / s.T % s.heads);
    p.b = (int)(at / s.T / s.heads);
    p.mine = shared + (size_t)threadIdx.y * floats;
    return p;
}

/* residual: what rounding takes from the result, for the backward of variants; or NULL */
template <class TI, class TO>
__global__ void plain_forward(TO *out, bf16 *residual, float *lse, const TI *qkv, size_t count,
                              attention_shape s) {
    extern __shared__ float shared[]; /* per warp: q (width), p (T) */
    place at = find_place(s, count, shared, s.width + s.T);
    if (!at.inside || at.i < s.first || at.i >= s.end) return;
    float *q = at.mine, *p = q + s.width;
    const TI *from = qkv + s.q(at.b, at.h), *k = from + s.part(), *v = from + 2 * s.part();
    int limit = s.limit(at.i);
    for (int c = threadIdx.x; c < s.width; c += 32)
        q[c] = widen(from[(size_t)at.i * s.in_row() + c]);
    __syncwarp();
    float top = -INFINITY, sum = 0;
    for (int j = threadIdx.x; j < limit; j += 32) {
        p[j] = row_dot(q, k + (size_t)j * s.in_row(), s.width) * s.scale;
        top = fmaxf(top, p[j]);
    }
    top = warp_max(top);
    for (int j = threadIdx.x; j < limit; j += 32) {
        p[j] = expf(p[j] - top);
        sum += p[j];
    }
    sum = warp_sum(sum);
    uint64_t drawn = s.draw_key();
    for (int j = threadIdx.x; j < limit; j += 32)
        p[j] = p[j] / sum * s.kept(drawn, at.b, at.h, at.i, j);
    __syncwarp();
    long long row = s.out(at.b, at.h) + (long long)at.i * s.out_row();
    for (int c = threadIdx.x; c < s.width; c += 32) {
        float y = 0;
        for (int j = 0; j < limit; j++) y += p[j] * widen(v[(size_t)j * s.in_row() + c]);
        TO rounded = narrow<TO>(y);
        out[row + c] = rounded;
        if (residual) residual[row + c] = narrow<bf16>(y - widen(rounded));
    }
    if (threadIdx.x == 0) lse[((size_t)at.b * s.heads + at.h) * s.T + at.i] = top + logf(sum);
}

/* dq of a row, and rowsum(P dP) for the other kernel */
template <class TI, class TO>
__global__ void plain_dq(TI *dqkv, bool add, float *row_dots, const TO *dout, const float *lse,
                         const TI *qkv, size_t count, attention_shape s) {
    extern __shared__ float shared[]; /* per warp: q (width), dout (width), p (T), dp (T) */
    place at = find_place(s, count, shared, 2 * (s.width + s.T));
    if (!at.inside) return;
    float *q = at.mine, *g = q + s.width, *p = g + s.width, *dp = p + s.T;
    const TI *from = qkv + s.q(at.b, at.h), *k = from + s.part(), *v = from + 2 * s.part();
    int limit = s.limit(at.i);
    size_t row = ((size_t)at.b * s.heads + at.h) * s.T + at.i;
    dout += s.out(at.b, at.h) + (size_t)at.i * s.out_row();
    for (int c = threadIdx.x; c < s.width; c += 32) {
        q[c] = widen(from[(size_t)at.i * s.in_row() + c]);
        g[c] = widen(dout[c]);
    }
    __syncwarp();
    uint64_t drawn = s.draw_key();
    float p_dp = 0, norm = lse[row];
    for (int j = threadIdx.x; j < limit; j += 32) {
        p[j] = expf(row_dot(q, k + (size_t)j * s.in_row(), s.width) * s.scale - norm);
        dp[j] =
            row_dot(g, v + (size_t)j * s.in_row(), s.width) * s.kept(drawn, at.b, at.h, at.i, j);
        p_dp += p[j] * dp[j];
    }
    p_dp = warp_sum(p_dp);
    for (int j = threadIdx.x; j < limit; j += 32) p[j] *= (dp[j] - p_dp) * s.scale;
    __syncwarp();
    TI *to = dqkv + s.q(at.b, at.h) + (size_t)at.i * s.in_row();
    for (int c = threadIdx.x; c < s.width; c += 32) {
        float sum = 0;
        for (int j = 0; j < limit; j++) sum += p[j] * widen(k[(size_t)j * s.in_row() + c]);
        give_one(to + c, sum, add);
    }
    if (threadIdx.x == 0) row_dots[row] = p_dp;
}

/* dk and dv of a row: here i is the token that is seen */
template <class TI, class TO>
__global__ void plain_dkv(TI *dqkv, bool add, const float *row_dots, const TO *dout,
                          const float *lse, const TI *qkv, size_t count, attention_shape s) {
    extern __shared__ float shared[]; /* per warp: k (width), v (width), p (T), ds (T) */
    place at = find_place(s, count, shared, 2 * (s.width + s.T));
    if (!at.inside) return;
    float *k = at.mine, *v = k + s.width, *p = v + s.width, *ds = p + s.T;
    const TI *q = qkv + s.q(at.b, at.h);
    size_t rows = ((size_t)at.b * s.heads + at.h) * s.T;
    dout += s.out(at.b, at.h);
    for (int c = threadIdx.x; c < s.width; c += 32) {
        const TI *mine = q + (size_t)at.i * s.in_row() + c;
        k[c] = widen(mine[s.part()]);
        v[c] = widen(mine[2 * s.part()]);
    }
    __syncwarp();
    /* the tokens that see this one are the last ones, from its own block on */
    int first = s.causal ? at.i / s.block * s.block : 0;
    uint64_t drawn = s.draw_key();
    for (int i = first + threadIdx.x; i < s.T; i += 32) {
        float keep = s.kept(drawn, at.b, at.h, i, at.i);
        float P = expf(row_dot(k, q + (size_t)i * s.in_row(), s.width) * s.scale - lse[rows + i]);
        float dP = row_dot(v, dout + (size_t)i * s.out_row(), s.width) * keep;
        p[i] = P * keep;
        ds[i] = P * (dP - row_dots[rows + i]) * s.scale;
    }
    __syncwarp();
    TI *to = dqkv + s.q(at.b, at.h) + (size_t)at.i * s.in_row();
    for (int c = threadIdx.x; c < s.width; c += 32) {
        float dk = 0, dv = 0;
        for (int i = first; i < s.T; i++) {
            dk += ds[i] * widen(q[(size_t)i * s.in_row() + c]);
            dv += p[i] * widen(dout[(size_t)i * s.out_row() + c]);
        }
        give_one(to + s.part() + c, dk, add);
        give_one(to + 2 * s.part() + c, dv, add);
    }
}

/* warps per block for this many floats of shared memory each, 0 if not even one fits */
int warps_for(size_t floats) {
    size_t warps = 48 * 1024 / (floats * sizeof(float));
    return warps > 8 ? 8 : (int)warps;
}

template <class TI, class TO> void forward_short(cgs_device *d, const cgs_record *r) {
    attention_shape s = attention_of(d, r);
    size_t heads = (size_t)r->in[0]->dim[0] * s.heads;
    TO *out = (TO *)attention_result(r);
    float *lse = (float *)r->saved[0]->data;
    const TI *qkv = (const TI *)r->in[0]->data;
    dim3 block(32, WARPS);
    unsigned grid = blocks_for(heads, WARPS);
    if (s.T <= 4 && s.width <= 64)
        short_forward<4, 2><<<grid, block, 0, stream_of(d)>>>(out, lse, qkv, heads, s);
    else
        short_forward<8, 4><<<grid, block, 0, stream_of(d)>>>(out, lse, qkv, heads, s);
    LAUNCHED(d, "attention");
}

template <class TI, class TO> void backward_short(cgs_device *d, const cgs_record *r) {
    attention_shape s = attention_of(d, r);
    size_t heads = (size_t)r->in[0]->dim[0] * s.heads;
    TI *dqkv = (TI *)r->in[0]->grad;
    const TO *dout = (const TO *)r->out->grad;
    const float *lse = (const float *)r->saved[0]->data;
    const TI *qkv = (const TI *)r->in[0]->data;
    bool add = r->accumulate[0];
    dim3 block(32, WARPS);
    unsigned grid = blocks_for(heads, WARPS);
    if (s.T <= 4 && s.width <= 64)
        short_backward<4, 2><<<grid, block, 0, stream_of(d)>>>(dqkv, add, dout, lse, qkv, heads, s);
    else
        short_backward<8, 4><<<grid, block, 0, stream_of(d)>>>(dqkv, add, dout, lse, qkv, heads, s);
    LAUNCHED(d, "attention backward");
}

template <class TI, class TO> void forward(cgs_device *d, const cgs_record *r) {
    attention_shape s = attention_of(d, r);
    size_t floats = s.width + s.T, rows = (size_t)r->in[0]->dim[0] * s.heads * s.T;
    int warps = warps_for(floats);
    plain_forward<<<blocks_for(rows, warps), dim3(32, warps), warps * floats * sizeof(float),
                    stream_of(d)>>>((TO *)attention_result(r), attention_residual(r),
                                    (float *)r->saved[0]->data, (const TI *)r->in[0]->data, rows,
                                    s);
    LAUNCHED(d, "attention");
}

template <class TI, class TO> void backward(cgs_device *d, const cgs_record *r) {
    attention_shape s = attention_of(d, r);
    TI *dqkv = (TI *)r->in[0]->grad;
    const TO *dout = (const TO *)r->out->grad;
    const float *lse = (const float *)r->saved[0]->data;
    const TI *qkv = (const TI *)r->in[0]->data;
    bool add = r->accumulate[0];
    size_t floats = 2 * (size_t)(s.width + s.T), rows = (size_t)r->in[0]->dim[0] * s.heads * s.T;
    int warps = warps_for(floats);
    float *row_dots = (float *)cgs_cuda_of(d)->scratch;
    size_t bytes = warps * floats * sizeof(float);
    plain_dq<<<blocks_for(rows, warps), dim3(32, warps), bytes, stream_of(d)>>>(
        dqkv, add, row_dots, dout, lse, qkv, rows, s);
    LAUNCHED(d, "attention backward");
    plain_dkv<<<blocks_for(rows, warps), dim3(32, warps), bytes, stream_of(d)>>>(
        dqkv, add, row_dots, dout, lse, qkv, rows, s);
    LAUNCHED(d, "attention backward");
}

} // namespace

extern "C" {

cgs_status cgs_cuda_attention_prepare(cgs_device *d, const cgs_record *r) {
    size_t T = (size_t)r->in[0]->dim[1], width = (size_t)r->arg.attention.width;
    if (warps_for(2 * (width + T)) == 0)
        return cgs_fail(CGS_EARG, "attention: %zu tokens are too many for the GPU", T);
    return cgs_cuda_need(d, cgs_numel(r->saved[0]) * sizeof(float));
}

void cgs_cuda_attention_forward(cgs_device *d, const cgs_record *r) {
    WITH_TYPE(TI, r->in[0]->dtype, WITH_TYPE(TO, r->out->dtype, forward<TI, TO>(d, r)));
}

void cgs_cuda_attention_backward(cgs_device *d, const cgs_record *r) {
    const cgs_record *linear = r->before;
    const cgs_tensor *x = r->in[0];
    if (!cgs_wants(r, 0)) return;
    WITH_TYPE(TI, x->dtype, WITH_TYPE(TO, r->out->dtype, backward<TI, TO>(d, r)));
    /* a linear layer that joins leaves its bias gradient to attention, and has asked for memory */
    if (linear && cgs_wants(linear, 2))
        cgs_cuda_give_column_sums(d, linear, 2, x->grad, x->dtype, cgs_rows(x),
                                  (size_t)cgs_cols(x));
}

bool cgs_cuda_attention_short_fits(const cgs_device *, const cgs_record *, const cgs_record *r,
                                   const cgs_record *) {
    return r->in[0]->dim[1] <= SHORT && r->arg.attention.width <= 128;
}

cgs_status cgs_cuda_attention_short_prepare(cgs_device *, const cgs_record *) { return CGS_OK; }

void cgs_cuda_attention_short_forward(cgs_device *d, const cgs_record *r) {
    WITH_TYPE(TI, r->in[0]->dtype, WITH_TYPE(TO, r->out->dtype, forward_short<TI, TO>(d, r)));
}

void cgs_cuda_attention_short_backward(cgs_device *d, const cgs_record *r) {
    if (!cgs_wants(r, 0)) return;
    WITH_TYPE(TI, r->in[0]->dtype, WITH_TYPE(TO, r->out->dtype, backward_short<TI, TO>(d, r)));
}

/* Other rows are not made: whoever runs attention sees `take` after it. */
bool cgs_cuda_attention_rows_fits(const cgs_device *, const cgs_record *, const cgs_record *r,
                                  const cgs_record *take) {
    return !r->out->wants_grad && take->in[0] == r->out;
}

} /* extern "C" */

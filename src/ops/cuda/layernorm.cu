/* layernorm.cu - rows to mean 0 and variance 1, then w and b where given.
 *   x (n,D), w (D) or NULL, b (D) or NULL; saved: mean (n), 1/std (n)
 *
 * A residual addition that the norm follows is done on the way, in both directions: the sum
 * is written once and not read again, and backward makes the gradient of what was added and,
 * if that came from a linear layer, of its bias while it has them in registers.
 *
 * Backward gives each warp many rows, so the gradients of w and b add up in registers; the end of
 * the pass adds the blocks' sums. */
#include "ops/cuda/layernorm.cuh"

namespace {

enum { WIDEST = 1024 };

/* added, sum (n,D): x + added is what is normalised, and goes to sum; or both NULL */
template <int V, int N, class TX, class TA, class TY>
__global__ void __launch_bounds__(32 * WARPS)
    normalise(TY *y, float *means, float *rstds, const TX *x, const TA *added, TX *sums,
              const float *w, const float *b, size_t rows, int D, float eps) {
    size_t row = (size_t)blockIdx.x * WARPS + threadIdx.y;
    int lane = threadIdx.x;
    if (row >= rows) return;
    x += row * D;
    y += row * D;
    float v[N][V], a[N][V], sum = 0, square = 0;
#pragma unroll
    for (int i = 0; i < N; i++) {
        int c = column<V, N>(lane, i);
        if (c < D) load<V>(v[i], x + c);
        if (c < D && added) load<V>(a[i], added + row * D + c);
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
        int c = column<V, N>(lane, i);
        if (c < D && added) {
#pragma unroll
            for (int k = 0; k < V; k++) v[i][k] += a[i][k];
            store<V>(sums + row * D + c, v[i]);
        }
#pragma unroll
        for (int k = 0; k < V; k++) {
            if (c >= D) v[i][k] = 0;
            sum += v[i][k];
        }
    }
    float mean = warp_sum(sum) / D;
#pragma unroll
    for (int i = 0; i < N; i++)
#pragma unroll
        for (int k = 0; k < V; k++) {
            v[i][k] -= mean;
            if (column<V, N>(lane, i) < D) square += v[i][k] * v[i][k];
        }
    float rstd = 1.0f / sqrtf(warp_sum(square) / D + eps);
#pragma unroll
    for (int i = 0; i < N; i++) {
        int c = column<V, N>(lane, i);
        if (c >= D) continue;
        float scale[V], shift[V];
        if (w) load<V>(scale, w + c);
        if (b) load<V>(shift, b + c);
#pragma unroll
        for (int k = 0; k < V; k++) {
            v[i][k] *= rstd;
            if (w) v[i][k] *= scale[k];
            if (b) v[i][k] += shift[k];
        }
        store<V>(y + c, v[i]);
    }
    if (lane == 0) {
        means[row] = mean;
        rstds[row] = rstd;
    }
}

/* parts (blocks, 3, D): sums of dy xhat, of dy and of the new dx, or NULL; dx may be NULL, and
 * so may dadded, which gets the new dx rounded */
template <int V, int N, class TX, class TA, class TY>
__global__ void __launch_bounds__(32 * WARPS, 3)
    gradient(TX *dx, bool add, TA *dadded, float *parts, const TY *dy, const TX *x,
             const float *means, const float *rstds, const float *w, size_t rows, int D) {
    extern __shared__ float shared[]; /* (WARPS, D) */
    int lane = threadIdx.x;
    float dw[N][V] = {{0}}, db[N][V] = {{0}}, ds[N][V] = {{0}}, scale[N][V];
#pragma unroll
    for (int i = 0; i < N; i++) {
        int c = column<V, N>(lane, i);
#pragma unroll
        for (int k = 0; k < V; k++) scale[i][k] = 1;
        if (w && c < D) load<V>(scale[i], w + c);
    }
    for (size_t row = (size_t)blockIdx.x * WARPS + threadIdx.y; row < rows;
         row += (size_t)gridDim.x * WARPS) {
        float g[N][V], xhat[N][V], old[N][V];
        float mean = means[row], rstd = rstds[row], sum = 0, dot = 0;
#pragma unroll
        for (int i = 0; i < N; i++) { /* all loads before the first use */
            int c = column<V, N>(lane, i);
            if (c >= D) continue;
            load<V>(g[i], dy + row * D + c);
            load<V>(xhat[i], x + row * D + c);
            if (dx && add) load<V>(old[i], dx + row * D + c);
        }
#pragma unroll
        for (int i = 0; i < N; i++) {
            int c = column<V, N>(lane, i);
#pragma unroll
            for (int k = 0; k < V; k++) {
                if (c >= D) {
                    g[i][k] = xhat[i][k] = 0;
                    continue;
                }
                xhat[i][k] = (xhat[i][k] - mean) * rstd;
                dw[i][k] += g[i][k] * xhat[i][k];
                db[i][k] += g[i][k];
                g[i][k] *= scale[i][k];
                sum += g[i][k];
                dot += g[i][k] * xhat[i][k];
            }
        }
        if (!dx) continue;
        sum = warp_sum(sum) / D;
        dot = warp_sum(dot) / D;
#pragma unroll
        for (int i = 0; i < N; i++) {
            int c = column<V, N>(lane, i);
            if (c >= D) continue;
#pragma unroll
            for (int k = 0; k < V; k++) {
                g[i][k] = rstd * (g[i][k] - sum - xhat[i][k] * dot);
                if (add) g[i][k] += old[i][k];
                ds[i][k] += g[i][k];
            }
            store<V>(dx + row * D + c, g[i]);
            if (dadded) store<V>(dadded + row * D + c, g[i]);
        }
    }
    if (!parts) return;
    parts += (size_t)blockIdx.x * 3 * D;
    write_sums<V, N>(parts, dw, shared, D);
    write_sums<V, N>(parts + D, db, shared, D);
    if (dadded) write_sums<V, N>(parts + 2 * D, ds, shared, D);
}

template <int V, int N> void forward(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *y = r->out;
    const float *w = r->in[1] ? (const float *)r->in[1]->data : NULL;
    const float *b = r->in[2] ? (const float *)r->in[2]->data : NULL;
    size_t rows = cgs_rows(x);
    dim3 grid(blocks_for(rows, WARPS)), block(32, WARPS);
    float *means = (float *)r->saved[0]->data, *rstds = (float *)r->saved[1]->data;
    if (cgs_cuda_is(r->before, CGS_OP_add)) {
        const cgs_tensor *stream = r->before->in[0], *added = r->before->in[1];
        WITH_TYPE(TA, added->dtype,
                  WITH_TYPE(TY, y->dtype,
                            normalise<V, N><<<grid, block, 0, stream_of(d)>>>(
                                (TY *)y->data, means, rstds, (const float *)stream->data,
                                (const TA *)added->data, (float *)x->data, w, b, rows, cgs_cols(x),
                                r->arg.layernorm.eps)));
    } else {
        WITH_TYPE(TX, x->dtype,
                  WITH_TYPE(TY, y->dtype,
                            normalise<V, N><<<grid, block, 0, stream_of(d)>>>(
                                (TY *)y->data, means, rstds, (const TX *)x->data, (const TX *)NULL,
                                (TX *)NULL, w, b, rows, cgs_cols(x), r->arg.layernorm.eps)));
    }
    LAUNCHED(d, "layernorm");
}

template <int V, int N> void backward(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *y = r->out;
    const float *w = r->in[1] ? (const float *)r->in[1]->data : NULL;
    const float *means = (const float *)r->saved[0]->data, *rstds = (float *)r->saved[1]->data;
    size_t rows = cgs_rows(x);
    int D = cgs_cols(x);
    const cgs_record *sum = cgs_cuda_is(r->before, CGS_OP_add) ? r->before : NULL;
    const cgs_record *linear = sum ? sum->before : NULL;
    bool added = sum && cgs_cuda_norm_gives_added(sum);
    bool bias = added && linear && cgs_wants(linear, 2);
    bool affine = cgs_wants(r, 1) || cgs_wants(r, 2);
    unsigned blocks = gradient_blocks(rows), shared = WARPS * D * sizeof(float);
    float *parts = affine || bias ? cgs_cuda_parts(d, 3 * (size_t)blocks * D) : NULL;
    if (added) {
        const cgs_tensor *a = sum->in[1];
        WITH_TYPE(
            TA, a->dtype,
            WITH_TYPE(TY, y->dtype,
                      gradient<V, N><<<blocks, dim3(32, WARPS), shared, stream_of(d)>>>(
                          (float *)x->grad, r->accumulate[0], (TA *)a->grad, parts,
                          (const TY *)y->grad, (const float *)x->data, means, rstds, w, rows, D)));
    } else {
        WITH_TYPE(TX, x->dtype,
                  WITH_TYPE(TY, y->dtype,
                            gradient<V, N><<<blocks, dim3(32, WARPS), shared, stream_of(d)>>>(
                                cgs_wants(r, 0) ? (TX *)x->grad : NULL, r->accumulate[0],
                                (TX *)NULL, parts, (const TY *)y->grad, (const TX *)x->data, means,
                                rstds, w, rows, D)));
    }
    LAUNCHED(d, "layernorm backward");
    const struct {
        const cgs_record *r;
        int k;
    } of[3] = {{r, 1}, {r, 2}, {bias ? linear : NULL, 2}};
    for (int i = 0; i < 3; i++)
        if (of[i].r && cgs_wants(of[i].r, of[i].k))
            cgs_cuda_give_parts(d, of[i].r, of[i].k, parts + i * (size_t)D, blocks, 3 * (size_t)D,
                                D);
}

/* the smallest kernel that holds a row */
#define FITTING(D, f, ...)                                                                         \
    do {                                                                                           \
        if ((D) % 2)                                                                               \
            f<1, 32>(__VA_ARGS__);                                                                 \
        else if ((D) <= 192)                                                                       \
            f<2, 3>(__VA_ARGS__);                                                                  \
        else if ((D) <= 512)                                                                       \
            f<2, 8>(__VA_ARGS__);                                                                  \
        else                                                                                       \
            f<2, 16>(__VA_ARGS__);                                                                 \
    } while (0)

} // namespace

extern "C" {

cgs_status cgs_cuda_layernorm_prepare(cgs_device *d, const cgs_record *r) {
    int D = cgs_cols(r->in[0]);
    if (D > WIDEST)
        return cgs_fail(CGS_EARG, "layernorm: rows of %d are wider than the GPU's limit of %d", D,
                        WIDEST);
    if (!r->out->grad) return CGS_OK;
    return cgs_cuda_need_parts(d, 3 * (size_t)gradient_blocks(cgs_rows(r->in[0])) * D);
}

/* The sum of x and y is normalised next, and y is needed nowhere else. */
bool cgs_cuda_add_norm_fits(const cgs_device *, const cgs_record *add, const cgs_record *norm,
                            const cgs_record *) {
    const cgs_tensor *x = add->in[0], *y = add->in[1];
    return norm->in[0] == add->out && norm->in[1] != add->out && x != y && x->dtype == CGS_F32 &&
           cgs_cols(x) <= WIDEST;
}

/* The norm that joins the addition has dy, and its sum over rows, in registers. */
bool cgs_cuda_norm_bias_fits(const cgs_device *, const cgs_record *linear, const cgs_record *add,
                             const cgs_record *) {
    return add->in[1] == linear->out;
}

void cgs_cuda_layernorm_forward(cgs_device *d, const cgs_record *r) {
    FITTING(cgs_cols(r->in[0]), forward, d, r);
}

void cgs_cuda_layernorm_backward(cgs_device *d, const cgs_record *r) {
    FITTING(cgs_cols(r->in[0]), backward, d, r);
}

} /* extern "C" */

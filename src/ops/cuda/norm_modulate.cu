/* norm_modulate.cu - a norm, a modulation of its result and another norm in one kernel each way, as
 * a predictor's layers have them twice.
 *
 *   u = (x - mean) rstd,  v = u (1 + scale) + shift,  y = (v - mean') rstd' w + b
 *
 * Neither u nor v is stored: backward makes them again from x.  A warp has a row. */
#include "ops/cuda/layernorm.cuh"
#include "ops/cuda/modulate.cuh"

namespace {

enum { WIDEST = 512 };

/* what a row needs of the three records */
struct chain {
    const float *x;
    float *mean[2], *rstd[2];
    float eps[2];
    conditioning at;
    int shift, scale;
    const float *w, *b; /* of the second norm, or both NULL */
    size_t rows;
    int D;
};

/* rows to mean 0 and variance 1; lanes beyond D hold zeros */
template <int V, int N>
__device__ __forceinline__ void standardise(float (&v)[N][V], int D, float eps, float *mean,
                                            float *rstd) {
    float sum = 0, square = 0;
#pragma unroll
    for (int i = 0; i < N; i++)
#pragma unroll
        for (int k = 0; k < V; k++) sum += v[i][k];
    *mean = warp_sum(sum) / D;
#pragma unroll
    for (int i = 0; i < N; i++)
#pragma unroll
        for (int k = 0; k < V; k++) {
            v[i][k] = column<V, N>(threadIdx.x, i) < D ? v[i][k] - *mean : 0.0f;
            square += v[i][k] * v[i][k];
        }
    *rstd = 1.0f / sqrtf(warp_sum(square) / D + eps);
#pragma unroll
    for (int i = 0; i < N; i++)
#pragma unroll
        for (int k = 0; k < V; k++) v[i][k] *= *rstd;
}

template <int V, int N, class T>
__device__ __forceinline__ void load_row(float (&v)[N][V], const T *from, int D) {
#pragma unroll
    for (int i = 0; i < N; i++) {
        int c = column<V, N>(threadIdx.x, i);
        if (c < D) {
            load<V>(v[i], from + c);
        } else {
#pragma unroll
            for (int k = 0; k < V; k++) v[i][k] = 0;
        }
    }
}

template <int V, int N, class TM, class TY>
__global__ void __launch_bounds__(32 * WARPS) chain_forward(TY *y, const TM *m, chain p) {
    size_t row = (size_t)blockIdx.x * WARPS + threadIdx.y;
    if (row >= p.rows) return;
    float v[N][V], scale[N][V], shift[N][V], mean[2], rstd[2];
    m += p.at.row_of(row);
    load_row(v, p.x + row * p.D, p.D);
    load_row(scale, m + p.scale, p.D);
    load_row(shift, m + p.shift, p.D);
    standardise(v, p.D, p.eps[0], &mean[0], &rstd[0]);
#pragma unroll
    for (int i = 0; i < N; i++)
#pragma unroll
        for (int k = 0; k < V; k++) v[i][k] = v[i][k] * (1.0f + scale[i][k]) + shift[i][k];
    standardise(v, p.D, p.eps[1], &mean[1], &rstd[1]);
#pragma unroll
    for (int i = 0; i < N; i++) {
        int c = column<V, N>(threadIdx.x, i);
        if (c >= p.D) continue;
        float w[V], b[V];
        if (p.w) {
            load<V>(w, p.w + c);
            load<V>(b, p.b + c);
#pragma unroll
            for (int k = 0; k < V; k++) v[i][k] = v[i][k] * w[k] + b[k];
        }
        store<V>(y + row * p.D + c, v[i]);
    }
    if (threadIdx.x == 0)
        for (int n = 0; n < 2; n++) {
            p.mean[n][row] = mean[n];
            p.rstd[n][row] = rstd[n];
        }
}

/* from the gradient g of a standardised row xhat to that of the row */
template <int V, int N>
__device__ __forceinline__ void standardise_back(float (&g)[N][V], const float (&xhat)[N][V], int D,
                                                 float rstd) {
    float sum = 0, dot = 0;
#pragma unroll
    for (int i = 0; i < N; i++)
#pragma unroll
        for (int k = 0; k < V; k++) {
            sum += g[i][k];
            dot += g[i][k] * xhat[i][k];
        }
    sum = warp_sum(sum) / D;
    dot = warp_sum(dot) / D;
#pragma unroll
    for (int i = 0; i < N; i++)
#pragma unroll
        for (int k = 0; k < V; k++) g[i][k] = rstd * (g[i][k] - sum - xhat[i][k] * dot);
}

/* dx, dm: NULL where nobody wants them; parts (blocks, 2, D): sums of dy xhat and of dy, or NULL */
template <int V, int N, class TM, class TY>
__global__ void __launch_bounds__(32 * WARPS, V *N <= 6 ? 2 : 1)
    chain_backward(float *dx, bool add_x, TM *dm, bool add_m, float *parts, const TY *dy,
                   const TM *m, chain p) {
    extern __shared__ float shared[]; /* (WARPS, D) */
    float dw[N][V] = {{0}}, db[N][V] = {{0}};
    for (size_t row = (size_t)blockIdx.x * WARPS + threadIdx.y; row < p.rows;
         row += (size_t)gridDim.x * WARPS) {
        float u[N][V], g[N][V], scale[N][V], xhat[N][V];
        const size_t where = p.at.row_of(row);
        const float mean0 = p.mean[0][row], rstd0 = p.rstd[0][row];
        const float mean1 = p.mean[1][row], rstd1 = p.rstd[1][row];
        load_row(u, p.x + row * p.D, p.D);
        load_row(g, dy + row * p.D, p.D);
        load_row(scale, m + where + p.scale, p.D);
        load_row(xhat, m + where + p.shift, p.D);
#pragma unroll
        for (int i = 0; i < N; i++) {
            int c = column<V, N>(threadIdx.x, i);
            float w[V];
            if (p.w && c < p.D) load<V>(w, p.w + c);
#pragma unroll
            for (int k = 0; k < V; k++) {
                bool inside = c < p.D;
                u[i][k] = inside ? (u[i][k] - mean0) * rstd0 : 0.0f;
                float v = u[i][k] * (1.0f + scale[i][k]) + xhat[i][k];
                xhat[i][k] = inside ? (v - mean1) * rstd1 : 0.0f;
                dw[i][k] += g[i][k] * xhat[i][k];
                db[i][k] += g[i][k];
                if (p.w && inside) g[i][k] *= w[k];
            }
        }
        standardise_back(g, xhat, p.D, rstd1); /* of v */
#pragma unroll
        for (int i = 0; i < N; i++) {
            int c = column<V, N>(threadIdx.x, i);
            float ds[V], same[V];
#pragma unroll
            for (int k = 0; k < V; k++) {
                if (c >= p.D) g[i][k] = 0;
                ds[k] = g[i][k] * u[i][k];
                same[k] = g[i][k];
                g[i][k] *= 1.0f + scale[i][k];
            }
            if (dm && c < p.D) {
                give<V>(dm + where + p.scale + c, ds, add_m);
                give<V>(dm + where + p.shift + c, same, add_m);
            }
        }
        if (!dx) continue;
        standardise_back(g, u, p.D, rstd0); /* of x */
#pragma unroll
        for (int i = 0; i < N; i++) {
            int c = column<V, N>(threadIdx.x, i);
            if (c < p.D) give<V>(dx + row * p.D + c, g[i], add_x);
        }
    }
    if (!parts) return;
    parts += (size_t)blockIdx.x * 2 * p.D;
    write_sums<V, N>(parts, dw, shared, p.D);
    write_sums<V, N>(parts + p.D, db, shared, p.D);
}

chain chain_of(const cgs_record *r) {
    const cgs_record *norm[2] = {r->before, r->next};
    const cgs_tensor *x = norm[0]->in[0];
    chain p = {};
    p.x = (const float *)x->data;
    for (int i = 0; i < 2; i++) {
        p.mean[i] = (float *)norm[i]->saved[0]->data;
        p.rstd[i] = (float *)norm[i]->saved[1]->data;
        p.eps[i] = norm[i]->arg.layernorm.eps;
    }
    p.at = {r->arg.modulate.rows, cgs_cols(x), cgs_cols(r->in[1])};
    p.shift = r->arg.modulate.shift;
    p.scale = r->arg.modulate.scale;
    if (norm[1]->in[1]) {
        p.w = (const float *)norm[1]->in[1]->data;
        p.b = (const float *)norm[1]->in[2]->data;
    }
    p.rows = cgs_rows(x);
    p.D = cgs_cols(x);
    return p;
}

template <int V, int N> void forward(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *m = r->in[1], *y = r->next->out;
    chain p = chain_of(r);
    dim3 grid(blocks_for(p.rows, WARPS)), block(32, WARPS);
    WITH_TYPE(TM, m->dtype,
              WITH_TYPE(TY, y->dtype,
                        chain_forward<V, N>
                        <<<grid, block, 0, stream_of(d)>>>((TY *)y->data, (const TM *)m->data, p)));
    LAUNCHED(d, "norm, modulation and norm");
}

template <int V, int N> void backward(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->before->in[0], *m = r->in[1], *y = r->next->out;
    chain p = chain_of(r);
    bool affine = cgs_wants(r->next, 1) || cgs_wants(r->next, 2);
    bool want_x = cgs_wants(r->before, 0), want_m = cgs_wants(r, 1);
    unsigned blocks = gradient_blocks(p.rows), shared = WARPS * p.D * sizeof(float);
    float *parts = affine ? cgs_cuda_parts(d, 2 * (size_t)blocks * p.D) : NULL;
    cgs_cuda_clear_grad(d, r, 1); /* most of m belongs to other records */
    WITH_TYPE(TM, m->dtype,
              WITH_TYPE(TY, y->dtype,
                        chain_backward<V, N><<<blocks, dim3(32, WARPS), shared, stream_of(d)>>>(
                            want_x ? (float *)x->grad : NULL, r->before->accumulate[0],
                            want_m ? (TM *)m->grad : NULL, r->accumulate[1], parts,
                            (const TY *)y->grad, (const TM *)m->data, p)));
    LAUNCHED(d, "norm, modulation and norm backward");
    for (int k = 1; k <= 2; k++)
        if (cgs_wants(r->next, k))
            cgs_cuda_give_parts(d, r->next, k, parts + (size_t)(k - 1) * p.D, blocks,
                                2 * (size_t)p.D, p.D);
}

/* the smallest kernel that holds a row */
#define FITTING(D, f, ...)                                                                         \
    do {                                                                                           \
        if ((D) % 2)                                                                               \
            f<1, 16>(__VA_ARGS__);                                                                 \
        else if ((D) <= 192)                                                                       \
            f<2, 3>(__VA_ARGS__);                                                                  \
        else                                                                                       \
            f<2, 8>(__VA_ARGS__);                                                                  \
    } while (0)

} // namespace

extern "C" {

/* Backward reads x and the first norm's sums: they are kept only if x wants a gradient. */
bool cgs_cuda_norm_modulate_norm_fits(const cgs_device *, const cgs_record *first,
                                      const cgs_record *r, const cgs_record *last) {
    int D = cgs_cols(r->in[0]);
    bool whole =
        D % 2 || (cgs_cols(r->in[1]) | r->arg.modulate.shift | r->arg.modulate.scale) % 2 == 0;
    return D <= WIDEST && whole && (first->in[0]->wants_grad || !r->out->wants_grad) &&
           !first->before && !first->in[1] && first->in[0]->dtype == CGS_F32 &&
           first->out->dtype == CGS_F32 && r->out->dtype == CGS_F32 && r->in[0] == first->out &&
           (!last || last->in[0] == r->out);
}

cgs_status cgs_cuda_norm_modulate_norm_prepare(cgs_device *d, const cgs_record *r) {
    size_t rows = cgs_rows(r->in[0]), D = (size_t)cgs_cols(r->in[0]);
    return r->out->grad ? cgs_cuda_need_parts(d, 2 * gradient_blocks(rows) * D) : CGS_OK;
}

void cgs_cuda_norm_modulate_norm_forward(cgs_device *d, const cgs_record *r) {
    FITTING(cgs_cols(r->in[0]), forward, d, r);
}

void cgs_cuda_norm_modulate_norm_backward(cgs_device *d, const cgs_record *r) {
    FITTING(cgs_cols(r->in[0]), backward, d, r);
}

} /* extern "C" */

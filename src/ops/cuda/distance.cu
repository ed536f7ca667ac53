/* distance.cu - mean squared error, squared distances to goals, and sums of losses. */
#include "ops/cuda/kernels.cuh"

namespace {

/* 8 elements from i on, or what there is of them, and zeros */
template <class T>
__device__ __forceinline__ void load_some(float (&v)[8], const T *x, size_t i, size_t n) {
    if (i + 8 <= n) {
        load<8>(v, x + i);
        return;
    }
#pragma unroll
    for (int k = 0; k < 8; k++) v[k] = i + k < n ? widen(x[i + k]) : 0.0f;
}

/* One block, so it has several loads of a thread in flight. */
template <class TA, class TB>
__global__ void __launch_bounds__(1024)
    mean_square(float *out, const TA *a, const TB *b, size_t n) {
    enum { AHEAD = 3, STEP = 8 * 1024 };
    __shared__ float partial[32];
    float sum = 0;
    for (size_t i = 8 * threadIdx.x; i < n; i += AHEAD * STEP) {
        float x[AHEAD][8], y[AHEAD][8];
#pragma unroll
        for (int j = 0; j < AHEAD; j++) {
            load_some(x[j], a, i + j * STEP, n);
            load_some(y[j], b, i + j * STEP, n);
        }
#pragma unroll
        for (int j = 0; j < AHEAD; j++)
#pragma unroll
            for (int k = 0; k < 8; k++) sum += (x[j][k] - y[j][k]) * (x[j][k] - y[j][k]);
    }
    sum = block_sum(sum, partial);
    if (threadIdx.x == 0) *out = sum / n;
}

/* d mean square / da, or its negative for b, times the loss's gradient */
template <class TA, class TB, class TG> struct mean_square_back {
    float factor;
    bool add;
    const float *g;
    const TA *a;
    const TB *b;
    TG *to;
    template <int V> __device__ void at(size_t i) const {
        float x[V], y[V];
        load<V>(x, a + i);
        load<V>(y, b + i);
#pragma unroll
        for (int k = 0; k < V; k++) x[k] = factor * *g * (x[k] - y[k]);
        give<V>(to + i, x, add);
    }
};

/* a warp for each of the E*K rows of a */
template <class TA, class TB>
__global__ void __launch_bounds__(256)
    distances(float *out, const TA *a, const TB *b, size_t rows, int K, int D) {
    size_t i = (size_t)blockIdx.x * 8 + threadIdx.y;
    if (i >= rows) return;
    a += i * D;
    b += i / K * D;
    float sum = 0;
    for (int c = threadIdx.x; c < D; c += 32) {
        float v = widen(a[c]) - widen(b[c]);
        sum += v * v;
    }
    sum = warp_sum(sum);
    if (threadIdx.x == 0) out[i] = sum;
}

template <class TA, class TB> struct distances_back_a {
    size_t D, K;
    bool add;
    const float *g;
    const TA *a;
    const TB *b;
    TA *da;
    template <int V> __device__ void at(size_t i) const {
        size_t row = i / D;
        float v = widen(a[i]) - widen(b[row / K * D + i % D]);
        give_one(da + i, 2 * g[row] * v, add);
    }
};

template <class TA, class TB> struct distances_back_b {
    size_t D, K;
    bool add;
    const float *g;
    const TA *a;
    const TB *b;
    TB *db;
    template <int V> __device__ void at(size_t i) const {
        size_t e = i / D, c = i % D;
        float goal = widen(b[i]), sum = 0;
        for (size_t row = e * K; row < (e + 1) * K; row++)
            sum -= 2 * g[row] * (widen(a[row * D + c]) - goal);
        give_one(db + i, sum, add);
    }
};

struct terms {
    const float *w, *out_grad;
    const float *s[CGS_MAX_IN];
    float *ds[CGS_MAX_IN]; /* NULL where nobody wants it */
    bool add[CGS_MAX_IN];
    int n;
};

__global__ void weigh(float *out, terms t) {
    double sum = 0;
    for (int i = 0; i < t.n; i++) sum += (double)t.w[i] * t.s[i][0];
    *out = (float)sum;
}

__global__ void weigh_back(terms t) {
    for (int i = 0; i < t.n; i++) /* in order: a term may be there twice */
        if (t.ds[i]) give_one(t.ds[i], t.w[i] * *t.out_grad, t.add[i]);
}

terms terms_of(const cgs_record *r) {
    terms t = {};
    t.n = r->arg.weighted_sum.terms;
    t.w = (const float *)r->in[0]->data;
    t.out_grad = (const float *)r->out->grad;
    for (int i = 0; i < t.n; i++) {
        t.s[i] = (const float *)r->in[i + 1]->data;
        t.ds[i] = cgs_wants(r, i + 1) ? (float *)r->in[i + 1]->grad : NULL;
        t.add[i] = r->accumulate[i + 1];
    }
    return t;
}

template <class TA, class TB> void mse_backward(cgs_device *d, const cgs_record *r, int k) {
    const cgs_tensor *a = r->in[0], *b = r->in[1], *x = r->in[k];
    size_t n = cgs_numel(a);
    float factor = (float)((k == 0 ? 2.0 : -2.0) / (double)n);
    WITH_TYPE(TG, x->dtype,
              launch_each(d, n, true, "mse backward",
                          mean_square_back<TA, TB, TG>{
                              factor, r->accumulate[k], (const float *)r->out->grad,
                              (const TA *)a->data, (const TB *)b->data, (TG *)x->grad}));
}

} // namespace

extern "C" {

void cgs_cuda_mse_forward(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *a = r->in[0], *b = r->in[1];
    WITH_TYPE(TA, a->dtype,
              WITH_TYPE(TB, b->dtype,
                        mean_square<<<1, 1024, 0, stream_of(d)>>>(
                            (float *)r->out->data, (const TA *)a->data, (const TB *)b->data,
                            cgs_numel(a))));
    LAUNCHED(d, "mse");
}

void cgs_cuda_mse_backward(cgs_device *d, const cgs_record *r) {
    for (int k = 0; k < 2; k++)
        if (cgs_wants(r, k))
            WITH_TYPE(TA, r->in[0]->dtype,
                      WITH_TYPE(TB, r->in[1]->dtype, mse_backward<TA, TB>(d, r, k)));
}

void cgs_cuda_sqdist_forward(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *a = r->in[0], *b = r->in[1];
    size_t rows = cgs_rows(a);
    WITH_TYPE(TA, a->dtype,
              WITH_TYPE(TB, b->dtype,
                        distances<<<blocks_for(rows, 8), dim3(32, 8), 0, stream_of(d)>>>(
                            (float *)r->out->data, (const TA *)a->data, (const TB *)b->data, rows,
                            r->arg.sqdist.K, cgs_cols(a))));
    LAUNCHED(d, "sqdist");
}

void cgs_cuda_sqdist_backward(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *a = r->in[0], *b = r->in[1];
    size_t D = (size_t)cgs_cols(a), K = (size_t)r->arg.sqdist.K;
    const float *g = (const float *)r->out->grad;
    if (cgs_wants(r, 0))
        WITH_TYPE(TA, a->dtype,
                  WITH_TYPE(TB, b->dtype,
                            launch_each(d, cgs_numel(a), false, "sqdist backward",
                                        distances_back_a<TA, TB>{
                                            D, K, r->accumulate[0], g, (const TA *)a->data,
                                            (const TB *)b->data, (TA *)a->grad})));
    if (cgs_wants(r, 1))
        WITH_TYPE(TA, a->dtype,
                  WITH_TYPE(TB, b->dtype,
                            launch_each(d, cgs_numel(b), false, "sqdist backward",
                                        distances_back_b<TA, TB>{
                                            D, K, r->accumulate[1], g, (const TA *)a->data,
                                            (const TB *)b->data, (TB *)b->grad})));
}

void cgs_cuda_weighted_sum_forward(cgs_device *d, const cgs_record *r) {
    weigh<<<1, 1, 0, stream_of(d)>>>((float *)r->out->data, terms_of(r));
    LAUNCHED(d, "weighted_sum");
}

void cgs_cuda_weighted_sum_backward(cgs_device *d, const cgs_record *r) {
    cgs_cuda_clear_grad(d, r, 0); /* weights are settings */
    weigh_back<<<1, 1, 0, stream_of(d)>>>(terms_of(r));
    LAUNCHED(d, "weighted_sum backward");
}

} /* extern "C" */

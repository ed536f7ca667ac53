/* sigreg.cu - how far random projections of the latents are from a standard normal.
 *   z (B,T,D), A (P,D) unit directions; saved: (T,P,34), C at k and S at 17+k
 * The projections y = z A^T (B*T,P) are one product into scratch; sines and cosines of them at
 * the 17 knots live in registers only.  The reference has the formulas. */
#include "ops/cuda/kernels.cuh"

namespace {

enum { KNOTS = CGS_SIGREG_KNOTS, LANES = 16 };

struct rule {
    float t[KNOTS], phi[KNOTS], w[KNOTS];
};

rule trapezoid() {
    rule q;
    double step = 3.0 / (KNOTS - 1);
    for (int k = 0; k < KNOTS; k++) {
        double t = step * k, phi = exp(-t * t / 2);
        q.t[k] = (float)t;
        q.phi[k] = (float)phi;
        q.w[k] = (float)(2 * (k == 0 || k == KNOTS - 1 ? step / 2 : step) * phi);
    }
    return q;
}

/* 32 directions of one time step per block; LANES of its threads share the batch */
__global__ void __launch_bounds__(32 * LANES)
    characteristic(float *saved, float *loss, const float *y, int B, int T, int P, rule q) {
    __shared__ float partial[LANES][33];
    int p = blockIdx.x * 32 + threadIdx.x, t = blockIdx.y;
    float C[KNOTS] = {0}, S[KNOTS] = {0};
    for (int b = threadIdx.y; p < P && b < B; b += LANES) {
        float v = y[((size_t)b * T + t) * P + p];
#pragma unroll
        for (int k = 0; k < KNOTS; k++) {
            float s, c;
            sincosf(q.t[k] * v, &s, &c);
            C[k] += c;
            S[k] += s;
        }
    }
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 2 * KNOTS; i++) {
        const int k = i % KNOTS;
        __syncthreads();
        partial[threadIdx.y][threadIdx.x] = i < KNOTS ? C[k] : S[k];
        __syncthreads();
        if (threadIdx.y > 0 || p >= P) continue;
        float v = 0;
        for (int l = 0; l < LANES; l++) v += partial[l][threadIdx.x];
        v /= B;
        saved[((size_t)t * P + p) * 2 * KNOTS + i] = v;
        float off = i < KNOTS ? v - q.phi[k] : v;
        sum += q.w[k] * off * off;
    }
    if (threadIdx.y == 0 && p < P) loss[(size_t)t * P + p] = sum;
}

__global__ void __launch_bounds__(1024) finish(float *out, const float *loss, size_t n, float B) {
    __shared__ double partial[32];
    double sum = 0;
    for (size_t i = threadIdx.x; i < n; i += 1024) sum += loss[i];
    sum = block_sum(sum, partial);
    if (threadIdx.x == 0) *out = (float)(B * sum / (double)n);
}

/* y becomes d loss / d y */
struct derivative {
    int T, P;
    float factor; /* 2 / (T P) */
    const float *saved, *g;
    float *y;
    rule q;
    template <int V> __device__ void at(size_t i) const {
        size_t p = i % P, t = i / P % T;
        const float *C = saved + (t * P + p) * 2 * KNOTS, *S = C + KNOTS;
        float v = y[i], dy = 0;
#pragma unroll
        for (int k = 0; k < KNOTS; k++) {
            float s, c;
            sincosf(q.t[k] * v, &s, &c);
            dy += q.w[k] * q.t[k] * (S[k] * c - (C[k] - q.phi[k]) * s);
        }
        y[i] = factor * *g * dy;
    }
};

/* y = z A^T into scratch */
float *project(cgs_device *d, const cgs_record *r) {
    const cgs_cuda_sigreg *s = (const cgs_cuda_sigreg *)r->impl;
    const cgs_tensor *z = r->in[0], *A = r->in[1];
    size_t n = cgs_rows(z), P = cgs_rows(A), D = (size_t)cgs_cols(z);
    float *y = (float *)cgs_cuda_of(d)->scratch;
    if (s->forward)
        cgs_cuda_product_run(d, s->forward, y, z->data, A->data, NULL, NULL);
    else
        cgs_cuda_own_product(d, y, CGS_F32, {z->data, z->dtype, D, 1}, {A->data, A->dtype, 1, D}, n,
                             P, D, NULL, false);
    return y;
}

} // namespace

extern "C" {

void cgs_cuda_sigreg_forward(cgs_device *d, const cgs_record *r) {
    int B = r->in[0]->dim[0], T = r->in[0]->dim[1], P = (int)cgs_rows(r->in[1]);
    float *y = project(d, r), *loss = y + (size_t)B * T * P;
    characteristic<<<dim3(blocks_for(P, 32), T), dim3(32, LANES), 0, stream_of(d)>>>(
        (float *)r->saved[0]->data, loss, y, B, T, P, trapezoid());
    LAUNCHED(d, "sigreg");
    finish<<<1, 1024, 0, stream_of(d)>>>((float *)r->out->data, loss, (size_t)T * P, (float)B);
    LAUNCHED(d, "sigreg");
}

void cgs_cuda_sigreg_backward(cgs_device *d, const cgs_record *r) {
    const cgs_cuda_sigreg *s = (const cgs_cuda_sigreg *)r->impl;
    const cgs_tensor *z = r->in[0], *A = r->in[1];
    size_t n = cgs_rows(z), D = (size_t)cgs_cols(z);
    int T = z->dim[1], P = (int)cgs_rows(A);
    cgs_cuda_clear_grad(d, r, 1); /* directions are drawn, not learned */
    if (!cgs_wants(r, 0)) return;
    float *y = project(d, r);
    launch_each(d, n * P, false, "sigreg backward",
                derivative{T, P, (float)(2.0 / ((double)T * P)), (const float *)r->saved[0]->data,
                           (const float *)r->out->grad, y, trapezoid()});
    if (s->dz)
        cgs_cuda_product_run(d, s->dz, z->grad, y, A->data, NULL, NULL);
    else
        cgs_cuda_own_product(d, z->grad, z->dtype, {y, CGS_F32, (size_t)P, 1},
                             {A->data, A->dtype, D, 1}, n, D, P, NULL, r->accumulate[0]);
}

} /* extern "C" */

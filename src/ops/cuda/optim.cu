/* optim.cu - AdamW, sums of squares and rounding, over the whole model at once; and the
 * update number that random draws read. */
#include <math.h>

#include "ops/cuda/elementwise.cuh"

namespace {

__global__ void set_step(uint64_t *to, uint64_t step) { *to = step; }

__global__ void __launch_bounds__(256) squares(double *sums, const float *x, size_t n) {
    __shared__ double partial[32];
    double sum = 0;
    for (size_t i = ((size_t)blockIdx.x * 256 + threadIdx.x) * 4; i < n;
         i += (size_t)CGS_CUDA_PARTS * 256 * 4) {
        if (i + 4 <= n) {
            float4 v = *reinterpret_cast<const float4 *>(x + i);
            sum += (double)v.x * v.x + (double)v.y * v.y + (double)v.z * v.z + (double)v.w * v.w;
        } else {
            for (size_t k = i; k < n; k++) sum += (double)x[k] * x[k];
        }
    }
    sum = block_sum(sum, partial);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(1024) add_sums(double *sums) {
    __shared__ double partial[32];
    double sum = block_sum(sums[threadIdx.x], partial);
    if (threadIdx.x == 0) sums[CGS_CUDA_PARTS] = sum;
}

/* m/c1 / (sqrt(v/c2) + eps) = m / c1 / (sqrt(v) / sqrt(c2) + eps) */
struct adam {
    float b1, b2, a1, a2, keep, clip, rate, root, eps;
    float *p, *m, *v;
    const float *g;
    bf16 *half;
    template <int V> __device__ void at(size_t i) const {
        float P[V], G[V], M[V], S[V];
        load<V>(P, p + i);
        load<V>(G, g + i);
        load<V>(M, m + i);
        load<V>(S, v + i);
#pragma unroll
        for (int k = 0; k < V; k++) {
            float gi = clip * G[k];
            M[k] = b1 * M[k] + a1 * gi;
            S[k] = b2 * S[k] + a2 * (gi * gi);
            P[k] = P[k] * keep - rate * M[k] / (sqrtf(S[k]) * root + eps);
        }
        store<V>(m + i, M);
        store<V>(v + i, S);
        store<V>(p + i, P);
        if (half) store<V>(half + i, P);
    }
};

} // namespace

extern "C" {

void cgs_cuda_set_step(cgs_cuda *c, uint64_t step) {
    set_step<<<1, 1, 0, c->stream>>>(c->step, step);
    cgs_cuda_note(c, cudaGetLastError(), "setting the update number");
}

/* NaN when the device failed; sync says why */
double cgs_cuda_sum_squares(cgs_device *d, const float *x, size_t n) {
    cgs_cuda *c = cgs_cuda_of(d);
    double sum = NAN;
    squares<<<CGS_CUDA_PARTS, 256, 0, c->stream>>>(c->sums, x, n);
    LAUNCHED(d, "sum of squares");
    add_sums<<<1, CGS_CUDA_PARTS, 0, c->stream>>>(c->sums);
    LAUNCHED(d, "sum of squares");
    cudaError_t e = cudaMemcpyAsync(&sum, c->sums + CGS_CUDA_PARTS, sizeof sum,
                                    cudaMemcpyDeviceToHost, c->stream);
    if (e == cudaSuccess) e = cudaStreamSynchronize(c->stream);
    cgs_cuda_note(c, e, "reading a sum");
    return e == cudaSuccess ? sum : NAN;
}

void cgs_cuda_adamw(cgs_device *d, const cgs_adamw *a, float *p, const float *g, float *m, float *v,
                    uint16_t *half, size_t n) {
    adam f = {};
    f.b1 = a->beta1;
    f.b2 = a->beta2;
    f.a1 = (float)(1.0 - a->beta1);
    f.a2 = (float)(1.0 - a->beta2);
    f.keep = (float)(1.0 - (double)a->lr * a->weight_decay);
    f.clip = a->clip_scale;
    f.rate = (float)(a->lr / (1 - pow((double)a->beta1, (double)a->step)));
    f.root = (float)(1 / sqrt(1 - pow((double)a->beta2, (double)a->step)));
    f.eps = a->eps;
    f.p = p;
    f.m = m;
    f.v = v;
    f.g = g;
    f.half = (bf16 *)half;
    launch_each(d, n, true, "adamw", f);
}

void cgs_cuda_round_bf16(cgs_device *d, uint16_t *to, const float *from, size_t n) {
    launch_convert(d, to, CGS_BF16, from, CGS_F32, n, false, "rounding");
}

} /* extern "C" */

/* batchnorm.cu - columns to mean 0 and variance 1, then w and b.
 *   x (n,C), w (C), b (C), running mean (C), running variance (C); saved: mean (C), 1/std (C)
 * A block has 32 columns and LANES rows at a time; every column is read three times, which
 * the cache bears: there are a few hundred rows. */
#include "ops/cuda/kernels.cuh"

namespace {

enum { LANES = 16 };

/* sum over the rows that the lanes of a column saw; all lanes get it */
__device__ float lane_sum(float v, float (*partial)[33]) {
    __syncthreads();
    partial[threadIdx.y][threadIdx.x] = v;
    __syncthreads();
    float sum = 0;
    for (int l = 0; l < LANES; l++) sum += partial[l][threadIdx.x];
    return sum;
}

template <class T>
__global__ void __launch_bounds__(32 * LANES)
    normalise(T *y, float *means, float *rstds, float *run_mean, float *run_var, const T *x,
              const float *w, const float *b, size_t n, int C, bool training, float eps,
              float momentum) {
    __shared__ float partial[LANES][33];
    int c = blockIdx.x * 32 + threadIdx.x;
    bool inside = c < C;
    float mean = inside ? run_mean[c] : 0, var = inside ? run_var[c] : 0;
    if (training) {
        float sum = 0, square = 0, old_mean = mean, old_var = var;
        for (size_t i = threadIdx.y; inside && i < n; i += LANES) sum += widen(x[i * C + c]);
        mean = lane_sum(sum, partial) / n;
        for (size_t i = threadIdx.y; inside && i < n; i += LANES) {
            float v = widen(x[i * C + c]) - mean;
            square += v * v;
        }
        var = lane_sum(square, partial) / n;
        if (inside && threadIdx.y == 0) {
            float unbiased = n > 1 ? var * ((float)n / (float)(n - 1)) : var;
            run_mean[c] = (1 - momentum) * old_mean + momentum * mean;
            run_var[c] = (1 - momentum) * old_var + momentum * unbiased;
        }
    }
    if (!inside) return;
    float rstd = 1.0f / sqrtf(var + eps), scale = w[c], shift = b[c];
    if (threadIdx.y == 0) {
        means[c] = mean;
        rstds[c] = rstd;
    }
    for (size_t i = threadIdx.y; i < n; i += LANES)
        y[i * C + c] = narrow<T>((widen(x[i * C + c]) - mean) * rstd * scale + shift);
}

/* dx, dw, db: NULL where nobody wants them; add: bits of what to add to */
template <class T>
__global__ void __launch_bounds__(32 * LANES)
    gradient(T *dx, float *dw, float *db, const T *dy, const T *x, const float *means,
             const float *rstds, const float *w, size_t n, int C, bool training, int add) {
    __shared__ float partial[LANES][33];
    int c = blockIdx.x * 32 + threadIdx.x;
    bool inside = c < C;
    float mean = inside ? means[c] : 0, rstd = inside ? rstds[c] : 0, dot = 0, sum = 0;
    for (size_t i = threadIdx.y; inside && i < n; i += LANES) {
        float g = widen(dy[i * C + c]);
        dot += g * ((widen(x[i * C + c]) - mean) * rstd);
        sum += g;
    }
    dot = lane_sum(dot, partial);
    sum = lane_sum(sum, partial);
    if (!inside) return;
    if (threadIdx.y == 0) {
        if (dw) give_one(dw + c, dot, add & 2);
        if (db) give_one(db + c, sum, add & 4);
    }
    float scale = rstd * w[c];
    for (size_t i = threadIdx.y; dx && i < n; i += LANES) {
        float g = widen(dy[i * C + c]), xhat = (widen(x[i * C + c]) - mean) * rstd;
        if (training) g -= (sum + xhat * dot) / n;
        give_one(dx + i * C + c, scale * g, add & 1);
    }
}

} // namespace

extern "C" {

void cgs_cuda_batchnorm_forward(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0];
    int C = cgs_cols(x);
    WITH_TYPE(T, x->dtype,
              normalise<T><<<blocks_for(C, 32), dim3(32, LANES), 0, stream_of(d)>>>(
                  (T *)r->out->data, (float *)r->saved[0]->data, (float *)r->saved[1]->data,
                  (float *)r->in[3]->data, (float *)r->in[4]->data, (const T *)x->data,
                  (const float *)r->in[1]->data, (const float *)r->in[2]->data, cgs_rows(x), C,
                  r->arg.batchnorm.training, r->arg.batchnorm.eps, r->arg.batchnorm.momentum));
    LAUNCHED(d, "batchnorm");
}

void cgs_cuda_batchnorm_backward(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0];
    int C = cgs_cols(x), add = r->accumulate[0] | r->accumulate[1] << 1 | r->accumulate[2] << 2;
    WITH_TYPE(
        T, x->dtype,
        gradient<T><<<blocks_for(C, 32), dim3(32, LANES), 0, stream_of(d)>>>(
            cgs_wants(r, 0) ? (T *)x->grad : NULL, cgs_wants(r, 1) ? (float *)r->in[1]->grad : NULL,
            cgs_wants(r, 2) ? (float *)r->in[2]->grad : NULL, (const T *)r->out->grad,
            (const T *)x->data, (const float *)r->saved[0]->data, (const float *)r->saved[1]->data,
            (const float *)r->in[1]->data, cgs_rows(x), C, r->arg.batchnorm.training, add));
    LAUNCHED(d, "batchnorm backward");
}

} /* extern "C" */

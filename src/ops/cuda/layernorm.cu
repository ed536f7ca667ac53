/* layernorm.cu - rows to mean 0 and variance 1, then w and b where given.
 *   x (n,D), w (D) or NULL, b (D) or NULL; saved: mean (n), 1/std (n)
 *
 * A warp holds a whole row in registers: lane l has V columns out of every 32 V.  Backward
 * gives each warp many rows, so the gradients of w and b add up in registers; each block
 * writes its sums once, and a second kernel adds the blocks'. */
#include "ops/cuda/kernels.cuh"

namespace {

enum { WARPS = 8, MAX_BLOCKS = 512, WIDEST = 1024 };

template <int V, int N> __device__ __forceinline__ int column(int lane, int i) {
    return (lane + 32 * i) * V;
}

template <int V, int N, class TX, class TY>
__global__ void __launch_bounds__(32 * WARPS)
    normalise(TY *y, float *means, float *rstds, const TX *x, const float *w, const float *b,
              size_t rows, int D, float eps) {
    size_t row = (size_t)blockIdx.x * WARPS + threadIdx.y;
    int lane = threadIdx.x;
    if (row >= rows) return;
    x += row * D;
    y += row * D;
    float v[N][V], sum = 0, square = 0;
#pragma unroll
    for (int i = 0; i < N; i++) {
        int c = column<V, N>(lane, i);
        if (c < D) load<V>(v[i], x + c);
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

/* parts (blocks, 2, D): sums of dy xhat and of dy, or NULL; dx may be NULL */
template <int V, int N, class TX, class TY>
__global__ void __launch_bounds__(32 * WARPS)
    gradient(TX *dx, bool add, float *parts, const TY *dy, const TX *x, const float *means,
             const float *rstds, const float *w, size_t rows, int D) {
    extern __shared__ float shared[]; /* (WARPS, D) */
    int lane = threadIdx.x;
    float dw[N][V] = {{0}}, db[N][V] = {{0}}, scale[N][V];
#pragma unroll
    for (int i = 0; i < N; i++) {
        int c = column<V, N>(lane, i);
#pragma unroll
        for (int k = 0; k < V; k++) scale[i][k] = 1;
        if (w && c < D) load<V>(scale[i], w + c);
    }
    for (size_t row = (size_t)blockIdx.x * WARPS + threadIdx.y; row < rows;
         row += (size_t)gridDim.x * WARPS) {
        float g[N][V], xhat[N][V], mean = means[row], rstd = rstds[row], sum = 0, along = 0;
#pragma unroll
        for (int i = 0; i < N; i++) {
            int c = column<V, N>(lane, i);
            if (c < D) {
                load<V>(g[i], dy + row * D + c);
                load<V>(xhat[i], x + row * D + c);
            }
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
                along += g[i][k] * xhat[i][k];
            }
        }
        if (!dx) continue;
        sum = warp_sum(sum) / D;
        along = warp_sum(along) / D;
#pragma unroll
        for (int i = 0; i < N; i++) {
            int c = column<V, N>(lane, i);
            if (c >= D) continue;
#pragma unroll
            for (int k = 0; k < V; k++) g[i][k] = rstd * (g[i][k] - sum - xhat[i][k] * along);
            give<V>(dx + row * D + c, g[i], add);
        }
    }
    if (!parts) return;
    for (int which = 0; which < 2; which++) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < N; i++) {
            int c = column<V, N>(lane, i);
#pragma unroll
            for (int k = 0; k < V; k++)
                if (c < D) shared[threadIdx.y * D + c + k] = which ? db[i][k] : dw[i][k];
        }
        __syncthreads();
        for (int c = threadIdx.y * 32 + lane; c < D; c += 32 * WARPS) {
            float sum = 0;
            for (int l = 0; l < WARPS; l++) sum += shared[l * D + c];
            parts[((size_t)blockIdx.x * 2 + which) * D + c] = sum;
        }
    }
}

unsigned gradient_blocks(size_t rows) {
    unsigned blocks = blocks_for(rows, WARPS);
    return blocks < MAX_BLOCKS ? blocks : (unsigned)MAX_BLOCKS;
}

template <int V, int N> void forward(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *y = r->out;
    const float *w = r->in[1] ? (const float *)r->in[1]->data : NULL;
    const float *b = r->in[2] ? (const float *)r->in[2]->data : NULL;
    size_t rows = cgs_rows(x);
    WITH_TYPE(TX, x->dtype,
              WITH_TYPE(TY, y->dtype,
                        normalise<V, N><<<blocks_for(rows, WARPS), dim3(32, WARPS), 0,
                                          stream_of(d)>>>(
                            (TY *)y->data, (float *)r->saved[0]->data, (float *)r->saved[1]->data,
                            (const TX *)x->data, w, b, rows, cgs_cols(x), r->arg.layernorm.eps)));
    LAUNCHED(d, "layernorm");
}

template <int V, int N> void backward(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *y = r->out;
    const float *w = r->in[1] ? (const float *)r->in[1]->data : NULL;
    size_t rows = cgs_rows(x);
    int D = cgs_cols(x);
    bool affine = cgs_cuda_wants(r, 1) || cgs_cuda_wants(r, 2);
    float *parts = affine ? (float *)cgs_cuda_of(d)->scratch : NULL;
    unsigned blocks = gradient_blocks(rows);
    WITH_TYPE(TX, x->dtype,
              WITH_TYPE(TY, y->dtype,
                        gradient<V, N><<<blocks, dim3(32, WARPS), WARPS * D * sizeof(float),
                                         stream_of(d)>>>(
                            cgs_cuda_wants(r, 0) ? (TX *)x->grad : NULL, r->accumulate[0], parts,
                            (const TY *)y->grad, (const TX *)x->data,
                            (const float *)r->saved[0]->data, (const float *)r->saved[1]->data, w,
                            rows, D)));
    LAUNCHED(d, "layernorm backward");
    for (int k = 1; k < 3; k++)
        if (cgs_cuda_wants(r, k))
            cgs_cuda_add_parts(d, (float *)r->in[k]->grad, r->accumulate[k],
                               parts + (k - 1) * (size_t)D, blocks, 2 * (size_t)D, D);
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
    return cgs_cuda_need(d, 2 * (size_t)gradient_blocks(cgs_rows(r->in[0])) * D * sizeof(float));
}

void cgs_cuda_layernorm_forward(cgs_device *d, const cgs_record *r) {
    FITTING(cgs_cols(r->in[0]), forward, d, r);
}

void cgs_cuda_layernorm_backward(cgs_device *d, const cgs_record *r) {
    FITTING(cgs_cols(r->in[0]), backward, d, r);
}

} /* extern "C" */

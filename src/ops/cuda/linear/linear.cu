/* linear.cu - y = x W^T + b and its gradients.
 *   x (n,k), W (m,k), b (m) or NULL, y (n,m)
 * When x is bf16 the products use the rounded copy of W; then a gradient dy in f32 is rounded
 * before it enters the products, as x and W were.  The gradient of b sums dy itself. */
#include "ops/cuda/elementwise.cuh"

namespace {

enum { TILE = 64, DEPTH = 16 };

struct factor {
    const void *p;
    bool half;
    size_t row, col;
    __device__ float at(size_t i, size_t j) const {
        size_t k = i * row + j * col;
        return half ? widen(((const bf16 *)p)[k]) : ((const float *)p)[k];
    }
};

/* C (M,N) = A (M,K) B (K,N), any layout and type: a block makes 64 x 64 of it, a thread 4 x 4 */
template <class T>
__global__ void __launch_bounds__(256)
    product(T *C, factor A, factor B, size_t M, size_t N, size_t K, const float *bias, bool add) {
    __shared__ float a[DEPTH][TILE + 1], b[DEPTH][TILE + 1];
    size_t i0 = (size_t)blockIdx.y * TILE, j0 = (size_t)blockIdx.x * TILE;
    int ti = threadIdx.x / 16, tj = threadIdx.x % 16;
    float sum[4][4] = {{0}};
    for (size_t k0 = 0; k0 < K; k0 += DEPTH) {
        for (int e = threadIdx.x; e < TILE * DEPTH; e += 256) {
            /* neighbours in memory go to neighbouring threads */
            int k = A.col == 1 ? e % DEPTH : e / TILE, i = A.col == 1 ? e / DEPTH : e % TILE;
            a[k][i] = i0 + i < M && k0 + k < K ? A.at(i0 + i, k0 + k) : 0.0f;
            k = B.row == 1 ? e % DEPTH : e / TILE;
            i = B.row == 1 ? e / DEPTH : e % TILE;
            b[k][i] = j0 + i < N && k0 + k < K ? B.at(k0 + k, j0 + i) : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < DEPTH; k++)
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) sum[i][j] += a[k][ti + 16 * i] * b[k][tj + 16 * j];
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            size_t row = i0 + ti + 16 * i, col = j0 + tj + 16 * j;
            if (row >= M || col >= N) continue;
            float v = sum[i][j];
            if (bias) v += bias[col];
            give_one(C + row * N + col, v, add);
        }
}

/* the same where N and K are small: one thread per element */
template <class T>
__global__ void __launch_bounds__(256) thin_product(T *C, factor A, factor B, size_t M, size_t N,
                                                    size_t K, const float *bias, bool add) {
    size_t e = (size_t)blockIdx.x * 256 + threadIdx.x, i = e / N, j = e % N;
    if (i >= M) return;
    float sum = 0;
    for (size_t k = 0; k < K; k++) sum += A.at(i, k) * B.at(k, j);
    if (bias) sum += bias[j];
    give_one(C + e, sum, add);
}

/* ... where only K is, for actions: a thread has a column of B in its registers and takes ROWS rows
 */
enum { ROWS = 8 };
template <class T>
__global__ void __launch_bounds__(256) short_product(T *C, factor A, factor B, size_t M, size_t N,
                                                     size_t K, const float *bias, bool add) {
    __shared__ float a[ROWS][CGS_CUDA_THIN];
    size_t i0 = (size_t)blockIdx.y * ROWS, j = (size_t)blockIdx.x * 256 + threadIdx.x;
    for (size_t e = threadIdx.x; e < ROWS * CGS_CUDA_THIN; e += 256) {
        size_t i = e / CGS_CUDA_THIN, k = e % CGS_CUDA_THIN;
        a[i][k] = i0 + i < M && k < K ? A.at(i0 + i, k) : 0.0f;
    }
    __syncthreads();
    if (j >= N) return;
    float sum[ROWS] = {0};
    for (size_t k = 0; k < K; k++) {
        float b = B.at(k, j);
#pragma unroll
        for (int i = 0; i < ROWS; i++) sum[i] += a[i][k] * b;
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++)
        if (i0 + i < M) give_one(C + (i0 + i) * N + j, sum[i] + (bias ? bias[j] : 0.0f), add);
}

/* W as the products use it */
cgs_cuda_factor weights(const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *W = r->in[1];
    size_t k = (size_t)cgs_cols(x);
    if (x->dtype == CGS_BF16 && W->bf16) return {W->bf16, CGS_BF16, k, 1};
    return {W->data, W->dtype, k, 1};
}

cgs_cuda_factor transposed(cgs_cuda_factor f) { return {f.p, f.type, f.col, f.row}; }

/* whoever made dy has summed it too */
bool bias_is_done(const cgs_device *d, const cgs_record *r) {
    if (cgs_cuda_is(r->next, CGS_OP_activation))
        return cgs_cuda_done_by_neighbour(d, r->next, CGS_CUDA_BACKWARD);
    if (cgs_cuda_is(r->next, CGS_OP_attention)) return cgs_cuda_attention_gives_bias(r);
    return cgs_cuda_is(r->next, CGS_OP_add) && cgs_cuda_norm_gives_added(r->next);
}

/* dy as the products use it: as it is, or rounded */
cgs_cuda_factor gradient_of(cgs_device *d, const cgs_record *r, bool rounded) {
    const cgs_tensor *y = r->out;
    void *scratch = cgs_cuda_of(d)->scratch;
    if (!rounded) return {y->grad, y->dtype, (size_t)cgs_cols(y), 1};
    launch_convert(d, scratch, CGS_BF16, y->grad, CGS_F32, cgs_numel(y), false,
                   "rounding a gradient");
    return {scratch, CGS_BF16, (size_t)cgs_cols(y), 1};
}

void backward_parameters(cgs_device *d, const cgs_record *r, cgs_cuda_factor dy) {
    const cgs_cuda_linear *l = (const cgs_cuda_linear *)r->impl;
    const cgs_tensor *x = r->in[0], *W = r->in[1], *y = r->out;
    size_t n = cgs_rows(x), k = (size_t)cgs_cols(x), m = (size_t)cgs_cols(y);
    if (cgs_wants(r, 1)) { /* dW = dy^T x */
        if (l->dW)
            cgs_cuda_product_run(d, l->dW, W->grad, dy.p, x->data, NULL, NULL);
        else
            cgs_cuda_own_product(d, W->grad, W->dtype, transposed(dy), {x->data, x->dtype, k, 1}, m,
                                 k, n, NULL, r->accumulate[1]);
    }
    if (cgs_wants(r, 2) && !bias_is_done(d, r))
        cgs_cuda_give_column_sums(d, r, 2, y->grad, y->dtype, n, m);
}

} // namespace

extern "C" {

void cgs_cuda_own_product(cgs_device *d, void *C, cgs_dtype type, cgs_cuda_factor A,
                          cgs_cuda_factor B, size_t M, size_t N, size_t K, const float *bias,
                          bool accumulate) {
    factor a = {A.p, A.type == CGS_BF16, A.row, A.col}, b = {B.p, B.type == CGS_BF16, B.row, B.col};
    if (N <= CGS_CUDA_THIN && K <= CGS_CUDA_THIN) {
        WITH_TYPE(T, type,
                  thin_product<T><<<blocks_for(M * N, 256), 256, 0, stream_of(d)>>>(
                      (T *)C, a, b, M, N, K, bias, accumulate));
        LAUNCHED(d, "thin product");
        return;
    }
    /* the grid's y is short: rows go in several launches if there are very many */
    const bool few = K <= CGS_CUDA_THIN;
    const size_t most = (size_t)(few ? (int)ROWS : (int)TILE) * 32768, size = cgs_dtype_size(type);
    for (size_t i = 0; i < M; i += most) {
        size_t rows = M - i < most ? M - i : most;
        factor part = a;
        part.p = (const char *)a.p + i * a.row * cgs_dtype_size(A.type);
        if (few) {
            dim3 grid(blocks_for(N, 256), blocks_for(rows, ROWS));
            WITH_TYPE(T, type,
                      short_product<T><<<grid, 256, 0, stream_of(d)>>>(
                          (T *)((char *)C + i * N * size), part, b, rows, N, K, bias, accumulate));
            LAUNCHED(d, "short product");
            continue;
        }
        dim3 grid(blocks_for(N, TILE), blocks_for(rows, TILE));
        WITH_TYPE(T, type,
                  product<T><<<grid, 256, 0, stream_of(d)>>>((T *)((char *)C + i * N * size), part,
                                                             b, rows, N, K, bias, accumulate));
        LAUNCHED(d, "product");
    }
}

void cgs_cuda_linear_forward(cgs_device *d, const cgs_record *r) {
    const cgs_cuda_linear *l = (const cgs_cuda_linear *)r->impl;
    const cgs_tensor *x = r->in[0], *b = r->in[2], *y = r->out;
    size_t n = cgs_rows(x), k = (size_t)cgs_cols(x), m = (size_t)cgs_cols(y);
    cgs_cuda_factor W = weights(r);
    const float *bias = b ? (const float *)b->data : NULL;
    if (l->forward)
        cgs_cuda_product_run(d, l->forward, y->data, x->data, W.p, bias, b ? b->bf16 : NULL);
    else
        cgs_cuda_own_product(d, y->data, y->dtype, {x->data, x->dtype, k, 1}, transposed(W), n, m,
                             k, bias, false);
}

void cgs_cuda_linear_backward_parameters(cgs_device *d, const cgs_record *r) {
    backward_parameters(d, r, gradient_of(d, r, false));
}

void cgs_cuda_linear_backward(cgs_device *d, const cgs_record *r) {
    const cgs_cuda_linear *l = (const cgs_cuda_linear *)r->impl;
    const cgs_tensor *x = r->in[0], *y = r->out;
    size_t n = cgs_rows(x), k = (size_t)cgs_cols(x), m = (size_t)cgs_cols(y);
    cgs_cuda_factor dy = gradient_of(d, r, l->round_dy && (l->dx || l->dW)), w = weights(r);
    if (cgs_wants(r, 0)) { /* dx = dy W */
        if (l->dx)
            cgs_cuda_product_run(d, l->dx, x->grad, dy.p, w.p, NULL, NULL);
        else
            cgs_cuda_own_product(d, x->grad, x->dtype, dy, w, n, k, m, NULL, r->accumulate[0]);
    }
    backward_parameters(d, r, dy);
}

} /* extern "C" */

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

/* the same where N and K are small: a thread an element */
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

/* A map from 588 columns: rows begin at multiples of 8 bytes only, and products are slow.  But two
 * rows together are a multiple of 16, so the even rows are a matrix whose rows lie 1176 apart, and
 * so are the odd ones together with the four elements before each: weights get four columns of
 * zeros, behind for even rows and before for odd ones.  wide (2,m,k+4): these two. */
__global__ void __launch_bounds__(256)
    widen_weights(bf16 *wide, const bf16 *W, size_t count, size_t k, size_t m) {
    size_t i = (size_t)blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    size_t col = i % (k + 4), row = i / (k + 4) % m, odd = i / (k + 4) / m;
    size_t from = col - 4 * odd; /* of zeros before the row it is very large */
    wide[i] = from < k ? W[row * k + from] : narrow<bf16>(0.0f);
}

/* dW (m,k) from the sums over even and over odd rows, wide as the weights above */
__global__ void __launch_bounds__(256)
    join_gradients(float *dW, bool add, const float *wide, size_t count, size_t k, size_t m) {
    size_t i = (size_t)blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    size_t at = i / k * (k + 4) + i % k;
    give_one(dW + i, wide[at] + wide[m * (k + 4) + at + 4], add);
}

/* W as the products use it */
cgs_cuda_factor weights(const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *W = r->in[1];
    size_t k = (size_t)cgs_cols(x);
    if (x->dtype == CGS_BF16 && W->bf16) return {W->bf16, CGS_BF16, k, 1};
    return {W->data, W->dtype, k, 1};
}

cgs_cuda_factor turned(cgs_cuda_factor f) { return {f.p, f.type, f.col, f.row}; }

void multiply_halves(cgs_device *d, cgs_cuda_product *half, const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *b = r->in[2], *y = r->out;
    size_t k = (size_t)cgs_cols(x), m = (size_t)cgs_cols(y), each = m * (k + 4);
    bf16 *wide = (bf16 *)cgs_cuda_of(d)->scratch;
    widen_weights<<<blocks_for(2 * each, 256), 256, 0, stream_of(d)>>>(
        wide, (const bf16 *)r->in[1]->bf16, 2 * each, k, m);
    LAUNCHED(d, "weights with zeros");
    for (size_t odd = 0; odd < 2; odd++)
        cgs_cuda_product_run(d, half, (bf16 *)y->data + odd * m,
                             (const bf16 *)x->data + odd * (k - 4), wide + odd * each,
                             b ? (const float *)b->data : NULL, b ? b->bf16 : NULL);
}

void sum_halves(cgs_device *d, cgs_cuda_product *half, const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *y = r->out;
    size_t k = (size_t)cgs_cols(x), m = (size_t)cgs_cols(y), each = m * (k + 4);
    float *wide = (float *)cgs_cuda_of(d)->scratch;
    for (size_t odd = 0; odd < 2; odd++)
        cgs_cuda_product_run(d, half, wide + odd * each, (const bf16 *)y->grad + odd * m,
                             (const bf16 *)x->data + odd * (k - 4), NULL, NULL);
    join_gradients<<<blocks_for(m * k, 256), 256, 0, stream_of(d)>>>(
        (float *)r->in[1]->grad, r->accumulate[1], wide, m * k, k, m);
    LAUNCHED(d, "gradients of halves");
}

/* whoever made dy has summed it too */
bool bias_is_done(const cgs_record *r) {
    if (cgs_cuda_is(r->next, CGS_OP_activation)) return cgs_cuda_map_gives_gelu(r->next);
    if (cgs_cuda_is(r->next, CGS_OP_attention)) return cgs_cuda_attention_gives_bias(r);
    return cgs_cuda_is(r->next, CGS_OP_add) && cgs_cuda_norm_gives_added(r->next);
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

bool cgs_cuda_halves(const cgs_device *d, size_t n, size_t k, size_t m) {
    return !(cgs_cuda_of(d)->off & CGS_CUDA_HALVES) && k % 8 == 4 && m % 8 == 0 && n % 2 == 0 &&
           n >= 1024;
}

void cgs_cuda_linear_forward(cgs_device *d, const cgs_record *r) {
    const cgs_cuda_linear *l = (const cgs_cuda_linear *)r->impl;
    const cgs_tensor *x = r->in[0], *b = r->in[2], *y = r->out;
    size_t n = cgs_rows(x), k = (size_t)cgs_cols(x), m = (size_t)cgs_cols(y);
    cgs_cuda_factor W = weights(r);
    const float *bias = b ? (const float *)b->data : NULL;
    if (cgs_cuda_is(r->next, CGS_OP_attention) && cgs_cuda_attention_narrow(d, r, r->next))
        return; /* attention starts from x */
    if ((cgs_cuda_is(r->next, CGS_OP_activation) && cgs_cuda_mlp(d, r->next)) ||
        (cgs_cuda_is(r->before, CGS_OP_activation) && cgs_cuda_mlp(d, r->before)))
        return; /* the activation does both maps */
    if (cgs_cuda_is(r->next, CGS_OP_activation) && cgs_cuda_linear_joins_gelu(d, r, r->next))
        cgs_cuda_linear_gelu_forward(d, r);
    else if (l->half)
        multiply_halves(d, l->half, r);
    else if (l->forward)
        cgs_cuda_product_run(d, l->forward, y->data, x->data, W.p, bias, b ? b->bf16 : NULL);
    else
        cgs_cuda_own_product(d, y->data, y->dtype, {x->data, x->dtype, k, 1}, turned(W), n, m, k,
                             bias, false);
}

void cgs_cuda_linear_backward(cgs_device *d, const cgs_record *r) {
    const cgs_cuda_linear *l = (const cgs_cuda_linear *)r->impl;
    const cgs_tensor *x = r->in[0], *W = r->in[1], *b = r->in[2], *y = r->out;
    size_t n = cgs_rows(x), k = (size_t)cgs_cols(x), m = (size_t)cgs_cols(y);
    unsigned char *scratch = cgs_cuda_of(d)->scratch;
    size_t rounded = (n * m * sizeof(uint16_t) + 255) / 256 * 256;
    cgs_cuda_factor dy = {y->grad, y->dtype, m, 1}, w = weights(r);
    if (l->round_dy && (l->dx || l->dW)) {
        launch_convert(d, scratch, CGS_BF16, y->grad, CGS_F32, n * m, false, "rounding a gradient");
        dy.p = scratch;
        dy.type = CGS_BF16;
    }
    if (cgs_cuda_is(r->before, CGS_OP_activation) && cgs_cuda_map_gives_gelu(r->before)) {
        cgs_cuda_linear_gelu_backward(d, r);
    } else if (cgs_cuda_wants(r, 0)) { /* dx = dy W */
        if (l->dx)
            cgs_cuda_product_run(d, l->dx, x->grad, dy.p, w.p, NULL, NULL);
        else
            cgs_cuda_own_product(d, x->grad, x->dtype, dy, w, n, k, m, NULL, r->accumulate[0]);
    }
    if (cgs_cuda_wants(r, 1)) { /* dW = dy^T x */
        if (l->half_dW)
            sum_halves(d, l->half_dW, r);
        else if (l->dW)
            cgs_cuda_product_run(d, l->dW, W->grad, dy.p, x->data, NULL, NULL);
        else
            cgs_cuda_own_product(d, W->grad, W->dtype, turned(dy), {x->data, x->dtype, k, 1}, m, k,
                                 n, NULL, r->accumulate[1]);
    }
    if (cgs_cuda_wants(r, 2) && !bias_is_done(r))
        cgs_cuda_column_sums(d, (float *)b->grad, r->accumulate[2], y->grad, y->dtype, n, m,
                             (float *)(scratch + rounded));
}

} /* extern "C" */

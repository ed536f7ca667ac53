/* muon.cu - a step of Muon: each matrix belongs to one block, which makes its products one after
 * another, tile by tile.
 *
 * Work is (X, Y, A, B): X lies on its side if that makes it short, (s, l) with s <= l. */
#include <math.h>

#include "ops/cuda/kernels.cuh"

namespace {

/* A tile of a result is (SIDE, SIDE); each of THREADS x THREADS threads has EACH x EACH of it. */
enum { THREADS = 16, EACH = 6, SIDE = THREADS * EACH, DEPTH = 16 };

struct tiles {
    float left[DEPTH][SIDE], right[DEPTH][SIDE];
};

/* The next DEPTH columns of L (n,k) from row i0, and rows of R (k,m) from column j0 (transposed: R
 * is (m,k)), with zeros beyond the ends. */
template <bool transposed>
__device__ void fetch(tiles &t, const float *L, const float *R, int n, int k, int m, int i0, int j0,
                      int k0) {
    for (int e = threadIdx.x; e < DEPTH * SIDE; e += THREADS * THREADS) {
        int depth = e % DEPTH, at = e / DEPTH;
        bool inside = k0 + depth < k;
        t.left[depth][at] = inside && i0 + at < n ? L[(size_t)(i0 + at) * k + k0 + depth] : 0;
        if (transposed)
            t.right[depth][at] = inside && j0 + at < m ? R[(size_t)(j0 + at) * k + k0 + depth] : 0;
    }
    for (int e = threadIdx.x; !transposed && e < DEPTH * SIDE; e += THREADS * THREADS) {
        int depth = e / SIDE, at = e % SIDE;
        bool inside = k0 + depth < k && j0 + at < m;
        t.right[depth][at] = inside ? R[(size_t)(k0 + depth) * m + j0 + at] : 0;
    }
}

/* C (n,m) = scale L R + own Z; Z may be NULL */
template <bool transposed>
__device__ void product(tiles &t, float *C, const float *L, const float *R, float scale,
                        const float *Z, float own, int n, int k, int m) {
    const int ty = threadIdx.x / THREADS, tx = threadIdx.x % THREADS;
    for (int i0 = 0; i0 < n; i0 += SIDE)
        for (int j0 = 0; j0 < m; j0 += SIDE) {
            float sum[EACH][EACH] = {};
            for (int k0 = 0; k0 < k; k0 += DEPTH) {
                __syncthreads(); /* the tiles are read no more */
                fetch<transposed>(t, L, R, n, k, m, i0, j0, k0);
                __syncthreads();
#pragma unroll
                for (int depth = 0; depth < DEPTH; depth++) {
                    float a[EACH], b[EACH];
#pragma unroll
                    for (int e = 0; e < EACH; e++) {
                        a[e] = t.left[depth][ty + THREADS * e];
                        b[e] = t.right[depth][tx + THREADS * e];
                    }
#pragma unroll
                    for (int i = 0; i < EACH; i++)
#pragma unroll
                        for (int j = 0; j < EACH; j++) sum[i][j] += a[i] * b[j];
                }
            }
#pragma unroll
            for (int i = 0; i < EACH; i++)
#pragma unroll
                for (int j = 0; j < EACH; j++) {
                    int y = i0 + ty + THREADS * i, x = j0 + tx + THREADS * j;
                    if (y >= n || x >= m) continue;
                    size_t at = (size_t)y * m + x;
                    C[at] = scale * sum[i][j] + (Z ? own * Z[at] : 0);
                }
        }
    __syncthreads();
}

struct settings {
    float beta, rest, clip, keep, rate;
};

__global__ void __launch_bounds__(THREADS *THREADS)
    muon(settings h, const cgs_matrix *list, float *p, const float *g, float *m, bf16 *half,
         float *work) {
    __shared__ tiles t;
    __shared__ double partial[32];
    const cgs_matrix q = list[blockIdx.x];
    const int r = q.rows, c = q.columns, n = r * c, s = r < c ? r : c, l = r < c ? c : r;
    float *X = work + q.work, *Y = X + n, *A = Y + n, *B = A + (size_t)s * s;
    p += q.first;
    g += q.first;
    m += q.first;

    double squares = 0;
    for (int i = threadIdx.x; i < n; i += THREADS * THREADS) {
        float gi = h.clip * g[i], mi = h.beta * m[i] + h.rest * gi, u = h.beta * mi + h.rest * gi;
        m[i] = mi;
        X[r > c ? i % c * r + i / c : i] = u;
        squares += (double)u * u;
    }
    squares = block_sum(squares, partial);
    __syncthreads();
    const float one = (float)(1 / (sqrt(squares) + 1e-7));
    for (int i = threadIdx.x; i < n; i += THREADS * THREADS) X[i] *= one;

    for (int step = 0; step < CGS_MUON_STEPS; step++) {
        product<true>(t, A, X, X, 1, NULL, 0, s, l, s);
        product<false>(t, B, A, A, CGS_MUON_C, A, CGS_MUON_B, s, s, s);
        product<false>(t, Y, B, X, 1, X, CGS_MUON_A, s, s, l);
        float *keep = X;
        X = Y;
        Y = keep;
    }
    const float size = h.rate * sqrtf((float)l);
    for (int i = threadIdx.x; i < n; i += THREADS * THREADS) {
        float v = p[i] * h.keep - size * X[r > c ? i % c * r + i / c : i];
        p[i] = v;
        if (half) half[q.first + i] = __float2bfloat16(v);
    }
}

} // namespace

extern "C" void cgs_cuda_muon(cgs_device *d, const cgs_muon *a, const cgs_matrix *list, int count,
                              float *p, const float *g, float *m, uint16_t *half, float *work) {
    settings h = {};
    h.beta = a->beta;
    h.rest = (float)(1.0 - (double)a->beta);
    h.clip = a->clip_scale;
    h.keep = (float)(1.0 - (double)a->lr * a->weight_decay);
    h.rate = CGS_MUON_SIZE * a->lr;
    if (count == 0) return;
    muon<<<count, THREADS * THREADS, 0, stream_of(d)>>>(h, list, p, g, m, (bf16 *)half, work);
    LAUNCHED(d, "muon");
}

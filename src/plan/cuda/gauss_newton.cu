/* gauss_newton.cu - an iteration of sampled Gauss-Newton, plan/gauss_newton.c: the same systems in
 * double, one CTA per episode.
 *
 * A thread makes an entry of a matrix, a column of right-hand sides, or a value of the step, and
 * its sums have the order of the host's, except that a single system is solved backwards by
 * columns.  Matrices lie in memory of their own, which the L1 cache holds: 50 values of a plan and
 * 192 of a residual make 20 and 77 KB.  Compiled without fused multiply-add. */
#include "plan/cuda/gauss_newton.h"

#include "plan/cuda/costs.cuh"

namespace {

/* as on the host: pivots below this share of the largest, and partial sums of a dot product */
#define DEPENDENT 1e-11
enum { LANES = 8, WARPS = THREADS / 32, TOGETHER = 4 /* sums that a thread has under way */ };

__device__ double dot(const float *a, const float *b, int n) {
    double lane[LANES] = {0}, sum = 0;
    int i = 0;
    for (; i + LANES <= n; i += LANES)
#pragma unroll
        for (int l = 0; l < LANES; l++) lane[l] += (double)a[i + l] * b[i + l];
#pragma unroll
    for (int l = 0; l < LANES; l++) sum += lane[l];
    for (; i < n; i++) sum += (double)a[i] * b[i];
    return sum;
}

/* In place: the Cholesky factor of S (m, m), whose lower half is given, with inverse pivots.  A
 * column is taken out of all later ones at once. */
__device__ void factorise(double *S, int m) {
    double largest = 0;
    __syncthreads();
    for (int i = 0; i < m; i++) largest = fmax(largest, S[i * m + i]);
    for (int j = 0; j < m; j++) {
        double pivot = S[j * m + j];
        double inverse = pivot > DEPENDENT * largest ? 1 / sqrt(pivot) : 0;
        for (int i = j + 1 + threadIdx.x; i < m; i += THREADS) S[i * m + j] *= inverse;
        __syncthreads();
        if (threadIdx.x == 0) S[j * m + j] = inverse;
        for (int i = j + 1 + threadIdx.x / 32; i < m; i += WARPS)
            for (int k = j + 1 + threadIdx.x % 32; k <= i; k += 32)
                S[i * m + k] -= S[i * m + j] * S[k * m + j];
        __syncthreads();
    }
}

/* x = S^-1 x by its factor, column c of x (m, stride), by the calling thread */
__device__ void solve_column(const double *S, double *x, int m, int stride) {
    for (int i = 0; i < m; i++) {
        double v = x[(size_t)i * stride];
#pragma unroll 8
        for (int k = 0; k < i; k++) v -= S[i * m + k] * x[(size_t)k * stride];
        x[(size_t)i * stride] = v * S[i * m + i];
    }
    for (int i = m - 1; i >= 0; i--) {
        double v = x[(size_t)i * stride];
#pragma unroll 8
        for (int k = i + 1; k < m; k++) v -= S[k * m + i] * x[(size_t)k * stride];
        x[(size_t)i * stride] = v * S[i * m + i];
    }
}

/* the same of one right-hand side, by the first warp; all may read it afterwards */
__device__ void solve_together(const double *S, double *x, int m) {
    int lane = threadIdx.x;
    for (int k = 0; lane < 32 && k < m; k++) {
        double v = x[k] * S[k * m + k];
        __syncwarp();
        if (lane == 0) x[k] = v;
        for (int i = k + 1 + lane; i < m; i += 32) x[i] -= S[i * m + k] * v;
        __syncwarp();
    }
    for (int k = m - 1; lane < 32 && k >= 0; k--) {
        double v = x[k] * S[k * m + k];
        __syncwarp();
        if (lane == 0) x[k] = v;
        for (int i = lane; i < k; i += 32) x[i] -= S[k * m + i] * v;
        __syncwarp();
    }
    __syncthreads();
}

/* An episode's rows, [Z_i, A_i], and memory to work with; as on the host. */
struct problem {
    const float *row;
    int count, R, n, width; /* width = R + n */
    double gamma, rho, delta;
    const float *residual, *start;
    float *mean, *smooth;
    double *S, *C, *unknown, *x, *move;

    __device__ const float *response(int i) const { return row + (size_t)i * width; }
    __device__ const float *difference(int i) const { return response(i) + R; }
};

/* rows of this iteration: differences of residuals, then of plans */
__device__ void add_rows(const cgs_plan_state &s, int e, float *to) {
    int n = s.n, R = s.gn.R, K = s.K, width = R + n;
    const float *plans = s.plans + (size_t)e * K * n, *residual = s.gn.residual + (size_t)e * K * R;
    for (int at = threadIdx.x; at < s.gn.per * width; at += THREADS) {
        int i = at / width, j = at % width;
        bool pair = s.mirror && 2 * i + 2 < K;
        int a = s.mirror ? 2 * i + 1 : i + 1, b = pair ? a + 1 : 0;
        float share = pair ? 0.5f : 1;
        to[at] = j < R ? share * (residual[(size_t)a * R + j] - residual[(size_t)b * R + j])
                       : share * (plans[(size_t)a * n + j - R] - plans[(size_t)b * n + j - R]);
    }
}

/* damping and ridge, in units of the rows' mean squares; scratch: (2, count) */
__device__ void scale(problem &p, const cgs_gauss_newton_state &g, double *scratch) {
    __shared__ double delta, rho;
    for (int i = threadIdx.x; i < 2 * p.count; i += THREADS) {
        const float *a = i < p.count ? p.response(i) : p.difference(i - p.count);
        scratch[i] = dot(a, a, i < p.count ? p.R : p.n);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        delta = rho = 0;
        for (int i = 0; i < p.count; i++) {
            delta += g.damping / (double)p.count * scratch[i];
            rho += g.ridge / (double)p.count * scratch[p.count + i];
        }
    }
    __syncthreads();
    p.delta = delta;
    p.rho = rho;
}

/* fewer rows than values of a plan: weights of the rows */
__device__ void step_by_rows(const problem &p) {
    int m = p.count, R = p.R;
    for (int at = threadIdx.x; at < m * m; at += THREADS) {
        int i = at / m, k = at % m;
        if (k > i) continue;
        p.C[at] = dot(p.difference(i), p.difference(k), p.n);
        p.S[at] = p.C[at] + (i == k ? p.rho : 0);
    }
    factorise(p.S, m);
    for (int j = threadIdx.x; j < R; j += THREADS) {
        for (int i = 0; i < m; i++) p.unknown[(size_t)i * R + j] = p.response(i)[j];
        if (p.rho > 0) solve_column(p.S, p.unknown + j, m, R);
        for (int i = 0; i < m; i++)
            p.smooth[(size_t)i * R + j] =
                (float)(p.response(i)[j] -
                        (p.rho > 0 ? p.rho * p.unknown[(size_t)i * R + j] : 0.0));
    }
    __syncthreads();
    for (int at = threadIdx.x; at < m * m; at += THREADS) {
        int i = at / m, k = at % m;
        if (k > i) continue;
        double v = dot(p.smooth + (size_t)i * R, p.smooth + (size_t)k * R, R) + p.gamma * p.C[at];
        p.S[at] = i == k ? v + p.delta : v;
    }
    for (int i = threadIdx.x; i < m; i += THREADS) {
        double v = -dot(p.smooth + (size_t)i * R, p.residual, R);
        for (int j = 0; j < p.n; j++)
            v -= p.gamma * p.difference(i)[j] * ((double)p.mean[j] - p.start[j]);
        p.x[i] = v;
    }
    factorise(p.S, m);
    solve_together(p.S, p.x, m);
    for (int j = threadIdx.x; j < p.n; j += THREADS) {
        double v = 0;
        for (int i = 0; i < m; i++) v += p.x[i] * p.difference(i)[j];
        p.move[j] = v;
    }
}

/* the right-hand sides A^T Z of column j, some rows of it at a time */
__device__ void project(const problem &p, int j) {
    for (int i0 = 0; i0 < p.n; i0 += TOGETHER) {
        double sum[TOGETHER] = {0};
        for (int r = 0; r < p.count; r++) {
            const float *a = p.difference(r) + i0;
            double z = p.response(r)[j];
#pragma unroll
            for (int i = 0; i < TOGETHER; i++)
                if (i0 + i < p.n) sum[i] += a[i] * z;
        }
#pragma unroll
        for (int i = 0; i < TOGETHER; i++)
            if (i0 + i < p.n) p.unknown[(size_t)(i0 + i) * p.R + j] = sum[i];
    }
}

/* as many rows or more: the Jacobian of all plans */
__device__ void step_by_values(const problem &p) {
    int n = p.n, R = p.R;
    for (int at = threadIdx.x; at < n * n; at += THREADS) {
        int i = at / n, k = at % n;
        if (k > i) continue;
        double v = 0;
#pragma unroll 4
        for (int r = 0; r < p.count; r++) v += (double)p.difference(r)[i] * p.difference(r)[k];
        p.S[at] = i == k ? v + p.rho : v;
    }
    factorise(p.S, n);
    for (int j = threadIdx.x; j < R; j += THREADS) {
        project(p, j);
        solve_column(p.S, p.unknown + j, n, R);
        for (int i = 0; i < n; i++)
            p.smooth[(size_t)i * R + j] = (float)p.unknown[(size_t)i * R + j];
    }
    __syncthreads();
    for (int at = threadIdx.x; at < n * n; at += THREADS) {
        int i = at / n, k = at % n;
        if (k > i) continue;
        double v = dot(p.smooth + (size_t)i * R, p.smooth + (size_t)k * R, R);
        p.S[at] = i == k ? v + p.gamma : v;
    }
    for (int i = threadIdx.x; i < n; i += THREADS)
        p.move[i] = -dot(p.smooth + (size_t)i * R, p.residual, R) -
                    p.gamma * ((double)p.mean[i] - p.start[i]);
    factorise(p.S, n);
    solve_together(p.S, p.move, n);
}

/* Residuals need no check of their own: one that is not finite makes its cost so. */
__global__ void __launch_bounds__(THREADS, 1) step_of_rows(cgs_plan_state s) {
    const cgs_gauss_newton_state &g = s.gn;
    int e = blockIdx.x, n = s.n, K = s.K, rows = g.per * g.kept;
    const before b(s, e);
    note_costs(s, e, b, K, s.cost + (size_t)e * K, s.plans + (size_t)e * K * n);
    note_average(s, e, b, K, s.cost + (size_t)e * K);
    __syncthreads();
    if (threadIdx.x == 0) s.turn[e]++;
    shrink_spread(s, e);
    if (rows == 0) return; /* the mean alone: nothing is known of other plans */
    float *row = g.row + (size_t)e * rows * (g.R + n);
    double *vector = g.vector + (size_t)e * (2 * rows + g.order + n);
    double *system = g.system + (size_t)e * 2 * g.order * g.order;
    problem p = {};
    p.row = row;
    p.count = g.per * (b.iteration + 1 < g.kept ? b.iteration + 1 : g.kept);
    p.R = g.R;
    p.n = n;
    p.width = g.R + n;
    p.gamma = g.gamma;
    p.residual = g.residual + (size_t)e * K * g.R;
    p.start = g.start + (size_t)e * n;
    p.mean = s.mean + (size_t)e * n;
    p.smooth = g.smooth + (size_t)e * g.order * g.R;
    p.unknown = g.unknown + (size_t)e * g.order * g.R;
    p.S = system;
    p.C = system + (size_t)g.order * g.order;
    p.x = vector + 2 * rows;
    p.move = p.x + g.order;
    add_rows(s, e, row + (size_t)(b.iteration % g.kept) * g.per * p.width);
    __syncthreads();
    scale(p, g, vector);
    if (p.count < n)
        step_by_rows(p);
    else
        step_by_values(p);
    for (int j = threadIdx.x; j < n; j += THREADS) p.mean[j] = (float)(p.mean[j] + p.move[j]);
}

} // namespace

extern "C" {

void cgs_cuda_gauss_newton(cgs_device *d, const cgs_plan_state *s) {
    step_of_rows<<<(unsigned)s->E, THREADS, 0, stream_of(d)>>>(*s);
    LAUNCHED(d, "a step of gn");
}

} /* extern "C" */

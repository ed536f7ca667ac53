/* refine.cu - the iterations of planners: candidates, their refinement, an Adam step.
 *
 * The arithmetic is that of plan/refine.c and plan/planner.c: sums over candidates run in double
 * and in the same order, one thread per sum, so that equal costs give equal plans.  This file is
 * compiled without fused multiply-add.  A CTA takes one episode, except where candidates are
 * drawn: inverting the normal distribution in double is the only work here worth spreading.
 * Sampled Gauss-Newton has a file of its own. */
#include "ops/cuda/normal.cuh"
#include "plan/cuda/costs.cuh"
#include "plan/cuda/gauss_newton.h"

namespace {

/* ranks are found by comparing all with all; costs and weights lie in shared memory */
enum { MOST_CANDIDATES = 4096, MOST_SHARED = MOST_CANDIDATES * 12 /* bytes */ };
enum { DRAWING = 64 /* threads for the filtered noise of a candidate */, MOST_FILTERED = 8192 };

/* a value of candidate k of episode e, that is not drawn: of the mean or of a kept elite */
__device__ bool is_known(const cgs_plan_state &s, size_t e, size_t k, size_t j, float *value) {
    bool elite = k && (int)k <= s.keep && s.turn[e] > 0;
    *value = elite ? s.elite[(e * s.keep + k - 1) * s.n + j] : s.mean[e * s.n + j];
    return elite || k == 0;
}

/* Where its noise is and which sign it has: that of the candidate, or of the one it mirrors. */
struct noise_of {
    uint64_t key, at;
    float sign;
    __device__ noise_of(const cgs_plan_state &s, size_t e, size_t k)
        : key(rng_at(s.stream[e], (s.solve[e] << 32) + s.turn[e])) {
        bool mirrored = s.mirror && k % 2 == 0;
        at = (uint64_t)(mirrored ? k - 1 : k) << 32;
        sign = mirrored ? -1 : 1;
    }
};

__global__ void __launch_bounds__(THREADS) draw_candidates(cgs_plan_state s) {
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x, n = (size_t)s.n;
    if (i >= (size_t)s.E * s.K * n) return;
    size_t j = i % n, row = i / n, k = row % s.K, e = row / s.K;
    float value;
    if (!is_known(s, e, k, j, &value)) {
        noise_of noise(s, e, k);
        value += s.spread[e * n + j] * (noise.sign * normal_at(noise.key, noise.at + j));
    }
    s.plans[i] = value;
}

/* A CTA has a candidate: its white noise, then the circular convolution with the filter. */
__global__ void __launch_bounds__(DRAWING) draw_filtered(cgs_plan_state s) {
    extern __shared__ float white[]; /* (n) */
    size_t n = (size_t)s.n, row = blockIdx.x, k = row % s.K, e = row / s.K;
    noise_of noise(s, e, k ? k : 1);
    for (size_t j = threadIdx.x; j < n; j += DRAWING) white[j] = normal_at(noise.key, noise.at + j);
    __syncthreads();
    for (size_t j = threadIdx.x; j < n; j += DRAWING) {
        float value, shaped = 0;
        int t = (int)j / s.channels, c = (int)j % s.channels, T = s.actions;
        if (!is_known(s, e, k, j, &value)) {
            for (int from = 0; from < T; from++)
                shaped += (float)(s.filter[(t - from + T) % T] * white[from * s.channels + c]);
            value += s.spread[e * n + j] * (noise.sign * shaped);
        }
        s.plans[row * n + j] = value;
    }
}

/* ---- refinements -------------------------------------------------------------------------------
 */

/* Costs into shared memory, and plans too where they fit (`staged`); returns where plans are. */
__device__ const float *stage(float *cost, float *staging, const cgs_plan_state &s, int e,
                              bool staged) {
    const float *plans = s.plans + (size_t)e * s.K * s.n;
    for (int k = threadIdx.x; k < s.K; k += THREADS) cost[k] = s.cost[(size_t)e * s.K + k];
    if (staged) {
#pragma unroll 8
        for (int i = threadIdx.x; i < s.K * s.n; i += THREADS) staging[i] = plans[i];
        plans = staging;
    }
    __syncthreads();
    return plans;
}

__global__ void __launch_bounds__(THREADS) refit_proposal(cgs_plan_state s, bool staged) {
    extern __shared__ __align__(16) unsigned char memory[];
    int e = blockIdx.x, K = s.K, M = s.elites, n = s.n;
    float *cost = (float *)memory;  /* (K) */
    int *order = (int *)(cost + K); /* (M) */
    const before b(s, e);
    const float *plans = stage(cost, (float *)(order + M), s, e, staged);
    for (int k = threadIdx.x; k < M; k += THREADS) order[k] = 0;
    note_costs(s, e, b, K, cost, plans);             /* has barriers */
    for (int k = threadIdx.x; k < K; k += THREADS) { /* a candidate's rank among all */
        float mine = cost[k];
        int rank = 0;
        for (int other = 0; other < K; other++)
            rank += cost[other] < mine || (cost[other] == mine && other < k);
        if (rank < M) order[rank] = k;
    }
    __syncthreads();
    note_average(s, e, b, K, cost);
    for (int j = threadIdx.x; j < n; j += THREADS) {
        double sum = 0, square = 0;
#pragma unroll 16
        for (int k = 0; k < M; k++) sum += plans[(size_t)order[k] * n + j];
        sum /= M;
#pragma unroll 16
        for (int k = 0; k < (M > 1 ? M : 0); k++) {
            double v = plans[(size_t)order[k] * n + j];
            square += (v - sum) * (v - sum);
        }
        s.mean[(size_t)e * n + j] = (float)sum;
        if (M > 1) s.spread[(size_t)e * n + j] = (float)sqrt(square / (M - 1));
    }
    for (int i = threadIdx.x; i < s.keep * n; i += THREADS)
        s.elite[(size_t)e * s.keep * n + i] = plans[(size_t)order[i / n] * n + i % n];
    if (threadIdx.x == 0) s.turn[e]++;
}

__global__ void __launch_bounds__(THREADS) reweight_proposal(cgs_plan_state s, bool staged) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ double total;
    int e = blockIdx.x, K = s.K, n = s.n;
    double *weight = (double *)memory;   /* (K) */
    float *cost = (float *)(weight + K); /* (K) */
    const before b(s, e);
    const float *plans = stage(cost, cost + K, s, e, staged);
    float lowest = cost[note_costs(s, e, b, K, cost, plans)];
    for (int k = threadIdx.x; k < K; k += THREADS)
        weight[k] = exp(-((double)cost[k] - lowest) / s.tau);
    __syncthreads();
    if (threadIdx.x == 0) {
        double sum = 0;
#pragma unroll 16
        for (int k = 0; k < K; k++) sum += weight[k];
        total = sum;
    }
    note_average(s, e, b, K, cost);
    __syncthreads();
    for (int k = threadIdx.x; k < K; k += THREADS) weight[k] /= total;
    __syncthreads();
    for (int j = threadIdx.x; j < n; j += THREADS) {
        double sum = 0;
#pragma unroll 16 /* loads in flight; the additions keep their order */
        for (int k = 0; k < K; k++) sum += weight[k] * plans[(size_t)k * n + j];
        s.mean[(size_t)e * n + j] = (float)sum;
    }
    shrink_spread(s, e);
    if (threadIdx.x == 0) s.turn[e]++;
}

__global__ void __launch_bounds__(THREADS) adam_step(cgs_plan_state s) {
    const double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
    int e = blockIdx.x, n = s.n;
    const before b(s, e);
    const float *grad = s.grad + (size_t)e * n;
    scan found(n);
    for (int j = threadIdx.x; j < n; j += THREADS) found.see(grad[j], j);
    note_costs(s, e, b, 1, s.cost + e, s.mean + (size_t)e * n);
    note_average(s, e, b, 1, s.cost + e);
    join_block(found); /* and everybody has copied the plan, should it be the best */
    if (threadIdx.x == 0 && found.bad < n && !b.bad && isfinite(s.cost[e])) {
        s.bad[2 * e] = b.iteration + 1;
        s.bad[2 * e + 1] = -1 - found.bad;
        s.bad_value[e] = grad[found.bad];
    }
    const double *rate = s.rates + 3 * (size_t)b.iteration;
    for (int j = threadIdx.x; j < n; j += THREADS) {
        size_t i = (size_t)e * n + j;
        double g = grad[j];
        float m = (float)(beta1 * s.m[i] + (1 - beta1) * g);
        float v = (float)(beta2 * s.v[i] + (1 - beta2) * g * g);
        s.m[i] = m;
        s.v[i] = v;
        s.mean[i] = (float)(s.mean[i] - rate[0] * (m / rate[1]) / (sqrt(v / rate[2]) + eps));
    }
    if (threadIdx.x == 0) s.turn[e]++;
}

/* shared memory beyond the usual limit has to be asked for, once */
template <class F> void allow(cgs_device *d, F kernel) {
    cgs_cuda_note(
        cgs_cuda_of(d),
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, MOST_SHARED),
        "shared memory of a planner");
}

/* adds the bytes of plans where they fit */
bool stages(const cgs_plan_state *s, size_t *bytes) {
    size_t plans = (size_t)s->K * s->n * sizeof(float);
    if (*bytes + plans > MOST_SHARED) return false;
    *bytes += plans;
    return true;
}

void sample(cgs_device *d, const cgs_plan_state *s) {
    size_t values = (size_t)s->E * s->K * s->n;
    if (s->filter) {
        unsigned rows = (unsigned)s->E * (unsigned)s->K;
        draw_filtered<<<rows, DRAWING, s->n * sizeof(float), stream_of(d)>>>(*s);
        LAUNCHED(d, "filtered candidates");
        return;
    }
    draw_candidates<<<blocks_for(values, THREADS), THREADS, 0, stream_of(d)>>>(*s);
    LAUNCHED(d, "candidates");
}

void refit(cgs_device *d, const cgs_plan_state *s) {
    size_t bytes = (size_t)s->K * sizeof(float) + (size_t)s->elites * sizeof(int);
    bool staged = stages(s, &bytes);
    allow(d, refit_proposal);
    refit_proposal<<<(unsigned)s->E, THREADS, bytes, stream_of(d)>>>(*s, staged);
    LAUNCHED(d, "refit");
}

void reweight(cgs_device *d, const cgs_plan_state *s) {
    size_t bytes = (size_t)s->K * (sizeof(double) + sizeof(float));
    bool staged = stages(s, &bytes);
    allow(d, reweight_proposal);
    reweight_proposal<<<(unsigned)s->E, THREADS, bytes, stream_of(d)>>>(*s, staged);
    LAUNCHED(d, "reweight");
}

void adam(cgs_device *d, const cgs_plan_state *s) {
    adam_step<<<(unsigned)s->E, THREADS, 0, stream_of(d)>>>(*s);
    LAUNCHED(d, "adam of a plan");
}

} // namespace

extern "C" {

const cgs_planner_kernels cgs_cuda_planner_kernels = {
    MOST_CANDIDATES, MOST_FILTERED, sample, refit, reweight, adam, cgs_cuda_gauss_newton};

} /* extern "C" */

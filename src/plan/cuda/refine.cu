/* refine.cu - the iterations of planners: candidates, their refinement, an Adam step.
 *
 * The arithmetic is that of plan/refine.c and plan/planner.c: sums over candidates run in double
 * and in the same order, one thread per sum, so that equal costs give equal plans.  This file is
 * compiled without fused multiply-add.  A CTA takes one episode, except where candidates are
 * drawn: inverting the normal distribution in double is the only work here worth spreading. */
#include "ops/cuda/normal.cuh"

extern "C" {
#include "plan/planner_kernels.h"
}

namespace {

/* ranks are found by comparing all with all; costs and weights lie in shared memory */
enum { THREADS = 256, MOST_CANDIDATES = 4096, MOST_SHARED = MOST_CANDIDATES * 12 /* bytes */ };

__global__ void __launch_bounds__(THREADS) draw_candidates(cgs_plan_state s) {
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x, n = (size_t)s.n;
    if (i >= (size_t)s.E * s.K * n) return;
    size_t j = i % n, row = i / n, k = row % s.K, e = row / s.K;
    float value = s.mean[e * n + j];
    if (k) {
        uint64_t key = rng_at(s.stream[e], (s.solve[e] << 32) + s.turn[e]);
        value += s.spread[e * n + j] * normal_at(key, ((uint64_t)k << 32) + j);
    }
    s.plans[i] = value;
}

/* ---- one value out of a CTA ------------------------------------------------------------------ */

/* The smallest value and its index, and the first index of one that is not finite; where there is
 * none, the number of values. */
struct scan {
    float value;
    int index, bad;
    __device__ scan(int n) : value(INFINITY), index(n), bad(n) {}
    __device__ void see(float v, int i) {
        if (!isfinite(v) && i < bad) bad = i;
        if (v < value) {
            value = v;
            index = i;
        }
    }
    __device__ void join(float v, int i, int b) {
        if (v < value || (v == value && i < index)) {
            value = v;
            index = i;
        }
        if (b < bad) bad = b;
    }
};

/* what all threads saw; every thread gets it */
__device__ void join_block(scan &mine) {
    __shared__ float values[THREADS / 32];
    __shared__ int indices[THREADS / 32], bad[THREADS / 32];
    for (int o = 16; o > 0; o /= 2)
        mine.join(__shfl_xor_sync(0xffffffffu, mine.value, o),
                  __shfl_xor_sync(0xffffffffu, mine.index, o),
                  __shfl_xor_sync(0xffffffffu, mine.bad, o));
    __syncthreads(); /* the last results were read */
    if (threadIdx.x % 32 == 0) {
        values[threadIdx.x / 32] = mine.value;
        indices[threadIdx.x / 32] = mine.index;
        bad[threadIdx.x / 32] = mine.bad;
    }
    __syncthreads();
    for (int w = 0; w < THREADS / 32; w++) mine.join(values[w], indices[w], bad[w]);
}

/* what an episode has before an iteration, asked for at once */
struct before {
    int iteration;
    bool bad;
    float best;
    __device__ before(const cgs_plan_state &s, int e)
        : iteration((int)s.turn[e]), bad(s.bad[2 * e] != 0), best(s.best_cost[e]) {}
};

/* What every planner does with the costs of an episode: cost and plans are shared or global memory
 * of this episode.  Returns the candidate of lowest cost. */
__device__ int note_costs(const cgs_plan_state &s, int e, const before &b, int K, const float *cost,
                          const float *plans) {
    scan found(K);
    for (int k = threadIdx.x; k < K; k += THREADS) found.see(cost[k], k);
    join_block(found);
    int index = found.index < K ? found.index : 0; /* 0: nothing is finite */
    bool better = b.iteration == 0 || found.value < b.best;
    if (better)
        for (int j = threadIdx.x; j < s.n; j += THREADS)
            s.best_plan[(size_t)e * s.n + j] = plans[(size_t)index * s.n + j];
    if (threadIdx.x == 0) {
        if (found.bad < K && !b.bad) {
            s.bad[2 * e] = b.iteration + 1;
            s.bad[2 * e + 1] = found.bad;
            s.bad_value[e] = cost[found.bad];
        }
        if (better) s.best_cost[e] = found.value;
        s.low[(size_t)b.iteration * s.E + e] = found.value;
    }
    return index;
}

/* The mean cost: a long sum by one thread, of a warp that mostly has nothing else to do by then. */
__device__ void note_average(const cgs_plan_state &s, int e, const before &b, int K,
                             const float *cost) {
    if (threadIdx.x != THREADS - 1) return;
    double sum = 0;
#pragma unroll 16 /* loads in flight; the additions keep their order */
    for (int k = 0; k < K; k++) sum += cost[k];
    s.average[(size_t)b.iteration * s.E + e] = (float)(sum / K);
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

const cgs_planner_kernels cgs_cuda_planner_kernels = {MOST_CANDIDATES, sample, refit, reweight,
                                                      adam};

} /* extern "C" */

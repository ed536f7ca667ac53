/* planning.cu - the iterations of planners: candidates, their refinement, an Adam step.
 *
 * The arithmetic is that of plan/refine.c and plan/planner.c: sums over candidates run in double
 * and in the same order, one thread a sum, so that equal costs give equal plans.  This file is
 * compiled without fused multiply-add.  A block takes one episode, except where candidates are
 * drawn: inverting the normal distribution in double is the only work here worth spreading. */
#include "ops/cuda/normal.cuh"

extern "C" {
#include "ops/cuda/planning.h"
}

namespace {

enum { THREADS = 256 };

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

/* ---- one value out of a block -------------------------------------------------------------- */

/* the smallest (value, index); every thread gets it */
__device__ void block_least(float &value, int &index, float *values, int *indices) {
    int t = threadIdx.x;
    values[t] = value;
    indices[t] = index;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (t < half && (values[t + half] < values[t] ||
                         (values[t + half] == values[t] && indices[t + half] < indices[t]))) {
            values[t] = values[t + half];
            indices[t] = indices[t + half];
        }
    }
    __syncthreads();
    value = values[0];
    index = indices[0];
    __syncthreads();
}

/* what every planner does with the costs of an episode: cost, plans and room are shared or
 * global memory of this episode.  Returns the candidate of lowest cost. */
__device__ int note_costs(const cgs_plan_state &s, int e, int K, const float *cost,
                          const float *plans, float *values, int *indices) {
    int iteration = (int)s.turn[e], index = K;
    float value = INFINITY;
    /* the first candidate without a finite cost: compared by index alone */
    float none = 0;
    for (int k = threadIdx.x; k < K; k += THREADS)
        if (!isfinite(cost[k]) && k < index) index = k;
    block_least(none, index, values, indices);
    if (index < K && threadIdx.x == 0 && !s.bad[2 * e]) {
        s.bad[2 * e] = iteration + 1;
        s.bad[2 * e + 1] = index;
        s.bad_value[e] = cost[index];
    }
    index = K;
    for (int k = threadIdx.x; k < K; k += THREADS)
        if (cost[k] < value) {
            value = cost[k];
            index = k;
        }
    block_least(value, index, values, indices);
    if (index >= K) index = 0; /* nothing is finite */
    bool better = iteration == 0 || value < s.best_cost[e];
    __syncthreads(); /* best_cost was read by all */
    if (better)
        for (int j = threadIdx.x; j < s.n; j += THREADS)
            s.best_plan[(size_t)e * s.n + j] = plans[(size_t)index * s.n + j];
    if (threadIdx.x == THREADS - 1) { /* of a warp that has no candidates to rank, mostly */
        double sum = 0;
#pragma unroll 16 /* loads in flight; the additions keep their order */
        for (int k = 0; k < K; k++) sum += cost[k];
        if (better) s.best_cost[e] = value;
        s.low[(size_t)iteration * s.E + e] = value;
        s.average[(size_t)iteration * s.E + e] = (float)(sum / K);
    }
    return index;
}

/* ---- refinements ------------------------------------------------------------------------------
 */

__global__ void __launch_bounds__(THREADS) refit_proposal(cgs_plan_state s) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ float values[THREADS];
    __shared__ int indices[THREADS];
    int e = blockIdx.x, K = s.K, M = s.elites, n = s.n;
    float *cost = (float *)memory;  /* (K) */
    int *order = (int *)(cost + K); /* (M) */
    const float *plans = s.plans + (size_t)e * K * n;
    for (int k = threadIdx.x; k < K; k += THREADS) cost[k] = s.cost[(size_t)e * K + k];
    for (int k = threadIdx.x; k < M; k += THREADS) order[k] = 0;
    __syncthreads();
    note_costs(s, e, K, cost, plans, values, indices);
    for (int k = threadIdx.x; k < K; k += THREADS) { /* a candidate's rank among all */
        float mine = cost[k];
        int rank = 0;
        for (int other = 0; other < K; other++)
            rank += cost[other] < mine || (cost[other] == mine && other < k);
        if (rank < M) order[rank] = k;
    }
    __syncthreads();
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

__global__ void __launch_bounds__(THREADS) reweight_proposal(cgs_plan_state s) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ float values[THREADS];
    __shared__ int indices[THREADS];
    __shared__ double total;
    int e = blockIdx.x, K = s.K, n = s.n;
    double *weight = (double *)memory;   /* (K) */
    float *cost = (float *)(weight + K); /* (K) */
    const float *plans = s.plans + (size_t)e * K * n;
    for (int k = threadIdx.x; k < K; k += THREADS) cost[k] = s.cost[(size_t)e * K + k];
    __syncthreads();
    float lowest = cost[note_costs(s, e, K, cost, plans, values, indices)];
    for (int k = threadIdx.x; k < K; k += THREADS)
        weight[k] = exp(-((double)cost[k] - lowest) / s.tau);
    __syncthreads();
    if (threadIdx.x == 0) {
        double sum = 0;
#pragma unroll 16
        for (int k = 0; k < K; k++) sum += weight[k];
        total = sum;
    }
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
    __shared__ float values[THREADS];
    __shared__ int indices[THREADS];
    const double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
    int e = blockIdx.x, n = s.n, iteration = (int)s.turn[e], index = n;
    float none = 0;
    note_costs(s, e, 1, s.cost + e, s.mean + (size_t)e * n, values, indices);
    const float *grad = s.grad + (size_t)e * n;
    for (int j = threadIdx.x; j < n; j += THREADS)
        if (!isfinite(grad[j]) && j < index) index = j;
    block_least(none, index, values, indices);
    if (index < n && threadIdx.x == 0 && !s.bad[2 * e]) {
        s.bad[2 * e] = iteration + 1;
        s.bad[2 * e + 1] = -1 - index;
        s.bad_value[e] = grad[index];
    }
    const double *rate = s.rates + 3 * (size_t)iteration;
    for (int j = threadIdx.x; j < n; j += THREADS) {
        size_t i = (size_t)e * n + j;
        double g = grad[j];
        float m = (float)(beta1 * s.m[i] + (1 - beta1) * g);
        float v = (float)(beta2 * s.v[i] + (1 - beta2) * g * g);
        s.m[i] = m;
        s.v[i] = v;
        s.mean[i] = (float)(s.mean[i] - rate[0] * (m / rate[1]) / (sqrt(v / rate[2]) + eps));
    }
    __syncthreads(); /* every thread has read the turn */
    if (threadIdx.x == 0) s.turn[e]++;
}

/* ---- in and out of rollouts
 * ----------------------------------------------------------------------- */

struct gather_rows {
    cgs_plan_run r;
    __device__ size_t episode(int group) const { return r.e0 + (group < r.n ? group : r.n - 1); }
    template <int V> __device__ void at(size_t i) const {
        size_t T = (size_t)(r.C - 1 + r.H) * r.A, past = (size_t)(r.C - 1) * r.A;
        size_t n = (size_t)r.H * r.A, actions = (size_t)r.G * r.part * T;
        size_t context = (size_t)r.C * r.D, contexts = (size_t)r.G * context;
        if (i < actions) {
            int row = (int)(i / T), own = row % r.part;
            size_t at = i % T, e = episode(row / r.part);
            size_t k = r.k0 + (own < r.count ? own : r.count - 1);
            r.actions[i] =
                at < past ? r.past[e * past + at] : r.plans[(e * r.K + k) * n + at - past];
        } else if (i < actions + contexts) {
            i -= actions;
            r.z_run[i] = r.z[episode((int)(i / context)) * context + i % context];
        } else {
            i -= actions + contexts;
            r.goal_run[i] = r.goal[episode((int)(i / r.D)) * r.D + i % r.D];
        }
    }
};

struct take_tails {
    float *to;
    const float *from;
    size_t T, n;
    float factor;
    template <int V> __device__ void at(size_t i) const {
        to[i] = factor * from[i / n * T + T - n + i % n];
    }
};

struct blend_parts {
    float *to;
    const float *part[2];
    float weight[2];
    size_t run, valid, stride;
    template <int V> __device__ void at(size_t i) const {
        size_t from = i / valid * run + i % valid;
        float sum = weight[0] * part[0][from];
        if (part[1]) sum += weight[1] * part[1][from];
        to[i / valid * stride + i % valid] = sum;
    }
};

/* shared memory beyond the usual limit has to be asked for, once */
template <class F> void allow(cgs_device *d, F kernel) {
    cgs_cuda_note(cgs_cuda_of(d),
                  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       CGS_CUDA_MOST_CANDIDATES * 12),
                  "shared memory of a planner");
}

} // namespace

extern "C" {

void cgs_cuda_plan_sample(cgs_device *d, const cgs_plan_state *s) {
    size_t values = (size_t)s->E * s->K * s->n;
    draw_candidates<<<blocks_for(values, THREADS), THREADS, 0, stream_of(d)>>>(*s);
    LAUNCHED(d, "candidates");
}

void cgs_cuda_plan_refit(cgs_device *d, const cgs_plan_state *s) {
    size_t bytes = (size_t)s->K * sizeof(float) + (size_t)s->elites * sizeof(int);
    allow(d, refit_proposal);
    refit_proposal<<<(unsigned)s->E, THREADS, bytes, stream_of(d)>>>(*s);
    LAUNCHED(d, "refit");
}

void cgs_cuda_plan_reweight(cgs_device *d, const cgs_plan_state *s) {
    size_t bytes = (size_t)s->K * (sizeof(double) + sizeof(float));
    allow(d, reweight_proposal);
    reweight_proposal<<<(unsigned)s->E, THREADS, bytes, stream_of(d)>>>(*s);
    LAUNCHED(d, "reweight");
}

void cgs_cuda_plan_adam(cgs_device *d, const cgs_plan_state *s) {
    adam_step<<<(unsigned)s->E, THREADS, 0, stream_of(d)>>>(*s);
    LAUNCHED(d, "adam of a plan");
}

void cgs_cuda_plan_gather(cgs_device *d, const cgs_plan_run *r) {
    size_t values = (size_t)r->G * r->part * (r->C - 1 + r->H) * r->A;
    if (r->z_run) values += (size_t)r->G * (r->C + 1) * r->D;
    launch_each(d, values, false, "gathering plans", gather_rows{*r});
}

void cgs_cuda_plan_blend(cgs_device *d, float *to, const float *const part[2],
                         const float weight[2], int rows, int run, int valid, int stride) {
    launch_each(d, (size_t)rows * valid, false, "costs of plans",
                blend_parts{to,
                            {part[0], part[1]},
                            {weight[0], weight[1]},
                            (size_t)run,
                            (size_t)valid,
                            (size_t)stride});
}

void cgs_cuda_plan_tails(cgs_device *d, float *to, const float *from, int valid, int T, int n,
                         float factor) {
    launch_each(d, (size_t)valid * n, false, "gradients of plans",
                take_tails{to, from, (size_t)T, (size_t)n, factor});
}

} /* extern "C" */

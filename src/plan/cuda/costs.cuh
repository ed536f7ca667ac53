/* costs.cuh - what every planner does with the costs of an iteration, by the CTA of an episode:
 * lowest, mean, best plan, and the first that is not finite. */
#ifndef CGS_PLAN_CUDA_COSTS_CUH
#define CGS_PLAN_CUDA_COSTS_CUH

#include "ops/cuda/kernels.cuh"

extern "C" {
#include "plan/planner_kernels.h"
}

namespace {

enum { THREADS = 256 };

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

/* What shrinks the proposal after an iteration, if something does. */
__device__ void shrink_spread(const cgs_plan_state &s, int e) {
    if (s.decay >= 1) return;
    for (int j = threadIdx.x; j < s.n; j += THREADS) s.spread[(size_t)e * s.n + j] *= s.decay;
}

} // namespace

#endif /* CGS_PLAN_CUDA_COSTS_CUH */

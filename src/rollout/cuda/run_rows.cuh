/* run_rows.cuh - which plan and which actions a row of a run stands for. */
#ifndef CGS_ROLLOUT_CUDA_RUN_ROWS_CUH
#define CGS_ROLLOUT_CUDA_RUN_ROWS_CUH

#include "ops/cuda/kernels.cuh"

extern "C" {
#include "rollout/rollout_kernels.h"
}

static __device__ __forceinline__ size_t episode_of(const cgs_rollout_run &r, int group) {
    return r.e0 + (group < r.n ? group : r.n - 1);
}

/* number a of the action of a token, of which every row has C - 1 + H */
static __device__ __forceinline__ float action_of(const cgs_rollout_run &r, size_t token, int a) {
    int T = r.C - 1 + r.H, row = (int)(token / T), t = (int)(token % T), own = row % r.part;
    size_t e = episode_of(r, row / r.part), k = r.k0 + (own < r.count ? own : r.count - 1);
    if (t < r.C - 1) return r.past[(e * (r.C - 1) + t) * r.A + a];
    return r.plans[((e * r.K + k) * r.H + t - (r.C - 1)) * r.A + a];
}

#endif /* CGS_ROLLOUT_CUDA_RUN_ROWS_CUH */

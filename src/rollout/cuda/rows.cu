/* rows.cu - rows of plans into a rollout, costs and gradients out of it; and the table of what this
 * backend does for rollouts.
 *
 * Compiled without fused multiply-add: costs of several parts are summed as on the host. */
#include "rollout/cuda/run_rows.cuh"

extern "C" {
#include "rollout/cuda/predictor.h"
}

namespace {

struct gather_rows {
    cgs_rollout_run r;
    template <int V> __device__ void at(size_t i) const {
        size_t actions = (size_t)r.G * r.part * (r.C - 1 + r.H) * r.A;
        size_t context = (size_t)r.C * r.D, contexts = (size_t)r.G * context;
        if (i < actions) {
            r.actions[i] = action_of(r, i / r.A, (int)(i % r.A));
        } else if (i < actions + contexts) {
            i -= actions;
            r.z_run[i] = r.z[episode_of(r, (int)(i / context)) * context + i % context];
        } else {
            i -= actions + contexts;
            r.goal_run[i] = r.goal[episode_of(r, (int)(i / r.D)) * r.D + i % r.D];
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

struct take_residuals {
    cgs_rollout_run r;
    cgs_residual_part p;
    template <int V> __device__ void at(size_t i) const {
        size_t j = i % p.width, k = i / p.width % r.count, g = i / p.width / r.count;
        size_t row = (r.e0 + g) * r.K + r.k0 + k;
        float now = p.now[(g * r.part + k) * p.stride + j], then = p.then[g * p.width + j];
        p.to[row * p.R + p.at + j] = p.root * (now - then);
    }
};

void gather(cgs_device *d, const cgs_rollout_run *r) {
    size_t values = (size_t)r->G * r->part * (r->C - 1 + r->H) * r->A;
    if (r->z_run) values += (size_t)r->G * (r->C + 1) * r->D;
    launch_each(d, values, false, "gathering plans", gather_rows{*r});
}

void blend(cgs_device *d, float *to, const float *const part[2], const float weight[2], int rows,
           int run, int valid, int stride) {
    launch_each(d, (size_t)rows * valid, false, "costs of plans",
                blend_parts{to,
                            {part[0], part[1]},
                            {weight[0], weight[1]},
                            (size_t)run,
                            (size_t)valid,
                            (size_t)stride});
}

void residuals(cgs_device *d, const cgs_rollout_run *r, const cgs_residual_part *p) {
    launch_each(d, (size_t)r->n * r->count * p->width, false, "residuals of plans",
                take_residuals{*r, *p});
}

void tails(cgs_device *d, float *to, const float *from, int valid, int T, int n, float factor) {
    launch_each(d, (size_t)valid * n, false, "gradients of plans",
                take_tails{to, from, (size_t)T, (size_t)n, factor});
}

} // namespace

extern "C" {

const cgs_rollout_kernels cgs_cuda_rollout_kernels = {gather,
                                                      blend,
                                                      residuals,
                                                      tails,
                                                      cgs_cuda_actions_fit,
                                                      cgs_cuda_actions_embed,
                                                      cgs_cuda_actions_back,
                                                      cgs_cuda_predictor_open,
                                                      cgs_cuda_predictor_run,
                                                      cgs_cuda_predictor_close};

} /* extern "C" */

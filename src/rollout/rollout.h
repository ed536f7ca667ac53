/* rollout.h - a model made ready for planning: plans in, costs, gradients or latents out.
 *
 * A rollout holds context latents, executed action blocks and goals, and is what a planner
 * (plan/planner.h) is given as its cost or gradient function.  It owns a tape of a fixed size and
 * runs it as often as the work needs, the last time with unused rows.  So all memory is planned at
 * creation, and the bits of a result depend on the configuration, never on how many episodes are
 * planned for at the same time (docs/numerics.md: what else they depend on).
 *
 * The model is borrowed, is not changed, and must outlive it. */
#ifndef CGS_ROLLOUT_ROLLOUT_H
#define CGS_ROLLOUT_ROLLOUT_H

#include "model/lewm.h"
#include "plan/planner.h"

typedef struct cgs_rollout_config {
    int episodes;  /* E, at most, whose contexts are held */
    int declared;  /* episodes that a GPU chooses its kernels for, at least E; 0: E */
    int context;   /* C latents known at the start, 1 ... history */
    int horizon;   /* H action blocks in a plan */
    int samples;   /* K candidates per episode in one call */
    bool gradient; /* K = 1, and gradients by the plan */
    bool residual; /* residuals of plans too */
    bool jacobian; /* K = 1, residuals and their derivatives by the plan */
    int group;     /* episodes in one run of the tape; 0: what is efficient for many.  1 answers
                    * a lone episode soonest */
    cgs_dtype act;
} cgs_rollout_config;

typedef struct cgs_rollout cgs_rollout;

cgs_status cgs_rollout_create(cgs_rollout **out, cgs_lewm *m, const cgs_rollout_config *c);
cgs_status cgs_rollout_create_any(cgs_rollout **out, cgs_model *m, const cgs_rollout_config *c);
void cgs_rollout_destroy(cgs_rollout *r);

/* What the next calls plan for, copied.
 *   z     (E, C, D)      context latents, the present one last
 *   past  (E, C - 1, A)  standardised action blocks executed between them; NULL when C = 1
 *   goal  (E, D)         NULL: only latents or a cost function of one's own are asked for */
cgs_status cgs_rollout_set(cgs_rollout *r, int E, const float *z, const float *past,
                           const float *goal);

/* Replaces the squared terminal error: z (n, H, D) are the imagined latents of n plans
 * (n, H, A) of one episode.  NULL brings the error back.  Not for gradients. */
typedef cgs_status (*cgs_rollout_cost_fn)(void *user, int episode, const float *plans,
                                          const float *z, int n, float *cost);
void cgs_rollout_use_cost(cgs_rollout *r, cgs_rollout_cost_fn fn, void *user);

/* The same for a cost that is a sum of squares, as way-points and penalties of actions are: the
 * function gives residuals (n, R), the cost is the sum of their squares.  R: at most the width of
 * the model.  NULL brings the error back.  For rollouts made with `residual`. */
typedef cgs_status (*cgs_rollout_residual_fn)(void *user, int episode, const float *plans,
                                              const float *z, int n, float *residual);
cgs_status cgs_rollout_use_residual(cgs_rollout *r, cgs_rollout_residual_fn fn, int R, void *user);

/* A cgs_plan_cost_fn; ctx is the cgs_rollout.  cost = |last latent - goal|^2, or the weighted sum
 * over the parts that the model compares. */
cgs_status cgs_rollout_cost(void *ctx, const float *plans, int E, int K, float *cost);
/* A cgs_plan_gradient_fn of the same cost. */
cgs_status cgs_rollout_gradient(void *ctx, const float *plans, int E, float *cost, float *grad);
/* A cgs_plan_residual_fn of the same cost: the differences of the compared parts from the goal's,
 * each part times the root of its weight.  residual: (E*K, cgs_rollout_residuals). */
cgs_status cgs_rollout_residual(void *ctx, const float *plans, int E, int K, float *cost,
                                float *residual);
/* A cgs_plan_jacobian_fn of the same residuals, by forward mode (ops/tape.h), or
 * by reverse mode on devices that do not have it. */
cgs_status cgs_rollout_jacobian(void *ctx, const float *plans, int E, float *cost, float *residual,
                                float *jacobian);
/* Values in a residual; 0 where there are none: the rollout was not made for them, or uses a cost
 * function of one's own. */
int cgs_rollout_residuals(const cgs_rollout *r);
/* The imagined latents themselves: plans (E*K, H, A) -> z (E*K, H, D). */
cgs_status cgs_rollout_imagine(cgs_rollout *r, const float *plans, int E, int K, float *z);

/* The same two functions inside a device's graphs, for cgs_plan_problem; NULL where the device
 * has none, a cost function of one's own is in use, or the environment says CGS_DEVICE_LOOP=0. */
const cgs_device_scorer *cgs_rollout_device_scorer(const cgs_rollout *r);
/* Whether costs come from one fused kernel there, not from the tape. */
bool cgs_rollout_fused(const cgs_rollout *r);

size_t cgs_rollout_memory(const cgs_rollout *r); /* bytes of its tape */
cgs_tape *cgs_rollout_tape(const cgs_rollout *r);

#endif /* CGS_ROLLOUT_ROLLOUT_H */

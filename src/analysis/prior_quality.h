/* prior_quality.h - how close a matched prior comes to the goal before any search:
 *
 *   rho = |F_H(prior) - z_g| / |F_H(0) - z_g|
 *
 * F_H is the predicted end of a plan of H action blocks, z_g the latent of the goal.  Dividing by
 * the distance that doing nothing leaves makes representations comparable: 0 is the goal itself, 1
 * is no better than doing nothing.  Measured at the first solve of the starts of an evaluation with
 * the same seeds.
 *
 * Where the goal is the frame after the plan's last action, the recorded plan is one that the prior
 * might have given: how often it lies within the prior's central intervals says whether the spread
 * is right (coverage), per value of a plan. */
#ifndef CGS_ANALYSIS_PRIOR_QUALITY_H
#define CGS_ANALYSIS_PRIOR_QUALITY_H

#include <cJSON.h>

#include "model/prior.h"
#include "plan/planner.h"
#include "rollout/loaded_model.h"

/* What doing nothing means: no control (zeros as recorded, where gradient descent begins), or the
 * mean action (zeros after standardisation, where sampling begins). */
typedef enum cgs_nothing { CGS_NOTHING_CONTROL, CGS_NOTHING_MEAN } cgs_nothing;
cgs_status cgs_nothing_parse(cgs_nothing *out, const char *name); /* "control" or "mean" */

/* rho of E plans (E, n) under a cost that is a multiple of |F_H - z_g|^2; nothing: (n) */
cgs_status cgs_prior_ratios(cgs_plan_cost_fn cost, void *ctx, const float *plan,
                            const float *nothing, int E, int n, double *rho);

typedef struct cgs_prior_quality_options {
    const char *const *models;
    int model_count;
    const char *data, *env;
    const uint64_t *seeds;
    int seed_count;
    int episodes;    /* starts per seed: 50 */
    int goal_offset; /* 25 */
    bool held_out;   /* starts from episodes that no model trained on */
    cgs_nothing nothing;
    cgs_prior_kind kind;
    const char *device, *precision;
    int threads;
    bool (*progress)(void *user, const char *what, double done, double total);
    void *user;
} cgs_prior_quality_options;

/* Seeds 0, 1 and 42. */
cgs_prior_quality_options cgs_prior_quality_defaults(void);

/* Writes one document, prior-quality.json, which the caller deletes. */
cgs_status cgs_prior_quality_run(cJSON **doc, const cgs_prior_quality_options *o,
                                 const char *command);

#endif /* CGS_ANALYSIS_PRIOR_QUALITY_H */

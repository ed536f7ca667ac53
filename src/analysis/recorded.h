/* recorded.h - evaluation without a simulator: windows of recorded episodes say how well a model
 * predicts and its planners plan, for robots that cannot be put back.
 *
 * A window is a frame and the H action blocks that were recorded after it, with the frames between
 * them.  Predictions: from the first frame and the recorded actions to each later frame, beside
 * three predictors that know little (the first latent stays; the mean latent; the first latent plus
 * a linear function of the actions).  Plans: from the first frame to the last as the goal; the plan
 * is compared with the recorded actions, and what the model imagines under it with the recorded
 * latents.  Many plans lead to a goal, so recovered actions are a sufficient sign and no necessary
 * one; the sums of actions over the plan say more where only they matter.
 *
 * Windows are of episodes that the model never trained on, where its card tells.  Otherwise every
 * second episode is scored and the others fit the simple predictors. */
#ifndef CGS_ANALYSIS_RECORDED_H
#define CGS_ANALYSIS_RECORDED_H

#include <cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"

typedef struct cgs_recorded_options {
    const char *const *models; /* (model_count) directories */
    int model_count;
    const char *data;
    const char *const *planners; /* (planner_count) */
    int planner_count;
    char *const *settings; /* (setting_count) "plan.KEY=VALUE" */
    int setting_count;
    int samples, iters, gd_steps, elites, horizon;
    double tau;  /* 0: what is known, or by effective sample size; CGS_TAU_MEASURED: by curvature */
    int windows; /* scored, of each model */
    uint64_t seed;
    const char *device, *precision; /* precision NULL: as the model was trained */
    int threads;
    bool (*progress)(void *user, const char *what, double done, double total);
    void *user;
} cgs_recorded_options;

/* Writes one document, which the caller deletes. */
cgs_status cgs_recorded_run(cJSON **doc, const cgs_recorded_options *o, const char *command);

#endif /* CGS_ANALYSIS_RECORDED_H */

/* curvature.c - see curvature.h. */
#include "eval/curvature.h"

#include "core/log.h"
#include "eval/shared_starts.h"
#include "eval/start_states.h"
#include "eval/temperature.h"
#include "plan/curvature.h"
#include "rollout/rollout.h"

enum { STARTS = 32, PAIRS = 8 };

cgs_status cgs_model_curvature_at(double *curvature, const cgs_loaded_model *s,
                                  const cgs_plan_config *p, const float *z, const float *goal,
                                  int E) {
    cgs_rollout_config c = {.episodes = E,
                            .context = 1,
                            .horizon = p->H,
                            .samples = 2 * PAIRS + 1,
                            .residual = true,
                            .act = s->act};
    cgs_rollout *r;
    CGS_TRY(cgs_rollout_create_any(&r, s->model, &c));
    cgs_status rc = cgs_rollout_set(r, E, z, NULL, goal);
    cgs_plan_problem q = {
        .E = E, .residual = cgs_rollout_residual, .R = cgs_rollout_residuals(r), .ctx = r};
    if (rc == CGS_OK) rc = cgs_plan_curvature(curvature, p, &q, PAIRS);
    cgs_rollout_destroy(r);
    return rc;
}

cgs_status cgs_curvature_tau(cgs_plan_config *p, cgs_status measured, double curvature,
                             const cgs_loaded_model *s) {
    if (measured == CGS_ENUMERIC) {
        cgs_log(CGS_WARN, "%s: %s; the temperature follows the effective sample size", s->dir,
                cgs_last_error());
        return cgs_choose_tau(p, 0, s->model, "");
    }
    if (measured == CGS_OK) p->tau = (float)cgs_plan_curvature_tau(p, curvature);
    return measured;
}

/* without an environment rows that were not rendered cannot be drawn: back to one that was */
static void at_images(cgs_starts *s, int every) {
    for (int i = 0; i < s->count; i++) {
        int64_t after = s->start[i].step % every;
        s->start[i].step -= after;
        s->start[i].row -= after;
    }
}

cgs_status cgs_model_curvature(double *curvature, const cgs_loaded_model *s, cgs_dataset *data,
                               const cgs_env_class *env, const cgs_plan_config *p) {
    cgs_plan_config c = *p;
    cgs_starts starts;
    cgs_start_states cases = {0};
    c.A = cgs_model_action_block(s->model);
    c.seed = 0;
    cgs_start_rule rule = {.count = STARTS, .goal_offset = p->H * s->model->frameskip};
    cgs_status rc = cgs_shared_starts(&starts, s, 1, cgs_dataset_source(data), &rule);
    if (rc == CGS_OK && !env) at_images(&starts, cgs_dataset_source(data)->pixels_every);
    if (rc == CGS_OK)
        rc = cgs_start_states_build(&cases, data, env, &starts, s->encoder, s->model, &s->scale,
                                    &s->proprio, 1);
    if (rc == CGS_OK)
        rc = cgs_model_curvature_at(curvature, s, &c, cases.z, cases.goal, cases.count);
    cgs_start_states_free(&cases);
    cgs_starts_free(&starts);
    return rc;
}

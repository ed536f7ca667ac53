/* solver.h - a planner with the rollouts that it plans through: shared by the closed loop
 * (episode.h) and the agent of the public API.
 *
 *   cgs_solver_create       the planner, and its memory on the device
 *   cgs_solver_add_context  rollouts, for each number of frames that solves will be given
 *   cgs_solver_start        the initial plan of the search
 *   cgs_solver_solve
 *   cgs_solver_destroy */
#ifndef CGS_EVAL_SOLVER_H
#define CGS_EVAL_SOLVER_H

#include "model/prior.h"
#include "plan/planners.h"
#include "rollout/loaded_model.h"
#include "rollout/rollout.h"

#define CGS_CONTEXT_MAX 16 /* as model.history allows */

typedef struct cgs_solver_config {
    cgs_model *model;
    cgs_prior *prior; /* for the planners that need one */
    cgs_action_scale scale;
    cgs_plan_config plan;
    int episodes; /* E, at most */
    int declared; /* cgs_rollout_config.declared */
    int group;    /* cgs_rollout_config.group */
    cgs_dtype act;
} cgs_solver_config;

typedef struct cgs_solver {
    cgs_solver_config config;
    const cgs_planner_kind *kind;
    cgs_planner *planner;
    cgs_rollout *rollout[CGS_CONTEXT_MAX + 1]; /* by context frames; NULL where not needed */
    float *rest;                               /* (A) standardised default of a plan */
    float *unit; /* (E, H, A) of the start last given, where its prior has a spread; else NULL */
} cgs_solver;

/* What a solve plans for: as in cgs_rollout_set and cgs_plan_problem. */
typedef struct cgs_solver_job {
    int E, context;
    const float *z, *past, *goal;
    const uint64_t *episode, *seed, *solve;
    const float *start;
} cgs_solver_job;

/* Everything in the configuration is borrowed except settings.  Destroy also after a failure. */
cgs_status cgs_solver_create(cgs_solver *s, const cgs_solver_config *c);
void cgs_solver_destroy(cgs_solver *s);

/* Makes the rollout of `context` frames, unless it exists or the planner asks for no scores. */
cgs_status cgs_solver_add_context(cgs_solver *s, int context);

/* The prior that a planner with these settings starts from. */
static inline cgs_prior_kind cgs_solver_prior_kind(const cgs_plan_config *c) {
    return c->inverse ? CGS_PRIOR_INVERSE : CGS_PRIOR_BEHAVIOUR;
}

/* start (E, H, A): the plan of the prior for z, goal (E, D), where the planner needs one; otherwise
 * the rest of `last` (E, H, A) after `executed` of its action blocks (H: nothing).  The next solve
 * must be for the same episodes: it draws with the spread of this start. */
cgs_status cgs_solver_start(cgs_solver *s, int E, const float *z, const float *goal,
                            const float *last, int executed, float *start);

/* q: receives the planner's problem, for observers. */
cgs_status cgs_solver_solve(cgs_solver *s, const cgs_solver_job *j, cgs_plan_problem *q,
                            cgs_plan_result *result);

#endif /* CGS_EVAL_SOLVER_H */

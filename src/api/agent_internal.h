/* agent_internal.h - an agent of the public API, for the files of this folder: api.c makes it and
 * plans, result.c describes its results, dataset.c asks what its model was trained on. */
#ifndef CGS_API_AGENT_INTERNAL_H
#define CGS_API_AGENT_INTERNAL_H

#include "core/arena.h"
#include "eval/solver.h"

typedef enum goal_kind { GOAL_NONE, GOAL_LATENT, GOAL_COST } goal_kind;

struct cgs_agent {
    cgs_device device;
    cgs_loaded_model s;
    cgs_prior *prior;
    cgs_plan_config plan;
    cgs_solver solver;
    goal_kind goal_kind;
    cgs_cost_fn cost;
    void *user;
    uint64_t seed, episode, solves;          /* which random numbers the next search draws */
    int seen;                                /* frames of the last observation; 0: there was none */
    cgs_rollout *judge[CGS_CONTEXT_MAX + 1]; /* weighs plans, by frames; made when first asked */

    cgs_arena arena;
    char *dir;
    float *z, *past;     /* (N, D), (N - 1, A) */
    float *goal;         /* (D) */
    float *last, *start; /* (H, A) */
    float *raw;          /* (K, H, A) actions for a custom cost */
};

#endif /* CGS_API_AGENT_INTERNAL_H */

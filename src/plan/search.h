/* search.h - a solve between two iterations, as the functions in the rows of planners.c see it. */
#ifndef CGS_PLAN_SEARCH_H
#define CGS_PLAN_SEARCH_H

#include "plan/planner.h"

typedef struct cgs_search {
    const cgs_plan_config *config;
    int E, K, n;   /* episodes, candidates per episode, values in a plan (H * A) */
    int R;         /* values in a residual */
    int iteration; /* counted from 0 */

    const uint64_t *key;  /* (E) of the iteration's noise, refine.h */
    float *mean, *spread; /* (E, n) the proposal, or the iterate of a descent */
    const float *unit;    /* (E, n) of the problem; NULL: 1 */
    float *plans, *cost;  /* (E, K, n), (E, K) what was scored; without candidates plans is mean */
    float *grad;          /* (E, n) of the cost by plans, where the row needs it */
    float *residual;      /* (E, K, R) where the row needs them */
    float *jacobian;      /* (E, R, n) of residuals by plans, where the row needs it */
    void *own;            /* the bytes that the row asks for, 256-aligned; kept between calls */
} cgs_search;

/* cem.c */
size_t cgs_plan_cem_memory(const cgs_plan_config *c, int E);
void cgs_plan_cem_update(cgs_search *s);
/* icem.c */
size_t cgs_plan_icem_kept(const cgs_plan_config *c); /* elites that are candidates again */
size_t cgs_plan_icem_memory(const cgs_plan_config *c, int E);
void cgs_plan_icem_propose(cgs_search *s);
void cgs_plan_icem_update(cgs_search *s);
/* mppi.c */
size_t cgs_plan_mppi_memory(const cgs_plan_config *c, int E);
void cgs_plan_mppi_update(cgs_search *s);
/* gauss_newton.c */
/* Rows that an iteration adds, and iterations whose rows are used together, at most. */
void cgs_plan_gauss_newton_rows(const cgs_plan_config *c, size_t *per, size_t *kept);
size_t cgs_plan_gauss_newton_memory(const cgs_plan_config *c, int E);
void cgs_plan_gauss_newton_begin(cgs_search *s);
void cgs_plan_gauss_newton_update(cgs_search *s);
/* levenberg_marquardt.c */
size_t cgs_plan_levenberg_memory(const cgs_plan_config *c, int E);
void cgs_plan_levenberg_begin(cgs_search *s);
void cgs_plan_levenberg_update(cgs_search *s);
/* covo.c */
size_t cgs_plan_covo_memory(const cgs_plan_config *c, int E);
void cgs_plan_covo_propose(cgs_search *s);
void cgs_plan_covo_update(cgs_search *s);
/* gradient_descent.c */
size_t cgs_plan_descent_memory(const cgs_plan_config *c, int E);
void cgs_plan_descent_begin(cgs_search *s);
void cgs_plan_descent_update(cgs_search *s);
/* Rate of step `step` of gd, counted from 0: a cosine from plan.gd.lr to zero. */
double cgs_plan_descent_rate(const cgs_plan_config *c, int step);
/* random.c */
void cgs_plan_random_begin(cgs_search *s);

#endif /* CGS_PLAN_SEARCH_H */

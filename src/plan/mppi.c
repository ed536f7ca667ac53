/* mppi.c - model-predictive path integral control: the mean moves to the candidates' average with
 * weights exp(-cost / tau); the spread stays, or shrinks by plan.decay. */
#include "plan/refine.h"
#include "plan/search.h"

size_t cgs_plan_mppi_memory(const cgs_plan_config *c, int E) {
    return (size_t)E * (size_t)c->K * sizeof(double); /* weights */
}

void cgs_plan_mppi_update(cgs_search *s) {
    const cgs_plan_config *c = s->config;
    float decay = cgs_plan_decay(c);
    cgs_plan_reweight(s->plans, s->cost, s->E, s->K, s->n, c->tau, c->ess, s->own, s->mean);
    for (size_t i = 0; decay < 1 && i < (size_t)s->E * (size_t)s->n; i++) s->spread[i] *= decay;
}

/* mppi.c - model-predictive path integral control: the mean moves to the candidates' average with
 * weights exp(-cost / tau); the spread stays. */
#include "plan/refine.h"
#include "plan/search.h"

size_t cgs_plan_mppi_memory(const cgs_plan_config *c, int E) {
    return (size_t)E * (size_t)c->K * sizeof(double); /* weights */
}

void cgs_plan_mppi_update(cgs_search *s) {
    cgs_plan_reweight(s->plans, s->cost, s->E, s->K, s->n, s->config->tau, s->own, s->mean);
}

/* cem.c - the cross-entropy method: mean and spread are refitted to the candidates of lowest cost.
 */
#include "plan/refine.h"
#include "plan/search.h"

size_t cgs_plan_cem_memory(const cgs_plan_config *c, int E) {
    return (size_t)E * (size_t)c->K * sizeof(int); /* candidates in the order of their costs */
}

void cgs_plan_cem_update(cgs_search *s) {
    cgs_plan_refit(s->plans, s->cost, s->E, s->K, s->n, cgs_plan_elites(s->config), s->own, s->mean,
                   s->spread);
}

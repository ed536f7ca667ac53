/* icem.c - the cross-entropy method with kept elites: the best of an iteration's elites are
 * candidates of the next again.  Its noise is coloured and it returns the best plan that it scored
 * (its row in planners.c); with plan.icem.shrink later iterations have fewer candidates. */
#include <math.h>
#include <string.h>

#include "plan/refine.h"
#include "plan/search.h"

/* candidate 0 stays the mean */
size_t cgs_plan_icem_kept(const cgs_plan_config *c) {
    int keep = (int)ceil((double)c->keep * cgs_plan_elites(c) * (1 - 1e-7));
    return (size_t)(keep < c->K ? keep : c->K - 1);
}

/* candidates in the order of their costs, then the kept plans */
static float *kept_plans(const cgs_plan_config *c, void *own, int E) {
    size_t orders = ((size_t)E * (size_t)c->K * sizeof(int) + 63) / 64 * 64;
    return (float *)(void *)((unsigned char *)own + orders);
}

size_t cgs_plan_icem_memory(const cgs_plan_config *c, int E) {
    size_t n = (size_t)c->H * (size_t)c->A;
    size_t orders = ((size_t)E * (size_t)c->K * sizeof(int) + 63) / 64 * 64;
    return orders + (size_t)E * cgs_plan_icem_kept(c) * n * sizeof(float);
}

void cgs_plan_icem_propose(cgs_search *s) {
    size_t n = (size_t)s->n, K = (size_t)s->K, keep = cgs_plan_icem_kept(s->config);
    const float *plans = kept_plans(s->config, s->own, s->E);
    for (size_t e = 0; s->iteration > 0 && e < (size_t)s->E; e++)
        memcpy(s->plans + (e * K + 1) * n, plans + e * keep * n, keep * n * sizeof *plans);
}

void cgs_plan_icem_update(cgs_search *s) {
    size_t n = (size_t)s->n, K = (size_t)s->K, keep = cgs_plan_icem_kept(s->config);
    float *plans = kept_plans(s->config, s->own, s->E);
    int *order = s->own;
    cgs_plan_refit(s->plans, s->cost, s->E, s->K, s->n, cgs_plan_elites(s->config), order, s->mean,
                   s->spread);
    for (size_t e = 0; e < (size_t)s->E; e++)
        for (size_t i = 0; i < keep; i++)
            memcpy(plans + (e * keep + i) * n, s->plans + (e * K + (size_t)order[e * K + i]) * n,
                   n * sizeof *plans);
}

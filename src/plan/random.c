/* random.c - the start plus noise: what a search has to beat. */
#include "plan/refine.h"
#include "plan/search.h"

void cgs_plan_random_begin(cgs_search *s) {
    cgs_plan_perturb(s->key, s->mean, s->spread, s->E, s->n, s->mean);
}

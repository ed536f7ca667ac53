/* gradient_descent.c - Adam along the gradient of the cost, one trajectory per episode. */
#include <math.h>
#include <string.h>

#include "plan/refine.h"
#include "plan/search.h"

static size_t values(const cgs_plan_config *c, int E) {
    return (size_t)E * (size_t)c->H * (size_t)c->A;
}

/* both moments */
size_t cgs_plan_descent_memory(const cgs_plan_config *c, int E) {
    return 2 * values(c, E) * sizeof(float);
}

void cgs_plan_descent_begin(cgs_search *s) {
    memset(s->own, 0, cgs_plan_descent_memory(s->config, s->E));
}

double cgs_plan_descent_rate(const cgs_plan_config *c, int step) {
    const double pi = 3.14159265358979323846;
    return 0.5 * c->lr * (1 + cos(pi * step / c->gd_steps));
}

void cgs_plan_descent_update(cgs_search *s) {
    size_t count = values(s->config, s->E);
    float *m = s->own, *v = m + count;
    cgs_plan_adam(s->grad, (int64_t)count, s->iteration + 1,
                  cgs_plan_descent_rate(s->config, s->iteration), m, v, s->mean);
}

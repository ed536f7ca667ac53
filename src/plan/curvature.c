/* curvature.c - see curvature.h.
 *
 * For a cost f |r|^2 of residuals with Jacobian J the second derivative is 2 f J^T J where
 * residuals are linear.  A pair of candidates, mu + e and mu - e, has residuals that differ by 2 J
 * e, so that |difference|^2 by |2 e|^2 is J^T J along e; over random e this averages to its mean
 * diagonal. */
#include "plan/curvature.h"

#include <math.h>
#include <stdlib.h>

#include "plan/refine.h"

typedef struct sample {
    uint64_t *key; /* (E) */
    float *mean, *spread, *plans, *cost,
        *residual; /* (E, n), (E, n), (E, K, n), (E, K), (E, K, R) */
} sample;

static double apart(const float *a, const float *b, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
    return sum;
}

static double square(const float *a, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)a[i] * a[i];
    return sum;
}

static cgs_status measure(double *curvature, sample *s, const cgs_plan_config *c,
                          const cgs_plan_problem *q, size_t K) {
    const cgs_noise noise = {.mirror = true};
    size_t E = (size_t)q->E, n = (size_t)c->H * (size_t)c->A, R = (size_t)q->R;
    for (size_t e = 0; e < E; e++)
        s->key[e] =
            cgs_plan_key(q->seed ? q->seed[e] : c->seed, q->episode ? q->episode[e] : e, 0, 0);
    for (size_t i = 0; i < E * n; i++) {
        s->mean[i] = q->start ? q->start[i] : 0;
        s->spread[i] = c->sigma;
    }
    cgs_plan_sample(s->key, &noise, s->mean, s->spread, q->E, (int)K, (int)n, s->plans);
    CGS_TRY(q->residual(q->ctx, s->plans, q->E, (int)K, s->cost, s->residual));
    double moved = 0, answered = 0, cost = 0, residuals = 0;
    for (size_t k = 0; k < E * K; k++) {
        cost += s->cost[k];
        residuals += square(s->residual + k * R, R);
        if (k % K == 0 || k % K % 2 == 1) continue; /* a mean, or the first of a pair */
        moved += apart(s->plans + k * n, s->plans + (k - 1) * n, n);
        answered += apart(s->residual + k * R, s->residual + (k - 1) * R, R);
    }
    *curvature = residuals > 0 && moved > 0 ? 2 * cost / residuals * answered / moved : 0;
    if (isfinite(*curvature) && *curvature > 0) return CGS_OK;
    return cgs_fail(CGS_ENUMERIC, "curvature: plans make no difference that can be measured (%g)",
                    *curvature);
}

cgs_status cgs_plan_curvature(double *curvature, const cgs_plan_config *c,
                              const cgs_plan_problem *q, int pairs) {
    if (!q->residual || q->R < 1 || q->E < 1 || pairs < 1)
        return cgs_fail(CGS_EARG, "curvature: %d pairs of %d episodes with residuals of %d values",
                        pairs, q->E, q->residual ? q->R : 0);
    size_t E = (size_t)q->E, K = 2 * (size_t)pairs + 1, n = (size_t)c->H * (size_t)c->A;
    sample s = {.key = malloc(E * sizeof *s.key),
                .mean = malloc(E * (2 * n + K * (n + 1 + (size_t)q->R)) * sizeof *s.mean)};
    cgs_status rc = CGS_OK;
    if (s.key && s.mean) {
        s.spread = s.mean + E * n;
        s.plans = s.spread + E * n;
        s.cost = s.plans + E * K * n;
        s.residual = s.cost + E * K;
        rc = measure(curvature, &s, c, q, K);
    } else {
        rc = cgs_fail(CGS_ENOMEM, "curvature: no memory for %zu candidates", E * K);
    }
    free(s.key);
    free(s.mean);
    return rc;
}

double cgs_plan_strength(const cgs_plan_config *c, double curvature, double tau) {
    return (double)c->sigma * c->sigma * curvature * c->H / tau;
}

double cgs_plan_curvature_tau(const cgs_plan_config *c, double curvature) {
    double tau = cgs_plan_strength(c, curvature, expm1(CGS_PLAN_APPROACH / c->iters));
    double unit = pow(10, floor(log10(tau)) - 1);
    return round(tau / unit) * unit;
}

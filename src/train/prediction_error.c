/* prediction_error.c - see prediction_error.h.
 *
 * The recorded plan is carried out in the model, which ends at an error e from the recorded end.
 * Only the part of e that plans can cause counts, as Gauss-Newton sees no other: candidates around
 * the recorded plan respond with Z, and e is projected on the span of its rows.  The variance is
 * that of a coordinate in there. */
#include "train/prediction_error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/refine.h"
#include "rollout/rollout.h"

enum { PAIRS = 128, CANDIDATES = 17 }; /* the recorded plan and sixteen around it */

/* A response shorter than this, after those before it were taken out, by its own length. */
#define DEPENDENT 1e-4

static double dot(const float *a, const float *b, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)a[i] * b[i];
    return sum;
}

/* Rows 1 .. of residual (CANDIDATES, R) become an orthonormal basis of the responses; adds the
 * squared coordinates of row 0 in it. */
static void project(float *residual, size_t R, double *square, int *coordinates) {
    for (size_t k = CANDIDATES; k-- > 1;)
        for (size_t i = 0; i < R; i++) residual[k * R + i] -= residual[i];
    for (size_t k = 1; k < CANDIDATES; k++) {
        float *z = residual + k * R;
        double whole = sqrt(dot(z, z, R));
        for (size_t q = 1; q < k; q++) {
            double share = dot(z, residual + q * R, R);
            for (size_t i = 0; i < R; i++) z[i] = (float)(z[i] - share * residual[q * R + i]);
        }
        double left = sqrt(dot(z, z, R));
        bool new = left > DEPENDENT *whole;
        for (size_t i = 0; i < R; i++) z[i] = new ? (float)(z[i] / left) : 0;
        double e = dot(residual, z, R);
        *square += e * e;
        *coordinates += new;
    }
}

/* the pairs measured, and memory for them */
typedef struct sample {
    int count;
    float *z, *goal, *mean, *spread, *plans, *cost, *residual;
    uint64_t *key;
} sample;

static void take(sample *a, const cgs_prior_pairs *m, float *memory) {
    size_t D = (size_t)m->D, n = (size_t)m->n, E = (size_t)a->count;
    a->z = memory;
    a->goal = a->z + E * D;
    a->mean = a->goal + E * D;
    a->spread = a->mean + E * n;
    a->plans = a->spread + E * n;
    a->cost = a->plans + E * CANDIDATES * n;
    a->residual = a->cost + E * CANDIDATES;
    for (size_t e = 0; e < E; e++) {
        int64_t i = m->count[1] * (int64_t)e / a->count;
        memcpy(a->z + e * D, cgs_prior_pair_start(m, 1, i), D * sizeof *a->z);
        memcpy(a->goal + e * D, cgs_prior_pair_end(m, 1, i), D * sizeof *a->z);
        memcpy(a->mean + e * n, m->plan[1] + i * m->n, n * sizeof *a->mean);
        for (size_t j = 0; j < n; j++) a->spread[e * n + j] = 1;
        a->key[e] = cgs_plan_key(0, e, 0, 0);
    }
    cgs_plan_sample(a->key, NULL, a->mean, a->spread, a->count, CANDIDATES, m->n, a->plans);
}

static cgs_status measure(cgs_loaded_model *s, const cgs_prior_pairs *m, int horizon, sample *a) {
    cgs_rollout *r = NULL;
    cgs_rollout_config c = {.episodes = a->count,
                            .context = 1,
                            .horizon = horizon,
                            .samples = CANDIDATES,
                            .residual = true,
                            .act = s->act};
    cgs_status rc = cgs_rollout_create(&r, s->lewm, &c);
    if (rc == CGS_OK) rc = cgs_rollout_set(r, a->count, a->z, NULL, a->goal);
    if (rc == CGS_OK)
        rc = cgs_rollout_residual(r, a->plans, a->count, CANDIDATES, a->cost, a->residual);
    size_t R = rc == CGS_OK ? (size_t)cgs_rollout_residuals(r) : 0;
    double square = 0, from_mean = 0;
    int coordinates = 0;
    for (size_t e = 0; rc == CGS_OK && e < (size_t)a->count; e++)
        project(a->residual + e * CANDIDATES * R, R, &square, &coordinates);
    for (size_t i = 0; i < (size_t)a->count * (size_t)m->n; i++)
        from_mean += (double)a->mean[i] * a->mean[i];
    if (rc == CGS_OK) {
        s->card.prediction_horizon = horizon;
        s->card.prediction_variance = coordinates ? square / coordinates : 0;
        s->card.plan_variance = from_mean / ((double)a->count * m->n);
    }
    cgs_rollout_destroy(r);
    return rc;
}

cgs_status cgs_prediction_error(cgs_loaded_model *s, const cgs_prior_pairs *m,
                                const cgs_prior_fit_config *c) {
    sample a = {.count = m->count[1] < PAIRS ? (int)m->count[1] : PAIRS};
    size_t D = (size_t)m->D, n = (size_t)m->n, E = (size_t)a.count;
    size_t values = 2 * D + 2 * n + CANDIDATES * (n + 1 + D);
    float *memory = malloc(E * values * sizeof *memory);
    a.key = malloc(E * sizeof *a.key);
    if (memory && a.key) take(&a, m, memory);
    cgs_status rc = memory && a.key ? measure(s, m, c->horizon, &a)
                                    : cgs_fail(CGS_ENOMEM, "prediction error: no memory");
    free(memory);
    free(a.key);
    return rc;
}

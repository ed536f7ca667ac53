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
static void project(float *residual, size_t R, cgs_prediction_errors *sum) {
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
        sum->square += e * e;
        sum->coordinates += new;
    }
}

/* residuals (E, CANDIDATES, R) of the recorded plans and of candidates around them */
static cgs_status respond(cgs_rollout *r, const float *plan, int E, size_t n, float *residual) {
    size_t rows = (size_t)E * CANDIDATES;
    uint64_t *key = malloc((size_t)E * sizeof *key);
    float *spread = malloc((size_t)E * n * sizeof *spread);
    float *plans = malloc(rows * (n + 1) * sizeof *plans);
    cgs_status rc =
        key && spread && plans ? CGS_OK : cgs_fail(CGS_ENOMEM, "prediction error: no memory");
    if (rc == CGS_OK) {
        for (int e = 0; e < E; e++) key[e] = cgs_plan_key(0, (uint64_t)e, 0, 0);
        for (size_t i = 0; i < (size_t)E * n; i++) spread[i] = 1;
        cgs_plan_sample(key, NULL, plan, spread, E, CANDIDATES, (int)n, plans);
        rc = cgs_rollout_residual(r, plans, E, CANDIDATES, plans + rows * n, residual);
    }
    free(key);
    free(spread);
    free(plans);
    return rc;
}

cgs_status cgs_prediction_errors_add(cgs_prediction_errors *sum, const cgs_loaded_model *s,
                                     int horizon, const float *z, const float *goal,
                                     const float *plan, int E) {
    cgs_rollout *r = NULL;
    cgs_rollout_config c = {.episodes = E,
                            .context = 1,
                            .horizon = horizon,
                            .samples = CANDIDATES,
                            .residual = true,
                            .act = s->act};
    CGS_TRY(cgs_rollout_create(&r, s->lewm, &c));
    cgs_status rc = cgs_rollout_set(r, E, z, NULL, goal);
    size_t R = (size_t)cgs_rollout_residuals(r);
    size_t n = (size_t)horizon * (size_t)cgs_lewm_action_block(&s->lewm->config);
    float *residual = malloc((size_t)E * CANDIDATES * R * sizeof *residual);
    if (rc == CGS_OK && !residual) rc = cgs_fail(CGS_ENOMEM, "prediction error: no memory");
    if (rc == CGS_OK) rc = respond(r, plan, E, n, residual);
    for (size_t e = 0; rc == CGS_OK && e < (size_t)E; e++)
        project(residual + e * CANDIDATES * R, R, sum);
    free(residual);
    cgs_rollout_destroy(r);
    return rc;
}

cgs_status cgs_prediction_error(cgs_loaded_model *s, const cgs_prior_pairs *m,
                                const cgs_prior_fit_config *c) {
    size_t D = (size_t)m->D, n = (size_t)m->n, E = PAIRS;
    if (m->count[1] < PAIRS) E = (size_t)m->count[1];
    cgs_prediction_errors sum = {0};
    double from_mean = 0;
    float *z = malloc(E * (2 * D + n) * sizeof *z), *goal = z + E * D, *plan = goal + E * D;
    if (!z) return cgs_fail(CGS_ENOMEM, "prediction error: no memory");
    for (size_t e = 0; e < E; e++) { /* all over the list */
        int64_t i = m->count[1] * (int64_t)e / (int64_t)E;
        memcpy(z + e * D, cgs_prior_pair_start(m, 1, i), D * sizeof *z);
        memcpy(goal + e * D, cgs_prior_pair_end(m, 1, i), D * sizeof *z);
        memcpy(plan + e * n, m->plan[1] + (size_t)i * n, n * sizeof *z);
    }
    for (size_t i = 0; i < E * n; i++) from_mean += (double)plan[i] * plan[i];
    cgs_status rc = cgs_prediction_errors_add(&sum, s, c->horizon, z, goal, plan, (int)E);
    if (rc == CGS_OK && sum.coordinates) {
        s->card.prediction_horizon = c->horizon;
        s->card.prediction_variance = sum.square / (double)sum.coordinates;
        s->card.plan_variance = from_mean / (double)(E * n);
    }
    free(z);
    return rc;
}

/* jacobian.c - see jacobian.h. */
#include "analysis/jacobian.h"

#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rollout/rollout.h"

struct cgs_terminal {
    cgs_rollout *forward, *derivative;
    int H, D, n, samples; /* n = H * A */
    float *frames;        /* (samples, H, D) imagined */
    float *goal;          /* (D) zeros: a residual is the last latent itself */
    float *residual, *J;  /* (D), (D, n) */
    float cost;
};

void cgs_terminal_destroy(cgs_terminal *t) {
    if (!t) return;
    cgs_rollout_destroy(t->forward);
    cgs_rollout_destroy(t->derivative);
    free(t->frames);
    free(t->goal);
    free(t);
}

static cgs_status build(cgs_terminal *t, cgs_lewm *m, cgs_dtype act) {
    size_t D = (size_t)t->D, n = (size_t)t->n;
    cgs_rollout_config c = {
        .episodes = 1, .context = 1, .horizon = t->H, .samples = t->samples, .act = act};
    CGS_TRY(cgs_rollout_create(&t->forward, m, &c));
    c.samples = 1;
    c.jacobian = true;
    CGS_TRY(cgs_rollout_create(&t->derivative, m, &c));
    t->frames = malloc((size_t)t->samples * (size_t)t->H * D * sizeof *t->frames);
    t->goal = calloc(2 * D + D * n, sizeof *t->goal);
    if (!t->frames || !t->goal) return cgs_fail(CGS_ENOMEM, "terminal predictor: no memory");
    t->residual = t->goal + D;
    t->J = t->residual + D;
    return CGS_OK;
}

cgs_status cgs_terminal_create(cgs_terminal **out, cgs_lewm *m, cgs_dtype act, int horizon,
                               int samples) {
    *out = NULL;
    if (horizon < 1 || samples < 1)
        return cgs_fail(CGS_EARG, "terminal predictor: horizon %d, %d plans", horizon, samples);
    cgs_terminal *t = calloc(1, sizeof *t);
    if (!t) return cgs_fail(CGS_ENOMEM, "terminal predictor: no memory");
    t->H = horizon;
    t->D = m->config.width;
    t->n = horizon * cgs_lewm_action_block(&m->config);
    t->samples = samples;
    cgs_status rc = build(t, m, act);
    if (rc != CGS_OK) {
        cgs_terminal_destroy(t);
        return rc;
    }
    *out = t;
    return CGS_OK;
}

int cgs_terminal_plan_size(const cgs_terminal *t) { return t->n; }
int cgs_terminal_width(const cgs_terminal *t) { return t->D; }

cgs_status cgs_terminal_predict(cgs_terminal *t, const float *z, const float *plans, int K,
                                float *out) {
    size_t D = (size_t)t->D, H = (size_t)t->H;
    CGS_TRY(cgs_rollout_set(t->forward, 1, z, NULL, NULL));
    CGS_TRY(cgs_rollout_imagine(t->forward, plans, 1, K, t->frames));
    for (size_t k = 0; k < (size_t)K; k++) {
        const float *last = t->frames + (k * H + H - 1) * D;
        for (size_t i = 0; i < D; i++)
            if (!isfinite(last[i]))
                return cgs_fail(CGS_ENUMERIC, "value %zu of a predicted latent is %g", i,
                                (double)last[i]);
        memcpy(out + k * D, last, D * sizeof *out);
    }
    return CGS_OK;
}

cgs_status cgs_terminal_jacobian(cgs_terminal *t, const float *z, const float *plan, double *J) {
    size_t D = (size_t)t->D, n = (size_t)t->n;
    CGS_TRY(cgs_rollout_set(t->derivative, 1, z, NULL, t->goal));
    CGS_TRY(cgs_rollout_jacobian(t->derivative, plan, 1, &t->cost, t->residual, t->J));
    for (size_t i = 0; i < D * n; i++) {
        J[i] = t->J[i];
        if (!isfinite(J[i]))
            return cgs_fail(CGS_ENUMERIC, "derivative %zu of component %zu is %g", i % n, i / n,
                            J[i]);
    }
    return CGS_OK;
}

void cgs_constant_moves(const cgs_lewm_config *c, int horizon, int q, double *U) {
    int steps = horizon * c->frameskip;
    memset(U, 0, (size_t)(steps * c->action_dim) * (size_t)q * sizeof *U);
    for (int s = 0; s < steps; s++)
        for (int i = 0; i < q; i++)
            U[(size_t)(s * c->action_dim + i) * (size_t)q + (size_t)i] = 1 / sqrt(steps);
}

cgs_status cgs_response_gram(const double *J, int D, int n, const double *U, int q, double *G) {
    size_t Q = (size_t)q;
    double *row = malloc(Q * sizeof *row);
    if (!row) return cgs_fail(CGS_ENOMEM, "response: no memory");
    memset(G, 0, Q * Q * sizeof *G);
    for (size_t i = 0; i < (size_t)D; i++) {
        memset(row, 0, Q * sizeof *row);
        for (size_t k = 0; k < (size_t)n; k++)
            for (size_t a = 0; a < Q; a++) row[a] += J[i * (size_t)n + k] * U[k * Q + a];
        for (size_t a = 0; a < Q; a++)
            for (size_t b = 0; b < Q; b++) G[a * Q + b] += row[a] * row[b];
    }
    free(row);
    return CGS_OK;
}

cgs_status cgs_symmetric_eigen(const double *G, int q, double *value, double *V) {
    size_t n = (size_t)q * (size_t)q;
    double *copy = malloc(n * sizeof *copy);
    if (!copy) return cgs_fail(CGS_ENOMEM, "eigenvalues: no memory");
    memcpy(copy, G, n * sizeof *copy);
    int info = LAPACKE_dsyev(LAPACK_ROW_MAJOR, V ? 'V' : 'N', 'L', q, copy, q, value);
    if (V) memcpy(V, copy, n * sizeof *copy);
    free(copy);
    if (info != 0)
        return cgs_fail(CGS_ENUMERIC, "eigenvalues of a %d x %d matrix: LAPACK says %d", q, q,
                        info);
    return CGS_OK;
}

/* covo.c - MPPI whose covariance follows the curvature of the cost (CoVO-MPC), here as the
 * candidates' residuals show it.
 *
 * Of all covariances with one determinant that in proportion to (J' J + gamma I)^-1/2 leaves the
 * least cost after an update of many candidates at a low temperature: an error of variance 1 leaves
 * d / (o d)^2 of curvature d and variance o, and the sum is least where all 1 / (o^2 d) are equal.
 *
 * Rows of A are candidates' differences from the mean, rows of Z those of their residuals, as in
 * gauss_newton.c: J' = A' X with X = (A A' + rho I)^-1 Z.  With A A' = L L' the rows of Q = L^-1 A
 * are orthonormal, so that J' J = Q' (G G') Q with G = L' X.  Directions beyond the candidates'
 * have curvature gamma.  Everything of an episode is done by one thread in a fixed order. */
#include <math.h>
#include <string.h>

#include "core/team.h"
#include "core/threads.h"
#include "plan/dense.h"
#include "plan/refine.h"
#include "plan/search.h"

/* an episode's own, m directions of n */
typedef struct own {
    double *plain, *more; /* (1), (m) factors of the noise: in all directions, and added in each */
    double *part;         /* (m) parts of one candidate along the directions */
    double *U;            /* (m, n) the directions, orthonormal rows */
    double *C, *S, *V;    /* (m, m) */
    double *Z;            /* (m, R), then X, then G */
    double *A;            /* (m, n), then Q */
} own;

static size_t directions(const cgs_plan_config *c) {
    int n = c->H * c->A;
    return (size_t)(c->K - 1 < n ? c->K - 1 : n);
}

static size_t doubles(const cgs_plan_config *c) {
    size_t m = directions(c), n = (size_t)c->H * (size_t)c->A;
    return 1 + 2 * m + 2 * m * n + 3 * m * m + m * (size_t)c->R;
}

/* the weights of all candidates come first */
static size_t weights(const cgs_plan_config *c, int E) { return (size_t)E * (size_t)c->K; }

size_t cgs_plan_covo_memory(const cgs_plan_config *c, int E) {
    return (weights(c, E) + (size_t)E * doubles(c)) * sizeof(double);
}

static own own_of(const cgs_search *s, size_t e) {
    const cgs_plan_config *c = s->config;
    size_t m = directions(c), n = (size_t)s->n;
    own o = {.plain = (double *)s->own + weights(c, s->E) + e * doubles(c)};
    o.more = o.plain + 1;
    o.part = o.more + m;
    o.U = o.part + m;
    o.C = o.U + m * n;
    o.S = o.C + m * m;
    o.V = o.S + m * m;
    o.A = o.V + m * m;
    o.Z = o.A + m * n;
    return o;
}

/* ---- candidates ------------------------------------------------------------------------ */

/* mean + plain d + sum of more_i (U_i d) U_i, where d was drawn */
static void stretch(const cgs_search *s, size_t e) {
    size_t m = directions(s->config), n = (size_t)s->n, K = (size_t)s->K;
    const float *mean = s->mean + e * n;
    own o = own_of(s, e);
    for (size_t k = 1; k < K; k++) {
        float *plan = s->plans + (e * K + k) * n;
        for (size_t i = 0; i < m; i++) {
            o.part[i] = 0;
            for (size_t j = 0; j < n; j++)
                o.part[i] += o.U[i * n + j] * ((double)plan[j] - mean[j]);
        }
        for (size_t j = 0; j < n; j++) {
            double v = mean[j] + *o.plain * ((double)plan[j] - mean[j]);
            for (size_t i = 0; i < m; i++) v += o.more[i] * o.part[i] * o.U[i * n + j];
            plan[j] = (float)v;
        }
    }
}

static void stretch_all(void *context) {
    const cgs_search *s = context;
    CGS_QUEUE (e, (size_t)s->E) stretch(s, e);
}

void cgs_plan_covo_propose(cgs_search *s) {
    if (s->iteration > 0 && directions(s->config) > 0)
        cgs_together(s->E > 1 ? cgs_threads() : 1, stretch_all, s);
}

/* ---- curvature ------------------------------------------------------------------------- */

static void take_rows(const cgs_search *s, own *o, size_t e, size_t m) {
    size_t n = (size_t)s->n, R = (size_t)s->R, K = (size_t)s->K;
    const float *plan = s->plans + e * K * n, *residual = s->residual + e * K * R;
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < n; j++) o->A[i * n + j] = (double)plan[(i + 1) * n + j] - plan[j];
        for (size_t j = 0; j < R; j++)
            o->Z[i * R + j] = (double)residual[(i + 1) * R + j] - residual[j];
    }
}

/* C = A A' + rho I, or without rho where there is none to add */
static void gram(const own *o, size_t m, size_t n, double ridge, double *C) {
    double trace = 0;
    for (size_t i = 0; i < m; i++)
        for (size_t k = 0; k <= i; k++) {
            C[i * m + k] = 0;
            for (size_t j = 0; j < n; j++) C[i * m + k] += o->A[i * n + j] * o->A[k * n + j];
            trace += i == k ? C[i * m + k] : 0;
        }
    for (size_t i = 0; i < m; i++) C[i * m + i] += ridge * trace / (double)m;
}

/* Z becomes G = L' X */
static void respond(own *o, size_t m, size_t R) {
    for (size_t j = 0; j < R; j++) {
        for (size_t i = 0; i < m; i++) o->part[i] = o->Z[i * R + j];
        cgs_plan_solve_factored(o->S, o->part, m);
        for (size_t i = 0; i < m; i++) {
            double pivot = o->C[i * m + i];
            double sum = pivot > 0 ? o->part[i] / pivot : 0;
            for (size_t k = i + 1; k < m; k++) sum += o->C[k * m + i] * o->part[k];
            o->Z[i * R + j] = sum;
        }
    }
}

/* A becomes Q = L^-1 A */
static void orthogonalise(own *o, size_t m, size_t n) {
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            double sum = o->A[i * n + j];
            for (size_t k = 0; k < i; k++) sum -= o->C[i * m + k] * o->A[k * n + j];
            o->A[i * n + j] = sum * o->C[i * m + i];
        }
}

/* the factors of the noise from curvatures d, their product over all n directions being 1 */
static void choose_factors(own *o, const double *d, size_t m, size_t n, double gamma) {
    double sum = (double)(n - m) * log(gamma), level;
    for (size_t i = 0; i < m; i++) sum += log(fmax(0, d[i]) + gamma);
    level = sum / (4 * (double)n);
    *o->plain = exp(level - log(gamma) / 4);
    for (size_t i = 0; i < m; i++)
        o->more[i] = exp(level - log(fmax(0, d[i]) + gamma) / 4) - *o->plain;
}

static void look(const cgs_search *s, size_t e) {
    const cgs_plan_config *c = s->config;
    size_t m = directions(c), n = (size_t)s->n, R = (size_t)s->R;
    double mean = 0;
    own o = own_of(s, e);
    take_rows(s, &o, e, m);
    gram(&o, m, n, c->ridge, o.S);
    gram(&o, m, n, 0, o.C);
    cgs_plan_factorise(o.S, m);
    cgs_plan_factorise(o.C, m);
    respond(&o, m, R);
    orthogonalise(&o, m, n);
    for (size_t i = 0; i < m; i++)
        for (size_t k = 0; k < m; k++) {
            o.S[i * m + k] = 0;
            for (size_t j = 0; j < R; j++) o.S[i * m + k] += o.Z[i * R + j] * o.Z[k * R + j];
        }
    cgs_plan_eigen(o.S, o.V, o.part, m);
    for (size_t i = 0; i < m; i++) {
        mean += o.part[i] / (double)n;
        for (size_t j = 0; j < n; j++) {
            o.U[i * n + j] = 0;
            for (size_t k = 0; k < m; k++) o.U[i * n + j] += o.V[i * m + k] * o.A[k * n + j];
        }
    }
    /* without a pull, and where nothing responds, some curvature is assumed everywhere */
    choose_factors(&o, o.part, m, n, fmax(c->gamma, mean > 0 ? 1e-6 * mean : 1));
}

static void look_all(void *context) {
    const cgs_search *s = context;
    CGS_QUEUE (e, (size_t)s->E) look(s, e);
}

void cgs_plan_covo_update(cgs_search *s) {
    const cgs_plan_config *c = s->config;
    float decay = cgs_plan_decay(c);
    if (directions(c) > 0) cgs_together(s->E > 1 ? cgs_threads() : 1, look_all, s);
    cgs_plan_reweight(s->plans, s->cost, s->E, s->K, s->n, c->tau, c->ess, s->own, s->mean);
    for (size_t i = 0; decay < 1 && i < (size_t)s->E * (size_t)s->n; i++) s->spread[i] *= decay;
}

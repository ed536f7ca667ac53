/* linear_system.c - rollouts, costs and gradients of linear systems. */
#include "linear_system.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/rng.h"

static void terminal(const linear *s, const double *z0, const float *plan, double *z) {
    double next[N_MAX];
    memcpy(z, z0, sizeof(double) * (size_t)s->d);
    for (int t = 0; t < s->H; t++) {
        for (int i = 0; i < s->d; i++) {
            next[i] = 0;
            for (int j = 0; j < s->d; j++) next[i] += s->a[i][j] * z[j];
            for (int j = 0; j < s->A; j++) next[i] += s->b[i][j] * plan[t * s->A + j];
        }
        memcpy(z, next, sizeof(double) * (size_t)s->d);
    }
}

/* fills what follows from the dynamics, by rolling out unit plans */
static void derive(linear *s) {
    double zero[N_MAX] = {0}, z[N_MAX];
    float plan[N_MAX] = {0};
    s->n = s->H * s->A;
    assert_true(s->n <= N_MAX && s->d <= N_MAX);
    terminal(s, s->z0, plan, s->free_z);
    for (int j = 0; j < s->n; j++) {
        plan[j] = 1;
        terminal(s, zero, plan, z);
        plan[j] = 0;
        for (int i = 0; i < s->d; i++) s->gamma[i][j] = z[i];
    }
    for (int j = 0; j < s->n; j++) {
        s->pull[j] = 0;
        for (int i = 0; i < s->d; i++) s->pull[j] += s->gamma[i][j] * (s->zg[i] - s->free_z[i]);
        for (int k = 0; k < s->n; k++) {
            s->g[j][k] = 0;
            for (int i = 0; i < s->d; i++) s->g[j][k] += s->gamma[i][j] * s->gamma[i][k];
        }
    }
}

linear random_system(uint64_t index, int d, int A, int H, double scale) {
    cgs_rng r = cgs_rng_stream(7, CGS_STREAM_TEST, index);
    linear s = {.d = d, .A = A, .H = H};
    for (int i = 0; i < d; i++) {
        for (int j = 0; j < d; j++) s.a[i][j] = (i == j ? 0.8 : 0) + 0.2 * cgs_rng_normal(&r);
        for (int j = 0; j < A; j++) s.b[i][j] = scale * cgs_rng_normal(&r);
        s.z0[i] = cgs_rng_normal(&r);
        s.zg[i] = cgs_rng_normal(&r);
    }
    derive(&s);
    return s;
}

linear ideal_system(int H, double c) {
    linear s = {.d = 2, .A = 2, .H = H, .z0 = {0.3, -0.8}, .zg = {0.5, 0.4}};
    double u = 0.7, v = -1.9;
    s.a[0][0] = s.a[1][1] = cos(u);
    s.a[1][0] = sin(u);
    s.a[0][1] = -sin(u);
    s.b[0][0] = s.b[1][1] = sqrt(c) * cos(v);
    s.b[1][0] = sqrt(c) * sin(v);
    s.b[0][1] = -sqrt(c) * sin(v);
    derive(&s);
    return s;
}

double half_square(const linear *s, const float *plan) {
    double z[N_MAX], sum = 0;
    terminal(s, s->z0, plan, z);
    for (int i = 0; i < s->d; i++) sum += 0.5 * (z[i] - s->zg[i]) * (z[i] - s->zg[i]);
    return sum;
}

cgs_status linear_cost(void *ctx, const float *plans, int E, int K, float *cost) {
    linear *s = ctx;
    s->calls++;
    s->rows += (long)E * K;
#pragma omp parallel for schedule(static)
    for (int r = 0; r < E * K; r++)
        cost[r] = (float)half_square(s, plans + (size_t)r * (size_t)s->n);
    return CGS_OK;
}

cgs_status linear_residual(void *ctx, const float *plans, int E, int K, float *cost,
                           float *residual) {
    linear *s = ctx;
    double z[N_MAX];
    for (int r = 0; r < E * K; r++) {
        terminal(s, s->z0, plans + (size_t)r * (size_t)s->n, z);
        for (int i = 0; i < s->d; i++) residual[r * s->d + i] = (float)(z[i] - s->zg[i]);
    }
    return linear_cost(ctx, plans, E, K, cost);
}

cgs_plan_problem linear_problem(linear *s, int E) {
    return (cgs_plan_problem){.E = E,
                              .cost = linear_cost,
                              .gradient = linear_gradient,
                              .residual = linear_residual,
                              .jacobian = linear_jacobian,
                              .R = s->d,
                              .ctx = s};
}

cgs_status linear_jacobian(void *ctx, const float *plans, int E, float *cost, float *residual,
                           float *jacobian) {
    const linear *s = ctx;
    for (int i = 0; i < E * s->d * s->n; i++)
        jacobian[i] = (float)s->gamma[i / s->n % s->d][i % s->n];
    return linear_residual(ctx, plans, E, 1, cost, residual);
}

cgs_status linear_gradient(void *ctx, const float *plans, int E, float *cost, float *grad) {
    linear *s = ctx;
    for (int e = 0; e < E; e++) {
        const float *plan = plans + e * s->n;
        cost[e] = (float)half_square(s, plan);
        for (int j = 0; j < s->n; j++) {
            double sum = -s->pull[j];
            for (int k = 0; k < s->n; k++) sum += s->g[j][k] * plan[k];
            grad[e * s->n + j] = (float)sum;
        }
    }
    return CGS_OK;
}

cgs_plan_config linear_settings(const char *kind, const linear *s, int K, int iters) {
    cgs_plan_config c = cgs_plan_defaults();
    strcpy(c.kind.s, kind);
    c.K = K;
    c.iters = iters;
    c.H = s->H;
    c.A = s->A;
    c.R = s->d;
    c.seed = 11;
    return c;
}

cgs_planner *must_create(const cgs_plan_config *c, int E) {
    cgs_planner *p;
    if (cgs_planner_create(&p, c, E) != CGS_OK) fail_msg("%s", cgs_last_error());
    return p;
}

cgs_plan_result must_solve(cgs_planner *p, const cgs_plan_problem *q) {
    cgs_plan_result r;
    if (cgs_planner_solve(p, q, &r) != CGS_OK) fail_msg("%s", cgs_last_error());
    return r;
}

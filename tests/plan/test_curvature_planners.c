/* test_curvature_planners.c - planners that use how residuals change, where the answer is known:
 * Levenberg-Marquardt against its closed form, and the covariance that CoVO-MPPI draws with. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "linear_system.h"
#include "plan/dense.h"
#include "plan/planners.h"

/* ---- Levenberg-Marquardt ------------------------------------------------------------- */

/* H = G + gamma I and the ridge solution from a start */
static void ridge(const linear *s, double gamma, const float *start, double *H, double *best) {
    double S[N_MAX * N_MAX];
    int n = s->n;
    for (int i = 0; i < n; i++) {
        best[i] = s->pull[i] + gamma * start[i];
        for (int j = 0; j < n; j++) H[i * n + j] = s->g[i][j] + (i == j ? gamma : 0);
    }
    memcpy(S, H, sizeof(double) * (size_t)(n * n));
    cgs_plan_factorise(S, (size_t)n);
    cgs_plan_solve_factored(S, best, (size_t)n);
}

/* A step leaves lambda (H + lambda I)^-1 of the distance to the ridge solution, and as the linear
 * model keeps its promise lambda shrinks to a third each time. */
static void test_closed_form(void **state) {
    (void)state;
    enum { E = 3 };
    for (int iters = 1; iters <= 6; iters += 5) {
        linear s = random_system(70 + (uint64_t)iters, 3, 2, 4, 0.8);
        size_t n = (size_t)s.n;
        cgs_plan_config c = linear_settings("lm", &s, 1, iters);
        c.gamma = 0.3f;
        c.damping = 0.5f;
        float start[E * N_MAX];
        for (size_t i = 0; i < E * n; i++) start[i] = 0.3f * (float)(i % 5) - 0.4f;
        cgs_planner *p = must_create(&c, E);
        cgs_plan_problem q = linear_problem(&s, E);
        q.start = start;
        cgs_plan_result r = must_solve(p, &q);
        for (size_t e = 0; e < E; e++) {
            double H[N_MAX * N_MAX], S[N_MAX * N_MAX], best[N_MAX], off[N_MAX], lambda = 0;
            ridge(&s, c.gamma, start + e * n, H, best);
            for (size_t j = 0; j < n; j++) {
                off[j] = start[e * n + j] - best[j];
                lambda = fmax(lambda, c.damping * H[j * n + j]);
            }
            for (int i = 0; i < iters; i++, lambda /= 3) {
                memcpy(S, H, sizeof S);
                for (size_t j = 0; j < n; j++) S[j * n + j] += lambda;
                cgs_plan_factorise(S, n);
                cgs_plan_solve_factored(S, off, n);
                for (size_t j = 0; j < n; j++) off[j] *= lambda;
            }
            for (size_t j = 0; j < n; j++)
                if (!(fabs(r.plan[e * n + j] - best[j] - off[j]) < 2e-5))
                    fail_msg("%d iterations, value %zu: %g, not %g", iters, j,
                             (double)r.plan[e * n + j], best[j] + off[j]);
        }
        cgs_planner_destroy(p);
    }
}

/* without damping one step is the ridge solution; with it many are */
static void test_ridge_solution(void **state) {
    (void)state;
    for (int many = 0; many < 2; many++) {
        linear s = random_system(80, 3, 2, 4, 0.8);
        cgs_plan_config c = linear_settings("lm", &s, 1, many ? 20 : 1);
        float zeros[N_MAX] = {0};
        double H[N_MAX * N_MAX], best[N_MAX];
        c.damping = many ? 1 : 0;
        cgs_planner *p = must_create(&c, 1);
        cgs_plan_problem q = linear_problem(&s, 1);
        cgs_plan_result r = must_solve(p, &q);
        ridge(&s, c.gamma, zeros, H, best);
        for (int j = 0; j < s.n; j++) assert_true(fabs(r.plan[j] - best[j]) < 1e-5);
        cgs_planner_destroy(p);
    }
}

/* r = atan a, from where a full step overshoots further and further */
static cgs_status arc(void *ctx, const float *plans, int E, float *cost, float *residual,
                      float *jacobian) {
    (void)ctx;
    for (int e = 0; e < E; e++) {
        residual[e] = atanf(plans[e]);
        cost[e] = residual[e] * residual[e];
        jacobian[e] = 1 / (1 + plans[e] * plans[e]);
    }
    return CGS_OK;
}

static void test_overshoot(void **state) {
    (void)state;
    float start = 3;
    cgs_plan_config c = cgs_plan_defaults();
    strcpy(c.kind.s, "lm");
    c.H = c.A = c.R = 1;
    c.gamma = 0;
    c.iters = 30;
    cgs_plan_problem q = {.E = 1, .start = &start, .jacobian = arc, .R = 1};
    cgs_planner *p = must_create(&c, 1);
    cgs_plan_result r = must_solve(p, &q);
    assert_true(fabsf(r.plan[0]) < 1e-5f);
    cgs_planner_destroy(p);
    c.damping = 0; /* nothing to grow: every trial is the same, and as bad */
    p = must_create(&c, 1);
    r = must_solve(p, &q);
    assert_true(fabsf(r.plan[0]) > 3);
    cgs_planner_destroy(p);
}

/* ---- CoVO-MPPI ------------------------------------------------------------------------- */

enum { DRAWN = 40001 };

/* remembers the candidates of the last call */
typedef struct drawn {
    linear system;
    float plans[DRAWN * N_MAX];
    int K;
} drawn;

static cgs_status remember(void *ctx, const float *plans, int E, int K, float *cost,
                           float *residual) {
    drawn *d = ctx;
    assert_true(E == 1 && K <= DRAWN);
    memcpy(d->plans, plans, sizeof(float) * (size_t)(K * d->system.n));
    d->K = K;
    return linear_residual(&d->system, plans, E, K, cost, residual);
}

static cgs_status no_cost(void *ctx, const float *plans, int E, int K, float *cost) {
    (void)ctx, (void)plans, (void)E, (void)K, (void)cost;
    return cgs_fail(CGS_EARG, "costs alone are not asked for");
}

/* covariance of the candidates of the second iteration around their mean (n, n) */
static void second_covariance(const char *planner, drawn *d, int K, double *C) {
    cgs_plan_config c = linear_settings(planner, &d->system, K, 2);
    size_t n = (size_t)d->system.n;
    c.ridge = 0;
    c.gamma = 0.2f;
    c.sigma = 0.7f;
    c.decay = 1;
    c.ess = (float)K / 4;
    cgs_planner *p = must_create(&c, 1);
    cgs_plan_problem q = {
        .E = 1, .cost = no_cost, .residual = remember, .R = d->system.d, .ctx = d};
    must_solve(p, &q);
    memset(C, 0, n * n * sizeof *C);
    for (size_t k = 1; k < (size_t)d->K; k++)
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++)
                C[i * n + j] += ((double)d->plans[k * n + i] - d->plans[i]) *
                                ((double)d->plans[k * n + j] - d->plans[j]) / (d->K - 1);
    cgs_planner_destroy(p);
}

/* How far W C W is from a multiple of I, W = (G + gamma I)^1/4, by its size; and the mean of log
 * eigenvalues of C. */
static double off_shape(const linear *s, const double *C, double gamma, double *mean_log) {
    size_t n = (size_t)s->n;
    double S[N_MAX * N_MAX], V[N_MAX * N_MAX], W[N_MAX * N_MAX] = {0}, value[N_MAX];
    double level = 0, off = 0;
    for (size_t i = 0; i < n * n; i++) S[i] = s->g[i / n][i % n] + (i % (n + 1) ? 0 : gamma);
    cgs_plan_eigen(S, V, value, n);
    for (size_t i = 0; i < n * n; i++)
        for (size_t k = 0; k < n; k++)
            W[i] += V[k * n + i / n] * pow(value[k], 0.25) * V[k * n + i % n];
    for (size_t i = 0; i < n * n; i++) {
        S[i] = 0;
        for (size_t k = 0; k < n; k++)
            for (size_t l = 0; l < n; l++)
                S[i] += W[i / n * n + k] * C[k * n + l] * W[l * n + i % n];
        level += i % (n + 1) ? 0 : S[i] / (double)n;
    }
    for (size_t i = 0; i < n * n; i++) off += pow(S[i] - (i % (n + 1) ? 0 : level), 2);
    memcpy(S, C, n * n * sizeof *S);
    cgs_plan_eigen(S, V, value, n);
    *mean_log = 0;
    for (size_t i = 0; i < n; i++) *mean_log += log(value[i]) / (double)n;
    return sqrt(off / (double)n) / level;
}

static void test_covariance(void **state) {
    (void)state;
    drawn *d = malloc(sizeof *d);
    double C[N_MAX * N_MAX], mean_log;
    assert_non_null(d);
    d->system = random_system(90, 3, 2, 4, 1.2);
    second_covariance("covo", d, DRAWN, C);
    double off = off_shape(&d->system, C, 0.2f, &mean_log);
    print_message("off (G + gamma I)^-1/2 by %.3g, mean log %.4f\n", off, mean_log);
    assert_true(off < 0.03);
    assert_true(fabs(mean_log - 2 * log(0.7)) < 0.02);
    assert_true(off_shape(&d->system, C, 0.4, &mean_log) > 0.09);
    free(d);
}

/* less cost is left than by mppi with the same temperature rule, also where candidates are fewer
 * than a plan has values and what lies beyond them keeps one variance */
static void test_less_cost(void **state) {
    (void)state;
    enum { E = 200 };
    static const struct {
        int K;
        float ess;
        double most;
    } cases[] = {{6, 1.3f, 0.9}, {16, 3, 0.6}};
    linear s = random_system(91, 3, 2, 4, 1.2);
    cgs_plan_problem q = linear_problem(&s, E);
    for (int k = 0; k < 2; k++) {
        double cost[2] = {0, 0};
        for (int plain = 0; plain < 2; plain++) {
            cgs_plan_config c = linear_settings(plain ? "mppi" : "covo", &s, cases[k].K, 8);
            c.ess = cases[k].ess;
            cgs_planner *p = must_create(&c, E);
            cgs_plan_result r = must_solve(p, &q);
            for (int e = 0; e < E; e++) cost[plain] += half_square(&s, r.plan + e * s.n) / E;
            cgs_planner_destroy(p);
        }
        print_message("K %d: cost %.4f, of mppi %.4f\n", cases[k].K, cost[0], cost[1]);
        assert_true(cost[0] < cases[k].most * cost[1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed_form), cmocka_unit_test(test_ridge_solution),
        cmocka_unit_test(test_overshoot),   cmocka_unit_test(test_covariance),
        cmocka_unit_test(test_less_cost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_plan_theory.c - the planners against the theory of linear systems.
 *
 * In the limit of many candidates mppi's mean update is an exact linear map and cem's has a
 * known Jacobian at the optimum; gd must find the least-squares plan.
 *
 * Sampling error.  A property is measured on R independent episodes and compared through
 * the t statistic of their mean.  Z_MAX = 5 is exceeded by chance in one of 10^5 values
 * at R = 64 (Student's t with 63 degrees of freedom), that is in a thousandth of the runs
 * with the hundred values tested here; seeds are fixed, so a test does not flicker.  Each
 * property is also tested against a slightly wrong map, which must be rejected: the test
 * would notice an error of that size. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <lapacke.h>

#include "core/rng.h"
#include "linear_system.h"
#include "plan/curvature.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))
#define Z_MAX 5.0

/* x with M x = y for a positive definite M (n, n); y becomes x */
static void solve_spd(int n, double m[N_MAX][N_MAX], double *y) {
    double flat[N_MAX * N_MAX];
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) flat[i * n + j] = m[i][j];
    assert_int_equal(LAPACKE_dposv(LAPACK_ROW_MAJOR, 'U', n, 1, flat, n, y, 1), 0);
}

/* the least-squares plan of smallest norm */
static void best_plan(const linear *s, double *plan) {
    double flat[N_MAX * N_MAX], y[N_MAX] = {0}, singular[N_MAX];
    lapack_int rank;
    for (int i = 0; i < s->d; i++) {
        for (int j = 0; j < s->n; j++) flat[i * s->n + j] = s->gamma[i][j];
        y[i] = s->zg[i] - s->free_z[i];
    }
    assert_int_equal(
        LAPACKE_dgelsd(LAPACK_ROW_MAJOR, s->d, s->n, 1, flat, s->n, y, 1, singular, 1e-10, &rank),
        0);
    memcpy(plan, y, sizeof(double) * (size_t)s->n);
}

/* t statistic of the mean of R values, `stride` apart, against an expected mean */
static double t_statistic(const double *x, int R, int stride, double expected) {
    double mean = 0, square = 0;
    for (int r = 0; r < R; r++) mean += x[r * stride] / R;
    for (int r = 0; r < R; r++) square += (x[r * stride] - mean) * (x[r * stride] - mean);
    return (mean - expected) / sqrt(square / (R - 1) / R);
}

/* T(mu) = (I + sigma^2/tau G)^-1 (mu + sigma^2/tau G a*), the mean of the tilted Gaussian */
static void population_map(const linear *s, double ratio, const float *mu, double *out) {
    double m[N_MAX][N_MAX];
    for (int i = 0; i < s->n; i++) {
        for (int j = 0; j < s->n; j++) m[i][j] = (i == j) + ratio * s->g[i][j];
        out[i] = mu[i] + ratio * s->pull[i];
    }
    solve_spd(s->n, m, out);
}

static void test_mppi_population_map(void **state) {
    (void)state;
    enum { R = 64, K = 8192 };
    struct {
        linear system;
        float tau, sigma;
    } cases[] = {{ideal_system(3, 1), 2, 1},
                 {random_system(1, 2, 2, 2, 0.7), 1, 1},
                 {random_system(2, 4, 2, 3, 0.5), 3, 0.7f},
                 {random_system(3, 3, 1, 5, 0.6), 0.5f, 1.3f}};
    static float start[R * N_MAX];
    static double means[R * N_MAX];
    for (int c = 0; c < COUNT(cases); c++) {
        linear *s = &cases[c].system;
        cgs_plan_config config = linear_settings("mppi", s, K, 1);
        config.tau = cases[c].tau;
        config.sigma = cases[c].sigma;
        cgs_rng rng = cgs_rng_stream(8, CGS_STREAM_TEST, (uint64_t)c);
        for (int j = 0; j < s->n; j++) start[j] = 0.6f * (float)cgs_rng_normal(&rng);
        for (int r = 1; r < R; r++) memcpy(start + r * s->n, start, sizeof(float) * (size_t)s->n);

        cgs_planner *p = must_create(&config, R);
        cgs_plan_problem q = {.E = R, .start = start, .cost = linear_cost, .ctx = s};
        cgs_plan_result result = must_solve(p, &q);
        for (int i = 0; i < R * s->n; i++) means[i] = result.plan[i];

        double ratio = (double)config.sigma * config.sigma / config.tau, worst = 0, wrong = 0;
        double right[N_MAX], off[N_MAX];
        population_map(s, ratio, start, right);
        population_map(s, 1.1 * ratio, start, off);
        for (int j = 0; j < s->n; j++) {
            worst = fmax(worst, fabs(t_statistic(means + j, R, s->n, right[j])));
            wrong = fmax(wrong, fabs(t_statistic(means + j, R, s->n, off[j])));
        }
        print_message("mppi, system %d: largest t %.2f; at a temperature 10 %% off %.2f\n", c,
                      worst, wrong);
        assert_true(worst < Z_MAX);
        assert_true(wrong > Z_MAX);
        cgs_planner_destroy(p);
    }
}

/* For x ~ N(0, I_2): the probability of l1 x1^2 + l2 x2^2 <= t, and E[x1^2] on that event.
 * With x1 = sqrt(t/l1) sin(u) the integrand is smooth and the midpoint rule converges fast. */
static void ellipse_moments(double l1, double l2, double t, double *probability, double *second) {
    enum { STEPS = 4000 };
    double radius = sqrt(t / l1), pi = acos(-1);
    *probability = *second = 0;
    for (int i = 0; i < STEPS; i++) {
        double u = pi * ((i + 0.5) / STEPS - 0.5), x = radius * sin(u);
        double w = exp(-x * x / 2) / sqrt(2 * pi) * erf(sqrt(t / l2) * cos(u) / sqrt(2)) * radius *
                   cos(u) * pi / STEPS;
        *probability += w;
        *second += w * x * x;
    }
}

/* Eigenvalues of cem's Jacobian at the optimum for curvature eigenvalues l1, l2 > 0 and
 * elite fraction alpha: E[x_i^2 | elite], with the elite threshold by bisection. */
static void cem_factors(double l1, double l2, double alpha, double out[2]) {
    double low = 0, high = 100 * (l1 + l2), probability, second;
    for (int i = 0; i < 100; i++) {
        double t = (low + high) / 2;
        ellipse_moments(l1, l2, t, &probability, &second);
        if (probability < alpha)
            low = t;
        else
            high = t;
    }
    ellipse_moments(l1, l2, high, &probability, &second);
    out[0] = second / alpha;
    ellipse_moments(l2, l1, high, &probability, &second);
    out[1] = second / alpha;
}

/* the Jacobian (n, n) of the formula, for a G of rank 2 */
static void cem_jacobian(const linear *s, double alpha, double *jacobian) {
    double v[N_MAX * N_MAX], lambda[N_MAX], factor[2];
    int n = s->n;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) v[i * n + j] = s->g[i][j];
    assert_int_equal(LAPACKE_dsyev(LAPACK_ROW_MAJOR, 'V', 'U', n, v, n, lambda), 0);
    cem_factors(lambda[n - 1], lambda[n - 2], alpha, factor);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            jacobian[i * n + j] = 0;
            for (int k = 0; k < n; k++) {
                double f = k == n - 1 ? factor[0] : k == n - 2 ? factor[1] : 1;
                jacobian[i * n + j] += f * v[i * n + k] * v[j * n + k];
            }
        }
}

/* Central differences of one update about the optimum, one column per coordinate.  The two
 * sides share their noise (the same episode ids), which removes most of the variance.
 * Replicas r0 .. r0+R-1; derivative: (R, n, n). */
static void cem_derivatives(linear *s, int r0, int R, int K, double h, double *derivative) {
    int n = s->n, E = 2 * n * R;
    double optimum[N_MAX];
    best_plan(s, optimum);
    float *start = malloc(sizeof *start * (size_t)(E * n));
    uint64_t *id = malloc(sizeof *id * (size_t)E);
    assert_true(start && id);
    for (int e = 0; e < E; e++) {
        int column = e / 2 % n, side = e % 2 ? 1 : -1;
        id[e] = (uint64_t)(r0 + e / (2 * n)) * N_MAX + (uint64_t)column;
        for (int j = 0; j < n; j++)
            start[e * n + j] = (float)(optimum[j] + (j == column ? side * h : 0));
    }
    cgs_plan_config config = linear_settings("cem", s, K, 1);
    cgs_planner *p = must_create(&config, E);
    cgs_plan_problem q = {.E = E, .episode = id, .start = start, .cost = linear_cost, .ctx = s};
    cgs_plan_result result = must_solve(p, &q);
    for (int e = 0; e < E; e += 2)
        for (int j = 0; j < n; j++)
            derivative[e / (2 * n) * n * n + j * n + e / 2 % n] =
                ((double)result.plan[(e + 1) * n + j] - result.plan[e * n + j]) / (2 * h);
    cgs_planner_destroy(p);
    free(start);
    free(id);
}

static void test_cem_jacobian(void **state) {
    (void)state;
    enum { R = 64, ROUND = 16, K = 16384 };
    const double h = 0.15, alpha = 0.25;

    /* equal eigenvalues: beta = F_4(q) / alpha with q = -2 log(1 - alpha), a closed form */
    double q = -2 * log(1 - alpha), factor[2];
    double beta = (1 - exp(-q / 2) * (1 + q / 2)) / alpha;
    cem_factors(3, 3, alpha, factor);
    assert_true(fabs(factor[0] - beta) < 1e-9 && fabs(factor[1] - beta) < 1e-9);

    linear cases[] = {ideal_system(2, 1), random_system(11, 2, 2, 2, 0.7),
                      random_system(12, 2, 1, 3, 0.9)};
    static double derivative[R * N_MAX * N_MAX], right[N_MAX * N_MAX], off[N_MAX * N_MAX];
    for (int c = 0; c < COUNT(cases); c++) {
        linear *s = &cases[c];
        int entries = s->n * s->n;
        double worst = 0, wrong = 0;
        for (int r = 0; r < R; r += ROUND)
            cem_derivatives(s, r, ROUND, K, h, derivative + r * entries);
        cem_jacobian(s, alpha, right);
        cem_jacobian(s, 0.2, off);
        for (int i = 0; i < entries; i++) {
            worst = fmax(worst, fabs(t_statistic(derivative + i, R, entries, right[i])));
            wrong = fmax(wrong, fabs(t_statistic(derivative + i, R, entries, off[i])));
        }
        print_message("cem, system %d: largest t %.2f; at an elite fraction of 0.2 %.2f\n", c,
                      worst, wrong);
        assert_true(worst < Z_MAX);
        assert_true(wrong > Z_MAX);
    }
}

/* gd's error against the least-squares plan, and its cost gap as a fraction of the first */
static void gd_error(linear *s, int steps, double *error, double *gap) {
    double optimum[N_MAX];
    float exact[N_MAX];
    cgs_plan_config c = linear_settings("gd", s, 1, 1);
    c.gd_steps = steps;
    cgs_planner *p = must_create(&c, 1);
    cgs_plan_problem q = {.E = 1, .gradient = linear_gradient, .ctx = s};
    cgs_plan_result r = must_solve(p, &q);
    assert_int_equal(r.iterations, steps);
    best_plan(s, optimum);
    *error = 0;
    for (int j = 0; j < s->n; j++) {
        exact[j] = (float)optimum[j];
        *error = fmax(*error, fabs(r.plan[j] - optimum[j]));
    }
    double lowest = half_square(s, exact);
    *gap = (half_square(s, r.plan) - lowest) / (r.best[0] - lowest);
    print_message("gd, %d latents, %d actions, %d steps: plan within %.2g, cost gap %.2g\n", s->d,
                  s->n, steps, *error, *gap);
    cgs_planner_destroy(p);
}

/* a unique optimum: the plan itself, in the default 100 steps where the curvature is even
 * and in more where it is not; more actions than latents: the residual */
static void test_gd_least_squares(void **state) {
    (void)state;
    linear even = ideal_system(1, 1), tall = random_system(21, 6, 2, 2, 1);
    linear wide = random_system(22, 2, 2, 3, 1);
    double error, gap;
    gd_error(&even, 100, &error, &gap);
    assert_true(error < 1e-2 && gap < 1e-3);
    gd_error(&tall, 1000, &error, &gap);
    assert_true(error < 1e-4);
    gd_error(&wide, 100, &error, &gap);
    assert_true(gap < 1e-4);
}

/* ---- curvature ------------------------------------------------------------------------ */

/* a value that bends the same way on both sides of the mean, and so moves no pair apart */
static cgs_status bent_residual(void *ctx, const float *plans, int E, int K, float *cost,
                                float *residual) {
    const linear *s = ctx;
    assert_int_equal(linear_residual(ctx, plans, E, K, cost, residual), CGS_OK);
    for (int r = 0; r < E * K; r++) {
        residual[r * s->d] += 3 * plans[r * s->n] * plans[r * s->n];
        cost[r] = 0;
        for (int i = 0; i < s->d; i++) cost[r] += residual[r * s->d + i] * residual[r * s->d + i];
        cost[r] /= 2;
    }
    return CGS_OK;
}

static void test_curvature(void **state) {
    (void)state;
    enum { E = 32, PAIRS = 800 }; /* a standard error of about 1 % */
    double got, again;
    for (int i = 0; i < 6; i++) {
        linear s = i < 3 ? ideal_system(4, 0.6) : random_system((uint64_t)i, 3, 2, 3, 0.5);
        cgs_plan_config c = linear_settings("mppi", &s, 1, 1);
        cgs_plan_problem q = linear_problem(&s, E);
        double mean = 0;
        for (int j = 0; j < s.n; j++) mean += s.g[j][j] / s.n;
        if (i == 1) c.sigma = 0.2f; /* which a linear system does not notice */
        if (i == 2) q.residual = bent_residual;
        if (i < 3) assert_true(fabs(mean - 0.6) < 1e-9);
        assert_int_equal(cgs_plan_curvature(&got, &c, &q, PAIRS), CGS_OK);
        if (fabs(got / mean - 1) > 0.05) fail_msg("%d: curvature %g, not %g", i, got, mean);
        assert_int_equal(cgs_plan_curvature(&again, &c, &q, PAIRS), CGS_OK);
        assert_true(got == again);
    }
}

/* At the temperature that follows from the curvature 1 / e^2 of an ideal system's way is left. */
static void test_curvature_temperature(void **state) {
    (void)state;
    linear s = ideal_system(4, 0.6);
    cgs_plan_config c = linear_settings("mppi", &s, 8192, 1);
    c.sigma = 0.7f;
    c.tau = (float)cgs_plan_curvature_tau(&c, 0.6);
    double left = exp(-2), exact = 0.49 * 0.6 * 4 / (1 / left - 1);
    assert_true(fabs(c.tau - 0.18) < 1e-6); /* 0.1841, to two digits */
    assert_true(fabs(cgs_plan_strength(&c, 0.6, exact) + 1 - 1 / left) < 1e-5);
    c.tau = (float)exact;
    enum { E = 64 };
    cgs_plan_problem q = linear_problem(&s, E);
    cgs_planner *p = must_create(&c, E);
    cgs_plan_result r = must_solve(p, &q);
    double best[N_MAX], x[E];
    best_plan(&s, best);
    for (int j = 0; j < s.n; j++) {
        for (int e = 0; e < E; e++) x[e] = r.plan[e * s.n + j];
        assert_true(fabs(t_statistic(x, E, 1, (1 - left) * best[j])) < Z_MAX);
    }
    cgs_planner_destroy(p);
    q.residual = NULL;
    double unused;
    assert_int_equal(cgs_plan_curvature(&unused, &c, &q, 1), CGS_EARG);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mppi_population_map), cmocka_unit_test(test_cem_jacobian),
        cmocka_unit_test(test_curvature),           cmocka_unit_test(test_curvature_temperature),
        cmocka_unit_test(test_gd_least_squares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_plan.c - the planners against a slow obvious version, against the theory of linear
 * systems, and against misuse.
 *
 * Theory.  For dynamics z' = A z + B a the terminal latent is A^H z0 + Gamma a and the cost
 * 1/2 |A^H z0 + Gamma a - zg|^2 is quadratic with curvature G = Gamma^T Gamma.  Then mppi's
 * mean update is an exact linear map in the limit of many candidates, cem's has a known
 * Jacobian at the optimum, and gd must find the least-squares plan.
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
#include <time.h>

#include <cmocka.h>
#include <lapacke.h>

#include "core/rng.h"
#include "core/threads.h"
#include "plan/planner.h"
#include "plan/refine.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))
#define Z_MAX 5.0
#define N_MAX 8 /* largest H * A of the linear systems */

/* ---- allocations, counted (the linker sends the library's calls here) --------------- */

static long allocations;
void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);

void *__wrap_malloc(size_t n) {
    allocations++;
    return __real_malloc(n);
}
void *__wrap_calloc(size_t n, size_t size) {
    allocations++;
    return __real_calloc(n, size);
}
void *__wrap_realloc(void *p, size_t n) {
    allocations++;
    return __real_realloc(p, n);
}
void *__wrap_aligned_alloc(size_t align, size_t n) {
    allocations++;
    return __real_aligned_alloc(align, n);
}

/* ---- linear systems ----------------------------------------------------------------- */

typedef struct linear {
    int d, A, H, n;                          /* latent, action, horizon, n = H * A     */
    double a[N_MAX][N_MAX], b[N_MAX][N_MAX]; /* dynamics (d, d) and (d, A)            */
    double z0[N_MAX], zg[N_MAX];
    double gamma[N_MAX][N_MAX]; /* (d, n) terminal latent by plan                        */
    double free_z[N_MAX];       /* A^H z0                                                */
    double g[N_MAX][N_MAX];     /* G = Gamma^T Gamma (n, n)                              */
    double pull[N_MAX];         /* Gamma^T (zg - A^H z0) = G a*                          */
    long calls, rows;           /* of the cost function                                  */
} linear;

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

static linear random_system(uint64_t index, int d, int A, int H, double scale) {
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

/* A a rotation, B a multiple of a rotation: G = c H P with P a projector of rank 2 */
static linear ideal_system(int H, double c) {
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

static double half_square(const linear *s, const float *plan) {
    double z[N_MAX], sum = 0;
    terminal(s, s->z0, plan, z);
    for (int i = 0; i < s->d; i++) sum += 0.5 * (z[i] - s->zg[i]) * (z[i] - s->zg[i]);
    return sum;
}

static cgs_status linear_cost(void *ctx, const float *plans, int E, int K, float *cost) {
    linear *s = ctx;
    s->calls++;
    s->rows += (long)E * K;
#pragma omp parallel for schedule(static)
    for (int r = 0; r < E * K; r++)
        cost[r] = (float)half_square(s, plans + (size_t)r * (size_t)s->n);
    return CGS_OK;
}

static cgs_status linear_gradient(void *ctx, const float *plans, int E, float *cost, float *grad) {
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

static cgs_plan_config settings(const char *kind, const linear *s, int K, int iters) {
    cgs_plan_config c = cgs_plan_defaults();
    strcpy(c.kind.s, kind);
    c.K = K;
    c.iters = iters;
    c.H = s->H;
    c.A = s->A;
    c.seed = 11;
    return c;
}

static cgs_planner *create(const cgs_plan_config *c, int E) {
    cgs_planner *p;
    if (cgs_planner_create(&p, c, E) != CGS_OK) fail_msg("%s", cgs_last_error());
    return p;
}

static cgs_plan_result solve(cgs_planner *p, const cgs_plan_problem *q) {
    cgs_plan_result r;
    if (cgs_planner_solve(p, q, &r) != CGS_OK) fail_msg("%s", cgs_last_error());
    return r;
}

/* t statistic of the mean of R values, `stride` apart, against an expected mean */
static double t_statistic(const double *x, int R, int stride, double expected) {
    double mean = 0, square = 0;
    for (int r = 0; r < R; r++) mean += x[r * stride] / R;
    for (int r = 0; r < R; r++) square += (x[r * stride] - mean) * (x[r * stride] - mean);
    return (mean - expected) / sqrt(square / (R - 1) / R);
}

/* ---- theory ------------------------------------------------------------------------- */

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
        cgs_plan_config config = settings("mppi", s, K, 1);
        config.tau = cases[c].tau;
        config.sigma = cases[c].sigma;
        cgs_rng rng = cgs_rng_stream(8, CGS_STREAM_TEST, (uint64_t)c);
        for (int j = 0; j < s->n; j++) start[j] = 0.6f * (float)cgs_rng_normal(&rng);
        for (int r = 1; r < R; r++) memcpy(start + r * s->n, start, sizeof(float) * (size_t)s->n);

        cgs_planner *p = create(&config, R);
        cgs_plan_problem q = {.E = R, .start = start, .cost = linear_cost, .ctx = s};
        cgs_plan_result result = solve(p, &q);
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

/* Central differences of one update about the optimum, a column per coordinate.  The two
 * sides share their noise (the same episode ids), which removes most of the variance.
 * Replicas r0 .. r0+R-1; slope: (R, n, n). */
static void cem_slopes(linear *s, int r0, int R, int K, double h, double *slope) {
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
    cgs_plan_config config = settings("cem", s, K, 1);
    cgs_planner *p = create(&config, E);
    cgs_plan_problem q = {.E = E, .episode = id, .start = start, .cost = linear_cost, .ctx = s};
    cgs_plan_result result = solve(p, &q);
    for (int e = 0; e < E; e += 2)
        for (int j = 0; j < n; j++)
            slope[e / (2 * n) * n * n + j * n + e / 2 % n] =
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
    static double slope[R * N_MAX * N_MAX], right[N_MAX * N_MAX], off[N_MAX * N_MAX];
    for (int c = 0; c < COUNT(cases); c++) {
        linear *s = &cases[c];
        int entries = s->n * s->n;
        double worst = 0, wrong = 0;
        for (int r = 0; r < R; r += ROUND) cem_slopes(s, r, ROUND, K, h, slope + r * entries);
        cem_jacobian(s, alpha, right);
        cem_jacobian(s, 0.2, off);
        for (int i = 0; i < entries; i++) {
            worst = fmax(worst, fabs(t_statistic(slope + i, R, entries, right[i])));
            wrong = fmax(wrong, fabs(t_statistic(slope + i, R, entries, off[i])));
        }
        print_message("cem, system %d: largest t %.2f; at an elite fraction of 0.2 %.2f\n", c,
                      worst, wrong);
        assert_true(worst < Z_MAX);
        assert_true(wrong > Z_MAX);
    }
}

/* gd's error against the least-squares plan, and its cost gap as a share of the first */
static void gd_error(linear *s, int steps, double *error, double *gap) {
    double optimum[N_MAX];
    float exact[N_MAX];
    cgs_plan_config c = settings("gd", s, 1, 1);
    c.gd_steps = steps;
    cgs_planner *p = create(&c, 1);
    cgs_plan_problem q = {.E = 1, .gradient = linear_gradient, .ctx = s};
    cgs_plan_result r = solve(p, &q);
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

/* ---- the slow obvious version ------------------------------------------------------- */

/* all planners of one episode from the definitions, in double; spread only for cem */
static void obvious(linear *s, const cgs_plan_config *c, uint64_t episode, uint64_t number,
                    double *mean, double *spread) {
    enum { K_MAX = 64 };
    static double plan[K_MAX][N_MAX], cost[K_MAX];
    bool cem = strstr(c->kind.s, "cem") != NULL, taken[K_MAX];
    int n = s->n, M = c->K / 4 > 1 ? c->K / 4 : 1;
    assert_true(c->K <= K_MAX);
    for (int j = 0; j < n; j++) spread[j] = c->sigma;
    for (int i = 0; i < c->iters; i++) {
        uint64_t key = cgs_rng_stream(c->seed, CGS_STREAM_PLAN, episode).key;
        key = cgs_rng_at(key, number * UINT64_C(4294967296) + (uint64_t)i);
        double lowest = INFINITY, total = 0, sum[N_MAX] = {0};
        for (int k = 0; k < c->K; k++) {
            float rounded[N_MAX];
            for (int j = 0; j < n; j++) {
                uint64_t counter = (uint64_t)k * UINT64_C(4294967296) + (uint64_t)j;
                double eps = k ? cgs_normal_quantile(cgs_to_f64(cgs_rng_at(key, counter))) : 0;
                plan[k][j] = mean[j] + spread[j] * eps;
                rounded[j] = (float)plan[k][j];
            }
            cost[k] = half_square(s, rounded);
            lowest = fmin(lowest, cost[k]);
            taken[k] = false;
        }
        if (!cem) {
            for (int k = 0; k < c->K; k++) {
                double w = exp(-(cost[k] - lowest) / c->tau);
                total += w;
                for (int j = 0; j < n; j++) sum[j] += w * plan[k][j];
            }
            for (int j = 0; j < n; j++) mean[j] = sum[j] / total;
            continue;
        }
        double square[N_MAX] = {0};
        for (int m = 0; m < M; m++) {
            int best = -1;
            for (int k = 0; k < c->K; k++)
                if (!taken[k] && (best < 0 || cost[k] < cost[best])) best = k;
            taken[best] = true;
            for (int j = 0; j < n; j++) sum[j] += plan[best][j] / M;
        }
        for (int k = 0; k < c->K; k++)
            for (int j = 0; j < n && taken[k]; j++)
                square[j] += (plan[k][j] - sum[j]) * (plan[k][j] - sum[j]);
        for (int j = 0; j < n; j++) {
            mean[j] = sum[j];
            if (M > 1) spread[j] = sqrt(square[j] / (M - 1));
        }
    }
}

static void test_against_obvious(void **state) {
    (void)state;
    linear s = random_system(31, 3, 2, 3, 0.6);
    static const char *const kinds[] = {"cem", "mppi", "pg-cem", "pg-mppi"};
    static const int budgets[] = {1, 2, 5, 7, 8, 13, 32, 64}; /* M = 1 up to 7 */
    for (int a = 0; a < COUNT(kinds); a++)
        for (int b = 0; b < COUNT(budgets); b++) {
            cgs_plan_config c = settings(kinds[a], &s, budgets[b], 4);
            c.tau = 0.7f;
            c.sigma = 0.9f;
            float start[2 * N_MAX] = {0};
            for (int j = 0; j < 2 * s.n; j++) start[j] = 0.1f * (float)(j - 3);
            uint64_t id[] = {5, UINT64_MAX}, number[] = {0, 3};
            cgs_planner *p = create(&c, 2);
            cgs_plan_problem q = {.E = 2,
                                  .episode = id,
                                  .solve = number,
                                  .start = start,
                                  .cost = linear_cost,
                                  .ctx = &s};
            cgs_plan_result r = solve(p, &q);
            for (int e = 0; e < 2; e++) {
                double mean[N_MAX], spread[N_MAX];
                for (int j = 0; j < s.n; j++) mean[j] = start[e * s.n + j];
                obvious(&s, &c, id[e], number[e], mean, spread);
                for (int j = 0; j < s.n; j++) {
                    double off = fabs(r.plan[e * s.n + j] - mean[j]);
                    double wide = fabs(r.spread[e * s.n + j] - spread[j]);
                    if (!(off < 2e-5) || !(wide < 2e-5))
                        fail_msg("%s, K = %d: value %d is off by %g, its spread by %g", kinds[a],
                                 budgets[b], j, off, wide);
                }
            }
            cgs_planner_destroy(p);
        }
}

/* ---- behaviour ---------------------------------------------------------------------- */

static cgs_status constant_cost(void *ctx, const float *plans, int E, int K, float *cost) {
    (void)ctx;
    (void)plans;
    for (int i = 0; i < E * K; i++) cost[i] = 3;
    return CGS_OK;
}

/* equal costs: the elites are the first candidates, the mean among them */
static void test_ties_by_index(void **state) {
    (void)state;
    linear s = random_system(32, 2, 2, 2, 1);
    cgs_plan_config c = settings("cem", &s, 32, 1);
    cgs_planner *p = create(&c, 1);
    cgs_plan_problem q = {.E = 1, .cost = constant_cost};
    cgs_plan_result r = solve(p, &q);
    uint64_t key = cgs_plan_key(c.seed, 0, 0, 0);
    for (int j = 0; j < s.n; j++) {
        double sum = 0;
        for (int k = 1; k < 8; k++)
            sum += cgs_rng_normal_at(key, ((uint64_t)k << 32) + (uint64_t)j);
        assert_true(fabs(r.plan[j] - sum / 8) < 1e-6);
    }
    assert_true(r.best[0] == 3 && r.mean[0] == 3);
    cgs_planner_destroy(p);
}

static void test_one_candidate(void **state) {
    (void)state;
    linear s = random_system(33, 3, 2, 3, 1);
    static const char *const kinds[] = {"cem", "mppi", "pg-cem", "pg-mppi", "zero"};
    float start[N_MAX], zeros[N_MAX] = {0};
    for (int j = 0; j < s.n; j++) start[j] = 0.1f + 1.7f * (float)j;
    for (int k = 0; k < COUNT(kinds); k++) {
        cgs_plan_config c = settings(kinds[k], &s, 1, 30);
        cgs_planner *p = create(&c, 1);
        s.rows = 0;
        cgs_plan_problem q = {.E = 1, .start = start, .cost = linear_cost, .ctx = &s};
        cgs_plan_result r = solve(p, &q);
        assert_memory_equal(r.plan, start, sizeof(float) * (size_t)s.n);
        assert_int_equal(s.rows, strcmp(kinds[k], "zero") ? 1 : 0); /* I is irrelevant */
        q.start = NULL;
        r = solve(p, &q);
        assert_memory_equal(r.plan, zeros, sizeof(float) * (size_t)s.n);
        cgs_planner_destroy(p);
    }
}

static void test_random(void **state) {
    (void)state;
    linear s = random_system(34, 2, 2, 3, 1);
    cgs_plan_config c = settings("random", &s, 128, 30);
    c.sigma = 2;
    enum { E = 4000 };
    cgs_planner *p = create(&c, E);
    cgs_plan_problem q = {.E = E};
    cgs_plan_result r = solve(p, &q);
    double sum = 0, square = 0, first = r.plan[0];
    int count = E * s.n;
    for (int i = 0; i < count; i++) {
        sum += r.plan[i];
        square += (double)r.plan[i] * r.plan[i];
    }
    assert_true(fabs(sum / count) < Z_MAX * 2 / sqrt(count));
    assert_true(fabs(square / count - 4) < Z_MAX * 4 * sqrt(2.0 / count));
    r = solve(p, &q); /* another solve is another draw; after a reset it is the first again */
    assert_true(r.plan[0] != first && r.iterations == 0 && !r.cut);
    cgs_planner_reset(p);
    r = solve(p, &q);
    assert_true(r.plan[0] == first);
    cgs_planner_destroy(p);
}

/* the same episode alone, in a batch of seven, and on one or two threads: same bits */
static void test_determinism(void **state) {
    (void)state;
    linear s = random_system(35, 3, 2, 4, 0.6);
    static const char *const kinds[] = {"cem", "mppi", "gd", "random"};
    enum { E = 7 };
    float start[E * N_MAX], one[E * N_MAX], history[E * 6];
    uint64_t id[E] = {3, 1, 4, 15, 9, 2, 6};
    int before = cgs_threads();
    for (int k = 0; k < COUNT(kinds); k++) {
        cgs_plan_config c = settings(kinds[k], &s, 300, 6);
        c.gd_steps = 6;
        for (int i = 0; i < E * s.n; i++) start[i] = 0.05f * (float)(i % 11);
        cgs_planner *batch = create(&c, E), *single = create(&c, 1);
        cgs_plan_problem q = {.E = E,
                              .episode = id,
                              .start = start,
                              .cost = linear_cost,
                              .gradient = linear_gradient,
                              .ctx = &s};
        cgs_set_threads(1);
        cgs_plan_result r = solve(batch, &q);
        size_t bytes = sizeof(float) * (size_t)(E * s.n);
        size_t costs = sizeof(float) * (size_t)(E * r.iterations);
        memcpy(one, r.plan, bytes);
        memcpy(history, r.best, costs);
        for (int threads = 2; threads <= 3; threads++) {
            cgs_set_threads(threads);
            cgs_planner_reset(batch);
            r = solve(batch, &q);
            assert_memory_equal(r.plan, one, bytes);
            assert_memory_equal(r.best, history, costs);
        }
        for (int e = 0; e < E; e++) {
            cgs_planner_reset(single);
            q.E = 1;
            q.episode = id + e;
            q.start = start + e * s.n;
            r = solve(single, &q);
            assert_memory_equal(r.plan, one + e * s.n, sizeof(float) * (size_t)s.n);
        }
        /* another seed, id or solve number is another plan */
        if (strcmp(kinds[k], "gd") != 0) {
            r = solve(single, &q); /* solve 1 of the last episode */
            assert_memory_not_equal(r.plan, one + (E - 1) * s.n, sizeof(float) * (size_t)s.n);
            q.episode = NULL;
            cgs_planner_reset(single);
            r = solve(single, &q);
            assert_memory_not_equal(r.plan, one + (E - 1) * s.n, sizeof(float) * (size_t)s.n);
        }
        cgs_planner_destroy(batch);
        cgs_planner_destroy(single);
    }
    cgs_set_threads(before);
}

/* a larger budget extends a smaller one: the first candidates are the same */
static void test_prefix_budget(void **state) {
    (void)state;
    enum { n = 5 };
    float mean[n] = {0}, spread[n] = {1, 1, 1, 1, 1}, small[8 * n], large[20 * n];
    uint64_t key = cgs_plan_key(1, 2, 3, 4);
    cgs_plan_sample(&key, mean, spread, 1, 8, n, small);
    cgs_plan_sample(&key, mean, spread, 1, 20, n, large);
    assert_memory_equal(small, large, sizeof small);
    /* and the mean it was drawn around, spread over 20 candidates, does not repeat */
    for (int a = 1; a < 20; a++)
        for (int b = 0; b < a; b++) assert_true(large[a * n] != large[b * n]);
}

static void test_no_allocation(void **state) {
    (void)state;
    linear s = random_system(36, 3, 2, 4, 0.6);
    for (int kind = 0; kind < CGS_PLAN_KINDS; kind++) {
        cgs_plan_config c = settings(cgs_plan_kind_name((cgs_plan_kind)kind), &s, 300, 5);
        long at_create = allocations;
        cgs_planner *p = create(&c, 4);
        assert_true(allocations > at_create); /* the counter counts */
        cgs_plan_problem q = {.E = 4, .cost = linear_cost, .gradient = linear_gradient, .ctx = &s};
        long before = allocations;
        for (int i = 0; i < 3; i++) solve(p, &q);
        cgs_planner_reset(p);
        assert_int_equal(allocations - before, 0);
        cgs_planner_destroy(p);
    }
    cgs_planner_destroy(NULL);
}

/* a cost function that takes ten milliseconds and remembers its lowest candidate */
typedef struct slow {
    linear *system;
    int calls;
    float best[2], plan[2][N_MAX];
} slow;

static cgs_status slow_cost(void *ctx, const float *plans, int E, int K, float *cost) {
    slow *s = ctx;
    struct timespec wait = {0, 10000000};
    nanosleep(&wait, NULL);
    CGS_TRY(linear_cost(s->system, plans, E, K, cost));
    for (int i = 0; i < E * K; i++)
        if (s->calls < 1 || cost[i] < s->best[i / K]) {
            if (s->calls < 1 && i % K && cost[i] >= s->best[i / K]) continue;
            s->best[i / K] = cost[i];
            memcpy(s->plan[i / K], plans + i * s->system->n, sizeof(float) * (size_t)s->system->n);
        }
    s->calls++;
    return CGS_OK;
}

static cgs_status slow_gradient(void *ctx, const float *plans, int E, float *cost, float *grad) {
    slow *s = ctx;
    CGS_TRY(linear_gradient(s->system, plans, E, cost, grad));
    return slow_cost(ctx, plans, E, 1, cost);
}

static void test_deadline(void **state) {
    (void)state;
    linear s = random_system(37, 3, 2, 3, 0.6);
    static const char *const kinds[] = {"cem", "mppi", "gd"};
    for (int k = 0; k < COUNT(kinds); k++) {
        cgs_plan_config c = settings(kinds[k], &s, 16, 50);
        c.deadline = 0.045f;
        slow ctx = {.system = &s};
        cgs_planner *p = create(&c, 2);
        cgs_plan_problem q = {.E = 2, .cost = slow_cost, .gradient = slow_gradient, .ctx = &ctx};
        cgs_plan_result r = solve(p, &q);
        /* a loaded machine may stretch a wait, but never shorten it: at most four fit */
        assert_true(r.cut && r.iterations >= 1 && r.iterations <= 4);
        assert_int_equal(r.iterations, ctx.calls);
        assert_true(r.times.total >= 0.01 * r.iterations);
        for (int e = 0; e < 2; e++) {
            assert_memory_equal(r.plan + e * s.n, ctx.plan[e], sizeof(float) * (size_t)s.n);
            float lowest = r.best[e];
            for (int i = 1; i < r.iterations; i++) lowest = fminf(lowest, r.best[2 * i + e]);
            assert_true(lowest == ctx.best[e]);
        }
        cgs_planner_destroy(p);

        /* far shorter than an iteration: the first is still made */
        c.deadline = 1e-6f;
        p = create(&c, 2);
        ctx.calls = 0;
        r = solve(p, &q);
        assert_true(r.cut && r.iterations == 1);
        cgs_planner_destroy(p);

        /* long enough: nothing is cut and the mean comes back as without a deadline */
        c.deadline = 1000;
        c.iters = c.gd_steps = 2;
        p = create(&c, 2);
        r = solve(p, &q);
        assert_true(!r.cut && r.iterations == 2);
        /* timers: two waits of ten milliseconds were spent on costs */
        assert_true(r.times.cost >= 0.02 && r.times.sample >= 0 && r.times.update > 0);
        assert_true(r.times.total >= r.times.sample + r.times.cost + r.times.update);
        cgs_planner_destroy(p);
    }
}

/* cem and mppi improve on their start; the history tells so */
static void test_history(void **state) {
    (void)state;
    linear s = random_system(38, 3, 2, 3, 0.8);
    static const char *const kinds[] = {"cem", "mppi"};
    for (int k = 0; k < COUNT(kinds); k++) {
        cgs_plan_config c = settings(kinds[k], &s, 128, 30);
        c.tau = 0.05f;
        cgs_planner *p = create(&c, 3);
        cgs_plan_problem q = {.E = 2, .cost = linear_cost, .ctx = &s};
        cgs_plan_result r = solve(p, &q);
        assert_int_equal(r.iterations, 30);
        for (int e = 0; e < 2; e++) {
            /* mppi keeps its spread: its candidates stay costly, only their mean improves */
            if (k == 0) assert_true(r.mean[29 * 2 + e] < 0.1 * r.mean[e]);
            assert_true(half_square(&s, r.plan + e * s.n) < 0.1 * r.mean[e]);
            for (int i = 0; i < 30; i++) assert_true(r.best[2 * i + e] <= r.mean[2 * i + e]);
        }
        cgs_planner_destroy(p);
    }
}

static void test_shift(void **state) {
    (void)state;
    float plan[] = {1, 2, 3, 4, 5, 6, -1, -2, -3, -4, -5, -6}, next[12], fill[] = {8, 9};
    static const float one[] = {3, 4, 5, 6, 0, 0, -3, -4, -5, -6, 0, 0};
    static const float filled[] = {5, 6, 8, 9, 8, 9, -5, -6, 8, 9, 8, 9};
    static const float zeros[12] = {0};
    cgs_plan_shift(next, plan, 2, 3, 2, 1, NULL);
    assert_memory_equal(next, one, sizeof one);
    cgs_plan_shift(next, plan, 2, 3, 2, 0, NULL);
    assert_memory_equal(next, plan, sizeof plan);
    cgs_plan_shift(next, plan, 2, 3, 2, 3, NULL); /* all executed: nothing to reuse */
    assert_memory_equal(next, zeros, sizeof zeros);
    cgs_plan_shift(plan, plan, 2, 3, 2, 2, fill); /* in place */
    assert_memory_equal(plan, filled, sizeof filled);
}

/* ---- bad input ---------------------------------------------------------------------- */

static void expect(cgs_status rc, cgs_status code, const char *words) {
    if (rc != code || !strstr(cgs_last_error(), words))
        fail_msg("status %s, \"%s\": expected %s and \"%s\"", cgs_status_name(rc), cgs_last_error(),
                 cgs_status_name(code), words);
}

static void test_settings(void **state) {
    (void)state;
    cgs_plan_config c = cgs_plan_defaults();
    assert_string_equal(c.kind.s, "mppi");
    assert_true(c.K == 128 && c.iters == 30 && c.H == 5 && c.gd_steps == 100 && c.elites == 0);
    assert_true(c.elite_fraction == 0.25f && c.sigma == 1 && c.lr == 0.1f && c.deadline == 0);
    assert_int_equal(cgs_plan_elites(&c), 32);
    for (int K = 1; K < 300; K++) {
        c.K = K;
        assert_int_equal(cgs_plan_elites(&c), K / 4 > 1 ? K / 4 : 1);
    }
    c.K = 10;
    c.elite_fraction = 0.7f;
    assert_int_equal(cgs_plan_elites(&c), 7);
    c.elites = 3;
    assert_int_equal(cgs_plan_elites(&c), 3);

    cgs_section s = cgs_plan_section(&c);
    assert_int_equal(cgs_config_assign(&s, 1, "plan.tau=64"), CGS_OK);
    assert_true(c.tau == 64);
    expect(cgs_config_assign(&s, 1, "plan.samples=0"), CGS_EARG, "plan.samples");
    expect(cgs_config_assign(&s, 1, "plan.tau=0"), CGS_EARG, "plan.tau");
    for (int k = 0; k < CGS_PLAN_KINDS; k++) {
        cgs_plan_kind kind;
        assert_int_equal(cgs_plan_kind_parse(&kind, cgs_plan_kind_name((cgs_plan_kind)k)), CGS_OK);
        assert_int_equal(kind, k);
    }
}

static void test_bad_settings(void **state) {
    (void)state;
    linear s = random_system(40, 2, 2, 2, 1);
    cgs_planner *p;
    cgs_plan_config good = settings("cem", &s, 16, 2), c;
#define REFUSED(change, words)                                                                     \
    c = good;                                                                                      \
    change;                                                                                        \
    expect(cgs_planner_create(&p, &c, 1), CGS_EARG, words);                                        \
    assert_null(p)
    REFUSED(c.K = 0, "plan.samples: 0");
    REFUSED(c.K = -5, "plan.samples: -5");
    REFUSED(c.iters = 0, "plan.iters: 0");
    REFUSED(c.gd_steps = 0, "plan.gd.steps: 0");
    REFUSED(c.H = 0, "plan.horizon: 0");
    REFUSED(c.A = -1, "plan.action_size: -1");
    REFUSED(c.elites = 17, "plan.elites: 17 is more than the 16");
    REFUSED(c.elites = -1, "plan.elites: -1");
    REFUSED(c.elite_fraction = 0, "plan.elite_fraction");
    REFUSED(c.elite_fraction = 1.5f, "plan.elite_fraction");
    REFUSED(c.tau = 0, "plan.tau: 0");
    REFUSED(c.tau = -1, "plan.tau: -1");
    REFUSED(c.tau = NAN, "plan.tau: nan");
    REFUSED(c.sigma = 0, "plan.sigma: 0");
    REFUSED(c.sigma = INFINITY, "plan.sigma: inf");
    REFUSED(c.lr = 0, "plan.gd.lr: 0");
    REFUSED(c.deadline = -1, "plan.deadline: -1");
    REFUSED(strcpy(c.kind.s, "cme"), "plan.planner: \"cme\"");
    REFUSED((c.K = 1 << 24, c.H = 4096, c.A = 4096), "too many");
#undef REFUSED
    expect(cgs_planner_create(&p, &good, 0), CGS_EARG, "0 episodes");
}

/* a cost that is bad at one place: iteration, episode, candidate */
typedef struct spoiled {
    linear *system;
    int calls, iteration, row;
    float value;
} spoiled;

static cgs_status spoiled_cost(void *ctx, const float *plans, int E, int K, float *cost) {
    spoiled *b = ctx;
    CGS_TRY(linear_cost(b->system, plans, E, K, cost));
    if (b->calls++ == b->iteration) cost[b->row] = b->value;
    return CGS_OK;
}

static cgs_status spoiled_gradient(void *ctx, const float *plans, int E, float *cost, float *grad) {
    spoiled *b = ctx;
    CGS_TRY(linear_gradient(b->system, plans, E, cost, grad));
    if (b->calls++ == b->iteration) grad[b->row] = b->value;
    return CGS_OK;
}

static cgs_status failing_cost(void *ctx, const float *plans, int E, int K, float *cost) {
    (void)ctx;
    (void)plans;
    (void)cost;
    return cgs_fail(CGS_EDEVICE, "no device for %d x %d", E, K);
}

static void test_bad_problem(void **state) {
    (void)state;
    linear s = random_system(41, 2, 2, 2, 1);
    cgs_plan_result r;
    uint64_t id[] = {70, 71, 72}, number[] = {0, UINT64_C(1) << 32, 0};
    float start[3 * N_MAX] = {0};
    static const char *const kinds[] = {"cem", "mppi"};
    for (int k = 0; k < COUNT(kinds); k++) {
        cgs_plan_config c = settings(kinds[k], &s, 16, 5);
        cgs_planner *p = create(&c, 3);
        spoiled ctx = {&s, 0, 3, 2 * 16 + 9, NAN};
        cgs_plan_problem q = {
            .E = 3, .episode = id, .start = start, .cost = spoiled_cost, .ctx = &ctx};
        expect(cgs_planner_solve(p, &q, &r), CGS_ENUMERIC,
               "episode 72, candidate 9, iteration 3 is");
        ctx = (spoiled){&s, 0, 0, 0, -INFINITY};
        expect(cgs_planner_solve(p, &q, &r), CGS_ENUMERIC,
               "episode 70, candidate 0, iteration 0 is -inf");
        start[s.n + 1] = NAN;
        expect(cgs_planner_solve(p, &q, &r), CGS_ENUMERIC, "value 1 of the start of episode 71");
        start[s.n + 1] = 0;
        q.solve = number;
        expect(cgs_planner_solve(p, &q, &r), CGS_EARG, "solve number 4294967296 of episode 71");
        q.solve = NULL;
        q.cost = failing_cost;
        expect(cgs_planner_solve(p, &q, &r), CGS_EDEVICE, "no device for 3 x 16");
        q.cost = NULL;
        expect(cgs_planner_solve(p, &q, &r), CGS_EARG, "no cost function");
        q.E = 4;
        expect(cgs_planner_solve(p, &q, &r), CGS_EARG, "4 episodes");
        q.E = 0;
        expect(cgs_planner_solve(p, &q, &r), CGS_EARG, "0 episodes");
        /* the planner is still usable */
        q = (cgs_plan_problem){.E = 3, .cost = linear_cost, .ctx = &s};
        assert_int_equal(cgs_planner_solve(p, &q, &r), CGS_OK);
        cgs_planner_destroy(p);
    }
    cgs_plan_config c = settings("gd", &s, 1, 1);
    cgs_planner *p = create(&c, 3);
    spoiled ctx = {&s, 0, 7, s.n + 2, INFINITY};
    cgs_plan_problem q = {.E = 3, .episode = id, .gradient = spoiled_gradient, .ctx = &ctx};
    expect(cgs_planner_solve(p, &q, &r), CGS_ENUMERIC,
           "value 2 of the gradient of episode 71, iteration 7 is inf");
    q.gradient = NULL;
    expect(cgs_planner_solve(p, &q, &r), CGS_EARG, "no gradient function");
    cgs_planner_destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mppi_population_map),
        cmocka_unit_test(test_cem_jacobian),
        cmocka_unit_test(test_gd_least_squares),
        cmocka_unit_test(test_against_obvious),
        cmocka_unit_test(test_ties_by_index),
        cmocka_unit_test(test_one_candidate),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_determinism),
        cmocka_unit_test(test_prefix_budget),
        cmocka_unit_test(test_no_allocation),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_history),
        cmocka_unit_test(test_shift),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_bad_settings),
        cmocka_unit_test(test_bad_problem),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

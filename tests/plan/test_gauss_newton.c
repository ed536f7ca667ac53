/* test_gauss_newton.c - sampled Gauss-Newton where the answer is known: residuals that are linear
 * in plans; and the options of the candidates that it shares with other planners. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/rng.h"
#include "linear_system.h"
#include "plan/refine.h"

enum { H = 5, A = 4, SIZE = H * A, R = 12 };

/* residual = J plan + r */
typedef struct affine {
    double J[SIZE][SIZE], r[SIZE]; /* (rows, SIZE), (rows) */
    int rows;
} affine;

static cgs_status residual(void *ctx, const float *plans, int E, int K, float *cost, float *out) {
    const affine *s = ctx;
    for (int k = 0; k < E * K; k++) {
        double sum = 0;
        for (int i = 0; i < s->rows; i++) {
            double v = s->r[i];
            for (int j = 0; j < SIZE; j++) v += s->J[i][j] * plans[k * SIZE + j];
            out[k * s->rows + i] = (float)v;
            sum += v * v;
        }
        cost[k] = (float)sum;
    }
    return CGS_OK;
}

static cgs_status cost_alone(void *ctx, const float *plans, int E, int K, float *cost) {
    static float unused[400 * SIZE];
    assert_true(E * K <= 400);
    return residual(ctx, plans, E, K, cost, unused);
}

static affine random_affine(uint64_t index, int rows) {
    cgs_rng g = cgs_rng_stream(3, CGS_STREAM_TEST, index);
    affine s = {.rows = rows};
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < SIZE; j++) s.J[i][j] = cgs_rng_normal(&g) / (1 + 0.3 * j);
        s.r[i] = cgs_rng_normal(&g);
    }
    return s;
}

static cgs_plan_config settings(int rows, int K, int iters) {
    cgs_plan_config c = cgs_plan_defaults();
    strcpy(c.kind.s, "gn");
    c.K = K;
    c.iters = iters;
    c.H = H;
    c.A = A;
    c.R = rows;
    return c;
}

static cgs_plan_problem problem(affine *s, int E) {
    return (cgs_plan_problem){
        .E = E, .cost = cost_alone, .residual = residual, .R = s->rows, .ctx = s};
}

/* x with M x = b, by elimination with the largest pivot */
static void eliminate(int n, double M[SIZE][SIZE], double *b, double *x) {
    for (int c = 0; c < n; c++) {
        int top = c;
        for (int i = c; i < n; i++)
            if (fabs(M[i][c]) > fabs(M[top][c])) top = i;
        for (int j = 0; j < n; j++) {
            double swap = M[c][j];
            M[c][j] = M[top][j];
            M[top][j] = swap;
        }
        double swap = b[c];
        b[c] = b[top];
        b[top] = swap;
        for (int i = c + 1; i < n; i++) {
            double f = M[i][c] / M[c][c];
            for (int j = c; j < n; j++) M[i][j] -= f * M[c][j];
            b[i] -= f * b[c];
        }
    }
    for (int i = n - 1; i >= 0; i--) {
        x[i] = b[i];
        for (int j = i + 1; j < n; j++) x[i] -= M[i][j] * x[j];
        x[i] /= M[i][i];
    }
}

/* the minimum of |J a + r|^2 + gamma |(a - start) / unit|^2; NULL: units of 1 */
static void ridge(const affine *s, double gamma, const float *start, const float *unit, double *a) {
    double M[SIZE][SIZE], b[SIZE];
    for (int j = 0; j < SIZE; j++) {
        double weight = unit ? gamma / ((double)unit[j] * unit[j]) : gamma;
        b[j] = start ? weight * start[j] : 0;
        for (int k = 0; k < SIZE; k++) M[j][k] = j == k ? weight : 0;
        for (int i = 0; i < s->rows; i++) {
            b[j] -= s->J[i][j] * s->r[i];
            for (int k = 0; k < SIZE; k++) M[j][k] += s->J[i][j] * s->J[i][k];
        }
    }
    eliminate(SIZE, M, b, a);
}

/* ---- where candidates span all plans ---------------------------------------------------- */

/* One iteration reaches the ridge solution, from any start, by whichever system is solved: K - 1
 * candidates are fewer than the R + n values of a row, or more; so do more iterations. */
static void test_ridge_solution(void **state) {
    (void)state;
    static const struct {
        int rows, K, iters, reuse;
        bool mirror;
        float gamma, colour;
    } cases[] = {
        {R, SIZE + 1, 1, 0, false, 1, 0},
        {R, SIZE + 9, 1, 0, false, 0.1f, 0},
        {R, 90, 1, 0, false, 1, 0},
        {R, 300, 1, 0, false, 0.3f, 0},
        {SIZE, 2 * SIZE + 8, 1, 0, true, 2, 0},
        {3, 64, 1, 0, true, 1, 0},
        {R, 12, 4, 3, false, 1, 0},
        {R, 16, 30, 0, false, 1, 0},
        {R, 30, 1, 0, false, 1, 1},
        {R, 60, 2, 1, false, 1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        affine s = random_affine(i, cases[i].rows);
        cgs_plan_config c = settings(cases[i].rows, cases[i].K, cases[i].iters);
        c.damping = 0;
        c.gamma = cases[i].gamma;
        c.reuse = cases[i].reuse;
        c.ridge = 0;
        c.mirror = cases[i].mirror;
        c.colour = cases[i].colour;
        c.frameskip = 2;
        float start[2 * SIZE];
        for (int j = 0; j < 2 * SIZE; j++) start[j] = 0.3f * (float)(j % 5) - 0.4f;
        cgs_planner *p = must_create(&c, 2);
        cgs_plan_problem q = problem(&s, 2);
        q.start = start;
        cgs_plan_result r = must_solve(p, &q);
        for (int e = 0; e < 2; e++) {
            double a[SIZE];
            ridge(&s, c.gamma, start + e * SIZE, NULL, a);
            for (int j = 0; j < SIZE; j++)
                if (!(fabs(r.plan[e * SIZE + j] - a[j]) < 2e-4))
                    fail_msg("case %d, episode %d: value %d is %g, not %g", (int)i, e, j,
                             (double)r.plan[e * SIZE + j], a[j]);
        }
        cgs_planner_destroy(p);
    }
}

/* In units the start's prior is N(start, unit^2 / gamma), by either system.  The regression's ridge
 * bends the step, but equally for all units: it is that of the problem in those units. */
static void test_units(void **state) {
    (void)state;
    static const int budgets[] = {SIZE + 1, 16, 90};
    for (int i = 0; i < 3; i++)
        for (int ridged = 0; ridged < 2; ridged++) {
            affine s = random_affine(60 + (uint64_t)i, R), plain = s;
            cgs_plan_config c = settings(R, budgets[i], i == 1 ? 30 : 1);
            float start[SIZE], unit[SIZE], none[SIZE] = {0};
            double a[SIZE];
            c.damping = 0;
            c.gamma = 0.7f;
            c.ridge = ridged ? 0.05f : 0;
            for (int j = 0; j < SIZE; j++) {
                start[j] = 0.3f * (float)(j % 5) - 0.4f;
                unit[j] = 0.25f * (float)(1 << j % 4);
                /* the same in units: a = start + unit * b */
                for (int k = 0; k < R; k++) {
                    plain.r[k] += s.J[k][j] * start[j];
                    plain.J[k][j] *= unit[j];
                }
            }
            cgs_planner *p = must_create(&c, 1);
            cgs_plan_problem q = problem(&s, 1), same = problem(&plain, 1);
            q.start = start;
            q.unit = unit;
            same.start = none;
            float got[SIZE];
            memcpy(got, must_solve(p, &q).plan, sizeof got);
            cgs_planner_reset(p);
            const float *want = must_solve(p, &same).plan;
            ridge(&s, c.gamma, start, unit, a);
            for (int j = 0; j < SIZE; j++) {
                double b = start[j] + (double)unit[j] * want[j];
                if (!(fabs(got[j] - b) < 2e-4) || (!ridged && !(fabs(got[j] - a[j]) < 3e-4)))
                    fail_msg("K = %d: value %d is %g, %g in units, %g by the ridge solution",
                             budgets[i], j, (double)got[j], b, a[j]);
            }
            unit[3] = 0;
            cgs_plan_result r;
            assert_int_equal(cgs_planner_solve(p, &q, &r), CGS_ENUMERIC);
            assert_non_null(strstr(cgs_last_error(), "value 3 of the units"));
            cgs_planner_destroy(p);
        }
}

/* without a pull to the start the residual vanishes where it can */
static void test_without_pull(void **state) {
    (void)state;
    affine s = random_affine(50, 6);
    cgs_plan_config c = settings(6, 16, 2);
    float cost, out[6];
    c.gamma = 0;
    c.damping = c.ridge = 0;
    cgs_planner *p = must_create(&c, 1);
    cgs_plan_problem q = problem(&s, 1);
    cgs_plan_result r = must_solve(p, &q);
    assert_int_equal(residual(&s, r.plan, 1, 1, &cost, out), CGS_OK);
    assert_true(cost < 1e-8f * r.best[0]);
    cgs_planner_destroy(p);
}

/* ---- where they span a part of them ------------------------------------------------------ */

/* J with singular values 1: by m of n directions an iteration closes m / n of the distance to the
 * best plan, on average over candidates; 16 candidates of 20 values are 15 / 20 */
static void test_expected_step(void **state) {
    (void)state;
    enum { E = 400, K = 16 };
    affine s = {.rows = SIZE};
    for (int i = 0; i < SIZE; i++) {
        s.J[i][i] = 1;
        s.r[i] = 0.2 * (i - 7);
    }
    cgs_plan_config c = settings(SIZE, K, 1);
    c.damping = c.ridge = 0;
    c.gamma = 0.5f;
    cgs_planner *p = must_create(&c, E);
    cgs_plan_problem q = problem(&s, E);
    cgs_plan_result r = must_solve(p, &q);
    double sum = 0, square = 0, before = 0, best[SIZE];
    ridge(&s, c.gamma, NULL, NULL, best);
    for (int j = 0; j < SIZE; j++) before += best[j] * best[j];
    for (int e = 0; e < E; e++) {
        double after = 0;
        for (int j = 0; j < SIZE; j++)
            after += (r.plan[e * SIZE + j] - best[j]) * (r.plan[e * SIZE + j] - best[j]);
        sum += after / before;
        square += after / before * after / before;
    }
    double mean = sum / E, error = sqrt((square / E - mean * mean) / E);
    double expected = 1 - (K - 1) / (double)SIZE;
    if (!(fabs(mean - expected) < 5 * error) || !(error < 0.01))
        fail_msg("%g +- %g, not %g", mean, error, expected);
    cgs_planner_destroy(p);
}

/* residuals with a quadratic part */
typedef struct bowl {
    affine linear;
    float bend;
} bowl;

static cgs_status bent(void *ctx, const float *plans, int E, int K, float *cost, float *out) {
    const bowl *b = ctx;
    affine s = b->linear;
    CGS_TRY(residual(&s, plans, E, K, cost, out));
    for (int k = 0; k < E * K; k++) {
        cost[k] = 0;
        for (int i = 0; i < s.rows; i++) {
            float *v = out + k * s.rows + i;
            *v += b->bend * plans[k * SIZE + i] * plans[k * SIZE + (i + 7) % SIZE];
            cost[k] += *v * *v;
        }
    }
    return CGS_OK;
}

/* the share of the cost that is left on average after three iterations */
static double left_of(bowl *b, const cgs_plan_config *c) {
    enum { E = 40 };
    float before, after[E], zeros[SIZE] = {0}, out[E * R];
    cgs_planner *p = must_create(c, E);
    cgs_plan_problem q = problem(&b->linear, E);
    q.residual = bent;
    q.ctx = b;
    cgs_plan_result r = must_solve(p, &q);
    double sum = 0;
    assert_int_equal(bent(b, zeros, 1, 1, &before, out), CGS_OK);
    assert_int_equal(bent(b, r.plan, E, 1, after, out), CGS_OK);
    for (int e = 0; e < E; e++) sum += after[e] / E / before;
    cgs_planner_destroy(p);
    return sum;
}

/* Where residuals bend, more candidates than a plan has values, mirrored ones and those of earlier
 * iterations say more. */
static void test_bent(void **state) {
    (void)state;
    static const struct {
        int K, reuse;
        bool mirror;
    } cases[] = {{16, 0, false}, {16, 0, true},  {16, 2, false}, {20, 0, false},
                 {21, 0, false}, {24, 0, false}, {64, 0, false}, {64, 2, true}};
    bowl b = {random_affine(70, R), 0.5f};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cgs_plan_config c = settings(R, cases[i].K, 3);
        c.mirror = cases[i].mirror;
        c.reuse = cases[i].reuse;
        c.gamma = 0.1f;
        double left = left_of(&b, &c);
        print_message("K %d, mirror %d, reuse %d: %.4f of the cost is left\n", c.K, c.mirror,
                      c.reuse, left);
        assert_true(left < 0.07);
    }
}

/* ... and what is not linear in nearly dependent candidates, of smooth noise, is not fitted by a
 * long combination of them that hardly moves: without the regression it is. */
static void test_nearly_dependent(void **state) {
    (void)state;
    bowl b = {random_affine(70, R), 0.2f};
    for (int K = 16; K <= 20; K += 4) {
        cgs_plan_config c = settings(R, K, 3);
        c.colour = 14;
        c.frameskip = 2;
        c.gamma = 0.1f;
        double left = left_of(&b, &c);
        c.ridge = 0;
        double without = left_of(&b, &c);
        print_message("K %d: %.3f is left, without the regression %.3f\n", K, left, without);
        assert_true(left < 0.27);
        assert_true(without > 0.37);
    }
}

/* a candidate that adds nothing, and costs that none of them changes, are not divided by */
static void test_degenerate(void **state) {
    (void)state;
    affine s = random_affine(60, 4), flat = {.rows = 4, .r = {1, 2, 3, 4}};
    cgs_plan_config c = settings(4, 64, 3);
    c.gamma = 0;
    c.damping = c.ridge = 0;
    cgs_planner *p = must_create(&c, 1);
    cgs_plan_problem q = problem(&s, 1);
    cgs_plan_result r = must_solve(p, &q);
    for (int j = 0; j < SIZE; j++) assert_true(isfinite(r.plan[j]));
    assert_true(r.best[2] < 1e-6f);
    q.ctx = &flat;
    r = must_solve(p, &q);
    for (int j = 0; j < SIZE; j++) assert_true(fabsf(r.plan[j]) < 1e-6f);
    cgs_planner_destroy(p);
}

/* ---- options of candidates ---------------------------------------------------------------- */

static void test_mirror(void **state) {
    (void)state;
    enum { n = 6, K = 8 };
    float mean[n], spread[n], plain[K * n], pairs[K * n];
    uint64_t key = cgs_plan_key(4, 3, 2, 1);
    cgs_noise noise = {.mirror = true};
    for (int j = 0; j < n; j++) {
        mean[j] = 0;
        spread[j] = 1 + (float)j;
    }
    cgs_plan_sample(&key, NULL, mean, spread, 1, K, n, plain);
    cgs_plan_sample(&key, &noise, mean, spread, 1, K, n, pairs);
    for (int k = 0; k < K; k++)
        for (int j = 0; j < n; j++) {
            int of = k && k % 2 == 0 ? k - 1 : k;
            float want = of == k ? plain[of * n + j] : -plain[of * n + j];
            assert_true(pairs[k * n + j] == want);
        }
}

/* noise keeps its variance, and its spectrum falls as the exponent says */
static void test_colour(void **state) {
    (void)state;
    enum { ACTIONS = 10, CHANNELS = 2, n = ACTIONS * CHANNELS, K = 20001 };
    static float plans[K * n];
    float mean[n] = {0}, spread[n];
    double filter[ACTIONS], variance = 0, power[ACTIONS / 2 + 1] = {0}, pi = acos(-1);
    for (int j = 0; j < n; j++) spread[j] = 1;
    cgs_noise_filter(filter, ACTIONS, 2);
    cgs_noise noise = {.filter = filter, .actions = ACTIONS, .channels = CHANNELS};
    uint64_t key = cgs_plan_key(4, 3, 2, 1);
    cgs_plan_sample(&key, &noise, mean, spread, 1, K, n, plans);
    for (int k = 1; k < K; k++)
        for (int c = 0; c < CHANNELS; c++)
            for (int f = 0; 2 * f <= ACTIONS; f++) {
                double re = 0, im = 0;
                for (int t = 0; t < ACTIONS; t++) {
                    double v = plans[k * n + t * CHANNELS + c];
                    re += v * cos(2 * pi * f * t / ACTIONS);
                    im += v * sin(2 * pi * f * t / ACTIONS);
                    if (f == 0) variance += v * v;
                }
                power[f] += re * re + im * im;
            }
    variance /= (double)(K - 1) * n;
    assert_true(fabs(variance - 1) < 0.03);
    assert_true(fabs(power[0] / power[1] - 1) < 0.05);
    for (int f = 2; 2 * f <= ACTIONS; f++)
        assert_true(fabs(power[f] / power[1] * f * f - 1) < 0.05);
}

/* ---- mppi and what is returned ------------------------------------------------------------- */

static double effective(const float *cost, int K, double tau) {
    double sum = 0, square = 0, lowest = cost[0];
    for (int k = 1; k < K; k++) lowest = fmin(lowest, cost[k]);
    for (int k = 0; k < K; k++) {
        double w = exp(-(cost[k] - lowest) / tau);
        sum += w;
        square += w * w;
    }
    return sum * sum / square;
}

static void test_temperature(void **state) {
    (void)state;
    enum { K = 16 };
    float cost[K], equal[K];
    cgs_rng g = cgs_rng_stream(3, CGS_STREAM_TEST, 90);
    for (int scale = -6; scale <= 6; scale += 3) {
        for (int k = 0; k < K; k++) {
            cost[k] = (float)((3 + fabs(cgs_rng_normal(&g))) * pow(10, scale));
            equal[k] = 2;
        }
        for (int ess = 2; ess < K; ess += 3)
            assert_true(fabs(effective(cost, K, cgs_plan_temperature(cost, K, ess)) - ess) < 1e-6);
    }
    assert_true(isfinite(cgs_plan_temperature(equal, K, 4)));
}

/* the temperature of the costs, and a spread that shrinks */
static void test_mppi_options(void **state) {
    (void)state;
    linear s = random_system(38, 3, 2, 3, 0.8);
    cgs_plan_config c = linear_settings("mppi", &s, 16, 1), one = c;
    cgs_plan_problem q = linear_problem(&s, 1);
    c.ess = 4;
    c.decay = 0.5f;
    float plans[16 * N_MAX], cost[16], mean[N_MAX] = {0}, spread[N_MAX];
    for (int j = 0; j < s.n; j++) spread[j] = 1;
    uint64_t key = cgs_plan_key(c.seed, 0, 0, 0);
    cgs_plan_sample(&key, NULL, mean, spread, 1, 16, s.n, plans);
    assert_int_equal(linear_cost(&s, plans, 1, 16, cost), CGS_OK);
    one.tau = (float)cgs_plan_temperature(cost, 16, 4);
    cgs_planner *p = must_create(&c, 1), *fixed = must_create(&one, 1);
    cgs_plan_result r = must_solve(p, &q), f = must_solve(fixed, &q);
    for (int j = 0; j < s.n; j++) {
        assert_true(fabsf(r.plan[j] - f.plan[j]) < 1e-5f);
        assert_true(r.spread[j] == 0.5f && f.spread[j] == 1);
    }
    cgs_planner_destroy(p);
    cgs_planner_destroy(fixed);
    c.best = true;
    c.iters = 5;
    p = must_create(&c, 1);
    r = must_solve(p, &q);
    assert_memory_equal(r.plan, r.best_plan, sizeof(float) * (size_t)s.n);
    cgs_planner_destroy(p);
}

/* the best of an iteration is a candidate of the next: the lowest cost never rises, and is that of
 * the plan that is returned; without kept elites it does rise */
static void test_icem(void **state) {
    (void)state;
    linear s = random_system(38, 3, 2, 3, 0.8);
    cgs_plan_config c = linear_settings("icem", &s, 12, 12);
    assert_true(cgs_plan_colour(&c) == 2);
    int rises[2] = {0, 0};
    for (int without = 0; without < 2; without++) {
        if (without) c.keep = 0;
        cgs_planner *p = must_create(&c, 2);
        cgs_plan_problem q = linear_problem(&s, 2);
        cgs_plan_result r = must_solve(p, &q);
        for (int i = 2; i < 2 * r.iterations; i++) rises[without] += r.best[i] > r.best[i - 2];
        for (int e = 0; e < 2 && !without; e++) {
            float cost = (float)half_square(&s, r.plan + e * s.n);
            assert_true(cost == r.best[2 * (r.iterations - 1) + e]);
        }
        cgs_planner_destroy(p);
    }
    assert_int_equal(rises[0], 0);
    assert_true(rises[1] > 0);
}

/* rows that each call of a cost function was asked for */
typedef struct counted {
    linear *system;
    int rows[8], calls;
} counted;

static cgs_status counted_cost(void *ctx, const float *plans, int E, int K, float *cost) {
    counted *s = ctx;
    s->rows[s->calls++] = E * K;
    return linear_cost(s->system, plans, E, K, cost);
}

/* fewer candidates from iteration to iteration, never below twice the elites, the first ones of
 * those that all would be; the elites stay as many, and are kept */
static void test_icem_shrink(void **state) {
    (void)state;
    static const int expected[6] = {40, 28, 20, 20, 20, 20}; /* 0.7^2 of 40: 19.6 */
    linear s = random_system(39, 3, 2, 3, 0.8);
    cgs_plan_config c = linear_settings("icem", &s, 40, 6), whole = c;
    c.shrink = 0.7f;
    counted seen = {.system = &s};
    cgs_planner *p = must_create(&c, 2);
    cgs_plan_problem q = linear_problem(&s, 2);
    q.cost = counted_cost;
    q.ctx = &seen;
    for (int solve = 0; solve < 2; solve++) { /* a solve begins with all of them again */
        seen.calls = 0;
        cgs_plan_result r = must_solve(p, &q);
        assert_int_equal(seen.calls, 6);
        for (int i = 0; i < 6; i++) {
            assert_int_equal(seen.rows[i], 2 * expected[i]);
            assert_int_equal(cgs_plan_candidates(&c, i), expected[i]);
            assert_int_equal(cgs_plan_candidates(&whole, i), 40);
        }
        for (int i = 2; i < 12; i++) assert_true(r.best[i] <= r.best[i - 2]);
        for (int e = 0; e < 2; e++)
            assert_true((float)half_square(&s, r.plan + e * s.n) == r.best[10 + e]);
    }
    cgs_planner_destroy(p);
    c.elites = 30; /* twice as many are more than there are */
    assert_int_equal(cgs_plan_candidates(&c, 5), 40);
    c.shrink = 0;
    assert_int_equal(cgs_plan_check(&c), CGS_EARG);
    whole.shrink = 0.5f;
    strcpy(whole.kind.s, "cem"); /* which does not read it */
    assert_int_equal(cgs_plan_candidates(&whole, 3), 40);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_ridge_solution),
        cmocka_unit_test(test_without_pull),
        cmocka_unit_test(test_expected_step),
        cmocka_unit_test(test_degenerate),
        cmocka_unit_test(test_bent),
        cmocka_unit_test(test_nearly_dependent),
        cmocka_unit_test(test_mirror),
        cmocka_unit_test(test_colour),
        cmocka_unit_test(test_temperature),
        cmocka_unit_test(test_mppi_options),
        cmocka_unit_test(test_icem),
        cmocka_unit_test(test_icem_shrink),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

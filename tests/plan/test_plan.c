/* test_plan.c - the planners against a slow obvious version, and their settings; test_planners.c
 * has what every row of the table promises, test_plan_theory.c compares with theory. */
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

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

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
            cgs_plan_config c = linear_settings(kinds[a], &s, budgets[b], 4);
            c.tau = 0.7f;
            c.sigma = 0.9f;
            float start[2 * N_MAX] = {0};
            for (int j = 0; j < 2 * s.n; j++) start[j] = 0.1f * (float)(j - 3);
            uint64_t id[] = {5, UINT64_MAX}, number[] = {0, 3};
            cgs_planner *p = must_create(&c, 2);
            cgs_plan_problem q = {.E = 2,
                                  .episode = id,
                                  .solve = number,
                                  .start = start,
                                  .cost = linear_cost,
                                  .ctx = &s};
            cgs_plan_result r = must_solve(p, &q);
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

/* Adam as published, in double, with lr_i = 0.05 (1 + cos(pi i / 100)) */
static void test_gd_against_obvious(void **state) {
    (void)state;
    linear s = random_system(39, 4, 2, 3, 0.7);
    double x[N_MAX], m[N_MAX] = {0}, v[N_MAX] = {0}, pi = acos(-1);
    float start[N_MAX];
    for (int j = 0; j < s.n; j++) x[j] = start[j] = 0.3f * (float)(j - 2);
    for (int i = 0; i < 100; i++) {
        double g[N_MAX], rate = 0.05 * (1 + cos(pi * i / 100));
        for (int j = 0; j < s.n; j++) {
            g[j] = -s.pull[j];
            for (int k = 0; k < s.n; k++) g[j] += s.g[j][k] * x[k];
        }
        for (int j = 0; j < s.n; j++) {
            m[j] = 0.9 * m[j] + 0.1 * g[j];
            v[j] = 0.999 * v[j] + 0.001 * g[j] * g[j];
            double m_hat = m[j] / (1 - pow(0.9, i + 1)), v_hat = v[j] / (1 - pow(0.999, i + 1));
            x[j] -= rate * m_hat / (sqrt(v_hat) + 1e-8);
        }
    }
    cgs_plan_config c = linear_settings("gd", &s, 1, 1);
    cgs_planner *p = must_create(&c, 1);
    cgs_plan_problem q = {.E = 1, .start = start, .gradient = linear_gradient, .ctx = &s};
    cgs_plan_result r = must_solve(p, &q);
    for (int j = 0; j < s.n; j++)
        if (!(fabs(r.plan[j] - x[j]) < 2e-5))
            fail_msg("value %d: %g, not %g", j, (double)r.plan[j], x[j]);
    cgs_planner_destroy(p);
}

/* ---- behaviour ---------------------------------------------------------------------- */

static cgs_status constant_cost(void *ctx, const float *plans, int E, int K, float *cost) {
    (void)ctx;
    (void)plans;
    for (int i = 0; i < E * K; i++) cost[i] = 3;
    return CGS_OK;
}

/* equal costs: the elites are the first candidates, the mean among them */
/* what was drawn for two episodes */
typedef struct drawn {
    int n, K;
    float *plans; /* (2, K, n) */
} drawn;

static cgs_status keep_plans(void *ctx, const float *plans, int E, int K, float *cost) {
    drawn *d = ctx;
    memcpy(d->plans, plans, sizeof(float) * (size_t)(E * K * d->n));
    for (int i = 0; i < E * K; i++) cost[i] = 1;
    return CGS_OK;
}

/* Candidates of a problem with units have the mean of the start and the spread plan.sigma * unit,
 * value by value; and by the product of Gaussians the precisions add. */
static void test_units(void **state) {
    (void)state;
    enum { K = 20000, n = 6 };
    static float plans[2 * K * n], start[2 * n], unit[2 * n];
    static const char *const kinds[] = {"pg-mppi", "pg-cem"};
    for (int k = 0; k < 2; k++) {
        drawn d = {n, K, plans};
        cgs_plan_config c = cgs_plan_defaults();
        strcpy(c.kind.s, kinds[k]);
        c.H = 2;
        c.A = 3;
        c.K = K;
        c.iters = 1;
        c.sigma = 0.8f;
        for (int j = 0; j < 2 * n; j++) {
            start[j] = 0.5f * (float)(j - n);
            unit[j] = 0.1f * (float)(j + 1);
        }
        cgs_planner *p = must_create(&c, 2);
        cgs_plan_problem q = {.E = 2, .start = start, .unit = unit, .cost = keep_plans, .ctx = &d};
        must_solve(p, &q);
        for (int j = 0; j < 2 * n; j++) {
            const float *at = plans + j / n * K * n + j % n;
            double sum = 0, square = 0, want = 0.8 * unit[j], width = want / sqrt(K - 1);
            assert_true(at[0] == start[j]); /* candidate 0 */
            for (int i = 1; i < K; i++) {
                sum += at[i * n] - start[j];
                square += ((double)at[i * n] - start[j]) * ((double)at[i * n] - start[j]);
            }
            sum /= K - 1;
            square = sqrt(square / (K - 1));
            if (!(fabs(sum) < 5 * width) || !(fabs(square - want) < 5 * width / sqrt(2)))
                fail_msg("%s, value %d: mean off by %g, spread %g, not %g", kinds[k], j, sum,
                         square, want);
        }
        cgs_planner_destroy(p);
    }
    float spread[] = {1e-4f, 0.5f, 1, 3, 1e4f};
    cgs_plan_product(spread, 5);
    assert_true(fabsf(spread[0] / 1e-4f - 1) < 1e-5f && fabsf(spread[4] - 1) < 1e-5f);
    static const double own[] = {0.5, 1, 3};
    for (int i = 0; i < 3; i++)
        assert_true(fabs(1 / ((double)spread[i + 1] * spread[i + 1]) - 1 - 1 / (own[i] * own[i])) <
                    1e-5);
}

static void test_ties_by_index(void **state) {
    (void)state;
    linear s = random_system(32, 2, 2, 2, 1);
    cgs_plan_config c = linear_settings("cem", &s, 32, 1);
    cgs_planner *p = must_create(&c, 1);
    cgs_plan_problem q = {.E = 1, .cost = constant_cost};
    cgs_plan_result r = must_solve(p, &q);
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

static void test_random(void **state) {
    (void)state;
    linear s = random_system(34, 2, 2, 3, 1);
    cgs_plan_config c = linear_settings("random", &s, 128, 30);
    c.sigma = 2;
    enum { E = 4000 };
    cgs_planner *p = must_create(&c, E);
    cgs_plan_problem q = {.E = E};
    cgs_plan_result r = must_solve(p, &q);
    double sum = 0, square = 0, first = r.plan[0];
    int count = E * s.n;
    for (int i = 0; i < count; i++) {
        sum += r.plan[i];
        square += (double)r.plan[i] * r.plan[i];
    }
    /* five standard errors */
    assert_true(fabs(sum / count) < 5 * 2 / sqrt(count));
    assert_true(fabs(square / count - 4) < 5 * 4 * sqrt(2.0 / count));
    r = must_solve(p, &q); /* another solve is another draw; after a reset it is the first again */
    assert_true(r.plan[0] != first && r.iterations == 0 && !r.cut);
    cgs_planner_reset(p);
    r = must_solve(p, &q);
    assert_true(r.plan[0] == first);
    cgs_planner_destroy(p);
}

/* a larger budget extends a smaller one: the first candidates are the same */
static void test_prefix_budget(void **state) {
    (void)state;
    enum { n = 5 };
    float mean[n] = {0}, spread[n] = {1, 1, 1, 1, 1}, small[8 * n], large[20 * n];
    uint64_t key = cgs_plan_key(1, 2, 3, 4);
    cgs_plan_sample(&key, NULL, mean, spread, 1, 8, n, small);
    cgs_plan_sample(&key, NULL, mean, spread, 1, 20, n, large);
    assert_memory_equal(small, large, sizeof small);
    /* and the mean it was drawn around, spread over 20 candidates, does not repeat */
    for (int a = 1; a < 20; a++)
        for (int b = 0; b < a; b++) assert_true(large[a * n] != large[b * n]);
}

/* cem and mppi improve on their start; the history shows it */
static void test_history(void **state) {
    (void)state;
    linear s = random_system(38, 3, 2, 3, 0.8);
    static const char *const kinds[] = {"cem", "mppi"};
    for (int k = 0; k < COUNT(kinds); k++) {
        cgs_plan_config c = linear_settings(kinds[k], &s, 128, 30);
        c.tau = 0.05f;
        cgs_planner *p = must_create(&c, 3);
        cgs_plan_problem q = {.E = 2, .cost = linear_cost, .ctx = &s};
        cgs_plan_result r = must_solve(p, &q);
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

    cgs_section s = cgs_plan_tuning(&c);
    assert_int_equal(cgs_config_assign(&s, 1, "plan.sigma=0.3"), CGS_OK);
    assert_true(c.sigma == 0.3f);
    expect(cgs_config_assign(&s, 1, "plan.sigma=0"), CGS_EARG, "plan.sigma");
    /* commands have an option for it */
    expect(cgs_config_assign(&s, 1, "plan.samples=8"), CGS_EARG, "plan.samples");

    assert_int_equal(cgs_config_assign(&s, 1, "plan.gn.gamma=auto"), CGS_OK);
    assert_true(cgs_plan_gamma_open(&c));
    assert_int_equal(cgs_config_assign(&s, 1, "plan.gn.gamma=0.5"), CGS_OK);
    assert_false(cgs_plan_gamma_open(&c));
    expect(cgs_config_assign(&s, 1, "plan.sigma=auto"), CGS_EARG, "plan.sigma");

    assert_true(cgs_plan_decay(&c) == 1);
    strcpy(c.kind.s, "pg-gn");
    assert_true(cgs_plan_decay(&c) == 0.8f);
    c.decay = 0.5f;
    assert_true(cgs_plan_decay(&c) == 0.5f);
}

static void test_bad_settings(void **state) {
    (void)state;
    linear s = random_system(40, 2, 2, 2, 1);
    cgs_planner *p;
    cgs_plan_config good = linear_settings("cem", &s, 16, 2), c;
#define REJECTED(change, words)                                                                    \
    c = good;                                                                                      \
    change;                                                                                        \
    expect(cgs_planner_create(&p, &c, 1), CGS_EARG, words);                                        \
    assert_null(p)
    REJECTED(c.K = 0, "plan.samples: 0");
    REJECTED(c.K = -5, "plan.samples: -5");
    REJECTED(c.iters = 0, "plan.iters: 0");
    REJECTED(c.gd_steps = 0, "plan.gd.steps: 0");
    REJECTED(c.H = 0, "plan.horizon: 0");
    REJECTED(c.A = -1, "plan.action_size: -1");
    REJECTED(c.elites = 17, "plan.elites: 17 is more than the 16");
    REJECTED(c.elites = -1, "plan.elites: -1");
    REJECTED(c.elite_fraction = 0, "plan.elite_fraction");
    REJECTED(c.elite_fraction = 1.5f, "plan.elite_fraction");
    REJECTED(c.tau = 0, "plan.tau: 0");
    REJECTED(c.tau = -1, "plan.tau: -1");
    REJECTED(c.tau = NAN, "plan.tau: nan");
    REJECTED(c.sigma = 0, "plan.sigma: 0");
    REJECTED(c.sigma = INFINITY, "plan.sigma: inf");
    REJECTED(c.lr = 0, "plan.gd.lr: 0");
    REJECTED(c.deadline = -1, "plan.deadline: -1");
    REJECTED(c.decay = 1.5f, "plan.decay: 1.5");
    REJECTED(c.ess = -1, "plan.ess: -1");
    REJECTED(c.colour = NAN, "plan.colour: nan");
    REJECTED(c.keep = 2, "plan.icem.keep: 2");
    REJECTED(c.gamma = -0.5f, "plan.gn.gamma: -0.5");
    REJECTED((strcpy(c.kind.s, "gn"), c.R = 3, c.gamma = -1), "plan.gn.gamma: auto");
    REJECTED(c.damping = INFINITY, "plan.gn.damping: inf");
    REJECTED(c.reuse = -1, "plan.gn.reuse: -1");
    REJECTED(c.frameskip = 3, "plan.frameskip: 3 actions in an action block of 2");
    REJECTED((strcpy(c.kind.s, "gn"), c.R = 0), "plan.residual_size");
    REJECTED(strcpy(c.kind.s, "cme"), "plan.planner: \"cme\"");
    REJECTED((c.K = 1 << 24, c.H = 4096, c.A = 4096), "too many");
#undef REJECTED
    expect(cgs_planner_create(&p, &good, 0), CGS_EARG, "0 episodes");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_against_obvious),
        cmocka_unit_test(test_gd_against_obvious),
        cmocka_unit_test(test_ties_by_index),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_prefix_budget),
        cmocka_unit_test(test_history),
        cmocka_unit_test(test_shift),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_bad_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

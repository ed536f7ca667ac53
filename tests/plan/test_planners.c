/* test_planners.c - what every row of the table of planners promises: the same plan for the same
 * seed whatever the batch and the threads, no allocation in a solve, deadlines, histories, and
 * refusals.  A new row is tested here without an edit. */
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

#include "allocations.h"
#include "core/threads.h"
#include "linear_system.h"
#include "plan/planners.h"

/* ---- rows --------------------------------------------------------------------------- */

#define EACH_PLANNER(kind, i)                                                                      \
    const cgs_planner_kind *kind;                                                                  \
    for (int i = 0; (kind = cgs_planner_kind_at(i)); i++)

static bool scores(const cgs_planner_kind *kind) { return kind->needs & CGS_NEEDS_SCORES; }
static bool draws(const cgs_planner_kind *kind) { return kind->reads & CGS_READS_SIGMA; }

/* an iteration count of one's own, where the planner reads one */
static cgs_plan_config settings_of(const cgs_planner_kind *kind, const linear *s, int K,
                                   int iterations) {
    cgs_plan_config c = linear_settings(kind->name, s, K, iterations);
    c.gd_steps = iterations;
    return c;
}

static void expect(const cgs_planner_kind *kind, cgs_status rc, cgs_status code,
                   const char *words) {
    if (rc != code || !strstr(cgs_last_error(), words))
        fail_msg("%s: status %s, \"%s\": expected %s and \"%s\"", kind->name, cgs_status_name(rc),
                 cgs_last_error(), cgs_status_name(code), words);
}

static void test_rows(void **state) {
    (void)state;
    char names[CGS_PLANNER_NAMES], without[CGS_PLANNER_NAMES];
    cgs_planner_names(names, sizeof names, 0);
    cgs_planner_names(without, sizeof without, CGS_NEEDS_PRIOR);
    assert_true(strlen(names) + 1 < sizeof names);
    int rows = 0;
    EACH_PLANNER(kind, i) {
        const cgs_planner_kind *found;
        assert_int_equal(cgs_planner_kind_find(&found, kind->name), CGS_OK);
        assert_ptr_equal(found, kind); /* no two have the same name */
        assert_true(*kind->title && *kind->summary);
        assert_non_null(strstr(names, kind->name));
        if (!(kind->needs & CGS_NEEDS_PRIOR)) assert_non_null(strstr(without, kind->name));
        assert_true(strlen(kind->name) < 20);
        /* one kind of score, and an update exactly where there is one */
        assert_int_not_equal(kind->needs & CGS_NEEDS_SCORES, CGS_NEEDS_SCORES);
        assert_true(scores(kind) == (kind->update != NULL));
        assert_true(kind->kernel == CGS_KERNEL_NONE || kind->update);
        /* candidates have costs, and none have gradients */
        if (kind->reads & CGS_READS_SAMPLES) assert_true(kind->needs & CGS_NEEDS_COST);
        if (kind->needs & CGS_NEEDS_RESIDUAL) assert_true(kind->needs & CGS_NEEDS_COST);
        assert_int_equal(kind->reads >> CGS_PLANNER_SETTING_COUNT, 0);
        rows++;
    }
    assert_true(rows > 0);
    assert_null(cgs_planner_kind_at(rows));
    assert_null(cgs_planner_kind_at(-1));
    assert_null(cgs_planner_kind_of("cma"));
    assert_null(strstr(without, "pg-"));
    expect(cgs_planner_kind_at(0), cgs_planner_kind_find(&kind, "cma"), CGS_EARG, names);
    assert_null(kind);
}

/* a planner's rule makes at most the rollouts that it is given, most of them, and gives the same
 * again for what it gave */
static void test_rules(void **state) {
    (void)state;
    EACH_PLANNER(kind, i) {
        assert_true(!kind->divide || kind->reads & CGS_READS_SAMPLES);
        for (int rollouts = 1; kind->divide && rollouts < 5000; rollouts++) {
            int K = 0, iters = 0;
            kind->divide(rollouts, &K, &iters);
            assert_true(K >= 1 && iters >= 1 && K * iters <= rollouts);
            assert_true(2 * K * iters > rollouts);
            assert_true(cgs_planner_divides(kind, K, iters));
        }
        assert_false(cgs_planner_divides(kind, 7, 200));
        assert_false(cgs_planner_divides(kind, NAN, 30));
    }
    int K, iters; /* the published planners at their published number */
    cgs_planner_kind_of("mppi")->divide(3840, &K, &iters);
    assert_true(K == 128 && iters == 30);
}

/* ---- the same plan ------------------------------------------------------------------ */

/* the same episode alone, in a batch of seven, on one to three threads, and after a reset: same
 * bits; another seed, id or solve number is another plan exactly where a planner draws */
static void test_determinism(void **state) {
    (void)state;
    linear s = random_system(35, 3, 2, 4, 0.6);
    enum { E = 7 };
    float start[E * N_MAX], one[E * N_MAX], history[E * 6];
    uint64_t id[E] = {3, 1, 4, 15, 9, 2, 6}, other_seed = 12;
    int before = cgs_threads();
    for (int i = 0; i < E * s.n; i++) start[i] = 0.05f * (float)(i % 11);
    EACH_PLANNER(kind, k) {
        cgs_plan_config c = settings_of(kind, &s, 300, 6);
        cgs_planner *batch = must_create(&c, E), *single = must_create(&c, 1);
        cgs_plan_problem q = linear_problem(&s, E);
        q.episode = id;
        q.start = start;
        cgs_set_threads(1);
        cgs_plan_result r = must_solve(batch, &q);
        size_t bytes = sizeof(float) * (size_t)(E * s.n), each = sizeof(float) * (size_t)s.n;
        size_t costs = sizeof(float) * (size_t)(E * r.iterations);
        memcpy(one, r.plan, bytes);
        memcpy(history, r.best, costs);
        for (int threads = 2; threads <= 3; threads++) {
            cgs_set_threads(threads);
            cgs_planner_reset(batch);
            r = must_solve(batch, &q);
            assert_memory_equal(r.plan, one, bytes);
            assert_memory_equal(r.best, history, costs);
        }
        q.E = 1;
        for (int e = 0; e < E; e++) {
            cgs_planner_reset(single);
            q.episode = id + e;
            q.start = start + e * s.n;
            r = must_solve(single, &q);
            assert_memory_equal(r.plan, one + e * s.n, each);
        }
        const float *last = one + (E - 1) * s.n;
        r = must_solve(single, &q); /* solve 1 of the last episode */
        assert_int_equal(memcmp(r.plan, last, each) != 0, draws(kind));
        cgs_planner_reset(single);
        q.episode = NULL;
        r = must_solve(single, &q);
        assert_int_equal(memcmp(r.plan, last, each) != 0, draws(kind));
        cgs_planner_reset(single);
        q.episode = id + E - 1;
        q.seed = &other_seed;
        r = must_solve(single, &q);
        assert_int_equal(memcmp(r.plan, last, each) != 0, draws(kind));
        cgs_planner_destroy(batch);
        cgs_planner_destroy(single);
    }
    cgs_set_threads(before);
}

static void test_no_allocation(void **state) {
    (void)state;
    linear s = random_system(36, 3, 2, 4, 0.6);
    EACH_PLANNER(kind, k) {
        cgs_plan_config c = settings_of(kind, &s, 300, 5);
        long at_create = allocations;
        cgs_planner *p = must_create(&c, 4);
        assert_true(allocations > at_create); /* the counter counts */
        cgs_plan_problem q = linear_problem(&s, 4);
        long before = allocations;
        for (q.E = 4; q.E > 0; q.E--) must_solve(p, &q);
        cgs_planner_reset(p);
        assert_int_equal(allocations - before, 0);
        cgs_planner_destroy(p);
    }
    cgs_planner_destroy(NULL);
}

/* ---- what was scored ---------------------------------------------------------------- */

/* costs that are remembered: the lowest of each of two episodes, and its plan */
typedef struct watched {
    linear *system;
    int calls, rows, wait; /* wait: nanoseconds per call */
    float best[2], plan[2][N_MAX];
} watched;

static cgs_status watched_cost(void *ctx, const float *plans, int E, int K, float *cost) {
    watched *s = ctx;
    struct timespec wait = {0, s->wait};
    if (s->wait) nanosleep(&wait, NULL);
    if (s->calls++ == 0) s->best[0] = s->best[1] = INFINITY;
    s->rows += E * K;
    for (int i = 0; i < E * K; i++) {
        const float *plan = plans + i * s->system->n;
        cost[i] = (float)half_square(s->system, plan);
        if (cost[i] < s->best[i / K]) {
            s->best[i / K] = cost[i];
            memcpy(s->plan[i / K], plan, sizeof(float) * (size_t)s->system->n);
        }
    }
    return CGS_OK;
}

static cgs_status watched_gradient(void *ctx, const float *plans, int E, float *cost, float *grad) {
    watched *s = ctx;
    CGS_TRY(linear_gradient(s->system, plans, E, cost, grad));
    return watched_cost(ctx, plans, E, 1, cost);
}

static cgs_status watched_residual(void *ctx, const float *plans, int E, int K, float *cost,
                                   float *residual) {
    watched *s = ctx;
    CGS_TRY(linear_residual(s->system, plans, E, K, cost, residual));
    return watched_cost(ctx, plans, E, K, cost);
}

static cgs_status watched_jacobian(void *ctx, const float *plans, int E, float *cost,
                                   float *residual, float *jacobian) {
    watched *s = ctx;
    CGS_TRY(linear_jacobian(s->system, plans, E, cost, residual, jacobian));
    return watched_cost(ctx, plans, E, 1, cost);
}

static cgs_plan_problem watched_problem(watched *ctx, int E) {
    return (cgs_plan_problem){.E = E,
                              .cost = watched_cost,
                              .gradient = watched_gradient,
                              .residual = watched_residual,
                              .jacobian = watched_jacobian,
                              .R = ctx->system->d,
                              .ctx = ctx};
}

/* the lowest cost in a history of two episodes */
static float lowest_of(const cgs_plan_result *r, int e) {
    float lowest = INFINITY;
    for (int i = 0; i < r->iterations; i++) lowest = fminf(lowest, r->best[2 * i + e]);
    return lowest;
}

/* as many scores and as long a history as the settings say; the best plan is one that was scored */
static void test_history(void **state) {
    (void)state;
    linear s = random_system(38, 3, 2, 3, 0.8);
    EACH_PLANNER(kind, k) {
        cgs_plan_config c = settings_of(kind, &s, 20, 7);
        watched ctx = {.system = &s};
        cgs_planner *p = must_create(&c, 3);
        cgs_plan_problem q = watched_problem(&ctx, 2);
        cgs_plan_result r = must_solve(p, &q);
        bool repeats = kind->reads & (CGS_READS_ITERS | CGS_READS_STEPS);
        assert_int_equal(r.iterations, !scores(kind) ? 0 : repeats ? 7 : 1);
        assert_int_equal(r.iterations, cgs_plan_iterations(&c));
        assert_int_equal(ctx.calls, r.iterations);
        assert_int_equal(ctx.rows, 2 * r.iterations * cgs_planner_candidates(kind, &c));
        assert_true(!r.cut && !r.device_loop);
        for (int e = 0; e < 2; e++) {
            size_t each = sizeof(float) * (size_t)s.n;
            const float *best = r.best_plan + e * s.n;
            for (int i = 0; i < r.iterations; i++)
                assert_true(r.best[2 * i + e] <= r.mean[2 * i + e]);
            assert_memory_equal(best, scores(kind) ? ctx.plan[e] : r.plan + e * s.n, each);
            if (scores(kind)) assert_true(lowest_of(&r, e) == ctx.best[e]);
            for (int j = 0; j < s.n; j++) assert_true(isfinite(r.plan[e * s.n + j]));
        }
        cgs_planner_destroy(p);
    }
}

/* a lone candidate is the start, however many iterations are asked for; so is the plan of those
 * that neither score nor draw */
static void test_one_candidate(void **state) {
    (void)state;
    linear s = random_system(33, 3, 2, 3, 1);
    float start[N_MAX], zeros[N_MAX] = {0};
    for (int j = 0; j < s.n; j++) start[j] = 0.1f + 1.7f * (float)j;
    EACH_PLANNER(kind, k) {
        bool still = !scores(kind) && !draws(kind);
        if (!(kind->reads & CGS_READS_SAMPLES) && !still) continue;
        cgs_plan_config c = settings_of(kind, &s, 1, 30);
        cgs_planner *p = must_create(&c, 1);
        s.rows = 0;
        cgs_plan_problem q = linear_problem(&s, 1);
        q.start = start;
        cgs_plan_result r = must_solve(p, &q);
        assert_memory_equal(r.plan, start, sizeof(float) * (size_t)s.n);
        assert_int_equal(s.rows, still ? 0 : 1);
        q.start = NULL;
        r = must_solve(p, &q);
        assert_memory_equal(r.plan, zeros, sizeof(float) * (size_t)s.n);
        cgs_planner_destroy(p);
    }
}

static void test_deadline(void **state) {
    (void)state;
    linear s = random_system(37, 3, 2, 3, 0.6);
    EACH_PLANNER(kind, k) {
        cgs_plan_config c = settings_of(kind, &s, 16, 50);
        bool repeats = cgs_plan_iterations(&c) > 1;
        c.deadline = 0.045f;
        watched ctx = {.system = &s, .wait = 10000000};
        cgs_planner *p = must_create(&c, 2);
        cgs_plan_problem q = watched_problem(&ctx, 2);
        cgs_plan_result r = must_solve(p, &q);
        /* a loaded machine may stretch a wait, but never shorten it: at most four fit */
        assert_true(r.cut == repeats && r.iterations <= 4);
        assert_true(r.iterations >= 1 || !scores(kind));
        assert_int_equal(r.iterations, ctx.calls);
        assert_true(r.times.total >= 0.01 * r.iterations);
        for (int e = 0; e < 2 && r.cut; e++) {
            assert_memory_equal(r.plan + e * s.n, ctx.plan[e], sizeof(float) * (size_t)s.n);
            assert_true(lowest_of(&r, e) == ctx.best[e]);
        }
        cgs_planner_destroy(p);

        /* far shorter than an iteration: the first is still made */
        c.deadline = 1e-6f;
        p = must_create(&c, 2);
        ctx.calls = 0;
        r = must_solve(p, &q);
        assert_true(r.cut == repeats && r.iterations == scores(kind));
        cgs_planner_destroy(p);

        /* long enough: nothing is cut and the mean comes back as without a deadline */
        c.deadline = 1000;
        c.iters = c.gd_steps = 2;
        p = must_create(&c, 2);
        r = must_solve(p, &q);
        assert_true(!r.cut && r.iterations == cgs_plan_iterations(&c));
        /* timers: each iteration waited ten milliseconds for costs */
        assert_true(r.times.cost >= 0.01 * r.iterations && r.times.sample >= 0);
        assert_true(r.times.update > 0 || !scores(kind));
        assert_true(r.times.total >= r.times.sample + r.times.cost + r.times.update);
        cgs_planner_destroy(p);
    }
}

/* ---- bad input ---------------------------------------------------------------------- */

/* a score that is bad at one place: iteration, row of costs or value of the gradient */
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

/* a descent whose cost is bad */
static cgs_status spoiled_descent(void *ctx, const float *plans, int E, float *cost, float *grad) {
    spoiled *b = ctx;
    CGS_TRY(linear_gradient(b->system, plans, E, cost, grad));
    if (b->calls++ == b->iteration) cost[b->row] = b->value;
    return CGS_OK;
}

static cgs_status spoiled_gradient(void *ctx, const float *plans, int E, float *cost, float *grad) {
    spoiled *b = ctx;
    CGS_TRY(linear_gradient(b->system, plans, E, cost, grad));
    if (b->calls++ == b->iteration) grad[b->row] = b->value;
    return CGS_OK;
}

static cgs_status spoiled_residual(void *ctx, const float *plans, int E, int K, float *cost,
                                   float *residual) {
    spoiled *b = ctx;
    CGS_TRY(linear_residual(b->system, plans, E, K, cost, residual));
    if (b->calls++ == b->iteration) cost[b->row] = b->value;
    return CGS_OK;
}

/* the costs are good, a value of a residual is not */
static cgs_status spoiled_value(void *ctx, const float *plans, int E, int K, float *cost,
                                float *residual) {
    spoiled *b = ctx;
    CGS_TRY(linear_residual(b->system, plans, E, K, cost, residual));
    if (b->calls++ == b->iteration) residual[b->row] = b->value;
    return CGS_OK;
}

static cgs_status spoiled_jacobian(void *ctx, const float *plans, int E, float *cost,
                                   float *residual, float *jacobian) {
    spoiled *b = ctx;
    CGS_TRY(linear_jacobian(b->system, plans, E, cost, residual, jacobian));
    if (b->calls++ == b->iteration) cost[b->row] = b->value;
    return CGS_OK;
}

static cgs_status spoiled_derivative(void *ctx, const float *plans, int E, float *cost,
                                     float *residual, float *jacobian) {
    spoiled *b = ctx;
    CGS_TRY(linear_jacobian(b->system, plans, E, cost, residual, jacobian));
    if (b->calls++ == b->iteration) jacobian[b->row] = b->value;
    return CGS_OK;
}

static cgs_status failing_cost(void *ctx, const float *plans, int E, int K, float *cost) {
    (void)ctx;
    (void)plans;
    (void)cost;
    return cgs_fail(CGS_EDEVICE, "no device for %d x %d", E, K);
}

static cgs_status failing_gradient(void *ctx, const float *plans, int E, float *cost, float *grad) {
    (void)grad;
    return failing_cost(ctx, plans, E, 1, cost);
}

static cgs_status failing_residual(void *ctx, const float *plans, int E, int K, float *cost,
                                   float *residual) {
    (void)residual;
    return failing_cost(ctx, plans, E, K, cost);
}

static cgs_status failing_jacobian(void *ctx, const float *plans, int E, float *cost,
                                   float *residual, float *jacobian) {
    (void)residual;
    (void)jacobian;
    return failing_cost(ctx, plans, E, 1, cost);
}

static void test_bad_scores(void **state) {
    (void)state;
    linear s = random_system(41, 2, 2, 2, 1);
    cgs_plan_result r;
    uint64_t id[] = {70, 71, 72};
    EACH_PLANNER(kind, i) {
        if (!scores(kind)) continue;
        cgs_plan_config c = settings_of(kind, &s, 16, 5);
        cgs_planner *p = must_create(&c, 3);
        int K = cgs_planner_candidates(kind, &c), k = K > 9 ? 9 : 0;
        int last = cgs_plan_iterations(&c) - 1;
        char words[96];
        spoiled ctx = {&s, 0, last, 2 * K + k, NAN};
        cgs_plan_problem q = {.E = 3,
                              .episode = id,
                              .cost = spoiled_cost,
                              .gradient = spoiled_descent,
                              .residual = spoiled_residual,
                              .jacobian = spoiled_jacobian,
                              .R = s.d,
                              .ctx = &ctx};
        snprintf(words, sizeof words, "%s: the cost of episode 72, candidate %d, iteration %d is",
                 kind->name, k, last);
        expect(kind, cgs_planner_solve(p, &q, &r), CGS_ENUMERIC, words);
        ctx = (spoiled){&s, 0, 0, 0, -INFINITY};
        expect(kind, cgs_planner_solve(p, &q, &r), CGS_ENUMERIC,
               "episode 70, candidate 0, iteration 0 is -inf");
        if (kind->needs & CGS_NEEDS_GRADIENT) {
            q.gradient = spoiled_gradient;
            ctx = (spoiled){&s, 0, last, s.n + 2, INFINITY};
            snprintf(words, sizeof words,
                     "%s: value 2 of the gradient of episode 71, iteration %d is inf", kind->name,
                     last);
            expect(kind, cgs_planner_solve(p, &q, &r), CGS_ENUMERIC, words);
        }
        if (kind->needs & CGS_NEEDS_RESIDUAL) {
            q.residual = spoiled_value;
            ctx = (spoiled){&s, 0, last, (K + k) * s.d + 1, INFINITY};
            snprintf(words, sizeof words,
                     "%s: value 1 of the residual of episode 71, candidate %d, iteration %d is inf",
                     kind->name, k, last);
            expect(kind, cgs_planner_solve(p, &q, &r), CGS_ENUMERIC, words);
            q.R = s.d + 1;
            expect(kind, cgs_planner_solve(p, &q, &r), CGS_EARG, "residuals of 3 values");
            q.residual = NULL;
            expect(kind, cgs_planner_solve(p, &q, &r), CGS_EARG, "comes without residuals");
            q.R = s.d;
        }
        if (kind->needs & CGS_NEEDS_JACOBIAN) {
            q.jacobian = spoiled_derivative;
            ctx = (spoiled){&s, 0, last, (s.d + 1) * s.n + 2, NAN};
            snprintf(words, sizeof words,
                     "%s: the derivative of residual 1 of episode 71 by value 2, iteration %d, is",
                     kind->name, last);
            expect(kind, cgs_planner_solve(p, &q, &r), CGS_ENUMERIC, words);
        }
        q.cost = failing_cost;
        q.jacobian = failing_jacobian;
        q.residual = failing_residual;
        q.gradient = failing_gradient;
        snprintf(words, sizeof words, "no device for 3 x %d", K);
        expect(kind, cgs_planner_solve(p, &q, &r), CGS_EDEVICE, words);
        q.cost = NULL;
        q.gradient = NULL;
        q.jacobian = NULL;
        expect(kind, cgs_planner_solve(p, &q, &r), CGS_EARG,
               kind->needs & CGS_NEEDS_COST       ? "no cost function"
               : kind->needs & CGS_NEEDS_GRADIENT ? "no gradient function"
                                                  : "comes without residuals");
        /* the planner is still usable */
        q = linear_problem(&s, 3);
        assert_int_equal(cgs_planner_solve(p, &q, &r), CGS_OK);
        cgs_planner_destroy(p);
    }
}

static void test_bad_problem(void **state) {
    (void)state;
    linear s = random_system(41, 2, 2, 2, 1);
    cgs_plan_result r;
    uint64_t id[] = {70, 71, 72}, number[] = {0, UINT64_C(1) << 32, 0};
    float start[3 * N_MAX] = {0};
    EACH_PLANNER(kind, k) {
        cgs_plan_config c = settings_of(kind, &s, 16, 5);
        cgs_planner *p = must_create(&c, 3);
        cgs_plan_problem q = linear_problem(&s, 3);
        q.episode = id;
        q.start = start;
        start[s.n + 1] = NAN;
        expect(kind, cgs_planner_solve(p, &q, &r), CGS_ENUMERIC,
               "value 1 of the start of episode 71");
        start[s.n + 1] = 0;
        q.solve = number;
        expect(kind, cgs_planner_solve(p, &q, &r), CGS_EARG,
               "solve number 4294967296 of episode 71");
        q.solve = NULL;
        q.E = 4;
        expect(kind, cgs_planner_solve(p, &q, &r), CGS_EARG, "4 episodes");
        q.E = 0;
        expect(kind, cgs_planner_solve(p, &q, &r), CGS_EARG, "0 episodes");
        q.E = 3;
        assert_int_equal(cgs_planner_solve(p, &q, &r), CGS_OK);
        cgs_planner_destroy(p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_determinism), cmocka_unit_test(test_no_allocation),
        cmocka_unit_test(test_history),     cmocka_unit_test(test_one_candidate),
        cmocka_unit_test(test_deadline),    cmocka_unit_test(test_bad_scores),
        cmocka_unit_test(test_bad_problem),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* planner.c - settings, memory and the loop of the planners; refine.c has the arithmetic.
 *
 * One solve: copy the starts into `mean`, then per iteration sample, score, check,
 * note the best, update.  The history and the best plan are kept for every planner, so
 * that a deadline can return a plan that was really scored. */
#include "plan/planner.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/threads.h"
#include "plan/device_loop.h"
#include "plan/refine.h"

struct cgs_planner {
    cgs_plan_config config;
    cgs_plan_kind kind;
    cgs_arena arena;
    int max_E, n, iterations; /* n = H * A */
    uint64_t solves;          /* since create or reset */

    uint64_t *key;        /* (E) noise of the running iteration            */
    float *mean, *spread; /* (E, n) the proposal, or gd's iterate          */
    float *best_plan;     /* (E, n) lowest cost among all scored           */
    float *best_cost;     /* (E) its cost                                  */
    float *low, *average; /* (iterations, E) cost history                  */
    float *plans, *cost;  /* (E, K, n), (E, K) candidates                  */
    int *order;           /* (E, K) cem's scratch                          */
    double *weight;       /* (E, K) mppi's scratch                         */
    float *grad, *m, *v;  /* (E, n) gd's gradient and moments              */

    cgs_device_loop *device_loop; /* memory on a device, after a solve there */
};

/* ---- settings ---------------------------------------------------------------------- */

#define ROW(kind, field, initial, low, high, key, doc)                                             \
    CGS_CONFIG_ROW(cgs_plan_config, kind, field, initial, low, high, key, doc)
static const cgs_field fields[] = {CGS_PLAN_CONFIG(ROW)};
#undef ROW

static const char *const names[] = {
#define X(name, id) name,
    CGS_PLANNERS(X)
#undef X
};

cgs_section cgs_plan_section(cgs_plan_config *c) {
    return (cgs_section){fields, (int)(sizeof fields / sizeof fields[0]), c};
}

cgs_plan_config cgs_plan_defaults(void) {
    cgs_plan_config c;
    memset(&c, 0, sizeof c);
    cgs_section s = cgs_plan_section(&c);
    cgs_config_defaults(&s, 1);
    return c;
}

cgs_status cgs_plan_kind_parse(cgs_plan_kind *kind, const char *name) {
    for (int i = 0; i < CGS_PLAN_KINDS; i++)
        if (!strcmp(name, names[i])) {
            *kind = (cgs_plan_kind)i;
            return CGS_OK;
        }
    return cgs_fail(CGS_EARG,
                    "plan.planner: \"%.80s\" is not cem, mppi, pg-cem, pg-mppi, gd, zero or random",
                    name);
}

const char *cgs_plan_kind_name(cgs_plan_kind kind) {
    return (unsigned)kind < CGS_PLAN_KINDS ? names[kind] : "unknown";
}

bool cgs_plan_wants_prior(cgs_plan_kind kind) {
    return kind == CGS_PLAN_PG_CEM || kind == CGS_PLAN_PG_MPPI;
}

bool cgs_plan_wants_gradient(cgs_plan_kind kind) { return kind == CGS_PLAN_GD; }

static bool is_cem(cgs_plan_kind kind) { return kind == CGS_PLAN_CEM || kind == CGS_PLAN_PG_CEM; }
static bool is_mppi(cgs_plan_kind kind) {
    return kind == CGS_PLAN_MPPI || kind == CGS_PLAN_PG_MPPI;
}

static cgs_status positive(const char *key, float value) {
    if (isfinite(value) && value > 0) return CGS_OK;
    return cgs_fail(CGS_EARG, "%s: %g is not a finite number above 0", key, (double)value);
}

static cgs_status at_least_one(const char *key, int value) {
    if (value >= 1) return CGS_OK;
    return cgs_fail(CGS_EARG, "%s: %d is not at least 1", key, value);
}

/* a caller may have filled the struct without the parser, so ranges are checked again */
cgs_status cgs_plan_check(const cgs_plan_config *c) {
    cgs_plan_kind kind;
    CGS_TRY(cgs_plan_kind_parse(&kind, c->kind.s));
    CGS_TRY(at_least_one("plan.samples", c->K));
    CGS_TRY(at_least_one("plan.iters", c->iters));
    CGS_TRY(at_least_one("plan.gd.steps", c->gd_steps));
    CGS_TRY(at_least_one("plan.horizon", c->H));
    CGS_TRY(at_least_one("plan.action_size", c->A));
    CGS_TRY(positive("plan.elite_fraction", c->elite_fraction));
    CGS_TRY(positive("plan.tau", c->tau));
    CGS_TRY(positive("plan.sigma", c->sigma));
    CGS_TRY(positive("plan.gd.lr", c->lr));
    if (c->elites < 0) return cgs_fail(CGS_EARG, "plan.elites: %d is below 0", c->elites);
    if (c->elites > c->K)
        return cgs_fail(CGS_EARG, "plan.elites: %d is more than the %d candidates of plan.samples",
                        c->elites, c->K);
    if (c->elite_fraction > 1)
        return cgs_fail(CGS_EARG, "plan.elite_fraction: %g is above 1", (double)c->elite_fraction);
    if (!isfinite(c->deadline) || c->deadline < 0)
        return cgs_fail(CGS_EARG, "plan.deadline: %g is not a number of seconds",
                        (double)c->deadline);
    return CGS_OK;
}

int cgs_plan_elites(const cgs_plan_config *c) {
    if (c->elites > 0) return c->elites;
    /* 0.7f is a little less than 0.7: its rounding must not cost an elite */
    int M = (int)floor((double)c->K * c->elite_fraction * (1 + 1e-7));
    return M < 1 ? 1 : M > c->K ? c->K : M;
}

int cgs_plan_iterations(const cgs_plan_config *c) {
    cgs_plan_kind kind = CGS_PLAN_ZERO;
    if (cgs_plan_kind_parse(&kind, c->kind.s) != CGS_OK) return 0;
    if (kind == CGS_PLAN_ZERO || kind == CGS_PLAN_RANDOM) return 0;
    if (kind == CGS_PLAN_GD) return c->gd_steps;
    return c->K == 1 ? 1 : c->iters; /* a lone candidate is the mean, which then stays */
}

/* ---- memory ------------------------------------------------------------------------ */

/* the first pass measures, the second binds; only what the planner uses is taken */
static void layout(cgs_planner *p) {
    cgs_arena *a = &p->arena;
    size_t E = (size_t)p->max_E, En = E * (size_t)p->n, T = (size_t)p->iterations;
    size_t EK = E * (size_t)p->config.K;
    p->key = CGS_TAKE(a, uint64_t, E);
    p->mean = CGS_TAKE(a, float, En);
    p->spread = CGS_TAKE(a, float, En);
    p->best_plan = CGS_TAKE(a, float, En);
    p->best_cost = CGS_TAKE(a, float, E);
    p->low = CGS_TAKE(a, float, T *E);
    p->average = CGS_TAKE(a, float, T *E);
    if (is_cem(p->kind) || is_mppi(p->kind)) {
        p->plans = CGS_TAKE(a, float, EK *(size_t)p->n);
        p->cost = CGS_TAKE(a, float, EK);
    }
    if (is_cem(p->kind)) p->order = CGS_TAKE(a, int, EK);
    if (is_mppi(p->kind)) p->weight = CGS_TAKE(a, double, EK);
    if (p->kind == CGS_PLAN_GD) {
        p->cost = CGS_TAKE(a, float, E);
        p->grad = CGS_TAKE(a, float, En);
        p->m = CGS_TAKE(a, float, En);
        p->v = CGS_TAKE(a, float, En);
    }
}

cgs_status cgs_planner_create(cgs_planner **out, const cgs_plan_config *c, int max_E) {
    *out = NULL;
    CGS_TRY(cgs_plan_check(c));
    if (max_E < 1) return cgs_fail(CGS_EARG, "planner: a batch of %d episodes is empty", max_E);
    /* sizes are multiplied freely below: far over any memory is refused here */
    double values = (double)max_E * c->K * c->H * c->A, rows = (double)max_E * c->K;
    if (values > 0x1p40 || rows > 0x1p30 || (double)c->H * c->A > 0x1p24)
        return cgs_fail(CGS_EARG,
                        "planner: %d episodes of %d candidates of %d x %d values are too many",
                        max_E, c->K, c->H, c->A);

    cgs_planner *p = calloc(1, sizeof *p);
    if (!p) return cgs_fail(CGS_ENOMEM, "planner: no memory");
    p->config = *c;
    p->max_E = max_E;
    p->n = c->H * c->A;
    p->iterations = cgs_plan_iterations(c);
    cgs_status rc = cgs_plan_kind_parse(&p->kind, c->kind.s);
    layout(p);
    if (rc == CGS_OK) rc = cgs_arena_bind(&p->arena, "planner");
    if (rc != CGS_OK) {
        cgs_planner_destroy(p);
        return rc;
    }
    layout(p);
    *out = p;
    return CGS_OK;
}

void cgs_planner_destroy(cgs_planner *p) {
    if (!p) return;
    cgs_device_loop_destroy(p->device_loop);
    cgs_arena_free(&p->arena);
    free(p);
}

void cgs_planner_reset(cgs_planner *p) { p->solves = 0; }

void cgs_planner_set_deadline(cgs_planner *p, float seconds) {
    p->config.deadline = isfinite(seconds) && seconds > 0 ? seconds : 0;
}

/* ---- solving ----------------------------------------------------------------------- */

static uint64_t episode_id(const cgs_plan_problem *q, int64_t e) {
    return q->episode ? q->episode[e] : (uint64_t)e;
}

static cgs_status check_problem(const cgs_planner *p, const cgs_plan_problem *q) {
    const char *name = names[p->kind];
    if (q->E < 1 || q->E > p->max_E)
        return cgs_fail(CGS_EARG, "%s: %d episodes, the planner was created for 1 ... %d", name,
                        q->E, p->max_E);
    if (p->kind == CGS_PLAN_GD && !q->gradient)
        return cgs_fail(CGS_EARG, "%s: the problem has no gradient function", name);
    if ((is_cem(p->kind) || is_mppi(p->kind)) && !q->cost)
        return cgs_fail(CGS_EARG, "%s: the problem has no cost function", name);
    for (int64_t e = 0; e < q->E; e++)
        if (q->solve && q->solve[e] >> 32)
            return cgs_fail(CGS_EARG, "%s: solve number %llu of episode %llu is not below 2^32",
                            name, (unsigned long long)q->solve[e],
                            (unsigned long long)episode_id(q, e));
    for (int64_t i = 0; q->start && i < (int64_t)q->E * p->n; i++)
        if (!isfinite(q->start[i]))
            return cgs_fail(CGS_ENUMERIC, "%s: value %d of the start of episode %llu is %g", name,
                            (int)(i % p->n), (unsigned long long)episode_id(q, i / p->n),
                            (double)q->start[i]);
    return CGS_OK;
}

static void set_keys(cgs_planner *p, const cgs_plan_problem *q, int iteration) {
    for (int64_t e = 0; e < q->E; e++)
        p->key[e] = cgs_plan_key(q->seed ? q->seed[e] : p->config.seed, episode_id(q, e),
                                 q->solve ? q->solve[e] : p->solves, (uint64_t)iteration);
}

/* Checks the K costs of every episode and keeps lowest, mean and best plan. */
static cgs_status note_costs(cgs_planner *p, const cgs_plan_problem *q, const float *plans, int K,
                             int iteration) {
    int64_t n = p->n;
    for (int64_t e = 0; e < q->E; e++) {
        const float *cost = p->cost + e * K;
        int lowest = 0;
        double sum = 0;
        for (int k = 0; k < K; k++) {
            if (!isfinite(cost[k]))
                return cgs_fail(CGS_ENUMERIC,
                                "%s: the cost of episode %llu, candidate %d, iteration %d is %g",
                                names[p->kind], (unsigned long long)episode_id(q, e), k, iteration,
                                (double)cost[k]);
            sum += cost[k];
            if (cost[k] < cost[lowest]) lowest = k;
        }
        p->low[(int64_t)iteration * q->E + e] = cost[lowest];
        p->average[(int64_t)iteration * q->E + e] = (float)(sum / K);
        if (iteration == 0 || cost[lowest] < p->best_cost[e]) {
            p->best_cost[e] = cost[lowest];
            memcpy(p->best_plan + e * n, plans + (e * K + lowest) * n, sizeof(float) * (size_t)n);
        }
    }
    return CGS_OK;
}

static cgs_status sampling_iteration(cgs_planner *p, const cgs_plan_problem *q, int iteration,
                                     cgs_plan_times *times) {
    const cgs_plan_config *c = &p->config;
    double t0 = cgs_now();
    set_keys(p, q, iteration);
    cgs_plan_sample(p->key, p->mean, p->spread, q->E, c->K, p->n, p->plans);
    double t1 = cgs_now();
    CGS_TRY(q->cost(q->ctx, p->plans, q->E, c->K, p->cost));
    double t2 = cgs_now();
    CGS_TRY(note_costs(p, q, p->plans, c->K, iteration));
    if (is_cem(p->kind))
        cgs_plan_refit(p->plans, p->cost, q->E, c->K, p->n, cgs_plan_elites(c), p->order, p->mean,
                       p->spread);
    else
        cgs_plan_reweight(p->plans, p->cost, q->E, c->K, p->n, c->tau, p->weight, p->mean);
    times->sample += t1 - t0;
    times->cost += t2 - t1;
    times->update += cgs_now() - t2;
    return CGS_OK;
}

static cgs_status gradient_iteration(cgs_planner *p, const cgs_plan_problem *q, int iteration,
                                     cgs_plan_times *times) {
    const double pi = 3.14159265358979323846;
    int64_t count = (int64_t)q->E * p->n;
    double t0 = cgs_now();
    CGS_TRY(q->gradient(q->ctx, p->mean, q->E, p->cost, p->grad));
    double t1 = cgs_now();
    CGS_TRY(note_costs(p, q, p->mean, 1, iteration));
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(p->grad[i]))
            return cgs_fail(CGS_ENUMERIC,
                            "gd: value %d of the gradient of episode %llu, iteration %d is %g",
                            (int)(i % p->n), (unsigned long long)episode_id(q, i / p->n), iteration,
                            (double)p->grad[i]);
    double lr = 0.5 * p->config.lr * (1 + cos(pi * iteration / p->config.gd_steps));
    cgs_plan_adam(p->grad, count, iteration + 1, lr, p->m, p->v, p->mean);
    times->cost += t1 - t0;
    times->update += cgs_now() - t1;
    return CGS_OK;
}

cgs_status cgs_planner_solve(cgs_planner *p, const cgs_plan_problem *q, cgs_plan_result *result) {
    const cgs_plan_config *c = &p->config;
    cgs_plan_times times = {0};
    double begin = cgs_now(), slowest = 0;
    memset(result, 0, sizeof *result);
    CGS_TRY(check_problem(p, q));
    if (p->iterations > 0 && cgs_device_loop_can(q->on_device, c)) {
        CGS_TRY(cgs_device_loop_bind(&p->device_loop, q->on_device->device, c, p->max_E));
        CGS_TRY(cgs_device_loop_solve(p->device_loop, q, p->solves, c->deadline, result));
        p->solves++;
        result->times.total = cgs_now() - begin;
        return CGS_OK;
    }

    /* the proposal of the first iteration */
    size_t bytes = sizeof(float) * (size_t)q->E * (size_t)p->n;
    if (q->start)
        memcpy(p->mean, q->start, bytes);
    else
        memset(p->mean, 0, bytes);
    for (int64_t i = 0; i < (int64_t)q->E * p->n; i++) p->spread[i] = c->sigma;
    if (p->kind == CGS_PLAN_GD) {
        memset(p->m, 0, bytes);
        memset(p->v, 0, bytes);
    }

    int done = 0;
    bool cut = false;
    for (; done < p->iterations; done++) {
        double start = cgs_now();
        if (done > 0 && c->deadline > 0 && start - begin + slowest > c->deadline) {
            cut = true;
            break;
        }
        CGS_TRY(p->kind == CGS_PLAN_GD ? gradient_iteration(p, q, done, &times)
                                       : sampling_iteration(p, q, done, &times));
        double took = cgs_now() - start;
        slowest = took > slowest ? took : slowest;
    }

    if (p->kind == CGS_PLAN_RANDOM) {
        set_keys(p, q, 0);
        cgs_plan_perturb(p->key, p->mean, p->spread, q->E, p->n, p->mean);
    }
    if (p->iterations == 0) memcpy(p->best_plan, p->mean, bytes); /* zero, random: nothing scored */

    p->solves++;
    times.total = cgs_now() - begin;
    *result = (cgs_plan_result){.plan = cut ? p->best_plan : p->mean,
                                .spread = p->spread,
                                .best = p->low,
                                .mean = p->average,
                                .best_plan = p->best_plan,
                                .iterations = done,
                                .cut = cut,
                                .times = times};
    return CGS_OK;
}

void cgs_plan_shift(float *next, const float *plan, int E, int H, int A, int executed,
                    const float *fill) {
    if (executed < 0) executed = 0;
    if (executed > H) executed = H;
    size_t kept = (size_t)(H - executed) * (size_t)A, n = (size_t)H * (size_t)A;
    for (size_t e = 0; e < (size_t)E; e++) {
        float *to = next + e * n;
        memmove(to, plan + e * n + (size_t)executed * (size_t)A, sizeof(float) * kept);
        for (size_t i = kept; i < n; i++) to[i] = fill ? fill[i % (size_t)A] : 0;
    }
}

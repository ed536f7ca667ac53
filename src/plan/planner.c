/* planner.c - settings, memory and the loop of all planners.
 *
 * One solve: copy the starts into `mean`, then per iteration sample, score, check, note the best,
 * update.  The table in planners.c says what a planner samples, needs and updates; refine.c has the
 * arithmetic.  The history and the best plan are kept for every planner, so that a deadline can
 * return a plan that was really scored. */
#include "plan/planner.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/threads.h"
#include "plan/device_loop.h"
#include "plan/planners.h"
#include "plan/refine.h"
#include "plan/search.h"

struct cgs_planner {
    cgs_plan_config config;
    const cgs_planner_kind *kind;
    cgs_arena arena;
    int max_E, n, iterations; /* n = H * A */
    uint64_t solves;          /* since create or reset */

    cgs_search search;    /* arrays of max_E episodes; E and iteration are of the running solve */
    uint64_t *key;        /* (E) noise of the running iteration            */
    cgs_noise noise;      /* what plan.colour and plan.mirror make of it   */
    double *filter;       /* (H * frameskip) of coloured noise             */
    float *best_plan;     /* (E, n) lowest cost among all scored           */
    float *best_cost;     /* (E) its cost                                  */
    float *low, *average; /* (iterations, E) cost history                  */

    cgs_device_loop *device_loop; /* NULL: all loops run on the host       */
};

/* ---- settings ---------------------------------------------------------------------- */

#define ROW(kind, field, initial, low, high, key, doc)                                             \
    CGS_CONFIG_ROW(cgs_plan_config, kind, field, initial, low, high, key, doc)
static const cgs_field choices[] = {CGS_PLAN_CHOICES(ROW)};
static const cgs_field tuning[] = {CGS_PLAN_TUNING(ROW)};
#undef ROW

cgs_section cgs_plan_tuning(cgs_plan_config *c) {
    return (cgs_section){tuning, (int)(sizeof tuning / sizeof tuning[0]), c};
}

cgs_plan_config cgs_plan_defaults(void) {
    cgs_plan_config c;
    memset(&c, 0, sizeof c);
    cgs_section s[] = {{choices, (int)(sizeof choices / sizeof choices[0]), &c},
                       cgs_plan_tuning(&c)};
    cgs_config_defaults(s, 2);
    return c;
}

static cgs_status positive(const char *key, float value) {
    if (isfinite(value) && value > 0) return CGS_OK;
    return cgs_fail(CGS_EARG, "%s: %g is not a finite number above 0", key, (double)value);
}

static cgs_status not_negative(const char *key, float value) {
    if (isfinite(value) && value >= 0) return CGS_OK;
    return cgs_fail(CGS_EARG, "%s: %g is not a finite number of at least 0", key, (double)value);
}

static cgs_status at_least_one(const char *key, int value) {
    if (value >= 1) return CGS_OK;
    return cgs_fail(CGS_EARG, "%s: %d is not at least 1", key, value);
}

/* a caller may have filled the struct without the parser, so ranges are checked again */
cgs_status cgs_plan_check(const cgs_plan_config *c) {
    const cgs_planner_kind *kind;
    CGS_TRY(cgs_planner_kind_find(&kind, c->kind.s));
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
    if (!(c->decay >= 0 && c->decay <= 1))
        return cgs_fail(CGS_EARG, "plan.decay: %g is not in 0 ... 1", (double)c->decay);
    CGS_TRY(not_negative("plan.ess", c->ess));
    if (!(c->colour >= -1 && c->colour <= 16))
        return cgs_fail(CGS_EARG, "plan.colour: %g is not in -1 ... 16", (double)c->colour);
    if (!(c->keep >= 0 && c->keep <= 1))
        return cgs_fail(CGS_EARG, "plan.icem.keep: %g is not in 0 ... 1", (double)c->keep);
    if (!(c->shrink > 0 && c->shrink <= 1))
        return cgs_fail(CGS_EARG, "plan.icem.shrink: %g is not above 0 and at most 1",
                        (double)c->shrink);
    if (!cgs_plan_gamma_open(c)) CGS_TRY(not_negative("plan.gn.gamma", c->gamma));
    CGS_TRY(not_negative("plan.gn.damping", c->damping));
    CGS_TRY(not_negative("plan.gn.ridge", c->ridge));
    if (c->reuse < 0) return cgs_fail(CGS_EARG, "plan.gn.reuse: %d is below 0", c->reuse);
    if (c->frameskip < 1 || c->A % c->frameskip)
        return cgs_fail(CGS_EARG, "plan.frameskip: %d actions in an action block of %d values",
                        c->frameskip, c->A);
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

int cgs_plan_candidates(const cgs_plan_config *c, int iteration) {
    const cgs_planner_kind *kind = cgs_planner_kind_of(c->kind.s);
    if (!kind || !(kind->reads & CGS_READS_SHRINK)) return c->K;
    int least = 2 * cgs_plan_elites(c);
    if (least > c->K) least = c->K;
    /* 0.7f is a little less than 0.7: its rounding must not cost a candidate */
    int K = (int)floor(c->K * pow(c->shrink * (1 + 1e-7), iteration));
    return K < least ? least : K > c->K ? c->K : K;
}

float cgs_plan_decay(const cgs_plan_config *c) {
    const cgs_planner_kind *kind = cgs_planner_kind_of(c->kind.s);
    if (c->decay > 0) return c->decay;
    return kind && kind->decay > 0 ? kind->decay : 1;
}

float cgs_plan_colour(const cgs_plan_config *c) {
    const cgs_planner_kind *kind = cgs_planner_kind_of(c->kind.s);
    if (c->colour >= 0) return c->colour;
    return kind ? kind->colour : 0;
}

int cgs_plan_iterations(const cgs_plan_config *c) {
    const cgs_planner_kind *kind = cgs_planner_kind_of(c->kind.s);
    if (!kind || !(kind->needs & CGS_NEEDS_SCORES)) return 0;
    /* a lone candidate is the mean, which then stays */
    if (kind->reads & CGS_READS_SAMPLES && c->K == 1) return 1;
    return kind->reads & CGS_READS_ITERS   ? c->iters
           : kind->reads & CGS_READS_STEPS ? c->gd_steps
                                           : 1;
}

/* ---- memory ------------------------------------------------------------------------ */

/* the first pass measures, the second binds; only what the planner uses is taken */
static void layout(cgs_planner *p) {
    cgs_arena *a = &p->arena;
    cgs_search *s = &p->search;
    size_t E = (size_t)p->max_E, En = E * (size_t)p->n, T = (size_t)p->iterations;
    size_t EK = E * (size_t)s->K;
    s->key = p->key = CGS_TAKE(a, uint64_t, E);
    s->plans = s->mean = CGS_TAKE(a, float, En);
    s->spread = CGS_TAKE(a, float, En);
    p->best_plan = CGS_TAKE(a, float, En);
    p->best_cost = CGS_TAKE(a, float, E);
    p->low = CGS_TAKE(a, float, T *E);
    p->average = CGS_TAKE(a, float, T *E);
    if (p->kind->needs & CGS_NEEDS_SCORES) s->cost = CGS_TAKE(a, float, EK);
    if (p->kind->needs & CGS_NEEDS_GRADIENT) s->grad = CGS_TAKE(a, float, EK *(size_t)p->n);
    if (p->kind->reads & CGS_READS_SAMPLES) s->plans = CGS_TAKE(a, float, EK *(size_t)p->n);
    if (p->kind->needs & CGS_NEEDS_RESIDUALS)
        s->residual = CGS_TAKE(a, float, EK *(size_t)p->config.R);
    if (p->kind->needs & CGS_NEEDS_JACOBIAN)
        s->jacobian = CGS_TAKE(a, float, En *(size_t)p->config.R);
    if (p->kind->reads & CGS_READS_COLOUR && cgs_plan_colour(&p->config) > 0)
        p->filter = CGS_TAKE(a, double, (size_t)cgs_plan_actions(&p->config));
    if (p->kind->memory) s->own = cgs_arena_take(a, p->kind->memory(&p->config, p->max_E));
}

cgs_status cgs_planner_create(cgs_planner **out, const cgs_plan_config *c, int max_E) {
    *out = NULL;
    CGS_TRY(cgs_plan_check(c));
    const cgs_planner_kind *kind = cgs_planner_kind_of(c->kind.s); /* which was checked */
    if (kind->needs & CGS_NEEDS_RESIDUALS && c->R < 1)
        return cgs_fail(CGS_EARG, "plan.residual_size: %s needs the size of residuals", kind->name);
    if (kind->reads & CGS_READS_GAMMA && cgs_plan_gamma_open(c))
        return cgs_fail(CGS_EARG, "plan.gn.gamma: auto is for models with a card");
    if (max_E < 1) return cgs_fail(CGS_EARG, "planner: a batch of %d episodes is empty", max_E);
    /* sizes are multiplied freely below: far over any memory is refused here */
    double values = (double)max_E * c->K * c->H * c->A, rows = (double)max_E * c->K;
    double again = 1.0 + c->reuse;
    if (kind->needs & CGS_NEEDS_JACOBIAN) again *= c->R;
    if (values * again > 0x1p40 || rows * again * c->R > 0x1p40 || rows > 0x1p30 ||
        (double)c->H * c->A > 0x1p24)
        return cgs_fail(CGS_EARG,
                        "planner: %d episodes of %d candidates of %d x %d values are too many",
                        max_E, c->K, c->H, c->A);

    cgs_planner *p = calloc(1, sizeof *p);
    if (!p) return cgs_fail(CGS_ENOMEM, "planner: no memory");
    p->config = *c;
    p->kind = kind;
    p->max_E = max_E;
    p->n = c->H * c->A;
    p->iterations = cgs_plan_iterations(c);
    p->search =
        (cgs_search){.config = &p->config, .K = cgs_planner_candidates(p->kind, c), .n = p->n};
    layout(p);
    cgs_status rc = cgs_arena_bind(&p->arena, "planner");
    if (rc != CGS_OK) {
        cgs_planner_destroy(p);
        return rc;
    }
    layout(p);
    if (p->filter) cgs_noise_filter(p->filter, cgs_plan_actions(c), cgs_plan_colour(c));
    p->noise = (cgs_noise){c->mirror, p->filter, cgs_plan_actions(c), c->A / c->frameskip};
    *out = p;
    return CGS_OK;
}

void cgs_planner_destroy(cgs_planner *p) {
    if (!p) return;
    cgs_device_loop_destroy(p->device_loop);
    cgs_arena_free(&p->arena);
    free(p);
}

cgs_status cgs_planner_use_device(cgs_planner *p, struct cgs_device *d) {
    cgs_device_loop_destroy(p->device_loop);
    return cgs_device_loop_create(&p->device_loop, d, &p->config, p->max_E);
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
    const char *name = p->kind->name;
    if (q->E < 1 || q->E > p->max_E)
        return cgs_fail(CGS_EARG, "%s: %d episodes, the planner was created for 1 ... %d", name,
                        q->E, p->max_E);
    if (p->kind->needs & CGS_NEEDS_GRADIENT && !q->gradient)
        return cgs_fail(CGS_EARG, "%s: the problem has no gradient function", name);
    if (p->kind->needs & CGS_NEEDS_COST && !q->cost)
        return cgs_fail(CGS_EARG, "%s: the problem has no cost function", name);
    if (p->kind->needs & CGS_NEEDS_RESIDUALS) {
        bool jacobian = p->kind->needs & CGS_NEEDS_JACOBIAN;
        if (jacobian ? !q->jacobian : !q->residual)
            return cgs_fail(CGS_EARG, "%s: the cost comes without residuals, which it needs", name);
        if (q->R < 1 || q->R > p->config.R)
            return cgs_fail(CGS_EARG, "%s: residuals of %d values, the planner was created for %d",
                            name, q->R, p->config.R);
    }
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
    for (int64_t i = 0; q->unit && i < (int64_t)q->E * p->n; i++)
        if (!isfinite(q->unit[i]) || !(q->unit[i] > 0))
            return cgs_fail(
                CGS_ENUMERIC, "%s: value %d of the units of episode %llu is %g, not above 0", name,
                (int)(i % p->n), (unsigned long long)episode_id(q, i / p->n), (double)q->unit[i]);
    return CGS_OK;
}

/* the noise of the running iteration */
static void set_keys(cgs_planner *p, const cgs_plan_problem *q) {
    for (int64_t e = 0; e < q->E; e++)
        p->key[e] = cgs_plan_key(q->seed ? q->seed[e] : p->config.seed, episode_id(q, e),
                                 q->solve ? q->solve[e] : p->solves, (uint64_t)p->search.iteration);
}

/* the proposal of the first iteration */
static void begin(cgs_planner *p, const cgs_plan_problem *q) {
    cgs_search *s = &p->search;
    size_t values = (size_t)q->E * (size_t)p->n;
    for (size_t i = 0; i < values; i++) {
        s->mean[i] = q->start ? q->start[i] : 0;
        s->spread[i] = p->config.sigma * (q->unit ? q->unit[i] : 1);
    }
    s->unit = q->unit;
    s->E = q->E;
    s->R = q->R;
    s->iteration = 0;
    set_keys(p, q);
    if (p->kind->begin) p->kind->begin(s);
}

/* Checks the K costs of every episode and keeps lowest, mean and best plan. */
static cgs_status note_costs(cgs_planner *p, const cgs_plan_problem *q) {
    const cgs_search *s = &p->search;
    int64_t n = s->n, K = s->K, E = s->E;
    for (int64_t e = 0; e < E; e++) {
        const float *cost = s->cost + e * K;
        int64_t lowest = 0, row = s->iteration * E + e;
        double sum = 0;
        for (int64_t k = 0; k < K; k++) {
            if (!isfinite(cost[k]))
                return cgs_fail(CGS_ENUMERIC,
                                "%s: the cost of episode %llu, candidate %d, iteration %d is %g",
                                p->kind->name, (unsigned long long)episode_id(q, e), (int)k,
                                s->iteration, (double)cost[k]);
            sum += cost[k];
            if (cost[k] < cost[lowest]) lowest = k;
        }
        p->low[row] = cost[lowest];
        p->average[row] = (float)(sum / (double)K);
        if (s->iteration == 0 || cost[lowest] < p->best_cost[e]) {
            p->best_cost[e] = cost[lowest];
            memcpy(p->best_plan + e * n, s->plans + (e * K + lowest) * n,
                   sizeof(float) * (size_t)n);
        }
    }
    return CGS_OK;
}

static cgs_status check_gradient(const cgs_planner *p, const cgs_plan_problem *q) {
    const cgs_search *s = &p->search;
    for (int64_t i = 0; i < (int64_t)s->E * s->n; i++)
        if (!isfinite(s->grad[i]))
            return cgs_fail(
                CGS_ENUMERIC, "%s: value %d of the gradient of episode %llu, iteration %d is %g",
                p->kind->name, (int)(i % s->n), (unsigned long long)episode_id(q, i / s->n),
                s->iteration, (double)s->grad[i]);
    return CGS_OK;
}

static cgs_status check_residuals(const cgs_planner *p, const cgs_plan_problem *q) {
    const cgs_search *s = &p->search;
    int64_t R = s->R, K = s->K;
    for (int64_t i = 0; i < s->E * K * R; i++)
        if (!isfinite(s->residual[i]))
            return cgs_fail(CGS_ENUMERIC,
                            "%s: value %d of the residual of episode %llu, candidate %d, iteration "
                            "%d is %g",
                            p->kind->name, (int)(i % R),
                            (unsigned long long)episode_id(q, i / (K * R)), (int)(i / R % K),
                            s->iteration, (double)s->residual[i]);
    return CGS_OK;
}

static cgs_status check_jacobian(const cgs_planner *p, const cgs_plan_problem *q) {
    const cgs_search *s = &p->search;
    int64_t each = (int64_t)s->R * s->n;
    for (int64_t i = 0; i < s->E * each; i++)
        if (!isfinite(s->jacobian[i]))
            return cgs_fail(CGS_ENUMERIC,
                            "%s: the derivative of residual %d of episode %llu by value %d, "
                            "iteration %d, is %g",
                            p->kind->name, (int)(i % each / s->n),
                            (unsigned long long)episode_id(q, i / each), (int)(i % s->n),
                            s->iteration, (double)s->jacobian[i]);
    return CGS_OK;
}

static cgs_status score(const cgs_planner *p, const cgs_plan_problem *q) {
    const cgs_search *s = &p->search;
    if (p->kind->needs & CGS_NEEDS_GRADIENT)
        return q->gradient(q->ctx, s->plans, s->E, s->cost, s->grad);
    if (p->kind->needs & CGS_NEEDS_JACOBIAN)
        return q->jacobian(q->ctx, s->plans, s->E, s->cost, s->residual, s->jacobian);
    if (p->kind->needs & CGS_NEEDS_RESIDUAL)
        return q->residual(q->ctx, s->plans, s->E, s->K, s->cost, s->residual);
    return q->cost(q->ctx, s->plans, s->E, s->K, s->cost);
}

static cgs_status iterate(cgs_planner *p, const cgs_plan_problem *q, cgs_plan_times *times) {
    cgs_search *s = &p->search;
    double t0 = cgs_now();
    set_keys(p, q);
    if (p->kind->reads & CGS_READS_SHRINK) s->K = cgs_plan_candidates(&p->config, s->iteration);
    if (p->kind->reads & CGS_READS_SAMPLES)
        cgs_plan_sample(s->key, &p->noise, s->mean, s->spread, s->E, s->K, s->n, s->plans);
    if (p->kind->propose) p->kind->propose(s);
    double t1 = cgs_now();
    CGS_TRY(score(p, q));
    double t2 = cgs_now();
    CGS_TRY(note_costs(p, q));
    if (p->kind->needs & CGS_NEEDS_GRADIENT) CGS_TRY(check_gradient(p, q));
    if (p->kind->needs & CGS_NEEDS_RESIDUALS) CGS_TRY(check_residuals(p, q));
    if (p->kind->needs & CGS_NEEDS_JACOBIAN) CGS_TRY(check_jacobian(p, q));
    p->kind->update(s);
    times->sample += t1 - t0;
    times->cost += t2 - t1;
    times->update += cgs_now() - t2;
    return CGS_OK;
}

static cgs_status solve_on_host(cgs_planner *p, const cgs_plan_problem *q, double begun,
                                cgs_plan_result *result) {
    cgs_search *s = &p->search;
    cgs_plan_times times = {0};
    double deadline = p->config.deadline, slowest = 0;
    bool cut = false;
    for (begin(p, q); s->iteration < p->iterations; s->iteration++) {
        double start = cgs_now();
        cut = s->iteration > 0 && deadline > 0 && start - begun + slowest > deadline;
        if (cut) break;
        CGS_TRY(iterate(p, q, &times));
        double took = cgs_now() - start;
        slowest = took > slowest ? took : slowest;
    }
    if (p->iterations == 0) /* nothing was scored */
        memcpy(p->best_plan, s->mean, sizeof(float) * (size_t)q->E * (size_t)p->n);
    *result = (cgs_plan_result){.plan = cut ? p->best_plan : s->mean,
                                .spread = s->spread,
                                .best = p->low,
                                .mean = p->average,
                                .best_plan = p->best_plan,
                                .iterations = s->iteration,
                                .cut = cut,
                                .times = times};
    return CGS_OK;
}

cgs_status cgs_planner_solve(cgs_planner *p, const cgs_plan_problem *q, cgs_plan_result *result) {
    double begun = cgs_now();
    memset(result, 0, sizeof *result);
    CGS_TRY(check_problem(p, q));
    if (p->device_loop && cgs_device_loop_takes(p->device_loop, q))
        CGS_TRY(cgs_device_loop_solve(p->device_loop, q, p->solves, p->config.deadline, result));
    else
        CGS_TRY(solve_on_host(p, q, begun, result));
    if ((p->config.best && p->kind->reads & CGS_READS_BEST) || p->kind->returns_best)
        result->plan = result->best_plan;
    p->solves++;
    result->times.total = cgs_now() - begun;
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

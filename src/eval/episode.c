/* episode.c - see episode.h. */
#include "eval/episode.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/threads.h"
#include "eval/solver.h"

static const char *const histories[] = {"native", "dataset", "online"};

cgs_status cgs_history_parse(cgs_history *h, const char *name) {
    for (int i = 0; i < 3; i++)
        if (!strcmp(name, histories[i])) {
            *h = (cgs_history)i;
            return CGS_OK;
        }
    return cgs_fail(CGS_EARG, "history: \"%.40s\" is not native, dataset or online", name);
}

const char *cgs_history_name(cgs_history h) { return (unsigned)h < 3 ? histories[h] : "?"; }

static const char *const rules[] = {"any", "solve", "end"};

cgs_status cgs_success_parse(cgs_success_rule *r, const char *name) {
    for (int i = 0; i < 3; i++)
        if (!strcmp(name, rules[i])) {
            *r = (cgs_success_rule)i;
            return CGS_OK;
        }
    return cgs_fail(CGS_EARG, "success: \"%.40s\" is not any, solve or end", name);
}

const char *cgs_success_name(cgs_success_rule r) { return (unsigned)r < 3 ? rules[r] : "?"; }

cgs_success_rule cgs_success_of(const cgs_loaded_model *s) {
    return s->lewm ? CGS_SUCCESS_ANY : CGS_SUCCESS_SOLVE;
}

int cgs_history_context(cgs_history h, const cgs_model *m) {
    return h == CGS_HISTORY_DATASET ? m->history : 1;
}

struct cgs_loop {
    cgs_loop_config config;
    int D, A, H, N, S, execute;
    cgs_solver solver;
    cgs_rollout *judge; /* the cost of first plans */
    cgs_env_batch envs;

    /* the batch: slot e of E */
    int seen; /* frames of the history, equal for all */
    cgs_arena arena;
    double *state, *goal_state; /* (E, state_dim) */
    float *z;                   /* (E, N, D) history, the last `seen` of N are valid */
    float *past;                /* (E, N - 1, A) action blocks between them, likewise */
    float *goal;                /* (E, D) */
    float *plan;                /* (E, H, A) of the last solve */
    bool *running;              /* (E) */
    /* gathered for the episodes that still run */
    int *active;                                        /* (E) their slots */
    uint64_t *id, *seed, *solve;                        /* (E) */
    float *z_now, *z_sub, *past_sub, *goal_sub, *start; /* (E, ...) */
    uint8_t *frames;                                    /* (E, S, S, 3) rendered */
    float *sensed;                                      /* (E, proprio) standardised */
    float *cost;                                        /* (E) of first plans */
    int column; /* of the environment, that proprioception is read from */
};

static void layout(cgs_loop *l) {
    cgs_arena *a = &l->arena;
    size_t E = (size_t)l->config.batch, N = (size_t)l->N, D = (size_t)l->D, A = (size_t)l->A;
    size_t states = E * (size_t)l->config.env->state_dim, n = (size_t)l->H * A;
    size_t frame = (size_t)l->S * (size_t)l->S * 3;
    l->state = CGS_TAKE(a, double, states);
    l->goal_state = CGS_TAKE(a, double, states);
    l->z = CGS_TAKE(a, float, E *N *D);
    l->past = CGS_TAKE(a, float, E *(N - 1) * A);
    l->goal = CGS_TAKE(a, float, E *D);
    l->plan = CGS_TAKE(a, float, E *n);
    l->running = CGS_TAKE(a, bool, E);
    l->active = CGS_TAKE(a, int, E);
    l->id = CGS_TAKE(a, uint64_t, E);
    l->seed = CGS_TAKE(a, uint64_t, E);
    l->solve = CGS_TAKE(a, uint64_t, E);
    l->z_now = CGS_TAKE(a, float, E *D);
    l->z_sub = CGS_TAKE(a, float, E *N *D);
    l->past_sub = CGS_TAKE(a, float, E *(N - 1) * A);
    l->goal_sub = CGS_TAKE(a, float, E *D);
    l->start = CGS_TAKE(a, float, E *n);
    l->frames = CGS_TAKE(a, uint8_t, E * frame);
    l->cost = CGS_TAKE(a, float, E);
    l->sensed = CGS_TAKE(a, float, E *(size_t)l->config.proprio.dim + 1);
}

/* ---- create ------------------------------------------------------------------------ */

static cgs_status check(const cgs_loop *l) {
    const cgs_loop_config *c = &l->config;
    const cgs_model *m = c->model;
    if (m->action_dim != c->env->action_dim)
        return cgs_fail(CGS_EARG, "the model was trained for actions of %d numbers, %s has %d",
                        m->action_dim, c->env->id, c->env->action_dim);
    if (c->scale.dim != m->action_dim || c->scale.frameskip != m->frameskip)
        return cgs_fail(CGS_EARG, "action statistics of %d channels, the model has %d",
                        c->scale.dim, m->action_dim);
    for (int i = 0; i < c->scale.dim; i++)
        if (!(c->scale.std[i] > 0) || !isfinite(c->scale.std[i]) || !isfinite(c->scale.mean[i]))
            return cgs_fail(CGS_ENUMERIC, "action channel %d: mean %g, standard deviation %g", i,
                            c->scale.mean[i], c->scale.std[i]);
    if (m->proprio_dim != c->proprio.dim)
        return cgs_fail(CGS_EARG, "statistics of %d numbers of proprioception, the model has %d",
                        c->proprio.dim, m->proprio_dim);
    if (c->proprio.dim && l->column < 0)
        return cgs_fail(CGS_EARG, "%s has no reading \"%s\" of %d numbers", c->env->id,
                        c->proprio.column, c->proprio.dim);
    if (c->envs && (c->envs->cls != c->env || c->envs->count != c->batch))
        return cgs_fail(CGS_EARG, "%d environments of %s are lent, %d of %s needed", c->envs->count,
                        c->envs->cls->id, c->batch, c->env->id);
    if (c->batch < 1 || c->budget < 1)
        return cgs_fail(CGS_EARG, "%d episodes at once, %d actions: at least 1 of each", c->batch,
                        c->budget);
    if (l->execute < 1 || l->execute > l->H)
        return cgs_fail(CGS_EARG, "%d action blocks to execute of plans of %d", c->execute, l->H);
    return CGS_OK;
}

/* number of frames that the planner sees after a plan was executed */
static int seen_after(const cgs_loop *l, int seen) {
    if (l->config.history == CGS_HISTORY_NATIVE) return 1;
    return seen + l->execute < l->N ? seen + l->execute : l->N;
}

static cgs_status make_solver(cgs_loop *l) {
    const cgs_loop_config *c = &l->config;
    cgs_solver_config s = {.model = c->model,
                           .prior = c->prior,
                           .scale = c->scale,
                           .plan = c->plan,
                           .episodes = c->batch,
                           .declared = c->declared,
                           .act = c->act};
    CGS_TRY(cgs_solver_create(&l->solver, &s));
    int seen = cgs_history_context(c->history, c->model);
    for (int done = 0; done < c->budget; done += l->execute * c->scale.frameskip) {
        CGS_TRY(cgs_solver_add_context(&l->solver, seen));
        seen = seen_after(l, seen);
    }
    cgs_rollout_config judge = {.episodes = c->batch,
                                .declared = c->declared,
                                .context = cgs_history_context(c->history, c->model),
                                .horizon = l->H,
                                .samples = 1,
                                .act = c->act};
    return cgs_rollout_create_any(&l->judge, c->model, &judge);
}

static cgs_status build(cgs_loop *l) {
    CGS_TRY(cgs_plan_check(&l->config.plan));
    CGS_TRY(check(l));
    layout(l);
    CGS_TRY(cgs_arena_bind(&l->arena, "closed loop"));
    layout(l);
    if (l->config.envs)
        l->envs = *l->config.envs;
    else
        CGS_TRY(cgs_env_batch_create(&l->envs, l->config.env, l->config.batch));
    return make_solver(l);
}

cgs_status cgs_loop_create(cgs_loop **out, const cgs_loop_config *c) {
    *out = NULL;
    cgs_loop *l = calloc(1, sizeof *l);
    if (!l) return cgs_fail(CGS_ENOMEM, "closed loop: no memory");
    l->config = *c;
    l->D = c->model->width;
    l->A = cgs_model_action_block(c->model);
    l->N = c->model->history;
    l->S = c->model->image_size;
    l->column = -1;
    for (int i = 0; c->proprio.dim && i < c->env->column_count; i++)
        if (!strcmp(c->env->columns[i].name, c->proprio.column) &&
            c->env->columns[i].dim == c->proprio.dim)
            l->column = i;
    l->H = c->plan.H;
    l->execute = c->execute ? c->execute : c->plan.H;
    l->config.plan.A = l->A;
    cgs_status rc = build(l);
    if (rc != CGS_OK) {
        cgs_loop_destroy(l);
        return rc;
    }
    *out = l;
    return CGS_OK;
}

void cgs_loop_destroy(cgs_loop *l) {
    if (!l) return;
    cgs_solver_destroy(&l->solver);
    cgs_rollout_destroy(l->judge);
    if (!l->config.envs) cgs_env_batch_destroy(&l->envs);
    cgs_arena_free(&l->arena);
    free(l);
}

/* ---- one batch --------------------------------------------------------------------- */

static float *history_at(const cgs_loop *l, size_t e, int i) {
    return l->z + (e * (size_t)l->N + (size_t)i) * (size_t)l->D;
}

static cgs_status begin(cgs_loop *l, const cgs_start_states *c, int first, int E,
                        cgs_outcome *out) {
    size_t dim = (size_t)c->state_dim, D = (size_t)l->D, A = (size_t)l->A, N = (size_t)l->N;
    int C = cgs_history_context(l->config.history, l->config.model);
    if (C > c->context)
        return cgs_fail(CGS_EARG, "history %s needs %d recorded frames, the start states have %d",
                        cgs_history_name(l->config.history), C, c->context);
    l->seen = C;
    for (int e = 0; e < l->config.batch; e++) {
        size_t i = (size_t)(first + (e < E ? e : E - 1)), s = (size_t)e; /* unused slots are done */
        memcpy(l->state + s * dim, c->state + i * dim, dim * sizeof *l->state);
        memcpy(l->goal_state + s * dim, c->goal_state + i * dim, dim * sizeof *l->state);
        memcpy(l->goal + s * D, c->goal + i * D, D * sizeof *l->goal);
        /* the newest C of the recorded context */
        size_t all = (size_t)c->context, use = (size_t)C;
        memcpy(history_at(l, s, l->N - C), c->z + (i * all + all - use) * D,
               use * D * sizeof *l->z);
        memcpy(l->past + (s * (N - 1) + N - use) * A, c->past + (i * (all - 1) + all - use) * A,
               (use - 1) * A * sizeof *l->past);
        l->running[e] = e < E;
        if (e < E) out[e] = (cgs_outcome){.planned = NAN, .reached = NAN, .first_cost = NAN};
    }
    cgs_env_batch_judge(&l->envs, l->config.judge);
    CGS_TRY(cgs_env_batch_start(&l->envs, l->state, l->goal_state));
    for (int e = E; e < l->config.batch; e++) l->envs.done[e] = 1;
    return CGS_OK;
}

static int gather_active(cgs_loop *l, int E) {
    int n = 0;
    for (int e = 0; e < E; e++)
        if (l->running[e]) l->active[n++] = e;
    return n;
}

/* where the search begins, for the n active episodes */
static cgs_status initial_plan(cgs_loop *l, int n, int solve) {
    size_t length = (size_t)l->H * (size_t)l->A, D = (size_t)l->D;
    bool prior = l->solver.kind->needs & CGS_NEEDS_PRIOR;
    for (size_t i = 0; i < (size_t)n; i++) {
        size_t e = (size_t)l->active[i];
        memcpy(l->start + i * length, l->plan + e * length, length * sizeof *l->start);
        if (prior) memcpy(l->z_now + i * D, history_at(l, e, l->N - 1), D * sizeof *l->z_now);
    }
    int executed = solve == 0 ? l->H : l->execute;
    return cgs_solver_start(&l->solver, n, l->z_now, l->goal_sub, l->start, executed, l->start);
}

static cgs_status solve(cgs_loop *l, const cgs_start_states *c, int n, int first, int number,
                        cgs_outcome *out) {
    size_t D = (size_t)l->D, A = (size_t)l->A, N = (size_t)l->N, C = (size_t)l->seen;
    size_t length = (size_t)l->H * A;
    for (int i = 0; i < n; i++) {
        size_t e = (size_t)l->active[i], k = (size_t)i;
        memcpy(l->z_sub + k * C * D, history_at(l, e, l->N - l->seen), C * D * sizeof *l->z);
        memcpy(l->past_sub + k * (C - 1) * A, l->past + (e * (N - 1) + N - C) * A,
               (C - 1) * A * sizeof *l->past);
        memcpy(l->goal_sub + k * D, l->goal + e * D, D * sizeof *l->goal);
        size_t at = (size_t)first + e;
        l->id[i] = c->id ? c->id[at] : at;
        l->seed[i] = c->seed ? c->seed[at] : l->config.plan.seed;
        l->solve[i] = (uint64_t)number;
    }
    CGS_TRY(initial_plan(l, n, number));
    cgs_solver_job job = {.E = n,
                          .context = l->seen,
                          .z = l->z_sub,
                          .past = l->past_sub,
                          .goal = l->goal_sub,
                          .episode = l->id,
                          .seed = l->seed,
                          .solve = l->solve,
                          .start = l->start};
    cgs_plan_problem q;
    cgs_plan_result result;
    CGS_TRY(cgs_solver_solve(&l->solver, &job, &q, &result));
    for (int i = 0; i < n; i++) {
        size_t e = (size_t)l->active[i];
        memcpy(l->plan + e * length, result.plan + (size_t)i * length, length * sizeof *l->plan);
        out[e].solves++;
        if (result.iterations)
            out[e].planned = result.best[(size_t)(result.iterations - 1) * (size_t)n + (size_t)i];
    }
    if (l->config.watch.solved)
        l->config.watch.solved(l->config.watch.user, &q, &result, l->active);
    return CGS_OK;
}

/* cost and size of the plans that were just made, for what solve() was given */
static cgs_status weigh_first(cgs_loop *l, int n, double spent, cgs_outcome *out) {
    size_t length = (size_t)l->H * (size_t)l->A;
    for (size_t i = 0; i < (size_t)n; i++)
        memcpy(l->start + i * length, l->plan + (size_t)l->active[i] * length,
               length * sizeof *l->start);
    CGS_TRY(cgs_rollout_set(l->judge, n, l->z_sub, l->past_sub, l->goal_sub));
    CGS_TRY(cgs_rollout_cost(l->judge, l->start, n, 1, l->cost));
    for (size_t i = 0; i < (size_t)n; i++) {
        cgs_outcome *o = &out[l->active[i]];
        double sum = 0;
        for (size_t j = 0; j < length; j++)
            sum += (double)l->start[i * length + j] * l->start[i * length + j];
        o->first_cost = l->cost[i];
        o->first_size = (float)sqrt(sum / (double)length);
        o->first_seconds = spent / n;
    }
    return CGS_OK;
}

/* whether the predicate counts after action k of a block, the step-th of the episode */
static bool success_counts(const cgs_loop *l, int block, int k, int step) {
    const cgs_loop_config *c = &l->config;
    bool plan_ends = block + 1 == l->execute && k + 1 == c->scale.frameskip;
    return c->success == CGS_SUCCESS_ANY || (c->success == CGS_SUCCESS_SOLVE && plan_ends) ||
           step == c->budget;
}

/* one primitive action of every running episode */
static cgs_status act(cgs_loop *l, int E, int block, int k, int step, cgs_outcome *out) {
    const cgs_action_scale *s = &l->config.scale;
    const cgs_loop_config *c = &l->config;
    bool counts = success_counts(l, block, k, step);
    int first = l->execute * s->frameskip; /* actions of the first plan, or of a short budget */
    if (first > c->budget) first = c->budget;
    for (int e = 0; e < E; e++) {
        if (!l->running[e]) continue;
        const float *a = l->plan + ((size_t)e * (size_t)l->H + (size_t)block) * (size_t)l->A +
                         (size_t)k * (size_t)s->dim;
        for (int i = 0; i < s->dim; i++)
            l->envs.action[e * s->dim + i] = (double)a[i] * s->std[i] + s->mean[i];
    }
    cgs_env_batch_step(&l->envs);
    for (int e = 0; e < E; e++) {
        if (!l->running[e]) continue;
        out[e].actions++;
        bool ends = step == first, within = step <= first;
        if (l->envs.success[e] && (c->success == CGS_SUCCESS_ANY ? within : ends))
            out[e].first_success = true;
        if (counts && l->envs.success[e]) {
            out[e].success = true;
            out[e].first = out[e].actions;
            l->envs.done[e] = 1; /* later actions cannot change the outcome */
        }
        if (l->envs.done[e]) l->running[e] = false;
    }
    if (!l->config.watch.stepped) return CGS_OK;
    return l->config.watch.stepped(l->config.watch.user, &l->envs, step);
}

/* latents of the present frames of the n active episodes, into z_now; rendering is not part of the
 * planner's time */
static cgs_status observe(cgs_loop *l, int n, cgs_outcome *out) {
    const cgs_proprio_scale *p = &l->config.proprio;
    for (int i = 0; i < n && p->dim; i++) {
        double raw[CGS_ENV_MAX_DIM];
        cgs_env_read_column(l->envs.env[l->active[i]], l->column, raw);
        for (int k = 0; k < p->dim; k++)
            l->sensed[i * p->dim + k] = (float)((raw[k] - p->mean[k]) / p->std[k]);
    }
    CGS_TRY(cgs_env_batch_render(&l->envs, l->active, n, l->S, l->frames));
    double before = cgs_now();
    CGS_TRY(
        cgs_encoder_sense(l->config.encoder, l->frames, p->dim ? l->sensed : NULL, n, l->z_now));
    double spent = cgs_now() - before;
    for (int i = 0; out && i < n; i++) out[l->active[i]].seconds += spent / n;
    return CGS_OK;
}

/* appends the executed block and z_now to the history, whose oldest frame is forgotten */
static void remember(cgs_loop *l, int n, int block) {
    size_t D = (size_t)l->D, A = (size_t)l->A, N = (size_t)l->N;
    for (int i = 0; i < n; i++) {
        size_t e = (size_t)l->active[i];
        float *past = l->past + e * (N - 1) * A;
        memmove(history_at(l, e, 0), history_at(l, e, 1), (N - 1) * D * sizeof *l->z);
        memcpy(history_at(l, e, l->N - 1), l->z_now + (size_t)i * D, D * sizeof *l->z);
        if (N < 2) continue;
        memmove(past, past + A, (N - 2) * A * sizeof *past);
        memcpy(past + (N - 2) * A, l->plan + (e * (size_t)l->H + (size_t)block) * A,
               A * sizeof *past);
    }
}

static cgs_status run_batch(cgs_loop *l, const cgs_start_states *cases, int first, int E,
                            cgs_outcome *out) {
    const cgs_loop_config *c = &l->config;
    int step = 0, n, f = c->scale.frameskip;
    /* who scores nothing and begins at no prior does not look at the world either */
    bool blind = !(l->solver.kind->needs & (CGS_NEEDS_SCORES | CGS_NEEDS_PRIOR));
    CGS_TRY(begin(l, cases, first, E, out));
    if (c->watch.stepped) CGS_TRY(c->watch.stepped(c->watch.user, &l->envs, 0));
    for (int number = 0; step < c->budget && (n = gather_active(l, E)) > 0; number++) {
        double before = cgs_now();
        CGS_TRY(solve(l, cases, n, first, number, out));
        double spent = cgs_now() - before;
        for (int i = 0; i < n; i++) out[l->active[i]].seconds += spent / n;
        if (number == 0) CGS_TRY(weigh_first(l, n, spent, out));

        for (int block = 0; block < l->execute && step < c->budget && n > 0; block++) {
            for (int k = 0; k < f && step < c->budget && n > 0; k++) {
                CGS_TRY(act(l, E, block, k, ++step, out));
                n = gather_active(l, E);
            }
            /* only frames that the next solve sees: the last one, and those of its history */
            int keep = c->history == CGS_HISTORY_NATIVE ? 1 : l->N;
            if (blind || block < l->execute - keep || step >= c->budget || n == 0) continue;
            CGS_TRY(observe(l, n, out));
            remember(l, n, block);
        }
        l->seen = seen_after(l, l->seen);
    }

    /* distance of the end from the goal, in latents */
    for (int e = 0; e < E; e++) l->active[e] = e;
    CGS_TRY(observe(l, E, NULL));
    for (size_t e = 0; e < (size_t)E; e++) {
        double sum = 0;
        for (size_t i = 0; i < (size_t)l->D; i++) {
            double d = (double)l->z_now[e * (size_t)l->D + i] - l->goal[e * (size_t)l->D + i];
            sum += d * d;
        }
        out[e].reached = (float)sum;
    }
    return CGS_OK;
}

cgs_status cgs_loop_run(cgs_loop *l, const cgs_start_states *cases, cgs_outcome *outcome) {
    const cgs_loop_observer *w = &l->config.watch;
    if (cases->D != l->D || cases->A != l->A || cases->state_dim != l->config.env->state_dim)
        return cgs_fail(CGS_EARG, "start states of another model or environment");
    for (int first = 0; first < cases->count; first += l->config.batch) {
        int left = cases->count - first, E = left < l->config.batch ? left : l->config.batch;
        if (w->stop && w->stop(w->user)) return cgs_fail(CGS_ESTOPPED, "stopped");
        CGS_TRY(run_batch(l, cases, first, E, outcome + first));
        if (w->progress) w->progress(w->user, first + E);
    }
    return CGS_OK;
}

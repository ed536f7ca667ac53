/* api.c - the public C API (include/cgs/cgs.h) over models, planners and environments. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/agent_internal.h"
#include "core/threads.h"
#include "env/env.h"
#include "eval/prior_weight.h"
#include "eval/temperature.h"

/* ---- planners ---------------------------------------------------------------------- */

int cgs_planner_count(void) {
    int count = 0;
    while (cgs_planner_kind_at(count)) count++;
    return count;
}

const char *cgs_planner_id(int i) {
    const cgs_planner_kind *kind = cgs_planner_kind_at(i);
    return kind ? kind->name : NULL;
}

/* ---- agent ------------------------------------------------------------------------- */

static void layout(cgs_agent *a, const char *dir) {
    cgs_arena *m = &a->arena;
    const cgs_lewm_config *c = &a->s.lewm->config;
    size_t N = (size_t)c->history, D = (size_t)c->width, A = (size_t)cgs_lewm_action_block(c);
    size_t n = (size_t)a->plan.H * A;
    a->dir = CGS_TAKE(m, char, strlen(dir) + 1);
    a->z = CGS_TAKE(m, float, N *D);
    a->past = CGS_TAKE(m, float, N *A);
    a->goal = CGS_TAKE(m, float, D);
    a->last = CGS_TAKE(m, float, n);
    a->start = CGS_TAKE(m, float, n);
    a->raw = CGS_TAKE(m, float, (size_t)a->plan.K *n);
}

static bool needs(const cgs_agent *a, unsigned what) { return a->solver.kind->needs & what; }

static cgs_status plan_settings(cgs_agent *a, const cgs_agent_options *o) {
    cgs_plan_config *p = &a->plan;
    *p = cgs_plan_defaults();
    if (o->planner) snprintf(p->kind.s, sizeof p->kind.s, "%.100s", o->planner);
    if (o->samples) p->K = o->samples;
    if (o->iters) p->iters = p->gd_steps = o->iters;
    if (o->horizon) p->H = o->horizon;
    p->A = cgs_lewm_action_block(&a->s.lewm->config);
    p->frameskip = a->s.lewm->config.frameskip;
    p->seed = a->seed = o->seed;
    cgs_section tuning = cgs_plan_tuning(p);
    for (int i = 0; i < o->setting_count; i++)
        CGS_TRY(cgs_config_assign(&tuning, 1, o->settings[i]));
    CGS_TRY(cgs_choose_tau(p, o->tau, a->s.model, a->s.card.env));
    CGS_TRY(cgs_choose_gamma(p, &a->s));
    return cgs_plan_check(p);
}

static cgs_status make_solver(cgs_agent *a) {
    const cgs_planner_kind *kind;
    CGS_TRY(cgs_planner_kind_find(&kind, a->plan.kind.s));
    if (kind->needs & CGS_NEEDS_PRIOR)
        CGS_TRY(cgs_prior_load(&a->prior, a->s.dir, cgs_solver_prior_kind(&a->plan), a->s.weights,
                               &a->device));
    cgs_solver_config c = {.model = a->s.model,
                           .prior = a->prior,
                           .scale = a->s.scale,
                           .plan = a->plan,
                           .episodes = 1,
                           .group = 1,
                           .act = a->s.act};
    CGS_TRY(cgs_solver_create(&a->solver, &c));
    for (int C = 1; C <= a->s.model->history; C++) CGS_TRY(cgs_solver_add_context(&a->solver, C));
    return CGS_OK;
}

static cgs_status build(cgs_agent *a, const char *dir, const cgs_agent_options *o) {
    CGS_TRY(cgs_device_open(&a->device, o->device ? o->device : "cpu", o->threads));
    CGS_TRY(cgs_loaded_model_open(&a->s, dir, &a->device, o->precision, 1, NULL));
    CGS_TRY(plan_settings(a, o));
    layout(a, dir);
    CGS_TRY(cgs_arena_bind(&a->arena, "agent"));
    layout(a, dir);
    strcpy(a->dir, dir);
    a->s.dir = a->dir;
    return make_solver(a);
}

cgs_status cgs_agent_create(cgs_agent **out, const char *dir, const cgs_agent_options *options) {
    const cgs_agent_options none = {0};
    *out = NULL;
    if (!dir) return cgs_fail(CGS_EARG, "agent: no model directory");
    cgs_agent *a = calloc(1, sizeof *a);
    if (!a) return cgs_fail(CGS_ENOMEM, "agent: no memory");
    cgs_status rc = build(a, dir, options ? options : &none);
    if (rc != CGS_OK) {
        cgs_agent_destroy(a);
        return rc;
    }
    *out = a;
    return CGS_OK;
}

void cgs_agent_destroy(cgs_agent *a) {
    if (!a) return;
    for (int i = 0; i <= CGS_CONTEXT_MAX; i++) cgs_rollout_destroy(a->judge[i]);
    cgs_solver_destroy(&a->solver);
    cgs_prior_destroy(a->prior);
    cgs_loaded_model_close(&a->s);
    cgs_device_close(&a->device);
    cgs_arena_free(&a->arena);
    free(a);
}

cgs_agent_info cgs_agent_describe(const cgs_agent *a) {
    const cgs_lewm_config *c = &a->s.lewm->config;
    return (cgs_agent_info){c->image_size, c->width,  c->history,    c->action_dim,
                            c->frameskip,  a->plan.H, a->s.card.env, a->s.card.method};
}

cgs_status cgs_agent_encode(cgs_agent *a, const uint8_t *rgb, int n, float *z) {
    return cgs_encoder_run(a->s.encoder, rgb, n, z);
}

/* ---- goals ------------------------------------------------------------------------- */

/* converts a plan's actions to the units of the data */
static void unstandardise(const cgs_agent *a, const float *from, size_t n, float *to) {
    const cgs_action_scale *s = &a->s.scale;
    for (size_t i = 0; i < n; i++) {
        size_t k = i % (size_t)s->dim;
        to[i] = (float)((double)from[i] * s->std[k] + s->mean[k]);
    }
}

static cgs_status own_cost(void *user, int episode, const float *plans, const float *z, int n,
                           float *cost) {
    cgs_agent *a = user;
    (void)episode;
    unstandardise(a, plans, (size_t)n * (size_t)a->plan.H * (size_t)a->plan.A, a->raw);
    return a->cost(a->user, z, a->raw, n, cost);
}

static void use_cost(cgs_agent *a, cgs_rollout_cost_fn fn) {
    for (int i = 0; i <= CGS_CONTEXT_MAX; i++)
        if (a->solver.rollout[i]) cgs_rollout_use_cost(a->solver.rollout[i], fn, a);
}

cgs_status cgs_agent_goal_latent(cgs_agent *a, const float *z) {
    size_t D = (size_t)a->s.lewm->config.width;
    for (size_t i = 0; i < D; i++)
        if (!isfinite(z[i]))
            return cgs_fail(CGS_ENUMERIC, "goal: value %zu of the latent is %g", i, (double)z[i]);
    memcpy(a->goal, z, D * sizeof *z);
    a->goal_kind = GOAL_LATENT;
    use_cost(a, NULL);
    return CGS_OK;
}

cgs_status cgs_agent_goal_image(cgs_agent *a, const uint8_t *rgb) {
    CGS_TRY(cgs_encoder_run(a->s.encoder, rgb, 1, a->goal));
    a->goal_kind = GOAL_LATENT;
    use_cost(a, NULL);
    return CGS_OK;
}

cgs_status cgs_agent_goal_cost(cgs_agent *a, cgs_cost_fn fn, void *user) {
    if (!fn) return cgs_fail(CGS_EARG, "goal: no cost function");
    if (needs(a, CGS_NEEDS_GRADIENT | CGS_NEEDS_RESIDUALS | CGS_NEEDS_PRIOR))
        return cgs_fail(CGS_EARG, "goal: %s needs an image or a latent", a->plan.kind.s);
    a->cost = fn;
    a->user = user;
    a->goal_kind = GOAL_COST;
    use_cost(a, own_cost);
    return CGS_OK;
}

/* ---- planning ---------------------------------------------------------------------- */

static cgs_status observe(cgs_agent *a, const cgs_observation *o) {
    const cgs_lewm_config *m = &a->s.lewm->config;
    const cgs_action_scale *s = &a->s.scale;
    if (!o->frames || o->count < 1 || o->count > m->history)
        return cgs_fail(CGS_EARG, "observation: %d frames, 1 ... %d can be given", o->count,
                        m->history);
    if (o->count > 1 && !o->executed)
        return cgs_fail(CGS_EARG, "observation: %d frames without the actions between them",
                        o->count);
    CGS_TRY(cgs_encoder_run(a->s.encoder, o->frames, o->count, a->z));
    for (int i = 0; i < (o->count - 1) * a->plan.A; i++) {
        int k = i % s->dim;
        if (!isfinite(o->executed[i]))
            return cgs_fail(CGS_ENUMERIC, "observation: executed value %d is %g", i,
                            o->executed[i]);
        a->past[i] = (float)((o->executed[i] - s->mean[k]) / s->std[k]);
    }
    return CGS_OK;
}

static cgs_status begin(cgs_agent *a, const cgs_observation *o) {
    const float *now = a->z + (o->count - 1) * a->s.lewm->config.width;
    int executed = o->advanced > 0 && a->solves > 0 ? o->advanced : a->plan.H;
    return cgs_solver_start(&a->solver, 1, now, a->goal, a->last, executed, a->start);
}

static cgs_status solve(cgs_agent *a, const cgs_observation *o, cgs_plan_result *result) {
    cgs_plan_problem q;
    cgs_solver_job job = {.E = 1,
                          .context = o->count,
                          .z = a->z,
                          .past = a->past,
                          .goal = a->goal_kind == GOAL_LATENT ? a->goal : NULL,
                          .episode = &a->episode,
                          .seed = &a->seed,
                          .solve = &a->solves,
                          .start = a->start};
    return cgs_solver_solve(&a->solver, &job, &q, result);
}

cgs_status cgs_agent_plan(cgs_agent *a, const cgs_observation *o, double deadline, double *actions,
                          cgs_plan_report *report) {
    double begun = cgs_now();
    const cgs_action_scale *s = &a->s.scale;
    int n = a->plan.H * a->plan.A;
    cgs_plan_result result;
    if (a->goal_kind == GOAL_NONE && needs(a, CGS_NEEDS_SCORES | CGS_NEEDS_PRIOR))
        return cgs_fail(CGS_EARG, "agent: no goal is set");
    if (!(deadline >= 0) || !isfinite(deadline))
        return cgs_fail(CGS_EARG, "agent: a deadline of %g seconds", deadline);
    CGS_TRY(observe(a, o));
    CGS_TRY(begin(a, o));
    /* what encoding leaves of the deadline; never 0, which would mean no limit */
    double left = deadline - (cgs_now() - begun);
    cgs_planner_set_deadline(a->solver.planner,
                             deadline > 0 ? (float)(left > 1e-9 ? left : 1e-9) : 0);
    CGS_TRY(solve(a, o, &result));
    a->solves++;
    a->seen = o->count;
    memcpy(a->last, result.plan, (size_t)n * sizeof *a->last);
    for (int i = 0; i < n; i++)
        actions[i] = (double)a->last[i] * s->std[i % s->dim] + s->mean[i % s->dim];
    if (report)
        *report = (cgs_plan_report){
            .seconds = cgs_now() - begun,
            .iterations = result.iterations,
            .cut = result.cut,
            .cost = result.iterations ? (double)result.best[result.iterations - 1] : (double)NAN};
    return CGS_OK;
}

void cgs_agent_begin(cgs_agent *a, uint64_t seed, uint64_t episode) {
    a->seed = seed;
    a->episode = episode;
    a->solves = 0;
    a->seen = 0;
}

cgs_status cgs_agent_weigh(cgs_agent *a, double *cost, double *size) {
    int n = a->plan.H * a->plan.A;
    float value;
    double sum = 0;
    if (a->goal_kind != GOAL_LATENT || a->seen == 0)
        return cgs_fail(CGS_EARG, "agent: %s",
                        a->seen ? "a cost function is no goal that plans are "
                                  "weighed for"
                                : "no plan to weigh");
    cgs_rollout_config c = {
        .episodes = 1, .context = a->seen, .horizon = a->plan.H, .samples = 1, .act = a->s.act};
    if (!a->judge[a->seen]) CGS_TRY(cgs_rollout_create_any(&a->judge[a->seen], a->s.model, &c));
    CGS_TRY(cgs_rollout_set(a->judge[a->seen], 1, a->z, a->past, a->goal));
    CGS_TRY(cgs_rollout_cost(a->judge[a->seen], a->last, 1, 1, &value));
    for (int i = 0; i < n; i++) sum += (double)a->last[i] * a->last[i];
    *cost = value;
    *size = sqrt(sum / n);
    return CGS_OK;
}

/* ---- environments ------------------------------------------------------------------ */

struct cgs_sim {
    cgs_env *env;
};

int cgs_sim_count(void) { return cgs_env_count(); }

const char *cgs_sim_id(int i) { return i >= 0 && i < cgs_env_count() ? cgs_env_at(i)->id : NULL; }

cgs_status cgs_sim_create(cgs_sim **out, const char *id) {
    const cgs_env_class *cls;
    *out = NULL;
    if (!id) return cgs_fail(CGS_EARG, "environment: no id");
    CGS_TRY(cgs_env_find(id, &cls));
    cgs_sim *s = calloc(1, sizeof *s);
    if (!s) return cgs_fail(CGS_ENOMEM, "%s: no memory", id);
    cgs_status rc = cgs_env_create(&s->env, cls);
    if (rc == CGS_OK) rc = cgs_sim_reset(s, 0);
    if (rc != CGS_OK) {
        cgs_sim_destroy(s);
        return rc;
    }
    *out = s;
    return CGS_OK;
}

void cgs_sim_destroy(cgs_sim *s) {
    if (!s) return;
    cgs_env_destroy(s->env);
    free(s);
}

cgs_sim_info cgs_sim_describe(const cgs_sim *s) {
    const cgs_env_class *c = s->env->cls;
    return (cgs_sim_info){c->id,          c->summary,   c->predicate[CGS_JUDGE_OFFICIAL].sentence,
                          c->version,     c->state_dim, c->action_dim,
                          c->action_range};
}

cgs_status cgs_sim_reset(cgs_sim *s, uint64_t seed) {
    cgs_rng rng = cgs_rng_stream(seed, CGS_STREAM_ENV, 0);
    return cgs_env_reset(s->env, &rng);
}

cgs_status cgs_sim_set_state(cgs_sim *s, const double *state, int dim) {
    return cgs_env_start(s->env, state, dim);
}

cgs_status cgs_sim_set_goal(cgs_sim *s, const double *goal, int dim) {
    return cgs_env_set_goal(s->env, goal, dim);
}

const double *cgs_sim_state(const cgs_sim *s) { return s->env->state; }
const double *cgs_sim_goal(const cgs_sim *s) { return s->env->goal; }

cgs_status cgs_sim_step(cgs_sim *s, const double *action, int dim) {
    const cgs_env_class *c = s->env->cls;
    if (dim != c->action_dim)
        return cgs_fail(CGS_EARG, "%s: an action has %d numbers, not %d", c->id, c->action_dim,
                        dim);
    memcpy(s->env->action, action, (size_t)dim * sizeof *action);
    cgs_env_step(s->env);
    if (*s->env->done)
        return cgs_fail(CGS_EARG, "%s: the action cannot be carried out (first number %g)", c->id,
                        action[0]);
    return CGS_OK;
}

int cgs_sim_success(const cgs_sim *s) { return *s->env->success; }

cgs_status cgs_sim_render(cgs_sim *s, int side, uint8_t *rgb) {
    return cgs_env_render(s->env, side, rgb);
}

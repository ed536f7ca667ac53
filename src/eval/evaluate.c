/* evaluate.c - see evaluate.h. */
#include "eval/evaluate.h"

#include <stdlib.h>
#include <string.h>

#include "eval/evaluate_internal.h"

float cgs_default_tau(const char *env) {
    static const struct {
        const char *env;
        float tau;
    } known[] = {{"pusht", 4}, {"cube", 64}, {"tworooms", 128}, {"reacher", 64}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (!strcmp(known[i].env, env)) return known[i].tau;
    return 0;
}

float cgs_family_tau(const char *family, const char *env) {
    static const struct {
        const char *env;
        float tau;
    } known[] = {{"pusht", 0.015f},
                 {"wall", 5e-6f},
                 {"pointmaze-umaze", 1e-3f},
                 {"pointmaze-medium", 3e-3f}};
    if (strcmp(family, "dinowm") != 0) return cgs_default_tau(env);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (!strcmp(known[i].env, env)) return known[i].tau;
    return 0;
}

float cgs_model_tau(const cgs_model *m, const char *env) {
    return cgs_family_tau(m->cls->family, env);
}

cgs_eval_options cgs_eval_defaults(void) {
    return (cgs_eval_options){.horizon = 5,
                              .budget = 50,
                              .goal_offset = 25,
                              .episodes = 50,
                              .batch = CGS_BATCH_BY_DEVICE,
                              .gd_steps = 100,
                              .device = "auto"};
}

/* ---- preparation ------------------------------------------------------------------- */

static cgs_status check_lists(const cgs_eval_options *o) {
    if (o->model_count < 1 || o->planner_count < 1 || o->sample_count < 1 || o->iter_count < 1 ||
        o->seed_count < 1)
        return cgs_fail(CGS_EARG, "at least one model, planner, number of samples, number of "
                                  "iterations and seed is needed");
    for (int i = 0; i < o->seed_count; i++)
        for (int k = 0; k < i; k++)
            if (o->seeds[i] == o->seeds[k])
                return cgs_fail(CGS_EARG, "seed %llu is listed twice",
                                (unsigned long long)o->seeds[i]);
    return CGS_OK;
}

static cgs_status open_all(cgs_eval_session *b) {
    const cgs_eval_options *o = b->o;
    CGS_TRY(cgs_device_open(&b->device, o->device, o->threads));
    CGS_TRY(cgs_dataset_open(&b->data, o->data));
    b->source = cgs_dataset_source(b->data);
    if (b->source->pixels < 0) return cgs_fail(CGS_EFORMAT, "%s: has no images", o->data);
    b->e->models = o->model_count;
    b->e->card = calloc((size_t)o->model_count, sizeof *b->e->card);
    b->e->backbone = calloc((size_t)o->model_count, sizeof *b->e->backbone);
    b->loaded = calloc((size_t)o->model_count, sizeof *b->loaded);
    b->starts = calloc((size_t)o->seed_count, sizeof *b->starts);
    b->ep_len = malloc((size_t)b->source->episodes * sizeof *b->ep_len);
    if (!b->e->card || !b->e->backbone || !b->loaded || !b->starts || !b->ep_len)
        return cgs_fail(CGS_ENOMEM, "evaluation: no memory");
    for (int i = 0; i < b->source->episodes; i++) b->ep_len[i] = b->source->ep_len[i];
    CGS_TRY(cgs_dataset_env(b->data, o->env, &b->e->env));
    for (int i = 0; i < o->model_count; i++) {
        CGS_TRY(cgs_loaded_model_open_any(&b->loaded[i], o->models[i], &b->device, o->precision,
                                          CGS_FRAMES_BY_DEVICE, b->data));
        CGS_TRY(cgs_loaded_model_fits(&b->loaded[i], b->e->env, b->source));
        b->e->card[i] = b->loaded[i].card;
        memcpy(b->e->backbone[i], b->loaded[i].dino.origin, sizeof b->e->backbone[i]);
    }
    return CGS_OK;
}

/* ---- the list of runs -------------------------------------------------------------- */

/* own_tau: each model at the temperature known for its cost */
static cgs_status add_runs(cgs_eval_session *b, const cgs_plan_config *p, bool own_tau) {
    CGS_TRY(cgs_plan_check(p));
    cgs_evaluation *e = b->e;
    int more = b->o->model_count * b->o->seed_count;
    cgs_eval_run *list = realloc(e->run, (size_t)(e->count + more) * sizeof *list);
    if (!list) return cgs_fail(CGS_ENOMEM, "evaluation: no memory for %d runs", e->count + more);
    e->run = list;
    for (int m = 0; m < b->o->model_count; m++)
        for (int s = 0; s < b->o->seed_count; s++) {
            cgs_eval_run *r = &list[e->count++];
            *r = (cgs_eval_run){.model = m, .plan = *p, .seed = b->o->seeds[s]};
            r->plan.seed = r->seed;
            r->plan.A = cgs_model_action_block(b->loaded[m].model);
            if (own_tau) r->plan.tau = cgs_model_tau(b->loaded[m].model, b->e->env->id);
        }
    return CGS_OK;
}

/* only settings that a planner uses are swept: CEM has no temperature, GD no samples */
static cgs_status add_planner(cgs_eval_session *b, const char *name) {
    const cgs_eval_options *o = b->o;
    cgs_plan_config p = cgs_plan_defaults();
    cgs_plan_kind kind;
    CGS_TRY(cgs_plan_kind_parse(&kind, name));
    snprintf(p.kind.s, sizeof p.kind.s, "%s", name);
    p.H = o->horizon;
    p.elites = o->elites;
    p.gd_steps = o->gd_steps;
    bool mppi = kind == CGS_PLAN_MPPI || kind == CGS_PLAN_PG_MPPI;
    bool samples = mppi || kind == CGS_PLAN_CEM || kind == CGS_PLAN_PG_CEM;
    bool own_tau = mppi && !o->tau_count;
    for (int i = 0; own_tau && i < o->model_count; i++)
        if (!(cgs_model_tau(b->loaded[i].model, b->e->env->id) > 0))
            return cgs_fail(CGS_EARG, "%s: no temperature is known for %s; give --tau", name,
                            b->e->env->id);
    for (int k = 0; k < (samples ? o->sample_count : 1); k++)
        for (int i = 0; i < (samples ? o->iter_count : 1); i++)
            for (int t = 0; t < (mppi && o->tau_count ? o->tau_count : 1); t++) {
                if (samples) {
                    p.K = o->samples[k];
                    p.iters = o->iters[i];
                }
                if (mppi && o->tau_count) p.tau = (float)o->taus[t];
                CGS_TRY(add_runs(b, &p, own_tau));
            }
    return CGS_OK;
}

/* ---- all of it --------------------------------------------------------------------- */

static cgs_status evaluate(cgs_eval_session *b) {
    const cgs_eval_options *o = b->o;
    CGS_TRY(check_lists(o));
    CGS_TRY(open_all(b));
    for (int i = 0; i < o->planner_count; i++) CGS_TRY(add_planner(b, o->planners[i]));
    CGS_TRY(cgs_eval_session_starts(b));
    if (o->out) CGS_TRY(cgs_eval_file_read(&b->file, o->out));
    CGS_TRY(cgs_eval_session_find_done(b));
    for (int m = 0; m < o->model_count; m++) CGS_TRY(cgs_eval_session_run(b, m));
    return CGS_OK;
}

cgs_status cgs_evaluate(cgs_evaluation *e, const cgs_eval_options *o) {
    cgs_eval_session b = {.o = o, .e = e};
    memset(e, 0, sizeof *e);
    cgs_status rc = evaluate(&b);
    for (int i = 0; b.loaded && i < o->model_count; i++) cgs_loaded_model_close(&b.loaded[i]);
    for (int i = 0; b.starts && i < o->seed_count; i++) cgs_starts_free(&b.starts[i]);
    cgs_env_batch_destroy(&b.envs);
    cgs_eval_file_free(&b.file);
    cgs_dataset_close(b.data);
    cgs_device_close(&b.device);
    free(b.loaded);
    free(b.starts);
    free(b.ep_len);
    free(b.use);
    return rc;
}

void cgs_evaluation_free(cgs_evaluation *e) {
    for (int i = 0; i < e->count; i++) free(e->run[i].result.success);
    free(e->run);
    free(e->card);
    free(e->backbone);
    memset(e, 0, sizeof *e);
}

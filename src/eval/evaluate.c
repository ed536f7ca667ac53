/* evaluate.c - see evaluate.h. */
#include "eval/evaluate.h"

#include <stdlib.h>
#include <string.h>

#include "eval/curvature.h"
#include "eval/evaluate_internal.h"
#include "eval/prior_weight.h"
#include "plan/planners.h"

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

static cgs_status check_lists(cgs_eval_session *b) {
    const cgs_eval_options *o = b->o;
    if (o->model_count < 1 || o->planner_count < 1 || o->sample_count < 1 || o->iter_count < 1 ||
        o->seed_count < 1)
        return cgs_fail(CGS_EARG, "at least one model, planner, number of samples, number of "
                                  "iterations and seed is needed");
    cgs_success_rule rule;
    if (o->success) CGS_TRY(cgs_success_parse(&rule, o->success));
    if (o->protocol) CGS_TRY(cgs_judge_parse(&b->judge, o->protocol));
    if (o->success && b->judge == CGS_JUDGE_STRICT && rule != CGS_SUCCESS_END)
        return cgs_fail(CGS_EARG, "success: the strict protocol judges the end, not \"%.40s\"",
                        o->success);
    for (int i = 0; i < o->rollout_count; i++)
        if (o->rollouts[i] < 1)
            return cgs_fail(CGS_EARG, "%d rollouts: at least 1 is needed", o->rollouts[i]);
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
    b->curvature = calloc((size_t)o->model_count, sizeof *b->curvature);
    b->prior = calloc((size_t)o->model_count * CGS_PRIOR_KINDS, sizeof *b->prior);
    b->ep_len = malloc((size_t)b->source->episodes * sizeof *b->ep_len);
    if (!b->e->card || !b->e->backbone || !b->loaded || !b->starts || !b->curvature || !b->prior ||
        !b->ep_len)
        return cgs_fail(CGS_ENOMEM, "evaluation: no memory");
    for (int i = 0; i < b->source->episodes; i++) b->ep_len[i] = b->source->ep_len[i];
    CGS_TRY(cgs_dataset_env(b->data, o->env, &b->e->env));
    CGS_TRY(cgs_env_can_plan(b->e->env));
    CGS_TRY(cgs_env_has_judge(b->e->env, b->judge));
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

/* the curvature is measured once per model: all plans of it have one horizon and spread */
static cgs_status measured_tau(cgs_eval_session *b, int model, cgs_plan_config *p) {
    double *c = &b->curvature[model];
    cgs_status rc = CGS_OK;
    if (!(*c > 0)) rc = cgs_model_curvature(c, &b->loaded[model], b->data, b->e->env, p);
    return cgs_curvature_tau(p, rc, *c, &b->loaded[model]);
}

/* where the temperature of runs comes from: the settings, what is known for a model's cost, or the
 * model's curvature */
typedef enum tau_source { TAU_GIVEN, TAU_KNOWN, TAU_MEASURED } tau_source;

static cgs_status add_runs(cgs_eval_session *b, const cgs_plan_config *p, tau_source source) {
    CGS_TRY(cgs_plan_check(p));
    cgs_evaluation *e = b->e;
    int more = b->o->model_count * b->o->seed_count;
    cgs_eval_run *list = realloc(e->run, (size_t)(e->count + more) * sizeof *list);
    if (!list) return cgs_fail(CGS_ENOMEM, "evaluation: no memory for %d runs", e->count + more);
    e->run = list;
    for (int m = 0; m < b->o->model_count; m++)
        for (int s = 0; s < b->o->seed_count; s++) {
            cgs_eval_run r = {.model = m, .plan = *p, .seed = b->o->seeds[s]};
            r.plan.seed = r.seed;
            r.plan.A = cgs_model_action_block(b->loaded[m].model);
            r.plan.frameskip = b->loaded[m].model->frameskip;
            if (source == TAU_MEASURED) CGS_TRY(measured_tau(b, m, &r.plan));
            if (source == TAU_KNOWN)
                CGS_TRY(cgs_choose_tau(&r.plan, 0, b->loaded[m].model, b->e->env->id));
            CGS_TRY(cgs_choose_gamma(&r.plan, &b->loaded[m]));
            list[e->count++] = r;
        }
    return CGS_OK;
}

static tau_source choose_source(cgs_plan_config *p, double tau) {
    if (tau == CGS_TAU_MEASURED) return TAU_MEASURED;
    p->tau = (float)tau;
    return TAU_GIVEN;
}

/* only what a planner reads is swept: CEM has no temperature, GD no samples */
static cgs_status add_planner(cgs_eval_session *b, const char *name) {
    const cgs_eval_options *o = b->o;
    cgs_plan_config p = cgs_plan_defaults();
    const cgs_planner_kind *kind;
    CGS_TRY(cgs_planner_kind_find(&kind, name));
    snprintf(p.kind.s, sizeof p.kind.s, "%s", name);
    p.H = o->horizon;
    p.elites = o->elites;
    p.gd_steps = o->gd_steps;
    cgs_section tuning = cgs_plan_tuning(&p);
    for (int i = 0; i < o->setting_count; i++)
        CGS_TRY(cgs_config_assign(&tuning, 1, o->settings[i]));
    bool samples = kind->reads & CGS_READS_SAMPLES, iters = kind->reads & CGS_READS_ITERS;
    bool tau = kind->reads & CGS_READS_TAU, taus = tau && o->tau_count;
    tau_source source = tau ? TAU_KNOWN : TAU_GIVEN;
    for (int r = 0; kind->divide && r < o->rollout_count; r++)
        for (int t = 0; t < (taus ? o->tau_count : 1); t++) {
            kind->divide(o->rollouts[r], &p.K, &p.iters);
            if (taus) source = choose_source(&p, o->taus[t]);
            CGS_TRY(add_runs(b, &p, source));
        }
    if (kind->divide && o->rollout_count) return CGS_OK;
    for (int k = 0; k < (samples ? o->sample_count : 1); k++)
        for (int i = 0; i < (iters ? o->iter_count : 1); i++)
            for (int t = 0; t < (taus ? o->tau_count : 1); t++) {
                if (samples) p.K = o->samples[k];
                if (iters) p.iters = o->iters[i];
                if (taus) source = choose_source(&p, o->taus[t]);
                CGS_TRY(add_runs(b, &p, source));
            }
    return CGS_OK;
}

/* ---- all of it --------------------------------------------------------------------- */

static cgs_status evaluate(cgs_eval_session *b) {
    const cgs_eval_options *o = b->o;
    CGS_TRY(check_lists(b));
    CGS_TRY(open_all(b));
    bool control = o->protocol != NULL;
    for (int i = 0; i < o->planner_count; i++) {
        CGS_TRY(add_planner(b, o->planners[i]));
        control = control && strcmp(o->planners[i], "random") != 0;
    }
    if (control) CGS_TRY(add_planner(b, "random"));
    CGS_TRY(cgs_eval_session_starts(b));
    CGS_TRY(cgs_eval_session_priors(b));
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
    free(b.curvature);
    free(b.prior);
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

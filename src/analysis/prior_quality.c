/* prior_quality.c - see prior_quality.h. */
#include "analysis/prior_quality.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/document.h"
#include "analysis/paper_numbers.h"
#include "analysis/probe_run.h"
#include "eval/shared_starts.h"
#include "eval/start_states.h"
#include "plan/refine.h"
#include "rollout/held_out.h"
#include "rollout/rollout.h"
#include "train/prediction_error.h"

/* central intervals of a Gaussian, and how many spreads they reach to either side */
enum { LEVELS = 4 };
static const struct {
    int percent;
    double reach;
} levels[LEVELS] = {{50, 0.6744897501960817},
                    {80, 1.2815515655446004},
                    {90, 1.6448536269514722},
                    {95, 1.959963984540054}};

static const char *const nothings[] = {"control", "mean"};

cgs_status cgs_nothing_parse(cgs_nothing *out, const char *name) {
    for (int i = 0; i < 2; i++)
        if (!strcmp(nothings[i], name)) {
            *out = (cgs_nothing)i;
            return CGS_OK;
        }
    return cgs_fail(CGS_EARG, "--zero: \"%.40s\" is not control or mean", name);
}

cgs_prior_quality_options cgs_prior_quality_defaults(void) {
    static const uint64_t published[] = {0, 1, 42};
    return (cgs_prior_quality_options){
        .seeds = published, .seed_count = 3, .episodes = 50, .goal_offset = 25, .device = "auto"};
}

cgs_status cgs_prior_ratios(cgs_plan_cost_fn cost, void *ctx, const float *plan,
                            const float *nothing, int E, int n, double *rho) {
    size_t rows = 2 * (size_t)E, length = (size_t)n;
    float *pair = calloc(rows * (length + 1), sizeof *pair), *left = pair + rows * length;
    if (!pair) return cgs_fail(CGS_ENOMEM, "no memory for %d plans", E);
    for (size_t e = 0; e < (size_t)E; e++) {
        memcpy(pair + 2 * e * length, plan + e * length, length * sizeof *pair);
        memcpy(pair + (2 * e + 1) * length, nothing, length * sizeof *pair);
    }
    cgs_status rc = cost(ctx, pair, E, 2, left);
    for (int e = 0; e < E && rc == CGS_OK; e++) {
        double with = (double)left[2 * e], without = (double)left[2 * e + 1];
        rho[e] = sqrt(with / without);
        if (!(without > 0) || !(with >= 0) || !isfinite(rho[e]))
            rc = cgs_fail(CGS_ENUMERIC,
                          "start %d: squared distance %g with the prior, %g when doing nothing; "
                          "their ratio is meaningless",
                          e, with, without);
    }
    free(pair);
    return rc;
}

/* the state of a run */
typedef struct desk {
    const cgs_prior_quality_options *o;
    cgs_device device;
    cgs_dataset *data;
    const cgs_env_class *env;
    int models;
    cgs_loaded_model loaded[CGS_ANALYSIS_MODELS];
    cgs_prior *prior[CGS_ANALYSIS_MODELS];
    char name[CGS_ANALYSIS_MODELS][128], method[CGS_ANALYSIS_MODELS][64];
    cgs_starts *starts; /* (seeds) */
    double *rho;        /* (seeds * episodes) */
    /* of the running model: errors of predicted latents where the recorded actions are carried out,
     * and sums of squares of recorded actions' differences from the mean action and, in the units
     * that planners measure them in, from the prior's */
    cgs_prediction_errors error;
    double from_mean, from_prior;
    int64_t values;         /* how many numbers they are over */
    double spreads;         /* sum of the prior's */
    int64_t inside[LEVELS]; /* values within its central intervals */
} desk;

static void desk_clear(desk *k) {
    for (int i = 0; i < k->models; i++) {
        cgs_prior_destroy(k->prior[i]);
        cgs_loaded_model_close(&k->loaded[i]);
    }
    for (int i = 0; k->starts && i < k->o->seed_count; i++) cgs_starts_free(&k->starts[i]);
    free(k->starts);
    free(k->rho);
    cgs_dataset_close(k->data);
    cgs_device_close(&k->device);
}

static cgs_status open_models(desk *k) {
    const cgs_prior_quality_options *o = k->o;
    for (int i = 0; i < o->model_count; i++) {
        cgs_loaded_model *s = &k->loaded[i];
        CGS_TRY(cgs_loaded_model_open(s, o->models[i], &k->device, o->precision,
                                      CGS_FRAMES_BY_DEVICE, k->data));
        k->models = i + 1;
        CGS_TRY(cgs_loaded_model_fits(s, k->env, cgs_dataset_source(k->data)));
        CGS_TRY(cgs_prior_load(&k->prior[i], s->dir, o->kind, s->weights, &k->device));
        if (o->held_out)
            CGS_TRY(cgs_prior_without_held_out(s, cgs_dataset_source(k->data), o->kind));
        const cgs_prior_card *p = &k->prior[i]->card;
        const cgs_lewm_config *c = &s->lewm->config;
        if (p->block != cgs_lewm_action_block(c) || p->width != c->width)
            return cgs_fail(
                CGS_EARG,
                "%s: the prior plans action blocks of %d values from latents of %d, the model "
                "has %d and %d",
                s->dir, p->block, p->width, cgs_lewm_action_block(c), c->width);
        memcpy(k->method[i], s->card.method, sizeof s->card.method);
    }
    cgs_model_names(k->models, o->models, k->method, k->name);
    return CGS_OK;
}

static cgs_status desk_set(desk *k) {
    const cgs_prior_quality_options *o = k->o;
    if (o->model_count < 1 || o->model_count > CGS_ANALYSIS_MODELS)
        return cgs_fail(CGS_EARG, "%d models; 1 to %d can be compared", o->model_count,
                        CGS_ANALYSIS_MODELS);
    if (o->seed_count < 1 || o->episodes < 1)
        return cgs_fail(CGS_EARG, "%d seeds of %d starts: at least 1 of each", o->seed_count,
                        o->episodes);
    CGS_TRY(cgs_device_open(&k->device, o->device, o->threads));
    CGS_TRY(cgs_dataset_open(&k->data, o->data));
    CGS_TRY(cgs_dataset_env(k->data, o->env, &k->env));
    CGS_TRY(open_models(k));
    k->starts = calloc((size_t)o->seed_count, sizeof *k->starts);
    k->rho = malloc((size_t)o->seed_count * (size_t)o->episodes * sizeof *k->rho);
    if (!k->starts || !k->rho)
        return cgs_fail(CGS_ENOMEM, "no memory for %d seeds of %d starts", o->seed_count,
                        o->episodes);
    for (int i = 0; i < o->seed_count; i++) {
        cgs_start_rule rule = {.count = o->episodes,
                               .goal_offset = o->goal_offset,
                               .seed = o->seeds[i],
                               .held_out = o->held_out};
        CGS_TRY(cgs_shared_starts(&k->starts[i], k->loaded, k->models, cgs_dataset_source(k->data),
                                  &rule));
    }
    return CGS_OK;
}

/* a plan that does nothing: (H, A) */
static void do_nothing(const desk *k, const cgs_loaded_model *s, int n, float *plan) {
    const cgs_action_scale *a = &s->scale;
    bool control = k->o->nothing == CGS_NOTHING_CONTROL;
    for (int i = 0; i < n; i++)
        plan[i] = control ? (float)(-a->mean[i % a->dim] / a->std[i % a->dim]) : 0;
}

/* the standardised actions that were recorded from a row on: plan (n) */
static cgs_status recorded(const desk *k, const cgs_loaded_model *s, int64_t row, int n,
                           float *plan) {
    const cgs_action_scale *a = &s->scale;
    CGS_TRY(cgs_dataset_read_rows(k->data, "action", row, n / a->dim, plan));
    for (int i = 0; i < n; i++)
        plan[i] = (float)((plan[i] - a->mean[i % a->dim]) / a->std[i % a->dim]);
    return CGS_OK;
}

/* a recorded value of a plan, beside what the prior says of it */
static void note_value(desk *k, double value, double mean, double spread, double unit) {
    double away = value - mean;
    k->from_mean += value * value;
    k->from_prior += away * away / (unit * unit);
    k->spreads += spread;
    for (int l = 0; l < LEVELS; l++) k->inside[l] += fabs(away) <= levels[l].reach * spread;
    k->values++;
}

/* What gamma of sampled Gauss-Newton is the ratio of: the variance of the prediction's error and
 * that of plans around the start; and the coverage of
 * the prior's spread.  Actions of which a recording has none are left out. */
static cgs_status measure_spread(desk *k, int model, const cgs_starts *starts,
                                 const cgs_start_states *cases, const float *prior,
                                 const float *spread) {
    const cgs_loaded_model *s = &k->loaded[model];
    const cgs_prior_card *p = &k->prior[model]->card;
    int E = starts->count, n = cgs_prior_values(p);
    float *plan = malloc((size_t)E * (size_t)n * sizeof *plan);
    cgs_status rc = plan ? CGS_OK : cgs_fail(CGS_ENOMEM, "no memory for %d plans", E);
    for (int e = 0; e < E && rc == CGS_OK; e++)
        rc = recorded(k, s, starts->start[e].row, n, plan + e * n);
    for (int i = 0; i < E * n && rc == CGS_OK; i++) {
        float unit = spread[i];
        cgs_plan_product(&unit, 1);
        if (isfinite(plan[i]))
            note_value(k, plan[i], prior[i], spread[i], p->spread ? unit : 1);
        else
            plan[i] = prior[i];
    }
    if (rc == CGS_OK)
        rc = cgs_prediction_errors_add(&k->error, s, p->horizon, cases->z, cases->goal, plan, E);
    free(plan);
    return rc;
}

/* the starts of one seed: rho (episodes) */
static cgs_status measure_seed(desk *k, int model, const cgs_starts *starts, double *rho) {
    cgs_loaded_model *s = &k->loaded[model];
    cgs_prior *p = k->prior[model];
    int H = p->card.horizon, n = H * p->card.block, E = starts->count;
    cgs_start_states cases = {0};
    cgs_rollout *r = NULL;
    float *plan = malloc((2 * (size_t)E + 1) * (size_t)n * sizeof *plan);
    float *nothing = plan + (size_t)E * (size_t)n, *spread = nothing + n;
    cgs_rollout_config c = {.episodes = E, .context = 1, .horizon = H, .samples = 2, .act = s->act};
    cgs_status rc = plan ? CGS_OK : cgs_fail(CGS_ENOMEM, "no memory for %d plans", E);
    if (rc == CGS_OK)
        rc = cgs_start_states_build(&cases, k->data, k->env, starts, s->encoder, s->model,
                                    &s->scale, NULL, 1);
    if (rc == CGS_OK) rc = cgs_prior_plan(p, cases.z, cases.goal, E, plan, spread);
    if (rc == CGS_OK) rc = cgs_rollout_create(&r, s->lewm, &c);
    if (rc == CGS_OK) rc = cgs_rollout_set(r, E, cases.z, NULL, cases.goal);
    if (rc == CGS_OK) {
        do_nothing(k, s, n, nothing);
        rc = cgs_prior_ratios(cgs_rollout_cost, r, plan, nothing, E, n, rho);
    }
    /* the goal is the frame after the last of the actions */
    if (rc == CGS_OK && k->o->goal_offset == n / s->scale.dim)
        rc = measure_spread(k, model, starts, &cases, plan, spread);
    cgs_rollout_destroy(r);
    cgs_start_states_free(&cases);
    free(plan);
    return rc;
}

static cgs_status measure_model(desk *k, int model, cJSON *list) {
    const cgs_prior_quality_options *o = k->o;
    int total = o->seed_count * o->episodes, below = 0;
    double published;
    k->error = (cgs_prediction_errors){0};
    k->from_mean = k->from_prior = k->spreads = 0;
    k->values = 0;
    memset(k->inside, 0, sizeof k->inside);
    for (int i = 0; i < o->seed_count; i++) {
        CGS_TRY(measure_seed(k, model, &k->starts[i], k->rho + i * o->episodes));
        if (o->progress && !o->progress(o->user, "starts", model * o->seed_count + i + 1,
                                        (double)k->models * o->seed_count))
            return cgs_fail(CGS_ESTOPPED, "stopped");
    }
    for (int i = 0; i < total; i++) below += k->rho[i] < 1;
    cJSON *at = cgs_document_object(list, NULL);
    cgs_document_text_field(at, "name", k->name[model]);
    cgs_document_text_field(at, "method", k->method[model]);
    cgs_document_text_field(at, "model", k->loaded[model].dir);
    cgs_document_number(at, "horizon", k->prior[model]->card.horizon);
    CGS_TRY(cgs_document_mean(at, "rho", k->rho, total));
    CGS_TRY(cgs_document_median(at, "rho_median", k->rho, total));
    cgs_document_number(at, "below_one", below);
    cgs_document_numbers(at, "ratios", k->rho, total);
    cgs_document_text_field(at, "spread", k->prior[model]->card.spread ? "learned" : "unit");
    if (k->values && k->error.coordinates) {
        double error = k->error.square / (double)k->error.coordinates;
        double values = (double)k->values;
        cgs_document_number(at, "prediction_variance", error);
        cgs_document_number(at, "plan_variance", k->from_mean / values);
        cgs_document_number(at, "prior_variance", k->from_prior / values);
        cgs_document_number(at, "gamma", error / (k->from_mean / values));
        cgs_document_number(at, "prior_gamma", error / (k->from_prior / values));
        cgs_document_number(at, "mean_spread", k->spreads / values);
        cJSON *coverage = cgs_document_object(at, "coverage");
        for (int l = 0; l < LEVELS; l++) {
            char level[8];
            snprintf(level, sizeof level, "%d", levels[l].percent);
            cgs_document_number(coverage, level, (double)k->inside[l] / values);
        }
    }
    if (cgs_published_prior(k->env->id, k->method[model], &published))
        cgs_document_number(at, "published", published);
    return CGS_OK;
}

static void describe(cJSON *doc, const desk *k) {
    const cgs_prior_quality_options *o = k->o;
    cgs_document_text_field(doc, "zero", nothings[o->nothing]);
    if (o->kind != CGS_PRIOR_BEHAVIOUR)
        cgs_document_text_field(doc, "kind", cgs_prior_kind_name(o->kind));
    cgs_document_number(doc, "starts", o->seed_count * o->episodes);
    cgs_document_number(doc, "goal_offset", o->goal_offset);
    cJSON_AddBoolToObject(doc, "held_out", o->held_out);
    cJSON *seeds = cgs_document_array(doc, "seeds");
    for (int i = 0; i < o->seed_count; i++) {
        char text[32];
        snprintf(text, sizeof text, "%llu", (unsigned long long)o->seeds[i]);
        cJSON_AddItemToArray(seeds, cJSON_CreateString(text));
    }
}

cgs_status cgs_prior_quality_run(cJSON **doc, const cgs_prior_quality_options *o,
                                 const char *command) {
    desk *k = calloc(1, sizeof *k); /* the models' structs are too large for a stack */
    *doc = NULL;
    if (!k) return cgs_fail(CGS_ENOMEM, "no memory for %d models", o->model_count);
    k->o = o;
    cgs_status rc = desk_set(k);
    if (rc == CGS_OK) rc = cgs_document_create(doc, "cgs-prior-quality", command, k->env->id);
    if (rc == CGS_OK) {
        describe(*doc, k);
        cJSON *list = cgs_document_array(*doc, "models");
        for (int i = 0; i < k->models && rc == CGS_OK; i++) rc = measure_model(k, i, list);
    }
    desk_clear(k);
    free(k);
    return rc;
}

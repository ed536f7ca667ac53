/* recorded.c - see recorded.h. */
#include "analysis/recorded.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/anchors.h"
#include "analysis/document.h"
#include "analysis/ridge.h"
#include "core/log.h"
#include "eval/curvature.h"
#include "eval/prior_weight.h"
#include "eval/solver.h"
#include "eval/temperature.h"
#include "rollout/held_out.h"

/* windows that fit the simple predictors; episodes that are planned for at once */
enum { FIT = 256, TOGETHER = 25 };
#define RIDGE 1.0

/* one model, with its windows: those that fit first, then those that are scored */
typedef struct desk {
    const cgs_recorded_options *o;
    cgs_device device;
    cgs_dataset *data;
    const char *env; /* "" where the file does not say */
    cgs_loaded_model model;
    cgs_prior *prior;
    int H, A, D, fit, scored; /* A: values in an action block */
    bool held_out;            /* the model's card says which episodes it never saw */
    int episodes;             /* that windows are scored of */
    float *z;                 /* (fit + scored, H + 1, D) */
    float *plan;              /* (fit + scored, H, A) recorded, standardised */
    float *imagined;          /* (scored, H, D) under the recorded actions */
    cgs_anchor *at;           /* (fit + scored) */
    float *made, *seen;       /* (scored, H, A) plans of a planner; (scored, H, D) under them */
} desk;

static size_t latents(const desk *k) { return (size_t)(k->H + 1) * (size_t)k->D; }
static size_t values(const desk *k) { return (size_t)k->H * (size_t)k->A; }
static const float *scored_z(const desk *k, int i) {
    return k->z + (size_t)(k->fit + i) * latents(k);
}
static const float *scored_plan(const desk *k, int i) {
    return k->plan + (size_t)(k->fit + i) * values(k);
}

static void close_model(desk *k) {
    cgs_prior_destroy(k->prior);
    cgs_loaded_model_close(&k->model);
    free(k->at);
    free(k->z);
    free(k->plan);
    free(k->imagined);
    k->prior = NULL;
    k->at = NULL;
    k->z = k->plan = k->imagined = NULL;
}

static bool tell(const desk *k, const char *what, double done, double total) {
    return !k->o->progress || k->o->progress(k->o->user, what, done, total);
}

/* ---- windows ---------------------------------------------------------------------- */

/* side (episodes): 1 scored, 0 fits */
static cgs_status divide(desk *k, uint8_t *side) {
    const cgs_source *s = cgs_dataset_source(k->data);
    k->held_out = cgs_loaded_model_held_out(&k->model, s, side) == CGS_OK;
    if (k->held_out) return CGS_OK;
    cgs_log(CGS_WARN, "%s: windows may be of episodes that the model trained on", k->model.dir);
    for (int e = 0; e < s->episodes; e++) side[e] = (uint8_t)(e % 2);
    return CGS_OK;
}

/* `count` windows of one side: random episodes, random moments that have an image */
static cgs_status draw(const desk *k, const uint8_t *side, int which, int count, int *episodes,
                       cgs_anchor *out) {
    const cgs_source *s = cgs_dataset_source(k->data);
    int rows = k->H * k->model.model->frameskip, n = 0;
    int *list = malloc((size_t)s->episodes * sizeof *list);
    if (!list) return cgs_fail(CGS_ENOMEM, "%s: no memory for its episodes", s->path);
    for (int e = 0; e < s->episodes; e++)
        if (side[e] == which && s->ep_len[e] > rows) list[n++] = e;
    cgs_rng rng = cgs_rng_stream(k->o->seed, CGS_STREAM_DATA, 2 + (uint64_t)which);
    for (int i = 0; i < count && n; i++) {
        int e = list[cgs_rng_below(&rng, (uint64_t)n)];
        int moments = (s->ep_len[e] - rows - 1) / s->pixels_every + 1;
        int step = (int)cgs_rng_below(&rng, (uint64_t)moments) * s->pixels_every;
        out[i] = (cgs_anchor){e, step};
    }
    free(list);
    *episodes = n;
    return n ? CGS_OK
             : cgs_fail(CGS_EARG, "%s: no %s episode has the %d actions of a plan in a row",
                        s->path, which ? "held-out" : "training", rows);
}

static cgs_status read_windows(desk *k) {
    const cgs_model *m = k->model.model;
    cgs_stretch s = {0};
    cgs_status rc = cgs_stretch_create(&s, k->H + 1, m->frameskip, m->action_dim, m->image_size);
    for (int i = 0; i < k->fit + k->scored && rc == CGS_OK; i++) {
        rc = cgs_stretch_read(&s, k->data, &k->at[i], k->H + 1);
        if (rc == CGS_OK)
            rc = cgs_encoder_run(k->model.encoder, s.pixels, k->H + 1,
                                 k->z + (size_t)i * latents(k));
        if (rc == CGS_OK)
            cgs_stretch_standardise(&s, &k->model.scale, 0, k->H, k->plan + (size_t)i * values(k));
        if (rc == CGS_OK && !tell(k, "windows", i + 1, k->fit + k->scored))
            rc = cgs_fail(CGS_ESTOPPED, "stopped");
    }
    cgs_stretch_free(&s);
    return rc;
}

static cgs_status make_windows(desk *k) {
    size_t n = (size_t)(k->fit + k->scored), N = (size_t)k->scored;
    size_t rows = (size_t)k->H * (size_t)k->D;
    int episodes = cgs_dataset_source(k->data)->episodes, unused;
    uint8_t *side = calloc((size_t)episodes, 1);
    k->at = malloc(n * sizeof *k->at);
    k->z = malloc(n * latents(k) * sizeof *k->z);
    k->plan = malloc(n * values(k) * sizeof *k->plan);
    k->imagined = malloc(N * (2 * rows + values(k)) * sizeof *k->imagined);
    k->seen = k->imagined + N * rows;
    k->made = k->seen + N * rows;
    cgs_status rc = side && k->at && k->z && k->plan && k->imagined
                        ? divide(k, side)
                        : cgs_fail(CGS_ENOMEM, "no memory for %zu windows", n);
    if (rc == CGS_OK) rc = draw(k, side, 0, k->fit, &unused, k->at);
    if (rc == CGS_OK) rc = draw(k, side, 1, k->scored, &k->episodes, k->at + k->fit);
    if (rc == CGS_OK) rc = read_windows(k);
    free(side);
    return rc;
}

/* ---- what the model imagines -------------------------------------------------------- */

/* z (E, H, D): after each block of the plans (E, H, A) from the first frames of scored windows */
static cgs_status imagine(const desk *k, const float *plans, float *z) {
    cgs_rollout *r;
    cgs_rollout_config c = {
        .episodes = 1, .context = 1, .horizon = k->H, .samples = 1, .act = k->model.act};
    CGS_TRY(cgs_rollout_create_any(&r, k->model.model, &c));
    cgs_status rc = CGS_OK;
    for (int i = 0; i < k->scored && rc == CGS_OK; i++) {
        rc = cgs_rollout_set(r, 1, scored_z(k, i), NULL, NULL);
        if (rc == CGS_OK)
            rc = cgs_rollout_imagine(r, plans + (size_t)i * values(k), 1, 1,
                                     z + (size_t)i * (size_t)(k->H * k->D));
    }
    cgs_rollout_destroy(r);
    return rc;
}

static double apart(const float *a, const float *b, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
    return sum;
}

/* ---- predictions beside trivial ones -------------------------------------------------- */

/* mean squared errors, per value of a latent, `ahead` blocks after the first frame */
typedef struct errors {
    double model, copy, mean, linear;
} errors;

/* the change of the latent as a linear function of the actions up to there: (fit + scored, D) */
static cgs_status linear_changes(const desk *k, int ahead, double *out) {
    size_t n = (size_t)(k->fit + k->scored), D = (size_t)k->D, X = (size_t)ahead * (size_t)k->A;
    cgs_parts parts = {.fit = k->fit, .test = k->scored};
    double *x = malloc(n * (X + D) * sizeof *x), *y = x + n * X;
    if (!x) return cgs_fail(CGS_ENOMEM, "no memory for a regression of %zu windows", n);
    for (size_t i = 0; i < n; i++) {
        const float *z = k->z + i * latents(k), *a = k->plan + i * values(k);
        for (size_t c = 0; c < X; c++) x[i * X + c] = (double)a[c];
        for (size_t c = 0; c < D; c++) y[i * D + c] = (double)z[(size_t)ahead * D + c] - z[c];
    }
    cgs_status rc = cgs_ridge(&parts, x, (int)X, y, k->D, RIDGE, "latents by actions", out);
    free(x);
    return rc;
}

static void mean_latent(const desk *k, float *mean) {
    size_t rows = (size_t)k->fit * (size_t)(k->H + 1), D = (size_t)k->D;
    for (size_t c = 0; c < D; c++) {
        double sum = 0;
        for (size_t i = 0; i < rows; i++) sum += (double)k->z[i * D + c];
        mean[c] = (float)(sum / (double)rows);
    }
}

static cgs_status compare(const desk *k, int ahead, errors *e) {
    size_t D = (size_t)k->D;
    double *change = malloc((size_t)(k->fit + k->scored) * D * sizeof *change);
    float *guess = malloc(2 * D * sizeof *guess), *mean = guess + D;
    cgs_status rc = change && guess ? linear_changes(k, ahead, change)
                                    : cgs_fail(CGS_ENOMEM, "no memory for predictions");
    *e = (errors){0};
    if (rc == CGS_OK) mean_latent(k, mean);
    for (int i = 0; i < k->scored && rc == CGS_OK; i++) {
        const float *z = scored_z(k, i), *there = z + (size_t)ahead * D;
        const double *by = change + (size_t)(k->fit + i) * D;
        for (size_t c = 0; c < D; c++) guess[c] = (float)(z[c] + by[c]);
        e->model +=
            apart(k->imagined + ((size_t)i * (size_t)k->H + (size_t)ahead - 1) * D, there, k->D);
        e->copy += apart(z, there, k->D);
        e->mean += apart(mean, there, k->D);
        e->linear += apart(guess, there, k->D);
    }
    double all = (double)k->scored * k->D;
    e->model /= all, e->copy /= all, e->mean /= all, e->linear /= all;
    free(change);
    free(guess);
    return rc;
}

static cgs_status describe_predictions(const desk *k, cJSON *to) {
    cJSON *list = cgs_document_array(to, "predictions");
    for (int ahead = 1; ahead <= k->H; ahead++) {
        errors e;
        CGS_TRY(compare(k, ahead, &e));
        cJSON *at = cgs_document_object(list, NULL);
        cgs_document_number(at, "ahead", ahead);
        cgs_document_number(at, "model", e.model);
        cgs_document_number(at, "copy", e.copy);
        cgs_document_number(at, "mean", e.mean);
        cgs_document_number(at, "linear", e.linear);
    }
    return CGS_OK;
}

/* ---- plans ---------------------------------------------------------------------------- */

static cgs_status measured_tau(const desk *k, cgs_plan_config *p) {
    int E = k->scored < TOGETHER ? k->scored : TOGETHER;
    size_t D = (size_t)k->D;
    double curvature = 0;
    float *z = malloc(2 * (size_t)E * D * sizeof *z), *goal = z + (size_t)E * D;
    if (!z) return cgs_fail(CGS_ENOMEM, "no memory for %d goals", E);
    for (int i = 0; i < E; i++) {
        memcpy(z + (size_t)i * D, scored_z(k, i), D * sizeof *z);
        memcpy(goal + (size_t)i * D, scored_z(k, i) + (size_t)k->H * D, D * sizeof *z);
    }
    cgs_status rc = cgs_model_curvature_at(&curvature, &k->model, p, z, goal, E);
    free(z);
    return cgs_curvature_tau(p, rc, curvature, &k->model);
}

static cgs_status configure(desk *k, const char *planner, cgs_plan_config *p) {
    const cgs_recorded_options *o = k->o;
    const cgs_planner_kind *kind;
    *p = cgs_plan_defaults();
    CGS_TRY(cgs_planner_kind_find(&kind, planner));
    snprintf(p->kind.s, sizeof p->kind.s, "%s", planner);
    p->K = o->samples;
    p->iters = o->iters;
    p->H = k->H;
    p->A = k->A;
    p->frameskip = k->model.model->frameskip;
    p->elites = o->elites;
    p->gd_steps = o->gd_steps;
    p->seed = o->seed;
    cgs_section tuning = cgs_plan_tuning(p);
    for (int i = 0; i < o->setting_count; i++)
        CGS_TRY(cgs_config_assign(&tuning, 1, o->settings[i]));
    if (kind->reads & CGS_READS_TAU && o->tau == CGS_TAU_MEASURED)
        CGS_TRY(measured_tau(k, p));
    else
        CGS_TRY(cgs_choose_tau(p, o->tau == CGS_TAU_MEASURED ? 0 : o->tau, k->model.model, k->env));
    CGS_TRY(cgs_choose_gamma(p, &k->model));
    CGS_TRY(cgs_plan_check(p));
    if (!(kind->needs & CGS_NEEDS_PRIOR)) return CGS_OK;
    cgs_prior_kind prior = cgs_solver_prior_kind(p);
    cgs_prior_destroy(k->prior);
    k->prior = NULL;
    if (k->held_out)
        CGS_TRY(cgs_prior_without_held_out(&k->model, cgs_dataset_source(k->data), prior));
    return cgs_prior_load(&k->prior, k->model.dir, prior, k->model.weights, &k->device);
}

/* buffers of windows that are planned for together */
typedef struct batch {
    float *z, *goal, *start;    /* (TOGETHER, D), (TOGETHER, D), (TOGETHER, H, A) */
    uint64_t *id, *seed, *zero; /* (TOGETHER) */
} batch;

static cgs_status batch_make(batch *b, const desk *k) {
    size_t E = TOGETHER, D = (size_t)k->D;
    b->z = calloc(E * (2 * D + values(k)), sizeof *b->z);
    b->id = calloc(3 * E, sizeof *b->id);
    if (!b->z || !b->id) return cgs_fail(CGS_ENOMEM, "no memory for %zu plans", E);
    b->goal = b->z + E * D;
    b->start = b->goal + E * D;
    b->seed = b->id + E;
    b->zero = b->seed + E;
    return CGS_OK;
}

static cgs_status solve_some(desk *k, cgs_solver *s, batch *b, int first, int n) {
    size_t D = (size_t)k->D;
    for (int i = 0; i < n; i++) {
        memcpy(b->z + (size_t)i * D, scored_z(k, first + i), D * sizeof *b->z);
        memcpy(b->goal + (size_t)i * D, scored_z(k, first + i) + (size_t)k->H * D,
               D * sizeof *b->z);
        b->id[i] = (uint64_t)(first + i);
        b->seed[i] = k->o->seed;
    }
    CGS_TRY(cgs_solver_start(s, n, b->z, b->goal, b->start, k->H, b->start));
    cgs_solver_job job = {.E = n,
                          .context = 1,
                          .z = b->z,
                          .goal = b->goal,
                          .episode = b->id,
                          .seed = b->seed,
                          .solve = b->zero,
                          .start = b->start};
    cgs_plan_problem problem;
    cgs_plan_result result;
    CGS_TRY(cgs_solver_solve(s, &job, &problem, &result));
    memcpy(k->made + (size_t)first * values(k), result.plan,
           (size_t)n * values(k) * sizeof *k->made);
    return CGS_OK;
}

static cgs_status make_plans(desk *k, const cgs_plan_config *p) {
    cgs_solver s;
    batch b = {0};
    cgs_solver_config c = {.model = k->model.model,
                           .prior = k->prior,
                           .scale = k->model.scale,
                           .plan = *p,
                           .episodes = TOGETHER,
                           .act = k->model.act};
    cgs_status rc = cgs_solver_create(&s, &c);
    if (rc == CGS_OK) rc = cgs_solver_add_context(&s, 1);
    if (rc == CGS_OK) rc = batch_make(&b, k);
    for (int i = 0; i < k->scored && rc == CGS_OK; i += TOGETHER) {
        int n = k->scored - i < TOGETHER ? k->scored - i : TOGETHER;
        rc = solve_some(k, &s, &b, i, n);
        if (rc == CGS_OK && !tell(k, p->kind.s, i + n, k->scored))
            rc = cgs_fail(CGS_ESTOPPED, "stopped");
    }
    cgs_solver_destroy(&s);
    free(b.z);
    free(b.id);
    return rc;
}

/* share of the recorded values' square that the plans explain; the mean action explains none */
static double explained(const desk *k, int blocks) {
    double left = 0, all = 0;
    for (int i = 0; i < k->scored; i++) {
        const float *made = k->made + (size_t)i * values(k), *was = scored_plan(k, i);
        for (int c = 0; c < blocks * k->A; c++) {
            left += ((double)made[c] - was[c]) * ((double)made[c] - was[c]);
            all += (double)was[c] * was[c];
        }
    }
    return 1 - left / all;
}

/* the same of the sums of each channel over a plan */
static double explained_sums(const desk *k) {
    int channels = k->model.scale.dim, steps = k->H * k->A / channels;
    double left = 0, all = 0;
    for (int i = 0; i < k->scored; i++)
        for (int c = 0; c < channels; c++) {
            const float *made = k->made + (size_t)i * values(k), *was = scored_plan(k, i);
            double a = 0, b = 0;
            for (int t = 0; t < steps; t++) {
                a += (double)made[t * channels + c];
                b += (double)was[t * channels + c];
            }
            left += (a - b) * (a - b);
            all += b * b;
        }
    return 1 - left / all;
}

/* What the model imagines on the way and at the end, beside what was recorded; all per window, as
 * shares of the distance that standing still leaves. */
static cgs_status describe_path(const desk *k, cJSON *to) {
    int N = k->scored, D = k->D, H = k->H;
    size_t path = (size_t)(H * D);
    double *share = malloc(3 * (size_t)N * sizeof *share), way = 0, still = 0;
    if (!share) return cgs_fail(CGS_ENOMEM, "no memory for %d windows", N);
    int moved = 0;
    for (int i = 0; i < N; i++) {
        const float *z = scored_z(k, i), *goal = z + (size_t)H * (size_t)D;
        const float *seen = k->seen + (size_t)i * path, *known = k->imagined + (size_t)i * path;
        for (int h = 0; h < H; h++) {
            way += apart(seen + h * D, z + (h + 1) * D, D);
            still += apart(z, z + (h + 1) * D, D);
        }
        double left = apart(z, goal, D);
        if (!(left > 0)) continue;
        share[moved] = sqrt(apart(seen + (H - 1) * D, goal, D) / left);
        share[N + moved] = sqrt(apart(known + (H - 1) * D, goal, D) / left);
        moved++;
    }
    cgs_document_number(to, "path", still > 0 ? sqrt(way / still) : (double)NAN);
    cgs_status rc = CGS_OK;
    if (moved > 0) rc = cgs_document_mean(to, "end", share, moved);
    if (moved > 0 && rc == CGS_OK) rc = cgs_document_mean(to, "end_recorded", share + N, moved);
    free(share);
    return rc;
}

static cgs_status describe_errors(const desk *k, cJSON *to) {
    double *rms = malloc((size_t)k->scored * sizeof *rms);
    if (!rms) return cgs_fail(CGS_ENOMEM, "no memory for %d windows", k->scored);
    for (int i = 0; i < k->scored; i++)
        rms[i] = sqrt(apart(k->made + (size_t)i * values(k), scored_plan(k, i), (int)values(k)) /
                      (double)values(k));
    cgs_status rc = cgs_document_mean(to, "action_error", rms, k->scored);
    free(rms);
    return rc;
}

static cgs_status plan_with(desk *k, const char *planner, cJSON *list) {
    cgs_plan_config p;
    const cgs_planner_setting *s;
    CGS_TRY(configure(k, planner, &p));
    CGS_TRY(make_plans(k, &p));
    CGS_TRY(imagine(k, k->made, k->seen));
    cJSON *at = cgs_document_object(list, NULL);
    cgs_document_text_field(at, "planner", planner);
    for (int i = 0; (s = cgs_planner_setting_at(i)); i++)
        if (cgs_planner_shows(cgs_planner_kind_of(planner), s, &p))
            cgs_document_number(at, s->key, s->value(&p));
    cgs_document_number(at, "actions", explained(k, k->H));
    cgs_document_number(at, "first_block", explained(k, 1));
    cgs_document_number(at, "sums", explained_sums(k));
    CGS_TRY(describe_errors(k, at));
    return describe_path(k, at);
}

/* ---- all of it -------------------------------------------------------------------------- */

static cgs_status run_model(desk *k, const char *dir, cJSON *list) {
    const cgs_recorded_options *o = k->o;
    const cgs_model *m = k->model.model;
    k->H = o->horizon;
    k->A = cgs_model_action_block(m);
    k->D = m->width;
    k->fit = FIT;
    k->scored = o->windows;
    CGS_TRY(make_windows(k));
    CGS_TRY(imagine(k, k->plan + (size_t)k->fit * values(k), k->imagined));
    cJSON *at = cgs_document_object(list, NULL);
    cgs_document_text_field(at, "model", dir);
    cgs_document_text_field(at, "method", k->model.card.method);
    cJSON_AddBoolToObject(at, "held_out", k->held_out);
    cgs_document_number(at, "episodes", k->episodes);
    cgs_document_number(at, "frameskip", m->frameskip);
    cJSON *starts = cgs_document_array(at, "starts");
    for (int w = k->fit; w < k->fit + k->scored; w++) {
        const double start[2] = {k->at[w].episode, k->at[w].step};
        cgs_document_numbers(starts, NULL, start, 2);
    }
    CGS_TRY(describe_predictions(k, at));
    cJSON *plans = cgs_document_array(at, "plans");
    for (int p = 0; p < o->planner_count; p++) CGS_TRY(plan_with(k, o->planners[p], plans));
    return CGS_OK;
}

static cgs_status check(const cgs_recorded_options *o) {
    if (o->model_count < 1) return cgs_fail(CGS_EARG, "at least one model is needed");
    if (o->windows < 2) return cgs_fail(CGS_EARG, "%d windows, at least 2 are needed", o->windows);
    if (o->horizon < 1)
        return cgs_fail(CGS_EARG, "horizon %d: at least 1 action block", o->horizon);
    return CGS_OK;
}

static cgs_status run_all(desk *k, cJSON *doc) {
    const cgs_recorded_options *o = k->o;
    cJSON *list = cgs_document_array(doc, "models");
    for (int i = 0; i < o->model_count; i++) {
        cgs_status rc = cgs_loaded_model_open(&k->model, o->models[i], &k->device, o->precision,
                                              CGS_FRAMES_BY_DEVICE, k->data);
        if (rc == CGS_OK) {
            rc = run_model(k, o->models[i], list);
            close_model(k);
        }
        CGS_TRY(rc);
    }
    return CGS_OK;
}

cgs_status cgs_recorded_run(cJSON **doc, const cgs_recorded_options *o, const char *command) {
    desk *k = calloc(1, sizeof *k); /* a loaded model is too large for a stack */
    *doc = NULL;
    if (!k) return cgs_fail(CGS_ENOMEM, "no memory for %d models", o->model_count);
    k->o = o;
    cgs_status rc = check(o);
    if (rc == CGS_OK) rc = cgs_device_open(&k->device, o->device, o->threads);
    if (rc == CGS_OK) {
        rc = cgs_dataset_open(&k->data, o->data);
        if (rc == CGS_OK) {
            const char *env = cgs_dataset_attribute(k->data, "env");
            k->env = env ? env : "";
            rc = cgs_document_create(doc, "cgs-recorded", command, k->env);
        }
        if (rc == CGS_OK) {
            cgs_document_number(*doc, "windows", o->windows);
            cgs_document_number(*doc, "horizon", o->horizon);
            rc = run_all(k, *doc);
        }
        cgs_dataset_close(k->data);
        cgs_device_close(&k->device);
    }
    free(k);
    return rc;
}

/* geometry.c - windows and summaries of geometry.json; see geometry.h. */
#include "analysis/geometry.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/document.h"
#include "analysis/paths.h"
#include "analysis/response.h"

enum { ANCHORS = 128, CHANNELS = 2, XYZ = 3 };

/* Cube is shown in three dimensions, by its three position commands */
static bool is_spatial(const cgs_gallery *g) { return !strcmp(g->world, "cube"); }

/* steps of a stretch as unit directions: actions a (n, ka) and latents dz (n, D) */
static void directions(const cgs_gallery *g, int model, const cgs_stretch *s, const float *z, int n,
                       int ka, double *a, double *dz, float *scratch) {
    const cgs_loaded_model *m = &g->loaded[model];
    int D = m->lewm->config.width, per = s->frameskip * s->dim, kept = ka / s->frameskip;
    cgs_stretch_standardise(s, &m->scale, 0, n, scratch);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < s->frameskip; k++)
            for (int c = 0; c < kept; c++)
                a[i * ka + k * kept + c] = scratch[i * per + k * s->dim + c];
        for (int j = 0; j < D; j++) dz[i * D + j] = (double)z[(i + 1) * D + j] - z[i * D + j];
    }
    cgs_unit_rows(a, n, ka);
    cgs_unit_rows(dz, n, D);
}

static void add_path(cJSON *to, const char *name, const double *path, int points, int d) {
    cJSON *list = cgs_document_array(to, name);
    for (int i = 0; i < points; i++) cgs_document_numbers(list, NULL, path + i * d, d);
}

/* the response image at a plan; with `exact` J (D, n) becomes the Jacobian */
static cgs_status response_at(const cgs_gallery *g, int model, const float *z, const float *plan,
                              const double *U, double *J, double *heat) {
    cgs_terminal *t = g->terminal[model];
    if (!g->o->exact) return cgs_response_heat(t, z, plan, U, heat);
    CGS_TRY(cgs_terminal_jacobian(t, z, plan, J));
    return cgs_response_heat_of(J, cgs_terminal_width(t), cgs_terminal_plan_size(t), U, heat);
}

/* ---- windows ------------------------------------------------------------------------ */

/* where the windows are: given, drawn, or rollouts */
static cgs_status place_windows(cgs_gallery *g, cgs_window *w, int *count) {
    const cgs_geometry_options *o = g->o;
    const cgs_source *s = cgs_dataset_source(g->data);
    int rows = (o->frames - 1) * g->loaded[0].lewm->config.frameskip, longest = 0;
    *count = o->window_count ? o->window_count : o->windows;
    if (*count > CGS_MAX_WINDOWS || *count < 0)
        return cgs_fail(CGS_EARG, "%d windows, at most %d are drawn", *count, CGS_MAX_WINDOWS);
    if (o->frames < o->horizon + 1)
        return cgs_fail(CGS_EARG, "windows of %d frames are shorter than a plan of %d blocks",
                        o->frames, o->horizon);
    for (int e = 0; e < s->episodes; e++)
        if (s->ep_len[e] > longest) longest = s->ep_len[e];
    if (o->window_count) {
        memcpy(w, o->window, (size_t)*count * sizeof *w);
    } else if (longest <= rows && !strcmp(g->world, "tworooms")) {
        for (int i = 0; i < *count; i++) w[i] = (cgs_window){{-1, i}, 1};
    } else {
        cgs_anchor at[CGS_MAX_WINDOWS];
        if (*count > 0)
            CGS_TRY(cgs_anchors_draw(at, *count, g->data, rows, CGS_ANCHOR_ANY, false, o->seed));
        for (int i = 0; i < *count; i++) w[i] = (cgs_window){at[i], 1};
    }
    for (int i = 0; i < *count; i++)
        if (w[i].frame < 1 || w[i].frame - 1 + o->horizon > o->frames - 1)
            return cgs_fail(CGS_EARG, "frame %d of a window of %d is no start of %d blocks",
                            w[i].frame, o->frames, o->horizon);
    return CGS_OK;
}

/* memory of one window for one model */
typedef struct easel {
    float *z, *block;        /* (frames, D), (frames - 1, A) */
    double *a, *dz;          /* (frames - 1, ka), (frames - 1, D) */
    double *action, *latent; /* (frames, d) */
    double *U;               /* (H * A, 2) */
    double *J;               /* (D, H * A) */
    double heat[CGS_HEAT];
} easel;

static cgs_status easel_make(easel *e, const cgs_gallery *g, int D) {
    const cgs_lewm_config *c = &g->loaded[0].lewm->config;
    size_t F = (size_t)g->o->frames, A = (size_t)cgs_lewm_action_block(c), d = (size_t)D;
    size_t floats = F * (d + A), doubles = F * (A + d + 2 * XYZ);
    size_t plan = (size_t)g->o->horizon * A, moves = plan * CHANNELS;
    e->z = malloc(floats * sizeof *e->z);
    e->a = malloc((doubles + moves + d * plan) * sizeof *e->a);
    if (!e->z || !e->a) return cgs_fail(CGS_ENOMEM, "geometry: no memory for a window");
    e->block = e->z + F * d;
    e->dz = e->a + F * A;
    e->action = e->dz + F * d;
    e->latent = e->action + F * XYZ;
    e->U = e->latent + F * XYZ;
    e->J = e->U + moves;
    cgs_constant_moves(c, g->o->horizon, CHANNELS, e->U);
    return CGS_OK;
}

static void easel_free(easel *e) {
    free(e->z);
    free(e->a);
}

static cgs_status draw_model(cgs_gallery *g, int i, const cgs_window *w, const cgs_stretch *s,
                             cJSON *window, cJSON *models) {
    const cgs_geometry_options *o = g->o;
    cgs_loaded_model *m = &g->loaded[i];
    int D = m->lewm->config.width, d = is_spatial(g) ? XYZ : CHANNELS, n = o->frames - 1;
    int ka = s->frameskip * (is_spatial(g) ? XYZ : s->dim);
    easel e = {0};
    cgs_status rc = easel_make(&e, g, D);
    if (rc == CGS_OK) rc = cgs_encoder_run(m->encoder, s->pixels, o->frames, e.z);
    if (rc == CGS_OK) {
        directions(g, i, s, e.z, n, ka, e.a, e.dz, e.block);
        rc = cgs_align_paths(e.a, ka, e.dz, D, n, d, is_spatial(g), e.action, e.latent);
    }
    if (rc == CGS_OK) {
        cgs_stretch_standardise(s, &m->scale, w->frame - 1, o->horizon, e.block);
        rc = response_at(g, i, e.z + (w->frame - 1) * D, e.block, e.U, e.J, e.heat);
    }
    if (rc == CGS_OK) {
        if (i == 0) add_path(window, "actions", e.action, n + 1, d);
        cJSON *at = cgs_document_object(models, NULL);
        cgs_document_text_field(at, "name", g->name[i]);
        cgs_document_text_field(at, "method", g->method[i]);
        add_path(at, "path", e.latent, n + 1, d);
        cgs_document_numbers(at, "heat", e.heat, CGS_HEAT);
    }
    easel_free(&e);
    return rc;
}

static cgs_status draw_windows(cgs_gallery *g, cJSON *doc) {
    cgs_window w[CGS_MAX_WINDOWS];
    cgs_stretch s = {0};
    int count;
    CGS_TRY(place_windows(g, w, &count));
    cJSON *list = cgs_document_array(doc, "windows");
    cgs_status rc = cgs_gallery_stretch(g, &s, g->o->frames);
    for (int k = 0; k < count && rc == CGS_OK; k++) {
        bool rollout = w[k].at.episode < 0;
        rc = rollout ? cgs_zigzag(&s, g->env, g->o->seed, w[k].at.step)
                     : cgs_stretch_read(&s, g->data, &w[k].at, g->o->frames);
        if (rc != CGS_OK) break;
        cJSON *window = cgs_document_object(list, NULL);
        cgs_document_number(window, "episode", w[k].at.episode);
        cgs_document_number(window, "step", w[k].at.step);
        cgs_document_number(window, "frame", w[k].frame);
        cgs_document_text_field(window, "source", rollout ? "zig-zag rollout" : "recorded");
        cgs_document_number(window, "dims", is_spatial(g) ? XYZ : CHANNELS);
        cJSON *models = cgs_document_array(window, "models");
        for (int i = 0; i < g->models && rc == CGS_OK; i++)
            rc = draw_model(g, i, &w[k], &s, window, models);
        if (rc == CGS_OK && !cgs_gallery_tell(g, "windows", k + 1, count))
            rc = cgs_fail(CGS_ESTOPPED, "stopped");
    }
    cgs_stretch_free(&s);
    return rc;
}

/* ---- summaries ---------------------------------------------------------------------- */

/* measurements of one model by anchor */
typedef struct survey {
    int anchors, n, A, D;                      /* n blocks of A numbers in each plan */
    double *error, *isotropy, *pairs, *cosine; /* (anchors) */
    double *a, *dz;  /* (anchors, n, A), (anchors, n, D) unit directions */
    double *W;       /* (D, A) */
    double *J;       /* (D, n * A) */
    double *U;       /* (n * A, 2) */
    float *z, *plan; /* (n + 1, D), (n, A) */
} survey;

static void survey_free(survey *s) {
    free(s->error);
    free(s->z);
}

static cgs_status survey_make(survey *s, const cgs_gallery *g, int model) {
    const cgs_lewm_config *c = &g->loaded[model].lewm->config;
    *s = (survey){.anchors = g->o->anchors ? g->o->anchors : ANCHORS,
                  .n = g->o->horizon,
                  .A = cgs_lewm_action_block(c),
                  .D = c->width};
    size_t N = (size_t)s->anchors, n = (size_t)s->n, A = (size_t)s->A, D = (size_t)s->D;
    s->error =
        malloc((4 * N + N * n * (A + D) + D * A + D * n * A + n * A * CHANNELS) * sizeof *s->error);
    s->z = malloc(((n + 1) * D + n * A) * sizeof *s->z);
    if (!s->error || !s->z) return cgs_fail(CGS_ENOMEM, "geometry: no memory for %zu anchors", N);
    s->isotropy = s->error + N;
    s->pairs = s->isotropy + N;
    s->cosine = s->pairs + N;
    s->a = s->cosine + N;
    s->dz = s->a + N * n * A;
    s->W = s->dz + N * n * D;
    s->J = s->W + D * A;
    s->U = s->J + D * n * A;
    s->plan = s->z + (n + 1) * D;
    cgs_constant_moves(c, s->n, CHANNELS, s->U);
    return CGS_OK;
}

/* a (n, ka) and z (n, kz) are unit steps */
static double pair_error(const double *a, int ka, const double *z, int kz, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) {
            double apart = 0;
            for (int c = 0; c < ka; c++) apart += a[i * ka + c] * a[j * ka + c];
            for (int c = 0; c < kz; c++) apart -= z[i * kz + c] * z[j * kz + c];
            sum += apart * apart;
        }
    return n > 1 ? sqrt(2 * sum / (n * (n - 1))) : 0;
}

static cgs_status survey_anchor(survey *v, cgs_gallery *g, int model, const cgs_stretch *s, int k) {
    cgs_loaded_model *m = &g->loaded[model];
    double heat[CGS_HEAT], ideal[CGS_HEAT], M[CHANNELS * CHANNELS], lambda[CHANNELS];
    CGS_TRY(cgs_encoder_run(m->encoder, s->pixels, v->n + 1, v->z));
    double *a = v->a + (size_t)(k * v->n) * (size_t)v->A;
    double *dz = v->dz + (size_t)(k * v->n) * (size_t)v->D;
    directions(g, model, s, v->z, v->n, v->A, a, dz, v->plan);
    v->pairs[k] = pair_error(a, v->A, dz, v->D, v->n);
    cgs_stretch_standardise(s, &m->scale, 0, v->n, v->plan);
    if (!g->o->exact) CGS_TRY(cgs_terminal_jacobian(g->terminal[model], v->z, v->plan, v->J));
    CGS_TRY(response_at(g, model, v->z, v->plan, v->U, v->J, heat));
    cgs_response_ideal(ideal);
    v->error[k] = cgs_response_error(heat, ideal);
    CGS_TRY(cgs_response_gram(v->J, v->D, v->n * v->A, v->U, CHANNELS, M));
    CGS_TRY(cgs_symmetric_eigen(M, CHANNELS, lambda, NULL));
    if (!(lambda[1] > 0))
        return cgs_fail(CGS_ENUMERIC,
                        "%s: the predicted end does not respond to the first two action "
                        "channels",
                        m->dir);
    v->isotropy[k] = fmax(0, lambda[0]) / lambda[1];
    return CGS_OK;
}

/* Each half of the anchors is scored with the map fitted to the other half. */
static cgs_status survey_directions(survey *v) {
    int half = v->anchors / 2;
    for (int side = 0; side < 2; side++) {
        int fit = side ? 0 : half, fits = side ? half : v->anchors - half;
        int first = side ? half : 0, last = side ? v->anchors : half;
        size_t at = (size_t)(fit * v->n);
        CGS_TRY(cgs_procrustes(v->dz + at * (size_t)v->D, v->D, v->a + at * (size_t)v->A, v->A,
                               fits * v->n, v->W));
        for (int k = first; k < last; k++) {
            v->cosine[k] = 0;
            for (int b = 0; b < v->n; b++) {
                size_t row = (size_t)(k * v->n + b);
                const double *a = v->a + row * (size_t)v->A, *dz = v->dz + row * (size_t)v->D;
                for (int j = 0; j < v->D; j++)
                    for (int c = 0; c < v->A; c++)
                        v->cosine[k] += dz[j] * v->W[j * v->A + c] * a[c] / v->n;
            }
        }
    }
    return CGS_OK;
}

static cgs_status survey_write(const survey *v, const cgs_gallery *g, int model, cJSON *list) {
    cJSON *o = cgs_document_object(list, NULL);
    cgs_document_text_field(o, "name", g->name[model]);
    cgs_document_text_field(o, "method", g->method[model]);
    cgs_document_number(o, "anchors", v->anchors);
    CGS_TRY(cgs_document_mean(o, "gram_error", v->error, v->anchors));
    CGS_TRY(cgs_document_mean(o, "isotropy", v->isotropy, v->anchors));
    CGS_TRY(cgs_document_mean(o, "pair_error", v->pairs, v->anchors));
    return cgs_document_mean(o, "direction_cosine", v->cosine, v->anchors);
}

static cgs_status survey_model(cgs_gallery *g, int model, const cgs_anchor *at, cgs_stretch *s,
                               cJSON *list) {
    survey v = {0};
    cgs_status rc = survey_make(&v, g, model);
    for (int k = 0; k < v.anchors && rc == CGS_OK; k++) {
        rc = cgs_stretch_read(s, g->data, &at[k], s->frames);
        if (rc == CGS_OK) rc = survey_anchor(&v, g, model, s, k);
        if (rc == CGS_OK &&
            !cgs_gallery_tell(g, "anchors", model * v.anchors + k + 1, g->models * v.anchors))
            rc = cgs_fail(CGS_ESTOPPED, "stopped");
    }
    if (rc == CGS_OK) rc = survey_directions(&v);
    if (rc == CGS_OK) rc = survey_write(&v, g, model, list);
    survey_free(&v);
    return rc;
}

static cgs_status summarise(cgs_gallery *g, cJSON *doc) {
    const cgs_geometry_options *o = g->o;
    int anchors = o->anchors ? o->anchors : ANCHORS;
    int rows = o->horizon * g->loaded[0].lewm->config.frameskip;
    if (anchors < 4) return cgs_fail(CGS_EARG, "%d anchors, at least 4 are needed", anchors);
    cgs_anchor *at = malloc((size_t)anchors * sizeof *at);
    cgs_stretch s = {0};
    cgs_status rc = at ? cgs_gallery_stretch(g, &s, o->horizon + 1)
                       : cgs_fail(CGS_ENOMEM, "geometry: no memory for %d anchors", anchors);
    if (rc == CGS_OK)
        rc = cgs_anchors_draw(at, anchors, g->data, rows, CGS_ANCHOR_ANY, false, o->seed);
    cJSON *list = cgs_document_array(doc, "summary");
    for (int i = 0; i < g->models && rc == CGS_OK; i++) rc = survey_model(g, i, at, &s, list);
    cgs_stretch_free(&s);
    free(at);
    return rc;
}

cgs_status cgs_geometry_run(cJSON **doc, const cgs_geometry_options *o, const char *command) {
    cgs_gallery g;
    double ideal[CGS_HEAT];
    *doc = NULL;
    cgs_status rc = cgs_gallery_open(&g, o);
    if (rc == CGS_OK && g.loaded[0].lewm->config.action_dim < CHANNELS)
        rc = cgs_fail(CGS_EARG,
                      "%s: one action channel, and responses are drawn in the plane of two; "
                      "--mechanism and --curvature take one",
                      cgs_dataset_source(g.data)->path);
    if (rc == CGS_OK) rc = cgs_document_create(doc, "cgs-geometry", command, g.world);
    if (rc == CGS_OK) {
        cgs_document_number(*doc, "horizon", o->horizon);
        cgs_document_number(*doc, "frames", o->frames);
        cgs_document_number(*doc, "step", o->exact ? 0 : CGS_RESPONSE_STEP);
        rc = draw_windows(&g, *doc);
    }
    if (rc == CGS_OK) {
        cgs_response_ideal(ideal);
        cgs_document_numbers(*doc, "ideal", ideal, CGS_HEAT);
        rc = summarise(&g, *doc);
    }
    cgs_gallery_close(&g);
    return rc;
}

/* mechanism_run.c - mechanism.json: the response spectrum of models at recorded plans, and what
 * it means for one update of MPPI; see mechanism.h and geometry.h. */
#include <stdlib.h>
#include <string.h>

#include "analysis/document.h"
#include "analysis/geometry.h"

enum { ANCHORS = 32, MOST = 3, RESAMPLES = 2000 };

typedef struct figure {
    int anchors, q;
    double *lambda_min, *q_inf; /* (anchors) */
    double *p;                  /* (CGS_BUDGETS, anchors) */
    double *J, *U;              /* (D, n), (n, q) */
    float *z, *plan;            /* (D), (n) */
} figure;

static void figure_free(figure *f) {
    free(f->lambda_min);
    free(f->z);
}

static cgs_status figure_make(figure *f, const cgs_gallery *g, int model, int anchors, int q) {
    const cgs_lewm_config *c = &g->loaded[model].lewm->config;
    size_t N = (size_t)anchors, D = (size_t)c->width;
    size_t n = (size_t)cgs_terminal_plan_size(g->terminal[model]);
    *f = (figure){.anchors = anchors, .q = q};
    f->lambda_min = malloc((N * (2 + CGS_BUDGETS) + D * n + n * (size_t)q) * sizeof(double));
    f->z = malloc((D + n) * sizeof *f->z);
    if (!f->lambda_min || !f->z)
        return cgs_fail(CGS_ENOMEM, "mechanism: no memory for %d anchors", anchors);
    f->q_inf = f->lambda_min + N;
    f->p = f->q_inf + N;
    f->J = f->p + N * CGS_BUDGETS;
    f->U = f->J + D * n;
    f->plan = f->z + D;
    cgs_constant_moves(c, g->o->horizon, q, f->U);
    return CGS_OK;
}

static cgs_status measure(figure *f, cgs_gallery *g, int model, const cgs_stretch *s, int k) {
    cgs_loaded_model *m = &g->loaded[model];
    cgs_terminal *t = g->terminal[model];
    double G[MOST * MOST], lambda[MOST], p[CGS_BUDGETS];
    CGS_TRY(cgs_encoder_run(m->encoder, s->pixels, 1, f->z));
    cgs_stretch_standardise(s, &m->scale, 0, g->o->horizon, f->plan);
    CGS_TRY(cgs_terminal_jacobian(t, f->z, f->plan, f->J));
    CGS_TRY(
        cgs_response_gram(f->J, cgs_terminal_width(t), cgs_terminal_plan_size(t), f->U, f->q, G));
    CGS_TRY(cgs_normalised_spectrum(G, f->q, lambda));
    f->lambda_min[k] = lambda[f->q - 1];
    f->q_inf[k] = cgs_contraction_limit(lambda, f->q);
    cgs_progress_probability(lambda, f->q, g->o->seed, (uint64_t)k, p);
    for (int b = 0; b < CGS_BUDGETS; b++) f->p[b * f->anchors + k] = p[b];
    return CGS_OK;
}

static cgs_status write_model(const figure *f, const cgs_gallery *g, int model, cJSON *list) {
    double mean[CGS_BUDGETS], low[CGS_BUDGETS], high[CGS_BUDGETS];
    for (int b = 0; b < CGS_BUDGETS; b++) {
        cgs_interval i;
        const double *p = f->p + b * f->anchors;
        CGS_TRY(cgs_bootstrap_mean(p, f->anchors, RESAMPLES, 0, &i));
        mean[b] = cgs_mean(p, f->anchors);
        low[b] = i.low;
        high[b] = i.high;
    }
    cJSON *o = cgs_document_object(list, NULL);
    cgs_document_text_field(o, "name", g->name[model]);
    cgs_document_text_field(o, "method", g->method[model]);
    cgs_document_numbers(o, "lambda_min", f->lambda_min, f->anchors);
    cgs_document_numbers(o, "q_inf", f->q_inf, f->anchors);
    cgs_document_number(o, "q_inf_median", cgs_median(f->q_inf, f->anchors)); /* sorts */
    cgs_document_numbers(o, "p", mean, CGS_BUDGETS);
    cgs_document_numbers(o, "lo", low, CGS_BUDGETS);
    cgs_document_numbers(o, "hi", high, CGS_BUDGETS);
    return CGS_OK;
}

static cgs_status measure_model(cgs_gallery *g, int model, const cgs_anchor *at, int anchors, int q,
                                cgs_stretch *s, cJSON *list) {
    figure f = {0};
    cgs_status rc = figure_make(&f, g, model, anchors, q);
    for (int k = 0; k < anchors && rc == CGS_OK; k++) {
        rc = cgs_stretch_read(s, g->data, &at[k], 1);
        if (rc == CGS_OK) rc = measure(&f, g, model, s, k);
        if (rc == CGS_OK &&
            !cgs_gallery_tell(g, "mechanism", model * anchors + k + 1, g->models * anchors))
            rc = cgs_fail(CGS_ESTOPPED, "stopped");
    }
    if (rc == CGS_OK) rc = write_model(&f, g, model, list);
    figure_free(&f);
    return rc;
}

/* the settings, and the published numbers where they are of this environment */
static void describe(cJSON *doc, const cgs_gallery *g, int anchors, int q, bool grasp) {
    cgs_document_number(doc, "anchors", anchors);
    cgs_document_text_field(doc, "anchor_rule",
                            grasp ? "the gripper is commanded to close in every action of the plan"
                                  : "any recorded moment");
    cgs_document_number(doc, "directions", q);
    cgs_document_number(doc, "horizon", g->o->horizon);
    cgs_document_number(doc, "batches", CGS_BATCHES);
    cgs_document_number(doc, "tau", CGS_MECHANISM_TAU);
    cJSON *samples = cgs_document_array(doc, "samples");
    for (int b = 0; b < CGS_BUDGETS; b++) cgs_document_number(samples, NULL, cgs_budgets[b]);
    cJSON *published = cgs_document_array(doc, "published");
    for (int i = 0; grasp && i < CGS_PUBLISHED_MECHANISMS; i++) {
        cJSON *o = cgs_document_object(published, NULL);
        cgs_document_text_field(o, "name", cgs_published_mechanisms[i].name);
        cgs_document_text_field(o, "method", cgs_published_mechanisms[i].method);
        cgs_document_number(o, "q_inf_median", cgs_published_mechanisms[i].q_inf_median);
        cgs_document_number(o, "p32", cgs_published_mechanisms[i].p32);
    }
}

static cgs_status run(cgs_gallery *g, cJSON **doc, const char *command) {
    const cgs_geometry_options *o = g->o;
    const cgs_lewm_config *c = &g->loaded[0].lewm->config;
    bool grasp = !strcmp(g->world, "cube");
    int anchors = o->anchors ? o->anchors : ANCHORS,
        q = c->action_dim < MOST ? c->action_dim : MOST;
    if (anchors < 1) return cgs_fail(CGS_EARG, "%d anchors", anchors);
    cgs_anchor *at = malloc((size_t)anchors * sizeof *at);
    cgs_stretch s = {0};
    cgs_status rc = at ? cgs_gallery_stretch(g, &s, o->horizon + 1)
                       : cgs_fail(CGS_ENOMEM, "mechanism: no memory for %d anchors", anchors);
    if (rc == CGS_OK)
        rc = cgs_anchors_draw(at, anchors, g->data, o->horizon * c->frameskip,
                              grasp ? CGS_ANCHOR_GRASP : CGS_ANCHOR_ANY, true, o->seed);
    if (rc == CGS_OK) rc = cgs_document_create(doc, "cgs-mechanism", command, g->world);
    if (rc == CGS_OK) {
        describe(*doc, g, anchors, q, grasp);
        cJSON *list = cgs_document_array(*doc, "models");
        for (int i = 0; i < g->models && rc == CGS_OK; i++)
            rc = measure_model(g, i, at, anchors, q, &s, list);
    }
    cgs_stretch_free(&s);
    free(at);
    return rc;
}

cgs_status cgs_mechanism_run(cJSON **doc, const cgs_geometry_options *o, const char *command) {
    cgs_gallery g;
    *doc = NULL;
    cgs_status rc = cgs_gallery_open(&g, o);
    if (rc == CGS_OK) rc = run(&g, doc, command);
    cgs_gallery_close(&g);
    return rc;
}

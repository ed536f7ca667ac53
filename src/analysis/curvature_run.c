/* curvature_run.c - curvature.json: what --tau auto would choose for models, beside the temperature
 * that is known for their environment; see geometry.h. */
#include "analysis/document.h"
#include "analysis/geometry.h"
#include "eval/curvature.h"
#include "eval/temperature.h"
#include "plan/curvature.h"

static cgs_status measure(cgs_gallery *g, int model, cJSON *list) {
    cgs_loaded_model *s = &g->loaded[model];
    cgs_plan_config c = cgs_plan_defaults();
    double curvature, known = (double)cgs_model_tau(s->model, g->world);
    c.H = g->o->horizon;
    CGS_TRY(cgs_model_curvature(&curvature, s, g->data, g->env, &c));
    cJSON *o = cgs_document_object(list, NULL);
    cgs_document_text_field(o, "name", g->name[model]);
    cgs_document_text_field(o, "method", g->method[model]);
    cgs_document_number(o, "curvature", curvature);
    cgs_document_number(o, "tau", cgs_plan_curvature_tau(&c, curvature));
    if (!(known > 0)) return CGS_OK;
    cgs_document_number(o, "tau_known", known);
    cgs_document_number(o, "s_known", cgs_plan_strength(&c, curvature, known));
    return CGS_OK;
}

static cgs_status run(cgs_gallery *g, cJSON **doc, const char *command) {
    CGS_TRY(cgs_document_create(doc, "cgs-curvature", command, g->world));
    cgs_document_number(*doc, "horizon", g->o->horizon);
    cgs_document_number(*doc, "iterations", cgs_plan_defaults().iters);
    cJSON *list = cgs_document_array(*doc, "models");
    for (int i = 0; i < g->models; i++) {
        CGS_TRY(measure(g, i, list));
        if (!cgs_gallery_tell(g, "curvature", i + 1, g->models))
            return cgs_fail(CGS_ESTOPPED, "stopped");
    }
    return CGS_OK;
}

cgs_status cgs_curvature_run(cJSON **doc, const cgs_geometry_options *o, const char *command) {
    cgs_gallery g;
    *doc = NULL;
    cgs_status rc = cgs_gallery_open(&g, o);
    if (rc == CGS_OK) rc = run(&g, doc, command);
    cgs_gallery_close(&g);
    return rc;
}

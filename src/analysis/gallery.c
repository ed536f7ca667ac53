/* gallery.c - the models, the data and the device of a geometry experiment; see geometry.h. */
#include <string.h>

#include "analysis/geometry.h"
#include "analysis/response.h"

cgs_geometry_options cgs_geometry_defaults(void) {
    return (cgs_geometry_options){
        .windows = 2, .frames = 30, .horizon = 5, .device = "auto", .precision = "f32"};
}

static cgs_status open_all(cgs_gallery *g) {
    const cgs_geometry_options *o = g->o;
    if (o->model_count < 1 || o->model_count > CGS_ANALYSIS_MODELS)
        return cgs_fail(CGS_EARG, "%d models; 1 to %d can be compared", o->model_count,
                        CGS_ANALYSIS_MODELS);
    CGS_TRY(cgs_device_open(&g->device, o->device, o->threads));
    CGS_TRY(cgs_dataset_open(&g->data, o->data));
    CGS_TRY(cgs_dataset_env_if_any(g->data, o->env, &g->env));
    g->world = g->env ? g->env->id : "";
    for (int i = 0; i < o->model_count; i++) {
        cgs_loaded_model *s = &g->loaded[i];
        CGS_TRY(cgs_loaded_model_open(s, o->models[i], &g->device, o->precision,
                                      CGS_FRAMES_BY_DEVICE, g->data));
        g->models = i + 1;
        CGS_TRY(cgs_loaded_model_fits(s, g->env, cgs_dataset_source(g->data)));
        const cgs_lewm_config *c = &s->lewm->config, *first = &g->loaded[0].lewm->config;
        if (c->frameskip != first->frameskip || c->image_size != first->image_size)
            return cgs_fail(CGS_EARG,
                            "%s: frameskip %d and %d pixels, %s has %d and %d; they cannot be "
                            "compared",
                            s->dir, c->frameskip, c->image_size, o->models[0], first->frameskip,
                            first->image_size);
        memcpy(g->method[i], s->card.method, sizeof s->card.method);
        CGS_TRY(
            cgs_terminal_create(&g->terminal[i], s->lewm, s->act, o->horizon, CGS_DIRECTIONS + 1));
    }
    cgs_model_names(g->models, o->models, g->method, g->name);
    return CGS_OK;
}

cgs_status cgs_gallery_open(cgs_gallery *g, const cgs_geometry_options *o) {
    memset(g, 0, sizeof *g);
    g->o = o;
    return open_all(g);
}

void cgs_gallery_close(cgs_gallery *g) {
    for (int i = 0; i < g->models; i++) {
        cgs_terminal_destroy(g->terminal[i]);
        cgs_loaded_model_close(&g->loaded[i]);
    }
    cgs_dataset_close(g->data);
    cgs_device_close(&g->device);
    memset(g, 0, sizeof *g);
}

bool cgs_gallery_tell(cgs_gallery *g, const char *what, double done, double total) {
    return !g->o->progress || g->o->progress(g->o->user, what, done, total);
}

cgs_status cgs_gallery_stretch(const cgs_gallery *g, cgs_stretch *s, int frames) {
    const cgs_lewm_config *c = &g->loaded[0].lewm->config;
    return cgs_stretch_create(s, frames, c->frameskip, c->action_dim, c->image_size);
}

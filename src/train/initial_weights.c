/* initial_weights.c - see initial_weights.h; files are untrusted. */
#include "train/initial_weights.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/file.h"
#include "core/log.h"
#include "model/dinowm_store.h"
#include "model/params_file.h"
#include "model/tensor_names.h"
#include "train/method.h"

enum { NAMED = 8 /* tensors that are named one by one */ };

static bool is_dir(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

void cgs_initial_name(const char *path, char *out, size_t size) {
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/') end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/') begin--;
    snprintf(out, size, "%.*s", (int)(end - begin), path + begin);
}

/* ---- sizes ----------------------------------------------------------------------------- */

/* the training settings of the preset that has the model's width */
static cgs_status preset_like(cgs_run_config *c, int width) {
    cgs_lewm_config small;
    CGS_TRY(cgs_lewm_preset(&small, "small"));
    return cgs_run_preset(c, width <= small.width ? "small" : "paper");
}

static cgs_status lewm_sizes(cgs_run_config *c, const char *path, cgs_model_card *card,
                             cgs_device *d) {
    cgs_lewm *m;
    cgs_import how = {0};
    cgs_status rc = is_dir(path) ? cgs_model_load(&m, card, path, d, false)
                                 : cgs_model_import(&m, card, &how, path, d, false);
    CGS_TRY(rc);
    rc = preset_like(c, m->config.width);
    c->model = m->config;
    cgs_lewm_destroy(m);
    if (how.guessed[0]) cgs_log(CGS_WARN, "%s: guessed: %s", path, how.guessed);
    return rc;
}

static cgs_status dinowm_sizes(cgs_run_config *c, const char *path, cgs_model_card *card,
                               cgs_device *d) {
    cgs_dinowm *m;
    cgs_dinowm_card more;
    char backbone[4096];
    CGS_TRY(cgs_dinowm_load(&m, card, &more, path, d, false));
    cgs_dinowm_config sizes = m->config;
    cgs_model_destroy(&m->base);
    CGS_TRY(cgs_run_preset(c, sizes.size <= 64 ? "small" : "paper"));
    CGS_TRY(cgs_path_join(backbone, sizeof backbone, path, CGS_BACKBONE_FILE));
    c->dino = sizes;
    if (strlen(backbone) >= sizeof c->train.backbone.s)
        return cgs_fail(CGS_EARG, "%.64s...: path is too long", path);
    strcpy(c->train.backbone.s, backbone);
    return CGS_OK;
}

cgs_status cgs_run_like(cgs_run_config *c, const char *path, char *method, size_t size) {
    cgs_model_card card = {0};
    cgs_device d;
    CGS_TRY(cgs_device_open(&d, "cpu", 1));
    bool dino = is_dir(path) && cgs_dinowm_is_dir(path);
    cgs_status rc = dino ? dinowm_sizes(c, path, &card, &d) : lewm_sizes(c, path, &card, &d);
    cgs_device_close(&d);
    bool known = rc == CGS_OK && cgs_method_find(card.method);
    snprintf(method, size, "%s", known ? card.method : dino ? "dinowm-patch" : "lewm-cgs");
    return rc;
}

/* ---- weights --------------------------------------------------------------------------- */

typedef struct taking {
    const char *path;
    int taken, differ;
    size_t elements; /* taken */
    char first[2 * CGS_SHAPE_TEXT + CGS_PARAM_NAME + 64];
} taking;

/* what keeps its own initial values is named */
static void keep_own(taking *k, const cgs_param *e, const cgs_weight *w) {
    char there[CGS_SHAPE_TEXT], here[CGS_SHAPE_TEXT], sentence[sizeof k->first];
    if (w)
        snprintf(sentence, sizeof sentence, "%s is %s there and %s here", e->name,
                 cgs_weights_shape(w, there), cgs_param_shape(e, here));
    else
        snprintf(sentence, sizeof sentence, "%s is not there", e->name);
    if (k->differ++ == 0) memcpy(k->first, sentence, sizeof sentence);
    if (k->differ <= NAMED) cgs_log(CGS_WARN, "%s: begins anew: %s", k->path, sentence);
}

static cgs_status take(taking *k, cgs_params *p, const cgs_named_weights *c) {
    for (int i = 0; i < p->count; i++) {
        const cgs_param *e = &p->list[i];
        const cgs_weight *w = cgs_named_weights_find(c, "%s", e->name);
        if (!w || !cgs_param_same_shape(e, w)) {
            keep_own(k, e, w);
            continue;
        }
        CGS_TRY(cgs_param_fill(p, e, w));
        k->taken++;
        k->elements += e->trainable ? e->count : 0;
    }
    if (2 * k->elements < cgs_params_learnable(p))
        return cgs_fail(CGS_EARG, "%s: %d of %d tensors fit this model (%s)", k->path, k->taken,
                        p->count, k->first);
    if (k->differ > NAMED)
        cgs_log(CGS_WARN, "%s: %d others begin anew", k->path, k->differ - NAMED);
    cgs_log(CGS_INFO, "%s: begins with %d of %d tensors", k->path, k->taken, p->count);
    return CGS_OK;
}

/* counters of batches are no weights */
static bool is_counter(const char *name) { return strstr(name, ".num_batches_tracked") != NULL; }

static void name_others(const cgs_params *p, const cgs_named_weights *c, const char *path) {
    int others = 0;
    for (int i = 0; i < c->count; i++) {
        if (cgs_params_find(p, c->list[i].name) || is_counter(c->list[i].name)) continue;
        if (others++ < NAMED) cgs_log(CGS_WARN, "%s: left out: %s", path, c->list[i].weight->name);
    }
    if (others > NAMED) cgs_log(CGS_WARN, "%s: %d others are left out", path, others - NAMED);
}

static cgs_status take_all(cgs_params *p, const cgs_weights *w, const cgs_named_weights *c) {
    taking k = {.path = w->path};
    cgs_checksum_state state;
    CGS_TRY(cgs_weights_checksum(&state, w));
    if (state == CGS_CHECKSUM_WRONG)
        return cgs_fail(CGS_EFORMAT, "%s: damaged, its checksum is wrong", w->path);
    CGS_TRY(take(&k, p, c));
    name_others(p, c, w->path);
    cgs_params_round(p);
    return CGS_OK;
}

cgs_status cgs_initial_weights(cgs_params *p, const char *path) {
    char weights[4096];
    cgs_weights *w;
    cgs_named_weights c;
    bool dir = is_dir(path);
    if (dir) CGS_TRY(cgs_path_join(weights, sizeof weights, path, CGS_WEIGHTS_FILE));
    CGS_TRY(cgs_weights_open(&w, dir ? weights : path));
    cgs_status rc = cgs_named_weights_make(&c, w);
    if (rc == CGS_OK) rc = take_all(p, w, &c);
    cgs_named_weights_free(&c);
    cgs_weights_close(w);
    return rc;
}

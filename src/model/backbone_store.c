/* backbone_store.c - reading and writing backbone files: DINOv2 with torch-hub's and HuggingFace's
 * tensor names.
 *
 * Besides names, the two differ in one thing: torch-hub has query, key and value in one matrix,
 * HuggingFace in three. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/backbone.h"
#include "model/params_file.h"

#define MAX_LAYERS 64
#define META_ORIGIN "cgs.backbone"
#define META_HEADS "cgs.heads"
#define META_SIZE "cgs.size"
#define META_PIXELS "cgs.pixels"

/* ---- names ------------------------------------------------------------------------- */

static const struct {
    const char *ours, *theirs; /* a whole name, or the part after the number of a layer */
    bool block;
} TENSOR_NAMES[] = {
    {"cls_token", "embeddings.cls_token", false},
    {"pos_embed", "embeddings.position_embeddings", false},
    {"patch_embed.proj.weight", "embeddings.patch_embeddings.projection.weight", false},
    {"patch_embed.proj.bias", "embeddings.patch_embeddings.projection.bias", false},
    {"norm.weight", "layernorm.weight", false},
    {"norm.bias", "layernorm.bias", false},
    {"norm1.weight", "norm1.weight", true},
    {"norm1.bias", "norm1.bias", true},
    {"attn.qkv.weight", "attention.attention.%s.weight", true}, /* three of them */
    {"attn.qkv.bias", "attention.attention.%s.bias", true},
    {"attn.proj.weight", "attention.output.dense.weight", true},
    {"attn.proj.bias", "attention.output.dense.bias", true},
    {"ls1.gamma", "layer_scale1.lambda1", true},
    {"norm2.weight", "norm2.weight", true},
    {"norm2.bias", "norm2.bias", true},
    {"mlp.fc1.weight", "mlp.fc1.weight", true},
    {"mlp.fc1.bias", "mlp.fc1.bias", true},
    {"mlp.fc2.weight", "mlp.fc2.weight", true},
    {"mlp.fc2.bias", "mlp.fc2.bias", true},
    {"ls2.gamma", "layer_scale2.lambda1", true},
};
static const char *const THIRDS[] = {"query", "key", "value"};

/* the stored name of part `third` of one of our tensors; false when it is stored in one piece */
static bool stored_name(const char *ours, bool hub, int third, char name[CGS_PARAM_NAME]) {
    snprintf(name, CGS_PARAM_NAME, "%s", ours);
    if (hub) return false;
    int layer = 0, used = 0;
    bool block = sscanf(ours, "blocks.%d.%n", &layer, &used) == 1 && used > 0;
    for (size_t i = 0; i < sizeof TENSOR_NAMES / sizeof TENSOR_NAMES[0]; i++) {
        if (TENSOR_NAMES[i].block != block || strcmp(TENSOR_NAMES[i].ours, ours + used) != 0)
            continue;
        const char *theirs = TENSOR_NAMES[i].theirs, *hole = strstr(theirs, "%s");
        if (!block)
            snprintf(name, CGS_PARAM_NAME, "%s", theirs);
        else if (!hole)
            snprintf(name, CGS_PARAM_NAME, "encoder.layer.%d.%s", layer, theirs);
        else
            snprintf(name, CGS_PARAM_NAME, "encoder.layer.%d.%.*s%s%s", layer, (int)(hole - theirs),
                     theirs, THIRDS[third], hole + 2);
        return hole != NULL;
    }
    return false;
}

/* ---- sizes ------------------------------------------------------------------------- */

static const cgs_weight *find_rank(const cgs_weights *w, const char *ours, bool hub, int rank,
                                   cgs_status *rc) {
    char name[CGS_PARAM_NAME], text[CGS_SHAPE_TEXT];
    if (*rc != CGS_OK) return NULL;
    stored_name(ours, hub, 0, name);
    const cgs_weight *e = cgs_weights_find(w, name);
    if (!e)
        *rc = cgs_fail(CGS_EFORMAT, "%s: %s is missing", w->path, name);
    else if (e->rank != rank)
        *rc = cgs_fail(CGS_EFORMAT, "%s: %s has shape %s, expected %d dimensions", w->path, name,
                       cgs_weights_shape(e, text), rank);
    return *rc == CGS_OK ? e : NULL;
}

static cgs_status naming(const cgs_weights *w, bool *hub) {
    char text[CGS_SHAPE_TEXT];
    *hub = cgs_weights_find(w, "blocks.0.norm1.weight") || cgs_weights_find(w, "pos_embed");
    if (*hub || cgs_weights_find(w, "encoder.layer.0.norm1.weight") ||
        cgs_weights_find(w, "embeddings.position_embeddings"))
        return CGS_OK;
    return cgs_fail(CGS_EFORMAT,
                    "%s: names neither of DINOv2's torch-hub files (blocks.0.norm1.weight) nor of "
                    "HuggingFace's (encoder.layer.0.norm1.weight); it begins with %.100s %s",
                    w->path, w->count ? w->entry[0].name : "nothing",
                    w->count ? cgs_weights_shape(&w->entry[0], text) : "");
}

static int count_layers(const cgs_weights *w, bool hub) {
    int n = 0;
    for (; n <= MAX_LAYERS; n++) {
        char ours[CGS_PARAM_NAME], name[CGS_PARAM_NAME];
        snprintf(ours, sizeof ours, "blocks.%d.norm1.weight", n);
        stored_name(ours, hub, 0, name);
        if (!cgs_weights_find(w, name)) break;
    }
    return n;
}

static bool sane(int64_t v, int64_t most) { return v >= 1 && v <= most; }

static cgs_status sizes(const cgs_weights *w, bool hub, cgs_backbone_config *c) {
    cgs_status rc = CGS_OK;
    char text[CGS_SHAPE_TEXT];
    const cgs_weight *patch = find_rank(w, "patch_embed.proj.weight", hub, 4, &rc);
    const cgs_weight *pos = find_rank(w, "pos_embed", hub, 3, &rc);
    const cgs_weight *fc1 = find_rank(w, "blocks.0.mlp.fc1.weight", hub, 2, &rc);
    CGS_TRY(rc);
    c->layers = count_layers(w, hub);
    if (!sane(c->layers, MAX_LAYERS))
        return cgs_fail(CGS_EFORMAT, "%s: more than %d layers", w->path, MAX_LAYERS);
    if (!sane(patch->dim[0], 4096) || !sane(patch->dim[2], 64) || patch->dim[2] != patch->dim[3])
        return cgs_fail(CGS_EFORMAT, "%s: %s has shape %s, expected [width,3,patch,patch]", w->path,
                        patch->name, cgs_weights_shape(patch, text));
    if (!sane(fc1->dim[0], 65536))
        return cgs_fail(CGS_EFORMAT, "%s: %s has shape %s", w->path, fc1->name,
                        cgs_weights_shape(fc1, text));
    double side = sane(pos->dim[1], 1 << 20) ? round(sqrt((double)pos->dim[1] - 1)) : 0;
    if (side < 1 || side * side + 1 != (double)pos->dim[1])
        return cgs_fail(CGS_EFORMAT,
                        "%s: %s has shape %s, expected a square number of positions and one",
                        w->path, pos->name, cgs_weights_shape(pos, text));
    c->width = (int)patch->dim[0];
    c->patch = (int)patch->dim[2];
    c->mlp = (int)fc1->dim[0];
    c->grid = (int)side;
    const char *heads = cgs_weights_meta(w, META_HEADS);
    c->heads = heads ? atoi(heads) : c->width % 64 == 0 ? c->width / 64 : 0;
    if (c->heads < 1 || c->width % c->heads)
        return cgs_fail(CGS_EFORMAT, "%s: width %d cannot be divided into %s heads", w->path,
                        c->width, heads ? heads : "64 wide");
    return CGS_OK;
}

void cgs_backbone_origin(char origin[64], const char *said) {
    snprintf(origin, 64, "%.63s", said);
    for (char *p = origin; *p; p++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_. ", *p))
            *p = '?';
}

static void describe(const cgs_weights *w, const cgs_backbone_config *c, char *origin,
                     cgs_backbone_view *view) {
    const char *said = cgs_weights_meta(w, META_ORIGIN), *size = cgs_weights_meta(w, META_SIZE);
    const char *pixels = cgs_weights_meta(w, META_PIXELS);
    cgs_backbone_origin(origin, said ? said : "dinov2");
    if (view && size && atoi(size) > 0 && atoi(size) % c->patch == 0) view->size = atoi(size);
    if (view && pixels) view->imagenet = !strcmp(pixels, "imagenet");
}

cgs_status cgs_backbone_inspect(const char *path, cgs_backbone_config *c, char *origin,
                                cgs_backbone_view *view) {
    cgs_weights *w;
    bool hub;
    CGS_TRY(cgs_weights_open(&w, path));
    cgs_status rc = naming(w, &hub);
    if (rc == CGS_OK) rc = sizes(w, hub, c);
    if (rc == CGS_OK) describe(w, c, origin, view);
    cgs_weights_close(w);
    return rc;
}

/* ---- reading ----------------------------------------------------------------------- */

/* one stored tensor of a parameter, or a third of it, into values */
static cgs_status read_part(const cgs_weights *w, const cgs_param *e, const char *name, int parts,
                            float *values) {
    const cgs_weight *s = cgs_weights_find(w, name);
    if (!s) return cgs_fail(CGS_EFORMAT, "%s: %s is missing", w->path, name);
    cgs_weight want = {.rank = e->rank};
    bool same = s->rank == e->rank;
    for (int i = 0; i < e->rank; i++) {
        want.dim[i] = i ? e->dim[i] : e->dim[0] / parts;
        same = same && s->dim[i] == want.dim[i];
    }
    char seen[CGS_SHAPE_TEXT], expected[CGS_SHAPE_TEXT];
    if (!same)
        return cgs_fail(CGS_EFORMAT, "%s: %s has shape %s, the backbone needs %s", w->path, name,
                        cgs_weights_shape(s, seen), cgs_weights_shape(&want, expected));
    CGS_TRY(cgs_weights_to_f32(s, values));
    for (size_t i = 0; i < s->count; i++)
        if (!isfinite(values[i]))
            return cgs_fail(CGS_ENUMERIC, "%s: %s[%zu] is %g, not a finite number", w->path, name,
                            i, (double)values[i]);
    return CGS_OK;
}

static cgs_status read_all(cgs_backbone *b, const cgs_weights *w, bool hub, size_t *used) {
    cgs_status rc = CGS_OK;
    for (int i = 0; rc == CGS_OK && i < b->params.count; i++) {
        const cgs_param *e = &b->params.list[i];
        float *values = malloc(e->count * sizeof *values);
        if (!values) return cgs_fail(CGS_ENOMEM, "%s: no memory for %s", w->path, e->name);
        char name[CGS_PARAM_NAME];
        bool split = stored_name(e->name, hub, 0, name);
        int parts = split ? 3 : 1;
        for (int k = 0; rc == CGS_OK && k < parts; k++) {
            stored_name(e->name, hub, k, name);
            rc = read_part(w, e, name, parts, values + e->count / (size_t)parts * (size_t)k);
            ++*used;
        }
        if (rc == CGS_OK) rc = cgs_param_write(&b->params, e, values);
        free(values);
    }
    return rc;
}

/* checks that every tensor was used, except the token of masked pretraining */
static cgs_status nothing_else(const cgs_backbone *b, const cgs_weights *w, bool hub, size_t used) {
    size_t known = cgs_weights_find(w, hub ? "mask_token" : "embeddings.mask_token") != NULL;
    if (w->count == used + known) return CGS_OK;
    for (size_t i = 0; i < w->count; i++) {
        bool found = strstr(w->entry[i].name, "mask_token") != NULL;
        for (int k = 0; !found && k < b->params.count; k++) {
            char name[CGS_PARAM_NAME];
            int parts = stored_name(b->params.list[k].name, hub, 0, name) ? 3 : 1;
            for (int third = 0; third < parts; third++) {
                stored_name(b->params.list[k].name, hub, third, name);
                found = found || !strcmp(name, w->entry[i].name);
            }
        }
        char text[CGS_SHAPE_TEXT];
        if (!found)
            return cgs_fail(
                CGS_EFORMAT, "%s: tensor \"%.200s\" %s is no part of a ViT of %d layers", w->path,
                w->entry[i].name, cgs_weights_shape(&w->entry[i], text), b->config.layers);
    }
    return CGS_OK;
}

cgs_status cgs_backbone_load(cgs_backbone **out, const char *path, const cgs_backbone_view *v,
                             cgs_device *d) {
    cgs_weights *w;
    cgs_backbone_config c;
    bool hub;
    size_t used = 0;
    *out = NULL;
    CGS_TRY(cgs_weights_open(&w, path));
    cgs_status rc = naming(w, &hub);
    if (rc == CGS_OK) rc = sizes(w, hub, &c);
    if (rc == CGS_OK) rc = cgs_backbone_create(out, &c, v, d, false);
    if (rc == CGS_OK) rc = read_all(*out, w, hub, &used);
    if (rc == CGS_OK) rc = nothing_else(*out, w, hub, used);
    if (rc == CGS_OK) describe(w, &c, (*out)->origin, NULL);
    if (rc == CGS_OK) rc = cgs_backbone_settle(*out);
    if (rc != CGS_OK) {
        cgs_backbone_destroy(*out);
        *out = NULL;
    }
    cgs_weights_close(w);
    return rc;
}

/* ---- writing ----------------------------------------------------------------------- */

cgs_status cgs_backbone_save(const cgs_backbone *b, const char *path) {
    char heads[16], size[16];
    snprintf(heads, sizeof heads, "%d", b->config.heads);
    snprintf(size, sizeof size, "%d", b->view.size);
    const cgs_meta meta[] = {{META_ORIGIN, b->origin},
                             {META_HEADS, heads},
                             {META_SIZE, size},
                             {META_PIXELS, b->view.imagenet ? "imagenet" : "half"}};
    /* a published network prescribes no preprocessing: it is used differently from how it was
     * trained
     * */
    return cgs_params_save(&b->params, path, meta, strcmp(b->origin, "dinov2") ? 4 : 2);
}

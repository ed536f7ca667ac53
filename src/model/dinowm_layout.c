/* dinowm_layout.c - sizes, stored names, shapes and initial values of the world model on frozen
 * features.  Names are those of the Temporal Straightening code, under one prefix per module.
 *
 * Projector, adapter and aggregation head come first: they form a separate optimiser group. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/declare.h"
#include "model/dinowm.h"

#define ROW(kind, name, initial, low, high, key, doc)                                              \
    CGS_CONFIG_ROW(cgs_dinowm_config, kind, name, initial, low, high, key, doc)
const cgs_field cgs_dinowm_fields[] = {CGS_DINOWM_CONFIG(ROW)};
#undef ROW
const int cgs_dinowm_field_count = sizeof cgs_dinowm_fields / sizeof cgs_dinowm_fields[0];

cgs_status cgs_dinowm_preset(cgs_dinowm_config *c, const char *name) {
    cgs_section section = {cgs_dinowm_fields, cgs_dinowm_field_count, c};
    cgs_config_defaults(&section, 1);
    if (!strcmp(name, "paper")) return CGS_OK;
    if (strcmp(name, "small") != 0)
        return cgs_fail(CGS_EARG, "unknown size preset \"%.40s\": use paper or small", name);
    c->image_size = 64;
    c->size = 64;
    c->patch = 8;
    c->features = 96;
    c->hidden = 48;
    c->aggregate_hidden = 128;
    c->aggregate = 64;
    c->predictor_layers = 3;
    c->predictor_heads = 2; /* the width that the GPU's kernels support */
    c->predictor_head_width = 64;
    c->predictor_mlp = 256;
    return CGS_OK;
}

cgs_status cgs_dinowm_check(const cgs_dinowm_config *c) {
    if (strcmp(c->tokens.s, "patch") != 0 && strcmp(c->tokens.s, "cls") != 0)
        return cgs_fail(CGS_EARG, "model.tokens: \"%.40s\" is not patch or cls", c->tokens.s);
    if (c->size % c->patch)
        return cgs_fail(CGS_EARG, "model.backbone.patch: %d does not divide model.backbone.size %d",
                        c->patch, c->size);
    cgs_backbone_view v;
    return cgs_dinowm_view(c, &v);
}

cgs_status cgs_dinowm_view(const cgs_dinowm_config *c, cgs_backbone_view *v) {
    *v = (cgs_backbone_view){.image_size = c->image_size,
                             .size = c->size,
                             .hub = !strcmp(c->positions.s, "hub"),
                             .imagenet = !strcmp(c->pixels.s, "imagenet")};
    if (!v->hub && strcmp(c->positions.s, "huggingface") != 0)
        return cgs_fail(CGS_EARG, "model.backbone.positions: \"%.40s\" is not hub or huggingface",
                        c->positions.s);
    if (!v->imagenet && strcmp(c->pixels.s, "half") != 0)
        return cgs_fail(CGS_EARG, "model.backbone.pixels: \"%.40s\" is not half or imagenet",
                        c->pixels.s);
    return CGS_OK;
}

/* ---- declarations ------------------------------------------------------------------ */

static void declare_heads(cgs_dinowm *m) {
    cgs_params *p = &m->params;
    const cgs_dinowm_config *c = &m->config;
    int D = c->features, flat = cgs_dinowm_tokens(c) * c->channels;
    if (!cgs_dinowm_is_patch(c)) {
        cgs_param_declare(p, &m->adapter.w, CGS_INIT_IDENTITY, 0, 2, DIM(D, D), "adapter.weight");
        cgs_param_declare(p, &m->adapter.b, CGS_INIT_ZERO, 0, 1, DIM(D), "adapter.bias");
        return;
    }
    const int in[] = {D, c->hidden}, out[] = {c->hidden, c->channels};
    for (int i = 0; i < 2; i++) {
        UNIFORM(p, &m->conv[i], 4, DIM(out[i], in[i], 3, 3), 9 * in[i], "projector.conv_layers.%d",
                i);
        NORM(p, &m->conv_norm[i], out[i], "projector.layer_norm_layers.%d", i);
    }
    LINEAR(p, &m->aggregate[0], c->aggregate_hidden, flat, "agg_mlp.%d", 0);
    LINEAR(p, &m->aggregate[1], c->aggregate_hidden, c->aggregate_hidden, "agg_mlp.%d", 2);
    LINEAR(p, &m->aggregate[2], c->aggregate, c->aggregate_hidden, "agg_mlp.%d", 4);
    NORM(p, &m->aggregate_norm, c->aggregate, "%s", "agg_post_norm");
}

static void declare_layer(cgs_params *p, cgs_dinowm_layer *l, const cgs_dinowm_config *c, int W,
                          int i) {
    int inner = c->predictor_heads * c->predictor_head_width;
    NORM(p, &l->attn_norm, W, "predictor.transformer.layers.%d.0.norm", i);
    cgs_param_declare(p, &l->qkv, CGS_INIT_UNIFORM, 1.0f / sqrtf((float)W), 2, DIM(3 * inner, W),
                      "predictor.transformer.layers.%d.0.to_qkv.weight", i);
    LINEAR(p, &l->attn_out, W, inner, "predictor.transformer.layers.%d.0.to_out.0", i);
    NORM(p, &l->mlp_norm, W, "predictor.transformer.layers.%d.1.net.0", i);
    LINEAR(p, &l->mlp_in, c->predictor_mlp, W, "predictor.transformer.layers.%d.1.net.1", i);
    LINEAR(p, &l->mlp_out, W, c->predictor_mlp, "predictor.transformer.layers.%d.1.net.4", i);
}

static void declare_embedding(cgs_params *p, cgs_affine *a, cgs_affine *n, int in, int out,
                              const char *name) {
    UNIFORM(p, a, 3, DIM(out, in, 1), in, "%s.patch_embed", name);
    NORM(p, n, out, "%s.norm", name);
}

/* runs twice: to measure, then to bind */
static void declare(cgs_dinowm *m) {
    cgs_params *p = &m->params;
    const cgs_dinowm_config *c = &m->config;
    int W = cgs_dinowm_channels(c) + 2 * c->embed;
    declare_heads(m);
    cgs_param_declare(p, &m->pos, CGS_INIT_NORMAL, 1, 3,
                      DIM(1, c->history * cgs_dinowm_tokens(c), W), "predictor.pos_embedding");
    const cgs_param *first = cgs_params_find(p, "predictor.pos_embedding");
    m->heads_end = first ? first->offset : 0;
    for (int i = 0; i < c->predictor_layers; i++) declare_layer(p, &m->layer[i], c, W, i);
    NORM(p, &m->norm, W, "predictor.transformer.%s", "norm");
    declare_embedding(p, &m->action, &m->action_norm, c->action_dim * c->frameskip, c->embed,
                      "action_encoder");
    declare_embedding(p, &m->proprio, &m->proprio_norm, c->proprio_dim, c->embed,
                      "proprio_encoder");
}

cgs_status cgs_dinowm_create(cgs_dinowm **out, const cgs_dinowm_config *c, cgs_backbone *backbone,
                             cgs_device *d, bool training) {
    *out = NULL;
    CGS_TRY(cgs_dinowm_check(c));
    if (backbone && (backbone->config.width != c->features || backbone->config.patch != c->patch))
        return cgs_fail(CGS_EARG,
                        "the backbone has width %d and patch %d, the model needs %d and %d",
                        backbone->config.width, backbone->config.patch, c->features, c->patch);
    cgs_dinowm *m = calloc(1, sizeof *m);
    if (!m) return cgs_fail(CGS_ENOMEM, "model: no memory");
    m->config = *c;
    m->base = (cgs_model){.cls = &cgs_dinowm_class,
                          .params = &m->params,
                          .image_size = c->image_size,
                          .width = cgs_dinowm_tokens(c) * (cgs_dinowm_channels(c) + c->embed),
                          .history = c->history,
                          .action_dim = c->action_dim,
                          .frameskip = c->frameskip,
                          .proprio_dim = c->proprio_dim};
    m->layer = calloc((size_t)c->predictor_layers, sizeof *m->layer);
    cgs_status rc = m->layer ? CGS_OK : cgs_fail(CGS_ENOMEM, "model: no memory");
    if (rc == CGS_OK) {
        declare(m);
        rc = cgs_params_bind(&m->params, d, training);
    }
    if (rc == CGS_OK) {
        declare(m);
        m->backbone = backbone;
        *out = m;
    } else {
        cgs_model_destroy(&m->base);
    }
    return rc;
}

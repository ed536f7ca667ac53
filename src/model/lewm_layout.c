/* lewm_layout.c - sizes, stored names, shapes and initial values of LeWM's tensors.
 *
 * Names are those of the published files (Transformers 4.x). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/declare.h"
#include "model/lewm.h"

#define ROW(kind, name, initial, low, high, key, doc)                                              \
    CGS_CONFIG_ROW(cgs_lewm_config, kind, name, initial, low, high, key, doc)
const cgs_field cgs_lewm_fields[] = {CGS_LEWM_CONFIG(ROW)};
#undef ROW
const int cgs_lewm_field_count = sizeof cgs_lewm_fields / sizeof cgs_lewm_fields[0];

cgs_status cgs_lewm_preset(cgs_lewm_config *c, const char *name) {
    cgs_section section = {cgs_lewm_fields, cgs_lewm_field_count, c};
    cgs_config_defaults(&section, 1);
    if (!strcmp(name, "paper")) return CGS_OK;
    if (strcmp(name, "small") != 0)
        return cgs_fail(CGS_EARG, "unknown size preset \"%.40s\": use paper or small", name);
    c->image_size = 64;
    c->patch = 8;
    c->width = 96;
    c->encoder_layers = 4;
    c->encoder_mlp = 384;
    c->projector_hidden = 384;
    c->predictor_layers = 3;
    c->predictor_heads = 4;
    c->predictor_head_width = 32;
    c->predictor_mlp = 384;
    c->action_hidden = 384;
    return CGS_OK;
}

cgs_status cgs_lewm_check(const cgs_lewm_config *c) {
    if (c->image_size % c->patch)
        return cgs_fail(CGS_EARG, "model.patch: %d does not divide model.image_size %d", c->patch,
                        c->image_size);
    if (c->width % c->encoder_heads)
        return cgs_fail(CGS_EARG, "model.encoder.heads: %d does not divide model.width %d",
                        c->encoder_heads, c->width);
    if (c->class_bits != 16 && c->class_bits != 32)
        return cgs_fail(CGS_EARG, "model.encoder.class_bits: %d is neither 16 nor 32",
                        c->class_bits);
    if (c->predictor_layers > 64)
        return cgs_fail(CGS_EARG, "model.predictor.layers: %d is more than 64",
                        c->predictor_layers);
    return CGS_OK;
}

/* ---- declarations ------------------------------------------------------------------ */

#define VIT_STD 0.02f

/* a linear layer of the encoder: normal weights, zero bias */
#define VIT_LINEAR(p, a, out_, in_, fmt, ...)                                                      \
    do {                                                                                           \
        cgs_param_declare(p, &(a)->w, CGS_INIT_NORMAL, VIT_STD, 2, DIM(out_, in_), fmt ".weight",  \
                          __VA_ARGS__);                                                            \
        cgs_param_declare(p, &(a)->b, CGS_INIT_ZERO, 0, 1, DIM(out_), fmt ".bias", __VA_ARGS__);   \
    } while (0)

static void declare_vit_layer(cgs_params *p, cgs_vit_layer *l, const cgs_lewm_config *c, int i) {
    static const char *const part[] = {"query", "key", "value"};
    int D = c->width;
    for (int k = 0; k < 3; k++) {
        void (*add)(cgs_params *, cgs_tensor *, cgs_init, float, int, const int *, const char *,
                    ...) = k ? cgs_param_stack : cgs_param_declare;
        add(p, &l->qkv.w, CGS_INIT_NORMAL, VIT_STD, 2, DIM(D, D),
            "encoder.encoder.layer.%d.attention.attention.%s.weight", i, part[k]);
    }
    for (int k = 0; k < 3; k++) {
        void (*add)(cgs_params *, cgs_tensor *, cgs_init, float, int, const int *, const char *,
                    ...) = k ? cgs_param_stack : cgs_param_declare;
        add(p, &l->qkv.b, CGS_INIT_ZERO, 0, 1, DIM(D),
            "encoder.encoder.layer.%d.attention.attention.%s.bias", i, part[k]);
    }
    VIT_LINEAR(p, &l->out, D, D, "encoder.encoder.layer.%d.attention.output.dense", i);
    VIT_LINEAR(p, &l->fc1, c->encoder_mlp, D, "encoder.encoder.layer.%d.intermediate.dense", i);
    VIT_LINEAR(p, &l->fc2, D, c->encoder_mlp, "encoder.encoder.layer.%d.output.dense", i);
    NORM(p, &l->norm1, D, "encoder.encoder.layer.%d.layernorm_before", i);
    NORM(p, &l->norm2, D, "encoder.encoder.layer.%d.layernorm_after", i);
}

static void declare_predictor_layer(cgs_params *p, cgs_predictor_layer *l, const cgs_lewm_config *c,
                                    int i) {
    int D = c->width, inner = c->predictor_heads * c->predictor_head_width;
    NORM(p, &l->attn_norm, D, "predictor.transformer.layers.%d.attn.norm", i);
    cgs_param_declare(p, &l->qkv, CGS_INIT_UNIFORM, 1.0f / sqrtf((float)D), 2, DIM(3 * inner, D),
                      "predictor.transformer.layers.%d.attn.to_qkv.weight", i);
    LINEAR(p, &l->attn_out, D, inner, "predictor.transformer.layers.%d.attn.to_out.0", i);
    NORM(p, &l->mlp_norm, D, "predictor.transformer.layers.%d.mlp.net.0", i);
    LINEAR(p, &l->mlp_in, c->predictor_mlp, D, "predictor.transformer.layers.%d.mlp.net.1", i);
    LINEAR(p, &l->mlp_out, D, c->predictor_mlp, "predictor.transformer.layers.%d.mlp.net.4", i);
    /* zero: shifts, scales and gates start at 0, so each layer starts as the identity */
    cgs_param_declare(p, &l->ada.w, CGS_INIT_ZERO, 0, 2, DIM(6 * D, D),
                      "predictor.transformer.layers.%d.adaLN_modulation.1.weight", i);
    cgs_param_declare(p, &l->ada.b, CGS_INIT_ZERO, 0, 1, DIM(6 * D),
                      "predictor.transformer.layers.%d.adaLN_modulation.1.bias", i);
}

static void declare_mlp_bn(cgs_params *p, cgs_mlp_bn *m, const cgs_lewm_config *c,
                           const char *name) {
    int D = c->width, hidden = c->projector_hidden;
    LINEAR(p, &m->in, hidden, D, "%s.net.0", name);
    NORM(p, &m->norm, hidden, "%s.net.1", name);
    cgs_param_statistic(p, &m->running_mean, CGS_INIT_ZERO, hidden, "%s.net.1.running_mean", name);
    cgs_param_statistic(p, &m->running_var, CGS_INIT_ONE, hidden, "%s.net.1.running_var", name);
    LINEAR(p, &m->out, D, hidden, "%s.net.3", name);
}

/* runs twice: to measure, then to bind */
static void declare(cgs_lewm *m) {
    cgs_params *p = &m->params;
    const cgs_lewm_config *c = &m->config;
    int D = c->width, side = c->image_size / c->patch, da = cgs_lewm_action_block(c);

    cgs_param_declare(p, &m->cls, CGS_INIT_NORMAL, VIT_STD, 3, DIM(1, 1, D),
                      "encoder.embeddings.cls_token");
    cgs_param_declare(p, &m->pos, CGS_INIT_NORMAL, VIT_STD, 3, DIM(1, side * side + 1, D),
                      "encoder.embeddings.position_embeddings");
    cgs_param_declare(p, &m->patch.w, CGS_INIT_NORMAL, VIT_STD, 4, DIM(D, 3, c->patch, c->patch),
                      "encoder.embeddings.patch_embeddings.projection.weight");
    cgs_param_declare(p, &m->patch.b, CGS_INIT_ZERO, 0, 1, DIM(D),
                      "encoder.embeddings.patch_embeddings.projection.bias");
    for (int i = 0; i < c->encoder_layers; i++) declare_vit_layer(p, &m->encoder[i], c, i);
    NORM(p, &m->final_norm, D, "encoder.%s", "layernorm");

    cgs_param_declare(p, &m->pred_pos, CGS_INIT_NORMAL, 1, 3, DIM(1, c->history, D),
                      "predictor.pos_embedding");
    for (int i = 0; i < c->predictor_layers; i++)
        declare_predictor_layer(p, &m->predictor[i], c, i);
    NORM(p, &m->pred_norm, D, "predictor.transformer.%s", "norm");

    float bound = 1.0f / sqrtf((float)da);
    cgs_param_declare(p, &m->action_conv.w, CGS_INIT_UNIFORM, bound, 3,
                      DIM(c->action_smooth, da, 1), "action_encoder.patch_embed.weight");
    cgs_param_declare(p, &m->action_conv.b, CGS_INIT_UNIFORM, bound, 1, DIM(c->action_smooth),
                      "action_encoder.patch_embed.bias");
    LINEAR(p, &m->action_in, c->action_hidden, c->action_smooth, "action_encoder.embed.%d", 0);
    LINEAR(p, &m->action_out, D, c->action_hidden, "action_encoder.embed.%d", 2);
    declare_mlp_bn(p, &m->projector, c, "projector");
    declare_mlp_bn(p, &m->pred_proj, c, "pred_proj");
}

cgs_status cgs_lewm_create(cgs_lewm **out, const cgs_lewm_config *c, cgs_device *d, bool training) {
    *out = NULL;
    CGS_TRY(cgs_lewm_check(c));
    cgs_lewm *m = calloc(1, sizeof *m);
    if (!m) return cgs_fail(CGS_ENOMEM, "model: no memory");
    m->config = *c;
    m->base = (cgs_model){.cls = &cgs_lewm_class,
                          .params = &m->params,
                          .image_size = c->image_size,
                          .width = c->width,
                          .history = c->history,
                          .action_dim = c->action_dim,
                          .frameskip = c->frameskip};
    m->encoder = calloc((size_t)c->encoder_layers, sizeof *m->encoder);
    m->predictor = calloc((size_t)c->predictor_layers, sizeof *m->predictor);
    cgs_status rc = m->encoder && m->predictor ? CGS_OK : cgs_fail(CGS_ENOMEM, "model: no memory");
    if (rc == CGS_OK) {
        declare(m);
        rc = cgs_params_bind(&m->params, d, training);
    }
    if (rc == CGS_OK) {
        declare(m);
        *out = m;
    } else {
        cgs_lewm_destroy(m);
    }
    return rc;
}

void cgs_lewm_destroy(cgs_lewm *m) {
    if (!m) return;
    cgs_params_free(&m->params);
    free(m->encoder);
    free(m->predictor);
    free(m);
}

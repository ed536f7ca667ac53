/* onnx_lewm.c - LeWM as two ONNX graphs: lewm.c in another language. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "model/config_json.h"
#include "model/onnx.h"
#include "model/onnx_graph.h"

#define INTS(...) ((const int[]){__VA_ARGS__})
#define INTS_OF(g, ...) cgs_onnx_ints(g, INTS(__VA_ARGS__), sizeof INTS(__VA_ARGS__) / sizeof(int))

/* linear, batch norm, GELU, linear: x (n, D) */
static cgs_value mlp_bn(cgs_onnx *g, cgs_value x, const char *name) {
    char in[64], norm[64], out[64];
    snprintf(in, sizeof in, "%s.net.0", name);
    snprintf(norm, sizeof norm, "%s.net.1", name);
    snprintf(out, sizeof out, "%s.net.3", name);
    x = cgs_onnx_batchnorm(g, cgs_onnx_linear(g, x, in, true), norm, CGS_BATCHNORM_EPS);
    return cgs_onnx_linear(g, cgs_onnx_gelu(g, x), out, true);
}

/* q, k, v (B, T, heads * width); mask: added to scores (T, T), or NULL */
static cgs_value attention(cgs_onnx *g, cgs_value q, cgs_value k, cgs_value v, int heads, int width,
                           const cgs_value *mask) {
    const int *apart = INTS(0, 0, heads, width);
    q = cgs_onnx_transpose(g, cgs_onnx_reshape(g, q, 4, apart), 4, INTS(0, 2, 1, 3));
    k = cgs_onnx_transpose(g, cgs_onnx_reshape(g, k, 4, apart), 4, INTS(0, 2, 3, 1));
    v = cgs_onnx_transpose(g, cgs_onnx_reshape(g, v, 4, apart), 4, INTS(0, 2, 1, 3));
    cgs_value scale = cgs_onnx_float(g, (float)(1 / sqrt((double)width)));
    cgs_value score = cgs_onnx_multiply(g, cgs_onnx_product(g, q, k), scale);
    if (mask) score = cgs_onnx_add(g, score, *mask);
    cgs_value a = cgs_onnx_product(g, cgs_onnx_softmax(g, score), v);
    return cgs_onnx_reshape(g, cgs_onnx_transpose(g, a, 4, INTS(0, 2, 1, 3)), 3,
                            INTS(0, 0, heads * width));
}

/* ---- encoder ----------------------------------------------------------------------- */

static const char *part(char out[CGS_PARAM_NAME], const char *layers, int i, const char *name) {
    snprintf(out, CGS_PARAM_NAME, "%s.%d.%s", layers, i, name);
    return out;
}

static cgs_value layer(cgs_onnx *g, cgs_value x, const cgs_lewm_config *c, int i) {
    static const char all[] = "encoder.encoder.layer";
    char name[CGS_PARAM_NAME];
    bool last = i + 1 == c->encoder_layers; /* after it only the class token is needed */
    cgs_value n =
        cgs_onnx_layernorm(g, x, part(name, all, i, "layernorm_before"), CGS_LEWM_VIT_EPS);
    cgs_value of = n;
    if (last) {
        of = cgs_onnx_first(g, n, 1, INTS_OF(g, 1));
        x = cgs_onnx_first(g, x, 1, INTS_OF(g, 1));
    }
    cgs_value q = cgs_onnx_linear(g, of, part(name, all, i, "attention.attention.query"), true);
    cgs_value k = cgs_onnx_linear(g, n, part(name, all, i, "attention.attention.key"), true);
    cgs_value v = cgs_onnx_linear(g, n, part(name, all, i, "attention.attention.value"), true);
    cgs_value a = attention(g, q, k, v, c->encoder_heads, c->width / c->encoder_heads, NULL);
    a = cgs_onnx_linear(g, a, part(name, all, i, "attention.output.dense"), true);
    x = cgs_onnx_add(g, x, a);
    cgs_value h = cgs_onnx_layernorm(g, x, part(name, all, i, "layernorm_after"), CGS_LEWM_VIT_EPS);
    h = cgs_onnx_linear(g, h, part(name, all, i, "intermediate.dense"), true);
    h = cgs_onnx_linear(g, cgs_onnx_gelu(g, h), part(name, all, i, "output.dense"), true);
    return cgs_onnx_add(g, x, h);
}

/* (F, S, S, 3) bytes -> (F, tokens, D) with the class token and positions */
static cgs_value tokens(cgs_onnx *g, cgs_value pixels, const cgs_lewm_config *c) {
    float scale[3], shift[3];
    for (int i = 0; i < 3; i++) {
        scale[i] = (float)(1 / (255.0 * cgs_image_std[i]));
        shift[i] = -cgs_image_mean[i] / cgs_image_std[i];
    }
    cgs_value x = cgs_onnx_to_floats(g, pixels);
    x = cgs_onnx_multiply(g, x, cgs_onnx_floats(g, scale, 1, INTS(3)));
    x = cgs_onnx_add(g, x, cgs_onnx_floats(g, shift, 1, INTS(3)));
    x = cgs_onnx_patches(g, cgs_onnx_transpose(g, x, 4, INTS(0, 3, 1, 2)),
                         "encoder.embeddings.patch_embeddings.projection", c->patch);
    x = cgs_onnx_reshape(g, x, 3, INTS(0, c->width, -1));
    x = cgs_onnx_transpose(g, x, 3, INTS(0, 2, 1));
    cgs_value shape = cgs_onnx_join(g, cgs_onnx_length(g, pixels, 0), INTS_OF(g, 1, c->width), 0);
    cgs_value cls[] = {cgs_onnx_weight(g, "encoder.embeddings.cls_token"), shape};
    x = cgs_onnx_join(g, cgs_onnx_op(g, "Expand", 2, cls), x, 1);
    return cgs_onnx_add(g, x, cgs_onnx_weight(g, "encoder.embeddings.position_embeddings"));
}

static void encoder(cgs_onnx *g, const cgs_lewm_config *c) {
    const cgs_onnx_axis frames = {"frames", 0}, S = {NULL, c->image_size}, D = {NULL, c->width};
    cgs_value x = cgs_onnx_input(g, "pixels", true, 4, (cgs_onnx_axis[]){frames, S, S, {NULL, 3}});
    x = tokens(g, x, c);
    for (int i = 0; i < c->encoder_layers; i++) x = layer(g, x, c, i);
    x = cgs_onnx_layernorm(g, x, "encoder.layernorm", CGS_LEWM_VIT_EPS);
    x = mlp_bn(g, cgs_onnx_reshape(g, x, 2, INTS(-1, c->width)), "projector");
    cgs_onnx_output(g, x, "latent", 2, (cgs_onnx_axis[]){frames, D});
}

/* ---- predictor --------------------------------------------------------------------- */

/* what token i may not see of later ones: (T, T) of zeros and numbers that make a weight vanish */
static cgs_value causal(cgs_onnx *g, int history, cgs_value T) {
    size_t n = (size_t)history;
    float *v = calloc(n * n, sizeof *v);
    for (size_t i = 0; v && i < n; i++)
        for (size_t j = i + 1; j < n; j++) v[i * n + j] = -1e9f;
    if (!v) {
        g->status = cgs_fail(CGS_ENOMEM, "no memory for a mask");
        return T;
    }
    cgs_value mask = cgs_onnx_floats(g, v, 2, INTS(history, history));
    free(v);
    return cgs_onnx_first(g, cgs_onnx_first(g, mask, 0, T), 1, T);
}

/* x (1 + scale) + shift of the layer norm that has no weights */
static cgs_value modulated(cgs_onnx *g, cgs_value x, const cgs_lewm_config *c, cgs_value shift,
                           cgs_value scale) {
    x = cgs_onnx_plain_layernorm(g, x, c->width, CGS_LEWM_ADA_EPS);
    scale = cgs_onnx_add(g, scale, cgs_onnx_float(g, 1));
    return cgs_onnx_add(g, cgs_onnx_multiply(g, x, scale), shift);
}

static cgs_value predictor_layer(cgs_onnx *g, cgs_value x, cgs_value s, const cgs_value *mask,
                                 const cgs_lewm_config *c, int i) {
    static const char all[] = "predictor.transformer.layers";
    char name[CGS_PARAM_NAME];
    cgs_value mod[6], qkv[3]; /* shift, scale, gate of attention, then of the MLP */
    cgs_onnx_split(g, cgs_onnx_linear(g, s, part(name, all, i, "adaLN_modulation.1"), true), 6,
                   mod);
    cgs_value u = modulated(g, x, c, mod[0], mod[1]);
    u = cgs_onnx_layernorm(g, u, part(name, all, i, "attn.norm"), CGS_LEWM_NORM_EPS);
    cgs_onnx_split(g, cgs_onnx_linear(g, u, part(name, all, i, "attn.to_qkv"), false), 3, qkv);
    cgs_value a =
        attention(g, qkv[0], qkv[1], qkv[2], c->predictor_heads, c->predictor_head_width, mask);
    a = cgs_onnx_linear(g, a, part(name, all, i, "attn.to_out.0"), true);
    x = cgs_onnx_add(g, x, cgs_onnx_multiply(g, mod[2], a));
    cgs_value v = modulated(g, x, c, mod[3], mod[4]);
    v = cgs_onnx_layernorm(g, v, part(name, all, i, "mlp.net.0"), CGS_LEWM_NORM_EPS);
    v = cgs_onnx_gelu(g, cgs_onnx_linear(g, v, part(name, all, i, "mlp.net.1"), true));
    v = cgs_onnx_linear(g, v, part(name, all, i, "mlp.net.4"), true);
    return cgs_onnx_add(g, x, cgs_onnx_multiply(g, mod[5], v));
}

static void predictor(cgs_onnx *g, const cgs_lewm_config *c) {
    const cgs_onnx_axis batch = {"batch", 0}, time = {"time", 0}, D = {NULL, c->width};
    const cgs_onnx_axis block = {NULL, cgs_lewm_action_block(c)};
    cgs_value z = cgs_onnx_input(g, "latents", false, 3, (cgs_onnx_axis[]){batch, time, D});
    cgs_value s = cgs_onnx_input(g, "actions", false, 3, (cgs_onnx_axis[]){batch, time, block});
    s = cgs_onnx_linear(g, s, "action_encoder.patch_embed", true);
    s = cgs_onnx_silu(g, cgs_onnx_linear(g, s, "action_encoder.embed.0", true));
    s = cgs_onnx_silu(g, cgs_onnx_linear(g, s, "action_encoder.embed.2", true));
    cgs_value T = cgs_onnx_length(g, z, 1), mask = causal(g, c->history, T);
    cgs_value pos = cgs_onnx_first(g, cgs_onnx_weight(g, "predictor.pos_embedding"), 1, T);
    cgs_value x = cgs_onnx_add(g, z, pos);
    for (int i = 0; i < c->predictor_layers; i++) x = predictor_layer(g, x, s, &mask, c, i);
    x = cgs_onnx_layernorm(g, x, "predictor.transformer.norm", CGS_LEWM_NORM_EPS);
    x = mlp_bn(g, cgs_onnx_reshape(g, x, 2, INTS(-1, c->width)), "pred_proj");
    const cgs_value back[] = {x, cgs_onnx_op(g, "Shape", 1, &z)};
    cgs_onnx_output(g, cgs_onnx_op(g, "Reshape", 2, back), "prediction", 3,
                    (cgs_onnx_axis[]){batch, time, D});
}

/* ---- files ------------------------------------------------------------------------- */

static cgs_status save(const char *dir, const char *name, const cgs_lewm *m, const char *config,
                       void (*build)(cgs_onnx *, const cgs_lewm_config *)) {
    char path[4096];
    cgs_onnx g;
    const cgs_meta meta = {"cgs.config", config};
    CGS_TRY(cgs_path_join(path, sizeof path, dir, name));
    cgs_onnx_begin(&g, name, &m->params);
    build(&g, &m->config);
    return cgs_onnx_end(&g, path, &meta, 1);
}

cgs_status cgs_lewm_save_onnx(const char *dir, const cgs_lewm *m, const cgs_model_card *card) {
    char *config;
    CGS_TRY(cgs_make_dirs(dir));
    CGS_TRY(cgs_config_json_write(&config, &m->config, card));
    cgs_status rc = save(dir, CGS_ONNX_ENCODER, m, config, encoder);
    if (rc == CGS_OK) rc = save(dir, CGS_ONNX_PREDICTOR, m, config, predictor);
    free(config);
    return rc;
}

/* lewm.c - the whole forward pass of LeWM; the tape derives the backward pass.
 *
 * The encoder is a vision transformer that turns an image into one latent vector.  The
 * predictor is a transformer over the latents of a window of frames; actions modulate its
 * layers (AdaLN: a linear layer maps the embedded action to shift, scale and gate).  Nothing
 * runs here: every call appends a record to a tape (ops/tape.h).
 *
 * B batch, T time steps of a window, D width of a latent, H action blocks of a plan.
 *
 * Three traps of the published model: there are two layer norms before each predictor
 * sub-module (a modulated one without weights, then an affine one), attention is 1024 wide
 * inside a 192 wide predictor, and positions restart at 0 in every window. */
#include "model/lewm.h"

#include "core/rng.h"

const float cgs_image_mean[3] = {0.485f, 0.456f, 0.406f};
const float cgs_image_std[3] = {0.229f, 0.224f, 0.225f};

#define VIT_EPS CGS_LEWM_VIT_EPS
#define ADA_EPS CGS_LEWM_ADA_EPS
#define NORM_EPS CGS_LEWM_NORM_EPS

static cgs_tensor *norm(cgs_tape *t, cgs_tensor *x, cgs_affine *a, float eps) {
    return cgs_layernorm(t, x, &a->w, &a->b, eps);
}

static cgs_tensor *affine(cgs_tape *t, cgs_tensor *x, cgs_affine *a) {
    return cgs_linear(t, x, &a->w, &a->b);
}

static cgs_tensor *affine_f32(cgs_tape *t, cgs_tensor *x, cgs_affine *a) {
    return cgs_linear_f32(t, x, &a->w, &a->b);
}

static cgs_tensor *mlp_bn(cgs_tape *t, cgs_mlp_bn *p, cgs_tensor *x, bool training) {
    cgs_tensor *h = affine_f32(t, x, &p->in);
    h = cgs_batchnorm(t, h, &p->norm.w, &p->norm.b, &p->running_mean, &p->running_var, training);
    h = cgs_activate(t, h, CGS_GELU);
    return affine_f32(t, h, &p->out);
}

/* Where other activations are bf16, the class token and both heads may keep f32. */
static bool class_apart(const cgs_tape *t, const cgs_lewm *m) {
    return cgs_tape_act(t) == CGS_BF16 && m->config.class_bits == 32;
}
/* ---- encoder ----------------------------------------------------------------------- */

cgs_tensor *cgs_lewm_encode(cgs_tape *t, cgs_lewm *m, cgs_tensor *frames, bool training) {
    const cgs_lewm_config *c = &m->config;
    cgs_tensor *x = cgs_patchify(t, frames, c->patch, cgs_image_mean, cgs_image_std);
    x = cgs_tokens(t, affine(t, x, &m->patch), &m->cls, &m->pos);
    bool apart = class_apart(t, m);
    cgs_tensor *cls = apart ? cgs_take(t, x, 0, 1) : NULL;
    for (int i = 0; i < c->encoder_layers; i++) {
        bool last = i + 1 == c->encoder_layers;
        if (apart)
            cgs_vit_layer_forward_apart(t, &m->encoder[i], &x, &cls, c->encoder_heads, VIT_EPS,
                                        last);
        else
            x = cgs_vit_layer_forward(t, &m->encoder[i], x, c->encoder_heads, VIT_EPS, last);
    }
    /* A latent is one row per image of what so many tokens were computed for: its head is f32 in
     * any case. */
    cgs_dtype act = cgs_tape_set_act(t, CGS_F32);
    cls = norm(t, apart ? cls : x, &m->final_norm, VIT_EPS);
    int dim[2] = {cls->dim[0], c->width};
    cgs_tensor *z = mlp_bn(t, &m->projector, cgs_reshape(t, cls, 2, dim), training);
    cgs_tape_set_act(t, act);
    return z;
}

/* ---- predictor ---------------------------------------------------------------------
 * Rollouts feed predictions back, so errors add up: everything between two matrix products
 * is kept in f32, and only what enters a large product is rounded. */

cgs_tensor *cgs_lewm_embed_actions(cgs_tape *t, cgs_lewm *m, cgs_tensor *actions,
                                   cgs_tensor **embedding) {
    cgs_tensor *h = affine_f32(t, affine_f32(t, actions, &m->action_conv), &m->action_in);
    cgs_tensor *c = affine_f32(t, cgs_activate_f32(t, h, CGS_SILU), &m->action_out);
    if (embedding) *embedding = c;
    return cgs_activate(t, c, CGS_SILU);
}

cgs_conditioning cgs_lewm_condition(cgs_tape *t, cgs_lewm *m, cgs_tensor *actions,
                                    cgs_tensor **embedding) {
    cgs_tensor *s = cgs_lewm_embed_actions(t, m, actions, embedding);
    cgs_conditioning all = {{0}};
    for (int i = 0; i < m->config.predictor_layers; i++)
        all.modulation[i] = affine_f32(t, s, &m->predictor[i].ada);
    return all;
}

/* slices of a modulation, D numbers each: shift, scale and gate of attention, then of the MLP */
enum { SHIFT1, SCALE1, GATE1, SHIFT2, SCALE2, GATE2 };

/* each dropout site of the model draws from its own stream */
static uint64_t site(const cgs_lewm *m, int layer, int which) {
    return cgs_rng_stream(m->dropout_seed, CGS_STREAM_DROPOUT, (uint64_t)(4 * layer + which)).key;
}

/* One transformer layer over the tokens x, of which the first has position t0 in its window.
 * past: the KV cache, one entry per layer, which holds qkv of the window's earlier tokens while
 * it grows, x being the new tokens only; or NULL.  last: only the last token is needed after
 * this layer. */
static cgs_tensor *predictor_layer(cgs_tape *t, cgs_lewm *m, int i, cgs_tensor *x, cgs_tensor *mod,
                                   int t0, bool training, cgs_tensor **past, bool last) {
    cgs_predictor_layer *l = &m->predictor[i];
    int D = m->config.width, n = last ? 1 : x->dim[1];
    float p = training ? m->config.dropout : 0;

    cgs_tensor *u = cgs_layernorm(t, x, NULL, NULL, ADA_EPS);
    u = cgs_modulate(t, u, mod, SHIFT1 * D, SCALE1 * D, t0);
    cgs_tensor *qkv = cgs_linear_f32(t, norm(t, u, &l->attn_norm, NORM_EPS), &l->qkv, NULL);
    if (past) qkv = past[i] = past[i] ? cgs_join(t, past[i], qkv) : qkv;
    cgs_tensor *a = cgs_attention(t, qkv, m->config.predictor_heads, true, 1, p, site(m, i, 0));
    a = cgs_take(t, a, a->dim[1] - n, n);
    t0 += x->dim[1] - n;
    x = cgs_take(t, x, x->dim[1] - n, n);
    a = cgs_dropout(t, affine_f32(t, a, &l->attn_out), p, site(m, i, 1));
    x = cgs_gate_add(t, x, a, mod, GATE1 * D, t0);

    cgs_tensor *v = cgs_layernorm(t, x, NULL, NULL, ADA_EPS);
    v = cgs_modulate(t, v, mod, SHIFT2 * D, SCALE2 * D, t0);
    cgs_tensor *h = affine_f32(t, norm(t, v, &l->mlp_norm, NORM_EPS), &l->mlp_in);
    h = cgs_dropout(t, cgs_activate(t, h, CGS_GELU), p, site(m, i, 2));
    h = cgs_dropout(t, affine_f32(t, h, &l->mlp_out), p, site(m, i, 3));
    return cgs_gate_add(t, x, h, mod, GATE2 * D, t0);
}

static cgs_tensor *predict(cgs_tape *t, cgs_lewm *m, cgs_tensor *z, const cgs_conditioning *c,
                           int t0, bool last_only, bool training, cgs_tensor **past) {
    cgs_tensor *x = cgs_add_pos(t, z, &m->pred_pos);
    int layers = m->config.predictor_layers;
    if (past && past[0]) { /* all tokens but the newest are in the cache already */
        t0 += x->dim[1] - 1;
        x = cgs_take(t, x, x->dim[1] - 1, 1);
    }
    for (int i = 0; i < layers; i++)
        x = predictor_layer(t, m, i, x, c->modulation[i], t0, training, past,
                            last_only && i + 1 == layers);
    cgs_dtype act = cgs_tape_act(t);
    if (class_apart(t, m)) cgs_tape_set_act(t, CGS_F32);
    x = norm(t, x, &m->pred_norm, NORM_EPS);
    int B = x->dim[0], T = x->dim[1], D = m->config.width;
    int rows[2] = {B * T, D}, tokens[3] = {B, T, D};
    x = mlp_bn(t, &m->pred_proj, cgs_reshape(t, x, 2, rows), training);
    cgs_tape_set_act(t, act);
    return cgs_reshape(t, x, 3, tokens);
}

cgs_tensor *cgs_lewm_predict(cgs_tape *t, cgs_lewm *m, cgs_tensor *z, const cgs_conditioning *c,
                             int t0, bool last_only, bool training) {
    return predict(t, m, z, c, t0, last_only, training, NULL);
}

/* Feeds predictions back: frames[s] is predicted from the last N of context and predictions.
 * While the window grows, a token keeps its position and sees the same tokens as before, so
 * its keys and values can be cached.  Once it slides, positions restart and nothing above the
 * latents can be used again. */
void cgs_lewm_rollout(cgs_tape *t, cgs_lewm *m, cgs_tensor *z, cgs_tensor *actions,
                      cgs_tensor **frames, int H) {
    cgs_conditioning c = cgs_lewm_condition(t, m, actions, NULL);
    cgs_tensor *past[64] = {0}, *window = z;
    int C = z->dim[1], N = m->config.history;
    for (int s = 0; s < H; s++) {
        int seen = C + s, w = seen < N ? seen : N;
        window = cgs_take(t, window, window->dim[1] - w, w);
        frames[s] = predict(t, m, window, &c, seen - w, true, false, seen <= N ? past : NULL);
        if (s + 1 < H) window = cgs_join(t, window, frames[s]);
    }
}

/* ---- as a model -------------------------------------------------------------------- */

static void destroy(cgs_model *m) { cgs_lewm_destroy((cgs_lewm *)m); }

static cgs_tensor *encode(cgs_tape *t, cgs_model *m, cgs_tensor *frames, cgs_tensor *proprio) {
    (void)proprio; /* it sees only images */
    return cgs_lewm_encode(t, (cgs_lewm *)m, frames, false);
}

static void rollout(cgs_tape *t, cgs_model *m, cgs_tensor *z, cgs_tensor *actions,
                    cgs_tensor **frames, int H) {
    cgs_lewm_rollout(t, (cgs_lewm *)m, z, actions, frames, H);
}

static cgs_compared compare(cgs_tape *t, cgs_model *m, cgs_tensor *z) {
    (void)t;
    (void)m;
    return (cgs_compared){.count = 1, .part = {z}, .weight = {1}};
}

const cgs_model_class cgs_lewm_class = {"lewm", destroy, encode, rollout, compare};

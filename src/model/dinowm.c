/* dinowm.c - the whole forward pass of the world model on frozen features.
 *
 * Columns are split and concatenated with take and join on (rows, columns, 1): a batch element of
 * those operations is then one token. */
#include "model/dinowm.h"

#include <stdlib.h>

#include "core/rng.h"

#define EPS 1e-5f
#define DIM(...) ((const int[]){__VA_ARGS__})

static cgs_tensor *norm(cgs_tape *t, cgs_tensor *x, cgs_affine *a) {
    return cgs_layernorm(t, x, &a->w, &a->b, EPS);
}
static cgs_tensor *norm_f32(cgs_tape *t, cgs_tensor *x, cgs_affine *a) {
    return cgs_layernorm_f32(t, x, &a->w, &a->b, EPS);
}
static cgs_tensor *affine(cgs_tape *t, cgs_tensor *x, cgs_affine *a) {
    return cgs_linear(t, x, &a->w, &a->b);
}
static cgs_tensor *affine_f32(cgs_tape *t, cgs_tensor *x, cgs_affine *a) {
    return cgs_linear_f32(t, x, &a->w, &a->b);
}

/* columns first .. first+n-1 of every `width` numbers: (rows, n, 1) */
static cgs_tensor *columns(cgs_tape *t, cgs_tensor *x, int width, int first, int n) {
    int rows = (int)(cgs_numel(x) / (size_t)width);
    return cgs_take(t, cgs_reshape(t, x, 3, DIM(rows, width, 1)), first, n);
}

/* x (rows, a) beside y (rows, b): (rows, a + b, 1) */
static cgs_tensor *beside(cgs_tape *t, cgs_tensor *x, int a, cgs_tensor *y, int b) {
    int rows = (int)(cgs_numel(x) / (size_t)a);
    return cgs_join(t, cgs_reshape(t, x, 3, DIM(rows, a, 1)),
                    cgs_reshape(t, y, 3, DIM(rows, b, 1)));
}

/* ---- frames ------------------------------------------------------------------------ */

cgs_tensor *cgs_dinowm_features(cgs_tape *t, cgs_dinowm *m, cgs_tensor *frames) {
    bool patch = cgs_dinowm_is_patch(&m->config);
    cgs_tensor *x = cgs_backbone_tokens(t, m->backbone, frames, !patch);
    return patch ? cgs_take(t, x, 1, x->dim[1] - 1) : x;
}

cgs_tensor *cgs_dinowm_project(cgs_tape *t, cgs_dinowm *m, cgs_tensor *features) {
    const cgs_dinowm_config *c = &m->config;
    int F = features->dim[0], P = cgs_dinowm_tokens(c), C = cgs_dinowm_channels(c);
    if (!cgs_dinowm_is_patch(c)) {
        cgs_tensor *x =
            affine_f32(t, cgs_reshape(t, features, 2, DIM(F, c->features)), &m->adapter);
        return cgs_reshape(t, x, 3, DIM(F, 1, C));
    }
    /* a convolution is a product of each cell's surroundings */
    cgs_tensor *x = affine_f32(t, cgs_unfold(t, features), &m->conv[0]);
    x = cgs_activate(t, norm_f32(t, x, &m->conv_norm[0]), CGS_RELU);
    x = affine_f32(t, cgs_unfold(t, cgs_reshape(t, x, 3, DIM(F, P, c->hidden))), &m->conv[1]);
    return cgs_reshape(t, norm_f32(t, x, &m->conv_norm[1]), 3, DIM(F, P, C));
}

cgs_tensor *cgs_dinowm_aggregate(cgs_tape *t, cgs_dinowm *m, cgs_tensor *visual) {
    int F = visual->dim[0], all = visual->dim[1] * visual->dim[2];
    cgs_tensor *x = cgs_reshape(t, visual, 2, DIM(F, all));
    if (!cgs_dinowm_is_patch(&m->config)) return x;
    x = cgs_activate_f32(t, affine_f32(t, x, &m->aggregate[0]), CGS_RELU);
    x = cgs_activate_f32(t, affine_f32(t, x, &m->aggregate[1]), CGS_RELU);
    return norm_f32(t, affine_f32(t, x, &m->aggregate[2]), &m->aggregate_norm);
}

cgs_tensor *cgs_dinowm_latent(cgs_tape *t, cgs_dinowm *m, cgs_tensor *visual, cgs_tensor *proprio) {
    int P = visual->dim[1], C = visual->dim[2], E = m->config.embed, F = visual->dim[0];
    cgs_tensor *e = norm_f32(t, affine_f32(t, proprio, &m->proprio), &m->proprio_norm);
    cgs_tensor *z = beside(t, visual, C, cgs_repeat(t, e, P), E);
    return cgs_reshape(t, z, 2, DIM(F, P * (C + E)));
}

/* ---- predictor --------------------------------------------------------------------- */

/* actions (B, T, block) -> (B, T, E) */
static cgs_tensor *embed_actions(cgs_tape *t, cgs_dinowm *m, cgs_tensor *actions) {
    int B = actions->dim[0], T = actions->dim[1];
    cgs_tensor *a = cgs_reshape(t, actions, 2, DIM(B * T, actions->dim[2]));
    a = norm_f32(t, affine_f32(t, a, &m->action), &m->action_norm);
    return cgs_reshape(t, a, 3, DIM(B, T, m->config.embed));
}

/* z (B, T, P*(C+E)), embedded actions (B, T, E) -> tokens (B, T*P, C + 2E) */
static cgs_tensor *with_actions(cgs_tape *t, cgs_dinowm *m, cgs_tensor *z, cgs_tensor *a) {
    const cgs_dinowm_config *c = &m->config;
    int B = z->dim[0], T = z->dim[1], P = cgs_dinowm_tokens(c), E = c->embed;
    int kept = cgs_dinowm_channels(c) + E;
    a = cgs_repeat(t, cgs_reshape(t, a, 2, DIM(B * T, E)), P);
    return cgs_reshape(t, beside(t, z, kept, a, E), 3, DIM(B, T * P, kept + E));
}

cgs_tensor *cgs_dinowm_join(cgs_tape *t, cgs_dinowm *m, cgs_tensor *z, cgs_tensor *actions,
                            int t0) {
    return with_actions(t, m, z, embed_actions(t, m, cgs_take(t, actions, t0, z->dim[1])));
}

cgs_tensor *cgs_dinowm_strip(cgs_tape *t, cgs_dinowm *m, cgs_tensor *tokens) {
    int P = cgs_dinowm_tokens(&m->config), W = tokens->dim[2], kept = W - m->config.embed;
    cgs_tensor *x = columns(t, tokens, W, 0, kept);
    return cgs_reshape(t, x, 3, DIM(tokens->dim[0], tokens->dim[1] / P, P * kept));
}

/* each dropout site of the model draws from its own stream */
static uint64_t site(const cgs_dinowm *m, int layer, int which) {
    return cgs_rng_stream(m->dropout_seed, CGS_STREAM_DROPOUT, (uint64_t)(4 * layer + which)).key;
}

/* past: cache of the normalised tokens of a window's earlier frames while it grows, or NULL; x then
 * has the newest frame only.  It caches them instead of keys and values, which are up to 110 times
 * as wide: recomputing them costs less than moving them.  n: how many of the last tokens are needed
 * after this layer */
static cgs_tensor *predictor_layer(cgs_tape *t, cgs_dinowm *m, int i, cgs_tensor *x,
                                   cgs_tensor **past, int n, bool training) {
    cgs_dinowm_layer *l = &m->layer[i];
    float p = training ? m->config.dropout : 0;
    cgs_tensor *u = norm(t, x, &l->attn_norm);
    if (past) u = past[i] = past[i] ? cgs_join(t, past[i], u) : u;
    cgs_tensor *qkv = cgs_linear(t, u, &l->qkv, NULL);
    cgs_tensor *a = cgs_attention(t, qkv, m->config.predictor_heads, true,
                                  cgs_dinowm_tokens(&m->config), p, site(m, i, 0));
    a = cgs_take(t, a, a->dim[1] - n, n);
    x = cgs_take(t, x, x->dim[1] - n, n);
    a = cgs_dropout(t, affine_f32(t, a, &l->attn_out), p, site(m, i, 1));
    x = cgs_add(t, x, a);
    cgs_tensor *h = affine(t, norm(t, x, &l->mlp_norm), &l->mlp_in);
    h = cgs_dropout(t, cgs_activate(t, h, CGS_GELU), p, site(m, i, 2));
    h = cgs_dropout(t, affine_f32(t, h, &l->mlp_out), p, site(m, i, 3));
    return cgs_add(t, x, h);
}

static cgs_tensor *predict(cgs_tape *t, cgs_dinowm *m, cgs_tensor *tokens, bool last_only,
                           bool training, cgs_tensor **past) {
    cgs_tensor *x = cgs_add_pos(t, tokens, &m->pos);
    int layers = m->config.predictor_layers, P = cgs_dinowm_tokens(&m->config);
    if (past && past[0]) x = cgs_take(t, x, x->dim[1] - P, P); /* all others are cached */
    for (int i = 0; i < layers; i++) {
        int n = last_only && i + 1 == layers ? P : x->dim[1];
        x = predictor_layer(t, m, i, x, past, n, training);
    }
    return norm_f32(t, x, &m->norm);
}

cgs_tensor *cgs_dinowm_predict(cgs_tape *t, cgs_dinowm *m, cgs_tensor *tokens, bool last_only,
                               bool training) {
    return predict(t, m, tokens, last_only, training, NULL);
}

/* ---- as a model -------------------------------------------------------------------- */

static cgs_tensor *encode(cgs_tape *t, cgs_model *base, cgs_tensor *frames, cgs_tensor *proprio) {
    cgs_dinowm *m = cgs_dinowm_of(base);
    cgs_tensor *visual = cgs_dinowm_project(t, m, cgs_dinowm_features(t, m, frames));
    return cgs_dinowm_latent(t, m, visual, proprio);
}

/* While the window grows, a frame keeps its positions and its tokens see the same tokens as before,
 * so the cached ones stay valid.  Once it slides, positions restart at row 0 of the table and
 * nothing above the latents can be reused. */
static void rollout(cgs_tape *t, cgs_model *base, cgs_tensor *z, cgs_tensor *actions,
                    cgs_tensor **frames, int H) {
    cgs_dinowm *m = cgs_dinowm_of(base);
    int C = z->dim[1], N = base->history;
    cgs_tensor *past[64] = {0}, *window = z, *embedded = embed_actions(t, m, actions);
    for (int s = 0; s < H; s++) {
        int seen = C + s, w = seen < N ? seen : N;
        window = cgs_take(t, window, window->dim[1] - w, w);
        cgs_tensor *tokens = with_actions(t, m, window, cgs_take(t, embedded, seen - w, w));
        cgs_tensor *next = predict(t, m, tokens, true, false, seen <= N ? past : NULL);
        frames[s] = cgs_dinowm_strip(t, m, next);
        if (s + 1 < H) window = cgs_join(t, window, frames[s]);
    }
}

/* means over tokens and channels: visual, and proprioception of token 0 */
static cgs_compared compare(cgs_tape *t, cgs_model *base, cgs_tensor *z) {
    cgs_dinowm *m = cgs_dinowm_of(base);
    const cgs_dinowm_config *c = &m->config;
    int P = cgs_dinowm_tokens(c), C = cgs_dinowm_channels(c), E = c->embed, n = (int)cgs_rows(z);
    cgs_compared p = {.count = c->proprio_cost > 0 ? 2 : 1,
                      .weight = {1.0f / (float)(P * C), c->proprio_cost / (float)E}};
    p.part[0] = cgs_reshape(t, columns(t, z, C + E, 0, C), 2, DIM(n, P * C));
    if (p.count > 1) p.part[1] = cgs_reshape(t, columns(t, z, P * (C + E), C, E), 2, DIM(n, E));
    return p;
}

static void destroy(cgs_model *base) {
    cgs_dinowm *m = cgs_dinowm_of(base);
    cgs_backbone_destroy(m->backbone);
    cgs_params_free(&m->params);
    free(m->layer);
    free(m);
}

const cgs_model_class cgs_dinowm_class = {"dinowm", destroy, encode, rollout, compare};

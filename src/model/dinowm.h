/* dinowm.h - a world model on frozen features (DINO-WM with the heads of Temporal Straightening).
 *
 *   pixels  --frozen ViT--> features --projector or adapter--> visual tokens   (F, P, C)
 *   proprio --encoder--> e_p;  actions --encoder--> e_a                        (F, E) each
 *   token of frame t = [visual | e_p | e_a], the latter two the same for all P tokens
 *   (tokens of up to N frames) --predictor, frame-block causal--> tokens of the next frame
 *
 * "patch": P = grid^2 tokens, features through two 3x3 convolutions to C = 8 channels; geometry
 * losses see an aggregation of all tokens.  "cls": P = 1, C = the backbone's width, an adapter
 * that starts as the identity; geometry losses see the token itself.
 *
 * The latent of a frame is its tokens without the action: (P, C + E), flat.  A predicted frame
 * keeps the proprioception that each of its tokens predicts; the cost reads that of token 0. */
#ifndef CGS_MODEL_DINOWM_H
#define CGS_MODEL_DINOWM_H

#include "model/backbone.h"
#include "model/model.h"
#include "model/predictor_config.h"

/* Defaults are those of the paper; what the backbone determines is filled in from its file. */
#define CGS_DINOWM_CONFIG(X)                                                                       \
    X(text, tokens, "patch", 0, 0, "model.tokens", "patch or cls")                                 \
    X(int, image_size, 224, 8, 1024, "model.image_size", "pixels per side of a frame")             \
    X(int, size, 196, 8, 1024, "model.backbone.size", "pixels per side of the backbone's input")   \
    X(text, positions, "hub", 0, 0, "model.backbone.positions",                                    \
      "rule for its position table: hub or huggingface")                                           \
    X(text, pixels, "half", 0, 0, "model.backbone.pixels", "pixel statistics: half or imagenet")   \
    X(int, patch, 14, 1, 64, "model.backbone.patch", "its patch, from its file")                   \
    X(int, features, 384, 8, 4096, "model.backbone.width", "its width, from its file")             \
    X(int, hidden, 192, 1, 4096, "model.projector.hidden", "channels between the convolutions")    \
    X(int, channels, 8, 1, 4096, "model.projector.channels", "channels C of a patch token")        \
    X(int, aggregate_hidden, 512, 1, 16384, "model.aggregate.hidden",                              \
      "hidden width of the aggregation head")                                                      \
    X(int, aggregate, 128, 2, 4096, "model.aggregate.width",                                       \
      "width of its output, for geometry losses")                                                  \
    X(int, embed, 10, 1, 256, "model.embed", "width E of action and proprioception in a token")    \
    CGS_PREDICTOR_CONFIG(X)                                                                        \
    X(int, proprio_dim, 4, 1, 64, "model.proprio_dim", "numbers of proprioception")                \
    X(float, proprio_cost, 1, 0, 1000, "model.proprio_cost",                                       \
      "weight of proprioception in the planner's cost")

typedef struct cgs_dinowm_config {
    CGS_CONFIG_STRUCT(CGS_DINOWM_CONFIG)
} cgs_dinowm_config;

extern const cgs_field cgs_dinowm_fields[];
extern const int cgs_dinowm_field_count;

/* name: "paper", or "small" (64x64 images, a backbone of patch 8, for two CPU cores). */
cgs_status cgs_dinowm_preset(cgs_dinowm_config *c, const char *name);
cgs_status cgs_dinowm_check(const cgs_dinowm_config *c);
/* The preprocessing that the configuration names. */
cgs_status cgs_dinowm_view(const cgs_dinowm_config *c, cgs_backbone_view *v);

static inline bool cgs_dinowm_is_patch(const cgs_dinowm_config *c) { return c->tokens.s[0] == 'p'; }
static inline int cgs_dinowm_tokens(const cgs_dinowm_config *c) { /* P */
    int side = c->size / c->patch;
    return cgs_dinowm_is_patch(c) ? side * side : 1;
}
static inline int cgs_dinowm_channels(const cgs_dinowm_config *c) { /* C */
    return cgs_dinowm_is_patch(c) ? c->channels : c->features;
}

typedef struct cgs_dinowm_layer {
    cgs_affine attn_norm, attn_out, mlp_norm, mlp_in, mlp_out;
    cgs_tensor qkv;
} cgs_dinowm_layer;

typedef struct cgs_dinowm {
    cgs_model base;
    cgs_dinowm_config config;
    cgs_params params;      /* the backbone has its own */
    cgs_backbone *backbone; /* may be NULL: features can come from a file */
    uint64_t dropout_seed;
    size_t heads_end; /* elements of params that belong to projector, adapter and aggregation */

    cgs_affine adapter;                      /* cls   */
    cgs_affine conv[2], conv_norm[2];        /* patch */
    cgs_affine aggregate[3], aggregate_norm; /* patch */
    cgs_affine action, action_norm, proprio, proprio_norm;
    cgs_tensor pos;          /* (N*P, W) */
    cgs_dinowm_layer *layer; /* (predictor_layers) */
    cgs_affine norm;
} cgs_dinowm;

extern const cgs_model_class cgs_dinowm_class;

/* The model owns the backbone once it is created.  training: with gradients, moments and dropout.
 */
cgs_status cgs_dinowm_create(cgs_dinowm **out, const cgs_dinowm_config *c, cgs_backbone *backbone,
                             cgs_device *d, bool training);
static inline cgs_dinowm *cgs_dinowm_of(cgs_model *m) { return (cgs_dinowm *)m; }

/* The model's input features, (F, P, features), of frames (F, S, S, 3). */
cgs_tensor *cgs_dinowm_features(cgs_tape *t, cgs_dinowm *m, cgs_tensor *frames);
/* features (F, P, features) -> visual tokens (F, P, C), f32 */
cgs_tensor *cgs_dinowm_project(cgs_tape *t, cgs_dinowm *m, cgs_tensor *features);
/* visual tokens (F, P, C) -> the representation for geometry losses, (F, width) */
cgs_tensor *cgs_dinowm_aggregate(cgs_tape *t, cgs_dinowm *m, cgs_tensor *visual);
/* visual (F, P, C), proprio (F, proprio_dim) -> latents (F, P * (C + E)) */
cgs_tensor *cgs_dinowm_latent(cgs_tape *t, cgs_dinowm *m, cgs_tensor *visual, cgs_tensor *proprio);
/* z (B, T, P*(C+E)), actions (B, T, block) from row t0 on -> tokens (B, T*P, C + 2E) */
cgs_tensor *cgs_dinowm_join(cgs_tape *t, cgs_dinowm *m, cgs_tensor *z, cgs_tensor *actions, int t0);
/* tokens (B, T*P, C + 2E), T <= history, to the same of the next frame; last_only: of the last
 * frame's tokens alone, (B, P, C + 2E) */
cgs_tensor *cgs_dinowm_predict(cgs_tape *t, cgs_dinowm *m, cgs_tensor *tokens, bool last_only,
                               bool training);
/* tokens (B, n*P, C + 2E) -> latents (B, n, P*(C+E)): the action channels are dropped */
cgs_tensor *cgs_dinowm_strip(cgs_tape *t, cgs_dinowm *m, cgs_tensor *tokens);

#endif /* CGS_MODEL_DINOWM_H */

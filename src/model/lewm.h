/* lewm.h - LeWM: encoder, projector, action encoder, predictor.
 *
 *   pixels  --ViT--> CLS --projector--> z            (F, D)
 *   actions --action encoder----------> c            (B, T, D)
 *   (z, c)  --predictor, causal, AdaLN-zero--> pred_proj--> zhat, zhat_t predicts z_{t+1}
 *
 * The functions below record on a tape; they are the only definition of the model, for training,
 * evaluation, planning and Jacobians, on every device. */
#ifndef CGS_MODEL_LEWM_H
#define CGS_MODEL_LEWM_H

#include "core/config.h"
#include "model/model.h"
#include "model/predictor_config.h"
#include "model/vit.h"

/* Defaults are the published model.  Latents are as wide as the encoder. */
#define CGS_LEWM_CONFIG(X)                                                                         \
    X(int, image_size, 224, 8, 1024, "model.image_size", "pixels per side of a frame")             \
    X(int, patch, 14, 1, 64, "model.patch", "pixels per side of a patch")                          \
    X(int, width, 192, 8, 4096, "model.width", "width D of tokens and latents")                    \
    X(int, encoder_layers, 12, 1, 64, "model.encoder.layers", "encoder layers")                    \
    X(int, encoder_heads, 3, 1, 64, "model.encoder.heads", "attention heads of the encoder")       \
    X(int, encoder_mlp, 768, 8, 16384, "model.encoder.mlp", "hidden width of encoder MLPs")        \
    X(int, class_bits, 16, 16, 32, "model.encoder.class_bits",                                     \
      "precision of the class token and pred_proj where activations are bf16: 16 or 32")           \
    X(int, projector_hidden, 2048, 8, 16384, "model.projector.hidden",                             \
      "hidden width of projector and pred_proj")                                                   \
    CGS_PREDICTOR_CONFIG(X)                                                                        \
    X(int, action_smooth, 10, 1, 256, "model.action.smooth", "width after the action convolution") \
    X(int, action_hidden, 768, 8, 16384, "model.action.hidden", "hidden width of the action MLP")

typedef struct cgs_lewm_config {
    CGS_CONFIG_STRUCT(CGS_LEWM_CONFIG)
} cgs_lewm_config;

extern const cgs_field cgs_lewm_fields[];
extern const int cgs_lewm_field_count;

/* name: "paper" or "small" (64x64 images, 1.2 M parameters, for two CPU cores). */
cgs_status cgs_lewm_preset(cgs_lewm_config *c, const char *name);
/* Checks that the sizes fit each other; one sentence on the first that does not. */
cgs_status cgs_lewm_check(const cgs_lewm_config *c);
static inline int cgs_lewm_action_block(const cgs_lewm_config *c) {
    return c->action_dim * c->frameskip;
}

typedef struct cgs_mlp_bn { /* linear, batch norm, GELU, linear */
    cgs_affine in, norm, out;
    cgs_tensor running_mean, running_var;
} cgs_mlp_bn;

typedef struct cgs_predictor_layer {
    cgs_affine ada, attn_norm, attn_out, mlp_norm, mlp_in, mlp_out;
    cgs_tensor qkv;
} cgs_predictor_layer;

typedef struct cgs_lewm {
    cgs_model base;
    cgs_lewm_config config;
    cgs_params params;
    uint64_t dropout_seed;

    /* encoder */
    cgs_tensor cls, pos;
    cgs_affine patch, final_norm;
    cgs_vit_layer *encoder; /* (encoder_layers) */
    cgs_mlp_bn projector, pred_proj;
    /* action encoder */
    cgs_affine action_conv, action_in, action_out;
    /* predictor */
    cgs_tensor pred_pos;
    cgs_affine pred_norm;
    cgs_predictor_layer *predictor; /* (predictor_layers) */
} cgs_lewm;

/* layer-norm epsilons of the encoder, and of the predictor, modulated and affine */
#define CGS_LEWM_VIT_EPS 1e-12f
#define CGS_LEWM_ADA_EPS 1e-6f
#define CGS_LEWM_NORM_EPS 1e-5f

extern const float cgs_image_mean[3], cgs_image_std[3];

extern const cgs_model_class cgs_lewm_class;

/* training: with gradients, moments and dropout.  Weights are zero until initialised
 * or loaded.  The device must outlive the model. */
cgs_status cgs_lewm_create(cgs_lewm **out, const cgs_lewm_config *c, cgs_device *d, bool training);
void cgs_lewm_destroy(cgs_lewm *m);

/* frames (F, S, S, 3) u8 -> z (F, D).  training: batch statistics in the projector. */
cgs_tensor *cgs_lewm_encode(cgs_tape *t, cgs_lewm *m, cgs_tensor *frames, bool training);

/* The predictor's conditioning on actions: one modulation (B, T, 6D) per layer.  It depends only on
 * the actions, so a planner computes it once for all windows. */
typedef struct cgs_conditioning {
    cgs_tensor *modulation[64];
} cgs_conditioning;
/* The input of the modulations' linear layers: SiLU of the actions' embedding, (B, T, D). actions
 * (B, T, frameskip * action_dim), standardised; embedding: c (B, T, D), or NULL. */
cgs_tensor *cgs_lewm_embed_actions(cgs_tape *t, cgs_lewm *m, cgs_tensor *actions,
                                   cgs_tensor **embedding);
cgs_conditioning cgs_lewm_condition(cgs_tape *t, cgs_lewm *m, cgs_tensor *actions,
                                    cgs_tensor **embedding);

/* z (B, T, D), T <= history; token (b, i) is conditioned by row t0 + i.
 * Returns zhat (B, T, D), or only the last token's (B, 1, D). */
cgs_tensor *cgs_lewm_predict(cgs_tape *t, cgs_lewm *m, cgs_tensor *z, const cgs_conditioning *c,
                             int t0, bool last_only, bool training);

/* z (B, C, D) context frames, actions (B, C - 1 + H, d_a): the action blocks that leave each frame,
 * executed ones first.  Returns the H predicted latents, each (B, 1, D), in frames[]. */
void cgs_lewm_rollout(cgs_tape *t, cgs_lewm *m, cgs_tensor *z, cgs_tensor *actions,
                      cgs_tensor **frames, int H);

#endif /* CGS_MODEL_LEWM_H */

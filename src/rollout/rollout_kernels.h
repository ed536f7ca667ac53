/* rollout_kernels.h - what a device does for rollouts beyond the operations of a tape: rows of
 * plans in, costs and gradients out, and all steps of a whole predictor at once.
 *
 * Everything is enqueued on the device, in order, and returns at once; pointers are of the
 * device's memory unless a comment says otherwise.  A failure shows at the next sync. */
#ifndef CGS_ROLLOUT_ROLLOUT_KERNELS_H
#define CGS_ROLLOUT_ROLLOUT_KERNELS_H

#include "ops/ops.h"

/* A run of a rollout: row g * part + i stands for candidate k0 + i of episode e0 + g; rows beyond
 * n episodes or `count` candidates repeat the last used one. */
typedef struct cgs_rollout_run {
    int e0, n, k0, count, G, part, K;
    int C, H, A, D;
    const float *plans;           /* (E, K, H, A)                             */
    const float *z, *past, *goal; /* (E, C, D), (E, C-1, A), (E, D)           */
    float *actions;               /* (G*part, C-1+H, A)                       */
    float *z_run, *goal_run;      /* (G, C, D), (G, D), or both NULL: unused  */
} cgs_rollout_run;

/* The action encoder, f32, borrowed: three linear layers, SiLU after the second and the third
 * (cgs_lewm_embed_actions).  pre (rows * T, hidden) and sum (rows * T, D), on the device, hold what
 * entered the SiLUs, for its gradient; NULL where none is asked for. */
typedef struct cgs_action_encoder {
    const cgs_tensor *conv_w, *conv_b, *in_w, *in_b, *out_w, *out_b;
    float *pre, *sum;
} cgs_action_encoder;

typedef struct cgs_predictor_layer_weights {
    const cgs_tensor *attn_norm_w, *attn_norm_b, *qkv, *attn_out_w, *attn_out_b;
    const cgs_tensor *mlp_norm_w, *mlp_norm_b, *mlp_in_w, *mlp_in_b, *mlp_out_w, *mlp_out_b;
} cgs_predictor_layer_weights;

/* The weights of a predictor, to be borrowed until it is closed; they must not change. */
typedef struct cgs_predictor_weights {
    int layers, D, heads, width, mlp, hidden, history;
    float ada_eps, norm_eps, batch_eps;
    const cgs_predictor_layer_weights *layer; /* (layers), host memory */
    const cgs_tensor *pos, *norm_w, *norm_b;
    const cgs_tensor *proj_in_w, *proj_in_b, *proj_norm_w, *proj_norm_b, *proj_mean, *proj_var;
    const cgs_tensor *proj_out_w, *proj_out_b;
} cgs_predictor_weights;

#define CGS_PREDICTOR_LAYERS 8

/* Latents imagined by a predictor and their squared distance to goals. */
typedef struct cgs_predictor_job {
    int rows, K, C, H;       /* rows: plans, K of them per episode */
    const float *z, *goal;   /* (E, C, D), (E, D) */
    const float *modulation; /* (rows, C-1+H, layers, 6D) */
    float *cost;             /* (rows) */
    float *latents;          /* (rows, H, D), or NULL */
    float *gradient;         /* of each row's cost by modulation, or NULL */
} cgs_predictor_job;

/* Where the compared part of a run's last latents goes as residuals: values at .. at+width-1 of R
 * in each row of to (E*K, R), times `root`. */
typedef struct cgs_residual_part {
    const float *now, *then; /* (G*part, stride) of which `width` count, (G, width) */
    float *to;
    int width, stride, at, R;
    float root;
} cgs_residual_part;

typedef struct cgs_rollout_kernels {
    void (*gather)(cgs_device *d, const cgs_rollout_run *r);
    /* to (rows, valid) = weight[0] part[0] + weight[1] part[1] of the first `valid` of every
     * `run` values; to's rows are `stride` apart.  part[1] may be NULL. */
    void (*blend)(cgs_device *d, float *to, const float *const part[2], const float weight[2],
                  int rows, int run, int valid, int stride);
    /* root (now - then) of a run */
    void (*residuals)(cgs_device *d, const cgs_rollout_run *r, const cgs_residual_part *p);
    /* to (valid, n) = factor * the last n of the T values in each row of from (rows, T) */
    void (*tails)(cgs_device *d, float *to, const float *from, int valid, int T, int n,
                  float factor);

    /* The action encoder of the plans of a run, from r->plans and r->past alone: s (n * part,
     * C-1+H, D) in bf16.  back: from its gradient ds to that of the plans' actions, grad (n * part,
     * H, A), after an embed of the same run.  fit: whether there is code for these sizes. */
    bool (*actions_fit)(const cgs_device *d, const cgs_action_encoder *e, int A);
    void (*actions_embed)(cgs_device *d, const cgs_action_encoder *e, const cgs_rollout_run *r,
                          uint16_t *s);
    void (*actions_back)(cgs_device *d, const cgs_action_encoder *e, const cgs_rollout_run *r,
                         const uint16_t *ds, float *grad);

    /* *out is NULL where the device has no fused form for these sizes.  rows: of the largest job;
     * which kernels run follows from it, never from the rows of a job, so that the bits of a row
     * do not depend on how many others a job has.  gradient: of jobs with this many steps, 0: no
     * job asks for one. */
    cgs_status (*predictor_open)(cgs_device *d, void **out, const cgs_predictor_weights *w,
                                 int rows, int gradient);
    void (*predictor_run)(cgs_device *d, void *p, const cgs_predictor_job *j);
    void (*predictor_close)(cgs_device *d, void *p);
} cgs_rollout_kernels;

extern const cgs_rollout_kernels cgs_cuda_rollout_kernels; /* in builds with CUDA */

/* Those of a device; NULL where rollouts run as tapes alone. */
const cgs_rollout_kernels *cgs_rollout_kernels_of(const cgs_device *d);

#endif /* CGS_ROLLOUT_ROLLOUT_KERNELS_H */

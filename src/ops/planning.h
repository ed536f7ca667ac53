/* planning.h - what a device may offer to planners beyond single operations: the arithmetic of
 * their iterations, programs that run without the host, and whole rollouts of a predictor.
 *
 * Everything here is enqueued on the device, in order, and returns at once; pointers are of the
 * device's memory unless a comment says otherwise.  A failure shows at the next sync. */
#ifndef CGS_OPS_PLANNING_H
#define CGS_OPS_PLANNING_H

#include "ops/ops.h"

/* The state of a solve.  n = H * A values in a plan.  Only what its planner uses is set. */
typedef struct cgs_plan_state {
    int E, K, n, elites;
    float tau;
    uint64_t *turn;         /* (E) iterations made                                        */
    const uint64_t *stream; /* (E) key of the episode's noise                             */
    const uint64_t *solve;  /* (E) number of the solve                                    */
    const double *rates;    /* (iterations, 3) gd: rate, and Adam's two corrections       */
    float *mean, *spread;   /* (E, n) the proposal, or gd's iterate                       */
    float *plans, *cost;    /* (E, K, n), (E, K); gd: plans is mean, cost (E)             */
    float *grad, *m, *v;    /* (E, n) gd's gradient and moments                           */
    float *best_plan;       /* (E, n) lowest cost among all scored                        */
    float *best_cost;       /* (E)                                                        */
    float *low, *average;   /* (iterations, E) history of costs                           */
    int *bad;               /* (E, 2) 1 + the first iteration with a value that is not finite, and
                             * its candidate, or -1 - the value of a gradient; 0: none    */
    float *bad_value;       /* (E)                                                        */
} cgs_plan_state;

/* A run of a rollout: row g * part + i stands for candidate k0 + i of episode e0 + g; rows beyond
 * n episodes or `count` candidates repeat the last used one. */
typedef struct cgs_plan_run {
    int e0, n, k0, count, G, part, K;
    int C, H, A, D;
    const float *plans;           /* (E, K, H, A)                                */
    const float *z, *past, *goal; /* (E, C, D), (E, C-1, A), (E, D)              */
    float *actions;               /* (G*part, C-1+H, A)                          */
    float *z_run, *goal_run;      /* (G, C, D), (G, D), or both NULL: not wanted */
} cgs_plan_run;

typedef struct cgs_predictor_block {
    const cgs_tensor *attn_norm_w, *attn_norm_b, *qkv, *attn_out_w, *attn_out_b;
    const cgs_tensor *mlp_norm_w, *mlp_norm_b, *mlp_in_w, *mlp_in_b, *mlp_out_w, *mlp_out_b;
} cgs_predictor_block;

/* The weights of a predictor, to be borrowed until it is closed; they must not change. */
typedef struct cgs_predictor_weights {
    int layers, D, heads, width, mlp, hidden, history;
    float ada_eps, norm_eps, batch_eps;
    const cgs_predictor_block *block; /* (layers), host memory */
    const cgs_tensor *pos, *norm_w, *norm_b;
    const cgs_tensor *proj_in_w, *proj_in_b, *proj_norm_w, *proj_norm_b, *proj_mean, *proj_var;
    const cgs_tensor *proj_out_w, *proj_out_b;
} cgs_predictor_weights;

#define CGS_PREDICTOR_LAYERS 8

/* Frames imagined by a predictor and their squared distance to goals. */
typedef struct cgs_predictor_job {
    int rows, K, C, H;       /* rows: plans, K per episode */
    const float *z, *goal;   /* (E, C, D), (E, D) */
    const float *modulation; /* (rows, C-1+H, layers, 6D) */
    float *cost;             /* (rows) */
    float *frames;           /* (rows, H, D), or NULL */
    float *gradient;         /* of each row's cost by modulation, or NULL */
} cgs_predictor_job;

typedef struct cgs_planning {
    /* Remembers what calls(ctx) enqueues instead of running it, and runs it as a whole. */
    cgs_status (*record)(cgs_device *d, void **program, void (*calls)(void *), void *ctx);
    cgs_status (*launch)(cgs_device *d, void *program);
    void (*drop)(cgs_device *d, void *program);
    /* Changes whenever addresses that programs hold have moved. */
    unsigned (*moved)(const cgs_device *d);

    int most_candidates; /* K, at most */
    void (*sample)(cgs_device *d, const cgs_plan_state *s);
    /* check costs, note the best, move the proposal, count the iteration */
    void (*refit)(cgs_device *d, const cgs_plan_state *s);
    void (*reweight)(cgs_device *d, const cgs_plan_state *s);
    void (*adam)(cgs_device *d, const cgs_plan_state *s);

    void (*gather)(cgs_device *d, const cgs_plan_run *r);
    /* to (rows, valid) = weight[0] part[0] + weight[1] part[1] of the first `valid` of every
     * `run` values; to's rows are `stride` apart.  part[1] may be NULL. */
    void (*blend)(cgs_device *d, float *to, const float *const part[2], const float weight[2],
                  int rows, int run, int valid, int stride);
    /* to (valid, n) = factor * the last n of the T values in each row of from (rows, T) */
    void (*tails)(cgs_device *d, float *to, const float *from, int valid, int T, int n,
                  float factor);

    /* *out is NULL where the device has no fused form for these sizes.  gradient: of jobs with
     * this many steps, 0: no job wants one. */
    cgs_status (*predictor_open)(cgs_device *d, void **out, const cgs_predictor_weights *w,
                                 int rows, int gradient);
    void (*predictor_run)(cgs_device *d, void *p, const cgs_predictor_job *j);
    void (*predictor_close)(cgs_device *d, void *p);
} cgs_planning;

#endif /* CGS_OPS_PLANNING_H */

/* rollout_internal.h - a rollout, for the files that run it: from the host (rollout.c), and inside
 * graphs of a device (device_rollout.c). */
#ifndef CGS_ROLLOUT_ROLLOUT_INTERNAL_H
#define CGS_ROLLOUT_ROLLOUT_INTERNAL_H

#include "core/arena.h"
#include "rollout/rollout.h"

struct cgs_rollout {
    cgs_rollout_config config;
    int A, D, T; /* T = C - 1 + H action blocks in the list of a row */
    int G, part; /* a run of the tape: episodes, and candidates of each */
    int E;       /* episodes set */
    bool has_goal;
    cgs_rollout_cost_fn fn;
    cgs_rollout_residual_fn residual_fn;
    int own_residuals; /* R of it */
    void *user;

    cgs_tape *tape;
    cgs_tensor *z_in;                  /* (G, C, D)       */
    cgs_tensor *goal_in;               /* (G, D)          */
    cgs_tensor *actions;               /* (G*part, T, A)  */
    int parts;                         /* that are compared with the goal */
    cgs_tensor *cost[CGS_MODEL_PARTS]; /* (G*part) squared distances */
    float weight[CGS_MODEL_PARTS];     /* of them in the cost */
    /* the parts themselves, (G*part, columns) and (G, columns), for residuals */
    cgs_tensor *now[CGS_MODEL_PARTS], *then[CGS_MODEL_PARTS];
    float gradient_scale; /* the gradient of the tape's loss times this is a row's own */
    cgs_tensor **latent;  /* (H) imagined, each (G*part, 1, D) */

    cgs_arena arena;
    float *z, *past, *goal;        /* (episodes, C, D), (episodes, C - 1, A), (episodes, D) */
    float *z_run, *goal_run;       /* of one run: (G, C, D), (G, D) */
    float *list;                   /* (G*part, T, A) action lists of one run, or their gradient */
    float *read;                   /* (G*part, D) one latent of every row, or costs */
    float *term;                   /* (G*part) one part of the costs */
    float *imagined;               /* (part, H, D) of one episode */
    float *parts_now, *parts_then; /* (G*part, D), (G, D) of one part, for residuals */

    float *derivative; /* (G*part, D, n) of one part by the plan, or (G*part, T, A) by lists */
    bool pushes;       /* Jacobians by forward mode; or by reverse mode: a row of the tape for
                        * each value of a residual, all with the same plan */

    struct device_rollout *on; /* for planners that run on the device; NULL: it has none */
};

/* One run of the tape: episodes e0 .. e0+n-1, candidates k0 .. k0+count-1 of each. */
typedef struct rollout_batch {
    int e0, n, k0, count;
} rollout_batch;

/* Writes what a run reads.  plans: (E, K, H, A) */
cgs_status rollout_load(cgs_rollout *r, const rollout_batch *b, const float *plans, int K);
/* Of the run that was just made: costs, in r->read; and residuals, those of an episode K apart. */
cgs_status rollout_read_costs(cgs_rollout *r);
cgs_status rollout_read_residuals(cgs_rollout *r, const rollout_batch *b, int K, float *out);

/* jacobian.c: while the tape is recorded, and when it is finished */
void rollout_declare_jacobian(cgs_rollout *r);
cgs_status rollout_begin_jacobian(cgs_rollout *r);

/* Prepares r->on where the device can plan by itself, and the reverse. */
cgs_status device_rollout_create(cgs_rollout *r, cgs_model *m);
void device_rollout_destroy(cgs_rollout *r);

#endif /* CGS_ROLLOUT_ROLLOUT_INTERNAL_H */

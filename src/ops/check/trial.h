/* trial.h - one operation on its own tape, with everything that a check or a benchmark needs.
 *
 * A case (cases.h) declares the leaves of the operation: inputs, parameters, state. The trial fills
 * them with repeatable random values and closes the tape with a random projection of the result,
 * loss = sum out*weight, so every operation has a scalar to differentiate.  With `twice`, the loss
 * also holds a projection of each leaf, whose gradient arrives first: then the operation must add
 * to gradients instead of overwriting them.
 *
 * Order: create, run (any number of times), read; destroy. */
#ifndef CGS_OPS_CHECK_TRIAL_H
#define CGS_OPS_CHECK_TRIAL_H

#include "ops/tape.h"

typedef enum cgs_fill {
    CGS_FILL_UNIFORM, /* in [low, high)                                    */
    CGS_FILL_AWAY,    /* the same with a random sign: bounded away from zero */
    CGS_FILL_COIN,    /* low or high                                       */
    CGS_FILL_BYTES    /* 0 .. 255                                          */
} cgs_fill;

typedef struct cgs_op_leaf {
    cgs_tensor *x;
    cgs_tensor own; /* a parameter or state: memory outside the tape    */
    bool state;     /* the operation changes it                         */
    cgs_fill fill;
    float low, high;
    float *value;   /* (numel) what was written to it */
    float *tangent; /* (numel, directions) likewise, or NULL */
} cgs_op_leaf;

#define CGS_MAX_LEAVES 6
#define CGS_PROBE_SIZE 0.577 /* rms of the projections' weights, uniform in (-1, 1) */

typedef struct cgs_op_trial {
    cgs_device *device;
    cgs_tape *tape;
    cgs_dtype act;
    int directions;
    cgs_op_leaf leaf[CGS_MAX_LEAVES];
    int leaves;
    cgs_op_leaf probe[CGS_MAX_LEAVES + 1]; /* weights of the projections; [0] is out's */
    int probes;
    cgs_tensor *out;
    const cgs_record *record; /* the operation */
    bool gradient;            /* some leaf wants one */
    cgs_status status;        /* first failure while building */
} cgs_op_trial;

typedef struct cgs_op_case cgs_op_case;

/* coarse: values that bf16 holds exactly, for comparing element types. */
cgs_status cgs_op_trial_create(cgs_op_trial *t, const cgs_op_case *c, cgs_device *d, cgs_dtype act,
                               bool twice, bool coarse);
/* One that pushes tangents along so many random changes of all inputs at once. */
cgs_status cgs_op_trial_create_pushing(cgs_op_trial *t, const cgs_op_case *c, cgs_device *d,
                                       cgs_dtype act, int directions);
void cgs_op_trial_destroy(cgs_op_trial *t);

/* Forward and, if anything wants a gradient, backward. */
cgs_status cgs_op_trial_run(cgs_op_trial *t);
/* Fills results, saved tensors and gradients with NaN, so that an omission shows. */
cgs_status cgs_op_trial_poison(cgs_op_trial *t);

/* ---- for builders of cases --------------------------------------------------- */

/* An input with a gradient, one without, a parameter (f32, outside the tape, with a
 * rounded copy when activations are bf16), and state that the operation changes. */
cgs_tensor *cgs_op_trial_input(cgs_op_trial *t, const char *name, cgs_dtype dtype, float low,
                               float high, cgs_fill fill, int rank, const int *dim);
cgs_tensor *cgs_op_trial_constant(cgs_op_trial *t, const char *name, cgs_dtype dtype, float low,
                                  float high, cgs_fill fill, int rank, const int *dim);
cgs_tensor *cgs_op_trial_parameter(cgs_op_trial *t, const char *name, float low, float high,
                                   int rank, const int *dim);
cgs_tensor *cgs_op_trial_state(cgs_op_trial *t, const char *name, float low, float high, int rank,
                               const int *dim);

#endif /* CGS_OPS_CHECK_TRIAL_H */

/* params.h - the parameters of a model, in flat buffers.
 *
 * A model declares each tensor once, in a function that runs twice: first to measure, then to bind
 * tensors to memory (like core/arena.h).  Trainable values are in one contiguous f32 buffer, with
 * buffers of the same layout for gradients, Adam's moments and a bf16 copy; so the optimiser,
 * clipping and checkpoints treat a whole model as one array.  Statistics that are stored but not
 * trained (batch norm's) are in another.
 *
 * A tensor may consist of several stored parts stacked along its first axis: files have query, key
 * and value separately, matrix products need them as one matrix. */
#ifndef CGS_MODEL_PARAMS_H
#define CGS_MODEL_PARAMS_H

#include "ops/ops.h"

#define CGS_PARAM_NAME 112

typedef enum cgs_init {
    CGS_INIT_ZERO,
    CGS_INIT_ONE,
    CGS_INIT_NORMAL,  /* standard deviation `scale`  */
    CGS_INIT_UNIFORM, /* in +- `scale`              */
    CGS_INIT_IDENTITY
} cgs_init;

typedef struct cgs_param {
    char name[CGS_PARAM_NAME]; /* as in files          */
    int rank, dim[CGS_MAX_RANK];
    cgs_init init;
    float scale;
    bool trainable;
    size_t offset, count; /* into `values` or `statistics` */
} cgs_param;

typedef struct cgs_params {
    cgs_device *device;
    cgs_param *list;
    int count, capacity;
    size_t trainable, stats;                   /* elements, padding included */
    float *values, *grads, *moment1, *moment2; /* (trainable) on the device; the last three
                                                  only when training */
    uint16_t *bf16;                            /* (trainable) rounded copy            */
    float *statistics;                         /* (stats)                             */
    bool bound;
    cgs_status status;
} cgs_params;

/* One stored tensor, named by `fmt`, ... */
void cgs_param_declare(cgs_params *p, cgs_tensor *t, cgs_init init, float scale, int rank,
                       const int *dim, const char *fmt, ...) __attribute__((format(printf, 7, 8)));
/* A statistic: stored, not trained. */
void cgs_param_statistic(cgs_params *p, cgs_tensor *t, cgs_init init, int n, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* Extends a declared tensor by another stored part of the same shape, directly after it. */
void cgs_param_stack(cgs_params *p, cgs_tensor *t, cgs_init init, float scale, int rank,
                     const int *dim, const char *fmt, ...) __attribute__((format(printf, 7, 8)));

/* To be called between the measuring and the binding pass of the declarations. */
cgs_status cgs_params_bind(cgs_params *p, cgs_device *d, bool training);
void cgs_params_free(cgs_params *p);

/* Draws initial values from the `init` stream of a seed. */
cgs_status cgs_params_init(cgs_params *p, uint64_t seed);
/* Refreshes the bf16 copy after the values were changed from outside. */
void cgs_params_round(cgs_params *p);

/* A host copy of all learnable values (trainable), and back: the best ones so far. */
cgs_status cgs_params_keep(const cgs_params *p, float *values);
cgs_status cgs_params_restore(cgs_params *p, const float *values);

/* Number of trainable values, without padding. */
size_t cgs_params_learnable(const cgs_params *p);
const cgs_param *cgs_params_find(const cgs_params *p, const char *name);
/* Host copies of one stored tensor. */
cgs_status cgs_param_read(const cgs_params *p, const cgs_param *e, float *out);
cgs_status cgs_param_write(cgs_params *p, const cgs_param *e, const float *values);
/* A checksum of all values and statistics, to distinguish sets of weights. */
cgs_status cgs_params_checksum(const cgs_params *p, uint64_t *out);
cgs_status cgs_param_read_grad(const cgs_params *p, const cgs_param *e, float *out);

#endif /* CGS_MODEL_PARAMS_H */

/* optimiser.h - one step of AdamW over the flat buffers of a model. */
#ifndef CGS_TRAIN_OPTIMISER_H
#define CGS_TRAIN_OPTIMISER_H

#include "model/params.h"
#include "ops/tape.h"

/* The usual settings: decay of moments 0.9 and 0.999, epsilon 1e-8, no clipping. step: 1 for the
 * first. */
cgs_adamw cgs_adamw_usual(float lr, float weight_decay, uint64_t step);

/* Updates `count` parameters from `first` on.  On a GPU this is only enqueued. */
void cgs_adamw_apply(cgs_params *p, const cgs_adamw *a, size_t first, size_t count);

/* ---- a model in training ----------------------------------------------------------------
 * Adam for all parameters, or Muon for matrices (parameters of two dimensions) and Adam for the
 * rest: embeddings, convolutions, biases, norms. */

typedef struct cgs_group {
    size_t first, count; /* a range of the flat parameters with its own learning rate */
    float lr, weight_decay;
} cgs_group;

enum { CGS_GROUPS = 2 };

typedef struct cgs_optimiser {
    cgs_params *params; /* borrowed */
    bool muon;
    struct cgs_gap {
        size_t first, count;
        int group;
    } * gap; /* (gaps) what Adam is for */
    int gaps;
    /* (matrices) on the device, with their scratch; those of a group follow each other */
    cgs_matrix *matrix;
    float *work;
    int first_matrix[CGS_GROUPS + 1];
} cgs_optimiser;

/* kind: adamw or muon.  group (groups) do not overlap and ascend.  Closes after a failure too. */
cgs_status cgs_optimiser_open(cgs_optimiser *o, cgs_params *p, const char *kind,
                              const cgs_group *group, int groups);
void cgs_optimiser_close(cgs_optimiser *o);

/* a: its lr and weight decay, and those of Muon, are replaced by rate (groups) and the groups'. */
void cgs_optimiser_step(cgs_optimiser *o, cgs_adamw a, const cgs_group *group, const float *rate);

/* Runs the tape backward and updates all parameters of p; returns when that is done. */
cgs_status cgs_descend(cgs_tape *t, cgs_params *p, const cgs_adamw *a);

#endif /* CGS_TRAIN_OPTIMISER_H */

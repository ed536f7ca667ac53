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

/* Runs the tape backward and updates all parameters of p; returns when that is done. */
cgs_status cgs_descend(cgs_tape *t, cgs_params *p, const cgs_adamw *a);

#endif /* CGS_TRAIN_OPTIMISER_H */

/* weight_average.h - the mean of a model's weights over its last updates.
 *
 * Training goes on with weights that jump about with every batch; their mean lies in the middle and
 * is what is validated and stored.  It reaches back a fixed fraction of the updates so far, so that
 * a short run and a long one forget their beginnings alike, and it depends on the update number
 * alone: a resumed run needs nothing but the mean itself, which is the parameters' `averaged`.
 *
 *   cgs_weight_average_open    makes room; fraction 0: there is no mean, and the rest does nothing
 *   cgs_weight_average_add     after every update
 *   cgs_weight_average_take    the model has the mean ...
 *   cgs_weight_average_leave   ... and the weights in training again
 *   cgs_weight_average_close */
#ifndef CGS_TRAIN_WEIGHT_AVERAGE_H
#define CGS_TRAIN_WEIGHT_AVERAGE_H

#include "model/params.h"

typedef struct cgs_weight_average {
    float fraction;
    cgs_params *params; /* borrowed */
    float *training;    /* (trainable) the weights in training while the model has the mean */
    float *mean;        /* (trainable) on its way */
} cgs_weight_average;

/* Closes after a failure too. */
cgs_status cgs_weight_average_open(cgs_weight_average *a, cgs_params *p, float fraction);
void cgs_weight_average_close(cgs_weight_average *a);

/* The weight of the newest of `updates` updates in the mean. */
float cgs_weight_average_newest(float fraction, uint64_t updates);
void cgs_weight_average_add(cgs_weight_average *a, uint64_t updates);

cgs_status cgs_weight_average_take(cgs_weight_average *a);
cgs_status cgs_weight_average_leave(cgs_weight_average *a);

#endif /* CGS_TRAIN_WEIGHT_AVERAGE_H */

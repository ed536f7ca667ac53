/* prediction_error.h - how far a model's predictions are from what was recorded, for the weight
 * between goal and prior in sampled Gauss-Newton (plan.gn.gamma=auto). */
#ifndef CGS_TRAIN_PREDICTION_ERROR_H
#define CGS_TRAIN_PREDICTION_ERROR_H

#include "train/prior_pairs.h"

/* Squared coordinates of errors, and how many there are. */
typedef struct cgs_prediction_errors {
    double square;
    int64_t coordinates;
} cgs_prediction_errors;

/* Adds the errors of E recorded plans (E, H, A) that led from z to goal (E, D).  Only the part of
 * an error counts that plans can cause, as Gauss-Newton sees no other. */
cgs_status cgs_prediction_errors_add(cgs_prediction_errors *sum, const cgs_loaded_model *s,
                                     int horizon, const float *z, const float *goal,
                                     const float *plan, int E);

/* Measures at up to 128 recorded pairs of the validation side, and writes into s->card the variance
 * of the prediction's error and that of plans around the mean action (docs/planning.md). */
cgs_status cgs_prediction_error(cgs_loaded_model *s, const cgs_prior_pairs *m,
                                const cgs_prior_fit_config *c);

#endif /* CGS_TRAIN_PREDICTION_ERROR_H */

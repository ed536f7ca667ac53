/* prediction_error.h - how far a model's predictions are from what was recorded, for the weight
 * between goal and prior in sampled Gauss-Newton (plan.gn.gamma=auto). */
#ifndef CGS_TRAIN_PREDICTION_ERROR_H
#define CGS_TRAIN_PREDICTION_ERROR_H

#include "train/prior_pairs.h"

/* Measures at up to 128 recorded pairs of the validation side, and writes into s->card the variance
 * of the prediction's error and that of plans around the mean action (docs/planning.md). */
cgs_status cgs_prediction_error(cgs_loaded_model *s, const cgs_prior_pairs *m,
                                const cgs_prior_fit_config *c);

#endif /* CGS_TRAIN_PREDICTION_ERROR_H */

/* initial_weights.h - a run that begins with the weights of another model.
 *
 * What has the same name and shape is taken over; the rest (an action encoder for other actions,
 * positions of another image size) keeps the values that a new model begins with, and is named. */
#ifndef CGS_TRAIN_INITIAL_WEIGHTS_H
#define CGS_TRAIN_INITIAL_WEIGHTS_H

#include "train/train.h"

/* path: a model directory or a weight file.  Refused where less than half of the model's weights
 * are there. */
cgs_status cgs_initial_weights(cgs_params *p, const char *path);

/* The last part of a path, whether it ends with slashes or not. */
void cgs_initial_name(const char *path, char *out, size_t size);

#endif /* CGS_TRAIN_INITIAL_WEIGHTS_H */

/* random_model.h - a model directory with random weights, for tests that need some model. */
#ifndef CGS_TESTS_RANDOM_MODEL_H
#define CGS_TESTS_RANDOM_MODEL_H

#include "model/store.h"

/* The small preset.  Training begins with a predictor that ignores actions (AdaLN is zero) and an
 * encoder that hardly distinguishes images; here both matter. */
cgs_status random_model(cgs_lewm **out, cgs_device *d, uint64_t seed);
cgs_status random_model_of(cgs_lewm **out, const cgs_lewm_config *c, cgs_device *d, uint64_t seed);
cgs_status random_model_dir(const char *dir, const char *env, const char *dataset, uint64_t seed);

#endif

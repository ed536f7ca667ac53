/* stored_model.h - the model that the tests of model directories and of weight files store. */
#ifndef CGS_TESTS_STORED_MODEL_H
#define CGS_TESTS_STORED_MODEL_H

#include "model/store.h"

/* A preset with golden weights; the caller destroys it.  Failures fail the running test. */
cgs_lewm *golden_model(const char *preset, int action_dim, cgs_device *d);
/* Fails the running test unless both have the same sizes, weights and statistics. */
void check_same_model(const cgs_lewm *a, const cgs_lewm *b);

#endif /* CGS_TESTS_STORED_MODEL_H */

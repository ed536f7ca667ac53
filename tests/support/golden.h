/* golden.h - the deterministic fill that the golden vectors were computed with:
 * every value is a hash of a tensor's name and a flat index, in double, rounded to f32. */
#ifndef CGS_TESTS_GOLDEN_H
#define CGS_TESTS_GOLDEN_H

#include "model/params.h"

uint32_t golden_bits(const char *name, uint32_t n);
double golden_unit(const char *name, uint32_t n); /* in [-1, 1) */

/* Fills every stored tensor by the rules of its name and rank. */
cgs_status golden_fill_params(cgs_params *p);
/* The same with `other` for a `prefix` of names. */
cgs_status golden_fill_renamed(cgs_params *p, const char *prefix, const char *other);

/* Holds the paper-size model on a backend against the golden numbers; fails the running test.
 * class_bits: model.encoder.class_bits.  tolerance: of everything but what golden_judge.c says of
 * bf16. */
void golden_check(const char *backend, cgs_dtype act, int class_bits, double tolerance);

/* The same for the frozen backbone, its heads and the predictor on its features. */
void golden_dino_check(const char *backend, cgs_dtype act, double tolerance);

#endif /* CGS_TESTS_GOLDEN_H */

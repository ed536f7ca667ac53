/* gpu_errors.h - how far what a GPU computed, got, is from what it should be, want: (n) each. */
#ifndef CGS_TESTS_GPU_ERRORS_H
#define CGS_TESTS_GPU_ERRORS_H

#include <stddef.h>

/* |got - want| / |want| */
double gpu_norm_error(const float *got, const float *want, size_t n);
/* Root mean square of got - want over that of want - its mean: what a planner would see. */
double gpu_spread_error(const float *got, const float *want, int n);

#endif /* CGS_TESTS_GPU_ERRORS_H */

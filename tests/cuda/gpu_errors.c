/* gpu_errors.c - see gpu_errors.h. */
#include "gpu_errors.h"

#include <math.h>

double gpu_norm_error(const float *got, const float *want, size_t n) {
    double error = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        error += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        size += (double)want[i] * want[i];
    }
    return sqrt(error / size);
}

double gpu_spread_error(const float *got, const float *want, int n) {
    double mean = 0, spread = 0, error = 0;
    for (int i = 0; i < n; i++) mean += (double)want[i] / n;
    for (int i = 0; i < n; i++) {
        spread += (want[i] - mean) * (want[i] - mean);
        error += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
    }
    return sqrt(error / spread);
}

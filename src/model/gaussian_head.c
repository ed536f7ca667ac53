/* gaussian_head.c - see gaussian_head.h. */
#include "model/gaussian_head.h"

#include <math.h>
#include <stddef.h>

#define LOWEST (-8.0)
#define HIGHEST 3.0

static double bound_of(double x) { return x < 0 ? LOWEST : HIGHEST; }

double cgs_log_variance(double x) { return bound_of(x) * tanh(x / bound_of(x)); }

/* its derivative, where it has the value v */
static double slope(double x, double v) { return 1 - v / bound_of(x) * (v / bound_of(x)); }

double cgs_gaussian_loss(const float *out, const float *target, int n, double weight,
                         float *gradient) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
        double x = out[n + i], v = cgs_log_variance(x);
        double away = (double)out[i] - target[i], precision = exp(-v);
        sum += 0.5 * (v + away * away * precision);
        if (!gradient) continue;
        gradient[i] = (float)(weight * away * precision);
        gradient[n + i] = (float)(weight * 0.5 * (1 - away * away * precision) * slope(x, v));
    }
    return sum;
}

/* schedule.c - warm-up, cosine, clipping. */
#include "train/schedule.h"

#include <math.h>
#include <string.h>

double cgs_learning_rate(double peak, double warmup, uint64_t n, uint64_t total) {
    const double pi = 3.14159265358979323846;
    double w = floor(warmup * (double)total);
    if (w < 1) w = 1;
    if ((double)n < w) return peak * (double)n / w;
    if (n >= total) return 0;
    return peak * (1 + cos(pi * ((double)n - w) / ((double)total - w))) / 2;
}

double cgs_clip_scale(double norm, double max_norm) {
    double s = max_norm / (norm + 1e-6);
    return s < 1 ? s : 1;
}

cgs_status cgs_schedule_parse(const char *name, bool *constant) {
    *constant = !strcmp(name, "constant");
    if (*constant || !strcmp(name, "cosine")) return CGS_OK;
    return cgs_fail(CGS_EARG, "optim.schedule: \"%.20s\" is not cosine or constant", name);
}

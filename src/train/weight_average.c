/* weight_average.c - see weight_average.h. */
#include "train/weight_average.h"

#include <stdlib.h>

cgs_status cgs_weight_average_open(cgs_weight_average *a, cgs_params *p, float fraction) {
    *a = (cgs_weight_average){.fraction = fraction, .params = p};
    if (fraction <= 0) return CGS_OK;
    size_t bytes = p->trainable * sizeof(float);
    a->training = malloc(bytes);
    a->mean = malloc(bytes);
    if (!a->training || !a->mean)
        return cgs_fail(CGS_ENOMEM, "train.average: no memory for %zu numbers", p->trainable);
    return p->device->ops->alloc(p->device, (void **)&p->averaged, bytes);
}

void cgs_weight_average_close(cgs_weight_average *a) {
    free(a->training);
    free(a->mean);
    *a = (cgs_weight_average){0};
}

float cgs_weight_average_newest(float fraction, uint64_t updates) {
    double reach = (double)fraction * (double)updates;
    return reach > 1 ? (float)(1 / reach) : 1;
}

void cgs_weight_average_add(cgs_weight_average *a, uint64_t updates) {
    cgs_params *p = a->params;
    if (a->fraction <= 0) return;
    float newest = cgs_weight_average_newest(a->fraction, updates);
    p->device->ops->average(p->device, p->averaged, p->values, newest, p->trainable);
}

cgs_status cgs_weight_average_take(cgs_weight_average *a) {
    cgs_params *p = a->params;
    if (a->fraction <= 0) return CGS_OK;
    CGS_TRY(cgs_params_keep(p, a->training));
    CGS_TRY(
        p->device->ops->download(p->device, a->mean, p->averaged, p->trainable * sizeof *a->mean));
    return cgs_params_restore(p, a->mean);
}

cgs_status cgs_weight_average_leave(cgs_weight_average *a) {
    return a->fraction > 0 ? cgs_params_restore(a->params, a->training) : CGS_OK;
}

/* gradient_monitor.h - notices that the gradient of a training grows: clipping hides it from the
 * weights' steps, and the loss shows it thousands of updates later. */
#ifndef CGS_TRAIN_GRADIENT_MONITOR_H
#define CGS_TRAIN_GRADIENT_MONITOR_H

#include <stdbool.h>

/* Moving means of the logarithm of the norm, over some 50 and some 1,000 updates, and the least
 * that the latter has been. */
typedef struct cgs_gradient_monitor {
    double fast, slow, usual;
    long count;
    bool told;
} cgs_gradient_monitor;

/* True once, when the norm has become ten times what was usual. */
bool cgs_gradient_monitor_add(cgs_gradient_monitor *g, double norm);

#endif /* CGS_TRAIN_GRADIENT_MONITOR_H */

/* gradient_monitor.h - detects a growing gradient norm: clipping hides it from the weights' steps,
 * and the loss shows it thousands of updates later. */
#ifndef CGS_TRAIN_GRADIENT_MONITOR_H
#define CGS_TRAIN_GRADIENT_MONITOR_H

#include <stdbool.h>

/* Moving means of the log norm over about 50 and about 1,000 updates, and the minimum of the
 * latter. */
typedef struct cgs_gradient_monitor {
    double fast, slow, usual;
    long count;
    bool told;
} cgs_gradient_monitor;

/* True once, when the norm has reached ten times its usual value. */
bool cgs_gradient_monitor_add(cgs_gradient_monitor *g, double norm);

#endif /* CGS_TRAIN_GRADIENT_MONITOR_H */

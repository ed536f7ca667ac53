/* schedule.h - the learning rate of each update and the global-norm clip. */
#ifndef CGS_TRAIN_SCHEDULE_H
#define CGS_TRAIN_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"

/* Linear warm-up over w = max(1, floor(warmup * total)) updates, then a cosine to zero.
 * n: updates already done.  The first update has rate 0, as upstream. */
double cgs_learning_rate(double peak, double warmup, uint64_t n, uint64_t total);

/* name: "cosine" (the above) or "constant" (the peak throughout); anything else is refused. */
cgs_status cgs_schedule_parse(const char *name, bool *constant);

/* The clipping factor, given the global gradient norm. */
double cgs_clip_scale(double norm, double max_norm);

#endif /* CGS_TRAIN_SCHEDULE_H */

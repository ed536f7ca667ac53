/* schedule.h - the learning rate of each update and the global-norm clip. */
#ifndef CGS_OPTIM_SCHEDULE_H
#define CGS_OPTIM_SCHEDULE_H

#include <stdint.h>

/* Linear warm-up over w = max(1, floor(warmup * total)) updates, then a cosine to zero.
 * n: updates already done.  The first update has rate 0, as upstream. */
double cgs_learning_rate(double peak, double warmup, uint64_t n, uint64_t total);

/* What every gradient is multiplied by, given the norm of all of them together. */
double cgs_clip_scale(double norm, double max_norm);

#endif /* CGS_OPTIM_SCHEDULE_H */

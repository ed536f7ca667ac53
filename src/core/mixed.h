/* mixed.h - a difference of two methods over training seeds and starts.
 *
 * gain[t][s] is what method b gains over method a with training seed t on start s.  Every seed
 * meets the same starts, so the design is crossed, and the model is
 *     gain[t][s] = mu + seed[t] + start[s] + rest[t][s],
 * with independent effects of mean zero.  mu is what a new training seed gains on new starts.  From
 * the mean squares of the two-way table, MS, the interval is mean +- sqrt(h / (seeds starts)) with
 *     h = t(seeds - 1)^2 max(MS_seed, MS_rest) + t(starts - 1)^2 max(MS_start - MS_rest, 0),
 * t being Student's quantiles: exact where seeds dominate, too wide rather than too narrow where
 * they do not (docs/numerics.md has the coverage). */
#ifndef CGS_CORE_MIXED_H
#define CGS_CORE_MIXED_H

#include <stdbool.h>

#include "core/statistics.h"

typedef struct cgs_mixed {
    int seeds, starts;
    bool crossed;             /* every seed met the same starts */
    double difference;        /* mean over seeds and starts */
    cgs_interval starts_only; /* of these very models, over starts */
    /* over training seeds and starts; all of it infinite with one seed */
    cgs_interval interval;
    double ms_seed, ms_start, ms_rest;
    double seed_sd; /* deviation of the effect of a training seed, 0 where none is seen */
} cgs_mixed;

/* gain: (seeds, starts), starts >= 2, seeds >= 1.  Where every seed has starts of its own, as
 * held-out ones are where seeds split their episodes differently, they are no factor of the model:
 * not crossed, MS_start is left out and MS_rest is what differs within a seed. */
cgs_status cgs_mixed_difference(const double *gain, int seeds, int starts, bool crossed,
                                cgs_mixed *out);
/* The p whose interval, at 1 - p, ends at zero; 1 with one seed. */
double cgs_mixed_p(const cgs_mixed *m);

/* Student's t with `freedom` > 0 degrees of freedom, not necessarily whole: the chance to exceed
 * |t| on either side, and the |t| that is exceeded with chance p. */
double cgs_student_p(double t, double freedom);
double cgs_student_t(double p, double freedom);

/* Holm's correction: raises the p values (n) so that each can be compared with the level of the
 * whole family. */
cgs_status cgs_holm(double *p, int n);

#endif /* CGS_CORE_MIXED_H */

/* statistics.h - statistics of a few hundred successes and failures.
 *
 * Intervals are 95 % throughout.  Resampling has its own random stream (CGS_STREAM_STATS), so the
 * same data and seed give the same interval. */
#ifndef CGS_CORE_STATISTICS_H
#define CGS_CORE_STATISTICS_H

#include <stdint.h>

#include "core/status.h"

/* The public header has the types, Wilson's interval and the paired comparison. */

double cgs_mean(const double *x, int n);      /* 0 for n = 0 */
double cgs_sample_sd(const double *x, int n); /* divisor n - 1; 0 for n < 2 */

/* The q-th percentile (0 ... 100) of x (n), n >= 1, linear between order statistics.
 * Sorts x in place. */
double cgs_percentile(double *x, int n, double q);
double cgs_median(double *x, int n);

/* Percentile bootstrap of the mean, or the median, of x (n), n >= 1. */
cgs_status cgs_bootstrap_mean(const double *x, int n, int resamples, uint64_t seed,
                              cgs_interval *out);
cgs_status cgs_bootstrap_median(const double *x, int n, int resamples, uint64_t seed,
                                cgs_interval *out);

/* McNemar's exact p from the two discordant counts: a fair coin's two-sided tail. */
double cgs_mcnemar(int only_a, int only_b);
/* Newcombe's interval (1998, method 10) for the difference of two paired proportions. */
cgs_interval cgs_newcombe(int both, int only_a, int only_b, int neither);

/* Area under s over x by trapezoids, divided by the width of x, so that it has the unit
 * of s.  x: (n) strictly increasing, n >= 2.  s: (n). */
cgs_status cgs_nauc(const double *x, const double *s, int n, double *out);

/* Mean and deviation of each column of the first `fit` rows of x (rows, k).  A column that never
 * changes there gets deviation 1 and so becomes 0.  mean, sd: (k). */
void cgs_column_moments(const double *x, int fit, int k, double *mean, double *sd);

#endif /* CGS_CORE_STATISTICS_H */

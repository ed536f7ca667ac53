/* measured.h - a measured number with its spread, and the ratio of two of them.
 *
 * The spread is the range of at most five parts of the measurement, one after the other.  When
 * nothing has changed, the ranges of two measurements of five parts are disjoint once in 126 times
 * (those between quartiles: once in five).  The spread does not contain what differs between two
 * runs of the program, like a neighbour that was busy during one of them. */
#ifndef CGS_CORE_MEASURED_H
#define CGS_CORE_MEASURED_H

#include <stdbool.h>

typedef struct cgs_measured {
    double value;
    double least, most; /* of the parts */
    int runs;           /* 1: the spread is not known; 0: a count, which has none */
} cgs_measured;

cgs_measured cgs_measured_count(double value);
cgs_measured cgs_measured_once(double value);

/* The q-th percentile (0 ... 100) or the median of x (n), n >= 1, in the order in which they were
 * measured; the spread is that of at most five parts of x.  Sorts x. */
cgs_measured cgs_measured_percentile(double *x, int n, double q);
cgs_measured cgs_measured_median(double *x, int n);

/* The same measurement in another unit: multiplied by a positive factor, or an amount of work
 * divided by it (a rate from a time). */
cgs_measured cgs_measured_times(cgs_measured m, double factor);
cgs_measured cgs_measured_rate(double amount, cgs_measured seconds);

/* now / before, both above 0; the spread is from all pairs of parts. */
cgs_measured cgs_measured_ratio(cgs_measured now, cgs_measured before);
/* Whether a ratio differs from 1 by more than its spread; never where that is not known. */
bool cgs_ratio_differs(cgs_measured ratio);

#endif /* CGS_CORE_MEASURED_H */

/* stats.h - per-channel mean and standard deviation of a column.
 *
 * Rows with a NaN in any channel (the last row of each episode) are left out.
 * Zero-variance rule: a channel whose value never changes gets standard deviation 1,
 * so that standardising maps it to 0; it is marked `constant` and logged. */
#ifndef CGS_DATA_STATS_H
#define CGS_DATA_STATS_H

#include "data/source.h"

#define CGS_STATS_MAX 64

typedef struct cgs_stats {
    int dims;
    int64_t rows;    /* rows counted                  */
    int64_t skipped; /* rows left out because of NaN  */
    double mean[CGS_STATS_MAX];
    double std_unbiased[CGS_STATS_MAX];   /* divisor rows - 1 */
    double std_population[CGS_STATS_MAX]; /* divisor rows     */
    double low[CGS_STATS_MAX], high[CGS_STATS_MAX];
    bool constant[CGS_STATS_MAX];
} cgs_stats;

/* Reads the whole column once.  An infinite value, or no row without NaN, is an error. */
cgs_status cgs_stats_compute(cgs_stats *s, const cgs_source *src, const char *column);

#endif /* CGS_DATA_STATS_H */

/* coverage.h - coverage of a dataset: lengths, actions, movement, contacts. */
#ifndef CGS_COLLECT_COVERAGE_H
#define CGS_COLLECT_COVERAGE_H

#include <stdint.h>

#include "core/status.h"

#define CGS_COVERAGE_SPAN 25 /* rows between a start and its goal in evaluation */

typedef struct cgs_coverage {
    int episodes, shortest, longest; /* rows */
    int64_t rows;
    double mean_length;
    double action_mean[2], action_std[2]; /* of the first two components, population */
    double terminated;                    /* fraction of episodes, or NaN without the column */
    double contact;                       /* fraction of steps with contacts, or NaN */
    /* what moves over CGS_COVERAGE_SPAN rows: the block of PushT and Cube, elsewhere the agent */
    double move_mean, move_median;
    double move_short; /* fraction of moves below the success distance */
    double turn_mean;  /* PushT: radians, else NaN */
} cgs_coverage;

/* env: the id the file was collected with, which defines the meaning of its state; short_move: the
 * distance below which a move counts as short. */
cgs_status cgs_coverage_compute(cgs_coverage *c, const char *path, const char *env,
                                double short_move);

#endif /* CGS_COLLECT_COVERAGE_H */

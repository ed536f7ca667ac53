/* check.h - full validation of a dataset, beyond the index that opening checks. */
#ifndef CGS_DATA_CHECK_H
#define CGS_DATA_CHECK_H

#include "data/dataset.h"

typedef struct cgs_check {
    int64_t frames;  /* decoded */
    int64_t numbers; /* looked at */
    /* Fraction of the variance of x[t+1] - x[t] that a linear function of an action explains, x the
     * first readable of pos_agent, proprio, state, qpos (its first two values): with the action of
     * row t, and with that of row t+1.  NaN when it is undefined. */
    double explained_now, explained_late;
    char column[CGS_COLUMN_NAME]; /* the column that x is */
} cgs_check;

/* Called now and then; returning false stops with CGS_ESTOPPED. */
typedef bool (*cgs_check_progress)(void *user, int64_t rows_done, int64_t rows);

/* Reads every row once.  The first problem found is the failure:
 *   a frame or a number that cannot be read
 *   an action that is not finite before the last row of its episode, or not NaN in it
 *   a NaN or an infinity in a column that describes the state
 *   actions that lie one row late: they explain the step that led to their row, not
 *   the one from it */
cgs_status cgs_dataset_check(cgs_dataset *d, cgs_check *out, cgs_check_progress progress,
                             void *user);

#endif /* CGS_DATA_CHECK_H */

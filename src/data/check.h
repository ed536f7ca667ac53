/* check.h - a dataset read to its end: what training needs (accept.h), and everything else in it.
 */
#ifndef CGS_DATA_CHECK_H
#define CGS_DATA_CHECK_H

#include "data/accept.h"

typedef struct cgs_check {
    int64_t frames;  /* decoded */
    int64_t numbers; /* looked at */
    cgs_accepted accepted;
} cgs_check;

/* Called now and then; returning false stops with CGS_ESTOPPED. */
typedef bool (*cgs_check_progress)(void *user, int64_t rows_done, int64_t rows);

/* Judges a dataset as training does, then reads every row once.  Adds to `found`: a frame or a
 * number that cannot be read is a problem; a NaN or an infinity in a column that describes the
 * state, a column of another length and frames that are all alike are remarks. */
cgs_status cgs_dataset_check(cgs_findings *found, cgs_check *out, cgs_dataset *d,
                             const cgs_needs *needs, cgs_check_progress progress, void *user);

#endif /* CGS_DATA_CHECK_H */

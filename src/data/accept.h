/* accept.h - what a dataset must have to be trained on: the one place that says so.
 *
 * `cgs train` refuses what it refuses, and `cgs data check` prints what it found; docs/your-data.md
 * is the same for people.  Opening a file (dataset.h) has judged its columns and index before. */
#ifndef CGS_DATA_ACCEPT_H
#define CGS_DATA_ACCEPT_H

#include "data/dataset.h"
#include "data/findings.h"

/* What the model wants; 0: anything. */
typedef struct cgs_needs {
    int image_size; /* side of the frames */
    int action_dim;
    int num_steps, frameskip; /* of a window, together 0 or not */
} cgs_needs;

typedef struct cgs_accepted {
    int64_t windows; /* where needs says of how many frames */
    /* Fraction of the variance of x[t+1] - x[t] that a linear function of an action explains, x the
     * first readable of pos_agent, proprio, state, qpos (its first two values): with the action of
     * row t, and with that of row t+1.  NaN when it is undefined. */
    double explained_now, explained_late;
    char column[CGS_COLUMN_NAME]; /* the column that x is */
} cgs_accepted;

#define CGS_MAX_ACTIONS 64 /* channels of an action */

/* Looks at the columns and the lengths, and reads all actions and the column that shows their
 * alignment, but no frame beyond the first.  Adds to `found`; a failure means that a file could not
 * be read or memory ran out, never that there is a problem.
 *
 * Problems: no images, not square or of another size; no actions, of another number, more than 64;
 * no episode as long as a window; an action that is not finite, but for NaN in the last row of an
 * episode; actions that lie one row late (they explain the step that led to their row, not the one
 * from it), unless the file has an attribute `alignment_checked`. */
cgs_status cgs_dataset_accept(cgs_findings *found, cgs_accepted *out, cgs_dataset *d,
                              const cgs_needs *needs);

#endif /* CGS_DATA_ACCEPT_H */

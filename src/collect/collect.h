/* collect.h - offline data: a behaviour policy drives an environment, the episodes are
 * written as a dataset.
 *
 * Episodes are made in parallel and written in order.  Episode e depends on (seed, e) alone, so the
 * file is the same for any number of threads, and whether or not the recording was interrupted.  An
 * episode whose simulation failed is redrawn from a separate stream, and counted. */
#ifndef CGS_COLLECT_COLLECT_H
#define CGS_COLLECT_COLLECT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"

typedef struct cgs_collect_options {
    const char *env, *policy; /* ids; policy NULL: the environment's first */
    const char *out;          /* HDF5 file, must not exist */
    const char *scene; /* file of the physical model, stored as an attribute; NULL: built in */
    int64_t episodes;
    int side;  /* image size; 0: no images, the file has no column "pixels" */
    int every; /* rows 0, n, 2n, ... of an episode are rendered (0: 1), the others stay black */
    uint64_t seed;
    /* Called after every written episode, one thread at a time; both may be NULL. */
    void (*progress)(void *user, int64_t episodes, int64_t frames);
    bool (*stop)(
        void *user); /* true: finish the episodes in progress, keep them, return CGS_ESTOPPED */
    void *user;
} cgs_collect_options;

typedef struct cgs_collect_result {
    const char *policy;
    bool seeks_goal;          /* its episodes end at a target, see policy.h */
    int64_t resumed;          /* episodes that the file already had */
    int64_t episodes, frames; /* made by this call; frames are rows */
    int64_t dropped;          /* episodes that were redrawn because their simulation failed */
    double seconds;
} cgs_collect_result;

/* Uses cgs_threads() threads.  After CGS_ESTOPPED or a crash the same call resumes. */
cgs_status cgs_collect(const cgs_collect_options *o, cgs_collect_result *r);

#endif /* CGS_COLLECT_COLLECT_H */

/* views.h - two views of each frame of some datasets, for self-supervised learning.
 *
 * A view has another brightness and a rectangle of one colour.  It is not shifted, as a planner
 * needs positions.  Which frames per update sees, and how they are changed, are functions of the
 * seed and the update. */
#ifndef CGS_TRAIN_VIEWS_H
#define CGS_TRAIN_VIEWS_H

#include "data/packed.h"

typedef struct cgs_views {
    cgs_packed **packed; /* (count) */
    int count;
    int64_t rows;        /* of all datasets */
    int side;            /* S of their images */
    char identity[1024]; /* names and sizes of the files, to tell one set from another */
} cgs_views;

/* data (count): datasets with square images of one size.  cache: folder for copies made from them,
 * NULL: the usual places (data/cache.h).  Close after a failure too. */
cgs_status cgs_views_open(cgs_views *v, const char *const *data, int count, const char *cache);
void cgs_views_close(cgs_views *v);

/* out (2, batch, S, S, 3): first views, then second ones. */
cgs_status cgs_views_make(const cgs_views *v, uint64_t seed, uint64_t update, int batch,
                          uint8_t *out);

#endif /* CGS_TRAIN_VIEWS_H */

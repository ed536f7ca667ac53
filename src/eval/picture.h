/* picture.h - the picture of a recorded moment: the recorded one or, in a row that was not
 * drawn (source.h: pixels_every), one drawn anew from the recorded state. */
#ifndef CGS_EVAL_PICTURE_H
#define CGS_EVAL_PICTURE_H

#include "data/dataset.h"
#include "env/env.h"

typedef struct cgs_pictures {
    cgs_dataset *data;
    const char *state; /* column that holds the state     */
    cgs_env *env;      /* NULL when every row has a picture */
} cgs_pictures;

/* Borrows the dataset.  Close also after a failure. */
cgs_status cgs_pictures_open(cgs_pictures *p, cgs_dataset *data, const cgs_env_class *env);
void cgs_pictures_close(cgs_pictures *p);

/* The picture `step` rows after row `first` of an episode: rgb (height, width, 3). */
cgs_status cgs_pictures_read(cgs_pictures *p, int64_t first, int64_t step, uint8_t *rgb);

#endif /* CGS_EVAL_PICTURE_H */

/* recorded_image.h - the image of a row: the recorded one or, in a row that was not rendered
 * (source.h: pixels_every), one rendered from the recorded state. */
#ifndef CGS_EVAL_RECORDED_IMAGE_H
#define CGS_EVAL_RECORDED_IMAGE_H

#include "data/dataset.h"
#include "env/env.h"

typedef struct cgs_recorded_images {
    cgs_dataset *data;
    const char *state; /* column that holds the state      */
    cgs_env *env;      /* NULL when every row has an image, or nobody knows the environment */
} cgs_recorded_images;

/* Borrows the dataset.  env NULL: only images that were recorded can be read.  Close also after a
 * failure. */
cgs_status cgs_recorded_images_open(cgs_recorded_images *p, cgs_dataset *data,
                                    const cgs_env_class *env);
void cgs_recorded_images_close(cgs_recorded_images *p);

/* The image `step` rows after row `first` of an episode: rgb (height, width, 3). */
cgs_status cgs_recorded_images_read(cgs_recorded_images *p, int64_t first, int64_t step,
                                    uint8_t *rgb);

#endif /* CGS_EVAL_RECORDED_IMAGE_H */

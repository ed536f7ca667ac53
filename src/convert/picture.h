/* picture.h - pictures as others store them, made square RGB of one size. */
#ifndef CGS_CONVERT_PICTURE_H
#define CGS_CONVERT_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

#define CGS_PICTURE_SIDE 8192 /* the longest */

typedef struct cgs_picture {
    const uint8_t *data;
    int width, height, channels; /* 1 gray, 3 RGB, 4 RGB and transparency, which is dropped */
    bool planar; /* (channels, height, width) instead of (height, width, channels) */
} cgs_picture;

/* What becomes of a picture that is not square. */
typedef enum cgs_fit {
    CGS_FIT_CROP,   /* the square in its middle */
    CGS_FIT_PAD,    /* all of it, between black bars */
    CGS_FIT_STRETCH /* all of it, distorted */
} cgs_fit;

cgs_status cgs_fit_of(const char *name, cgs_fit *out); /* crop, pad or stretch */

typedef struct cgs_fitter {
    cgs_fit fit;
    int side;
    uint8_t *rgb; /* (height, width, 3) of the pictures met so far, grows */
    size_t rgb_bytes;
    uint32_t *across; /* (side, 3) one input row, averaged over columns */
    uint64_t *sum;    /* (side, 3) an output row */
} cgs_fitter;

/* Fine to free after a failure, and more than once. */
cgs_status cgs_fitter_create(cgs_fitter *f, cgs_fit fit, int side);
void cgs_fitter_free(cgs_fitter *f);

/* Every output pixel is the exact average over the area of the input that it covers, rounded:
 * out (side, side, 3). */
cgs_status cgs_fitter_run(cgs_fitter *f, const cgs_picture *p, uint8_t *out);

#endif /* CGS_CONVERT_PICTURE_H */

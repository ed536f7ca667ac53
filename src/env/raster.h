/* raster.h - the handful of drawing primitives PushT needs, with the footprints of the
 * 2D library upstream draws with, and the two ways images are brought to another size.
 *
 * A canvas is a square of four-byte pixels.  Drawing is clipped to a box, so that the
 * caller can redraw just the part of an image that changed. */
#ifndef CGS_ENV_RASTER_H
#define CGS_ENV_RASTER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"

typedef struct cgs_pixel {
    uint8_t r, g, b, unused;
} cgs_pixel;

typedef struct cgs_box {
    int x0, y0, x1, y1; /* inclusive; empty when x1 < x0 or y1 < y0 */
} cgs_box;

typedef struct cgs_raster {
    cgs_pixel *pixel; /* (side, side) */
    int side;
    cgs_box clip; /* inside the canvas */
} cgs_raster;

/* Rounds half to even, saturating far outside any image. */
int cgs_raster_round(double v);

/* A filled disc of radius 2, 11 or 15 covers [c - r, c + r - 1] in both axes. */
void cgs_raster_disc(cgs_raster *c, int cx, int cy, int r, cgs_pixel color);
/* A filled convex polygon, boundary included.  x, y: (n), n <= 8. */
void cgs_raster_polygon(cgs_raster *c, const int *x, const int *y, int n, cgs_pixel color);
/* A segment with round ends of radius r, 2 here: a line 2r wide, a quad, two discs.  The quad's
 * offset is (|dy|, |dx|): a true perpendicular only where dx dy <= 0, as upstream has it. */
void cgs_raster_fat_segment(cgs_raster *c, int x1, int y1, int x2, int y2, int r, cgs_pixel color);
/* An anti-aliased line one pixel wide, blended with what is there. */
void cgs_raster_smooth_line(cgs_raster *c, int x1, int y1, int x2, int y2, cgs_pixel color);

#define CGS_RESAMPLE_MAX 512 /* largest input side */

/* How one output row or column is made of input ones. */
typedef struct cgs_resample {
    int from, to; /* sides */
    bool bilinear;
    int taps;       /* inputs per output, at most */
    int *first;     /* (to) first input */
    int *weight;    /* (to, taps), trailing zeros where fewer are needed */
    int weight_sum; /* the same for every output */
} cgs_resample;

/* Two taps with 11-bit weights at half-pixel centres, no prefilter. */
cgs_status cgs_resample_bilinear(cgs_resample *r, int from, int to);
/* The exact average over the area an output pixel covers. */
cgs_status cgs_resample_area(cgs_resample *r, int from, int to);
void cgs_resample_free(cgs_resample *r);

/* The outputs that depend on inputs lo..hi (inclusive), as lo..hi of outputs. */
void cgs_resample_touched(const cgs_resample *r, int *lo, int *hi);
/* The inputs that outputs lo..hi depend on. */
void cgs_resample_needed(const cgs_resample *r, int *lo, int *hi);

/* Makes the part `out` of an image.  in: (from, from, channels) bytes of which the first
 * three are used; rgb: (to, to, 3).  Bilinear sums are rounded as 8-bit image libraries do
 * with 11-bit weights, area sums to the nearest value. */
void cgs_resample_run(const cgs_resample *r, const uint8_t *in, int channels, cgs_box out,
                      uint8_t *rgb);

/* Images that are drawn at one size and averaged to others. */
typedef struct cgs_scaled_image {
    cgs_resample shrink;
    uint8_t *native; /* (native side, native side, 3) as drawn */
} cgs_scaled_image;

/* draw(what, rgb) makes an image of side `native`; rgb: (side, side, 3). */
cgs_status cgs_scaled_image_draw(cgs_scaled_image *s, void (*draw)(const void *what, uint8_t *rgb),
                                 const void *what, int native, int side, uint8_t *rgb);
void cgs_scaled_image_free(cgs_scaled_image *s);

#endif /* CGS_ENV_RASTER_H */

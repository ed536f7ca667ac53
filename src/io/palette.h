/* palette.h - at most 256 colours for an image, and the index of each pixel. */
#ifndef CGS_IO_PALETTE_H
#define CGS_IO_PALETTE_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

typedef struct cgs_palette {
    int count;
    uint8_t rgb[256][3];
} cgs_palette;

/* memory for images of up to `pixels` pixels */
typedef struct cgs_quantizer cgs_quantizer;
cgs_status cgs_quantizer_create(cgs_quantizer **out, size_t pixels);
void cgs_quantizer_destroy(cgs_quantizer *q);

/* rgb (n, 3), n >= 1 -> p and index (n).  Exact for up to 256 colours; beyond, boxes are split
 * where the squared error is largest.  The same pixels give the same palette. */
void cgs_quantize(cgs_quantizer *q, const uint8_t *rgb, size_t n, cgs_palette *p, uint8_t *index);

#endif /* CGS_IO_PALETTE_H */

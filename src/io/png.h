/* png.h - 8-bit RGB images, (height, width, 3), from and to PNG. */
#ifndef CGS_IO_PNG_H
#define CGS_IO_PNG_H

#include <stdint.h>

#include "core/status.h"

/* Reads a PNG as RGB: palettes and grey are expanded, 16 bits become 8, transparency is
 * dropped.  The caller frees *rgb; it is NULL after a failure. */
cgs_status cgs_png_read(const char *path, uint8_t **rgb, int *width, int *height);

/* Writes a whole file or none of it; the same image gives the same bytes. */
cgs_status cgs_png_write(const char *path, const uint8_t *rgb, int width, int height);

/* The bytes of that file in memory, for pages with embedded images. The caller frees *data. */
cgs_status cgs_png_encode(const uint8_t *rgb, int width, int height, uint8_t **data, size_t *bytes);

#endif /* CGS_IO_PNG_H */

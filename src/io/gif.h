/* gif.h - animations: RGB frames to a GIF that repeats forever.
 *
 * Order of calls: open, add for every frame, then close (which puts the file in place)
 * or abandon.  A frame stores only the rectangle that changed, with its own palette:
 * exact while the rectangle has at most 256 colours, reduced otherwise. */
#ifndef CGS_IO_GIF_H
#define CGS_IO_GIF_H

#include <stdint.h>

#include "core/status.h"

typedef struct cgs_gif cgs_gif;

cgs_status cgs_gif_open(cgs_gif **out, const char *path, int width, int height);

/* rgb: (height, width, 3).  The frame stays for delay_cs hundredths of a second. */
cgs_status cgs_gif_add(cgs_gif *g, const uint8_t *rgb, int delay_cs);

/* Both free g and accept NULL.  A close after a failed add abandons and fails. */
cgs_status cgs_gif_close(cgs_gif *g);
void cgs_gif_abandon(cgs_gif *g);

#endif /* CGS_IO_GIF_H */

/* video.h - the pictures of a video file in order, by libav (FFmpeg's libraries), where this build
 * has it. */
#ifndef CGS_IO_VIDEO_H
#define CGS_IO_VIDEO_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"

typedef struct cgs_video cgs_video;

typedef struct cgs_video_frame {
    const uint8_t *rgb; /* (height, width, 3), valid until the next call */
    int width, height;
    double time; /* seconds from the video's beginning */
} cgs_video_frame;

/* Opens local files in formats that hold pictures themselves; nothing that a file names is
 * followed.  Without libav this fails and says what to install. */
cgs_status cgs_video_open(cgs_video **out, const char *path);
void cgs_video_close(cgs_video *v);

double cgs_video_rate(const cgs_video *v); /* pictures per second, 0: unknown */

/* The next picture, or *more = false behind the last. */
cgs_status cgs_video_next(cgs_video *v, cgs_video_frame *frame, bool *more);

#endif /* CGS_IO_VIDEO_H */

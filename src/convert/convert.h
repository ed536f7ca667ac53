/* convert.h - a recording of any kind (recording.h) becomes a dataset (data/writer.h). */
#ifndef CGS_CONVERT_CONVERT_H
#define CGS_CONVERT_CONVERT_H

#include "convert/recording.h"

typedef struct cgs_convert_options {
    const char *in, *out;
    int size; /* side of the frames */
    cgs_fit fit;
    bool late; /* row t holds the action that led to it */
    cgs_choices choices;
} cgs_convert_options;

typedef struct cgs_converted {
    int64_t episodes, rows, resumed; /* resumed: episodes that an earlier run had written */
    int width, height;               /* of the last picture, before */
    int columns;
    char note[1024]; /* how the input was understood */
    char names[900]; /* of the columns, with their widths */
} cgs_converted;

/* Called after every episode; returning false stops with CGS_ESTOPPED, and the next run of the same
 * conversion goes on behind it. */
typedef bool (*cgs_convert_progress)(void *user, int64_t episodes_done, int64_t episodes);

/* The action of an episode's last row becomes NaN, whatever it was: it leads to no row. */
cgs_status cgs_convert(const cgs_convert_options *o, cgs_converted *out,
                       cgs_convert_progress progress, void *user);

#endif /* CGS_CONVERT_CONVERT_H */

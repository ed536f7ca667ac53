/* source.h - a dataset as training and evaluation read it, whatever its storage.
 *
 * A source is a table of rows: one row is one moment, with an image, the action executed from it
 * and other numbers.  Episodes are runs of rows.  The HDF5 reader (dataset.h) and the packed cache
 * (packed.h) are both sources, so windows, statistics and the loader are written once.  Reads are
 * safe from several threads at a time. */
#ifndef CGS_DATA_SOURCE_H
#define CGS_DATA_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

#define CGS_COLUMN_NAME 128
#define CGS_COLUMNS 256 /* the most columns a dataset may have */

typedef struct cgs_column {
    char name[CGS_COLUMN_NAME];
    cgs_column_type dtype;          /* as stored */
    int rank;                       /* of one row: 0 for a scalar, 3 for an image */
    int64_t shape[CGS_COLUMN_RANK]; /* of one row */
    size_t values;                  /* product of shape */
    int64_t rows;                   /* of this column; those of the source unless it is irregular */
    bool readable;                  /* numbers, in a supported encoding */
    int64_t together;               /* rows that are decoded together; 1: each alone */
} cgs_column;

typedef struct cgs_source cgs_source;
struct cgs_source {
    const char *path; /* for messages */
    int64_t rows;
    int episodes;
    const int64_t *ep_offset; /* (episodes) first row            */
    const int32_t *ep_len;    /* (episodes) rows, at least one   */
    const cgs_column *columns;
    int column_count;
    int pixels, action; /* their indices in columns, or -1                  */
    int height, width;  /* of the images, 0 without                      */
    int pixels_every;   /* rows 0, n, 2n, ... of an episode have an image; the others are black */
    int action_dim;     /* values of one action, 0 without                 */
    void *self;
    /* Rows first, first+stride, ... of the image column: out (count, height, width, 3). */
    cgs_status (*read_pixels)(void *self, int64_t first, int count, int stride, uint8_t *out);
    /* Optional: these rows of it will be read soon. */
    void (*expect_pixels)(void *self, int64_t first, int count, int stride);
    /* The same rows of a number column, converted: out (count, values). */
    cgs_status (*read_rows)(void *self, int column, int64_t first, int count, int stride,
                            float *out);
};

/* The index of a readable column, or -1. */
int cgs_source_find(const cgs_source *s, const char *name);

/* The episode that holds a row, or -1 when the row lies in a gap between episodes. */
int cgs_source_episode(const cgs_source *s, int64_t row);

/* The row, or the nearest one before it in its episode, that has an image; -1 in a gap. */
int64_t cgs_source_drawn(const cgs_source *s, int64_t row);

/* The images of any rows, read by all threads: out (count, height, width, 3). */
cgs_status cgs_source_images(const cgs_source *s, const int64_t *row, int count, uint8_t *out);

#define CGS_COLUMN_TEXT (CGS_COLUMN_NAME + 64)
/* "action" f32 (120, 2): name, type and shape with the rows, into text (CGS_COLUMN_TEXT). */
const char *cgs_column_describe(const cgs_column *c, char *text);

size_t cgs_column_type_size(cgs_column_type t);      /* 0 for CGS_COL_OTHER */
const char *cgs_column_type_name(cgs_column_type t); /* "f32", "u8", ..., "text" */

#endif /* CGS_DATA_SOURCE_H */

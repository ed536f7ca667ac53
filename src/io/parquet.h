/* parquet.h - columns of numbers of a Parquet file.
 *
 * Read are columns of booleans, whole numbers and fractions that are flat or a list of them in each
 * row (one level), with or without nulls; data pages of both versions, plain, by dictionary, or
 * (for booleans and levels) in runs; uncompressed, gzip, Zstandard, and Snappy where this build has
 * it. Other columns are listed, and refused when they are read.  The file is not trusted: every
 * length is checked before it is used, a column has at most CGS_PARQUET_VALUES values. */
#ifndef CGS_IO_PARQUET_H
#define CGS_IO_PARQUET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

#define CGS_PARQUET_VALUES ((int64_t)1 << 27)

typedef struct cgs_parquet cgs_parquet;

typedef struct cgs_parquet_column {
    char name[256]; /* of the column; for a list without what is inside: "action" */
    bool list;
    bool number;                                         /* of a type that can be read */
    bool wide;                                           /* f32 would lose digits */
    int max_definition, max_repetition, list_definition; /* levels; where a list has an element */
    int type;                                            /* Parquet's physical type */
} cgs_parquet_column;

/* The caller closes *out; it is NULL after a failure. */
cgs_status cgs_parquet_open(cgs_parquet **out, const char *path);
void cgs_parquet_close(cgs_parquet *p);

int64_t cgs_parquet_rows(const cgs_parquet *p);
int cgs_parquet_columns(const cgs_parquet *p);
const cgs_parquet_column *cgs_parquet_column_at(const cgs_parquet *p, int column);
int cgs_parquet_find(const cgs_parquet *p, const char *name); /* or -1 */

/* A whole column. */
typedef struct cgs_parquet_data {
    double *value; /* (count) null is NaN */
    int64_t count;
    int64_t *begin; /* (rows + 1) row r has values begin[r] .. begin[r+1]-1 */
} cgs_parquet_data;

/* Fine to free after a failure. */
cgs_status cgs_parquet_read(cgs_parquet *p, int column, cgs_parquet_data *out);
void cgs_parquet_data_free(cgs_parquet_data *d);

#endif /* CGS_IO_PARQUET_H */

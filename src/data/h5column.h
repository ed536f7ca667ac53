/* h5column.h - one column of an HDF5 file: its type, layout and reading.
 *
 * Filtered chunks are fetched as stored and decoded by filters.h, outside the lock of
 * libhdf5; everything else goes through libhdf5's own reading. */
#ifndef CGS_DATA_H5COLUMN_H
#define CGS_DATA_H5COLUMN_H

#include <hdf5.h>
#include <pthread.h>

#include "data/filters.h"
#include "data/source.h"

#define CGS_H5_RANK (CGS_COLUMN_RANK + 1) /* a row's axes and the axis of rows */

typedef struct cgs_h5column {
    cgs_column info;
    hid_t set;
    bool filtered;              /* read as stored chunks                        */
    char problem[160];          /* why the column cannot be read, or ""         */
    char layout[160];           /* as a description                                   */
    int rank;                   /* with the axis of rows                        */
    hsize_t dims[CGS_H5_RANK];  /* (rank)                                       */
    hsize_t chunk[CGS_H5_RANK]; /* (rank) of chunked columns, else 0            */
    size_t chunk_bytes;         /* decoded                                      */
    uint64_t file_bytes;        /* the longest possible stored chunk                 */
    cgs_filter filters[CGS_FILTERS];
    int filter_count;
    uint8_t fill[8]; /* contents of chunks that were never written */
    /* the last decoded chunk, cached where chunks have more than one row */
    pthread_mutex_t lock;
    uint8_t *cache;                 /* (chunk_bytes) or NULL */
    hsize_t cached_at[CGS_H5_RANK]; /* (rank) first element; valid when cache_full */
    bool cache_full;
} cgs_h5column;

/* The type that reading converts to. */
typedef enum cgs_h5kind { CGS_H5_U8, CGS_H5_I64, CGS_H5_F32, CGS_H5_F64 } cgs_h5kind;

/* Opens column `name` of an open file; call with libhdf5 locked.  A column that has no numbers or
 * cannot be decoded still opens, with info.dtype CGS_COL_OTHER or a problem. */
cgs_status cgs_h5column_open(cgs_h5column *c, hid_t file, const char *name, uint64_t file_bytes);
void cgs_h5column_close(cgs_h5column *c); /* with libhdf5 locked */

/* Rows first .. first+count-1, converted: out (count, values).  Takes the lock itself. */
cgs_status cgs_h5column_read(cgs_h5column *c, int64_t first, int64_t count, cgs_h5kind kind,
                             void *out);

/* Looks up every chunk and reads the first and last row, so that a child process can see whether
 * libhdf5 survives. */
void cgs_h5column_visit(cgs_h5column *c);

#endif /* CGS_DATA_H5COLUMN_H */

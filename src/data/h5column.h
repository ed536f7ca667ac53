/* h5column.h - one column of an HDF5 file: what it is and how its rows are read.
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
    char layout[160];           /* for people                                   */
    int rank;                   /* with the axis of rows                        */
    hsize_t dims[CGS_H5_RANK];  /* (rank)                                       */
    hsize_t chunk[CGS_H5_RANK]; /* (rank) of chunked columns, else 0            */
    size_t chunk_bytes;         /* decoded                                      */
    uint64_t file_bytes;        /* nothing stored can be longer                 */
    cgs_filter filters[CGS_FILTERS];
    int filter_count;
    uint8_t fill[8]; /* what a chunk holds that was never written */
    /* the last decoded chunk, kept where a chunk holds more than one row */
    pthread_mutex_t lock;
    uint8_t *cache;                 /* (chunk_bytes) or NULL */
    hsize_t cached_at[CGS_H5_RANK]; /* (rank) first element; valid when cache_full */
    bool cache_full;
} cgs_h5column;

/* What reading converts to. */
typedef enum cgs_h5kind { CGS_H5_U8, CGS_H5_I64, CGS_H5_F32, CGS_H5_F64 } cgs_h5kind;

/* Opens column `name` of an open file; call with libhdf5 locked.  A column that is no
 * numbers or cannot be decoded opens all the same, with info.dtype CGS_COL_OTHER or a
 * problem. */
cgs_status cgs_h5column_open(cgs_h5column *c, hid_t file, const char *name, uint64_t file_bytes);
void cgs_h5column_close(cgs_h5column *c); /* with libhdf5 locked */

/* Rows first .. first+count-1, converted: out (count, values).  Takes the lock itself. */
cgs_status cgs_h5column_read(cgs_h5column *c, int64_t first, int64_t count, cgs_h5kind kind,
                             void *out);

/* Looks up the place of every chunk and reads a row at both ends, for what it does to
 * libhdf5; for a trial. */
void cgs_h5column_visit(cgs_h5column *c);

#endif /* CGS_DATA_H5COLUMN_H */

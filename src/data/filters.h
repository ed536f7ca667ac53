/* filters.h - decoding the filters of stored HDF5 chunks.
 *
 * Done here instead of by libhdf5 for two reasons: most datasets of this kind are compressed with
 * Blosc, which libhdf5 cannot read without a plugin; and its lock would serialise decompression. */
#ifndef CGS_DATA_FILTERS_H
#define CGS_DATA_FILTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

#define CGS_FILTERS 8

typedef struct cgs_filter {
    int id;         /* as registered with the HDF Group */
    unsigned first; /* its first parameter: the width of an element for shuffle */
} cgs_filter;

/* "deflate", "Blosc", ... or NULL for a filter that cannot be decoded. */
const char *cgs_filter_name(int id);

/* Decodes filters count-1 .. 0, skipping those whose bit is set in mask, on a stored chunk of
 * in_bytes; the result must be exactly out_bytes long. */
cgs_status cgs_filters_undo(const cgs_filter *filters, int count, uint32_t mask, const uint8_t *in,
                            size_t in_bytes, uint8_t *out, size_t out_bytes);

#endif /* CGS_DATA_FILTERS_H */

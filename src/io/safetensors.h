/* safetensors.h - weight files of one JSON header followed by raw tensors:
 *
 *   0..8     u64 little endian, bytes of the header n
 *   8..8+n   UTF-8 JSON object  "name": {"dtype", "shape", "data_offsets": [begin, end]}
 *            and optionally "__metadata__": {string: string}
 *   8+n..    the tensors, row-major, little endian, without gaps or overlap
 *
 * Headers are written padded with spaces so that 8+n is a multiple of 8, and wide elements come
 * first, so that every tensor is aligned in the file. */
#ifndef CGS_IO_SAFETENSORS_H
#define CGS_IO_SAFETENSORS_H

#include "io/weights.h"

/* Fills the list of an open file and checks its whole header; called by
 * cgs_weights_open. */
cgs_status cgs_safetensors_contents(cgs_weights *w);

/* one tensor to write; data may be NULL when a dimension is 0 */
typedef struct cgs_save {
    const char *name;
    cgs_weight_type type;
    int rank;
    int64_t dim[CGS_WEIGHT_RANK];
    const void *data; /* product of dim elements, row-major */
} cgs_save;

typedef struct cgs_meta {
    const char *key, *value;
} cgs_meta;

/* Writes a whole file or none of it.  The same arguments give the same bytes. */
cgs_status cgs_safetensors_write(const char *path, const cgs_save *tensors, size_t count,
                                 const cgs_meta *meta, size_t metas);

#endif /* CGS_IO_SAFETENSORS_H */

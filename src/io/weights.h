/* weights.h - named tensors of a file, whatever its format.
 *
 * A safetensors file, a torch file and the index of several safetensors files open as a
 * cgs_weights: a list of entries with name, element type and shape.  Opening reads only the table
 * of contents; the elements are read, made contiguous and converted when an entry is requested.  So
 * a caller can check the shapes before it allocates memory for them, and a file that shrinks while
 * it is open is a failed read instead of a fault in mapped memory.
 *
 * Order of calls: open, find (or walk entry[0..count)), read or to_f32, close. */
#ifndef CGS_IO_WEIGHTS_H
#define CGS_IO_WEIGHTS_H

#include <stdint.h>

#include "core/status.h"

#define CGS_WEIGHT_RANK 8

/* element types of weight files; OTHER can be listed but not converted */
typedef enum cgs_weight_type {
    CGS_W_F64,
    CGS_W_F32,
    CGS_W_F16,
    CGS_W_BF16,
    CGS_W_I64,
    CGS_W_I32,
    CGS_W_I16,
    CGS_W_I8,
    CGS_W_U8,
    CGS_W_BOOL,
    CGS_W_OTHER
} cgs_weight_type;

typedef struct cgs_weights cgs_weights;

typedef struct cgs_weight {
    cgs_weights *owner;
    const char *name; /* unique in its file                                            */
    cgs_weight_type type;
    char type_name[16];           /* the safetensors name: "F32", "BF16"       */
    int rank;                     /* 0 for a scalar                                */
    int64_t dim[CGS_WEIGHT_RANK]; /* outermost first                               */
    size_t count;                 /* product of dim; 1 for a scalar, 0 if empty    */
    size_t bytes;                 /* of the contiguous tensor: count * element     */

    /* where element (i, j, ...) lies: offset + (i * stride[0] + j * stride[1] + ...) * element.
     * The reader of the file has checked that all of them lie inside it. */
    uint64_t offset;
    int64_t stride[CGS_WEIGHT_RANK];
    size_t element; /* bytes of one element                                            */
    int range;      /* index of the checksummed range it lies in, or -1                */
} cgs_weight;

/* a range of the file with a CRC-32, checked at the first read */
typedef struct cgs_weight_range {
    uint64_t offset, bytes;
    uint32_t crc;
    int checked;
} cgs_weight_range;

struct cgs_weights {
    const char *path;
    const char *format; /* "safetensors", "torch" or "sharded safetensors" */
    cgs_weight *entry;  /* (count), in the order of the file */
    size_t count;

    /* private to weights.c and the readers */
    int fd;
    uint64_t file_bytes;
    size_t capacity;
    cgs_weight_range *range; /* (ranges) */
    size_t ranges;
    size_t *by_name; /* (count) indices of entry, sorted by name */
    char **meta;     /* (2 * metas) key, value, key, value, ... */
    size_t metas;
    int skipped;         /* buffers and callbacks of a training that its reader left out */
    char some[160];      /* names of those, as many as there is room for */
    cgs_weights **shard; /* (shards) the files of an index, which own the entries */
    size_t shards;
};

/* Opens a weight file, whose first bytes tell safetensors, torch and an index apart.  The caller
 * closes *out; it is NULL after a failure. */
cgs_status cgs_weights_open(cgs_weights **out, const char *path);
void cgs_weights_close(cgs_weights *w);

/* The entry of that name, or NULL.  Borrowed. */
const cgs_weight *cgs_weights_find(const cgs_weights *w, const char *name);

/* The value of a metadata key, or NULL (torch files have none).  Borrowed. */
const char *cgs_weights_meta(const cgs_weights *w, const char *key);

/* Reads the elements as they are stored, contiguous and row-major: e->bytes bytes. */
cgs_status cgs_weights_read(const cgs_weight *e, void *out);

/* The same as f32: out (e->count).  Numbers are rounded to nearest even, booleans become 0 or 1.
 * Element types that are not in the list above are refused. */
cgs_status cgs_weights_to_f32(const cgs_weight *e, float *out);

/* The shape as text: "[192,3,14,14]".  Returns its buffer. */
#define CGS_SHAPE_TEXT 192
const char *cgs_weights_shape(const cgs_weight *e, char text[CGS_SHAPE_TEXT]);

/* ---- for the readers ----------------------------------------------------------- */

/* As cgs_weights_open, but an index is refused: it cannot name another one, or itself. */
cgs_status cgs_weights_open_shard(cgs_weights **out, const char *path);

/* A type by its safetensors name, with its size; CGS_W_OTHER with size 0 if unknown. */
cgs_weight_type cgs_weight_type_of(const char *name, size_t *element);
/* The safetensors name and size of a type of the list; "?" and 0 for OTHER. */
const char *cgs_weight_type_name(cgs_weight_type type, size_t *element);

/* Appends a copy of an entry; e->name is copied. */
cgs_status cgs_weights_add(cgs_weights *w, const cgs_weight *e);
/* Appends a checksummed range and returns its index. */
cgs_status cgs_weights_add_range(cgs_weights *w, cgs_weight_range range, int *index);
/* Notes what a reader leaves out. */
void cgs_weights_skip(cgs_weights *w, const char *name);
cgs_status cgs_weights_add_meta(cgs_weights *w, const char *key, const char *value);
/* Reads exactly n bytes at an offset of the file. */
cgs_status cgs_weights_pread(const cgs_weights *w, uint64_t offset, void *out, size_t n);

/* Appends to a list "a, b, c" of `size` bytes where there is room. */
void cgs_list_name(char *list, size_t size, const char *name);

/* count = product of dim and bytes = count * element; false when that overflows or a
 * dimension is negative. */
int cgs_weight_measure(cgs_weight *e);

/* 1 when the n bytes are UTF-8 without NUL: no overlong forms, no surrogates. */
int cgs_is_utf8(const char *s, size_t n);

#endif /* CGS_IO_WEIGHTS_H */

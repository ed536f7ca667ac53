/* arrays.h - named arrays of numbers in a file that has no meaning yet: HDF5 or npz. */
#ifndef CGS_CONVERT_ARRAYS_H
#define CGS_CONVERT_ARRAYS_H

#include "data/source.h"

#define CGS_ARRAY_NAME 256
#define CGS_ARRAY_RANK 5

typedef struct cgs_array {
    char name[CGS_ARRAY_NAME]; /* with the groups it lies in: "data/demo_0/actions" */
    cgs_column_type type;
    int rank;                    /* 1 to CGS_ARRAY_RANK */
    int64_t dim[CGS_ARRAY_RANK]; /* (rank) */
    size_t values;               /* of one row: product of dim[1..] */
} cgs_array;

typedef struct cgs_arrays cgs_arrays;
struct cgs_arrays {
    char path[4096];
    cgs_array *array; /* (count) */
    int count;
    void *self;
    /* Rows first .. first+count-1: as bytes (arrays of u8 alone) or as doubles, (count, values). */
    cgs_status (*bytes)(void *self, int array, int64_t first, int64_t count, uint8_t *out);
    cgs_status (*numbers)(void *self, int array, int64_t first, int64_t count, double *out);
    void (*close)(void *self);
};

/* By what the file begins with. */
cgs_status cgs_arrays_open(cgs_arrays **out, const char *path);
void cgs_arrays_close(cgs_arrays *a);

/* The formats' own: fill everything but path. */
cgs_status cgs_arrays_open_h5(cgs_arrays *a);
cgs_status cgs_arrays_open_npz(cgs_arrays *a);

/* Appends an array; its values are computed.  An array of more than CGS_ARRAY_RANK axes, without
 * axes or without numbers is left out. */
cgs_status cgs_arrays_add(cgs_arrays *a, const cgs_array *one, bool *added);

/* The index of an array, or -1. */
int cgs_arrays_find(const cgs_arrays *a, const char *name);

/* "name type (shape), ..." of what is there, as far as it fits. */
const char *cgs_arrays_list(const cgs_arrays *a, char *text, size_t size);

#endif /* CGS_CONVERT_ARRAYS_H */

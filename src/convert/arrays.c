/* arrays.c - see arrays.h. */
#include "convert/arrays.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ARRAYS = 100000 };

static const uint64_t MOST_VALUES = UINT64_C(1) << 40;

cgs_status cgs_arrays_add(cgs_arrays *a, const cgs_array *one, bool *added) {
    uint64_t values = 1;
    *added = false;
    if (one->type == CGS_COL_OTHER || one->rank < 1 || one->rank > CGS_ARRAY_RANK) return CGS_OK;
    for (int i = 0; i < one->rank; i++) {
        if (one->dim[i] < 0 || (uint64_t)one->dim[i] > MOST_VALUES) return CGS_OK;
        if (i > 0 && one->dim[i] > 0 && values > MOST_VALUES / (uint64_t)one->dim[i]) return CGS_OK;
        if (i > 0) values *= (uint64_t)one->dim[i];
    }
    if (one->dim[0] == 0 || values == 0) return CGS_OK;
    if (a->count == MOST_ARRAYS)
        return cgs_fail(CGS_EFORMAT, "%s: more than %d arrays", a->path, MOST_ARRAYS);
    if ((a->count & (a->count - 1)) == 0) { /* the room doubles */
        cgs_array *more = realloc(a->array, (a->count ? 2 * (size_t)a->count : 1) * sizeof *more);
        if (!more) return cgs_fail(CGS_ENOMEM, "%s: no memory", a->path);
        a->array = more;
    }
    a->array[a->count] = *one;
    a->array[a->count++].values = (size_t)values;
    *added = true;
    return CGS_OK;
}

int cgs_arrays_find(const cgs_arrays *a, const char *name) {
    for (int i = 0; i < a->count; i++)
        if (!strcmp(a->array[i].name, name)) return i;
    return -1;
}

const char *cgs_arrays_list(const cgs_arrays *a, char *text, size_t size) {
    size_t used = 0;
    snprintf(text, size, "no arrays of numbers");
    for (int i = 0; i < a->count; i++) {
        const cgs_array *x = &a->array[i];
        char one[CGS_ARRAY_NAME + 128];
        size_t n = (size_t)snprintf(one, sizeof one, "%s%s %s (", i ? ", " : "", x->name,
                                    cgs_column_type_name(x->type));
        for (int k = 0; k < x->rank; k++)
            n += (size_t)snprintf(one + n, sizeof one - n, "%s%" PRId64, k ? ", " : "", x->dim[k]);
        snprintf(one + n, sizeof one - n, ")");
        if (used + n + 8 > size) {
            snprintf(text + used, size - used, ", ...");
            break;
        }
        used += (size_t)snprintf(text + used, size - used, "%s", one);
    }
    return text;
}

static cgs_status open_by_content(cgs_arrays *a) {
    unsigned char head[8] = {0};
    FILE *f = fopen(a->path, "rb");
    if (!f) return cgs_fail(CGS_EIO, "%s: cannot be opened", a->path);
    size_t n = fread(head, 1, sizeof head, f);
    fclose(f);
    if (n >= 4 && !memcmp(head, "PK\3\4", 4)) return cgs_arrays_open_npz(a);
    if (n == 8 && !memcmp(head, "\211HDF\r\n\032\n", 8)) return cgs_arrays_open_h5(a);
    return cgs_fail(CGS_EFORMAT, "%s: neither HDF5 nor npz by its first bytes", a->path);
}

cgs_status cgs_arrays_open(cgs_arrays **out, const char *path) {
    *out = NULL;
    cgs_arrays *a = calloc(1, sizeof *a);
    if (!a) return cgs_fail(CGS_ENOMEM, "%s: no memory", path);
    cgs_status rc = CGS_OK;
    if ((size_t)snprintf(a->path, sizeof a->path, "%s", path) >= sizeof a->path)
        rc = cgs_fail(CGS_EARG, "%.64s...: path is too long", path);
    if (rc == CGS_OK) rc = open_by_content(a);
    if (rc != CGS_OK) {
        cgs_arrays_close(a);
        return rc;
    }
    *out = a;
    return CGS_OK;
}

void cgs_arrays_close(cgs_arrays *a) {
    if (!a) return;
    if (a->self) a->close(a->self);
    free(a->array);
    free(a);
}

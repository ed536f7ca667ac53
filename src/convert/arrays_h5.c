/* arrays_h5.c - all datasets of an HDF5 file, in whatever groups.
 *
 * Links that lead elsewhere are not followed, groups no deeper than a few levels are visited, and
 * the file is tried in a child process first, as in data/dataset.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "convert/arrays.h"
#include "data/h5.h"
#include "data/h5column.h"

enum { DEEPEST = 6, TRIAL_SECONDS = 5 };

typedef struct h5 {
    cgs_arrays *arrays;
    hid_t file;
    uint64_t file_bytes;
    cgs_h5column *open; /* the column that was read last, or NULL */
    int which;
} h5;

static cgs_status add(h5 *h, const char *name) {
    cgs_h5column c;
    cgs_status rc = cgs_h5column_open(&c, h->file, name, h->file_bytes);
    bool added;
    if (rc == CGS_OK && !*c.problem) {
        cgs_array one = {.type = c.info.dtype, .rank = c.rank};
        snprintf(one.name, sizeof one.name, "%s", name);
        for (int i = 0; i < c.rank && i < CGS_ARRAY_RANK; i++) one.dim[i] = (int64_t)c.dims[i];
        rc = cgs_arrays_add(h->arrays, &one, &added);
    }
    cgs_h5column_close(&c);
    return rc;
}

static cgs_status visit(h5 *h, const char *group, int depth) {
    H5G_info_t info;
    if (depth > DEEPEST || H5Gget_info_by_name(h->file, group, &info, H5P_DEFAULT) < 0)
        return CGS_OK;
    for (hsize_t i = 0; i < info.nlinks; i++) {
        char name[CGS_COLUMN_NAME], path[CGS_ARRAY_NAME];
        H5L_info_t link;
        H5O_type_t type;
        ssize_t length = H5Lget_name_by_idx(h->file, group, H5_INDEX_NAME, H5_ITER_INC, i, name,
                                            sizeof name, H5P_DEFAULT);
        if (length < 0 || (size_t)length >= sizeof name) continue;
        bool root = !strcmp(group, "/");
        if ((size_t)snprintf(path, sizeof path, "%s%s%s", root ? "" : group, root ? "" : "/",
                             name) >= sizeof path)
            continue;
        /* a column's name is shorter than an array's */
        if (strlen(path) >= CGS_COLUMN_NAME || H5Lget_info(h->file, path, &link, H5P_DEFAULT) < 0 ||
            link.type != H5L_TYPE_HARD || !cgs_h5_object_type(h->file, path, &type))
            continue;
        if (type == H5O_TYPE_GROUP) CGS_TRY(visit(h, path, depth + 1));
        if (type == H5O_TYPE_DATASET) CGS_TRY(add(h, path));
    }
    return CGS_OK;
}

static cgs_status open_file(h5 *h) {
    cgs_h5_lock();
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_file_locking(access, false, true);
    h->file = H5Fopen(h->arrays->path, H5F_ACC_RDONLY, access);
    H5Pclose(access);
    cgs_status rc = h->file < 0 ? cgs_fail(CGS_EFORMAT, "%s: a damaged HDF5 file (%s)",
                                           h->arrays->path, cgs_h5_reason())
                                : visit(h, "/", 0);
    cgs_h5_unlock();
    return rc;
}

static void close_column(h5 *h) {
    if (!h->open) return;
    cgs_h5column_close(h->open);
    free(h->open);
    h->open = NULL;
}

static void close_h5(void *self) {
    h5 *h = self;
    cgs_h5_lock();
    close_column(h);
    if (h->file >= 0) H5Fclose(h->file);
    cgs_h5_unlock();
    free(h);
}

/* the column of an array; the last one stays open, with the chunk that it decoded last */
static cgs_status open_column(h5 *h, int array, cgs_h5column **out) {
    cgs_status rc = CGS_OK;
    cgs_h5_lock();
    if (!h->open || h->which != array) {
        close_column(h);
        h->open = calloc(1, sizeof *h->open);
        rc = h->open
                 ? cgs_h5column_open(h->open, h->file, h->arrays->array[array].name, h->file_bytes)
                 : cgs_fail(CGS_ENOMEM, "%s: no memory", h->arrays->path);
        if (rc != CGS_OK) {
            free(h->open);
            h->open = NULL;
        }
        h->which = array;
    }
    cgs_h5_unlock();
    *out = h->open;
    return rc;
}

static cgs_status read(h5 *h, int array, int64_t first, int64_t count, cgs_h5kind kind, void *out) {
    cgs_h5column *c;
    CGS_TRY(open_column(h, array, &c));
    cgs_status rc = cgs_h5column_read(c, first, count, kind, out);
    return rc == CGS_OK ? rc : cgs_fail_in(rc, h->arrays->path);
}

static cgs_status read_bytes(void *self, int array, int64_t first, int64_t count, uint8_t *out) {
    return read(self, array, first, count, CGS_H5_U8, out);
}

static cgs_status read_numbers(void *self, int array, int64_t first, int64_t count, double *out) {
    return read(self, array, first, count, CGS_H5_F64, out);
}

/* in a child process: what libhdf5 does not survive it does not survive there */
static void attempt(void *user) {
    h5 *h = user;
    if (open_file(h) != CGS_OK) return;
    for (int i = 0; i < h->arrays->count; i++) {
        cgs_h5column *c;
        if (open_column(h, i, &c) == CGS_OK) cgs_h5column_visit(c);
    }
}

cgs_status cgs_arrays_open_h5(cgs_arrays *a) {
    struct stat st;
    if (stat(a->path, &st) != 0) return cgs_fail(CGS_EIO, "%s: cannot be opened", a->path);
    h5 *h = calloc(1, sizeof *h);
    if (!h) return cgs_fail(CGS_ENOMEM, "%s: no memory", a->path);
    *h = (h5){.arrays = a, .file = -1, .file_bytes = (uint64_t)st.st_size};
    a->self = h;
    a->bytes = read_bytes;
    a->numbers = read_numbers;
    a->close = close_h5;
    int ended = cgs_h5_try_in_child(attempt, h, TRIAL_SECONDS + (unsigned)(h->file_bytes >> 26));
    if (ended)
        return cgs_fail(CGS_EFORMAT, "%s: damaged: libhdf5 does not survive reading it (%s)",
                        a->path, strsignal(ended));
    return open_file(h);
}

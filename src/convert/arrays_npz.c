/* arrays_npz.c - the arrays of NumPy's npz: a zip file with one npy file for each.
 *
 * Stored arrays are read where they lie; a deflated one is decoded as a whole when it is first
 * asked for, and the last one is kept.  Arrays of objects, in Fortran's order, of other byte orders
 * and of other types than whole numbers, booleans, f32 and f64 are left out: nothing in a file is
 * executed. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "convert/arrays.h"
#include "io/zip.h"

enum { HEADER = 4096 /* the longest description of an array */ };

/* zlib makes at most 1032 bytes of one */
static const uint64_t DENSEST = 1032;

typedef struct npz {
    cgs_arrays *arrays;
    cgs_weights file; /* path, descriptor and size alone: what zip.h reads from */
    cgs_zip zip;
    int *member;    /* (arrays->count) index in zip.member */
    size_t *start;  /* (arrays->count) length of the description */
    uint8_t *whole; /* contents of the last deflated member */
    int which;      /* its array, or -1 */
} npz;

/* ---- members ------------------------------------------------------------------------------ */

static cgs_status inflate_member(npz *z, const cgs_zip_member *m, uint8_t *out, size_t bytes) {
    uint8_t *packed = malloc((size_t)m->packed + 1);
    z_stream s = {0};
    if (!packed || inflateInit2(&s, -MAX_WBITS) != Z_OK) {
        free(packed);
        return cgs_fail(CGS_ENOMEM, "%s: no memory for %s", z->file.path, m->name);
    }
    cgs_status rc = cgs_weights_pread(&z->file, m->offset, packed, (size_t)m->packed);
    size_t in = 0, made = 0;
    int state = Z_OK;
    while (rc == CGS_OK && state == Z_OK && made < bytes) {
        const size_t most = (size_t)1 << 30;
        size_t give = (size_t)m->packed - in < most ? (size_t)m->packed - in : most;
        size_t take = bytes - made < most ? bytes - made : most;
        s.next_in = packed + in;
        s.avail_in = (uInt)give;
        s.next_out = out + made;
        s.avail_out = (uInt)take;
        state = inflate(&s, Z_NO_FLUSH);
        in += give - s.avail_in;
        made += take - s.avail_out;
    }
    inflateEnd(&s);
    free(packed);
    if (rc == CGS_OK && made < bytes)
        rc = cgs_fail(CGS_EFORMAT, "%s: member %s is damaged", z->file.path, m->name);
    return rc;
}

/* bytes from the beginning of a member, at most all of them */
static cgs_status read_start(npz *z, const cgs_zip_member *m, uint8_t *out, size_t bytes) {
    if (m->deflated) return inflate_member(z, m, out, bytes);
    return cgs_weights_pread(&z->file, m->offset, out, bytes);
}

/* ---- descriptions ------------------------------------------------------------------------- */

static cgs_column_type type_of(const char *descr) {
    static const struct {
        const char *descr;
        cgs_column_type type;
    } types[] = {{"'<f4'", CGS_COL_F32}, {"'<f8'", CGS_COL_F64}, {"'|i1'", CGS_COL_I8},
                 {"'|u1'", CGS_COL_U8},  {"'|b1'", CGS_COL_U8},  {"'<i2'", CGS_COL_I16},
                 {"'<u2'", CGS_COL_U16}, {"'<i4'", CGS_COL_I32}, {"'<u4'", CGS_COL_U32},
                 {"'<i8'", CGS_COL_I64}, {"'<u8'", CGS_COL_U64}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (!strncmp(descr, types[i].descr, 5)) return types[i].type;
    return CGS_COL_OTHER;
}

/* the value of a key of the description, a Python dictionary of three keys */
static const char *value_of(const char *text, const char *key) {
    const char *at = strstr(text, key);
    if (!at) return NULL;
    at += strlen(key);
    while (*at == ':' || *at == ' ') at++;
    return at;
}

static bool parse(const char *text, cgs_array *one) {
    const char *descr = value_of(text, "'descr'"), *order = value_of(text, "'fortran_order'"),
               *shape = value_of(text, "'shape'");
    if (!descr || !order || !shape || *shape != '(' || strncmp(order, "False", 5)) return false;
    one->type = type_of(descr);
    for (shape++; *shape && *shape != ')';) {
        char *end;
        if (*shape == ',' || *shape == ' ') {
            shape++;
            continue;
        }
        long long n = strtoll(shape, &end, 10);
        if (end == shape || n < 0 || one->rank == CGS_ARRAY_RANK) return false;
        one->dim[one->rank++] = n;
        shape = end;
    }
    return *shape == ')';
}

/* adds the array of a member, or leaves it out */
static cgs_status describe(npz *z, int member) {
    cgs_zip_member *m = &z->zip.member[member];
    size_t length = strlen(m->name);
    if (length < 5 || strcmp(m->name + length - 4, ".npy") || length - 4 >= CGS_ARRAY_NAME)
        return CGS_OK;
    cgs_zip_member *found;
    CGS_TRY(cgs_zip_find(&z->zip, m->name, &found)); /* finds its place, too */
    uint8_t head[HEADER + 1];
    size_t n = m->bytes < HEADER ? (size_t)m->bytes : HEADER;
    if (n < 12) return CGS_OK;
    CGS_TRY(read_start(z, m, head, n));
    if (memcmp(head, "\223NUMPY", 6) || head[6] < 1 || head[6] > 3) return CGS_OK;
    size_t before = head[6] == 1 ? 10 : 12;
    size_t text = head[8] | (size_t)head[9] << 8;
    if (head[6] > 1) text |= (size_t)head[10] << 16 | (size_t)head[11] << 24;
    if (text > n - before) return CGS_OK;
    head[before + text] = '\0';
    cgs_array one = {0};
    if (!parse((const char *)head + before, &one)) return CGS_OK;
    snprintf(one.name, sizeof one.name, "%.*s", (int)(length - 4), m->name);
    bool added;
    CGS_TRY(cgs_arrays_add(z->arrays, &one, &added));
    if (!added) return CGS_OK;
    int at = z->arrays->count - 1;
    const cgs_array *kept = &z->arrays->array[at];
    size_t row = kept->values * cgs_column_type_size(kept->type);
    uint64_t room = m->bytes - before - text;
    if (row > room || (uint64_t)kept->dim[0] > room / row)
        return cgs_fail(CGS_EFORMAT, "%s: array %s is longer than its member", z->file.path,
                        one.name);
    if (m->deflated && m->bytes / DENSEST > m->packed)
        return cgs_fail(CGS_EFORMAT, "%s: array %s claims %" PRIu64 " bytes in %" PRIu64,
                        z->file.path, one.name, m->bytes, m->packed);
    z->member[at] = member;
    z->start[at] = before + text;
    return CGS_OK;
}

/* ---- reading ------------------------------------------------------------------------------ */

/* rows as they are stored, into out */
static cgs_status read_stored(npz *z, int array, int64_t first, int64_t count, uint8_t *out) {
    const cgs_array *a = &z->arrays->array[array];
    const cgs_zip_member *m = &z->zip.member[z->member[array]];
    size_t row = a->values * cgs_column_type_size(a->type);
    if (first < 0 || count < 0 || first > a->dim[0] || count > a->dim[0] - first)
        return cgs_fail(CGS_EARG, "%s: rows %" PRId64 " to %" PRId64 " of %s do not exist",
                        z->file.path, first, first + count - 1, a->name);
    uint64_t from = z->start[array] + (uint64_t)first * row;
    if (!m->deflated)
        return cgs_weights_pread(&z->file, m->offset + from, out, (size_t)count * row);
    if (z->which != array) {
        free(z->whole);
        z->which = -1;
        z->whole = malloc((size_t)m->bytes);
        if (!z->whole) return cgs_fail(CGS_ENOMEM, "%s: no memory for %s", z->file.path, m->name);
        CGS_TRY(inflate_member(z, m, z->whole, (size_t)m->bytes));
        z->which = array;
    }
    memcpy(out, z->whole + from, (size_t)count * row);
    return CGS_OK;
}

static cgs_status read_bytes(void *self, int array, int64_t first, int64_t count, uint8_t *out) {
    return read_stored(self, array, first, count, out);
}

#define WIDEN(type)                                                                                \
    do {                                                                                           \
        const type *from_ = (const type *)stored;                                                  \
        for (size_t i_ = 0; i_ < n; i_++) out[i_] = (double)from_[i_];                             \
    } while (0)

static void widen(cgs_column_type type, const uint8_t *stored, size_t n, double *out) {
    switch (type) {
    case CGS_COL_F32: WIDEN(float); break;
    case CGS_COL_F64: WIDEN(double); break;
    case CGS_COL_I8: WIDEN(int8_t); break;
    case CGS_COL_U8: WIDEN(uint8_t); break;
    case CGS_COL_I16: WIDEN(int16_t); break;
    case CGS_COL_U16: WIDEN(uint16_t); break;
    case CGS_COL_I32: WIDEN(int32_t); break;
    case CGS_COL_U32: WIDEN(uint32_t); break;
    case CGS_COL_I64: WIDEN(int64_t); break;
    case CGS_COL_U64: WIDEN(uint64_t); break;
    case CGS_COL_OTHER: break;
    }
}

static cgs_status read_numbers(void *self, int array, int64_t first, int64_t count, double *out) {
    npz *z = self;
    const cgs_array *a = &z->arrays->array[array];
    size_t n = (size_t)count * a->values;
    uint8_t *stored = malloc(n * cgs_column_type_size(a->type) + 1);
    if (!stored) return cgs_fail(CGS_ENOMEM, "%s: no memory for %s", z->file.path, a->name);
    cgs_status rc = read_stored(z, array, first, count, stored);
    if (rc == CGS_OK) widen(a->type, stored, n, out);
    free(stored);
    return rc;
}

static void close_npz(void *self) {
    npz *z = self;
    cgs_zip_close(&z->zip);
    if (z->file.fd >= 0) close(z->file.fd);
    free(z->member);
    free(z->start);
    free(z->whole);
    free(z);
}

cgs_status cgs_arrays_open_npz(cgs_arrays *a) {
    npz *z = calloc(1, sizeof *z);
    if (!z) return cgs_fail(CGS_ENOMEM, "%s: no memory", a->path);
    *z = (npz){.arrays = a, .file = {.path = a->path, .format = "npz"}, .which = -1};
    a->self = z;
    a->bytes = read_bytes;
    a->numbers = read_numbers;
    a->close = close_npz;
    struct stat st;
    z->file.fd = open(a->path, O_RDONLY);
    if (z->file.fd < 0 || fstat(z->file.fd, &st) != 0)
        return cgs_fail(CGS_EIO, "%s: %s", a->path, strerror(errno));
    z->file.file_bytes = (uint64_t)st.st_size;
    CGS_TRY(cgs_zip_open(&z->zip, &z->file, true));
    z->member = calloc(z->zip.count + 1, sizeof *z->member);
    z->start = calloc(z->zip.count + 1, sizeof *z->start);
    if (!z->member || !z->start) return cgs_fail(CGS_ENOMEM, "%s: no memory", a->path);
    for (size_t i = 0; i < z->zip.count; i++) CGS_TRY(describe(z, (int)i));
    return CGS_OK;
}

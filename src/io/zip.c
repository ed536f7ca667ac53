/* zip.c - the central directory of a zip file.
 *
 * The local header before each member may carry zero sizes, so it is read only for the two lengths
 * that determine where the bytes begin. */
#include "io/zip.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define END_BYTES 22
#define LOCATOR_BYTES 20
#define END64_BYTES 56
#define CENTRAL_BYTES 46
#define LOCAL_BYTES 30
#define MAX_COMMENT 65535
#define MAX_DIRECTORY (UINT64_C(64) << 20)

static uint64_t le(const unsigned char *p, int bytes) {
    uint64_t v = 0;
    for (int i = bytes - 1; i >= 0; i--) v = v << 8 | p[i];
    return v;
}

typedef struct directory {
    uint64_t offset, bytes, count, end; /* end: first byte of the records after it */
} directory;

/* the ZIP64 record, when the fields of the old one are too small */
static cgs_status read_end64(const cgs_weights *f, const unsigned char *locator, uint64_t at,
                             directory *d) {
    unsigned char b[END64_BYTES];
    uint64_t where = le(locator + 8, 8);
    if (where > at || at - where < END64_BYTES)
        return cgs_fail(CGS_EFORMAT, "%s: its ZIP64 record claims to be at byte %" PRIu64, f->path,
                        where);
    CGS_TRY(cgs_weights_pread(f, where, b, sizeof b));
    if (memcmp(b, "PK\6\6", 4) != 0)
        return cgs_fail(CGS_EFORMAT, "%s: no ZIP64 record at byte %" PRIu64, f->path, where);
    *d = (directory){
        .count = le(b + 32, 8), .bytes = le(b + 40, 8), .offset = le(b + 48, 8), .end = where};
    return CGS_OK;
}

/* the end record is the last thing in the file but for a comment of any length */
static cgs_status find_directory(const cgs_weights *f, directory *d) {
    const uint64_t most = END_BYTES + MAX_COMMENT + LOCATOR_BYTES;
    size_t n = (size_t)(f->file_bytes < most ? f->file_bytes : most);
    unsigned char *tail = malloc(n + 1);
    if (!tail) return cgs_fail(CGS_ENOMEM, "%s: no memory for its end", f->path);
    cgs_status rc = cgs_weights_pread(f, f->file_bytes - n, tail, n);
    if (rc != CGS_OK) goto done;

    size_t at = n;
    bool found = false;
    for (size_t back = END_BYTES; back <= n && !found; back++) {
        at = n - back;
        found = memcmp(tail + at, "PK\5\6", 4) == 0 && le(tail + at + 20, 2) == back - END_BYTES;
    }
    if (!found) {
        rc = cgs_fail(CGS_EFORMAT, "%s: a zip file without its end; was it truncated?", f->path);
        goto done;
    }
    const unsigned char *e = tail + at;
    uint64_t place = f->file_bytes - n + at;
    *d = (directory){
        .count = le(e + 10, 2), .bytes = le(e + 12, 4), .offset = le(e + 16, 4), .end = place};
    bool small = d->count == 0xFFFF || d->bytes == 0xFFFFFFFF || d->offset == 0xFFFFFFFF;
    if (small && at >= LOCATOR_BYTES && memcmp(e - LOCATOR_BYTES, "PK\6\7", 4) == 0)
        rc = read_end64(f, e - LOCATOR_BYTES, place - LOCATOR_BYTES, d);
done:
    free(tail);
    return rc;
}

/* 64-bit values that replace the saturated ones stand in this order in extra field 1 */
static bool read_extra64(const unsigned char *p, size_t n, uint64_t *field[3]) {
    bool saturated = *field[0] == 0xFFFFFFFF || *field[1] == 0xFFFFFFFF || *field[2] == 0xFFFFFFFF;
    while (n >= 4) {
        size_t tag = le(p, 2), size = le(p + 2, 2);
        p += 4;
        n -= 4;
        if (size > n) return false;
        if (tag == 1) {
            const unsigned char *q = p;
            for (int i = 0; i < 3; i++) {
                if (*field[i] != 0xFFFFFFFF) continue;
                if (size - (size_t)(q - p) < 8) return false;
                *field[i] = le(q, 8);
                q += 8;
            }
            return true;
        }
        p += size;
        n -= size;
    }
    return !saturated;
}

/* one entry of the directory at p, with n bytes left; *size is its length */
static cgs_status read_entry(cgs_zip *z, unsigned char *p, size_t n, cgs_zip_member *m,
                             size_t *size) {
    const char *path = z->file->path;
    if (n < CENTRAL_BYTES || memcmp(p, "PK\1\2", 4) != 0)
        return cgs_fail(CGS_EFORMAT, "%s: entry %zu of its directory is damaged", path, z->count);
    unsigned flags = (unsigned)le(p + 8, 2), method = (unsigned)le(p + 10, 2);
    uint64_t packed = le(p + 20, 4);
    size_t name = le(p + 28, 2), extra = le(p + 30, 2), comment = le(p + 32, 2);
    *m = (cgs_zip_member){.crc = (uint32_t)le(p + 16, 4),
                          .bytes = le(p + 24, 4),
                          .header = le(p + 42, 4),
                          .range = -1};
    uint64_t *wide[3] = {&m->bytes, &packed, &m->header};
    if (n - CENTRAL_BYTES < name + extra + comment || memchr(p + CENTRAL_BYTES, 0, name) ||
        !read_extra64(p + CENTRAL_BYTES + name, extra, wide))
        return cgs_fail(CGS_EFORMAT, "%s: entry %zu of its directory is damaged", path, z->count);
    *size = CENTRAL_BYTES + name + extra + comment;

    /* one byte down, over a header that has been read, makes room for a NUL */
    memmove(p + CENTRAL_BYTES - 1, p + CENTRAL_BYTES, name);
    p[CENTRAL_BYTES - 1 + name] = '\0';
    m->name = (const char *)p + CENTRAL_BYTES - 1;

    m->packed = packed;
    m->deflated = z->may_deflate && method == 8;
    if ((flags & 1) || !(m->deflated || (method == 0 && packed == m->bytes)))
        return cgs_fail(CGS_EFORMAT, "%s: member %s is compressed or encrypted (method %u)%s", path,
                        m->name, method,
                        z->may_deflate ? "" : "; torch stores its members as they are");
    return CGS_OK;
}

static int compare_member(const void *a, const void *b) {
    return strcmp(((const cgs_zip_member *)a)->name, ((const cgs_zip_member *)b)->name);
}

cgs_status cgs_zip_open(cgs_zip *z, const cgs_weights *file, bool may_deflate) {
    directory d = {0};
    memset(z, 0, sizeof *z);
    z->file = file;
    z->may_deflate = may_deflate;
    CGS_TRY(find_directory(file, &d));
    if (d.offset > d.end || d.bytes > d.end - d.offset || d.bytes > MAX_DIRECTORY ||
        d.count > d.bytes / CENTRAL_BYTES)
        return cgs_fail(CGS_EFORMAT,
                        "%s: its zip directory claims %" PRIu64 " entries in %" PRIu64
                        " bytes at byte %" PRIu64,
                        file->path, d.count, d.bytes, d.offset);
    z->end = d.offset;
    z->names = malloc((size_t)d.bytes + 1);
    z->member = malloc(((size_t)d.count + 1) * sizeof *z->member);
    if (!z->names || !z->member)
        return cgs_fail(CGS_ENOMEM, "%s: no memory for its directory", file->path);
    CGS_TRY(cgs_weights_pread(file, d.offset, z->names, (size_t)d.bytes));

    for (size_t at = 0, size = 0; z->count < d.count; at += size, z->count++)
        CGS_TRY(read_entry(z, z->names + at, (size_t)d.bytes - at, &z->member[z->count], &size));

    qsort(z->member, z->count, sizeof *z->member, compare_member);
    for (size_t i = 1; i < z->count; i++)
        if (compare_member(&z->member[i - 1], &z->member[i]) == 0)
            return cgs_fail(CGS_EFORMAT, "%s: member %s occurs twice", file->path,
                            z->member[i].name);
    return CGS_OK;
}

void cgs_zip_close(cgs_zip *z) {
    free(z->member);
    free(z->names);
    memset(z, 0, sizeof *z);
}

cgs_status cgs_zip_find(cgs_zip *z, const char *name, cgs_zip_member **out) {
    cgs_zip_member key = {.name = name};
    *out = bsearch(&key, z->member, z->count, sizeof *z->member, compare_member);
    cgs_zip_member *m = *out;
    if (!m || m->offset != 0) return CGS_OK;

    unsigned char b[LOCAL_BYTES];
    const char *path = z->file->path;
    if (m->header > z->end || z->end - m->header < LOCAL_BYTES)
        return cgs_fail(CGS_EFORMAT, "%s: member %s claims to lie at byte %" PRIu64, path, name,
                        m->header);
    CGS_TRY(cgs_weights_pread(z->file, m->header, b, sizeof b));
    uint64_t offset = m->header + LOCAL_BYTES + le(b + 26, 2) + le(b + 28, 2);
    if (memcmp(b, "PK\3\4", 4) != 0 || offset > z->end || m->packed > z->end - offset)
        return cgs_fail(CGS_EFORMAT, "%s: member %s: its %" PRIu64 " bytes do not lie in the file",
                        path, name, m->bytes);
    m->offset = offset;
    return CGS_OK;
}

/* features.c - the feature file: head, rows, a checksum a row; all little endian.
 *
 * A row is checked each time it is read, so damage is found where it matters and opening a file
 * of many gigabytes costs nothing. */
#include "data/features.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/checksum.h"

#define MAGIC "cgsfeat\n"
#define VERSION 1u

typedef struct head {
    char magic[8];
    uint32_t version, head_bytes;
    uint64_t network, rows, row_bytes;
    char source_name[256];
    uint64_t source_bytes;
    int64_t source_time; /* nanoseconds */
    uint64_t checksum;   /* of all the above */
} head;

struct cgs_features {
    char path[4096];
    const uint8_t *map; /* (bytes) */
    size_t bytes;
    const head *head;
    const uint8_t *rows;
    const uint64_t *checks; /* (rows) */
};

static uint64_t padded(uint64_t n) { return (n + 7) / 8 * 8; }

static cgs_status describe(head *h, const cgs_features_key *key) {
    struct stat st;
    if (stat(key->dataset, &st) != 0)
        return cgs_fail(CGS_EIO, "%s: %s", key->dataset, strerror(errno));
    const char *slash = strrchr(key->dataset, '/');
    memset(h, 0, sizeof *h);
    memcpy(h->magic, MAGIC, sizeof h->magic);
    h->version = VERSION;
    h->head_bytes = sizeof *h;
    h->network = key->network;
    h->rows = (uint64_t)key->rows;
    h->row_bytes = key->row_bytes;
    snprintf(h->source_name, sizeof h->source_name, "%.255s", slash ? slash + 1 : key->dataset);
    h->source_bytes = (uint64_t)st.st_size;
    h->source_time = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    h->checksum = cgs_checksum(h, offsetof(head, checksum));
    return CGS_OK;
}

/* ---- reading ----------------------------------------------------------------------- */

static cgs_status map_file(cgs_features *f) {
    int fd = open(f->path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0) return cgs_fail(CGS_EIO, "%s: %s", f->path, strerror(errno));
    cgs_status rc = CGS_OK;
    if (fstat(fd, &st) != 0 || st.st_size < (off_t)sizeof(head)) {
        rc = cgs_fail(CGS_EFORMAT, "%s: too short for a feature file", f->path);
    } else {
        f->bytes = (size_t)st.st_size;
        void *map = mmap(NULL, f->bytes, PROT_READ, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED)
            rc = cgs_fail(CGS_EIO, "%s: cannot be mapped: %s", f->path, strerror(errno));
        else
            f->map = map;
    }
    close(fd);
    return rc;
}

cgs_status cgs_features_open(cgs_features **out, const char *path, const cgs_features_key *key) {
    head want;
    *out = NULL;
    CGS_TRY(describe(&want, key));
    cgs_features *f = calloc(1, sizeof *f);
    if (!f) return cgs_fail(CGS_ENOMEM, "%s: no memory", path);
    snprintf(f->path, sizeof f->path, "%s", path);
    cgs_status rc = map_file(f);
    if (rc == CGS_OK && memcmp(f->map, &want, sizeof want) != 0)
        rc = cgs_fail(CGS_EFORMAT, "%s: features of another network, dataset or version", path);
    uint64_t data = padded(want.rows * want.row_bytes);
    if (rc == CGS_OK && f->bytes != sizeof want + data + want.rows * sizeof(uint64_t))
        rc = cgs_fail(CGS_EFORMAT, "%s: %zu bytes, %llu rows of %llu bytes do not fit", path,
                      f->bytes, (unsigned long long)want.rows, (unsigned long long)want.row_bytes);
    if (rc != CGS_OK) {
        cgs_features_close(f);
        return rc;
    }
    f->head = (const head *)f->map;
    f->rows = f->map + sizeof(head);
    f->checks = (const uint64_t *)(f->rows + data);
    *out = f;
    return CGS_OK;
}

void cgs_features_close(cgs_features *f) {
    if (!f) return;
    if (f->map) munmap((void *)(uintptr_t)f->map, f->bytes);
    free(f);
}

cgs_status cgs_features_read(const cgs_features *f, int64_t row, void *out) {
    if (row < 0 || (uint64_t)row >= f->head->rows)
        return cgs_fail(CGS_EARG, "%s: row %lld of %llu does not exist", f->path, (long long)row,
                        (unsigned long long)f->head->rows);
    const uint8_t *from = f->rows + (uint64_t)row * f->head->row_bytes;
    if (cgs_checksum(from, f->head->row_bytes) != f->checks[row])
        return cgs_fail(CGS_EFORMAT, "%s: row %lld is damaged", f->path, (long long)row);
    memcpy(out, from, f->head->row_bytes);
    return CGS_OK;
}

/* ---- writing ----------------------------------------------------------------------- */

cgs_status cgs_features_begin(cgs_features_writer *w, const char *path,
                              const cgs_features_key *key) {
    head h;
    CGS_TRY(describe(&h, key));
    w->key = *key;
    w->written = 0;
    w->checks = malloc((size_t)key->rows * sizeof *w->checks + 1);
    if (!w->checks)
        return cgs_fail(CGS_ENOMEM, "%s: no memory for %lld rows", path, (long long)key->rows);
    cgs_status rc = cgs_newfile_open(&w->file, path);
    if (rc != CGS_OK) {
        free(w->checks);
        return rc;
    }
    fwrite(&h, sizeof h, 1, w->file.f); /* errors surface when the file is committed */
    return CGS_OK;
}

void cgs_features_append(cgs_features_writer *w, const void *rows, int count) {
    const uint8_t *at = rows;
    for (int i = 0; i < count && w->written < w->key.rows; i++, at += w->key.row_bytes) {
        w->checks[w->written++] = cgs_checksum(at, w->key.row_bytes);
        fwrite(at, 1, w->key.row_bytes, w->file.f);
    }
}

cgs_status cgs_features_commit(cgs_features_writer *w) {
    static const char zeros[8];
    uint64_t data = (uint64_t)w->key.rows * w->key.row_bytes;
    if (w->written != w->key.rows) {
        cgs_features_abandon(w);
        return cgs_fail(CGS_EARG, "features: %lld rows of %lld were written", (long long)w->written,
                        (long long)w->key.rows);
    }
    fwrite(zeros, 1, (size_t)(padded(data) - data), w->file.f);
    fwrite(w->checks, sizeof *w->checks, (size_t)w->key.rows, w->file.f);
    free(w->checks);
    return cgs_newfile_commit(&w->file);
}

void cgs_features_abandon(cgs_features_writer *w) {
    free(w->checks);
    cgs_newfile_abandon(&w->file);
}

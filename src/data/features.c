/* features.c - the feature file: a header, then rows, each followed by a checksum; little endian.
 *
 * A row is checked each time it is read, so damage is found where it matters and opening a file of
 * many gigabytes costs nothing.  The complete rows of a partial file are valid. */
#include "data/features.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"
#include "data/checksum.h"

#define MAGIC "cgsfeat\n"
#define VERSION 2u

typedef struct head {
    char magic[8];
    uint32_t version, head_bytes;
    uint64_t network, rows, row_bytes;
    char source_name[256];
    uint64_t source_bytes;
    int64_t source_time; /* nanoseconds */
    uint64_t checksum;   /* of all of the above */
} head;

struct cgs_features {
    char path[4096];
    const uint8_t *map; /* (bytes) */
    size_t bytes;
    const head *head;
    const uint8_t *rows;
};

/* bytes from one row to the next: padding keeps the checksums aligned */
static uint64_t stride(uint64_t row_bytes) { return (row_bytes + 7) / 8 * 8 + sizeof(uint64_t); }

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

cgs_status cgs_features_open(cgs_features **out, const char *path, const cgs_features_key *key) {
    head want;
    *out = NULL;
    CGS_TRY(describe(&want, key));
    cgs_features *f = calloc(1, sizeof *f);
    if (!f) return cgs_fail(CGS_ENOMEM, "%s: no memory", path);
    snprintf(f->path, sizeof f->path, "%s", path);
    cgs_status rc = cgs_map_file(path, sizeof(head), &f->map, &f->bytes);
    if (rc == CGS_OK && memcmp(f->map, &want, sizeof want) != 0)
        rc = cgs_fail(CGS_EFORMAT, "%s: features of another network, dataset or version", path);
    if (rc == CGS_OK && f->bytes != sizeof want + want.rows * stride(want.row_bytes))
        rc = cgs_fail(CGS_EFORMAT, "%s: %zu bytes, %llu rows of %llu bytes do not fit", path,
                      f->bytes, (unsigned long long)want.rows, (unsigned long long)want.row_bytes);
    if (rc != CGS_OK) {
        cgs_features_close(f);
        return rc;
    }
    f->head = (const head *)f->map;
    f->rows = f->map + sizeof(head);
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
    uint64_t step = stride(f->head->row_bytes), check;
    const uint8_t *from = f->rows + (uint64_t)row * step;
    memcpy(&check, from + step - sizeof check, sizeof check);
    if (cgs_checksum(from, f->head->row_bytes) != check)
        return cgs_fail(CGS_EFORMAT, "%s: row %lld is damaged", f->path, (long long)row);
    memcpy(out, from, f->head->row_bytes);
    return CGS_OK;
}

/* ---- writing ----------------------------------------------------------------------- */

/* counts the complete rows and leaves the file positioned after the last of them */
static cgs_status count_rows(cgs_features_writer *w) {
    uint64_t bytes = w->key.row_bytes, step = stride(bytes), check;
    uint8_t *row = malloc(step);
    if (!row) return cgs_fail(CGS_ENOMEM, "%s: no memory for a row", w->part);
    while (w->written < w->key.rows && fread(row, 1, step, w->file) == step) {
        memcpy(&check, row + step - sizeof check, sizeof check);
        if (cgs_checksum(row, bytes) != check) break;
        w->written++;
    }
    free(row);
    return CGS_OK;
}

/* a partial file of this network and dataset is kept, anything else overwritten */
static cgs_status take_over(cgs_features_writer *w) {
    head want, have;
    CGS_TRY(describe(&want, &w->key));
    bool ours = fread(&have, sizeof have, 1, w->file) == 1 && !memcmp(&have, &want, sizeof want);
    if (ours) CGS_TRY(count_rows(w));
    off_t end = ours ? (off_t)(sizeof want + (uint64_t)w->written * stride(w->key.row_bytes)) : 0;
    clearerr(w->file);
    if (fseeko(w->file, end, SEEK_SET) != 0 || ftruncate(fileno(w->file), end) != 0)
        return cgs_fail(CGS_EIO, "%s: %s", w->part, strerror(errno));
    if (!ours) fwrite(&want, sizeof want, 1, w->file); /* errors surface later */
    return CGS_OK;
}

/* is the opened file still the one of that name? */
static bool still_there(const cgs_features_writer *w) {
    struct stat mine, now;
    return fstat(fileno(w->file), &mine) == 0 && stat(w->part, &now) == 0 &&
           mine.st_ino == now.st_ino && mine.st_dev == now.st_dev;
}

static cgs_status open_part(cgs_features_writer *w) {
    for (;;) {
        int fd = open(w->part, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        w->file = fd < 0 ? NULL : fdopen(fd, "r+b");
        if (!w->file) {
            int why = errno;
            if (fd >= 0) close(fd);
            return cgs_fail(CGS_EIO, "%s: %s", w->part, strerror(why));
        }
        if (flock(fd, LOCK_EX) != 0) { /* waits */
            int why = errno;
            cgs_features_pause(w);
            return cgs_fail(CGS_EIO, "%s: %s", w->part, strerror(why));
        }
        if (still_there(w)) return CGS_OK;
        cgs_features_pause(w); /* another writer has finished the file */
    }
}

cgs_status cgs_features_begin(cgs_features_writer *w, const char *path,
                              const cgs_features_key *key) {
    *w = (cgs_features_writer){.key = *key};
    if (snprintf(w->path, sizeof w->path, "%s", path) >= (int)sizeof w->path)
        return cgs_fail(CGS_EARG, "%.64s...: path is too long", path);
    snprintf(w->part, sizeof w->part, "%s.part", w->path);
    CGS_TRY(open_part(w));
    cgs_status rc = take_over(w);
    if (rc != CGS_OK) cgs_features_pause(w);
    return rc;
}

cgs_status cgs_features_append(cgs_features_writer *w, const void *rows, int count) {
    static const char zeros[8];
    const uint8_t *at = rows;
    uint64_t bytes = w->key.row_bytes, pad = stride(bytes) - bytes - sizeof(uint64_t);
    for (int i = 0; i < count && w->written < w->key.rows; i++, at += bytes) {
        uint64_t check = cgs_checksum(at, bytes);
        fwrite(at, 1, bytes, w->file);
        fwrite(zeros, 1, pad, w->file);
        if (fwrite(&check, sizeof check, 1, w->file) != 1 || ferror(w->file))
            return cgs_fail(CGS_EIO, "%s: %s", w->part, strerror(errno));
        w->written++;
    }
    return CGS_OK;
}

cgs_status cgs_features_commit(cgs_features_writer *w) {
    if (w->written != w->key.rows) {
        cgs_features_pause(w);
        return cgs_fail(CGS_EARG, "features: %lld rows of %lld were written", (long long)w->written,
                        (long long)w->key.rows);
    }
    bool failed = ferror(w->file) || fflush(w->file) != 0;
    int why = errno;
    cgs_status rc =
        failed ? cgs_fail(CGS_EIO, "%s: %s", w->part, why ? strerror(why) : "could not be written")
               : cgs_replace_file(w->part, w->path);
    cgs_features_pause(w);
    return rc;
}

void cgs_features_pause(cgs_features_writer *w) {
    if (w->file) fclose(w->file); /* which releases the lock */
    w->file = NULL;
}

/* journal.c - appending, scanning and reading entries. */
#define _GNU_SOURCE
#include "data/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/threads.h"
#include "data/checksum.h"

#define MAGIC "cgsjrnl1"
#define MARK UINT64_C(0x65646f7369706501) /* \1episode */
#define MAX_HEAD ((size_t)1 << 20)

/* a kill loses nothing that was written; a power cut loses what was not synced, but one fsync
 * per episode would cost more than simulating it in many environments */
#define SYNC_BYTES ((uint64_t)64 << 20)
#define SYNC_SECONDS 5.0

enum { HEAD_WORDS = 3, RECORD_WORDS = 5 };

static cgs_status io_error(const cgs_journal *j) {
    return cgs_fail(CGS_EIO, "%s: %s", j->path, strerror(errno));
}

static bool write_at(int fd, const void *data, size_t n, uint64_t at) {
    const char *p = data;
    while (n) {
        ssize_t k = pwrite(fd, p, n, (off_t)at);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return false;
        p += k;
        at += (uint64_t)k;
        n -= (size_t)k;
    }
    return true;
}

/* false with errno 0: the file ends before */
static bool read_at(int fd, void *data, size_t n, uint64_t at) {
    char *p = data;
    while (n) {
        ssize_t k = pread(fd, p, n, (off_t)at);
        if (k < 0 && errno == EINTR) continue;
        if (k == 0) errno = 0;
        if (k <= 0) return false;
        p += k;
        at += (uint64_t)k;
        n -= (size_t)k;
    }
    return true;
}

static cgs_status remember(cgs_journal *j, int64_t rows, uint64_t offset, uint64_t bytes) {
    if (j->count == j->capacity) {
        int64_t capacity = j->capacity ? 2 * j->capacity : 256;
        uint64_t *o = realloc(j->offset, (size_t)capacity * sizeof *o);
        if (o) j->offset = o;
        uint64_t *b = realloc(j->bytes, (size_t)capacity * sizeof *b);
        if (b) j->bytes = b;
        int64_t *r = realloc(j->rows, (size_t)capacity * sizeof *r);
        if (r) j->rows = r;
        if (!o || !b || !r) return cgs_fail(CGS_ENOMEM, "%s: no memory", j->path);
        j->capacity = capacity;
    }
    j->offset[j->count] = offset;
    j->bytes[j->count] = bytes;
    j->rows[j->count++] = rows;
    return CGS_OK;
}

static cgs_status begin(cgs_journal *j, const char *head) {
    size_t n = strlen(head);
    uint64_t words[HEAD_WORDS] = {0, n, cgs_checksum(head, n)};
    memcpy(words, MAGIC, 8);
    if (ftruncate(j->fd, 0) != 0 || !write_at(j->fd, head, n, sizeof words) ||
        !write_at(j->fd, words, sizeof words, 0) || fsync(j->fd) != 0)
        return io_error(j);
    j->end = sizeof words + n;
    return CGS_OK;
}

/* the first line in which two headers differ, for the message */
static cgs_status other_head(const cgs_journal *j, const char *was, const char *is) {
    while (*was && *is) {
        size_t a = strcspn(was, "\n"), b = strcspn(is, "\n");
        if (a != b || memcmp(was, is, a)) break;
        was += a + (was[a] == '\n');
        is += b + (is[b] == '\n');
    }
    return cgs_fail(CGS_EARG,
                    "%s: begun with \"%.*s\", continued with \"%.*s\"; delete it or use the same "
                    "settings",
                    j->path, (int)strcspn(was, "\n"), was, (int)strcspn(is, "\n"), is);
}

static cgs_status check_head(cgs_journal *j, const char *head, const uint64_t *words) {
    size_t n = (size_t)words[1];
    char *was = n <= MAX_HEAD ? malloc(n + 1) : NULL;
    cgs_status rc = CGS_OK;
    if (!was || !read_at(j->fd, was, n, HEAD_WORDS * 8) || cgs_checksum(was, n) != words[2]) {
        rc = cgs_fail(CGS_EFORMAT, "%s: its header is damaged; delete it to start over", j->path);
    } else {
        was[n] = '\0';
        if (strcmp(was, head)) rc = other_head(j, was, head);
    }
    free(was);
    j->end = HEAD_WORDS * 8 + n;
    return rc;
}

static cgs_status walk(cgs_journal *j, uint64_t size) {
    char *data = NULL;
    size_t capacity = 0;
    cgs_status rc = CGS_OK;
    for (;;) {
        uint64_t words[RECORD_WORDS];
        uint64_t at = j->end + sizeof words;
        if (at > size || !read_at(j->fd, words, sizeof words, j->end)) break;
        if (words[0] != MARK || words[4] != cgs_checksum(words, 32) || words[2] > size - at ||
            words[1] > INT32_MAX)
            break;
        if (words[2] > capacity) {
            free(data);
            capacity = (size_t)words[2];
            if (!(data = malloc(capacity))) {
                rc = cgs_fail(CGS_ENOMEM, "%s: no memory for an entry of %zu bytes", j->path,
                              capacity);
                break;
            }
        }
        if (!read_at(j->fd, data, (size_t)words[2], at) ||
            cgs_checksum(data, (size_t)words[2]) != words[3])
            break;
        rc = remember(j, (int64_t)words[1], at, words[2]);
        if (rc != CGS_OK) break;
        j->end = at + words[2];
    }
    free(data);
    if (rc == CGS_OK && ftruncate(j->fd, (off_t)j->end) != 0) rc = io_error(j);
    return rc;
}

cgs_status cgs_journal_open(cgs_journal *j, const char *path, const char *head) {
    memset(j, 0, sizeof *j);
    j->fd = -1;
    if ((size_t)snprintf(j->path, sizeof j->path, "%s", path) >= sizeof j->path)
        return cgs_fail(CGS_EARG, "%.64s...: path is too long", path);
    j->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (j->fd < 0) return io_error(j);
    struct stat st;
    uint64_t words[HEAD_WORDS];
    cgs_status rc = CGS_OK;
    if (flock(j->fd, LOCK_EX | LOCK_NB) != 0)
        rc = errno == EWOULDBLOCK ? cgs_fail(CGS_EIO, "%s: another process is writing it", j->path)
                                  : io_error(j);
    else if (fstat(j->fd, &st) != 0)
        rc = io_error(j);
    /* the header is written last, so a file without one has no entries */
    else if (!read_at(j->fd, words, sizeof words, 0) || words[0] == 0)
        rc = begin(j, head);
    else if (memcmp(words, MAGIC, 8))
        rc = cgs_fail(CGS_EFORMAT, "%s: not a recording of this program", j->path);
    else {
        rc = check_head(j, head, words);
        if (rc == CGS_OK) rc = walk(j, (uint64_t)st.st_size);
    }
    j->synced_at = cgs_now();
    if (rc != CGS_OK) cgs_journal_close(j);
    return rc;
}

void cgs_journal_close(cgs_journal *j) {
    if (j->fd >= 0) close(j->fd);
    j->fd = -1;
    free(j->offset);
    free(j->bytes);
    free(j->rows);
    j->offset = j->bytes = NULL;
    j->rows = NULL;
    j->count = j->capacity = 0;
}

cgs_status cgs_journal_add(cgs_journal *j, int64_t rows, const void *data, size_t bytes) {
    uint64_t words[RECORD_WORDS] = {MARK, (uint64_t)rows, bytes, cgs_checksum(data, bytes), 0};
    words[4] = cgs_checksum(words, 32);
    if (!write_at(j->fd, words, sizeof words, j->end) ||
        !write_at(j->fd, data, bytes, j->end + sizeof words)) {
        cgs_status rc = io_error(j);
        if (ftruncate(j->fd, (off_t)j->end) != 0) return io_error(j);
        return rc;
    }
    CGS_TRY(remember(j, rows, j->end + sizeof words, bytes));
    j->end += sizeof words + bytes;
    j->unsynced += sizeof words + bytes;
    double now = cgs_now();
    if (j->unsynced >= SYNC_BYTES || now - j->synced_at >= SYNC_SECONDS) {
        if (fdatasync(j->fd) != 0) return io_error(j);
        j->unsynced = 0;
        j->synced_at = now;
    }
    return CGS_OK;
}

cgs_status cgs_journal_read(cgs_journal *j, int64_t i, void *out) {
    uint64_t words[RECORD_WORDS];
    if (!read_at(j->fd, words, sizeof words, j->offset[i] - sizeof words) ||
        !read_at(j->fd, out, (size_t)j->bytes[i], j->offset[i]) || words[2] != j->bytes[i] ||
        cgs_checksum(out, (size_t)j->bytes[i]) != words[3])
        return cgs_fail(CGS_EIO, "%s: entry %" PRId64 " changed since it was written", j->path, i);
    return CGS_OK;
}

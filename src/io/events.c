/* events.c - the TensorBoard event file.
 *
 * A file is a list of records, little endian,
 *   u64 length | u32 crc(length) | message | u32 crc(message)
 * and a message is a small protobuf:
 *   Event   1: double wall_time  2: int64 step  3: string file_version
 *           5: Summary           7: SessionLog { 1: status, 1 is START }
 *   Summary 1: Value { 1: string tag  2: float simple_value } */
#include "io/events.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"

#define MAX_TAG 1024

struct cgs_events {
    FILE *f;
    char path[4096];
};

/* ---- records ------------------------------------------------------------------- */

static uint32_t crc32c(const unsigned char *p, size_t n) {
    uint32_t c = ~0u;
    while (n--) {
        c ^= *p++;
        for (int k = 0; k < 8; k++) c = c >> 1 ^ (0x82F63B78u & (0u - (c & 1)));
    }
    return ~c;
}

/* a checksum of data that contains checksums is weak, so the format stores it masked */
static uint32_t masked_crc(const unsigned char *p, size_t n) {
    uint32_t c = crc32c(p, n);
    return (c >> 15 | c << 17) + 0xA282EAD8u;
}

static void store(unsigned char *to, uint64_t v, int bytes) {
    for (int i = 0; i < bytes; i++) to[i] = (unsigned char)(v >> 8 * i);
}

typedef struct message {
    unsigned char data[MAX_TAG + 96];
    size_t n;
} message;

static void put_varint(message *m, uint64_t v) {
    for (; v >= 0x80; v >>= 7) m->data[m->n++] = (unsigned char)(v | 0x80);
    m->data[m->n++] = (unsigned char)v;
}

static void put_key(message *m, unsigned field, unsigned wire) { put_varint(m, field << 3 | wire); }

static void put_fixed(message *m, unsigned field, uint64_t bits, int bytes) {
    put_key(m, field, bytes == 8 ? 1 : 5);
    store(m->data + m->n, bits, bytes);
    m->n += (size_t)bytes;
}

static void put_bytes(message *m, unsigned field, const void *data, size_t n) {
    put_key(m, field, 2);
    put_varint(m, n);
    memcpy(m->data + m->n, data, n);
    m->n += n;
}

static message event(double wall_time, int64_t step) {
    message m = {.n = 0};
    uint64_t bits;
    memcpy(&bits, &wall_time, sizeof bits);
    put_fixed(&m, 1, bits, 8);
    put_key(&m, 2, 0);
    put_varint(&m, (uint64_t)step);
    return m;
}

static cgs_status put_record(cgs_events *e, const message *m) {
    /* after a partial record no reader would find the next one */
    if (ferror(e->f)) return cgs_fail(CGS_EIO, "%s: an earlier write failed", e->path);
    unsigned char head[12], tail[4];
    store(head, m->n, 8);
    store(head + 8, masked_crc(head, 8), 4);
    store(tail, masked_crc(m->data, m->n), 4);
    if (fwrite(head, 1, 12, e->f) != 12 || fwrite(m->data, 1, m->n, e->f) != m->n ||
        fwrite(tail, 1, 4, e->f) != 4)
        return cgs_fail(CGS_EIO, "%s: %s", e->path, strerror(errno));
    return CGS_OK;
}

/* ---- the file ------------------------------------------------------------------ */

/* a new file, never one that another run may be writing */
static cgs_status create_file(cgs_events *e, const char *dir, double wall_time) {
    char host[64] = "localhost", name[160];
    if (gethostname(host, sizeof host - 1) != 0) strcpy(host, "localhost");
    for (char *p = host; *p; p++)
        if (*p == '/') *p = '-';
    for (int k = 0; k < 1000; k++) {
        snprintf(name, sizeof name, "events.out.tfevents.%010lld.%s.%ld.%d", (long long)wall_time,
                 host, (long)getpid(), k);
        CGS_TRY(cgs_path_join(e->path, sizeof e->path, dir, name));
        int fd = open(e->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (fd >= 0) e->f = fdopen(fd, "wb");
        if (fd >= 0 && !e->f) close(fd);
        if (e->f) return CGS_OK;
        if (errno != EEXIST) break;
    }
    return cgs_fail(CGS_EIO, "%s: %s", e->path, strerror(errno));
}

cgs_status cgs_events_open(cgs_events **out, const char *dir, int64_t first_step,
                           double wall_time) {
    *out = NULL;
    cgs_events *e = calloc(1, sizeof *e);
    if (!e) return cgs_fail(CGS_ENOMEM, "%s: no memory for an event file", dir);
    cgs_status rc = cgs_make_dirs(dir);
    if (rc == CGS_OK) rc = create_file(e, dir, wall_time);
    if (rc == CGS_OK) {
        static const char VERSION[] = "brain.Event:2";
        message m = event(wall_time, 0);
        put_bytes(&m, 3, VERSION, sizeof VERSION - 1);
        rc = put_record(e, &m);
    }
    if (rc == CGS_OK && first_step > 0) {
        message m = event(wall_time, first_step);
        put_bytes(&m, 7, "\x08\x01", 2);
        rc = put_record(e, &m);
    }
    if (rc == CGS_OK) rc = cgs_events_flush(e);
    if (rc != CGS_OK) {
        if (e->f) fclose(e->f);
        free(e);
        return rc;
    }
    *out = e;
    return CGS_OK;
}

cgs_status cgs_events_scalar(cgs_events *e, int64_t step, const char *tag, float value,
                             double wall_time) {
    size_t n = strlen(tag);
    if (n == 0 || n > MAX_TAG) return cgs_fail(CGS_EARG, "%s: a tag of %zu bytes", e->path, n);
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    message v = {.n = 0}, summary = {.n = 0}, m = event(wall_time, step);
    put_bytes(&v, 1, tag, n);
    put_fixed(&v, 2, bits, 4);
    put_bytes(&summary, 1, v.data, v.n);
    put_bytes(&m, 5, summary.data, summary.n);
    return put_record(e, &m);
}

cgs_status cgs_events_flush(cgs_events *e) {
    if (fflush(e->f) != 0) return cgs_fail(CGS_EIO, "%s: %s", e->path, strerror(errno));
    return CGS_OK;
}

const char *cgs_events_path(const cgs_events *e) { return e->path; }

cgs_status cgs_events_close(cgs_events *e) {
    if (!e) return CGS_OK;
    cgs_status rc = CGS_OK;
    if (ferror(e->f)) rc = cgs_fail(CGS_EIO, "%s: an earlier write failed", e->path);
    if (fclose(e->f) != 0) rc = cgs_fail(CGS_EIO, "%s: %s", e->path, strerror(errno));
    free(e);
    return rc;
}

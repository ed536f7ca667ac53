/* test_io.h - shared by the tests of file formats: a growing buffer, a scratch folder, files that
 * are damaged in every way, and a disk that is full. */
#ifndef CGS_TEST_IO_H
#define CGS_TEST_IO_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/file.h"
#include "core/rng.h"
#include "io/weights.h"

typedef struct bytes {
    unsigned char *data;
    size_t n, capacity;
} bytes;

static inline void put(bytes *b, const void *data, size_t n) {
    if (b->n + n > b->capacity) {
        b->capacity = 2 * (b->n + n) + 64;
        b->data = realloc(b->data, b->capacity);
        assert_non_null(b->data);
    }
    if (n) memcpy(b->data + b->n, data, n);
    b->n += n;
}
static inline void put_le(bytes *b, uint64_t v, int n) {
    for (int i = 0; i < n; i++)
        put(b, &(unsigned char){i < 8 ? (unsigned char)(v >> 8 * i) : 0}, 1);
}
static inline void put_str(bytes *b, const char *s) { put(b, s, strlen(s)); }
static inline void drop(bytes *b) {
    free(b->data);
    *b = (bytes){0};
}

/* one folder a test program, removed by its teardown */
static char scratch[64];

static inline int make_scratch(void **state) {
    (void)state;
    strcpy(scratch, "/dev/shm/cgs-test-XXXXXX"); /* thousands of small files: memory first */
    if (mkdtemp(scratch)) return 0;
    strcpy(scratch, "/tmp/cgs-test-XXXXXX");
    return mkdtemp(scratch) ? 0 : -1;
}
static inline int remove_scratch(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", scratch);
    return system(command);
}
/* the last four results stay valid */
static inline const char *in_scratch(const char *name) {
    static char path[4][256];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", scratch, name);
    return path[turn];
}

static inline void write_bytes(const char *path, const bytes *b) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    if (b->n) assert_int_equal(fwrite(b->data, 1, b->n, f), b->n);
    assert_int_equal(fclose(f), 0);
}

static inline bytes read_bytes(const char *path) {
    bytes b = {0};
    char *data;
    assert_int_equal(cgs_read_file(path, 1 << 26, &data, &b.n), CGS_OK);
    b.data = (unsigned char *)data;
    b.capacity = b.n + 1;
    return b;
}

/* opening must fail as a damaged file does, with a sentence that holds `word` */
static inline void check_refused(const char *path, const char *word) {
    cgs_weights *w;
    cgs_status rc = cgs_weights_open(&w, path);
    if (rc != CGS_EFORMAT || !strstr(cgs_last_error(), word) || !strstr(cgs_last_error(), path))
        fail_msg("%s: status %d, \"%s\", expected \"%s\"", path, (int)rc, cgs_last_error(), word);
    assert_null(w);
}

/* opens a file that may be damaged and, where that succeeds, reads every tensor of a
 * size that a damaged shape cannot have blown up; true when all went well */
static inline bool try_weights(const char *path) {
    cgs_weights *w;
    cgs_status rc = cgs_weights_open(&w, path);
    if (rc != CGS_OK) {
        assert_null(w);
        assert_true(rc == CGS_EFORMAT || rc == CGS_ENOMEM);
        return false;
    }
    bool all = true;
    for (size_t i = 0; i < w->count; i++) {
        const cgs_weight *e = &w->entry[i];
        assert_ptr_equal(cgs_weights_find(w, e->name), e);
        if (e->count > 1 << 18) continue;
        float *out = malloc((e->count + 1) * sizeof *out);
        rc = cgs_weights_to_f32(e, out);
        assert_true(rc == CGS_OK || rc == CGS_EFORMAT);
        all = all && rc == CGS_OK;
        free(out);
        out = malloc(e->bytes + 1);
        rc = cgs_weights_read(e, out);
        assert_true(rc == CGS_OK || rc == CGS_EFORMAT);
        free(out);
    }
    cgs_weights_close(w);
    return all;
}

/* every length, and every bit of every byte wrong once: `try` must return */
static inline void damage(const char *path, bool (*try)(const char *path)) {
    bytes b = read_bytes(path);
    assert_true(try(path));
    size_t accepted = 0;
    for (size_t n = 0; n < b.n; n++) {
        assert_int_equal(truncate(path, (off_t)n), 0);
        if (try(path)) fail_msg("%s: accepted when cut to %zu of %zu bytes", path, n, b.n);
        bytes whole = {.data = b.data, .n = b.n};
        write_bytes(path, &whole);
    }
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    for (size_t i = 0; i < b.n; i++)
        for (int bit = 0; bit <= 8; bit++) {
            unsigned char wrong = bit < 8 ? b.data[i] ^ (unsigned char)(1 << bit) : 0xFF;
            fseek(f, (long)i, SEEK_SET);
            fputc(wrong, f);
            fflush(f);
            accepted += try(path);
            fseek(f, (long)i, SEEK_SET);
            fputc(b.data[i], f);
            fflush(f);
        }
    fclose(f);
    assert_true(try(path));
    printf("    %zu bytes: %zu of %zu damaged files were still valid\n", b.n, accepted, 9 * b.n);
    drop(&b);
}

/* files may grow to n bytes only; a negative n lifts the limit */
static inline void limit_files(long n) {
    struct rlimit r;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &r);
    r.rlim_cur = n < 0 ? r.rlim_max : (rlim_t)n;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &r), 0);
}

/* a write that the disk refused leaves the old file and nothing else */
static inline void check_old_file(const char *path, const bytes *old) {
    char tmp[300];
    snprintf(tmp, sizeof tmp, "%s.tmp", path);
    assert_false(cgs_file_exists(tmp));
    bytes now = read_bytes(path);
    assert_int_equal(now.n, old->n);
    assert_memory_equal(now.data, old->data, old->n);
    drop(&now);
}

#endif /* CGS_TEST_IO_H */

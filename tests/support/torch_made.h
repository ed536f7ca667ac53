/* torch_made.h - torch zip files made byte by byte, because torch refuses to write what a
 * hostile file holds and the tests run without it. */
#ifndef CGS_TESTS_TORCH_MADE_H
#define CGS_TESTS_TORCH_MADE_H

#include <zlib.h>

#include "test_io.h"

/* ---- writing zip files, as torch lays them out --------------------------------- */

typedef struct zip {
    bytes body, directory;
    unsigned members;
    bool zip64; /* sizes and places in 64-bit fields */
    int method; /* of the next member */
} zip;

static inline void zip_add(zip *z, const char *name, const void *data, size_t n) {
    size_t at = z->body.n, name_n = strlen(name);
    size_t pad = 63 - (at + 30 + name_n + 4 + 63) % 64; /* the bytes begin at a multiple of 64 */
    uint64_t crc = crc32(0, data, (uInt)n);
    put_str(&z->body, "PK\3\4");
    put_le(&z->body, 0x08080000, 4); /* sizes are in the directory, and after the bytes */
    put_le(&z->body, 0, 18);
    put_le(&z->body, name_n, 2);
    put_le(&z->body, pad + 4, 2);
    put_str(&z->body, name);
    put_str(&z->body, "FB");
    put_le(&z->body, pad, 2);
    for (size_t i = 0; i < pad; i++) put_str(&z->body, "Z");
    assert_int_equal(z->body.n % 64, 0);
    put(&z->body, data, n);
    put_str(&z->body, "PK\7\x8");
    put_le(&z->body, crc, 4);
    put_le(&z->body, n, 4);
    put_le(&z->body, n, 4);

    bytes *d = &z->directory;
    put_str(d, "PK\1\2");
    put_le(d, 0x08080000, 6);
    put_le(d, (uint64_t)z->method, 2);
    put_le(d, 0, 4);
    put_le(d, crc, 4);
    put_le(d, z->zip64 ? 0xFFFFFFFF : n, 4);
    put_le(d, z->zip64 ? 0xFFFFFFFF : n, 4);
    put_le(d, name_n, 2);
    put_le(d, z->zip64 ? 34 : 0, 2);
    put_le(d, 0, 10);
    put_le(d, z->zip64 ? 0xFFFFFFFF : at, 4);
    put_str(d, name);
    if (z->zip64) {
        put_le(d, 0x7777, 2); /* an unknown field comes first */
        put_le(d, 2, 2);
        put_le(d, 0, 2);
        put_le(d, 1, 2);
        put_le(d, 24, 2);
        put_le(d, n, 8);
        put_le(d, n, 8);
        put_le(d, at, 8);
    }
    z->members++;
}

static inline void zip_save(zip *z, const char *path) {
    uint64_t at = z->body.n, n = z->directory.n;
    put(&z->body, z->directory.data, z->directory.n);
    if (z->zip64) {
        uint64_t end = z->body.n;
        put_str(&z->body, "PK\6\6");
        put_le(&z->body, 44, 8);
        put_le(&z->body, 0, 12);
        put_le(&z->body, z->members, 8);
        put_le(&z->body, z->members, 8);
        put_le(&z->body, n, 8);
        put_le(&z->body, at, 8);
        put_str(&z->body, "PK\6\7");
        put_le(&z->body, 0, 4);
        put_le(&z->body, end, 8);
        put_le(&z->body, 1, 4);
    }
    put_str(&z->body, "PK\5\6");
    put_le(&z->body, 0, 4);
    put_le(&z->body, z->zip64 ? 0xFFFF : z->members, 2);
    put_le(&z->body, z->zip64 ? 0xFFFF : z->members, 2);
    put_le(&z->body, z->zip64 ? 0xFFFFFFFF : n, 4);
    put_le(&z->body, z->zip64 ? 0xFFFFFFFF : at, 4);
    put_le(&z->body, 0, 2);
    write_bytes(path, &z->body);
    drop(&z->body);
    drop(&z->directory);
}

/* ---- writing pickles ----------------------------------------------------------- */

static inline void p_text(bytes *p, const char *s) {
    put_str(p, "X");
    put_le(p, strlen(s), 4);
    put_str(p, s);
}
static inline void p_int(bytes *p, int64_t v) {
    if (v >= INT32_MIN && v <= INT32_MAX) {
        put_str(p, "J");
        put_le(p, (uint64_t)v, 4);
    } else {
        put_str(p, "\x8A\x08");
        put_le(p, (uint64_t)v, 8);
    }
}
static inline void p_tuple(bytes *p, const int64_t *v, int n) {
    put_str(p, "(");
    for (int i = 0; i < n; i++) p_int(p, v[i]);
    put_str(p, "t");
}

typedef struct spec {
    const char *storage, *key;
    int64_t elements, offset;
    int rank;
    int64_t dim[9], stride[9];
} spec;

static inline void p_tensor(bytes *p, const spec *t) {
    put_str(p, "ctorch._utils\n_rebuild_tensor_v2\n((");
    p_text(p, "storage");
    put_str(p, "c");
    put_str(p, t->storage);
    put_str(p, "\n");
    p_text(p, t->key);
    p_text(p, "cpu");
    p_int(p, t->elements);
    put_str(p, "tQ");
    p_int(p, t->offset);
    p_tuple(p, t->dim, t->rank);
    p_tuple(p, t->stride, t->rank);
    put_str(p, "\x89"
               "ccollections\nOrderedDict\n)RtR");
}

static inline void p_ordered(bytes *p) { put_str(p, "ccollections\nOrderedDict\n)R"); }

#endif /* CGS_TESTS_TORCH_MADE_H */

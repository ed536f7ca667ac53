/* protobuf.c - see protobuf.h. */
#include "io/protobuf.h"

#include <stdlib.h>
#include <string.h>

enum { VARINT = 0, BYTES = 2, FIXED32 = 5, LONGEST = 10 /* bytes of a varint */ };

static bool grow(cgs_message *m, size_t more) {
    if (!m->failed && more > m->capacity - m->bytes) {
        size_t capacity = 2 * m->capacity + more + 256;
        unsigned char *data = realloc(m->data, capacity);
        m->failed = !data;
        if (data) {
            m->data = data;
            m->capacity = capacity;
        }
    }
    return !m->failed;
}

static size_t varint(unsigned char out[LONGEST], uint64_t v) {
    size_t n = 0;
    for (; v >= 0x80; v >>= 7) out[n++] = (unsigned char)(v | 0x80);
    out[n++] = (unsigned char)v;
    return n;
}

static void put(cgs_message *m, const void *data, size_t n) {
    if (!n || !grow(m, n)) return;
    memcpy(m->data + m->bytes, data, n);
    m->bytes += n;
}

static void put_varint(cgs_message *m, uint64_t v) {
    unsigned char out[LONGEST];
    put(m, out, varint(out, v));
}

static void put_key(cgs_message *m, unsigned field, unsigned wire) {
    put_varint(m, (uint64_t)field << 3 | wire);
}

void cgs_message_number(cgs_message *m, unsigned field, int64_t value) {
    put_key(m, field, VARINT);
    put_varint(m, (uint64_t)value);
}

void cgs_message_float(cgs_message *m, unsigned field, float value) {
    uint32_t bits;
    unsigned char out[4];
    memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < 4; i++) out[i] = (unsigned char)(bits >> 8 * i);
    put_key(m, field, FIXED32);
    put(m, out, sizeof out);
}

void cgs_message_bytes(cgs_message *m, unsigned field, const void *data, size_t n) {
    put_key(m, field, BYTES);
    put_varint(m, n);
    put(m, data, n);
}

void cgs_message_text(cgs_message *m, unsigned field, const char *text) {
    cgs_message_bytes(m, field, text, strlen(text));
}

size_t cgs_message_open(cgs_message *m, unsigned field) {
    put_key(m, field, BYTES);
    return m->bytes;
}

/* The length is known only now: it is put before what was written. */
void cgs_message_close(cgs_message *m, size_t opened) {
    if (m->failed) return;
    unsigned char length[LONGEST];
    size_t n = m->bytes - opened, size = varint(length, n);
    if (!grow(m, size)) return;
    memmove(m->data + opened + size, m->data + opened, n);
    memcpy(m->data + opened, length, size);
    m->bytes += size;
}

cgs_status cgs_message_check(const cgs_message *m) {
    return m->failed ? cgs_fail(CGS_ENOMEM, "no memory for a message of %zu bytes", m->bytes)
                     : CGS_OK;
}

void cgs_message_free(cgs_message *m) {
    free(m->data);
    *m = (cgs_message){0};
}

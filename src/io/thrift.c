/* thrift.c - see thrift.h. */
#include "io/thrift.h"

enum { DEEPEST = 32 /* structs and lists inside each other */ };

static uint8_t take_byte(cgs_thrift *t) {
    if (t->at < t->end) return *t->at++;
    t->bad = true;
    return 0;
}

/* seven bits a byte, the lowest first */
static uint64_t take_varint(cgs_thrift *t) {
    uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        uint8_t b = take_byte(t);
        v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80)) return v;
    }
    t->bad = true;
    return 0;
}

/* signs alternate: 0, -1, 1, -2, ... */
static int64_t take_integer(cgs_thrift *t) {
    uint64_t v = take_varint(t);
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

static void pass(cgs_thrift *t, uint64_t bytes) {
    if (bytes > (uint64_t)(t->end - t->at)) {
        t->bad = true;
        t->at = t->end;
    } else {
        t->at += bytes;
    }
}

bool cgs_thrift_field(cgs_thrift *t, int *id, cgs_thrift_type *type) {
    uint8_t head = take_byte(t);
    *type = (cgs_thrift_type)(head & 15);
    if (t->bad || *type == CGS_THRIFT_STOP) return false;
    if (head >> 4)
        *id += head >> 4;
    else
        *id = (int)(int16_t)take_integer(t);
    if (*type > CGS_THRIFT_STRUCT) t->bad = true;
    return !t->bad;
}

int64_t cgs_thrift_integer(cgs_thrift *t, cgs_thrift_type type) {
    switch (type) {
    case CGS_THRIFT_TRUE: return 1;
    case CGS_THRIFT_FALSE: return 0;
    case CGS_THRIFT_BYTE: return (int8_t)take_byte(t);
    case CGS_THRIFT_I16:
    case CGS_THRIFT_I32:
    case CGS_THRIFT_I64: return take_integer(t);
    default: cgs_thrift_skip(t, type); return 0;
    }
}

const char *cgs_thrift_binary(cgs_thrift *t, cgs_thrift_type type, size_t *length) {
    *length = 0;
    if (type != CGS_THRIFT_BINARY) {
        cgs_thrift_skip(t, type);
        return "";
    }
    uint64_t n = take_varint(t);
    const char *from = (const char *)t->at;
    pass(t, n);
    if (t->bad) return "";
    *length = (size_t)n;
    return from;
}

static size_t list_head(cgs_thrift *t, cgs_thrift_type *element) {
    uint8_t head = take_byte(t);
    *element = (cgs_thrift_type)(head & 15);
    uint64_t n = head >> 4 == 15 ? take_varint(t) : head >> 4;
    if (n > (uint64_t)(t->end - t->at)) t->bad = true; /* an element has a byte at least */
    return t->bad ? 0 : (size_t)n;
}

size_t cgs_thrift_list(cgs_thrift *t, cgs_thrift_type type, cgs_thrift_type *element) {
    *element = CGS_THRIFT_STOP;
    if (type == CGS_THRIFT_LIST || type == CGS_THRIFT_SET) return list_head(t, element);
    cgs_thrift_skip(t, type);
    return 0;
}

static void skip(cgs_thrift *t, cgs_thrift_type type, bool in_list, int depth);

static void skip_map(cgs_thrift *t, int depth) {
    uint64_t n = take_varint(t);
    if (n == 0 || t->bad) return;
    uint8_t types = take_byte(t);
    for (uint64_t i = 0; i < n && !t->bad; i++) {
        skip(t, (cgs_thrift_type)(types >> 4), true, depth + 1);
        skip(t, (cgs_thrift_type)(types & 15), true, depth + 1);
    }
}

static void skip_struct(cgs_thrift *t, int depth) {
    cgs_thrift_type type;
    for (int id = 0; cgs_thrift_field(t, &id, &type);) skip(t, type, false, depth + 1);
}

static void skip(cgs_thrift *t, cgs_thrift_type type, bool in_list, int depth) {
    if (depth > DEEPEST) t->bad = true;
    if (t->bad) return;
    size_t n;
    cgs_thrift_type element;
    switch (type) {
    case CGS_THRIFT_TRUE:
    case CGS_THRIFT_FALSE:
        if (in_list) take_byte(t); /* elsewhere the type is the value */
        break;
    case CGS_THRIFT_BYTE: take_byte(t); break;
    case CGS_THRIFT_I16:
    case CGS_THRIFT_I32:
    case CGS_THRIFT_I64: take_varint(t); break;
    case CGS_THRIFT_DOUBLE: pass(t, 8); break;
    case CGS_THRIFT_BINARY: cgs_thrift_binary(t, type, &n); break;
    case CGS_THRIFT_LIST:
    case CGS_THRIFT_SET:
        n = list_head(t, &element);
        for (size_t i = 0; i < n && !t->bad; i++) skip(t, element, true, depth + 1);
        break;
    case CGS_THRIFT_MAP: skip_map(t, depth); break;
    case CGS_THRIFT_STRUCT: skip_struct(t, depth); break;
    default: t->bad = true;
    }
}

void cgs_thrift_skip(cgs_thrift *t, cgs_thrift_type type) { skip(t, type, false, 0); }

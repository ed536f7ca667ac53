/* weights.c - the list of named tensors, and reading and converting their elements.
 *
 * Everything a file claims was checked by its reader when the entry was added; only the disk can
 * fail here. */
#include "io/weights.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "io/kind.h"
#include "io/safetensors.h"
#include "io/sharded.h"
#include "io/torchfile.h"

/* one piece of a large read; small enough for the stack */
#define PIECE ((size_t)16384)

/* the first ten are cgs_weight_type in order; the rest can be measured, not converted */
static const struct {
    const char *name;
    size_t element;
} TYPES[] = {
    {"F64", 8},     {"F32", 4},     {"F16", 2}, {"BF16", 2}, {"I64", 8},
    {"I32", 4},     {"I16", 2},     {"I8", 1},  {"U8", 1},   {"BOOL", 1},
    {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"U16", 2}, {"U32", 4},  {"U64", 8},
};
#define TYPE_COUNT (sizeof TYPES / sizeof TYPES[0])

cgs_weight_type cgs_weight_type_of(const char *name, size_t *element) {
    for (size_t i = 0; i < TYPE_COUNT; i++) {
        if (strcmp(name, TYPES[i].name) != 0) continue;
        *element = TYPES[i].element;
        return i < CGS_W_OTHER ? (cgs_weight_type)i : CGS_W_OTHER;
    }
    *element = 0;
    return CGS_W_OTHER;
}

const char *cgs_weight_type_name(cgs_weight_type type, size_t *element) {
    bool known = type < CGS_W_OTHER;
    *element = known ? TYPES[type].element : 0;
    return known ? TYPES[type].name : "?";
}

/* ---- the list ------------------------------------------------------------------ */

void cgs_weights_close(cgs_weights *w) {
    if (!w) return;
    for (size_t i = 0; i < w->count; i++) free((char *)w->entry[i].name);
    for (size_t i = 0; i < 2 * w->metas; i++) free(w->meta[i]);
    for (size_t i = 0; i < w->shards; i++) cgs_weights_close(w->shard[i]);
    free(w->shard);
    free(w->entry);
    free(w->range);
    free(w->by_name);
    free(w->meta);
    free((char *)w->path);
    if (w->fd >= 0) close(w->fd);
    free(w);
}

cgs_status cgs_weights_add(cgs_weights *w, const cgs_weight *e) {
    if (w->count == w->capacity) {
        size_t capacity = w->capacity ? 2 * w->capacity : 64;
        cgs_weight *more = realloc(w->entry, capacity * sizeof *more);
        if (!more) return cgs_fail(CGS_ENOMEM, "%s: no memory for %zu tensors", w->path, capacity);
        w->entry = more;
        w->capacity = capacity;
    }
    char *name = strdup(e->name);
    if (!name) return cgs_fail(CGS_ENOMEM, "%s: no memory for tensor names", w->path);
    cgs_weight *to = &w->entry[w->count++];
    *to = *e;
    to->owner = w;
    to->name = name;
    return CGS_OK;
}

void cgs_list_name(char *list, size_t size, const char *name) {
    size_t n = strlen(list);
    if (n + strlen(name) + 2 < size) snprintf(list + n, size - n, "%s%s", n ? ", " : "", name);
}

void cgs_weights_skip(cgs_weights *w, const char *name) {
    w->skipped++;
    cgs_list_name(w->some, sizeof w->some, name);
}

cgs_status cgs_weights_add_meta(cgs_weights *w, const char *key, const char *value) {
    char **more = realloc(w->meta, (2 * w->metas + 2) * sizeof *more);
    if (!more) return cgs_fail(CGS_ENOMEM, "%s: no memory for metadata", w->path);
    w->meta = more;
    char *k = strdup(key), *v = strdup(value);
    if (!k || !v) {
        free(k);
        free(v);
        return cgs_fail(CGS_ENOMEM, "%s: no memory for metadata", w->path);
    }
    w->meta[2 * w->metas] = k;
    w->meta[2 * w->metas + 1] = v;
    w->metas++;
    return CGS_OK;
}

cgs_status cgs_weights_add_range(cgs_weights *w, cgs_weight_range range, int *index) {
    if (w->ranges >= INT_MAX)
        return cgs_fail(CGS_EFORMAT, "%s: more than %d storages", w->path, INT_MAX);
    cgs_weight_range *more = realloc(w->range, (w->ranges + 1) * sizeof *more);
    if (!more) return cgs_fail(CGS_ENOMEM, "%s: no memory for its storages", w->path);
    w->range = more;
    *index = (int)w->ranges;
    w->range[w->ranges++] = range;
    return CGS_OK;
}

/* qsort passes no context, so it sorts names that carry their index */
typedef struct named {
    const char *name;
    size_t at;
} named;

static int compare_named(const void *a, const void *b) {
    return strcmp(((const named *)a)->name, ((const named *)b)->name);
}

/* sorts the names, so that find is quick and a name that occurs twice is seen */
static cgs_status sort_names(cgs_weights *w) {
    cgs_status rc = CGS_OK;
    named *list = malloc((w->count + 1) * sizeof *list);
    w->by_name = malloc((w->count + 1) * sizeof *w->by_name);
    if (!list || !w->by_name) {
        free(list);
        return cgs_fail(CGS_ENOMEM, "%s: no memory for %zu names", w->path, w->count);
    }
    for (size_t i = 0; i < w->count; i++) list[i] = (named){w->entry[i].name, i};
    qsort(list, w->count, sizeof *list, compare_named);
    for (size_t i = 0; i < w->count; i++) {
        w->by_name[i] = list[i].at;
        if (i > 0 && strcmp(list[i].name, list[i - 1].name) == 0 && rc == CGS_OK)
            rc = cgs_fail(CGS_EFORMAT, "%s: tensor \"%s\" occurs twice", w->path, list[i].name);
    }
    free(list);
    return rc;
}

const cgs_weight *cgs_weights_find(const cgs_weights *w, const char *name) {
    size_t lo = 0, hi = w->count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const cgs_weight *e = &w->entry[w->by_name[mid]];
        int order = strcmp(name, e->name);
        if (order == 0) return e;
        if (order < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

const char *cgs_weights_meta(const cgs_weights *w, const char *key) {
    for (size_t i = 0; i < w->metas; i++)
        if (strcmp(w->meta[2 * i], key) == 0) return w->meta[2 * i + 1];
    return NULL;
}

int cgs_weight_measure(cgs_weight *e) {
    uint64_t count = 1;
    bool empty = false, fits = true;
    for (int i = 0; i < e->rank; i++) {
        if (e->dim[i] < 0) return 0;
        if (e->dim[i] == 0)
            empty = true;
        else if (__builtin_mul_overflow(count, (uint64_t)e->dim[i], &count))
            fits = false;
    }
    if (empty)
        count = 0;
    else if (!fits)
        return 0;
    uint64_t bytes;
    if (__builtin_mul_overflow(count, (uint64_t)e->element, &bytes) || bytes > PTRDIFF_MAX ||
        count > PTRDIFF_MAX / sizeof(double))
        return 0;
    e->count = (size_t)count;
    e->bytes = (size_t)bytes;
    return 1;
}

const char *cgs_weights_shape(const cgs_weight *e, char text[CGS_SHAPE_TEXT]) {
    int at = snprintf(text, CGS_SHAPE_TEXT, "[");
    for (int i = 0; i < e->rank; i++)
        at +=
            snprintf(text + at, CGS_SHAPE_TEXT - (size_t)at, "%s%" PRId64, i ? "," : "", e->dim[i]);
    snprintf(text + at, CGS_SHAPE_TEXT - (size_t)at, "]");
    return text;
}

int cgs_is_utf8(const char *s, size_t n) {
    const unsigned char *p = (const unsigned char *)s;
    for (size_t i = 0; i < n;) {
        unsigned c = p[i];
        if (c == 0) return 0;
        int more = c < 0x80                ? 0
                   : c >= 0xC2 && c < 0xE0 ? 1
                   : (c & 0xF0) == 0xE0    ? 2
                   : c >= 0xF0 && c < 0xF5 ? 3
                                           : -1;
        if (more < 0 || n - i <= (size_t)more) return 0;
        uint32_t code = more == 0 ? c : c & (0x3Fu >> more);
        for (int k = 1; k <= more; k++) {
            if ((p[i + (size_t)k] & 0xC0) != 0x80) return 0;
            code = code << 6 | (p[i + (size_t)k] & 0x3Fu);
        }
        if (more == 2 && (code < 0x800 || (code >= 0xD800 && code < 0xE000))) return 0;
        if (more == 3 && (code < 0x10000 || code > 0x10FFFF)) return 0;
        i += (size_t)more + 1;
    }
    return 1;
}

/* ---- the elements -------------------------------------------------------------- */

cgs_status cgs_weights_pread(const cgs_weights *w, uint64_t offset, void *out, size_t n) {
    unsigned char *to = out;
    while (n > 0) {
        ssize_t got = pread(w->fd, to, n, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return cgs_fail(CGS_EIO, "%s: %s", w->path, strerror(errno));
        if (got == 0)
            return cgs_fail(CGS_EFORMAT, "%s: ends at byte %" PRIu64 ", %zu more are needed",
                            w->path, offset, n);
        to += got;
        offset += (uint64_t)got;
        n -= (size_t)got;
    }
    return CGS_OK;
}

/* reads the range of an entry once to its end and compares the checksum */
static cgs_status check_range(const cgs_weight *e) {
    if (e->range < 0 || e->owner->range[e->range].checked) return CGS_OK;
    cgs_weight_range *b = &e->owner->range[e->range];
    unsigned char piece[PIECE];
    uLong crc = crc32(0, NULL, 0);
    for (uint64_t done = 0; done < b->bytes;) {
        size_t n = b->bytes - done < PIECE ? (size_t)(b->bytes - done) : PIECE;
        CGS_TRY(cgs_weights_pread(e->owner, b->offset + done, piece, n));
        crc = crc32(crc, piece, (uInt)n);
        done += n;
    }
    if (crc != b->crc)
        return cgs_fail(CGS_EFORMAT, "%s: %s: damaged, its checksum is %08lx instead of %08lx",
                        e->owner->path, e->name, (unsigned long)crc, (unsigned long)b->crc);
    b->checked = 1;
    return CGS_OK;
}

static bool contiguous(const cgs_weight *e) {
    int64_t step = 1;
    for (int i = e->rank - 1; i >= 0; i--) {
        if (e->dim[i] != 1 && e->stride[i] != step) return false;
        step *= e->dim[i];
    }
    return true;
}

/* copies the elements of a strided tensor from the part of the file that contains them */
static cgs_status gather(const cgs_weight *e, unsigned char *out) {
    size_t last = 0, step[CGS_WEIGHT_RANK]; /* bytes */
    for (int i = 0; i < e->rank; i++) {
        step[i] = (size_t)e->stride[i] * e->element;
        last += (size_t)(e->dim[i] - 1) * step[i];
    }
    unsigned char *from = malloc(last + e->element);
    if (!from)
        return cgs_fail(CGS_ENOMEM, "%s: %s: no memory for %zu bytes", e->owner->path, e->name,
                        last + e->element);
    cgs_status rc = cgs_weights_pread(e->owner, e->offset, from, last + e->element);

    int64_t at[CGS_WEIGHT_RANK] = {0};
    size_t src = 0;
    for (size_t n = 0; rc == CGS_OK && n < e->count; n++) {
        memcpy(out + n * e->element, from + src, e->element);
        for (int i = e->rank - 1; i >= 0; i--) { /* next index, like an odometer */
            src += step[i];
            if (++at[i] < e->dim[i]) break;
            src -= step[i] * (size_t)e->dim[i];
            at[i] = 0;
        }
    }
    free(from);
    return rc;
}

cgs_status cgs_weights_read(const cgs_weight *e, void *out) {
    if (e->count == 0) return CGS_OK;
    CGS_TRY(check_range(e));
    if (!contiguous(e)) return gather(e, out);
    return cgs_weights_pread(e->owner, e->offset, out, e->bytes);
}

static float f16_to_f32(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = h >> 10 & 31, fraction = h & 0x3FFu;
    uint32_t bits;
    if (exponent == 31) {
        bits = sign | 0x7F800000u | fraction << 13;
    } else if (exponent > 0) {
        bits = sign | (exponent + 112) << 23 | fraction << 13;
    } else {
        float tiny = (float)fraction * 0x1p-24f; /* exact, zero included */
        return sign ? -tiny : tiny;
    }
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* n elements of a type to f32; from need not be aligned */
static void convert(cgs_weight_type type, const unsigned char *from, size_t n, float *out) {
#define EACH(ctype, expression)                                                                    \
    for (size_t i = 0; i < n; i++) {                                                               \
        ctype v;                                                                                   \
        memcpy(&v, from + i * sizeof v, sizeof v);                                                 \
        out[i] = (expression);                                                                     \
    }                                                                                              \
    break
    switch (type) {
    case CGS_W_F64: EACH(double, (float)v);
    case CGS_W_F32: EACH(float, v);
    case CGS_W_F16: EACH(uint16_t, f16_to_f32(v));
    case CGS_W_BF16:
        for (size_t i = 0; i < n; i++) {
            uint32_t bits = (uint32_t)from[2 * i] << 16 | (uint32_t)from[2 * i + 1] << 24;
            memcpy(&out[i], &bits, sizeof bits);
        }
        break;
    case CGS_W_I64: EACH(int64_t, (float)v);
    case CGS_W_I32: EACH(int32_t, (float)v);
    case CGS_W_I16: EACH(int16_t, v);
    case CGS_W_I8: EACH(int8_t, v);
    case CGS_W_U8: EACH(uint8_t, v);
    case CGS_W_BOOL: EACH(uint8_t, v ? 1.0f : 0.0f);
    case CGS_W_OTHER: break;
    }
#undef EACH
}

cgs_status cgs_weights_to_f32(const cgs_weight *e, float *out) {
    if (e->type == CGS_W_OTHER)
        return cgs_fail(CGS_EFORMAT, "%s: %s: elements of type %s cannot be converted",
                        e->owner->path, e->name, e->type_name);
    if (e->count == 0) return CGS_OK;
    if (e->type == CGS_W_F32) return cgs_weights_read(e, out);
    CGS_TRY(check_range(e));

    if (!contiguous(e)) {
        unsigned char *raw = malloc(e->bytes);
        if (!raw)
            return cgs_fail(CGS_ENOMEM, "%s: %s: no memory for %zu bytes", e->owner->path, e->name,
                            e->bytes);
        cgs_status rc = gather(e, raw);
        if (rc == CGS_OK) convert(e->type, raw, e->count, out);
        free(raw);
        return rc;
    }
    unsigned char piece[PIECE];
    for (size_t done = 0; done < e->count;) {
        size_t n = e->count - done < PIECE / e->element ? e->count - done : PIECE / e->element;
        CGS_TRY(cgs_weights_pread(e->owner, e->offset + done * e->element, piece, n * e->element));
        convert(e->type, piece, n, out + done);
        done += n;
    }
    return CGS_OK;
}

/* ---- opening ------------------------------------------------------------------- */

/* the table of contents, by the reader that the first bytes select */
static cgs_status read_contents(cgs_weights *w, bool index) {
    unsigned char head[9] = {0};
    size_t n = w->file_bytes < sizeof head ? (size_t)w->file_bytes : sizeof head;
    CGS_TRY(cgs_weights_pread(w, 0, head, n));

    /* a zip member's method is where safetensors has its first JSON character */
    if (head[8] == '{') return cgs_safetensors_contents(w);
    if (memcmp(head, "PK\3\4", 4) == 0) return cgs_torchfile_contents(w);
    if (index && head[0] == '{') return cgs_sharded_contents(w);
    if (memcmp(head, "\x80\x02\x8A\x0A", 4) == 0)
        return cgs_fail(CGS_EFORMAT,
                        "%s: a legacy torch file (before torch 1.6); convert it with "
                        "torch.save(torch.load(OLD, map_location=\"cpu\"), NEW)",
                        w->path);
    return cgs_fail(CGS_EFORMAT,
                    "%s: neither a safetensors file nor a torch zip file (%" PRIu64
                    " bytes, beginning %02x %02x %02x %02x): it is %s",
                    w->path, w->file_bytes, head[0], head[1], head[2], head[3],
                    cgs_file_kind(w->path));
}

static cgs_status open_file(cgs_weights **out, const char *path, bool index) {
    *out = NULL;
    cgs_weights *w = calloc(1, sizeof *w);
    if (!w) return cgs_fail(CGS_ENOMEM, "%s: no memory to open it", path);
    cgs_status rc = CGS_OK;
    struct stat st;
    w->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not block here */
    if (w->fd < 0)
        rc = cgs_fail(CGS_EIO, "%s: %s", path, strerror(errno));
    else if (fstat(w->fd, &st) != 0 || !S_ISREG(st.st_mode))
        rc = cgs_fail(CGS_EIO, "%s: not a regular file: it is %s", path, cgs_file_kind(path));
    else if (!(w->path = strdup(path)))
        rc = cgs_fail(CGS_ENOMEM, "%s: no memory to open it", path);
    if (rc == CGS_OK) {
        w->file_bytes = (uint64_t)st.st_size;
        rc = read_contents(w, index);
    }
    if (rc == CGS_OK) rc = sort_names(w);
    if (rc == CGS_OK)
        *out = w;
    else
        cgs_weights_close(w);
    return rc;
}

cgs_status cgs_weights_open(cgs_weights **out, const char *path) {
    return open_file(out, path, true);
}

cgs_status cgs_weights_open_shard(cgs_weights **out, const char *path) {
    return open_file(out, path, false);
}

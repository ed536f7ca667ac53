/* filters.c - deflate, shuffle, fletcher32, LZF, Blosc, LZ4 and Zstandard chunks.
 *
 * Every decoder gets the stored bytes and the capacity of the output, and trusts neither: it
 * returns the number of bytes produced, or SIZE_MAX when the input is damaged or needs more
 * capacity. */
#include "data/filters.h"

#include <blosc.h>
#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#define DAMAGED SIZE_MAX

typedef size_t (*undo_fn)(unsigned first, const uint8_t *in, size_t n, uint8_t *out,
                          size_t capacity);

static size_t undo_deflate(unsigned first, const uint8_t *in, size_t n, uint8_t *out,
                           size_t capacity) {
    (void)first;
    uLongf produced = capacity;
    return uncompress(out, &produced, in, n) == Z_OK ? produced : DAMAGED;
}

/* byte k of every element was stored together; bytes beyond whole elements are last */
static size_t undo_shuffle(unsigned width, const uint8_t *in, size_t n, uint8_t *out,
                           size_t capacity) {
    if (n > capacity || width == 0) return DAMAGED;
    size_t count = n / width, whole = count * width;
    for (size_t k = 0; k < width; k++)
        for (size_t i = 0; i < count; i++) out[i * width + k] = in[k * count + i];
    memcpy(out + whole, in + whole, n - whole);
    return n;
}

/* two running sums over big-endian 16-bit words, stored little-endian after the data */
static size_t undo_fletcher32(unsigned first, const uint8_t *in, size_t n, uint8_t *out,
                              size_t capacity) {
    (void)first;
    if (n < 4 || n - 4 > capacity) return DAMAGED;
    n -= 4;
    uint64_t a = 0, b = 0;
    for (size_t i = 0; i + 1 < n; i += 2) {
        a += (uint64_t)in[i] << 8 | in[i + 1];
        b += a;
        if (i % 65536 == 0) a %= 65535, b %= 65535; /* reduced long before 64 bits overflow */
    }
    a %= 65535;
    b %= 65535;
    if (n % 2) {
        a = (a + ((uint64_t)in[n - 1] << 8)) % 65535;
        b = (b + a) % 65535;
    }
    /* 65535 and 0 are the same number modulo 65535, and writers store either */
    uint64_t stored_a = (uint64_t)in[n + 1] << 8 | in[n];
    uint64_t stored_b = (uint64_t)in[n + 3] << 8 | in[n + 2];
    if (stored_a % 65535 != a || stored_b % 65535 != b) return DAMAGED;
    memcpy(out, in, n);
    return n;
}

/* control byte below 32: that many literals plus one; else a match of 3 bits of length
 * and 13 bits of distance, with one more length byte when the 3 bits are full */
static size_t undo_lzf(unsigned first, const uint8_t *in, size_t n, uint8_t *out, size_t capacity) {
    (void)first;
    size_t i = 0, o = 0;
    while (i < n) {
        size_t control = in[i++];
        if (control < 32) {
            size_t run = control + 1;
            if (run > n - i || run > capacity - o) return DAMAGED;
            memcpy(out + o, in + i, run);
            i += run;
            o += run;
            continue;
        }
        size_t length = control >> 5;
        if (length == 7) {
            if (i == n) return DAMAGED;
            length += in[i++];
        }
        if (i == n) return DAMAGED;
        size_t back = ((control & 31) << 8 | in[i++]) + 1;
        length += 2;
        if (back > o || length > capacity - o) return DAMAGED;
        for (size_t k = 0; k < length; k++, o++) out[o] = out[o - back];
    }
    return o;
}

static size_t undo_blosc(unsigned first, const uint8_t *in, size_t n, uint8_t *out,
                         size_t capacity) {
    (void)first;
    size_t claimed = 0;
    if (n < BLOSC_MIN_HEADER_LENGTH || blosc_cbuffer_validate(in, n, &claimed) != 0 ||
        claimed > capacity)
        return DAMAGED;
    int produced = blosc_decompress_ctx(in, out, claimed, 1);
    return produced >= 0 && (size_t)produced == claimed ? claimed : DAMAGED;
}

static uint64_t load_be(const uint8_t *p, int bytes) {
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++) v = v << 8 | p[i];
    return v;
}

/* u64 bytes in all, u32 block size, then blocks of u32 length + payload (big endian);
 * a payload as long as its block is stored as it is */
static size_t undo_lz4(unsigned first, const uint8_t *in, size_t n, uint8_t *out, size_t capacity) {
    (void)first;
    if (n < 12) return DAMAGED;
    uint64_t total = load_be(in, 8), block = load_be(in + 8, 4);
    if (total > capacity || block == 0) return DAMAGED;
    size_t i = 12, o = 0;
    while (o < total) {
        size_t want = total - o < block ? (size_t)total - o : (size_t)block;
        if (n - i < 4) return DAMAGED;
        size_t stored = (size_t)load_be(in + i, 4);
        i += 4;
        if (stored > n - i || stored > INT32_MAX || want > INT32_MAX) return DAMAGED;
        if (stored == want)
            memcpy(out + o, in + i, want);
        else if (LZ4_decompress_safe((const char *)in + i, (char *)out + o, (int)stored,
                                     (int)want) != (int)want)
            return DAMAGED;
        i += stored;
        o += want;
    }
    return o;
}

static size_t undo_zstd(unsigned first, const uint8_t *in, size_t n, uint8_t *out,
                        size_t capacity) {
    (void)first;
    size_t produced = ZSTD_decompress(out, capacity, in, n);
    return ZSTD_isError(produced) ? DAMAGED : produced;
}

static const struct {
    int id;
    const char *name;
    undo_fn undo;
} known[] = {
    {1, "deflate", undo_deflate},       {2, "shuffle", undo_shuffle},
    {3, "fletcher32", undo_fletcher32}, {32000, "LZF", undo_lzf},
    {32001, "Blosc", undo_blosc},       {32004, "LZ4", undo_lz4},
    {32015, "Zstandard", undo_zstd},
};

static int find(int id) {
    for (int i = 0; i < (int)(sizeof known / sizeof known[0]); i++)
        if (known[i].id == id) return i;
    return -1;
}

const char *cgs_filter_name(int id) {
    int k = find(id);
    return k < 0 ? NULL : known[k].name;
}

cgs_status cgs_filters_undo(const cgs_filter *filters, int count, uint32_t mask, const uint8_t *in,
                            size_t in_bytes, uint8_t *out, size_t out_bytes) {
    int active[CGS_FILTERS], n = 0;
    for (int i = count - 1; i >= 0; i--)
        if (!(mask >> i & 1)) active[n++] = i;
    if (n == 0) {
        if (in_bytes != out_bytes)
            return cgs_fail(CGS_EFORMAT, "a chunk stores %zu bytes instead of %zu", in_bytes,
                            out_bytes);
        memcpy(out, in, in_bytes);
        return CGS_OK;
    }

    /* a checksum may be inside a compressed stream and make it a little longer */
    size_t capacity = out_bytes + 4 * CGS_FILTERS;
    uint8_t *scratch[2] = {NULL, NULL};
    cgs_status rc = CGS_OK;
    const uint8_t *from = in;
    size_t bytes = in_bytes;
    for (int k = 0; k < n && rc == CGS_OK; k++) {
        bool last = k == n - 1;
        if (!last && !scratch[k % 2] && !(scratch[k % 2] = malloc(capacity))) {
            rc = cgs_fail(CGS_ENOMEM, "no memory for a chunk of %zu bytes", capacity);
            break;
        }
        uint8_t *to = last ? out : scratch[k % 2];
        const cgs_filter *f = &filters[active[k]];
        int which = find(f->id);
        bytes = which < 0
                    ? DAMAGED
                    : known[which].undo(f->first, from, bytes, to, last ? out_bytes : capacity);
        if (bytes == DAMAGED || (last && bytes != out_bytes))
            rc = cgs_fail(CGS_EFORMAT, "a chunk is damaged (filter %s)",
                          which < 0 ? "unknown" : known[which].name);
        from = to;
    }
    free(scratch[0]);
    free(scratch[1]);
    return rc;
}

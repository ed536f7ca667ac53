/* parquet.c - see parquet.h.
 *
 *   file      "PAR1", pages, footer (Thrift), its length (u32), "PAR1"
 *   footer    the schema as a tree in depth-first order; for every group of rows and every leaf of
 *             the tree where its pages begin
 *   page      header (Thrift), then, compressed as a whole (version 1) or behind the levels (2):
 *             repetition levels: 0 begins a row; definition levels: the highest is a value, less
 *             says which part of the path to it is null; values
 *
 * The file is mapped and its pages are decoded one after the other. */
#include "io/parquet.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <zlib.h>
#include <zstd.h>
#ifdef CGS_WITH_SNAPPY
#include <snappy-c.h>
#endif

#include "core/file.h"
#include "io/thrift.h"

enum { MOST_COLUMNS = 4096, MOST_GROUPS = 1 << 20, DEEPEST = 16, NAME = 256 };

/* of one page, decoded */
static const int64_t LARGEST_PAGE = (int64_t)1 << 28;

/* rows in a byte of the file: runs may stand for many, but headers are there as well */
static const uint64_t DENSEST = 32768;

/* numbers of the format */
enum { BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTE_ARRAY };
enum { REQUIRED, OPTIONAL, REPEATED };
enum { UNCOMPRESSED = 0, SNAPPY = 1, GZIP = 2, ZSTD = 6 };
enum { PLAIN = 0, PLAIN_DICTIONARY = 2, RLE = 3, RLE_DICTIONARY = 8 };
enum { DATA_PAGE = 0, DICTIONARY_PAGE = 2, DATA_PAGE_V2 = 3 };

/* the pages of a leaf in a group of rows */
typedef struct chunk {
    int codec, type;
    int64_t values, at, dictionary, bytes;
} chunk;

struct cgs_parquet {
    char path[4096];
    const uint8_t *map; /* (bytes) */
    size_t bytes;
    int64_t rows;
    cgs_parquet_column column[MOST_COLUMNS];
    int columns;
    chunk *chunk; /* (groups, columns) */
    int groups;
};

static cgs_status damaged(const cgs_parquet *p, const char *what) {
    return cgs_fail(CGS_EFORMAT, "%s: not a Parquet file, or a damaged one (%s)", p->path, what);
}

/* ---- the footer ----------------------------------------------------------------------------- */

typedef struct element {
    int type, repetition, children;
    char name[NAME];
} element;

static element read_element(cgs_thrift *t) {
    element e = {.type = -1, .repetition = REQUIRED};
    cgs_thrift_type type;
    for (int id = 0; cgs_thrift_field(t, &id, &type);) {
        size_t n;
        if (id == 1) {
            e.type = (int)cgs_thrift_integer(t, type);
        } else if (id == 3) {
            e.repetition = (int)cgs_thrift_integer(t, type);
        } else if (id == 4) {
            const char *name = cgs_thrift_binary(t, type, &n);
            snprintf(e.name, sizeof e.name, "%.*s", (int)(n < NAME ? n : NAME - 1), name);
        } else if (id == 5) {
            e.children = (int)cgs_thrift_integer(t, type);
        } else {
            cgs_thrift_skip(t, type);
        }
    }
    return e;
}

/* what lies above an element of the schema */
typedef struct above {
    char name[NAME]; /* up to the first list */
    int definition, repetition, list_definition;
} above;

static cgs_status read_leaf(cgs_parquet *p, const element *e, const above *a) {
    if (p->columns == MOST_COLUMNS) return damaged(p, "too many columns");
    cgs_parquet_column *c = &p->column[p->columns++];
    *c = (cgs_parquet_column){.list = a->repetition > 0,
                              .type = e->type,
                              .max_definition = a->definition,
                              .max_repetition = a->repetition,
                              .list_definition = a->list_definition,
                              .wide = e->type == INT32 || e->type == INT64 || e->type == DOUBLE};
    c->number = a->repetition <= 1 && (e->type == BOOLEAN || e->type == INT32 || e->type == INT64 ||
                                       e->type == FLOAT || e->type == DOUBLE);
    memcpy(c->name, a->name, sizeof c->name);
    return CGS_OK;
}

/* an element and all below it; *left: elements of the list that are still to come */
static cgs_status read_tree(cgs_parquet *p, cgs_thrift *t, size_t *left, above a, int depth) {
    if (*left == 0 || depth > DEEPEST) return damaged(p, "its schema");
    --*left;
    element e = read_element(t);
    if (t->bad || e.children < 0 || (size_t)e.children > *left) return damaged(p, "its schema");
    if (depth > 0) {
        bool inside_list = a.repetition > 0;
        a.definition += e.repetition != REQUIRED;
        a.repetition += e.repetition == REPEATED;
        if (e.repetition == REPEATED) a.list_definition = a.definition;
        /* "list" and "element" are of no interest; the members of a structure are */
        if (!inside_list && a.repetition == 0 && (depth == 1 || e.children == 0)) {
            size_t n = strlen(a.name);
            snprintf(a.name + n, sizeof a.name - n, "%s%s", n ? "." : "", e.name);
        } else if (!inside_list && depth == 1) {
            snprintf(a.name, sizeof a.name, "%s", e.name);
        }
    }
    if (e.children == 0 && depth > 0) return read_leaf(p, &e, &a);
    for (int i = 0; i < e.children; i++) CGS_TRY(read_tree(p, t, left, a, depth + 1));
    return CGS_OK;
}

static void read_chunk_data(cgs_thrift *t, chunk *c) {
    cgs_thrift_type type;
    for (int id = 0; cgs_thrift_field(t, &id, &type);) switch (id) {
        case 1: c->type = (int)cgs_thrift_integer(t, type); break;
        case 4: c->codec = (int)cgs_thrift_integer(t, type); break;
        case 5: c->values = cgs_thrift_integer(t, type); break;
        case 7: c->bytes = cgs_thrift_integer(t, type); break;
        case 9: c->at = cgs_thrift_integer(t, type); break;
        case 11: c->dictionary = cgs_thrift_integer(t, type); break;
        default: cgs_thrift_skip(t, type);
        }
}

static chunk read_chunk(cgs_thrift *t, bool *elsewhere) {
    chunk c = {.type = -1};
    cgs_thrift_type type;
    for (int id = 0; cgs_thrift_field(t, &id, &type);) {
        size_t n = 0;
        if (id == 1)
            cgs_thrift_binary(t, type, &n);
        else if (id == 3 && type == CGS_THRIFT_STRUCT)
            read_chunk_data(t, &c);
        else
            cgs_thrift_skip(t, type);
        *elsewhere = *elsewhere || n > 0;
    }
    return c;
}

/* a group of rows: its chunks in the order of the leaves */
static cgs_status read_group(cgs_parquet *p, cgs_thrift *t, chunk *chunks) {
    cgs_thrift_type type, inside;
    int seen = 0;
    bool elsewhere = false;
    for (int id = 0; cgs_thrift_field(t, &id, &type);) {
        if (id != 1) {
            cgs_thrift_skip(t, type);
            continue;
        }
        size_t n = cgs_thrift_list(t, type, &inside);
        if (n != (size_t)p->columns || inside != CGS_THRIFT_STRUCT)
            return damaged(p, "a group of rows has other columns");
        for (size_t i = 0; i < n; i++) chunks[i] = read_chunk(t, &elsewhere);
        seen++;
    }
    if (elsewhere) return damaged(p, "its data lie in another file");
    for (int i = 0; i < p->columns; i++) {
        chunk *c = &chunks[i];
        /* pages begin with the dictionary, where there is one */
        if (c->dictionary >= 4 && c->dictionary < c->at) c->at = c->dictionary;
        if (c->at < 4 || c->bytes < 0 || c->values < 0 || (uint64_t)c->at > p->bytes ||
            (uint64_t)c->bytes > p->bytes - (uint64_t)c->at || c->type != p->column[i].type)
            return damaged(p, "where a column lies");
    }
    return seen == 1 && !t->bad ? CGS_OK : damaged(p, "a group of rows");
}

static cgs_status read_groups(cgs_parquet *p, cgs_thrift *t, cgs_thrift_type type) {
    cgs_thrift_type inside;
    size_t n = cgs_thrift_list(t, type, &inside);
    if (n > MOST_GROUPS || (n > 0 && inside != CGS_THRIFT_STRUCT) || p->groups || p->chunk)
        return damaged(p, "its groups of rows");
    p->chunk = calloc(n * (size_t)p->columns + 1, sizeof *p->chunk);
    if (!p->chunk) return cgs_fail(CGS_ENOMEM, "%s: no memory", p->path);
    for (; (size_t)p->groups < n; p->groups++)
        CGS_TRY(read_group(p, t, p->chunk + (size_t)p->groups * (size_t)p->columns));
    return CGS_OK;
}

static cgs_status read_footer(cgs_parquet *p) {
    const uint8_t *end = p->map + p->bytes - 8;
    uint32_t length =
        end[0] | (uint32_t)end[1] << 8 | (uint32_t)end[2] << 16 | (uint32_t)end[3] << 24;
    if (!memcmp(end + 4, "PARE", 4)) return damaged(p, "it is encrypted");
    if (memcmp(p->map, "PAR1", 4) || memcmp(end + 4, "PAR1", 4)) return damaged(p, "its marks");
    if (length > p->bytes - 12) return damaged(p, "the length of its footer");
    cgs_thrift t = {end - length, end, false};
    cgs_thrift_type type, inside;
    p->rows = -1;
    for (int id = 0; cgs_thrift_field(&t, &id, &type);) {
        if (id == 2 && p->columns == 0) {
            size_t n = cgs_thrift_list(&t, type, &inside);
            if (inside != CGS_THRIFT_STRUCT) return damaged(p, "its schema");
            CGS_TRY(read_tree(p, &t, &n, (above){.name = ""}, 0));
            if (n) return damaged(p, "its schema");
        } else if (id == 3) {
            p->rows = cgs_thrift_integer(&t, type);
        } else if (id == 4) {
            CGS_TRY(read_groups(p, &t, type));
        } else {
            cgs_thrift_skip(&t, type);
        }
    }
    if (t.bad || p->columns == 0 || p->rows < 0) return damaged(p, "its footer");
    if (p->rows > CGS_PARQUET_VALUES || (uint64_t)p->rows / DENSEST > p->bytes)
        return cgs_fail(CGS_EFORMAT, "%s: it claims %" PRId64 " rows in %zu bytes", p->path,
                        p->rows, p->bytes);
    return CGS_OK;
}

/* ---- compression ---------------------------------------------------------------------------- */

/* decodes exactly `bytes`, or says why not */
static const char *unpack(int codec, const uint8_t *in, size_t n, uint8_t *out, size_t bytes) {
    static const char wrong[] = "a page";
    if (n == 0 && bytes == 0) return NULL; /* nothing but nulls */
    if (codec == UNCOMPRESSED) {
        if (n != bytes) return wrong;
        memcpy(out, in, n);
        return NULL;
    }
    if (codec == ZSTD) return ZSTD_decompress(out, bytes, in, n) == bytes ? NULL : wrong;
    if (codec == GZIP) {
        z_stream s = {.next_in = (Bytef *)(uintptr_t)in,
                      .avail_in = (uInt)n,
                      .next_out = out,
                      .avail_out = (uInt)bytes};
        if (inflateInit2(&s, MAX_WBITS + 32) != Z_OK) return "no memory";
        int state = inflate(&s, Z_FINISH);
        inflateEnd(&s);
        return (state == Z_STREAM_END || bytes == 0) && s.avail_out == 0 ? NULL : wrong;
    }
#ifdef CGS_WITH_SNAPPY
    size_t made = bytes;
    if (codec == SNAPPY)
        return snappy_uncompress((const char *)in, n, (char *)out, &made) == SNAPPY_OK &&
                       made == bytes
                   ? NULL
                   : wrong;
#else
    if (codec == SNAPPY)
        return "it is compressed with Snappy: install libsnappy-dev and run make again";
#endif
    return "its compression, which is none of gzip, Zstandard and Snappy";
}

/* ---- runs of small numbers ---------------------------------------------------------------------
 */

/* Whole numbers of `width` bits: runs of one value, and groups of eight that are packed, the lowest
 * bits first. */
typedef struct runs {
    const uint8_t *at, *end;
    int width;
    int64_t repeats, packed; /* numbers left of the present run */
    uint32_t value;
    int bit; /* of *at, where packed numbers go on */
    bool bad;
} runs;

static uint32_t take_bits(runs *r) {
    uint32_t v = 0;
    for (int got = 0; got < r->width;) {
        if (r->at >= r->end) {
            r->bad = true;
            return 0;
        }
        int n = 8 - r->bit < r->width - got ? 8 - r->bit : r->width - got;
        v |= (uint32_t)((*r->at >> r->bit) & ((1 << n) - 1)) << got;
        got += n;
        r->bit += n;
        if (r->bit == 8) {
            r->bit = 0;
            r->at++;
        }
    }
    return v;
}

static void next_run(runs *r) {
    uint64_t head = 0;
    for (int shift = 0;; shift += 7) {
        if (r->at >= r->end || shift > 28) {
            r->bad = true;
            return;
        }
        uint8_t b = *r->at++;
        head |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80)) break;
    }
    if (head & 1) {
        r->packed = (int64_t)(head >> 1) * 8;
        r->bit = 0;
    } else {
        r->repeats = (int64_t)(head >> 1);
        r->value = 0;
        for (int i = 0; i < (r->width + 7) / 8; i++) {
            if (r->at >= r->end) {
                r->bad = true;
                return;
            }
            r->value |= (uint32_t)*r->at++ << (8 * i);
        }
    }
    if (r->repeats + r->packed == 0) r->bad = true;
}

static uint32_t next_number(runs *r) {
    if (r->repeats + r->packed == 0 && !r->bad) next_run(r);
    if (r->bad) return 0;
    if (r->repeats > 0) {
        r->repeats--;
        return r->value;
    }
    r->packed--;
    return take_bits(r);
}

static int width_of(int most) {
    int width = 0;
    while (most >> width) width++;
    return width;
}

/* ---- pages ---------------------------------------------------------------------------------- */

typedef struct page {
    int type, encoding;
    int64_t bytes, stored; /* decoded, and in the file */
    int64_t values;
    int64_t definition_bytes, repetition_bytes; /* version 2 */
    bool compressed;
} page;

/* fields of the three kinds of data headers; which: the field that it was */
static void read_kind(cgs_thrift *t, int which, page *h) {
    cgs_thrift_type type;
    const bool second = which == 8;
    for (int id = 0; cgs_thrift_field(t, &id, &type);) {
        int64_t v = cgs_thrift_integer(t, type); /* statistics are skipped by it */
        if (id == 1) h->values = v;
        if (id == (second ? 4 : 2)) h->encoding = (int)v;
        if (second && id == 5) h->definition_bytes = v;
        if (second && id == 6) h->repetition_bytes = v;
        if (second && id == 7) h->compressed = v != 0;
    }
}

static page read_page(cgs_thrift *t) {
    page h = {
        .type = -1, .encoding = -1, .bytes = -1, .stored = -1, .values = -1, .compressed = true};
    cgs_thrift_type type;
    for (int id = 0; cgs_thrift_field(t, &id, &type);) {
        if (id == 1)
            h.type = (int)cgs_thrift_integer(t, type);
        else if (id == 2)
            h.bytes = cgs_thrift_integer(t, type);
        else if (id == 3)
            h.stored = cgs_thrift_integer(t, type);
        else if ((id == 5 || id == 7 || id == 8) && type == CGS_THRIFT_STRUCT)
            read_kind(t, id, &h);
        else
            cgs_thrift_skip(t, type);
    }
    return h;
}

/* a column while it is read */
typedef struct reading {
    cgs_parquet *p;
    const cgs_parquet_column *c;
    const chunk *k;
    double *dictionary; /* (entries) */
    int64_t entries;
    cgs_parquet_data *out;
    int64_t room, rows; /* of out->value; begun so far */
    uint8_t *page;      /* (page_room) decoded */
    size_t page_room;
} reading;

static size_t value_bytes(int type) { return type == INT32 || type == FLOAT ? 4 : 8; }

static double plain_value(int type, const uint8_t *from) {
    int32_t i;
    int64_t l;
    float f;
    double d;
    switch (type) {
    case INT32: return memcpy(&i, from, 4), (double)i;
    case INT64: return memcpy(&l, from, 8), (double)l;
    case FLOAT: return memcpy(&f, from, 4), (double)f;
    default: return memcpy(&d, from, 8), d;
    }
}

/* where a page's values come from */
typedef struct values {
    const uint8_t *at, *end;
    runs index; /* by dictionary, or of booleans */
    enum { AS_PLAIN, AS_BITS, AS_INDEX } kind;
} values;

static bool open_values(const reading *r, int encoding, const uint8_t *at, const uint8_t *end,
                        values *v) {
    const bool boolean = r->c->type == BOOLEAN;
    *v = (values){.at = at, .end = end, .kind = AS_PLAIN};
    if (encoding == PLAIN && boolean) { /* as one packed run */
        v->kind = AS_BITS;
        v->index = (runs){.at = at, .end = end, .width = 1, .packed = INT64_MAX};
        return true;
    }
    if (encoding == PLAIN) return true;
    if (encoding == RLE && boolean) {
        if (end - at < 4) return false;
        v->kind = AS_BITS;
        v->index = (runs){.at = at + 4, .end = end, .width = 1};
        return true;
    }
    if (encoding != PLAIN_DICTIONARY && encoding != RLE_DICTIONARY) return false;
    if (!r->dictionary) return false;
    v->kind = AS_INDEX;
    if (at == end) { /* a page of nulls may have no width */
        v->index = (runs){.at = at, .end = end, .width = 0};
        return true;
    }
    v->index = (runs){.at = at + 1, .end = end, .width = *at};
    return *at <= 32;
}

static bool next_value(const reading *r, values *v, double *out) {
    if (v->kind == AS_PLAIN) {
        size_t n = value_bytes(r->c->type);
        if ((size_t)(v->end - v->at) < n) return false;
        *out = plain_value(r->c->type, v->at);
        v->at += n;
        return true;
    }
    uint32_t i = next_number(&v->index);
    if (v->index.bad) return false;
    if (v->kind == AS_BITS) return *out = i, true;
    if (i >= r->entries) return false;
    return *out = r->dictionary[i], true;
}

static cgs_status put_value(reading *r, double value) {
    cgs_parquet_data *o = r->out;
    if (o->count == r->room) {
        int64_t room = r->room ? 2 * r->room : 4096;
        if (o->count >= CGS_PARQUET_VALUES)
            return cgs_fail(CGS_EFORMAT, "%s: column \"%s\" has more than %" PRId64 " values",
                            r->p->path, r->c->name, CGS_PARQUET_VALUES);
        double *more = realloc(o->value, (size_t)room * sizeof *more);
        if (!more) return cgs_fail(CGS_ENOMEM, "%s: no memory for a column", r->p->path);
        o->value = more;
        r->room = room;
    }
    o->value[o->count++] = value;
    return CGS_OK;
}

static bool begin_row(reading *r) {
    if (r->rows == r->p->rows) return false;
    r->out->begin[r->rows++] = r->out->count;
    return true;
}

/* levels and values of a page together */
static cgs_status take_page(reading *r, const page *h, runs *repetition, runs *definition,
                            values *v) {
    const cgs_parquet_column *c = r->c;
    for (int64_t i = 0; i < h->values; i++) {
        uint32_t rep = c->max_repetition ? next_number(repetition) : 0;
        uint32_t def = c->max_definition ? next_number(definition) : 0;
        double value = NAN;
        if (repetition->bad || definition->bad || rep > (uint32_t)c->max_repetition ||
            def > (uint32_t)c->max_definition)
            return damaged(r->p, "the levels of a page");
        if (rep == 0 ? !begin_row(r) : r->rows == 0) return damaged(r->p, "more rows than it says");
        if (c->list && def < (uint32_t)c->list_definition) { /* an empty list */
            if (rep > 0) return damaged(r->p, "the levels of a page");
            continue;
        }
        if (def == (uint32_t)c->max_definition && !next_value(r, v, &value))
            return damaged(r->p, "the values of a page");
        CGS_TRY(put_value(r, value));
    }
    return CGS_OK;
}

/* levels of version 1 have their length before them */
static bool open_levels(int most, const uint8_t **at, const uint8_t *end, runs *out) {
    *out = (runs){.width = width_of(most)};
    if (most == 0) return true;
    if (end - *at < 4) return false;
    uint32_t n =
        (*at)[0] | (uint32_t)(*at)[1] << 8 | (uint32_t)(*at)[2] << 16 | (uint32_t)(*at)[3] << 24;
    *at += 4;
    if (n > (size_t)(end - *at)) return false;
    out->at = *at;
    out->end = *at += n;
    return true;
}

static cgs_status unpack_page(reading *r, const uint8_t *in, size_t stored, size_t bytes,
                              bool compressed) {
    if (bytes >= r->page_room) {
        free(r->page);
        r->page = malloc(bytes + 1);
        r->page_room = r->page ? bytes + 1 : 0;
        if (!r->page) return cgs_fail(CGS_ENOMEM, "%s: no memory for a page", r->p->path);
    }
    const char *why = unpack(compressed ? r->k->codec : UNCOMPRESSED, in, stored, r->page, bytes);
    return why ? damaged(r->p, why) : CGS_OK;
}

static cgs_status read_dictionary(reading *r, const page *h, const uint8_t *in) {
    const size_t size = value_bytes(r->c->type);
    CGS_TRY(unpack_page(r, in, (size_t)h->stored, (size_t)h->bytes, true));
    if (r->dictionary || r->c->type == BOOLEAN || h->values < 0 ||
        (uint64_t)h->values > (uint64_t)h->bytes / size)
        return damaged(r->p, "a dictionary");
    r->dictionary = malloc(((size_t)h->values + 1) * sizeof *r->dictionary);
    if (!r->dictionary) return cgs_fail(CGS_ENOMEM, "%s: no memory", r->p->path);
    r->entries = h->values;
    for (int64_t i = 0; i < r->entries; i++)
        r->dictionary[i] = plain_value(r->c->type, r->page + (size_t)i * size);
    return CGS_OK;
}

static cgs_status read_first_version(reading *r, const page *h, const uint8_t *in) {
    runs repetition, definition;
    values v;
    CGS_TRY(unpack_page(r, in, (size_t)h->stored, (size_t)h->bytes, true));
    const uint8_t *at = r->page, *end = r->page + h->bytes;
    if (!open_levels(r->c->max_repetition, &at, end, &repetition) ||
        !open_levels(r->c->max_definition, &at, end, &definition))
        return damaged(r->p, "the levels of a page");
    if (!open_values(r, h->encoding, at, end, &v))
        return cgs_fail(CGS_EFORMAT,
                        "%s: column \"%s\" is stored in encoding %d, which is not read", r->p->path,
                        r->c->name, h->encoding);
    return take_page(r, h, &repetition, &definition, &v);
}

static cgs_status read_second_version(reading *r, const page *h, const uint8_t *in) {
    const int64_t rep = h->repetition_bytes, def = h->definition_bytes;
    if (rep < 0 || def < 0 || rep > h->stored || def > h->stored - rep || rep + def > h->bytes)
        return damaged(r->p, "the levels of a page");
    runs repetition = {.at = in, .end = in + rep, .width = width_of(r->c->max_repetition)};
    runs definition = {
        .at = in + rep, .end = in + rep + def, .width = width_of(r->c->max_definition)};
    values v;
    CGS_TRY(unpack_page(r, in + rep + def, (size_t)(h->stored - rep - def),
                        (size_t)(h->bytes - rep - def), h->compressed));
    if (!open_values(r, h->encoding, r->page, r->page + (h->bytes - rep - def), &v))
        return cgs_fail(CGS_EFORMAT,
                        "%s: column \"%s\" is stored in encoding %d, which is not read", r->p->path,
                        r->c->name, h->encoding);
    return take_page(r, h, &repetition, &definition, &v);
}

static cgs_status read_pages(reading *r) {
    const uint8_t *at = r->p->map + r->k->at, *end = at + r->k->bytes;
    for (int64_t seen = 0; seen < r->k->values;) {
        cgs_thrift t = {at, end, false};
        page h = read_page(&t);
        if (t.bad || h.bytes < 0 || h.bytes > LARGEST_PAGE || h.stored < 0 ||
            h.stored > end - t.at || h.values < 0)
            return damaged(r->p, "the header of a page");
        if (h.type == DICTIONARY_PAGE)
            CGS_TRY(read_dictionary(r, &h, t.at));
        else if (h.type == DATA_PAGE)
            CGS_TRY(read_first_version(r, &h, t.at));
        else if (h.type == DATA_PAGE_V2)
            CGS_TRY(read_second_version(r, &h, t.at));
        if (h.type == DATA_PAGE || h.type == DATA_PAGE_V2) {
            if (h.values > r->k->values - seen) return damaged(r->p, "more values than it says");
            seen += h.values;
        }
        at = t.at + h.stored;
    }
    return CGS_OK;
}

/* ---- columns -------------------------------------------------------------------------------- */

cgs_status cgs_parquet_read(cgs_parquet *p, int column, cgs_parquet_data *out) {
    const cgs_parquet_column *c = &p->column[column];
    *out = (cgs_parquet_data){0};
    if (!c->number)
        return cgs_fail(CGS_EFORMAT, "%s: column \"%s\" holds no numbers or lists of lists",
                        p->path, c->name);
    out->begin = malloc(((size_t)p->rows + 1) * sizeof *out->begin);
    if (!out->begin) return cgs_fail(CGS_ENOMEM, "%s: no memory for a column", p->path);
    reading r = {.p = p, .c = c, .out = out};
    cgs_status rc = CGS_OK;
    for (int g = 0; g < p->groups && rc == CGS_OK; g++) {
        r.k = &p->chunk[(size_t)g * (size_t)p->columns + (size_t)column];
        rc = read_pages(&r);
        free(r.dictionary);
        r.dictionary = NULL;
    }
    free(r.page);
    if (rc == CGS_OK && r.rows != p->rows) rc = damaged(p, "fewer rows than it says");
    if (rc == CGS_OK) out->begin[p->rows] = out->count;
    if (rc != CGS_OK) cgs_parquet_data_free(out);
    return rc;
}

void cgs_parquet_data_free(cgs_parquet_data *d) {
    free(d->value);
    free(d->begin);
    *d = (cgs_parquet_data){0};
}

cgs_status cgs_parquet_open(cgs_parquet **out, const char *path) {
    *out = NULL;
    cgs_parquet *p = calloc(1, sizeof *p);
    if (!p) return cgs_fail(CGS_ENOMEM, "%s: no memory", path);
    cgs_status rc = CGS_OK;
    if ((size_t)snprintf(p->path, sizeof p->path, "%s", path) >= sizeof p->path)
        rc = cgs_fail(CGS_EARG, "%.64s...: path is too long", path);
    if (rc == CGS_OK) rc = cgs_map_file(path, 12, &p->map, &p->bytes);
    if (rc == CGS_OK) rc = read_footer(p);
    if (rc != CGS_OK) {
        cgs_parquet_close(p);
        return rc;
    }
    *out = p;
    return CGS_OK;
}

void cgs_parquet_close(cgs_parquet *p) {
    if (!p) return;
    if (p->map) munmap((void *)(uintptr_t)p->map, p->bytes);
    free(p->chunk);
    free(p);
}

int64_t cgs_parquet_rows(const cgs_parquet *p) { return p->rows; }
int cgs_parquet_columns(const cgs_parquet *p) { return p->columns; }
const cgs_parquet_column *cgs_parquet_column_at(const cgs_parquet *p, int column) {
    return &p->column[column];
}

int cgs_parquet_find(const cgs_parquet *p, const char *name) {
    for (int i = 0; i < p->columns; i++)
        if (!strcmp(p->column[i].name, name)) return i;
    return -1;
}

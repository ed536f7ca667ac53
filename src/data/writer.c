/* writer.c - records a dataset so that a kill loses no finished episode.
 *
 * A killed writer leaves an unreadable HDF5 file, so episodes first go to a journal, NAME.part, one
 * checksummed entry each; finishing turns the journal into the HDF5 file NAME.tmp, renames it to
 * NAME and deletes the journal.  At any moment there is either no dataset or a complete one, and
 * beside it a journal from which the next run resumes after the last finished episode.  This copies
 * the (compressed) data once, but it also makes the bytes of NAME depend on the episodes alone, not
 * on interruptions or the number of threads.
 *
 * Images (u8 columns whose rows have two axes or more) are compressed when their episode is packed,
 * one row per chunk, so that any frame can be read alone; finishing copies the compressed chunks
 * unchanged.  Black images, of rows that are not rendered, are compressed once (they could be left
 * out, but libhdf5 1.10 has no fast test of whether a chunk exists).  Deflate at level 1: on flat
 * 224 x 224 images 2.3 kB per frame instead of 151 kB, 0.26 ms to write and 0.07 ms to read; level
 * 6 halves the size but reads three times slower.  Shuffle does nothing to bytes.  Every HDF5
 * reader knows deflate without a plugin.  Other columns are chunks of about 64 kB with fletcher32
 * checksums.
 *
 * The file uses the version 1.10 object formats: all their metadata have checksums, so that damage
 * is detected instead of followed.  Times are not stored. */
#include "data/writer.h"

#include <hdf5.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "core/build.h"
#include "core/file.h"
#include "data/h5.h"
#include "data/journal.h"

#define MAX_COLUMNS 64
#define MAX_ATTRIBUTES 48
#define DEFLATE_LEVEL 1
#define CHUNK_BYTES 65536 /* of number columns */

typedef struct column {
    char name[CGS_COLUMN_NAME];
    cgs_column_type dtype;
    int rank;
    hsize_t shape[CGS_COLUMN_RANK];
    size_t row_bytes;
    bool image;
    uint8_t *black; /* (black_bytes) a compressed black image */
    size_t black_bytes;
} column;

typedef struct attribute {
    enum { TEXT, INTEGER, REAL } kind;
    char name[CGS_COLUMN_NAME];
    char text[256];
    uint64_t integer;
    double real;
} attribute;

struct cgs_writer {
    char path[4096];
    char part[4112], tmp[4112];
    column columns[MAX_COLUMNS];
    int column_count;
    attribute attributes[MAX_ATTRIBUTES];
    int attribute_count;
    bool begun;
    cgs_journal journal;
    cgs_episode episode; /* being written or read */
};

/* ---- declaring ----------------------------------------------------------------------- */

static bool good_name(const char *name) {
    size_t n = strlen(name);
    if (n == 0 || n >= CGS_COLUMN_NAME) return false;
    for (const char *p = name; *p; p++)
        if (*p <= ' ' || *p == '/' || *p == 0x7f) return false;
    return true;
}

static hid_t file_type(cgs_column_type t) {
    switch (t) {
    case CGS_COL_F32: return H5T_IEEE_F32LE;
    case CGS_COL_F64: return H5T_IEEE_F64LE;
    case CGS_COL_I32: return H5T_STD_I32LE;
    case CGS_COL_I64: return H5T_STD_I64LE;
    case CGS_COL_U8: return H5T_STD_U8LE;
    default: return -1;
    }
}

/* to: at least compressBound of a row; returns the number of bytes used */
static size_t squeeze(uint8_t *to, const uint8_t *row, size_t bytes) {
    uLongf length = compressBound(bytes);
    if (compress2(to, &length, row, bytes, DEFLATE_LEVEL) == Z_OK && length < bytes) return length;
    memcpy(to, row, bytes);
    return bytes;
}

static cgs_status squeeze_black(const cgs_writer *w, column *c) {
    uint8_t *row = calloc(1, c->row_bytes);
    c->black = malloc(compressBound(c->row_bytes));
    if (row && c->black) c->black_bytes = squeeze(c->black, row, c->row_bytes);
    free(row);
    return c->black_bytes ? CGS_OK : cgs_fail(CGS_ENOMEM, "%s: no memory", w->path);
}

static cgs_status set_column(cgs_writer *w, const cgs_column_spec *spec) {
    static const char *const reserved[] = {"ep_len", "ep_offset", "episode_idx", "ep_idx",
                                           "step_idx"};
    if (!good_name(spec->name))
        return cgs_fail(CGS_EARG, "%s: \"%.80s\" is not a valid name for a column", w->path,
                        spec->name);
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++)
        if (!strcmp(spec->name, reserved[i]))
            return cgs_fail(CGS_EARG, "%s: column \"%s\" is added by the writer", w->path,
                            spec->name);
    for (int i = 0; i < w->column_count; i++)
        if (!strcmp(spec->name, w->columns[i].name))
            return cgs_fail(CGS_EARG, "%s: column \"%s\" is declared twice", w->path, spec->name);
    cgs_column_type t = spec->dtype;
    if (t != CGS_COL_F32 && t != CGS_COL_F64 && t != CGS_COL_I32 && t != CGS_COL_I64 &&
        t != CGS_COL_U8)
        return cgs_fail(CGS_EARG, "%s: column \"%s\" cannot be written as %s", w->path, spec->name,
                        cgs_column_type_name(t));
    column *c = &w->columns[w->column_count];
    *c = (column){.dtype = t, .rank = spec->rank, .row_bytes = cgs_column_type_size(t)};
    snprintf(c->name, sizeof c->name, "%s", spec->name);
    if (spec->rank < 0 || spec->rank > CGS_COLUMN_RANK)
        return cgs_fail(CGS_EARG, "%s: column \"%s\" has %d axes per row", w->path, c->name,
                        spec->rank);
    for (int i = 0; i < c->rank; i++) {
        if (spec->shape[i] < 1 || (size_t)spec->shape[i] > ((size_t)1 << 28) / c->row_bytes)
            return cgs_fail(CGS_EARG, "%s: column \"%s\" has a row shape of %" PRId64, w->path,
                            c->name, spec->shape[i]);
        c->shape[i] = (hsize_t)spec->shape[i];
        c->row_bytes *= (size_t)spec->shape[i];
    }
    c->image = t == CGS_COL_U8 && c->rank >= 2;
    w->column_count++;
    return c->image ? squeeze_black(w, c) : CGS_OK;
}

cgs_status cgs_writer_create(cgs_writer **out, const char *path, const cgs_column_spec *columns,
                             int column_count) {
    *out = NULL;
    if (column_count < 1 || column_count > MAX_COLUMNS)
        return cgs_fail(CGS_EARG, "%s: %d columns; 1 to %d are possible", path, column_count,
                        MAX_COLUMNS);
    cgs_writer *w = calloc(1, sizeof *w);
    if (!w) return cgs_fail(CGS_ENOMEM, "%s: no memory", path);
    w->journal.fd = -1;
    cgs_status rc = CGS_OK;
    if ((size_t)snprintf(w->path, sizeof w->path, "%s", path) >= sizeof w->path)
        rc = cgs_fail(CGS_EARG, "%.64s...: path is too long", path);
    snprintf(w->part, sizeof w->part, "%s.part", w->path);
    snprintf(w->tmp, sizeof w->tmp, "%s.tmp", w->path);
    for (int i = 0; i < column_count && rc == CGS_OK; i++) rc = set_column(w, &columns[i]);
    if (rc == CGS_OK) rc = cgs_writer_text(w, "code_version", cgs_version());
    if (rc == CGS_OK) rc = cgs_writer_text(w, "code_commit", cgs_commit());
    if (rc != CGS_OK) {
        cgs_writer_destroy(w);
        return rc;
    }
    *out = w;
    return CGS_OK;
}

void cgs_writer_destroy(cgs_writer *w) {
    if (!w) return;
    cgs_journal_close(&w->journal);
    cgs_episode_free(&w->episode);
    for (int i = 0; i < w->column_count; i++) free(w->columns[i].black);
    free(w);
}

static cgs_status new_attribute(cgs_writer *w, const char *name, attribute **out) {
    if (w->begun)
        return cgs_fail(CGS_EARG, "%s: attribute \"%.80s\" comes after its beginning", w->path,
                        name);
    if (!good_name(name))
        return cgs_fail(CGS_EARG, "%s: \"%.80s\" is not a valid name for an attribute", w->path,
                        name);
    for (int i = 0; i < w->attribute_count; i++)
        if (!strcmp(name, w->attributes[i].name))
            return cgs_fail(CGS_EARG, "%s: attribute \"%s\" is given twice", w->path, name);
    if (w->attribute_count == MAX_ATTRIBUTES)
        return cgs_fail(CGS_EARG, "%s: more than %d attributes", w->path, MAX_ATTRIBUTES);
    attribute *a = &w->attributes[w->attribute_count++];
    memset(a, 0, sizeof *a);
    snprintf(a->name, sizeof a->name, "%s", name);
    *out = a;
    return CGS_OK;
}

cgs_status cgs_writer_text(cgs_writer *w, const char *name, const char *value) {
    attribute *a;
    for (const char *p = value; *p; p++)
        if ((unsigned char)*p < ' ')
            return cgs_fail(CGS_EARG, "%s: attribute \"%s\" holds a control character", w->path,
                            name);
    CGS_TRY(new_attribute(w, name, &a));
    a->kind = TEXT;
    if ((size_t)snprintf(a->text, sizeof a->text, "%s", value) >= sizeof a->text)
        return cgs_fail(CGS_EARG, "%s: attribute \"%s\" is longer than %zu characters", w->path,
                        name, sizeof a->text - 1);
    return CGS_OK;
}

cgs_status cgs_writer_integer(cgs_writer *w, const char *name, uint64_t value) {
    attribute *a;
    CGS_TRY(new_attribute(w, name, &a));
    a->kind = INTEGER;
    a->integer = value;
    return CGS_OK;
}

cgs_status cgs_writer_real(cgs_writer *w, const char *name, double value) {
    attribute *a;
    CGS_TRY(new_attribute(w, name, &a));
    a->kind = REAL;
    a->real = value;
    return CGS_OK;
}

/* the declaration as text, one line each; a journal is continued only if it is the same */
static char *declaration(const cgs_writer *w) {
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    if (!f) return NULL;
    for (int i = 0; i < w->column_count; i++) {
        const column *c = &w->columns[i];
        fprintf(f, "column %s %s", c->name, cgs_column_type_name(c->dtype));
        for (int k = 0; k < c->rank; k++) fprintf(f, " %llu", (unsigned long long)c->shape[k]);
        fputc('\n', f);
    }
    for (int i = 0; i < w->attribute_count; i++) {
        const attribute *a = &w->attributes[i];
        fprintf(f, "attribute %s ", a->name);
        if (a->kind == TEXT)
            fprintf(f, "%s\n", a->text);
        else if (a->kind == INTEGER)
            fprintf(f, "%" PRIu64 "\n", a->integer);
        else
            fprintf(f, "%.17g\n", a->real);
    }
    bool failed = ferror(f);
    if (fclose(f) != 0 || failed) {
        free(text);
        return NULL;
    }
    return text;
}

cgs_status cgs_writer_begin(cgs_writer *w, int64_t *episodes) {
    if (w->begun) return cgs_fail(CGS_EARG, "%s: has begun already", w->path);
    if (cgs_file_exists(w->path))
        return cgs_fail(CGS_EIO, "%s: exists already and is not overwritten", w->path);
    char *head = declaration(w);
    if (!head) return cgs_fail(CGS_ENOMEM, "%s: no memory", w->path);
    cgs_status rc = cgs_journal_open(&w->journal, w->part, head);
    free(head);
    CGS_TRY(rc);
    w->begun = true;
    *episodes = w->journal.count;
    return CGS_OK;
}

/* ---- adding -------------------------------------------------------------------------- */

/* An entry has the columns one after the other: numbers as they are, images as a u32 length and
 * that many bytes each (the length of a raw row means: not compressed). */

void cgs_episode_free(cgs_episode *e) {
    free(e->bytes);
    *e = (cgs_episode){0};
}

/* makes space for that many more bytes */
static cgs_status make_room(const cgs_writer *w, cgs_episode *e, size_t bytes) {
    if (bytes <= e->capacity - e->size) return CGS_OK;
    size_t capacity = 2 * (e->size + bytes);
    uint8_t *p = realloc(e->bytes, capacity);
    if (!p) return cgs_fail(CGS_ENOMEM, "%s: no memory for an episode", w->path);
    e->bytes = p;
    e->capacity = capacity;
    return CGS_OK;
}

static cgs_status put(const cgs_writer *w, cgs_episode *e, const void *data, size_t bytes) {
    CGS_TRY(make_room(w, e, bytes));
    memcpy(e->bytes + e->size, data, bytes);
    e->size += bytes;
    return CGS_OK;
}

static bool black(const uint8_t *row, size_t bytes) {
    return row[0] == 0 && memcmp(row, row + 1, bytes - 1) == 0;
}

static cgs_status put_image(const cgs_writer *w, cgs_episode *e, const column *c,
                            const uint8_t *row) {
    uint32_t stored;
    CGS_TRY(make_room(w, e, sizeof stored + compressBound(c->row_bytes)));
    uint8_t *to = e->bytes + e->size + sizeof stored;
    if (black(row, c->row_bytes)) {
        memcpy(to, c->black, c->black_bytes);
        stored = (uint32_t)c->black_bytes;
    } else {
        stored = (uint32_t)squeeze(to, row, c->row_bytes);
    }
    memcpy(to - sizeof stored, &stored, sizeof stored);
    e->size += sizeof stored + stored;
    return CGS_OK;
}

/* action t leads from row t to row t + 1, so the last row has none */
static cgs_status check_action(const cgs_writer *w, const column *c, int rows, const void *data) {
    size_t n = c->row_bytes / cgs_column_type_size(c->dtype);
    for (int r = 0; r < rows; r++)
        for (size_t j = 0; j < n; j++) {
            size_t k = (size_t)r * n + j;
            double v =
                c->dtype == CGS_COL_F32 ? ((const float *)data)[k] : ((const double *)data)[k];
            if (r + 1 < rows ? !isfinite(v) : !isnan(v))
                return cgs_fail(CGS_ENUMERIC,
                                "%s: action %zu of row %d of %d is %g; the last row alone is NaN",
                                w->path, j, r, rows, v);
        }
    return CGS_OK;
}

cgs_status cgs_writer_pack(const cgs_writer *w, int rows, const void *const *data, cgs_episode *e) {
    if (rows < 1) return cgs_fail(CGS_EARG, "%s: an episode of %d rows", w->path, rows);
    e->rows = rows;
    e->size = 0;
    for (int i = 0; i < w->column_count; i++) {
        const column *c = &w->columns[i];
        if (!strcmp(c->name, "action") && (c->dtype == CGS_COL_F32 || c->dtype == CGS_COL_F64))
            CGS_TRY(check_action(w, c, rows, data[i]));
        if (!c->image) CGS_TRY(put(w, e, data[i], (size_t)rows * c->row_bytes));
        for (int r = 0; c->image && r < rows; r++)
            CGS_TRY(put_image(w, e, c, (const uint8_t *)data[i] + (size_t)r * c->row_bytes));
    }
    return CGS_OK;
}

cgs_status cgs_writer_put(cgs_writer *w, const cgs_episode *e) {
    if (!w->begun) return cgs_fail(CGS_EARG, "%s: an episode, but no recording has begun", w->path);
    return cgs_journal_add(&w->journal, e->rows, e->bytes, e->size);
}

cgs_status cgs_writer_add(cgs_writer *w, int rows, const void *const *data) {
    CGS_TRY(cgs_writer_pack(w, rows, data, &w->episode));
    return cgs_writer_put(w, &w->episode);
}

/* ---- finishing ------------------------------------------------------------------------ */

static cgs_status h5_fail(const cgs_writer *w, const char *what) {
    return cgs_fail(CGS_EIO, "%s: %s could not be written (%s)", w->tmp, what, cgs_h5_reason());
}

static cgs_status write_attribute(const cgs_writer *w, hid_t file, const attribute *a) {
    hid_t type = a->kind == INTEGER ? H5Tcopy(H5T_STD_U64LE)
                 : a->kind == REAL  ? H5Tcopy(H5T_IEEE_F64LE)
                                    : H5Tcopy(H5T_C_S1);
    if (a->kind == TEXT) {
        H5Tset_size(type, strlen(a->text) + 1);
        H5Tset_cset(type, H5T_CSET_UTF8);
    }
    const void *value = a->kind == TEXT      ? (const void *)a->text
                        : a->kind == INTEGER ? (const void *)&a->integer
                                             : (const void *)&a->real;
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t at = H5Acreate2(file, a->name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    bool failed = at < 0 || H5Awrite(at, type, value) < 0;
    cgs_status rc = failed ? h5_fail(w, a->name) : CGS_OK;
    if (at >= 0) H5Aclose(at);
    H5Sclose(space);
    H5Tclose(type);
    return rc;
}

/* a column of `rows` rows; chunked, number columns with checksums */
static cgs_status create_column(const cgs_writer *w, hid_t file, const column *c, hsize_t rows,
                                hid_t *out) {
    hsize_t dims[CGS_COLUMN_RANK + 1] = {rows}, chunk[CGS_COLUMN_RANK + 1];
    for (int i = 0; i < c->rank; i++) dims[i + 1] = chunk[i + 1] = c->shape[i];
    chunk[0] = c->image ? 1 : CHUNK_BYTES / c->row_bytes;
    if (chunk[0] < 1) chunk[0] = 1;
    if (chunk[0] > rows) chunk[0] = rows;
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = H5Screate_simple(c->rank + 1, dims, NULL);
    bool failed = H5Pset_obj_track_times(plist, false) < 0 ||
                  H5Pset_chunk(plist, c->rank + 1, chunk) < 0 ||
                  (c->image ? H5Pset_deflate(plist, DEFLATE_LEVEL) : H5Pset_fletcher32(plist)) < 0;
    *out = failed ? -1
                  : H5Dcreate2(file, c->name, file_type(c->dtype), space, H5P_DEFAULT, plist,
                               H5P_DEFAULT);
    cgs_status rc = *out < 0 ? h5_fail(w, c->name) : CGS_OK;
    H5Sclose(space);
    H5Pclose(plist);
    return rc;
}

/* rows first .. first+count-1 of a number column: data (count, row shape) */
static cgs_status write_numbers(const cgs_writer *w, hid_t set, const column *c, hsize_t first,
                                hsize_t count, const void *data) {
    hsize_t start[CGS_COLUMN_RANK + 1] = {first}, block[CGS_COLUMN_RANK + 1] = {count};
    for (int i = 0; i < c->rank; i++) block[i + 1] = c->shape[i];
    hid_t space = H5Dget_space(set), memory = H5Screate_simple(c->rank + 1, block, NULL);
    bool failed = space < 0 || memory < 0 ||
                  H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, block, NULL) < 0 ||
                  H5Dwrite(set, file_type(c->dtype), memory, space, H5P_DEFAULT, data) < 0;
    cgs_status rc = failed ? h5_fail(w, c->name) : CGS_OK;
    if (memory >= 0) H5Sclose(memory);
    if (space >= 0) H5Sclose(space);
    return rc;
}

/* the index columns are small: written whole */
static cgs_status write_index(cgs_writer *w, hid_t file, hsize_t rows) {
    const cgs_journal *j = &w->journal;
    const hsize_t E = (hsize_t)j->count;
    const column columns[] = {{.name = "ep_len", .dtype = CGS_COL_I32, .row_bytes = 4},
                              {.name = "ep_offset", .dtype = CGS_COL_I64, .row_bytes = 8},
                              {.name = "episode_idx", .dtype = CGS_COL_I32, .row_bytes = 4},
                              {.name = "step_idx", .dtype = CGS_COL_I64, .row_bytes = 8}};
    int32_t *ep_len = malloc(E * sizeof *ep_len), *episode_idx = malloc(rows * sizeof *episode_idx);
    int64_t *ep_offset = malloc(E * sizeof *ep_offset), *step_idx = malloc(rows * sizeof *step_idx);
    const void *data[] = {ep_len, ep_offset, episode_idx, step_idx};
    cgs_status rc = CGS_OK;
    if (!ep_len || !episode_idx || !ep_offset || !step_idx) {
        rc = cgs_fail(CGS_ENOMEM, "%s: no memory for its index", w->path);
    } else {
        int64_t row = 0;
        for (int64_t e = 0; e < j->count; e++) {
            ep_len[e] = (int32_t)j->rows[e];
            ep_offset[e] = row;
            for (int64_t i = 0; i < j->rows[e]; i++, row++) {
                episode_idx[row] = (int32_t)e;
                step_idx[row] = i;
            }
        }
    }
    for (int i = 0; i < 4 && rc == CGS_OK; i++) {
        hid_t set;
        hsize_t n = i < 2 ? E : rows;
        rc = create_column(w, file, &columns[i], n, &set);
        if (rc == CGS_OK) rc = write_numbers(w, set, &columns[i], 0, n, data[i]);
        if (set >= 0) H5Dclose(set);
    }
    free(ep_len);
    free(episode_idx);
    free(ep_offset);
    free(step_idx);
    return rc;
}

/* copies the compressed images of one episode; *at advances in the entry */
static cgs_status write_images(const cgs_writer *w, hid_t set, const column *c, hsize_t first,
                               int64_t rows, const uint8_t **at, const uint8_t *end) {
    for (int64_t i = 0; i < rows; i++) {
        uint32_t bytes;
        if ((size_t)(end - *at) < sizeof bytes) break;
        memcpy(&bytes, *at, sizeof bytes);
        *at += sizeof bytes;
        if ((size_t)(end - *at) < bytes) break;
        hsize_t offset[CGS_COLUMN_RANK + 1] = {first + (hsize_t)i};
        uint32_t mask = bytes == c->row_bytes; /* bit 0: the filter was skipped */
        if (H5Dwrite_chunk(set, H5P_DEFAULT, mask, offset, bytes, *at) < 0)
            return h5_fail(w, c->name);
        *at += bytes;
        if (i + 1 == rows) return CGS_OK;
    }
    return cgs_fail(CGS_EFORMAT, "%s: an entry is shorter than its images", w->part);
}

static cgs_status write_episode(cgs_writer *w, const hid_t *sets, int64_t e, hsize_t first) {
    cgs_journal *j = &w->journal;
    w->episode.size = 0;
    CGS_TRY(make_room(w, &w->episode, (size_t)j->bytes[e]));
    CGS_TRY(cgs_journal_read(j, e, w->episode.bytes));
    const uint8_t *at = w->episode.bytes, *end = at + j->bytes[e];
    for (int i = 0; i < w->column_count; i++) {
        const column *c = &w->columns[i];
        if (c->image) {
            CGS_TRY(write_images(w, sets[i], c, first, j->rows[e], &at, end));
            continue;
        }
        size_t bytes = (size_t)j->rows[e] * c->row_bytes;
        if ((size_t)(end - at) < bytes)
            return cgs_fail(CGS_EFORMAT, "%s: entry %" PRId64 " is too short", w->part, e);
        CGS_TRY(write_numbers(w, sets[i], c, first, (hsize_t)j->rows[e], at));
        at += bytes;
    }
    return CGS_OK;
}

static cgs_status write_all(cgs_writer *w, hid_t file, hsize_t rows) {
    hid_t sets[MAX_COLUMNS];
    int opened = 0;
    cgs_status rc = CGS_OK;
    for (int i = 0; i < w->attribute_count && rc == CGS_OK; i++)
        rc = write_attribute(w, file, &w->attributes[i]);
    if (rc == CGS_OK) rc = write_index(w, file, rows);
    while (opened < w->column_count && rc == CGS_OK) {
        rc = create_column(w, file, &w->columns[opened], rows, &sets[opened]);
        if (rc == CGS_OK) opened++;
    }
    hsize_t row = 0;
    for (int64_t e = 0; e < w->journal.count && rc == CGS_OK; e++) {
        rc = write_episode(w, sets, e, row);
        row += (hsize_t)w->journal.rows[e];
    }
    while (opened > 0)
        if (H5Dclose(sets[--opened]) < 0 && rc == CGS_OK) rc = h5_fail(w, "a column");
    return rc;
}

static cgs_status write_file(cgs_writer *w, hsize_t rows) {
    hid_t create = H5Pcreate(H5P_FILE_CREATE), access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_obj_track_times(create, false);
    H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110);
    H5Pset_file_locking(access, false, true); /* the journal holds the lock */
    hid_t file = H5Fcreate(w->tmp, H5F_ACC_TRUNC, create, access);
    H5Pclose(access);
    H5Pclose(create);
    if (file < 0) return h5_fail(w, "the file");
    cgs_status rc = write_all(w, file, rows);
    if (H5Fclose(file) < 0 && rc == CGS_OK) rc = h5_fail(w, "the file");
    return rc;
}

cgs_status cgs_writer_finish(cgs_writer *w) {
    if (!w->begun) return cgs_fail(CGS_EARG, "%s: an end, but no recording has begun", w->path);
    const cgs_journal *j = &w->journal;
    hsize_t rows = 0;
    for (int64_t e = 0; e < j->count; e++) rows += (hsize_t)j->rows[e];
    if (rows == 0) return cgs_fail(CGS_EARG, "%s: no episode was recorded", w->path);
    if (j->count > INT_MAX)
        return cgs_fail(CGS_EARG, "%s: %" PRId64 " episodes are too many", w->path, j->count);
    cgs_h5_lock();
    cgs_status rc = write_file(w, rows);
    cgs_h5_unlock();
    if (rc != CGS_OK) {
        unlink(w->tmp);
        return rc;
    }
    CGS_TRY(cgs_replace_file(w->tmp, w->path));
    w->begun = false;
    unlink(w->part);
    return CGS_OK;
}

/* h5column.c - opening and reading one column of an HDF5 file. */
#include "data/h5column.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/h5.h"

#define MAX_CHUNK_BYTES ((size_t)1 << 30)
#define MAX_ROW_BYTES ((size_t)1 << 28)
#define MAX_ROWS ((hsize_t)1 << 40)

static const size_t kind_size[] = {
    [CGS_H5_U8] = 1, [CGS_H5_I64] = 8, [CGS_H5_F32] = 4, [CGS_H5_F64] = 8};

/* ---- opening ----------------------------------------------------------------------- */

/* the stored number type; *plain when it is native to this machine */
static cgs_column_type number_type(hid_t type, bool *plain) {
    H5T_class_t class = H5Tget_class(type);
    hid_t base = class == H5T_ENUM ? H5Tget_super(type) : H5Tcopy(type); /* enum: booleans */
    if (base < 0) return CGS_COL_OTHER;
    class = H5Tget_class(base);
    size_t size = H5Tget_size(base);
    bool is_signed = H5Tget_sign(base) == H5T_SGN_2;
    cgs_column_type t = CGS_COL_OTHER;
    if (class == H5T_INTEGER) {
        t = size == 1   ? (is_signed ? CGS_COL_I8 : CGS_COL_U8)
            : size == 2 ? (is_signed ? CGS_COL_I16 : CGS_COL_U16)
            : size == 4 ? (is_signed ? CGS_COL_I32 : CGS_COL_U32)
            : size == 8 ? (is_signed ? CGS_COL_I64 : CGS_COL_U64)
                        : CGS_COL_OTHER;
        *plain = (size == 1 || H5Tget_order(base) == H5T_ORDER_LE) &&
                 H5Tget_precision(base) == 8 * size && H5Tget_offset(base) == 0;
    } else if (class == H5T_FLOAT) {
        bool f32 = H5Tequal(base, H5T_IEEE_F32LE) > 0, f64 = H5Tequal(base, H5T_IEEE_F64LE) > 0;
        t = size > 4 ? CGS_COL_F64 : CGS_COL_F32;
        *plain = f32 || f64;
    }
    H5Tclose(base);
    return t;
}

static void set_problem(cgs_h5column *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void set_problem(cgs_h5column *c, const char *format, ...) {
    if (*c->problem) return; /* the first one is the cause */
    va_list ap;
    va_start(ap, format);
    vsnprintf(c->problem, sizeof c->problem, format, ap);
    va_end(ap);
}

static void describe(cgs_h5column *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void describe(cgs_h5column *c, const char *format, ...) {
    size_t used = strlen(c->layout);
    va_list ap;
    va_start(ap, format);
    vsnprintf(c->layout + used, sizeof c->layout - used, format, ap);
    va_end(ap);
}

static void open_shape(cgs_h5column *c) {
    hid_t space = H5Dget_space(c->set);
    int rank = space < 0 ? -1 : H5Sget_simple_extent_ndims(space);
    if (rank < 1 || rank > CGS_H5_RANK) {
        set_problem(c, "it has %d axes; 1 to %d are expected", rank, CGS_H5_RANK);
    } else if (H5Sget_simple_extent_dims(space, c->dims, NULL) != rank) {
        set_problem(c, "its shape cannot be read");
    } else {
        size_t values = 1;
        c->rank = rank;
        c->info.rank = rank - 1;
        if (c->dims[0] > MAX_ROWS)
            set_problem(c, "it claims %llu rows", (unsigned long long)c->dims[0]);
        else
            c->info.rows = (int64_t)c->dims[0];
        for (int i = 1; i < rank; i++) {
            if (c->dims[i] == 0 || c->dims[i] > MAX_ROW_BYTES / values) {
                set_problem(c, "a row of it has no sensible shape");
                break;
            }
            values *= (size_t)c->dims[i];
            c->info.shape[i - 1] = (int64_t)c->dims[i];
        }
        c->info.values = values;
        if (values > MAX_ROW_BYTES / 8) set_problem(c, "a row of it has %zu values", values);
    }
    if (space >= 0) H5Sclose(space);
}

static void open_filters(cgs_h5column *c, hid_t plist, bool plain) {
    int n = H5Pget_nfilters(plist);
    if (n < 0 || n > CGS_FILTERS) {
        set_problem(c, "it has %d filters; at most %d are expected", n, CGS_FILTERS);
        return;
    }
    for (int i = 0; i < n; i++) {
        unsigned flags, values[8] = {0}, config;
        size_t count = 8;
        char name[2];
        int id = (int)H5Pget_filter2(plist, (unsigned)i, &flags, &count, values, sizeof name, name,
                                     &config);
        const char *known = cgs_filter_name(id);
        if (!known) {
            set_problem(c, "it is stored with HDF5 filter %d, which is not supported", id);
            describe(c, ", filter %d", id);
        } else {
            describe(c, ", %s", known);
        }
        c->filters[i] = (cgs_filter){id, count > 0 ? values[0] : 0};
    }
    c->filter_count = n;
    c->filtered = n > 0;
    if (n > 0 && !plain) set_problem(c, "its number type is not little endian and it is filtered");
    unsigned options = 0;
    if (n > 0 && H5Pget_chunk_opts(plist, &options) >= 0 && options)
        set_problem(c, "its last chunk is stored without filters, which is not supported");
}

static void open_layout(cgs_h5column *c, bool plain) {
    hid_t plist = H5Dget_create_plist(c->set);
    H5D_layout_t layout = plist < 0 ? H5D_LAYOUT_ERROR : H5Pget_layout(plist);
    if (layout == H5D_CHUNKED) {
        size_t bytes = cgs_column_type_size(c->info.dtype);
        if (H5Pget_chunk(plist, c->rank, c->chunk) != c->rank) {
            set_problem(c, "the shape of its chunks cannot be read");
        } else {
            for (int i = 0; i < c->rank; i++) {
                if (c->chunk[i] == 0 || c->chunk[i] > MAX_CHUNK_BYTES / bytes) {
                    set_problem(c, "its chunks have no sensible shape");
                    break;
                }
                bytes *= (size_t)c->chunk[i];
            }
            c->chunk_bytes = bytes;
            describe(c, "chunks of %llu row%s", (unsigned long long)c->chunk[0],
                     c->chunk[0] == 1 ? "" : "s");
            open_filters(c, plist, plain);
            H5D_fill_value_t defined;
            if (c->filtered && plain && H5Pfill_value_defined(plist, &defined) >= 0 &&
                defined != H5D_FILL_VALUE_UNDEFINED) {
                hid_t type = H5Dget_type(c->set);
                if (type < 0 || H5Tget_size(type) > sizeof c->fill ||
                    H5Pget_fill_value(plist, type, c->fill) < 0)
                    memset(c->fill, 0, sizeof c->fill);
                if (type >= 0) H5Tclose(type);
            }
        }
    } else if (layout == H5D_CONTIGUOUS || layout == H5D_COMPACT) {
        describe(c, layout == H5D_COMPACT ? "compact" : "contiguous");
        /* references to other files are not followed */
        if (H5Pget_external_count(plist) != 0) set_problem(c, "its data lie in another file");
    } else {
        describe(c, "virtual");
        set_problem(c, "its layout is virtual or unknown, which is not supported");
    }
    if (plist >= 0) H5Pclose(plist);
}

cgs_status cgs_h5column_open(cgs_h5column *c, hid_t file, const char *name, uint64_t file_bytes) {
    memset(c, 0, sizeof *c);
    c->file_bytes = file_bytes;
    pthread_mutex_init(&c->lock, NULL);
    snprintf(c->info.name, sizeof c->info.name, "%s", name);
    c->set = H5Dopen2(file, name, H5P_DEFAULT);
    if (c->set < 0)
        return cgs_fail(CGS_EFORMAT, "column \"%s\" cannot be opened (%s)", name, cgs_h5_reason());
    bool plain = false;
    hid_t type = H5Dget_type(c->set);
    if (type >= 0) {
        c->info.dtype = number_type(type, &plain);
        H5Tclose(type);
    }
    open_shape(c);
    if (*c->problem) c->info.dtype = CGS_COL_OTHER;
    if (c->info.dtype == CGS_COL_OTHER) return CGS_OK;
    open_layout(c, plain);
    /* Zstandard, the densest of the filters, makes at most about 128 KiB of 4 bytes */
    double claimed =
        (double)c->info.rows * (double)c->info.values * (double)cgs_column_type_size(c->info.dtype);
    if (claimed > 32768.0 * (double)file_bytes + 65536.0)
        set_problem(c, "it claims %.3g bytes in a file of %llu", claimed,
                    (unsigned long long)file_bytes);
    return CGS_OK;
}

void cgs_h5column_close(cgs_h5column *c) {
    if (c->set > 0) H5Dclose(c->set);
    c->set = 0;
    free(c->cache);
    c->cache = NULL;
    pthread_mutex_destroy(&c->lock);
}

/* ---- converting -------------------------------------------------------------------- */

#define CONVERT(from_type, to_type)                                                                \
    do {                                                                                           \
        const from_type *s_ = from;                                                                \
        to_type *d_ = to;                                                                          \
        for (size_t i_ = 0; i_ < n; i_++) d_[i_] = (to_type)s_[i_];                                \
    } while (0)

#define CONVERT_TO(from_type, whole)                                                               \
    do {                                                                                           \
        if (kind == CGS_H5_F32)                                                                    \
            CONVERT(from_type, float);                                                             \
        else if (kind == CGS_H5_F64)                                                               \
            CONVERT(from_type, double);                                                            \
        else                                                                                       \
            whole;                                                                                 \
    } while (0)

#define CONVERT_FROM(from_type) CONVERT_TO(from_type, CONVERT(from_type, int64_t))
/* NaN and infinity make no sense as integers, so both read as 0 */
#define CONVERT_FRACTION(from_type) CONVERT_TO(from_type, memset(to, 0, n * sizeof(int64_t)))

/* converts n stored values to a kind; both are aligned, as chunk buffers come from malloc */
static void convert(cgs_column_type t, const void *from, size_t n, cgs_h5kind kind, void *to) {
    if (kind == CGS_H5_U8) {
        memcpy(to, from, n); /* used only for u8 columns */
        return;
    }
    switch (t) {
    case CGS_COL_F32: CONVERT_FRACTION(float); break;
    case CGS_COL_F64: CONVERT_FRACTION(double); break;
    case CGS_COL_I8: CONVERT_FROM(int8_t); break;
    case CGS_COL_U8: CONVERT_FROM(uint8_t); break;
    case CGS_COL_I16: CONVERT_FROM(int16_t); break;
    case CGS_COL_U16: CONVERT_FROM(uint16_t); break;
    case CGS_COL_I32: CONVERT_FROM(int32_t); break;
    case CGS_COL_U32: CONVERT_FROM(uint32_t); break;
    case CGS_COL_I64: CONVERT_FROM(int64_t); break;
    case CGS_COL_U64: CONVERT_FROM(uint64_t); break;
    case CGS_COL_OTHER: break;
    }
}

/* ---- reading ----------------------------------------------------------------------- */

static cgs_status read_plain(cgs_h5column *c, int64_t first, int64_t count, cgs_h5kind kind,
                             void *out) {
    cgs_h5_lock();
    hsize_t start[CGS_H5_RANK] = {(hsize_t)first}, block[CGS_H5_RANK];
    memcpy(block, c->dims, sizeof block);
    block[0] = (hsize_t)count;
    hid_t type = kind == CGS_H5_U8    ? H5T_NATIVE_UINT8
                 : kind == CGS_H5_I64 ? H5T_NATIVE_INT64
                 : kind == CGS_H5_F32 ? H5T_NATIVE_FLOAT
                                      : H5T_NATIVE_DOUBLE;
    hid_t space = H5Dget_space(c->set), memory = H5Screate_simple(c->rank, block, NULL);
    cgs_status rc = CGS_OK;
    if (space < 0 || memory < 0 ||
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, block, NULL) < 0 ||
        H5Dread(c->set, type, memory, space, H5P_DEFAULT, out) < 0)
        rc = cgs_fail(CGS_EFORMAT, "rows %lld to %lld cannot be read (%s)", (long long)first,
                      (long long)(first + count - 1), cgs_h5_reason());
    if (memory >= 0) H5Sclose(memory);
    if (space >= 0) H5Sclose(space);
    cgs_h5_unlock();
    return rc;
}

/* the chunk whose first element is `at`, decoded into out (chunk_bytes) */
static cgs_status read_chunk(cgs_h5column *c, const hsize_t *at, uint8_t *out) {
    cgs_status rc = CGS_OK;
    hsize_t stored = 0;
    uint32_t mask = 0;
    uint8_t *raw = NULL;
    cgs_h5_lock();
    if (H5Dget_chunk_storage_size(c->set, at, &stored) < 0) {
        rc = cgs_fail(CGS_EFORMAT, "the chunk of row %llu cannot be found (%s)",
                      (unsigned long long)at[0], cgs_h5_reason());
    } else if (stored > c->file_bytes) {
        rc = cgs_fail(CGS_EFORMAT, "the chunk of row %llu claims %llu bytes",
                      (unsigned long long)at[0], (unsigned long long)stored);
    } else if (stored && !(raw = malloc((size_t)stored))) {
        rc =
            cgs_fail(CGS_ENOMEM, "no memory for a chunk of %llu bytes", (unsigned long long)stored);
    } else if (stored && H5Dread_chunk(c->set, H5P_DEFAULT, at, &mask, raw) < 0) {
        rc = cgs_fail(CGS_EFORMAT, "the chunk of row %llu cannot be read (%s)",
                      (unsigned long long)at[0], cgs_h5_reason());
    }
    cgs_h5_unlock();

    if (rc == CGS_OK && stored) {
        rc = cgs_filters_undo(c->filters, c->filter_count, mask, raw, (size_t)stored, out,
                              c->chunk_bytes);
    } else if (rc == CGS_OK) {
        size_t size = cgs_column_type_size(c->info.dtype); /* never written: the fill value */
        for (size_t i = 0; i < c->chunk_bytes; i += size) memcpy(out + i, c->fill, size);
    }
    free(raw);
    return rc;
}

/* Copies a box of a chunk to its place in the output, axis by axis, until the remaining box is
 * contiguous on both sides. */
typedef struct copy_job {
    const cgs_h5column *c;
    cgs_h5kind kind;
    const uint8_t *chunk;      /* (chunk shape) stored type        */
    uint8_t *out;              /* (count, row shape) kind          */
    hsize_t at[CGS_H5_RANK];   /* first element of the chunk       */
    hsize_t low[CGS_H5_RANK];  /* the requested box, first element... */
    hsize_t high[CGS_H5_RANK]; /* ...and one past its last         */
    hsize_t first;             /* first row of out         */
} copy_job;

static void copy_box(const copy_job *j, int axis, size_t from, size_t to) {
    const cgs_h5column *c = j->c;
    size_t below_chunk = 1, below_out = 1;
    bool whole = true;
    int rank =
        c->rank < CGS_H5_RANK ? c->rank : CGS_H5_RANK; /* a fact that compilers cannot know */
    for (int k = axis + 1; k < rank; k++) {
        whole = whole && c->chunk[k] == c->dims[k];
        below_chunk *= (size_t)c->chunk[k];
        below_out *= (size_t)c->dims[k];
    }
    hsize_t origin = axis == 0 ? j->first : 0;
    from += (size_t)(j->low[axis] - j->at[axis]) * below_chunk;
    to += (size_t)(j->low[axis] - origin) * below_out;
    size_t n = (size_t)(j->high[axis] - j->low[axis]);
    if (whole) {
        convert(c->info.dtype, j->chunk + from * cgs_column_type_size(c->info.dtype), n * below_out,
                j->kind, j->out + to * kind_size[j->kind]);
        return;
    }
    for (size_t i = 0; i < n; i++)
        copy_box(j, axis + 1, from + i * below_chunk, to + i * below_out);
}

/* steps `at` to the next chunk of the requested rows; false after the last */
static bool next_chunk(const cgs_h5column *c, hsize_t *at, hsize_t first_chunk_row, hsize_t end) {
    for (int k = c->rank - 1; k >= 0; k--) {
        at[k] += c->chunk[k];
        if (at[k] < (k == 0 ? end : c->dims[k])) return true;
        at[k] = k == 0 ? first_chunk_row : 0;
    }
    return false;
}

static cgs_status read_filtered(cgs_h5column *c, int64_t first, int64_t count, cgs_h5kind kind,
                                void *out) {
    hsize_t begin = (hsize_t)first, end = begin + (hsize_t)count;
    hsize_t at[CGS_H5_RANK] = {begin / c->chunk[0] * c->chunk[0]}, first_chunk_row = at[0];
    copy_job job = {.c = c, .kind = kind, .out = out, .first = begin};
    bool row_chunks = c->chunk[0] == 1;
    for (int k = 1; k < c->rank; k++) row_chunks = row_chunks && c->chunk[k] == c->dims[k];
    uint8_t *own = NULL; /* single-row chunks are not worth caching, and so need no lock */
    if (row_chunks && kind != CGS_H5_U8 && !(own = malloc(c->chunk_bytes)))
        return cgs_fail(CGS_ENOMEM, "no memory for a chunk of %zu bytes", c->chunk_bytes);

    cgs_status rc = CGS_OK;
    do {
        if (row_chunks) {
            uint8_t *to = own ? own : (uint8_t *)out + (size_t)(at[0] - begin) * c->info.values;
            rc = read_chunk(c, at, to);
            if (rc == CGS_OK && own)
                convert(c->info.dtype, own, c->info.values, kind,
                        (uint8_t *)out +
                            (size_t)(at[0] - begin) * c->info.values * kind_size[kind]);
            continue;
        }
        pthread_mutex_lock(&c->lock);
        if (!c->cache && !(c->cache = malloc(c->chunk_bytes)))
            rc = cgs_fail(CGS_ENOMEM, "no memory for a chunk of %zu bytes", c->chunk_bytes);
        if (rc == CGS_OK &&
            (!c->cache_full || memcmp(c->cached_at, at, sizeof at[0] * (size_t)c->rank))) {
            c->cache_full = false;
            rc = read_chunk(c, at, c->cache);
            c->cache_full = rc == CGS_OK;
            memcpy(c->cached_at, at, sizeof at);
        }
        if (rc == CGS_OK) {
            job.chunk = c->cache;
            for (int k = 0; k < c->rank; k++) {
                hsize_t stop = k == 0 ? end : c->dims[k];
                job.at[k] = at[k];
                job.low[k] = k == 0 && at[0] < begin ? begin : at[k];
                job.high[k] = at[k] + c->chunk[k] < stop ? at[k] + c->chunk[k] : stop;
            }
            copy_box(&job, 0, 0, 0);
        }
        pthread_mutex_unlock(&c->lock);
    } while (rc == CGS_OK && next_chunk(c, at, first_chunk_row, end));
    free(own);
    return rc;
}

cgs_status cgs_h5column_read(cgs_h5column *c, int64_t first, int64_t count, cgs_h5kind kind,
                             void *out) {
    const char *name = c->info.name;
    if (c->info.dtype == CGS_COL_OTHER || *c->problem)
        return cgs_fail(CGS_EFORMAT, "column \"%s\" cannot be read: %s", name,
                        *c->problem ? c->problem : "it holds no numbers");
    if (kind == CGS_H5_U8 && c->info.dtype != CGS_COL_U8)
        return cgs_fail(CGS_EFORMAT, "column \"%s\" is %s, bytes are expected", name,
                        cgs_column_type_name(c->info.dtype));
    if (first < 0 || count < 0 || first > c->info.rows || count > c->info.rows - first)
        return cgs_fail(CGS_EARG, "column \"%s\": rows %lld to %lld of %lld do not exist", name,
                        (long long)first, (long long)(first + count - 1), (long long)c->info.rows);
    if (count == 0) return CGS_OK;
    cgs_status rc = c->filtered ? read_filtered(c, first, count, kind, out)
                                : read_plain(c, first, count, kind, out);
    if (rc != CGS_OK) {
        char prefix[CGS_COLUMN_NAME + 16];
        snprintf(prefix, sizeof prefix, "column \"%s\"", name);
        cgs_fail_in(rc, prefix);
    }
    return rc;
}

void cgs_h5column_visit(cgs_h5column *c) {
    if (c->info.dtype == CGS_COL_OTHER || *c->problem || c->info.rows == 0) return;
    const hsize_t rows = (hsize_t)c->info.rows;
    if (c->chunk[0]) {
        hsize_t at[CGS_H5_RANK] = {0}, stored;
        cgs_h5_lock();
        do H5Dget_chunk_storage_size(c->set, at, &stored);
        while (next_chunk(c, at, 0, rows));
        cgs_h5_unlock();
    }
    double *row = malloc(c->info.values * sizeof *row);
    if (row) {
        cgs_h5column_read(c, 0, 1, CGS_H5_F64, row);
        cgs_h5column_read(c, c->info.rows - 1, 1, CGS_H5_F64, row);
    }
    free(row);
}

/* dataset.c - opening an HDF5 dataset: columns, index, attributes.
 *
 * Nothing in the file is trusted before it is cross-checked: episodes must have rows, lie inside
 * the data and not overlap; `episode_idx` must be constant and `step_idx` must count from 0 inside
 * each episode.  Only plain datasets of the root group are columns; links that lead elsewhere are
 * not followed.  A file is first opened in a child process (cgs_h5_try_in_child), because libhdf5
 * trusts what it reads. */
#include "data/dataset.h"

#include <errno.h>
#include <hdf5.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/log.h"
#include "data/h5.h"
#include "data/h5column.h"
#include "io/kind.h"

#define MAX_ATTRIBUTES 64
#define TRIAL_SECONDS 5u  /* of CPU time for a small file; a large one gets more */
#define INDEX_PIECE 65536 /* rows of an index column checked at a time */

struct cgs_dataset {
    char path[4096];
    hid_t file;
    uint64_t file_bytes;
    cgs_source source;
    cgs_h5column *columns; /* (source.column_count) */
    cgs_column *infos;     /* (source.column_count) what source.columns points to */
    int64_t *ep_offset;    /* (episodes) */
    int32_t *ep_len;       /* (episodes) */
    cgs_attribute attributes[MAX_ATTRIBUTES];
    int attribute_count;
};

static cgs_status in_file(const cgs_dataset *d, cgs_status rc) {
    return rc == CGS_OK ? rc : cgs_fail_in(rc, d->path);
}

/* ---- the file and its columns ------------------------------------------------------- */

static cgs_status look_at_file(cgs_dataset *d) {
    struct stat st;
    if (stat(d->path, &st) != 0) return cgs_fail(CGS_EIO, "%s: %s", d->path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return cgs_fail(CGS_EIO, "%s: not a regular file: it is %s", d->path,
                        cgs_file_kind(d->path));
    d->file_bytes = (uint64_t)st.st_size;
    return CGS_OK;
}

static cgs_status open_file(cgs_dataset *d) {
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    /* reading needs no lock, and many file systems cannot give one */
    H5Pset_file_locking(access, false, true);
    d->file = H5Fopen(d->path, H5F_ACC_RDONLY, access);
    H5Pclose(access);
    if (d->file >= 0) return CGS_OK;
    if (cgs_file_is_hdf5(d->path))
        return cgs_fail(CGS_EFORMAT, "%s: a damaged HDF5 file (%s)", d->path, cgs_h5_reason());
    return cgs_fail(CGS_EFORMAT, "%s: not an HDF5 file: it is %s", d->path, cgs_file_kind(d->path));
}

/* the name of link i when it is a column; *is_column says whether */
static cgs_status link_name(cgs_dataset *d, hsize_t i, char *name, size_t size, bool *is_column) {
    *is_column = false;
    H5L_info_t link;
    ssize_t length =
        H5Lget_name_by_idx(d->file, ".", H5_INDEX_NAME, H5_ITER_INC, i, name, size, H5P_DEFAULT);
    if (length < 0 ||
        H5Lget_info_by_idx(d->file, ".", H5_INDEX_NAME, H5_ITER_INC, i, &link, H5P_DEFAULT) < 0)
        return cgs_fail(CGS_EFORMAT, "%s: entry %llu of the root group cannot be read (%s)",
                        d->path, (unsigned long long)i, cgs_h5_reason());
    if ((size_t)length >= size) {
        cgs_log(CGS_WARN, "%s: a column name of %zd characters is ignored", d->path, length);
        return CGS_OK;
    }
    if (link.type != H5L_TYPE_HARD) {
        cgs_log(CGS_WARN, "%s: \"%s\" is a link, not a column, and is ignored", d->path, name);
        return CGS_OK;
    }
    H5O_type_t type;
    if (!cgs_h5_object_type(d->file, name, &type))
        return cgs_fail(CGS_EFORMAT, "%s: column \"%s\" cannot be opened (%s)", d->path, name,
                        cgs_h5_reason());
    *is_column = type == H5O_TYPE_DATASET;
    return CGS_OK;
}

static bool is_index(const char *name) {
    return !strcmp(name, "ep_len") || !strcmp(name, "ep_offset");
}

static cgs_status open_columns(cgs_dataset *d) {
    H5G_info_t group;
    if (H5Gget_info(d->file, &group) < 0)
        return cgs_fail(CGS_EFORMAT, "%s: its root group cannot be read (%s)", d->path,
                        cgs_h5_reason());
    if (group.nlinks > CGS_COLUMNS)
        return cgs_fail(CGS_EFORMAT, "%s: %llu columns, at most %d are expected", d->path,
                        (unsigned long long)group.nlinks, CGS_COLUMNS);
    d->columns = calloc((size_t)group.nlinks + 1, sizeof *d->columns);
    d->infos = calloc((size_t)group.nlinks + 1, sizeof *d->infos);
    if (!d->columns || !d->infos) return cgs_fail(CGS_ENOMEM, "%s: no memory", d->path);
    for (hsize_t i = 0; i < group.nlinks; i++) {
        char name[CGS_COLUMN_NAME];
        bool is_column;
        CGS_TRY(link_name(d, i, name, sizeof name, &is_column));
        if (!is_column || is_index(name)) continue;
        int n = d->source.column_count++;
        CGS_TRY(in_file(d, cgs_h5column_open(&d->columns[n], d->file, name, d->file_bytes)));
        d->infos[n] = d->columns[n].info;
        d->infos[n].together = d->columns[n].filtered ? (int64_t)d->columns[n].chunk[0] : 1;
        d->infos[n].readable = d->infos[n].dtype != CGS_COL_OTHER && !*d->columns[n].problem;
    }
    return CGS_OK;
}

static int find_any(const cgs_dataset *d, const char *name) {
    for (int i = 0; i < d->source.column_count; i++)
        if (!strcmp(d->infos[i].name, name)) return i;
    return -1;
}

/* ---- attributes --------------------------------------------------------------------- */

static void keep_text(cgs_attribute *a, hid_t attribute, hid_t type) {
    if (H5Tis_variable_str(type) > 0) {
        char *text = NULL;
        hid_t memory = H5Tcopy(H5T_C_S1);
        H5Tset_size(memory, H5T_VARIABLE);
        H5Tset_cset(memory, H5Tget_cset(type));
        if (H5Aread(attribute, memory, &text) >= 0 && text) {
            snprintf(a->value, sizeof a->value, "%s", text);
            H5free_memory(text);
        }
        H5Tclose(memory);
        return;
    }
    size_t size = H5Tget_size(type);
    char *text = size > 0 && size < 65536 ? calloc(size + 1, 1) : NULL;
    if (text && H5Aread(attribute, type, text) >= 0)
        snprintf(a->value, sizeof a->value, "%s", text);
    free(text);
}

static void keep_number(cgs_attribute *a, hid_t attribute, hid_t type) {
    a->number = true;
    if (H5Tget_class(type) == H5T_FLOAT) {
        double v;
        if (H5Aread(attribute, H5T_NATIVE_DOUBLE, &v) >= 0)
            snprintf(a->value, sizeof a->value, "%.17g", v);
    } else if (H5Tget_sign(type) == H5T_SGN_NONE) {
        uint64_t v;
        if (H5Aread(attribute, H5T_NATIVE_UINT64, &v) >= 0)
            snprintf(a->value, sizeof a->value, "%" PRIu64, v);
    } else {
        int64_t v;
        if (H5Aread(attribute, H5T_NATIVE_INT64, &v) >= 0)
            snprintf(a->value, sizeof a->value, "%" PRId64, v);
    }
}

/* a scalar is kept as text; arrays and anything else are skipped */
static herr_t keep_attribute(hid_t at, const char *name, const H5A_info_t *info, void *user) {
    (void)info;
    cgs_dataset *d = user;
    if (d->attribute_count == MAX_ATTRIBUTES || strlen(name) >= CGS_COLUMN_NAME) return 0;
    hid_t attribute = H5Aopen(at, name, H5P_DEFAULT);
    if (attribute < 0) return 0;
    hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
    if (type >= 0 && space >= 0 && H5Sget_simple_extent_npoints(space) == 1) {
        cgs_attribute *a = &d->attributes[d->attribute_count];
        *a = (cgs_attribute){.number = false};
        snprintf(a->name, sizeof a->name, "%s", name);
        H5T_class_t class = H5Tget_class(type);
        if (class == H5T_STRING)
            keep_text(a, attribute, type);
        else if (class == H5T_INTEGER || class == H5T_FLOAT)
            keep_number(a, attribute, type);
        if (*a->value) d->attribute_count++;
    }
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    H5Aclose(attribute);
    return 0;
}

static cgs_status open_attributes(cgs_dataset *d) {
    if (H5Aiterate2(d->file, H5_INDEX_NAME, H5_ITER_INC, NULL, keep_attribute, d) < 0)
        return cgs_fail(CGS_EFORMAT, "%s: its attributes cannot be read (%s)", d->path,
                        cgs_h5_reason());
    return CGS_OK;
}

/* ---- the index ----------------------------------------------------------------------- */

/* a whole index column (E) as int64, malloc'd */
static cgs_status read_index(cgs_dataset *d, const char *name, int64_t **out, int64_t *count) {
    cgs_h5column c;
    cgs_h5_lock();
    bool there = H5Lexists(d->file, name, H5P_DEFAULT) > 0;
    cgs_status rc =
        there ? cgs_h5column_open(&c, d->file, name, d->file_bytes)
              : cgs_fail(CGS_EFORMAT, "it has no column \"%s\" (cgs data convert makes one)", name);
    cgs_h5_unlock();
    if (!there) return rc;
    if (rc == CGS_OK && (c.rank != 1 || c.info.rows < 1 || c.info.rows > INT_MAX ||
                         c.info.dtype == CGS_COL_F32 || c.info.dtype == CGS_COL_F64))
        rc = cgs_fail(CGS_EFORMAT, "column \"%s\" is not a list of whole numbers", name);
    if (rc == CGS_OK && !*c.problem && !(*out = malloc((size_t)c.info.rows * sizeof **out)))
        rc = cgs_fail(CGS_ENOMEM, "no memory for %" PRId64 " episodes", c.info.rows);
    if (rc == CGS_OK) rc = cgs_h5column_read(&c, 0, c.info.rows, CGS_H5_I64, *out);
    *count = c.info.rows;
    cgs_h5_lock();
    cgs_h5column_close(&c);
    cgs_h5_unlock();
    return rc;
}

typedef struct span {
    int64_t offset, length;
    int episode;
} span;

static int by_offset(const void *a, const void *b) {
    const span *x = a, *y = b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static cgs_status check_episodes(const cgs_dataset *d, const int64_t *offset, const int64_t *length,
                                 int episodes) {
    const int64_t rows = d->source.rows;
    span *spans = malloc((size_t)episodes * sizeof *spans);
    if (!spans) return cgs_fail(CGS_ENOMEM, "no memory for %d episodes", episodes);
    cgs_status rc = CGS_OK;
    for (int e = 0; e < episodes && rc == CGS_OK; e++) {
        if (length[e] < 1 || length[e] > INT_MAX)
            rc = cgs_fail(CGS_EFORMAT, "episode %d has %" PRId64 " rows", e, length[e]);
        else if (offset[e] < 0 || offset[e] > rows || length[e] > rows - offset[e])
            rc = cgs_fail(CGS_EFORMAT,
                          "episode %d has %" PRId64 " rows from row %" PRId64
                          " on, there are %" PRId64,
                          e, length[e], offset[e], rows);
        spans[e] = (span){offset[e], length[e], e};
    }
    if (rc == CGS_OK) qsort(spans, (size_t)episodes, sizeof *spans, by_offset);
    for (int i = 1; i < episodes && rc == CGS_OK; i++)
        if (spans[i - 1].offset + spans[i - 1].length > spans[i].offset)
            rc = cgs_fail(CGS_EFORMAT, "episodes %d and %d share row %" PRId64,
                          spans[i - 1].episode, spans[i].episode, spans[i].offset);
    free(spans);
    return rc;
}

/* the per-row index: constant inside an episode, or counting from 0 */
static cgs_status check_rows(cgs_dataset *d, const char *name, bool counts) {
    int k = find_any(d, name);
    if (k < 0) return CGS_OK;
    cgs_h5column *c = &d->columns[k];
    if (c->info.values != 1 || c->info.rows != d->source.rows || c->info.dtype == CGS_COL_F32 ||
        c->info.dtype == CGS_COL_F64)
        return cgs_fail(CGS_EFORMAT,
                        "column \"%s\" is not one whole number for each of %" PRId64 " rows", name,
                        d->source.rows);
    int64_t *piece = malloc(INDEX_PIECE * sizeof *piece);
    if (!piece) return cgs_fail(CGS_ENOMEM, "no memory");
    cgs_status rc = CGS_OK;
    for (int e = 0; e < d->source.episodes && rc == CGS_OK; e++) {
        int64_t value = 0;
        for (int64_t i = 0; i < d->ep_len[e] && rc == CGS_OK; i += INDEX_PIECE) {
            int64_t n = d->ep_len[e] - i < INDEX_PIECE ? d->ep_len[e] - i : INDEX_PIECE;
            rc = cgs_h5column_read(c, d->ep_offset[e] + i, n, CGS_H5_I64, piece);
            if (rc != CGS_OK) break;
            if (i == 0) value = counts ? 0 : piece[0];
            for (int64_t j = 0; j < n && rc == CGS_OK; j++) {
                int64_t expected = counts ? i + j : value;
                if (piece[j] != expected)
                    rc = cgs_fail(CGS_EFORMAT,
                                  "column \"%s\" holds %" PRId64 " in row %" PRId64
                                  " of episode %d, %" PRId64 " is expected",
                                  name, piece[j], i + j, e, expected);
            }
        }
    }
    free(piece);
    return rc;
}

/* the first columns of the file, for the message that another one is not there */
static const char *columns_found(const cgs_dataset *d, char *text, size_t size) {
    size_t used = 0;
    snprintf(text, size, "no column at all");
    for (int i = 0; i < d->source.column_count && used < size; i++) {
        char one[CGS_COLUMN_TEXT];
        cgs_column_describe(&d->infos[i], one);
        if (used + strlen(one) + 8 > size) {
            snprintf(text + used, size - used, ", ...");
            break;
        }
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", one);
    }
    return text;
}

static bool count_rows(cgs_dataset *d, cgs_findings *found) {
    static const char *const that_count_rows[] = {"pixels", "action", "step_idx", "episode_idx",
                                                  "ep_idx"};
    cgs_source *s = &d->source;
    s->rows = -1;
    for (size_t i = 0; i < sizeof that_count_rows / sizeof that_count_rows[0] && s->rows < 0; i++) {
        int k = find_any(d, that_count_rows[i]);
        if (k >= 0 && d->infos[k].dtype != CGS_COL_OTHER) s->rows = d->infos[k].rows;
    }
    if (s->rows >= 0) return true;
    char has[260];
    cgs_findings_problem(found, CGS_EFORMAT,
                         "it has no column \"pixels\", \"action\" or \"step_idx\"; it has %s",
                         columns_found(d, has, sizeof has));
    return false;
}

static cgs_status open_index(cgs_dataset *d, cgs_findings *found) {
    int64_t *length = NULL, *offset = NULL, lengths = 0, offsets = 0;
    cgs_source *s = &d->source;
    cgs_status rc = read_index(d, "ep_len", &length, &lengths);
    rc = cgs_findings_failure(found, rc, d->path);
    if (rc == CGS_OK)
        rc = cgs_findings_failure(found, read_index(d, "ep_offset", &offset, &offsets), d->path);
    bool there = rc == CGS_OK && length && offset && s->rows >= 0;
    if (there && lengths != offsets)
        rc = cgs_fail(CGS_EFORMAT, "%" PRId64 " episode lengths but %" PRId64 " episode offsets",
                      lengths, offsets);
    if (there && rc == CGS_OK) rc = check_episodes(d, offset, length, (int)lengths);
    if (there && rc == CGS_OK) {
        d->ep_offset = offset;
        offset = NULL;
        d->ep_len = malloc((size_t)lengths * sizeof *d->ep_len);
        if (!d->ep_len)
            rc = cgs_fail(CGS_ENOMEM, "no memory for %" PRId64 " episodes", lengths);
        else
            for (int64_t e = 0; e < lengths; e++) d->ep_len[e] = (int32_t)length[e];
        s->episodes = (int)lengths;
        s->ep_offset = d->ep_offset;
        s->ep_len = d->ep_len;
    }
    free(length);
    free(offset);
    if (!there || rc != CGS_OK) return cgs_findings_failure(found, rc, d->path);
    rc = check_rows(d, find_any(d, "episode_idx") >= 0 ? "episode_idx" : "ep_idx", false);
    CGS_TRY(cgs_findings_failure(found, rc, d->path));
    return cgs_findings_failure(found, check_rows(d, "step_idx", true), d->path);
}

/* ---- the columns' meaning ------------------------------------------------------------ */

static bool is_image(const cgs_column *c) {
    return c->dtype == CGS_COL_U8 && c->rank == 3 && c->shape[2] == 3 && c->shape[0] <= 8192 &&
           c->shape[1] <= 8192;
}

static void open_pixels(cgs_dataset *d, cgs_findings *found) {
    cgs_source *s = &d->source;
    char shape[CGS_COLUMN_TEXT];
    const char *every = cgs_dataset_attribute(d, "pixels_every");
    s->pixels_every = every ? atoi(every) : 1;
    if (s->pixels_every < 1)
        cgs_findings_problem(found, CGS_EFORMAT,
                             "attribute \"pixels_every\" is %s, 1 or more is expected", every);
    s->pixels = find_any(d, "pixels");
    /* several views are called pixels.<view>; the first by name is used */
    for (int i = 0; i < s->column_count && s->pixels < 0; i++)
        if (!strncmp(d->infos[i].name, "pixels", 6) && is_image(&d->infos[i])) s->pixels = i;
    if (s->pixels < 0) return;
    const cgs_column *c = &d->infos[s->pixels];
    if (!is_image(c))
        cgs_findings_problem(found, CGS_EFORMAT,
                             "column %s is not u8 (rows, height, width, 3); cgs data "
                             "convert makes it that",
                             cgs_column_describe(c, shape));
    else if (c->rows != s->rows)
        cgs_findings_problem(found, CGS_EFORMAT, "column %s: %" PRId64 " rows are expected",
                             cgs_column_describe(c, shape), s->rows);
    s->height = (int)c->shape[0];
    s->width = (int)c->shape[1];
}

static void open_action(cgs_dataset *d, cgs_findings *found) {
    cgs_source *s = &d->source;
    char shape[CGS_COLUMN_TEXT];
    s->action = find_any(d, "action");
    if (s->action < 0) return;
    const cgs_column *c = &d->infos[s->action];
    const char *problem = d->columns[s->action].problem;
    cgs_column_describe(c, shape);
    if (c->dtype == CGS_COL_OTHER || c->rank > 1 || c->values > 1024)
        cgs_findings_problem(found, CGS_EFORMAT,
                             "column %s is not numbers of shape (rows, channels)%s%s", shape,
                             *problem ? ": " : "", problem);
    else if (c->rows != s->rows)
        cgs_findings_problem(found, CGS_EFORMAT, "column %s: %" PRId64 " rows are expected", shape,
                             s->rows);
    s->action_dim = (int)c->values;
}

/* ---- the source ------------------------------------------------------------------------ */

static cgs_status read_column(cgs_dataset *d, int column, int64_t first, int64_t count, int stride,
                              cgs_h5kind kind, size_t value_bytes, void *out) {
    cgs_h5column *c = &d->columns[column];
    if (stride == 1) return in_file(d, cgs_h5column_read(c, first, count, kind, out));
    uint8_t *to = out;
    for (int64_t i = 0; i < count; i++, to += c->info.values * value_bytes)
        CGS_TRY(in_file(d, cgs_h5column_read(c, first + i * stride, 1, kind, to)));
    return CGS_OK;
}

static cgs_status source_pixels(void *self, int64_t first, int count, int stride, uint8_t *out) {
    cgs_dataset *d = self;
    if (d->source.pixels < 0)
        return cgs_fail(CGS_EFORMAT, "%s: it has no column \"pixels\"", d->path);
    return read_column(d, d->source.pixels, first, count, stride, CGS_H5_U8, 1, out);
}

static cgs_status source_rows(void *self, int column, int64_t first, int count, int stride,
                              float *out) {
    cgs_dataset *d = self;
    if (column < 0 || column >= d->source.column_count)
        return cgs_fail(CGS_EARG, "%s: it has no column number %d", d->path, column);
    return read_column(d, column, first, count, stride, CGS_H5_F32, sizeof(float), out);
}

/* everything that opening needs from libhdf5 */
static cgs_status open_all(cgs_dataset *d, cgs_findings *found) {
    cgs_h5_lock();
    cgs_status rc = open_file(d);
    if (rc == CGS_OK) rc = open_columns(d);
    if (rc == CGS_OK) rc = open_attributes(d);
    cgs_h5_unlock();
    if (rc != CGS_OK) return rc;
    if (count_rows(d, found)) {
        open_pixels(d, found);
        open_action(d, found);
    }
    CGS_TRY(in_file(d, open_index(d, found)));
    return cgs_findings_report(found, d->path);
}

/* opens the file and looks up every chunk: damage there is not covered by checksums */
static void attempt(void *user) {
    cgs_dataset *d = user;
    cgs_findings found = {0};
    if (open_all(d, &found) == CGS_OK)
        for (int i = 0; i < d->source.column_count; i++) cgs_h5column_visit(&d->columns[i]);
    cgs_dataset_close(d); /* a corrupted heap shows when it is freed */
}

cgs_status cgs_dataset_open(cgs_dataset **out, const char *path) {
    cgs_findings found = {0};
    return cgs_dataset_open_finding(out, path, &found);
}

cgs_status cgs_dataset_open_finding(cgs_dataset **out, const char *path, cgs_findings *found) {
    *out = NULL;
    cgs_dataset *d = calloc(1, sizeof *d);
    if (!d) return cgs_fail(CGS_ENOMEM, "%s: no memory", path);
    d->file = -1;
    if ((size_t)snprintf(d->path, sizeof d->path, "%s", path) >= sizeof d->path) {
        free(d);
        return cgs_fail(CGS_EARG, "%.64s...: path is too long", path);
    }
    cgs_status rc = look_at_file(d);
    if (rc == CGS_OK) {
        unsigned seconds = TRIAL_SECONDS + (unsigned)(d->file_bytes >> 26);
        int ended = cgs_h5_try_in_child(attempt, d, seconds);
        if (ended)
            rc = cgs_fail(CGS_EFORMAT, "%s: damaged: libhdf5 does not survive reading it (%s)",
                          path, strsignal(ended));
    }
    if (rc == CGS_OK) rc = open_all(d, found);
    if (rc != CGS_OK) {
        cgs_dataset_close(d);
        return rc;
    }
    d->source.path = d->path;
    d->source.columns = d->infos;
    d->source.self = d;
    d->source.read_pixels = source_pixels;
    d->source.read_rows = source_rows;
    *out = d;
    return CGS_OK;
}

void cgs_dataset_close(cgs_dataset *d) {
    if (!d) return;
    cgs_h5_lock();
    for (int i = 0; i < d->source.column_count; i++) cgs_h5column_close(&d->columns[i]);
    if (d->file >= 0) H5Fclose(d->file);
    cgs_h5_unlock();
    free(d->columns);
    free(d->infos);
    free(d->ep_offset);
    free(d->ep_len);
    free(d);
}

const cgs_source *cgs_dataset_source(const cgs_dataset *d) { return &d->source; }

static cgs_status named(cgs_dataset *d, const char *name, int *column) {
    *column = find_any(d, name);
    if (*column < 0) return cgs_fail(CGS_EARG, "%s: it has no column \"%s\"", d->path, name);
    return CGS_OK;
}

cgs_status cgs_dataset_read_rows(cgs_dataset *d, const char *column, int64_t first, int count,
                                 float *out) {
    int k;
    CGS_TRY(named(d, column, &k));
    return read_column(d, k, first, count, 1, CGS_H5_F32, sizeof(float), out);
}

cgs_status cgs_dataset_read_rows_f64(cgs_dataset *d, const char *column, int64_t first, int count,
                                     double *out) {
    int k;
    CGS_TRY(named(d, column, &k));
    return read_column(d, k, first, count, 1, CGS_H5_F64, sizeof(double), out);
}

cgs_status cgs_dataset_read_pixels(cgs_dataset *d, int64_t first, int count, uint8_t *out) {
    return source_pixels(d, first, count, 1, out);
}

const char *cgs_dataset_layout(const cgs_dataset *d, int column) {
    return column >= 0 && column < d->source.column_count ? d->columns[column].layout : "";
}

const cgs_attribute *cgs_dataset_attributes(const cgs_dataset *d, int *count) {
    *count = d->attribute_count;
    return d->attributes;
}

const char *cgs_dataset_attribute(const cgs_dataset *d, const char *name) {
    for (int i = 0; i < d->attribute_count; i++)
        if (!strcmp(d->attributes[i].name, name)) return d->attributes[i].value;
    return NULL;
}

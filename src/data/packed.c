/* packed.c - the packed cache: layout, building, reading.
 *
 *   header    one struct head, below
 *   frames    every frame separately compressed with LZ4 (or stored where that does not
 *             help), one after the other
 *   tables    frame index (rows x struct frame), offsets (i64 x episodes), lengths
 *             (i32 x episodes), columns (struct stored_column x columns), then the
 *             numbers of each column (f32 x rows x values); each aligned to 64 bytes
 *
 * All little endian.  LZ4 because on flat 224 x 224 images it shrinks 151 kB to 2.5 kB
 * and decodes a frame in 8 us (20 GB/s; a copy takes 4 us), where Zstandard needs 26 us
 * for half the bytes; a million frames stay in the page cache instead of on the disk.
 *
 * Opening checks the header, that every table lies inside the file, and the checksum of all tables;
 * reading a frame checks the frame's own checksum.  After that no number in the file can lead
 * outside of it.  The one thing a mapping does not survive is a file that is truncated while open.
 */
#include "data/packed.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"
#include "core/log.h"
#include "core/team.h"
#include "data/cache.h"
#include "data/checksum.h"

#define MAGIC "cgspack\n"
#define VERSION 1u
#define ALIGN ((uint64_t)64)
#define SUFFIX "frames" /* of its name, after the dataset's */
#define MAX_VALUES 256  /* per row of a packed number column */
enum { TOGETHER = 256 /* frames read and compressed at a time */, PIECE = 4096 /* rows */ };

typedef struct head {
    char magic[8];
    uint32_t version, head_bytes;
    uint64_t file_bytes;
    char source_name[256]; /* of the dataset, without its folder */
    uint64_t source_bytes;
    int64_t source_time; /* nanoseconds */
    uint64_t rows;
    uint32_t episodes, columns, height, width;
    int32_t action;                                         /* its column, or -1 */
    uint32_t pixels_every;                                  /* 0 in older files: 1 */
    uint64_t tables_at;                                     /* frames end where tables begin */
    uint64_t frames_at, offsets_at, lengths_at, columns_at; /* tables */
    uint64_t tables_checksum;                               /* tables_at .. file_bytes */
    uint64_t checksum;                                      /* of all the above */
} head;

typedef struct frame {
    uint64_t at;
    uint32_t bytes, check; /* low half of the checksum of the stored bytes */
} frame;

typedef struct stored_column {
    char name[CGS_COLUMN_NAME];
    uint32_t dtype, rank; /* as in the dataset */
    int64_t shape[CGS_COLUMN_RANK];
    uint64_t at;
} stored_column;

struct cgs_packed {
    char path[4096];
    const uint8_t *map; /* (bytes) */
    size_t bytes;
    const head *head;
    const frame *frames;   /* (rows) */
    cgs_column *columns;   /* (head->columns) */
    const float **numbers; /* (head->columns) each (rows, values) */
    cgs_source source;
};

static uint64_t align_up(uint64_t n) { return (n + ALIGN - 1) / ALIGN * ALIGN; }

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool source_identity(const char *path, uint64_t *bytes, int64_t *time) {
    struct stat st;
    if (stat(path, &st) != 0) return false;
    *bytes = (uint64_t)st.st_size;
    *time = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    return true;
}

/* ---- building ------------------------------------------------------------------------ */

typedef struct build {
    cgs_newfile file;
    const cgs_source *src;
    head head;
    uint64_t at; /* bytes written */
    frame *frames;
    uint8_t *undrawn; /* (rows) 1 where a row has no image (pixels_every) */
    uint8_t *pixels;  /* (TOGETHER, height, width, 3) */
    char *squeezed;   /* (TOGETHER, squeezed_stride)  */
    size_t squeezed_stride;
    float *rows; /* (PIECE, MAX_VALUES) */
} build;

/* write errors stay in the stream and are reported at commit */
static void emit(build *b, const void *data, size_t bytes) {
    fwrite(data, 1, bytes, b->file.f);
    b->at += bytes;
}

static void pad(build *b) {
    static const char zeros[ALIGN];
    emit(b, zeros, (size_t)(align_up(b->at) - b->at));
}

static void mark_undrawn(const cgs_source *s, uint8_t *undrawn) {
    for (int e = 0; e < s->episodes; e++)
        for (int64_t t = 0; t < s->ep_len[e]; t++)
            undrawn[s->ep_offset[e] + t] = t % s->pixels_every != 0;
}

/* frame i of the piece that begins with row `first`: read if requested, then compressed */
static cgs_status pack_frame(build *b, int64_t first, int i, bool read) {
    const cgs_source *s = b->src;
    const size_t frame_bytes = (size_t)s->height * (size_t)s->width * 3;
    uint8_t *from = b->pixels + (size_t)i * frame_bytes;
    char *to = b->squeezed + (size_t)i * b->squeezed_stride;
    if (read && b->undrawn[first + i])
        memset(from, 0, frame_bytes);
    else if (read)
        CGS_TRY(s->read_pixels(s->self, first + i, 1, 1, from));
    int k = LZ4_compress_default((const char *)from, to, (int)frame_bytes, (int)b->squeezed_stride);
    if (k <= 0 || (size_t)k >= frame_bytes) {
        k = (int)frame_bytes;
        memcpy(to, from, frame_bytes);
    }
    b->frames[first + i].bytes = (uint32_t)k;
    b->frames[first + i].check = (uint32_t)cgs_checksum(to, (size_t)k);
    return CGS_OK;
}

typedef struct packing {
    build *b;
    int64_t first;
    int n;
    bool alone;
    cgs_failure failure;
} packing;

static void pack_some(void *context) {
    packing *p = context;
    CGS_QUEUE (i, (size_t)p->n)
        cgs_failure_note(&p->failure, pack_frame(p->b, p->first, (int)i, p->alone));
}

static cgs_status pack_frames(build *b, cgs_pack_progress progress, void *user) {
    const cgs_source *s = b->src;
    /* independently stored frames are decoded by all threads */
    const bool alone = s->columns[s->pixels].together == 1;
    for (int64_t first = 0; first < s->rows; first += TOGETHER) {
        int n = s->rows - first < TOGETHER ? (int)(s->rows - first) : TOGETHER;
        if (progress && !progress(user, first, s->rows))
            return cgs_fail(CGS_ESTOPPED, "%s: packing was stopped", b->file.path);
        if (!alone) CGS_TRY(s->read_pixels(s->self, first, n, 1, b->pixels));
        packing p = {.b = b, .first = first, .n = n, .alone = alone};
        cgs_together(0, pack_some, &p);
        CGS_TRY(cgs_failure_report(&p.failure));
        for (int i = 0; i < n; i++) {
            b->frames[first + i].at = b->at;
            emit(b, b->squeezed + (size_t)i * b->squeezed_stride, b->frames[first + i].bytes);
        }
        if (ferror(b->file.f)) break; /* commit says why */
    }
    if (progress) progress(user, s->rows, s->rows);
    return CGS_OK;
}

static bool is_packed(const cgs_source *s, int i) {
    const cgs_column *c = &s->columns[i];
    return i != s->pixels && c->readable && c->rows == s->rows && c->values <= MAX_VALUES;
}

static cgs_status pack_tables(build *b) {
    const cgs_source *s = b->src;
    head *h = &b->head;
    const size_t rows = (size_t)s->rows, episodes = (size_t)s->episodes;

    /* offsets first, so that the column table can name them */
    pad(b);
    h->tables_at = h->frames_at = b->at;
    h->offsets_at = align_up(h->frames_at + rows * sizeof(frame));
    h->lengths_at = align_up(h->offsets_at + episodes * sizeof(int64_t));
    h->columns_at = align_up(h->lengths_at + episodes * sizeof(int32_t));
    h->columns = 0;
    h->action = -1;
    for (int i = 0; i < s->column_count; i++) h->columns += is_packed(s, i);
    uint64_t numbers_at = align_up(h->columns_at + h->columns * sizeof(stored_column));

    emit(b, b->frames, rows * sizeof(frame));
    pad(b);
    emit(b, s->ep_offset, episodes * sizeof(int64_t));
    pad(b);
    emit(b, s->ep_len, episodes * sizeof(int32_t));
    pad(b);
    int n = 0;
    for (int i = 0; i < s->column_count; i++) {
        if (!is_packed(s, i)) continue;
        const cgs_column *c = &s->columns[i];
        stored_column stored;
        memset(&stored, 0, sizeof stored); /* padding and tails of names too */
        snprintf(stored.name, sizeof stored.name, "%s", c->name);
        stored.dtype = c->dtype;
        stored.rank = (uint32_t)c->rank;
        memcpy(stored.shape, c->shape, sizeof stored.shape);
        stored.at = numbers_at;
        emit(b, &stored, sizeof stored);
        if (i == s->action) h->action = n;
        numbers_at = align_up(numbers_at + rows * c->values * sizeof(float));
        n++;
    }
    pad(b);
    for (int i = 0; i < s->column_count; i++) {
        if (!is_packed(s, i)) continue;
        for (int64_t first = 0; first < s->rows; first += PIECE) {
            int count = s->rows - first < PIECE ? (int)(s->rows - first) : PIECE;
            CGS_TRY(s->read_rows(s->self, i, first, count, 1, b->rows));
            emit(b, b->rows, (size_t)count * s->columns[i].values * sizeof(float));
        }
        pad(b);
    }
    h->file_bytes = b->at;
    return CGS_OK;
}

/* reads the tables back through a mapping: the page cache still holds them */
static cgs_status sum_tables(build *b) {
    head *h = &b->head;
    if (fflush(b->file.f) != 0) return cgs_fail(CGS_EIO, "%s: %s", b->file.path, strerror(errno));
    int fd = open(b->file.tmp, O_RDONLY);
    void *map =
        fd < 0 ? MAP_FAILED : mmap(NULL, (size_t)h->file_bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (fd >= 0) close(fd);
    if (map == MAP_FAILED) return cgs_fail(CGS_EIO, "%s: %s", b->file.tmp, strerror(errno));
    h->tables_checksum =
        cgs_checksum((const uint8_t *)map + h->tables_at, (size_t)(h->file_bytes - h->tables_at));
    munmap(map, (size_t)h->file_bytes);
    return CGS_OK;
}

static cgs_status check_source(const cgs_source *s, int image_size) {
    if (s->pixels < 0)
        return cgs_fail(CGS_EFORMAT, "%s: it has no column \"pixels\" to pack", s->path);
    if (image_size && (s->height != image_size || s->width != image_size))
        return cgs_fail(CGS_EFORMAT, "%s: its frames are %dx%d, the model needs %dx%d", s->path,
                        s->height, s->width, image_size, image_size);
    return CGS_OK;
}

cgs_status cgs_packed_build(const char *path, cgs_dataset *d, int image_size,
                            cgs_pack_progress progress, void *user) {
    const cgs_source *s = cgs_dataset_source(d);
    CGS_TRY(check_source(s, image_size));
    const size_t frame_bytes = (size_t)s->height * (size_t)s->width * 3;
    build b = {.src = s};
    head *h = &b.head;
    memcpy(h->magic, MAGIC, sizeof h->magic);
    h->version = VERSION;
    h->head_bytes = sizeof *h;
    snprintf(h->source_name, sizeof h->source_name, "%s", base_name(s->path));
    if (!source_identity(s->path, &h->source_bytes, &h->source_time))
        return cgs_fail(CGS_EIO, "%s: %s", s->path, strerror(errno));
    h->rows = (uint64_t)s->rows;
    h->episodes = (uint32_t)s->episodes;
    h->height = (uint32_t)s->height;
    h->pixels_every = (uint32_t)s->pixels_every;
    h->width = (uint32_t)s->width;

    CGS_TRY(cgs_newfile_open(&b.file, path));
    cgs_status rc = CGS_OK;
    b.squeezed_stride = (size_t)LZ4_compressBound((int)frame_bytes);
    b.frames = calloc((size_t)s->rows + 1, sizeof *b.frames);
    b.undrawn = calloc((size_t)s->rows + 1, 1);
    b.pixels = malloc(frame_bytes * TOGETHER);
    b.squeezed = malloc(b.squeezed_stride * TOGETHER);
    b.rows = malloc(sizeof(float) * PIECE * MAX_VALUES);
    if (!b.frames || !b.undrawn || !b.pixels || !b.squeezed || !b.rows)
        rc = cgs_fail(CGS_ENOMEM, "%s: no memory for packing", path);
    if (rc == CGS_OK) {
        emit(&b, h, sizeof *h); /* keeps the place */
        pad(&b);
        mark_undrawn(s, b.undrawn);
        rc = pack_frames(&b, progress, user);
    }
    if (rc == CGS_OK) rc = pack_tables(&b);
    if (rc == CGS_OK) rc = sum_tables(&b);
    if (rc == CGS_OK) {
        h->checksum = cgs_checksum(h, offsetof(head, checksum));
        rewind(b.file.f);
        fwrite(h, sizeof *h, 1, b.file.f);
        rc = cgs_newfile_commit(&b.file);
    } else {
        cgs_newfile_abandon(&b.file);
    }
    free(b.frames);
    free(b.undrawn);
    free(b.pixels);
    free(b.squeezed);
    free(b.rows);
    return rc;
}

/* ---- reading --------------------------------------------------------------------------- */

static cgs_status read_pixels(void *self, int64_t first, int count, int stride, uint8_t *out) {
    const cgs_packed *p = self;
    const size_t frame_bytes = (size_t)p->source.height * (size_t)p->source.width * 3;
    for (int i = 0; i < count; i++, out += frame_bytes) {
        int64_t row = first + (int64_t)i * stride;
        if (row < 0 || row >= p->source.rows)
            return cgs_fail(CGS_EARG, "%s: frame %" PRId64 " of %" PRId64 " does not exist",
                            p->path, row, p->source.rows);
        const frame *f = &p->frames[row];
        const uint8_t *from = p->map + f->at;
        bool good = (uint32_t)cgs_checksum(from, f->bytes) == f->check;
        if (good && f->bytes == frame_bytes)
            memcpy(out, from, frame_bytes);
        else
            good = good && LZ4_decompress_safe((const char *)from, (char *)out, (int)f->bytes,
                                               (int)frame_bytes) == (int)frame_bytes;
        if (!good) return cgs_fail(CGS_EFORMAT, "%s: frame %" PRId64 " is damaged", p->path, row);
    }
    return CGS_OK;
}

/* Lets the kernel read all of them at once, where they are not in memory, instead of each when it
 * is copied. */
static void expect_pixels(void *self, int64_t first, int count, int stride) {
    const cgs_packed *p = self;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < count; i++) {
        int64_t row = first + (int64_t)i * stride;
        if (row < 0 || row >= p->source.rows) return;
        size_t at = (size_t)p->frames[row].at, from = at / page * page;
        posix_madvise((void *)(uintptr_t)(p->map + from), at - from + p->frames[row].bytes,
                      POSIX_MADV_WILLNEED);
    }
}

static cgs_status read_rows(void *self, int column, int64_t first, int count, int stride,
                            float *out) {
    const cgs_packed *p = self;
    if (column < 0 || column >= p->source.column_count || !p->numbers[column])
        return cgs_fail(CGS_EARG, "%s: it has no number column %d", p->path, column);
    const size_t values = p->columns[column].values;
    for (int i = 0; i < count; i++, out += values) {
        int64_t row = first + (int64_t)i * stride;
        if (row < 0 || row >= p->source.rows)
            return cgs_fail(CGS_EARG,
                            "%s: column \"%s\": row %" PRId64 " of %" PRId64 " does not exist",
                            p->path, p->columns[column].name, row, p->source.rows);
        memcpy(out, p->numbers[column] + (size_t)row * values, values * sizeof(float));
    }
    return CGS_OK;
}

static cgs_status damaged(const cgs_packed *p, const char *what) {
    return cgs_fail(CGS_EFORMAT, "%s: not a packed cache, or a damaged one (%s)", p->path, what);
}

/* whether `count` items of `size` bytes lie inside the tables at `at`, aligned */
static bool fits(const head *h, uint64_t at, uint64_t count, uint64_t size) {
    return at >= h->tables_at && at <= h->file_bytes && at % ALIGN == 0 &&
           count <= (h->file_bytes - at) / size;
}

static cgs_status check_head(const cgs_packed *p) {
    const head *h = p->head;
    if (p->bytes < sizeof *h || memcmp(h->magic, MAGIC, sizeof h->magic))
        return damaged(p, "its first bytes");
    if (h->version != VERSION || h->head_bytes != sizeof *h)
        return cgs_fail(CGS_EFORMAT, "%s: packed by another version (%u, this one is %u)", p->path,
                        h->version, VERSION);
    if (cgs_checksum(h, offsetof(head, checksum)) != h->checksum)
        return damaged(p, "checksum of its header");
    if (h->file_bytes != p->bytes)
        return cgs_fail(CGS_EFORMAT, "%s: %zu bytes, its header says %" PRIu64, p->path, p->bytes,
                        h->file_bytes);
    if (h->rows < 1 || h->rows > (uint64_t)1 << 40 || h->episodes < 1 || h->episodes > INT_MAX ||
        h->columns > CGS_COLUMNS || h->height < 1 || h->height > 8192 ||
        h->pixels_every > INT_MAX || h->width < 1 || h->width > 8192 || h->tables_at < sizeof *h ||
        h->tables_at > h->file_bytes || !memchr(h->source_name, 0, sizeof h->source_name) ||
        h->action < -1 || h->action >= (int32_t)h->columns)
        return damaged(p, "a number of its header");
    if (!fits(h, h->frames_at, h->rows, sizeof(frame)) ||
        !fits(h, h->offsets_at, h->episodes, sizeof(int64_t)) ||
        !fits(h, h->lengths_at, h->episodes, sizeof(int32_t)) ||
        !fits(h, h->columns_at, h->columns, sizeof(stored_column)))
        return damaged(p, "the offset of a table");
    if (cgs_checksum(p->map + h->tables_at, (size_t)(h->file_bytes - h->tables_at)) !=
        h->tables_checksum)
        return damaged(p, "checksum of its tables");
    return CGS_OK;
}

/* A checksum can be forged, so the tables' contents are checked as well. */
static cgs_status check_tables(cgs_packed *p) {
    const head *h = p->head;
    const uint64_t frame_bytes = (uint64_t)h->height * h->width * 3;
    for (uint64_t i = 0; i < h->rows; i++) {
        const frame *f = &p->frames[i];
        if (f->at < sizeof *h || f->at > h->tables_at || f->bytes > h->tables_at - f->at ||
            f->bytes > frame_bytes)
            return damaged(p, "the offset of a frame");
    }
    const int64_t *offset = p->source.ep_offset;
    const int32_t *length = p->source.ep_len;
    for (uint32_t e = 0; e < h->episodes; e++)
        if (length[e] < 1 || offset[e] < 0 || offset[e] > (int64_t)h->rows ||
            length[e] > (int64_t)h->rows - offset[e])
            return damaged(p, "the offset of an episode");
    const stored_column *stored = (const stored_column *)(p->map + h->columns_at);
    for (uint32_t i = 0; i < h->columns; i++) {
        const stored_column *from = &stored[i];
        cgs_column *c = &p->columns[i];
        if (!memchr(from->name, 0, sizeof from->name) || from->dtype > CGS_COL_U64 ||
            from->dtype == CGS_COL_OTHER || from->rank > CGS_COLUMN_RANK)
            return damaged(p, "a column");
        memcpy(c->name, from->name, sizeof c->name);
        c->dtype = (cgs_column_type)from->dtype;
        c->rank = (int)from->rank;
        c->values = 1;
        c->rows = (int64_t)h->rows;
        c->readable = true;
        c->together = 1;
        for (int k = 0; k < c->rank; k++) {
            if (from->shape[k] < 1 || from->shape[k] > MAX_VALUES) return damaged(p, "a column");
            c->shape[k] = from->shape[k];
            c->values *= (size_t)from->shape[k];
        }
        if (c->values > MAX_VALUES || !fits(h, from->at, h->rows, c->values * sizeof(float)))
            return damaged(p, "the offset of a column");
        p->numbers[i] = (const float *)(p->map + from->at);
    }
    return CGS_OK;
}

static cgs_status open_map(cgs_packed *p) {
    cgs_status rc = cgs_map_file(p->path, sizeof(head), &p->map, &p->bytes);
    return rc == CGS_EFORMAT ? damaged(p, "it is too short") : rc;
}

static cgs_status open_tables(cgs_packed *p) {
    p->head = (const head *)p->map;
    CGS_TRY(check_head(p));
    const head *h = p->head;
    /* one more column: the images, which come last */
    p->columns = calloc((size_t)h->columns + 1, sizeof *p->columns);
    p->numbers = calloc((size_t)h->columns + 1, sizeof *p->numbers);
    if (!p->columns || !p->numbers) return cgs_fail(CGS_ENOMEM, "%s: no memory", p->path);
    p->frames = (const frame *)(p->map + h->frames_at);
    p->source = (cgs_source){.path = p->path,
                             .rows = (int64_t)h->rows,
                             .episodes = (int)h->episodes,
                             .ep_offset = (const int64_t *)(p->map + h->offsets_at),
                             .ep_len = (const int32_t *)(p->map + h->lengths_at),
                             .columns = p->columns,
                             .column_count = (int)h->columns + 1,
                             .pixels = (int)h->columns,
                             .action = h->action,
                             .height = (int)h->height,
                             .pixels_every = h->pixels_every ? (int)h->pixels_every : 1,
                             .width = (int)h->width,
                             .self = p,
                             .read_pixels = read_pixels,
                             .expect_pixels = expect_pixels,
                             .read_rows = read_rows};
    CGS_TRY(check_tables(p));
    cgs_column *pixels = &p->columns[h->columns];
    *pixels = (cgs_column){.name = "pixels",
                           .dtype = CGS_COL_U8,
                           .rank = 3,
                           .shape = {h->height, h->width, 3},
                           .values = (size_t)h->height * h->width * 3,
                           .rows = (int64_t)h->rows,
                           .readable = true,
                           .together = 1};
    if (h->action >= 0) p->source.action_dim = (int)p->columns[h->action].values;
    return CGS_OK;
}

cgs_status cgs_packed_open(cgs_packed **out, const char *path) {
    *out = NULL;
    cgs_packed *p = calloc(1, sizeof *p);
    if (!p) return cgs_fail(CGS_ENOMEM, "%s: no memory", path);
    cgs_status rc = CGS_OK;
    if ((size_t)snprintf(p->path, sizeof p->path, "%s", path) >= sizeof p->path)
        rc = cgs_fail(CGS_EARG, "%.64s...: path is too long", path);
    if (rc == CGS_OK) rc = open_map(p);
    if (rc == CGS_OK) rc = open_tables(p);
    if (rc != CGS_OK) {
        cgs_packed_close(p);
        return rc;
    }
    *out = p;
    return CGS_OK;
}

void cgs_packed_close(cgs_packed *p) {
    if (!p) return;
    if (p->map) munmap((void *)(uintptr_t)p->map, p->bytes);
    free(p->columns);
    free(p->numbers);
    free(p);
}

const cgs_source *cgs_packed_source(const cgs_packed *p) { return &p->source; }

bool cgs_packed_is_fresh(const cgs_packed *p, const char *dataset_path) {
    uint64_t bytes;
    int64_t time;
    return source_identity(dataset_path, &bytes, &time) && bytes == p->head->source_bytes &&
           time == p->head->source_time && !strcmp(base_name(dataset_path), p->head->source_name);
}

/* hands an opened cache out, or closes it where its frames have another size */
static cgs_status keep_suitable(cgs_packed **out, cgs_packed *p, int image_size) {
    cgs_status rc = check_source(&p->source, image_size);
    if (rc != CGS_OK)
        cgs_packed_close(p);
    else
        *out = p;
    return rc;
}

cgs_status cgs_packed_ensure(cgs_packed **out, const char *path, const char *dataset_path,
                             int image_size, cgs_pack_progress progress, void *user) {
    *out = NULL;
    cgs_packed *p = NULL;
    if (cgs_file_exists(path)) {
        if (cgs_packed_open(&p, path) != CGS_OK)
            cgs_log(CGS_INFO, "%s; packing it again", cgs_last_error());
        else if (!cgs_packed_is_fresh(p, dataset_path)) {
            cgs_log(CGS_INFO, "%s: older than %s; packing it again", path, dataset_path);
            cgs_packed_close(p);
            p = NULL;
        }
    }
    if (!p) {
        cgs_dataset *d;
        CGS_TRY(cgs_dataset_open(&d, dataset_path));
        cgs_status rc = cgs_packed_build(path, d, image_size, progress, user);
        cgs_dataset_close(d);
        CGS_TRY(rc);
        CGS_TRY(cgs_packed_open(&p, path));
    }
    return keep_suitable(out, p, image_size);
}

cgs_status cgs_packed_of(cgs_packed **out, const char *dataset_path, const char *folder,
                         int image_size) {
    *out = NULL;
    char path[4096];
    if (!folder) {
        cgs_packed *p = NULL;
        CGS_TRY(cgs_cache_beside(path, sizeof path, dataset_path, SUFFIX));
        if (cgs_file_exists(path) && cgs_packed_open(&p, path) == CGS_OK &&
            cgs_packed_is_fresh(p, dataset_path))
            return keep_suitable(out, p, image_size);
        cgs_packed_close(p);
    }
    CGS_TRY(cgs_cache_place(path, sizeof path, dataset_path, SUFFIX, folder));
    return cgs_packed_ensure(out, path, dataset_path, image_size, NULL, NULL);
}

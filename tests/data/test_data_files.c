/* test_data_files.c - files by other writers: every filter, odd layouts, false claims and damage.
 *
 * "fuzz FILE SEED FIRST COUNT" as arguments reads COUNT damaged copies of FILE instead, so that a
 * crash can be distinguished from a failure, and the copy that causes it is named. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <blosc.h>
#include <hdf5.h>
#include <lz4.h>
#include <zstd.h>

#include "core/file.h"
#include "core/rng.h"
#include "data/dataset.h"
#include "data/h5.h"
#include "data/packed.h"
#include "data/stats.h"
#include "data/writer.h"
#include "expect.h"
#include "synthetic.h"

#define FAILS(call, code, words)                                                                   \
    do {                                                                                           \
        cgs_status fails_ = (call);                                                                \
        if (fails_ != (code) || !strstr(cgs_last_error(), (words)))                                \
            fail_msg("%s: status %s, \"%s\"", #call, cgs_status_name(fails_), cgs_last_error());   \
    } while (0)

/* libhdf5 leaks memory when it leaves damaged files; called by the leak sanitizer */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libhdf5"; }

static char folder[64];

static const char *at(const char *name) {
    static char path[4][256];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

/* without the fsync of cgs_write_file: thousands of these are written */
static cgs_status write_plain(const char *path, const void *data, size_t bytes) {
    unlink(path); /* overwriting makes some file systems flush */
    FILE *f = fopen(path, "wb");
    if (!f) return cgs_fail(CGS_EIO, "%s: cannot be opened", path);
    bool good = fwrite(data, 1, bytes, f) == bytes;
    return fclose(f) == 0 && good ? CGS_OK : cgs_fail(CGS_EIO, "%s: cannot be written", path);
}

/* ---- an HDF5 file, written directly ----------------------------------------------------- */

enum { E = 3, ROWS = 23, S = 10, FRAME = S * S * 3 };
static const int64_t good_offset[E] = {9, 0, 16}; /* not in order */
static const int64_t good_length[E] = {7, 9, 7};

typedef struct layout {
    int filter;         /* 0: none */
    int filter2;        /* a second one, after it */
    hsize_t chunk_rows; /* 0: contiguous */
    hsize_t chunk_side; /* of the images, 0: the whole side */
    bool old_format;    /* the earliest object formats */
} layout;

static uint8_t pixel(int row, int i) { return (uint8_t)(row * 7 + i / 11); }
static float number(int row, int i) { return (float)row / 3 + (float)i; }

static size_t encode(int filter, size_t width, const uint8_t *in, size_t n, uint8_t *out,
                     size_t capacity) {
    if (filter == 32001) {
        int k = blosc_compress_ctx(5, 1, width, n, in, out, capacity, "lz4", 0, 1);
        assert_true(k > 0);
        return (size_t)k;
    }
    if (filter == 32015) {
        size_t k = ZSTD_compress(out, capacity, in, n, 3);
        assert_false(ZSTD_isError(k));
        return k;
    }
    if (filter == 32004) { /* blocks of 1000 bytes, so that there are several */
        const size_t block = 1000;
        size_t o = 12;
        for (int i = 0; i < 8; i++) out[i] = (uint8_t)((uint64_t)n >> (56 - 8 * i));
        for (int i = 0; i < 4; i++) out[8 + i] = (uint8_t)(block >> (24 - 8 * i));
        for (size_t i = 0; i < n; i += block) {
            size_t want = n - i < block ? n - i : block;
            int k = LZ4_compress_default((const char *)in + i, (char *)out + o + 4, (int)want,
                                         (int)(capacity - o - 4));
            if (k <= 0 || (size_t)k >= want) {
                memcpy(out + o + 4, in + i, want);
                k = (int)want;
            }
            for (int j = 0; j < 4; j++) out[o + (size_t)j] = (uint8_t)(k >> (24 - 8 * j));
            o += 4 + (size_t)k;
        }
        return o;
    }
    fail_msg("filter %d", filter);
    return 0;
}

/* all chunks of a column through encode(), stored as they come out */
static void write_encoded(hid_t set, const layout *l, int rank, const hsize_t *dims,
                          const hsize_t *chunk, size_t width, const uint8_t *data) {
    size_t bytes = width;
    for (int i = 0; i < rank; i++) bytes *= (size_t)chunk[i];
    uint8_t *raw = calloc(bytes, 1), *out = malloc(2 * bytes + 4096);
    hsize_t o[4] = {0};
    for (;;) {
        memset(raw, 0, bytes);
        size_t n = bytes / width;
        for (size_t i = 0; i < n; i++) { /* gather one element at a time: slow, obvious */
            size_t rest = i, index = 0;
            hsize_t where[4];
            for (int k = rank - 1; k >= 0; k--) {
                where[k] = o[k] + rest % (size_t)chunk[k];
                rest /= (size_t)chunk[k];
            }
            bool inside = true;
            for (int k = 0; k < rank; k++) {
                inside = inside && where[k] < dims[k];
                index = index * (size_t)dims[k] + (size_t)where[k];
            }
            if (inside) memcpy(raw + i * width, data + index * width, width);
        }
        size_t k = encode(l->filter, width, raw, bytes, out, 2 * bytes + 4096);
        assert_true(H5Dwrite_chunk(set, H5P_DEFAULT, 0, o, k, out) >= 0);
        int axis = rank - 1;
        while (axis >= 0 && (o[axis] += chunk[axis]) >= dims[axis]) o[axis--] = 0;
        if (axis < 0) break;
    }
    free(raw);
    free(out);
}

/* claims to filter and does nothing: only there so that a file may name the filter */
static size_t no_filter(unsigned flags, size_t n, const unsigned *values, size_t bytes,
                        size_t *size, void **buffer) {
    (void)flags, (void)n, (void)values, (void)size, (void)buffer;
    return bytes;
}

static void put(hid_t file, const char *name, hid_t type, hid_t memory, int rank,
                const hsize_t *dims, const layout *l, size_t width, const void *data) {
    hid_t space = H5Screate_simple(rank, dims, NULL), plist = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t chunk[4];
    bool foreign = l && l->filter >= 32000;
    if (l && l->chunk_rows) {
        for (int i = 0; i < rank; i++) chunk[i] = dims[i];
        chunk[0] = l->chunk_rows < dims[0] ? l->chunk_rows : dims[0];
        if (rank == 4 && l->chunk_side) chunk[1] = chunk[2] = l->chunk_side;
        H5Pset_chunk(plist, rank, chunk);
        const int filters[] = {l->filter, l->filter2};
        for (int i = 0; i < 2; i++) {
            if (filters[i] == 1) H5Pset_deflate(plist, 4);
            if (filters[i] == 2) H5Pset_shuffle(plist);
            if (filters[i] == 3) H5Pset_fletcher32(plist);
            if (filters[i] >= 32000) {
                const H5Z_class2_t class = {H5Z_CLASS_T_VERS, filters[i], 1,    1,
                                            "test",           NULL,       NULL, no_filter};
                H5Zregister(&class);
                H5Pset_filter(plist, filters[i], H5Z_FLAG_OPTIONAL, 0, NULL);
            }
        }
    }
    hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    assert_true(set >= 0);
    if (foreign && l->chunk_rows)
        write_encoded(set, l, rank, dims, chunk, width, data);
    else
        assert_true(H5Dwrite(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
    H5Dclose(set);
    H5Pclose(plist);
    H5Sclose(space);
}

typedef struct lies {
    const int64_t *offset, *length; /* (E), NULL: good */
    bool bad_step, bad_episode;
    hsize_t action_rows; /* 0: right */
} lies;

static void write_h5(const char *path, const layout *l, const lies *lie) {
    static uint8_t pixels[ROWS * FRAME];
    static double state[ROWS * 3];
    float action[ROWS * 2];
    int64_t step[ROWS], episode[ROWS];
    const lies none = {0};
    if (!lie) lie = &none;
    for (int r = 0; r < ROWS; r++) {
        for (int i = 0; i < FRAME; i++) pixels[r * FRAME + i] = pixel(r, i);
        for (int i = 0; i < 3; i++) state[r * 3 + i] = number(r, i);
        for (int i = 0; i < 2; i++) action[r * 2 + i] = number(r, 10 + i);
    }
    for (int e = 0; e < E; e++)
        for (int i = 0; i < good_length[e]; i++) {
            int64_t r = good_offset[e] + i;
            step[r] = i + (lie->bad_step && r == 5);
            episode[r] = e + (lie->bad_episode && r == 5);
            if (i + 1 == good_length[e]) action[2 * r] = action[2 * r + 1] = NAN;
        }
    cgs_h5_lock();
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (!l->old_format) H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    H5Pclose(access);
    assert_true(file >= 0);
    const hsize_t image[] = {ROWS, S, S, 3}, two[] = {ROWS, 2}, three[] = {ROWS, 3};
    const hsize_t episodes[] = {E}, rows[] = {ROWS};
    const hsize_t fewer[] = {lie->action_rows ? lie->action_rows : ROWS, 2};
    (void)two;
    put(file, "pixels", H5T_STD_U8LE, H5T_NATIVE_UINT8, 4, image, l, 1, pixels);
    put(file, "state", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 2, three, l, 8, state);
    put(file, "action", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 2, fewer, l, 4, action);
    put(file, "ep_len", H5T_STD_I32LE, H5T_NATIVE_INT64, 1, episodes, NULL, 4,
        lie->length ? lie->length : good_length);
    put(file, "ep_offset", H5T_STD_I64LE, H5T_NATIVE_INT64, 1, episodes, NULL, 8,
        lie->offset ? lie->offset : good_offset);
    put(file, "ep_idx", H5T_STD_I64LE, H5T_NATIVE_INT64, 1, rows, NULL, 8, episode);
    put(file, "step_idx", H5T_STD_U16LE, H5T_NATIVE_INT64, 1, rows, NULL, 2, step);
    H5Fclose(file);
    cgs_h5_unlock();
}

static void check_h5(const char *path) {
    cgs_dataset *d;
    OK(cgs_dataset_open(&d, path));
    const cgs_source *s = cgs_dataset_source(d);
    assert_int_equal(s->episodes, E);
    assert_int_equal(s->rows, ROWS);
    for (int e = 0; e < E; e++) {
        assert_int_equal(s->ep_len[e], good_length[e]);
        assert_int_equal(s->ep_offset[e], good_offset[e]);
    }
    static uint8_t pixels[ROWS * FRAME];
    double state[ROWS * 3];
    float action[ROWS * 2];
    /* in pieces that cross chunks, then whole, backwards too */
    for (int first = ROWS - 1; first >= 0; first--) {
        int count = first % 6 + 1 < ROWS - first ? first % 6 + 1 : ROWS - first;
        if (first == 0) count = ROWS;
        OK(cgs_dataset_read_pixels(d, first, count, pixels));
        OK(cgs_dataset_read_rows_f64(d, "state", first, count, state));
        OK(cgs_dataset_read_rows(d, "action", first, count, action));
        for (int r = 0; r < count; r++) {
            for (int i = 0; i < FRAME; i++)
                if (pixels[r * FRAME + i] != pixel(first + r, i))
                    fail_msg("%s: pixel %d of row %d", path, i, first + r);
            for (int i = 0; i < 3; i++) assert_true(state[r * 3 + i] == number(first + r, i));
            bool last = first + r == 8 || first + r == 15 || first + r == 22;
            for (int i = 0; i < 2; i++)
                assert_true(last ? isnan(action[r * 2 + i])
                                 : action[r * 2 + i] == number(first + r, 10 + i));
        }
    }
    cgs_dataset_close(d);
}

static void every_layout(void **state) {
    (void)state;
    const layout layouts[] = {
        {0, 0, 0, 0, false},     {0, 0, 0, 0, true},      {0, 0, 4, 0, true},
        {1, 0, 1, 0, false},     {2, 1, 5, 0, false},     {1, 3, 5, 4, true},
        {3, 0, 100, 0, false},   {3, 1, 7, 3, false},     {32001, 0, 100, 0, false},
        {32001, 0, 1, 0, false}, {32001, 0, 6, 4, true},  {32004, 0, 8, 0, false},
        {32015, 0, 8, 0, false}, {32015, 0, 3, 7, false},
    };
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        write_h5(at("layout.h5"), &layouts[i], NULL);
        check_h5(at("layout.h5"));
    }
}

static void unknown_filter(void **state) {
    (void)state;
    /* 32008 is bitshuffle; the chunk is stored as it is, the reader cannot know */
    write_h5(at("filter.h5"), &(layout){1, 32008, 5, 0, false}, NULL);
    cgs_dataset *d;
    OK(cgs_dataset_open(&d, at("filter.h5")));
    static uint8_t pixels[FRAME];
    FAILS(cgs_dataset_read_pixels(d, 0, 1, pixels), CGS_EFORMAT, "filter 32008");
    cgs_dataset_close(d);
}

static void damaged_chunks(void **state) {
    (void)state;
    /* a Blosc chunk with other bytes in its header or its blocks */
    write_h5(at("blosc.h5"), &(layout){32001, 0, 100, 0, false}, NULL);
    char *whole;
    size_t n;
    OK(cgs_read_file(at("blosc.h5"), 1 << 24, &whole, &n));
    size_t chunk = 0; /* version 2, typesize 1, ROWS * FRAME bytes */
    for (size_t i = 0; i + 16 < n && !chunk; i++) {
        uint32_t bytes;
        memcpy(&bytes, whole + i + 4, 4);
        if (whole[i] == 2 && whole[i + 3] == 1 && bytes == ROWS * FRAME) chunk = i;
    }
    assert_true(chunk > 0);
    int refused = 0;
    static uint8_t pixels[ROWS * FRAME];
    for (int i = 0; i < 48; i++) {
        char keep = whole[chunk + (size_t)i];
        for (int bit = 0; bit < 8; bit++) {
            whole[chunk + (size_t)i] = (char)(keep ^ (1 << bit));
            OK(write_plain(at("blosc2.h5"), whole, n));
            cgs_dataset *d;
            OK(cgs_dataset_open(&d, at("blosc2.h5")));
            cgs_status rc = cgs_dataset_read_pixels(d, 0, ROWS, pixels);
            refused += rc == CGS_EFORMAT;
            assert_true(rc == CGS_OK || rc == CGS_EFORMAT);
            cgs_dataset_close(d);
        }
        whole[chunk + (size_t)i] = keep;
    }
    assert_true(refused > 100);
    free(whole);
}

static void lying_index(void **state) {
    (void)state;
    const layout plain = {0, 0, 0, 0, false};
    const int64_t zero[] = {7, 0, 7}, negative[] = {9, -1, 16}, beyond[] = {9, 0, 17};
    const int64_t far[] = {9, 0, INT64_MAX}, overlap[] = {8, 0, 16};
    const struct {
        lies lie;
        const char *words;
    } cases[] = {
        {{.length = zero}, "episode 1 has 0 rows"},
        {{.offset = negative}, "episode 1 has 9 rows from row -1 on, there are 23"},
        {{.offset = beyond}, "episode 2 has 7 rows from row 17 on, there are 23"},
        {{.offset = far}, "episode 2 has 7 rows from row 9223372036854775807 on"},
        {{.offset = overlap}, "episodes 1 and 0 share row 8"},
        {{.bad_step = true}, "column \"step_idx\" holds 6 in row 5 of episode 1"},
        {{.bad_episode = true}, "column \"ep_idx\" holds 2 in row 5 of episode 1"},
        {{.action_rows = 20}, "column \"action\" f32 (20, 2): 23 rows are expected"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_h5(at("lie.h5"), &plain, &cases[i].lie);
        cgs_dataset *d;
        FAILS(cgs_dataset_open(&d, at("lie.h5")), CGS_EFORMAT, cases[i].words);
        assert_null(d);
    }
}

static void not_hdf5(void **state) {
    (void)state;
    cgs_dataset *d;
    OK(write_plain(at("text.h5"), "hello", 5));
    FAILS(cgs_dataset_open(&d, at("text.h5")), CGS_EFORMAT, "text.h5: not an HDF5 file");
    OK(write_plain(at("empty.h5"), "", 0));
    FAILS(cgs_dataset_open(&d, at("empty.h5")), CGS_EFORMAT, "not an HDF5 file");
    FAILS(cgs_dataset_open(&d, folder), CGS_EIO, "not a regular file");
}

/* ---- damaged HDF5 files ------------------------------------------------------------------ */

/* everything a user of a dataset does; true when nothing was noticed */
static bool use_dataset(const char *path) {
    cgs_dataset *d;
    if (cgs_dataset_open(&d, path) != CGS_OK) return false;
    const cgs_source *s = cgs_dataset_source(d);
    bool whole = true;
    if (s->pixels >= 0 && s->height <= 64 && s->width <= 64) {
        uint8_t *pixels = malloc((size_t)s->height * (size_t)s->width * 3);
        for (int64_t r = 0; r < s->rows && r < 100; r++)
            whole = cgs_dataset_read_pixels(d, r, 1, pixels) == CGS_OK && whole;
        free(pixels);
    }
    cgs_stats stats;
    whole = cgs_stats_compute(&stats, s, "action") == CGS_OK && whole;
    cgs_dataset_close(d);
    return whole;
}

static int fuzz(const char *path, uint64_t seed, int first, int count) {
    char *whole, copy[300];
    size_t n;
    if (cgs_read_file(path, (size_t)1 << 26, &whole, &n) != CGS_OK) return 3;
    snprintf(copy, sizeof copy, "%s.fuzz%d", path, first);
    for (int i = first; i < first + count; i++) {
        cgs_rng rng = cgs_rng_stream(seed, CGS_STREAM_TEST, (uint64_t)i);
        char *damaged = malloc(n);
        memcpy(damaged, whole, n);
        size_t length = n;
        if (i % 4 == 0)
            length = (size_t)cgs_rng_below(&rng, n);
        else
            for (uint64_t k = cgs_rng_below(&rng, 4) + 1; k > 0; k--)
                damaged[cgs_rng_below(&rng, n)] ^= (char)(1 << cgs_rng_below(&rng, 8));
        if (write_plain(copy, damaged, length) != CGS_OK) return 3;
        free(damaged);
        use_dataset(copy);
    }
    unlink(copy);
    free(whole);
    return 0;
}

/* crashes among `total` damaged copies, found by halving */
static int crashes(const char *path, int seed, int first, int count) {
    char words[3][24];
    snprintf(words[0], sizeof words[0], "%d", seed);
    snprintf(words[1], sizeof words[1], "%d", first);
    snprintf(words[2], sizeof words[2], "%d", count);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(120);
        execl("/proc/self/exe", "test_data_files", "fuzz", path, words[0], words[1], words[2],
              (char *)NULL);
        _exit(127);
    }
    int status;
    waitpid(pid, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
    if (count == 1) {
        print_message("%s: damaged copy %d of seed %d: %s %d\n", path, first, seed,
                      WIFSIGNALED(status) ? "signal" : "status",
                      WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        return 1;
    }
    int half = count / 2;
    return crashes(path, seed, first, half) + crashes(path, seed, first + half, count - half);
}

static void damaged_own_hdf5(void **state) {
    (void)state;
    OK(synthetic_dataset(at("own.h5"), 3, 8, 12, 2));
    assert_int_equal(crashes(at("own.h5"), 1, 0, 400), 0);
}

/* metadata of the old object formats carry no checksums, and libhdf5 dies or runs for
 * ever on some; the trial in a child process has to catch those */
static void damaged_old_hdf5(void **state) {
    (void)state;
    write_h5(at("old.h5"), &(layout){1, 0, 5, 0, true}, NULL);
    assert_int_equal(crashes(at("old.h5"), 2, 0, 400), 0);
}

static void dies(void *user) {
    (void)user;
    abort();
}

static void never_ends(void *user) {
    volatile int *turns = user;
    for (;;) (*turns)++;
}

static void ends(void *user) { *(int *)user = 1; }

static void trials(void **state) {
    (void)state;
    int touched = 0;
    assert_int_not_equal(cgs_h5_try_in_child(dies, NULL, 5), 0);
    assert_int_not_equal(cgs_h5_try_in_child(never_ends, &touched, 1), 0);
    assert_int_equal(cgs_h5_try_in_child(ends, &touched, 5), 0);
    assert_int_equal(touched, 0); /* nothing of it happens here */
}

/* a flip in every third byte of a small recording: read right, or refused */
static void flips_of_own_hdf5(void **state) {
    (void)state;
    const cgs_column_spec columns[] = {{"action", CGS_COL_F32, 1, {2}}};
    float action[] = {1, 2, 3, 4, NAN, NAN}, read[6];
    cgs_writer *w;
    int64_t done;
    OK(cgs_writer_create(&w, at("bits.h5"), columns, 1));
    OK(cgs_writer_begin(w, &done));
    OK(cgs_writer_add(w, 3, (const void *const[]){action}));
    OK(cgs_writer_finish(w));
    cgs_writer_destroy(w);
    char *whole;
    size_t n;
    OK(cgs_read_file(at("bits.h5"), 1 << 20, &whole, &n));
    int refused = 0, tried = 0;
    for (size_t i = 0; i < n; i += 3) {
        whole[i] ^= (char)(1 << i % 8);
        OK(write_plain(at("bit.h5"), whole, n));
        whole[i] ^= (char)(1 << i % 8);
        cgs_dataset *d;
        tried++;
        if (cgs_dataset_open(&d, at("bit.h5")) == CGS_OK) {
            if (cgs_dataset_read_rows(d, "action", 0, 3, read) != CGS_OK)
                refused++;
            else
                for (int k = 0; k < 4; k++) assert_true(read[k] == action[k]);
            cgs_dataset_close(d);
        } else {
            refused++;
        }
    }
    print_message("%d of %d flips refused, the others did not matter\n", refused, tried);
    assert_true(refused > 100);
    free(whole);
}

/* ---- the packed cache ----------------------------------------------------------------------- */

static bool count_progress(void *user, int64_t done, int64_t total) {
    int64_t *seen = user;
    seen[0]++;
    seen[1] = done;
    return seen[2] == 0 || total == 0;
}

static void packed_equals_dataset(void **state) {
    (void)state;
    write_h5(at("p.h5"), &(layout){32001, 0, 100, 0, false}, NULL);
    cgs_dataset *d;
    cgs_packed *p;
    int64_t seen[3] = {0, 0, 0};
    OK(cgs_packed_ensure(&p, at("p.pack"), at("p.h5"), S, count_progress, seen));
    assert_int_equal(seen[1], ROWS);
    OK(cgs_dataset_open(&d, at("p.h5")));
    const cgs_source *a = cgs_dataset_source(d), *b = cgs_packed_source(p);
    assert_int_equal(a->rows, b->rows);
    assert_int_equal(a->episodes, b->episodes);
    assert_int_equal(a->action_dim, b->action_dim);
    assert_memory_equal(a->ep_offset, b->ep_offset, E * sizeof(int64_t));
    assert_memory_equal(a->ep_len, b->ep_len, E * sizeof(int32_t));
    static uint8_t x[ROWS * FRAME], y[ROWS * FRAME];
    OK(a->read_pixels(a->self, 0, ROWS, 1, x));
    OK(b->read_pixels(b->self, 0, ROWS, 1, y));
    assert_memory_equal(x, y, sizeof x);
    OK(a->read_pixels(a->self, 2, 5, 4, x));
    OK(b->read_pixels(b->self, 2, 5, 4, y));
    assert_memory_equal(x, y, 5 * FRAME);
    const char *const names[] = {"action", "state", "ep_idx", "step_idx"};
    for (int i = 0; i < 4; i++) {
        float u[ROWS * 3], v[ROWS * 3];
        int k = cgs_source_find(b, names[i]);
        assert_true(k >= 0);
        OK(a->read_rows(a->self, cgs_source_find(a, names[i]), 0, ROWS, 1, u));
        OK(b->read_rows(b->self, k, 0, ROWS, 1, v));
        assert_memory_equal(u, v, ROWS * b->columns[k].values * sizeof(float));
    }
    FAILS(b->read_pixels(b->self, ROWS, 1, 1, x), CGS_EARG, "does not exist");
    FAILS(b->read_rows(b->self, 0, -1, 1, 1, (float *)x), CGS_EARG, "does not exist");
    cgs_dataset_close(d);
    cgs_packed_close(p);
}

static void packed_is_renewed(void **state) {
    (void)state;
    OK(synthetic_dataset(at("q.h5"), 2, 5, 8, 1));
    cgs_packed *p;
    int64_t seen[3] = {0, 0, 0};
    OK(cgs_packed_ensure(&p, at("q.pack"), at("q.h5"), 8, count_progress, seen));
    assert_true(cgs_packed_is_fresh(p, at("q.h5")));
    cgs_packed_close(p);
    seen[0] = 0;
    OK(cgs_packed_ensure(&p, at("q.pack"), at("q.h5"), 8, count_progress, seen));
    assert_int_equal(seen[0], 0); /* still good: not built again */
    cgs_packed_close(p);
    FAILS(cgs_packed_ensure(&p, at("q.pack"), at("q.h5"), 16, NULL, NULL), CGS_EFORMAT,
          "8x8, the model needs 16x16");

    /* the dataset changes; the cache follows */
    unlink(at("q.h5"));
    OK(synthetic_dataset(at("q.h5"), 3, 5, 8, 1));
    OK(cgs_packed_open(&p, at("q.pack")));
    assert_false(cgs_packed_is_fresh(p, at("q.h5")));
    cgs_packed_close(p);
    OK(cgs_packed_ensure(&p, at("q.pack"), at("q.h5"), 0, NULL, NULL));
    assert_int_equal(cgs_packed_source(p)->episodes, 3);
    cgs_packed_close(p);

    /* damage: rebuilt; a stop leaves no file */
    OK(write_plain(at("q.pack"), "cgspack\nrubbish", 15));
    OK(cgs_packed_ensure(&p, at("q.pack"), at("q.h5"), 0, NULL, NULL));
    cgs_packed_close(p);
    unlink(at("q.pack"));
    seen[2] = 1;
    FAILS(cgs_packed_ensure(&p, at("q.pack"), at("q.h5"), 0, count_progress, seen), CGS_ESTOPPED,
          "stopped");
    assert_false(cgs_file_exists(at("q.pack")));
    assert_false(cgs_file_exists(at("q.pack.tmp")));
}

static bool use_packed(const char *path, const uint8_t *frames, const float *actions) {
    cgs_packed *p;
    if (cgs_packed_open(&p, path) != CGS_OK) return false;
    const cgs_source *s = cgs_packed_source(p);
    bool whole = true;
    static uint8_t frame[8 * 8 * 3];
    assert_true(s->height == 8 && s->width == 8);
    for (int64_t r = 0; r < s->rows; r++) {
        float a[2];
        if (s->read_pixels(s->self, r, 1, 1, frame) != CGS_OK)
            whole = false;
        else
            assert_memory_equal(frame, frames + (size_t)r * sizeof frame, sizeof frame);
        OK(s->read_rows(s->self, s->action, r, 1, 1, a));
        for (int k = 0; k < 2; k++)
            assert_true(a[k] == actions[2 * r + k] || isnan(actions[2 * r + k]));
    }
    cgs_packed_close(p);
    return whole;
}

/* every truncation and a flip in every byte is noticed, or changes nothing */
static void damaged_packed(void **state) {
    (void)state;
    OK(synthetic_dataset(at("h.h5"), 2, 6, 8, 1));
    cgs_packed *p;
    OK(cgs_packed_ensure(&p, at("h.pack"), at("h.h5"), 8, NULL, NULL));
    static uint8_t frames[12 * 8 * 8 * 3];
    float actions[24];
    const cgs_source *s = cgs_packed_source(p);
    OK(s->read_pixels(s->self, 0, 12, 1, frames));
    OK(s->read_rows(s->self, s->action, 0, 12, 1, actions));
    cgs_packed_close(p);
    char *whole;
    size_t n;
    OK(cgs_read_file(at("h.pack"), 1 << 24, &whole, &n));
    for (size_t cut = 0; cut < n; cut += 1 + cut / 64) {
        OK(write_plain(at("x.pack"), whole, cut));
        assert_false(use_packed(at("x.pack"), frames, actions));
    }
    int unnoticed = 0;
    for (size_t i = 0; i < n; i++) {
        whole[i] ^= (char)(1 << i % 8);
        OK(write_plain(at("x.pack"), whole, n));
        unnoticed += use_packed(at("x.pack"), frames, actions);
        whole[i] ^= (char)(1 << i % 8);
    }
    print_message("%d of %zu flips fell into padding\n", unnoticed, n);
    assert_true(unnoticed < 128); /* padding of the head and of the frames */
    free(whole);
}

static int set_up(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/cgs-files-XXXXXX");
    return !mkdtemp(folder);
}

static int tear_down(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

int main(int argc, char **argv) {
    if (argc == 6 && !strcmp(argv[1], "fuzz"))
        return fuzz(argv[2], strtoull(argv[3], NULL, 10), atoi(argv[4]), atoi(argv[5]));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layout),      cmocka_unit_test(unknown_filter),
        cmocka_unit_test(damaged_chunks),    cmocka_unit_test(lying_index),
        cmocka_unit_test(not_hdf5),          cmocka_unit_test(damaged_own_hdf5),
        cmocka_unit_test(damaged_old_hdf5),  cmocka_unit_test(trials),
        cmocka_unit_test(flips_of_own_hdf5), cmocka_unit_test(packed_equals_dataset),
        cmocka_unit_test(packed_is_renewed), cmocka_unit_test(damaged_packed)};
    return cmocka_run_group_tests_name("data_files", tests, set_up, tear_down);
}

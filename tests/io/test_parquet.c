/* test_parquet.c - Parquet files by writers that are not ours (tests/parity/parquet_files.mjs), and
 * what is left of them when bits, lengths and ends are changed. */
#include "test_io.h"

#include <math.h>

#include "expect.h"
#include "io/parquet.h"
#include "io/thrift.h"

enum { ROWS = 120 };

static const char *golden(const char *name) {
    static char path[512];
    const char *slash = strrchr(__FILE__, '/');
    snprintf(path, sizeof path, "%.*s/../golden/parquet/%s", slash ? (int)(slash - __FILE__) : 1,
             slash ? __FILE__ : ".", name);
    return path;
}

static const char *const files[] = {"second_snappy.parquet",     "second_plain.parquet",
                                    "second_gzip.parquet",       "arrow_snappy.parquet",
                                    "arrow_zstd.parquet",        "arrow_gzip.parquet",
                                    "arrow_uncompressed.parquet"};
enum { FILES = sizeof files / sizeof files[0] };

static bool readable(const char *name) {
#ifdef CGS_WITH_SNAPPY
    return name != NULL;
#else
    return !strstr(name, "snappy");
#endif
}

/* ---- what the files hold ------------------------------------------------------------------ */

static double expected(const char *name, int r, int i) {
    if (!strcmp(name, "i64")) return r * 1000003.0;
    if (!strcmp(name, "i32")) return -r;
    if (!strcmp(name, "f32")) return r * 0.5;
    if (!strcmp(name, "f64")) return r / 3.0;
    if (!strcmp(name, "truth")) return r % 3 == 0;
    if (!strcmp(name, "few")) return r % 4;
    if (!strcmp(name, "holes")) return r % 5 ? r + 0.25 : NAN;
    if (!strcmp(name, "fixed")) return i == 0 ? r : i == 1 ? r + 0.25 : -r;
    return 10 * r + i; /* ragged */
}

static void columns(void **state) {
    (void)state;
    static const char *const names[] = {"i64", "i32",   "f32",   "f64",   "truth",
                                        "few", "holes", "fixed", "ragged"};
    for (int f = 0; f < FILES; f++) {
        if (!readable(files[f])) continue;
        cgs_parquet *p;
        OK(cgs_parquet_open(&p, golden(files[f])));
        assert_int_equal(cgs_parquet_rows(p), ROWS);
        assert_int_equal(cgs_parquet_columns(p), 10);
        for (size_t c = 0; c < sizeof names / sizeof names[0]; c++) {
            cgs_parquet_data d;
            int at = cgs_parquet_find(p, names[c]);
            assert_true(at >= 0);
            assert_int_equal(cgs_parquet_column_at(p, at)->list, c >= 7);
            if (cgs_parquet_read(p, at, &d) != CGS_OK)
                fail_msg("%s, %s: %s", files[f], names[c], cgs_last_error());
            for (int r = 0; r < ROWS; r++) {
                int n = c < 7 ? 1 : c == 7 ? 3 : r % 4;
                assert_int_equal(d.begin[r + 1] - d.begin[r], n);
                for (int i = 0; i < n; i++) {
                    double want = expected(names[c], r, i), got = d.value[d.begin[r] + i];
                    if (!(got == want || (isnan(got) && isnan(want))))
                        fail_msg("%s, %s, row %d: %g instead of %g", files[f], names[c], r, got,
                                 want);
                }
            }
            cgs_parquet_data_free(&d);
        }
        cgs_parquet_data d;
        int text = cgs_parquet_find(p, "text");
        assert_true(text >= 0 && !cgs_parquet_column_at(p, text)->number);
        REFUSED(cgs_parquet_read(p, text, &d), CGS_EFORMAT, "\"text\" holds no numbers");
        assert_int_equal(cgs_parquet_find(p, "none"), -1);
        cgs_parquet_close(p);
    }
}

static void without_snappy(void **state) {
    (void)state;
#ifdef CGS_WITH_SNAPPY
    skip();
#else
    cgs_parquet *p;
    cgs_parquet_data d;
    OK(cgs_parquet_open(&p, golden("arrow_snappy.parquet")));
    REFUSED(cgs_parquet_read(p, 0, &d), CGS_EFORMAT, "install libsnappy-dev");
    cgs_parquet_close(p);
#endif
}

/* ---- what is no Parquet file ---------------------------------------------------------------- */

static void strangers(void **state) {
    (void)state;
    cgs_parquet *p;
    char path[128];
    snprintf(path, sizeof path, "%s/no.parquet", scratch);
    REFUSED(cgs_parquet_open(&p, path), CGS_EIO, "no.parquet");
    OK(cgs_write_file(path, "PAR1", 4));
    REFUSED(cgs_parquet_open(&p, path), CGS_EFORMAT, "no.parquet");
    OK(cgs_write_file(path, "PAR1\xff\xff\xff\x7fPAR1", 12));
    REFUSED(cgs_parquet_open(&p, path), CGS_EFORMAT, "the length of its footer");
    OK(cgs_write_file(path, "PAR1\0\0\0\0PARE", 12));
    REFUSED(cgs_parquet_open(&p, path), CGS_EFORMAT, "encrypted");
    OK(cgs_write_file(path, "PAR1\0\1\0\0\0PAR1", 13));
    REFUSED(cgs_parquet_open(&p, path), CGS_EFORMAT, "its footer");
    assert_null(p);
}

/* everything a user does; true when nothing was noticed */
static bool use(const char *path) {
    cgs_parquet *p;
    bool whole = true;
    if (cgs_parquet_open(&p, path) != CGS_OK) return false;
    for (int c = 0; c < cgs_parquet_columns(p); c++) {
        cgs_parquet_data d;
        if (!cgs_parquet_column_at(p, c)->number) continue;
        cgs_status rc = cgs_parquet_read(p, c, &d);
        assert_true(rc == CGS_OK || rc == CGS_EFORMAT);
        whole = whole && rc == CGS_OK;
        double sum = 0; /* every value can be read */
        for (int64_t i = 0; rc == CGS_OK && i < d.count; i++) sum += d.value[i];
        assert_true(sum == sum || sum != sum);
        cgs_parquet_data_free(&d);
    }
    cgs_parquet_close(p);
    return whole;
}

static void damaged(void **state) {
    (void)state;
    char path[128], *data;
    size_t n;
    int refused = 0, all = 0;
    snprintf(path, sizeof path, "%s/damaged.parquet", scratch);
    for (int f = 0; f < FILES; f++) {
        OK(cgs_read_file(golden(files[f]), 1 << 20, &data, &n));
        for (int i = 0; i < 1500; i++, all++) {
            cgs_rng rng = cgs_rng_stream(31, CGS_STREAM_TEST, (uint64_t)(f * 10000 + i));
            char *copy = malloc(n);
            size_t length = n;
            assert_non_null(copy);
            memcpy(copy, data, n);
            /* the footer decides most, so half of the changes are there */
            size_t from = i % 2 ? n - n / 4 : 0;
            for (uint64_t k = cgs_rng_below(&rng, 4) + 1; k > 0; k--) {
                size_t at = from + (size_t)cgs_rng_below(&rng, n - from);
                if (i % 3)
                    copy[at] = (char)(copy[at] ^ (1 << cgs_rng_below(&rng, 8)));
                else
                    copy[at] = (char)cgs_rng_below(&rng, 256);
            }
            if (i % 7 == 0) { /* a footer that ends early, or pages that do */
                length = (size_t)cgs_rng_below(&rng, n);
                if (length >= 8 && i % 2) memcpy(copy + length - 8, data + n - 8, 8);
            }
            OK(cgs_write_file(path, copy, length));
            refused += !use(path);
            free(copy);
        }
        free(data);
    }
    printf("%d of %d damaged files refused\n", refused, all);
    assert_true(refused > all / 4);
}

/* ---- Thrift ------------------------------------------------------------------------------- */

static void thrift(void **state) {
    (void)state;
    /* 1: i32 -1, 2: true, 20: "ab", 21: list of two structs { 1: byte 7 }, 22: map, stop */
    const uint8_t text[] = {0x15, 0x01, 0x11, 0x08, 0x28, 2, 'a',  'b', 0x19, 0x2c, 0x13, 7,
                            0x00, 0x13, 7,    0x00, 0x1b, 1, 0x88, 1,   'k',  1,    'v',  0x00};
    cgs_thrift t = {text, text + sizeof text, false};
    cgs_thrift_type type, element;
    int id = 0;
    size_t n;
    assert_true(cgs_thrift_field(&t, &id, &type) && id == 1);
    assert_int_equal(cgs_thrift_integer(&t, type), -1);
    assert_true(cgs_thrift_field(&t, &id, &type) && id == 2);
    assert_int_equal(cgs_thrift_integer(&t, type), 1);
    assert_true(cgs_thrift_field(&t, &id, &type) && id == 20);
    assert_memory_equal(cgs_thrift_binary(&t, type, &n), "ab", 2);
    assert_int_equal(n, 2);
    assert_true(cgs_thrift_field(&t, &id, &type) && id == 21);
    cgs_thrift again = t;
    assert_int_equal(cgs_thrift_list(&t, type, &element), 2);
    assert_int_equal(element, CGS_THRIFT_STRUCT);
    cgs_thrift_skip(&again, type);
    assert_true(cgs_thrift_field(&again, &id, &type) && id == 22);
    cgs_thrift_skip(&again, type);
    assert_false(cgs_thrift_field(&again, &id, &type));
    assert_false(again.bad);
    assert_ptr_equal(again.at, again.end);
    /* too deep, too long, cut off */
    uint8_t deep[64];
    memset(deep, 0x19, sizeof deep); /* lists of lists of ... */
    t = (cgs_thrift){deep, deep + sizeof deep, false};
    cgs_thrift_skip(&t, CGS_THRIFT_LIST);
    assert_true(t.bad);
    const uint8_t lying[] = {0xf5, 0xff, 0xff, 0xff, 0x7f};
    t = (cgs_thrift){lying, lying + sizeof lying, false};
    assert_int_equal(cgs_thrift_list(&t, CGS_THRIFT_LIST, &element), 0);
    assert_true(t.bad);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(columns), cmocka_unit_test(without_snappy),
                                       cmocka_unit_test(strangers), cmocka_unit_test(damaged),
                                       cmocka_unit_test(thrift)};
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}

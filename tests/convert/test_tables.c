/* test_tables.c - tables of text and the folders they belong to: what they hold, and what is left
 * of them when letters are changed, cut off and put in. */
#include "test_io.h"

#include <math.h>
#include <sys/stat.h>

#include "convert/recording.h"
#include "expect.h"
#include "io/csv.h"
#include "io/png.h"

enum { ROWS = 6, SIDE = 8, DAMAGED = 6000 };

static const char table[] = "time;action_0;action_1;\"a \"\"name\"\"\";note\r\n"
                            "0.0;1;-2;0.5;x\n"
                            "0.1;2;-4;;\n"
                            "0.2;3;-6;NaN;\"a;b\"\n"
                            "\n"
                            "0.3;4;-8;1e3;\"two\nlines\"\n"
                            "0.4;5;-1e-3;True;\n"
                            "0.5;6;7;false;end";

static void cells(void **state) {
    (void)state;
    const char *path = in_scratch("good.csv");
    cgs_csv c;
    double v;
    OK(cgs_write_file(path, table, strlen(table)));
    OK(cgs_csv_read(&c, path));
    assert_int_equal(c.columns, 5);
    assert_int_equal(c.rows, ROWS);
    assert_string_equal(c.name[3], "a \"name\"");
    assert_string_equal(c.cell[2 * 5 + 4], "a;b");
    assert_string_equal(c.cell[3 * 5 + 4], "two\nlines");
    assert_true(cgs_csv_number(&c, 1, 2, &v) && v == -4);
    assert_true(cgs_csv_number(&c, 1, 3, &v) && isnan(v));
    assert_true(cgs_csv_number(&c, 4, 3, &v) && v == 1);
    assert_false(cgs_csv_number(&c, 0, 4, &v));
    cgs_csv_free(&c);
}

/* every cell is a text inside the file's; true when it was taken */
static bool read_table(const char *path) {
    cgs_csv c;
    double v;
    size_t letters = 0;
    cgs_status rc = cgs_csv_read(&c, path);
    assert_true(rc == CGS_OK || rc == CGS_EFORMAT);
    for (size_t i = 0; rc == CGS_OK && i < c.columns; i++) letters += strlen(c.name[i]);
    for (size_t r = 0; rc == CGS_OK && r < c.rows; r++)
        for (size_t i = 0; i < c.columns; i++) {
            letters += strlen(c.cell[r * c.columns + i]);
            (void)cgs_csv_number(&c, r, i, &v);
        }
    assert_true(letters <= 2 * sizeof table);
    cgs_csv_free(&c);
    return rc == CGS_OK;
}

/* what converting does with a folder; true when nothing was noticed */
static bool read_folder(const char *path) {
    cgs_recording *r;
    cgs_choices choices = {.frame_rate = 10};
    int64_t rows;
    cgs_status rc = cgs_recording_open(&r, path, &choices);
    if (rc != CGS_OK) return false;
    rc = r->begin(r->self, 0, &rows);
    for (int i = 0; rc == CGS_OK && i < r->columns; i++) {
        assert_in_range(rows, 1, 64);
        assert_in_range(r->column[i].values, 1, 4096);
        double *out = malloc((size_t)rows * (size_t)r->column[i].values * sizeof *out);
        assert_non_null(out);
        rc = r->numbers(r->self, i, out);
        free(out);
    }
    cgs_recording_close(r);
    return rc == CGS_OK;
}

/* one to four letters changed, or a part left out, or one put in; the caller frees it */
static char *spoil(int i, size_t *length) {
    static const char meant[] = ";,\"\n\r\t 0-eN_.\xef\xbb";
    cgs_rng rng = cgs_rng_stream(37, CGS_STREAM_TEST, (uint64_t)i);
    size_t n = strlen(table), at = (size_t)cgs_rng_below(&rng, n), end;
    char *copy = malloc(2 * n);
    assert_non_null(copy);
    memcpy(copy, table, n);
    *length = n;
    switch (i % 4) {
    case 0: *length = at; break;
    case 1: /* a part twice */
        end = at + (size_t)cgs_rng_below(&rng, n - at);
        memcpy(copy + end, table + at, n - at);
        *length = end + n - at;
        break;
    default:
        for (uint64_t k = cgs_rng_below(&rng, 4) + 1; k > 0; k--) {
            copy[cgs_rng_below(&rng, n)] = i % 4 == 2 ? meant[cgs_rng_below(&rng, sizeof meant)]
                                                      : (char)cgs_rng_below(&rng, 256);
        }
    }
    return copy;
}

static void damaged(void **state) {
    (void)state;
    char folder[256], path[300];
    uint8_t rgb[SIDE * SIDE * 3] = {0};
    int tables = 0, folders = 0;
    snprintf(folder, sizeof folder, "%s/run", scratch);
    assert_int_equal(mkdir(folder, 0777), 0);
    for (int i = 0; i < ROWS; i++) {
        snprintf(path, sizeof path, "%s/%d.png", folder, i);
        OK(cgs_png_write(path, rgb, SIDE, SIDE));
    }
    snprintf(path, sizeof path, "%s/table.csv", folder);
    OK(cgs_write_file(path, table, strlen(table)));
    if (!read_folder(folder)) fail_msg("the whole one: %s", cgs_last_error());
    for (int i = 0; i < DAMAGED; i++) {
        size_t n;
        char *copy = spoil(i, &n);
        OK(cgs_write_file(path, copy, n));
        tables += read_table(path);
        folders += read_folder(folder);
        free(copy);
    }
    printf("of %d damaged tables %d were taken, and %d of their folders\n", DAMAGED, tables,
           folders);
    assert_in_range(tables, DAMAGED / 20, DAMAGED - DAMAGED / 20);
    assert_in_range(folders, 1, tables);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(cells), cmocka_unit_test(damaged)};
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}

/* test_features.c - features of frames on disk: what is written is read, of the right network and
 * dataset only, and a killed writer resumes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "data/features.h"
#include "expect.h"
#include "golden.h"

static char scratch[64];

/* three rows of a network, of a dataset of a few bytes */
typedef struct feature_case {
    char data[128], path[128]; /* the dataset, the feature file */
    float rows[3][5];
    cgs_features_key key, other; /* other: of another network */
} feature_case;

static void put_text(const char *path, const char *mode, const char *text) {
    FILE *f = fopen(path, mode);
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void make_features(feature_case *c, const char *name) {
    snprintf(c->data, sizeof c->data, "%s/data.h5", scratch);
    snprintf(c->path, sizeof c->path, "%s/%s", scratch, name);
    put_text(c->data, "w", "images");
    for (uint32_t i = 0; i < 15; i++) c->rows[i / 5][i % 5] = (float)golden_unit("row", i);
    c->key = c->other = (cgs_features_key){77, c->data, 3, sizeof c->rows[0]};
    c->other.network = 78;
}

static void check_rows(cgs_features *s, const feature_case *c) {
    float back[5];
    for (int i = 0; i < 3; i++) {
        OK(cgs_features_read(s, i, back));
        assert_memory_equal(back, c->rows[i], sizeof back);
    }
}

static void test_file(void **state) {
    (void)state;
    feature_case c;
    cgs_features_writer w;
    cgs_features *s;
    float back[5];
    make_features(&c, "f.features");
    assert_int_equal(cgs_features_open(&s, c.path, &c.key), CGS_EIO);
    OK(cgs_features_begin(&w, c.path, &c.key));
    OK(cgs_features_append(&w, c.rows, 2));
    OK(cgs_features_append(&w, c.rows[2], 1));
    OK(cgs_features_commit(&w));
    OK(cgs_features_open(&s, c.path, &c.key));
    check_rows(s, &c);
    assert_int_equal(cgs_features_read(s, 3, back), CGS_EARG);
    cgs_features_close(s);
    /* another network, another dataset */
    REFUSED(cgs_features_open(&s, c.path, &c.other), CGS_EFORMAT, "another network");
    put_text(c.data, "a", "more");
    REFUSED(cgs_features_open(&s, c.path, &c.key), CGS_EFORMAT, "another network, dataset");
    /* damage in a row is found when it is read */
    put_text(c.data, "w", "images");
    OK(cgs_features_begin(&w, c.path, &c.key));
    OK(cgs_features_append(&w, c.rows, 3));
    OK(cgs_features_commit(&w));
    FILE *f = fopen(c.path, "r+");
    fseek(f, -(8 + 4 + 4), SEEK_END); /* the last row, before padding and checksum */
    fputc(99, f);
    fclose(f);
    OK(cgs_features_open(&s, c.path, &c.key));
    OK(cgs_features_read(s, 0, back));
    REFUSED(cgs_features_read(s, 2, back), CGS_EFORMAT, "row 2 is damaged");
    cgs_features_close(s);
}

static off_t file_bytes(const char *path) {
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_size;
}

/* complete rows of a killed writer are kept, and only by their own */
static void test_continues(void **state) {
    (void)state;
    feature_case c;
    cgs_features_writer w;
    cgs_features *s;
    char part[144];
    make_features(&c, "c.features");
    snprintf(part, sizeof part, "%s.part", c.path);
    OK(cgs_features_begin(&w, c.path, &c.key));
    OK(cgs_features_append(&w, c.rows, 2));
    cgs_features_pause(&w);
    assert_int_equal(cgs_features_open(&s, c.path, &c.key), CGS_EIO); /* not before its end */
    OK(cgs_features_begin(&w, c.path, &c.key));
    assert_int_equal(w.written, 2);
    cgs_features_pause(&w);
    /* half a row, then a row that never reached the disk */
    assert_int_equal(truncate(part, file_bytes(part) - 10), 0);
    OK(cgs_features_begin(&w, c.path, &c.key));
    assert_int_equal(w.written, 1);
    OK(cgs_features_append(&w, c.rows[1], 1));
    cgs_features_pause(&w);
    FILE *f = fopen(part, "r+");
    fseek(f, -20, SEEK_END);
    fputs("zeros", f);
    fclose(f);
    OK(cgs_features_begin(&w, c.path, &c.key));
    assert_int_equal(w.written, 1);
    assert_int_equal(cgs_features_commit(&w), CGS_EARG); /* rows are missing */
    OK(cgs_features_begin(&w, c.path, &c.key));
    assert_int_equal(w.written, 1);
    OK(cgs_features_append(&w, c.rows[1], 2));
    OK(cgs_features_commit(&w));
    OK(cgs_features_open(&s, c.path, &c.key));
    check_rows(s, &c);
    cgs_features_close(s);
    /* another network starts over */
    OK(cgs_features_begin(&w, c.path, &c.key));
    OK(cgs_features_append(&w, c.rows, 1));
    cgs_features_pause(&w);
    OK(cgs_features_begin(&w, c.path, &c.other));
    assert_int_equal(w.written, 0);
    cgs_features_pause(&w);
}

static int begin(void **state) {
    (void)state;
    strcpy(scratch, "/tmp/cgs_features_XXXXXX");
    return !mkdtemp(scratch);
}

static int end(void **state) {
    (void)state;
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", scratch);
    return system(command) != 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_continues),
    };
    return cmocka_run_group_tests(tests, begin, end);
}

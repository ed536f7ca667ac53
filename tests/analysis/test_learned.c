/* test_learned.c - what is advised for which numbers, what the file holds, and columns of numbers
 * of a dataset. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "analysis/columns.h"
#include "analysis/learned.h"
#include "core/file.h"
#include "data/source.h"
#include "expect.h"

/* a model that has learned */
static cgs_learned good(void) {
    return (cgs_learned){.held_out = true,
                         .episodes = 5,
                         .frames = 50,
                         .ahead = {{1, 0.05, 0.3, 0.9}, {5, 0.2, 1.2, 0.9}},
                         .columns = 1,
                         .column = {{"state", 0.95, 0.97}},
                         .pixels = 0.03,
                         .picture = 0.5,
                         .latent = 0.4,
                         .weights = 0x123456789abcdef0u};
}

static void advised(cgs_learned r, int sentences, const char *words) {
    cgs_learned_advise(&r);
    bool found = false;
    for (int i = 0; i < r.advices; i++) found = found || strstr(r.advice[i], words);
    if (!found || r.advices != sentences)
        fail_msg("%d sentences, the first \"%s\", not \"%s\"", r.advices, r.advice[0], words);
}

static void test_advice(void **state) {
    (void)state;
    cgs_learned r = good();
    advised(r, 1, "planning can work");
    r.ahead[0].model = 0.85;
    advised(r, 1, "It does not predict");
    r.ahead[0].model = 0.31;
    advised(r, 1, "predicts worse (0.31) than a copy of the latent (0.3)");
    r = good();
    r.ahead[1].model = 0.85;
    advised(r, 1, "5 blocks ahead its error (0.85) is that of the mean");
    r.ahead[1] = (cgs_learned_errors){5, 0.5, 0.4, 0.9};
    advised(r, 1, "5 blocks ahead it predicts worse (0.5) than a copy");
    r = good();
    r.pixels = 0.0005;
    advised(r, 2, "0.05 % of the pixels: a larger model.frameskip");
    r = good();
    r.latent = 0.9;
    advised(r, 2, "a smaller model.frameskip");
    r = good();
    r.column[0].nonlinear = 0.4;
    advised(r, 2, "do not tell state");
    r.column[0].nonlinear = NAN; /* never changes: nothing to tell */
    advised(r, 1, "planning can work");
    r.picture = r.latent = NAN; /* one episode: nothing to compare with */
    advised(r, 1, "planning can work");
}

static void test_file(void **state) {
    (void)state;
    char dir[] = "/tmp/test_learned-XXXXXX", path[64];
    cJSON *doc, *back;
    cgs_learned r = good();
    r.column[0].linear = NAN;
    cgs_learned_advise(&r);
    assert_non_null(mkdtemp(dir));
    OK(cgs_learned_read(&back, dir));
    assert_null(back); /* there is none */
    OK(cgs_learned_document(&doc, &r, "cgs train"));
    char *text = cJSON_PrintUnformatted(doc);
    snprintf(path, sizeof path, "%s/%s", dir, CGS_LEARNED_FILE);
    OK(cgs_write_file(path, text, strlen(text)));
    OK(cgs_learned_read(&back, dir));
    assert_true(cJSON_Compare(doc, back, true));
    assert_string_equal(cJSON_GetObjectItem(back, "weights")->valuestring, "123456789abcdef0");
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(back, "prediction")), 2);
    const cJSON *column = cJSON_GetArrayItem(cJSON_GetObjectItem(back, "columns"), 0);
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(column, "linear")));
    OK(cgs_write_file(path, "[1]", 3));
    cJSON *broken;
    REFUSED(cgs_learned_read(&broken, dir), CGS_EFORMAT, "not a file of what a model has learned");
    remove(path);
    rmdir(dir);
    cJSON_free(text);
    cJSON_Delete(doc);
    cJSON_Delete(back);
}

/* rows of a source that counts */
static cgs_status counting(void *self, int column, int64_t first, int count, int stride,
                           float *out) {
    const cgs_column *c = (const cgs_column *)self + column;
    for (int r = 0; r < count; r++)
        for (size_t v = 0; v < c->values; v++)
            *out++ = (float)(1000 * column + 10 * (first + r * stride) + (int64_t)v);
    return CGS_OK;
}

static void test_columns(void **state) {
    (void)state;
    cgs_column c[] = {
        {.name = "pixels", .values = 12, .rows = 9, .readable = true, .dtype = CGS_COL_F32},
        {.name = "action", .values = 2, .rows = 9, .readable = true, .dtype = CGS_COL_F32},
        {.name = "x", .values = 2, .rows = 9, .readable = true, .dtype = CGS_COL_F32},
        {.name = "step_idx", .values = 1, .rows = 9, .readable = true, .dtype = CGS_COL_F32},
        {.name = "words", .values = 1, .rows = 9},
        {.name = "wide", .values = 65, .rows = 9, .readable = true, .dtype = CGS_COL_F32},
        {.name = "short", .values = 1, .rows = 8, .readable = true, .dtype = CGS_COL_F32},
        {.name = "y", .values = 1, .rows = 9, .readable = true, .dtype = CGS_COL_F32}};
    cgs_source s = {.path = "a.h5",
                    .rows = 9,
                    .columns = c,
                    .column_count = 8,
                    .pixels = 0,
                    .action = 1,
                    .self = c,
                    .read_rows = counting};
    cgs_numeric n;
    OK(cgs_numeric_columns(&n, &s, NULL, 0));
    assert_int_equal(n.count, 2);
    assert_int_equal(n.width, 3);
    double out[6];
    OK(cgs_numeric_read(&n, &s, 3, 2, 4, out));
    const double want[6] = {2030, 2031, 7030, 2070, 2071, 7070};
    assert_memory_equal(out, want, sizeof want);
    const char *const one[] = {"y"}, *const none[] = {"words"};
    OK(cgs_numeric_columns(&n, &s, one, 1));
    assert_int_equal(n.width, 1);
    REFUSED(cgs_numeric_columns(&n, &s, none, 1), CGS_EARG, "it has: x, y");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_advice),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_core.c - the ground: random streams, settings, files, status, schedule, references. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/arena.h"
#include "core/config.h"
#include "core/environment.h"
#include "core/file.h"
#include "core/log.h"
#include "core/rng.h"
#include "loss/objective.h"
#include "loss/reference.h"
#include "train/gradient_monitor.h"
#include "train/schedule.h"
#include "train/train.h"
#include "variable.h"

/* ---- status -------------------------------------------------------------------------- */

/* what a thread says of its failure reaches the thread that waits for it */
static void test_first_failure(void **state) {
    (void)state;
    cgs_failure f = {0};
    assert_false(cgs_failure_any(&f));
    assert_int_equal(cgs_failure_report(&f), CGS_OK);
    cgs_fail(CGS_EARG, "something else");
#pragma omp parallel for num_threads(4)
    for (int i = 0; i < 100; i++) {
        cgs_failure_note(&f, CGS_OK);
        if (i % 10 == 7) cgs_failure_note(&f, cgs_fail(CGS_EIO, "row %d", i));
    }
    assert_true(cgs_failure_any(&f));
    assert_int_equal(cgs_failure_report(&f), CGS_EIO);
    int row = -1;
    assert_int_equal(sscanf(cgs_last_error(), "row %d", &row), 1);
    assert_int_equal(row % 10, 7);
    /* later ones do not replace it */
    cgs_failure_note(&f, cgs_fail(CGS_ENUMERIC, "late"));
    assert_int_equal(cgs_failure_report(&f), CGS_EIO);
}

/* ---- random numbers ------------------------------------------------------------------ */

static void test_streams(void **state) {
    (void)state;
    cgs_rng a = cgs_rng_stream(7, CGS_STREAM_DATA, 0), b = cgs_rng_stream(7, CGS_STREAM_INIT, 0),
            c = cgs_rng_stream(7, CGS_STREAM_DATA, 1),
            again = cgs_rng_stream(7, CGS_STREAM_DATA, 0);
    uint64_t first = cgs_rng_u64(&a);
    assert_true(first != cgs_rng_u64(&b) && first != cgs_rng_u64(&c));
    assert_true(first == cgs_rng_u64(&again));
    /* the n-th draw needs no history */
    for (int i = 0; i < 10; i++) cgs_rng_u64(&a);
    assert_true(cgs_rng_at(a.key, 11) == cgs_rng_u64(&a));
}

static void test_quantile(void **state) {
    (void)state;
    /* the distribution function undoes the quantile, far into both tails */
    for (double p = 1e-12; p < 0.5; p *= 1.7) {
        double x = cgs_normal_quantile(p);
        double back = 0.5 * erfc(-x / sqrt(2.0));
        assert_true(fabs(back / p - 1) < 1e-12);
        assert_true(fabs(cgs_normal_quantile(1 - p) + x) < 1e-4 + 1e-16 / p);
    }
    assert_true(cgs_normal_quantile(0.5) == 0);
    assert_true(fabs(cgs_normal_quantile(0.975) - 1.959963984540054) < 1e-14);
}

static void test_moments(void **state) {
    (void)state;
    enum { N = 400000 };
    cgs_rng r = cgs_rng_stream(1, CGS_STREAM_TEST, 0);
    double m1 = 0, m2 = 0, m4 = 0, u = 0;
    for (int i = 0; i < N; i++) {
        double x = cgs_rng_normal(&r);
        m1 += x / N;
        m2 += x * x / N;
        m4 += x * x * x * x / N;
        u += cgs_rng_f32(&r) / (double)N;
    }
    /* five standard errors */
    assert_true(fabs(m1) < 5 / sqrt(N) && fabs(m2 - 1) < 5 * sqrt(2.0 / N));
    assert_true(fabs(m4 - 3) < 5 * sqrt(96.0 / N) && fabs(u - 0.5) < 5 * sqrt(1.0 / 12 / N));
    int count[7] = {0};
    for (int i = 0; i < 70000; i++) count[cgs_rng_below(&r, 7)]++;
    for (int i = 0; i < 7; i++) assert_true(abs(count[i] - 10000) < 500);
}

/* ---- settings ------------------------------------------------------------------------ */

static void test_settings(void **state) {
    (void)state;
    cgs_run_config c = {0};
    cgs_section s[2];
    cgs_run_sections(&c, s);
    cgs_config_defaults(s, 2);
    assert_int_equal(c.train.batch, 128);
    assert_true(c.train.lr == 5e-5f && c.train.cache);
    assert_string_equal(c.train.split.s, "episode");

    assert_int_equal(cgs_config_assign(s, 2, "optim.lr = 1e-3"), CGS_OK);
    assert_true(c.train.lr == 1e-3f);
    static const char *const wrong[] = {
        "optim.lr=fast",   "optim.lr=nan",  "optim.lr=1e99",    "train.batch=1",
        "train.batch=3.5", "train.batch=",  "data.cache=maybe", "train.seed=-1",
        "no equals sign",  "optim.lr=auto", "optim.rl=1"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(cgs_config_assign(s, 2, wrong[i]), CGS_EARG);
    assert_non_null(strstr(cgs_last_error(), "did you mean \"optim.lr\""));
    assert_true(c.train.lr == 1e-3f && c.train.batch == 128); /* untouched by the wrong ones */

    /* every default and every changed value survives a dump and a read */
    c.train.lr = 0.1f;
    strcpy(c.train.method.s, "something");
    char path[] = "/tmp/cgs-config-XXXXXX";
    int fd = mkstemp(path);
    FILE *f = fdopen(fd, "w");
    cgs_config_dump(s, 2, f, true);
    fclose(f);
    cgs_run_config d = {0};
    cgs_section t[2];
    cgs_run_sections(&d, t);
    memset(&d, 0, sizeof d);
    assert_int_equal(cgs_config_read(t, 2, path), CGS_OK);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < s[i].count; k++) {
            char a[CGS_TEXT_MAX], b[CGS_TEXT_MAX];
            cgs_config_format(&s[i].fields[k], s[i].values, a, sizeof a);
            cgs_config_format(&t[i].fields[k], t[i].values, b, sizeof b);
            assert_string_equal(a, b);
        }
    /* broken files: a sentence with the line, nothing worse */
    static const char *const files[] = {"optim.lr", "x = 1", "optim.lr = 1\noptim.lr = red\n"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        assert_int_equal(cgs_write_file(path, files[i], strlen(files[i])), CGS_OK);
        assert_int_equal(cgs_config_read(t, 2, path), CGS_EFORMAT);
    }
    assert_non_null(strstr(cgs_last_error(), ":2: optim.lr: \"red\""));
    assert_int_equal(cgs_write_file(path, "a\0b", 3), CGS_OK);
    assert_int_equal(cgs_config_read(t, 2, path), CGS_EFORMAT);
    unlink(path);
    assert_int_equal(cgs_config_read(t, 2, path), CGS_EIO);
}

static void test_methods(void **state) {
    (void)state;
    cgs_run_config c = {0};
    assert_int_equal(cgs_run_preset(&c, "paper"), CGS_OK);
    assert_int_equal(cgs_run_method(&c, "lewm-cgs", "pusht"), CGS_OK);
    assert_true(c.train.cgs_weight == 0.01f && c.train.ts_weight == 0);
    assert_int_equal(cgs_run_method(&c, "lewm-cgs", "cube"), CGS_OK);
    assert_string_equal(c.train.reference.s, "xyz-grasp");
    assert_int_equal(cgs_run_method(&c, "lewm-ts", "tworooms"), CGS_OK);
    assert_true(c.train.ts_weight == 0.5f && c.train.cgs_weight == 0);
    assert_int_equal(cgs_run_method(&c, "lewm-cgs-transition", "reacher"), CGS_OK);
    assert_string_equal(c.train.reference.s, "transition");
    assert_int_equal(cgs_run_method(&c, "lewm-best", ""), CGS_EARG);
    assert_int_equal(cgs_run_preset(&c, "huge"), CGS_EARG);
}

/* ---- files --------------------------------------------------------------------------- */

/* writes a file that another thread is writing; what it found there once it was its turn */
static void *write_second(void *path) {
    cgs_newfile n;
    char *before = NULL;
    size_t bytes;
    if (cgs_newfile_open(&n, path) != CGS_OK) return NULL;
    if (cgs_read_file(path, 100, &before, &bytes) != CGS_OK) before = NULL;
    fputs("second", n.f);
    if (cgs_newfile_commit(&n) != CGS_OK) {
        free(before);
        return NULL;
    }
    return before;
}

static void test_files(void **state) {
    (void)state;
    void *between;
    char dir[] = "/tmp/cgs-core-XXXXXX", path[256], *data;
    size_t bytes;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/a/b/c", dir);
    assert_int_equal(cgs_make_dirs(path), CGS_OK);
    assert_int_equal(cgs_make_dirs(path), CGS_OK);
    snprintf(path, sizeof path, "%s/a/b/c/file", dir);
    assert_int_equal(cgs_write_file(path, "hello", 5), CGS_OK);
    assert_int_equal(cgs_read_file(path, 5, &data, &bytes), CGS_OK);
    assert_int_equal(bytes, 5);
    assert_string_equal(data, "hello");
    free(data);
    assert_int_equal(cgs_read_file(path, 4, &data, &bytes), CGS_EFORMAT);
    assert_int_equal(cgs_read_file(dir, 100, &data, &bytes), CGS_EIO);

    /* an abandoned file leaves the old one */
    cgs_newfile n;
    assert_int_equal(cgs_newfile_open(&n, path), CGS_OK);
    fputs("half", n.f);
    cgs_newfile_abandon(&n);
    assert_int_equal(cgs_read_file(path, 100, &data, &bytes), CGS_OK);
    assert_string_equal(data, "hello");
    free(data);
    assert_int_equal(cgs_write_file("/nowhere/at/all", "x", 1), CGS_EIO);

    /* of two that write at once the second waits: both files are whole, the later one stays */
    assert_int_equal(cgs_newfile_open(&n, path), CGS_OK);
    fputs("the first of two", n.f);
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, write_second, path), 0);
    /* long enough to mix their bytes without the lock */
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    fputs(" is whole", n.f);
    assert_int_equal(cgs_newfile_commit(&n), CGS_OK);
    assert_int_equal(pthread_join(other, &between), 0);
    assert_string_equal(between, "the first of two is whole");
    free(between);
    assert_int_equal(cgs_read_file(path, 100, &data, &bytes), CGS_OK);
    assert_string_equal(data, "second");
    free(data);
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

static void lay_out(cgs_arena *a, float **x, int **y) {
    *x = CGS_TAKE(a, float, 3);
    *y = CGS_TAKE(a, int, 1000);
}

static void test_arena(void **state) {
    (void)state;
    cgs_arena a = {0};
    float *x;
    int *y;
    lay_out(&a, &x, &y);
    assert_null(y);
    assert_int_equal(cgs_arena_bind(&a, "test"), CGS_OK);
    lay_out(&a, &x, &y);
    assert_true((size_t)x % CGS_ALIGN == 0 && (size_t)y % CGS_ALIGN == 0 && (char *)y > (char *)x);
    y[999] = 1;
    cgs_arena_free(&a);
}

static int logged;
static void count_line(void *user, int level, const char *line) {
    (void)line;
    logged += level == CGS_WARN && user == &logged;
}

static void test_log(void **state) {
    (void)state;
    cgs_set_log(count_line, &logged);
    cgs_log(CGS_WARN, "%d", 1);
    cgs_log(CGS_INFO, "%d", 1);
    cgs_set_log(NULL, NULL);
    assert_int_equal(logged, 1);
}

/* ---- schedule and references --------------------------------------------------------- */

static void test_schedule(void **state) {
    (void)state;
    /* 1000 updates, 10 of warm-up: 0, 0.1, ..., 1, then a cosine to 0 */
    assert_true(cgs_learning_rate(1, 0.01, 0, 1000) == 0);
    assert_true(fabs(cgs_learning_rate(1, 0.01, 5, 1000) - 0.5) < 1e-15);
    assert_true(cgs_learning_rate(1, 0.01, 10, 1000) == 1);
    assert_true(fabs(cgs_learning_rate(1, 0.01, 505, 1000) - 0.5) < 1e-12);
    assert_true(cgs_learning_rate(1, 0.01, 999, 1000) < 1e-5);
    assert_true(cgs_learning_rate(1, 0.01, 0, 50) == 0); /* at least one update of warm-up */
    assert_true(cgs_learning_rate(1, 0.01, 1, 50) == 1);
    assert_true(cgs_clip_scale(0.5, 1) == 1);
    assert_true(fabs(cgs_clip_scale(4, 1) - 1 / 4.000001) < 1e-12);
    assert_true(cgs_ramp(0.5f, 0.05f, 0, 1000) == 0);
    assert_true(fabsf(cgs_ramp(0.5f, 0.05f, 25, 1000) - 0.25f) < 1e-6f);
    assert_true(cgs_ramp(0.5f, 0.05f, 50, 1000) == 0.5f && cgs_ramp(0.5f, 0, 0, 1000) == 0.5f);
}

static void test_references(void **state) {
    (void)state;
    enum { B = 1, T = 3, N = 2, SKIP = 2, A = 5 };
    float a[B * T * SKIP * A], raw[B * T * SKIP * A], out[B * N * SKIP * A], mask[B * N];
    for (int i = 0; i < B * T * SKIP * A; i++) {
        a[i] = (float)i;
        raw[i] = 1;
    }
    raw[4] = -1; /* first transition: the gripper opens in the first of two actions */
    cgs_reference r = {
        .kind = CGS_REF_XYZ_GRASP, .grasp = CGS_GRASP_ALL, .frameskip = SKIP, .action_dim = A};
    assert_int_equal(cgs_reference_width(&r), 6);
    cgs_reference_fill(&r, B, T, N, a, raw, NULL, out, mask);
    assert_true(mask[0] == 0 && mask[1] == 1);
    static const float want[] = {0, 1, 2, 5, 6, 7, 10, 11, 12, 15, 16, 17};
    for (int i = 0; i < 12; i++) assert_true(out[i] == want[i]);
    r.grasp = CGS_GRASP_ANY;
    cgs_reference_fill(&r, B, T, N, a, raw, NULL, out, mask);
    assert_true(mask[0] == 1);
    r.grasp = CGS_GRASP_MEAN; /* (-1 + 1) / 2 is not above 0 */
    cgs_reference_fill(&r, B, T, N, a, raw, NULL, out, mask);
    assert_true(mask[0] == 0);
    r.kind = CGS_REF_XYZ;
    cgs_reference_fill(&r, B, T, N, a, raw, NULL, out, mask);
    assert_true(mask[0] == 1);
    r.kind = CGS_REF_ACTION;
    assert_int_equal(cgs_reference_width(&r), 10);

    /* joints: a quarter turn of the first moves (sin, cos) by (1, -1) */
    const float q[B * T * 2] = {0, 0, 1.57079633f, 0, 1.57079633f, 0};
    r.kind = CGS_REF_TRANSITION;
    cgs_reference_joint_scale(&r, q, q + 2, 1);
    assert_true(fabsf(r.joint_scale[0] - 1) < 1e-6f && r.joint_scale[1] == 1);
    cgs_reference_fill(&r, B, T, N, a, raw, q, out, mask);
    assert_true(fabsf(out[0] - 1) < 1e-6f && out[1] == 0 && fabsf(out[2] + 1) < 1e-6f);
    assert_true(fabsf(out[4]) < 1e-6f); /* second transition: nothing moves */
}

/* 3,000 norms that fall and then waver by half around `end` times what they were; whether that
 * counts as growth */
static bool grows(double end) {
    cgs_gradient_monitor g = {0};
    cgs_rng r = cgs_rng_stream(1, CGS_STREAM_TEST, 0);
    int told = 0;
    for (int i = 0; i < 3000; i++) {
        double usual = 0.5 + 10 * exp(-i / 30.0), later = i > 2000 ? (i - 2000) / 1000.0 : 0;
        told += cgs_gradient_monitor_add(&g, usual * pow(end, later) *
                                                 exp(cgs_rng_range(&r, -0.5, 0.5)));
    }
    assert_true(told < 2);
    return told;
}

static void test_gradient_monitor(void **state) {
    (void)state;
    assert_false(grows(1));
    assert_false(grows(0.1));
    assert_false(grows(3));
    assert_true(grows(50));
    cgs_gradient_monitor one = {0}; /* a single large one is no growth */
    for (int i = 0; i < 1000; i++) assert_false(cgs_gradient_monitor_add(&one, i == 500 ? 1e6 : 1));
}

static void test_environment(void **state) {
    (void)state;
    set_variable("CGS_ROLLOUT", "tiles");
    assert_string_equal(cgs_environment(CGS_ENV_ROLLOUT), "tiles");
    setenv("CGS_ROLLOUT", "tape", 1); /* nobody looks */
    assert_string_equal(cgs_environment(CGS_ENV_ROLLOUT), "tiles");
    set_variable("CGS_ROLLOUT", "");
    assert_null(cgs_environment(CGS_ENV_ROLLOUT));
    set_variable("CGS_ROLLOUT", NULL);
    assert_null(cgs_environment(CGS_ENV_ROLLOUT));
    for (int i = 0; i < CGS_ENV_COUNT; i++) {
        cgs_variable_row row = cgs_environment_row((cgs_variable)i);
        assert_true(*row.name && *row.values && *row.help);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(row.name, cgs_environment_row((cgs_variable)k).name);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_failure), cmocka_unit_test(test_streams),
        cmocka_unit_test(test_quantile),      cmocka_unit_test(test_moments),
        cmocka_unit_test(test_settings),      cmocka_unit_test(test_methods),
        cmocka_unit_test(test_files),         cmocka_unit_test(test_arena),
        cmocka_unit_test(test_log),           cmocka_unit_test(test_schedule),
        cmocka_unit_test(test_references),    cmocka_unit_test(test_gradient_monitor),
        cmocka_unit_test(test_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

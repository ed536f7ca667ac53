/* test_data.c - recording and reading datasets, statistics, windows and splits.
 *
 * With the arguments "record PATH" the program records a dataset instead: the victim of
 * the test that kills it.  "dataset PATH EPISODES LENGTH SIZE" makes one for scripts. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
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

#include "core/file.h"
#include "core/rng.h"
#include "core/threads.h"
#include "data/dataset.h"
#include "data/stats.h"
#include "data/windows.h"
#include "data/writer.h"
#include "expect.h"
#include "same_file.h"
#include "synthetic.h"

static char folder[64];

static const char *at(const char *name) {
    static char path[4][256];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

/* fails, with this code and these words */
#define FAILS(call, code, words)                                                                   \
    do {                                                                                           \
        cgs_status fails_ = (call);                                                                \
        if (fails_ != (code) || !strstr(cgs_last_error(), (words)))                                \
            fail_msg("%s: status %s, \"%s\"", #call, cgs_status_name(fails_), cgs_last_error());   \
    } while (0)

/* ---- writer and reader ---------------------------------------------------------------- */

static void round_trip(void **state) {
    (void)state;
    enum { E = 5, L = 9, S = 24, FRAME = S * S * 3 };
    OK(synthetic_dataset(at("a.h5"), E, L, S, 7));
    assert_false(cgs_file_exists(at("a.h5.part")));
    cgs_dataset *d;
    OK(cgs_dataset_open(&d, at("a.h5")));
    const cgs_source *s = cgs_dataset_source(d);
    assert_int_equal(s->episodes, E);
    assert_int_equal(s->rows, E * L);
    assert_int_equal(s->height, S);
    assert_int_equal(s->width, S);
    assert_int_equal(s->action_dim, 2);
    assert_string_equal(cgs_dataset_attribute(d, "env"), "synthetic");
    assert_string_equal(cgs_dataset_attribute(d, "seed"), "7");
    assert_string_equal(cgs_dataset_attribute(d, "frame_rate"), "10");
    assert_string_equal(cgs_dataset_attribute(d, "code_version"), cgs_version());
    assert_non_null(cgs_dataset_attribute(d, "code_commit"));
    assert_null(cgs_dataset_attribute(d, "nothing"));

    static uint8_t pixels[L * FRAME], read[L * FRAME];
    float action[2 * L], position[2 * L], a[2 * L], p[2 * L];
    double wide[2 * L];
    for (int e = 0; e < E; e++) {
        assert_int_equal(s->ep_len[e], L);
        assert_int_equal(s->ep_offset[e], e * L);
        synthetic_episode(e, L, S, 7, pixels, action, position);
        OK(cgs_dataset_read_pixels(d, e * L, L, read));
        assert_memory_equal(read, pixels, sizeof pixels);
        OK(cgs_dataset_read_rows(d, "action", e * L, L, a));
        OK(cgs_dataset_read_rows(d, "state", e * L, L, p));
        OK(cgs_dataset_read_rows_f64(d, "proprio", e * L, L, wide));
        assert_memory_equal(a, action, sizeof(float) * 2 * (L - 1));
        assert_true(isnan(a[2 * L - 2]) && isnan(a[2 * L - 1]));
        assert_memory_equal(p, position, sizeof p);
        for (int i = 0; i < 2 * L; i++) assert_true(wide[i] == position[i]);
    }
    /* strided reading agrees with plain reading */
    OK(s->read_pixels(s->self, 1, 3, 4, read));
    for (int i = 0; i < 3; i++) {
        OK(cgs_dataset_read_pixels(d, 1 + 4 * i, 1, pixels));
        assert_memory_equal(read + i * FRAME, pixels, FRAME);
    }
    FAILS(cgs_dataset_read_rows(d, "state", E * L - 1, 2, p), CGS_EARG, "do not exist");
    FAILS(cgs_dataset_read_rows(d, "velocity", 0, 1, p), CGS_EARG, "no column \"velocity\"");
    cgs_dataset_close(d);
    FAILS(cgs_dataset_open(&d, at("missing.h5")), CGS_EIO, "missing.h5: No such file");
    assert_null(d);
}

static void number_types(void **state) {
    (void)state;
    const cgs_column_spec columns[] = {{"action", CGS_COL_F64, 1, {2}},
                                       {"count", CGS_COL_I32, 0, {0}},
                                       {"stamp", CGS_COL_I64, 0, {0}},
                                       {"flags", CGS_COL_U8, 1, {3}},
                                       {"grid", CGS_COL_F32, 2, {2, 3}}};
    enum { N = 3 };
    double action[2 * N] = {0.1, -0.2, 1e-3, 4, NAN, NAN};
    int32_t count[N] = {-5, 0, 2000000000};
    int64_t stamp[N] = {-1, 1, INT64_C(1) << 40};
    uint8_t flags[3 * N] = {0, 1, 255, 3, 4, 5, 6, 7, 8};
    float grid[6 * N];
    for (int i = 0; i < 6 * N; i++) grid[i] = (float)i / 3;
    cgs_writer *w;
    int64_t done;
    OK(cgs_writer_create(&w, at("types.h5"), columns, 5));
    OK(cgs_writer_begin(w, &done));
    OK(cgs_writer_add(w, N, (const void *const[]){action, count, stamp, flags, grid}));
    OK(cgs_writer_finish(w));
    cgs_writer_destroy(w);
    cgs_dataset *d;
    OK(cgs_dataset_open(&d, at("types.h5")));
    const cgs_source *s = cgs_dataset_source(d);
    assert_int_equal(s->pixels, -1);
    double v[6 * N];
    OK(cgs_dataset_read_rows_f64(d, "action", 0, N, v));
    for (int i = 0; i < 4; i++) assert_true(v[i] == action[i]);
    OK(cgs_dataset_read_rows_f64(d, "count", 0, N, v));
    for (int i = 0; i < N; i++) assert_true(v[i] == count[i]);
    OK(cgs_dataset_read_rows_f64(d, "stamp", 0, N, v));
    for (int i = 0; i < N; i++) assert_true(v[i] == (double)stamp[i]);
    OK(cgs_dataset_read_rows_f64(d, "flags", 0, N, v));
    for (int i = 0; i < 3 * N; i++) assert_true(v[i] == flags[i]);
    OK(cgs_dataset_read_rows_f64(d, "grid", 0, N, v));
    for (int i = 0; i < 6 * N; i++) assert_true(v[i] == grid[i]);
    const cgs_column *c = &s->columns[cgs_source_find(s, "grid")];
    assert_int_equal(c->rank, 2);
    assert_int_equal(c->shape[1], 3);
    cgs_dataset_close(d);
}

static void writer_refuses(void **state) {
    (void)state;
    const cgs_column_spec one[] = {{"action", CGS_COL_F32, 1, {1}}};
    const cgs_column_spec index[] = {{"step_idx", CGS_COL_I64, 0, {0}}};
    const cgs_column_spec small[] = {{"x", CGS_COL_I16, 0, {0}}};
    cgs_writer *w;
    int64_t done;
    FAILS(cgs_writer_create(&w, at("r.h5"), index, 1), CGS_EARG, "added by the writer");
    FAILS(cgs_writer_create(&w, at("r.h5"), small, 1), CGS_EARG, "as i16");
    OK(cgs_writer_create(&w, at("r.h5"), one, 1));
    OK(cgs_writer_integer(w, "seed", 1));
    FAILS(cgs_writer_integer(w, "seed", 1), CGS_EARG, "twice");
    OK(cgs_writer_begin(w, &done));
    FAILS(cgs_writer_finish(w), CGS_EARG, "no episode");
    float good[] = {1, 2, NAN}, ends[] = {1, 2, 3}, hole[] = {1, NAN, NAN};
    FAILS(cgs_writer_add(w, 3, (const void *const[]){ends}), CGS_ENUMERIC, "row 2 of 3");
    FAILS(cgs_writer_add(w, 3, (const void *const[]){hole}), CGS_ENUMERIC, "row 1 of 3");
    OK(cgs_writer_add(w, 3, (const void *const[]){good}));
    cgs_writer *second;
    OK(cgs_writer_create(&second, at("r.h5"), one, 1));
    OK(cgs_writer_integer(second, "seed", 1));
    FAILS(cgs_writer_begin(second, &done), CGS_EIO, "another process");
    cgs_writer_destroy(second);
    cgs_writer_destroy(w);
    assert_false(cgs_file_exists(at("r.h5")));

    /* continued with other settings: refused by name; with the same: resumes */
    OK(cgs_writer_create(&w, at("r.h5"), one, 1));
    OK(cgs_writer_integer(w, "seed", 2));
    FAILS(cgs_writer_begin(w, &done), CGS_EARG, "begun with \"attribute seed 1\"");
    cgs_writer_destroy(w);
    OK(cgs_writer_create(&w, at("r.h5"), one, 1));
    OK(cgs_writer_integer(w, "seed", 1));
    OK(cgs_writer_begin(w, &done));
    assert_int_equal(done, 1);
    OK(cgs_writer_finish(w));
    cgs_writer_destroy(w);
    OK(cgs_writer_create(&w, at("r.h5"), one, 1));
    FAILS(cgs_writer_begin(w, &done), CGS_EIO, "exists already");
    cgs_writer_destroy(w);
}

static void same_bytes_any_threads(void **state) {
    (void)state;
    int before = cgs_threads();
    cgs_set_threads(1);
    OK(synthetic_dataset(at("t1.h5"), 3, 40, 16, 3));
    cgs_set_threads(3);
    OK(synthetic_dataset(at("t3.h5"), 3, 40, 16, 3));
    cgs_set_threads(before);
    same_file(at("t1.h5"), at("t3.h5"));
}

/* every cut of a journal is continued from the last whole episode */
static void torn_journal(void **state) {
    (void)state;
    const cgs_column_spec one[] = {{"action", CGS_COL_F32, 1, {1}}};
    float rows[3] = {1, 2, NAN};
    cgs_writer *w;
    int64_t done;
    OK(cgs_writer_create(&w, at("cut.h5"), one, 1));
    OK(cgs_writer_begin(w, &done));
    for (int e = 0; e < 3; e++) OK(cgs_writer_add(w, 3, (const void *const[]){rows}));
    cgs_writer_destroy(w);
    char *whole;
    size_t n;
    OK(cgs_read_file(at("cut.h5.part"), 1 << 20, &whole, &n));
    const size_t record = 40 + sizeof rows, head = n - 3 * record;
    for (size_t cut = 0; cut <= n; cut++) {
        OK(cgs_write_file(at("cut.h5.part"), whole, cut));
        OK(cgs_writer_create(&w, at("cut.h5"), one, 1));
        cgs_status rc = cgs_writer_begin(w, &done);
        if (cut < 24 || cut >= head) {
            assert_int_equal(rc, CGS_OK);
            assert_int_equal(done, cut < head ? 0 : (cut - head) / record);
        } else {
            assert_int_equal(rc, CGS_EFORMAT);
        }
        cgs_writer_destroy(w);
    }
    /* damage in the middle record leaves the first */
    whole[head + record + 45] ^= 1;
    OK(cgs_write_file(at("cut.h5.part"), whole, n));
    OK(cgs_writer_create(&w, at("cut.h5"), one, 1));
    OK(cgs_writer_begin(w, &done));
    assert_int_equal(done, 1);
    cgs_writer_destroy(w);
    free(whole);
}

enum { KILL_EPISODES = 120, KILL_LENGTH = 40, KILL_SIZE = 32 };

static pid_t spawn_recording(const char *path) {
    pid_t pid = fork();
    if (pid == 0) {
        execl("/proc/self/exe", "test_data", "record", path, (char *)NULL);
        _exit(127);
    }
    return pid;
}

/* kill -9 at random moments until the recording is through; same bytes as undisturbed */
static void survives_kill(void **state) {
    (void)state;
    OK(synthetic_dataset(at("whole.h5"), KILL_EPISODES, KILL_LENGTH, KILL_SIZE, 5));
    cgs_rng rng = cgs_rng_stream(1, CGS_STREAM_TEST, 99);
    int kills = 0, grown = 0;
    off_t before = 0;
    double patience = 0.002;
    while (!cgs_file_exists(at("killed.h5"))) {
        assert_true(kills < 1000);
        pid_t pid = spawn_recording(at("killed.h5"));
        assert_true(pid > 0);
        struct timespec nap = {0, (long)(1e9 * cgs_rng_range(&rng, 0, patience))};
        nanosleep(&nap, NULL);
        int status;
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        if (WIFSIGNALED(status))
            kills++;
        else
            assert_int_equal(WEXITSTATUS(status), 0);
        struct stat st;
        if (stat(at("killed.h5.part"), &st) == 0 && WIFSIGNALED(status)) {
            grown += before > 0 && st.st_size > before;
            before = st.st_size;
        }
        if (patience < 0.5) patience *= 1.05; /* slow machines get through as well */
        if (cgs_file_exists(at("killed.h5"))) {
            cgs_dataset *d; /* whatever a kill left there is whole */
            OK(cgs_dataset_open(&d, at("killed.h5")));
            assert_int_equal(cgs_dataset_source(d)->episodes, KILL_EPISODES);
            cgs_dataset_close(d);
        }
    }
    print_message("killed %d times, %d of them inside a continued recording\n", kills, grown);
    assert_true(grown > 3);
    same_file(at("whole.h5"), at("killed.h5"));
}

/* ---- statistics ------------------------------------------------------------------------- */

static cgs_status one_column(const char *path, int dims, int rows, const float *data) {
    const cgs_column_spec spec[] = {{"value", CGS_COL_F32, 1, {dims}},
                                    {"action", CGS_COL_F32, 1, {1}}};
    float *action = calloc((size_t)rows, sizeof *action);
    action[rows - 1] = NAN;
    cgs_writer *w;
    int64_t done;
    cgs_status rc = cgs_writer_create(&w, path, spec, 2);
    if (rc == CGS_OK) rc = cgs_writer_begin(w, &done);
    if (rc == CGS_OK) rc = cgs_writer_add(w, rows, (const void *const[]){data, action});
    if (rc == CGS_OK) rc = cgs_writer_finish(w);
    cgs_writer_destroy(w);
    free(action);
    return rc;
}

static void quiet(void *user, int level, const char *line) {
    (void)level;
    snprintf(user, 256, "%s", line);
}

static void statistics(void **state) {
    (void)state;
    /* a row with a NaN does not count, not even its other channels */
    const float data[] = {1, 0.1f, 2, 0.1f, 1000, NAN, 3, 0.1f, 6, 0.1f};
    OK(one_column(at("s.h5"), 2, 5, data));
    cgs_dataset *d;
    OK(cgs_dataset_open(&d, at("s.h5")));
    char line[256] = "";
    cgs_set_log(quiet, line);
    cgs_stats s;
    OK(cgs_stats_compute(&s, cgs_dataset_source(d), "value"));
    cgs_set_log(NULL, NULL);
    assert_int_equal(s.rows, 4);
    assert_int_equal(s.skipped, 1);
    assert_true(s.mean[0] == 3);
    assert_true(fabs(s.std_population[0] - sqrt(14.0 / 4)) < 1e-15);
    assert_true(fabs(s.std_unbiased[0] - sqrt(14.0 / 3)) < 1e-15);
    assert_true(s.low[0] == 1 && s.high[0] == 6);
    assert_false(s.constant[0]);
    assert_true(s.constant[1] && s.std_population[1] == 1 && s.std_unbiased[1] == 1);
    assert_true(s.mean[1] == 0.1f);
    assert_non_null(strstr(line, "channel 1 of \"value\""));
    FAILS(cgs_stats_compute(&s, cgs_dataset_source(d), "nothing"), CGS_EFORMAT, "nothing");
    cgs_dataset_close(d);

    const float infinite[] = {1, 2, INFINITY};
    OK(one_column(at("inf.h5"), 1, 3, infinite));
    OK(cgs_dataset_open(&d, at("inf.h5")));
    FAILS(cgs_stats_compute(&s, cgs_dataset_source(d), "value"), CGS_ENUMERIC,
          "row 2 of episode 0");
    cgs_dataset_close(d);
    const float none[] = {NAN, NAN};
    OK(one_column(at("nan.h5"), 1, 2, none));
    OK(cgs_dataset_open(&d, at("nan.h5")));
    FAILS(cgs_stats_compute(&s, cgs_dataset_source(d), "value"), CGS_ENUMERIC, "no row without");
    cgs_dataset_close(d);
}

/* ---- windows, splits, order --------------------------------------------------------------- */

static const cgs_source *three_episodes(void) {
    static const int64_t offset[] = {30, 0, 7};
    static const int32_t length[] = {20, 5, 22};
    static cgs_source s = {.path = "three", .rows = 50, .episodes = 3};
    s.ep_offset = offset;
    s.ep_len = length;
    return &s;
}

static void windows(void **state) {
    (void)state;
    cgs_windows w;
    OK(cgs_windows_build(&w, three_episodes(), 4, 5));
    assert_int_equal(w.span, 20);
    assert_int_equal(w.count, 1 + 3);
    assert_int_equal(w.skipped, 1);
    const int episode[] = {0, 2, 2, 2}, start[] = {0, 0, 1, 2};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(w.episode[i], episode[i]);
        assert_int_equal(w.start[i], start[i]);
    }
    cgs_windows_free(&w);
    FAILS(cgs_windows_build(&w, three_episodes(), 5, 5), CGS_EFORMAT, "25 rows are needed");
    FAILS(cgs_windows_build(&w, three_episodes(), 0, 5), CGS_EARG, "impossible");
    OK(cgs_windows_build(&w, three_episodes(), 1, 1));
    assert_int_equal(w.count, 47);
    cgs_windows_free(&w);
    /* images in every other row: windows begin there and step over the others */
    cgs_source sparse = *three_episodes();
    sparse.pixels_every = 2;
    OK(cgs_windows_build(&w, &sparse, 3, 6));
    assert_int_equal(w.count, 2 + 3);
    const int even[] = {0, 2, 0, 2, 4};
    for (int i = 0; i < 5; i++) assert_int_equal(w.start[i], even[i]);
    cgs_windows_free(&w);
    FAILS(cgs_windows_build(&w, &sparse, 3, 5), CGS_EARG, "one row in 2 has an image");
}

static void upstream_split(void **state) {
    (void)state;
    int64_t order[10];
    cgs_upstream_permutation(CGS_UPSTREAM_SPLIT_SEED, 10, order);
    const int64_t published[] = {1, 4, 0, 7, 9, 5};
    for (int i = 0; i < 6; i++) assert_int_equal(order[i], published[i]);
    cgs_split s;
    /* 0.9 * 101 = 90.9, 0.1 * 101 = 10.1: one is left over and trains */
    OK(cgs_split_by_window(&s, 101, 0.9, 3072));
    assert_int_equal(s.train_count, 91);
    assert_int_equal(s.held_count, 10);
    char seen[101] = {0};
    for (int i = 0; i < 91; i++) seen[s.train[i]]++;
    for (int i = 0; i < 10; i++) seen[s.held[i]]++;
    for (int i = 0; i < 101; i++) assert_int_equal(seen[i], 1);
    cgs_split_free(&s);
    /* 1 - 0.9 in double is below a tenth, so of 10 windows none is held out */
    OK(cgs_split_by_window(&s, 10, 0.9, 3072));
    assert_int_equal(s.train_count, 10);
    cgs_split_free(&s);
    FAILS(cgs_split_by_window(&s, 10, 1.5, 3072), CGS_EARG, "1.5");
}

static void episode_split(void **state) {
    (void)state;
    enum { E = 50 };
    uint8_t held[E], again[E], other[E];
    OK(cgs_split_episodes(E, 0.9, 11, held));
    OK(cgs_split_episodes(E, 0.9, 11, again));
    OK(cgs_split_episodes(E, 0.9, 12, other));
    assert_memory_equal(held, again, E);
    assert_memory_not_equal(held, other, E);
    int n = 0;
    for (int e = 0; e < E; e++) n += held[e];
    assert_int_equal(n, 5);
    OK(cgs_split_episodes(2, 0.99, 1, held));
    assert_int_equal(held[0] + held[1], 1);
    OK(cgs_split_episodes(1, 0.5, 1, held));
    assert_int_equal(held[0], 0);

    cgs_windows w;
    cgs_split s;
    OK(cgs_windows_build(&w, three_episodes(), 1, 1));
    OK(cgs_split_by_episode(&s, &w, 3, 0.7, 4));
    assert_int_equal(s.train_count + s.held_count, w.count);
    assert_true(s.held_count > 0);
    for (int64_t i = 0; i < s.train_count; i++)
        for (int64_t j = 0; j < s.held_count; j++)
            assert_int_not_equal(w.episode[s.train[i]], w.episode[s.held[j]]);
    cgs_split_free(&s);
    cgs_windows_free(&w);
}

static void epoch_order(void **state) {
    (void)state;
    enum { N = 1000 };
    static int64_t a[N], b[N];
    static char seen[N];
    cgs_epoch_order(5, 3, N, a);
    cgs_epoch_order(5, 3, N, b);
    assert_memory_equal(a, b, sizeof a);
    int fixed = 0;
    for (int i = 0; i < N; i++) {
        assert_true(a[i] >= 0 && a[i] < N);
        seen[a[i]]++;
        fixed += a[i] == i;
    }
    for (int i = 0; i < N; i++) assert_int_equal(seen[i], 1);
    assert_true(fixed < 10);
    cgs_epoch_order(5, 4, N, b);
    assert_memory_not_equal(a, b, sizeof a);
    cgs_epoch_order(6, 3, N, b);
    assert_memory_not_equal(a, b, sizeof a);
}

static int remove_folder(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

int main(int argc, char **argv) {
    if (argc == 3 && !strcmp(argv[1], "record"))
        return synthetic_dataset(argv[2], KILL_EPISODES, KILL_LENGTH, KILL_SIZE, 5) != CGS_OK;
    if (argc == 6 && !strcmp(argv[1], "dataset"))
        return synthetic_dataset(argv[2], atoi(argv[3]), atoi(argv[4]), atoi(argv[5]), 4) != CGS_OK;
    snprintf(folder, sizeof folder, "/tmp/cgs-data-XXXXXX");
    if (!mkdtemp(folder)) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),     cmocka_unit_test(number_types),
        cmocka_unit_test(writer_refuses), cmocka_unit_test(same_bytes_any_threads),
        cmocka_unit_test(torn_journal),   cmocka_unit_test(survives_kill),
        cmocka_unit_test(statistics),     cmocka_unit_test(windows),
        cmocka_unit_test(upstream_split), cmocka_unit_test(episode_split),
        cmocka_unit_test(epoch_order)};
    return cmocka_run_group_tests_name("data", tests, NULL, remove_folder);
}

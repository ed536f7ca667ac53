/* test_data_loader.c - batches against windows cut by hand, over both kinds of source. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "data/dataset.h"
#include "data/loader.h"
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

enum { E = 6, L = 17, S = 16, T = 3, F = 4, A = 2, BLOCK = T * F * A, FRAME = S * S * 3 };

static char folder[64], file[96], pack[96];
static cgs_dataset *dataset;
static cgs_packed *packed;
static cgs_windows windows;
static cgs_split split;
static cgs_stats stats;

static int set_up(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/cgs-loader-XXXXXX");
    if (!mkdtemp(folder)) return 1;
    snprintf(file, sizeof file, "%s/d.h5", folder);
    snprintf(pack, sizeof pack, "%s/d.pack", folder);
    if (synthetic_dataset(file, E, L, S, 21) != CGS_OK ||
        cgs_dataset_open(&dataset, file) != CGS_OK ||
        cgs_packed_ensure(&packed, pack, file, S, NULL, NULL) != CGS_OK ||
        cgs_windows_build(&windows, cgs_dataset_source(dataset), T, F) != CGS_OK ||
        cgs_split_by_episode(&split, &windows, E, 0.7, 1) != CGS_OK ||
        cgs_stats_compute(&stats, cgs_dataset_source(dataset), "action") != CGS_OK) {
        print_message("%s\n", cgs_last_error());
        return 1;
    }
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    cgs_split_free(&split);
    cgs_windows_free(&windows);
    cgs_packed_close(packed);
    cgs_dataset_close(dataset);
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static cgs_loader_config config(const cgs_source *source) {
    return (cgs_loader_config){.source = source,
                               .windows = &windows,
                               .ids = split.train,
                               .id_count = split.train_count,
                               .batch = 5,
                               .image_size = S,
                               .action_mean = stats.mean,
                               .action_std = stats.std_unbiased,
                               .extras = {"state"},
                               .extra_count = 1,
                               .seed = 9,
                               .shuffle = true,
                               .threads = 3};
}

/* the batch as it must be, from the generator of the synthetic data itself */
static void check_batch(const cgs_batch *b, uint64_t epoch, int64_t index, const int64_t *ids) {
    assert_int_equal(b->epoch, epoch);
    assert_int_equal(b->index, index);
    static uint8_t pixels[L * FRAME];
    float action[L * A], position[L * 2];
    for (int i = 0; i < b->count; i++) {
        assert_int_equal(b->windows[i], ids[i]);
        int e = windows.episode[ids[i]], start = windows.start[ids[i]];
        synthetic_episode(e, L, S, 21, pixels, action, position);
        for (int t = 0; t < T; t++) {
            assert_memory_equal(b->pixels + (size_t)(i * T + t) * FRAME,
                                pixels + (size_t)(start + t * F) * FRAME, FRAME);
            for (int k = 0; k < 2; k++)
                assert_true(b->extras[0][(i * T + t) * 2 + k] == position[(start + t * F) * 2 + k]);
        }
        for (int k = 0; k < BLOCK; k++) {
            int row = start + k / A;
            float raw = action[row * A + k % A];
            float expected = (float)((raw - stats.mean[k % A]) / stats.std_unbiased[k % A]);
            if (row == L - 1) raw = expected = 0;
            assert_true(b->raw_actions[i * BLOCK + k] == raw);
            assert_true(b->actions[i * BLOCK + k] == expected);
        }
    }
}

static void run_epochs(const cgs_source *source, int threads, int queue) {
    cgs_loader_config c = config(source);
    c.threads = threads;
    c.queue = queue;
    cgs_loader *l;
    OK(cgs_loader_create(&l, &c));
    int64_t n = cgs_loader_batches(l);
    assert_int_equal(n, c.id_count / 5);
    assert_true(n >= 3);
    int64_t *order = malloc((size_t)c.id_count * sizeof *order), ids[5];
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        cgs_epoch_order(9, epoch, c.id_count, order);
        for (int64_t k = 0; k < n; k++) {
            cgs_batch b;
            OK(cgs_loader_next(l, &b));
            assert_int_equal(b.count, 5);
            assert_int_equal(b.extra_dims[0], 2);
            for (int i = 0; i < 5; i++) ids[i] = split.train[order[k * 5 + i]];
            check_batch(&b, epoch, k, ids);
            uint64_t next_epoch;
            int64_t next;
            cgs_loader_position(l, &next_epoch, &next);
            assert_int_equal(next_epoch, k + 1 < n ? epoch : epoch + 1);
            assert_int_equal(next, k + 1 < n ? k + 1 : 0);
        }
    }
    free(order);
    cgs_loader_destroy(l);
}

static void batches_from_hdf5(void **state) {
    (void)state;
    run_epochs(cgs_dataset_source(dataset), 3, 0);
}

static void batches_from_cache(void **state) {
    (void)state;
    run_epochs(cgs_packed_source(packed), 1, 1);
    run_epochs(cgs_packed_source(packed), 4, 2);
    run_epochs(cgs_packed_source(packed), 2, 16);
}

static void resumes_anywhere(void **state) {
    (void)state;
    cgs_loader_config c = config(cgs_packed_source(packed));
    cgs_loader *l, *late;
    OK(cgs_loader_create(&l, &c));
    for (int64_t k = 0; k < cgs_loader_batches(l) + 2; k++) {
        cgs_batch b, again;
        cgs_loader_position(l, &c.start_epoch, &c.start_batch);
        OK(cgs_loader_create(&late, &c));
        OK(cgs_loader_next(l, &b));
        OK(cgs_loader_next(late, &again));
        assert_int_equal(b.epoch, again.epoch);
        assert_int_equal(b.index, again.index);
        assert_memory_equal(b.windows, again.windows, 5 * sizeof(int64_t));
        assert_memory_equal(b.pixels, again.pixels, 5 * T * FRAME);
        cgs_loader_destroy(late);
    }
    cgs_loader_destroy(l);
}

static void ranks_share_a_batch(void **state) {
    (void)state;
    cgs_loader_config c = config(cgs_packed_source(packed));
    c.batch = 6;
    cgs_loader *whole, *half[2];
    OK(cgs_loader_create(&whole, &c));
    c.ranks = 2;
    for (c.rank = 0; c.rank < 2; c.rank++) OK(cgs_loader_create(&half[c.rank], &c));
    for (int k = 0; k < 5; k++) {
        cgs_batch w, h;
        OK(cgs_loader_next(whole, &w));
        for (int r = 0; r < 2; r++) {
            OK(cgs_loader_next(half[r], &h));
            assert_int_equal(h.count, 3);
            assert_memory_equal(h.windows, w.windows + 3 * r, 3 * sizeof(int64_t));
            assert_memory_equal(h.actions, w.actions + 3 * r * BLOCK, 3 * BLOCK * sizeof(float));
        }
    }
    cgs_loader_destroy(whole);
    cgs_loader_destroy(half[0]);
    cgs_loader_destroy(half[1]);
    c.batch = 5;
    c.rank = 0;
    FAILS(cgs_loader_create(&whole, &c), CGS_EARG, "cannot be shared");
}

static void in_order_with_the_rest(void **state) {
    (void)state;
    cgs_loader_config c = config(cgs_dataset_source(dataset));
    c.ids = split.held;
    c.id_count = split.held_count;
    c.shuffle = false;
    c.keep_last = true;
    assert_true(c.id_count % c.batch != 0);
    cgs_loader *l;
    OK(cgs_loader_create(&l, &c));
    for (int pass = 0; pass < 2; pass++) {
        int64_t seen = 0;
        for (int64_t k = 0; k < cgs_loader_batches(l); k++) {
            cgs_batch b;
            OK(cgs_loader_next(l, &b));
            check_batch(&b, (uint64_t)pass, k, c.ids + seen);
            seen += b.count;
        }
        assert_int_equal(seen, c.id_count);
    }
    cgs_loader_destroy(l);
}

static void refuses(void **state) {
    (void)state;
    cgs_loader *l;
    cgs_loader_config c = config(cgs_dataset_source(dataset));
    c.image_size = 224;
    FAILS(cgs_loader_create(&l, &c), CGS_EFORMAT, "16x16, the model needs 224x224");
    c = config(cgs_dataset_source(dataset));
    c.batch = 1000;
    FAILS(cgs_loader_create(&l, &c), CGS_EARG, "do not make a batch of 1000");
    c = config(cgs_dataset_source(dataset));
    c.extras[0] = "qpos";
    FAILS(cgs_loader_create(&l, &c), CGS_EFORMAT, "\"qpos\"");
    c = config(cgs_dataset_source(dataset));
    double zero[A] = {1, 0};
    c.action_std = zero;
    FAILS(cgs_loader_create(&l, &c), CGS_EARG, "standard deviation 0");
    assert_null(l);
}

/* a source whose actions are bad in one row; everything else of the real one */
typedef struct spoiled {
    cgs_source source;
    const cgs_source *real;
    int64_t row;
    float value;
} spoiled;

static cgs_status spoiled_pixels(void *self, int64_t first, int count, int stride, uint8_t *out) {
    const spoiled *s = self;
    return s->real->read_pixels(s->real->self, first, count, stride, out);
}

static cgs_status spoiled_rows(void *self, int column, int64_t first, int count, int stride,
                               float *out) {
    const spoiled *s = self;
    CGS_TRY(s->real->read_rows(s->real->self, column, first, count, stride, out));
    if (column == s->source.action && s->row >= first && s->row < first + count)
        out[(s->row - first) * A + 1] = s->value;
    return CGS_OK;
}

static void bad_actions(void **state) {
    (void)state;
    spoiled s = {.source = *cgs_packed_source(packed), .real = cgs_packed_source(packed)};
    s.source.self = &s;
    s.source.read_pixels = spoiled_pixels;
    s.source.expect_pixels = NULL;
    s.source.read_rows = spoiled_rows;
    int episode = windows.episode[split.train[0]];
    const struct {
        int step;
        float value;
    } bad[] = {{7, NAN}, {7, INFINITY}, {L - 1, -INFINITY}};
    for (int i = 0; i < 3; i++) {
        s.row = s.source.ep_offset[episode] + bad[i].step;
        s.value = bad[i].value;
        cgs_loader_config c = config(&s.source);
        cgs_loader *l;
        OK(cgs_loader_create(&l, &c));
        cgs_status rc = CGS_OK;
        cgs_batch b;
        for (int k = 0; k < 100 && rc == CGS_OK; k++) rc = cgs_loader_next(l, &b);
        char words[64];
        snprintf(words, sizeof words, "row %d of episode %d", bad[i].step, episode);
        FAILS(rc, CGS_ENUMERIC, words);
        FAILS(cgs_loader_next(l, &b), CGS_ENUMERIC, words); /* and stays failed */
        cgs_loader_destroy(l);
    }
}

static void stops_at_any_time(void **state) {
    (void)state;
    for (int k = 0; k < 40; k++) {
        cgs_loader_config c = config(cgs_packed_source(packed));
        c.threads = 1 + k % 4;
        cgs_loader *l;
        OK(cgs_loader_create(&l, &c));
        cgs_batch b;
        for (int i = 0; i < k % 5; i++) OK(cgs_loader_next(l, &b));
        cgs_loader_destroy(l);
    }
    cgs_loader_destroy(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(batches_from_hdf5),
                                       cmocka_unit_test(batches_from_cache),
                                       cmocka_unit_test(resumes_anywhere),
                                       cmocka_unit_test(ranks_share_a_batch),
                                       cmocka_unit_test(in_order_with_the_rest),
                                       cmocka_unit_test(refuses),
                                       cmocka_unit_test(bad_actions),
                                       cmocka_unit_test(stops_at_any_time)};
    return cmocka_run_group_tests_name("data_loader", tests, set_up, tear_down);
}

/* test_segments.c - segments (ops/segments.c): the same bytes as record by record, for any batch
 * and any number of threads, with less memory; the same gradients, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "allocations.h"
#include "core/cpu.h"
#include "core/rng.h"
#include "expect.h"
#include "model/lewm.h"
#include "ops/cpu/cpu.h"
#include "ops/tape.h"

#define DIM(...) ((const int[]){__VA_ARGS__})
enum { H = 5 };

typedef enum work { ENCODE, ROLLOUT, PREDICT } work;

/* a model on a device, and a tape of it with one result */
typedef struct bench {
    cgs_device d;
    cgs_lewm *m;
    cgs_tape *t;
    cgs_tensor *out;
} bench;

static cgs_tensor *input(bench *b, cgs_dtype type, int rank, const int *dim) {
    cgs_tensor *x = cgs_input(b->t, "x", type, rank, dim);
    return x;
}

static void fill(bench *b, cgs_tensor *x) {
    size_t n = cgs_numel(x);
    float *v = malloc(n * sizeof *v);
    assert_non_null(v);
    cgs_rng r = cgs_rng_stream(3, CGS_STREAM_TEST, n);
    for (size_t i = 0; i < n; i++)
        v[i] = x->dtype == CGS_U8 ? (float)(int)(255 * cgs_rng_f32(&r)) : cgs_rng_f32(&r) - 0.5f;
    OK(cgs_tensor_write(b->t, x, v));
    free(v);
}

/* isa: NULL, or what the device is limited to; false if it is not here */
static bool start(bench *b, const char *isa, int threads, const cgs_lewm_config *c) {
    OK(cgs_device_open(&b->d, "cpu", threads));
    if (isa && cgs_cpu_limit_isa(&b->d, isa, true) != CGS_OK) {
        cgs_device_close(&b->d);
        return false;
    }
    OK(cgs_lewm_create(&b->m, c, &b->d, false));
    OK(cgs_params_init(&b->m->params, 0));
    return true;
}

static void build(bench *b, work w, int batch, bool one_by_one) {
    const cgs_lewm_config *c = &b->m->config;
    int S = c->image_size, A = cgs_lewm_action_block(c);
    cgs_tensor *in[2] = {0};
    OK(cgs_tape_create(&b->t, &b->d, CGS_BF16));
    cgs_tape_freeze_parameters(b->t);
    if (one_by_one) cgs_tape_one_by_one(b->t);
    if (w == ENCODE) {
        in[0] = input(b, CGS_U8, 4, DIM(batch, S, S, 3));
        b->out = cgs_lewm_encode(b->t, b->m, in[0], false);
    } else if (w == ROLLOUT) {
        cgs_tensor *frames[H];
        in[0] = input(b, CGS_F32, 3, DIM(1, 1, c->width));
        in[1] = input(b, CGS_F32, 3, DIM(batch, H, A));
        cgs_lewm_rollout(b->t, b->m, cgs_repeat(b->t, in[0], batch), in[1], frames, H);
        b->out = frames[H - 1];
    } else { /* all tokens are read: nothing of attention is left out */
        in[0] = input(b, CGS_F32, 3, DIM(batch, 3, c->width));
        in[1] = input(b, CGS_F32, 3, DIM(batch, 3, A));
        cgs_conditioning now = cgs_lewm_condition(b->t, b->m, in[1], NULL);
        b->out = cgs_lewm_predict(b->t, b->m, in[0], &now, 0, false, false);
    }
    cgs_keep(b->out);
    OK(cgs_tape_finish(b->t, NULL));
    for (int i = 0; i < 2; i++)
        if (in[i]) fill(b, in[i]);
}

/* what the tape computes; nothing is allocated, and a second run gives the same */
static float *result(bench *b) {
    size_t n = cgs_numel(b->out);
    float *v = malloc(2 * n * sizeof *v);
    assert_non_null(v);
    long before = allocations;
    for (int run = 0; run < 2; run++) {
        cgs_tape_forward(b->t);
        OK(cgs_tensor_read(b->t, b->out, v + (size_t)run * n));
        if (run == 0) before = allocations;
    }
    assert_int_equal(allocations, before);
    assert_memory_equal(v, v + n, n * sizeof *v);
    return v;
}

static void stop(bench *b) {
    cgs_lewm_destroy(b->m);
    cgs_device_close(&b->d);
}

static cgs_lewm_config tiny(int class_bits) {
    cgs_lewm_config c;
    OK(cgs_lewm_preset(&c, "small"));
    c.image_size = 32;
    c.class_bits = class_bits;
    return c;
}

static void same_bytes(work w, int batch, const char *isa, int class_bits) {
    cgs_lewm_config c = tiny(class_bits);
    bench b;
    if (!start(&b, isa, 1, &c)) return;
    build(&b, w, batch, true);
    assert_int_equal(cgs_tape_segments(b.t), 0);
    float *want = result(&b);
    size_t n = cgs_numel(b.out), whole = cgs_tape_memory(b.t);
    cgs_tape_destroy(b.t);
    stop(&b);
    for (int threads = 1; threads <= 5; threads += threads == 3 ? 2 : 1) {
        assert_true(start(&b, isa, threads, &c));
        build(&b, w, batch, false);
        bool pairs = cgs_cpu_of(&b.d)->pairs;
        int segments = cgs_tape_segments(b.t);
        if (!pairs) assert_int_equal(segments, 0);
        if (pairs && batch >= 40) assert_true(segments > 0);
        if (segments && w == ENCODE && batch >= 40 && class_bits == 16)
            assert_true(cgs_tape_memory(b.t) < whole);
        float *got = result(&b);
        if (memcmp(want, got, n * sizeof *got) != 0)
            fail_msg("work %d, batch %d, %s, %d threads, %d segments: other bytes", (int)w, batch,
                     isa ? isa : "best", threads, segments);
        /* timed, too, and every record has a time */
        int records = cgs_tape_records(b.t);
        double *seconds = calloc((size_t)records, sizeof *seconds);
        assert_non_null(seconds);
        cgs_tape_forward_timed(b.t, seconds);
        OK(cgs_tensor_read(b.t, b.out, got));
        assert_memory_equal(want, got, n * sizeof *got);
        for (int i = 0; i < records; i++) assert_true(seconds[i] > 0);
        free(seconds);
        free(got);
        cgs_tape_destroy(b.t);
        stop(&b);
    }
    free(want);
}

static void test_same_bytes(void **state) {
    (void)state;
    static const int batches[] = {1, 2, 3, 7, 13, 40, 129};
    for (int i = 0; i < (int)(sizeof batches / sizeof *batches); i++)
        for (work w = ENCODE; w <= PREDICT; w++)
            if (w != ENCODE || batches[i] <= 40) same_bytes(w, batches[i], NULL, 16);
    same_bytes(ENCODE, 40, NULL, 32);
    same_bytes(ROLLOUT, 40, NULL, 32);
}

static void test_instruction_sets(void **state) {
    (void)state;
    static const char *const isas[] = {"base", "v3", "v4", "v4 tiles"};
    for (int i = 0; i < 4; i++) {
        same_bytes(ENCODE, 5, isas[i], 16);
        same_bytes(ROLLOUT, 45, isas[i], 16);
    }
}

/* weights that changed between two runs are used in the second */
static void test_changed_weights(void **state) {
    (void)state;
    cgs_lewm_config c = tiny(16);
    float *got[2];
    size_t n = 0;
    for (int one_by_one = 0; one_by_one < 2; one_by_one++) {
        bench b;
        start(&b, NULL, 2, &c);
        build(&b, ROLLOUT, 48, one_by_one);
        n = cgs_numel(b.out);
        float *before = result(&b);
        cgs_params *p = &b.m->params;
        OK(cgs_params_init(p, 1));
        got[one_by_one] = result(&b);
        assert_memory_not_equal(before, got[one_by_one], n * sizeof *before);
        free(before);
        cgs_tape_destroy(b.t);
        stop(&b);
    }
    assert_memory_equal(got[0], got[1], n * sizeof *got[0]);
    free(got[0]);
    free(got[1]);
}

/* Gradients of an encoder that is trained on 128 images, after two updates: backward reads what
 * segments wrote, and weights change between runs. */
static float *gradients(const cgs_lewm_config *c, int threads, bool one_by_one, size_t *n) {
    bench b;
    OK(cgs_device_open(&b.d, "cpu", threads));
    OK(cgs_lewm_create(&b.m, c, &b.d, true));
    cgs_params *p = &b.m->params;
    OK(cgs_params_init(p, 0));
    OK(cgs_tape_create(&b.t, &b.d, CGS_BF16));
    if (one_by_one) cgs_tape_one_by_one(b.t);
    cgs_tensor *x = input(&b, CGS_U8, 4, DIM(128, c->image_size, c->image_size, 3));
    cgs_tensor *target = input(&b, CGS_F32, 2, DIM(128, c->width));
    cgs_tensor *z = cgs_lewm_encode(b.t, b.m, x, true);
    OK(cgs_tape_finish(b.t, cgs_mse(b.t, z, target)));
    fill(&b, x);
    fill(&b, target);
    bool tiles = cgs_cpu_of(&b.d)->tiles;
    assert_int_equal(cgs_tape_segments(b.t) > 0, cgs_cpu_of(&b.d)->pairs && !tiles && !one_by_one);
    for (int run = 1;; run++) {
        cgs_tape_forward(b.t);
        cgs_tape_backward(b.t);
        if (run == 3) break;
        cgs_adamw how = {1e-3f, 0.9f, 0.999f, 1e-8f, 0, 1, (uint64_t)run};
        b.d.ops->adamw(&b.d, &how, p->values, p->grads, p->moment1, p->moment2, p->bf16,
                       p->trainable);
    }
    *n = p->trainable;
    float *got = malloc(*n * sizeof *got);
    assert_non_null(got);
    memcpy(got, p->grads, *n * sizeof *got);
    cgs_tape_destroy(b.t);
    stop(&b);
    return got;
}

static void test_training(void **state) {
    (void)state;
    for (int class_bits = 16; class_bits <= 32; class_bits += 16) {
        cgs_lewm_config c = tiny(class_bits);
        size_t n;
        float *want = gradients(&c, 2, true, &n);
        for (int threads = 1; threads <= 3; threads++) {
            float *got = gradients(&c, threads, false, &n);
            if (memcmp(want, got, n * sizeof *got) != 0)
                fail_msg("%d bits, %d threads: other gradients", class_bits, threads);
            free(got);
        }
        free(want);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_instruction_sets),
        cmocka_unit_test(test_changed_weights),
        cmocka_unit_test(test_training),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

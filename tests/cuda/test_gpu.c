/* test_gpu.c - the CUDA backend: every operation against the reference, the golden vectors,
 * training that continues and repeats bit for bit, planning that agrees with the CPU.
 *
 *   test_gpu             everything; skipped (77) where no GPU can be opened
 *   test_gpu small       only small cases of every operation, a plan and batches of pictures,
 *                        for memory checkers
 *   test_gpu ops         operations at all sizes, the optimiser and random draws
 *   test_gpu only WORD   the cases whose name has WORD in it
 *   test_gpu train       training: continued, repeated, beside the CPU's
 *   test_gpu model       golden vectors, refusals
 *   test_gpu plan        planning
 *   test_gpu dino        DINO-WM: features, updates, planning
 *   test_gpu dino-small  the same at sizes for memory checkers
 *   test_gpu rollouts [NAME]  rollouts that are off unless asked for; NAME as test_tiles
 *   test_gpu variants [WORD]  only by name: operations without each of their variants
 *                        (ops/cuda/variants.h), in the cases whose name has WORD in it
 *   test_gpu variants-small [WORD]  the same without the paper's sizes, for the emulator */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/rng.h"
#include "core/threads.h"
#include "expect.h"
#include "golden.h"
#include "gpu_dino.h"
#include "gpu_plan.h"
#include "gpu_train.h"
#include "ops/check/check.h"
#include "ops/cuda/variants.h"
#include "variable.h"

static cgs_device ref, cpu, gpu;

/* ---- operations --------------------------------------------------------------------------- */

/* prints a failure and counts it, so that one run shows all of them */
static int judge(const cgs_op_case *c, const char *how, const cgs_mismatch *m, double tolerance) {
    if (m->error <= tolerance) return 0;
    print_error("%s, %s: error %.3g > %.3g at %s[%zu]: %.9g, want %.9g\n", c->name, how, m->error,
                tolerance, m->where, m->index, m->got, m->want);
    return 1;
}

static const char *only; /* a word, or NULL */
static bool light;       /* without the paper's sizes */

static bool is_small(const cgs_op_case *c) {
    if (only) return strstr(c->name, only);
    return strstr(c->name, "odd") || strstr(c->name, "single") || strstr(c->name, "still") ||
           c->op == CGS_OP_attention || c->op == CGS_OP_attend_first;
}

/* The second run inside cgs_check_eval records a graph: it must give the same bits. */
static void compare_all(cgs_dtype act, const char *how, bool only_small) {
    int failed = 0, run = 0;
    double start = cgs_now(), worst = 0;
    for (int i = 0; i < cgs_op_case_count; i++)
        for (int twice = 0; twice < 2; twice++) {
            const cgs_op_case *c = &cgs_op_cases[i];
            cgs_mismatch m;
            if (c->heavy || (only_small && !is_small(c))) continue;
            double tolerance = act == CGS_BF16 ? c->tol_bf16 : c->tol_f32;
            if (cgs_check_eval(c, (cgs_setup){&ref, act}, (cgs_setup){&gpu, act}, twice, &m) !=
                CGS_OK) {
                print_error("%s, %s: %s\n", c->name, how, cgs_last_error());
                failed++;
                continue;
            }
            failed += judge(c, how, &m, tolerance);
            if (m.error / tolerance > worst) worst = m.error / tolerance;
            run++;
        }
    print_message("%s: %d cases in %.1f s, worst error %.2f of what is allowed\n", how, run,
                  cgs_now() - start, worst);
    assert_int_equal(failed, 0);
}

static void test_operations_f32(void **state) {
    (void)state;
    compare_all(CGS_F32, "f32", false);
}
static void test_operations_bf16(void **state) {
    (void)state;
    compare_all(CGS_BF16, "bf16", false);
}
static void test_small_f32(void **state) {
    (void)state;
    compare_all(CGS_F32, "small f32", true);
}
static void test_small_bf16(void **state) {
    (void)state;
    compare_all(CGS_BF16, "small bf16", true);
}

/* the loosest that a checked case of the operation has */
static double loosest(cgs_opcode op) {
    double tolerance = 0;
    for (int k = 0; k < cgs_op_case_count; k++)
        if (cgs_op_cases[k].op == op && cgs_op_cases[k].tol_bf16 > tolerance)
            tolerance = cgs_op_cases[k].tol_bf16;
    return tolerance;
}

/* Sizes of the paper, against the CPU backend: the reference would take minutes. */
static void test_paper_sizes(void **state) {
    (void)state;
    int failed = 0;
    for (int i = 0; i < cgs_op_case_count; i++) {
        const cgs_op_case *c = &cgs_op_cases[i];
        if (!c->heavy) continue;
        cgs_mismatch m;
        OK(cgs_check_eval(c, (cgs_setup){&cpu, CGS_BF16}, (cgs_setup){&gpu, CGS_BF16}, false, &m));
        failed += judge(c, "bf16 against the CPU", &m, loosest(c->op));
    }
    assert_int_equal(failed, 0);
}

/* ---- variants -------------------------------------------------------------------------------- */

#define CGS_OP_none CGS_OP_COUNT
static const struct {
    const char *name;
    cgs_opcode op[3];
} variants[] = {
#define X(id, before, operation, after, between, runs, timed, when, worth)                         \
    {#id, {CGS_OP_##before, CGS_OP_##operation, CGS_OP_##after}},
    CGS_CUDA_VARIANTS(X)
#undef X
};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

/* Whether a case is about what variant v stands for; what is no operation is seen in small cases.
 */
static bool concerns(const cgs_op_case *c, int v) {
    const cgs_opcode *op = variants[v].op;
    if ((only && !strstr(c->name, only)) || (light && c->heavy)) return false;
    if (op[1] == CGS_OP_none) return !c->heavy && strstr(c->name, "odd");
    return c->op == op[0] || c->op == op[1] || c->op == op[2];
}

/* The cases that variant `v` is about, or any is (v < 0), with the named ones off: what runs
 * instead of a variant must pass as it does. */
static int check_without(const char *names, int v) {
    cgs_device other;
    double worst = 0, start = cgs_now();
    int failed = 0, run = 0;
    OK(cgs_device_open(&other, "cuda", 0));
    OK(cgs_device_without(&other, names));
    for (int i = 0; i < cgs_op_case_count; i++)
        for (int twice = 0; twice < 2; twice++) {
            const cgs_op_case *c = &cgs_op_cases[i];
            bool about = v >= 0 && concerns(c, v);
            for (int k = 0; v < 0 && k < VARIANTS; k++) about |= concerns(c, k);
            if (!about || (c->heavy && twice)) continue;
            double tolerance = c->heavy ? loosest(c->op) : c->tol_bf16;
            cgs_device *against = c->heavy ? &cpu : &ref;
            cgs_mismatch m;
            OK(cgs_check_eval(c, (cgs_setup){against, CGS_BF16}, (cgs_setup){&other, CGS_BF16},
                              twice, &m));
            failed += judge(c, names, &m, tolerance);
            if (m.error / tolerance > worst) worst = m.error / tolerance;
            run++;
        }
    print_message("without \"%s\": %d cases in %.1f s, worst error %.2f of what is allowed\n",
                  names, run, cgs_now() - start, worst);
    cgs_device_close(&other);
    return failed;
}

static void test_variants(void **state) {
    (void)state;
    char all[512] = "";
    int failed = 0;
    for (int v = 0; v < VARIANTS; v++) {
        failed += check_without(variants[v].name, v);
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s ", variants[v].name);
    }
    failed += check_without(all, -1);
    assert_int_equal(failed, 0);
}

/* names of variants are understood, by the environment too, and others are refused */
static void test_variant_names(void **state) {
    (void)state;
    cgs_device d;
    for (int v = 0; v < VARIANTS; v++) {
        OK(cgs_device_without(&gpu, variants[v].name));
        set_variable("CGS_VARIANTS_OFF", variants[v].name);
        OK(cgs_device_open(&d, "cuda", 0));
        cgs_device_close(&d);
    }
    set_variable("CGS_VARIANTS_OFF", "no_such_variant");
    assert_int_equal(cgs_device_open(&d, "cuda", 0), CGS_EARG);
    assert_non_null(strstr(cgs_last_error(), variants[0].name));
    set_variable("CGS_VARIANTS_OFF", NULL);
    assert_int_equal(cgs_device_without(&gpu, "no_such_variant"), CGS_EARG);
    assert_int_equal(cgs_device_without(&cpu, variants[0].name), CGS_EARG);
    OK(cgs_device_without(&gpu, ""));
}

/* random draws follow the update number, in graphs too, and are the CPU's bits */
static void test_random_draws(void **state) {
    (void)state;
    enum { ROWS = 50, COLS = 96, N = ROWS * COLS };
    const int dim[2] = {ROWS, COLS};
    cgs_device *devices[2] = {&ref, &gpu};
    static float x[N], kept[2][6][N], drawn[2][6][N];
    for (int i = 0; i < N; i++) x[i] = 1;
    for (int k = 0; k < 2; k++) {
        cgs_tape *t;
        OK(cgs_tape_create(&t, devices[k], CGS_F32));
        cgs_tensor *in = cgs_input(t, "x", CGS_F32, 2, dim);
        cgs_tensor *out = cgs_keep(cgs_dropout(t, in, 0.5f, 11));
        cgs_tensor *lines = cgs_keep(cgs_directions(t, ROWS, COLS, 12));
        OK(cgs_tape_finish(t, NULL));
        OK(cgs_tensor_write(t, in, x));
        for (int step = 0; step < 6; step++) {
            cgs_tape_set_step(t, (uint64_t)step / 2);
            cgs_tape_forward(t);
            OK(cgs_tensor_read(t, out, kept[k][step]));
            OK(cgs_tensor_read(t, lines, drawn[k][step]));
        }
        cgs_tape_destroy(t);
    }
    size_t differ = 0;
    for (int step = 0; step < 6; step++) {
        assert_memory_equal(kept[0][step], kept[1][step], sizeof kept[0][step]);
        for (int i = 0; i < N; i++) {
            float a = drawn[0][step][i], b = drawn[1][step][i];
            differ += a != b;
            assert_true(fabsf(a - b) <= 1.2e-7f * fabsf(a));
        }
    }
    /* lengths are summed in another order: a last bit in a thousand may differ */
    print_message("%zu of %d directions differ in the last bit\n", differ, 6 * N);
    assert_true(differ < 6 * N / 1000);
    assert_memory_equal(kept[1][0], kept[1][1], sizeof kept[1][0]);
    assert_memory_not_equal(kept[1][1], kept[1][2], sizeof kept[1][0]);
    assert_memory_not_equal(drawn[1][3], drawn[1][4], sizeof drawn[1][0]);
}

/* ---- the optimiser --------------------------------------------------------------------------- */

static void test_optimiser(void **state) {
    (void)state;
    enum { N = 100003 }; /* no multiple of anything */
    cgs_device *devices[2] = {&ref, &gpu};
    static float host[2][4][N];
    static uint16_t half[2][N];
    double squares[2];
    for (int k = 0; k < 2; k++) {
        cgs_device *d = devices[k];
        float *m[4];
        void *p;
        cgs_rng r = cgs_rng_stream(5, CGS_STREAM_TEST, 0);
        for (int a = 0; a < 4; a++) {
            OK(d->ops->alloc(d, &p, N * sizeof(float)));
            m[a] = p;
            for (int i = 0; i < N; i++) host[k][a][i] = a < 2 ? (float)cgs_rng_normal(&r) : 0;
            OK(d->ops->upload(d, m[a], host[k][a], N * sizeof(float)));
        }
        OK(d->ops->alloc(d, &p, N * sizeof(uint16_t)));
        squares[k] = d->ops->sum_squares(d, m[1], N);
        for (uint64_t step = 1; step < 4; step++) {
            cgs_adamw w = {1e-2f, 0.9f, 0.999f, 1e-8f, 1e-2f, 0.25f, step};
            d->ops->adamw(d, &w, m[0], m[1], m[2], m[3], p, N);
        }
        OK(d->ops->sync(d));
        for (int a = 0; a < 4; a++) {
            OK(d->ops->download(d, host[k][a], m[a], N * sizeof(float)));
            d->ops->release(d, m[a]);
        }
        OK(d->ops->download(d, half[k], p, sizeof half[k]));
        d->ops->release(d, p);
    }
    assert_true(fabs(squares[0] - squares[1]) <= 1e-12 * squares[0]);
    for (int a = 0; a < 4; a++)
        for (int i = 0; i < N; i++) {
            float want = host[0][a][i], got = host[1][a][i];
            if (!(fabsf(got - want) <= 1e-5f * fabsf(want) + 1e-7f))
                fail_msg("array %d [%d]: %.9g, want %.9g", a, i, got, want);
        }
    for (int i = 0; i < N; i++) assert_int_equal(half[1][i], cgs_f32_to_bf16(host[1][0][i]));
}

/* Three steps of Muon for matrices that are wide, tall, square, and larger than a tile.  Five steps
 * of Newton and Schulz multiply what is rounded by at most 3.4445 each, as the smallest singular
 * values do; the largest are near 1. */
static void test_muon(void **state) {
    (void)state;
    enum { COUNT = 4, N = 96 * 110 + 130 * 24 + 32 * 32 + 8 * 200, WORK = 5 * N };
    cgs_matrix list[COUNT] = {{0, 0, 96, 110}, {0, 0, 130, 24}, {0, 0, 32, 32}, {0, 0, 8, 200}};
    uint64_t first = 0, work = 0;
    for (int i = 0; i < COUNT; i++) {
        list[i].first = first;
        list[i].work = work;
        first += (uint64_t)list[i].rows * (uint64_t)list[i].columns;
        work += cgs_muon_work(list[i].rows, list[i].columns);
    }
    assert_true(first == N && work <= WORK);
    static float host[2][3][N];
    static uint16_t half[2][N];
    for (int k = 0; k < 2; k++) {
        cgs_device *d = k ? &gpu : &ref;
        void *m[3], *p, *scratch, *where;
        cgs_rng r = cgs_rng_stream(6, CGS_STREAM_TEST, 0);
        for (int a = 0; a < 3; a++) {
            OK(d->ops->alloc(d, &m[a], N * sizeof(float)));
            for (int i = 0; i < N; i++) host[k][a][i] = a < 2 ? (float)cgs_rng_normal(&r) : 0;
            OK(d->ops->upload(d, m[a], host[k][a], N * sizeof(float)));
        }
        OK(d->ops->alloc(d, &p, N * sizeof(uint16_t)));
        OK(d->ops->alloc(d, &scratch, WORK * sizeof(float)));
        OK(d->ops->alloc(d, &where, sizeof list));
        OK(d->ops->upload(d, where, list, sizeof list));
        for (int step = 0; step < 3; step++) {
            cgs_muon h = {.lr = 1e-2f, .beta = 0.9f, .weight_decay = 1e-2f, .clip_scale = 0.25f};
            d->ops->muon(d, &h, where, COUNT, m[0], m[1], m[2], p, scratch);
        }
        OK(d->ops->sync(d));
        for (int a = 0; a < 3; a++) {
            OK(d->ops->download(d, host[k][a], m[a], N * sizeof(float)));
            d->ops->release(d, m[a]);
        }
        OK(d->ops->download(d, half[k], p, sizeof half[k]));
        d->ops->release(d, p);
        d->ops->release(d, scratch);
        d->ops->release(d, where);
    }
    for (int a = 0; a < 3; a += 2)
        for (int i = 0; i < N; i++) {
            float want = host[0][a][i], got = host[1][a][i];
            if (!(fabsf(got - want) <= 1e-5f * fabsf(want) + 1e-6f))
                fail_msg("array %d [%d]: %.9g, want %.9g", a, i, got, want);
        }
    for (int i = 0; i < N; i++) assert_int_equal(half[1][i], cgs_f32_to_bf16(host[1][0][i]));
}

/* ---- golden vectors -------------------------------------------------------------------------- */

static void test_golden_f32(void **state) {
    (void)state;
    golden_check("cuda", CGS_F32, 16, 1e-4);
    golden_dino_check("cuda", CGS_F32, 1e-4);
}
static void test_golden_bf16(void **state) {
    (void)state;
    golden_check("cuda", CGS_BF16, 16, 2e-2);
    golden_dino_check("cuda", CGS_BF16, 2e-2);
}

static void test_golden_class(void **state) { /* the class token and both heads in f32 */
    (void)state;
    golden_check("cuda", CGS_BF16, 32, 2e-2);
}

/* ---- training -------------------------------------------------------------------------------- */

static void test_training_f32(void **state) {
    (void)state;
    gpu_train_agrees(&cpu, &gpu, "f32", 1e-3);
}
static void test_training_bf16(void **state) {
    (void)state;
    gpu_train_agrees(&cpu, &gpu, "bf16", 2e-2);
}
static void test_training_class(void **state) {
    (void)state;
    gpu_train_agrees(&cpu, &gpu, "class", 2e-2);
}
static void test_frames_stay(void **state) {
    (void)state;
    gpu_train_frames_stay(&gpu);
}
static void test_frames_sent(void **state) {
    (void)state;
    gpu_train_frames_sent();
}

/* ---- planning -------------------------------------------------------------------------------- */

static void test_planners_agree(void **state) {
    (void)state;
    gpu_plan_agree(&cpu, &gpu);
}
static void test_host_loops(void **state) {
    (void)state;
    gpu_plan_from_host(&cpu, &gpu);
}
static void test_planner_options(void **state) {
    (void)state;
    gpu_plan_options(&cpu, &gpu);
}
static void test_paper_plans(void **state) {
    (void)state;
    gpu_plan_paper(&gpu);
}
static void test_device_loop(void **state) {
    (void)state;
    gpu_plan_loop(&gpu);
}

static void test_neighbours(void **state) {
    (void)state;
    gpu_plan_neighbours(&gpu);
}

static void test_fused_small(void **state) {
    (void)state;
    gpu_plan_costs(&cpu, &gpu, 1, 1, 1, 20, 2, NULL);
    gpu_plan_gradients(&cpu, &gpu, 1, 1, 2, 2, NULL);
    gpu_plan_residuals(&gpu);
}

/* windows that grow and slide, one and two plans of a block, 4 and 16 plans of a cluster */
static void test_fused_windows(void **state) {
    (void)state;
    gpu_plan_costs(&cpu, &gpu, 1, 1, 1, 17, 5, "clusters");
    gpu_plan_gradients(&cpu, &gpu, 1, 1, 1, 5, NULL);
    gpu_plan_gradients(&cpu, &gpu, 1, 2, 30, 3, NULL);
}

/* what few plans do not take unless asked to, for memory checkers */
static void test_tiles_small(void **state) {
    (void)state;
    gpu_plan_costs(&cpu, &gpu, 1, 1, 1, 20, 2, "tiles");
}

/* 64 plans per block: parts of blocks, several of them, windows that grow and slide */
static void test_tiles(void **state) {
    (void)state;
    gpu_plan_costs(&cpu, &gpu, 6, 1, 1, 128, 5, "tiles");
    gpu_plan_costs(&cpu, &gpu, 6, 2, 2, 40, 3, "tiles");
    gpu_plan_costs(&cpu, &gpu, 6, 3, 1, 17, 4, "tiles");
    gpu_plan_costs(&cpu, &gpu, 2, 1, 3, 60, 5, "tiles");
    gpu_plan_costs(&cpu, &gpu, 1, 1, 2, 140, 4, "tiles");
}

static void test_fused(void **state) {
    (void)state;
    gpu_plan_costs(&cpu, &gpu, 6, 1, 1, 128, 5, NULL);
    gpu_plan_costs(&cpu, &gpu, 6, 2, 2, 40, 3, NULL);
    gpu_plan_costs(&cpu, &gpu, 6, 3, 1, 17, 4, NULL);
    gpu_plan_costs(&cpu, &gpu, 2, 1, 3, 60, 5, NULL); /* more than there are clusters at a time */
    gpu_plan_costs(&cpu, &gpu, 1, 1, 2, 140, 4, NULL);
    gpu_plan_gradients(&cpu, &gpu, 6, 1, 1, 5, NULL);
    gpu_plan_gradients(&cpu, &gpu, 2, 2, 18, 4, NULL);
    gpu_plan_gradients(&cpu, &gpu, 6, 3, 2, 3, NULL);
}

/* ---- DINO-WM --------------------------------------------------------------------------------- */

static void test_dino_small_features(void **state) {
    (void)state;
    gpu_dino_features(&cpu, &gpu, false);
}
static void test_dino_features(void **state) {
    (void)state;
    gpu_dino_features(&cpu, &gpu, true);
}
static void test_dino_update(void **state) {
    (void)state;
    gpu_dino_update(&cpu, &gpu);
}
static void test_dino_plans(void **state) {
    (void)state;
    gpu_dino_plans(&cpu, &gpu);
}
static void test_dino_small_costs(void **state) {
    (void)state;
    gpu_dino_costs(&cpu, 4, 3, 1);
}
static void test_dino_costs(void **state) {
    (void)state;
    gpu_dino_costs(&cpu, 14, 32, 6); /* the published 588 tokens, the predictor's depth */
    gpu_dino_costs(&cpu, 5, 130, 2); /* more plans than a run takes */
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void test_refusals(void **state) {
    (void)state;
    cgs_device d;
    void *p;
    assert_int_equal(cgs_device_open(&d, "cuda:1000", 1), CGS_EDEVICE);
    assert_non_null(strstr(cgs_last_error(), "GPU"));
    assert_int_equal(cgs_device_open(&d, "cuda:one", 1), CGS_EDEVICE);
    assert_int_equal(gpu.ops->alloc(&gpu, &p, (size_t)1 << 50), CGS_ENOMEM);
    assert_non_null(strstr(cgs_last_error(), "MiB are free"));
    OK(gpu.ops->sync(&gpu)); /* nothing is left of it */
    OK(cgs_device_open(&d, "auto", 1));
    assert_string_equal(d.ops->name, "cuda");
    cgs_device_close(&d);
}

int main(int argc, char **argv) {
    if (cgs_device_open(&gpu, "cuda", 0) != CGS_OK) {
        puts(cgs_last_error());
        return 77;
    }
    if (cgs_device_open(&ref, "ref", 1) != CGS_OK || cgs_device_open(&cpu, "cpu", 0) != CGS_OK)
        return 1;
    const struct CMUnitTest small[] = {
        cmocka_unit_test(test_small_f32),     cmocka_unit_test(test_small_bf16),
        cmocka_unit_test(test_optimiser),     cmocka_unit_test(test_muon),
        cmocka_unit_test(test_fused_small),   cmocka_unit_test(test_frames_sent),
        cmocka_unit_test(test_variant_names),
    };
    const struct CMUnitTest ops[] = {
        cmocka_unit_test(test_operations_f32), cmocka_unit_test(test_operations_bf16),
        cmocka_unit_test(test_paper_sizes),    cmocka_unit_test(test_random_draws),
        cmocka_unit_test(test_optimiser),      cmocka_unit_test(test_muon),
    };
    const struct CMUnitTest without[] = {
        cmocka_unit_test(test_variants),
    };
    const struct CMUnitTest runs[] = {
        cmocka_unit_test(test_frames_sent),    cmocka_unit_test(test_frames_stay),
        cmocka_unit_test(test_training_f32),   cmocka_unit_test(test_training_bf16),
        cmocka_unit_test(test_training_class),
    };
    const struct CMUnitTest model[] = {
        cmocka_unit_test(test_golden_f32),
        cmocka_unit_test(test_golden_bf16),
        cmocka_unit_test(test_golden_class),
        cmocka_unit_test(test_refusals),
    };
    const struct CMUnitTest plan[] = {
        cmocka_unit_test(test_planners_agree),  cmocka_unit_test(test_fused_windows),
        cmocka_unit_test(test_fused),           cmocka_unit_test(test_paper_plans),
        cmocka_unit_test(test_device_loop),     cmocka_unit_test(test_neighbours),
        cmocka_unit_test(test_planner_options), cmocka_unit_test(test_host_loops),
    };
    const struct CMUnitTest dino[] = {
        cmocka_unit_test(test_dino_features),
        cmocka_unit_test(test_dino_update),
        cmocka_unit_test(test_dino_plans),
        cmocka_unit_test(test_dino_costs),
    };
    const struct CMUnitTest dino_small[] = {
        cmocka_unit_test(test_dino_small_features),
        cmocka_unit_test(test_dino_update),
        cmocka_unit_test(test_dino_plans),
        cmocka_unit_test(test_dino_small_costs),
    };
    const struct CMUnitTest rollouts[] = {
        cmocka_unit_test(test_tiles_small),
        cmocka_unit_test(test_tiles),
    };
    const char *part = argc > 1 ? argv[1] : "";
    bool every = !*part;
    light = !strcmp(part, "variants-small");
    bool some = !strcmp(part, "only"), others = light || !strcmp(part, "variants");
    only = argc > 2 && (some || others) ? argv[2] : NULL;
    int failed = 0;
    if (argc > 2 && !only) cmocka_set_test_filter(argv[2]);
    if (!strcmp(part, "small") || some)
        failed += cmocka_run_group_tests(small, gpu_train_begin, gpu_train_end);
    if (!strcmp(part, "ops") || every) failed += cmocka_run_group_tests(ops, NULL, NULL);
    if (others) failed += cmocka_run_group_tests(without, NULL, NULL);
    if (!strcmp(part, "train") || every)
        failed += cmocka_run_group_tests(runs, gpu_train_begin, gpu_train_end);
    if (!strcmp(part, "model") || every) failed += cmocka_run_group_tests(model, NULL, NULL);
    if (!strcmp(part, "plan") || every) failed += cmocka_run_group_tests(plan, NULL, NULL);
    if (!strcmp(part, "dino") || every) failed += cmocka_run_group_tests(dino, NULL, NULL);
    if (!strcmp(part, "dino-small")) failed += cmocka_run_group_tests(dino_small, NULL, NULL);
    if (!strcmp(part, "rollouts") || every) failed += cmocka_run_group_tests(rollouts, NULL, NULL);
    cgs_device_close(&cpu);
    cgs_device_close(&ref);
    cgs_device_close(&gpu);
    return failed;
}

/* test_cpu.c - what the CPU backend promises beyond agreeing with the reference: every
 * instruction set and its own products give the same answers, the vector functions are
 * good to rounding, and loops do not depend on the number of threads.
 *
 * test_ops.c holds the best instruction set against the reference; here the others are
 * held against the best, which takes seconds. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/rng.h"
#include "core/team.h"
#include "expect.h"
#include "ops/check/check.h"
#include "ops/cpu/gemm.h"

static const char *const isas[] = {"base", "v3", "v4", "amx", "v4 tiles"};
enum { TABLES = 3, ISAS = 5 }; /* the first three have tables of their own */
static const cgs_cpu_table *const tables[TABLES] = {
    &cgs_cpu_table_base,
#if defined __x86_64__
    &cgs_cpu_table_v3,
    &cgs_cpu_table_v4,
#endif
};

/* whether the processor has it; prints what is left out */
static bool limit(cgs_device *d, const char *isa, bool products) {
    cgs_status rc = cgs_cpu_limit_isa(d, isa, products);
    if (rc == CGS_EDEVICE)
        print_message("left out: %s\n", cgs_last_error());
    else
        OK(rc);
    return rc == CGS_OK;
}

static void test_limits(void **state) {
    (void)state;
    cgs_device d;
    OK(cgs_device_open(&d, "cpu", 2));
    print_message("best instruction set: %s\n", cgs_cpu_isa(&d));
    OK(cgs_cpu_limit_isa(&d, "base", true));
    assert_string_equal(cgs_cpu_isa(&d), "base");
    assert_int_equal(cgs_cpu_limit_isa(&d, "v9", true), CGS_EARG);
    cgs_device_close(&d);
}

/* ---- all variants agree -------------------------------------------------------- */

/* a case in f32 on one instruction set, in bf16 on the next: both types meet all cases */
static void compare(cgs_device *best, cgs_device *other, int isa) {
    int failed = 0;
    for (int i = 0; i < cgs_op_case_count; i++) {
        const cgs_op_case *c = &cgs_op_cases[i];
        if (c->heavy) continue;
        bool bf16 = (i + isa) % 2;
        cgs_dtype act = bf16 ? CGS_BF16 : CGS_F32;
        double tolerance = bf16 ? c->tol_bf16 : c->tol_f32;
        cgs_mismatch m;
        OK(cgs_check_eval(c, (cgs_setup){best, act}, (cgs_setup){other, act}, true, &m));
        if (m.error <= tolerance) continue;
        print_error("%s, %s %s: error %.3g > %.3g at %s[%zu]: %.9g, want %.9g\n", c->name,
                    isas[isa], bf16 ? "bf16" : "f32", m.error, tolerance, m.where, m.index, m.got,
                    m.want);
        failed++;
    }
    assert_int_equal(failed, 0);
}

static void test_instruction_sets_agree(void **state) {
    (void)state;
    for (int i = 0; i < TABLES; i++) {
        cgs_device best, other;
        OK(cgs_device_open(&best, "cpu", 2));
        OK(cgs_device_open(&other, "cpu", 2));
        if (limit(&other, isas[i], false)) compare(&best, &other, i);
        cgs_device_close(&other);
        cgs_device_close(&best);
    }
}

/* every variant of bf16 pair products, in attention and linear layers, against the reference */
static void test_pairs_agree_with_reference(void **state) {
    (void)state;
    for (int i = TABLES - 1; i < ISAS; i++) {
        cgs_device ref, cpu;
        OK(cgs_device_open(&ref, "ref", 1));
        OK(cgs_device_open(&cpu, "cpu", 2));
        bool run = limit(&cpu, isas[i], true);
        for (int k = 0; k < cgs_op_case_count && run; k++) {
            const cgs_op_case *c = &cgs_op_cases[k];
            cgs_mismatch m;
            if ((c->op != CGS_OP_attention && c->op != CGS_OP_linear) || c->heavy) continue;
            OK(cgs_check_eval(c, (cgs_setup){&ref, CGS_BF16}, (cgs_setup){&cpu, CGS_BF16}, k % 2,
                              &m));
            print_message("%s, %s: %.2g\n", isas[i], c->name, m.error);
            if (!(m.error <= c->tol_bf16))
                fail_msg("%s[%zu]: %.9g, want %.9g", m.where, m.index, m.got, m.want);
        }
        cgs_device_close(&cpu);
        cgs_device_close(&ref);
    }
}

/* with own products every result is the same bits whatever the number of threads */
static void test_threads_do_not_matter(void **state) {
    (void)state;
    cgs_device one, three;
    OK(cgs_device_open(&one, "cpu", 1));
    OK(cgs_device_open(&three, "cpu", 3));
    OK(cgs_cpu_limit_isa(&one, cgs_cpu_isa(&one), false));
    OK(cgs_cpu_limit_isa(&three, cgs_cpu_isa(&three), false));
    for (int i = 0; i < cgs_op_case_count; i++) {
        const cgs_op_case *c = &cgs_op_cases[i];
        cgs_mismatch m;
        if (c->heavy) continue;
        OK(cgs_check_eval(c, (cgs_setup){&one, CGS_BF16}, (cgs_setup){&three, CGS_BF16}, true, &m));
        if (m.error != 0)
            fail_msg("%s: %.9g with three threads, %.9g with one", c->name, m.got, m.want);
    }
    cgs_device_close(&three);
    cgs_device_close(&one);
}

/* ---- functions --------------------------------------------------------------------------- */

static double exact(int which, double x) {
    switch (which) {
    case CGS_MATH_EXP: return exp(x);
    case CGS_MATH_LOG: return log(x);
    case CGS_MATH_NORMAL_CDF: return 0.5 * erfc(-x / sqrt(2));
    case CGS_MATH_SIN: return sin(x);
    default: return cos(x);
    }
}

static void test_functions(void **state) {
    (void)state;
    /* error relative to the larger of the value and floor */
    static const struct {
        const char *name;
        double low, high, floor, tolerance;
    } wanted[] = {{"exp", -87, 88, 0, 2e-7},
                  {"log", 0.01, 700, 1, 2e-7},
                  {"normal cdf", -6, 6, 0.01, 6e-7},
                  {"sin", -300, 300, 1, 1.5e-7},
                  {"cos", -300, 300, 1, 1.5e-7}};
    enum { N = 100000 };
    float *x = malloc(N * sizeof *x), *y = malloc(N * sizeof *y);
    assert_true(x && y);
    for (int i = 0; i < TABLES; i++) {
        cgs_device d;
        OK(cgs_device_open(&d, "cpu", 1));
        bool run = limit(&d, isas[i], true);
        cgs_device_close(&d);
        for (int f = 0; f < 5 && run; f++) {
            double worst = 0, at = 0;
            for (int k = 0; k < N; k++)
                x[k] = (float)(wanted[f].low + (wanted[f].high - wanted[f].low) * k / (N - 1));
            tables[i]->math(f, y, x, N);
            for (int k = 0; k < N; k++) {
                double want = exact(f, x[k]);
                double error = fabs(y[k] - want) / fmax(fabs(want), wanted[f].floor);
                if (!(error <= worst)) worst = error, at = x[k];
            }
            print_message("%s %s: %.2g\n", isas[i], wanted[f].name, worst);
            if (!(worst <= wanted[f].tolerance)) fail_msg("at %.9g", at);
        }
    }
    free(x);
    free(y);
}

/* ---- products ---------------------------------------------------------------------------- */

/* both ways on shapes that no tile divides, and on a sum over nothing */
static void test_products(void **state) {
    (void)state;
    const size_t shapes[][3] = {{1, 1, 1}, {97, 193, 5}, {13, 33, 600}, {200, 3, 257}, {5, 7, 0}};
    for (int onednn = 0; onednn < 2; onednn++)
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
            for (int way = 0; way < 16; way++) {
                cgs_device d;
                cgs_gemm *g;
                OK(cgs_device_open(&d, "cpu", 2));
                OK(cgs_cpu_limit_isa(&d, cgs_cpu_isa(&d), onednn));
                size_t M = shapes[s][0], N = shapes[s][1], K = shapes[s][2];
                cgs_product p = {.M = M,
                                 .N = N,
                                 .K = K,
                                 .a_transposed = way & 1,
                                 .b_transposed = way & 2,
                                 .bias = way & 4,
                                 .accumulate = way & 8};
                OK(cgs_gemm_prepare(&d, &p, &g));
                float *A = malloc((M * K + 1) * 4), *B = malloc((K * N + 1) * 4),
                      *C = malloc(M * N * 4), *bias = malloc(N * 4);
                assert_true(A && B && C && bias);
                cgs_rng r = cgs_rng_stream(1, CGS_STREAM_TEST, s);
                for (size_t i = 0; i < M * K; i++) A[i] = cgs_rng_f32(&r) - 0.5f;
                for (size_t i = 0; i < K * N; i++) B[i] = cgs_rng_f32(&r) - 0.5f;
                for (size_t i = 0; i < M * N; i++) C[i] = 3;
                for (size_t i = 0; i < N; i++) bias[i] = (float)i;
                cgs_gemm_run(&d, g, C, A, B, p.bias ? bias : NULL, NULL);
                for (size_t i = 0; i < M; i++)
                    for (size_t j = 0; j < N; j++) {
                        double want = (p.bias ? (double)j : 0) + (p.accumulate ? 3 : 0);
                        for (size_t k = 0; k < K; k++)
                            want += (double)A[p.a_transposed ? k * M + i : i * K + k] *
                                    B[p.b_transposed ? j * K + k : k * N + j];
                        if (!(fabs(C[i * N + j] - want) <= 1e-5 * (1 + fabs(want))))
                            fail_msg("%zu x %zu x %zu, way %d: %.9g, want %.9g", M, N, K, way,
                                     C[i * N + j], want);
                    }
                free(A), free(B), free(C), free(bias);
                cgs_device_close(&d);
            }
}

/* equal rows give equal rows, wherever they are and however many: what a plan costs does not depend
 * on the others of its batch.  (oneDNN's own order changes with the rows where there is no AVX-512:
 * CGS_ISA=v3 shows it.) */
static void test_batch_invariant(void **state) {
    (void)state;
    const size_t widths[][2] = {{96, 96}, {384, 96}, {96, 384}, {192, 768}, {10, 48}};
    const size_t rows[] = {1, 2, 3, 5, 8, 13, 40, 67, 200};
    enum { MOST = 200 * 768 };
    float *A = malloc(MOST * sizeof *A), *B = malloc(MOST * sizeof *B),
          *C = malloc(MOST * sizeof *C);
    uint16_t *A16 = malloc(MOST * sizeof *A16), *B16 = malloc(MOST * sizeof *B16);
    float first[768];
    assert_true(A && B && C && A16 && B16);
    cgs_rng r = cgs_rng_stream(1, CGS_STREAM_TEST, 7);
    for (size_t i = 0; i < MOST; i++) B[i] = cgs_rng_f32(&r) - 0.5f;
    for (size_t i = 0; i < MOST; i++) B16[i] = cgs_f32_to_bf16(B[i]);
    for (int form = 0; form < 4; form++)
        for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++) {
            size_t N = widths[w][0], K = widths[w][1];
            bool bf16 = form & 1;
            for (size_t i = 0; i < MOST; i++) A[i] = i < K ? cgs_rng_f32(&r) - 0.5f : A[i - K];
            for (size_t i = 0; i < MOST; i++) A16[i] = cgs_f32_to_bf16(A[i]);
            for (size_t m = 0; m < sizeof rows / sizeof rows[0]; m++) {
                cgs_product p = {.M = rows[m],
                                 .N = N,
                                 .K = K,
                                 .in = bf16 ? CGS_BF16 : CGS_F32,
                                 .b_transposed = form & 2,
                                 .batch_invariant = true};
                cgs_device d;
                cgs_gemm *g;
                OK(cgs_device_open(&d, "cpu", 1 + (int)m % 2));
                OK(cgs_gemm_prepare(&d, &p, &g));
                cgs_gemm_run(&d, g, C, bf16 ? (void *)A16 : A, bf16 ? (void *)B16 : B, NULL, NULL);
                if (m == 0) memcpy(first, C, N * sizeof *first);
                for (size_t i = 0; i < rows[m]; i++)
                    if (memcmp(first, C + i * N, N * sizeof *first) != 0)
                        fail_msg("%s, N %zu, K %zu: row %zu of %zu differs", bf16 ? "bf16" : "f32",
                                 N, K, i, rows[m]);
                cgs_device_close(&d);
            }
        }
    free(A), free(B), free(C), free(A16), free(B16);
}

/* what cgs bench ops says: which code runs a product, in the order in which they were prepared */
static void test_choices(void **state) {
    (void)state;
    const cgs_product f32 = {.M = 64, .N = 64, .K = 64, .in = CGS_F32, .out = CGS_F32};
    cgs_product bf16 = f32;
    bf16.in = bf16.out = CGS_BF16;
    bf16.batch_invariant = true;
    for (int tiles = 0; tiles < 2; tiles++) {
        cgs_device d;
        cgs_gemm *g;
        cgs_gemm_choice c;
        OK(cgs_device_open(&d, "cpu", 1));
        if (limit(&d, tiles ? "v4 tiles" : "base", false)) {
            assert_false(cgs_gemm_choice_at(&d, 0, &c));
            OK(cgs_gemm_prepare(&d, &f32, &g));
            OK(cgs_gemm_prepare(&d, &bf16, &g));
            assert_true(cgs_gemm_choice_at(&d, 0, &c));
            assert_string_equal(c.code, "own vectors");
            assert_string_equal(c.why, "no oneDNN");
            assert_true(c.p.in == CGS_F32);
            assert_true(cgs_gemm_choice_at(&d, 1, &c));
            assert_string_equal(c.code, tiles ? "own tiles" : "own vectors");
            assert_true(c.p.in == CGS_BF16 && c.why[0]);
            assert_false(cgs_gemm_choice_at(&d, 2, &c));
        }
        cgs_device_close(&d);
    }
}

/* where a layer's gradients are made in one pass: its pieces cover all rows, in whole runs */
static void test_pieces(void **state) {
    (void)state;
    cgs_device d;
    OK(cgs_device_open(&d, "cpu", 2));
    if (limit(&d, "v4", true) && cgs_cpu_of(&d)->pairs) {
        assert_int_equal(cgs_gemm_joint(&d, 2047, 192, 768).pieces, 0); /* too few rows */
        assert_int_equal(cgs_gemm_joint(&d, 4096, 588, 192).pieces, 0);
        assert_int_equal(cgs_gemm_joint(&d, 4096, 192, 512).pieces, 0);
        for (size_t n = 2048; n < 200000; n += 61) {
            cgs_cpu_pieces p = cgs_gemm_joint(&d, n, 192, n % 2 ? 768 : 96);
            assert_true(p.pieces > 0 && p.pieces * p.rows >= n && p.run <= p.rows);
            assert_true(p.run > 0 && p.run % CGS_LINEAR_PAIRS_ROWS == 0);
        }
    }
    if (limit(&d, "base", true)) assert_int_equal(cgs_gemm_joint(&d, 4096, 192, 768).pieces, 0);
    cgs_device_close(&d);
}

/* bf16 through every variant of pair products: rows that no tile divides, sums over one run of rows
 * and a bit, all that can happen to the result */
static void test_products_of_bf16(void **state) {
    (void)state;
    const size_t shapes[][3] = {{1, 32, 64}, {70, 96, 32}, {128, 64, 96}, {32, 64, 1101}};
    for (int isa = TABLES - 1; isa < ISAS; isa++)
        for (size_t s = 0; s < 4; s++)
            for (int way = 0; way < 32; way++) {
                size_t M = shapes[s][0], N = shapes[s][1], K = shapes[s][2];
                bool tall = K > 1000; /* the products that sum over rows */
                cgs_product p = {.M = M,
                                 .N = N,
                                 .K = K,
                                 .in = CGS_BF16,
                                 .out = tall || way & 1 ? CGS_F32 : CGS_BF16,
                                 .a_transposed = tall,
                                 .b_transposed = !tall && way & 2,
                                 .bias = !tall && way & 4,
                                 .accumulate = way & 8,
                                 .batch_invariant = way & 16};
                cgs_device d;
                cgs_gemm *g;
                OK(cgs_device_open(&d, "cpu", 2));
                if (!limit(&d, isas[isa], true)) {
                    cgs_device_close(&d);
                    s = 4;
                    break;
                }
                OK(cgs_gemm_prepare(&d, &p, &g));
                uint16_t *A = malloc(M * K * 2), *B = malloc(K * N * 2), *C = malloc(M * N * 4);
                float *wide = (float *)(void *)C, bias[96];
                assert_true(A && B && C);
                cgs_rng r = cgs_rng_stream(2, CGS_STREAM_TEST, s);
                for (size_t i = 0; i < M * K; i++) A[i] = cgs_f32_to_bf16(cgs_rng_f32(&r) - 0.5f);
                for (size_t i = 0; i < K * N; i++) B[i] = cgs_f32_to_bf16(cgs_rng_f32(&r) - 0.5f);
                for (size_t i = 0; i < M * N; i++)
                    if (p.out == CGS_F32)
                        wide[i] = 3;
                    else
                        C[i] = cgs_f32_to_bf16(3);
                for (size_t i = 0; i < N; i++) bias[i] = (float)i;
                cgs_gemm_run(&d, g, C, A, B, p.bias ? bias : NULL, NULL);
                double tolerance = p.out == CGS_F32 ? 1e-5 : 0.005;
                for (size_t i = 0; i < M; i++)
                    for (size_t j = 0; j < N; j++) {
                        double want = (p.bias ? (double)j : 0) + (p.accumulate ? 3 : 0);
                        double got = p.out == CGS_F32 ? (double)wide[i * N + j]
                                                      : (double)cgs_bf16_to_f32(C[i * N + j]);
                        for (size_t k = 0; k < K; k++)
                            want +=
                                (double)cgs_bf16_to_f32(A[p.a_transposed ? k * M + i : i * K + k]) *
                                cgs_bf16_to_f32(B[p.b_transposed ? j * K + k : k * N + j]);
                        if (!(fabs(got - want) <= tolerance * (1 + fabs(want))))
                            fail_msg("%s, %zu x %zu x %zu, way %d: %.9g, want %.9g", isas[isa], M,
                                     N, K, way, got, want);
                    }
                free(A), free(B), free(C);
                cgs_device_close(&d);
            }
}

typedef struct mixed {
    const cgs_cpu_table *table;
    float *C;
    const float *A;
    const uint16_t *B;
    size_t M, N, K;
} mixed;

static void multiply_mixed(void *context) {
    const mixed *m = context;
    m->table->mixed_product(m->C, m->A, m->B, m->M, m->N, m->K);
}

/* f32 rows times bf16 weights under every instruction set, by one thread and by two: right to
 * rounding, and a row has the same bits whatever the number of rows */
static void test_mixed_products(void **state) {
    (void)state;
    const size_t shapes[][2] = {{192, 600}, {45, 33}, {7, 5}, {32, 1}, {96, 0}};
    const size_t rows[] = {1, 2, 3, 4, 5, 13, 40, 67};
    enum { MOST_N = 192, MOST_K = 600, MOST_ROWS = 67 };
    float *A = malloc(MOST_ROWS * MOST_K * sizeof *A), *C = malloc(MOST_ROWS * MOST_N * sizeof *C),
          first[MOST_ROWS * MOST_N];
    uint16_t *B = malloc(MOST_K * MOST_N * sizeof *B);
    assert_true(A && B && C);
    cgs_rng r = cgs_rng_stream(3, CGS_STREAM_TEST, 0);
    for (size_t i = 0; i < MOST_ROWS * MOST_K; i++) A[i] = cgs_rng_f32(&r) - 0.5f;
    for (size_t i = 0; i < MOST_K * MOST_N; i++) B[i] = cgs_f32_to_bf16(cgs_rng_f32(&r) - 0.5f);
    for (int isa = 0; isa < TABLES; isa++) {
        cgs_device d;
        OK(cgs_device_open(&d, "cpu", 1));
        bool here = tables[isa] && limit(&d, isas[isa], true);
        cgs_device_close(&d);
        if (!here) continue;
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
            for (size_t m = sizeof rows / sizeof rows[0]; m-- > 0;) {
                mixed x = {tables[isa], C, A, B, rows[m], shapes[s][0], shapes[s][1]};
                cgs_together(1 + (int)m % 2, multiply_mixed, &x);
                if (rows[m] == MOST_ROWS) memcpy(first, C, x.M * x.N * sizeof *C);
                if (memcmp(first, C, x.M * x.N * sizeof *C) != 0)
                    fail_msg("%s, %zu x %zu x %zu: other bits than among %d rows", isas[isa], x.M,
                             x.N, x.K, MOST_ROWS);
                for (size_t i = 0; i < x.M * x.N; i++) {
                    double want = 0;
                    for (size_t k = 0; k < x.K; k++)
                        want += (double)A[i / x.N * x.K + k] *
                                (double)cgs_bf16_to_f32(B[k * x.N + i % x.N]);
                    if (!(fabs(C[i] - want) <= 1e-5 * (1 + fabs(want))))
                        fail_msg("%s, %zu x %zu x %zu: %.9g, want %.9g", isas[isa], x.M, x.N, x.K,
                                 (double)C[i], want);
                }
            }
    }
    free(A), free(B), free(C);
}

/* backward of a tall linear layer works through runs of rows and a shorter last one */
static void test_runs_of_rows(void **state) {
    (void)state;
    cgs_device ref, cpu;
    cgs_op_case c = cgs_op_cases[0];
    for (int i = 0; c.op != CGS_OP_linear; i++) c = cgs_op_cases[i];
    const int n[CGS_CASE_SIZES] = {2 * CGS_CPU_LINEAR_ROWS + 130, 12, 20, 1};
    memcpy(c.n, n, sizeof n);
    OK(cgs_device_open(&ref, "ref", 1));
    OK(cgs_device_open(&cpu, "cpu", 2));
    for (int i = 0; i < 4; i++) {
        cgs_dtype act = i % 2 ? CGS_BF16 : CGS_F32;
        cgs_mismatch m;
        OK(cgs_check_eval(&c, (cgs_setup){&ref, act}, (cgs_setup){&cpu, act}, i / 2, &m));
        if (m.error > (i % 2 ? c.tol_bf16 : c.tol_f32))
            fail_msg("%s[%zu]: %.9g, want %.9g", m.where, m.index, m.got, m.want);
    }
    cgs_device_close(&cpu);
    cgs_device_close(&ref);
}

/* a tape that does not train prepacks its weights; changes must reach it */
static void test_changed_weights_are_seen(void **state) {
    (void)state;
    enum { N = 40, K = 32, M = 64 };
    const int dim[2] = {N, K};
    float x[N * K], w[M * K], y[N * M];
    cgs_device d;
    cgs_tape *t;
    OK(cgs_device_open(&d, "cpu", 2));
    cgs_tensor W = {.rank = 2, .dim = {M, K}, .outside = true};
    cgs_adamw adam = {.lr = 0.5f, .beta1 = 0.9f, .beta2 = 0.9f, .clip_scale = 1, .step = 1};
    float *g, *m, *v;
    OK(d.ops->alloc(&d, &W.data, sizeof w));
    OK(d.ops->alloc(&d, (void **)&g, sizeof w));
    OK(d.ops->alloc(&d, (void **)&m, sizeof w));
    OK(d.ops->alloc(&d, (void **)&v, sizeof w));
    OK(d.ops->alloc(&d, (void **)&W.bf16, sizeof w / 2));
    for (int type = 0; type < 3; type++) {
        cgs_dtype act = type ? CGS_BF16 : CGS_F32;
        if (type == 2 && !limit(&d, "v4 tiles", true)) break;
        OK(cgs_tape_create(&t, &d, act));
        cgs_tensor *in = cgs_input(t, "x", act, 2, dim);
        cgs_tensor *out = cgs_keep(cgs_linear_f32(t, in, &W, NULL));
        OK(cgs_tape_finish(t, NULL));
        for (int i = 0; i < N * K; i++) x[i] = 1;
        OK(cgs_tensor_write(t, in, x));
        for (int round = 0; round < 3; round++) {
            /* sums of K equal weights: 0.25 K, 0.5 K, then one step of 0.5 down */
            for (int i = 0; i < M * K; i++) w[i] = 0.25f * (float)(round + 1);
            if (round < 2) {
                OK(d.ops->upload(&d, W.data, w, sizeof w));
                d.ops->round_bf16(&d, W.bf16, W.data, M * K);
            } else {
                for (int i = 0; i < M * K; i++) w[i] = 1;
                OK(d.ops->upload(&d, g, w, sizeof w));
                d.ops->adamw(&d, &adam, W.data, g, m, v, W.bf16, M * K);
            }
            cgs_tape_forward(t);
            OK(cgs_tensor_read(t, out, y));
            float want = round == 2 ? 0.0f : 0.25f * (float)(round + 1) * K;
            for (int i = 0; i < N * M; i++)
                if (fabsf(y[i] - want) > 1e-4f)
                    fail_msg("round %d: %g, want %g", round, y[i], want);
        }
        cgs_tape_destroy(t);
        memset(m, 0, sizeof w);
        memset(v, 0, sizeof w);
    }
    void *all[] = {W.data, W.bf16, g, m, v};
    for (int i = 0; i < 5; i++) d.ops->release(&d, all[i]);
    cgs_device_close(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_batch_invariant),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_products_of_bf16),
        cmocka_unit_test(test_mixed_products),
        cmocka_unit_test(test_instruction_sets_agree),
        cmocka_unit_test(test_pairs_agree_with_reference),
        cmocka_unit_test(test_threads_do_not_matter),
        cmocka_unit_test(test_changed_weights_are_seen),
        cmocka_unit_test(test_runs_of_rows),
        cmocka_unit_test(test_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

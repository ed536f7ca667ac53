/* test_ops.c - the reference is checked (finite differences, closed forms), then used to check the
 * others.
 *
 * Every case of the registry is run three ways: the reference's gradients against
 * differences of its forward pass; the reference with bf16 activations against itself
 * with f32; and every other backend against the reference, in both types. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/rng.h"
#include "core/threads.h"
#include "expect.h"
#include "ops/check/check.h"

static void assert_near(double got, double want, double tolerance) {
    if (!(fabs(got - want) <= tolerance)) fail_msg("%.9g, want %.9g", got, want);
}

static cgs_device ref, other; /* other.ops is NULL in a build with the reference alone */

static int open_devices(void **state) {
    (void)state;
    if (cgs_device_open(&ref, "ref", 1) != CGS_OK) return -1;
    if (cgs_device_open(&other, "cpu", 2) != CGS_OK) other = (cgs_device){0};
    return 0;
}

static int close_devices(void **state) {
    (void)state;
    cgs_device_close(&ref);
    cgs_device_close(&other);
    return 0;
}

/* ---- the registry ------------------------------------------------------------------- */

/* prints a failure and counts it, so that one run shows all of them */
static int judge(const cgs_op_case *c, const char *how, const cgs_mismatch *m, double tolerance) {
    if (m->error <= tolerance) return 0;
    print_error("%s, %s: error %.3g > %.3g at %s[%zu]: %.9g, want %.9g\n", c->name, how, m->error,
                tolerance, m->where, m->index, m->got, m->want);
    return 1;
}

static bool is_small(const cgs_op_case *c) {
    return strstr(c->name, "odd") || strstr(c->name, "single") || strstr(c->name, "still");
}

/* tangents along many directions take as many forward passes */
static bool is_moderate(const cgs_op_case *c) { return is_small(c) || strstr(c->name, "typical"); }

static void test_every_operation_has_a_case(void **state) {
    (void)state;
    bool seen[CGS_OP_COUNT] = {false};
    for (int i = 0; i < cgs_op_case_count; i++) seen[cgs_op_cases[i].op] |= !cgs_op_cases[i].heavy;
    for (int op = 0; op < CGS_OP_COUNT; op++)
        if (!seen[op]) fail_msg("%s has no case", cgs_op_name((cgs_opcode)op));
}

static void test_gradients_match_differences(void **state) {
    (void)state;
    int failed = 0, checked = 0;
    for (int i = 0; i < cgs_op_case_count; i++) {
        const cgs_op_case *c = &cgs_op_cases[i];
        cgs_mismatch m;
        if (c->heavy || c->step == 0) continue;
        OK(cgs_check_grad(c, &ref, &m));
        failed += judge(c, "gradient", &m, c->tol_gradient);
        checked++;
    }
    print_message("%d cases differentiated\n", checked);
    assert_int_equal(failed, 0);
}

static void test_tangents_match_differences(void **state) {
    (void)state;
    int failed = 0;
    for (int i = 0; i < cgs_op_case_count; i++) {
        const cgs_op_case *c = &cgs_op_cases[i];
        cgs_mismatch m;
        if (c->heavy || c->step == 0 || !is_moderate(c)) continue;
        OK(cgs_check_tangent(c, &ref, &m));
        failed += judge(c, "tangent", &m, c->tol_gradient);
    }
    assert_int_equal(failed, 0);
}

/* Tangents by another backend, and of bf16 activations. */
static void test_tangents_agree(void **state) {
    (void)state;
    int failed = 0;
    for (int i = 0; i < cgs_op_case_count; i++) {
        const cgs_op_case *c = &cgs_op_cases[i];
        cgs_setup exact = {&ref, CGS_F32};
        cgs_mismatch m;
        if (c->heavy || !is_moderate(c)) continue;
        OK(cgs_check_push(c, exact, (cgs_setup){&ref, CGS_BF16}, &m));
        failed += judge(c, "ref tangent, bf16", &m, c->tol_bf16);
        if (!other.ops) continue;
        OK(cgs_check_push(c, exact, (cgs_setup){&other, CGS_F32}, &m));
        failed += judge(c, "cpu tangent, f32", &m, c->tol_f32);
        OK(cgs_check_push(c, exact, (cgs_setup){&other, CGS_BF16}, &m));
        failed += judge(c, "cpu tangent, bf16", &m, c->tol_bf16);
    }
    assert_int_equal(failed, 0);
}

/* a: the reference */
static void compare_all(cgs_setup a, cgs_setup b, const char *how, bool only_small) {
    int failed = 0;
    for (int i = 0; i < cgs_op_case_count; i++)
        for (int twice = 0; twice < 2; twice++) {
            const cgs_op_case *c = &cgs_op_cases[i];
            cgs_mismatch m;
            if (c->heavy || (only_small && !is_small(c))) continue;
            OK(cgs_check_eval(c, a, b, twice, &m));
            failed += judge(c, how, &m, b.act == CGS_BF16 ? c->tol_bf16 : c->tol_f32);
        }
    assert_int_equal(failed, 0);
}

/* from poisoned memory the same setup gives the same numbers, run after run */
static void test_reference_repeats_itself(void **state) {
    (void)state;
    compare_all((cgs_setup){&ref, CGS_F32}, (cgs_setup){&ref, CGS_F32}, "ref twice", true);
}

static void test_element_types_agree(void **state) {
    (void)state;
    compare_all((cgs_setup){&ref, CGS_F32}, (cgs_setup){&ref, CGS_BF16}, "ref bf16", false);
}

static void test_backend_agrees_f32(void **state) {
    (void)state;
    if (!other.ops) skip();
    compare_all((cgs_setup){&ref, CGS_F32}, (cgs_setup){&other, CGS_F32}, "cpu f32", false);
}

static void test_backend_agrees_bf16(void **state) {
    (void)state;
    if (!other.ops) skip();
    compare_all((cgs_setup){&ref, CGS_BF16}, (cgs_setup){&other, CGS_BF16}, "cpu bf16", false);
}

static void test_measuring(void **state) {
    (void)state;
    for (int i = 0; i < cgs_op_case_count; i++) {
        if (cgs_op_cases[i].heavy || cgs_op_cases[i].op != CGS_OP_linear) continue;
        cgs_timing f, b;
        OK(cgs_measure(&cgs_op_cases[i], (cgs_setup){&ref, CGS_F32}, 0.0, &f, &b));
        assert_true(f.seconds.runs >= 5 && f.seconds.value >= f.seconds.least &&
                    f.seconds.value <= f.seconds.most && f.seconds.least > 0);
        const int *n = cgs_op_cases[i].n;
        assert_near(f.cost.flops, 2.0 * n[0] * n[1] * n[2], 0);
        bool gradient = cgs_op_cases[i].step > 0; /* others have constants only */
        assert_near(b.cost.flops, gradient ? 4.0 * n[0] * n[1] * n[2] : 0, 0);
        if (!strcmp(cgs_op_cases[i].name, "linear/typical"))
            print_message("%s: %.2f GFLOP/s forward, %.2f backward\n", cgs_op_cases[i].name,
                          1e-9 * f.cost.flops / f.seconds.value,
                          1e-9 * b.cost.flops / b.seconds.value);
    }
}

/* ---- checks that cannot fail check nothing -------------------------------------------- */

/* wrong in one element, the largest */
static void wrong_backward(cgs_device *d, const cgs_record *r) {
    ref.ops->backward[r->op](d, r);
    for (int k = 0; k < CGS_MAX_IN; k++) {
        if (!r->in[k] || !r->in[k]->wants_grad) continue;
        float *g = r->in[k]->grad;
        size_t largest = 0;
        for (size_t i = 0; i < cgs_numel(r->in[k]); i++)
            if (fabsf(g[i]) > fabsf(g[largest])) largest = i;
        g[largest] *= 1.01f;
        return;
    }
}

/* right, but for the whole gradient being two per cent too long */
static void long_backward(cgs_device *d, const cgs_record *r) {
    ref.ops->backward[r->op](d, r);
    for (int k = 0; k < CGS_MAX_IN; k++) {
        if (!r->in[k] || !r->in[k]->wants_grad) continue;
        for (size_t i = 0; i < cgs_numel(r->in[k]); i++) ((float *)r->in[k]->grad)[i] *= 1.02f;
        return;
    }
}

/* right, but for being one per cent too long */
static void long_tangent(cgs_device *d, const cgs_record *r) {
    ref.ops->tangent[r->op](d, r);
    for (size_t i = 0; i < cgs_numel(r->out) * (size_t)r->directions; i++)
        r->out->tangent[i] *= 1.01f;
}

/* overwrites where it should add */
static void greedy_backward(cgs_device *d, const cgs_record *r) {
    cgs_record overwrite = *r;
    memset(overwrite.accumulate, 0, sizeof overwrite.accumulate);
    ref.ops->backward[r->op](d, &overwrite);
}

/* leaves the last element of the result as it was */
static void lazy_forward(cgs_device *d, const cgs_record *r) {
    size_t last = cgs_numel(r->out) - 1;
    float before = ((float *)r->out->data)[last];
    ref.ops->forward[r->op](d, r);
    ((float *)r->out->data)[last] = before;
}

/* gradients that the caller writes at two results add up where they meet */
static void test_seeded_gradients(void **state) {
    (void)state;
    enum { N = 6 };
    const int dim[2] = {2, 3};
    cgs_device d;
    cgs_tape *t;
    float x[N] = {-2, -1, -0.5f, 0.5f, 1, 2}, g[2][N], got[N];
    OK(cgs_device_open(&d, "ref", 1));
    OK(cgs_tape_create(&t, &d, CGS_F32));
    cgs_tensor *in = cgs_input(t, "x", CGS_F32, 2, dim);
    cgs_require_grad(t, in);
    cgs_tensor *silu = cgs_activate_f32(t, in, CGS_SILU), *relu = cgs_activate_f32(t, in, CGS_RELU);
    cgs_seed(t, silu);
    cgs_seed(t, relu);
    OK(cgs_tape_finish(t, NULL));
    OK(cgs_tensor_write(t, in, x));
    for (int i = 0; i < N; i++) {
        g[0][i] = 0.3f * (float)(i + 1);
        g[1][i] = -0.2f * (float)i;
    }
    for (int run = 0; run < 2; run++) {
        cgs_tape_forward(t);
        OK(d.ops->upload(&d, silu->grad, g[0], sizeof g[0]));
        OK(d.ops->upload(&d, relu->grad, g[1], sizeof g[1]));
        cgs_tape_backward(t);
        OK(cgs_tensor_read_grad(t, in, got));
        for (int i = 0; i < N; i++) {
            double s = 1 / (1 + exp(-(double)x[i]));
            double want = g[0][i] * s * (1 + x[i] * (1 - s)) + (x[i] > 0 ? g[1][i] : 0);
            assert_true(fabs(got[i] - want) < 1e-6);
        }
    }
    cgs_tape_destroy(t);
    cgs_device_close(&d);
}

static void test_checks_can_fail(void **state) {
    (void)state;
    cgs_setup good = {&ref, CGS_F32};
    for (int i = 0; i < cgs_op_case_count; i++) {
        const cgs_op_case *c = &cgs_op_cases[i];
        if (!strstr(c->name, "odd")) continue;
        cgs_backend table[4] = {*ref.ops, *ref.ops, *ref.ops, *ref.ops};
        cgs_device d[4];
        for (int k = 0; k < 4; k++) d[k] = (cgs_device){.ops = &table[k], .threads = 1};
        table[0].forward[c->op] = lazy_forward;
        table[1].backward[c->op] = wrong_backward;
        table[2].backward[c->op] = greedy_backward;
        table[3].backward[c->op] = long_backward;

        cgs_mismatch m;
        OK(cgs_check_eval(c, good, (cgs_setup){&d[0], CGS_F32}, false, &m));
        if (!isinf(m.error)) fail_msg("%s: an element left out passed", c->name);
        if (c->step == 0) continue;
        OK(cgs_check_eval(c, good, (cgs_setup){&d[1], CGS_F32}, false, &m));
        if (m.error <= c->tol_f32) fail_msg("%s: a wrong element passed", c->name);
        OK(cgs_check_eval(c, good, (cgs_setup){&d[2], CGS_F32}, true, &m));
        if (m.error <= c->tol_f32) fail_msg("%s: overwriting passed", c->name);
        OK(cgs_check_grad(c, &d[3], &m));
        if (m.error <= c->tol_gradient) fail_msg("%s: a long gradient passed", c->name);
        table[0].tangent[c->op] = long_tangent;
        table[0].forward[c->op] = ref.ops->forward[c->op];
        OK(cgs_check_tangent(c, &d[0], &m));
        if (m.error <= c->tol_gradient) fail_msg("%s: a long tangent passed", c->name);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_operation_has_a_case),
        cmocka_unit_test(test_gradients_match_differences),
        cmocka_unit_test(test_tangents_match_differences),
        cmocka_unit_test(test_tangents_agree),
        cmocka_unit_test(test_reference_repeats_itself),
        cmocka_unit_test(test_element_types_agree),
        cmocka_unit_test(test_backend_agrees_f32),
        cmocka_unit_test(test_backend_agrees_bf16),
        cmocka_unit_test(test_measuring),
        cmocka_unit_test(test_seeded_gradients),
        cmocka_unit_test(test_checks_can_fail),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}

/* test_tape.c - inputs of a tape: written in any type, any length, without an allocation;
 * parameters that are read whole and in parts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "allocations.h"
#include "expect.h"
#include "ops/tape.h"

static void test_inputs(void **state) {
    (void)state;
    enum { N = 3 * 4096 + 57 };
    static const cgs_dtype types[] = {CGS_F32, CGS_BF16, CGS_U8};
    static float values[N], got[N];
    cgs_device d;
    for (int i = 0; i < N; i++) values[i] = (float)(i % 251); /* exact in every type */
    OK(cgs_device_open(&d, "cpu", 1));
    for (int k = 0; k < 3; k++) {
        cgs_tape *t;
        OK(cgs_tape_create(&t, &d, CGS_F32));
        cgs_tensor *x = cgs_input(t, "x", types[k], 1, (const int[]){N});
        OK(cgs_tape_finish(t, NULL));
        long before = allocations;
        OK(cgs_tensor_write(t, x, values));
        OK(cgs_tensor_read(t, x, got));
        assert_int_equal(allocations, before);
        assert_memory_equal(got, values, sizeof values);
        cgs_tape_destroy(t);
    }
    assert_true(allocations > 0); /* they are counted */
    cgs_device_close(&d);
}

/* Products with the whole of a parameter (4, 2) and with its last three rows, in either order:
 * finishes the tape and, if that succeeds, reads the gradient. */
static cgs_status run_parts(cgs_device *d, bool whole_first, float gradient[8]) {
    static float W[8] = {1, 2, 3, 4, 5, 6, 7, 8}, dW[8];
    cgs_tensor w = {.name = "w", .rank = 2, .dim = {4, 2}, .wants_grad = true, .outside = true};
    w.data = W;
    w.grad = dW;
    cgs_tape *t;
    OK(cgs_tape_create(&t, d, CGS_F32));
    cgs_tensor *x = cgs_input(t, "x", CGS_F32, 2, (const int[]){1, 2}), *y[2];
    cgs_tensor *part = cgs_part(t, &w, 1, 3);
    for (int i = 0; i < 2; i++) y[i] = cgs_linear(t, x, (i == 0) == whole_first ? &w : part, NULL);
    cgs_seed(t, y[0]);
    cgs_seed(t, y[1]);
    cgs_status rc = cgs_tape_finish(t, NULL);
    for (int run = 0; rc == CGS_OK && run < 2; run++) {
        static const float ones[4] = {1, 1, 1, 1};
        OK(cgs_tensor_write(t, x, (const float[]){2, -1}));
        cgs_tape_forward(t);
        for (int i = 0; i < 2; i++) memcpy(y[i]->grad, ones, cgs_bytes(y[i]));
        cgs_tape_backward(t);
        memcpy(gradient, dW, sizeof dW);
    }
    cgs_tape_destroy(t);
    return rc;
}

static void test_parts(void **state) {
    (void)state;
    float gradient[8];
    cgs_device d;
    OK(cgs_device_open(&d, "cpu", 1));
    OK(run_parts(&d, false, gradient));
    for (int i = 0; i < 8; i++) /* the first row is in the whole alone */
        assert_true(gradient[i] == (i < 2 ? 1.0f : 2.0f) * (i % 2 ? -1.0f : 2.0f));
    REFUSED(run_parts(&d, true, gradient), CGS_EARG, "a part of w is read after the whole");
    cgs_device_close(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_inputs), cmocka_unit_test(test_parts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

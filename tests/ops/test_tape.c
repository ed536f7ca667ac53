/* test_tape.c - inputs of a tape: written in any type, any length, without an allocation. */
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_inputs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_golden.c - LeWM against published-code numbers: evaluation, rollout, training mode,
 * every loss and gradient norm; on every backend and precision.
 *
 * In f32 everything must stay under 1e-4.  In bf16 numbers (losses, costs, norms) and slices of
 * vectors must stay under 2e-2, but for the slices that golden_judge.c names with their limits;
 * with the class token and both heads in f32 (model.encoder.class_bits) every slice must.  Whole
 * tensors are held against f32, closer to what rounding does to them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "golden.h"
#include "sanitized.h"

static void test_fill(void **state) {
    (void)state;
    assert_int_equal(golden_bits("action", 0), 0x6a640941u);
    assert_int_equal(golden_bits("action", 1), 0x7f50851au);
    assert_int_equal(golden_bits("action", 2), 0x388e8ae5u);
    assert_true(fabs(golden_unit("action", 2) + 0.558150053) < 1e-8 * 0.558150053);
}

#define MODE(test, backend, act, bits, tolerance)                                                  \
    static void test(void **state) {                                                               \
        (void)state;                                                                               \
        golden_check(backend, act, bits, tolerance);                                               \
    }
MODE(test_ref_f32, "ref", CGS_F32, 16, 1e-4)
MODE(test_cpu_f32, "cpu", CGS_F32, 16, 1e-4)
MODE(test_cpu_bf16, "cpu", CGS_BF16, 16, 2e-2)
MODE(test_ref_bf16, "ref", CGS_BF16, 16, 2e-2)
MODE(test_cpu_class_f32, "cpu", CGS_BF16, 32, 2e-2)
MODE(test_ref_class_f32, "ref", CGS_BF16, 32, 2e-2)

int main(void) {
#if SANITIZED
    puts("the paper-size model is too slow under a sanitizer; test_train and test_ops cover it");
    return 77;
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fill),          cmocka_unit_test(test_cpu_f32),
        cmocka_unit_test(test_cpu_bf16),      cmocka_unit_test(test_ref_f32),
        cmocka_unit_test(test_ref_bf16),      cmocka_unit_test(test_cpu_class_f32),
        cmocka_unit_test(test_ref_class_f32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_dino.c - DINO-WM: golden numbers, backbone files of both spellings, bad ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "golden.h"
#include "model/dinowm.h"

static void test_golden_ref(void **state) {
    (void)state;
    golden_dino_check("ref", CGS_F32, 1e-4);
}
static void test_golden_cpu(void **state) {
    (void)state;
    golden_dino_check("cpu", CGS_F32, 1e-4);
}
static void test_golden_cpu_bf16(void **state) {
    (void)state;
    golden_dino_check("cpu", CGS_BF16, 2e-2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_cpu),
        cmocka_unit_test(test_golden_cpu_bf16),
        cmocka_unit_test(test_golden_ref),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

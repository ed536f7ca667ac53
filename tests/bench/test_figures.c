/* test_figures.c - measured numbers, their spread and ratios. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "bench/figures.h"

static void assert_measured(cgs_measured m, double value, double least, double most, int runs) {
    if (fabs(m.value - value) > 1e-12 || fabs(m.least - least) > 1e-12 ||
        fabs(m.most - most) > 1e-12 || m.runs != runs)
        fail_msg("%g (%g to %g) of %d, expected %g (%g to %g) of %d", m.value, m.least, m.most,
                 m.runs, value, least, most, runs);
}

static void test_spread(void **state) {
    (void)state;
    double five[] = {3, 1, 5, 2, 4}, one[] = {7}, three[] = {3, 1, 2};
    assert_measured(cgs_measured_median(five, 5), 3, 1, 5, 5);
    assert_measured(cgs_measured_median(one, 1), 7, 7, 7, 1);
    assert_measured(cgs_measured_median(three, 3), 2, 1, 3, 3);

    /* of many runs it is that of five parts in the order of time: single outliers do not widen it
     */
    double many[] = {1, 90, 1, 2, 80, 2, 3, 70, 3, 4, 60, 4, 5, 50, 5};
    assert_measured(cgs_measured_median(many, 15), 4, 1, 5, 15);
    /* the last part takes what is left over */
    double eleven[] = {1, 1, 2, 2, 3, 3, 4, 4, 9, 9, 9};
    assert_measured(cgs_measured_percentile(eleven, 11, 100), 9, 1, 9, 11);
    /* a percentile of all that lies outside those of the parts widens the range */
    double rare[] = {1, 1, 9, 1, 1, 9, 1, 1, 9, 1, 1, 9, 1, 1, 9};
    assert_measured(cgs_measured_percentile(rare, 15, 60), 1, 1, 2.6, 15);
}

static void test_units(void **state) {
    (void)state;
    cgs_measured seconds = {2, 1, 4, 5};
    assert_measured(cgs_measured_times(seconds, 1000), 2000, 1000, 4000, 5);
    assert_measured(cgs_measured_rate(8, seconds), 4, 2, 8, 5); /* the shortest time is the most */
}

static void test_ratios(void **state) {
    (void)state;
    cgs_measured now = {2, 1.8, 2.4, 5}, half = {1, 0.9, 1.2, 7}, near = {2.2, 2.1, 2.3, 5};
    cgs_measured r = cgs_measured_ratio(now, half);
    assert_measured(r, 2, 1.5, 2.4 / 0.9, 5);
    assert_true(cgs_ratio_differs(r));
    r = cgs_measured_ratio(half, now);
    assert_measured(r, 0.5, 0.375, 1.2 / 1.8, 5);
    assert_true(cgs_ratio_differs(r));
    assert_false(cgs_ratio_differs(cgs_measured_ratio(now, near)));

    /* without a spread nothing is known to differ; counts differ at once */
    r = cgs_measured_ratio(cgs_measured_once(2), half);
    assert_int_equal(r.runs, 1);
    assert_false(cgs_ratio_differs(r));
    r = cgs_measured_ratio(cgs_measured_count(101), cgs_measured_count(100));
    assert_measured(r, 1.01, 1.01, 1.01, 0);
    assert_true(cgs_ratio_differs(r));
    assert_false(
        cgs_ratio_differs(cgs_measured_ratio(cgs_measured_count(7), cgs_measured_count(7))));
}

/* figures of one name are taken in their order, each once */
static void test_taking(void **state) {
    (void)state;
    cgs_figure at[] = {{.bench = "ops", .name = "add", .unit = "ms", .m = {1, 1, 1, 5}},
                       {.bench = "ops", .name = "add", .unit = "GB/s", .m = {2, 2, 2, 5}},
                       {.bench = "ops", .name = "add", .unit = "ms", .m = {3, 3, 3, 5}}};
    cgs_figures f = {.at = at, .count = 3};
    const cgs_figure like = {.bench = "ops", .name = "add", .unit = "ms"};
    assert_ptr_equal(cgs_figures_take(&f, &like), &at[0]);
    assert_ptr_equal(cgs_figures_take(&f, &like), &at[2]);
    assert_null(cgs_figures_take(&f, &like));
}

static void test_conditions(void **state) {
    (void)state;
    char text[256];
    cgs_conditions a = {.device = "cpu", .processor = "A", .isa = "v3", .threads = 2}, b = a;
    strcpy(b.commit, "other");
    strcpy(b.version, "other");
    cgs_conditions_differ(text, sizeof text, &a, &b);
    assert_string_equal(text, ""); /* other code is what is compared */
    strcpy(b.isa, "v4");
    b.threads = 1;
    cgs_conditions_differ(text, sizeof text, &a, &b);
    assert_string_equal(text, "isa is v3, was v4; threads is 2, was 1");
    cgs_conditions_differ(text, 10, &a, &b);
    assert_string_equal(text, "isa is v3");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_spread), cmocka_unit_test(test_units),
                                       cmocka_unit_test(test_ratios), cmocka_unit_test(test_taking),
                                       cmocka_unit_test(test_conditions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

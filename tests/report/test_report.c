/* test_report.c - text that is safe in a page, ticks, and the paper's numbers.
 *
 * The published curves were typed once; the paper also prints the area under each, so typing
 * errors show as areas that do not fit. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/statistics.h"
#include "report/method.h"
#include "report/paper_rates.h"
#include "report/plot.h"

static void assert_near(double value, double expected, double tolerance) {
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%.17g, expected %.17g within %g", value, expected, tolerance);
}

/* ---- text -------------------------------------------------------------------------- */

static void check_escape(const char *from, const char *to) {
    cgs_text t = {0};
    cgs_text_escape(&t, from);
    assert_string_equal(t.s ? t.s : "", to);
    cgs_text_free(&t);
}

static void test_escape(void **state) {
    (void)state;
    check_escape("", "");
    check_escape("a<b>&\"'", "a&lt;b&gt;&amp;&quot;&#39;");
    check_escape("\xCF\x84 = 1", "\xCF\x84 = 1"); /* a Greek letter stays */
    check_escape("a\nb\tc", "a b c");
    check_escape("\x01\x7F", "\xEF\xBF\xBD\xEF\xBF\xBD");
    check_escape("\xC0\xBC", "\xEF\xBF\xBD\xEF\xBF\xBD"); /* "<" in an overlong encoding  */
    check_escape("\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");   /* half a pair      */
    check_escape("\xE2\x80\xAE!", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD!"); /* turns text round */
    check_escape("\xF0\x9F", "\xEF\xBF\xBD\xEF\xBF\xBD"); /* cut short             */
    check_escape("\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80");
    char lot[6000];
    memset(lot, 'x', sizeof lot - 1);
    lot[sizeof lot - 1] = '\0';
    cgs_text t = {0};
    cgs_text_escape(&t, lot);
    assert_int_equal(t.used, 4096 + 3); /* and an ellipsis */
    cgs_text_free(&t);
}

static void test_base64(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foobar", "Zm9vYmFy"}};
    for (int i = 0; i < 5; i++) {
        cgs_text t = {0};
        cgs_text_put(&t, ":");
        cgs_text_base64(&t, pairs[i][0], strlen(pairs[i][0]));
        assert_string_equal(t.s + 1, pairs[i][1]);
        cgs_text_free(&t);
    }
}

static void test_growth(void **state) {
    (void)state;
    cgs_text t = {0};
    for (int i = 0; i < 5000; i++) cgs_text_printf(&t, "%d,", i % 10);
    assert_int_equal(t.used, 10000);
    assert_int_equal(strlen(t.s), 10000);
    t.failed = true;
    cgs_text_put(&t, "more");
    assert_int_equal(t.used, 10000);
    assert_int_equal(cgs_text_check(&t, "page"), CGS_ENOMEM);
    cgs_text_free(&t);
}

/* ---- drawings ---------------------------------------------------------------------- */

static void test_ticks(void **state) {
    (void)state;
    double t[16];
    assert_int_equal(cgs_plot_ticks(0, 100, CGS_AXIS_LINEAR, 6, t), 6);
    for (int i = 0; i < 6; i++) assert_near(t[i], 20 * i, 1e-12);
    assert_int_equal(cgs_plot_ticks(0.9, 280, CGS_AXIS_LOG2, 9, t), 9);
    for (int i = 0; i < 9; i++) assert_near(t[i], 1 << i, 1e-9);
    int n = cgs_plot_ticks(0.03, 0.4, CGS_AXIS_LOG10, 6, t);
    assert_int_equal(n, 3);
    assert_near(t[0], 0.05, 1e-12);
    assert_near(t[1], 0.1, 1e-12);
    assert_near(t[2], 0.2, 1e-12);
    /* nonsense has no ticks, and extremes have few enough */
    assert_int_equal(cgs_plot_ticks(1, 1, CGS_AXIS_LINEAR, 6, t), 0);
    assert_int_equal(cgs_plot_ticks(NAN, 1, CGS_AXIS_LINEAR, 6, t), 0);
    assert_int_equal(cgs_plot_ticks(-1, 1, CGS_AXIS_LOG2, 6, t), 0);
    assert_in_range(cgs_plot_ticks(1e-300, 1e300, CGS_AXIS_LOG10, 6, t), 2, 16);
    assert_in_range(cgs_plot_ticks(-1e300, 1e300, CGS_AXIS_LINEAR, 6, t), 2, 16);
}

static void check_number(double v, const char *text) {
    char s[32];
    cgs_plot_number(s, sizeof s, v);
    assert_string_equal(s, text);
}

static void test_numbers(void **state) {
    (void)state;
    check_number(0, "0");
    check_number(0.25, "0.25");
    check_number(-5, "\xE2\x88\x92"
                     "5");
    check_number(20000, "20k");
    check_number(3e6, "3M");
    check_number(5e-5, "5e-5");
}

/* whatever the values, a drawing holds finite numbers only */
static void test_odd_values(void **state) {
    (void)state;
    static const double odd[] = {NAN, INFINITY, -INFINITY, 0, -1, 1e308, -1e308, 1e-320, 3};
    enum { N = sizeof odd / sizeof *odd };
    for (int scale = 0; scale < 3; scale++) {
        cgs_plot_series s = {"<odd>", 0, CGS_LINE_MARKS, N, odd, odd, odd, odd};
        cgs_plot p = {.title = "odd",
                      .x = {.label = "x", .scale = (cgs_axis_scale)scale},
                      .y = {.label = "y", .scale = (cgs_axis_scale)scale},
                      .series = &s,
                      .count = 1};
        cgs_text t = {0};
        cgs_plot_lines(&t, &p);
        assert_int_equal(cgs_text_check(&t, "plot"), CGS_OK);
        assert_null(strstr(t.s, "<odd>"));
        for (const char *d = t.s; (d = strstr(d, " d=\"")); d += 4) {
            size_t n = strcspn(d + 4, "\"");
            assert_int_equal(strspn(d + 4, "MLZhvz0123456789.- "), n);
        }
        cgs_text_free(&t);
    }
    cgs_plot_row row = {"r", NAN, NAN, NAN, 0};
    cgs_text t = {0};
    cgs_plot_intervals(&t, "nothing", "axis", &row, 1);
    cgs_plot_bars(&t, "nothing", "axis", &row, 1);
    cgs_plot_path path = {"p", 0, 3, odd};
    cgs_plot_paths(&t, "paths", &path, 1, 3);
    cgs_plot_heat(&t, "heat", 0, odd, 3);
    assert_int_equal(cgs_text_check(&t, "plots"), CGS_OK);
    cgs_text_free(&t);
}

/* ---- published numbers ------------------------------------------------------------- */

static void test_published_areas(void **state) {
    (void)state;
    static const char *const env[] = {"pusht", "cube", "tworooms", "reacher"};
    static const char *const method[] = {"lewm", "lewm-ts", "lewm-cgs"};
    static const char *const planner[] = {"cem", "pg-cem", "mppi", "pg-mppi"};
    for (int p = 0; p < 4; p++)
        for (int m = 0; m < 3; m++)
            for (int e = 0; e < 4; e++) {
                double x[9], y[9], nauc, area;
                for (int k = 0; k < 9; k++) {
                    cgs_published v;
                    assert_true(cgs_published_rate(method[m], env[e], planner[p], 1 << k, &v));
                    assert_in_range((int)v.sd, 0, 20);
                    x[k] = k;
                    y[k] = v.mean;
                }
                assert_int_equal(cgs_nauc(x, y, 9, &nauc), CGS_OK);
                /* means are rounded to a tenth of whole episodes */
                assert_true(cgs_published_budget(method[m], env[e], planner[p], &area));
                assert_near(nauc, area, 0.04);
            }
}

static void test_published_gaps(void **state) {
    (void)state;
    cgs_published v;
    double x;
    assert_true(cgs_published_rate("lewm-cgs", "tworooms", "gd", 0, &v));
    assert_near(v.mean, 70.7, 1e-4);
    assert_true(cgs_published_rate("dinowm-cls", "wall", "cem", 64, &v));
    assert_near(v.mean, 76.0, 1e-4);
    assert_true(cgs_published_rate("dinowm-cls", "pusht", "gd", 0, &v));
    assert_near(v.mean, 46.0, 1e-4);
    assert_false(cgs_published_rate("lewm", "tworooms", "mppi", 100, &v));
    assert_false(cgs_published_rate("lewm", "wall", "mppi", 128, &v));
    assert_false(cgs_published_rate("lewm", "tworooms", "zero", 0, &v));
    assert_false(cgs_published_rate("<x>", "tworooms", "mppi", 128, &v));
    assert_true(cgs_published_budget("lewm", "reacher", "cem", &x));
    assert_near(x, 63.46, 1e-4);
    assert_false(cgs_published_budget("lewm", "reacher", "gd", &x));
    assert_false(cgs_published_budget("dinowm-cls", "pusht", "cem", &x));
    assert_true(cgs_published_refinement("lewm", "cube", "mppi", &x));
    assert_near(x, 64.36, 1e-4);
    assert_true(cgs_published_temperature("lewm-cgs", "pusht", &x));
    assert_near(x, 60.48, 1e-4);
    assert_true(cgs_published_cosine("lewm-ts", "cube", &x));
    assert_near(x, 0.666, 1e-6);
    assert_false(cgs_published_cosine("lewm-cgs", "cube", &x));
}

/* the tables of other references and histories agree with the main ones where they overlap */
static void test_published_variants(void **state) {
    (void)state;
    static const char *const planner[] = {"mppi", "cem", "gd"}, *const method[] = {"lewm",
                                                                                   "lewm-cgs"};
    cgs_published v, w;
    double over_K, over_I, x;
    for (int p = 0; p < 3; p++)
        for (int m = 0; m < 2; m++) {
            assert_true(cgs_published_history(method[m], "native", planner[p], &v, &x));
            assert_true(cgs_published_rate(method[m], "reacher", planner[p], 128, &w));
            assert_near(v.mean, w.mean, 1e-9);
            assert_near(v.sd, w.sd, 1e-9);
            assert_true(isnan(x) == (p == 2));
        }
    assert_true(cgs_published_history("lewm-cgs-transition", "dataset", "mppi", &v, &x));
    assert_near(v.mean, 80.0, 1e-4);
    assert_near(x, 51.96, 1e-4);
    assert_false(cgs_published_history("lewm-ts", "online", "mppi", &v, &x));
    assert_false(cgs_published_history("lewm", "often", "mppi", &v, &x));
    for (int p = 0; p < 2; p++) {
        assert_true(cgs_published_cube_reference("lewm-cgs", planner[p], &over_K, &over_I));
        assert_true(cgs_published_refinement("lewm-cgs", "cube", planner[p], &x));
        assert_near(over_I, x, 1e-4);
    }
    assert_true(cgs_published_cube_reference("lewm-cgs-full", "cem", &over_K, &over_I));
    assert_near(over_K, 62.92, 1e-4);
    assert_false(cgs_published_cube_reference("lewm-ts", "cem", &over_K, &over_I));
}

static void test_methods(void **state) {
    (void)state;
    char name[64], family[64];
    assert_string_equal(cgs_method_title("lewm-cgs"), "LeWM+CGS");
    assert_string_equal(cgs_method_title("my own"), "my own");
    assert_int_equal(cgs_method_role("dinowm-cls-ts", family), CGS_ROLE_TS);
    assert_string_equal(family, "dinowm-cls");
    assert_int_equal(cgs_method_style("lewm"), CGS_STYLE_PLAIN);
    assert_int_equal(cgs_method_style("lewm-ts"), CGS_STYLE_TS);
    assert_int_equal(cgs_method_style("lewm-cgs"), CGS_STYLE_CGS);
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "other%d", i);
        assert_in_range(cgs_method_style(name), CGS_STYLE_OTHER, CGS_STYLES - 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_escape),          cmocka_unit_test(test_base64),
        cmocka_unit_test(test_growth),          cmocka_unit_test(test_ticks),
        cmocka_unit_test(test_numbers),         cmocka_unit_test(test_odd_values),
        cmocka_unit_test(test_published_areas), cmocka_unit_test(test_published_gaps),
        cmocka_unit_test(test_methods),         cmocka_unit_test(test_published_variants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

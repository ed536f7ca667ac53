/* test_env_draw.c - drawing primitives, resampling and portable functions. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/rng.h"
#include "env/portable.h"
#include "env/raster.h"

/* footprints as measured on the reference library */
static void test_raster(void **unused) {
    (void)unused;
    static const int w15[15] = {6, 12, 16, 18, 20, 22, 24, 26, 26, 28, 28, 28, 30, 30, 30};
    static const int w11[11] = {6, 10, 12, 16, 16, 18, 20, 20, 22, 22, 22};
    static const int w2[2] = {2, 4};
    static const int *const widths[3] = {w15, w11, w2};
    static const int radii[3] = {15, 11, 2};
    enum { SIDE = 64 };
    const cgs_pixel ink = {9, 8, 7, 0};
    static cgs_pixel pixel[SIDE * SIDE];
    cgs_raster c = {pixel, SIDE, {0, 0, SIDE - 1, SIDE - 1}};
    for (int k = 0; k < 3; k++) {
        int r = radii[k];
        memset(pixel, 0, sizeof pixel);
        cgs_raster_disc(&c, 32, 30, r, ink);
        for (int row = 0; row < SIDE; row++) {
            int n = 0, from = row - (30 - r), mirrored = 2 * r - 1 - from;
            for (int x = 0; x < SIDE; x++) n += pixel[row * SIDE + x].r == 9;
            int expected = from < 0 || mirrored < 0 ? 0 : widths[k][from < r ? from : mirrored];
            assert_int_equal(n, expected);
        }
    }
    /* an axis-aligned fat segment at k covers k-1..k+2 in the middle, discs reach k-2 */
    memset(pixel, 0, sizeof pixel);
    cgs_raster_fat_segment(&c, 10, 20, 50, 20, 2, ink);
    for (int y = 0; y < SIDE; y++)
        assert_int_equal(pixel[y * SIDE + 30].r == 9, y >= 18 && y <= 22);
    /* far outside nothing happens, in finite time */
    memset(pixel, 0, sizeof pixel);
    cgs_raster_fat_segment(&c, 1000000, 1000000, 1000000, 999000, 2, ink);
    cgs_raster_disc(&c, -1000000, 5, 15, ink);
    for (int i = 0; i < SIDE * SIDE; i++) assert_int_equal(pixel[i].r, 0);
}

/* area averages keep the mean, and agree with sums taken in floating point */
static void test_area(void **unused) {
    (void)unused;
    enum { FROM = 224, TO = 37 };
    static uint8_t in[FROM * FROM * 3], out[TO * TO * 3];
    cgs_rng rng = cgs_rng_stream(1, CGS_STREAM_TEST, 3);
    for (size_t i = 0; i < sizeof in; i++) in[i] = (uint8_t)cgs_rng_u64(&rng);
    cgs_resample r;
    assert_int_equal(cgs_resample_area(&r, FROM, TO), CGS_OK);
    cgs_resample_run(&r, in, 3, (cgs_box){0, 0, TO - 1, TO - 1}, out);
    double step = (double)FROM / TO;
    for (int j = 0; j < TO; j += 6)
        for (int i = 0; i < TO; i += 5) {
            double sum = 0;
            for (int y = 0; y < FROM; y++)
                for (int x = 0; x < FROM; x++) {
                    double h = fmin(x + 1, (i + 1) * step) - fmax(x, i * step);
                    double v = fmin(y + 1, (j + 1) * step) - fmax(y, j * step);
                    if (h > 0 && v > 0) sum += h * v * in[(y * FROM + x) * 3 + 1];
                }
            assert_true(fabs(sum / (step * step) - out[(j * TO + i) * 3 + 1]) <= 0.5 + 1e-6);
        }
    cgs_resample_free(&r);
}

static void test_portable(void **unused) {
    (void)unused;
    double worst = 0, worst_exp = 0;
    for (int i = 0; i < 20000; i++) {
        double x = -50 + i * 0.005 + 1e-3, s, c;
        cgs_sincos(x, &s, &c);
        worst = fmax(worst, fmax(fabs(s - sin(x)), fabs(c - cos(x))));
        float y = (float)(-i * 0.0018);
        double exact = exp((double)y);
        worst_exp = fmax(worst_exp, fabs((double)cgs_expf(y) - exact) / exact);
    }
    printf("portable: sine and cosine within %.2g, exp within %.2g relative\n", worst, worst_exp);
    assert_true(worst < 5e-16);
    assert_true(worst_exp < 1.5e-7);
    assert_true(cgs_wrap_turn(-0.25) == 2 * CGS_PI - 0.25);
    assert_true(fabs(cgs_wrap_half_turn(3 * CGS_PI) - CGS_PI) < 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_raster),
        cmocka_unit_test(test_area),
        cmocka_unit_test(test_portable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

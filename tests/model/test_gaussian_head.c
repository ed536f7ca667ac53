/* test_gaussian_head.c - the likelihood of a head that gives Gaussians, and its gradient. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/rng.h"
#include "model/gaussian_head.h"

enum { N = 7 };

/* against central differences, and against what a loss without a gradient says */
static void test_gradient(void **state) {
    (void)state;
    for (uint64_t trial = 0; trial < 50; trial++) {
        cgs_rng g = cgs_rng_stream(11, CGS_STREAM_TEST, trial);
        float out[2 * N], target[N], gradient[2 * N];
        const double weight = 0.3, h = 1.0 / 256;
        for (int i = 0; i < 2 * N; i++) out[i] = (float)(1.5 * cgs_rng_normal(&g));
        for (int i = 0; i < N; i++) target[i] = (float)cgs_rng_normal(&g);
        double loss = cgs_gaussian_loss(out, target, N, weight, gradient);
        assert_true(loss <= cgs_gaussian_loss(out, target, N, 1, NULL) &&
                    loss >= cgs_gaussian_loss(out, target, N, 1, NULL));
        for (int i = 0; i < 2 * N; i++) {
            float keep = out[i];
            out[i] = (float)(keep + h);
            double up = cgs_gaussian_loss(out, target, N, 1, NULL), above = out[i];
            out[i] = (float)(keep - h);
            double down = cgs_gaussian_loss(out, target, N, 1, NULL), below = out[i];
            out[i] = keep;
            double want = weight * (up - down) / (above - below);
            if (!(fabs(gradient[i] - want) < 1e-3 * (1 + fabs(want))))
                fail_msg("trial %d, output %d: %g, by differences %g", (int)trial, i,
                         (double)gradient[i], want);
        }
    }
}

/* 0 at 0 with slope 1, increasing, and bounded: no spread below 0.018 or above 4.5 */
static void test_bounds(void **state) {
    (void)state;
    assert_true(fabs(cgs_log_variance(0)) < 1e-12);
    assert_true(fabs(cgs_log_variance(1e-3) / 1e-3 - 1) < 1e-4);
    assert_true(fabs(cgs_log_variance(-1e-3) / -1e-3 - 1) < 1e-4);
    for (double x = -10; x < 10; x += 0.25)
        assert_true(cgs_log_variance(x + 0.25) > cgs_log_variance(x));
    assert_true(cgs_log_variance(1e6) <= 3 && cgs_log_variance(1e6) > 2.99);
    assert_true(cgs_log_variance(-1e6) >= -8 && cgs_log_variance(-1e6) < -7.99);
}

/* of all log-variances, the loss is lowest at the logarithm of the mean squared distance */
static void test_likeliest(void **state) {
    (void)state;
    static const float target[4] = {-1, 0.5f, 2, 0.25f};
    double squares = 0, best = INFINITY, at = 0;
    for (int i = 0; i < 4; i++) squares += (double)target[i] * target[i] / 4;
    for (double x = -3; x < 3; x += 0.001) {
        double sum = 0;
        for (int i = 0; i < 4; i++) {
            const float out[2] = {0, (float)x};
            sum += cgs_gaussian_loss(out, target + i, 1, 1, NULL);
        }
        if (sum < best) {
            best = sum;
            at = cgs_log_variance(x);
        }
    }
    assert_true(fabs(at - log(squares)) < 2e-3);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gradient),
                                       cmocka_unit_test(test_bounds),
                                       cmocka_unit_test(test_likeliest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

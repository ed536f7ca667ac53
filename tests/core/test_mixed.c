/* test_mixed.c - differences over training seeds and starts, on made-up data with known answers.
 *
 * Coverage is counted over fixed random streams: of 2,000 intervals at 95 %, chance alone moves the
 * count by 0.5 points (one deviation). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/mixed.h"
#include "core/rng.h"
#include "expect.h"

static void near_to(const char *what, double value, double expected, double tolerance) {
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%s: %.12g, expected %.12g within %g", what, value, expected, tolerance);
}

/* quantiles of published tables, and closed forms for one and two degrees of freedom */
static void test_student(void **state) {
    (void)state;
    near_to("t, 1", cgs_student_t(0.05, 1), 12.7062047362, 1e-8);
    near_to("t, 2", cgs_student_t(0.05, 2), 4.30265272975, 1e-9);
    near_to("t, 4", cgs_student_t(0.05, 4), 2.77644510520, 1e-9);
    near_to("t, 30", cgs_student_t(0.05, 30), 2.04227245630, 1e-9);
    near_to("t, 1e7", cgs_student_t(0.05, 1e7), 1.95996398454, 1e-6);
    near_to("t at 1 %, 10", cgs_student_t(0.01, 10), 3.169273, 5e-7);
    for (double t = 0.1; t < 50; t *= 1.7) {
        near_to("p, 1", cgs_student_p(t, 1), 1 - 2 * atan(t) / acos(-1), 1e-13);
        near_to("p, 2", cgs_student_p(-t, 2), 1 - t / sqrt(2 + t * t), 1e-13);
        double between = cgs_student_p(t, 1.5);
        assert_true(between < cgs_student_p(t, 1) && between > cgs_student_p(t, 2));
    }
    near_to("p of 0", cgs_student_p(0, 3), 1, 1e-15);
    assert_true(cgs_student_p(INFINITY, 3) == 0);
}

/* a table small enough for a calculation by hand */
static void test_by_hand(void **state) {
    (void)state;
    /* seeds' means 2 and 5, starts' means 2, 3, 5.5, mean 3.5; rests +-0.5, 0.5, 0 by sign */
    const double gain[2][3] = {{1, 1, 4}, {3, 5, 7}};
    cgs_mixed m;
    OK(cgs_mixed_difference(&gain[0][0], 2, 3, true, &m));
    near_to("difference", m.difference, 3.5, 1e-15);
    const double seed = 3 * (2.25 + 2.25), start = 2 * (2.25 + 0.25 + 4) / 2;
    const double rest = 2 * (0.25 + 0.25 + 0) / 2; /* seeds dominate, starts above the rest */
    double half = sqrt(
        (pow(cgs_student_t(0.05, 1), 2) * seed + pow(cgs_student_t(0.05, 2), 2) * (start - rest)) /
        6);
    near_to("low", m.interval.low, 3.5 - half, 1e-12);
    near_to("high", m.interval.high, 3.5 + half, 1e-12);
    double p = cgs_mixed_p(&m);
    half = sqrt(
        (pow(cgs_student_t(p, 1), 2) * seed + pow(cgs_student_t(p, 2), 2) * (start - rest)) / 6);
    near_to("p", half, 3.5, 1e-9);
    near_to("deviation over seeds", m.seed_sd, sqrt((seed - rest) / 3), 1e-12);
    double only = cgs_student_t(0.05, 2) * sqrt(start / 6);
    near_to("over starts", m.starts_only.high, 3.5 + only, 1e-12);
    /* the order of seeds does not matter */
    const double other[2][3] = {{3, 5, 7}, {1, 1, 4}};
    cgs_mixed n;
    OK(cgs_mixed_difference(&other[0][0], 2, 3, true, &n));
    near_to("exchanged", n.interval.low, m.interval.low, 1e-12);
    /* starts of each seed's own: within seeds 3 + 3, 1 + 1 and 4 + 4 off the means, of 4 */
    OK(cgs_mixed_difference(&gain[0][0], 2, 3, false, &n));
    near_to("within seeds", n.ms_rest, (1 + 1 + 4 + 4 + 0 + 4) / 4.0, 1e-12);
    half = cgs_student_t(0.05, 1) * sqrt(seed / 6);
    near_to("nested", n.interval.high, 3.5 + half, 1e-12);
    /* one seed says nothing of seeds */
    OK(cgs_mixed_difference(&gain[0][0], 1, 3, true, &m));
    assert_true(isinf(m.interval.low) && isinf(m.interval.high) && cgs_mixed_p(&m) > 0.999);
    assert_true(m.starts_only.low < 2 && m.starts_only.high > 2 && isfinite(m.starts_only.high));
    /* nothing varies */
    const double same[2][2] = {{1, 1}, {1, 1}};
    OK(cgs_mixed_difference(&same[0][0], 2, 2, true, &m));
    assert_true(m.interval.low == 1 && m.interval.high == 1 && cgs_mixed_p(&m) < 1e-12);
    REFUSED(cgs_mixed_difference(&gain[0][0], 0, 3, true, &m), CGS_EARG, "0 training seeds");
    REFUSED(cgs_mixed_difference(&gain[0][0], 1, 1, true, &m), CGS_EARG, "1 starts");
}

/* ---- coverage ---------------------------------------------------------------------- */

enum { STARTS = 60, TRIALS = 2000, MOST = 5 };

typedef struct cover {
    double seeds, starts, width; /* shares that cover the truth; mean width of the first */
} cover;

/* normal effects: seed and start of these deviations, rest of deviation 1; the truth is 0.3 */
static cover normal_effects(int seeds, double seed_sd, double start_sd, bool crossed,
                            uint64_t stream) {
    cover c = {0};
    for (int k = 0; k < TRIALS; k++) {
        static double gain[MOST * STARTS];
        double start[STARTS];
        cgs_rng r = cgs_rng_stream(stream, CGS_STREAM_TEST, (uint64_t)k);
        for (int s = 0; s < STARTS; s++) start[s] = start_sd * cgs_rng_normal(&r);
        for (int t = 0; t < seeds; t++) {
            double of_seed = 0.3 + seed_sd * cgs_rng_normal(&r);
            for (int s = 0; s < STARTS; s++) {
                double own = crossed ? start[s] : start_sd * cgs_rng_normal(&r);
                gain[t * STARTS + s] = of_seed + own + cgs_rng_normal(&r);
            }
        }
        cgs_mixed m;
        OK(cgs_mixed_difference(gain, seeds, STARTS, crossed, &m));
        c.seeds += (m.interval.low <= 0.3 && m.interval.high >= 0.3) / (double)TRIALS;
        c.starts += (m.starts_only.low <= 0.3 && m.starts_only.high >= 0.3) / (double)TRIALS;
        c.width += (m.interval.high - m.interval.low) / TRIALS;
    }
    return c;
}

/* successes and failures of two methods without any difference on average: each start has its own
 * chance, and each training run of each method moves all of them */
static cover outcomes(int seeds, double seed_sd, uint64_t stream) {
    cover c = {0};
    for (int k = 0; k < TRIALS; k++) {
        static double gain[MOST * STARTS];
        double chance[STARTS];
        cgs_rng r = cgs_rng_stream(stream, CGS_STREAM_TEST, (uint64_t)k);
        for (int s = 0; s < STARTS; s++) chance[s] = cgs_rng_range(&r, 0.3, 0.7);
        for (int t = 0; t < seeds; t++) {
            double shift[2];
            for (int m = 0; m < 2; m++) shift[m] = seed_sd * cgs_rng_normal(&r);
            for (int s = 0; s < STARTS; s++) {
                int won[2];
                for (int m = 0; m < 2; m++) won[m] = cgs_rng_range(&r, 0, 1) < chance[s] + shift[m];
                gain[t * STARTS + s] = won[1] - won[0];
            }
        }
        cgs_mixed m;
        OK(cgs_mixed_difference(gain, seeds, STARTS, true, &m));
        c.seeds += (m.interval.low <= 0 && m.interval.high >= 0) / (double)TRIALS;
        c.starts += (m.starts_only.low <= 0 && m.starts_only.high >= 0) / (double)TRIALS;
        c.width += (m.interval.high - m.interval.low) / TRIALS;
    }
    return c;
}

static void print(const char *what, int seeds, double sd, cover c) {
    printf("%s, %d seeds, deviation %.2f: over seeds %.1f %%, over starts %.1f %%, width %.3f\n",
           what, seeds, sd, 100 * c.seeds, 100 * c.starts, c.width);
}

/* Where training seeds differ, the interval over seeds keeps its promise and the one over starts
 * does not; where they do not, it is wider than it would have to be, never narrower. */
static void test_coverage(void **state) {
    (void)state;
    static const double sd[] = {0, 0.1, 0.3, 1};
    for (int seeds = 2; seeds <= MOST; seeds++)
        for (int i = 0; i < 4; i++) {
            cover c = normal_effects(seeds, sd[i], 0.5, true, (uint64_t)(100 * seeds + i));
            print("normal effects", seeds, sd[i], c);
            assert_true(c.seeds > 0.94); /* the promise, less chance */
            if (i == 3) {
                if (seeds > 2) near_to("large effects of seeds", c.seeds, 0.95, 0.015);
                assert_true(c.starts < 0.6);
            }
            if (i == 0) near_to("starts alone without effects of seeds", c.starts, 0.95, 0.02);
        }
    for (int i = 0; i < 4; i++) {
        cover c = normal_effects(3, sd[i], 0.5, false, (uint64_t)(5000 + i));
        print("starts of each seed's own", 3, sd[i], c);
        assert_true(c.seeds > 0.94);
        if (i == 3) near_to("nested, large effects", c.seeds, 0.95, 0.015);
    }
    for (int seeds = 2; seeds <= MOST; seeds++)
        for (int i = 0; i < 3; i++) {
            static const double moved[] = {0, 0.03, 0.1};
            cover c = outcomes(seeds, moved[i], (uint64_t)(1000 * seeds + i));
            print("outcomes", seeds, moved[i], c);
            assert_true(c.seeds > 0.94); /* the promise, less chance */
            if (i == 2) {
                if (seeds > 3) near_to("outcomes of seeds that differ", c.seeds, 0.95, 0.03);
                assert_true(c.starts < 0.8);
            }
        }
}

static void test_holm(void **state) {
    (void)state;
    double p[] = {0.01, 0.04, 0.03, 0.005};
    OK(cgs_holm(p, 4));
    const double want[] = {0.03, 0.06, 0.06, 0.02};
    for (int i = 0; i < 4; i++) near_to("Holm", p[i], want[i], 1e-15);
    double large[] = {0.9, 0.6};
    OK(cgs_holm(large, 2));
    assert_true(large[0] == 1 && large[1] == 1);
    OK(cgs_holm(large, 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_student), cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_coverage), cmocka_unit_test(test_holm)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

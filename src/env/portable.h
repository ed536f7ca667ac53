/* portable.h - elementary functions that are the same bits on every machine.
 *
 * libm picks its sin, cos and exp by CPU (with or without fused multiply-add), so their
 * last bit differs between machines; an image or a random heading must not.  These use
 * IEEE additions, multiplications and rounding only. */
#ifndef CGS_ENV_PORTABLE_H
#define CGS_ENV_PORTABLE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#pragma STDC FP_CONTRACT OFF

#define CGS_PI 3.14159265358979323846

/* Sine and cosine for |x| up to about 1e5, to about 1e-16 absolute. */
static inline void cgs_sincos(double x, double *sine, double *cosine) {
    /* x = k pi/2 + r with pi/2 in three pieces; k times the first is exact */
    double k = floor(x * (2 / CGS_PI) + 0.5);
    double r = x - k * 1.57079632673412561417e+00;
    r -= k * 6.07710050630396597660e-11;
    r -= k * 2.02226624879595063154e-21;

    /* Taylor series in r squared; the constants are 1/n!, alternating in sign */
    static const double sine_terms[] = {
        -1.0 / 6,        1.0 / 120,        -1.0 / 5040,         1.0 / 362880,
        -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368e3, 1.0 / 355687428096e3};
    static const double cosine_terms[] = {-1.0 / 2,           1.0 / 24,           -1.0 / 720,
                                          1.0 / 40320,        -1.0 / 3628800,     1.0 / 479001600,
                                          -1.0 / 87178291200, 1.0 / 20922789888e3};
    double z = r * r, s = 0, c = 0;
    for (int i = 7; i >= 0; i--) {
        s = (s + sine_terms[i]) * z;
        c = (c + cosine_terms[i]) * z;
    }
    s = r + r * s;
    c = 1 + c;

    int64_t quadrant = (int64_t)k & 3;
    double a = quadrant & 1 ? c : s, b = quadrant & 1 ? s : c;
    *sine = quadrant & 2 ? -a : a;
    *cosine = quadrant == 1 || quadrant == 2 ? -b : b;
}

/* e^x in float32 for -80 <= x <= 0, to about one unit in the last place. */
static inline float cgs_expf(float x) {
    const float round_to_int = 12582912.0f; /* 1.5 * 2^23: adding it drops the fraction */
    float n = (x * 1.44269504f + round_to_int) - round_to_int;
    float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.98412698e-4f;
    p = p * r + 1.38888889e-3f;
    p = p * r + 8.33333333e-3f;
    p = p * r + 4.16666667e-2f;
    p = p * r + 1.66666667e-1f;
    p = p * r + 0.5f;
    p = (p * r) * r + r + 1.0f;
    uint32_t bits = (uint32_t)((int32_t)n + 127) << 23;
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    return p * scale;
}

/* x rounded to float32, kept as a double.  The detour through memory is needed: gcc 12 drops
 * the rounding when it vectorises two neighbouring conversions there and back. */
static inline double cgs_round_f32(double x) {
    volatile float rounded = (float)x;
    return (double)rounded;
}

/* Python's x mod 2 pi: in [0, 2 pi). */
static inline double cgs_wrap_turn(double x) {
    double m = fmod(x, 2 * CGS_PI);
    return m < 0 ? m + 2 * CGS_PI : m;
}

/* An angle difference in (-pi, pi]. */
static inline double cgs_wrap_half_turn(double x) {
    double m = cgs_wrap_turn(x);
    return m > CGS_PI ? m - 2 * CGS_PI : m;
}

#endif /* CGS_ENV_PORTABLE_H */

/* rng.c - bounded integers and the normal quantile. */
#include "core/rng.h"

#include <math.h>

uint64_t cgs_rng_below(cgs_rng *r, uint64_t n) {
    /* redraw the few values that would bias the result */
    uint64_t limit = UINT64_MAX - UINT64_MAX % n, v;
    do v = cgs_rng_u64(r);
    while (v >= limit);
    return v % n;
}

/* Natural logarithm from IEEE basic operations only: x = m 2^e with m in
 * [sqrt(1/2), sqrt(2)), log m = 2 atanh((m-1)/(m+1)). */
static double portable_log(double x) {
    int e;
    double m = frexp(x, &e);
    if (m < 0.70710678118654752) {
        m *= 2;
        e--;
    }
    double s = (m - 1) / (m + 1), s2 = s * s, sum = 0;
    for (int k = 23; k >= 1; k -= 2) sum = sum * s2 + 1.0 / k;
    return 2 * s * sum + e * 0.69314718055994531;
}

static double poly(const double *c, int n, double x) {
    double v = c[n - 1];
    for (int i = n - 2; i >= 0; i--) v = v * x + c[i];
    return v;
}

/* Rational approximations of Wichura's algorithm AS 241 (1988): one for the
 * middle 85 % and two for the tails. */
double cgs_normal_quantile(double p) {
    static const double a[] = {3.3871328727963666080e0,  1.3314166789178437745e+2,
                               1.9715909503065514427e+3, 1.3731693765509461125e+4,
                               4.5921953931549871457e+4, 6.7265770927008700853e+4,
                               3.3430575583588128105e+4, 2.5090809287301226727e+3};
    static const double b[] = {1,
                               4.2313330701600911252e+1,
                               6.8718700749205790830e+2,
                               5.3941960214247511077e+3,
                               2.1213794301586595867e+4,
                               3.9307895800092710610e+4,
                               2.8729085735721942674e+4,
                               5.2264952788528545610e+3};
    static const double c[] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                               5.76949722146069140550e0,  3.64784832476320460504e0,
                               1.27045825245236838258e0,  2.41780725177450611770e-1,
                               2.27238449892691845833e-2, 7.74545014278341407640e-4};
    static const double d[] = {1,
                               2.05319162663775882187e0,
                               1.67638483018380384940e0,
                               6.89767334985100004550e-1,
                               1.48103976427480074590e-1,
                               1.51986665636164571966e-2,
                               5.47593808499534494600e-4,
                               1.05075007164441684324e-9};
    static const double e[] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                               1.78482653991729133580e0,  2.96560571828504891230e-1,
                               2.65321895265761230930e-2, 1.24266094738807843860e-3,
                               2.71155556874348757815e-5, 2.01033439929228813265e-7};
    static const double f[] = {1,
                               5.99832206555887937690e-1,
                               1.36929880922735805310e-1,
                               1.48753612908506148525e-2,
                               7.86869131145613259100e-4,
                               1.84631831751005468180e-5,
                               1.42151175831644588870e-7,
                               2.04426310338993978564e-15};
    double q = p - 0.5;
    if (fabs(q) <= 0.425) {
        double r = 0.180625 - q * q;
        return q * poly(a, 8, r) / poly(b, 8, r);
    }
    double r = sqrt(-portable_log(q < 0 ? p : 1 - p));
    double x =
        r <= 5 ? poly(c, 8, r - 1.6) / poly(d, 8, r - 1.6) : poly(e, 8, r - 5) / poly(f, 8, r - 5);
    return q < 0 ? -x : x;
}

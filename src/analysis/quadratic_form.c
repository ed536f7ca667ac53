/* quadratic_form.c - see quadratic_form.h. */
#include "analysis/quadratic_form.h"

#include <complex.h>
#include <math.h>
#include <stddef.h>

enum { NODES = 24, HALVINGS = 100 };

static double complex transform(const double *l, const double *m, int n, int extra,
                                double complex p) {
    double complex f = 1 / p, tilt = 0;
    for (int i = 0; i < n; i++) {
        double complex q = 1 + 2 * l[i] * p;
        f /= csqrt(q);
        if (i == extra) f /= q;
        if (m) tilt -= m[i] * m[i] * l[i] * p / q;
    }
    return m ? f * cexp(tilt) : f;
}

double cgs_form_below(const double *l, const double *m, int n, int extra, double t) {
    if (t <= 0) return 0;
    double r = 2.0 * NODES / (5 * t), pi = acos(-1);
    double sum = 0.5 * exp(r * t) * creal(transform(l, m, n, extra, r));
    for (int k = 1; k < NODES; k++) {
        double u = k * pi / NODES, cot = cos(u) / sin(u), bend = u + (u * cot - 1) * cot;
        double complex p = r * u * (cot + I);
        sum += creal(cexp(t * p) * transform(l, m, n, extra, p) * (1 + I * bend));
    }
    return fmin(fmax(sum * r / NODES, 0), 1);
}

/* Regula falsi, with the end that stays halved (Illinois): about ten evaluations. */
double cgs_form_quantile(const double *l, const double *m, int n, double alpha) {
    double low = 0, high = 0, f_low = -alpha, f_high, t = 0;
    for (int i = 0; i < n; i++) high += l[i] * (1 + (m ? m[i] * m[i] : 0));
    while ((f_high = cgs_form_below(l, m, n, -1, high) - alpha) < 0) high *= 2;
    int side = 0;
    for (int i = 0; i < HALVINGS; i++) {
        double last = t;
        t = (f_low * high - f_high * low) / (f_low - f_high);
        if (fabs(t - last) <= 1e-14 * high) break;
        double f = cgs_form_below(l, m, n, -1, t) - alpha;
        if (f < 0) {
            low = t;
            f_low = f;
            if (side < 0) f_high /= 2;
            side = -1;
        } else {
            high = t;
            f_high = f;
            if (side > 0) f_low /= 2;
            side = 1;
        }
    }
    return t;
}

void cgs_cem_mean(const double *l, const double *m, int n, double alpha, double *out) {
    double t = cgs_form_quantile(l, m, n, alpha);
    for (int j = 0; j < n; j++) out[j] = m[j] * cgs_form_below(l, m, n, j, t) / alpha;
}

void cgs_cem_jacobian(const double *l, int n, double alpha, double *out) {
    double t = cgs_form_quantile(l, NULL, n, alpha);
    for (int j = 0; j < n; j++) out[j] = cgs_form_below(l, NULL, n, j, t) / alpha;
}

/* the incomplete gamma function P(r/2, t/2), by its series: all terms are positive */
double cgs_chi2_below(double r, double t) {
    if (t <= 0) return 0;
    if (t > 1200 + r) return 1; /* the first term would underflow */
    double a = r / 2, x = t / 2, term = exp(a * log(x) - x - lgamma(a + 1)), sum = 0;
    for (int k = 1; term > 1e-18 * sum; k++) {
        sum += term;
        term *= x / (a + k);
    }
    return fmin(sum, 1);
}

double cgs_chi2_quantile(double r, double alpha) {
    double low = 0, high = r;
    while (cgs_chi2_below(r, high) < alpha) high *= 2;
    for (int i = 0; i < HALVINGS; i++) {
        double t = (low + high) / 2;
        if (cgs_chi2_below(r, t) < alpha)
            low = t;
        else
            high = t;
    }
    return (low + high) / 2;
}

double cgs_cem_beta(double alpha, int r) {
    return cgs_chi2_below(r + 2, cgs_chi2_quantile(r, alpha)) / alpha;
}

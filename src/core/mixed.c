/* mixed.c - see mixed.h. */
#include "core/mixed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Student's t ------------------------------------------------------------------- */

/* Continued fraction of the incomplete beta function, by Lentz's method. */
static double beta_fraction(double a, double b, double x) {
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double f = d;
    for (int m = 1; m < 1000; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        const double term[2] = {even, odd};
        double step = 1;
        for (int k = 0; k < 2; k++) {
            d = 1 + term[k] * d;
            c = 1 + term[k] / c;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            if (fabs(c) < tiny) c = tiny;
            step = c * d;
            f *= step;
        }
        if (fabs(step - 1) < 1e-15) break;
    }
    return f;
}

/* regularised incomplete beta function */
static double beta_below(double a, double b, double x) {
    if (!(x > 0)) return 0;
    if (!(x < 1)) return 1;
    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double cgs_student_p(double t, double freedom) {
    if (isinf(t)) return 0;
    return beta_below(freedom / 2, 0.5, freedom / (freedom + t * t));
}

/* Newton's method from zero: the tail is convex, so the steps never go too far. */
double cgs_student_t(double p, double freedom) {
    double peak = exp(lgamma((freedom + 1) / 2) - lgamma(freedom / 2)) / sqrt(freedom * acos(-1));
    double t = 0;
    for (int i = 0; i < 200; i++) {
        double slope = 2 * peak * exp(-(freedom + 1) / 2 * log1p(t * t / freedom));
        double step = (cgs_student_p(t, freedom) - p) / slope;
        if (!(step > 1e-14 * (1 + t))) break;
        t += step;
    }
    return t;
}

/* ---- the two-way table ------------------------------------------------------------- */

typedef struct squares {
    double seed, start, rest; /* mean squares */
} squares;

/* by_start: (starts) means over seeds */
static squares mean_squares(const double *gain, int T, int S, double mean, double *by_start) {
    squares q = {0};
    memset(by_start, 0, (size_t)S * sizeof *by_start);
    for (int t = 0; t < T; t++)
        for (int s = 0; s < S; s++) by_start[s] += gain[(size_t)t * (size_t)S + (size_t)s] / T;
    for (int s = 0; s < S; s++) q.start += T * (by_start[s] - mean) * (by_start[s] - mean);
    q.start /= S - 1;
    for (int t = 0; t < T; t++) {
        const double *row = gain + (size_t)t * (size_t)S;
        double of_seed = cgs_mean(row, S);
        q.seed += S * (of_seed - mean) * (of_seed - mean);
        for (int s = 0; s < S; s++) {
            double rest = row[s] - of_seed - by_start[s] + mean;
            q.rest += rest * rest;
        }
    }
    if (T > 1) {
        q.seed /= T - 1;
        q.rest /= (double)(T - 1) * (S - 1);
    }
    return q;
}

static cgs_interval around(double mean, double half) {
    return (cgs_interval){mean - half, mean + half};
}

/* Half the width of the interval that the truth misses with chance p: the parts of the variance
 * that seeds and starts are to blame for, each with its own degrees of freedom.  No component of
 * variance is below zero. */
static double half_width(const cgs_mixed *m, double p) {
    double seed = fmax(m->ms_seed, m->ms_rest);
    double start = fmax(m->ms_start - m->ms_rest, 0);
    double by_seed = cgs_student_t(p, m->seeds - 1), by_start = cgs_student_t(p, m->starts - 1);
    return sqrt((by_seed * by_seed * seed + by_start * by_start * start) /
                ((double)m->seeds * m->starts));
}

/* without the starts as a factor: what differs within seeds is the rest */
static void nest(squares *q, int T, int S) {
    q->rest = (q->start * (S - 1) + q->rest * (T - 1) * (S - 1)) / ((double)T * (S - 1));
    q->start = q->rest;
}

cgs_status cgs_mixed_difference(const double *gain, int seeds, int starts, bool crossed,
                                cgs_mixed *out) {
    if (seeds < 1 || starts < 2)
        return cgs_fail(CGS_EARG,
                        "difference over %d training seeds and %d starts: at least 1 and 2", seeds,
                        starts);
    double *by_start = malloc((size_t)starts * sizeof *by_start);
    if (!by_start) return cgs_fail(CGS_ENOMEM, "difference: no memory for %d starts", starts);
    *out = (cgs_mixed){.seeds = seeds, .starts = starts, .crossed = crossed};
    double sum = 0;
    for (int t = 0; t < seeds; t++) sum += cgs_mean(gain + (size_t)t * (size_t)starts, starts);
    out->difference = sum / seeds;
    squares q = mean_squares(gain, seeds, starts, out->difference, by_start);
    free(by_start);
    if (!crossed && seeds > 1) nest(&q, seeds, starts);
    out->ms_seed = q.seed;
    out->ms_start = q.start;
    out->ms_rest = q.rest;
    double error = sqrt(q.start / ((double)seeds * starts));
    out->starts_only = around(out->difference, cgs_student_t(0.05, starts - 1) * error);
    out->interval = (cgs_interval){-INFINITY, INFINITY};
    if (seeds < 2) return CGS_OK;
    out->seed_sd = sqrt(fmax(q.seed - q.rest, 0) / starts);
    out->interval = around(out->difference, half_width(out, 0.05));
    return CGS_OK;
}

double cgs_mixed_p(const cgs_mixed *m) {
    if (m->seeds < 2 || !(fabs(m->difference) > 0)) return 1;
    double low = 0, high = 1;
    for (int i = 0; i < 50; i++) {
        double middle = (low + high) / 2;
        if (half_width(m, middle) > fabs(m->difference))
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* ---- many comparisons -------------------------------------------------------------- */

typedef struct ranked {
    double p;
    int at;
} ranked;

static int by_p(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->p > y->p || x->p < y->p) return x->p > y->p ? 1 : -1;
    return x->at - y->at;
}

cgs_status cgs_holm(double *p, int n) {
    ranked *r = malloc((size_t)(n > 0 ? n : 1) * sizeof *r);
    if (!r) return cgs_fail(CGS_ENOMEM, "Holm's correction: no memory for %d values", n);
    for (int i = 0; i < n; i++) r[i] = (ranked){p[i], i};
    qsort(r, (size_t)n, sizeof *r, by_p);
    double least = 0;
    for (int i = 0; i < n; i++) {
        least = fmax(least, fmin(1, (n - i) * r[i].p));
        p[r[i].at] = least;
    }
    free(r);
    return CGS_OK;
}

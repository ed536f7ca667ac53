/* ridge.c - see ridge.h. */
#include "analysis/ridge.h"

#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/team.h"

/* z (n, k) = standardised rows; false when no column varies */
static bool standardise(const double *x, int n, int k, const double *mean, const double *sd,
                        double *z) {
    bool varies = false;
    for (int i = 0; i < n; i++)
        for (int c = 0; c < k; c++) {
            size_t at = (size_t)i * (size_t)k + (size_t)c;
            z[at] = (x[at] - mean[c]) / sd[c];
            varies = varies || fabs(z[at]) > 1e-9;
        }
    return varies;
}

typedef struct normal_equations {
    const double *z, *y;
    int fit;
    size_t k, m;
    double *L, *w;
} normal_equations;

static void sum_rows(void *context) {
    const normal_equations *e = context;
    CGS_QUEUE (a, e->k)
        for (size_t i = 0; i < (size_t)e->fit; i++) {
            const double *z = e->z + i * e->k, *y = e->y + i * e->m;
            for (size_t b = 0; b <= a; b++) e->L[a * e->k + b] += z[a] * z[b];
            for (size_t j = 0; j < e->m; j++) e->w[a * e->m + j] += z[a] * y[j];
        }
}

/* lower triangle of z'z + c I into L (k, k), z'y into w (k, m) */
static void products(const double *z, const double *y, int fit, int k, int m, double c, double *L,
                     double *w) {
    size_t K = (size_t)k, M = (size_t)m;
    memset(L, 0, K * K * sizeof *L);
    memset(w, 0, K * M * sizeof *w);
    normal_equations e = {z, y, fit, K, M, L, w};
    cgs_together(0, sum_rows, &e);
    for (size_t a = 0; a < K; a++) L[a * K + a] += c;
}

/* w (k, m) becomes the solution of L w = w; L (k, k), lower triangle, is overwritten */
static cgs_status solve(double *L, int k, double *w, int m, const char *what) {
    double norm = LAPACKE_dlansy(LAPACK_ROW_MAJOR, '1', 'L', k, L, k), rcond = 0;
    int info = LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'L', k, L, k);
    if (info == 0) info = LAPACKE_dpocon(LAPACK_ROW_MAJOR, 'L', k, L, k, norm, &rcond);
    if (info != 0 || !(rcond > 1e-14))
        return cgs_fail(CGS_ENUMERIC,
                        "%s: the covariance of the inputs is singular (reciprocal condition %.2g)",
                        what, rcond);
    info = LAPACKE_dpotrs(LAPACK_ROW_MAJOR, 'L', k, m, L, k, w, m);
    return info ? cgs_fail(CGS_ENUMERIC, "%s: LAPACK says %d", what, info) : CGS_OK;
}

cgs_status cgs_ridge(const cgs_parts *p, const double *x, int k, const double *y, int m,
                     double coefficient, const char *what, double *out) {
    int rows = cgs_parts_rows(p);
    size_t n = (size_t)rows, K = (size_t)k, M = (size_t)m;
    if (p->fit < 2 || k < 1 || m < 1)
        return cgs_fail(CGS_EARG, "%s: %d rows of %d inputs and %d outputs cannot be fitted", what,
                        p->fit, k, m);
    double *z = malloc((n * K + n * M + K * K + K * M + 2 * (K + M)) * sizeof *z);
    if (!z) return cgs_fail(CGS_ENOMEM, "%s: no memory for %d rows of %d inputs", what, rows, k);
    double *t = z + n * K, *L = t + n * M, *w = L + K * K;
    double *x_mean = w + K * M, *x_sd = x_mean + K, *y_mean = x_sd + K, *y_sd = y_mean + M;
    cgs_column_moments(x, p->fit, k, x_mean, x_sd);
    cgs_column_moments(y, p->fit, m, y_mean, y_sd);
    standardise(y, rows, m, y_mean, y_sd, t);
    cgs_status rc = CGS_OK;
    if (!standardise(x, rows, k, x_mean, x_sd, z))
        rc = cgs_fail(CGS_ENUMERIC, "%s: none of the %d inputs ever changes", what, k);
    if (rc == CGS_OK) {
        products(z, t, p->fit, k, m, coefficient, L, w);
        rc = solve(L, k, w, m, what);
    }
    for (size_t i = 0; rc == CGS_OK && i < n; i++)
        for (size_t j = 0; j < M; j++) {
            double sum = 0;
            for (size_t a = 0; a < K; a++) sum += z[i * K + a] * w[a * M + j];
            out[i * M + j] = y_mean[j] + y_sd[j] * sum;
        }
    free(z);
    return rc;
}

double cgs_test_error(const cgs_parts *p, const double *y, const double *guess, cgs_columns c) {
    size_t from = (size_t)(p->fit + p->validation), to = from + (size_t)p->test;
    double sum = 0;
    for (size_t i = from; i < to; i++)
        for (int j = 0; j < c.count; j++) {
            size_t at = i * (size_t)c.stride + (size_t)(c.first + j);
            sum += (y[at] - guess[at]) * (y[at] - guess[at]);
        }
    return sum;
}

double cgs_test_total(const cgs_parts *p, const double *y, cgs_columns c) {
    size_t from = (size_t)(p->fit + p->validation), to = from + (size_t)p->test;
    double sum = 0;
    for (int j = 0; j < c.count; j++) {
        const double *v = y + c.first + j;
        double mean = 0;
        for (size_t i = from; i < to; i++) mean += v[i * (size_t)c.stride] / p->test;
        for (size_t i = from; i < to; i++) {
            double d = v[i * (size_t)c.stride] - mean;
            sum += d * d;
        }
    }
    return sum;
}

cgs_status cgs_r_squared(const cgs_parts *p, const double *y, const double *guess, cgs_columns c,
                         const char *what, double *out) {
    double total = cgs_test_total(p, y, c);
    if (!(total > 0))
        return cgs_fail(CGS_ENUMERIC, "%s: never changes in the %d scored rows", what, p->test);
    *out = 1 - cgs_test_error(p, y, guess, c) / total;
    if (!isfinite(*out)) return cgs_fail(CGS_ENUMERIC, "%s: the score is %g", what, *out);
    return CGS_OK;
}

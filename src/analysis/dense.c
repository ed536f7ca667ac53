/* dense.c - see dense.h. */
#include "analysis/dense.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>
#include <lapacke.h>

cgs_status cgs_work_create(cgs_work *w, int matrices, int side) {
    size_t n = (size_t)side < 4 ? 4 : (size_t)side;
    *w = (cgs_work){.size = (size_t)matrices * n * n};
    w->base = malloc(w->size * sizeof *w->base);
    if (!w->base)
        return cgs_fail(CGS_ENOMEM, "no memory for %d matrices of side %d", matrices, side);
    return CGS_OK;
}

void cgs_work_destroy(cgs_work *w) {
    free(w->base);
    *w = (cgs_work){0};
}

static size_t count(cgs_mat a) { return (size_t)a.rows * (size_t)a.cols; }

static cgs_mat take(cgs_work *w, int rows, int cols) {
    cgs_mat a = {rows, cols, w->base + w->used};
    w->used += count(a);
    assert(w->used <= w->size);
    return a;
}

cgs_mat cgs_mat_new(cgs_work *w, int rows, int cols) {
    cgs_mat a = take(w, rows, cols);
    memset(a.x, 0, count(a) * sizeof *a.x);
    return a;
}

cgs_mat cgs_mat_copy(cgs_work *w, cgs_mat a) { return cgs_scaled(w, 1, a); }

cgs_mat cgs_identity(cgs_work *w, int n) {
    cgs_mat a = cgs_mat_new(w, n, n);
    for (int i = 0; i < n; i++) CGS_AT(a, i, i) = 1;
    return a;
}

cgs_mat cgs_transpose(cgs_work *w, cgs_mat a) {
    cgs_mat b = take(w, a.cols, a.rows);
    for (int i = 0; i < a.rows; i++)
        for (int j = 0; j < a.cols; j++) CGS_AT(b, j, i) = CGS_AT(a, i, j);
    return b;
}

static cgs_mat product(cgs_work *w, bool ta, bool tb, cgs_mat a, cgs_mat b) {
    int m = ta ? a.cols : a.rows, k = ta ? a.rows : a.cols, n = tb ? b.rows : b.cols;
    assert(k == (tb ? b.cols : b.rows));
    cgs_mat c = cgs_mat_new(w, m, n);
    cblas_dgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, m, n,
                k, 1, a.x, a.cols, b.x, b.cols, 0, c.x, n);
    return c;
}

cgs_mat cgs_mul(cgs_work *w, cgs_mat a, cgs_mat b) { return product(w, false, false, a, b); }
cgs_mat cgs_mul_tn(cgs_work *w, cgs_mat a, cgs_mat b) { return product(w, true, false, a, b); }
cgs_mat cgs_mul_nt(cgs_work *w, cgs_mat a, cgs_mat b) { return product(w, false, true, a, b); }

cgs_mat cgs_plus(cgs_work *w, cgs_mat a, double scale, cgs_mat b) {
    assert(a.rows == b.rows && a.cols == b.cols);
    cgs_mat c = take(w, a.rows, a.cols);
    for (size_t i = 0; i < count(c); i++) c.x[i] = a.x[i] + scale * b.x[i];
    return c;
}

cgs_mat cgs_scaled(cgs_work *w, double scale, cgs_mat a) {
    cgs_mat c = take(w, a.rows, a.cols);
    for (size_t i = 0; i < count(c); i++) c.x[i] = scale * a.x[i];
    return c;
}

cgs_mat cgs_submatrix(cgs_work *w, cgs_mat a, int r0, int c0, int rows, int cols) {
    assert(r0 + rows <= a.rows && c0 + cols <= a.cols);
    cgs_mat b = take(w, rows, cols);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++) CGS_AT(b, i, j) = CGS_AT(a, r0 + i, c0 + j);
    return b;
}

void cgs_put_submatrix(cgs_mat to, int r0, int c0, cgs_mat from) {
    assert(r0 + from.rows <= to.rows && c0 + from.cols <= to.cols);
    for (int i = 0; i < from.rows; i++)
        for (int j = 0; j < from.cols; j++) CGS_AT(to, r0 + i, c0 + j) = CGS_AT(from, i, j);
}

double cgs_trace(cgs_mat a) {
    double sum = 0;
    for (int i = 0; i < a.rows; i++) sum += CGS_AT(a, i, i);
    return sum;
}

double cgs_dot(cgs_mat a, cgs_mat b) {
    assert(count(a) == count(b));
    double sum = 0;
    for (size_t i = 0; i < count(a); i++) sum += a.x[i] * b.x[i];
    return sum;
}

double cgs_norm_fro(cgs_mat a) { return sqrt(cgs_dot(a, a)); }

double cgs_norm_op(cgs_work *w, cgs_mat a) {
    size_t mark = cgs_work_mark(w);
    double largest = cgs_singular(w, a).x[0];
    cgs_work_release(w, mark);
    return largest;
}

void cgs_eigen(cgs_work *w, cgs_mat a, cgs_mat *values, cgs_mat *vectors) {
    int n = a.rows;
    *values = cgs_mat_new(w, n, 1);
    *vectors = cgs_mat_new(w, n, n);
    size_t mark = cgs_work_mark(w);
    cgs_mat v = cgs_mat_copy(w, a), up = cgs_mat_new(w, n, 1);
    if (LAPACKE_dsyev(LAPACK_ROW_MAJOR, 'V', 'U', n, v.x, n, up.x) != 0) w->failed = true;
    for (int k = 0; k < n; k++) {
        values->x[k] = up.x[n - 1 - k];
        for (int i = 0; i < n; i++) CGS_AT(*vectors, i, k) = CGS_AT(v, i, n - 1 - k);
    }
    cgs_work_release(w, mark);
}

cgs_mat cgs_singular(cgs_work *w, cgs_mat a) {
    int n = a.rows < a.cols ? a.rows : a.cols;
    cgs_mat s = cgs_mat_new(w, n, 1);
    size_t mark = cgs_work_mark(w);
    cgs_mat copy = cgs_mat_copy(w, a), super = cgs_mat_new(w, n, 1);
    double none = 0;
    if (LAPACKE_dgesvd(LAPACK_ROW_MAJOR, 'N', 'N', a.rows, a.cols, copy.x, a.cols, s.x, &none, 1,
                       &none, 1, super.x) != 0)
        w->failed = true;
    cgs_work_release(w, mark);
    return s;
}

cgs_mat cgs_power(cgs_work *w, cgs_mat a, double power) {
    cgs_mat out = cgs_mat_new(w, a.rows, a.rows), values, v;
    size_t mark = cgs_work_mark(w);
    cgs_eigen(w, a, &values, &v);
    cgs_mat scaled = cgs_mat_copy(w, v);
    for (int k = 0; k < a.rows; k++) {
        double f = pow(fmax(values.x[k], 0), power);
        for (int i = 0; i < a.rows; i++) CGS_AT(scaled, i, k) *= f;
    }
    cgs_put_submatrix(out, 0, 0, cgs_mul_nt(w, scaled, v));
    cgs_work_release(w, mark);
    return out;
}

cgs_mat cgs_solve(cgs_work *w, cgs_mat a, cgs_mat b) {
    cgs_mat x = cgs_mat_copy(w, b);
    size_t mark = cgs_work_mark(w);
    cgs_mat lu = cgs_mat_copy(w, a);
    lapack_int *pivot = (lapack_int *)take(w, a.rows, 1).x;
    if (LAPACKE_dgesv(LAPACK_ROW_MAJOR, a.rows, b.cols, lu.x, a.rows, pivot, x.x, b.cols) != 0)
        w->failed = true;
    cgs_work_release(w, mark);
    return x;
}

cgs_mat cgs_least_squares(cgs_work *w, cgs_mat a, cgs_mat b) {
    cgs_mat x = cgs_mat_new(w, a.cols, 1);
    size_t mark = cgs_work_mark(w);
    int tall = a.rows > a.cols ? a.rows : a.cols;
    cgs_mat copy = cgs_mat_copy(w, a), y = cgs_mat_new(w, tall, 1), s = cgs_mat_new(w, tall, 1);
    memcpy(y.x, b.x, count(b) * sizeof *b.x);
    lapack_int rank;
    if (LAPACKE_dgelsd(LAPACK_ROW_MAJOR, a.rows, a.cols, 1, copy.x, a.cols, y.x, 1, s.x, 1e-10,
                       &rank) != 0)
        w->failed = true;
    memcpy(x.x, y.x, count(x) * sizeof *x.x);
    cgs_work_release(w, mark);
    return x;
}

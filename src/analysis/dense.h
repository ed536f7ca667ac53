/* dense.h - small dense matrices in double precision, over LAPACK.
 *
 * Functions take matrices and return a new one, so that code reads like the equation it computes.
 * Memory comes from a workspace, a stack that is rewound by mark and release; matrices are not
 * freed singly.  A workspace belongs to one thread. */
#ifndef CGS_ANALYSIS_DENSE_H
#define CGS_ANALYSIS_DENSE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/status.h"

typedef struct cgs_mat {
    int rows, cols;
    double *x; /* (rows, cols) */
} cgs_mat;

#define CGS_AT(m, i, j) ((m).x[(size_t)(i) * (size_t)(m).cols + (size_t)(j)])

typedef struct cgs_work {
    double *base;
    size_t used, size; /* in doubles */
    bool failed;       /* LAPACK did not converge, or a matrix was singular */
} cgs_work;

/* Allocates `matrices` square ones of side `side`. */
cgs_status cgs_work_create(cgs_work *w, int matrices, int side);
void cgs_work_destroy(cgs_work *w);
static inline size_t cgs_work_mark(const cgs_work *w) { return w->used; }
static inline void cgs_work_release(cgs_work *w, size_t mark) { w->used = mark; }

cgs_mat cgs_mat_new(cgs_work *w, int rows, int cols); /* zeros */
cgs_mat cgs_mat_copy(cgs_work *w, cgs_mat a);
cgs_mat cgs_identity(cgs_work *w, int n);
cgs_mat cgs_transpose(cgs_work *w, cgs_mat a);
cgs_mat cgs_mul(cgs_work *w, cgs_mat a, cgs_mat b);    /* a b   */
cgs_mat cgs_mul_tn(cgs_work *w, cgs_mat a, cgs_mat b); /* a^T b */
cgs_mat cgs_mul_nt(cgs_work *w, cgs_mat a, cgs_mat b); /* a b^T */
/* a + scale b */
cgs_mat cgs_plus(cgs_work *w, cgs_mat a, double scale, cgs_mat b);
cgs_mat cgs_scaled(cgs_work *w, double scale, cgs_mat a);
/* rows r0 ... r0 + rows - 1, columns likewise, as a copy */
cgs_mat cgs_submatrix(cgs_work *w, cgs_mat a, int r0, int c0, int rows, int cols);
void cgs_put_submatrix(cgs_mat to, int r0, int c0, cgs_mat from);

double cgs_trace(cgs_mat a);
double cgs_dot(cgs_mat a, cgs_mat b);       /* sum of products of entries */
double cgs_norm_fro(cgs_mat a);             /* of a vector: its length */
double cgs_norm_op(cgs_work *w, cgs_mat a); /* the largest singular value */

/* Of a symmetric matrix (n, n): values (n, 1) from the largest down, vectors in columns. */
void cgs_eigen(cgs_work *w, cgs_mat a, cgs_mat *values, cgs_mat *vectors);
/* (min(rows, cols), 1) from the largest down */
cgs_mat cgs_singular(cgs_work *w, cgs_mat a);
/* V diag(f(values)) V^T with f(x) = max(x, 0)^power: square roots of covariances */
cgs_mat cgs_power(cgs_work *w, cgs_mat a, double power);
/* x with a x = b, a square */
cgs_mat cgs_solve(cgs_work *w, cgs_mat a, cgs_mat b);
/* x of least |a x - b|, and of those the shortest; b (rows, 1) */
cgs_mat cgs_least_squares(cgs_work *w, cgs_mat a, cgs_mat b);

#endif /* CGS_ANALYSIS_DENSE_H */

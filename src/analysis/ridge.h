/* ridge.h - ridge regression on standardised columns.
 *
 * Rows come in three consecutive parts: training, validation and scored rows.  Means and deviations
 * are those of the training rows. */
#ifndef CGS_ANALYSIS_RIDGE_H
#define CGS_ANALYSIS_RIDGE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/statistics.h"
#include "train/probe_fit.h"

#define CGS_RIDGE_COEFFICIENT 1e-4

/* Fits y (rows, m) to x (rows, k) on the training rows and predicts all rows: out (rows, m), in the
 * units of y.  (X'X + c I) W = X'Y on standardised columns; the intercept is the mean.  An input
 * that never changes in any column, or a product that LAPACK cannot factor, is CGS_ENUMERIC. what:
 * names the regression in messages. */
cgs_status cgs_ridge(const cgs_parts *p, const double *x, int k, const double *y, int m,
                     double coefficient, const char *what, double *out);

/* Adjacent columns of a matrix that has `stride` of them. */
typedef struct cgs_columns {
    int stride, first, count;
} cgs_columns;

/* Over the scored rows of the columns: the sum of squared differences of y and guess (rows,
 * stride), and of y from its own mean. */
double cgs_test_error(const cgs_parts *p, const double *y, const double *guess, cgs_columns c);
double cgs_test_total(const cgs_parts *p, const double *y, cgs_columns c);
/* 1 - the one / the other.  A y that does not vary is CGS_ENUMERIC. */
cgs_status cgs_r_squared(const cgs_parts *p, const double *y, const double *guess, cgs_columns c,
                         const char *what, double *out);

#endif /* CGS_ANALYSIS_RIDGE_H */

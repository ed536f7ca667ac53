/* ridge.h - linear regression with a small penalty, on standardised numbers.
 *
 * Rows come in three parts, one behind the other: those that are fitted, those that validate
 * and those that are scored.  Means and deviations are those of the fitted rows alone. */
#ifndef CGS_ANALYSIS_RIDGE_H
#define CGS_ANALYSIS_RIDGE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/statistics.h"
#include "train/probe_fit.h"

#define CGS_RIDGE_COEFFICIENT 1e-4

/* Fits y (rows, m) to x (rows, k) on the fitted rows and predicts all rows: out (rows, m), in the
 * units of y.  (X'X + c I) W = X'Y on standardised columns; the intercept is the mean.  An input
 * that never changes in any column, or a product that LAPACK cannot factor, is CGS_ENUMERIC.
 * what: names the regression in messages. */
cgs_status cgs_ridge(const cgs_parts *p, const double *x, int k, const double *y, int m,
                     double coefficient, const char *what, double *out);

/* Neighbouring columns of a matrix that has `stride` of them. */
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

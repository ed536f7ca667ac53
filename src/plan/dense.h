/* dense.h - small symmetric systems in double, every sum in a fixed order. */
#ifndef CGS_PLAN_DENSE_H
#define CGS_PLAN_DENSE_H

#include <stddef.h>

double cgs_plan_dot(const float *a, const float *b, size_t n);

/* In place: the Cholesky factor of S (m, m), whose lower half is given, with inverse pivots: 0 for
 * an unknown that depends on those before it. */
void cgs_plan_factorise(double *S, size_t m);
/* x = S^-1 x by its factor; where S is singular the unknowns that add nothing are 0 */
void cgs_plan_solve_factored(const double *S, double *x, size_t m);

/* Eigenvalues of symmetric S (m, m), which is overwritten, and eigenvectors as rows of V (m, m). */
void cgs_plan_eigen(double *S, double *V, double *value, size_t m);

#endif /* CGS_PLAN_DENSE_H */

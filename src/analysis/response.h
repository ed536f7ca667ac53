/* response.h - response of a plan's predicted end to equal changes in all directions of a plane.
 *
 * 32 unit vectors of the plane of the first two action channels, constant over the whole plan,
 * change the plan by the same small amount; the cosines between the 32 changes of the terminal
 * latent form a 32 x 32 matrix.  Where the plan's curvature is equal in all directions of the
 * plane, it is the matrix of the circle itself. */
#ifndef CGS_ANALYSIS_RESPONSE_H
#define CGS_ANALYSIS_RESPONSE_H

#include "analysis/jacobian.h"

enum { CGS_DIRECTIONS = 32, CGS_HEAT = CGS_DIRECTIONS * CGS_DIRECTIONS };
#define CGS_RESPONSE_STEP 0.05

/* cos(angle j - angle k): heat (32, 32) */
void cgs_response_ideal(double *heat);
/* Cosines of the rows of r (32, D).  A row that is zero is CGS_ENUMERIC. */
cgs_status cgs_response_cosines(const double *r, int D, double *heat);
/* Root mean squared difference of two such matrices. */
double cgs_response_error(const double *heat, const double *ideal);

/* The plans of one matrix: the plan itself, then the 32 changed ones.  U (n, 2), plans (33, n). */
void cgs_response_plans(const float *plan, int n, const double *U, float *plans);
/* The matrix in the limit of small changes, from the Jacobian J (D, n) at the plan. */
cgs_status cgs_response_heat_of(const double *J, int D, int n, const double *U, double *heat);
/* The matrix at a plan (H * A) from a present latent z (D).  t must take 33 plans. */
cgs_status cgs_response_heat(cgs_terminal *t, const float *z, const float *plan, const double *U,
                             double *heat);

#endif /* CGS_ANALYSIS_RESPONSE_H */

/* linearise.h - one step of a model, z' = F(z, a), and its derivatives A = dF/dz, B = dF/da.
 *
 * Row i of both is a vector-Jacobian product of the tape.  D copies of the point run in one batch,
 * copy i with a target that differs from F in component i alone, so that one backward pass of the
 * mean squared error gives all rows. */
#ifndef CGS_ANALYSIS_LINEARISE_H
#define CGS_ANALYSIS_LINEARISE_H

#include "model/lewm.h"

typedef struct cgs_linearise cgs_linearise;

/* The model is borrowed. */
cgs_status cgs_linearise_create(cgs_linearise **out, cgs_lewm *m);
void cgs_linearise_destroy(cgs_linearise *l);

/* F(z, a): z (D), a (block) standardised -> next (D). */
cgs_status cgs_linearise_step(cgs_linearise *l, const float *z, const float *a, float *next);
/* A (D, D), B (D, block) at a point. */
cgs_status cgs_linearise_at(cgs_linearise *l, const float *z, const float *a, double *A, double *B);
/* |A u + B v - (F(z + hu, a + hv) - F(z - hu, a - hv)) / 2h| over the size of the difference,
 * in a random direction. */
cgs_status cgs_linearise_check(cgs_linearise *l, const float *z, const float *a, const double *A,
                               const double *B, uint64_t seed, double *error);

#endif /* CGS_ANALYSIS_LINEARISE_H */

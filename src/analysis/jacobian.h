/* jacobian.h - the terminal predictor F_H of a model, and its derivative.
 *
 * F_H(a) is the last of the H latents that the model predicts from the present one and the plan a
 * (H * A standardised numbers).  Its Jacobian is that of a rollout's residual. */
#ifndef CGS_ANALYSIS_JACOBIAN_H
#define CGS_ANALYSIS_JACOBIAN_H

#include "model/lewm.h"

typedef struct cgs_terminal cgs_terminal;

/* samples: most plans per call of cgs_terminal_predict.  The model is borrowed. */
cgs_status cgs_terminal_create(cgs_terminal **out, cgs_lewm *m, cgs_dtype act, int horizon,
                               int samples);
void cgs_terminal_destroy(cgs_terminal *t);

int cgs_terminal_plan_size(const cgs_terminal *t); /* H * A */
int cgs_terminal_width(const cgs_terminal *t);     /* D */

/* z (D), plans (K, H * A) -> out (K, D). */
cgs_status cgs_terminal_predict(cgs_terminal *t, const float *z, const float *plans, int K,
                                float *out);
/* J (D, H * A) at a plan. */
cgs_status cgs_terminal_jacobian(cgs_terminal *t, const float *z, const float *plan, double *J);

/* The first q primitive channels, each moved by the same amount in every one of the H * frameskip
 * actions: U (H * A, q), orthonormal columns. */
void cgs_constant_moves(const cgs_lewm_config *c, int horizon, int q, double *U);
/* G (q, q) = (J U)' (J U); J (D, n), U (n, q). */
cgs_status cgs_response_gram(const double *J, int D, int n, const double *U, int q, double *G);
/* Eigenvalues (q) ascending of a symmetric G (q, q), and eigenvectors as columns of V, which may
 * be NULL. */
cgs_status cgs_symmetric_eigen(const double *G, int q, double *value, double *V);

#endif /* CGS_ANALYSIS_JACOBIAN_H */

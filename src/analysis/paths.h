/* paths.h - actions and latents as aligned paths.
 *
 * Every step is scaled to length 1 in its own space and the steps are summed.  The latent path is
 * rotated into the space of actions by an orthogonal map without scaling, and both are projected
 * onto the principal axes of the action path. */
#ifndef CGS_ANALYSIS_PATHS_H
#define CGS_ANALYSIS_PATHS_H

#include <stdbool.h>

#include "core/status.h"

/* Scales the rows of x (n, k) to length 1; rows shorter than 1e-8 become 0. */
void cgs_unit_rows(double *x, int n, int k);
/* path (n + 1, k): sums of the first rows of step (n, k), beginning at 0. */
void cgs_add_up(const double *step, int n, int k, double *path);

/* The map W (kx, ky) with orthonormal columns (or rows) that brings the rows of x (n, kx) closest
 * to those of y (n, ky).  Directions absent from both are excluded. */
cgs_status cgs_procrustes(const double *x, int kx, const double *y, int ky, int n, double *W);
/* out (n, ky) = x (n, kx) W (kx, ky) */
void cgs_rotate_rows(const double *x, int n, int kx, const double *W, int ky, double *out);

/* The d axes of largest variance of the rows of x (n, k): axes (k, d).  The largest component of
 * each is positive. */
cgs_status cgs_principal_axes(const double *x, int n, int k, int d, double *axes);

/* Both paths in d dimensions: a (n, ka) and z (n, kz) are unit steps, action and latent are
 * (n + 1, d).  rigid: the fit is one of the whole paths with a shift, instead of directions. */
cgs_status cgs_align_paths(const double *a, int ka, const double *z, int kz, int n, int d,
                           bool rigid, double *action, double *latent);

#endif /* CGS_ANALYSIS_PATHS_H */

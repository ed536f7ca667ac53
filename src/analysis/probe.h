/* probe.h - how much of the physical effect of actions a model's latents encode.
 *
 * With a an action block, s the state before it, Ds the change of a physical quantity and Dz the
 * change of the latent, everything is scored on episodes that the probes were not fitted to:
 *
 *   P_A, P_S, P_AS   R2 of Ds from a, s, (a, s); linear and nonlinear
 *   R2_A_given_S     1 - error of P_AS / error of P_S, nonlinear
 *   D_lin, D_mlp     R2 of Ds from Dz
 *   C_A, C_AS        R2 of a linear map from Dz to what a alone (linear), or (a, s) (nonlinear),
 *                    predicts
 *   B_A, B_AS        1 - |D's linear prediction - that prediction|^2 / |Ds - mean|^2
 *
 * P belongs to the environment and its data alone. */
#ifndef CGS_ANALYSIS_PROBE_H
#define CGS_ANALYSIS_PROBE_H

#include "analysis/latents.h"
#include "analysis/paper_numbers.h"
#include "train/probe_fit.h"

typedef struct cgs_physical_row {
    double score[CGS_PHYSICAL_SCORES];
} cgs_physical_row;

typedef struct cgs_latent_row {
    double score[CGS_LATENT_SCORES];
} cgs_latent_row;

/* Predictions of a motion's probes, for all rows: (rows, F). */
typedef struct cgs_probe_physics {
    double *lin[3], *mlp[3]; /* from a, s and (a, s) */
    cgs_physical_row row[CGS_MAX_TARGETS];
} cgs_probe_physics;

/* requested (m->targets): targets that get nets; the others have NaN scores.  Free after a failure
 * too. */
cgs_status cgs_probe_physical(cgs_probe_physics *out, const cgs_motion *m, const bool *requested,
                              const cgs_probe_config *c, cgs_probe_fit_observer watch, void *user);
void cgs_probe_physics_free(cgs_probe_physics *p);

/* The scores of `models` representations: change[i] (rows, D[i]); row: (models, CGS_MAX_TARGETS).
 */
cgs_status cgs_probe_latent(const cgs_motion *m, const cgs_probe_physics *p, const bool *requested,
                            const cgs_probe_config *c, int models, double *const *change,
                            const int *D, cgs_latent_row *row, cgs_probe_fit_observer watch,
                            void *user);

/* Names of the scores as files have them. */
extern const char *const cgs_physical_names[CGS_PHYSICAL_SCORES];
extern const char *const cgs_latent_names[CGS_LATENT_SCORES];

#endif /* CGS_ANALYSIS_PROBE_H */

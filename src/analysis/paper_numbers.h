/* paper_numbers.h - the paper's numbers for analyses, printed beside the measured ones: Table 9
 * (physical identification), Tables 10 to 12 (representation probes), Figure 3 (mechanism) and the
 * text on priors (C.5). */
#ifndef CGS_ANALYSIS_PAPER_NUMBERS_H
#define CGS_ANALYSIS_PAPER_NUMBERS_H

#include <stdbool.h>

/* scores of an environment, and of a model in it; see docs/analysis.md */
#define CGS_PHYSICAL_LIST(X)                                                                       \
    X(P_A_lin) X(P_A_mlp) X(P_S_lin) X(P_S_mlp) X(P_AS_lin) X(P_AS_mlp) X(R2_A_given_S)
#define CGS_LATENT_LIST(X) X(D_lin) X(D_mlp) X(C_A) X(C_AS) X(B_A) X(B_AS)

#define X(name) CGS_##name,
enum { CGS_PHYSICAL_LIST(X) CGS_PHYSICAL_SCORES };
enum { CGS_LATENT_LIST(X) CGS_LATENT_SCORES };
#undef X

/* (CGS_PHYSICAL_SCORES), or NULL where the paper has none. */
const double *cgs_published_physical(const char *env, const char *target);
/* (CGS_LATENT_SCORES), or NULL.  method: lewm, lewm-ts or lewm-cgs. */
const double *cgs_published_latent(const char *env, const char *target, const char *method);

enum { CGS_PUBLISHED_MECHANISMS = 3 };
typedef struct cgs_published_mechanism {
    const char *method, *name;
    double q_inf_median, p32; /* of Cube */
} cgs_published_mechanism;
extern const cgs_published_mechanism cgs_published_mechanisms[CGS_PUBLISHED_MECHANISMS];

/* Mean ratio of the prior's distance from the goal to that of doing nothing; false where the paper
 * gives none. */
bool cgs_published_prior(const char *env, const char *method, double *rho);

#endif /* CGS_ANALYSIS_PAPER_NUMBERS_H */

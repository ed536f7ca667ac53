/* theory_internal.h - hypotheses and sampled updates shared by the files of checks. */
#ifndef CGS_ANALYSIS_THEORY_INTERNAL_H
#define CGS_ANALYSIS_THEORY_INTERNAL_H

#include "analysis/theory.h"

/* Each returns whether the hypothesis holds and names it in t->outside when it does not. */
bool cgs_needs_eps(const cgs_facts *f, cgs_theory_trial *t);     /* eps < 1 */
bool cgs_needs_xi(const cgs_facts *f, cgs_theory_trial *t);      /* ... and xi_H < 1 */
bool cgs_needs_latents(const cgs_facts *f, cgs_theory_trial *t); /* d >= d_a */
bool cgs_needs_rank_da(const cgs_facts *f, cgs_theory_trial *t); /* d >= d_a, rank of gamma d_a */

/* The same latents under A = I and B = sqrt(c) times orthonormal columns. */
cgs_system cgs_ideal_system(const cgs_facts *f, cgs_work *w, cgs_rng *r);

/* Planner statements are checked in the eigenbasis of G_H, in the coordinates
 * nu = (mean - a*) / sigma: the first r are the leading directions. */

/* a random vector (n, 1) of that length */
cgs_mat cgs_random_direction(cgs_work *w, cgs_rng *r, int n, double length);
/* |nu| of the first r coordinates */
double cgs_leading_norm(const cgs_facts *f, cgs_mat nu);

/* MPPI: the next mean of K samples. */
cgs_mat cgs_mppi_update(const cgs_facts *f, cgs_work *w, cgs_rng *r, cgs_mat nu, int K);
/* contraction q_M on the leading directions */
double cgs_mppi_rate(const cgs_facts *f);

/* The constants of the sampling bounds.  The text leaves the universal constant open; these
 * values follow from its proof.  A variable bounded by |N(m, 1)|, |m| <= R, has a centred
 * psi_2 norm of at most 2.6 (1 + R); a psi_2 norm k gives a variance proxy of at most 1.7 k^2;
 * so r coordinates deviate by at most 4.8 (1 + R) sqrt(r log(./zeta) / K), and the ratio of
 * numerator and denominator doubles 4.8 + 1/sqrt(2). */
#define CGS_ZETA 1e-6
#define CGS_CONC_MEAN 4.8
#define CGS_CONC_RATIO 11.1
#define CGS_SAMPLES_MAX 5000

/* Z_low(R), and the least K for the failure probability zeta; in floating point, because it
 * can be astronomical. */
double cgs_normalizer_low(const cgs_facts *f, double R);
double cgs_least_samples(const cgs_facts *f, double R, double zeta);
/* the right-hand side of the sampling bound */
double cgs_mppi_sampling_bound(const cgs_facts *f, double R, double K, double zeta);

#endif /* CGS_ANALYSIS_THEORY_INTERNAL_H */

/* mechanism.h - from the spectrum of a plan's response to one update of MPPI.
 *
 * G is the response Gram of a few action directions, scaled so that its mean eigenvalue is 1. In
 * its eigenbasis the cost is (u - u*)' diag(lambda) (u - u*), the target u* is the unit vector of
 * the weakest direction, and one update from N(0, I) with temperature tau moves the mean from 0 to
 * the weighted mean of K draws.  q_K = |mean - u*| is a random contraction; in the limit of many
 * draws, and with tau = 2, it is 1 / (1 + lambda_min). */
#ifndef CGS_ANALYSIS_MECHANISM_H
#define CGS_ANALYSIS_MECHANISM_H

#include <stdint.h>

#include "core/status.h"

enum { CGS_BUDGETS = 9, CGS_DRAWS = 256, CGS_BATCHES = 512 };
#define CGS_MECHANISM_TAU 2.0

extern const int cgs_budgets[CGS_BUDGETS]; /* 1, 2, 4, ... 256 */

/* Eigenvalues (q) descending of G / (trace / q).  A response of zero is CGS_ENUMERIC. */
cgs_status cgs_normalised_spectrum(const double *G, int q, double *lambda);

/* 1 / (1 + lambda_min) */
double cgs_contraction_limit(const double *lambda, int q);

/* The fraction of CGS_BATCHES batches with q_K < 1 for each budget: p (CGS_BUDGETS).  Batch b of
 * anchor i draws from stream (seed, PLAN, i * CGS_BATCHES + b), for every model the same. */
void cgs_progress_probability(const double *lambda, int q, uint64_t seed, uint64_t anchor,
                              double *p);

#endif /* CGS_ANALYSIS_MECHANISM_H */

/* refine.h - the arithmetic of the planners on plain arrays: candidates, the updates of
 * a Gaussian proposal, and an Adam step.
 *
 * n = H * A throughout.  Every output value is computed by one thread in a fixed order,
 * so results do not depend on the number of threads.
 *
 * Noise.  The value of coordinate j of candidate k in iteration i of solve s of episode e:
 *
 *     episode   = cgs_rng_stream(seed, CGS_STREAM_PLAN, e).key
 *     iteration = cgs_rng_at(episode, s * 2^32 + i)
 *     noise     = cgs_rng_normal_at(iteration, k * 2^32 + j)
 *
 * It depends on none of the sizes E, K, I, n: a larger budget extends a smaller one. */
#ifndef CGS_PLAN_REFINE_H
#define CGS_PLAN_REFINE_H

#include <stdbool.h>
#include <stdint.h>

/* Key of one iteration's noise. */
uint64_t cgs_plan_key(uint64_t seed, uint64_t episode, uint64_t solve, uint64_t iteration);

/* What is made of the noise above; zeros: nothing. */
typedef struct cgs_noise {
    bool mirror;          /* candidate 2 i is candidate 2 i - 1 with the noise negated */
    const double *filter; /* (actions) NULL: white.  Otherwise noise over the primitive actions of a
                           * plan is the circular convolution of white noise with it */
    int actions, channels;
} cgs_noise;

/* The filter that makes the spectrum of white noise f^-exponent, that of constants as that of the
 * slowest wave; its squares have the sum 1, so that noise keeps its variance. */
void cgs_noise_filter(double *filter, int actions, double exponent);

/* Candidate 0 is the mean, the others are mean + spread * noise.
 * key: (E).  mean, spread: (E, n).  plans: (E, K, n). */
void cgs_plan_sample(const uint64_t *key, const cgs_noise *noise, const float *mean,
                     const float *spread, int E, int K, int n, float *plans);

/* Spreads of a Gaussian become those of its product with the unit Gaussian of the same mean: near
 * the first where that is narrow, near 1 where it is wide. */
void cgs_plan_product(float *spread, int64_t count);

/* mean + spread * noise of candidate 1.  plans: (E, n), may be `mean`. */
void cgs_plan_perturb(const uint64_t *key, const float *mean, const float *spread, int E, int n,
                      float *plans);

/* Moves mean and spread to the average and the sample standard deviation of the M
 * candidates of lowest cost; equal costs go by index.  M = 1 keeps the spread.
 * plans: (E, K, n).  cost: (E, K).  order: (E, K) scratch.  mean, spread: (E, n). */
void cgs_plan_refit(const float *plans, const float *cost, int E, int K, int n, int M, int *order,
                    float *mean, float *spread);

/* Moves the mean to the average of all candidates with weights exp(-(cost - lowest) / tau).
 * Where ess is not 0, tau is chosen for each episode.  weight: (E, K) scratch. */
void cgs_plan_reweight(const float *plans, const float *cost, int E, int K, int n, float tau,
                       float ess, double *weight, float *mean);

/* The temperature at which 1 / sum of squared weights is `ess`: between 1 and K, to 1e-9 of the
 * temperature, by bisection.  Where as many candidates share the lowest cost it is next to 0. */
double cgs_plan_temperature(const float *cost, int K, double ess);

/* One Adam step (0.9, 0.999, 1e-8, no decay) with rate lr; step counts from 1.
 * grad, m, v, x: (count). */
void cgs_plan_adam(const float *grad, int64_t count, int step, double lr, float *m, float *v,
                   float *x);

#endif /* CGS_PLAN_REFINE_H */

/* planner_kernels.h - the arithmetic of a planner's iterations on a device: that of refine.h, in
 * the same order of sums and with the same noise.
 *
 * Everything is enqueued on the device, in order, and returns at once; pointers are of the
 * device's memory.  A failure shows at the next sync. */
#ifndef CGS_PLAN_PLANNER_KERNELS_H
#define CGS_PLAN_PLANNER_KERNELS_H

#include "ops/ops.h"

/* What sampled Gauss-Newton has beside (gauss_newton.c): rows are differences of residuals, then of
 * plans; order is the lesser of rows and n. */
typedef struct cgs_gauss_newton_state {
    int R, per, kept, order; /* values in a residual; rows of an iteration; iterations whose rows
                              * are used together */
    float gamma, damping, ridge;
    const float *start; /* (E, n) the first mean */
    float *residual;    /* (E, K, R) */
    float *row;         /* (E, kept * per, R + n) */
    float *smooth;      /* (E, order, R) */
    double *unknown;    /* (E, order, R) */
    double *system;     /* (E, 2, order, order) */
    double *vector;     /* (E, 2 * kept * per + order + n) */
} cgs_gauss_newton_state;

/* The state of a solve.  n = H * A values in a plan.  Only what its planner uses is set. */
typedef struct cgs_plan_state {
    int E, K, n, elites;
    float tau, decay;     /* decay: factor of the spread after an iteration             */
    bool mirror;          /* of noise, as in refine.h                                   */
    const double *filter; /* (actions) or NULL                                          */
    int actions, channels;
    int keep;               /* elites that are candidates 1 .. keep of the next iteration */
    float *elite;           /* (E, keep, n) these                                         */
    uint64_t *turn;         /* (E) iterations made                                        */
    const uint64_t *stream; /* (E) key of the episode's noise                             */
    const uint64_t *solve;  /* (E) number of the solve                                    */
    const double *rates;    /* (iterations, 3) gd: rate, and Adam's two corrections       */
    float *mean, *spread;   /* (E, n) the proposal, or gd's iterate                       */
    float *plans, *cost;    /* (E, K, n), (E, K); gd: plans is mean, cost (E)             */
    float *grad, *m, *v;    /* (E, n) gd's gradient and moments                           */
    float *best_plan;       /* (E, n) lowest cost among all scored                        */
    float *best_cost;       /* (E)                                                        */
    float *low, *average;   /* (iterations, E) history of costs                           */
    int *bad;               /* (E, 2) 1 + the first iteration with a value that is not finite, and
                             * its candidate, or -1 - the value of a gradient; 0: none    */
    float *bad_value;       /* (E)                                                        */
    cgs_gauss_newton_state gn;
} cgs_plan_state;

typedef struct cgs_planner_kernels {
    int most_candidates; /* K, at most */
    int most_filtered;   /* n, at most, of plans whose noise is filtered */
    void (*sample)(cgs_device *d, const cgs_plan_state *s);
    /* check costs, note the best, move the proposal, count the iteration */
    void (*refit)(cgs_device *d, const cgs_plan_state *s);
    void (*reweight)(cgs_device *d, const cgs_plan_state *s);
    void (*adam)(cgs_device *d, const cgs_plan_state *s);
    void (*gauss_newton)(cgs_device *d, const cgs_plan_state *s);
} cgs_planner_kernels;

extern const cgs_planner_kernels cgs_cuda_planner_kernels; /* in builds with CUDA */

/* Those of a device; NULL where planners run on the host. */
const cgs_planner_kernels *cgs_planner_kernels_of(const cgs_device *d);

#endif /* CGS_PLAN_PLANNER_KERNELS_H */

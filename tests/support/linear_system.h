/* linear_system.h - planning problems with a known answer, for tests of planners.
 *
 * For dynamics z' = A z + B a the terminal latent is A^H z0 + Gamma a and the cost
 * 1/2 |A^H z0 + Gamma a - zg|^2 is quadratic with curvature G = Gamma^T Gamma. */
#ifndef CGS_TESTS_LINEAR_SYSTEM_H
#define CGS_TESTS_LINEAR_SYSTEM_H

#include "plan/planner.h"

#define N_MAX 8 /* largest H * A */

typedef struct linear {
    int d, A, H, n;                          /* latent, action, horizon, n = H * A     */
    double a[N_MAX][N_MAX], b[N_MAX][N_MAX]; /* dynamics (d, d) and (d, A)            */
    double z0[N_MAX], zg[N_MAX];
    double gamma[N_MAX][N_MAX]; /* (d, n) terminal latent by plan                        */
    double free_z[N_MAX];       /* A^H z0                                                */
    double g[N_MAX][N_MAX];     /* G = Gamma^T Gamma (n, n)                              */
    double pull[N_MAX];         /* Gamma^T (zg - A^H z0) = G a*                          */
    long calls, rows;           /* of the cost function                                  */
} linear;

/* Gaussian dynamics; `scale` sets the size of B. */
linear random_system(uint64_t index, int d, int A, int H, double scale);
/* A a rotation, B sqrt(c) times a rotation: G = c H P with P a projector of rank 2. */
linear ideal_system(int H, double c);

double half_square(const linear *s, const float *plan);
/* For planners; ctx is a linear. */
cgs_status linear_cost(void *ctx, const float *plans, int E, int K, float *cost);
cgs_status linear_residual(void *ctx, const float *plans, int E, int K, float *cost,
                           float *residual); /* (E*K, d) */
cgs_status linear_jacobian(void *ctx, const float *plans, int E, float *cost, float *residual,
                           float *jacobian); /* (E, d), (E, d, n) */
cgs_status linear_gradient(void *ctx, const float *plans, int E, float *cost, float *grad);

/* A problem with all of them, of E episodes. */
cgs_plan_problem linear_problem(linear *s, int E);

/* Default settings with the system's sizes; planner and solve, or a failed test. */
cgs_plan_config linear_settings(const char *kind, const linear *s, int K, int iters);
cgs_planner *must_create(const cgs_plan_config *c, int E);
cgs_plan_result must_solve(cgs_planner *p, const cgs_plan_problem *q);

#endif /* CGS_TESTS_LINEAR_SYSTEM_H */

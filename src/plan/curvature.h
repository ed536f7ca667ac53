/* curvature.h - how strongly a cost bends with plans, and what temperature of MPPI follows. */
#ifndef CGS_PLAN_CURVATURE_H
#define CGS_PLAN_CURVATURE_H

#include "plan/planner.h"

/* The mean second derivative of the cost by a value of a plan, over the candidates that a planner
 * would draw: around q->start, with plan.sigma.  From `pairs` mirrored pairs of candidates of each
 * episode, whose residuals differ by the response to twice a step; of c the sizes, spread and seed
 * are read, of q all that asks for residuals. */
cgs_status cgs_plan_curvature(double *curvature, const cgs_plan_config *c,
                              const cgs_plan_problem *q, int pairs);

/* Strength of an update, s = sigma^2 c H / tau: where all curvature lies in the directions of plans
 * that are constant over H blocks, as under ideal CGS, 1 / (1 + s) of the way to the optimum is
 * left after it, with infinitely many candidates. */
double cgs_plan_strength(const cgs_plan_config *c, double curvature, double tau);

/* The temperature, to two digits, at which exp(-CGS_PLAN_APPROACH) of the way is left after all of
 * plan.iters.  At 30 iterations the published temperatures leave exp(-0.8) to exp(-3.9). */
#define CGS_PLAN_APPROACH 2.0
double cgs_plan_curvature_tau(const cgs_plan_config *c, double curvature);

#endif /* CGS_PLAN_CURVATURE_H */

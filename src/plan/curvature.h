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

/* The temperature at which s = sigma^2 c H / tau is CGS_PLAN_STRENGTH, to two digits: where all
 * curvature lies in the directions of plans that are constant over H blocks, as under ideal CGS,
 * one update then leaves 1 / (1 + s) of the way to the optimum. */
#define CGS_PLAN_STRENGTH 1.0
double cgs_plan_curvature_tau(const cgs_plan_config *c, double curvature);
/* That s at any temperature. */
double cgs_plan_strength(const cgs_plan_config *c, double curvature, double tau);

#endif /* CGS_PLAN_CURVATURE_H */

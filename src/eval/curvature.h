/* curvature.h - the curvature of a model's planning cost, measured on recorded frames. */
#ifndef CGS_EVAL_CURVATURE_H
#define CGS_EVAL_CURVATURE_H

#include "plan/planner.h"
#include "rollout/loaded_model.h"

/* plan/curvature.h for a model and a dataset, at the horizon and the spread of `p`: 32 recorded
 * starts, the mean action, 8 pairs of candidates each; 544 rollouts, a seventh of a solve with
 * K = 128 and 30 iterations.  A function of model, dataset, horizon and spread.  env NULL: nobody
 * knows it, only recorded images count. */
cgs_status cgs_model_curvature(double *curvature, const cgs_loaded_model *s, cgs_dataset *data,
                               const cgs_env_class *env, const cgs_plan_config *p);

/* The same at E pairs of a latent and its goal, z, goal (E, D). */
cgs_status cgs_model_curvature_at(double *curvature, const cgs_loaded_model *s,
                                  const cgs_plan_config *p, const float *z, const float *goal,
                                  int E);
/* The temperature for a curvature, from a measurement that returned `measured`.  Where plans make
 * no difference that can be measured, the effective sample size takes its place, with a warning. */
cgs_status cgs_curvature_tau(cgs_plan_config *p, cgs_status measured, double curvature,
                             const cgs_loaded_model *s);

#endif /* CGS_EVAL_CURVATURE_H */

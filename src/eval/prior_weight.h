/* prior_weight.h - the weight of the start in sampled Gauss-Newton (plan.gn.gamma), where it is
 * left to the model: variance of the prediction's error over variance of plans around the start. */
#ifndef CGS_EVAL_PRIOR_WEIGHT_H
#define CGS_EVAL_PRIOR_WEIGHT_H

#include "plan/planner.h"
#include "rollout/loaded_model.h"

/* Sets c->gamma where it is open, to two digits, by the cards of the model and, where the planner
 * starts from a prior, of that.  Refused where the model's has no prediction error for plans of
 * this length. */
cgs_status cgs_choose_gamma(cgs_plan_config *c, const cgs_loaded_model *s);

#endif /* CGS_EVAL_PRIOR_WEIGHT_H */

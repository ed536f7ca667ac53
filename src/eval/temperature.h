/* temperature.h - the temperature of the planners that read one (plan/planners.h), where none is
 * given: by environment, on the scale of the cost of a family of models. */
#ifndef CGS_EVAL_TEMPERATURE_H
#define CGS_EVAL_TEMPERATURE_H

#include <math.h>

#include "model/model.h"
#include "plan/planner.h"

/* In place of a temperature: the one that follows from the model's curvature (curvature.h). */
#define CGS_TAU_MEASURED ((double)INFINITY)

/* On the scale of the cost of a family of models ("lewm", "dinowm"), or of a model's; 0 where none
 * is known. */
float cgs_family_tau(const char *family, const char *env);
float cgs_model_tau(const cgs_model *m, const char *env);

/* Sets c->tau to the given value or, where that is 0, to the known one.  Where none is known a
 * planner that reads one chooses it in every iteration, so that a quarter of the candidates count
 * (plan.ess), unless c->ess is set. */
cgs_status cgs_choose_tau(cgs_plan_config *c, double given, const cgs_model *m, const char *env);

#endif /* CGS_EVAL_TEMPERATURE_H */

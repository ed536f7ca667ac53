/* resident.h - a solve whose whole loop runs on a device: one upload, one program, one download.
 *
 * The arithmetic is that of refine.h in the same order, with the same noise; the device does it
 * through ops/planning.h.  With a deadline iterations are launched one by one. */
#ifndef CGS_PLAN_RESIDENT_H
#define CGS_PLAN_RESIDENT_H

#include "plan/planner.h"

typedef struct cgs_resident cgs_resident;

/* Whether a problem can be solved this way; r may be NULL. */
bool cgs_resident_can(const cgs_plan_resident *r, const cgs_plan_config *c);
/* Memory for such solves on a device; does nothing where *s has it already. */
cgs_status cgs_resident_bind(cgs_resident **s, struct cgs_device *d, const cgs_plan_config *c,
                             int max_E);
void cgs_resident_destroy(cgs_resident *s);

/* solves: the number of this solve where the problem does not say. */
cgs_status cgs_resident_solve(cgs_resident *s, const cgs_plan_problem *q, uint64_t solves,
                              float deadline, cgs_plan_result *result);

#endif /* CGS_PLAN_RESIDENT_H */

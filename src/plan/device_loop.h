/* device_loop.h - a solve whose whole loop runs on a device: one upload, one graph, one download.
 *
 * The arithmetic is that of refine.h in the same order, with the same noise; the device does it
 * through planner_kernels.h, and the row of a planner says by which kernel.  With a deadline
 * iterations are launched one by one.
 *
 * What is allocated: creation takes all memory.  A solve captures a graph of its iterations, which
 * the driver allocates, for every number of episodes and every scorer that it meets, as the
 * launches of a graph have sizes; the last eight are kept and found again. */
#ifndef CGS_PLAN_DEVICE_LOOP_H
#define CGS_PLAN_DEVICE_LOOP_H

#include "plan/planner.h"

typedef struct cgs_device_loop cgs_device_loop;

/* Memory on a device for such solves.  *out is NULL where the device or the planner cannot. */
cgs_status cgs_device_loop_create(cgs_device_loop **out, struct cgs_device *d,
                                  const cgs_plan_config *c, int max_E);
void cgs_device_loop_destroy(cgs_device_loop *s);

/* Whether a problem can be solved this way: its scorer is the device's, and it has no units where
 * the planner measures plans in them. */
bool cgs_device_loop_takes(const cgs_device_loop *s, const cgs_plan_problem *q);
/* solves: the number of this solve where the problem does not say. */
cgs_status cgs_device_loop_solve(cgs_device_loop *s, const cgs_plan_problem *q, uint64_t solves,
                                 float deadline, cgs_plan_result *result);

#endif /* CGS_PLAN_DEVICE_LOOP_H */

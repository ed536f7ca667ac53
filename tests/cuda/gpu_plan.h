/* gpu_plan.h - planning with LeWM on a GPU against the CPU; each fails the running test. */
#ifndef CGS_TESTS_GPU_PLAN_H
#define CGS_TESTS_GPU_PLAN_H

#include "ops/ops.h"

/* Plans in f32 of all planners whose loop can run on the device, the loop here and there. */
void gpu_plan_agree(cgs_device *cpu, cgs_device *gpu);
/* ... of those whose loop is always the host's. */
void gpu_plan_from_host(cgs_device *cpu, cgs_device *gpu);
/* ... and what they read beside their candidates. */
void gpu_plan_options(cgs_device *cpu, cgs_device *gpu);
/* Plans of the published predictor in bf16, by the tape and fused: finite; prints their times. */
void gpu_plan_paper(cgs_device *gpu);
/* The bits of an episode's costs do not depend on the others of its batch. */
void gpu_plan_neighbours(cgs_device *gpu);
/* A loop on the device obeys a deadline and names a cost that is not finite. */
void gpu_plan_loop(cgs_device *gpu);

/* Costs of random plans, and their gradients, by the fused rollout in bf16 against the CPU's f32:
 * as near as the tape in bf16 is, and the same bytes again.  count episodes with a context of C
 * frames; rollout: a word of CGS_ROLLOUT, or NULL. */
void gpu_plan_costs(cgs_device *cpu, cgs_device *gpu, int layers, int C, int count, int samples,
                    int H, const char *rollout);
void gpu_plan_gradients(cgs_device *cpu, cgs_device *gpu, int layers, int C, int count, int H,
                        const char *rollout);

/* Residuals of the fused rollout: their squares are its costs, and they are the tape's. */
void gpu_plan_residuals(cgs_device *gpu);

#endif /* CGS_TESTS_GPU_PLAN_H */

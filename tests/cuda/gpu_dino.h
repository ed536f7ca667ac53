/* gpu_dino.h - DINO-WM on a GPU against the CPU; each fails the running test. */
#ifndef CGS_TESTS_GPU_DINO_H
#define CGS_TESTS_GPU_DINO_H

#include "ops/ops.h"

/* Features of a random backbone, of class tokens and of patches; paper: the published size. */
void gpu_dino_features(cgs_device *cpu, cgs_device *gpu, bool paper);
/* Losses and gradients of an update with dropout. */
void gpu_dino_update(cgs_device *cpu, cgs_device *gpu);
/* Plans of all planners in f32, the loop on the host and on the device. */
void gpu_dino_plans(cgs_device *cpu, cgs_device *gpu);
/* Costs in bf16 with all variants, without any and without each, against the CPU's f32.  tokens: a
 * side. */
void gpu_dino_costs(cgs_device *cpu, int side, int samples, int layers);

#endif /* CGS_TESTS_GPU_DINO_H */

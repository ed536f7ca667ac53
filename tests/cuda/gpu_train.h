/* gpu_train.h - training LeWM on a GPU against the CPU; each fails the running test. */
#ifndef CGS_TESTS_GPU_TRAIN_H
#define CGS_TESTS_GPU_TRAIN_H

#include "ops/ops.h"

/* Set-up and clean-up of a group of these tests: a folder with a dataset. */
int gpu_train_begin(void **state);
int gpu_train_end(void **state);

/* A run again, and one that was killed and continued, give the same files; the mean loss of the
 * updates is the CPU's.  In bf16 a single loss of so small a model is rounding noise of 1 to 2 per
 * cent, between the reference and the CPU too.  precision "class": bf16 with the class token and
 * both heads in f32. */
void gpu_train_agrees(cgs_device *cpu, cgs_device *gpu, const char *precision, double tolerance);

/* Frames in the GPU's memory and frames from the host give the same run. */
void gpu_train_frames_stay(cgs_device *gpu);
/* Pictures that are sent ahead arrive. */
void gpu_train_frames_sent(void);

#endif /* CGS_TESTS_GPU_TRAIN_H */

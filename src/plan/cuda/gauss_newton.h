/* gauss_newton.h - sampled Gauss-Newton on a GPU, for the table in refine.cu. */
#ifndef CGS_PLAN_CUDA_GAUSS_NEWTON_H
#define CGS_PLAN_CUDA_GAUSS_NEWTON_H

#ifdef __cplusplus
extern "C" {
#endif

#include "plan/planner_kernels.h"

void cgs_cuda_gauss_newton(cgs_device *d, const cgs_plan_state *s);

#ifdef __cplusplus
}
#endif

#endif /* CGS_PLAN_CUDA_GAUSS_NEWTON_H */

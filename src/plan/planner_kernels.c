/* planner_kernels.c - see planner_kernels.h. */
#include "plan/planner_kernels.h"

const cgs_planner_kernels *cgs_planner_kernels_of(const cgs_device *d) {
#ifdef CGS_WITH_CUDA
    if (d->ops->kind == CGS_DEVICE_GPU) return &cgs_cuda_planner_kernels;
#endif
    (void)d;
    return NULL;
}

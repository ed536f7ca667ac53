/* rollout_kernels.c - see rollout_kernels.h. */
#include "rollout/rollout_kernels.h"

const cgs_rollout_kernels *cgs_rollout_kernels_of(const cgs_device *d) {
#ifdef CGS_WITH_CUDA
    if (d->ops->kind == CGS_DEVICE_GPU) return &cgs_cuda_rollout_kernels;
#endif
    (void)d;
    return NULL;
}

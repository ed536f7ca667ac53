/* optimiser.c - see optimiser.h. */
#include "train/optimiser.h"

cgs_adamw cgs_adamw_usual(float lr, float weight_decay, uint64_t step) {
    return (cgs_adamw){.lr = lr,
                       .beta1 = 0.9f,
                       .beta2 = 0.999f,
                       .eps = 1e-8f,
                       .weight_decay = weight_decay,
                       .clip_scale = 1,
                       .step = step};
}

void cgs_adamw_apply(cgs_params *p, const cgs_adamw *a, size_t first, size_t count) {
    p->device->ops->adamw(p->device, a, p->values + first, p->grads + first, p->moment1 + first,
                          p->moment2 + first, p->bf16 + first, count);
}

cgs_status cgs_descend(cgs_tape *t, cgs_params *p, const cgs_adamw *a) {
    cgs_tape_backward(t);
    cgs_adamw_apply(p, a, 0, p->trainable);
    return p->device->ops->sync(p->device);
}

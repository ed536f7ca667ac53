/* declare.h - layers initialised as in PyTorch, for the functions that declare parameters
 * (params.h).
 *
 * A layer is stored as NAME.weight and NAME.bias, named by `fmt`, ... */
#ifndef CGS_MODEL_DECLARE_H
#define CGS_MODEL_DECLARE_H

#include <math.h>

#include "model/params.h"

#define DIM(...)                                                                                   \
    (const int[]) { __VA_ARGS__ }

/* as PyTorch initialises linear layers and convolutions: uniform by fan-in, bias too */
#define UNIFORM(p, a, rank, shape, fan_in, fmt, ...)                                               \
    do {                                                                                           \
        const int *shape_ = shape;                                                                 \
        float bound_ = 1.0f / sqrtf((float)(fan_in));                                              \
        cgs_param_declare(p, &(a)->w, CGS_INIT_UNIFORM, bound_, rank, shape_, fmt ".weight",       \
                          __VA_ARGS__);                                                            \
        cgs_param_declare(p, &(a)->b, CGS_INIT_UNIFORM, bound_, 1, shape_, fmt ".bias",            \
                          __VA_ARGS__);                                                            \
    } while (0)
#define LINEAR(p, a, out, in, fmt, ...) UNIFORM(p, a, 2, DIM(out, in), in, fmt, __VA_ARGS__)

#define NORM(p, a, n, fmt, ...)                                                                    \
    do {                                                                                           \
        cgs_param_declare(p, &(a)->w, CGS_INIT_ONE, 0, 1, DIM(n), fmt ".weight", __VA_ARGS__);     \
        cgs_param_declare(p, &(a)->b, CGS_INIT_ZERO, 0, 1, DIM(n), fmt ".bias", __VA_ARGS__);      \
    } while (0)

#endif /* CGS_MODEL_DECLARE_H */

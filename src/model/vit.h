/* vit.h - the parts that transformers share: a linear layer, and a pre-norm transformer layer.
 *
 *   x += out(attention(norm1 x));  x += fc2(gelu(fc1(norm2 x)))
 *
 * DINOv2 scales both branches by a learned vector before adding them.  A frozen network needs no
 * operation for that: the vector is folded into `out` and `fc2` when weights are read. */
#ifndef CGS_MODEL_VIT_H
#define CGS_MODEL_VIT_H

#include "ops/tape.h"

typedef struct cgs_affine {
    cgs_tensor w, b;
} cgs_affine;

typedef struct cgs_vit_layer {
    cgs_affine norm1, qkv, out, norm2, fc1, fc2;
} cgs_vit_layer;

/* x (F, T, D).  first_only: only token 0 of the result is needed, (F, 1, D); the others serve as
 * keys and values only, and have no queries. */
cgs_tensor *cgs_vit_layer_forward(cgs_tape *t, cgs_vit_layer *l, cgs_tensor *x, int heads,
                                  float eps, bool first_only);

/* The same with token 0 apart: `first` (F, 1, D) goes through the layer with f32 activations and
 * weights, beside x (F, T, D).  It also stays in x, where the others attend to it, rounded like
 * them.  first_only: x is not needed after this layer, and is not updated. */
void cgs_vit_layer_forward_apart(cgs_tape *t, cgs_vit_layer *l, cgs_tensor **x, cgs_tensor **first,
                                 int heads, float eps, bool first_only);

#endif /* CGS_MODEL_VIT_H */

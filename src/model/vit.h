/* vit.h - the parts that transformers share: an affine map, and a pre-norm block.
 *
 *   x += out(attention(norm1 x));  x += fc2(gelu(fc1(norm2 x)))
 *
 * DINOv2 scales both branches by a learned vector before adding them.  A frozen network needs
 * no operation for that: the vector is multiplied into `out` and `fc2` when weights are read. */
#ifndef CGS_MODEL_VIT_H
#define CGS_MODEL_VIT_H

#include "ops/tape.h"

typedef struct cgs_affine {
    cgs_tensor w, b;
} cgs_affine;

typedef struct cgs_vit_layer {
    cgs_affine norm1, qkv, out, norm2, fc1, fc2;
} cgs_vit_layer;

/* x (F, T, D).  first_only: of the result only token 0 is wanted, (F, 1, D); the others are
 * needed as keys and values, not beyond. */
cgs_tensor *cgs_vit_layer_forward(cgs_tape *t, cgs_vit_layer *l, cgs_tensor *x, int heads,
                                  float eps, bool first_only);

/* The same with token 0 apart: `first` (F, 1, D) goes through the block with f32 activations and
 * weights, beside x (F, T, D).  In x it stays, too, for the others to see, and there it is rounded
 * as they are.  first_only: x is not needed behind this block, and stays as it is. */
void cgs_vit_layer_forward_apart(cgs_tape *t, cgs_vit_layer *l, cgs_tensor **x, cgs_tensor **first,
                                 int heads, float eps, bool first_only);

#endif /* CGS_MODEL_VIT_H */

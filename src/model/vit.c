/* vit.c - see vit.h. */
#include "model/vit.h"

static cgs_tensor *norm(cgs_tape *t, cgs_tensor *x, cgs_affine *a, float eps) {
    return cgs_layernorm(t, x, &a->w, &a->b, eps);
}

static cgs_tensor *affine(cgs_tape *t, cgs_tensor *x, cgs_affine *a) {
    return cgs_linear(t, x, &a->w, &a->b);
}

cgs_tensor *cgs_vit_block(cgs_tape *t, cgs_vit_layer *l, cgs_tensor *x, int heads, float eps,
                          bool first_only) {
    cgs_tensor *qkv = affine(t, norm(t, x, &l->norm1, eps), &l->qkv);
    cgs_tensor *a = cgs_attention(t, qkv, heads, false, 1, 0, 0);
    if (first_only) {
        a = cgs_take(t, a, 0, 1);
        x = cgs_take(t, x, 0, 1);
    }
    x = cgs_add(t, x, affine(t, a, &l->out));
    cgs_tensor *h = affine(t, norm(t, x, &l->norm2, eps), &l->fc1);
    return cgs_add(t, x, affine(t, cgs_activate(t, h, CGS_GELU), &l->fc2));
}

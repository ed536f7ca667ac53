/* vit.c - see vit.h. */
#include "model/vit.h"

static cgs_tensor *norm(cgs_tape *t, cgs_tensor *x, cgs_affine *a, float eps) {
    return cgs_layernorm(t, x, &a->w, &a->b, eps);
}

static cgs_tensor *affine(cgs_tape *t, cgs_tensor *x, cgs_affine *a) {
    return cgs_linear(t, x, &a->w, &a->b);
}

/* the part after attention, for all tokens or for some */
static cgs_tensor *after(cgs_tape *t, cgs_vit_layer *l, cgs_tensor *x, cgs_tensor *a, float eps) {
    x = cgs_add(t, x, affine(t, a, &l->out));
    cgs_tensor *h = affine(t, norm(t, x, &l->norm2, eps), &l->fc1);
    return cgs_add(t, x, affine(t, cgs_activate(t, h, CGS_GELU), &l->fc2));
}

cgs_tensor *cgs_vit_layer_forward(cgs_tape *t, cgs_vit_layer *l, cgs_tensor *x, int heads,
                                  float eps, bool first_only) {
    cgs_tensor *qkv = affine(t, norm(t, x, &l->norm1, eps), &l->qkv);
    cgs_tensor *a = cgs_attention(t, qkv, heads, false, 1, 0, 0);
    if (first_only) {
        a = cgs_take(t, a, 0, 1);
        x = cgs_take(t, x, 0, 1);
    }
    return after(t, l, x, a, eps);
}

/* Token 0's records lie between the linear layer and the attention of all tokens: fused records
 * around them stay adjacent, and its gradient of qkv is added to attention's. */
void cgs_vit_layer_forward_apart(cgs_tape *t, cgs_vit_layer *l, cgs_tensor **x, cgs_tensor **first,
                                 int heads, float eps, bool first_only) {
    cgs_tensor *qkv = affine(t, norm(t, *x, &l->norm1, eps), &l->qkv);
    cgs_dtype act = cgs_tape_set_act(t, CGS_F32);
    cgs_tensor *own = affine(t, norm(t, *first, &l->norm1, eps), &l->qkv);
    *first = after(t, l, *first, cgs_attend_first(t, own, qkv, heads), eps);
    cgs_tape_set_act(t, act);
    if (!first_only) *x = after(t, l, *x, cgs_attention(t, qkv, heads, false, 1, 0, 0), eps);
}

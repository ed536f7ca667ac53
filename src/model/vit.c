/* vit.c - see vit.h. */
#include "model/vit.h"

static cgs_tensor *norm(cgs_tape *t, cgs_tensor *x, cgs_affine *a, float eps) {
    return cgs_layernorm(t, x, &a->w, &a->b, eps);
}

static cgs_tensor *affine(cgs_tape *t, cgs_tensor *x, cgs_affine *a) {
    return cgs_linear(t, x, &a->w, &a->b);
}

/* some of a linear layer's results */
static cgs_tensor *some(cgs_tape *t, cgs_tensor *x, cgs_affine *a, int first, int count) {
    return cgs_linear(t, x, cgs_part(t, &a->w, first, count), cgs_part(t, &a->b, first, count));
}

/* the part after attention, for all tokens or for some */
static cgs_tensor *after(cgs_tape *t, cgs_vit_layer *l, cgs_tensor *x, cgs_tensor *a, float eps) {
    x = cgs_add(t, x, affine(t, a, &l->out));
    cgs_tensor *h = affine(t, norm(t, x, &l->norm2, eps), &l->fc1);
    return cgs_add(t, x, affine(t, cgs_activate(t, h, CGS_GELU), &l->fc2));
}

cgs_tensor *cgs_vit_layer_forward(cgs_tape *t, cgs_vit_layer *l, cgs_tensor *x, int heads,
                                  float eps, bool first_only) {
    cgs_tensor *n = norm(t, x, &l->norm1, eps);
    if (!first_only)
        return after(t, l, x, cgs_attention(t, affine(t, n, &l->qkv), heads, false, 1, 0, 0), eps);
    /* q first: backward then adds its row to the gradient that k and v give to all tokens */
    int D = cgs_cols(x);
    cgs_tensor *q = some(t, cgs_take(t, n, 0, 1), &l->qkv, 0, D);
    cgs_tensor *kv = some(t, n, &l->qkv, D, 2 * D);
    return after(t, l, cgs_take(t, x, 0, 1), cgs_attend_first(t, q, kv, heads), eps);
}

/* Token 0's records lie between the linear layer and the attention of all tokens: fused records
 * around them stay adjacent, and its gradient of qkv is added to attention's. */
void cgs_vit_layer_forward_apart(cgs_tape *t, cgs_vit_layer *l, cgs_tensor **x, cgs_tensor **first,
                                 int heads, float eps, bool first_only) {
    int D = cgs_cols(*x);
    cgs_tensor *n = norm(t, *x, &l->norm1, eps);
    cgs_tensor *qkv = first_only ? some(t, n, &l->qkv, D, 2 * D) : affine(t, n, &l->qkv);
    cgs_dtype act = cgs_tape_set_act(t, CGS_F32);
    cgs_tensor *own = affine(t, norm(t, *first, &l->norm1, eps), &l->qkv);
    *first = after(t, l, *first, cgs_attend_first(t, own, qkv, heads), eps);
    cgs_tape_set_act(t, act);
    if (!first_only) *x = after(t, l, *x, cgs_attention(t, qkv, heads, false, 1, 0, 0), eps);
}

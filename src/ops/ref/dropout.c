/* dropout.c - zeroes a fraction p of the elements and scales the others by 1 / (1 - p). The draw of
 * an element depends on the key, the update and its index only, so backward repeats it. */
#include "ops/ref/ref.h"

void cgs_ref_dropout_forward(const cgs_record *r) {
    uint64_t key = CGS_DROPOUT_KEY(r->arg.dropout.key, *r->step);
    for (size_t i = 0; i < cgs_numel(r->out); i++)
        set(r->out, i, get(r->in[0], i) * keep_factor(key, i, r->arg.dropout.p));
}

void cgs_ref_dropout_backward(const cgs_record *r) {
    if (!cgs_wants(r, 0)) return;
    uint64_t key = CGS_DROPOUT_KEY(r->arg.dropout.key, *r->step);
    for (size_t i = 0; i < cgs_numel(r->out); i++)
        give(r, 0, i, out_grad(r, i) * keep_factor(key, i, r->arg.dropout.p));
}

void cgs_ref_dropout_tangent(const cgs_record *r, cgs_lanes l) {
    uint64_t key = CGS_DROPOUT_KEY(r->arg.dropout.key, *r->step);
    for (size_t i = 0; i < cgs_numel(r->out); i++) {
        clear_tangent(r, l, i);
        push(r, l, i, keep_factor(key, i, r->arg.dropout.p), 0, i);
    }
}

/* add.c - the sum of two tensors, which may differ in element type. */
#include "ops/ref/ref.h"

void cgs_ref_add_forward(const cgs_record *r) {
    for (size_t i = 0; i < cgs_numel(r->out); i++)
        set(r->out, i, get(r->in[0], i) + get(r->in[1], i));
}

void cgs_ref_add_backward(const cgs_record *r) {
    for (int k = 0; k < 2; k++)
        if (cgs_wants(r, k))
            for (size_t i = 0; i < cgs_numel(r->out); i++) give(r, k, i, out_grad(r, i));
}

void cgs_ref_add_tangent(const cgs_record *r, cgs_lanes l) {
    for (size_t i = 0; i < cgs_numel(r->out); i++) {
        clear_tangent(r, l, i);
        for (int k = 0; k < 2; k++) push(r, l, i, 1, k, i);
    }
}

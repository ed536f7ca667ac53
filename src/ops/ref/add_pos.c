/* add_pos.c - adds the row of a position table that belongs to each time step.
 *   x (B,T,D), pos (>=T,D) -> (B,T,D) */
#include "ops/ref/ref.h"

void cgs_ref_add_pos_forward(const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *pos = r->in[1];
    size_t TD = (size_t)x->dim[x->rank - 2] * (size_t)cgs_cols(x), n = cgs_numel(x);
    for (size_t i = 0; i < n; i++) set(r->out, i, get(x, i) + get(pos, i % TD));
}

void cgs_ref_add_pos_backward(const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *pos = r->in[1];
    size_t TD = (size_t)x->dim[x->rank - 2] * (size_t)cgs_cols(x), n = cgs_numel(x);
    if (cgs_wants(r, 0))
        for (size_t i = 0; i < n; i++) give(r, 0, i, out_grad(r, i));
    if (cgs_wants(r, 1))
        for (size_t i = 0; i < cgs_numel(pos); i++) {
            double sum = 0; /* stays 0 for rows beyond T */
            if (i < TD)
                for (size_t at = i; at < n; at += TD) sum += out_grad(r, at);
            give(r, 1, i, sum);
        }
}

void cgs_ref_add_pos_tangent(const cgs_record *r, cgs_lanes l) { push_copies(r, l, 0); }

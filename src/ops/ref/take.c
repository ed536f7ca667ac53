/* take.c - some consecutive time steps: x (B,T,D) -> x[:, t0:t0+n] (B,n,D). */
#include "ops/ref/ref.h"

void cgs_ref_take_forward(const cgs_record *r) {
    size_t B = (size_t)r->in[0]->dim[0], in = cgs_numel(r->in[0]) / B, out = cgs_numel(r->out) / B;
    size_t first = (size_t)r->arg.take.t0 * (in / (size_t)r->in[0]->dim[1]);
    for (size_t b = 0; b < B; b++)
        for (size_t i = 0; i < out; i++)
            set(r->out, b * out + i, get(r->in[0], b * in + first + i));
}

void cgs_ref_take_backward(const cgs_record *r) {
    size_t B = (size_t)r->in[0]->dim[0], in = cgs_numel(r->in[0]) / B, out = cgs_numel(r->out) / B;
    size_t first = (size_t)r->arg.take.t0 * (in / (size_t)r->in[0]->dim[1]);
    if (!cgs_wants(r, 0)) return;
    give_nothing(r, 0); /* to the steps that were not taken */
    for (size_t b = 0; b < B; b++)
        for (size_t i = 0; i < out; i++) give(r, 0, b * in + first + i, out_grad(r, b * out + i));
}

void cgs_ref_take_tangent(const cgs_record *r, cgs_lanes l) {
    size_t B = (size_t)r->in[0]->dim[0], in = cgs_numel(r->in[0]) / B, out = cgs_numel(r->out) / B;
    size_t first = (size_t)r->arg.take.t0 * (in / (size_t)r->in[0]->dim[1]);
    for (size_t i = 0; i < B * out; i++) {
        clear_tangent(r, l, i);
        push(r, l, i, 1, 0, i / out * in + first + i % out);
    }
}

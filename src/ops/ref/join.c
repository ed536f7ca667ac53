/* join.c - y after x in time: x (B,T,D), y (B,U,D) -> (B,T+U,D). */
#include "ops/ref/ref.h"

void cgs_ref_join_forward(const cgs_record *r) {
    size_t B = (size_t)r->out->dim[0], all = cgs_numel(r->out) / B, first = 0;
    for (int k = 0; k < 2; k++) {
        size_t n = cgs_numel(r->in[k]) / B;
        for (size_t b = 0; b < B; b++)
            for (size_t i = 0; i < n; i++)
                set(r->out, b * all + first + i, get(r->in[k], b * n + i));
        first += n;
    }
}

void cgs_ref_join_backward(const cgs_record *r) {
    size_t B = (size_t)r->out->dim[0], all = cgs_numel(r->out) / B, first = 0;
    for (int k = 0; k < 2; k++) {
        size_t n = cgs_numel(r->in[k]) / B;
        for (size_t b = 0; b < B && cgs_wants(r, k); b++)
            for (size_t i = 0; i < n; i++) give(r, k, b * n + i, out_grad(r, b * all + first + i));
        first += n;
    }
}

void cgs_ref_join_tangent(const cgs_record *r, cgs_lanes l) {
    size_t B = (size_t)r->out->dim[0], all = cgs_numel(r->out) / B, first = 0;
    for (int k = 0; k < 2; k++) {
        size_t n = cgs_numel(r->in[k]) / B;
        for (size_t i = 0; i < B * n; i++) {
            clear_tangent(r, l, i / n * all + first + i % n);
            push(r, l, i / n * all + first + i % n, 1, k, i);
        }
        first += n;
    }
}

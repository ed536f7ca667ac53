/* repeat.c - each block x[b] of x (B,...) `times` times in a row: out[b*times + k] = x[b]. */
#include "ops/ref/ref.h"

void cgs_ref_repeat_forward(const cgs_record *r) {
    size_t B = (size_t)r->in[0]->dim[0], n = cgs_numel(r->in[0]) / B;
    size_t K = (size_t)r->arg.repeat.times;
    for (size_t row = 0; row < B * K; row++)
        for (size_t i = 0; i < n; i++) set(r->out, row * n + i, get(r->in[0], row / K * n + i));
}

void cgs_ref_repeat_backward(const cgs_record *r) {
    size_t B = (size_t)r->in[0]->dim[0], n = cgs_numel(r->in[0]) / B;
    size_t K = (size_t)r->arg.repeat.times;
    if (!cgs_wants(r, 0)) return;
    for (size_t b = 0; b < B; b++)
        for (size_t i = 0; i < n; i++) {
            double sum = 0;
            for (size_t k = 0; k < K; k++) sum += out_grad(r, (b * K + k) * n + i);
            give(r, 0, b * n + i, sum);
        }
}

void cgs_ref_repeat_tangent(const cgs_record *r, cgs_lanes l) {
    size_t B = (size_t)r->in[0]->dim[0], n = cgs_numel(r->in[0]) / B;
    size_t K = (size_t)r->arg.repeat.times;
    for (size_t i = 0; i < B * K * n; i++) {
        clear_tangent(r, l, i);
        push(r, l, i, 1, 0, i / n / K * n + i % n);
    }
}

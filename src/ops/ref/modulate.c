/* modulate.c - the last step of adaptive layernorm: x (1 + scale) + shift.
 *   x (n,D); scale and shift are D columns of the row of m (rows,C) that a token uses */
#include "ops/ref/ref.h"

void cgs_ref_modulate_forward(const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *m = r->in[1];
    size_t n = cgs_rows(x), D = (size_t)cgs_cols(x), C = (size_t)cgs_cols(m);
    for (size_t i = 0; i < n; i++) {
        size_t row = cgs_map_row(r->arg.modulate.rows, i) * C;
        size_t scale = row + (size_t)r->arg.modulate.scale;
        size_t shift = row + (size_t)r->arg.modulate.shift;
        for (size_t d = 0; d < D; d++)
            set(r->out, i * D + d,
                (double)get(x, i * D + d) * (1 + (double)get(m, scale + d)) + get(m, shift + d));
    }
}

void cgs_ref_modulate_backward(const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *m = r->in[1];
    size_t n = cgs_rows(x), D = (size_t)cgs_cols(x), C = (size_t)cgs_cols(m);
    give_nothing(r, 1); /* most of m belongs to other records */
    for (size_t i = 0; i < n; i++) {
        size_t row = cgs_map_row(r->arg.modulate.rows, i) * C;
        size_t scale = row + (size_t)r->arg.modulate.scale;
        size_t shift = row + (size_t)r->arg.modulate.shift;
        for (size_t d = 0; d < D; d++) {
            double g = out_grad(r, i * D + d);
            if (cgs_wants(r, 0)) give(r, 0, i * D + d, g * (1 + (double)get(m, scale + d)));
            if (cgs_wants(r, 1)) {
                give(r, 1, scale + d, g * get(x, i * D + d));
                give(r, 1, shift + d, g);
            }
        }
    }
}

void cgs_ref_modulate_tangent(const cgs_record *r, cgs_lanes l) {
    const cgs_tensor *x = r->in[0], *m = r->in[1];
    size_t n = cgs_rows(x), D = (size_t)cgs_cols(x), C = (size_t)cgs_cols(m);
    for (size_t i = 0; i < n; i++) {
        size_t row = cgs_map_row(r->arg.modulate.rows, i) * C;
        size_t scale = row + (size_t)r->arg.modulate.scale;
        size_t shift = row + (size_t)r->arg.modulate.shift;
        for (size_t d = 0; d < D; d++) {
            clear_tangent(r, l, i * D + d);
            push(r, l, i * D + d, 1 + (double)get(m, scale + d), 0, i * D + d);
            push(r, l, i * D + d, get(x, i * D + d), 1, scale + d);
            push(r, l, i * D + d, 1, 1, shift + d);
        }
    }
}

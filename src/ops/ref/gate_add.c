/* gate_add.c - a gated residual branch: x + gate y.
 *   x (n,D), y (n,D); gate is D columns of the row of m (rows,C) that a token uses */
#include "ops/ref/ref.h"

void cgs_ref_gate_add_forward(const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *y = r->in[1], *m = r->in[2];
    size_t n = cgs_rows(x), D = (size_t)cgs_cols(x), C = (size_t)cgs_cols(m);
    for (size_t i = 0; i < n; i++) {
        size_t gate = cgs_map_row(r->arg.gate_add.rows, i) * C + (size_t)r->arg.gate_add.gate;
        for (size_t d = 0; d < D; d++)
            set(r->out, i * D + d,
                get(x, i * D + d) + (double)get(m, gate + d) * get(y, i * D + d));
    }
}

void cgs_ref_gate_add_backward(const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *y = r->in[1], *m = r->in[2];
    size_t n = cgs_rows(x), D = (size_t)cgs_cols(x), C = (size_t)cgs_cols(m);
    give_nothing(r, 2); /* most of m belongs to other records */
    for (size_t i = 0; i < n; i++) {
        size_t gate = cgs_map_row(r->arg.gate_add.rows, i) * C + (size_t)r->arg.gate_add.gate;
        for (size_t d = 0; d < D; d++) {
            double g = out_grad(r, i * D + d);
            if (cgs_wants(r, 0)) give(r, 0, i * D + d, g);
            if (cgs_wants(r, 1)) give(r, 1, i * D + d, g * get(m, gate + d));
            if (cgs_wants(r, 2)) give(r, 2, gate + d, g * get(y, i * D + d));
        }
    }
}

void cgs_ref_gate_add_tangent(const cgs_record *r, cgs_lanes l) {
    const cgs_tensor *x = r->in[0], *y = r->in[1], *m = r->in[2];
    size_t n = cgs_rows(x), D = (size_t)cgs_cols(x), C = (size_t)cgs_cols(m);
    for (size_t i = 0; i < n; i++) {
        size_t gate = cgs_map_row(r->arg.gate_add.rows, i) * C + (size_t)r->arg.gate_add.gate;
        for (size_t d = 0; d < D; d++) {
            clear_tangent(r, l, i * D + d);
            push(r, l, i * D + d, 1, 0, i * D + d);
            push(r, l, i * D + d, get(m, gate + d), 1, i * D + d);
            push(r, l, i * D + d, get(y, i * D + d), 2, gate + d);
        }
    }
}

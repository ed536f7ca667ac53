/* gate_add.c - a residual branch through a gate: x + gate y. */
#include "ops/cpu/simd/simd.h"

void CGS_FN(gate_add_forward)(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *y = r->in[1], *m = r->in[2], *out = r->out;
    size_t n = cgs_rows(x), D = (size_t)cgs_cols(x), C = (size_t)cgs_cols(m);
    CGS_SHARE (row, n) {
        float *buf = thread_scratch(d); /* 4 of (D) */
        size_t at = cgs_map_row(r->arg.gate_add.rows, row) * C + (size_t)r->arg.gate_add.gate;
        if (row + 1 < n)
            fetch(m, cgs_map_row(r->arg.gate_add.rows, row + 1) * C + (size_t)r->arg.gate_add.gate,
                  D);
        const float *px = data_in(x, row * D, D, buf), *py = data_in(y, row * D, D, buf + D);
        const float *gate = data_in(m, at, D, buf + 2 * D);
        float *po = row_to(out->data, out->dtype, row * D, buf + 3 * D);
#pragma omp simd
        for (size_t i = 0; i < D; i++) po[i] = px[i] + gate[i] * py[i];
        row_done(out->data, out->dtype, row * D, D, po);
    }
}

void CGS_FN(gate_add_backward)(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *y = r->in[1], *m = r->in[2];
    size_t n = cgs_rows(x), D = (size_t)cgs_cols(x), C = (size_t)cgs_cols(m);
    bool want_x = cgs_wants(r, 0) && x->grad != r->out->grad;
    bool want_y = cgs_wants(r, 1), want_m = cgs_wants(r, 2);
    give_zero(r, 2);
    CGS_SHARE (row, n) {
        float *buf = thread_scratch(d); /* 4 of (D) */
        size_t at = cgs_map_row(r->arg.gate_add.rows, row) * C + (size_t)r->arg.gate_add.gate;
        const float *pg = grad_in(r, row * D, D, buf);
        if (want_x) give_done(r, 0, row * D, D, pg);
        if (want_y) {
            const float *gate = data_in(m, at, D, buf + D);
            float *po = give_to(r, 1, row * D, buf + 2 * D);
#pragma omp simd
            for (size_t i = 0; i < D; i++) po[i] = pg[i] * gate[i];
            give_done(r, 1, row * D, D, po);
        }
        if (want_m) {
            const float *py = data_in(y, row * D, D, buf + D);
            float *dgate = buf + 2 * D;
#pragma omp simd
            for (size_t i = 0; i < D; i++) dgate[i] = pg[i] * py[i];
            add_to(m->grad, m->dtype, at, D, dgate);
        }
    }
}

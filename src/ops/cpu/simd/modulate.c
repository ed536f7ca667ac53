/* modulate.c - scale, shift and gate by rows of a conditioning matrix. */
#include "ops/cpu/simd/simd.h"

void CGS_FN(modulate_forward)(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *m = r->in[1], *out = r->out;
    size_t n = cgs_rows(x), D = (size_t)cgs_cols(x), C = (size_t)cgs_cols(m);
    CGS_SHARE (row, n) {
        float *buf = thread_scratch(d); /* 4 of (D) */
        size_t at = cgs_map_row(r->arg.modulate.rows, row) * C;
        if (row + 1 < n) {
            size_t next = cgs_map_row(r->arg.modulate.rows, row + 1) * C;
            fetch(m, next + (size_t)r->arg.modulate.shift, D);
            fetch(m, next + (size_t)r->arg.modulate.scale, D);
        }
        const float *px = data_in(x, row * D, D, buf);
        const float *shift = data_in(m, at + (size_t)r->arg.modulate.shift, D, buf + D);
        const float *scale = data_in(m, at + (size_t)r->arg.modulate.scale, D, buf + 2 * D);
        float *po = row_to(out->data, out->dtype, row * D, buf + 3 * D);
#pragma omp simd
        for (size_t i = 0; i < D; i++) po[i] = px[i] * (1.0f + scale[i]) + shift[i];
        row_done(out->data, out->dtype, row * D, D, po);
    }
}

/* Each token has a row of the matrix to itself, so rows are independent. */
void CGS_FN(modulate_backward)(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *m = r->in[1];
    size_t n = cgs_rows(x), D = (size_t)cgs_cols(x), C = (size_t)cgs_cols(m);
    bool want_x = cgs_wants(r, 0), want_m = cgs_wants(r, 1);
    give_zero(r, 1);
    CGS_SHARE (row, n) {
        float *buf = thread_scratch(d); /* 4 of (D) */
        size_t at = cgs_map_row(r->arg.modulate.rows, row) * C;
        const float *pg = grad_in(r, row * D, D, buf);
        if (want_m) {
            const float *px = data_in(x, row * D, D, buf + D);
            float *dscale = buf + 2 * D;
            add_to(m->grad, m->dtype, at + (size_t)r->arg.modulate.shift, D, pg);
#pragma omp simd
            for (size_t i = 0; i < D; i++) dscale[i] = pg[i] * px[i];
            add_to(m->grad, m->dtype, at + (size_t)r->arg.modulate.scale, D, dscale);
        }
        if (want_x) {
            const float *scale = data_in(m, at + (size_t)r->arg.modulate.scale, D, buf + D);
            float *po = give_to(r, 0, row * D, buf + 2 * D);
#pragma omp simd
            for (size_t i = 0; i < D; i++) po[i] = pg[i] * (1.0f + scale[i]);
            give_done(r, 0, row * D, D, po);
        }
    }
}

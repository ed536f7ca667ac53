/* unfold.c - every cell of a grid with its eight neighbours, (channel, row, column). */
#include "ops/cpu/simd/simd.h"

/* the row of the cell at distance (k/3 - 1, k%3 - 1) of a row, or -1 outside the grid */
static long neighbour(size_t row, int k, long n) {
    long cell = (long)(row % (size_t)(n * n));
    long y = cell / n + k / 3 - 1, x = cell % n + k % 3 - 1;
    return y >= 0 && y < n && x >= 0 && x < n ? (long)row - cell + y * n + x : -1;
}

void CGS_FN(unfold_forward)(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *out = r->out;
    size_t C = (size_t)cgs_cols(x), rows = cgs_rows(x);
    long n = r->arg.unfold.side;
    CGS_SHARE (row, rows) {
        float *buf = thread_scratch(d); /* (9*C), followed by (C) */
        float *po = row_to(out->data, out->dtype, row * 9 * C, buf);
        for (int k = 0; k < 9; k++) {
            long at = neighbour(row, k, n);
            const float *px = at < 0 ? NULL : data_in(x, (size_t)at * C, C, buf + 9 * C);
            for (size_t c = 0; c < C; c++) po[c * 9 + (size_t)k] = px ? px[c] : 0;
        }
        row_done(out->data, out->dtype, row * 9 * C, 9 * C, po);
    }
}

void CGS_FN(unfold_backward)(cgs_device *d, const cgs_record *r) {
    if (!cgs_wants(r, 0)) return;
    size_t C = (size_t)cgs_cols(r->in[0]), rows = cgs_rows(r->in[0]);
    long n = r->arg.unfold.side;
    CGS_SHARE (row, rows) {
        float *sum = thread_scratch(d), *buf = sum + C; /* (C), (9*C) */
        memset(sum, 0, C * sizeof *sum);
        for (int k = 0; k < 9; k++) { /* the cell that sees this one at distance k */
            long at = neighbour(row, 8 - k, n);
            if (at < 0) continue;
            const float *pg = grad_in(r, (size_t)at * 9 * C, 9 * C, buf);
            for (size_t c = 0; c < C; c++) sum[c] += pg[c * 9 + (size_t)k];
        }
        give_done(r, 0, row * C, C, sum);
    }
}

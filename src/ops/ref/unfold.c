/* unfold.c - every cell of a grid with its eight neighbours: x (F,n*n,C) -> (F,n*n,C*9), columns
 *   (channel, row, column) of the 3x3 surroundings; outside the grid there are zeros. */
#include "ops/ref/ref.h"

/* the cell at distance (k/3 - 1, k%3 - 1) of a cell, or -1 outside the grid */
static long neighbour(long cell, int k, long n) {
    long y = cell / n + k / 3 - 1, x = cell % n + k % 3 - 1;
    return y >= 0 && y < n && x >= 0 && x < n ? y * n + x : -1;
}

void cgs_ref_unfold_forward(const cgs_record *r) {
    long n = r->arg.unfold.side, cells = n * n;
    size_t C = (size_t)cgs_cols(r->in[0]), rows = cgs_rows(r->in[0]);
    for (size_t row = 0; row < rows; row++)
        for (size_t c = 0; c < C; c++)
            for (int k = 0; k < 9; k++) {
                long at = neighbour((long)(row % (size_t)cells), k, n);
                size_t from = (row / (size_t)cells * (size_t)cells + (size_t)at) * C + c;
                set(r->out, (row * C + c) * 9 + (size_t)k, at < 0 ? 0 : get(r->in[0], from));
            }
}

void cgs_ref_unfold_backward(const cgs_record *r) {
    long n = r->arg.unfold.side, cells = n * n;
    size_t C = (size_t)cgs_cols(r->in[0]), rows = cgs_rows(r->in[0]);
    for (size_t row = 0; row < rows && cgs_wants(r, 0); row++)
        for (size_t c = 0; c < C; c++) {
            double sum = 0;
            for (int k = 0; k < 9; k++) { /* the cell that sees this one at distance k */
                long at = neighbour((long)(row % (size_t)cells), 8 - k, n);
                size_t from = row / (size_t)cells * (size_t)cells + (size_t)at;
                if (at >= 0) sum += out_grad(r, (from * C + c) * 9 + (size_t)k);
            }
            give(r, 0, row * C + c, sum);
        }
}

void cgs_ref_unfold_tangent(const cgs_record *r, cgs_lanes l) {
    long n = r->arg.unfold.side, cells = n * n;
    size_t C = (size_t)cgs_cols(r->in[0]), rows = cgs_rows(r->in[0]);
    for (size_t row = 0; row < rows; row++)
        for (size_t c = 0; c < C; c++)
            for (int k = 0; k < 9; k++) {
                long at = neighbour((long)(row % (size_t)cells), k, n);
                size_t from = (row / (size_t)cells * (size_t)cells + (size_t)at) * C + c;
                size_t to = (row * C + c) * 9 + (size_t)k;
                clear_tangent(r, l, to);
                if (at >= 0) push(r, l, to, 1, 0, from);
            }
}

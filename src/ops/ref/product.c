/* product.c - the one matrix product of the reference, for any layout and type.
 *
 * Both factors are widened to double, where a product of two floats is exact.  It is blocked only
 * to make a paper-sized model bearable: the inner loop runs over a row of fixed length, which
 * compilers vectorise. */
#include "ops/ref/ref.h"

enum { MB = 32, NB = 64, KB = 64 };

static size_t min(size_t a, size_t b) { return a < b ? a : b; }

/* to = rows k0.. and columns j0.. of B, padded with zeros */
static void pack(double to[KB][NB], cgs_ref_matrix B, size_t k0, size_t j0, size_t rows,
                 size_t cols) {
    for (size_t k = 0; k < KB; k++)
        for (size_t j = 0; j < NB; j++)
            to[k][j] = k < rows && j < cols
                           ? load(B.p, B.type, B.at + (k0 + k) * B.row + (j0 + j) * B.col)
                           : 0.0;
}

/* sum += a b over four k at a time */
static void row_times_block(double sum[restrict NB], const double a[KB],
                            const double b[restrict KB][NB]) {
    for (size_t k = 0; k < KB; k += 4)
        for (size_t j = 0; j < NB; j++)
            sum[j] += a[k] * b[k][j] + a[k + 1] * b[k + 1][j] + a[k + 2] * b[k + 2][j] +
                      a[k + 3] * b[k + 3][j];
}

void cgs_ref_product(cgs_ref_target C, cgs_ref_matrix A, cgs_ref_matrix B, size_t M, size_t N,
                     size_t K) {
    double sum[MB][NB], a[KB], b[KB][NB];
    for (size_t j0 = 0; j0 < N; j0 += NB)
        for (size_t i0 = 0; i0 < M; i0 += MB) {
            size_t rows = min(MB, M - i0), cols = min(NB, N - j0);
            memset(sum, 0, sizeof sum);
            for (size_t k0 = 0; k0 < K; k0 += KB) {
                size_t depth = min(KB, K - k0);
                pack(b, B, k0, j0, depth, cols);
                for (size_t i = 0; i < rows; i++) {
                    for (size_t k = 0; k < KB; k++)
                        a[k] = k < depth
                                   ? load(A.p, A.type, A.at + (i0 + i) * A.row + (k0 + k) * A.col)
                                   : 0.0;
                    row_times_block(sum[i], a, (const double(*)[NB])b);
                }
            }
            for (size_t i = 0; i < rows; i++)
                for (size_t j = 0; j < cols; j++) {
                    size_t at = C.at + (i0 + i) * C.row + j0 + j;
                    double v = C.scale * sum[i][j];
                    if (C.bias) v += get(C.bias, j0 + j);
                    if (C.add) v += load(C.p, C.type, at);
                    store(C.p, C.type, at, v);
                }
        }
}

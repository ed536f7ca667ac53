/* mixed_product.c - C (M,N) = A (M,K) B (K,N) for A in f32 and B in bf16, which is read as it is
 * stored: the gradient of a linear layer's input where the weights are rounded and the gradient
 * that arrives is not.
 *
 * Planning by gradients has a few rows, so weights are nearly all there is to read, and here each
 * is read once, in two bytes.  Every element of C is one chain of sums over k: its bits depend
 * neither on M nor on how the work is cut. */
#include "ops/cpu/simd/simd.h"
#include "ops/cpu/simd/tile.h"

/* c (rows, TILE_N), rows at most TILE_M and known to the compiler: the sums stay in registers */
static inline __attribute__((always_inline)) void block(float *c, const float *a, const uint16_t *b,
                                                        size_t N, size_t K, int rows) {
    cgs_vec s[TILE_M][2];
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) s[i][0] = s[i][1] = (cgs_vec){0};
    for (size_t k = 0; k < K; k++, b += N) {
        cgs_vec b0 = widened(b), b1 = widened(b + VECTOR);
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            float x = a[(size_t)i * K + k];
            s[i][0] += x * b0;
            s[i][1] += x * b1;
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
        *(cgs_vec_loose *)(c + (size_t)i * N) = s[i][0];
        *(cgs_vec_loose *)(c + (size_t)i * N + VECTOR) = s[i][1];
    }
}

/* as many rows of the block as there is a form for; returns how many */
static size_t some_rows(float *c, const float *a, const uint16_t *b, size_t N, size_t K,
                        size_t left) {
    if (left >= TILE_M) return block(c, a, b, N, K, TILE_M), TILE_M;
    if (left >= 4) return block(c, a, b, N, K, 4), 4;
    if (left == 3) return block(c, a, b, N, K, 3), 3;
    if (left == 2) return block(c, a, b, N, K, 2), 2;
    return block(c, a, b, N, K, 1), 1;
}

/* columns that fill no block */
static void few_columns(float *c, const float *a, const uint16_t *b, size_t N, size_t K, size_t M,
                        size_t cols) {
    for (size_t i = 0; i < M; i++) {
        float sum[TILE_N] = {0};
        for (size_t k = 0; k < K; k++)
            for (size_t j = 0; j < cols; j++)
                sum[j] += a[i * K + k] * cgs_bf16_to_f32(b[k * N + j]);
        memcpy(c + i * N, sum, cols * sizeof *sum);
    }
}

void CGS_FN(mixed_product)(float *C, const float *A, const uint16_t *B, size_t M, size_t N,
                           size_t K) {
    CGS_SHARE (task, (N + TILE_N - 1) / TILE_N) {
        size_t col = task * TILE_N, cols = min_size(TILE_N, N - col);
        if (cols < TILE_N) {
            few_columns(C + col, A, B + col, N, K, M, cols);
            continue;
        }
        for (size_t row = 0; row < M;)
            row += some_rows(C + row * N + col, A + row * K, B + col, N, K, M - row);
    }
    cgs_meet();
}

/* tile.h - the innermost product, held in registers; for attention and own products.
 *
 * A tile is TILE_M rows of TILE_N = 2 vectors of sums.  Its left factor is read by single
 * elements with any two strides, its right factor by rows.  Sizes are such that sums,
 * two vectors and one broadcast element fill the registers of the instruction set. */
#ifndef CGS_OPS_CPU_SIMD_TILE_H
#define CGS_OPS_CPU_SIMD_TILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined __AVX512F__
enum { VECTOR = 16, TILE_M = 12 };
#define LANE_NUMBERS 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
#elif defined __AVX__
enum { VECTOR = 8, TILE_M = 6 };
#define LANE_NUMBERS 0, 1, 2, 3, 4, 5, 6, 7
#elif defined __aarch64__ /* NEON: 32 registers of 4 */
enum { VECTOR = 4, TILE_M = 12 };
#define LANE_NUMBERS 0, 1, 2, 3
#else
enum { VECTOR = 4, TILE_M = 6 };
#define LANE_NUMBERS 0, 1, 2, 3
#endif
enum { TILE_N = 2 * VECTOR };

typedef float cgs_vec __attribute__((vector_size(VECTOR * 4)));
typedef float cgs_vec_loose __attribute__((vector_size(VECTOR * 4), aligned(4)));
typedef uint16_t cgs_vec_half __attribute__((vector_size(VECTOR * 2), aligned(2)));
typedef uint32_t cgs_vec_bits __attribute__((vector_size(VECTOR * 4)));

/* VECTOR numbers in bf16 */
static inline cgs_vec widened(const uint16_t *from) {
    return (cgs_vec)(__builtin_convertvector(*(const cgs_vec_half *)from, cgs_vec_bits) << 16);
}

/* c (TILE_M, TILE_N) = or += sum over k of a[i*row + k*col] b[k*ldb + j] */
static inline __attribute__((always_inline)) void tile(float *c, size_t ldc, const float *a,
                                                       size_t row, size_t col, const float *b,
                                                       size_t ldb, size_t K, bool add) {
    cgs_vec s[TILE_M][2];
#pragma GCC unroll 16
    for (int i = 0; i < TILE_M; i++) {
        if (add) {
            s[i][0] = *(const cgs_vec_loose *)(c + (size_t)i * ldc);
            s[i][1] = *(const cgs_vec_loose *)(c + (size_t)i * ldc + VECTOR);
        } else {
            s[i][0] = s[i][1] = (cgs_vec){0};
        }
    }
    for (size_t k = 0; k < K; k++, a += col, b += ldb) {
        cgs_vec b0 = *(const cgs_vec_loose *)b, b1 = *(const cgs_vec_loose *)(b + VECTOR);
#pragma GCC unroll 16
        for (int i = 0; i < TILE_M; i++) {
            float x = a[(size_t)i * row];
            s[i][0] += x * b0;
            s[i][1] += x * b1;
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < TILE_M; i++) {
        *(cgs_vec_loose *)(c + (size_t)i * ldc) = s[i][0];
        *(cgs_vec_loose *)(c + (size_t)i * ldc + VECTOR) = s[i][1];
    }
}

/* of the numbers of a, then those of b, the chosen ones */
static inline __attribute__((always_inline)) cgs_vec chosen(cgs_vec a, cgs_vec b,
                                                            cgs_vec_bits which) {
#if defined __clang__
    cgs_vec r = a;
    for (unsigned j = 0; j < VECTOR; j++)
        r[j] = which[j] < VECTOR ? a[which[j] % VECTOR] : b[which[j] % VECTOR];
    return r;
#else
    return __builtin_shuffle(a, b, which);
#endif
}

/* The transpose of VECTOR rows of VECTOR numbers, to rows `ld` apart: halves of each two blocks of
 * 1, 2, 4, ... rows are exchanged. */
static inline __attribute__((always_inline)) void turn_square(float *to, size_t ld,
                                                              cgs_vec r[VECTOR]) {
#pragma GCC unroll 4
    for (unsigned s = 1; s < VECTOR; s *= 2) {
        const cgs_vec_bits lane = {LANE_NUMBERS},
                           other = (cgs_vec_bits)((lane & s) != 0) & (VECTOR - s);
        const cgs_vec_bits upper = lane + other, lower = lane + s + other;
#pragma GCC unroll 16
        for (unsigned i = 0; i < VECTOR; i++) {
            if (i & s) continue;
            cgs_vec a = r[i], b = r[i + s];
            r[i] = chosen(a, b, upper);
            r[i + s] = chosen(a, b, lower);
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < VECTOR; i++) *(cgs_vec_loose *)(to + (size_t)i * ld) = r[i];
}

/* c (M,N) = or += a b for M a multiple of TILE_M and N of TILE_N */
static inline void tiles(float *c, size_t ldc, const float *a, size_t row, size_t col,
                         const float *b, size_t ldb, size_t M, size_t N, size_t K, bool add) {
    for (size_t j = 0; j < N; j += TILE_N)
        for (size_t i = 0; i < M; i += TILE_M)
            tile(c + i * ldc + j, ldc, a + i * row, row, col, b + j, ldb, K, add);
}

#endif /* CGS_OPS_CPU_SIMD_TILE_H */

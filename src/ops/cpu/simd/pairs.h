/* pairs.h - products of bf16 numbers, two at a time along the summed axis.
 *
 * A pair is one 32-bit word, the earlier number in its lower half.  A left factor has its
 * pairs next to each other; a right factor has for each pair a row of words.  This is what
 * both vdpbf16ps and the tiles of AMX multiply. */
#ifndef CGS_OPS_CPU_SIMD_PAIRS_H
#define CGS_OPS_CPU_SIMD_PAIRS_H

#include "ops/cpu/simd/simd.h"

/* One variant.  begin and end bracket its use by a thread. multiply: c (M,N) = or += a (M,K pairs)
 * b (K,N), where N is a multiple of `cols`, M of `rows` and K of `pairs`; rows of all three start
 * on a cache line.  Fastest are multiples of `block` rows. */
typedef struct pairs_variant {
    void (*begin)(void);
    void (*end)(void);
    void (*multiply)(float *c, size_t ldc, const uint32_t *a, size_t lda, const uint32_t *b,
                     size_t ldb, size_t M, size_t N, size_t K, bool add);
    size_t rows, cols, pairs, block;
    bool vectors; /* no tiles: products of any number of rows */
} pairs_variant;

/* the variant of this device, or NULL when the processor has no dot products of bf16 pairs */
const pairs_variant *CGS_FN(pairs_variant)(const cgs_device *d);

/* tiles_product by vectors, run by all members of a team */
void CGS_FN(vectors_product)(const cgs_product *p, void *C, const void *A, const uint32_t *packed,
                             const float *bias);

/* to (cols, rows) = the transpose of from (rows, cols), both sizes multiples of 16 */
void CGS_FN(turn)(uint32_t *to, size_t ld_to, const uint32_t *from, size_t ld_from, size_t rows,
                  size_t cols);

#if defined __AVX512F__
/* 32 elements of two rows interleaved: columns 0 to 15 and 16 to 31 of their pairs */
static inline void weave_pairs(__m512i to[2], __m512i low, __m512i high) {
    static const uint16_t order[2][32] = {
        {0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
         8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47},
        {16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55,
         24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63}};
    to[0] = _mm512_permutex2var_epi16(low, _mm512_loadu_si512(order[0]), high);
    to[1] = _mm512_permutex2var_epi16(low, _mm512_loadu_si512(order[1]), high);
}
#endif

#endif /* CGS_OPS_CPU_SIMD_PAIRS_H */

/* pairs.h - products of bf16 numbers, two at a time along the summed axis.
 *
 * A pair is one 32-bit word, the earlier number in its lower half.  A left factor has its
 * pairs next to each other; a right factor has for each pair a row of words.  This is what
 * both vdpbf16ps and the tiles of AMX multiply. */
#ifndef CGS_OPS_CPU_SIMD_PAIRS_H
#define CGS_OPS_CPU_SIMD_PAIRS_H

#include "ops/cpu/simd/simd.h"

/* One variant.  begin and end bracket its use by a thread. multiply: c (M,N) = or += a (M,K pairs)
 * b (K,N), where N is a multiple of 32, M of `rows` and K of `pairs`; rows of all three start on a
 * cache line. */
typedef struct pairs_variant {
    void (*begin)(void);
    void (*end)(void);
    void (*multiply)(float *c, size_t ldc, const uint32_t *a, size_t lda, const uint32_t *b,
                     size_t ldb, size_t M, size_t N, size_t K, bool add);
    size_t rows, pairs;
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

#endif /* CGS_OPS_CPU_SIMD_PAIRS_H */

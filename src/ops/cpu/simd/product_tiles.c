/* product_tiles.c - matrix products of bf16 by the pair products of pairs.h, AMX's or vectors'.
 *
 * With a short summed axis, as in the models, the code around the tiles dominates: here rows of the
 * left factor are read in place, blocks of sums stay in L1 until they are converted to the type of
 * the result, and weights are packed into panels of 32 columns, which can be prepacked.  Sizes
 * except rows are multiples of 32; for vectors (product_vectors.c) K need only be even.
 *
 * Products that sum over rows (dW) interleave both factors, a few hundred rows at a time, and add
 * to the result in place.  No result depends on the number of threads. */
#include "ops/cpu/simd/pairs.h"

#if defined __AVX512F__

#include <immintrin.h>

enum { ROWS = 64, COLS = 32 }; /* of a block of sums */

/* ---- y = x W: the right factor is packed ------------------------------------------------- */

/* to: panels (N/COLS) of (K/2, COLS) words */
void CGS_FN(tiles_pack)(cgs_device *d, const cgs_product *p, uint32_t *to, const void *B) {
    size_t K = p->K, N = p->N;
    CGS_SHARE (run, N / COLS) {
        size_t j = run * COLS;
        uint32_t *panel = to + j * K / 2;
        if (p->b_transposed) {
            const uint32_t *from = (const uint32_t *)B + j * K / 2;
            size_t words = K / 2, whole = words / 16 * 16;
            CGS_FN(turn)(panel, COLS, from, words, COLS, whole);
            for (size_t k = whole; k < words; k++)
                for (size_t i = 0; i < COLS; i++) panel[k * COLS + i] = from[i * words + k];
            continue;
        }
        for (size_t k = 0; k < K; k += 2, panel += COLS) {
            const uint16_t *low = (const uint16_t *)B + k * N + j, *high = low + N;
#pragma omp simd
            for (size_t i = 0; i < COLS; i++) panel[i] = low[i] | (uint32_t)high[i] << 16;
        }
    }
    cgs_meet();
}

static inline __m512 widen_half(__m256i x) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}

/* a block of sums to its place in C */
__attribute__((target("avx512bf16"))) static void finish(const cgs_product *p, void *C,
                                                         const float *bias, const float *sums,
                                                         size_t i0, size_t rows, size_t j0) {
    __m512 b0 = _mm512_setzero_ps(), b1 = b0;
    if (bias) b0 = _mm512_loadu_ps(bias + j0), b1 = _mm512_loadu_ps(bias + j0 + 16);
    for (size_t i = 0; i < rows; i++, sums += COLS) {
        size_t at = (i0 + i) * p->N + j0;
        __m512 x0 = _mm512_add_ps(_mm512_loadu_ps(sums), b0);
        __m512 x1 = _mm512_add_ps(_mm512_loadu_ps(sums + 16), b1);
        if (p->out == CGS_F32) {
            float *to = (float *)C + at;
            if (p->accumulate) {
                x0 = _mm512_add_ps(x0, _mm512_loadu_ps(to));
                x1 = _mm512_add_ps(x1, _mm512_loadu_ps(to + 16));
            }
            _mm512_storeu_ps(to, x0);
            _mm512_storeu_ps(to + 16, x1);
        } else {
            uint16_t *to = (uint16_t *)C + at;
            if (p->accumulate) {
                __m512i old = _mm512_loadu_si512(to);
                x0 = _mm512_add_ps(x0, widen_half(_mm512_castsi512_si256(old)));
                x1 = _mm512_add_ps(x1, widen_half(_mm512_extracti64x4_epi64(old, 1)));
            }
            _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh(x1, x0));
        }
    }
}

size_t CGS_FN(tiles_scratch)(const cgs_product *p) { return ROWS * p->K / 2 * 4; }

void CGS_FN(tiles_product)(cgs_device *d, const cgs_product *p, void *C, const void *A,
                           const uint32_t *packed, const float *bias) {
    const pairs_variant *variant = CGS_FN(pairs_variant)(d);
    if (variant->vectors) {
        CGS_FN(vectors_product)(p, C, A, packed, bias);
        return;
    }
    const uint32_t *a = A;
    size_t M = p->M, words = p->K / 2, last = M / ROWS * ROWS, left = M - last;
    size_t row_tasks = (M + ROWS - 1) / ROWS, col_tasks = p->N / COLS,
           tasks = row_tasks * col_tasks;
    uint32_t *spare = NULL;
    if (left % variant->rows) { /* tiles read whole rows of tiles */
        spare = (uint32_t *)thread_scratch(d);
        memcpy(spare, a + last * words, left * words * 4);
        memset(spare + left * words, 0, (round_up(left, variant->rows) - left) * words * 4);
    }
    /* a thread stays with its rows of x or its columns of W, whichever are more */
    bool by_rows = M > p->N;
    _Alignas(64) float sums[ROWS * COLS];
    variant->begin();
    CGS_SHARE (task, tasks) {
        size_t i = (by_rows ? task / col_tasks : task % row_tasks) * ROWS;
        size_t j = (by_rows ? task % col_tasks : task / row_tasks) * COLS;
        size_t rows = min_size(ROWS, M - i);
        const uint32_t *from = i == last && spare ? spare : a + i * words;
        variant->multiply(sums, COLS, from, words, packed + j * words, COLS,
                          round_up(rows, variant->rows), COLS, words, false);
        finish(p, C, bias, sums, i, rows, j);
    }
    variant->end();
}

/* ---- dW = dy^T x: sums over rows --------------------------------------------------------- */

/* rows summed at a time: their part of the right factor stays in L2 */
static size_t run_of(const cgs_product *p) {
    size_t rows = ((size_t)1 << 18) / p->N / 32 * 32;
    return rows < 64 ? 64 : min_size(rows, 1024);
}

size_t CGS_FN(tiles_words)(const cgs_product *p) {
    return p->a_transposed ? run_of(p) / 2 * p->N : p->K / 2 * p->N;
}

/* to (pairs, n): rows of `from` interleaved in pairs, zero-padded */
static void weave(uint32_t *to, const uint16_t *from, size_t ld, size_t rows, size_t pairs,
                  size_t n) {
    for (size_t t = 0; t < pairs; t++, to += n, from += 2 * ld) {
        if (2 * t + 1 < rows) {
#pragma omp simd
            for (size_t i = 0; i < n; i++) to[i] = from[i] | (uint32_t)from[ld + i] << 16;
        } else if (2 * t < rows) {
            for (size_t i = 0; i < n; i++) to[i] = from[i];
        } else {
            memset(to, 0, n * 4);
        }
    }
}

void CGS_FN(tiles_sum)(cgs_device *d, const cgs_product *p, float *C, const void *A, const void *B,
                       uint32_t *woven) {
    const pairs_variant *variant = CGS_FN(pairs_variant)(d);
    size_t M = p->M, N = p->N, run = run_of(p);
    for (size_t k = 0; k < p->K; k += run) {
        size_t rows = min_size(run, p->K - k), pairs = round_up((rows + 1) / 2, 16);
        const uint16_t *a = (const uint16_t *)A + k * M, *b = (const uint16_t *)B + k * N;
        uint32_t *left = (uint32_t *)thread_scratch(d), *transposed = left + pairs * 32;
        CGS_SHARE (run16, pairs / 16) {
            size_t t = run16 * 16;
            weave(woven + t * N, b + 2 * t * N, N, 2 * t < rows ? rows - 2 * t : 0, 16, N);
        }
        cgs_meet();
        CGS_SHARE (run32, M / 32) {
            size_t i = run32 * 32;
            weave(left, a + i, M, rows, pairs, 32);
            CGS_FN(turn)(transposed, pairs, left, 32, pairs, 32);
            variant->begin();
            variant->multiply(C + i * N, N, transposed, pairs, woven, N, 32, N, pairs,
                              k > 0 || p->accumulate);
            variant->end();
        }
        cgs_meet();
    }
}

#else

/* never called */
void CGS_FN(tiles_pack)(cgs_device *d, const cgs_product *p, uint32_t *to, const void *B) {
    (void)d, (void)p, (void)to, (void)B;
}
void CGS_FN(tiles_product)(cgs_device *d, const cgs_product *p, void *C, const void *A,
                           const uint32_t *packed, const float *bias) {
    (void)d, (void)p, (void)C, (void)A, (void)packed, (void)bias;
}
size_t CGS_FN(tiles_scratch)(const cgs_product *p) { return (void)p, 0; }
size_t CGS_FN(tiles_words)(const cgs_product *p) { return (void)p, 0; }
void CGS_FN(tiles_sum)(cgs_device *d, const cgs_product *p, float *C, const void *A, const void *B,
                       uint32_t *woven) {
    (void)d, (void)p, (void)C, (void)A, (void)B, (void)woven;
}

#endif

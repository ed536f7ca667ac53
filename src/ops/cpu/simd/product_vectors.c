/* product_vectors.c - the product of product_tiles.c by vectors of bf16 pairs: y = x W^T with W in
 * panels of 32 columns.
 *
 * A block of up to 12 rows has all its sums in registers, which are converted and stored from
 * there.  Every sum is one chain over the summed axis, so that a row's bits depend neither on the
 * block that it is in nor on the number of rows.
 *
 * While a panel is multiplied the next one is fetched into L2: the rows of a plan are too few to
 * hide the latency of weights that are larger than L2. */
#include "ops/cpu/simd/pairs.h"

#if defined __AVX512F__

#include <immintrin.h>

enum { BLOCK = 12, ROWS = 5 * BLOCK, COLS = 32 };

typedef struct job {
    const cgs_product *p;
    void *C;
    const uint32_t *A;
    const float *bias;
    size_t words; /* of a row of A, and half the rows of a panel */
} job;

__attribute__((target("avx512bf16"), always_inline)) static inline void
store(const job *g, size_t at, __m512 x0, __m512 x1) {
    if (g->p->out == CGS_F32) {
        float *to = (float *)g->C + at;
        if (g->p->accumulate) {
            x0 = _mm512_add_ps(x0, _mm512_loadu_ps(to));
            x1 = _mm512_add_ps(x1, _mm512_loadu_ps(to + 16));
        }
        _mm512_storeu_ps(to, x0);
        _mm512_storeu_ps(to + 16, x1);
        return;
    }
    uint16_t *to = (uint16_t *)g->C + at;
    if (g->p->accumulate) {
        __m512i old = _mm512_loadu_si512(to),
                low = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(old));
        __m512i high = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(old, 1));
        x0 = _mm512_add_ps(x0, _mm512_castsi512_ps(_mm512_slli_epi32(low, 16)));
        x1 = _mm512_add_ps(x1, _mm512_castsi512_ps(_mm512_slli_epi32(high, 16)));
    }
    _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh(x1, x0));
}

/* a part of a product: rows first, first + stride, ... by the panel b of columns j ...; while that
 * runs, `step` bytes from `next` on are fetched for each word of a row */
typedef struct part {
    const uint32_t *b;
    size_t j, first, stride;
    const char *next;
    size_t step;
} part;

/* rows: a constant wherever this is called */
__attribute__((target("avx512bf16"), always_inline)) static inline void
block(int rows, const job *g, const part *t) {
    size_t words = g->words, lda = t->stride * words;
    const uint32_t *a = g->A + t->first * words, *b = t->b;
    const char *next = t->next;
    __m512 s[BLOCK][2];
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) s[r][0] = s[r][1] = _mm512_setzero_ps();
    for (size_t k = 0; k < words; k++, b += COLS, next += t->step) {
        __m512bh b0 = (__m512bh)_mm512_loadu_si512(b), b1 = (__m512bh)_mm512_loadu_si512(b + 16);
        _mm_prefetch(next, _MM_HINT_T1);
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++) {
            __m512bh x = (__m512bh)_mm512_set1_epi32((int)a[(size_t)r * lda + k]);
            s[r][0] = _mm512_dpbf16_ps(s[r][0], x, b0);
            s[r][1] = _mm512_dpbf16_ps(s[r][1], x, b1);
        }
    }
    __m512 c0 = _mm512_setzero_ps(), c1 = c0;
    if (g->bias) c0 = _mm512_loadu_ps(g->bias + t->j), c1 = _mm512_loadu_ps(g->bias + t->j + 16);
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++)
        store(g, (t->first + (size_t)r * t->stride) * g->p->N + t->j, _mm512_add_ps(s[r][0], c0),
              _mm512_add_ps(s[r][1], c1));
}

#define FORM(rows)                                                                                 \
    case rows: block(rows, g, t); break

__attribute__((target("avx512bf16"))) static void some_rows(size_t rows, const job *g,
                                                            const part *t) {
    switch (rows) {
        FORM(1);
        FORM(2);
        FORM(3);
        FORM(4);
        FORM(5);
        FORM(6);
        FORM(7);
        FORM(8);
        FORM(9);
        FORM(10);
        FORM(11);
    default: block(BLOCK, g, t);
    }
}

/* the part's rows below `end`, in blocks of nearly the same size */
static void all_rows(const job *g, part t, size_t end) {
    if (t.first >= end) return;
    size_t rows = (end - t.first + t.stride - 1) / t.stride, first = t.first;
    size_t blocks = (rows + BLOCK - 1) / BLOCK;
    for (size_t n = 0; n < blocks; n++) {
        size_t from = rows * n / blocks, to = rows * (n + 1) / blocks;
        t.first = first + from * t.stride;
        some_rows(to - from, g, &t);
        t.next += g->words * t.step;
    }
}

void CGS_FN(vectors_product)(const cgs_product *p, void *C, const void *A, const uint32_t *packed,
                             const float *bias) {
    job g = {p, C, A, bias, p->K / 2};
    size_t M = p->M, row_tasks = (M + ROWS - 1) / ROWS, col_tasks = p->N / COLS;
    /* a thread stays with its rows of x or its columns of W, whichever are more */
    bool by_rows = M > p->N;
    CGS_SHARE (task, row_tasks * col_tasks) {
        size_t i = (by_rows ? task / col_tasks : task % row_tasks) * ROWS,
               end = min_size(M, i + ROWS);
        size_t panel = by_rows ? task % col_tasks : task / row_tasks;
        const uint32_t *b = packed + panel * COLS * g.words;
        const uint32_t *after = panel + 1 < col_tasks ? b + COLS * g.words : b;
        size_t passes = ((by_rows ? end - i : M) + BLOCK - 1) / BLOCK, step = COLS * 4 / passes + 1;
        size_t pass = by_rows ? 0 : i / BLOCK;
        part t = {b, panel * COLS, i, 1, (const char *)after + pass * g.words * step, step};
        if ((panel + 1) * COLS > p->unread_columns) {
            all_rows(&g, t, end);
            continue;
        }
        t.stride = p->tokens;
        for (size_t token = p->unread; token < p->tokens; token++) {
            t.first = i + (token + p->tokens - i % p->tokens) % p->tokens;
            all_rows(&g, t, end);
        }
    }
}

#else

/* never called */
void CGS_FN(vectors_product)(const cgs_product *p, void *C, const void *A, const uint32_t *packed,
                             const float *bias) {
    (void)p, (void)C, (void)A, (void)packed, (void)bias;
}

#endif

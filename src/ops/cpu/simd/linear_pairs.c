/* linear_pairs.c - the three gradients of a linear layer in bf16, in one pass over dy, by vectors
 * of bf16 pairs (pairs.h says what a pair is).
 *
 * A piece of the rows is one thread's, with sums of its own for dW and db, so that nothing but
 * these sums travels between cores.  It goes through its rows in runs.  A few rows at a time, while
 * they are in cache: dx = dy W, a part of db, and dy and x interleaved in pairs of rows.  Then dW =
 * dy^T x of the run, from the interleaved rows, which are still in L2.
 *
 * If x is the result of a GELU that nothing else reads, dx is multiplied by its slope here, and
 * never written: what is written is the gradient of what entered the GELU. */
#include "ops/cpu/simd/linear_pairs.h"

#include "ops/cpu/simd/pairs.h"

#if defined __AVX512F__

#include <immintrin.h>

enum {
    DOWN = 12,         /* rows of a block of sums, with ... */
    ACROSS = 32,       /* ... columns: as many sums as fit in registers */
    STEP = 48,         /* rows interleaved at a time; multiple of DOWN */
    DEPTH = 192,       /* pairs that dW sums at a time: their rows of x stay in L1 */
    DEEP = 4,          /* blocks of dW at a time, one below the other: ... */
    TALL = DEEP * DOWN /* ... rows of dW, whose columns of dy lie together */
};
_Static_assert(CGS_LINEAR_PAIRS_ROWS % DOWN == 0 && CGS_LINEAR_PAIRS_COLS % TALL == 0 &&
                   CGS_LINEAR_PAIRS_COLS % 32 == 0 && TALL % 16 == 0,
               "runs consist of steps, and results of blocks");

typedef struct layer {
    const cgs_record *r;
    size_t k, m;            /* columns of x and of y */
    size_t first, n;        /* rows of this run */
    size_t pairs;           /* of rows, in the longest run */
    uint32_t *W;            /* (k/ACROSS, m/2, ACROSS) W as a right factor */
    uint32_t *left;         /* (m/TALL, pairs, TALL) dy */
    uint32_t *right;        /* (k/ACROSS, pairs, ACROSS) x */
    float *dW, *db;         /* (m,k), (m): of this piece */
    const cgs_tensor *gelu; /* what entered the GELU before this layer, or NULL */
} layer;

size_t CGS_FN(linear_pairs_words)(size_t pieces, size_t k, size_t m) {
    return m / 2 * k + pieces * (m * k + m);
}

/* ... and of each thread: interleaved rows, and a whole block of dy */
size_t CGS_FN(linear_pairs_thread_words)(size_t run, size_t k, size_t m) {
    return run / 2 * (m + k) + DOWN * m / 2;
}

/* ---- blocks of sums ------------------------------------------------------------------------ */

/* s += a b: words a[i * apart] of block row i, and then `step` further on for the next pair */
__attribute__((target("avx512bf16"), always_inline)) static inline void
multiply(__m512 s[DOWN][2], const uint32_t *a, size_t apart, size_t step, const uint32_t *b,
         size_t pairs) {
    const uint32_t *third[4] = {a, a + 3 * apart, a + 6 * apart, a + 9 * apart};
    for (size_t k = 0; k < pairs; k++, b += ACROSS) {
        __m512bh b0 = (__m512bh)_mm512_loadu_si512(b), b1 = (__m512bh)_mm512_loadu_si512(b + 16);
#pragma GCC unroll 16
        for (int i = 0; i < DOWN; i++) {
            __m512bh x = (__m512bh)_mm512_set1_epi32((int)third[i / 3][(size_t)(i % 3) * apart]);
            s[i][0] = _mm512_dpbf16_ps(s[i][0], x, b0);
            s[i][1] = _mm512_dpbf16_ps(s[i][1], x, b1);
        }
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) third[i] += step;
    }
}

/* ---- the first step: rows -------------------------------------------------------------------- */

/* 32 columns of rows 2t and 2t+1, of which the latter may not exist */
static inline void weave(__m512i to[2], const uint16_t *low, const uint16_t *high) {
    weave_pairs(to, _mm512_loadu_si512(low),
                high ? _mm512_loadu_si512(high) : _mm512_setzero_si512());
}

/* adds both rows of the pairs */
static inline void add_pair(float *sum, __m512i pair) {
    __m512 low = _mm512_castsi512_ps(_mm512_slli_epi32(pair, 16));
    __m512 high = _mm512_castsi512_ps(_mm512_and_si512(pair, _mm512_set1_epi32((int)0xffff0000u)));
    _mm512_storeu_ps(sum, _mm512_add_ps(_mm512_loadu_ps(sum), _mm512_add_ps(low, high)));
}

/* dy, `rows` of it, to pairs from `at` on of the left factor, and their sum to db */
static void weave_left(const layer *l, const uint16_t *dy, size_t rows, size_t at) {
    for (size_t t = 0; t < rows; t += 2, at++) {
        const uint16_t *low = dy + t * l->m, *high = t + 1 < rows ? low + l->m : NULL;
        uint32_t *group = l->left + at * TALL;
        for (size_t c = 0; c < l->m; c += CGS_LINEAR_PAIRS_COLS) {
#pragma GCC unroll 4
            for (size_t i = 0; i < CGS_LINEAR_PAIRS_COLS; i += 32) {
                __m512i pair[2];
                weave(pair, low + c + i, high ? high + c + i : NULL);
#pragma GCC unroll 2
                for (size_t half = 0; half < 2; half++) {
                    size_t column = i + 16 * half;
                    uint32_t *to = group + column / TALL * TALL * l->pairs + column % TALL;
                    _mm512_storeu_si512(to, pair[half]);
                    add_pair(l->db + c + column, pair[half]);
                }
            }
            group += CGS_LINEAR_PAIRS_COLS * l->pairs;
        }
    }
}

static void weave_right(const layer *l, const uint16_t *x, size_t rows, size_t at) {
    for (size_t t = 0; t < rows; t += 2, at++) {
        const uint16_t *low = x + t * l->k, *high = t + 1 < rows ? low + l->k : NULL;
        for (size_t c = 0; c < l->k; c += ACROSS) {
            __m512i pair[2];
            weave(pair, low + c, high ? high + c : NULL);
            uint32_t *to = l->right + c * l->pairs + at * ACROSS;
            _mm512_storeu_si512(to, pair[0]);
            _mm512_storeu_si512(to + 16, pair[1]);
        }
    }
}

static inline __m512 widen_half(__m256i x) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}

/* 32 slopes of GELU from `at` on, as forward has left them */
static inline void slopes(__m512 to[2], const cgs_tensor *gelu, size_t at) {
    const __m512 step = _mm512_set1_ps(CGS_SLOPE_STEP), least = _mm512_set1_ps(CGS_SLOPE_LEAST);
    __m512i x = _mm512_loadu_si512((const uint16_t *)gelu->data + at);
    __m512i low = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(x));
    __m512i high = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(x, 1));
    to[0] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(low), step, least);
    to[1] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(high), step, least);
}

/* What DOWN rows of the next step will read and write, fetched little by little: the processor
 * stalls where it has more to wait for than a few lines. */
typedef struct ahead {
    const uint16_t *from[4]; /* dy, x, where dx goes, slopes; NULL: nothing */
} ahead;

static ahead ahead_of(const layer *l, size_t at) {
    const cgs_tensor *x = l->r->in[0], *y = l->r->out, *into = l->gelu ? l->gelu : x;
    if (at + DOWN > l->first + l->n) return (ahead){{NULL}};
    return (ahead){{(const uint16_t *)y->grad + at * l->m, (const uint16_t *)x->data + at * l->k,
                    (const uint16_t *)into->grad + at * l->k,
                    l->gelu ? (const uint16_t *)l->gelu->data + at * l->k : NULL}};
}

/* the share of these that belongs to columns c to c + ACROSS of dx */
static inline void prefetch_part(const layer *l, const ahead *next, size_t c) {
    for (int i = 0; i < 4; i++) {
        size_t width = i ? l->k : l->m, from = DOWN * width * c / l->k / 32 * 32;
        size_t to = DOWN * width * (c + ACROSS) / l->k / 32 * 32;
        for (size_t at = from; next->from[i] && at < to; at += 32)
            _mm_prefetch((const char *)(next->from[i] + at), _MM_HINT_T1);
    }
}

/* `rows` <= DOWN rows of dx, from row `at` on, from those of dy */
__attribute__((target("avx512bf16"))) static void
rows_of_dx(const layer *l, size_t at, size_t rows, const uint32_t *dy, const ahead *next) {
    size_t words = l->m / 2;
    const cgs_tensor *into = l->gelu ? l->gelu : l->r->in[0];
    bool add = l->gelu ? l->r->before->accumulate[0] : l->r->accumulate[0];
    for (size_t c = 0; c < l->k; c += ACROSS) {
        uint16_t *to = (uint16_t *)into->grad + at * l->k + c;
        _Alignas(64) float sums[DOWN][ACROSS];
        __m512 s[DOWN][2];
#pragma GCC unroll 16
        for (int i = 0; i < DOWN; i++) s[i][0] = s[i][1] = _mm512_setzero_ps();
        prefetch_part(l, next, c);
        multiply(s, dy, words, 1, l->W + c * words, words);
        if (!add && rows == DOWN) {
#pragma GCC unroll 16
            for (int i = 0; i < DOWN; i++) {
                __m512 slope[2];
                if (l->gelu) {
                    slopes(slope, l->gelu, (at + (size_t)i) * l->k + c);
                    s[i][0] = _mm512_mul_ps(s[i][0], slope[0]);
                    s[i][1] = _mm512_mul_ps(s[i][1], slope[1]);
                }
                _mm512_storeu_si512(to + (size_t)i * l->k,
                                    (__m512i)_mm512_cvtne2ps_pbh(s[i][1], s[i][0]));
            }
            continue;
        }
#pragma GCC unroll 16
        for (int i = 0; i < DOWN; i++) {
            _mm512_store_ps(sums[i], s[i][0]);
            _mm512_store_ps(sums[i] + 16, s[i][1]);
        }
        for (size_t i = 0; i < rows; i++, to += l->k) {
            __m512 low = _mm512_load_ps(sums[i]), high = _mm512_load_ps(sums[i] + 16), slope[2];
            if (l->gelu) {
                slopes(slope, l->gelu, (at + i) * l->k + c);
                low = _mm512_mul_ps(low, slope[0]);
                high = _mm512_mul_ps(high, slope[1]);
            }
            if (add) {
                __m512i old = _mm512_loadu_si512(to);
                low = _mm512_add_ps(low, widen_half(_mm512_castsi512_si256(old)));
                high = _mm512_add_ps(high, widen_half(_mm512_extracti64x4_epi64(old, 1)));
            }
            _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh(high, low));
        }
    }
}

/* rows `at` to `at` + `rows` of the run */
static void step_rows(const layer *l, size_t at, size_t rows) {
    const cgs_tensor *x = l->r->in[0], *y = l->r->out;
    const uint16_t *dy = (const uint16_t *)y->grad + (l->first + at) * l->m;
    const uint16_t *px = (const uint16_t *)x->data + (l->first + at) * l->k;
    weave_left(l, dy, rows, at / 2);
    weave_right(l, px, rows, at / 2);
    for (size_t i = 0; cgs_wants(l->r, 0) && i < rows; i += DOWN) {
        size_t some = min_size(DOWN, rows - i);
        const uint16_t *from = dy + i * l->m;
        if (some < DOWN) {
            uint16_t *whole = (uint16_t *)(l->right + l->pairs * l->k); /* (DOWN,m) */
            memcpy(whole, from, some * l->m * 2);
            memset(whole + some * l->m, 0, (DOWN - some) * l->m * 2);
            from = whole;
        }
        ahead next = ahead_of(l, l->first + at + rows + i);
        rows_of_dx(l, l->first + at + i, some, (const uint32_t *)from, &next);
    }
}

/* ---- the second step: dW -----------------------------------------------------------------------
 */

/* the sums of a block of dW, which are lines of cache far from each other */
static void prefetch_block(const float *sums, size_t k) {
    for (size_t q = 0; q < DOWN; q++, sums += k) {
        _mm_prefetch((const char *)sums, _MM_HINT_T0);
        _mm_prefetch((const char *)(sums + 16), _MM_HINT_T0);
    }
}

/* where the n-th DEEP blocks begin: so that the longer factor is read once */
typedef struct place {
    size_t i, j;
} place;
static place place_of(const layer *l, size_t n) {
    size_t down = l->m / TALL, across = l->k / ACROSS;
    bool tall = l->m > l->k;
    size_t i = tall ? n / across : n % down, j = tall ? n % across : n / down;
    return (place){i * TALL, j * ACROSS};
}

/* DEEP blocks of dW; while they are summed, the first of the next ones is fetched */
__attribute__((target("avx512bf16"))) static void blocks_of_dW(const layer *l, place at, place next,
                                                               bool add) {
    size_t pairs = (l->n + 1) / 2, depth = round_up(pairs, DEPTH) / DEPTH;
    depth = (pairs + depth - 1) / depth;
    for (size_t t = 0; t < pairs; t += depth, add = true) {
        const uint32_t *b = l->right + at.j * l->pairs + t * ACROSS;
        const uint32_t *a = l->left + at.i * l->pairs + t * TALL;
        for (size_t down = 0; down < TALL; down += DOWN) {
            float *to = l->dW + (at.i + down) * l->k + at.j;
            bool last = down + DOWN == TALL;
            if (t == 0 && !last)
                prefetch_block(to + DOWN * l->k, l->k);
            else if (t + depth >= pairs && last)
                prefetch_block(l->dW + next.i * l->k + next.j, l->k);
            __m512 s[DOWN][2];
#pragma GCC unroll 16
            for (int q = 0; q < DOWN; q++) {
                const float *row = to + (size_t)q * l->k;
                s[q][0] = add ? _mm512_loadu_ps(row) : _mm512_setzero_ps();
                s[q][1] = add ? _mm512_loadu_ps(row + 16) : _mm512_setzero_ps();
            }
            multiply(s, a + down, 1, TALL, b, min_size(depth, pairs - t));
#pragma GCC unroll 16
            for (int q = 0; q < DOWN; q++) {
                _mm512_storeu_ps(to + (size_t)q * l->k, s[q][0]);
                _mm512_storeu_ps(to + (size_t)q * l->k + 16, s[q][1]);
            }
        }
    }
}

/* rows l->first to `end`, by one thread */
static void piece_of(layer *l, size_t end, size_t run) {
    bool add = false;
    size_t blocks = l->m / TALL * (l->k / ACROSS);
    memset(l->db, 0, l->m * sizeof *l->db);
    if (l->first >= end) memset(l->dW, 0, l->m * l->k * sizeof *l->dW);
    for (; l->first < end; l->first += run, add = true) {
        l->n = min_size(run, end - l->first);
        for (size_t at = 0; at < l->n; at += STEP) step_rows(l, at, min_size(STEP, l->n - at));
        for (size_t n = 0; n < blocks; n++)
            blocks_of_dW(l, place_of(l, n), place_of(l, n + 1 < blocks ? n + 1 : n), add);
    }
}

void CGS_FN(linear_pairs_backward)(cgs_device *d, const cgs_record *r, const cgs_cpu_pieces *how,
                                   const uint16_t *W, uint32_t *scratch) {
    const cgs_tensor *x = r->in[0], *y = r->out;
    size_t n = cgs_rows(x), k = (size_t)cgs_cols(x), m = (size_t)cgs_cols(y);
    layer l = {.r = r, .k = k, .m = m, .pairs = how->run / 2, .W = scratch};
    float *dW = (float *)(l.W + m / 2 * k), *db = dW + how->pieces * m * k;
    if (r->before) l.gelu = r->before->in[0];
    if (cgs_wants(r, 0)) {
        cgs_product dx = {.N = k, .K = m};
        CGS_FN(tiles_pack)(d, &dx, l.W, W);
    }
    CGS_SHARE (piece, how->pieces) {
        layer mine = l;
        mine.left = (uint32_t *)thread_scratch(d);
        mine.right = mine.left + how->run / 2 * m;
        mine.dW = dW + piece * m * k;
        mine.db = db + piece * m;
        mine.first = min_size(n, piece * how->rows);
        piece_of(&mine, min_size(n, (piece + 1) * how->rows), how->run);
    }
    cgs_meet();
    give_sum(r, 1, dW, how->pieces, m * k);
    if (cgs_wants(r, 2)) give_sum(r, 2, db, how->pieces, m);
}

#else

/* never called */
size_t CGS_FN(linear_pairs_words)(size_t pieces, size_t k, size_t m) {
    return (void)pieces, (void)k, (void)m, 0;
}
size_t CGS_FN(linear_pairs_thread_words)(size_t run, size_t k, size_t m) {
    return (void)run, (void)k, (void)m, 0;
}
void CGS_FN(linear_pairs_backward)(cgs_device *d, const cgs_record *r, const cgs_cpu_pieces *how,
                                   const uint16_t *W, uint32_t *scratch) {
    (void)d, (void)r, (void)how, (void)W, (void)scratch;
}

#endif

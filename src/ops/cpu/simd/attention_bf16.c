/* attention_bf16.c - attention over many bf16 tokens by products of bf16 pairs (pairs.h).
 *
 * Order and blocks are those of attention.c; probabilities and score gradients are rounded to bf16
 * before they are multiplied.  Sums over keys interleave two rows of v or k.  Sums over queries are
 * transposed, dv^T = dout^T P, so that P and dS need only interleaving, and only the small factors
 * are transposed, once per head.
 *
 * With AMX the products cost less than the softmax between them, so that is written for vectors of
 * 16, with exponentials in base 2.
 *
 * A row's sum of P dP equals dout . out, but only for an unrounded `out`: where tokens are alike dP
 * hardly differs from that sum, and its rounding error is equal for all keys, so that it would
 * dominate the gradients of q and k. */
#include "ops/cpu/simd/attention.h"
#include "ops/cpu/simd/vectors.h"

#if defined __AVX512F__

#include <immintrin.h>

#define WITH_BF16 __attribute__((target("avx512bf16")))
#define LOG2_E 1.44269504f

/* Rows of scores that exist at a time in f32, so that they stay in L1: the variant's block, at most
 * these. */
enum { ROWS = 32 };

/* words of a factor in any of its four layouts */
static size_t form_words(const head *h) { return round_up(h->T, 32) * h->Wc / 2; }

/* Rows whose P and dS exist at a time in backward, whole blocks: all where they fit into L2 beside
 * the factors, for every further part of them is a pass over dk and dv. */
static size_t queries_of(const head *h, size_t block) {
    enum { SCORES = 80 << 10 };
    size_t most = SCORES / round_up(h->T, 32) / block * block;
    return min_size(most > block ? most : block, round_up(h->T, block));
}

size_t CGS_FN(attention_pairs_scratch)(const cgs_record *r) {
    head h = head_of(r, 0, 0);
    size_t queries = queries_of(&h, ROWS) + ROWS, Tp = round_up(h.T, 32);
    size_t factors = 8 * form_words(&h), scores = queries / 2 * 3 * Tp + 2 * (ROWS + 1) * Tp;
    return (factors + scores + 2 * h.Wc * Tp + queries * h.Wc) * 4;
}

/* one head, padded as the variant asks */
static head padded_head(const cgs_record *r, const pairs_variant *variant, size_t b, size_t hd) {
    head h = head_of(r, b, hd);
    h.Tc = round_up(h.T, variant->cols);
    return h;
}

/* ---- layouts of a factor: T rows of W elements, zero-padded -------------------------- */
/* With Tp: T rounded up to 32, for tokens that are summed over. */

/* 32 elements of a row from i on, 0 from W on */
static inline __m512i row_part(const uint16_t *row, size_t i, const head *h) {
    __mmask32 used = h->W - i < 32 ? (1u << (h->W - i)) - 1 : ~0u;
    return _mm512_maskz_loadu_epi16(used, row + i);
}

/* to (Tc, Wc/2): rows as they are */
static void load_rows(uint32_t *to, const void *p, size_t at, size_t row, const head *h) {
    const uint16_t *from = (const uint16_t *)p + at;
    for (size_t t = 0; t < h->T; t++, from += row)
        for (size_t i = 0; i < h->Wc; i += 32, to += 16)
            _mm512_storeu_si512(to, row_part(from, i, h));
    memset(to, 0, (h->Tc - h->T) * h->Wc * 2);
}

/* to (Tp/2, Wc): rows 2t and 2t+1 interleaved */
static void weave_rows(uint32_t *to, const void *p, size_t at, size_t row, const head *h) {
    const uint16_t *low = (const uint16_t *)p + at;
    for (size_t t = 0; t < h->T; t += 2, low += 2 * row)
        for (size_t i = 0; i < h->Wc; i += 32, to += 32) {
            __m512i a = row_part(low, i, h), b = _mm512_setzero_si512(), pair[2];
            if (t + 1 < h->T) b = row_part(low + row, i, h);
            weave_pairs(pair, a, b);
            _mm512_storeu_si512(to, pair[0]);
            _mm512_storeu_si512(to + 16, pair[1]);
        }
    memset(to, 0, (round_up(h->T, 32) / 2 - (h->T + 1) / 2) * h->Wc * 4);
}

/* to (Wc/2, Tc): pairs along W, a right factor; spare: scratch for one layout */
static void turn_rows(uint32_t *to, uint32_t *spare, const void *p, size_t at, size_t row,
                      const head *h) {
    load_rows(spare, p, at, row, h);
    CGS_FN(turn)(to, h->Tc, spare, h->Wc / 2, h->Tc, h->Wc / 2);
}

/* to (Wc, Tp/2): pairs along T, a left factor */
static void turn_woven(uint32_t *to, uint32_t *spare, const void *p, size_t at, size_t row,
                       const head *h) {
    weave_rows(spare, p, at, row, h);
    size_t pairs = round_up(h->T, 32) / 2;
    CGS_FN(turn)(to, pairs, spare, h->Wc, pairs, h->Wc);
}

/* ---- scores ------------------------------------------------------------------------------ */

/* mask of the first n of 16 elements */
static inline __mmask16 first_of(size_t n) { return n < 16 ? (__mmask16)((1u << n) - 1) : 0xffff; }

/* to = factor * row, n elements; the row is readable up to a multiple of 16 */
WITH_BF16 static inline void store_row(uint16_t *to, const float *row, size_t n, float factor) {
    const __m512 times = _mm512_set1_ps(factor);
    for (size_t i = 0; i < n; i += 16) {
        __m256i x = (__m256i)_mm512_cvtneps_pbh(_mm512_mul_ps(times, _mm512_loadu_ps(row + i)));
        _mm256_mask_storeu_epi16(to + i, first_of(n - i), x);
    }
}

static inline float vector_max(const float *s, size_t n) {
    __m512 top = _mm512_set1_ps(-INFINITY);
    size_t j = 0;
    for (; j + 16 <= n; j += 16) top = _mm512_max_ps(top, _mm512_loadu_ps(s + j));
    top = _mm512_mask_max_ps(top, first_of(n - j), top, _mm512_loadu_ps(s + j));
    return _mm512_reduce_max_ps(top);
}

/* 16 elements of softmax: to p, and to s in f32 if that is kept */
WITH_BF16 static inline __m512 soft_part(uint16_t *p, float *s, __mmask16 seen, __m512 factor,
                                         __m512 less, bool keep) {
    __m512 x = _mm512_fmsub_ps(factor, _mm512_loadu_ps(s), less);
    __m512 e = _mm512_maskz_mov_ps(seen, exp2_vector(x));
    if (keep) _mm512_storeu_ps(s, e);
    _mm256_storeu_si256((__m256i *)p, (__m256i)_mm512_cvtneps_pbh(e));
    return e;
}

/* p (end) = 2^(scale s - *top) as bf16 with *top the largest scale s, 0 from n on; returns
 * the sum before rounding.  s takes the values in f32 if `keep`.  Rows of both are readable and
 * writable up to a multiple of 16. */
WITH_BF16 static float softmax(uint16_t *p, float *s, size_t n, size_t end, float scale, float *top,
                               bool keep) {
    float shift = scale * vector_max(s, n);
    __m512 sum = _mm512_setzero_ps(), factor = _mm512_set1_ps(scale), less = _mm512_set1_ps(shift);
    size_t j = 0;
    for (; j + 16 <= n; j += 16)
        sum = _mm512_add_ps(sum, soft_part(p + j, s + j, 0xffff, factor, less, keep));
    if (j < n)
        sum = _mm512_add_ps(sum, soft_part(p + j, s + j, first_of(n - j), factor, less, keep));
    size_t done = round_up(n, 16);
    if (done < end) memset(p + done, 0, (end - done) * 2);
    *top = shift;
    return _mm512_reduce_add_ps(sum);
}

void CGS_FN(attention_pairs_forward)(cgs_device *d, const cgs_record *r,
                                     const pairs_variant *variant, size_t b, size_t hd) {
    const cgs_tensor *x = r->in[0], *y = r->out;
    head h = padded_head(r, variant, b, hd);
    size_t form = form_words(&h), words = h.Wc / 2, pw = round_up(h.T, 32) / 2;
    float *lse = (float *)r->saved[0]->data + h.index;
    uint32_t *q = (uint32_t *)thread_scratch(d); /* (Tc,Wc/2) */
    uint32_t *kt = q + form;                     /* (Wc/2,Tc) */
    uint32_t *v = kt + form;                     /* (Tp/2,Wc) */
    uint32_t *p = v + form;                      /* (ROWS,Tp/2) */
    float *s = (float *)(p + ROWS * pw);         /* (ROWS,Tc) */
    float *o = s + ROWS * h.Tc;                  /* (ROWS,Wc) */
    turn_rows(kt, q, x->data, h.in + h.all, h.in_row, &h);
    load_rows(q, x->data, h.in, h.in_row, &h);
    weave_rows(v, x->data, h.in + 2 * h.all, h.in_row, &h);
    variant->begin();
    for (size_t i0 = 0; i0 < h.T; i0 += variant->block) {
        size_t n = min_size(variant->block, h.T - i0), rows = round_up(n, variant->rows);
        size_t seen = visible(r, h.T, i0 + n - 1), pairs = round_up((seen + 1) / 2, variant->pairs);
        variant->multiply(s, h.Tc, q + i0 * words, words, kt, h.Tc, rows,
                          round_up(seen, variant->cols), words, false);
        float top[ROWS], sum[ROWS];
        bool drop = r->arg.attention.dropout > 0;
        for (size_t i = 0; i < n; i++) {
            float *row = s + i * h.Tc;
            size_t mine = visible(r, h.T, i0 + i);
            uint16_t *to = (uint16_t *)(p + i * pw);
            sum[i] = softmax(to, row, mine, 2 * pairs, h.scale * LOG2_E, &top[i], drop);
            if (drop) {
                drop_row(r, &h, i0 + i, row, mine);
                narrow(to, row, mine);
            }
        }
#pragma omp simd
        for (size_t i = 0; i < n; i++) {
            lse[i0 + i] = top[i] / LOG2_E + fast_log(sum[i]);
            sum[i] = 1.0f / sum[i];
        }
        variant->multiply(o, h.Wc, p, pw, v, h.Wc, rows, h.Wc, pairs, false);
        for (size_t i = 0; i < n; i++)
            store_row((uint16_t *)y->data + h.out + (i0 + i) * h.all, o + i * h.Wc, h.W, sum[i]);
    }
    variant->end();
}

/* ---- backward ---------------------------------------------------------------------------- */

/* one row of scores, then of P, and of dP, which sees `mine` tokens; keep: dropout factors, or
 * NULL */
typedef struct score_row {
    float *p;
    const float *dp, *keep;
    float share, sum; /* 1 / sum of P, sum of P M dP */
    size_t mine;
} score_row;

static inline __m512 dropped(const score_row *row, size_t j, __m512 x) {
    return row->keep ? _mm512_mul_ps(x, _mm512_loadu_ps(row->keep + j)) : x;
}

/* Scores become P up to the factor `share`, 0 after the last visible token.  lse, in base 2, is as
 * exact as its magnitude allows, which is not enough where scores are large. */
static void weigh(score_row *row, float scale, float lse, size_t n) {
    const __m512 factor = _mm512_set1_ps(scale), less = _mm512_set1_ps(lse);
    __m512 all = _mm512_setzero_ps(), sum = _mm512_setzero_ps();
    size_t j = 0;
    for (; j + 16 <= row->mine; j += 16) {
        __m512 x = _mm512_fmsub_ps(factor, _mm512_loadu_ps(row->p + j), less), e = exp2_vector(x);
        _mm512_storeu_ps(row->p + j, e);
        all = _mm512_add_ps(all, e);
        sum = _mm512_fmadd_ps(e, dropped(row, j, _mm512_loadu_ps(row->dp + j)), sum);
    }
    if (j < row->mine) {
        __mmask16 seen = first_of(row->mine - j);
        __m512 x = _mm512_fmsub_ps(factor, _mm512_loadu_ps(row->p + j), less);
        __m512 e = _mm512_maskz_mov_ps(seen, exp2_vector(x));
        __m512 dp = _mm512_maskz_mov_ps(seen, _mm512_loadu_ps(row->dp + j));
        _mm512_storeu_ps(row->p + j, e);
        all = _mm512_add_ps(all, e);
        sum = _mm512_fmadd_ps(e, dropped(row, j, dp), sum);
        j += 16;
    }
    for (; j < n; j += 16) _mm512_storeu_ps(row->p + j, _mm512_setzero_ps());
    row->share = 1.0f / _mm512_reduce_add_ps(all);
    row->sum = row->share * _mm512_reduce_add_ps(sum);
}

/* dS = P (M dP - sum) of 16 elements from j on; *p becomes P M */
static inline __m512 score_back(const score_row *row, size_t j, __m512 *p) {
    if (j >= row->mine) return *p = _mm512_setzero_ps();
    __m512 e = _mm512_mul_ps(_mm512_set1_ps(row->share), _mm512_loadu_ps(row->p + j));
    __m512 dp = dropped(row, j, _mm512_loadu_ps(row->dp + j));
    *p = dropped(row, j, e);
    return _mm512_maskz_mul_ps(first_of(row->mine - j), e,
                               _mm512_sub_ps(dp, _mm512_set1_ps(row->sum)));
}

/* Two rows: pw (n) and dsw (n) get P M and dS interleaved, low and high get dS unchanged. */
WITH_BF16 static void weave_scores(uint32_t *pw, uint32_t *dsw, uint16_t *low, uint16_t *high,
                                   const score_row *a, const score_row *b, size_t n) {
    uint16_t order[32];
    for (int i = 0; i < 32; i++) order[i] = (uint16_t)(i / 2 + 16 * (i % 2));
    const __m512i woven = _mm512_loadu_si512(order);
    size_t whole = a->keep || b->keep ? 0 : min_size(a->mine, b->mine) / 16 * 16;
    const __m512 share0 = _mm512_set1_ps(a->share), share1 = _mm512_set1_ps(b->share);
    const __m512 sum0 = _mm512_set1_ps(a->sum), sum1 = _mm512_set1_ps(b->sum);
    for (size_t j = 0; j < n; j += 16) {
        __m512 p0, p1, ds0, ds1;
        if (j < whole) {
            p0 = _mm512_mul_ps(share0, _mm512_loadu_ps(a->p + j));
            p1 = _mm512_mul_ps(share1, _mm512_loadu_ps(b->p + j));
            ds0 = _mm512_mul_ps(p0, _mm512_sub_ps(_mm512_loadu_ps(a->dp + j), sum0));
            ds1 = _mm512_mul_ps(p1, _mm512_sub_ps(_mm512_loadu_ps(b->dp + j), sum1));
        } else {
            ds0 = score_back(a, j, &p0);
            ds1 = score_back(b, j, &p1);
        }
        __m512i p = (__m512i)_mm512_cvtne2ps_pbh(p1, p0);
        __m512i ds = (__m512i)_mm512_cvtne2ps_pbh(ds1, ds0);
        _mm512_storeu_si512(pw + j, _mm512_permutexvar_epi16(woven, p));
        _mm512_storeu_si512(dsw + j, _mm512_permutexvar_epi16(woven, ds));
        _mm256_storeu_si256((__m256i *)(low + j), _mm512_castsi512_si256(ds));
        _mm256_storeu_si256((__m256i *)(high + j), _mm512_extracti64x4_epi64(ds, 1));
    }
}

/* row i, of `n` scores and dP; keep: (Tc) for its dropout factors */
static score_row row_of(const cgs_record *r, const head *h, size_t i, float *s, const float *dp,
                        float *keep, size_t n) {
    score_row row = {.p = s, .dp = dp};
    if (i >= h->T) return row;
    row.mine = visible(r, h->T, i);
    if (r->arg.attention.dropout > 0) {
        for (size_t j = 0; j < h->Tc; j++) keep[j] = 1;
        drop_row(r, h, i, keep, row.mine);
        row.keep = keep;
    }
    weigh(&row, h->scale * LOG2_E, LOG2_E * ((const float *)r->saved[0]->data)[h->index + i], n);
    return row;
}

/* the head after this one; after the last, one without tokens */
static head head_after(const cgs_record *r, size_t b, size_t hd) {
    size_t heads = (size_t)r->arg.attention.heads, batch = (size_t)r->in[0]->dim[0];
    b += (hd + 1) / heads;
    return b < batch ? head_of(r, b, (hd + 1) % heads) : (head){0};
}

/* What backward of a head reads and writes for `n` tokens from `first` on, in rows far from each
 * other: fetched a few at a time while another head is computed. */
static void fetch_tokens(const cgs_record *r, const head *h, size_t first, size_t n) {
    for (size_t t = first; t < min_size(h->T, first + n); t++) {
        for (size_t at = 0; at < h->W; at += 32) {
            const uint16_t *g = (const uint16_t *)r->out->grad + h->out + t * h->all + at;
            size_t in = h->in + t * h->in_row + at;
            _mm_prefetch((const char *)g, _MM_HINT_T1);
            for (size_t part = 0; part < 3; part++, in += h->all) {
                _mm_prefetch((const char *)((const uint16_t *)r->in[0]->data + in), _MM_HINT_T1);
                _mm_prefetch((const char *)((const uint16_t *)r->in[0]->grad + in), _MM_HINT_T1);
            }
        }
    }
}

/* `n` rows (h->Wc) times `scale` are the gradient of q, k or v from element `at` on */
static void give_rows(const cgs_record *r, const head *h, size_t at, float *row, size_t n,
                      float scale) {
    for (size_t t = 0; t < n; t++, row += h->Wc, at += h->in_row) {
        if (!r->accumulate[0]) {
            store_row((uint16_t *)r->in[0]->grad + at, row, h->W, scale);
            continue;
        }
        for (size_t i = 0; i < h->W; i++) row[i] *= scale;
        give_done(r, 0, at, h->W, row);
    }
}

void CGS_FN(attention_pairs_backward)(cgs_device *d, const cgs_record *r,
                                      const pairs_variant *variant, size_t b, size_t hd) {
    const cgs_tensor *x = r->in[0], *y = r->out;
    head h = padded_head(r, variant, b, hd), after = head_after(r, b, hd);
    size_t form = form_words(&h), words = h.Wc / 2, pw = round_up(h.T, 32) / 2;
    size_t block = variant->block, most = queries_of(&h, block);
    uint32_t *spare = (uint32_t *)thread_scratch(d);              /* any layout */
    uint32_t *q = spare + form, *g = q + form;                    /* (Tc,Wc/2): q, dout */
    uint32_t *kt = g + form, *vt = kt + form;                     /* (Wc/2,Tc) */
    uint32_t *kw = vt + form;                                     /* (Tp/2,Wc) */
    uint32_t *qt = kw + form, *gt = qt + form;                    /* (Wc,Tp/2) */
    uint32_t *p = gt + form, *dsw = p + (most + ROWS) / 2 * h.Tc; /* (most/2,Tc): P M, dS */
    uint32_t *dsn = dsw + (most + ROWS) / 2 * h.Tc;               /* (most,Tp/2): dS */
    float *s = (float *)(dsn + (most + ROWS) * pw);               /* (ROWS,Tc) */
    float *dp = s + ROWS * h.Tc, *keep = dp + ROWS * h.Tc;        /* (ROWS,Tc), (2,Tc) */
    float *dkt = keep + 2 * h.Tc, *dvt = dkt + h.Wc * h.Tc;       /* (Wc,Tc) */
    float *dq = dvt + h.Wc * h.Tc;                                /* (most,Wc) */
    turn_rows(kt, spare, x->data, h.in + h.all, h.in_row, &h);
    turn_rows(vt, spare, x->data, h.in + 2 * h.all, h.in_row, &h);
    turn_woven(qt, spare, x->data, h.in, h.in_row, &h);
    turn_woven(gt, spare, y->grad, h.out, h.all, &h);
    weave_rows(kw, x->data, h.in + h.all, h.in_row, &h);
    load_rows(q, x->data, h.in, h.in_row, &h);
    load_rows(g, y->grad, h.out, h.all, &h);
    bool whole = most >= h.T; /* all queries at once: nothing to add to */
    if (!whole) memset(dkt, 0, 2 * h.Wc * h.Tc * sizeof *dkt);
    variant->begin();
    for (size_t i0 = 0; i0 < h.T; i0 += most) {
        size_t n = min_size(most, h.T - i0), rows = round_up(n, variant->rows);
        size_t seen = whole ? h.T : visible(r, h.T, i0 + n - 1),
               cols = round_up(seen, variant->cols);
        size_t queries = round_up((n + 1) / 2, variant->pairs); /* pairs of them */
        size_t keys = round_up((seen + 1) / 2, variant->pairs);
        for (size_t i1 = 0; i1 < n; i1 += block) {
            size_t some = min_size(block, n - i1), high_rows = round_up(some, variant->rows);
            const uint32_t *left = q + (i0 + i1) * words, *gradient = g + (i0 + i1) * words;
            variant->multiply(s, h.Tc, left, words, kt, h.Tc, high_rows, cols, words, false);
            variant->multiply(dp, h.Tc, gradient, words, vt, h.Tc, high_rows, cols, words, false);
            for (size_t i = 0; i < some; i += 2) {
                size_t at = i1 + i, token = i0 + at;
                size_t next = token + 1 < h.T ? i + 1 : i; /* its scores are computed */
                fetch_tokens(r, &after, token, 2);
                score_row low = row_of(r, &h, token, s + i * h.Tc, dp + i * h.Tc, keep, cols);
                score_row high =
                    row_of(r, &h, token + 1, s + next * h.Tc, dp + next * h.Tc, keep + h.Tc, cols);
                weave_scores(p + at / 2 * h.Tc, dsw + at / 2 * h.Tc, (uint16_t *)(dsn + at * pw),
                             (uint16_t *)(dsn + (at + 1) * pw), &low, &high, cols);
            }
        }
        size_t done = (n + 1) / 2;
        memset(p + done * h.Tc, 0, (queries - done) * h.Tc * 4);
        memset(dsw + done * h.Tc, 0, (queries - done) * h.Tc * 4);
        variant->multiply(dvt, h.Tc, gt + i0 / 2, pw, p, h.Tc, h.Wc, cols, queries, !whole);
        variant->multiply(dkt, h.Tc, qt + i0 / 2, pw, dsw, h.Tc, h.Wc, cols, queries, !whole);
        variant->multiply(dq, h.Wc, dsn, pw, kw, h.Wc, rows, h.Wc, keys, false);
        give_rows(r, &h, h.in + i0 * h.in_row, dq, n, h.scale);
    }
    variant->end();
    float *rows = (float *)spare; /* (Tc,Wc), over spare and q */
    CGS_FN(turn)((uint32_t *)rows, h.Wc, (const uint32_t *)dkt, h.Tc, h.Wc, h.Tc);
    give_rows(r, &h, h.in + h.all, rows, h.T, h.scale);
    CGS_FN(turn)((uint32_t *)rows, h.Wc, (const uint32_t *)dvt, h.Tc, h.Wc, h.Tc);
    give_rows(r, &h, h.in + 2 * h.all, rows, h.T, 1.0f);
}

#else

/* never called */
size_t CGS_FN(attention_pairs_scratch)(const cgs_record *r) {
    (void)r;
    return 0;
}
void CGS_FN(attention_pairs_forward)(cgs_device *d, const cgs_record *r,
                                     const pairs_variant *variant, size_t b, size_t hd) {
    (void)d, (void)r, (void)variant, (void)b, (void)hd;
}
void CGS_FN(attention_pairs_backward)(cgs_device *d, const cgs_record *r,
                                      const pairs_variant *variant, size_t b, size_t hd) {
    (void)d, (void)r, (void)variant, (void)b, (void)hd;
}

#endif

/* attention_bf16.c - attention over many bf16 tokens with AVX512_BF16.
 *
 * The instruction multiplies pairs of bf16 along the summed axis and adds both products
 * to an f32 sum: twice the rate of f32.  A pair is one 32-bit word here.  A left factor
 * has its pairs next to each other (rows as they are in memory, or two rows woven
 * together when the sum runs over rows); a right factor has for each pair a row of
 * words.  Order and blocks are those of attention.c; probabilities and score gradients
 * are rounded to bf16 before they are multiplied. */
#include "ops/cpu/simd/attention.h"

#if defined __AVX512F__

#include <immintrin.h>

/* c (TILE_M, TILE_N) = or += sum over K pairs of a[i*row + k*col] b[k*ldb + j] */
__attribute__((target("avx512bf16"))) static void tile_pairs(float *c, size_t ldc,
                                                             const uint32_t *a, size_t row,
                                                             size_t col, const uint32_t *b,
                                                             size_t ldb, size_t K, bool add) {
    __m512 s[TILE_M][2];
#pragma GCC unroll 16
    for (int i = 0; i < TILE_M; i++) {
        s[i][0] = add ? _mm512_loadu_ps(c + (size_t)i * ldc) : _mm512_setzero_ps();
        s[i][1] = add ? _mm512_loadu_ps(c + (size_t)i * ldc + VECTOR) : _mm512_setzero_ps();
    }
    for (size_t k = 0; k < K; k++, a += col, b += ldb) {
        __m512bh b0 = (__m512bh)_mm512_loadu_si512(b);
        __m512bh b1 = (__m512bh)_mm512_loadu_si512(b + VECTOR);
#pragma GCC unroll 16
        for (int i = 0; i < TILE_M; i++) {
            __m512bh x = (__m512bh)_mm512_set1_epi32((int)a[(size_t)i * row]);
            s[i][0] = _mm512_dpbf16_ps(s[i][0], x, b0);
            s[i][1] = _mm512_dpbf16_ps(s[i][1], x, b1);
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < TILE_M; i++) {
        _mm512_storeu_ps(c + (size_t)i * ldc, s[i][0]);
        _mm512_storeu_ps(c + (size_t)i * ldc + VECTOR, s[i][1]);
    }
}

static void tiles_pairs(float *c, size_t ldc, const uint32_t *a, size_t row, size_t col,
                        const uint32_t *b, size_t ldb, size_t M, size_t N, size_t K, bool add) {
    for (size_t j = 0; j < N; j += TILE_N)
        for (size_t i = 0; i < M; i += TILE_M)
            tile_pairs(c + i * ldc + j, ldc, a + i * row, row, col, b + j, ldb, K, add);
}

bool CGS_FN(attention_has_pairs)(void) { return __builtin_cpu_supports("avx512bf16"); }

/* words in a row of W elements, and pairs of T rows */
static size_t half(size_t n) { return (n + 1) / 2; }

size_t CGS_FN(attention_pairs_scratch)(const cgs_record *r) {
    head h = head_of(r, 0, 0);
    size_t natural = h.Tr * half(h.W), woven = half(h.Tr) * h.Wc, turned = half(h.W) * h.Tc;
    size_t f32 = 2 * h.Tr * h.Wc + QUERIES * (2 * h.Tc + h.Wc);
    size_t words = 3 * natural + 3 * woven + 2 * turned + 3 * QUERIES * h.Tc + 4 * TILE_N;
    return (f32 + words) * 4;
}

/* to (rows, words of W): rows of W elements as they are, zeros behind them */
static void load_rows(uint32_t *to, size_t rows, const void *p, size_t at, size_t row,
                      const head *h) {
    size_t words = half(h->W);
    for (size_t t = 0; t < rows; t++, to += words) {
        to[words - 1] = 0;
        if (t < h->T)
            memcpy(to, (const uint16_t *)p + at + t * row, h->W * 2);
        else
            memset(to, 0, words * 4);
    }
}

/* to (pairs of rows, Wc): rows 2t and 2t+1 woven together, zeros around them */
static void weave_rows(uint32_t *to, size_t rows, const void *p, size_t at, size_t row,
                       const head *h) {
    for (size_t t = 0; t < rows; t += 2, to += h->Wc) {
        const uint16_t *low = (const uint16_t *)p + at + t * row, *high = low + row;
        size_t n = t < h->T ? h->W : 0;
        if (t + 1 < h->T) {
#pragma omp simd
            for (size_t i = 0; i < n; i++) to[i] = low[i] | (uint32_t)high[i] << 16;
        } else {
            for (size_t i = 0; i < n; i++) to[i] = low[i];
        }
        for (size_t i = n; i < h->Wc; i++) to[i] = 0;
    }
}

/* to (words of W, Tc): the transpose of what load_rows gave */
static void turn_rows(uint32_t *to, const uint32_t *from, const head *h) {
    size_t words = half(h->W);
    for (size_t t0 = 0; t0 < h->Tc; t0 += 16)
        for (size_t w = 0; w < words; w++)
            for (size_t t = t0; t < t0 + 16; t++)
                to[w * h->Tc + t] = t < h->Tr ? from[t * words + w] : 0;
}

/* round to nearest even; these numbers are never the NaNs that would overflow */
static inline uint32_t rounded(float f) {
    uint32_t u = to_bits(f);
    return u + 0x7fffu + (u >> 16 & 1);
}
static void narrow_row(uint16_t *to, const float *from, size_t n) {
#pragma omp simd
    for (size_t i = 0; i < n; i++) to[i] = (uint16_t)(rounded(from[i]) >> 16);
}
static void weave(uint32_t *to, const float *low, const float *high, size_t n) {
#pragma omp simd
    for (size_t i = 0; i < n; i++) to[i] = rounded(low[i]) >> 16 | (rounded(high[i]) & 0xffff0000u);
}

/* p = exp(scale (s - max)) as bf16, 0 from n to end; returns the sum before rounding and
 * leaves scale * max.  s keeps the values in f32 where dropout still has to act on them. */
static float softmax_pairs(uint16_t *p, float *s, size_t n, size_t end, float scale, float *top) {
    float shift = scale * row_max(s, n), sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t j = 0; j < n; j++) {
        float e = fast_exp_below_88(scale * s[j] - shift);
        s[j] = e;
        p[j] = (uint16_t)(rounded(e) >> 16);
        sum += e;
    }
    for (size_t j = n; j < end; j++) p[j] = 0;
    *top = shift;
    return sum;
}

void CGS_FN(attention_pairs_forward)(cgs_device *d, const cgs_record *r, size_t b, size_t hd) {
    const cgs_tensor *x = r->in[0], *y = r->out;
    head h = head_of(r, b, hd);
    size_t words = half(h.W), pw = h.Tc / 2;
    float *lse = (float *)r->saved[0]->data + h.index;
    uint32_t *q = (uint32_t *)thread_scratch(d); /* (Tr,words) */
    uint32_t *k = q + h.Tr * words;              /* (Tr,words) */
    uint32_t *kt = k + h.Tr * words;             /* (words,Tc) */
    uint32_t *v = kt + words * h.Tc;             /* (Tr/2,Wc)  */
    uint32_t *p = v + half(h.Tr) * h.Wc;         /* (QUERIES,Tc/2) */
    float *s = (float *)(p + QUERIES * pw);      /* (QUERIES,Tc) */
    float *o = s + QUERIES * h.Tc;               /* (QUERIES,Wc) */
    load_rows(q, h.Tr, x->data, h.in, h.in_row, &h);
    load_rows(k, h.Tr, x->data, h.in + h.all, h.in_row, &h);
    turn_rows(kt, k, &h);
    weave_rows(v, h.Tr, x->data, h.in + 2 * h.all, h.in_row, &h);
    for (size_t i0 = 0; i0 < h.T; i0 += QUERIES) {
        size_t n = min_size(QUERIES, h.T - i0), rows = round_up(n, TILE_M);
        size_t seen = visible(r, h.T, i0 + n - 1), even = round_up(seen, 2);
        tiles_pairs(s, h.Tc, q + i0 * words, words, 1, kt, h.Tc, rows, round_up(seen, TILE_N),
                    words, false);
        float inverse[QUERIES];
        for (size_t i = 0; i < n; i++) {
            float top, *row = s + i * h.Tc;
            size_t mine = visible(r, h.T, i0 + i);
            uint16_t *narrow_p = (uint16_t *)(p + i * pw);
            float sum = softmax_pairs(narrow_p, row, mine, even, h.scale, &top);
            lse[i0 + i] = top + fast_log(sum);
            inverse[i] = 1.0f / sum;
            if (r->arg.attention.dropout > 0) {
                drop_row(r, &h, i0 + i, row, mine);
                narrow_row(narrow_p, row, mine);
            }
        }
        tiles_pairs(o, h.Wc, p, pw, 1, v, h.Wc, rows, h.Wc, even / 2, false);
        for (size_t i = 0; i < n; i++) {
            float *row = o + i * h.Wc;
#pragma omp simd
            for (size_t c = 0; c < h.W; c++) row[c] *= inverse[i];
            row_done(y->data, y->dtype, h.out + (i0 + i) * h.all, h.W, row);
        }
    }
}

/* row i of the scores becomes P, that of dP meets dropout; both end with zeros.  Returns
 * the sum of P dP. */
static float score_back(const cgs_record *r, const head *h, size_t i, float *p, float *dp,
                        float lse, size_t end) {
    size_t mine = visible(r, h->T, i);
    float sum = 0, scale = h->scale;
    if (r->arg.attention.dropout > 0) drop_row(r, h, i, dp, mine);
#pragma omp simd reduction(+ : sum)
    for (size_t j = 0; j < mine; j++) {
        p[j] = fast_exp_below_88(scale * p[j] - lse);
        sum += p[j] * dp[j];
    }
    for (size_t j = mine; j < end; j++) p[j] = dp[j] = 0;
    return sum;
}

/* where P M and dS of two rows go: woven together, and dS also as it is */
typedef struct score_rows {
    uint32_t *p, *ds;
    uint16_t *low, *high;
} score_rows;

/* dS = P (dP - sum) of two rows */
static void weave_scores(score_rows to, const float *p0, const float *dp0, float sum0,
                         const float *p1, const float *dp1, float sum1, size_t n) {
#pragma omp simd
    for (size_t j = 0; j < n; j++) {
        uint32_t low = rounded(p0[j] * (dp0[j] - sum0)) >> 16;
        uint32_t high = rounded(p1[j] * (dp1[j] - sum1)) & 0xffff0000u;
        to.p[j] = rounded(p0[j]) >> 16 | (rounded(p1[j]) & 0xffff0000u);
        to.ds[j] = low | high;
        to.low[j] = (uint16_t)low;
        to.high[j] = (uint16_t)(high >> 16);
    }
}

static void give_scaled(const cgs_record *r, size_t at, float *row, size_t n, float scale) {
#pragma omp simd
    for (size_t i = 0; i < n; i++) row[i] *= scale;
    give_done(r, 0, at, n, row);
}

void CGS_FN(attention_pairs_backward)(cgs_device *d, const cgs_record *r, size_t b, size_t hd) {
    const cgs_tensor *x = r->in[0], *y = r->out;
    head h = head_of(r, b, hd);
    size_t words = half(h.W), pw = h.Tc / 2, tall = h.Tr * h.Wc;
    size_t natural = h.Tr * words, woven = half(h.Tr) * h.Wc, turned = words * h.Tc;
    const float *lse = (const float *)r->saved[0]->data + h.index;
    uint32_t *q = (uint32_t *)thread_scratch(d), *g = q + natural;  /* (Tr,words): q, dout */
    uint32_t *t = g + natural;                                      /* (Tr,words): to be turned */
    uint32_t *qw = t + natural, *gw = qw + woven, *kw = gw + woven; /* (Tr/2,Wc) */
    uint32_t *kt = kw + woven, *vt = kt + turned;                   /* (words,Tc) */
    uint32_t *pi = vt + turned;                        /* (QUERIES/2,Tc): P M, rows woven */
    uint32_t *dsi = pi + QUERIES / 2 * h.Tc + TILE_N;  /* (QUERIES/2,Tc): dS, rows woven */
    uint32_t *dsn = dsi + QUERIES / 2 * h.Tc + TILE_N; /* (QUERIES,Tc/2): dS */
    float *s = (float *)(dsn + QUERIES * pw + TILE_N), *ds = s + QUERIES * h.Tc;
    float *dk = ds + QUERIES * h.Tc, *dv = dk + tall, *dq = dv + tall; /* (Tr,Wc), (QUERIES,Wc) */
    load_rows(t, h.Tr, x->data, h.in + h.all, h.in_row, &h);
    turn_rows(kt, t, &h);
    load_rows(t, h.Tr, x->data, h.in + 2 * h.all, h.in_row, &h);
    turn_rows(vt, t, &h);
    load_rows(q, h.Tr, x->data, h.in, h.in_row, &h);
    load_rows(g, h.Tr, y->grad, h.out, h.all, &h);
    weave_rows(qw, h.Tr, x->data, h.in, h.in_row, &h);
    weave_rows(kw, h.Tr, x->data, h.in + h.all, h.in_row, &h);
    weave_rows(gw, h.Tr, y->grad, h.out, h.all, &h);
    memset(dk, 0, 2 * tall * sizeof *dk);
    for (size_t i0 = 0; i0 < h.T; i0 += QUERIES) {
        size_t n = min_size(QUERIES, h.T - i0), rows = round_up(n, TILE_M);
        size_t seen = visible(r, h.T, i0 + n - 1), even = round_up(seen, 2);
        size_t cols = round_up(seen, TILE_N), keys = round_up(seen, TILE_M);
        size_t end = keys > even ? min_size(keys, h.Tc) : even; /* what the products read */
        tiles_pairs(s, h.Tc, q + i0 * words, words, 1, kt, h.Tc, rows, cols, words, false);
        tiles_pairs(ds, h.Tc, g + i0 * words, words, 1, vt, h.Tc, rows, cols, words, false);
        for (size_t i = 0; i < n; i += 2) {
            float *p0 = s + i * h.Tc, *dp0 = ds + i * h.Tc, *p1 = p0 + h.Tc, *dp1 = dp0 + h.Tc;
            float sum0 = score_back(r, &h, i0 + i, p0, dp0, lse[i0 + i], end), sum1 = 0;
            if (i + 1 < n) {
                sum1 = score_back(r, &h, i0 + i + 1, p1, dp1, lse[i0 + i + 1], end);
            } else {
                memset(p1, 0, end * sizeof *p1);
                memset(dp1, 0, end * sizeof *dp1);
            }
            score_rows to = {pi + i / 2 * h.Tc, dsi + i / 2 * h.Tc, (uint16_t *)(dsn + i * pw),
                             (uint16_t *)(dsn + (i + 1) * pw)};
            weave_scores(to, p0, dp0, sum0, p1, dp1, sum1, end);
            if (r->arg.attention.dropout > 0) {
                drop_row(r, &h, i0 + i, p0, visible(r, h.T, i0 + i));
                if (i + 1 < n) drop_row(r, &h, i0 + i + 1, p1, visible(r, h.T, i0 + i + 1));
                weave(to.p, p0, p1, end);
            }
        }
        size_t pairs = half(n);
        tiles_pairs(dv, h.Wc, pi, 1, h.Tc, gw + i0 / 2 * h.Wc, h.Wc, keys, h.Wc, pairs, true);
        tiles_pairs(dk, h.Wc, dsi, 1, h.Tc, qw + i0 / 2 * h.Wc, h.Wc, keys, h.Wc, pairs, true);
        tiles_pairs(dq, h.Wc, dsn, pw, 1, kw, h.Wc, rows, h.Wc, even / 2, false);
        for (size_t i = 0; i < n; i++)
            give_scaled(r, h.in + (i0 + i) * h.in_row, dq + i * h.Wc, h.W, h.scale);
    }
    for (size_t j = 0; j < h.T; j++) {
        give_scaled(r, h.in + h.all + j * h.in_row, dk + j * h.Wc, h.W, h.scale);
        give_done(r, 0, h.in + 2 * h.all + j * h.in_row, h.W, dv + j * h.Wc);
    }
}

#else

/* never called */
bool CGS_FN(attention_has_pairs)(void) { return false; }
size_t CGS_FN(attention_pairs_scratch)(const cgs_record *r) {
    (void)r;
    return 0;
}
void CGS_FN(attention_pairs_forward)(cgs_device *d, const cgs_record *r, size_t b, size_t hd) {
    (void)d, (void)r, (void)b, (void)hd;
}
void CGS_FN(attention_pairs_backward)(cgs_device *d, const cgs_record *r, size_t b, size_t hd) {
    (void)d, (void)r, (void)b, (void)hd;
}

#endif

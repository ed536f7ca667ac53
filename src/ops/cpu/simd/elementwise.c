/* elementwise.c - add, activation and dropout: one result per element. */
#include "ops/cpu/simd/linear_pairs.h"
#include "ops/cpu/simd/vectors.h"

/* ---- add: x + y ---------------------------------------------------------------------- */

void CGS_FN(add_forward)(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *y = r->in[1], *out = r->out;
    size_t n = cgs_numel(out);
    SHARE_CHUNKS (at, n) {
        float xb[CHUNK], yb[CHUNK], ob[CHUNK];
        size_t len = min_size(CHUNK, n - at);
        const float *px = data_in(x, at, len, xb), *py = data_in(y, at, len, yb);
        float *po = row_to(out->data, out->dtype, at, ob);
#pragma omp simd
        for (size_t i = 0; i < len; i++) po[i] = px[i] + py[i];
        row_done(out->data, out->dtype, at, len, po);
    }
}

void CGS_FN(add_backward)(cgs_device *d, const cgs_record *r) {
    size_t n = cgs_numel(r->out);
    for (int k = 0; k < 2; k++) {
        /* the tape may share the gradient of a sum with its first term */
        if (!cgs_wants(r, k) || r->in[k]->grad == r->out->grad) continue;
        SHARE_CHUNKS (at, n) {
            float gb[CHUNK];
            size_t len = min_size(CHUNK, n - at);
            give_done(r, k, at, len, grad_in(r, at, len, gb));
        }
        cgs_meet(); /* both may be the same tensor */
    }
}

/* ---- activation ------------------------------------------------------------------------ */

static void activate(cgs_activation kind, float *y, const float *x, size_t n) {
    float unused;
    switch (kind) {
    case CGS_GELU:
#pragma omp simd private(unused)
        for (size_t i = 0; i < n; i++) y[i] = x[i] * normal_cdf(x[i], &unused);
        break;
    case CGS_SILU:
#pragma omp simd
        for (size_t i = 0; i < n; i++) y[i] = x[i] * sigmoid(x[i]);
        break;
    case CGS_RELU:
#pragma omp simd
        for (size_t i = 0; i < n; i++) y[i] = x[i] > 0 ? x[i] : 0;
        break;
    }
}

/* dx = dy y'(x) */
static void activate_back(cgs_activation kind, float *dx, const float *dy, const float *x,
                          size_t n) {
    float density;
    switch (kind) {
    case CGS_GELU:
#pragma omp simd private(density)
        for (size_t i = 0; i < n; i++) {
            float cdf = normal_cdf(x[i], &density);
            dx[i] = dy[i] * (cdf + x[i] * density);
        }
        break;
    case CGS_SILU:
#pragma omp simd
        for (size_t i = 0; i < n; i++) {
            float s = sigmoid(x[i]);
            dx[i] = dy[i] * s * (1.0f + x[i] * (1.0f - s));
        }
        break;
    case CGS_RELU:
#pragma omp simd
        for (size_t i = 0; i < n; i++) dx[i] = x[i] > 0 ? dy[i] : 0;
        break;
    }
}

#if defined __AVX512F__
static inline __m512 widened(__m256i x) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}

/* GELU that is rounded to bf16, of 16 numbers in f32 or bf16, or those of the mask.  whole: all of
 * them, a constant, for masks of memory take time. */
__attribute__((target("avx512bf16"), always_inline)) static inline void
gelu_16(uint16_t *to, const cgs_tensor *x, size_t at, bool whole, __mmask16 mask) {
    const float *wide = (const float *)x->data + at;
    const uint16_t *half = (const uint16_t *)x->data + at;
    __m512 v;
    if (x->dtype == CGS_F32)
        v = whole ? _mm512_loadu_ps(wide) : _mm512_maskz_loadu_ps(mask, wide);
    else
        v = widened(whole ? _mm256_loadu_si256((const __m256i *)half)
                          : _mm256_maskz_loadu_epi16(mask, half));
    __m256i y = (__m256i)_mm512_cvtneps_pbh(gelu_vector(v));
    if (whole)
        _mm256_storeu_si256((__m256i *)to, y);
    else
        _mm256_mask_storeu_epi16(to, mask, y);
}

/* ... of 16 numbers in bf16, which its slope replaces */
__attribute__((target("avx512bf16"), always_inline)) static inline void
gelu_16_leaving_slope(uint16_t *to, uint16_t *x, bool whole, __mmask16 mask) {
    __m512 slope, v = widened(whole ? _mm256_loadu_si256((const __m256i *)x)
                                    : _mm256_maskz_loadu_epi16(mask, x));
    v = gelu_and_slope(v, 1 / CGS_SLOPE_STEP, 0.5f - CGS_SLOPE_LEAST / CGS_SLOPE_STEP, &slope);
    __m256i y = (__m256i)_mm512_cvtneps_pbh(v);
    __m256i steps = _mm512_cvtepi32_epi16(_mm512_cvttps_epi32(slope));
    if (whole) {
        _mm256_storeu_si256((__m256i *)to, y);
        _mm256_storeu_si256((__m256i *)x, steps);
    } else {
        _mm256_mask_storeu_epi16(to, mask, y);
        _mm256_mask_storeu_epi16(x, mask, steps);
    }
}

static inline __mmask16 first_of(size_t n) { return (__mmask16)((1u << n) - 1); } /* n < 16 */

__attribute__((target("avx512bf16"))) static void gelu_to_bf16(uint16_t *to, const cgs_tensor *x,
                                                               size_t at, size_t n) {
    size_t i = 0;
    for (; i + 16 <= n; i += 16) gelu_16(to + i, x, at + i, true, 0);
    if (i < n) gelu_16(to + i, x, at + i, false, first_of(n - i));
}

__attribute__((target("avx512bf16"))) static void gelu_leaving_slope(uint16_t *to, uint16_t *x,
                                                                     size_t n) {
    size_t i = 0;
    for (; i + 16 <= n; i += 16) gelu_16_leaving_slope(to + i, x + i, true, 0);
    if (i < n) gelu_16_leaving_slope(to + i, x + i, false, first_of(n - i));
}
#endif

/* whether there are vectors for it: where backward is the next layer's, which has pairs of bf16,
 * and where results are rounded and have no gradient, which would be as exact as they are */
static bool activate_vectors(const cgs_record *r, size_t at, size_t n) {
#if defined __AVX512F__
    uint16_t *to = (uint16_t *)r->out->data + at;
    if (r->next) {
        gelu_leaving_slope(to, (uint16_t *)r->in[0]->data + at, n);
        return true;
    }
    bool gelu = r->arg.activation.kind == CGS_GELU && r->out->dtype == CGS_BF16;
    if (!gelu || r->out->wants_grad || !cgs_cpu_ask()->bf16) return false;
    gelu_to_bf16(to, r->in[0], at, n);
    return true;
#else
    (void)r, (void)at, (void)n;
    return false;
#endif
}

void CGS_FN(activation_forward)(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *out = r->out;
    size_t n = cgs_numel(out);
    SHARE_CHUNKS (at, n) {
        float xb[CHUNK], ob[CHUNK];
        size_t len = min_size(CHUNK, n - at);
        if (activate_vectors(r, at, len)) continue;
        float *po = row_to(out->data, out->dtype, at, ob);
        activate(r->arg.activation.kind, po, data_in(x, at, len, xb), len);
        row_done(out->data, out->dtype, at, len, po);
    }
}

void CGS_FN(activation_backward)(cgs_device *d, const cgs_record *r) {
    if (!cgs_wants(r, 0) || r->next) return; /* the next layer does it */
    size_t n = cgs_numel(r->out);
    SHARE_CHUNKS (at, n) {
        float xb[CHUNK], gb[CHUNK], ob[CHUNK];
        size_t len = min_size(CHUNK, n - at);
        float *po = give_to(r, 0, at, ob);
        activate_back(r->arg.activation.kind, po, grad_in(r, at, len, gb),
                      data_in(r->in[0], at, len, xb), len);
        give_done(r, 0, at, len, po);
    }
}

/* ---- dropout ----------------------------------------------------------------------------- */

/* y = x where the draw for the element keeps it, scaled; both directions are this */
static void drop(float *y, const float *x, size_t n, uint64_t key, size_t at, float p) {
    float scale = 1.0f / (1.0f - p);
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        float keep = cgs_to_f32(cgs_rng_at(key, at + i)) >= p ? scale : 0.0f;
        y[i] = x[i] * keep;
    }
}

void CGS_FN(dropout_forward)(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *out = r->out;
    uint64_t key = CGS_DROPOUT_KEY(r->arg.dropout.key, *r->step);
    size_t n = cgs_numel(out);
    SHARE_CHUNKS (at, n) {
        float xb[CHUNK], ob[CHUNK];
        size_t len = min_size(CHUNK, n - at);
        float *po = row_to(out->data, out->dtype, at, ob);
        drop(po, data_in(x, at, len, xb), len, key, at, r->arg.dropout.p);
        row_done(out->data, out->dtype, at, len, po);
    }
}

void CGS_FN(dropout_backward)(cgs_device *d, const cgs_record *r) {
    if (!cgs_wants(r, 0)) return;
    uint64_t key = CGS_DROPOUT_KEY(r->arg.dropout.key, *r->step);
    size_t n = cgs_numel(r->out);
    SHARE_CHUNKS (at, n) {
        float gb[CHUNK], ob[CHUNK];
        size_t len = min_size(CHUNK, n - at);
        float *po = give_to(r, 0, at, ob);
        drop(po, grad_in(r, at, len, gb), len, key, at, r->arg.dropout.p);
        give_done(r, 0, at, len, po);
    }
}

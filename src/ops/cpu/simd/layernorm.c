/* layernorm.c - normalisation of rows; statistics in f32, two passes. */
#include "ops/cpu/simd/simd.h"

static float row_sum(const float *x, size_t n) {
    float s = 0;
#pragma omp simd reduction(+ : s)
    for (size_t i = 0; i < n; i++) s += x[i];
    return s;
}

static float row_variance(const float *x, size_t n, float mean) {
    float s = 0;
#pragma omp simd reduction(+ : s)
    for (size_t i = 0; i < n; i++) s += (x[i] - mean) * (x[i] - mean);
    return s / (float)n;
}

#if defined __AVX512F__

/* Rows in f32 by vectors, GROUP at a time: the steps of one row wait for each other, those of
 * several do not.  A row's sums have one order wherever it is in its group. */
enum { GROUP = 4 };

typedef struct rows {
    const float *x[GROUP];
    __m512 mean[GROUP], rstd[GROUP];
} rows;

static inline __mmask16 mask_of(size_t left) {
    return left < 16 ? (__mmask16)((1u << left) - 1) : (__mmask16)0xffff;
}

static inline void row_statistics(rows *g, size_t D, float eps, float *means, float *rstds) {
    __m512 sum[GROUP];
    for (int k = 0; k < GROUP; k++) sum[k] = _mm512_setzero_ps();
    for (size_t i = 0; i < D; i += 16)
        for (int k = 0; k < GROUP; k++)
            sum[k] = _mm512_add_ps(sum[k], _mm512_maskz_loadu_ps(mask_of(D - i), g->x[k] + i));
    for (int k = 0; k < GROUP; k++) means[k] = _mm512_reduce_add_ps(sum[k]) / (float)D;
    for (int k = 0; k < GROUP; k++) {
        g->mean[k] = _mm512_set1_ps(means[k]);
        sum[k] = _mm512_setzero_ps();
    }
    for (size_t i = 0; i < D; i += 16)
        for (int k = 0; k < GROUP; k++) {
            __mmask16 mask = mask_of(D - i);
            __m512 v = _mm512_maskz_loadu_ps(mask, g->x[k] + i);
            v = _mm512_maskz_sub_ps(mask, v, g->mean[k]);
            sum[k] = _mm512_fmadd_ps(v, v, sum[k]);
        }
    for (int k = 0; k < GROUP; k++)
        rstds[k] = 1.0f / sqrtf(_mm512_reduce_add_ps(sum[k]) / (float)D + eps);
    for (int k = 0; k < GROUP; k++) g->rstd[k] = _mm512_set1_ps(rstds[k]);
}

__attribute__((target("avx512bf16"))) static void layernorm_bf16(uint16_t *to, size_t i,
                                                                 __mmask16 mask, __m512 v) {
    _mm256_mask_storeu_epi16(to + i, mask, (__m256i)_mm512_cvtneps_pbh(v));
}

/* n rows from `first` on */
static void layernorm_rows(const cgs_record *r, size_t first, size_t n) {
    const cgs_tensor *out = r->out;
    const float *w = r->in[1] ? r->in[1]->data : NULL, *b = r->in[2] ? r->in[2]->data : NULL;
    size_t D = (size_t)cgs_cols(out);
    rows g;
    float means[GROUP], rstds[GROUP];
    for (size_t k = 0; k < GROUP; k++)
        g.x[k] = (const float *)r->in[0]->data + (first + min_size(k, n - 1)) * D;
    row_statistics(&g, D, r->arg.layernorm.eps, means, rstds);
    memcpy((float *)r->saved[0]->data + first, means, n * sizeof *means);
    memcpy((float *)r->saved[1]->data + first, rstds, n * sizeof *rstds);
    for (size_t i = 0; i < D; i += 16) {
        __mmask16 mask = mask_of(D - i);
        __m512 scale = w ? _mm512_maskz_loadu_ps(mask, w + i) : _mm512_set1_ps(1.0f);
        __m512 shift = b ? _mm512_maskz_loadu_ps(mask, b + i) : _mm512_setzero_ps();
        for (size_t k = 0; k < n; k++) {
            __m512 v = _mm512_sub_ps(_mm512_maskz_loadu_ps(mask, g.x[k] + i), g.mean[k]);
            v = _mm512_mul_ps(v, g.rstd[k]);
            if (w || b) v = _mm512_fmadd_ps(v, scale, shift);
            if (out->dtype == CGS_F32)
                _mm512_mask_storeu_ps((float *)out->data + (first + k) * D + i, mask, v);
            else
                layernorm_bf16((uint16_t *)out->data + (first + k) * D, i, mask, v);
        }
    }
}

/* whether there are vectors for it; training keeps the order of sums that it had */
static bool layernorm_vectors(const cgs_record *r) {
    if (r->out->wants_grad) return false;
    if (r->in[0]->dtype != CGS_F32 || (r->out->dtype == CGS_BF16 && !cgs_cpu_ask()->bf16))
        return false;
    size_t n = cgs_rows(r->out);
    CGS_SHARE (group, (n + GROUP - 1) / GROUP)
        layernorm_rows(r, group * GROUP, min_size(GROUP, n - group * GROUP));
    return true;
}

#else
static bool layernorm_vectors(const cgs_record *r) { return (void)r, false; }
#endif

void CGS_FN(layernorm_forward)(cgs_device *d, const cgs_record *r) {
    if (layernorm_vectors(r)) return;
    const cgs_tensor *x = r->in[0], *out = r->out;
    const float *w = r->in[1] ? r->in[1]->data : NULL, *b = r->in[2] ? r->in[2]->data : NULL;
    float *means = r->saved[0]->data, *rstds = r->saved[1]->data; /* (n) */
    size_t n = cgs_rows(x), D = (size_t)cgs_cols(x);
    float eps = r->arg.layernorm.eps;
    CGS_SHARE (row, n) {
        float *buf = thread_scratch(d); /* 2 of (D) */
        const float *px = data_in(x, row * D, D, buf);
        float *po = row_to(out->data, out->dtype, row * D, buf + D);
        float mean = row_sum(px, D) / (float)D;
        float rstd = 1.0f / sqrtf(row_variance(px, D, mean) + eps);
        means[row] = mean;
        rstds[row] = rstd;
        if (w && b) {
#pragma omp simd
            for (size_t i = 0; i < D; i++) po[i] = (px[i] - mean) * rstd * w[i] + b[i];
        } else {
#pragma omp simd
            for (size_t i = 0; i < D; i++) po[i] = (px[i] - mean) * rstd;
            if (w)
                for (size_t i = 0; i < D; i++) po[i] *= w[i];
            if (b)
                for (size_t i = 0; i < D; i++) po[i] += b[i];
        }
        row_done(out->data, out->dtype, row * D, D, po);
    }
}

/* one row: dx, and its contribution to dw and db */
static void row_back(float *dx, float *dw, float *db, const float *dy, const float *x,
                     const float *w, float mean, float rstd, size_t D) {
    float sum = 0, dot = 0;
#pragma omp simd reduction(+ : sum, dot)
    for (size_t i = 0; i < D; i++) {
        float hat = (x[i] - mean) * rstd, g = dy[i] * w[i];
        dx[i] = g; /* kept, so that both passes see the same rounding */
        sum += g;
        dot += g * hat;
        dw[i] += dy[i] * hat;
        db[i] += dy[i];
    }
    sum /= (float)D;
    dot /= (float)D;
#pragma omp simd
    for (size_t i = 0; i < D; i++) {
        float hat = (x[i] - mean) * rstd;
        dx[i] = rstd * (dx[i] - sum - hat * dot);
    }
}

void CGS_FN(layernorm_backward)(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0];
    const float *means = r->saved[0]->data, *rstds = r->saved[1]->data;
    size_t n = cgs_rows(x), D = (size_t)cgs_cols(x), run = row_block(n);
    size_t parts = (n + run - 1) / run;
    float *part = (float *)cgs_cpu_of(d)->shared; /* dw, then db: (parts, D) each */
    CGS_SHARE (p, parts) {
        float *buf = thread_scratch(d), *ones = buf + 3 * D; /* 4 of (D) */
        const float *w = r->in[1] ? r->in[1]->data : ones;
        for (size_t i = 0; w == ones && i < D; i++) ones[i] = 1.0f;
        float *dw = part + p * D, *db = part + (parts + p) * D;
        memset(dw, 0, D * sizeof *dw);
        memset(db, 0, D * sizeof *db);
        for (size_t row = p * run; row < min_size(n, (p + 1) * run); row++) {
            const float *px = data_in(x, row * D, D, buf);
            const float *pg = grad_in(r, row * D, D, buf + D);
            float *po = cgs_wants(r, 0) ? give_to(r, 0, row * D, buf + 2 * D) : buf + 2 * D;
            row_back(po, dw, db, pg, px, w, means[row], rstds[row], D);
            if (cgs_wants(r, 0)) give_done(r, 0, row * D, D, po);
        }
    }
    cgs_meet();
    if (cgs_wants(r, 1)) give_sum(r, 1, part, parts, D);
    if (cgs_wants(r, 2)) give_sum(r, 2, part + parts * D, parts, D);
}

/* optim.c - AdamW, sums of squares and rounding, over the whole model at once. */
#include "ops/cpu/simd/simd.h"

/* partial sums, which the caller adds in order */
void CGS_FN(sum_squares)(const float *x, size_t n, double part[CGS_CPU_ROW_BLOCKS]) {
    size_t run = round_up((n + CGS_CPU_ROW_BLOCKS - 1) / CGS_CPU_ROW_BLOCKS, 64);
    CGS_SHARE (p, CGS_CPU_ROW_BLOCKS) {
        size_t end = min_size(n, (p + 1) * run);
        double s = 0;
#pragma omp simd reduction(+ : s)
        for (size_t i = p * run; i < end; i++) s += (double)x[i] * x[i];
        part[p] = s;
    }
}

void CGS_FN(round_bf16)(uint16_t *to, const float *from, size_t n) {
    SHARE_CHUNKS (at, n) narrow(to + at, from + at, min_size(CHUNK, n - at));
}

/* Decoupled decay, then a step along the bias-corrected moments:
 * m/c1 / (sqrt(v/c2) + eps) = m / c1 / (sqrt(v) / sqrt(c2) + eps) */
void CGS_FN(adamw)(const cgs_adamw *a, float *p, const float *g, float *m, float *v, uint16_t *bf16,
                   size_t n) {
    float b1 = a->beta1, b2 = a->beta2, a1 = (float)(1.0 - b1), a2 = (float)(1.0 - b2);
    float keep = (float)(1.0 - (double)a->lr * a->weight_decay), clip = a->clip_scale;
    float rate = (float)(a->lr / (1 - pow(b1, (double)a->step)));
    float root = (float)(1 / sqrt(1 - pow(b2, (double)a->step))), eps = a->eps;
    SHARE_CHUNKS (at, n) {
        size_t end = min_size(n, at + CHUNK);
#pragma omp simd
        for (size_t i = at; i < end; i++) {
            float gi = clip * g[i];
            float mi = b1 * m[i] + a1 * gi, vi = b2 * v[i] + a2 * (gi * gi);
            m[i] = mi;
            v[i] = vi;
            p[i] = p[i] * keep - rate * mi / (sqrtf(vi) * root + eps);
        }
        if (bf16) narrow(bf16 + at, p + at, end - at);
    }
}

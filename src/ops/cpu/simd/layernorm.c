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

void CGS_FN(layernorm_forward)(cgs_device *d, const cgs_record *r) {
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

/* batchnorm.c - normalisation of columns over the rows of a batch.
 *
 * A thread owns runs of columns, so sums over rows need no partial sums; they are in double. */
#include "ops/cpu/simd/simd.h"

enum { COLUMNS = 64 };

/* mean and biased variance of columns at .. at + n */
static void statistics(const cgs_tensor *x, size_t at, size_t n, float *mean, float *variance) {
    size_t rows = cgs_rows(x), C = (size_t)cgs_cols(x);
    double sum[COLUMNS] = {0}, square[COLUMNS] = {0};
    float buf[COLUMNS];
    for (size_t row = 0; row < rows; row++) {
        const float *px = data_in(x, row * C + at, n, buf);
#pragma omp simd
        for (size_t i = 0; i < n; i++) sum[i] += px[i];
    }
    for (size_t i = 0; i < n; i++) sum[i] /= (double)rows;
    for (size_t row = 0; row < rows; row++) {
        const float *px = data_in(x, row * C + at, n, buf);
#pragma omp simd
        for (size_t i = 0; i < n; i++) square[i] += (px[i] - sum[i]) * (px[i] - sum[i]);
    }
    for (size_t i = 0; i < n; i++) {
        mean[i] = (float)sum[i];
        variance[i] = (float)(square[i] / (double)rows);
    }
}

void CGS_FN(batchnorm_forward)(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *out = r->out;
    const float *w = r->in[1]->data, *b = r->in[2]->data;         /* (C) */
    float *run_mean = r->in[3]->data, *run_var = r->in[4]->data;  /* (C) */
    float *means = r->saved[0]->data, *rstds = r->saved[1]->data; /* (C) */
    size_t rows = cgs_rows(x), C = (size_t)cgs_cols(x);
    float eps = r->arg.batchnorm.eps, momentum = r->arg.batchnorm.momentum;
    CGS_SHARE (run, (C + COLUMNS - 1) / COLUMNS) {
        size_t at = run * COLUMNS, n = min_size(COLUMNS, C - at);
        float mean[COLUMNS], variance[COLUMNS], xb[COLUMNS], ob[COLUMNS];
        if (r->arg.batchnorm.training) {
            statistics(x, at, n, mean, variance);
            /* the running variance is that of the population: n / (n - 1) */
            float unbiased = rows > 1 ? (float)((double)rows / (double)(rows - 1)) : 1.0f;
            for (size_t i = 0; i < n; i++) {
                run_mean[at + i] += momentum * (mean[i] - run_mean[at + i]);
                run_var[at + i] += momentum * (variance[i] * unbiased - run_var[at + i]);
            }
        } else {
            memcpy(mean, run_mean + at, n * sizeof *mean);
            memcpy(variance, run_var + at, n * sizeof *variance);
        }
        for (size_t i = 0; i < n; i++) {
            means[at + i] = mean[i];
            rstds[at + i] = 1.0f / sqrtf(variance[i] + eps);
        }
        for (size_t row = 0; row < rows; row++) {
            const float *px = data_in(x, row * C + at, n, xb);
            float *po = row_to(out->data, out->dtype, row * C + at, ob);
#pragma omp simd
            for (size_t i = 0; i < n; i++)
                po[i] = (px[i] - means[at + i]) * rstds[at + i] * w[at + i] + b[at + i];
            row_done(out->data, out->dtype, row * C + at, n, po);
        }
    }
}

void CGS_FN(batchnorm_backward)(cgs_device *d, const cgs_record *r) {
    const cgs_tensor *x = r->in[0];
    const float *w = r->in[1]->data, *means = r->saved[0]->data, *rstds = r->saved[1]->data;
    size_t rows = cgs_rows(x), C = (size_t)cgs_cols(x);
    bool want_x = cgs_wants(r, 0), training = r->arg.batchnorm.training;
    CGS_SHARE (run, (C + COLUMNS - 1) / COLUMNS) {
        size_t at = run * COLUMNS, n = min_size(COLUMNS, C - at);
        double sum[COLUMNS] = {0}, dot[COLUMNS] = {0};
        float xb[COLUMNS], gb[COLUMNS], ob[COLUMNS];
        for (size_t row = 0; row < rows; row++) {
            const float *px = data_in(x, row * C + at, n, xb);
            const float *pg = grad_in(r, row * C + at, n, gb);
#pragma omp simd
            for (size_t i = 0; i < n; i++) {
                sum[i] += pg[i];
                dot[i] += pg[i] * ((px[i] - means[at + i]) * rstds[at + i]);
            }
        }
        float total[COLUMNS];
        if (cgs_wants(r, 1)) {
            for (size_t i = 0; i < n; i++) total[i] = (float)dot[i];
            give_done(r, 1, at, n, total);
        }
        if (cgs_wants(r, 2)) {
            for (size_t i = 0; i < n; i++) total[i] = (float)sum[i];
            give_done(r, 2, at, n, total);
        }
        if (!want_x) continue;
        /* fixed statistics do not depend on x */
        float mean_g[COLUMNS], mean_gh[COLUMNS];
        for (size_t i = 0; i < n; i++) {
            mean_g[i] = training ? (float)(sum[i] / (double)rows) : 0.0f;
            mean_gh[i] = training ? (float)(dot[i] / (double)rows) : 0.0f;
        }
        for (size_t row = 0; row < rows; row++) {
            const float *px = data_in(x, row * C + at, n, xb);
            const float *pg = grad_in(r, row * C + at, n, gb);
            float *po = give_to(r, 0, row * C + at, ob);
#pragma omp simd
            for (size_t i = 0; i < n; i++) {
                float hat = (px[i] - means[at + i]) * rstds[at + i];
                po[i] = w[at + i] * rstds[at + i] * (pg[i] - mean_g[i] - hat * mean_gh[i]);
            }
            give_done(r, 0, row * C + at, n, po);
        }
    }
}

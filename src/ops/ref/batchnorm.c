/* batchnorm.c - columns to mean 0 and variance 1, then w and b.
 *   x (n,C), w (C), b (C), running mean (C), running variance (C)
 *   saved: mean (C), 1/std (C), the ones that were used
 * Training uses the batch's mean and biased variance, and moves the running ones
 * towards the batch's mean and unbiased variance.  Evaluation uses the running
 * ones, which are constants for the gradient. */
#include "ops/ref/ref.h"

static void batch_statistics(const cgs_record *r, size_t c, double *mean, double *var) {
    size_t n = cgs_rows(r->in[0]), C = (size_t)cgs_cols(r->in[0]);
    double sum = 0, square = 0;
    for (size_t i = 0; i < n; i++) sum += get(r->in[0], i * C + c);
    *mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) {
        double v = get(r->in[0], i * C + c) - *mean;
        square += v * v;
    }
    *var = square / (double)n;
}

void cgs_ref_batchnorm_forward(const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *w = r->in[1], *b = r->in[2];
    cgs_tensor *running_mean = r->in[3], *running_var = r->in[4];
    size_t n = cgs_rows(x), C = (size_t)cgs_cols(x);
    for (size_t c = 0; c < C; c++) {
        double mean = get(running_mean, c), var = get(running_var, c);
        if (r->arg.batchnorm.training) {
            double m = r->arg.batchnorm.momentum, old_mean = mean, old_var = var;
            batch_statistics(r, c, &mean, &var);
            double unbiased = n > 1 ? var * (double)n / (double)(n - 1) : var;
            set(running_mean, c, (1 - m) * old_mean + m * mean);
            set(running_var, c, (1 - m) * old_var + m * unbiased);
        }
        double rstd = 1 / sqrt(var + r->arg.batchnorm.eps);
        set(r->saved[0], c, mean);
        set(r->saved[1], c, rstd);
        for (size_t i = 0; i < n; i++)
            set(r->out, i * C + c, (get(x, i * C + c) - mean) * rstd * get(w, c) + get(b, c));
    }
}

void cgs_ref_batchnorm_backward(const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *w = r->in[1];
    size_t n = cgs_rows(x), C = (size_t)cgs_cols(x);
    for (size_t c = 0; c < C; c++) {
        double mean = get(r->saved[0], c), rstd = get(r->saved[1], c), dw = 0, db = 0;
        for (size_t i = 0; i < n; i++) {
            dw += out_grad(r, i * C + c) * (get(x, i * C + c) - mean) * rstd;
            db += out_grad(r, i * C + c);
        }
        for (size_t i = 0; i < n && cgs_wants(r, 0); i++) {
            double g = out_grad(r, i * C + c), xhat = (get(x, i * C + c) - mean) * rstd;
            if (r->arg.batchnorm.training) g -= (db + xhat * dw) / (double)n;
            give(r, 0, i * C + c, rstd * get(w, c) * g);
        }
        if (cgs_wants(r, 1)) give(r, 1, c, dw);
        if (cgs_wants(r, 2)) give(r, 2, c, db);
    }
}

void cgs_ref_batchnorm_tangent(const cgs_record *r, cgs_lanes l) {
    const cgs_tensor *x = r->in[0];
    size_t n = cgs_rows(x), C = (size_t)cgs_cols(x);
    for (size_t c = 0; c < C; c++) {
        double at = get(r->saved[0], c), rstd = get(r->saved[1], c), by = rstd * get(r->in[1], c);
        double mean[CGS_LANES] = {0}, along[CGS_LANES] = {0}; /* of dx, and of dx xhat */
        for (size_t i = 0; i < n && r->arg.batchnorm.training; i++) {
            sum_tangent(mean, r, x, l, i * C + c, 1 / (double)n);
            sum_tangent(along, r, x, l, i * C + c, (get(x, i * C + c) - at) * rstd / (double)n);
        }
        for (size_t i = 0; i < n; i++) {
            double dy[CGS_LANES], xhat = (get(x, i * C + c) - at) * rstd;
            for (size_t p = 0; p < l.count; p++) dy[p] = -by * (mean[p] + xhat * along[p]);
            sum_tangent(dy, r, x, l, i * C + c, by);
            set_tangent(r, l, i * C + c, dy);
        }
    }
}

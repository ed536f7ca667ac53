/* layernorm.c - rows to mean 0 and variance 1 (biased), then w and b where given.
 *   x (n,D), w (D) or NULL, b (D) or NULL; saved: mean (n), 1/std (n) */
#include "ops/ref/ref.h"

void cgs_ref_layernorm_forward(const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *w = r->in[1], *b = r->in[2];
    size_t n = cgs_rows(x), D = (size_t)cgs_cols(x);
    for (size_t i = 0; i < n; i++) {
        double sum = 0, square = 0;
        for (size_t d = 0; d < D; d++) sum += get(x, i * D + d);
        double mean = sum / (double)D;
        for (size_t d = 0; d < D; d++) {
            double v = get(x, i * D + d) - mean;
            square += v * v;
        }
        double rstd = 1 / sqrt(square / (double)D + r->arg.layernorm.eps);
        set(r->saved[0], i, mean);
        set(r->saved[1], i, rstd);
        for (size_t d = 0; d < D; d++) {
            double v = (get(x, i * D + d) - mean) * rstd;
            if (w) v *= get(w, d);
            if (b) v += get(b, d);
            set(r->out, i * D + d, v);
        }
    }
}

/* the normalised x */
static double xhat(const cgs_record *r, size_t i, size_t d, size_t D) {
    return ((double)get(r->in[0], i * D + d) - get(r->saved[0], i)) * get(r->saved[1], i);
}

void cgs_ref_layernorm_backward(const cgs_record *r) {
    const cgs_tensor *x = r->in[0], *w = r->in[1];
    size_t n = cgs_rows(x), D = (size_t)cgs_cols(x);
    if (cgs_wants(r, 0))
        for (size_t i = 0; i < n; i++) {
            double mean_g = 0, mean_gx = 0; /* g = dy w */
            for (size_t d = 0; d < D; d++) {
                double g = out_grad(r, i * D + d) * (w ? (double)get(w, d) : 1);
                mean_g += g / (double)D;
                mean_gx += g * xhat(r, i, d, D) / (double)D;
            }
            for (size_t d = 0; d < D; d++) {
                double g = out_grad(r, i * D + d) * (w ? (double)get(w, d) : 1);
                give(r, 0, i * D + d,
                     get(r->saved[1], i) * (g - mean_g - xhat(r, i, d, D) * mean_gx));
            }
        }
    for (size_t d = 0; d < D && (cgs_wants(r, 1) || cgs_wants(r, 2)); d++) {
        double dw = 0, db = 0;
        for (size_t i = 0; i < n; i++) {
            dw += out_grad(r, i * D + d) * xhat(r, i, d, D);
            db += out_grad(r, i * D + d);
        }
        if (cgs_wants(r, 1)) give(r, 1, d, dw);
        if (cgs_wants(r, 2)) give(r, 2, d, db);
    }
}

void cgs_ref_layernorm_tangent(const cgs_record *r, cgs_lanes l) {
    const cgs_tensor *x = r->in[0], *w = r->in[1];
    size_t n = cgs_rows(x), D = (size_t)cgs_cols(x);
    for (size_t i = 0; i < n; i++) {
        double mean[CGS_LANES] = {0}, along[CGS_LANES] = {0}; /* of dx, and of dx xhat */
        for (size_t d = 0; d < D; d++) {
            sum_tangent(mean, r, x, l, i * D + d, 1 / (double)D);
            sum_tangent(along, r, x, l, i * D + d, xhat(r, i, d, D) / (double)D);
        }
        for (size_t d = 0; d < D; d++) {
            double by = get(r->saved[1], i) * (w ? (double)get(w, d) : 1), dy[CGS_LANES];
            for (size_t p = 0; p < l.count; p++)
                dy[p] = -by * (mean[p] + xhat(r, i, d, D) * along[p]);
            sum_tangent(dy, r, x, l, i * D + d, by);
            set_tangent(r, l, i * D + d, dy);
        }
    }
}

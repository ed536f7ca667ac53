/* mse.c - the mean of (a - b)^2 over all elements. */
#include "ops/ref/ref.h"

void cgs_ref_mse_forward(const cgs_record *r) {
    size_t n = cgs_numel(r->in[0]);
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double v = (double)get(r->in[0], i) - get(r->in[1], i);
        sum += v * v;
    }
    set(r->out, 0, sum / (double)n);
}

void cgs_ref_mse_backward(const cgs_record *r) {
    size_t n = cgs_numel(r->in[0]);
    for (int k = 0; k < 2; k++) {
        double factor = (k == 0 ? 2 : -2) * (double)out_grad(r, 0) / (double)n;
        for (size_t i = 0; i < n && cgs_wants(r, k); i++)
            give(r, k, i, factor * ((double)get(r->in[0], i) - get(r->in[1], i)));
    }
}

void cgs_ref_mse_tangent(const cgs_record *r, cgs_lanes l) {
    size_t n = cgs_numel(r->in[0]);
    double sum[CGS_LANES] = {0};
    for (size_t i = 0; i < n; i++) {
        double by = 2 * ((double)get(r->in[0], i) - get(r->in[1], i)) / (double)n;
        sum_tangent(sum, r, r->in[0], l, i, by);
        sum_tangent(sum, r, r->in[1], l, i, -by);
    }
    set_tangent(r, l, 0, sum);
}

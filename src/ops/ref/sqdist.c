/* sqdist.c - squared distances of K candidates to the goal of their episode.
 *   a (E*K,D), b (E,D) -> |a - b|^2 (E*K) */
#include "ops/ref/ref.h"

static double difference(const cgs_record *r, size_t row, size_t d, size_t D) {
    size_t e = row / (size_t)r->arg.sqdist.K;
    return (double)get(r->in[0], row * D + d) - get(r->in[1], e * D + d);
}

void cgs_ref_sqdist_forward(const cgs_record *r) {
    size_t D = (size_t)cgs_cols(r->in[0]), rows = cgs_rows(r->in[0]);
    for (size_t i = 0; i < rows; i++) {
        double sum = 0;
        for (size_t d = 0; d < D; d++) sum += difference(r, i, d, D) * difference(r, i, d, D);
        set(r->out, i, sum);
    }
}

void cgs_ref_sqdist_backward(const cgs_record *r) {
    size_t D = (size_t)cgs_cols(r->in[0]), rows = cgs_rows(r->in[0]);
    size_t K = (size_t)r->arg.sqdist.K;
    if (cgs_wants(r, 0))
        for (size_t i = 0; i < rows; i++)
            for (size_t d = 0; d < D; d++)
                give(r, 0, i * D + d, 2 * out_grad(r, i) * difference(r, i, d, D));
    if (cgs_wants(r, 1))
        for (size_t e = 0; e < rows / K; e++)
            for (size_t d = 0; d < D; d++) {
                double sum = 0;
                for (size_t i = e * K; i < (e + 1) * K; i++)
                    sum -= 2 * out_grad(r, i) * difference(r, i, d, D);
                give(r, 1, e * D + d, sum);
            }
}

void cgs_ref_sqdist_tangent(const cgs_record *r, cgs_lanes l) {
    size_t D = (size_t)cgs_cols(r->in[0]), K = (size_t)r->arg.sqdist.K;
    for (size_t i = 0; i < cgs_rows(r->in[0]); i++) {
        double sum[CGS_LANES] = {0};
        for (size_t d = 0; d < D; d++) {
            double by = 2 * difference(r, i, d, D);
            sum_tangent(sum, r, r->in[0], l, i * D + d, by);
            sum_tangent(sum, r, r->in[1], l, i / K * D + d, -by);
        }
        set_tangent(r, l, i, sum);
    }
}

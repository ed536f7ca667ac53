/* weighted_sum.c - w (n), scalars s_1 .. s_n -> sum w_i s_i: a loss of several terms.
 * The weights are settings and get no gradient. */
#include "ops/ref/ref.h"

void cgs_ref_weighted_sum_forward(const cgs_record *r) {
    double sum = 0;
    for (int i = 0; i < r->arg.weighted_sum.terms; i++)
        sum += (double)get(r->in[0], (size_t)i) * get(r->in[i + 1], 0);
    set(r->out, 0, sum);
}

void cgs_ref_weighted_sum_backward(const cgs_record *r) {
    give_nothing(r, 0);
    for (int i = 0; i < r->arg.weighted_sum.terms; i++)
        if (cgs_wants(r, i + 1))
            give(r, i + 1, 0, (double)get(r->in[0], (size_t)i) * out_grad(r, 0));
}

void cgs_ref_weighted_sum_tangent(const cgs_record *r, cgs_lanes l) {
    double sum[CGS_LANES] = {0};
    for (int i = 0; i < r->arg.weighted_sum.terms; i++)
        sum_tangent(sum, r, r->in[i + 1], l, 0, get(r->in[0], (size_t)i));
    set_tangent(r, l, 0, sum);
}

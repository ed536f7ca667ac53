/* cost.c - lower bounds of arithmetic and memory traffic of each operation. */
#include "ops/check/cost.h"

/* fraction of the (T,T) matrix that is visible */
static double visible(const cgs_record *r, int T) {
    if (!r->arg.attention.causal) return 1;
    double seen = 0;
    int block = r->arg.attention.block;
    for (int i = 0; i < T; i++) {
        int last = (i / block + 1) * block;
        seen += last < T ? last : T;
    }
    return seen / ((double)T * T);
}

/* operations per element of the result for elementwise operations; elementary functions count as
 * one */
static double per_element(cgs_opcode op) {
    switch (op) {
    case CGS_OP_patchify: return 2;
    case CGS_OP_layernorm: return 8;
    case CGS_OP_batchnorm: return 8;
    case CGS_OP_modulate: return 3;
    case CGS_OP_gate_add: return 2;
    case CGS_OP_activation: return 4;
    case CGS_OP_dropout: return 2;
    case CGS_OP_directions: return 3;
    case CGS_OP_unfold:
    case CGS_OP_take:
    case CGS_OP_join:
    case CGS_OP_repeat: return 0;
    default: return 1;
    }
}

cgs_cost cgs_forward_cost(const cgs_record *r) {
    cgs_cost c = {0, (double)cgs_bytes(r->out)};
    for (int k = 0; k < CGS_MAX_IN; k++)
        if (r->in[k]) c.bytes += (double)cgs_bytes(r->in[k]);
    for (int k = 0; k < CGS_MAX_SAVED; k++)
        if (r->saved[k]) c.bytes += (double)cgs_bytes(r->saved[k]);

    const cgs_tensor *x = r->in[0];
    double n = (double)cgs_numel(r->out);
    switch (r->op) {
    case CGS_OP_linear: c.flops = 2 * n * cgs_cols(x); break;
    case CGS_OP_attention: c.flops = 4 * n * x->dim[1] * visible(r, x->dim[1]); break;
    case CGS_OP_attend_first: { /* what is there of q is not read */
        const cgs_tensor *all = r->in[1];
        c.flops = 4 * n * all->dim[1];
        c.bytes -=
            (double)cgs_bytes(all) - 2.0 * n * all->dim[1] * (double)cgs_dtype_size(all->dtype);
        break;
    }
    case CGS_OP_mse: c.flops = 3 * (double)cgs_numel(x); break;
    case CGS_OP_sqdist: c.flops = 3 * (double)cgs_numel(x); break;
    case CGS_OP_sigreg: { /* the projection, then a sine, a cosine and two sums per knot */
        double P = (double)cgs_rows(r->in[1]), rows = (double)cgs_rows(x);
        c.flops = rows * P * (2 * cgs_cols(x) + 4 * CGS_SIGREG_KNOTS);
        break;
    }
    case CGS_OP_straighten: c.flops = 8 * (double)cgs_numel(x); break;
    case CGS_OP_cgs: /* both Gram matrices */
        c.flops = 2 * ((double)cgs_numel(x) + (double)cgs_numel(r->in[1])) * r->in[1]->dim[1];
        break;
    case CGS_OP_weighted_sum: c.flops = 2.0 * r->arg.weighted_sum.terms; break;
    default: c.flops = n * per_element(r->op); break;
    }
    return c;
}

cgs_cost cgs_backward_cost(const cgs_record *r) {
    cgs_cost f = cgs_forward_cost(r), c = {2 * f.flops, f.bytes};
    bool any = false;
    for (int k = 0; k < CGS_MAX_IN; k++)
        if (r->in[k] && r->in[k]->wants_grad) {
            c.bytes += (double)cgs_bytes(r->in[k]);
            any = true;
        }
    if (!any) return (cgs_cost){0, 0};
    if (r->op == CGS_OP_linear) /* dx and dW each cost one product */
        c.flops = f.flops * (r->in[0]->wants_grad + r->in[1]->wants_grad);
    if (r->op == CGS_OP_attention || r->op == CGS_OP_attend_first)
        c.flops = 2.5 * f.flops; /* five products instead of two */
    return c;
}

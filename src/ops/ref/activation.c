/* activation.c - gelu (exact, with erf), silu, relu. */
#include "ops/ref/ref.h"

static double value(cgs_activation kind, double x) {
    switch (kind) {
    case CGS_GELU: return 0.5 * x * (1 + erf(x / sqrt(2.0)));
    case CGS_SILU: return x / (1 + exp(-x));
    case CGS_RELU: return x > 0 ? x : 0;
    }
    return NAN;
}

static double derivative(cgs_activation kind, double x) {
    const double tau = 6.283185307179586;
    double s;
    switch (kind) {
    case CGS_GELU: return 0.5 * (1 + erf(x / sqrt(2.0))) + x * exp(-0.5 * x * x) / sqrt(tau);
    case CGS_SILU: s = 1 / (1 + exp(-x)); return s * (1 + x * (1 - s));
    case CGS_RELU: return x > 0 ? 1 : 0;
    }
    return NAN;
}

void cgs_ref_activation_forward(const cgs_record *r) {
    for (size_t i = 0; i < cgs_numel(r->out); i++)
        set(r->out, i, value(r->arg.activation.kind, get(r->in[0], i)));
}

void cgs_ref_activation_backward(const cgs_record *r) {
    if (!cgs_wants(r, 0)) return;
    for (size_t i = 0; i < cgs_numel(r->out); i++)
        give(r, 0, i, out_grad(r, i) * derivative(r->arg.activation.kind, get(r->in[0], i)));
}

void cgs_ref_activation_tangent(const cgs_record *r, cgs_lanes l) {
    for (size_t i = 0; i < cgs_numel(r->out); i++) {
        clear_tangent(r, l, i);
        push(r, l, i, derivative(r->arg.activation.kind, get(r->in[0], i)), 0, i);
    }
}

/* straighten.c - one minus the cosine between consecutive latent steps.
 *   z (B,T,D), D_t = z_{t+1} - z_t; saved: M (1), the number of valid pairs
 *   loss = mean over valid pairs of  1 - cos(D_t, D_{t+1})
 * A pair is valid iff both steps are longer than min_norm: a shorter one has no
 * direction and no gradient.  Without a valid pair the loss is 0. */
#include "ops/ref/ref.h"

size_t cgs_ref_straighten_scratch(const cgs_record *r) {
    return cgs_numel(r->in[0]) / (size_t)r->in[0]->dim[0] * sizeof(double);
}

/* element d of step t in window b */
static double delta(const cgs_tensor *z, size_t b, size_t t, size_t d) {
    size_t T = (size_t)z->dim[1], D = (size_t)z->dim[2], at = (b * T + t) * D + d;
    return (double)get(z, at + D) - get(z, at);
}

typedef struct pair {
    double length[2], cosine;
    bool valid;
} pair;

/* steps t and t+1 of window b */
static pair corner(const cgs_record *r, size_t b, size_t t) {
    double aa = 0, bb = 0, ab = 0;
    for (size_t d = 0; d < (size_t)r->in[0]->dim[2]; d++) {
        double x = delta(r->in[0], b, t, d), y = delta(r->in[0], b, t + 1, d);
        aa += x * x;
        bb += y * y;
        ab += x * y;
    }
    double min = r->arg.straighten.min_norm;
    pair c = {{sqrt(aa), sqrt(bb)}, 0, sqrt(aa) > min && sqrt(bb) > min};
    if (c.valid) c.cosine = ab / (c.length[0] * c.length[1]);
    return c;
}

void cgs_ref_straighten_forward(const cgs_record *r) {
    size_t B = (size_t)r->in[0]->dim[0], T = (size_t)r->in[0]->dim[1], M = 0;
    double sum = 0;
    for (size_t b = 0; b < B; b++)
        for (size_t t = 0; t + 2 < T; t++) {
            pair c = corner(r, b, t);
            if (!c.valid) continue;
            sum += 1 - c.cosine;
            M++;
        }
    set(r->saved[0], 0, (double)M);
    set(r->out, 0, M ? sum / (double)M : 0);
}

void cgs_ref_straighten_backward(const cgs_record *r) {
    const cgs_tensor *z = r->in[0];
    size_t B = (size_t)z->dim[0], T = (size_t)z->dim[1], D = (size_t)z->dim[2];
    double *dz = r->impl; /* (T,D) */
    double M = get(r->saved[0], 0);
    if (!cgs_wants(r, 0)) return;
    for (size_t b = 0; b < B; b++) {
        memset(dz, 0, T * D * sizeof *dz);
        for (size_t t = 0; t + 2 < T; t++) {
            pair c = corner(r, b, t);
            if (!c.valid) continue;
            /* with unit vectors u, w: d cos / dD_t = (w - cos u) / |D_t|, and the other alike */
            for (size_t d = 0; d < D; d++) {
                double u = delta(z, b, t, d) / c.length[0];
                double w = delta(z, b, t + 1, d) / c.length[1];
                double du = -(w - c.cosine * u) / (M * c.length[0]);
                double dw = -(u - c.cosine * w) / (M * c.length[1]);
                dz[t * D + d] -= du;
                dz[(t + 1) * D + d] += du - dw;
                dz[(t + 2) * D + d] += dw;
            }
        }
        for (size_t i = 0; i < T * D; i++) give(r, 0, b * T * D + i, out_grad(r, 0) * dz[i]);
    }
}

void cgs_ref_straighten_tangent(const cgs_record *r, cgs_lanes l) {
    const cgs_tensor *z = r->in[0];
    size_t B = (size_t)z->dim[0], T = (size_t)z->dim[1], D = (size_t)z->dim[2];
    double sum[CGS_LANES] = {0}, M = get(r->saved[0], 0);
    for (size_t at = 0; at < B * T; at++) {
        size_t b = at / T, t = at % T;
        if (t + 2 >= T) continue;
        pair c = corner(r, b, t);
        for (size_t d = 0; d < D && c.valid; d++) {
            double u = delta(z, b, t, d) / c.length[0], w = delta(z, b, t + 1, d) / c.length[1];
            double du = -(w - c.cosine * u) / (M * c.length[0]);
            double dw = -(u - c.cosine * w) / (M * c.length[1]);
            sum_tangent(sum, r, z, l, at * D + d, -du);
            sum_tangent(sum, r, z, l, (at + 1) * D + d, du - dw);
            sum_tangent(sum, r, z, l, (at + 2) * D + d, dw);
        }
    }
    set_tangent(r, l, 0, sum);
}

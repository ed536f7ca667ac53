/* sigreg.c - the distance of random projections of the latents from a standard normal.
 *   z (B,T,D), A (P,D) unit directions; saved: (T,P,34), C at k and S at 17+k
 *
 * With y = z A^T, the empirical characteristic function of the B values y of one time
 * step and direction has real part C_k and imaginary part S_k at knot t_k = 3k/16:
 *   loss = mean over (t,p) of  B sum_k w_k ((C_k - phi_k)^2 + S_k^2),  phi_k = exp(-t_k^2/2)
 * where w_k = phi_k times the trapezoid rule, doubled for the negative half.
 * A is drawn, not learned, and gets no gradient. */
#include "ops/ref/ref.h"

enum { KNOTS = CGS_SIGREG_KNOTS };

typedef struct rule {
    double t[KNOTS], phi[KNOTS], w[KNOTS];
} rule;

static rule trapezoid(void) {
    rule q;
    double step = 3.0 / (KNOTS - 1);
    for (int k = 0; k < KNOTS; k++) {
        q.t[k] = step * k;
        q.phi[k] = exp(-q.t[k] * q.t[k] / 2);
        q.w[k] = 2 * (k == 0 || k == KNOTS - 1 ? step / 2 : step) * q.phi[k];
    }
    return q;
}

size_t cgs_ref_sigreg_scratch(const cgs_record *r) {
    return (size_t)cgs_cols(r->in[0]) * sizeof(double);
}

/* the projection of z[row] on direction p */
static double project(const cgs_record *r, size_t row, size_t p) {
    size_t D = (size_t)cgs_cols(r->in[0]);
    double y = 0;
    for (size_t d = 0; d < D; d++)
        y += (double)get(r->in[0], row * D + d) * get(r->in[1], p * D + d);
    return y;
}

void cgs_ref_sigreg_forward(const cgs_record *r) {
    size_t B = (size_t)r->in[0]->dim[0], T = (size_t)r->in[0]->dim[1], P = cgs_rows(r->in[1]);
    rule q = trapezoid();
    double loss = 0;
    for (size_t t = 0; t < T; t++)
        for (size_t p = 0; p < P; p++) {
            double C[KNOTS] = {0}, S[KNOTS] = {0};
            for (size_t b = 0; b < B; b++) {
                double y = project(r, b * T + t, p);
                for (int k = 0; k < KNOTS; k++) {
                    C[k] += cos(q.t[k] * y) / (double)B;
                    S[k] += sin(q.t[k] * y) / (double)B;
                }
            }
            for (int k = 0; k < KNOTS; k++) {
                size_t at = (t * P + p) * 2 * KNOTS + (size_t)k;
                double c = C[k] - q.phi[k];
                loss += q.w[k] * (c * c + S[k] * S[k]);
                set(r->saved[0], at, C[k]);
                set(r->saved[0], at + KNOTS, S[k]);
            }
        }
    set(r->out, 0, (double)B * loss / (double)(T * P));
}

/* of the loss by the projection of z[row] on direction p */
static double slope(const cgs_record *r, const rule *q, size_t row, size_t p) {
    size_t T = (size_t)r->in[0]->dim[1], P = cgs_rows(r->in[1]);
    size_t at = (row % T * P + p) * 2 * KNOTS;
    double y = project(r, row, p), dy = 0;
    for (int k = 0; k < KNOTS; k++) {
        double C = get(r->saved[0], at + (size_t)k);
        double S = get(r->saved[0], at + KNOTS + (size_t)k);
        dy += q->w[k] * q->t[k] * (S * cos(q->t[k] * y) - (C - q->phi[k]) * sin(q->t[k] * y));
    }
    return 2.0 / (double)(T * P) * dy;
}

void cgs_ref_sigreg_backward(const cgs_record *r) {
    size_t B = (size_t)r->in[0]->dim[0], T = (size_t)r->in[0]->dim[1], P = cgs_rows(r->in[1]);
    size_t D = (size_t)cgs_cols(r->in[0]);
    double *dz = r->impl; /* (D) */
    rule q = trapezoid();
    give_nothing(r, 1);
    if (!cgs_wants(r, 0)) return;
    for (size_t row = 0; row < B * T; row++) {
        memset(dz, 0, D * sizeof *dz);
        for (size_t p = 0; p < P; p++) {
            double dy = slope(r, &q, row, p);
            for (size_t d = 0; d < D; d++) dz[d] += dy * get(r->in[1], p * D + d);
        }
        for (size_t d = 0; d < D; d++) give(r, 0, row * D + d, out_grad(r, 0) * dz[d]);
    }
}

void cgs_ref_sigreg_tangent(const cgs_record *r, cgs_lanes l) {
    size_t B = (size_t)r->in[0]->dim[0], T = (size_t)r->in[0]->dim[1], P = cgs_rows(r->in[1]);
    size_t D = (size_t)cgs_cols(r->in[0]);
    double sum[CGS_LANES] = {0};
    rule q = trapezoid();
    for (size_t row = 0; row < B * T; row++)
        for (size_t p = 0; p < P; p++) {
            double dy = slope(r, &q, row, p);
            for (size_t d = 0; d < D; d++)
                sum_tangent(sum, r, r->in[0], l, row * D + d, dy * get(r->in[1], p * D + d));
        }
    set_tangent(r, l, 0, sum);
}

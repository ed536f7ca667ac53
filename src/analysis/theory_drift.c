/* theory_drift.c - the best control map when drift must stay (Appendix D.7). */
#include <math.h>

#include "analysis/theory_internal.h"

/* the part of the defect that depends on B */
static double control_defect(const cgs_facts *f, cgs_work *w, cgs_mat D, cgs_mat B) {
    size_t mark = cgs_work_mark(w);
    cgs_mat mixed = cgs_mul_tn(w, D, B), off = cgs_mul_tn(w, B, B);
    for (int i = 0; i < f->da; i++) CGS_AT(off, i, i) -= f->c;
    double sum = 2 * cgs_dot(mixed, mixed) + cgs_dot(off, off);
    cgs_work_release(w, mark);
    return sum;
}

/* B* for a drift, with random right singular vectors; its value as in the proof */
static cgs_mat best_control(const cgs_facts *f, cgs_work *w, cgs_rng *r, cgs_mat D, double *value) {
    cgs_mat values, u, v = cgs_random_rotation(w, r, f->da);
    cgs_eigen(w, cgs_mul_nt(w, D, D), &values, &u);
    cgs_mat B = cgs_mat_new(w, f->d, f->da);
    *value = 0;
    for (int k = 0; k < f->da; k++) {
        int at = f->d - 1 - k; /* the k-th smallest */
        double drift = fmax(values.x[at], 0), square = fmax(f->c - drift, 0);
        *value += 2 * drift * square + (square - f->c) * (square - f->c);
        for (int i = 0; i < f->d; i++)
            for (int j = 0; j < f->da; j++)
                CGS_AT(B, i, j) += sqrt(square) * CGS_AT(u, i, at) * CGS_AT(v, j, k);
    }
    return B;
}

void cgs_check_loss_floor(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    (void)w;
    if (f->rho == 0)
        t->outside = "singular covariance";
    else
        cgs_at_most(t, f->rho * f->rho * pow(f->drift, 4), f->loss, f->loss);
}

void cgs_check_best_control(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    if (!cgs_needs_latents(f, t)) return;
    double value, c2 = f->c * f->c;
    cgs_mat best = best_control(f, w, &t->rng, f->D, &value);
    for (int i = 0; i < 64; i++) {
        size_t mark = cgs_work_mark(w);
        double far = sqrt(f->c) * pow(10, -i % 4);
        cgs_mat B = cgs_plus(w, best, far, cgs_random_normal(w, &t->rng, f->d, f->da));
        cgs_at_most(t, value, control_defect(f, w, f->D, B), 1e-2 * c2);
        cgs_work_release(w, mark);
    }
    cgs_at_most(t, value, control_defect(f, w, f->D, f->s->B), 1e-2 * c2);
}

void cgs_check_best_control_value(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    if (!cgs_needs_latents(f, t)) return;
    double value, unit = f->c * sqrt(f->c);
    cgs_mat B = best_control(f, w, &t->rng, f->D, &value);
    cgs_mat off = cgs_mul_tn(w, B, B);
    for (int i = 0; i < f->da; i++) CGS_AT(off, i, i) -= f->c;
    cgs_mat gradient = cgs_plus(w, cgs_mul(w, f->D, cgs_mul_tn(w, f->D, B)), 1, cgs_mul(w, B, off));
    cgs_equal(t, cgs_norm_fro(gradient), 0, unit);
    cgs_equal(t, control_defect(f, w, f->D, B), value, f->c * f->c);
}

void cgs_check_best_control_kernel(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    if (f->d <= f->da) {
        t->outside = "d <= d_a";
        return;
    }
    cgs_mat u = cgs_submatrix(w, cgs_random_rotation(w, &t->rng, f->d), 0, 0, f->d, f->da);
    cgs_mat D = cgs_plus(w, f->D, -1, cgs_mul(w, u, cgs_mul_tn(w, u, f->D)));
    double value;
    cgs_mat B = best_control(f, w, &t->rng, D, &value), s = cgs_singular(w, B);
    cgs_equal(t, value, 0, f->c * f->c);
    cgs_equal(t, cgs_norm_op(w, cgs_mul_tn(w, D, B)), 0, f->c);
    cgs_equal(t, s.x[f->da - 1] * s.x[f->da - 1], f->c, f->c);
}

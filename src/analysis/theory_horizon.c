/* theory_horizon.c - the planning Hessian (Section 4.2, Appendix D.2). */
#include <math.h>

#include "analysis/theory_internal.h"

static bool needs_square(const cgs_facts *f, cgs_theory_trial *t) {
    if (!cgs_needs_xi(f, t)) return false;
    if (f->d != f->da) t->outside = "d != d_a";
    return f->d == f->da;
}

static double last_positive(const cgs_facts *f) { return f->lambda.x[f->controllable - 1]; }

void cgs_check_powers(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    if (!cgs_needs_eps(f, t)) return;
    double e = f->drift * f->drift;
    cgs_mat one = cgs_identity(w, f->d), power = cgs_identity(w, f->d);
    size_t mark = cgs_work_mark(w);
    for (int k = 1; k < f->H; k++) {
        cgs_put_submatrix(power, 0, 0, cgs_mul(w, power, f->s->A));
        cgs_mat off = cgs_plus(w, power, -1, one), rest = cgs_plus(w, off, -k, f->D);
        cgs_at_most(t, cgs_norm_op(w, off), cgs_growth_excess(k + 1, e), 1e-2);
        cgs_at_most(t, cgs_norm_op(w, rest), cgs_growth_remainder(k + 1, e), 1e-2);
        cgs_work_release(w, mark);
    }
}

void cgs_check_xi_expansion(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    (void)w;
    double lead = 2 * f->H * f->H - 3 * f->H + 2, C = cgs_xi(f->H, 1) - lead;
    for (double e = 1e-8; e < 1; e *= 10)
        cgs_at_most(t, fabs(cgs_xi(f->H, e) - lead * e), C * pow(e, 1.5), lead * e);
}

void cgs_check_hessian_gap(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    (void)w;
    if (cgs_needs_eps(f, t)) cgs_at_most(t, f->gap, f->xi, 1e-2);
}

static void interval(const cgs_facts *f, const double *lambda, cgs_theory_trial *t) {
    double unit = f->c * f->H;
    cgs_at_most(t, lambda[0], unit * (1 + f->xi), unit);
    cgs_at_most(t, unit * (1 - f->xi), lambda[f->r - 1], unit);
}

void cgs_check_eigen_interval(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    if (!needs_square(f, t)) return;
    cgs_mat values, v;
    cgs_eigen(w, f->G, &values, &v);
    interval(f, values.x, t);
    for (int j = f->r; j < f->n; j++) cgs_equal(t, values.x[j], 0, f->c * f->H);
}

void cgs_check_effective_condition(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    (void)w;
    if (!needs_square(f, t)) return;
    cgs_equal(t, f->controllable, f->r, f->r);
    cgs_at_most(t, f->lambda.x[0] / last_positive(f), (1 + f->xi) / (1 - f->xi), 1);
}

cgs_system cgs_ideal_system(const cgs_facts *f, cgs_work *w, cgs_rng *r) {
    cgs_system ideal = *f->s;
    cgs_mat u = cgs_random_rotation(w, r, f->d);
    ideal.A = cgs_identity(w, f->d);
    ideal.B = cgs_scaled(w, sqrt(f->c), cgs_submatrix(w, u, 0, 0, f->d, f->da));
    return ideal;
}

void cgs_check_ideal_hessian(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    if (f->d < f->da) {
        t->outside = "d < d_a";
        return;
    }
    cgs_system ideal = cgs_ideal_system(f, w, &t->rng);
    cgs_facts g;
    cgs_facts_derive(&g, &ideal, w);
    cgs_equal(t, cgs_norm_op(w, cgs_plus(w, g.G, -f->c * f->H, f->P)), 0, f->c * f->H);
    cgs_equal(t, g.controllable, f->da, f->da);
    cgs_mat square = cgs_mul(w, f->P, f->P); /* a projector of rank d_a */
    cgs_equal(t, cgs_norm_op(w, cgs_plus(w, square, -1, f->P)), 0, 1);
    cgs_equal(t, cgs_trace(f->P), f->da, f->da);
}

void cgs_check_straightening_gap(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    (void)w;
    if (f->eps_ts >= 1)
        t->outside = "eps >= 1";
    else
        cgs_at_most(t, f->gap, cgs_xi_ts(f->H, f->eps_ts), 1e-2);
}

void cgs_check_mixed_orders(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    if (!cgs_needs_eps(f, t)) return;
    double c = f->c, e = f->eps;
    cgs_mat inner = cgs_mul_tn(w, f->s->B, cgs_mul(w, f->D, f->s->B));
    cgs_at_most(t, f->mixed, sqrt(c * (1 + f->eps_ts) * f->eps_ts), 1e-2 * c);
    cgs_at_most(t, cgs_norm_op(w, inner), c * sqrt(1 + e) * e, 1e-2 * c);
}

void cgs_check_shared_spectrum(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    cgs_mat of_W, of_G, v, s = cgs_singular(w, f->gamma);
    cgs_eigen(w, cgs_mul_nt(w, f->gamma, f->gamma), &of_W, &v);
    cgs_eigen(w, f->G, &of_G, &v);
    int last = f->controllable - 1;
    for (int i = 0; i <= last; i++) {
        cgs_equal(t, of_W.x[i], of_G.x[i], of_G.x[0]);
        cgs_equal(t, s.x[i] * s.x[i], of_G.x[i], of_G.x[0]);
    }
    double k = s.x[0] / s.x[last];
    if (k < 1e3) cgs_equal(t, k * k, of_G.x[0] / of_G.x[last], k * k); /* squares lose digits */
}

void cgs_check_leading_directions(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    if (!cgs_needs_xi(f, t)) return;
    if (f->d <= f->da) {
        t->outside = "d <= d_a";
        return;
    }
    cgs_mat values, v;
    cgs_eigen(w, cgs_mul_nt(w, f->gamma, f->gamma), &values, &v);
    cgs_at_most(t, f->gap, f->xi, 1e-2);
    interval(f, f->lambda.x, t);
    interval(f, values.x, t);
    cgs_at_most(t, f->lambda.x[0] / f->lambda.x[f->r - 1], (1 + f->xi) / (1 - f->xi), 1);
    int most = f->d < f->n ? f->d : f->n;
    cgs_equal(t, f->r <= f->controllable && f->controllable <= most, 1, 1);
}

void cgs_check_invariant_range(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    if (!cgs_needs_xi(f, t)) return;
    const cgs_mat B = f->s->B;
    cgs_mat BtB = cgs_mul_tn(w, B, B);
    cgs_mat onto = cgs_mul(w, B, cgs_solve(w, BtB, cgs_transpose(w, B)));
    cgs_system s = *f->s;
    s.A = cgs_plus(w, cgs_identity(w, f->d), 1, cgs_mul(w, onto, f->D));
    cgs_facts g;
    cgs_facts_derive(&g, &s, w);
    if (!cgs_needs_xi(&g, t)) return;
    cgs_equal(t, g.controllable, g.da, g.da);
    cgs_at_most(t, g.lambda.x[0] / g.lambda.x[g.da - 1], (1 + g.xi) / (1 - g.xi), 1);
}

void cgs_check_controllable_bound(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    if (!cgs_needs_xi(f, t)) return;
    cgs_mat values, v;
    cgs_eigen(w, cgs_mul_nt(w, f->gamma, f->gamma), &values, &v);
    double gamma = values.x[f->controllable - 1] / (f->c * f->H);
    if (gamma < 1e-8)
        t->outside = "W_H >= gamma_H c H with a gamma_H above rounding";
    else
        cgs_at_most(t, f->lambda.x[0] / last_positive(f), (1 + f->xi) / gamma, 1 / gamma);
}

void cgs_check_additional(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    (void)w;
    if (!cgs_needs_xi(f, t)) return;
    if (f->controllable <= f->da) {
        t->outside = "rank <= d_a";
        return;
    }
    for (int j = f->da; j < f->controllable; j++)
        cgs_at_most(t, f->lambda.x[j], f->c * f->H * f->xi, f->c * f->H * 1e-2);
}

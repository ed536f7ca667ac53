/* theory_gd.c - gradient descent on the planning cost (Appendix D.6). */
#include <math.h>

#include "analysis/theory_internal.h"

enum { STEPS = 5 };

/* gamma^T (A^H z0 + gamma plan - goal), the gradient as the chain rule gives it */
static cgs_mat gradient(const cgs_facts *f, cgs_work *w, cgs_mat plan) {
    cgs_mat z = f->s->z0;
    for (int t = 0; t < f->H; t++) {
        cgs_mat a = {f->da, 1, plan.x + t * f->da};
        z = cgs_plus(w, cgs_mul(w, f->s->A, z), 1, cgs_mul(w, f->s->B, a));
    }
    return cgs_mul_tn(w, f->gamma, cgs_plus(w, z, -1, f->s->goal));
}

static double gap(const cgs_facts *f, cgs_work *w, cgs_mat plan) {
    return cgs_system_cost(f->s, w, plan) - cgs_system_cost(f->s, w, f->best);
}

static cgs_mat random_plan(const cgs_facts *f, cgs_work *w, cgs_rng *r) {
    return cgs_plus(w, f->best, 1, cgs_random_normal(w, r, f->n, 1));
}

void cgs_check_gd_update(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    double h = 1 / (f->c * f->H);
    cgs_mat plan = random_plan(f, w, &t->rng), off = cgs_plus(w, plan, -1, f->best);
    for (int i = 0; i < 3; i++) {
        plan = cgs_plus(w, plan, -h, gradient(f, w, plan));
        off = cgs_plus(w, off, -1, cgs_mul(w, f->M, off));
        cgs_mat differs = cgs_plus(w, cgs_plus(w, plan, -1, f->best), -1, off);
        cgs_equal(t, cgs_norm_fro(differs), 0,
                  cgs_norm_fro(off) + (1 + cgs_norm_fro(f->best)) * pow(1 + f->lambda.x[0] * h, 2));
    }
}

void cgs_check_gd_dominant(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    if (!cgs_needs_xi(f, t) || !cgs_needs_latents(f, t)) return;
    double unit = f->c * f->H, rate = 0;
    for (int i = 0; i < f->r; i++) rate = fmax(rate, fabs(1 - f->lambda.x[i] / unit));
    cgs_at_most(t, rate, f->xi, 1e-2);
    cgs_mat plan = random_plan(f, w, &t->rng);
    double first = 0;
    for (int k = 0; k <= STEPS; k++) {
        size_t mark = cgs_work_mark(w);
        cgs_mat x = cgs_mul_tn(w, f->V, cgs_plus(w, plan, -1, f->best));
        double part = 0;
        for (int i = 0; i < f->r; i++) part += f->lambda.x[i] * x.x[i] * x.x[i] / 2;
        if (k == 0)
            first = part;
        else
            cgs_at_most(t, part, pow(f->xi, 2 * k) * first, 1e-6 * first);
        cgs_put_submatrix(plan, 0, 0, cgs_plus(w, plan, -1 / unit, gradient(f, w, plan)));
        cgs_work_release(w, mark);
    }
}

/* a gap is the difference of two costs: this much of it is rounding */
static double gap_scale(const cgs_facts *f, cgs_work *w, double first) {
    return 1e-4 * (first + cgs_system_cost(f->s, w, f->best));
}

void cgs_check_gd_full(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    if (!cgs_needs_xi(f, t) || !cgs_needs_rank_da(f, t)) return;
    cgs_mat plan = random_plan(f, w, &t->rng);
    double first = gap(f, w, plan), scale = gap_scale(f, w, first);
    for (int k = 1; k <= STEPS; k++) {
        plan = cgs_plus(w, plan, -1 / (f->c * f->H), gradient(f, w, plan));
        cgs_at_most(t, gap(f, w, plan), pow(f->xi, 2 * k) * first, scale);
    }
}

void cgs_check_gd_best_step(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    if (f->controllable < 1) {
        t->outside = "rank 0";
        return;
    }
    double L = f->lambda.x[0], m = f->lambda.x[f->controllable - 1], h = 2 / (L + m);
    double q = (L / m - 1) / (L / m + 1);
    cgs_equal(t, fmax(fabs(1 - h * m), fabs(1 - h * L)), q, 1);
    for (double u = 0.05; u < 2; u += 0.1) /* any other step contracts, and no faster */
        cgs_at_most(t, q, fmax(fabs(1 - u / L * m), fabs(1 - u / L * L)), 1);
    cgs_mat plan = random_plan(f, w, &t->rng);
    double first = gap(f, w, plan);
    for (int k = 1; k <= STEPS; k++) {
        plan = cgs_plus(w, plan, -h, gradient(f, w, plan));
        cgs_at_most(t, gap(f, w, plan), pow(q, 2 * k) * first, first);
    }
}

void cgs_check_gd_best_rate(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    (void)w;
    if (!cgs_needs_xi(f, t) || !cgs_needs_rank_da(f, t)) return;
    double k = f->lambda.x[0] / f->lambda.x[f->r - 1];
    cgs_at_most(t, (k - 1) / (k + 1), f->xi, 1e-2);
}

void cgs_check_square_condition(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    (void)w;
    double a = f->drift, b = f->control / f->c, up = 0, down = 0;
    if (f->d != f->da || a >= 1 || b >= 1) {
        t->outside = f->d != f->da ? "d != d_a" : a >= 1 ? "|A - I| >= 1" : "|B^T B - cI| >= c";
        return;
    }
    for (int k = 0; k < f->H; k++) {
        up += pow(1 + a, 2 * k);
        down += pow(1 - a, 2 * k);
    }
    double even = (1 + b) / (1 - b), first = even * up / down;
    double second = even * pow((1 + a) / (1 - a), 2 * (f->H - 1));
    cgs_at_most(t, f->lambda.x[0] / f->lambda.x[f->r - 1], first, first);
    cgs_at_most(t, first, second, second);
}

void cgs_check_square_condition_eps(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    (void)w;
    if (!cgs_needs_eps(f, t)) return;
    if (f->d != f->da) {
        t->outside = "d != d_a";
        return;
    }
    double e = f->eps, root = sqrt(e);
    double bound = (1 + e) / (1 - e) * pow((1 + root) / (1 - root), 2 * (f->H - 1));
    cgs_at_most(t, f->lambda.x[0] / f->lambda.x[f->r - 1], bound, bound);
}

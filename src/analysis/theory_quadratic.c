/* theory_quadratic.c - the quadratic planning problem (Appendix D.3), and what the statements
 * about planners share. */
#include <math.h>

#include "analysis/theory_internal.h"

bool cgs_needs_eps(const cgs_facts *f, cgs_theory_trial *t) {
    if (f->eps >= 1) t->outside = "eps >= 1";
    return f->eps < 1;
}

bool cgs_needs_xi(const cgs_facts *f, cgs_theory_trial *t) {
    if (!cgs_needs_eps(f, t)) return false;
    if (f->xi >= 1) t->outside = "xi_H >= 1";
    return f->xi < 1;
}

bool cgs_needs_latents(const cgs_facts *f, cgs_theory_trial *t) {
    if (f->d < f->da) t->outside = "d < d_a";
    return f->d >= f->da;
}

bool cgs_needs_rank_da(const cgs_facts *f, cgs_theory_trial *t) {
    if (!cgs_needs_latents(f, t)) return false;
    if (f->controllable != f->da) t->outside = "rank != d_a";
    return f->controllable == f->da;
}

cgs_mat cgs_random_direction(cgs_work *w, cgs_rng *r, int n, double length) {
    cgs_mat x = cgs_random_normal(w, r, n, 1);
    return cgs_scaled(w, length / cgs_norm_fro(x), x);
}

double cgs_leading_norm(const cgs_facts *f, cgs_mat nu) {
    return cgs_norm_fro((cgs_mat){f->r, 1, nu.x});
}

/* a* + V x: from eigen-coordinates to plans */
static cgs_mat plan_at(const cgs_facts *f, cgs_work *w, cgs_mat x) {
    return cgs_plus(w, f->best, 1, cgs_mul(w, f->V, x));
}

/* Costs of plans near the best one are exact to this size: 1e-14 of |gamma|^2 |a*| |x| is what
 * the rounding of the least-squares plan leaves. */
static double cost_scale(const cgs_facts *f, double cost, double lowest, double length) {
    return fmax(cost, lowest) + 1e-6 * f->lambda.x[0] * cgs_norm_fro(f->best) * length;
}

void cgs_check_expansion(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    double lowest = cgs_system_cost(f->s, w, f->best);
    for (int i = 0; i < 8; i++) {
        size_t mark = cgs_work_mark(w);
        cgs_mat x = cgs_random_normal(w, &t->rng, f->n, 1);
        double cost = cgs_system_cost(f->s, w, cgs_plus(w, f->best, 1, x));
        double curved = cgs_dot(x, cgs_mul(w, f->G, x)) / 2;
        cgs_equal(t, cost, lowest + curved, cost_scale(f, cost, lowest, cgs_norm_fro(x)));
        cgs_work_release(w, mark);
    }
}

/* F(x) = gamma x + 1/2 [x^T N_j x]_j: a predictor with curvature.  Its cost is a polynomial of
 * degree 4, of which the five-point difference is exact up to rounding. */
void cgs_check_nonlinear_hessian(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    int n = f->n, d = f->d;
    cgs_mat x = cgs_random_direction(w, &t->rng, n, 0.5),
            u = cgs_random_direction(w, &t->rng, n, 1);
    /* N_j = p_j q_j^T + q_j p_j^T, so that x^T N_j x / 2 = (p_j.x)(q_j.x) */
    cgs_mat p = cgs_random_normal(w, &t->rng, d, n), q = cgs_random_normal(w, &t->rng, d, n);
    double cost[5], h = 0.05;
    for (int k = -2; k <= 2; k++) {
        cgs_mat y = cgs_plus(w, x, k * h, u), z = cgs_mul(w, f->gamma, y);
        cgs_mat py = cgs_mul(w, p, y), qy = cgs_mul(w, q, y);
        cost[k + 2] = 0;
        for (int j = 0; j < d; j++)
            cost[k + 2] += pow(z.x[j] + py.x[j] * qy.x[j] - f->s->goal.x[j], 2) / 2;
    }
    double curved =
        (-cost[0] + 16 * cost[1] - 30 * cost[2] + 16 * cost[3] - cost[4]) / (12 * h * h);
    cgs_mat z = cgs_mul(w, f->gamma, x), zu = cgs_mul(w, f->gamma, u);
    cgs_mat px = cgs_mul(w, p, x), qx = cgs_mul(w, q, x), pu = cgs_mul(w, p, u),
            qu = cgs_mul(w, q, u);
    double gauss = 0, second = 0;
    for (int j = 0; j < d; j++) {
        double Ju = zu.x[j] + px.x[j] * qu.x[j] + qx.x[j] * pu.x[j];
        gauss += Ju * Ju;
        second += (z.x[j] + px.x[j] * qx.x[j] - f->s->goal.x[j]) * 2 * pu.x[j] * qu.x[j];
    }
    cgs_equal(t, curved, gauss + second, gauss + fabs(second) + cost[2]);
}

void cgs_check_whitening(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    /* an uneven proposal; its whitened Hessian is what the candidates see */
    cgs_mat v = cgs_random_rotation(w, &t->rng, f->n), scaled = cgs_mat_copy(w, v);
    for (int k = 0; k < f->n; k++) {
        double deviation = exp(cgs_rng_range(&t->rng, -1, 1));
        for (int i = 0; i < f->n; i++) CGS_AT(scaled, i, k) *= deviation;
    }
    cgs_mat root = cgs_mul_nt(w, scaled, v), H = cgs_mul(w, root, cgs_mul(w, f->G, root));
    double lowest = cgs_system_cost(f->s, w, f->best);
    for (int i = 0; i < 4; i++) {
        cgs_mat x = cgs_random_normal(w, &t->rng, f->n, 1);
        double cost = cgs_system_cost(f->s, w, cgs_plus(w, f->best, 1, cgs_mul(w, root, x)));
        cgs_equal(t, cost, lowest + cgs_dot(x, cgs_mul(w, H, x)) / 2,
                  cost_scale(f, cost, lowest, cgs_norm_fro(x)));
    }
    /* MPPI's weights see the same cost in both coordinates */
    cgs_mat x = cgs_random_normal(w, &t->rng, f->n, 1);
    double cost = cgs_system_cost(f->s, w, plan_at(f, w, x)), sum = 0;
    for (int i = 0; i < f->n; i++) sum += f->lambda.x[i] * x.x[i] * x.x[i] / 2;
    cgs_equal(t, cost, lowest + sum, cost_scale(f, cost, lowest, cgs_norm_fro(x)));
}

void cgs_check_mean_recursion(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    enum { I = 3 };
    const double R = 1;
    if (!cgs_needs_xi(f, t) || !cgs_needs_latents(f, t)) return;
    double least = cgs_least_samples(f, R, CGS_ZETA / I);
    if (least > CGS_SAMPLES_MAX) {
        t->outside = "least K within 5000";
        return;
    }
    int K = (int)ceil(least);
    double q = cgs_mppi_rate(f), noise = cgs_mppi_sampling_bound(f, R, K, CGS_ZETA / I);
    cgs_mat nu = cgs_random_direction(w, &t->rng, f->n, 0.5);
    double first = cgs_leading_norm(f, nu), before = first, after = first;
    for (int i = 0; i < I; i++) {
        if (cgs_norm_fro(nu) > R) {
            t->outside = "no exit before I";
            return;
        }
        nu = cgs_mppi_update(f, w, &t->rng, nu, K);
        after = cgs_leading_norm(f, nu);
        cgs_at_most(t, after, q * before + noise, 1);
        before = after;
    }
    cgs_at_most(t, after, pow(q, I) * first + (1 - pow(q, I)) / (1 - q) * noise, 1);
}

/* The bound of the corollary holds for any sampling error; at its worst the recursion is an
 * equality, and the budgets must still do. */
void cgs_check_mean_budget(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    (void)w;
    if (!cgs_needs_xi(f, t) || !cgs_needs_latents(f, t)) return;
    double q = cgs_mppi_rate(f), e = 1, want = pow(10, cgs_rng_range(&t->rng, -4, -0.1));
    double C = cgs_rng_range(&t->rng, 1, 20);
    double I = ceil(log(2 * e / want) / -log(q));
    double K = 4 * C * C / ((1 - q) * (1 - q) * want * want) * (f->r + log(I / CGS_ZETA));
    double noise = C * sqrt((f->r + log(I / CGS_ZETA)) / K);
    if (I > 1e6) {
        t->outside = "q far enough below 1 to unroll";
        return;
    }
    for (int i = 0; i < (int)I; i++) e = q * e + noise;
    cgs_at_most(t, e, want, want);
}

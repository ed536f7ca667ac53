/* theory_cem.c - CEM's mean update near the optimum (Appendix D.5).
 *
 * The population map is exact (quadratic_form.h).  The modulus omega is a supremum over all
 * matrices near P_H; only their eigenvalues matter, and |J - beta| is largest where one
 * leading eigenvalue is at one end of its interval and everything else at the other.  omega
 * below is its value at these two spectra, which is at most the supremum: a bound that holds
 * with it holds with the supremum. */
#include <math.h>
#include <stdlib.h>

#include "analysis/quadratic_form.h"
#include "analysis/theory_internal.h"

/* eigenvalues of M_H that are not 0; the others change nothing and contract nothing */
static int active(const cgs_facts *f) { return f->controllable; }

static cgs_mat spectrum(const cgs_facts *f, cgs_work *w) {
    cgs_mat l = cgs_mat_new(w, active(f), 1);
    for (int i = 0; i < l.rows; i++) l.x[i] = f->lambda.x[i] / (f->c * f->H);
    return l;
}

static bool needs_cost(const cgs_facts *f, cgs_theory_trial *t) {
    if (active(f) < 1) t->outside = "M_H = 0";
    return active(f) >= 1;
}

static bool needs_half(const cgs_facts *f, cgs_theory_trial *t) {
    if (!cgs_needs_xi(f, t) || !cgs_needs_latents(f, t)) return false;
    if (f->xi >= 0.5) t->outside = "xi_H >= 1/2";
    return f->xi < 0.5;
}

static double modulus(cgs_work *w, int n, int r, double alpha, double delta) {
    size_t mark = cgs_work_mark(w);
    double beta = cgs_cem_beta(alpha, r), worst = 0;
    for (int side = -1; side <= 1; side += 2) {
        cgs_mat l = cgs_mat_new(w, n, 1), J = cgs_mat_new(w, n, 1);
        for (int i = 0; i < n; i++) l.x[i] = i < r ? 1 - side * delta : side < 0 ? delta : 0;
        l.x[0] = 1 + side * delta;
        cgs_cem_jacobian(l.x, delta > 0 && side < 0 ? n : r, alpha, J.x);
        worst = fmax(worst, fabs(J.x[0] - beta));
    }
    cgs_work_release(w, mark);
    return worst;
}

void cgs_check_cem_jacobian(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    if (!needs_cost(f, t)) return;
    const double h = 1e-3;
    cgs_mat l = spectrum(f, w), J = cgs_mat_new(w, l.rows, 1), zero = J, out = cgs_mat_copy(w, J);
    cgs_mat up = cgs_random_direction(w, &t->rng, l.rows, h), down = cgs_scaled(w, -1, up);
    cgs_cem_mean(l.x, zero.x, l.rows, f->s->alpha, out.x);
    cgs_equal(t, cgs_norm_fro(out), 0, 1); /* T_C(0) = 0 */
    cgs_mat above = cgs_mat_copy(w, out), below = cgs_mat_copy(w, out);
    cgs_cem_mean(l.x, up.x, l.rows, f->s->alpha, above.x);
    cgs_cem_mean(l.x, down.x, l.rows, f->s->alpha, below.x);
    cgs_cem_jacobian(l.x, l.rows, f->s->alpha, J.x);
    for (int i = 0; i < l.rows; i++)
        cgs_equal_within(t, (above.x[i] - below.x[i]) / (2 * h), J.x[i] * up.x[i] / h, 1, 1e-5);
}

void cgs_check_cem_sampled(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    enum { K = 4000 };
    if (!needs_cost(f, t)) return;
    cgs_mat l = spectrum(f, w), J = cgs_mat_new(w, l.rows, 1), x = cgs_mat_copy(w, J);
    cgs_mat sum = cgs_mat_copy(w, J), square = cgs_mat_copy(w, J);
    double alpha = f->s->alpha, limit = cgs_form_quantile(l.x, NULL, l.rows, alpha);
    cgs_cem_jacobian(l.x, l.rows, alpha, J.x);
    for (int k = 0; k < K; k++) {
        double cost = 0;
        for (int i = 0; i < l.rows; i++) {
            x.x[i] = cgs_rng_normal(&t->rng);
            cost += l.x[i] * x.x[i] * x.x[i];
        }
        for (int i = 0; i < l.rows && cost <= limit; i++) {
            double v = x.x[i] * x.x[i] / alpha;
            sum.x[i] += v / K;
            square.x[i] += v * v / K;
        }
    }
    for (int i = 0; i < l.rows; i++)
        cgs_mean_is(t, sum.x[i], sqrt((square.x[i] - sum.x[i] * sum.x[i]) / K), J.x[i]);
}

void cgs_check_cem_ideal(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    cgs_mat l = cgs_mat_new(w, f->n, 1), J = cgs_mat_new(w, f->n, 1);
    double beta = cgs_cem_beta(f->s->alpha, f->r);
    for (int i = 0; i < f->r; i++) l.x[i] = 1;
    cgs_cem_jacobian(l.x, f->n, f->s->alpha, J.x);
    for (int i = 0; i < f->n; i++) cgs_equal(t, J.x[i], i < f->r ? beta : 1, 1);
    cgs_at_most(t, beta, 1, 1);
    cgs_at_most(t, 0, beta, 1);
}

void cgs_check_cem_balance(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    if (!needs_half(f, t)) return;
    cgs_mat l = spectrum(f, w), J = cgs_mat_new(w, l.rows, 1);
    double beta = cgs_cem_beta(f->s->alpha, f->r), off = 0;
    cgs_cem_jacobian(l.x, l.rows, f->s->alpha, J.x);
    for (int i = 0; i < f->r; i++) off = fmax(off, fabs(J.x[i] - beta));
    cgs_at_most(t, off, modulus(w, f->n, f->r, f->s->alpha, f->xi), 1);
}

/* All n - r other directions may weigh delta each, so the limit begins where n delta is small.
 * With one direction in all omega is 0, up to the tenth digit. */
void cgs_check_cem_limit(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    double delta = 0.1 / f->n, before = modulus(w, f->n, f->r, f->s->alpha, delta);
    for (int i = 0; i < 2; i++) {
        double now = modulus(w, f->n, f->r, f->s->alpha, delta /= 10);
        cgs_at_most(t, now, before / 2, 10);
        before = now;
    }
}

/* a contraction factor that the proposition allows, or 0 when there is none */
static double contraction(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    double least = cgs_cem_beta(f->s->alpha, f->r) + modulus(w, f->n, f->r, f->s->alpha, f->xi);
    if (least < 1) return (least + 1) / 2;
    t->outside = "beta + omega >= 1";
    return 0;
}

/* T_C(nu), all n coordinates; those without cost keep their mean */
static cgs_mat exact_mean(const cgs_facts *f, cgs_work *w, cgs_mat nu, double alpha) {
    cgs_mat l = spectrum(f, w), out = cgs_mat_copy(w, nu);
    cgs_cem_mean(l.x, nu.x, l.rows, alpha, out.x);
    return out;
}

void cgs_check_cem_contraction(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    if (!needs_half(f, t)) return;
    double q = contraction(f, w, t);
    for (int i = 0; i < 3 && q > 0; i++) {
        cgs_mat nu = cgs_random_direction(w, &t->rng, f->n, 0.05);
        double e = cgs_leading_norm(f, nu);
        cgs_at_most(t, cgs_leading_norm(f, exact_mean(f, w, nu, f->s->alpha)), q * e, e);
    }
}

typedef struct candidate {
    double cost;
    int index;
} candidate;

static int by_cost(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    return (x->cost > y->cost) - (x->cost < y->cost);
}

/* mean of the `elite` cheapest of K candidates */
static cgs_mat sampled_mean(const cgs_facts *f, cgs_work *w, cgs_rng *r, cgs_mat nu, int K,
                            int elite, candidate *order) {
    cgs_mat mean = cgs_mat_new(w, f->n, 1);
    cgs_rng again = *r; /* candidates are drawn twice instead of stored */
    for (int k = 0; k < K; k++) {
        order[k] = (candidate){0, k};
        for (int i = 0; i < f->n; i++)
            order[k].cost += f->lambda.x[i] * pow(nu.x[i] + cgs_rng_normal(r), 2);
    }
    qsort(order, (size_t)K, sizeof *order, by_cost);
    for (int e = 0; e < elite; e++) {
        cgs_rng at = {again.key, again.n + (uint64_t)order[e].index * (uint64_t)f->n};
        for (int i = 0; i < f->n; i++) mean.x[i] += (nu.x[i] + cgs_rng_normal(&at)) / elite;
    }
    return mean;
}

enum { CEM_K = 2000 };

static double sampling_bound(const cgs_facts *f, double R, double alpha, double zeta) {
    double K = CEM_K, RK = R + sqrt(f->r) + sqrt(2 * log(3 * K / zeta));
    return CGS_CONC_MEAN * (1 + R) / alpha * sqrt(f->r * log(6 * f->r / zeta) / K) +
           RK / alpha * sqrt(log(6 / zeta) / (2 * K));
}

void cgs_check_cem_sampling(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    if (!cgs_needs_xi(f, t) || !cgs_needs_latents(f, t)) return;
    candidate order[CEM_K];
    int elite = (int)round(f->s->alpha * CEM_K);
    double alpha = (double)elite / CEM_K, R = cgs_rng_range(&t->rng, 0.1, 2);
    cgs_mat nu = cgs_random_direction(w, &t->rng, f->n, R);
    cgs_mat sampled = sampled_mean(f, w, &t->rng, nu, CEM_K, elite, order);
    cgs_mat off = cgs_plus(w, sampled, -1, exact_mean(f, w, nu, alpha));
    cgs_at_most(t, cgs_leading_norm(f, off), sampling_bound(f, R, alpha, CGS_ZETA), 1);
}

void cgs_check_cem_recursion(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    enum { I = 3 };
    const double R = 1;
    if (!needs_half(f, t)) return;
    candidate order[CEM_K];
    int elite = (int)round(f->s->alpha * CEM_K);
    double alpha = (double)elite / CEM_K, q = contraction(f, w, t);
    if (q == 0) return;
    double noise = sampling_bound(f, R, alpha, CGS_ZETA / I);
    cgs_mat nu = cgs_random_direction(w, &t->rng, f->n, 0.3);
    double first = cgs_leading_norm(f, nu), e = first;
    for (int i = 0; i < I; i++) {
        double pulled = cgs_leading_norm(f, exact_mean(f, w, nu, alpha));
        if (cgs_norm_fro(nu) > R || pulled > q * e) {
            t->outside = "no exit before I";
            return;
        }
        nu = sampled_mean(f, w, &t->rng, nu, CEM_K, elite, order);
        e = cgs_leading_norm(f, nu);
    }
    cgs_at_most(t, e, pow(q, I) * first + (1 - pow(q, I)) / (1 - q) * noise, 1);
}

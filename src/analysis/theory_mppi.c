/* theory_mppi.c - MPPI's mean update and planning cost (Section 4.2, Appendix D.4). */
#include <math.h>

#include "analysis/theory_internal.h"

static double curvature(const cgs_facts *f, int i) { return f->lambda.x[i] / (f->c * f->H); }

static cgs_mat mppi_exact(const cgs_facts *f, cgs_work *w, cgs_mat nu) {
    cgs_mat out = cgs_mat_copy(w, nu);
    for (int i = 0; i < f->n; i++) out.x[i] /= 1 + f->s_mppi * curvature(f, i);
    return out;
}

cgs_mat cgs_mppi_update(const cgs_facts *f, cgs_work *w, cgs_rng *r, cgs_mat nu, int K) {
    cgs_mat sum = cgs_mat_new(w, f->n, 1);
    size_t mark = cgs_work_mark(w);
    cgs_mat x = cgs_mat_new(w, f->n, 1);
    double total = 0;
    for (int k = 0; k < K; k++) {
        double cost = 0;
        for (int i = 0; i < f->n; i++) {
            x.x[i] = nu.x[i] + cgs_rng_normal(r);
            cost += curvature(f, i) * x.x[i] * x.x[i];
        }
        double weight = exp(-f->s_mppi / 2 * cost);
        total += weight;
        for (int i = 0; i < f->n; i++) sum.x[i] += weight * x.x[i];
    }
    for (int i = 0; i < f->n; i++) sum.x[i] /= total;
    cgs_work_release(w, mark);
    return sum;
}

double cgs_mppi_rate(const cgs_facts *f) { return 1 / (1 + f->s_mppi * curvature(f, f->r - 1)); }

double cgs_normalizer_low(const cgs_facts *f, double R) {
    double s = f->s_mppi;
    return exp(-R * R / 2) /
           (pow(1 + s * (1 + f->xi), f->r / 2.0) * pow(1 + s * f->xi, (f->n - f->r) / 2.0));
}

double cgs_least_samples(const cgs_facts *f, double R, double zeta) {
    double Z = cgs_normalizer_low(f, R);
    return 8 / (Z * Z) * log(4 / zeta);
}

double cgs_mppi_sampling_bound(const cgs_facts *f, double R, double K, double zeta) {
    return CGS_CONC_RATIO * (1 + R) / cgs_normalizer_low(f, R) *
           sqrt(f->r * log(4 * f->r / zeta) / K);
}

/* total weight and weighted mean of N(m, 1) under exp(-l x^2 / 2), by the trapezoidal rule,
 * which converges faster than any power for such integrands */
static void tilt(double m, double l, double *weight, double *mean) {
    double step = 0.1 / sqrt(1 + l), middle = m / (1 + l); /* the range of the integrand */
    *weight = *mean = 0;
    for (int i = -120; i <= 120; i++) {
        double x = middle + i * step, p = exp(-(x - m) * (x - m) / 2 - l * x * x / 2);
        *weight += p * step / sqrt(2 * acos(-1));
        *mean += p * x * step / sqrt(2 * acos(-1));
    }
    *mean /= *weight;
}

static cgs_mat resolvent(const cgs_facts *f, cgs_work *w, cgs_mat M) {
    cgs_mat one = cgs_identity(w, f->n);
    return cgs_solve(w, cgs_plus(w, one, f->s_mppi, M), one);
}

void cgs_check_mppi_map(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    cgs_mat nu = cgs_random_normal(w, &t->rng, f->n, 1), next = cgs_mul(w, f->V, nu);
    next = cgs_mul_tn(w, f->V, cgs_mul(w, resolvent(f, w, f->M), next));
    for (int i = 0; i < f->n; i++) {
        double weight, mean;
        tilt(nu.x[i], f->s_mppi * curvature(f, i), &weight, &mean);
        cgs_equal(t, next.x[i], mean, 1);
    }
    /* the same in plans: (I + sigma^2/tau G) mean' = mean + sigma^2/tau G a* */
    double ratio = f->s->sigma * f->s->sigma / f->s->tau;
    cgs_mat mean = cgs_plus(w, f->best, f->s->sigma, cgs_mul(w, f->V, nu));
    cgs_mat left = cgs_plus(w, cgs_identity(w, f->n), ratio, f->G);
    cgs_mat right = cgs_plus(w, mean, ratio, cgs_mul(w, f->G, f->best));
    cgs_mat moved = cgs_plus(w, f->best, f->s->sigma, cgs_mul(w, f->V, next));
    cgs_mat off = cgs_plus(w, cgs_solve(w, left, right), -1, moved);
    cgs_equal(t, cgs_norm_fro(off), 0, 1 + cgs_norm_fro(f->best));
}

/* J restricted to the leading space */
static cgs_mat leading(const cgs_facts *f, cgs_work *w, cgs_mat J) {
    cgs_mat v = cgs_submatrix(w, f->V, 0, 0, f->n, f->r);
    return cgs_mul_tn(w, v, cgs_mul(w, J, v));
}

void cgs_check_mppi_contraction(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    if (!cgs_needs_xi(f, t) || !cgs_needs_latents(f, t)) return;
    double q = cgs_norm_op(w, leading(f, w, resolvent(f, w, f->M)));
    double ratio = f->s->sigma * f->s->sigma / f->s->tau;
    cgs_equal(t, q, 1 / (1 + ratio * f->lambda.x[f->r - 1]), 1);
    cgs_at_most(t, q, 1 / (1 + f->s_mppi * (1 - f->xi)), 1);
}

void cgs_check_mppi_condition(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    if (!cgs_needs_xi(f, t) || !cgs_needs_latents(f, t)) return;
    cgs_mat s = cgs_singular(w, leading(f, w, resolvent(f, w, f->M)));
    double sm = f->s_mppi;
    cgs_at_most(t, s.x[0] / s.x[f->r - 1], (1 + sm * (1 + f->xi)) / (1 + sm * (1 - f->xi)), 1);
}

/* J_M^0 */
static cgs_mat ideal_jacobian(const cgs_facts *f, cgs_work *w) {
    return cgs_plus(w, cgs_identity(w, f->n), 1 / (1 + f->s_mppi) - 1, f->P);
}

void cgs_check_mppi_ideal(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    cgs_mat off = cgs_plus(w, resolvent(f, w, f->P), -1, ideal_jacobian(f, w));
    cgs_equal(t, cgs_norm_op(w, off), 0, 1);
}

void cgs_check_mppi_perturbation(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    if (!cgs_needs_xi(f, t)) return;
    cgs_mat off = cgs_plus(w, resolvent(f, w, f->M), -1, ideal_jacobian(f, w));
    cgs_at_most(t, cgs_norm_op(w, off), f->s_mppi * f->xi, 1e-2);
}

void cgs_check_mppi_controllable(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    int k = f->controllable;
    if (k < 1) {
        t->outside = "rank 0";
        return;
    }
    cgs_mat v = cgs_submatrix(w, f->V, 0, 0, f->n, k), J = resolvent(f, w, f->M);
    double gamma = curvature(f, k - 1);
    cgs_at_most(t, cgs_norm_op(w, cgs_mul_tn(w, v, cgs_mul(w, J, v))), 1 / (1 + f->s_mppi * gamma),
                1);
}

void cgs_check_normalizer(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    if (!cgs_needs_xi(f, t) || !cgs_needs_latents(f, t)) return;
    double R = cgs_rng_range(&t->rng, 0.1, 2), Z = 1, whole = 1, exponent = 0;
    cgs_mat nu = cgs_random_direction(w, &t->rng, f->n, R);
    for (int i = 0; i < f->n; i++) {
        double weight, mean, l = f->s_mppi * curvature(f, i);
        tilt(nu.x[i], l, &weight, &mean);
        Z *= weight;
        whole /= sqrt(1 + l);
        exponent -= nu.x[i] * nu.x[i] * l / (1 + l) / 2;
    }
    cgs_equal(t, Z, whole * exp(exponent), Z);
    cgs_at_most(t, cgs_normalizer_low(f, R), Z, Z);
}

/* the number of samples for the radius, or 0 when out of reach */
static int samples(const cgs_facts *f, cgs_theory_trial *t, double R, double zeta) {
    double least = cgs_least_samples(f, R, zeta);
    if (least <= CGS_SAMPLES_MAX) return (int)ceil(least);
    t->outside = "least K within 5000";
    return 0;
}

void cgs_check_mppi_sampling(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    if (!cgs_needs_xi(f, t) || !cgs_needs_latents(f, t)) return;
    double R = cgs_rng_range(&t->rng, 0.1, 1);
    int K = samples(f, t, R, CGS_ZETA);
    if (!K) return;
    cgs_mat nu = cgs_random_direction(w, &t->rng, f->n, R);
    cgs_mat off = cgs_plus(w, cgs_mppi_update(f, w, &t->rng, nu, K), -1, mppi_exact(f, w, nu));
    cgs_at_most(t, cgs_leading_norm(f, off), cgs_mppi_sampling_bound(f, R, K, CGS_ZETA), 1);
}

/* C(mean) - C(a*), by rolling the plan out */
static double cost_gap(const cgs_facts *f, cgs_work *w, cgs_mat nu) {
    cgs_mat plan = cgs_plus(w, f->best, f->s->sigma, cgs_mul(w, f->V, nu));
    return fmax(cgs_system_cost(f->s, w, plan) - cgs_system_cost(f->s, w, f->best), 0);
}

void cgs_check_cost_recursion(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    enum { I = 3 };
    const double R = 1;
    if (!cgs_needs_xi(f, t) || !cgs_needs_rank_da(f, t)) return;
    int K = samples(f, t, R, CGS_ZETA / I);
    if (!K) return;
    double q = cgs_mppi_rate(f), b = f->s->sigma * sqrt(f->c * f->H * (1 + f->xi) / 2) *
                                     cgs_mppi_sampling_bound(f, R, K, CGS_ZETA / I);
    cgs_mat nu = cgs_random_direction(w, &t->rng, f->n, 0.5);
    double first = sqrt(cost_gap(f, w, nu)), before = first, after = first;
    for (int i = 0; i < I; i++) {
        if (cgs_norm_fro(nu) > R) {
            t->outside = "no exit before I";
            return;
        }
        nu = cgs_mppi_update(f, w, &t->rng, nu, K);
        after = sqrt(cost_gap(f, w, nu));
        cgs_at_most(t, after, q * before + b, b);
        before = after;
    }
    double bound = pow(q, I) * first + (1 - pow(q, I)) / (1 - q) * b;
    cgs_at_most(t, after * after, bound * bound, b * b);
}

void cgs_check_cost_budget(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    if (!cgs_needs_xi(f, t) || !cgs_needs_rank_da(f, t)) return;
    double q = cgs_mppi_rate(f);
    double gap = cost_gap(f, w, cgs_random_direction(w, &t->rng, f->n, 1));
    double want = gap * pow(10, cgs_rng_range(&t->rng, -4, -0.1));
    double I = ceil(log(4 * gap / want) / (-2 * log(q))), b = (1 - q) / 2 * sqrt(want);
    double root = sqrt(gap);
    if (I > 1e6) {
        t->outside = "q far enough below 1 to unroll";
        return;
    }
    for (int i = 0; i < (int)I; i++) root = q * root + b;
    cgs_at_most(t, root * root, want, want);
}

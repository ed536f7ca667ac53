/* theory_gauss_newton.c - sampled Gauss-Newton on a linear system.
 *
 * With m = K - 1 directions, rows of A drawn from N(0, I), the step minimises the cost plus
 * gamma/2 |a - start|^2 over plan + range(A^T).  The Hessian of that sum is H = G + gamma I, and
 * e = plan - best is the error.  Proofs:
 *
 *  - The step subtracts from e its H-orthogonal projection on range(A^T): the error is orthogonal
 * to the directions, its H-norm does not grow, and it is 0 where they span all plans.
 *  - With gamma = 0 and m >= rank G the directions' responses span the range of Gamma, so that the
 *    least cost is reached, however many values a plan has.
 *  - H = h I: the directions are rotation invariant, and a share of m / n of |e|^2 is projected.
 *  - In the eigenbasis of H split e into the r leading coordinates and the others.  w = the
 * shortest weights that cancel the leading ones leaves A_T^T w more in the others, where A_T is
 * independent of w and E |w|^2 = |e_L|^2 / (m - r - 1), the mean of an inverse Wishart matrix; the
 * cross term has mean 0.  The step is at least as good as these weights: E |e'|_H^2 <= |e_T|_H^2 +
 * tr H_T / (m - r - 1) |e_L|^2. */
#include <math.h>

#include "analysis/theory_internal.h"

enum { DRAWS = 300 };

/* G + gamma I, gamma on the scale of c H */
static cgs_mat hessian(const cgs_facts *f, cgs_work *w, double gamma) {
    return cgs_plus(w, f->G, gamma, cgs_identity(w, f->n));
}

/* the error after a step along the rows of A (m, n) */
static cgs_mat step(cgs_work *w, cgs_mat H, cgs_mat A, cgs_mat e) {
    cgs_mat AH = cgs_mul(w, A, H);
    cgs_mat weights = cgs_solve(w, cgs_mul_nt(w, AH, A), cgs_mul(w, AH, e));
    return cgs_plus(w, e, -1, cgs_mul_tn(w, A, weights));
}

static double square(cgs_work *w, cgs_mat H, cgs_mat e) { return cgs_dot(e, cgs_mul(w, H, e)); }

void cgs_check_gn_span(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    double gamma = f->c * f->H * pow(10, cgs_rng_range(&t->rng, -2, 1));
    cgs_mat A = cgs_random_normal(w, &t->rng, f->n, f->n), H = hessian(f, w, gamma);
    cgs_mat start = cgs_random_normal(w, &t->rng, f->n, 1);
    /* best of the sum: (G + gamma I) best = G a* + gamma start */
    cgs_mat right = cgs_plus(w, cgs_mul(w, f->G, f->best), gamma, start);
    cgs_mat best = cgs_solve(w, H, right);
    /* by the formula of the planner, with residuals rolled out from the start */
    cgs_mat Z = cgs_mul_nt(w, A, f->gamma);
    cgs_mat S = cgs_plus(w, cgs_mul_nt(w, Z, Z), gamma, cgs_mul_nt(w, A, A));
    cgs_mat r = cgs_mul(w, f->gamma, cgs_plus(w, f->best, -1, start));
    cgs_mat plan = cgs_plus(w, start, 1, cgs_mul_tn(w, A, cgs_solve(w, S, cgs_mul(w, Z, r))));
    cgs_mat off = cgs_plus(w, plan, -1, best);
    /* square Gaussian matrices can be close to singular */
    cgs_equal_within(t, cgs_norm_fro(off), 0, 1 + cgs_norm_fro(f->best), 1e-4);
}

void cgs_check_gn_projection(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    int m = 1 + (int)cgs_rng_below(&t->rng, (uint64_t)f->n);
    double gamma = f->c * f->H * pow(10, cgs_rng_range(&t->rng, -2, 1));
    cgs_mat H = hessian(f, w, gamma), A = cgs_random_normal(w, &t->rng, m, f->n);
    cgs_mat e = cgs_random_normal(w, &t->rng, f->n, 1), after = step(w, H, A, e);
    double before = square(w, H, e), rest = square(w, H, after);
    cgs_mat removed = cgs_plus(w, e, -1, after);
    cgs_equal_within(t, rest + square(w, H, removed), before, before, 1e-6);
    cgs_at_most(t, rest, before, before);
}

void cgs_check_gn_rank(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    int m = f->controllable; /* of n directions */
    if (m < 1) {
        t->outside = "rank 0";
        return;
    }
    cgs_mat A = cgs_random_normal(w, &t->rng, m, f->n);
    cgs_mat e = cgs_random_normal(w, &t->rng, f->n, 1);
    cgs_mat Z = cgs_mul_nt(w, A, f->gamma), r = cgs_scaled(w, -1, cgs_mul(w, f->gamma, e));
    cgs_mat weights = cgs_least_squares(w, cgs_transpose(w, Z), r);
    cgs_mat after = cgs_plus(w, e, 1, cgs_mul_tn(w, A, weights));
    double before = square(w, f->G, e);
    cgs_equal_within(t, square(w, f->G, after), 0, before, 1e-6);
}

/* mean and standard error of the error's H-norm after steps along m fresh directions */
static double expected(cgs_work *w, cgs_rng *r, cgs_mat H, cgs_mat e, int m, double *error) {
    double sum = 0, squares = 0;
    for (int i = 0; i < DRAWS; i++) {
        size_t mark = cgs_work_mark(w);
        cgs_mat A = cgs_random_normal(w, r, m, e.rows);
        double v = square(w, H, step(w, H, A, e));
        sum += v;
        squares += v * v;
        cgs_work_release(w, mark);
    }
    *error = sqrt(fmax(squares / DRAWS - sum / DRAWS * sum / DRAWS, 0) / DRAWS);
    return sum / DRAWS;
}

void cgs_check_gn_even(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    if (f->n < 2) {
        t->outside = "n > 1";
        return;
    }
    int m = 1 + (int)cgs_rng_below(&t->rng, (uint64_t)f->n - 1);
    cgs_mat e = cgs_random_direction(w, &t->rng, f->n, 1);
    double error, mean = expected(w, &t->rng, cgs_identity(w, f->n), e, m, &error);
    cgs_mean_is(t, mean, error, 1 - (double)m / f->n);
}

/* H of the eigenvalues of G, from the largest down */
static cgs_mat diagonal(const cgs_facts *f, cgs_work *w, double gamma, double *tail) {
    cgs_mat H = cgs_mat_new(w, f->n, f->n);
    *tail = 0;
    for (int i = 0; i < f->n; i++) {
        CGS_AT(H, i, i) = fmax(f->lambda.x[i], 0) + gamma;
        if (i >= f->r) *tail += CGS_AT(H, i, i);
    }
    return H;
}

void cgs_check_gn_rate(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    if (f->n < f->r + 2) {
        t->outside = "n >= r + 2";
        return;
    }
    int m = f->r + 2 + (int)cgs_rng_below(&t->rng, (uint64_t)(f->n - f->r - 1)); /* ... n */
    double gamma = f->c * f->H * pow(10, cgs_rng_range(&t->rng, -4, 0)), tail, error;
    cgs_mat H = diagonal(f, w, gamma, &tail), e = cgs_random_direction(w, &t->rng, f->n, 1);
    double others = 0, leading = 0;
    for (int i = 0; i < f->n; i++) {
        if (i < f->r) leading += e.x[i] * e.x[i];
        if (i >= f->r) others += CGS_AT(H, i, i) * e.x[i] * e.x[i];
    }
    double mean = expected(w, &t->rng, H, e, m, &error);
    double bound = others + tail / (m - f->r - 1) * leading;
    cgs_at_most(t, mean - CGS_DEVIATIONS * error, bound, bound);
}

void cgs_check_gn_cgs(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    if (!cgs_needs_xi(f, t) || !cgs_needs_latents(f, t)) return;
    if (f->n < f->r + 2) {
        t->outside = "n >= r + 2";
        return;
    }
    int m = f->r + 2 + (int)cgs_rng_below(&t->rng, (uint64_t)(f->n - f->r - 1));
    double unit = f->c * f->H, g = pow(10, cgs_rng_range(&t->rng, -4, 0)), tail;
    diagonal(f, w, g * unit, &tail);
    double rate = tail / ((m - f->r - 1) * (f->lambda.x[f->r - 1] + g * unit));
    double bound = (f->n - f->r) * (f->xi + g) / ((1 - f->xi + g) * (m - f->r - 1));
    cgs_at_most(t, rate, bound, bound);
}

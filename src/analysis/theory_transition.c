/* theory_transition.c - from the loss to the geometry of one step (Section 4.1, Appendix D.1). */
#include <math.h>

#include "analysis/theory_internal.h"

static bool needs_coverage(const cgs_facts *f, cgs_theory_trial *t) {
    if (f->rho > 0) return true;
    t->outside = "singular covariance";
    return false;
}

static cgs_mat column(cgs_work *w, cgs_mat a, int j) {
    return cgs_submatrix(w, a, 0, j, a.rows, 1);
}

/* a point of the sphere */
static cgs_mat on_sphere(cgs_work *w, cgs_rng *r, int n, double radius) {
    cgs_mat x = cgs_random_normal(w, r, n, 1);
    return cgs_scaled(w, radius / cgs_norm_fro(x), x);
}

/* Finite set, each point with the same weight, that has the system's second moment:
 * columns of sqrt(n) cov^1/2 times a rotation. */
static cgs_mat support(const cgs_facts *f, cgs_work *w, cgs_rng *r) {
    int n = f->d + f->da;
    cgs_mat u = cgs_random_rotation(w, r, n);
    return cgs_scaled(w, sqrt(n), cgs_mul(w, cgs_power(w, f->s->cov, 0.5), u));
}

/* dz^T dz' - c a^T a' of two points [z; a], from the dynamics */
static double pair_error(const cgs_facts *f, cgs_work *w, cgs_mat x, cgs_mat y) {
    size_t mark = cgs_work_mark(w);
    cgs_mat a = {f->da, 1, x.x + f->d}, b = {f->da, 1, y.x + f->d};
    cgs_mat zx = {f->d, 1, x.x}, zy = {f->d, 1, y.x};
    cgs_mat dx = cgs_plus(w, cgs_mul(w, f->D, zx), 1, cgs_mul(w, f->s->B, a));
    cgs_mat dy = cgs_plus(w, cgs_mul(w, f->D, zy), 1, cgs_mul(w, f->s->B, b));
    double e = cgs_dot(dx, dy) - f->c * cgs_dot(a, b);
    cgs_work_release(w, mark);
    return e;
}

void cgs_check_fixed_radius(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    enum { POINTS = 8 };
    cgs_mat s = cgs_singular(w, f->D);
    if (s.x[f->d - 1] < 1e-3 * s.x[0] || s.x[0] < 1e-3) {
        t->outside = "D invertible";
        return;
    }
    cgs_mat x[POINTS], dz[POINTS];
    for (int i = 0; i < POINTS; i++) {
        cgs_mat a = on_sphere(w, &t->rng, f->da, 1);
        dz[i] = on_sphere(w, &t->rng, f->d, sqrt(f->c)); /* c = r_delta^2 / r_a^2 */
        cgs_mat z = cgs_solve(w, f->D, cgs_plus(w, dz[i], -1, cgs_mul(w, f->s->B, a)));
        x[i] = cgs_mat_new(w, f->d + f->da, 1);
        cgs_put_submatrix(x[i], 0, 0, z);
        cgs_put_submatrix(x[i], f->d, 0, a);
    }
    double cosine = 0, gram = 0;
    for (int i = 0; i < POINTS; i++)
        for (int j = 0; j < POINTS; j++) {
            cgs_mat a = {f->da, 1, x[i].x + f->d}, b = {f->da, 1, x[j].x + f->d};
            double e = cgs_dot(dz[i], dz[j]) / (cgs_norm_fro(dz[i]) * cgs_norm_fro(dz[j])) -
                       cgs_dot(a, b) / (cgs_norm_fro(a) * cgs_norm_fro(b));
            cosine += e * e / (POINTS * POINTS);
            gram += pow(pair_error(f, w, x[i], x[j]), 2) / (POINTS * POINTS);
        }
    cgs_equal(t, cosine, gram / (f->c * f->c), 1);
}

void cgs_check_coverage(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    cgs_mat x = support(f, w, &t->rng);
    double largest = 0;
    for (int j = 0; j < x.cols; j++) largest = fmax(largest, cgs_norm_fro(column(w, x, j)));
    cgs_at_most(t, f->rho_bar, largest * largest, f->rho_bar);
}

void cgs_check_innovation(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    int d = f->d, da = f->da;
    cgs_mat z = cgs_submatrix(w, f->s->cov, 0, 0, d, d),
            az = cgs_submatrix(w, f->s->cov, d, 0, da, d);
    cgs_mat zv, av, xv, v;
    cgs_eigen(w, z, &zv, &v);
    if (zv.x[d - 1] <= 1e-10 * zv.x[0]) {
        t->outside = "singular covariance of z";
        return;
    }
    cgs_mat za = cgs_transpose(w, az);
    cgs_mat rest = cgs_plus(w, cgs_submatrix(w, f->s->cov, d, d, da, da), -1,
                            cgs_mul(w, az, cgs_solve(w, z, za)));
    cgs_eigen(w, rest, &av, &v);
    cgs_eigen(w, f->s->cov, &xv, &v);
    double parts = 1, whole = 1, largest = 1;
    for (int i = 0; i < d; i++) parts *= zv.x[i];
    for (int i = 0; i < da; i++) parts *= av.x[i];
    for (int i = 0; i < d + da; i++) {
        whole *= xv.x[i];
        largest *= xv.x[0];
    }
    cgs_equal(t, parts, whole, f->rho > 0 ? whole : largest);
}

void cgs_check_trace_identity(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    cgs_mat x = support(f, w, &t->rng), root = cgs_power(w, f->s->cov, 0.5);
    double sum = 0, n = x.cols;
    for (int i = 0; i < x.cols; i++)
        for (int j = 0; j < x.cols; j++) {
            size_t mark = cgs_work_mark(w);
            sum += pow(pair_error(f, w, column(w, x, i), column(w, x, j)), 2) / (n * n);
            cgs_work_release(w, mark);
        }
    double scale = fmax(f->loss, 1e-4 * pow(f->rho_bar * f->c, 2));
    cgs_equal(t, sum, f->loss, scale);
    double norm = cgs_norm_fro(cgs_mul(w, root, cgs_mul(w, f->Q, root)));
    cgs_equal(t, norm * norm, f->loss, scale);
}

void cgs_check_trace_sampled(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    enum { PAIRS = 2048 };
    int n = f->d + f->da;
    cgs_mat root = cgs_scaled(w, sqrt(n), cgs_power(w, f->s->cov, 0.5));
    double mean = 0, square = 0;
    for (int i = 0; i < PAIRS; i++) {
        size_t mark = cgs_work_mark(w);
        cgs_mat x = cgs_mul(w, root, on_sphere(w, &t->rng, n, 1));
        cgs_mat y = cgs_mul(w, root, on_sphere(w, &t->rng, n, 1));
        double e = pair_error(f, w, x, y);
        mean += e * e / PAIRS;
        square += e * e * e * e / PAIRS;
        cgs_work_release(w, mark);
    }
    cgs_mean_is(t, mean, sqrt(fmax(square - mean * mean, 0) / PAIRS), f->loss);
}

void cgs_check_defect_blocks(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    (void)w;
    cgs_equal(t, f->defect, cgs_dot(f->Q, f->Q), fmax(f->defect, 1e-4 * f->c * f->c));
}

void cgs_check_sandwich_low(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    (void)w;
    if (needs_coverage(f, t)) cgs_at_most(t, f->rho * f->rho * f->defect, f->loss, f->loss);
}

void cgs_check_sandwich_high(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    (void)w;
    cgs_at_most(t, f->loss, f->rho_bar * f->rho_bar * f->defect, f->loss);
}

void cgs_check_zero_loss(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    if (!needs_coverage(f, t) || !cgs_needs_latents(f, t)) return;
    cgs_system ideal = cgs_ideal_system(f, w, &t->rng);
    cgs_facts g;
    cgs_facts_derive(&g, &ideal, w);
    cgs_equal(t, g.loss, 0, pow(f->rho_bar * f->c, 2));
    /* the other direction: a loss of 0 leaves no room for a defect */
    cgs_at_most(t, f->defect, f->loss / (f->rho * f->rho), f->defect);
}

void cgs_check_data_subspace(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    int n = f->d + f->da, rank = 1 + (int)cgs_rng_below(&t->rng, (uint64_t)n - 1);
    cgs_mat values, v;
    cgs_eigen(w, f->s->cov, &values, &v);
    while (rank > 1 && values.x[rank - 1] <= 1e-10 * values.x[0]) rank--;
    cgs_mat u = cgs_submatrix(w, v, 0, 0, n, rank), scaled = cgs_mat_copy(w, u);
    for (int k = 0; k < rank; k++)
        for (int i = 0; i < n; i++) CGS_AT(scaled, i, k) *= values.x[k];
    cgs_mat cov = cgs_mul_nt(w, scaled, u); /* singular: rank < n */
    cgs_mat QS = cgs_mul(w, f->Q, cov), inside = cgs_mul_tn(w, u, cgs_mul(w, f->Q, u));
    double loss = cgs_trace(cgs_mul(w, QS, QS)), square = cgs_dot(inside, inside), sum = 0;
    for (int i = 0; i < rank; i++)
        for (int j = 0; j < rank; j++)
            sum += values.x[i] * values.x[j] * pow(CGS_AT(inside, i, j), 2);
    double scale = fmax(loss, 1e-4 * pow(values.x[0] * f->c, 2)), low = values.x[rank - 1];
    cgs_equal(t, loss, sum, scale);
    cgs_at_most(t, low * low * square, loss, scale);
    cgs_at_most(t, loss, values.x[0] * values.x[0] * square, scale);
}

void cgs_check_few_latents(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    (void)w;
    if (f->d >= f->da)
        t->outside = "d >= d_a";
    else if (needs_coverage(f, t))
        cgs_at_most(t, pow(f->rho * f->c, 2) * (f->da - f->d), f->loss, f->loss);
}

void cgs_check_loss_to_bounds(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    (void)w;
    if (!needs_coverage(f, t)) return;
    double e = f->eps_loss;
    cgs_at_most(t, f->drift * f->drift, e, 1e-2);
    cgs_at_most(t, f->mixed, sqrt(f->c) * e, 1e-2 * f->c);
    cgs_at_most(t, f->control, f->c * e, 1e-2 * f->c);
}

void cgs_check_loss_to_frobenius(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    if (!needs_coverage(f, t)) return;
    double l = sqrt(f->loss) / f->rho, scale = 1e-2 * f->c;
    cgs_mat control = cgs_submatrix(w, f->Q, f->d, f->d, f->da, f->da);
    cgs_at_most(t, cgs_norm_fro(cgs_mul_tn(w, f->D, f->D)), l, scale);
    cgs_at_most(t, cgs_norm_fro(cgs_mul_tn(w, f->D, f->s->B)), l / sqrt(2), scale);
    cgs_at_most(t, cgs_norm_fro(control), l, scale);
}

void cgs_check_control_condition(const cgs_facts *f, cgs_work *w, cgs_theory_trial *t) {
    if (f->eps >= 1) {
        t->outside = "eps >= 1";
        return;
    }
    cgs_mat s = cgs_singular(w, f->s->B);
    cgs_at_most(t, pow(s.x[0] / s.x[f->da - 1], 2), (1 + f->eps) / (1 - f->eps), 1);
}

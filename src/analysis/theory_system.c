/* theory_system.c - see theory_system.h. */
#include "analysis/theory_system.h"

#include <assert.h>
#include <math.h>

#include "analysis/quadratic_form.h"
#include "analysis/theory_internal.h"

typedef struct list {
    cgs_quantity *item;
    int count;
} list;

static void add(list *l, const char *name, double value, const char *outside) {
    assert(l->count < CGS_QUANTITIES_MAX);
    l->item[l->count++] = (cgs_quantity){name, value, outside};
}

/* mean of (dz.dz' - c a.a')^2 over pairs with the given second moment, and its standard error */
static void sampled_loss(const cgs_facts *f, cgs_work *w, uint64_t seed, double *mean,
                         double *error) {
    enum { PAIRS = 20000 };
    cgs_rng r = cgs_rng_stream(seed, CGS_STREAM_THEORY, UINT64_C(1) << 40);
    size_t mark = cgs_work_mark(w);
    cgs_mat root = cgs_power(w, f->s->cov, 0.5);
    double square = 0;
    *mean = 0;
    for (int i = 0; i < PAIRS; i++) {
        size_t pair = cgs_work_mark(w);
        cgs_mat x = cgs_mul(w, root, cgs_random_normal(w, &r, root.rows, 1));
        cgs_mat y = cgs_mul(w, root, cgs_random_normal(w, &r, root.rows, 1));
        double e = pow(cgs_dot(x, cgs_mul(w, f->Q, y)), 2);
        *mean += e / PAIRS;
        square += e * e / PAIRS;
        cgs_work_release(w, pair);
    }
    *error = sqrt(fmax(square - *mean * *mean, 0) / PAIRS);
    cgs_work_release(w, mark);
}

static void transition(const cgs_facts *f, cgs_work *w, uint64_t seed, list *l) {
    const char *singular = f->rho > 0 ? NULL : "singular covariance";
    double mean, error;
    sampled_loss(f, w, seed, &mean, &error);
    add(l, "L_G, trace formula", f->loss, NULL);
    add(l, "L_G, sampled", mean, NULL);
    add(l, "L_G, standard error of the sample", error, NULL);
    add(l, "rho", f->rho, singular);
    add(l, "rho_bar", f->rho_bar, NULL);
    add(l, "R(A,B)", f->defect, NULL);
    add(l, "rho^2 R", f->rho * f->rho * f->defect, singular);
    add(l, "rho_bar^2 R", f->rho_bar * f->rho_bar * f->defect, NULL);
    add(l, "|D|", f->drift, NULL);
    add(l, "|D^T B|", f->mixed, NULL);
    add(l, "|B^T B - cI|", f->control, NULL);
    add(l, "eps from the loss", f->eps_loss, singular);
    add(l, "eps, the least for the three bounds", f->eps, f->eps < 1 ? NULL : "eps >= 1");
}

/* why xi_H, or bounds that need it below 1, are missing */
static const char *no_xi(const cgs_facts *f, bool below_one) {
    if (f->eps >= 1) return "eps >= 1";
    if (below_one && f->xi >= 1) return "xi_H >= 1";
    return f->d < f->da ? "d < d_a" : NULL;
}

static void horizon(const cgs_facts *f, list *l) {
    double unit = f->c * f->H, xi = f->xi;
    const char *out = no_xi(f, true);
    int k = f->controllable;
    add(l, "xi_H", xi, no_xi(f, false) ? no_xi(f, false) : xi < 1 ? NULL : "xi_H >= 1");
    add(l, "|G_H/(cH) - P_H|", f->gap, NULL);
    add(l, "bound without the mixed defect", f->eps_ts < 1 ? cgs_xi_ts(f->H, f->eps_ts) : NAN,
        f->eps_ts < 1 ? NULL : "eps >= 1");
    add(l, "rank of gamma", k, NULL);
    add(l, "lambda_1(G_H)", f->lambda.x[0], NULL);
    add(l, "lambda_r(G_H)", f->lambda.x[f->r - 1], NULL);
    add(l, "interval, low", unit * (1 - xi), out);
    add(l, "interval, high", unit * (1 + xi), out);
    add(l, "kappa_eff(G_H)", k ? f->lambda.x[0] / f->lambda.x[k - 1] : NAN, k ? NULL : "rank 0");
    add(l, "kappa on the leading d_a", f->lambda.x[0] / f->lambda.x[f->r - 1],
        f->r <= k ? NULL : "rank < d_a");
    add(l, "(1 + xi)/(1 - xi)", (1 + xi) / (1 - xi), out);
    add(l, "gamma_H", k ? f->lambda.x[k - 1] / unit : NAN, k ? NULL : "rank 0");
}

static void planners(const cgs_facts *f, cgs_work *w, list *l) {
    const char *out = no_xi(f, true), *rank = f->r <= f->controllable ? NULL : "rank < d_a";
    double s = f->s_mppi, q = cgs_mppi_rate(f), unit = f->c * f->H, I = 30;
    add(l, "s", s, NULL);
    add(l, "MPPI: q_M", q, rank);
    add(l, "MPPI: 1/(1 + s(1 - xi))", 1 / (1 + s * (1 - f->xi)), out);
    add(l, "MPPI: kappa of the update", (1 + s * f->lambda.x[0] / unit) * q, rank);
    add(l, "MPPI: Z_low(1)", cgs_normalizer_low(f, 1), out);
    add(l, "MPPI: least K, zeta 0.05, 30 updates", cgs_least_samples(f, 1, 0.05 / I), out);
    add(l, "MPPI: updates to a hundredth of the gap", ceil(log(400) / (-2 * log(q))), rank);
    add(l, "CEM: beta", cgs_cem_beta(f->s->alpha, f->r), NULL);
    int k = f->controllable;
    cgs_mat curve = cgs_mat_new(w, k + 1, 1), J = cgs_mat_new(w, k + 1, 1);
    for (int i = 0; i < k; i++) curve.x[i] = f->lambda.x[i] / unit;
    if (k) cgs_cem_jacobian(curve.x, k, f->s->alpha, J.x);
    add(l, "CEM: Jacobian, fastest direction", k ? J.x[0] : NAN, k ? NULL : "rank 0");
    add(l, "CEM: Jacobian, slowest of the leading", J.x[f->r <= k ? f->r - 1 : 0], rank);
    double L = f->lambda.x[0], m = k ? f->lambda.x[k - 1] : NAN;
    add(l, "GD: rate with h = 1/(cH), leading",
        fmax(fabs(1 - L / unit), fabs(1 - f->lambda.x[f->r - 1] / unit)), rank);
    add(l, "GD: best step", 2 / (L + m), k ? NULL : "rank 0");
    add(l, "GD: best rate", (L - m) / (L + m), k ? NULL : "rank 0");
}

static void best_control(const cgs_facts *f, cgs_work *w, list *l) {
    const char *out = f->d < f->da ? "d < d_a" : NULL;
    cgs_mat values, v;
    cgs_eigen(w, cgs_mul_nt(w, f->D, f->D), &values, &v);
    double best = 0, first = 0, last = 0;
    for (int k = 0; k < f->da && !out; k++) {
        double drift = fmax(values.x[f->d - 1 - k], 0), square = fmax(f->c - drift, 0);
        best += 2 * drift * square + (square - f->c) * (square - f->c);
        if (k == 0) first = square;
        last = square;
    }
    cgs_mat DtD = cgs_mul_tn(w, f->D, f->D);
    add(l, "R_B(D,B)", f->defect - cgs_dot(DtD, DtD), NULL);
    add(l, "R_B(D,B*)", best, out);
    add(l, "B*: largest squared singular value", first, out);
    add(l, "B*: smallest squared singular value", last, out);
}

int cgs_system_quantities(const cgs_facts *f, cgs_work *w, uint64_t seed,
                          cgs_quantity out[CGS_QUANTITIES_MAX]) {
    list l = {out, 0};
    size_t mark = cgs_work_mark(w);
    transition(f, w, seed, &l);
    horizon(f, &l);
    planners(f, w, &l);
    best_control(f, w, &l);
    cgs_work_release(w, mark);
    return l.count;
}

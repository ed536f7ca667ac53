/* cgs.c - control-geometry straightening: the angles between latent steps should be
 * the angles between the controls that caused them.
 *   z (B,N+1,D), D_t = z_{t+1} - z_t;  r (B,N,R);  mask (B,N), nonzero = usable, or NULL
 *   saved: Q (1), the number of valid ordered pairs, or of windows that have any
 *
 * With unit vectors v_t of D_t and u_t of r_t, Kz = v v^T, Ka = u u^T and E = Kz - Ka:
 *   loss = mean over valid ordered pairs t != s of E_ts^2
 * over the whole batch, or per window and then over the windows that have a pair.
 * A vector is valid iff it is usable and neither D_t nor r_t is shorter than min_norm.
 * Without a valid pair the loss is 0.  References carry no gradient. */
#include "ops/ref/ref.h"

/* the pairs of one window; the arrays are in the record's scratch */
typedef struct window {
    size_t N, D;
    double pairs;   /* valid ordered ones                      */
    double *length; /* (N) of D_t; 0 where t is not valid      */
    double *Kz, *E; /* (N,N), 0 where the pair is not valid    */
    double *dz;     /* (N+1,D)                                 */
} window;

size_t cgs_ref_cgs_scratch(const cgs_record *r) {
    size_t N = (size_t)r->in[1]->dim[1], D = (size_t)cgs_cols(r->in[0]);
    return (N + 2 * N * N + (N + 1) * D) * sizeof(double);
}

static double delta(const cgs_tensor *z, size_t b, size_t t, size_t d) {
    size_t T = (size_t)z->dim[1], D = (size_t)z->dim[2], at = (b * T + t) * D + d;
    return (double)get(z, at + D) - get(z, at);
}

/* <D_t, D_s> and <r_t, r_s> in window b */
static double dot_z(const cgs_record *r, size_t b, size_t t, size_t s) {
    double sum = 0;
    for (size_t d = 0; d < (size_t)r->in[0]->dim[2]; d++)
        sum += delta(r->in[0], b, t, d) * delta(r->in[0], b, s, d);
    return sum;
}
static double dot_r(const cgs_record *r, size_t b, size_t t, size_t s) {
    size_t N = (size_t)r->in[1]->dim[1], R = (size_t)r->in[1]->dim[2];
    double sum = 0;
    for (size_t i = 0; i < R; i++)
        sum += (double)get(r->in[1], (b * N + t) * R + i) * get(r->in[1], (b * N + s) * R + i);
    return sum;
}

static bool is_valid(const cgs_record *r, size_t b, size_t t) {
    double min = r->arg.cgs.min_norm;
    if (r->in[2] && get(r->in[2], b * (size_t)r->in[1]->dim[1] + t) == 0) return false;
    return sqrt(dot_z(r, b, t, t)) >= min && sqrt(dot_r(r, b, t, t)) >= min;
}

static window look(const cgs_record *r, size_t b) {
    size_t N = (size_t)r->in[1]->dim[1], D = (size_t)r->in[0]->dim[2];
    double *scratch = r->impl;
    window w = {N, D, 0, scratch, scratch + N, scratch + N + N * N, scratch + N + 2 * N * N};
    for (size_t t = 0; t < N; t++) {
        w.length[t] = is_valid(r, b, t) ? sqrt(dot_z(r, b, t, t)) : 0;
    }
    for (size_t t = 0; t < N; t++)
        for (size_t s = 0; s < N; s++) {
            bool valid = t != s && w.length[t] > 0 && w.length[s] > 0;
            double Ka = 0;
            if (valid) Ka = dot_r(r, b, t, s) / sqrt(dot_r(r, b, t, t) * dot_r(r, b, s, s));
            w.Kz[t * N + s] = valid ? dot_z(r, b, t, s) / (w.length[t] * w.length[s]) : 0;
            w.E[t * N + s] = valid ? w.Kz[t * N + s] - Ka : 0;
            w.pairs += valid;
        }
    return w;
}

void cgs_ref_cgs_forward(const cgs_record *r) {
    size_t B = (size_t)r->in[0]->dim[0];
    double sum = 0, count = 0;
    for (size_t b = 0; b < B; b++) {
        window w = look(r, b);
        double squares = 0;
        for (size_t i = 0; i < w.N * w.N; i++) squares += w.E[i] * w.E[i];
        if (w.pairs == 0) continue;
        sum += r->arg.cgs.per_window ? squares / w.pairs : squares;
        count += r->arg.cgs.per_window ? 1 : w.pairs;
    }
    set(r->saved[0], 0, count);
    set(r->out, 0, count > 0 ? sum / count : 0);
}

void cgs_ref_cgs_backward(const cgs_record *r) {
    size_t B = (size_t)r->in[0]->dim[0];
    double count = get(r->saved[0], 0);
    give_nothing(r, 1);
    give_nothing(r, 2);
    for (size_t b = 0; b < B && cgs_wants(r, 0); b++) {
        window w = look(r, b);
        size_t N = w.N, D = w.D;
        double Q = r->arg.cgs.per_window ? count * w.pairs : count;
        memset(w.dz, 0, (N + 1) * D * sizeof *w.dz);
        for (size_t t = 0; t < N && w.pairs > 0; t++) {
            if (w.length[t] == 0) continue;
            double row_dot = 0;
            for (size_t s = 0; s < N; s++) row_dot += w.E[t * N + s] * w.Kz[t * N + s];
            for (size_t d = 0; d < D; d++) {
                double dD = -row_dot * delta(r->in[0], b, t, d) / w.length[t];
                for (size_t s = 0; s < N; s++)
                    if (w.length[s] > 0)
                        dD += w.E[t * N + s] * delta(r->in[0], b, s, d) / w.length[s];
                dD *= 4 / (Q * w.length[t]);
                w.dz[t * D + d] -= dD;
                w.dz[(t + 1) * D + d] += dD;
            }
        }
        for (size_t i = 0; i < (N + 1) * D; i++)
            give(r, 0, b * (N + 1) * D + i, out_grad(r, 0) * w.dz[i]);
    }
}

/* The same derivative, pair by pair, as it has no memory of its own. */
static void pair_tangent(const cgs_record *r, cgs_lanes l, size_t b, size_t t, size_t s, double by,
                         double *sum) {
    const cgs_tensor *z = r->in[0];
    size_t T = (size_t)z->dim[1], D = (size_t)z->dim[2];
    double tt = sqrt(dot_z(r, b, t, t)), ss = sqrt(dot_z(r, b, s, s));
    double Kz = dot_z(r, b, t, s) / (tt * ss);
    double Ka = dot_r(r, b, t, s) / sqrt(dot_r(r, b, t, t) * dot_r(r, b, s, s));
    for (size_t d = 0; d < D; d++) {
        double u = delta(z, b, t, d) / tt, w = delta(z, b, s, d) / ss;
        double du = by * (Kz - Ka) * (w - Kz * u) / tt, dw = by * (Kz - Ka) * (u - Kz * w) / ss;
        sum_tangent(sum, r, z, l, (b * T + t + 1) * D + d, du);
        sum_tangent(sum, r, z, l, (b * T + t) * D + d, -du);
        sum_tangent(sum, r, z, l, (b * T + s + 1) * D + d, dw);
        sum_tangent(sum, r, z, l, (b * T + s) * D + d, -dw);
    }
}

void cgs_ref_cgs_tangent(const cgs_record *r, cgs_lanes l) {
    size_t B = (size_t)r->in[0]->dim[0], N = (size_t)r->in[1]->dim[1];
    double sum[CGS_LANES] = {0}, count = get(r->saved[0], 0);
    for (size_t b = 0; b < B; b++) {
        double valid = 0;
        for (size_t t = 0; t < N; t++) valid += is_valid(r, b, t);
        double Q = r->arg.cgs.per_window ? count * valid * (valid - 1) : count;
        for (size_t t = 0; t < N; t++)
            for (size_t s = 0; s < t; s++) /* each pair counts twice, its square twice again */
                if (is_valid(r, b, t) && is_valid(r, b, s)) pair_tangent(r, l, b, t, s, 4 / Q, sum);
    }
    set_tangent(r, l, 0, sum);
}

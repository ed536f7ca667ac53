/* linear_system.c - see linear_system.h. */
#include "analysis/linear_system.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "core/file.h"

#define FILE_LIMIT ((size_t)64 << 20)
#define SIDE_MAX 512
#define RANK_TOLERANCE 1e-10 /* of a singular value, relative to the largest */

/* (d, n) = [A^(H-1) B, ..., B] */
static cgs_mat horizon_map(const cgs_system *s, cgs_work *w) {
    cgs_mat gamma = cgs_mat_new(w, s->d, s->H * s->da), power = cgs_mat_copy(w, s->B);
    size_t mark = cgs_work_mark(w);
    for (int t = s->H - 1; t >= 0; t--) {
        cgs_put_submatrix(gamma, 0, t * s->da, power);
        cgs_put_submatrix(power, 0, 0, cgs_mul(w, s->A, power));
        cgs_work_release(w, mark);
    }
    return gamma;
}

/* ---- drawing ----------------------------------------------------------------------- */

cgs_mat cgs_random_normal(cgs_work *w, cgs_rng *r, int rows, int cols) {
    cgs_mat a = cgs_mat_new(w, rows, cols);
    for (int i = 0; i < rows * cols; i++) a.x[i] = cgs_rng_normal(r);
    return a;
}

/* Gram-Schmidt of a Gaussian matrix; twice is enough */
cgs_mat cgs_random_rotation(cgs_work *w, cgs_rng *r, int n) {
    cgs_mat q = cgs_random_normal(w, r, n, n);
    for (int k = 0; k < n; k++) {
        for (int pass = 0; pass < 2; pass++)
            for (int j = 0; j < k; j++) {
                double dot = 0;
                for (int i = 0; i < n; i++) dot += CGS_AT(q, i, j) * CGS_AT(q, i, k);
                for (int i = 0; i < n; i++) CGS_AT(q, i, k) -= dot * CGS_AT(q, i, j);
            }
        double norm = 0;
        for (int i = 0; i < n; i++) norm += CGS_AT(q, i, k) * CGS_AT(q, i, k);
        for (int i = 0; i < n; i++) CGS_AT(q, i, k) /= sqrt(norm);
    }
    return q;
}

static double log_uniform(cgs_rng *r, double low, double high) {
    return exp(cgs_rng_range(r, log(low), log(high)));
}

static cgs_mat unit_norm(cgs_work *w, cgs_mat a) { return cgs_scaled(w, 1 / cgs_norm_op(w, a), a); }

/* Near the ideal: |D|^2, |D^T B| / sqrt(c) and |B^T B - c I| / c are of the size eps. */
static void draw_near(cgs_system *s, cgs_work *w, cgs_rng *r, double eps) {
    int d = s->d, da = s->da;
    cgs_mat U = cgs_submatrix(w, cgs_random_rotation(w, r, d), 0, 0, d, da);
    cgs_mat along = unit_norm(w, cgs_random_normal(w, r, d, d));
    cgs_mat D = cgs_scaled(w, eps * cgs_rng_f64(r), along);
    if (d > da) { /* drift across the range of B may be as large as sqrt(eps) */
        cgs_mat free = cgs_random_normal(w, r, d, d);
        free = cgs_plus(w, free, -1, cgs_mul(w, U, cgs_mul_tn(w, U, free)));
        D = cgs_plus(w, D, 0.95 * sqrt(eps) * cgs_rng_f64(r), unit_norm(w, free));
    }
    s->A = cgs_plus(w, cgs_identity(w, d), 1, D);
    cgs_mat S = cgs_random_normal(w, r, da, da);
    S = unit_norm(w, cgs_plus(w, S, 1, cgs_transpose(w, S)));
    cgs_mat even = cgs_plus(w, cgs_identity(w, da), 0.9 * eps * cgs_rng_f64(r), S);
    cgs_mat root = cgs_power(w, even, 0.5); /* B^T B = c (I + eps' S) */
    s->B = cgs_scaled(w, sqrt(s->c), cgs_mul(w, U, root));
}

static void draw_far(cgs_system *s, cgs_work *w, cgs_rng *r) {
    double drift = cgs_rng_range(r, 0.05, 0.8), control = cgs_rng_range(r, 0.2, 1.5);
    cgs_mat D = cgs_scaled(w, drift, cgs_random_normal(w, r, s->d, s->d));
    s->A = cgs_plus(w, cgs_identity(w, s->d), 1, D);
    s->B = cgs_scaled(w, control, cgs_random_normal(w, r, s->d, s->da));
}

/* A goal that a moderate plan reaches, plus an unreachable offset where latents outnumber plans.
 * An arbitrary goal would need huge plans in weak directions. */
static void draw_goal(cgs_system *s, cgs_work *w, cgs_rng *r) {
    cgs_mat gamma = horizon_map(s, w), off = cgs_random_normal(w, r, s->d, 1), values, v;
    cgs_eigen(w, cgs_mul_nt(w, gamma, gamma), &values, &v);
    s->goal = s->z0;
    for (int t = 0; t < s->H; t++) s->goal = cgs_mul(w, s->A, s->goal);
    cgs_mat plan = cgs_random_normal(w, r, s->H * s->da, 1);
    s->goal = cgs_plus(w, s->goal, 1, cgs_mul(w, gamma, plan));
    for (int k = s->H * s->da; k < s->d; k++) {
        cgs_mat u = cgs_submatrix(w, v, 0, k, s->d, 1);
        s->goal = cgs_plus(w, s->goal, cgs_dot(u, off), u);
    }
}

void cgs_system_draw(cgs_system *s, cgs_work *w, uint64_t seed, uint64_t index) {
    cgs_rng r = cgs_rng_stream(seed, CGS_STREAM_THEORY, index);
    int kind = (int)cgs_rng_below(&r, 16);
    *s = (cgs_system){.da = 1 + (int)cgs_rng_below(&r, 3), .H = 2 + (int)cgs_rng_below(&r, 4)};
    s->d = s->da + (int)cgs_rng_below(&r, 4);
    if (kind == 0) { /* fewer latents than actions */
        s->da = 2 + (int)cgs_rng_below(&r, 2);
        s->d = s->da - 1;
    }
    s->c = log_uniform(&r, 0.25, 4);
    if (kind <= 2)
        draw_far(s, w, &r);
    else /* near enough for xi_H to be about this number */
        draw_near(s, w, &r, log_uniform(&r, 0.01, 1.5) / (2 * s->H * s->H - 3 * s->H + 2));
    int n = s->d + s->da;
    cgs_mat v = cgs_random_rotation(w, &r, n), scaled = cgs_mat_copy(w, v);
    for (int k = 0; k < n; k++) {
        double l = log_uniform(&r, 0.1, 3);
        for (int i = 0; i < n; i++) CGS_AT(scaled, i, k) *= l;
    }
    s->cov = cgs_mul_nt(w, scaled, v);
    s->z0 = cgs_random_normal(w, &r, s->d, 1);
    draw_goal(s, w, &r);
    s->sigma = log_uniform(&r, 0.3, 1);
    s->tau = s->sigma * s->sigma * s->c * s->H / log_uniform(&r, 0.1, 2);
    s->alpha = cgs_rng_range(&r, 0.05, 0.5);
}

/* ---- reading ----------------------------------------------------------------------- */

/* a number array, or an array of rows; rows and cols of 0 are found out */
static cgs_status read_shape(const cJSON *json, const char *key, int *rows, int *cols) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
    if (!cJSON_IsArray(item) || cJSON_GetArraySize(item) < 1)
        return cgs_fail(CGS_EFORMAT, "\"%s\" is not an array of rows", key);
    *rows = cJSON_GetArraySize(item);
    *cols = cJSON_IsArray(item->child) ? cJSON_GetArraySize(item->child) : 1;
    if (*rows > SIDE_MAX || *cols > SIDE_MAX || *cols < 1)
        return cgs_fail(CGS_EFORMAT, "\"%s\" is %d x %d, 1 x 1 to %d x %d are possible", key, *rows,
                        *cols, SIDE_MAX, SIDE_MAX);
    return CGS_OK;
}

static cgs_status read_matrix(const cJSON *json, const char *key, cgs_mat m) {
    const cJSON *row = cJSON_GetObjectItemCaseSensitive(json, key)->child;
    for (int i = 0; i < m.rows; i++, row = row->next) {
        bool nested = cJSON_IsArray(row);
        if (nested && cJSON_GetArraySize(row) != m.cols)
            return cgs_fail(CGS_EFORMAT, "\"%s\": row %d has %d numbers, row 0 has %d", key, i,
                            cJSON_GetArraySize(row), m.cols);
        const cJSON *x = nested ? row->child : row;
        for (int j = 0; j < m.cols; j++, x = x->next) {
            if (!cJSON_IsNumber(x) || !isfinite(x->valuedouble))
                return cgs_fail(CGS_EFORMAT, "\"%s\": entry (%d, %d) is no finite number", key, i,
                                j);
            CGS_AT(m, i, j) = x->valuedouble;
        }
    }
    return CGS_OK;
}

static cgs_status read_number(const cJSON *json, const char *key, double standard, double *out) {
    const cJSON *x = cJSON_GetObjectItemCaseSensitive(json, key);
    *out = standard;
    if (!x && !isnan(standard)) return CGS_OK;
    if (!cJSON_IsNumber(x) || !isfinite(x->valuedouble) || x->valuedouble <= 0)
        return cgs_fail(CGS_EFORMAT, "\"%s\" is not a positive number", key);
    *out = x->valuedouble;
    return CGS_OK;
}

static cgs_status expect(const char *key, int rows, int cols, int want_rows, int want_cols) {
    if (rows == want_rows && cols == want_cols) return CGS_OK;
    return cgs_fail(CGS_EFORMAT, "\"%s\" is %d x %d, expected %d x %d", key, rows, cols, want_rows,
                    want_cols);
}

static cgs_status read_vector(const cJSON *json, const char *key, cgs_mat m) {
    if (!cJSON_GetObjectItemCaseSensitive(json, key)) {
        for (int i = 0; i < m.rows; i++) m.x[i] = 1;
        return CGS_OK;
    }
    int rows, cols;
    CGS_TRY(read_shape(json, key, &rows, &cols));
    CGS_TRY(expect(key, rows, cols, m.rows, 1));
    return read_matrix(json, key, m);
}

static cgs_status read_system(cgs_system *s, cgs_work *w, const cJSON *json) {
    int rows, cols, n;
    double H;
    const char *cov = cJSON_GetObjectItemCaseSensitive(json, "cov") ? "cov" : "Sigma_x";
    CGS_TRY(read_shape(json, "A", &rows, &cols));
    s->d = rows;
    CGS_TRY(expect("A", rows, cols, s->d, s->d));
    CGS_TRY(read_shape(json, "B", &rows, &cols));
    s->da = cols;
    CGS_TRY(expect("B", rows, cols, s->d, s->da));
    n = s->d + s->da;
    CGS_TRY(read_shape(json, cov, &rows, &cols));
    CGS_TRY(expect(cov, rows, cols, n, n));
    CGS_TRY(read_number(json, "H", NAN, &H));
    if (H != floor(H) || H * s->da > SIDE_MAX)
        return cgs_fail(CGS_EFORMAT, "\"H\" is %g, expected a whole number up to %d", H,
                        SIDE_MAX / s->da);
    s->H = (int)H;
    CGS_TRY(read_number(json, "c", NAN, &s->c));
    CGS_TRY(read_number(json, "sigma", 1, &s->sigma));
    CGS_TRY(read_number(json, "tau", 1, &s->tau));
    CGS_TRY(read_number(json, "alpha", 0.25, &s->alpha));
    if (s->alpha >= 1)
        return cgs_fail(CGS_EFORMAT, "\"alpha\" is %g, expected less than 1", s->alpha);
    int side = n > s->H * s->da ? n : s->H * s->da;
    CGS_TRY(cgs_work_create(w, 160, side));
    s->A = cgs_mat_new(w, s->d, s->d);
    s->B = cgs_mat_new(w, s->d, s->da);
    s->cov = cgs_mat_new(w, n, n);
    s->z0 = cgs_mat_new(w, s->d, 1);
    s->goal = cgs_mat_new(w, s->d, 1);
    CGS_TRY(read_matrix(json, "A", s->A));
    CGS_TRY(read_matrix(json, "B", s->B));
    CGS_TRY(read_matrix(json, cov, s->cov));
    CGS_TRY(read_vector(json, "z0", s->z0));
    CGS_TRY(read_vector(json, "goal", s->goal));
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            if (fabs(CGS_AT(s->cov, i, j) - CGS_AT(s->cov, j, i)) >
                1e-9 * (fabs(CGS_AT(s->cov, i, i)) + fabs(CGS_AT(s->cov, j, j))))
                return cgs_fail(CGS_EFORMAT, "\"%s\": entries (%d, %d) and (%d, %d) differ", cov, i,
                                j, j, i);
    cgs_mat values, vectors;
    cgs_eigen(w, s->cov, &values, &vectors);
    if (!(values.x[0] > 0))
        return cgs_fail(CGS_EFORMAT, "\"%s\" has no positive eigenvalue: nothing would vary", cov);
    if (values.x[n - 1] < -1e-9 * fabs(values.x[0]))
        return cgs_fail(CGS_EFORMAT,
                        "\"%s\" has the eigenvalue %g, a second moment has none below 0", cov,
                        values.x[n - 1]);
    return CGS_OK;
}

cgs_status cgs_system_read(cgs_system *s, cgs_work *w, const char *path) {
    char *text;
    size_t bytes;
    *s = (cgs_system){0};
    *w = (cgs_work){0};
    CGS_TRY(cgs_read_file(path, FILE_LIMIT, &text, &bytes));
    cJSON *json = cJSON_ParseWithLength(text, bytes);
    cgs_status rc =
        cJSON_IsObject(json) ? read_system(s, w, json) : cgs_fail(CGS_EFORMAT, "not a JSON object");
    cJSON_Delete(json);
    free(text);
    return rc == CGS_OK ? rc : cgs_fail_in(rc, path);
}

/* ---- deriving ---------------------------------------------------------------------- */

double cgs_growth_excess(int H, double eps) { return pow(1 + sqrt(eps), H - 1) - 1; }

/* summed as a binomial series: the difference of the two terms would cancel for small eps */
double cgs_growth_remainder(int H, double eps) {
    double sum = 0, term = 1;
    for (int j = 1; j <= H - 1; j++) {
        term *= sqrt(eps) * (H - j) / j;
        if (j >= 2) sum += term;
    }
    return sum;
}

double cgs_xi(int H, double eps) {
    double s = cgs_growth_excess(H, eps), r = cgs_growth_remainder(H, eps);
    return eps + 2 * (H - 1) * sqrt(1 + eps) * eps + (1 + eps) * (2 * r + s * s);
}

double cgs_xi_ts(int H, double eps) {
    double s = cgs_growth_excess(H, eps);
    return eps + (1 + eps) * (2 * s + s * s);
}

static void derive_transition(cgs_facts *f, cgs_work *w) {
    const cgs_system *s = f->s;
    int d = f->d, da = f->da;
    f->D = cgs_plus(w, s->A, -1, cgs_identity(w, d));
    cgs_mat step = cgs_mat_new(w, d, d + da), values, vectors;
    cgs_put_submatrix(step, 0, 0, f->D);
    cgs_put_submatrix(step, 0, d, s->B);
    f->Q = cgs_mul_tn(w, step, step);
    for (int i = d; i < d + da; i++) CGS_AT(f->Q, i, i) -= f->c;
    cgs_mat off = cgs_submatrix(w, f->Q, d, d, da, da), mixed = cgs_mul_tn(w, f->D, s->B);
    f->drift = cgs_norm_op(w, f->D);
    f->mixed = cgs_norm_op(w, mixed);
    f->control = cgs_norm_op(w, off);
    f->defect = pow(cgs_norm_fro(cgs_mul_tn(w, f->D, f->D)), 2) + 2 * pow(cgs_norm_fro(mixed), 2) +
                pow(cgs_norm_fro(off), 2);
    cgs_eigen(w, s->cov, &values, &vectors);
    f->rho_bar = values.x[0];
    f->rho = fmax(values.x[d + da - 1], 0);
    if (f->rho < RANK_TOLERANCE * f->rho_bar) f->rho = 0;
    cgs_mat QS = cgs_mul(w, f->Q, s->cov);
    f->loss = fmax(cgs_trace(cgs_mul(w, QS, QS)), 0);
    f->eps_loss = f->rho > 0 ? sqrt(f->loss) / f->rho * fmax(1, fmax(1 / sqrt(2 * f->c), 1 / f->c))
                             : INFINITY;
    f->eps_ts = fmax(f->drift * f->drift, f->control / f->c);
    f->eps = fmax(f->eps_ts, f->mixed / sqrt(f->c));
}

static void derive_horizon(cgs_facts *f, cgs_work *w) {
    const cgs_system *s = f->s;
    int n = f->n;
    f->xi = f->eps < 1 ? cgs_xi(f->H, f->eps) : NAN;
    f->gamma = horizon_map(s, w);
    f->G = cgs_mul_tn(w, f->gamma, f->gamma);
    f->M = cgs_scaled(w, 1 / (f->c * f->H), f->G);
    f->P = cgs_mat_new(w, n, n);
    for (int i = 0; i < n; i++)
        for (int j = i % f->da; j < n; j += f->da) CGS_AT(f->P, i, j) = 1.0 / f->H;
    f->gap = cgs_norm_op(w, cgs_plus(w, f->M, -1, f->P));
    cgs_eigen(w, f->G, &f->lambda, &f->V);
    /* small eigenvalues as squares of singular values, which are more accurate */
    cgs_mat singular = cgs_singular(w, f->gamma);
    f->controllable = 0;
    for (int i = 0; i < n; i++) {
        bool positive = i < singular.rows && singular.x[i] > RANK_TOLERANCE * singular.x[0];
        f->lambda.x[i] = positive ? singular.x[i] * singular.x[i] : 0;
        f->controllable += positive;
    }
    f->s_mppi = s->sigma * s->sigma * f->c * f->H / s->tau;
    cgs_mat free_end = s->z0;
    for (int t = 0; t < f->H; t++) free_end = cgs_mul(w, s->A, free_end);
    f->best = cgs_least_squares(w, f->gamma, cgs_plus(w, s->goal, -1, free_end));
}

void cgs_facts_derive(cgs_facts *f, const cgs_system *s, cgs_work *w) {
    *f = (cgs_facts){
        .s = s, .d = s->d, .da = s->da, .H = s->H, .n = s->H * s->da, .r = s->da, .c = s->c};
    derive_transition(f, w);
    derive_horizon(f, w);
}

double cgs_system_cost(const cgs_system *s, cgs_work *w, cgs_mat plan) {
    size_t mark = cgs_work_mark(w);
    cgs_mat z = s->z0;
    for (int t = 0; t < s->H; t++) {
        cgs_mat a = {s->da, 1, plan.x + t * s->da};
        z = cgs_plus(w, cgs_mul(w, s->A, z), 1, cgs_mul(w, s->B, a));
    }
    double e = cgs_norm_fro(cgs_plus(w, z, -1, s->goal));
    cgs_work_release(w, mark);
    return e * e / 2;
}

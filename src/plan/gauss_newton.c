/* gauss_newton.c - sampled Gauss-Newton: the candidates' residuals say what the cost is made of.
 *
 * Rows of A are the candidates' differences from the mean mu, rows of Z those of their residuals;
 * of mirrored pairs half the difference.  Where residuals are linear in plans, a step A^T w changes
 * the residual by Z^T w, and the best one in the candidates' span, with a prior N(start, 1 / gamma)
 * on plans, solves
 *
 *     (Z Z^T + gamma A A^T + delta I) w = -Z r - gamma A (mu - start),     r: residual of mu
 *
 * Where they are not, Z is A J^T and an error, and weights with a short A^T w but a long Z^T w
 * would fit the error: nearly dependent directions, and all beyond the n values of a plan.  So the
 * rows of Z are first smoothed by a ridge regression on those of A, Z <- C (C + rho I)^-1 Z with C
 * = A A^T. With n rows and more the same is done in plans: J^T = (A^T A + rho I)^-1 A^T Z, and (J^T
 * J + gamma I) step = -J^T r - gamma (mu - start).
 *
 * Where the problem gives units, plans and their differences are measured in them above: the prior
 * is N(start, unit^2 / gamma), and the regression's ridge is the same for narrow and wide values.
 *
 * Everything of an episode is done by one thread, in double, in a fixed order. */
#include <math.h>
#include <string.h>

#include "core/team.h"
#include "core/threads.h"
#include "plan/dense.h"
#include "plan/search.h"

/* what an episode has of its own */
typedef struct own {
    size_t per;   /* rows that an iteration adds */
    size_t rows;  /* at most, of all iterations that are used together */
    size_t order; /* of the systems: rows, or values of a plan where there are as many rows */
    size_t start, row, smooth, system, vector; /* where its parts begin, in bytes */
    size_t bytes;
} own;

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

static size_t part(own *o, size_t count, size_t size) {
    size_t at = o->bytes;
    o->bytes += (count * size + 63) / 64 * 64;
    return at;
}

void cgs_plan_gauss_newton_rows(const cgs_plan_config *c, size_t *per, size_t *kept) {
    size_t K = (size_t)c->K;
    *per = c->mirror ? K / 2 : K - 1;
    *kept = least((size_t)c->reuse + 1, (size_t)cgs_plan_iterations(c));
}

static own sizes(const cgs_plan_config *c) {
    size_t n = (size_t)c->H * (size_t)c->A, R = (size_t)c->R, kept;
    own o = {0};
    cgs_plan_gauss_newton_rows(c, &o.per, &kept);
    o.rows = o.per * kept;
    o.order = least(o.rows, n);
    o.start = part(&o, n, sizeof(float));
    o.row = part(&o, o.rows * (R + n), sizeof(float));
    o.smooth = part(&o, o.order * R, sizeof(float));
    o.system = part(&o, 2 * o.order * o.order, sizeof(double));
    o.vector = part(&o, o.order + 2 * n, sizeof(double));
    return o;
}

size_t cgs_plan_gauss_newton_memory(const cgs_plan_config *c, int E) {
    return (size_t)E * sizes(c).bytes;
}

static void *place(const cgs_search *s, const own *o, size_t e, size_t of) {
    return (unsigned char *)s->own + e * o->bytes + of;
}

void cgs_plan_gauss_newton_begin(cgs_search *s) {
    own o = sizes(s->config);
    size_t n = (size_t)s->n;
    for (size_t e = 0; e < (size_t)s->E; e++)
        memcpy(place(s, &o, e, o.start), s->mean + e * n, n * sizeof *s->mean);
}

/* ---- a step -------------------------------------------------------------------------- */

/* an episode's rows, [Z_i, A_i], and memory to work with */
typedef struct problem {
    const float *row;
    size_t count, R, n, width; /* width = R + n */
    double gamma, rho, delta;
    const float *residual; /* (R) */
    double *away;          /* (n) of the mean from the start */
    float *smooth;         /* (count, R), or (n, R): J^T */
    double *S, *C;         /* (order, order) each */
    double *x;             /* (order) */
    double *move;          /* (n) */
} problem;

/* what counts as 1 in value j of an episode's plans */
static float unit_of(const cgs_search *s, size_t e, size_t j) {
    return s->unit ? s->unit[e * (size_t)s->n + j] : 1;
}

/* rows of this iteration: differences of residuals, then of plans */
static void add_rows(const cgs_search *s, const own *o, size_t e, float *to) {
    size_t n = (size_t)s->n, R = (size_t)s->R, K = (size_t)s->K, width = R + n;
    const float *plans = s->plans + e * K * n, *residual = s->residual + e * K * R;
    for (size_t i = 0; i < o->per; i++) {
        bool pair = s->config->mirror && 2 * i + 2 < K;
        size_t a = s->config->mirror ? 2 * i + 1 : i + 1, b = pair ? a + 1 : 0;
        float share = pair ? 0.5f : 1;
        for (size_t j = 0; j < R; j++)
            to[i * width + j] = share * (residual[a * R + j] - residual[b * R + j]);
        for (size_t j = 0; j < n; j++)
            to[i * width + R + j] =
                share * (plans[a * n + j] - plans[b * n + j]) / unit_of(s, e, j);
    }
}

/* fewer rows than values of a plan: weights of the rows */
static void step_by_rows(problem *p) {
    size_t m = p->count, R = p->R, width = p->width;
    for (size_t i = 0; i < m; i++)
        for (size_t k = 0; k <= i; k++)
            p->C[i * m + k] = cgs_plan_dot(p->row + i * width + R, p->row + k * width + R, p->n);
    memcpy(p->S, p->C, m * m * sizeof *p->S);
    for (size_t i = 0; i < m; i++) p->S[i * m + i] += p->rho;
    cgs_plan_factorise(p->S, m);
    for (size_t j = 0; j < R; j++) {
        for (size_t i = 0; i < m; i++) p->x[i] = p->row[i * width + j];
        if (p->rho > 0) cgs_plan_solve_factored(p->S, p->x, m);
        for (size_t i = 0; i < m; i++)
            p->smooth[i * R + j] =
                (float)(p->row[i * width + j] - (p->rho > 0 ? p->rho * p->x[i] : 0));
    }
    for (size_t i = 0; i < m; i++) {
        const float *z = p->smooth + i * R, *a = p->row + i * width + R;
        for (size_t k = 0; k <= i; k++)
            p->S[i * m + k] = cgs_plan_dot(z, p->smooth + k * R, R) + p->gamma * p->C[i * m + k];
        p->S[i * m + i] += p->delta;
        p->x[i] = -cgs_plan_dot(z, p->residual, R);
        for (size_t j = 0; j < p->n; j++) p->x[i] -= p->gamma * a[j] * p->away[j];
    }
    cgs_plan_factorise(p->S, m);
    cgs_plan_solve_factored(p->S, p->x, m);
    memset(p->move, 0, p->n * sizeof *p->move);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < p->n; j++) p->move[j] += p->x[i] * p->row[i * width + R + j];
}

/* as many rows or more: the Jacobian of all plans */
static void step_by_values(problem *p) {
    size_t n = p->n, R = p->R, width = p->width;
    memset(p->S, 0, n * n * sizeof *p->S);
    for (size_t r = 0; r < p->count; r++) {
        const float *a = p->row + r * width + R;
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k <= i; k++) p->S[i * n + k] += (double)a[i] * a[k];
    }
    for (size_t i = 0; i < n; i++) p->S[i * n + i] += p->rho;
    cgs_plan_factorise(p->S, n);
    for (size_t j = 0; j < R; j++) {
        memset(p->x, 0, n * sizeof *p->x);
        for (size_t r = 0; r < p->count; r++)
            for (size_t i = 0; i < n; i++)
                p->x[i] += (double)p->row[r * width + R + i] * p->row[r * width + j];
        cgs_plan_solve_factored(p->S, p->x, n);
        for (size_t i = 0; i < n; i++) p->smooth[i * R + j] = (float)p->x[i];
    }
    for (size_t i = 0; i < n; i++) {
        const float *J = p->smooth + i * R; /* a column of the Jacobian */
        for (size_t k = 0; k <= i; k++) p->S[i * n + k] = cgs_plan_dot(J, p->smooth + k * R, R);
        p->S[i * n + i] += p->gamma;
        p->move[i] = -cgs_plan_dot(J, p->residual, R) - p->gamma * p->away[i];
    }
    cgs_plan_factorise(p->S, n);
    cgs_plan_solve_factored(p->S, p->move, n);
}

static void step(const cgs_search *s, const own *o, size_t e) {
    const cgs_plan_config *c = s->config;
    size_t kept = o->per ? o->rows / o->per : 0, turn = (size_t)s->iteration;
    if (!kept) return; /* the mean alone: nothing is known of other plans */
    problem p = {.count = o->per * least(turn + 1, kept),
                 .R = (size_t)s->R,
                 .n = (size_t)s->n,
                 .width = (size_t)s->R + (size_t)s->n,
                 .gamma = c->gamma,
                 .residual = s->residual + e * (size_t)s->K * (size_t)s->R,
                 .smooth = place(s, o, e, o->smooth),
                 .S = place(s, o, e, o->system),
                 .x = place(s, o, e, o->vector)};
    float *row = place(s, o, e, o->row);
    p.row = row;
    p.C = p.S + o->order * o->order;
    p.move = p.x + o->order;
    p.away = p.move + p.n;
    float *mean = s->mean + e * p.n;
    const float *start = place(s, o, e, o->start);
    for (size_t j = 0; j < p.n; j++) p.away[j] = ((double)mean[j] - start[j]) / unit_of(s, e, j);
    add_rows(s, o, e, row + turn % kept * o->per * p.width);
    for (size_t i = 0; i < p.count; i++) {
        const float *z = row + i * p.width, *a = z + p.R;
        p.delta += c->damping / (double)p.count * cgs_plan_dot(z, z, p.R);
        p.rho += c->ridge / (double)p.count * cgs_plan_dot(a, a, p.n);
    }
    if (p.count < p.n)
        step_by_rows(&p);
    else
        step_by_values(&p);
    for (size_t j = 0; j < p.n; j++) mean[j] = (float)(mean[j] + p.move[j] * unit_of(s, e, j));
}

static void steps(void *context) {
    const cgs_search *s = context;
    own o = sizes(s->config);
    CGS_QUEUE (e, (size_t)s->E) step(s, &o, e);
}

void cgs_plan_gauss_newton_update(cgs_search *s) {
    float decay = cgs_plan_decay(s->config);
    cgs_together(s->E > 1 ? cgs_threads() : 1, steps, s);
    for (size_t i = 0; i < (size_t)s->E * (size_t)s->n; i++) s->spread[i] *= decay;
}

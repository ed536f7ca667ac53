/* gauss_newton.c - sampled Gauss-Newton: the candidates' residuals say what the cost is made of.
 *
 * Rows of A are the candidates' differences from the mean mu, rows of Z those of their residuals.
 * Where residuals are linear in plans, a step A^T w changes the residual by Z^T w, and the best one
 * in the candidates' span, with a prior N(start, 1 / gamma) on plans, solves
 *
 *     (Z Z^T + gamma A A^T + delta I) w = -Z r - gamma A (mu - start),     r: residual of mu
 *
 * With rows B = [Z, sqrt(gamma) A] and y = [-r, -sqrt(gamma) (mu - start)] that is
 * (B B^T + delta I) w = B y, as large as there are candidates, or w = B c with
 * (B^T B + delta I) c = y, as large as a row of B: whichever is smaller is solved.
 *
 * Everything of an episode is done by one thread, in double, in a fixed order. */
#include <math.h>
#include <string.h>

#include "core/team.h"
#include "core/threads.h"
#include "plan/search.h"

/* A pivot below this share of the largest: its candidate lies in the span of the others, as far as
 * differences of floats can tell. */
#define DEPENDENT 1e-11
/* what damps B^T B at least, as a share of its largest entry */
#define LEAST_DAMPING 1e-9
enum { LANES = 8 };

/* what an episode has of its own */
typedef struct own {
    size_t per;   /* rows that an iteration adds: candidates, without the mean where it is the
                   * centre */
    size_t rows;  /* at most, of all iterations that are used together */
    size_t width; /* of a row, at most: R + n */
    size_t order; /* of the system, at most */
    size_t bytes;
} own;

static size_t least(size_t a, size_t b) { return a < b ? a : b; }
static size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

static own sizes(const cgs_plan_config *c) {
    own o = {.per = (size_t)c->K - !c->average};
    o.rows = o.per * least((size_t)c->reuse + 1, (size_t)cgs_plan_iterations(c));
    o.width = (size_t)c->R + (size_t)c->H * (size_t)c->A;
    o.order = least(o.rows, o.width);
    size_t start = (size_t)c->H * (size_t)c->A * sizeof(float);
    size_t doubles = o.order * o.order + o.rows + o.width;
    o.bytes = aligned(start) + aligned(o.rows * o.width * sizeof(float)) +
              aligned(doubles * sizeof(double));
    return o;
}

size_t cgs_plan_gauss_newton_memory(const cgs_plan_config *c, int E) {
    return (size_t)E * sizes(c).bytes;
}

static float *start_of(const cgs_search *s, const own *o, size_t e) {
    return (float *)(void *)((unsigned char *)s->own + e * o->bytes);
}

void cgs_plan_gauss_newton_begin(cgs_search *s) {
    own o = sizes(s->config);
    size_t n = (size_t)s->n;
    for (size_t e = 0; e < (size_t)s->E; e++)
        memcpy(start_of(s, &o, e), s->mean + e * n, n * sizeof *s->mean);
}

/* ---- a small dense system ------------------------------------------------------------ */

static double dot(const float *a, const float *b, size_t n) {
    double lane[LANES] = {0}, sum = 0;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t l = 0; l < LANES; l++) lane[l] += (double)a[i + l] * b[i + l];
    for (size_t l = 0; l < LANES; l++) sum += lane[l];
    for (; i < n; i++) sum += (double)a[i] * b[i];
    return sum;
}

/* In place: the Cholesky factor of S (m, m), whose lower half is given, and x = S^-1 x.  Where S is
 * singular the unknowns that add nothing are 0. */
static void solve(double *S, double *x, size_t m) {
    double largest = 0;
    for (size_t i = 0; i < m; i++) largest = fmax(largest, S[i * m + i]);
    for (size_t j = 0; j < m; j++) {
        double pivot = S[j * m + j];
        for (size_t k = 0; k < j; k++) pivot -= S[j * m + k] * S[j * m + k];
        double inverse = pivot > DEPENDENT * largest ? 1 / sqrt(pivot) : 0;
        for (size_t i = j + 1; i < m; i++) {
            double sum = S[i * m + j];
            for (size_t k = 0; k < j; k++) sum -= S[i * m + k] * S[j * m + k];
            S[i * m + j] = sum * inverse;
        }
        S[j * m + j] = inverse;
    }
    for (size_t i = 0; i < m; i++) {
        for (size_t k = 0; k < i; k++) x[i] -= S[i * m + k] * x[k];
        x[i] *= S[i * m + i];
    }
    for (size_t i = m; i-- > 0;) {
        for (size_t k = i + 1; k < m; k++) x[i] -= S[k * m + i] * x[k];
        x[i] *= S[i * m + i];
    }
}

/* ---- a step -------------------------------------------------------------------------- */

/* the rows of an episode and what is solved with them: row i is [Z_i, A_i] */
typedef struct rows {
    float *row;
    size_t count, R, width;
    double gamma, delta;
    double *S, *w, *y; /* (order, order), (count), (width) */
} rows;

/* rows of this iteration: differences of residuals, then of plans */
static void add_rows(const cgs_search *s, const own *o, size_t e, float *to) {
    size_t n = (size_t)s->n, R = (size_t)s->R, K = (size_t)s->K, width = R + n;
    const float *plans = s->plans + e * K * n, *residual = s->residual + e * K * R;
    for (size_t j = 0; j < width; j++) {
        const float *from = j < R ? residual + j : plans + (j - R);
        size_t stride = j < R ? R : n;
        double centre = from[0];
        if (s->config->average) {
            for (size_t k = 1; k < K; k++) centre += from[k * stride];
            centre /= (double)K;
        }
        for (size_t i = 0; i < o->per; i++)
            to[i * width + j] = (float)(from[(K - o->per + i) * stride] - centre);
    }
}

/* (B B^T + delta I) w = B y */
static void solve_rows(rows *b) {
    size_t m = b->count, R = b->R, width = b->width;
    for (size_t i = 0; i < m; i++) {
        const float *u = b->row + i * width;
        for (size_t k = 0; k <= i; k++) {
            const float *v = b->row + k * width;
            b->S[i * m + k] = dot(u, v, R) + b->gamma * dot(u + R, v + R, width - R);
        }
        b->S[i * m + i] += b->delta;
        double sum = 0, pull = 0;
        for (size_t j = 0; j < R; j++) sum += u[j] * b->y[j];
        for (size_t j = R; j < width; j++) pull += u[j] * b->y[j];
        b->w[i] = sum + sqrt(b->gamma) * pull;
    }
    solve(b->S, b->w, m);
}

/* the same by way of (B^T B + delta I) c = y, w = B c; y becomes c */
static void solve_columns(rows *b) {
    size_t width = b->width, R = b->R;
    double root = sqrt(b->gamma);
    memset(b->S, 0, width * width * sizeof *b->S);
    for (size_t r = 0; r < b->count; r++) {
        const float *u = b->row + r * width;
        for (size_t i = 0; i < width; i++) {
            double *S = b->S + i * width, value = i < R ? u[i] : b->gamma * u[i];
            for (size_t k = 0; k <= i; k++) S[k] += value * u[k];
        }
    }
    for (size_t i = R; i < width && root > 0; i++) /* one root was too many beside residuals */
        for (size_t k = 0; k < R; k++) b->S[i * width + k] /= root;
    /* y need not lie in the range of a singular B^T B: linear residuals follow from plans */
    double largest = 0;
    for (size_t i = 0; i < width; i++) largest = fmax(largest, b->S[i * width + i]);
    for (size_t i = 0; i < width; i++)
        b->S[i * width + i] += fmax(b->delta, LEAST_DAMPING * largest);
    solve(b->S, b->y, width);
    for (size_t r = 0; r < b->count; r++) {
        const float *u = b->row + r * width;
        double sum = 0, pull = 0;
        for (size_t j = 0; j < R; j++) sum += u[j] * b->y[j];
        for (size_t j = R; j < width; j++) pull += u[j] * b->y[j];
        b->w[r] = sum + root * pull;
    }
}

static void step(const cgs_search *s, const own *o, size_t e) {
    const cgs_plan_config *c = s->config;
    size_t n = (size_t)s->n, R = (size_t)s->R, turn = (size_t)s->iteration;
    size_t kept = o->per ? o->rows / o->per : 0;
    if (!kept) return; /* the mean alone: nothing is known of other plans */
    float *start = start_of(s, o, e), *mean = s->mean + e * n;
    rows b = {.count = o->per * least(turn + 1, kept), .R = R, .width = R + n, .gamma = c->gamma};
    b.row = (float *)(void *)((unsigned char *)start + aligned(n * sizeof(float)));
    b.S = (double *)(void *)((unsigned char *)b.row + aligned(o->rows * o->width * sizeof(float)));
    b.w = b.S + o->order * o->order;
    b.y = b.w + o->rows;
    add_rows(s, o, e, b.row + turn % kept * o->per * b.width);
    const float *residual = s->residual + e * (size_t)s->K * R;
    for (size_t i = 0; i < b.count; i++)
        b.delta += dot(b.row + i * b.width, b.row + i * b.width, R);
    b.delta *= c->damping / (double)b.count;
    for (size_t j = 0; j < R; j++) b.y[j] = -(double)residual[j];
    for (size_t j = 0; j < n; j++) b.y[R + j] = -sqrt(b.gamma) * ((double)mean[j] - start[j]);
    if (b.count <= b.width)
        solve_rows(&b);
    else
        solve_columns(&b);
    for (size_t j = 0; j < n; j++) {
        double move = 0; /* of A^T w */
        for (size_t i = 0; i < b.count; i++) move += b.w[i] * b.row[i * b.width + R + j];
        mean[j] = (float)(mean[j] + move);
    }
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

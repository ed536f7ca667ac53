/* levenberg_marquardt.c - Gauss-Newton steps by exact Jacobians, kept short where they mislead.
 *
 * Minimises Phi(a) = |r(a)|^2 + gamma |a - start|^2.  With H = J' J + gamma I and half the gradient
 * g = J' r + gamma (a - start), a step solves (H + lambda I) x = -g.  The next iteration scores it:
 * by the ratio of what Phi fell to what the linear model promised lambda shrinks, at most to a
 * third, or, where Phi did not fall, the search goes back and lambda grows, ever faster.
 *
 * Everything of an episode is done by one thread, in double, in a fixed order. */
#include <math.h>
#include <string.h>

#include "core/team.h"
#include "core/threads.h"
#include "plan/dense.h"
#include "plan/search.h"

/* an episode's own: numbers, then start and accepted plan (n), g and step (n), H and factor (n, n)
 */
typedef struct own {
    double phi, lambda, growth, promised;
    double *start, *at, *g, *step, *H, *S;
} own;
enum { NUMBERS = 4 };

static size_t doubles(size_t n) { return NUMBERS + 4 * n + 2 * n * n; }

size_t cgs_plan_levenberg_memory(const cgs_plan_config *c, int E) {
    return (size_t)E * doubles((size_t)c->H * (size_t)c->A) * sizeof(double);
}

static own *own_of(const cgs_search *s, size_t e, own *o) {
    size_t n = (size_t)s->n;
    double *at = (double *)s->own + e * doubles(n);
    memcpy(o, at, NUMBERS * sizeof *at);
    o->start = at + NUMBERS;
    o->at = o->start + n;
    o->g = o->at + n;
    o->step = o->g + n;
    o->H = o->step + n;
    o->S = o->H + n * n;
    return o;
}

static void keep(const cgs_search *s, size_t e, const own *o) {
    memcpy((double *)s->own + e * doubles((size_t)s->n), o, NUMBERS * sizeof(double));
}

void cgs_plan_levenberg_begin(cgs_search *s) {
    for (size_t e = 0; e < (size_t)s->E; e++) {
        own o;
        own_of(s, e, &o);
        for (size_t j = 0; j < (size_t)s->n; j++) o.start[j] = s->mean[e * (size_t)s->n + j];
    }
}

static double objective(const cgs_search *s, const own *o, size_t e) {
    size_t n = (size_t)s->n, R = (size_t)s->R;
    const float *r = s->residual + e * R, *a = s->mean + e * n;
    double pull = 0;
    for (size_t j = 0; j < n; j++) pull += (a[j] - o->start[j]) * (a[j] - o->start[j]);
    return cgs_plan_dot(r, r, R) + s->config->gamma * pull;
}

/* H (its lower half) and g at the present plan */
static void linearise(const cgs_search *s, own *o, size_t e) {
    size_t n = (size_t)s->n, R = (size_t)s->R;
    const float *r = s->residual + e * R, *J = s->jacobian + e * R * n;
    memset(o->H, 0, n * n * sizeof *o->H);
    for (size_t j = 0; j < n; j++) {
        o->at[j] = s->mean[e * n + j];
        o->g[j] = s->config->gamma * (o->at[j] - o->start[j]);
        o->H[j * n + j] = s->config->gamma;
    }
    for (size_t i = 0; i < R; i++) {
        const float *row = J + i * n;
        for (size_t j = 0; j < n; j++) {
            o->g[j] += (double)row[j] * r[i];
            for (size_t k = 0; k <= j; k++) o->H[j * n + k] += (double)row[j] * row[k];
        }
    }
}

static void accept(const cgs_search *s, own *o, size_t e, double phi) {
    double largest = 0, gain = o->promised > 0 ? (o->phi - phi) / o->promised : 1;
    linearise(s, o, e);
    for (size_t j = 0; j < (size_t)s->n; j++) largest = fmax(largest, o->H[j * (size_t)s->n + j]);
    if (s->iteration == 0)
        o->lambda = s->config->damping * largest;
    else
        o->lambda *= fmax(1.0 / 3, 1 - pow(2 * gain - 1, 3));
    o->phi = phi;
    o->growth = 2;
}

static void step(const cgs_search *s, size_t e) {
    size_t n = (size_t)s->n;
    own o;
    own_of(s, e, &o);
    double phi = objective(s, &o, e);
    if (s->iteration == 0 || phi < o.phi) {
        accept(s, &o, e, phi);
    } else {
        o.lambda *= o.growth;
        o.growth *= 2;
    }
    memcpy(o.S, o.H, n * n * sizeof *o.S);
    for (size_t j = 0; j < n; j++) {
        o.S[j * n + j] += o.lambda;
        o.step[j] = -o.g[j];
    }
    cgs_plan_factorise(o.S, n);
    cgs_plan_solve_factored(o.S, o.step, n);
    o.promised = 0;
    for (size_t j = 0; j < n; j++) {
        o.promised += o.step[j] * (o.lambda * o.step[j] - o.g[j]);
        s->mean[e * n + j] = (float)(o.at[j] + o.step[j]);
    }
    keep(s, e, &o);
}

static void steps(void *context) {
    const cgs_search *s = context;
    CGS_QUEUE (e, (size_t)s->E) step(s, e);
}

void cgs_plan_levenberg_update(cgs_search *s) {
    cgs_together(s->E > 1 ? cgs_threads() : 1, steps, s);
}

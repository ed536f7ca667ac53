/* probe.c - see probe.h.  Linear probes of all targets are one regression, because the columns of a
 * ridge are independent; nets are fitted to each target separately unless requested otherwise. */
#include "analysis/probe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define X(name) #name,
const char *const cgs_physical_names[CGS_PHYSICAL_SCORES] = {CGS_PHYSICAL_LIST(X)};
const char *const cgs_latent_names[CGS_LATENT_SCORES] = {CGS_LATENT_LIST(X)};
#undef X

enum { FROM_A, FROM_S, FROM_AS, INPUTS };

static cgs_columns columns_of(const cgs_motion *m, int target) {
    return (cgs_columns){m->F, m->target[target].first, m->target[target].count};
}

/* ---- nets for many targets ---------------------------------------------------------- */

/* the tasks of one call; each owns a copy of its targets and memory for its predictions */
typedef struct nets {
    const cgs_motion *m;
    cgs_mlp_task *task;
    cgs_columns *from; /* (count) the columns of change a task predicts */
    double **to;       /* (count) where its predictions go: (rows, F) */
    int count;
} nets;

static void nets_free(nets *n) {
    for (int i = 0; i < n->count; i++) free(n->task[i].out);
    free(n->task);
    free(n->from);
    free(n->to);
}

static cgs_status nets_begin(nets *n, const cgs_motion *m, int capacity) {
    *n = (nets){.m = m};
    n->task = calloc((size_t)capacity, sizeof *n->task);
    n->from = calloc((size_t)capacity, sizeof *n->from);
    n->to = calloc((size_t)capacity, sizeof *n->to);
    return n->task && n->from && n->to ? CGS_OK : cgs_fail(CGS_ENOMEM, "probe: no memory");
}

static cgs_status nets_add_columns(nets *n, const double *x, int k, cgs_columns c, double *to) {
    size_t rows = (size_t)cgs_parts_rows(&n->m->parts), count = (size_t)c.count;
    double *out = malloc(2 * rows * count * sizeof *out), *y = out + rows * count;
    if (!out) return cgs_fail(CGS_ENOMEM, "probe: no memory for %zu rows", rows);
    for (size_t i = 0; i < rows; i++)
        memcpy(y + i * count, n->m->change + i * (size_t)c.stride + (size_t)c.first,
               count * sizeof *y);
    n->task[n->count] = (cgs_mlp_task){.x = x, .y = y, .k = k, .m = c.count, .out = out};
    n->from[n->count] = c;
    n->to[n->count++] = to;
    return CGS_OK;
}

/* probes of all requested targets from x (rows, k); predictions to `to` (rows, F) */
static cgs_status nets_add(nets *n, const cgs_probe_config *c, const bool *requested,
                           const double *x, int k, double *to) {
    const cgs_motion *m = n->m;
    if (c->joint) return nets_add_columns(n, x, k, (cgs_columns){m->F, 0, m->F}, to);
    for (int t = 0; t < m->targets; t++)
        if (requested[t]) CGS_TRY(nets_add_columns(n, x, k, columns_of(m, t), to));
    return CGS_OK;
}

static cgs_status nets_run(nets *n, const cgs_probe_config *c, cgs_probe_fit_observer watch,
                           void *user) {
    size_t rows = (size_t)cgs_parts_rows(&n->m->parts);
    CGS_TRY(cgs_probe_fit(&n->m->parts, c, n->task, n->count, watch, user));
    for (int i = 0; i < n->count; i++) {
        size_t count = (size_t)n->from[i].count, first = (size_t)n->from[i].first;
        for (size_t r = 0; r < rows; r++)
            memcpy(n->to[i] + r * (size_t)n->m->F + first, n->task[i].out + r * count,
                   count * sizeof(double));
    }
    return CGS_OK;
}

/* ---- the environment ---------------------------------------------------------------- */

void cgs_probe_physics_free(cgs_probe_physics *p) {
    free(p->lin[0]);
    memset(p, 0, sizeof *p);
}

static cgs_status score_physical(cgs_probe_physics *p, const cgs_motion *m, int t) {
    cgs_columns c = columns_of(m, t);
    double *s = p->row[t].score;
    for (int i = 0; i < INPUTS; i++) {
        CGS_TRY(cgs_r_squared(&m->parts, m->change, p->lin[i], c, m->target[t].name, &s[2 * i]));
        CGS_TRY(
            cgs_r_squared(&m->parts, m->change, p->mlp[i], c, m->target[t].name, &s[2 * i + 1]));
    }
    s[CGS_R2_A_given_S] = 1 - cgs_test_error(&m->parts, m->change, p->mlp[FROM_AS], c) /
                                  cgs_test_error(&m->parts, m->change, p->mlp[FROM_S], c);
    return CGS_OK;
}

static cgs_status fit_physical(cgs_probe_physics *p, const cgs_motion *m, const bool *requested,
                               const cgs_probe_config *c, const double *both, nets *n,
                               cgs_probe_fit_observer watch, void *user) {
    const struct {
        const double *x;
        int k;
        const char *what;
    } input[INPUTS] = {{m->action, m->A, "probes from actions"},
                       {m->state, m->S, "probes from states"},
                       {both, m->A + m->S, "probes from actions and states"}};
    CGS_TRY(nets_begin(n, m, INPUTS * CGS_MAX_TARGETS));
    for (int i = 0; i < INPUTS; i++) {
        CGS_TRY(cgs_ridge(&m->parts, input[i].x, input[i].k, m->change, m->F, CGS_RIDGE_COEFFICIENT,
                          input[i].what, p->lin[i]));
        CGS_TRY(nets_add(n, c, requested, input[i].x, input[i].k, p->mlp[i]));
    }
    CGS_TRY(nets_run(n, c, watch, user));
    for (int t = 0; t < m->targets; t++) {
        for (int i = 0; i < CGS_PHYSICAL_SCORES; i++) p->row[t].score[i] = NAN;
        if (requested[t]) CGS_TRY(score_physical(p, m, t));
    }
    return CGS_OK;
}

cgs_status cgs_probe_physical(cgs_probe_physics *p, const cgs_motion *m, const bool *requested,
                              const cgs_probe_config *c, cgs_probe_fit_observer watch, void *user) {
    size_t rows = (size_t)cgs_parts_rows(&m->parts), F = (size_t)m->F;
    size_t A = (size_t)m->A, S = (size_t)m->S;
    memset(p, 0, sizeof *p);
    p->lin[0] = calloc(rows * F * 2 * INPUTS, sizeof(double));
    double *both = malloc(rows * (A + S) * sizeof *both);
    if (!p->lin[0] || !both) {
        free(both);
        return cgs_fail(CGS_ENOMEM, "probe: no memory for %zu rows", rows);
    }
    for (size_t i = 0; i < INPUTS; i++) {
        p->lin[i] = p->lin[0] + 2 * i * rows * F;
        p->mlp[i] = p->lin[i] + rows * F;
    }
    for (size_t i = 0; i < rows; i++) {
        memcpy(both + i * (A + S), m->action + i * A, A * sizeof *both);
        memcpy(both + i * (A + S) + A, m->state + i * S, S * sizeof *both);
    }
    nets n = {0};
    cgs_status rc = fit_physical(p, m, requested, c, both, &n, watch, user);
    nets_free(&n);
    free(both);
    return rc;
}

/* ---- representations ---------------------------------------------------------------- */

/* D_lin, C_A and C_AS are one ridge with three groups of columns: y, fit (rows, 3 F) */
static cgs_status score_latent(const cgs_motion *m, const cgs_probe_physics *p, const double *y,
                               const double *fit, const double *mlp, int t, double *s) {
    enum { CHANGE, EFFECT_A, EFFECT_AS };
    cgs_columns c = columns_of(m, t), group[3];
    const char *name = m->target[t].name;
    for (int g = 0; g < 3; g++) group[g] = (cgs_columns){3 * m->F, g * m->F + c.first, c.count};
    CGS_TRY(cgs_r_squared(&m->parts, y, fit, group[CHANGE], name, &s[CGS_D_lin]));
    CGS_TRY(cgs_r_squared(&m->parts, m->change, mlp, c, name, &s[CGS_D_mlp]));
    CGS_TRY(cgs_r_squared(&m->parts, y, fit, group[EFFECT_A], name, &s[CGS_C_A]));
    CGS_TRY(cgs_r_squared(&m->parts, y, fit, group[EFFECT_AS], name, &s[CGS_C_AS]));

    /* the bridge compares the decoder with the two predictions as they are */
    double total = cgs_test_total(&m->parts, m->change, c), apart[2] = {0, 0};
    const double *effect[2] = {p->lin[FROM_A], p->mlp[FROM_AS]};
    size_t from = (size_t)(m->parts.fit + m->parts.validation), F = (size_t)m->F;
    for (size_t i = from; i < from + (size_t)m->parts.test; i++)
        for (size_t j = (size_t)c.first; j < (size_t)(c.first + c.count); j++)
            for (int k = 0; k < 2; k++) {
                double d = fit[i * 3 * F + j] - effect[k][i * F + j];
                apart[k] += d * d;
            }
    s[CGS_B_A] = 1 - apart[0] / total;
    s[CGS_B_AS] = 1 - apart[1] / total;
    return CGS_OK;
}

static cgs_status fit_linear(const cgs_motion *m, const cgs_probe_physics *p, const double *change,
                             int D, double *y, double *fit) {
    size_t rows = (size_t)cgs_parts_rows(&m->parts), F = (size_t)m->F;
    for (size_t i = 0; i < rows; i++) {
        memcpy(y + i * 3 * F, m->change + i * F, F * sizeof *y);
        memcpy(y + i * 3 * F + F, p->lin[FROM_A] + i * F, F * sizeof *y);
        memcpy(y + i * 3 * F + 2 * F, p->mlp[FROM_AS] + i * F, F * sizeof *y);
    }
    return cgs_ridge(&m->parts, change, D, y, 3 * m->F, CGS_RIDGE_COEFFICIENT,
                     "probes from latents", fit);
}

cgs_status cgs_probe_latent(const cgs_motion *m, const cgs_probe_physics *p, const bool *requested,
                            const cgs_probe_config *c, int models, double *const *change,
                            const int *D, cgs_latent_row *row, cgs_probe_fit_observer watch,
                            void *user) {
    size_t values = (size_t)cgs_parts_rows(&m->parts) * (size_t)m->F;
    double *all = calloc(values * (6 + (size_t)models), sizeof *all);
    if (!all) return cgs_fail(CGS_ENOMEM, "probe: no memory for %d models", models);
    double *y = all, *fit = all + 3 * values, *mlp = all + 6 * values;
    nets n = {0};
    cgs_status rc = nets_begin(&n, m, models * CGS_MAX_TARGETS + 1);
    for (int i = 0; i < models && rc == CGS_OK; i++)
        rc = nets_add(&n, c, requested, change[i], D[i], mlp + (size_t)i * values);
    if (rc == CGS_OK) rc = nets_run(&n, c, watch, user);
    nets_free(&n);
    for (int i = 0; i < models && rc == CGS_OK; i++) {
        rc = fit_linear(m, p, change[i], D[i], y, fit);
        for (int t = 0; t < m->targets && rc == CGS_OK; t++) {
            double *s = row[i * CGS_MAX_TARGETS + t].score;
            for (int k = 0; k < CGS_LATENT_SCORES; k++) s[k] = NAN;
            if (requested[t]) rc = score_latent(m, p, y, fit, mlp + (size_t)i * values, t, s);
        }
    }
    free(all);
    return rc;
}

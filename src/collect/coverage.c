/* coverage.c - one pass over the number columns of a dataset. */
#include "collect/coverage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/dataset.h"
#include "data/stats.h"
#include "env/env.h"
#include "env/portable.h"

/* a whole column as floats, (rows, values); NULL columns are fine when they are optional */
static cgs_status load(cgs_dataset *d, const char *name, int values, bool optional, float **out) {
    const cgs_source *s = cgs_dataset_source(d);
    int c = cgs_source_find(s, name);
    *out = NULL;
    if (c < 0 && optional) return CGS_OK;
    if (c < 0) return cgs_fail(CGS_EFORMAT, "%s: no column \"%s\"", s->path, name);
    if (s->columns[c].values != (size_t)values)
        return cgs_fail(CGS_EFORMAT, "%s: column \"%s\" has %zu values per row, not %d", s->path,
                        name, s->columns[c].values, values);
    *out = malloc((size_t)s->rows * (size_t)values * sizeof **out);
    if (!*out) return cgs_fail(CGS_ENOMEM, "%s: no memory for column \"%s\"", s->path, name);
    return cgs_dataset_read_rows(d, name, 0, (int)s->rows, *out);
}

static int ascending(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* where a state has the position of what moves */
typedef struct mover {
    const char *env;
    int at, axes; /* its first coordinate, and how many there are */
    int angle;    /* -1: none */
} mover;

static const mover MOVERS[] = {{"pusht", 2, 2, 4}, {"cube", 14, 3, -1}};
static const mover AGENT = {"", 0, 2,
                            -1}; /* elsewhere: the agent, which comes first in the state */

/* movement over the span; dim: numbers of a state */
static cgs_status movement(cgs_coverage *c, const cgs_source *s, const float *state, int dim,
                           const mover *m, double short_move) {
    float *moves = malloc((size_t)s->rows * sizeof *moves);
    if (!moves) return cgs_fail(CGS_ENOMEM, "%s: no memory for its movements", s->path);
    size_t n = 0, brief = 0;
    double sum = 0, turn = 0;
    for (int e = 0; e < s->episodes; e++)
        for (int t = 0; t + CGS_COVERAGE_SPAN < s->ep_len[e]; t++) {
            const float *a = state + (size_t)(s->ep_offset[e] + t) * (size_t)dim;
            const float *b = a + CGS_COVERAGE_SPAN * dim;
            double d = 0;
            for (int k = m->at; k < m->at + m->axes; k++)
                d += ((double)b[k] - a[k]) * ((double)b[k] - a[k]);
            d = sqrt(d);
            moves[n++] = (float)d;
            sum += d;
            brief += d < short_move;
            if (m->angle >= 0) turn += fabs(cgs_wrap_half_turn((double)b[m->angle] - a[m->angle]));
        }
    qsort(moves, n, sizeof *moves, ascending);
    c->move_mean = n ? sum / (double)n : NAN;
    c->move_median = n ? (double)moves[n / 2] : NAN;
    c->move_short = n ? (double)brief / (double)n : NAN;
    c->turn_mean = n && m->angle >= 0 ? turn / (double)n : NAN;
    free(moves);
    return CGS_OK;
}

static cgs_status compute(cgs_coverage *c, cgs_dataset *d, const char *env, double short_move) {
    const cgs_source *s = cgs_dataset_source(d);
    const cgs_env_class *cls;
    mover moves = AGENT;
    const mover *m = &moves;
    CGS_TRY(cgs_env_find(env, &cls));
    int dim = cls->state_dim;
    if (moves.axes > dim) moves.axes = dim;
    for (size_t i = 0; i < sizeof MOVERS / sizeof MOVERS[0]; i++)
        if (!strcmp(MOVERS[i].env, env)) m = &MOVERS[i];
    cgs_stats actions;
    c->episodes = s->episodes;
    c->rows = s->rows;
    c->shortest = s->episodes ? s->ep_len[0] : 0;
    for (int e = 0; e < s->episodes; e++) {
        if (s->ep_len[e] < c->shortest) c->shortest = s->ep_len[e];
        if (s->ep_len[e] > c->longest) c->longest = s->ep_len[e];
        c->mean_length += (double)s->ep_len[e] / s->episodes;
    }
    CGS_TRY(cgs_stats_compute(&actions, s, "action"));
    for (int i = 0; i < 2; i++) {
        c->action_mean[i] = i < actions.dims ? actions.mean[i] : NAN;
        c->action_std[i] = i < actions.dims ? actions.std_population[i] : NAN;
    }

    float *state = NULL, *ends = NULL, *contacts = NULL;
    cgs_status rc = load(d, "state", dim, false, &state);
    if (rc == CGS_OK) rc = load(d, "terminated", 1, true, &ends);
    if (rc == CGS_OK) rc = load(d, "n_contacts", 1, true, &contacts);
    if (rc == CGS_OK) rc = movement(c, s, state, dim, m, short_move);
    c->terminated = c->contact = NAN;
    if (rc == CGS_OK && ends) {
        int n = 0;
        for (int e = 0; e < s->episodes; e++) n += ends[s->ep_offset[e] + s->ep_len[e] - 1] > 0;
        c->terminated = (double)n / s->episodes;
    }
    if (rc == CGS_OK && contacts) {
        int64_t n = 0;
        for (int64_t i = 0; i < s->rows; i++) n += contacts[i] > 0;
        c->contact = (double)n / (double)s->rows;
    }
    free(state);
    free(ends);
    free(contacts);
    return rc;
}

cgs_status cgs_coverage_compute(cgs_coverage *c, const char *path, const char *env,
                                double short_move) {
    cgs_dataset *d;
    memset(c, 0, sizeof *c);
    CGS_TRY(cgs_dataset_open(&d, path));
    cgs_status rc = compute(c, d, env, short_move);
    cgs_dataset_close(d);
    return rc;
}

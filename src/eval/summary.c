/* summary.c - see summary.h. */
#include "eval/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/planners.h"

enum { RESAMPLES = 10000 };

void cgs_summary_free(cgs_summary *s) {
    free(s->row);
    free(s->area);
    free(s->pair);
    memset(s, 0, sizeof *s);
}

/* runs of a setting and a model lie together, one per seed */
static const cgs_eval_run *runs_of(const cgs_evaluation *e, int seeds, int setting, int model) {
    return e->run + ((size_t)setting * (size_t)e->models + (size_t)model) * (size_t)seeds;
}

static void add_first(cgs_first_plans *to, const cgs_first_plans *f, int seeds) {
    to->successes = f->successes < 0 || to->successes < 0 ? -1 : to->successes + f->successes;
    to->cost += f->cost / seeds;
    to->size += f->size / seeds;
    to->p50 += f->p50 / seeds;
    to->p99 += f->p99 / seeds;
}

static void summarise_row(cgs_summary_row *row, const cgs_eval_run *r, int seeds, double *rates) {
    *row = (cgs_summary_row){.model = r->model, .plan = &r->plan, .seeds = seeds};
    for (int i = 0; i < seeds; i++) {
        const cgs_eval_result *x = &r[i].result;
        rates[i] = 100.0 * x->successes / x->episodes;
        row->episodes += x->episodes;
        row->successes += x->successes;
        row->seconds += x->seconds / seeds;
        add_first(&row->first, &x->first, seeds);
    }
    row->mean = cgs_mean(rates, seeds);
    row->sd = cgs_sample_sd(rates, seeds);
    cgs_interval w = cgs_wilson(row->successes, row->episodes);
    row->wilson = (cgs_interval){100 * w.low, 100 * w.high};
}

/* ---- sweeps ------------------------------------------------------------------------ */

static double setting_of(const cgs_plan_config *p, cgs_sweep over) {
    switch (over) {
    case CGS_SWEEP_SAMPLES: return p->K;
    case CGS_SWEEP_ITERS: return p->iters;
    case CGS_SWEEP_ROLLOUTS: return (double)p->K * p->iters;
    default: return (double)p->tau;
    }
}

/* the same but for the swept setting */
static bool same_sweep(const cgs_summary_row *a, const cgs_summary_row *b, cgs_sweep over) {
    cgs_plan_config x = *a->plan, y = *b->plan;
    const cgs_planner_kind *kind = cgs_planner_kind_of(x.kind.s);
    if (a->model != b->model || strcmp(x.kind.s, y.kind.s)) return false;
    if (over == CGS_SWEEP_ROLLOUTS)
        return cgs_planner_divides(kind, x.K, x.iters) && cgs_planner_divides(kind, y.K, y.iters) &&
               x.tau == y.tau;
    return (over == CGS_SWEEP_SAMPLES || x.K == y.K) &&
           (over == CGS_SWEEP_ITERS || x.iters == y.iters) &&
           (over == CGS_SWEEP_TAU || x.tau == y.tau);
}

typedef struct point {
    double x, rate;
} point;

static int by_x(const void *a, const void *b) {
    double x = ((const point *)a)->x, y = ((const point *)b)->x;
    return (x > y) - (x < y);
}

static cgs_status add_area(cgs_summary *s, int first, cgs_sweep over, point *p, double *xs) {
    const cgs_summary_row *row = &s->row[first];
    for (int i = 0; i < first; i++)
        if (same_sweep(&s->row[i], row, over)) return CGS_OK; /* counted with its first row */
    int n = 0;
    for (int i = first; i < s->rows; i++)
        if (same_sweep(&s->row[i], row, over))
            p[n++] = (point){setting_of(s->row[i].plan, over), s->row[i].mean};
    if (n < 2) return CGS_OK;
    qsort(p, (size_t)n, sizeof *p, by_x);
    cgs_summary_area *a = &s->area[s->areas++];
    *a = (cgs_summary_area){row->model, over, row->plan, n, p[0].x, p[n - 1].x, 0};
    double *rates = xs + n;
    for (int i = 0; i < n; i++) {
        xs[i] = over == CGS_SWEEP_ITERS ? p[i].x : log2(p[i].x);
        rates[i] = p[i].rate;
    }
    return cgs_nauc(xs, rates, n, &a->nauc);
}

static cgs_status add_areas(cgs_summary *s) {
    size_t n = (size_t)s->rows;
    point *p = malloc(n * sizeof *p);
    double *xs = malloc(2 * n * sizeof *xs);
    cgs_status rc = p && xs ? CGS_OK : cgs_fail(CGS_ENOMEM, "summary: no memory");
    for (int i = 0; i < s->rows && rc == CGS_OK; i++)
        for (int over = 0; over < CGS_SWEEPS && rc == CGS_OK; over++)
            rc = add_area(s, i, (cgs_sweep)over, p, xs);
    free(p);
    free(xs);
    return rc;
}

/* ---- comparisons ------------------------------------------------------------------- */

static cgs_status compare(cgs_summary_pair *p, const cgs_eval_run *a, const cgs_eval_run *b,
                          int seeds) {
    int n = 0, at = 0;
    for (int i = 0; i < seeds; i++) {
        if (a[i].result.episodes != b[i].result.episodes)
            return cgs_fail(CGS_EFORMAT, "results %s and %s have %d and %d episodes: no pairs",
                            a[i].result.hash, b[i].result.hash, a[i].result.episodes,
                            b[i].result.episodes);
        n += a[i].result.episodes;
    }
    uint8_t *x = malloc(2 * (size_t)n), *y = x ? x + n : NULL;
    if (!x) return cgs_fail(CGS_ENOMEM, "summary: no memory for %d pairs", n);
    for (int i = 0; i < seeds; at += a[i].result.episodes, i++) {
        memcpy(x + at, b[i].result.success, (size_t)a[i].result.episodes);
        memcpy(y + at, a[i].result.success, (size_t)a[i].result.episodes);
    }
    *p = (cgs_summary_pair){.a = a->model, .b = b->model, .plan = &a->plan};
    cgs_status rc = cgs_compare_paired(x, y, n, RESAMPLES, 0, &p->paired);
    free(x);
    return rc;
}

cgs_status cgs_summarise(cgs_summary *s, const cgs_evaluation *e) {
    memset(s, 0, sizeof *s);
    if (e->count < 1) return cgs_fail(CGS_EARG, "summary: nothing was evaluated");
    int seeds = 1;
    while (seeds < e->count && e->run[seeds].model == e->run[0].model &&
           e->run[seeds].seed != e->run[0].seed)
        seeds++;
    int settings = e->count / (seeds * e->models), M = e->models;
    s->rows = settings * M;
    double *rates = malloc((size_t)seeds * sizeof *rates);
    s->row = calloc((size_t)s->rows, sizeof *s->row);
    s->area = calloc(CGS_SWEEPS * (size_t)s->rows, sizeof *s->area);
    s->pair = calloc((size_t)settings * (size_t)M * (size_t)M, sizeof *s->pair);
    cgs_status rc = CGS_OK;
    if (!rates || !s->row || !s->area || !s->pair) rc = cgs_fail(CGS_ENOMEM, "summary: no memory");
    for (int k = 0; k < settings && rc == CGS_OK; k++)
        for (int m = 0; m < M && rc == CGS_OK; m++) {
            summarise_row(&s->row[k * M + m], runs_of(e, seeds, k, m), seeds, rates);
            for (int a = 0; a < m && rc == CGS_OK; a++)
                rc = compare(&s->pair[s->pairs++], runs_of(e, seeds, k, a), runs_of(e, seeds, k, m),
                             seeds);
        }
    free(rates);
    if (rc == CGS_OK) rc = add_areas(s);
    return rc;
}

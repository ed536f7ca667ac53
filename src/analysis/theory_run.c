/* theory_run.c - the table of statements, comparisons, and runs over many systems. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>
#include <stdatomic.h>

#include "analysis/theory.h"
#include "core/statistics.h"
#include "core/team.h"
#include "core/threads.h"

#define ROUNDING 1e-9
#define MATRICES 400

const cgs_statement cgs_statements[CGS_STATEMENT_COUNT] = {
#define X(function, name, what, hypotheses, check)                                                 \
    {#function, name, what, hypotheses, check, cgs_check_##function},
    CGS_STATEMENTS(X)
#undef X
};

/* ---- comparisons ------------------------------------------------------------------- */

static void note(cgs_theory_trial *t, double margin) {
    t->comparisons++;
    /* a NaN is a violation too */
    if (!(margin >= 0)) t->violations++;
    if (isnan(margin)) margin = -INFINITY;
    t->margin = fmin(t->margin, margin);
}

/* relative difference of two numbers; equal numbers have none even where the reference is 0 */
static double share(double part, double whole) {
    if (whole > 0) return part / whole;
    return part > 0 ? INFINITY : part < 0 ? -INFINITY : part;
}

void cgs_at_most(cgs_theory_trial *t, double value, double bound, double scale) {
    double rounding = ROUNDING * fabs(scale), spoiled = bound * t->tamper;
    note(t, share(spoiled - value + rounding, fabs(bound) + rounding));
    if (bound > rounding) t->tightness = fmax(t->tightness, value / bound);
}

void cgs_equal_within(cgs_theory_trial *t, double value, double expected, double scale,
                      double tolerance) {
    double spoiled = expected + (t->tamper - 1) * scale;
    double error = share(fabs(value - spoiled), scale);
    note(t, 1 - error / tolerance);
    t->error = fmax(t->error, error);
}

void cgs_equal(cgs_theory_trial *t, double value, double expected, double scale) {
    cgs_equal_within(t, value, expected, scale, 1e-8);
}

void cgs_mean_is(cgs_theory_trial *t, double mean, double standard_error, double expected) {
    double off = fabs(mean - expected * t->tamper);
    note(t, 1 - share(off, CGS_DEVIATIONS * standard_error + ROUNDING * fabs(expected)));
}

cgs_theory_trial cgs_statement_try(const cgs_statement *s, const cgs_facts *f, cgs_work *w,
                                   cgs_rng rng, double tamper) {
    cgs_theory_trial t = {
        .tamper = tamper, .rng = rng, .margin = INFINITY, .tightness = -1, .error = -1};
    size_t mark = cgs_work_mark(w);
    s->run(f, w, &t);
    cgs_work_release(w, mark);
    if (w->failed) {
        t.outside = NULL;
        t.violations++;
        t.margin = -INFINITY;
        w->failed = false;
    }
    return t;
}

/* ---- many systems ------------------------------------------------------------------ */

static void try_system(const cgs_theory_run *run, int index, cgs_work *w,
                       cgs_theory_trial *trials) {
    cgs_system s;
    cgs_facts f;
    w->used = 0;
    cgs_system_draw(&s, w, run->seed, (uint64_t)index);
    cgs_facts_derive(&f, &s, w);
    for (int k = 0; k < CGS_STATEMENT_COUNT; k++) {
        /* seeded by the row's name, so that a new row does not shift the samples of others */
        uint64_t name = 0;
        for (const char *c = cgs_statements[k].key; *c; c++)
            name = cgs_mix64(name ^ (uint64_t)(unsigned char)*c);
        cgs_rng rng = cgs_rng_stream(run->seed, CGS_STREAM_THEORY, name ^ (uint64_t)index);
        trials[k] = cgs_statement_try(&cgs_statements[k], &f, w, rng, run->tamper);
    }
}

static void sum_up(cgs_finding *out, const cgs_theory_trial *trials, int systems, double *scratch) {
    *out = (cgs_finding){.worst_margin = INFINITY, .worst_error = NAN, .median_tightness = NAN};
    int tight = 0;
    for (int i = 0; i < systems; i++) {
        const cgs_theory_trial *t = &trials[(size_t)i * CGS_STATEMENT_COUNT];
        if (t->outside || !t->comparisons) {
            out->outside++;
            continue;
        }
        out->trials++;
        out->violations += t->violations > 0;
        if (t->margin < out->worst_margin) {
            out->worst_margin = t->margin;
            out->worst_system = (uint64_t)i;
        }
        if (t->tightness >= 0) scratch[tight++] = t->tightness;
        if (t->error >= 0)
            out->worst_error = fmax(t->error, isnan(out->worst_error) ? 0 : out->worst_error);
    }
    if (tight) out->median_tightness = cgs_median(scratch, tight);
    if (!out->trials) out->worst_margin = NAN;
}

/* what the threads share */
typedef struct trying {
    cgs_theory_run *run;
    cgs_theory_trial *trials;
    cgs_work *work; /* (threads) */
    cgs_theory_watch watch;
    void *user;
    _Atomic int done;
    atomic_bool stop;
} trying;

static void try_systems(void *context) {
    trying *t = context;
    CGS_QUEUE (i, (size_t)t->run->systems) {
        if (t->stop) continue;
        try_system(t->run, (int)i, &t->work[cgs_member()], t->trials + i * CGS_STATEMENT_COUNT);
        int now = ++t->done;
        if (cgs_member() == 0 && t->watch && !t->watch(t->user, now, t->run->systems))
            t->stop = true;
    }
}

cgs_status cgs_theory_try_all(cgs_theory_run *run, cgs_theory_watch watch, void *user) {
    int threads = cgs_threads(), blas = openblas_get_num_threads();
    cgs_theory_trial *trials = calloc((size_t)run->systems * CGS_STATEMENT_COUNT, sizeof *trials);
    double *scratch = malloc((size_t)run->systems * sizeof *scratch);
    cgs_work *work = calloc((size_t)threads, sizeof *work);
    cgs_status rc = trials && scratch && work
                        ? CGS_OK
                        : cgs_fail(CGS_ENOMEM, "no memory for %d systems", run->systems);
    for (int i = 0; rc == CGS_OK && i < threads; i++)
        rc = cgs_work_create(&work[i], MATRICES, CGS_SYSTEM_SIDE);
    if (rc == CGS_OK) {
        openblas_set_num_threads(1); /* the threads are ours */
        trying t = {.run = run, .trials = trials, .work = work, .watch = watch, .user = user};
        cgs_together(threads, try_systems, &t);
        openblas_set_num_threads(blas);
        if (t.stop) rc = cgs_fail(CGS_ESTOPPED, "stopped after %d systems", t.done);
    }
    for (int k = 0; rc == CGS_OK && k < CGS_STATEMENT_COUNT; k++)
        sum_up(&run->finding[k], trials + k, run->systems, scratch);
    for (int i = 0; work && i < threads; i++) cgs_work_destroy(&work[i]);
    free(work);
    free(scratch);
    free(trials);
    return rc;
}

/* architectures.c - see architectures.h.
 *
 * The paper's seconds come from its own machine and code; only ratios of two architectures on one
 * machine can be compared. */
#include "cli/architectures.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "analysis/document.h"
#include "core/build.h"
#include "core/threads.h"
#include "report/method.h"
#include "report/paper_rates.h"

enum { SOLVES = 2 /* of an episode in the paper's protocol */ };

/* time relative to LeWM; NAN where the paper gives none */
static double published_ratio(const char *method, const char *planner) {
    double own, lewm;
    if (!cgs_published_seconds(method, planner, &own) ||
        !cgs_published_seconds("lewm", planner, &lewm))
        return (double)NAN;
    return own / lewm;
}

static void fill_document(cJSON *doc, cgs_device *d, const cgs_timing_options *o,
                          const cgs_architecture_time *a) {
    struct utsname host;
    uname(&host);
    cgs_document_text_field(doc, "code_version", cgs_version());
    cgs_document_text_field(doc, "device", d->ops->name);
    cgs_document_text_field(doc, "machine", host.machine);
    cgs_document_text_field(doc, "precision", o->precision);
    cgs_document_text_field(doc, "size", o->size);
    cgs_document_number(doc, "threads", cgs_threads());
    cgs_document_number(doc, "samples", o->work.samples);
    cgs_document_number(doc, "iters", o->work.iters);
    cgs_document_number(doc, "gd_steps", o->work.gd_steps);
    cgs_document_number(doc, "runs", o->work.runs);
    cgs_document_number(doc, "solves", SOLVES);
    cJSON *models = cgs_document_array(doc, "models");
    for (int i = 0; i < CGS_ARCHITECTURES; i++) {
        cJSON *m = cgs_document_object(models, NULL);
        cgs_document_text_field(m, "method", a[i].method);
        cgs_document_number(m, "parameters", (double)a[i].parameters);
        cgs_document_number(m, "latent", a[i].latent);
        cJSON *planners = cgs_document_array(m, "planners");
        for (int k = 0; k < CGS_TIMED_PLANNERS; k++) {
            const cgs_solve_time *t = &a[i].solve[k];
            cJSON *p = cgs_document_object(planners, NULL);
            cgs_document_text_field(p, "planner", t->planner);
            cgs_document_number(p, "episodes", t->episodes);
            cgs_document_number(p, "seconds", SOLVES * t->seconds);
            cgs_document_number(p, "least", SOLVES * t->least);
            cgs_document_number(p, "most", SOLVES * t->most);
            cgs_document_number(p, "ratio", t->seconds / a[0].solve[k].seconds);
        }
    }
}

static void print_table(cgs_device *d, const cgs_timing_options *o,
                        const cgs_architecture_time *a) {
    printf("seconds of planning an episode (two solves): K = %d, I = %d, %d steps of GD (%d "
           "episodes together);\nsize %s, %s, %s, %d threads, median of %d\n\n",
           o->work.samples, o->work.iters, o->work.gd_steps, o->work.episodes, o->size,
           d->ops->name, o->precision, cgs_threads(), o->work.runs);
    printf("%-16s %10s %10s", "model", "parameters", "latent");
    for (int k = 0; k < CGS_TIMED_PLANNERS; k++)
        printf(" %12s", cgs_planner_name(a[0].solve[k].planner));
    for (int i = 0; i < CGS_ARCHITECTURES; i++) {
        printf("\n%-16s %10zu %10d", cgs_method_title(a[i].method), a[i].parameters, a[i].latent);
        for (int k = 0; k < CGS_TIMED_PLANNERS; k++)
            printf(" %12.4g", SOLVES * a[i].solve[k].seconds);
    }
    printf("\n\n%-38s", "times as long as LeWM");
    for (int i = 1; i < CGS_ARCHITECTURES; i++) {
        printf("\n%-38s", cgs_method_title(a[i].method));
        for (int k = 0; k < CGS_TIMED_PLANNERS; k++)
            printf(" %11.1fx", a[i].solve[k].seconds / a[0].solve[k].seconds);
        if (!isfinite(published_ratio(a[i].method, a[i].solve[0].planner))) continue;
        printf("\n%-38s", "  the paper, its own machine");
        for (int k = 0; k < CGS_TIMED_PLANNERS; k++)
            printf(" %11.1fx", published_ratio(a[i].method, a[i].solve[k].planner));
    }
    printf("\n");
}

cgs_status cgs_architectures(cgs_device *d, const cgs_timing_options *o) {
    cgs_architecture_time a[CGS_ARCHITECTURES];
    cgs_dtype act = !strcmp(o->precision, "f32") ? CGS_F32 : CGS_BF16;
    cJSON *doc;
    CGS_TRY(cgs_bench_architectures(d, o->size, act, &o->work, a));
    CGS_TRY(cgs_document_create(&doc, "cgs-timing", o->command, "pusht"));
    fill_document(doc, d, o, a);
    cgs_status rc = o->out ? cgs_document_save(doc, o->out) : CGS_OK;
    if (rc == CGS_OK && o->json) {
        rc = cgs_document_print(doc, stdout);
    } else if (rc == CGS_OK) {
        print_table(d, o, a);
    }
    cJSON_Delete(doc);
    return rc;
}

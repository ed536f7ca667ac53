/* cmd_theory.c - cgs theory: checks the statements of the theory and measures models. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/document.h"
#include "analysis/theory_model.h"
#include "analysis/theory_system.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/lists.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "core/threads.h"
#include "train/method.h"

typedef struct job {
    int systems, anchors, horizon, threads;
    uint64_t seed;
    const char *system, *data, *out, *device, *precision;
    cgs_texts models;
    bool json, quiet;
    cJSON *doc;
} job;

/* ---- random systems ---------------------------------------------------------------- */

static bool on_system(void *user, int done, int total) {
    (void)total;
    cgs_progress_update(user, done, NULL);
    return !cgs_interrupted();
}

/* a number, or a dash */
static void cell(double x, const char *format) {
    if (isfinite(x))
        printf(format, x);
    else
        printf("%10s", "-");
}

static void print_findings(const cgs_theory_run *run, double seconds) {
    int bad = 0;
    printf("%-30s %6s %7s %8s %10s %10s %10s  %s\n", "statement", "trials", "outside", "violated",
           "margin", "tightness", "error", "what");
    for (int k = 0; k < CGS_STATEMENT_COUNT; k++) {
        const cgs_finding *f = &run->finding[k];
        printf("%-30s %6d %7d %8d ", cgs_statements[k].name, f->trials, f->outside, f->violations);
        cell(f->worst_margin, "%10.3g");
        cell(f->median_tightness, " %9.3f");
        cell(f->worst_error, " %9.1e");
        printf("  %s\n", cgs_statements[k].what);
        bad += f->violations > 0;
    }
    printf("\n%d statements on %d systems of seed %llu: %s%d violated; %.1f s\n",
           CGS_STATEMENT_COUNT, run->systems, (unsigned long long)run->seed,
           bad ? "" : "all hold, ", bad, seconds);
}

static cgs_status many(job *j) {
    if (j->systems < 1 || j->systems > 1000000)
        return cgs_fail(CGS_EARG, "--systems: %d is not in 1 ... 1000000", j->systems);
    cgs_theory_run *run = calloc(1, sizeof *run);
    if (!run) return cgs_fail(CGS_ENOMEM, "no memory");
    *run = (cgs_theory_run){.systems = j->systems, .seed = j->seed, .tamper = 1};
    cgs_progress bar;
    double start = cgs_now();
    int bad = 0;
    cgs_progress_begin(&bar, "systems", j->systems, j->quiet);
    cgs_status rc = cgs_theory_try_all(run, on_system, &bar);
    cgs_progress_end(&bar);
    if (rc == CGS_ESTOPPED) rc = cgs_fail(CGS_EIO, "stopped; nothing was written");
    cgs_document_number(j->doc, "systems", j->systems);
    cgs_document_number(j->doc, "seed", (double)j->seed);
    cJSON *list = cgs_document_array(j->doc, "statements");
    for (int k = 0; rc == CGS_OK && k < CGS_STATEMENT_COUNT; k++) {
        const cgs_statement *s = &cgs_statements[k];
        const cgs_finding *f = &run->finding[k];
        cJSON *o = cgs_document_object(list, NULL);
        cgs_document_text_field(o, "name", s->name);
        cgs_document_text_field(o, "what", s->what);
        cgs_document_text_field(o, "hypotheses", s->hypotheses);
        cgs_document_text_field(o, "check", s->check);
        cgs_document_number(o, "trials", f->trials);
        cgs_document_number(o, "outside", f->outside);
        cgs_document_number(o, "violations", f->violations);
        cgs_document_number(o, "worst_margin", f->worst_margin);
        cgs_document_number(o, "worst_system", f->trials ? (double)f->worst_system : NAN);
        cgs_document_number(o, "median_tightness", f->median_tightness);
        cgs_document_number(o, "worst_error", f->worst_error);
        bad += f->violations > 0;
    }
    if (rc == CGS_OK && !j->json) print_findings(run, cgs_now() - start);
    free(run);
    if (rc == CGS_OK && bad) rc = cgs_fail(CGS_ENUMERIC, "%d statements were violated", bad);
    return rc;
}

/* ---- one system -------------------------------------------------------------------- */

/* returns how many statements were violated */
static int tell_system(job *j, const cgs_facts *f, cgs_work *w) {
    cgs_quantity q[CGS_QUANTITIES_MAX];
    int n = cgs_system_quantities(f, w, j->seed, q), bad = 0;
    cJSON *o = cgs_document_object(j->doc, "system");
    cgs_document_number(o, "d", f->d);
    cgs_document_number(o, "d_a", f->da);
    cgs_document_number(o, "H", f->H);
    cgs_document_number(o, "c", f->c);
    cJSON *list = cgs_document_array(o, "quantities");
    for (int i = 0; i < n; i++) {
        cJSON *row = cgs_document_object(list, NULL);
        cgs_document_text_field(row, "name", q[i].name);
        cgs_document_number(row, "value", q[i].outside ? NAN : q[i].value);
        if (q[i].outside) cgs_document_text_field(row, "outside", q[i].outside);
        if (j->json) continue;
        if (q[i].outside)
            printf("%-42s outside: %s\n", q[i].name, q[i].outside);
        else
            printf("%-42s %.6g\n", q[i].name, q[i].value);
    }
    cJSON *statements = cgs_document_array(o, "statements");
    if (!j->json) printf("\n");
    for (int k = 0; k < CGS_STATEMENT_COUNT; k++) {
        const cgs_statement *s = &cgs_statements[k];
        cgs_rng rng = cgs_rng_stream(j->seed, CGS_STREAM_THEORY, (uint64_t)k);
        cgs_theory_trial t = cgs_statement_try(s, f, w, rng, 1);
        bad += !t.outside && t.violations;
        cJSON *row = cgs_document_object(statements, NULL);
        cgs_document_text_field(row, "name", s->name);
        cgs_document_number(row, "worst_margin", t.outside ? NAN : t.margin);
        if (t.outside)
            cgs_document_text_field(row, "outside", t.outside);
        else
            cgs_document_number(row, "violations", t.violations);
        if (j->json) continue;
        if (t.outside)
            printf("%-30s outside: %s\n", s->name, t.outside);
        else
            printf("%-30s %s, margin %.3g\n", s->name, t.violations ? "VIOLATED" : "holds",
                   t.margin);
    }
    return bad;
}

static cgs_status one(job *j, int *bad) {
    cgs_system s;
    cgs_facts f;
    cgs_work w;
    cgs_status rc = cgs_system_read(&s, &w, j->system);
    if (rc == CGS_OK) {
        cgs_facts_derive(&f, &s, &w);
        if (w.failed)
            rc = cgs_fail(CGS_ENUMERIC, "%s: a decomposition did not converge", j->system);
    }
    if (rc == CGS_OK) *bad = tell_system(j, &f, &w);
    cgs_work_destroy(&w);
    return rc;
}

/* ---- models ------------------------------------------------------------------------ */

static bool on_anchor(void *user, const char *dir, double done, double total) {
    (void)dir;
    (void)total;
    cgs_progress_update(user, done, NULL);
    return !cgs_interrupted();
}

static void print_mean(const char *name, const cJSON *row, const char *key) {
    const cJSON *o = cJSON_GetObjectItem(row, key);
    if (cJSON_IsObject(o))
        printf("  %-34s %8.3g  [%.3g, %.3g]\n", name, cJSON_GetObjectItem(o, "mean")->valuedouble,
               cJSON_GetObjectItem(o, "lo")->valuedouble,
               cJSON_GetObjectItem(o, "hi")->valuedouble);
    else
        printf("  %-34s outside: eps >= 1 at every anchor\n", name);
}

static cgs_status tell_model(job *j, cJSON *list, const cgs_loaded_model *s,
                             const cgs_model_theory *m) {
    int n = m->anchors, inside = 0;
    const char *title = cgs_method_title(s->card.method);
    cJSON *o = cgs_document_object(list, NULL);
    cgs_document_text_field(o, "name", title);
    cgs_document_text_field(o, "method", s->card.method);
    cgs_document_text_field(o, "model", s->dir);
    cgs_document_number(o, "anchors", n);
    cgs_document_number(o, "horizon", m->H);
    CGS_TRY(cgs_document_mean(o, "drift", m->drift, n));
    CGS_TRY(cgs_document_mean(o, "mixed_defect", m->mixed, n));
    CGS_TRY(cgs_document_mean(o, "control_defect", m->control, n));
    CGS_TRY(cgs_document_mean(o, "isotropy", m->isotropy, n));
    CGS_TRY(cgs_document_mean(o, "isotropy_moves", m->moves, n));
    CGS_TRY(cgs_document_mean(o, "epsilon", m->eps, n));
    CGS_TRY(cgs_document_mean(o, "hessian_gap", m->gap, n));
    for (int i = 0; i < n; i++) /* xi exists where eps < 1 */
        if (isfinite(m->xi[i])) m->xi[inside++] = m->xi[i];
    if (inside)
        CGS_TRY(cgs_document_mean(o, "xi", m->xi, inside));
    else
        cgs_document_number(o, "xi", NAN);
    cgs_document_number(o, "eps_below_one", m->eps_below_one);
    cgs_document_number(o, "xi_below_one", m->xi_below_one);
    cgs_document_number(o, "rho", m->rho);
    cgs_document_number(o, "rho_bar", m->rho_bar);
    cgs_document_number(o, "difference_error", m->difference);
    cgs_document_text_field(o, "holds", m->holds);
    if (j->json) return CGS_OK;
    printf("%s (%s), %d anchors, d %d, d_a %d\n", title, s->dir, n, m->D, m->block);
    print_mean("drift |D|", o, "drift");
    print_mean("mixed defect |D^T B| / sqrt(c)", o, "mixed_defect");
    print_mean("control defect |B^T B - cI| / c", o, "control_defect");
    print_mean("isotropy of B^T B, whole blocks", o, "isotropy");
    print_mean("isotropy of B^T B, even moves", o, "isotropy_moves");
    print_mean("least eps", o, "epsilon");
    print_mean("xi_H", o, "xi");
    print_mean("|G_H/(cH) - P_H|", o, "hessian_gap");
    printf("  derivatives against differences    %8.2g\n  %s\n\n", m->difference, m->holds);
    return CGS_OK;
}

static cgs_status measure(job *j, cgs_device *d, cgs_dataset *data, cJSON *list, const char *dir) {
    cgs_loaded_model s;
    cgs_model_theory m = {0};
    cgs_progress bar;
    CGS_TRY(cgs_loaded_model_open(&s, dir, d, j->precision, 8, data));
    cgs_progress_begin(&bar, dir, j->anchors, j->quiet);
    cgs_status rc =
        cgs_model_theory_measure(&m, &s, data, j->anchors, j->horizon, j->seed, on_anchor, &bar);
    cgs_progress_end(&bar);
    if (rc == CGS_ESTOPPED) rc = cgs_fail(CGS_EIO, "stopped; nothing was written");
    if (rc == CGS_OK) rc = tell_model(j, list, &s, &m);
    cgs_model_theory_free(&m);
    cgs_loaded_model_close(&s);
    return rc;
}

static cgs_status models(job *j) {
    cgs_device d;
    cgs_dataset *data = NULL;
    if (!j->data) return cgs_fail(CGS_EARG, "--model needs --data");
    if (j->anchors < 2 || j->anchors > 100000)
        return cgs_fail(CGS_EARG, "--anchors: %d is not in 2 ... 100000", j->anchors);
    if (j->horizon < 1 || j->horizon > 64)
        return cgs_fail(CGS_EARG, "--horizon: %d is not in 1 ... 64", j->horizon);
    CGS_TRY(cgs_device_open(&d, j->device, j->threads));
    cgs_status rc = cgs_dataset_open(&data, j->data);
    cJSON *list = cgs_document_array(j->doc, "models");
    for (int i = 0; rc == CGS_OK && i < j->models.count; i++)
        rc = measure(j, &d, data, list, j->models.item[i]);
    const char *env = rc == CGS_OK ? cgs_dataset_attribute(data, "env") : NULL;
    if (env) cJSON_ReplaceItemInObject(j->doc, "env", cJSON_CreateString(env));
    cgs_dataset_close(data);
    cgs_device_close(&d);
    return rc;
}

static cgs_status theory(job *j, const char *command, bool systems_asked) {
    cgs_catch_interrupt();
    cgs_set_threads(j->threads);
    CGS_TRY(cgs_document_create(&j->doc, "cgs-theory", command, ""));
    cgs_status rc = CGS_OK, verdict = CGS_OK;
    int bad = 0;
    if (systems_asked || (!j->system && !j->models.count)) verdict = many(j);
    if (verdict != CGS_OK && verdict != CGS_ENUMERIC) return verdict;
    if (j->system) rc = one(j, &bad);
    if (rc == CGS_OK && j->models.count) rc = models(j);
    if (rc == CGS_OK && j->out) rc = cgs_document_save(j->doc, j->out);
    if (rc == CGS_OK && j->json) rc = cgs_document_print(j->doc, stdout);
    if (rc == CGS_OK && bad)
        return cgs_fail(CGS_ENUMERIC, "%s: %d statements were violated", j->system, bad);
    return rc == CGS_OK ? verdict : rc;
}

static int run(int argc, char **argv, const cgs_verb *self) {
    job j = {.systems = -1, .anchors = 64, .horizon = 5, .device = "auto", .precision = "f32"};
    cgs_words words = {0};
    char command[4096];
    cgs_command_text(command, sizeof command, self->name, argc, argv);
    const cgs_opt opts[] = {
        {"systems", "N", "number of random linear systems (2000)", OPT_COUNT, &j.systems, false},
        {"seed", "S", "seed of systems, samples and anchors (0)", OPT_U64, &j.seed, false},
        {"system", "FILE", "check this system: A, B, cov, H, c as JSON", OPT_STR, &j.system, false},
        {"model", "DIR ...", "measure models through their local linearisations", OPT_LIST, &words,
         false},
        {"data", "F.h5", "dataset to draw anchors from", OPT_STR, &j.data, false},
        {"anchors", "N", "recorded steps to linearise at (64)", OPT_COUNT, &j.anchors, false},
        {"horizon", "H", "horizon of the models' Hessians (5)", OPT_COUNT, &j.horizon, false},
        {"out", "T.json", "result file", OPT_STR, &j.out, false},
        {"device", "D", "cuda, cpu or ref (a GPU if there is one)", OPT_STR, &j.device, false},
        {"precision", "P", "precision of the encoder, f32 or bf16 (f32)", OPT_STR, &j.precision,
         false},
        {"threads", "N", "threads (one per core)", OPT_THREADS, &j.threads, false},
        {"json", NULL, "print the result file on standard output", OPT_FLAG, &j.json, false},
        {"quiet", NULL, "no progress bar", OPT_FLAG, &j.quiet, false},
    };
    cgs_status rc = cgs_options_parse(self, opts, CGS_COUNT(opts), argc, argv, NULL);
    if (rc == CGS_OK) rc = cgs_list_texts(&j.models, "model", &words);
    bool asked = j.systems >= 0;
    if (!asked) j.systems = 2000;
    if (rc == CGS_OK) rc = theory(&j, command, asked);
    cJSON_Delete(j.doc);
    return cgs_exit_code(self, rc);
}

const cgs_verb cmd_theory = {
    "theory", "[--systems N] [--system FILE] [--model DIR ... --data F.h5] [--out theory.json]",
    "checks every statement of the theory on random systems, or measures models",
    "Without a system or a model: draws linear systems and checks every proposition, corollary\n"
    "and theorem on each.  A margin is (bound - value) / bound, or the fraction of the tolerance\n"
    "that an equality leaves unused; below 0 is a violation and exit code 1.  Systems outside a\n"
    "statement's hypotheses are counted, not checked.\n"
    "  cgs theory --systems 2000 --out runs/theory.json\n"
    "  cgs theory --model runs/lewm runs/lewm-cgs --data tworooms.h5 --out runs/theory.json",
    run};

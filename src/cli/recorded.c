/* recorded.c - see recorded.h. */
#include "cli/recorded.h"

#include <cJSON.h>
#include <math.h>

#include "analysis/document.h"
#include "analysis/recorded.h"
#include "cli/interrupt.h"
#include "cli/progress.h"

static bool on_progress(void *user, const char *what, double done, double total) {
    cgs_progress *bar = user;
    char note[64];
    bar->total = total;
    snprintf(note, sizeof note, "%.24s: %.0f of %.0f", what, done, total);
    cgs_progress_update(bar, done, note);
    return !cgs_interrupted();
}

/* ---- what it takes of an evaluation's options ------------------------------------------ */

static cgs_status only_one(const char *what, int count) {
    return count <= 1
               ? CGS_OK
               : cgs_fail(CGS_EARG, "--recorded takes one number of %s, not %d", what, count);
}

static cgs_status check(const cgs_eval_options *o) {
    CGS_TRY(only_one("samples", o->sample_count));
    CGS_TRY(only_one("iters", o->iter_count));
    CGS_TRY(only_one("tau", o->tau_count));
    if (o->rollout_count) return cgs_fail(CGS_EARG, "--recorded does not take --rollouts");
    if (o->env || o->manifest || o->protocol || o->success || o->skip_solved)
        return cgs_fail(CGS_EARG, "--recorded asks no environment: it takes no --env, --manifest, "
                                  "--protocol, --success or --skip-solved");
    return CGS_OK;
}

/* ---- tables ----------------------------------------------------------------------------- */

static double number(const cJSON *o, const char *name) {
    const cJSON *n = cJSON_GetObjectItem(o, name);
    return cJSON_IsNumber(n) ? n->valuedouble : NAN;
}

static const char *text(const cJSON *o, const char *name) {
    const char *s = cJSON_GetStringValue(cJSON_GetObjectItem(o, name));
    return s ? s : "";
}

/* "0.82 [0.79, 0.85]" */
static void print_mean(const cJSON *o, const char *name) {
    const cJSON *m = cJSON_GetObjectItem(o, name);
    printf("  %4.2f [%.2f, %.2f]", number(m, "mean"), number(m, "lo"), number(m, "hi"));
}

static void print_predictions(const cJSON *model) {
    const cJSON *p;
    printf("%14s %12s %12s %12s %12s   %s\n", "blocks ahead", "model", "linear", "copy", "mean",
           "model / best other");
    cJSON_ArrayForEach(p, cJSON_GetObjectItem(model, "predictions")) {
        double best = fmin(number(p, "copy"), fmin(number(p, "mean"), number(p, "linear")));
        printf("%14.0f %12.4g %12.4g %12.4g %12.4g   %.2f\n", number(p, "ahead"),
               number(p, "model"), number(p, "linear"), number(p, "copy"), number(p, "mean"),
               number(p, "model") / best);
    }
}

static void print_plans(const cJSON *model) {
    const cJSON *p;
    printf("%10s %8s %8s %6s  %-17s %5s  %-17s  %s\n", "planner", "actions", "block 1", "sums",
           "action error", "path", "end", "end, recorded");
    cJSON_ArrayForEach(p, cJSON_GetObjectItem(model, "plans")) {
        printf("%10s %8.2f %8.2f %6.2f", text(p, "planner"), number(p, "actions"),
               number(p, "first_block"), number(p, "sums"));
        print_mean(p, "action_error");
        printf(" %5.2f", number(p, "path"));
        print_mean(p, "end");
        print_mean(p, "end_recorded");
        printf("\n");
    }
}

static void print_tables(const cJSON *doc) {
    const cJSON *m;
    cJSON_ArrayForEach(m, cJSON_GetObjectItem(doc, "models")) {
        bool held = cJSON_IsTrue(cJSON_GetObjectItem(m, "held_out"));
        printf("%s (%s): %.0f windows of %.0f blocks, from %.0f episodes %s\n\n", text(m, "model"),
               text(m, "method"), number(doc, "windows"), number(doc, "horizon"),
               number(m, "episodes"),
               held ? "that it never trained on" : "that it may have trained on");
        print_predictions(m);
        printf("\n");
        print_plans(m);
        printf("\n");
    }
    printf("Squared errors of predicted latents; then the share of the recorded actions, of the\n"
           "first block and of their sums that plans explain (1: all, 0: as much as the mean\n"
           "action), the error of an action in deviations, and how far what the model imagines\n"
           "stays from the recorded latents on the way and at the end (1: as far as standing "
           "still).\n");
}

cgs_status cgs_eval_recorded(const cgs_eval_options *o, const char *command, bool json,
                             bool quiet) {
    cgs_progress bar;
    cJSON *doc;
    CGS_TRY(check(o));
    cgs_recorded_options r = {.models = o->models,
                              .model_count = o->model_count,
                              .data = o->data,
                              .planners = o->planners,
                              .planner_count = o->planner_count,
                              .settings = o->settings,
                              .setting_count = o->setting_count,
                              .samples = o->samples[0],
                              .iters = o->iters[0],
                              .gd_steps = o->gd_steps,
                              .elites = o->elites,
                              .horizon = o->horizon,
                              .tau = o->tau_count ? o->taus[0] : 0,
                              .windows = o->episodes * o->seed_count,
                              .seed = o->seeds[0],
                              .device = o->device,
                              .precision = o->precision,
                              .threads = o->threads,
                              .progress = on_progress,
                              .user = &bar};
    cgs_catch_interrupt();
    cgs_progress_begin(&bar, "eval", 1, quiet);
    cgs_status rc = cgs_recorded_run(&doc, &r, command);
    cgs_progress_end(&bar);
    if (rc == CGS_ESTOPPED) rc = cgs_fail(CGS_EIO, "stopped");
    if (rc == CGS_OK && o->out) rc = cgs_document_save(doc, o->out);
    if (rc == CGS_OK && json) rc = cgs_document_print(doc, stdout);
    if (rc == CGS_OK && !json) print_tables(doc);
    cJSON_Delete(doc);
    return rc;
}

/* cmd_geometry.c - cgs geometry: paths, response heat maps and the mechanism of MPPI. */
#include <stdlib.h>
#include <string.h>

#include "analysis/document.h"
#include "analysis/geometry.h"
#include "cli/command.h"
#include "cli/env_option.h"
#include "cli/interrupt.h"
#include "cli/lists.h"
#include "cli/progress.h"
#include "cli/verbs.h"

/* "EP:STEP" or "EP:STEP:FRAME" */
static cgs_status parse_window(const char *text, cgs_window *w) {
    long v[3] = {0, 0, 1};
    int n = 0;
    const char *at = text;
    for (char *end; n < 3; at = end + 1) {
        v[n++] = strtol(at, &end, 10);
        if (end == at || v[n - 1] < 0 || v[n - 1] > 1000000000) n = -1;
        if (n < 0 || *end != ':') {
            if (n > 0 && *end) n = -1;
            break;
        }
        if (n == 3) n = -1; /* a fourth number */
        if (n < 0) break;
    }
    if (n < 2)
        return cgs_fail(CGS_EARG, "--window: \"%.40s\" is not EPISODE:STEP or EPISODE:STEP:FRAME",
                        text);
    *w = (cgs_window){{(int)v[0], (int)v[1]}, (int)v[2]};
    return CGS_OK;
}

static double number(const cJSON *o, const char *name) {
    const cJSON *n = cJSON_GetObjectItem(o, name);
    return cJSON_IsNumber(n) ? n->valuedouble : 0;
}

static void print_mean(const cJSON *o, const char *name) {
    const cJSON *m = cJSON_GetObjectItem(o, name);
    printf("  %6.3f [%6.3f, %6.3f]", number(m, "mean"), number(m, "lo"), number(m, "hi"));
}

static void print_geometry(const cJSON *doc) {
    const cJSON *m;
    printf("%-20s %7s  %-23s  %-23s  %-23s  %-23s\n", "model", "anchors", "Gram error", "isotropy",
           "pair error", "direction cosine");
    cJSON_ArrayForEach(m, cJSON_GetObjectItem(doc, "summary")) {
        printf("%-20.20s %7.0f", cJSON_GetStringValue(cJSON_GetObjectItem(m, "name")),
               number(m, "anchors"));
        print_mean(m, "gram_error");
        print_mean(m, "isotropy");
        print_mean(m, "pair_error");
        print_mean(m, "direction_cosine");
        printf("\n");
    }
}

static const cJSON *published_of(const cJSON *doc, const char *method) {
    const cJSON *p;
    cJSON_ArrayForEach(
        p,
        cJSON_GetObjectItem(
            doc, "published")) if (!strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(p, "method")),
                                           method)) return p;
    return NULL;
}

static void print_mechanism(const cJSON *doc) {
    const cJSON *m, *k;
    printf("%.0f anchors (%s), first %.0f action channels\n", number(doc, "anchors"),
           cJSON_GetStringValue(cJSON_GetObjectItem(doc, "anchor_rule")),
           number(doc, "directions"));
    printf("%-24s %-16s Pr(q_K < 1) in %% for K =", "model", "median q_inf");
    cJSON_ArrayForEach(k, cJSON_GetObjectItem(doc, "samples")) printf(" %5.0f", k->valuedouble);
    printf("\n");
    cJSON_ArrayForEach(m, cJSON_GetObjectItem(doc, "models")) {
        const cJSON *p = published_of(doc, cJSON_GetStringValue(cJSON_GetObjectItem(m, "method")));
        printf("%-24.24s %6.3f", cJSON_GetStringValue(cJSON_GetObjectItem(m, "name")),
               number(m, "q_inf_median"));
        if (p)
            printf(" (%6.3f)", number(p, "q_inf_median"));
        else
            printf("         ");
        printf("%27s", "");
        cJSON_ArrayForEach(k, cJSON_GetObjectItem(m, "p")) printf(" %5.1f", 100 * k->valuedouble);
        if (p) printf("  (K = 32: %.1f)", 100 * number(p, "p32"));
        printf("\n");
    }
}

static void print_curvature(const cJSON *doc) {
    const cJSON *m;
    printf("%-24s %12s %12s %12s %14s\n", "model", "curvature", "tau auto", "tau known",
           "s at the known");
    cJSON_ArrayForEach(m, cJSON_GetObjectItem(doc, "models")) {
        printf("%-24.24s %12.4g %12.4g", cJSON_GetStringValue(cJSON_GetObjectItem(m, "name")),
               number(m, "curvature"), number(m, "tau"));
        if (cJSON_GetObjectItem(m, "tau_known"))
            printf(" %12.4g %14.3g\n", number(m, "tau_known"), number(m, "s_known"));
        else
            printf(" %12s %14s\n", "-", "-");
    }
}

/* what is asked: one option, one document and one table each */
enum { GEOMETRY, MECHANISM, CURVATURE };
static const struct {
    cgs_status (*run)(cJSON **doc, const cgs_geometry_options *o, const char *command);
    void (*print)(const cJSON *doc);
} questions[] = {{cgs_geometry_run, print_geometry},
                 {cgs_mechanism_run, print_mechanism},
                 {cgs_curvature_run, print_curvature}};

typedef struct job {
    cgs_geometry_options o;
    const char *out, *command;
    int question;
    bool quiet, json;
} job;

static cgs_status geometry(job *j) {
    cgs_phases s = {.quiet = j->quiet};
    cJSON *doc = NULL;
    cgs_catch_interrupt();
    j->o.progress = cgs_on_phase;
    j->o.user = &s;
    cgs_status rc = questions[j->question].run(&doc, &j->o, j->command);
    cgs_progress_end(&s.bar);
    if (rc == CGS_ESTOPPED) rc = cgs_fail(CGS_EIO, "stopped; nothing was written");
    if (rc == CGS_OK && j->out) rc = cgs_document_save(doc, j->out);
    if (rc == CGS_OK && j->json)
        rc = cgs_document_print(doc, stdout);
    else if (rc == CGS_OK)
        questions[j->question].print(doc);
    cJSON_Delete(doc);
    return rc;
}

static int run(int argc, char **argv, const cgs_verb *self) {
    job j = {.o = cgs_geometry_defaults()};
    cgs_words models = {0}, windows = {0};
    cgs_texts model_list, window_list;
    cgs_window window[CGS_MAX_WINDOWS];
    char command[4096];
    bool mechanism = false, curvature = false;
    j.command = cgs_command_text(command, sizeof command, self->name, argc, argv);
    const cgs_opt opts[] = {
        {"model", "DIR ...", "model directories to compare", OPT_LIST, &models, true},
        {"data", "F.h5", "dataset to draw windows and anchors from", OPT_STR, &j.o.data, true},
        {"env", "ID", CGS_ENV_OPTION_OF_DATA, OPT_STR, &j.o.env, false},
        {"windows", "N", "number of windows, chosen by the seed (2)", OPT_COUNT, &j.o.windows,
         false},
        {"window", "E:S ...", "windows to use: episode:step, or episode:step:frame", OPT_LIST,
         &windows, false},
        {"frames", "N", "frames per window (30)", OPT_COUNT, &j.o.frames, false},
        {"anchors", "N", "anchors for the summary (128) or the mechanism (32)", OPT_COUNT,
         &j.o.anchors, false},
        {"exact", NULL, "responses from Jacobians, not from changes of plans by 0.05", OPT_FLAG,
         &j.o.exact, false},
        {"mechanism", NULL, "instead: the response spectrum and one update of mppi", OPT_FLAG,
         &mechanism, false},
        {"curvature", NULL, "instead: the curvature of the cost and mppi's temperature", OPT_FLAG,
         &curvature, false},
        {"horizon", "N", "action blocks per plan (5)", OPT_COUNT, &j.o.horizon, false},
        {"seed", "S", "seed of windows and anchors (0)", OPT_U64, &j.o.seed, false},
        {"out", "G.json", "result file", OPT_STR, &j.out, false},
        {"device", "D", "cuda, cpu or ref (a GPU if there is one)", OPT_STR, &j.o.device, false},
        {"precision", "P", "f32 or bf16 (f32)", OPT_STR, &j.o.precision, false},
        {"threads", "N", "threads (one per core)", OPT_THREADS, &j.o.threads, false},
        {"json", NULL, "print the result file on standard output", OPT_FLAG, &j.json, false},
        {"quiet", NULL, "no progress bar", OPT_FLAG, &j.quiet, false},
    };
    cgs_status rc = cgs_options_parse(self, opts, CGS_COUNT(opts), argc, argv, NULL);
    if (rc == CGS_OK) rc = cgs_env_option(&j.o.env);
    if (rc == CGS_OK) rc = cgs_list_texts(&model_list, "model", &models);
    if (rc == CGS_OK) rc = cgs_list_texts(&window_list, "window", &windows);
    if (rc == CGS_OK && window_list.count > CGS_MAX_WINDOWS)
        rc = cgs_fail(CGS_EARG, "--window: %d windows, at most %d are drawn", window_list.count,
                      CGS_MAX_WINDOWS);
    if (rc == CGS_OK && mechanism && curvature)
        rc = cgs_fail(CGS_EARG, "--mechanism and --curvature: one at a time");
    j.question = mechanism ? MECHANISM : curvature ? CURVATURE : GEOMETRY;
    for (int i = 0; rc == CGS_OK && i < window_list.count; i++)
        rc = parse_window(window_list.item[i], &window[i]);
    if (rc == CGS_OK) {
        j.o.models = model_list.item;
        j.o.model_count = model_list.count;
        j.o.window = window;
        j.o.window_count = window_list.count;
        rc = geometry(&j);
    }
    return cgs_exit_code(self, rc);
}

const cgs_verb cmd_geometry = {
    "geometry",
    "--model DIR ... --data F.h5 [--windows N | --window E:S ...] [--out geometry.json]",
    "control geometry: how latents respond to actions",
    "Windows: the path of actions, each model's aligned path of latents, and a heat map of how\n"
    "the imagined end responds to small changes of the plan in 32 directions.  Summaries over\n"
    "random anchors with 95% bootstrap intervals: distance of that heat map from the ideal,\n"
    "isotropy of the curvature, agreement of actions with latent changes.  With --mechanism: the\n"
    "spectrum of the responses to the first action channels, and the probability that one update\n"
    "of mppi makes progress.  With --curvature: the mean second derivative of the planning cost\n"
    "by a value of a plan, and the temperature that cgs eval --tau auto takes for 30 iterations.\n"
    "  cgs geometry --model runs/lewm runs/lewm-cgs --data pusht.h5 --out runs/geometry.json\n"
    "  cgs geometry --mechanism --model runs/lewm runs/lewm-cgs --data cube.h5 \\\n"
    "               --out runs/mechanism.json",
    run};

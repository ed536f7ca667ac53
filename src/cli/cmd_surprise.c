/* cmd_surprise.c - cgs surprise: prediction error along a recorded or edited episode. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/document.h"
#include "analysis/surprise.h"
#include "cli/command.h"
#include "cli/lists.h"
#include "cli/verbs.h"
#include "train/method.h"

typedef struct job {
    cgs_texts models, edits;
    int episodes[CGS_LIST_MAX], episode_count, threads;
    const char *data, *out, *device, *precision;
    uint64_t seed;
    bool json;
    cJSON *doc, *list;
} job;

/* a bar of the curve */
static void print_curve(const cgs_surprise *c, int edited) {
    double top = 0;
    for (int t = 1; t < c->steps; t++) top = fmax(top, c->error[t]);
    for (int t = 1; t < c->steps; t++) {
        int n = top > 0 ? (int)lround(50 * c->error[t] / top) : 0;
        printf("    %4d %10.4f  ", t, c->error[t]);
        for (int i = 0; i < n; i++) putchar('#');
        printf("%s\n", t == edited ? "  <- edited" : "");
    }
}

/* one curve per model; rows[] collects them by episode and edit */
static cgs_status measure(job *j, cgs_device *d, cgs_dataset *data, const char *dir, cJSON **rows) {
    cgs_loaded_model s;
    CGS_TRY(cgs_loaded_model_open(&s, dir, d, j->precision, 16, data));
    cgs_status rc = CGS_OK;
    for (int e = 0, k = 0; e < j->episode_count && rc == CGS_OK; e++)
        for (int i = 0; i <= j->edits.count && rc == CGS_OK; i++, k++) {
            cgs_edit kind = CGS_EDIT_NONE;
            cgs_surprise curve = {0};
            int step = -1;
            if (i > 0) rc = cgs_edit_parse(j->edits.item[i - 1], &kind, &step);
            if (rc == CGS_OK)
                rc = cgs_surprise_measure(&curve, &s, data, j->episodes[e], kind, step, j->seed);
            if (rc != CGS_OK) break;
            const char *title = cgs_method_title(s.card.method);
            cJSON *o = cgs_document_object(rows[k], NULL);
            cgs_document_text_field(o, "name", title);
            cgs_document_text_field(o, "method", s.card.method);
            cgs_document_numbers(o, "error", curve.error, curve.steps);
            if (!j->json) {
                printf("%s, episode %d, %s\n", title, j->episodes[e],
                       i ? j->edits.item[i - 1] : "as recorded");
                print_curve(&curve, step);
            }
            free(curve.error);
        }
    cgs_loaded_model_close(&s);
    return rc;
}

static cgs_status surprise(job *j, const char *command) {
    cgs_device d;
    cgs_dataset *data = NULL;
    cJSON *rows[CGS_LIST_MAX] = {0};
    char title[128];
    if (j->episode_count * (j->edits.count + 1) > CGS_LIST_MAX)
        return cgs_fail(CGS_EARG, "more than %d curves per model", CGS_LIST_MAX);
    for (int i = 0; i < j->edits.count; i++) { /* checked before any work is done */
        cgs_edit kind;
        int step;
        CGS_TRY(cgs_edit_parse(j->edits.item[i], &kind, &step));
    }
    CGS_TRY(cgs_device_open(&d, j->device, j->threads));
    cgs_status rc = cgs_dataset_open(&data, j->data);
    const char *env = rc == CGS_OK ? cgs_dataset_attribute(data, "env") : NULL;
    if (rc == CGS_OK) rc = cgs_document_create(&j->doc, "cgs-surprise", command, env ? env : "");
    j->list = cgs_document_array(j->doc, "episodes");
    for (int e = 0, k = 0; rc == CGS_OK && e < j->episode_count; e++)
        for (int i = 0; i <= j->edits.count; i++, k++) {
            cgs_edit kind;
            int step = -1;
            snprintf(title, sizeof title, "episode %d, as recorded", j->episodes[e]);
            if (i) {
                cgs_edit_parse(j->edits.item[i - 1], &kind, &step);
                snprintf(title, sizeof title, "episode %d, %s@%d", j->episodes[e],
                         cgs_edit_name(kind), step);
            }
            cJSON *o = cgs_document_object(j->list, NULL);
            cgs_document_text_field(o, "title", title);
            cgs_document_number(o, "episode", j->episodes[e]);
            cgs_document_number(o, "edited_at", i ? step : NAN);
            rows[k] = cgs_document_array(o, "models");
        }
    for (int i = 0; rc == CGS_OK && i < j->models.count; i++)
        rc = measure(j, &d, data, j->models.item[i], rows);
    if (rc == CGS_OK && j->out) rc = cgs_document_save(j->doc, j->out);
    if (rc == CGS_OK && j->json) rc = cgs_document_print(j->doc, stdout);
    cgs_dataset_close(data);
    cgs_device_close(&d);
    return rc;
}

static int run(int argc, char **argv, const cgs_verb *self) {
    job j = {.device = "auto"};
    cgs_words models = {0}, edits = {0}, episodes = {0};
    char command[4096];
    cgs_command_text(command, sizeof command, self->name, argc, argv);
    const cgs_opt opts[] = {
        {"model", "DIR ...", "model directories", OPT_LIST, &models, true},
        {"data", "F.h5", "dataset of the episodes", OPT_STR, &j.data, true},
        {"episode", "E ...", "episodes of the dataset (0)", OPT_LIST, &episodes, false},
        {"edit", "KIND@STEP ...",
         "teleport, freeze, black or reverse at a model step; or KIND:STEP", OPT_LIST, &edits,
         false},
        {"out", "S.json", "result file", OPT_STR, &j.out, false},
        {"seed", "S", "seed of the episode that a teleport jumps to (0)", OPT_U64, &j.seed, false},
        {"device", "D", "cuda, cpu or ref (a GPU if there is one)", OPT_STR, &j.device, false},
        {"precision", "P", "f32 or bf16 (as trained)", OPT_STR, &j.precision, false},
        {"threads", "N", "threads (one per core)", OPT_THREADS, &j.threads, false},
        {"json", NULL, "print the result on standard output", OPT_FLAG, &j.json, false},
    };
    cgs_status rc = cgs_options_parse(self, opts, CGS_COUNT(opts), argc, argv, NULL);
    if (rc == CGS_OK) rc = cgs_list_texts(&j.models, "model", &models);
    if (rc == CGS_OK) rc = cgs_list_texts(&j.edits, "edit", &edits);
    if (rc == CGS_OK) rc = cgs_list_ints(j.episodes, &j.episode_count, "episode", 0, &episodes);
    if (rc == CGS_OK && j.episode_count == 0) j.episodes[j.episode_count++] = 0;
    if (rc == CGS_OK) rc = surprise(&j, command);
    cJSON_Delete(j.doc);
    return cgs_exit_code(self, rc);
}

const cgs_verb cmd_surprise = {
    "surprise", "--model DIR ... --data F.h5 [--episode E ...] [--edit KIND@STEP ...]",
    "prediction error along a recorded or edited episode",
    "The error of each model step is |predicted - encoded latent|^2 / D, the predictor seeing\n"
    "the frames before it.  Edits: teleport (continue with another episode), freeze (the image\n"
    "stands still), black (one black frame), reverse (actions negated); each curve is computed\n"
    "with and without.  A teleport or a black frame should show as a peak at its step.\n"
    "  cgs surprise --model runs/lewm --data tworooms.h5 --episode 3 --edit teleport@8",
    run};

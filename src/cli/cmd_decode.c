/* cmd_decode.c - cgs decode: images decoded from latents and imagined plans. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/decode.h"
#include "analysis/document.h"
#include "cli/command.h"
#include "cli/env_option.h"
#include "cli/interrupt.h"
#include "cli/lists.h"
#include "cli/planners.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "core/file.h"
#include "io/png.h"
#include "train/decoder_fit.h"
#include "train/method.h"

typedef struct job {
    cgs_texts models;
    const char *data, *out, *device, *precision;
    int threads, updates;
    bool strip, json, quiet;
    cgs_decoder_fit_config config;
    cgs_strip_options strips;
    cJSON *doc, *list;
} job;

static bool on_progress(void *user, const char *what, double done, double total, double loss) {
    char note[48] = "";
    if (!isnan(loss)) snprintf(note, sizeof note, "error %.4f", loss);
    return cgs_phases_update(user, what, done, total, note);
}

/* fits a decoder unless one is stored and --updates was not given */
static cgs_status obtain(const job *j, cgs_decoder **out, cgs_loaded_model *s, cgs_dataset *data,
                         cgs_device *d) {
    char path[4096];
    cgs_phases view = {.quiet = j->quiet};
    CGS_TRY(cgs_path_join(path, sizeof path, s->dir, CGS_DECODER_FILE));
    if (j->updates < 0 && cgs_file_exists(path))
        return cgs_decoder_load(out, s->dir, s->weights, d);
    cgs_status rc = cgs_decoder_fit(out, s, data, &j->config, on_progress, &view);
    cgs_progress_end(&view.bar);
    if (rc == CGS_ESTOPPED) rc = cgs_fail(CGS_EIO, "stopped before the decoder was fitted");
    return rc == CGS_OK ? cgs_decoder_save(s->dir, *out) : rc;
}

/* decode.json lies beside a folder "decode" */
static cgs_status save_strip(const job *j, const cgs_strip *t, const cgs_loaded_model *s) {
    char folder[4096], name[256], path[4400], title[320];
    snprintf(folder, sizeof folder, "%s", j->out);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[1] = '\0';
    else
        folder[0] = '\0';
    snprintf(name, sizeof name, "decode/%s-%s.png", s->card.method,
             t->success ? "success" : "failure");
    snprintf(path, sizeof path, "%sdecode", folder);
    CGS_TRY(cgs_make_dirs(path));
    snprintf(path, sizeof path, "%s%s", folder, name);
    CGS_TRY(cgs_png_write(path, t->rgb, t->width, t->height));
    snprintf(title, sizeof title, "%s, episode %d from step %d", cgs_method_title(s->card.method),
             t->episode, t->step);
    cJSON *o = cgs_document_object(j->list, NULL);
    cgs_document_text_field(o, "title", title);
    cgs_document_text_field(o, "method", s->card.method);
    cgs_document_text_field(o, "png", name);
    cgs_document_number(o, "frames", t->frames);
    cJSON_AddBoolToObject(o, "success", t->success);
    cJSON *rows = cgs_document_array(o, "rows");
    cJSON_AddItemToArray(rows, cJSON_CreateString("simulator"));
    cJSON_AddItemToArray(rows, cJSON_CreateString("imagined"));
    cgs_document_number(o, "pixel_error", t->pixel_error);
    if (!j->json)
        printf("%s: %s, %s the goal, %d model steps, pixels differ by %.1f of 255\n", path, title,
               t->success ? "reached" : "missed", t->frames - 1, t->pixel_error);
    return CGS_OK;
}

static cgs_status decode(job *j, cgs_device *d, cgs_dataset *data, const char *dir) {
    cgs_loaded_model s;
    cgs_decoder *p = NULL;
    cgs_strip strip[2] = {{0}};
    CGS_TRY(cgs_loaded_model_open(&s, dir, d, j->precision, 16, data));
    cgs_status rc = obtain(j, &p, &s, data, d);
    if (rc == CGS_OK) {
        cJSON *o = cgs_document_object(cJSON_GetObjectItem(j->doc, "decoders"), NULL);
        cgs_document_text_field(o, "name", cgs_method_title(s.card.method));
        cgs_document_text_field(o, "method", s.card.method);
        cgs_document_text_field(o, "model", dir);
        cgs_document_number(o, "updates", (double)p->card.updates);
        cgs_document_number(o, "error", p->card.loss);
        cgs_document_number(o, "mean_picture_error", p->card.mean_loss);
        if (!j->json)
            printf("%s/%s: %llu updates, error of validation frames %.4f; the mean image has "
                   "%.4f\n",
                   dir, CGS_DECODER_FILE, (unsigned long long)p->card.updates, p->card.loss,
                   p->card.mean_loss);
    }
    if (rc == CGS_OK && j->strip) rc = cgs_strips_draw(strip, &s, p, data, &j->strips);
    for (int i = 0; rc == CGS_OK && j->strip && i < 2; i++) {
        if (strip[i].found)
            rc = save_strip(j, &strip[i], &s);
        else if (!j->json)
            printf("%s: no episode of %d %s\n", dir, j->strips.episodes,
                   i ? "reached its goal" : "missed its goal");
    }
    cgs_strips_free(strip);
    cgs_decoder_destroy(p);
    cgs_loaded_model_close(&s);
    return rc;
}

static cgs_status all(job *j, const char *command) {
    cgs_device d;
    cgs_dataset *data = NULL;
    cgs_catch_interrupt_to_save();
    CGS_TRY(cgs_device_open(&d, j->device, j->threads));
    cgs_status rc = cgs_dataset_open(&data, j->data);
    const char *env = rc == CGS_OK ? cgs_dataset_attribute(data, "env") : NULL;
    if (rc == CGS_OK) rc = cgs_document_create(&j->doc, "cgs-decode", command, env ? env : "");
    cgs_document_array(j->doc, "decoders");
    j->list = cgs_document_array(j->doc, "strips");
    for (int i = 0; rc == CGS_OK && i < j->models.count; i++)
        rc = decode(j, &d, data, j->models.item[i]);
    if (rc == CGS_OK && j->strip) rc = cgs_document_save(j->doc, j->out);
    if (rc == CGS_OK && j->json) rc = cgs_document_print(j->doc, stdout);
    cgs_dataset_close(data);
    cgs_device_close(&d);
    return rc;
}

static int run(int argc, char **argv, const cgs_verb *self) {
    job j = {.device = "auto", .out = "decode.json", .updates = -1};
    cgs_section section = cgs_decoder_fit_section(&j.config);
    cgs_words models = {0}, words = {0};
    char command[4096];
    cgs_config_defaults(&section, 1);
    j.strips = cgs_strip_defaults();
    cgs_command_text(command, sizeof command, self->name, argc, argv);
    cgs_strip_options *o = &j.strips;
    char planners[CGS_PLANNER_HELP];
    cgs_planner_help(planners, sizeof planners, o->planner, CGS_NEEDS_PRIOR);
    const cgs_opt opts[] = {
        {"model", "DIR ...", "model directories; each gets its decoder", OPT_LIST, &models, true},
        {"data", "F.h5", "dataset that frames are taken from", OPT_STR, &j.data, true},
        {"updates", "N", "refit with this many updates (1500 for a first fit)", OPT_COUNT,
         &j.updates, false},
        {"strip", NULL, "plan episodes and draw imagined beside simulated frames", OPT_FLAG,
         &j.strip, false},
        {"out", "D.json", "result file of strips; PNGs go beside it (decode.json)", OPT_STR, &j.out,
         false},
        {"episodes", "N", "starts to choose strips from (16)", OPT_COUNT, &o->episodes, false},
        {"env", "ID", CGS_ENV_OPTION_OF_DATA, OPT_STR, &o->env, false},
        {"planner", "P", planners, OPT_STR, &o->planner, false},
        {"samples", "N", "candidates K per iteration (128)", OPT_COUNT, &o->samples, false},
        {"iters", "N", "iterations I (30)", OPT_COUNT, &o->iters, false},
        {"tau", "T", "temperature (by environment)", OPT_REAL, &o->tau, false},
        {"budget", "N", "most actions per episode (50)", OPT_COUNT, &o->budget, false},
        {"goal-offset", "N", "rows from start to goal (25)", OPT_COUNT, &o->goal_offset, false},
        {"held-out", NULL, "starts from episodes held out of training", OPT_FLAG, &o->held_out,
         false},
        {"seed", "S", "seed of weights, frames, starts and candidates (0)", OPT_U64, &j.config.seed,
         false},
        {"device", "D", "cuda, cpu or ref (a GPU if there is one)", OPT_STR, &j.device, false},
        {"precision", "P", "precision of the model, f32 or bf16 (as trained)", OPT_STR,
         &j.precision, false},
        {"threads", "N", "threads (one per core)", OPT_THREADS, &j.threads, false},
        {"json", NULL, "print the result on standard output", OPT_FLAG, &j.json, false},
        {"quiet", NULL, "no progress bar", OPT_FLAG, &j.quiet, false},
    };
    cgs_status rc = cgs_options_parse(self, opts, CGS_COUNT(opts), argc, argv, &words);
    if (rc == CGS_OK) rc = cgs_env_option(&o->env);
    for (int i = 0; rc == CGS_OK && i < words.count; i++)
        rc = cgs_config_assign(&section, 1, words.word[i]);
    if (rc == CGS_OK && j.updates >= 0) {
        if (j.updates < 1) rc = cgs_fail(CGS_EARG, "--updates: %d is less than 1", j.updates);
        j.config.updates = j.updates;
    }
    o->seed = j.config.seed;
    if (rc == CGS_OK) rc = cgs_list_texts(&j.models, "model", &models);
    if (rc == CGS_OK) rc = all(&j, command);
    cJSON_Delete(j.doc);
    return cgs_exit_code(self, rc);
}

const cgs_verb cmd_decode = {
    "decode", "--model DIR ... --data F.h5 [--updates N] [--strip] [decode.key=value ...]",
    "fits a pixel decoder to a model and draws imagined plans",
    "Fits a decoder to the frozen latents and stores it in the model directory; a stored one is\n"
    "reused.  --strip plans episodes and draws one that missed its goal and one that reached\n"
    "it: simulated frames above, decoded imagined ones below, the goal at the right.  Settings:\n"
    "decode.width, layers, heads, frames, batch, lr, weight_decay.\n"
    "  cgs decode --model runs/lewm runs/lewm-cgs --data pusht.h5 --strip --out runs/decode.json",
    run};

/* cmd_train.c - cgs train: trains a world model on a dataset. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/interrupt.h"
#include "cli/learned_table.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "cli/view.h"
#include "core/log.h"
#include "core/threads.h"
#include "train/request.h"

typedef struct watching {
    cgs_progress bar;
    cgs_view *view; /* or NULL */
    bool json;
} watching;

static void draw(cgs_view *view, const cgs_step_info *i, const cgs_validation *v) {
    int width, height;
    double now = cgs_now();
    cgs_view_step(view, i, cgs_peak_memory());
    if (v) cgs_view_validation(view, v);
    if (now - view->drawn_at < 0.5 && i->step < i->total) return;
    view->drawn_at = now;
    cgs_terminal_size(STDERR_FILENO, &width, &height);
    cgs_view_draw(view, stderr, width, height, cgs_terminal_utf8());
}

static bool watch(void *user, const cgs_step_info *i, const cgs_validation *v) {
    watching *w = user;
    char note[160];
    snprintf(note, sizeof note,
             "%llu/%llu  loss %.4f  pred %.4f  sigreg %.3f  cgs %.3f  %.0f frames/s",
             (unsigned long long)i->step, (unsigned long long)i->total, i->loss, i->term[0],
             i->term[1], i->term[3], i->frames_per_s);
    if (w->view)
        draw(w->view, i, v);
    else
        cgs_progress_update(&w->bar, (double)i->step, note);
    if (w->json && v)
        printf("{\"step\":%llu,\"loss\":%.6g,\"valid_pred\":%.6g,\"valid_sigreg\":%.6g,"
               "\"valid_ts\":%.6g,\"valid_cgs\":%.6g,\"valid_copy\":%.6g,\"valid_mean\":%.6g,"
               "\"cosine\":%.6g,\"frames_per_s\":%.4g}\n",
               (unsigned long long)i->step, i->loss, v->term[0], v->term[1], v->term[2], v->term[3],
               v->trivial.copy, v->trivial.mean, v->cosine, i->frames_per_s);
    return !cgs_interrupted();
}

/* what matters of the run; all of its settings lie beside the model */
static void print_run(cgs_run_config *c, cgs_trainer *t, const char *out, bool all) {
    cgs_section sections[2];
    cgs_run_sections(c, sections);
    if (all) cgs_config_dump(sections, 2, stderr, false);
    fprintf(stderr, "parameters %zu, memory %.2f GiB, updates %llu; settings: %s/config.txt\n",
            cgs_params_learnable(cgs_trainer_model(t)->params),
            (double)cgs_trainer_memory(t) / (1 << 30), (unsigned long long)cgs_trainer_updates(t),
            out);
}

/* After the training; that it cannot be measured is no failure of it. */
static void tell_learned(const cgs_run_config *c, const char *data, const char *out,
                         cgs_device *d) {
    cJSON *doc = NULL;
    if (cgs_run_is_dinowm(c)) return;
    cgs_status rc = cgs_learned_store(&doc, out, data, d, NULL, false);
    if (rc == CGS_OK)
        cgs_learned_print(doc, stderr);
    else if (rc != CGS_ESTOPPED)
        cgs_log(CGS_WARN, "what it has learned is not measured: %s", cgs_last_error());
    cJSON_Delete(doc);
}

static cgs_status train(cgs_run_config *c, const char *data, const char *out, cgs_device *d,
                        bool resume, bool quiet, bool json, bool view, bool settings) {
    static cgs_view drawing; /* series of fixed size: too much for a stack */
    cgs_trainer *t;
    view = view && !quiet && isatty(STDERR_FILENO);
    if (!quiet) cgs_show_log();
    CGS_TRY(cgs_trainer_create(&t, c, data, out, d, resume));
    if (!quiet && !json && !view) print_run(c, t, out, settings);
    watching w = {.json = json, .view = view ? &drawing : NULL};
    cgs_view_begin(&drawing, c->train.method.s);
    cgs_catch_interrupt_to_save();
    cgs_progress_begin(&w.bar, c->train.method.s, (double)cgs_trainer_updates(t), quiet || view);
    cgs_status rc = cgs_trainer_run(t, watch, &w);
    cgs_progress_end(&w.bar);
    if (rc == CGS_ESTOPPED) rc = CGS_EIO; /* not a success: the model is not trained yet */
    if (rc == CGS_OK && !quiet && !json)
        fprintf(stderr, "%s: trained, %s\n", out, c->train.method.s);
    cgs_trainer_destroy(t);
    if (rc == CGS_OK && !quiet && !json) tell_learned(c, data, out, d);
    return rc;
}

static int run(int argc, char **argv, const cgs_verb *self) {
    cgs_train_request q = {0};
    const char *device = "auto", *cache = NULL;
    bool force = false, quiet = false, json = false, view = false, settings = false;
    int threads = 0;
    const cgs_opt opts[] = {
        {"data", "F.h5", "dataset", OPT_STR, &q.data, true},
        {"out", "DIR", "run directory; becomes a model directory", OPT_STR, &q.out, true},
        {"config", "FILE", "settings, `key = value` lines", OPT_STR, &q.config, false},
        {"size", "NAME", "size preset: paper or small (paper, or the sizes of --init)", OPT_STR,
         &q.size, false},
        {"method", "NAME",
         "lewm, lewm-ts, lewm-cgs, lewm-cgs-transition, -xyz-all, -full, dinowm-cls, dinowm-patch "
         "(-ts, -cgs)",
         OPT_STR, &q.method, false},
        {"init", "PATH", "begin with the weights of a model: a directory or a weight file", OPT_STR,
         &q.init, false},
        {"backbone", "FILE", "frozen backbone of dinowm: DINOv2 weights, or those of cgs pretrain",
         OPT_STR, &q.backbone, false},
        {"cache", "DIR",
         "where copies made from the dataset lie (beside it, or where CGS_CACHE says)", OPT_STR,
         &cache, false},
        {"resume", NULL, "go on from the checkpoint in DIR, with its settings", OPT_FLAG, &q.resume,
         false},
        {"force", NULL, "replace the run or the model in DIR", OPT_FLAG, &force, false},
        {"device", "NAME", "cuda, cpu or ref (a GPU if there is one)", OPT_STR, &device, false},
        {"precision", "P", "f32 or bf16", OPT_STR, &q.precision, false},
        {"threads", "N", "threads, 0: one per core", OPT_THREADS, &threads, false},
        {"watch", NULL, "sparklines instead of a progress bar (on a terminal)", OPT_FLAG, &view,
         false},
        {"settings", NULL, "print all settings first", OPT_FLAG, &settings, false},
        {"quiet", NULL, "say nothing", OPT_FLAG, &quiet, false},
        {"json", NULL, "print validations as JSON lines", OPT_FLAG, &json, false},
    };
    cgs_words words;
    cgs_run_config c = {0};
    cgs_status rc = cgs_options_parse(self, opts, CGS_COUNT(opts), argc, argv, &words);
    q.settings = (const char *const *)words.word;
    q.setting_count = words.count;
    if (rc == CGS_OK && q.resume && force)
        rc = cgs_fail(CGS_EARG, "--resume goes on with what --force replaces: give one of them");
    if (rc == CGS_OK) rc = cgs_train_settle(&c, &q);
    c.cache = cache;
    c.force = force;
    if (rc == CGS_OK) {
        cgs_device d;
        rc = cgs_device_open(&d, device, threads);
        if (rc == CGS_OK) {
            rc = train(&c, q.data, q.out, &d, q.resume, quiet, json, view, settings);
            cgs_device_close(&d);
        }
    }
    return cgs_exit_code(self, rc);
}

const cgs_verb cmd_train = {
    "train", "--data F.h5 --out DIR [key=value ...]",
    "trains a world model; DIR ends up with config.json, model.safetensors and metrics.jsonl",
    "train.recipe is published for --size paper and robust for --size small: robust also learns\n"
    "where places in the image look alike.  A model that predicts no better than the mean or a "
    "copy\n"
    "of the last latent, or that has collapsed, is reported in words, with what to try.\n"
    "--resume takes all settings from the checkpoint; given again, they must agree with it.  A\n"
    "larger train.updates makes a run longer, a finished one, too.  --init trains a model further\n"
    "on other data; tensors that do not fit them begin anew and are named.\n"
    "At the end a table says what a model of LeWM has learned (--quiet and --json: none), and\n"
    "learned.json keeps it for cgs info and cgs report.\n"
    "Settings are dotted keys (cgs help settings lists them); later ones win:\n"
    "  cgs train --data tworooms.h5 --out runs/cgs --size small --method lewm-cgs\n"
    "      train.updates=1000 optim.lr=1e-3",
    run};

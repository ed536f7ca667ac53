/* cmd_train.c - cgs train: trains a world model on a dataset. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "cli/view.h"
#include "core/log.h"
#include "core/threads.h"
#include "data/accept.h"
#include "train/train.h"

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

/* what the data decide: sizes of actions and proprioception, which of the paper's weights apply */
static cgs_status fit_to_data(cgs_run_config *c, const char *data, const char *method) {
    cgs_dataset *d;
    CGS_TRY(cgs_dataset_open(&d, data));
    const char *env = cgs_dataset_attribute(d, "env");
    const cgs_source *s = cgs_dataset_source(d);
    int proprio = cgs_source_find(s, "proprio");
    if (s->action_dim > 0 && s->action_dim <= CGS_MAX_ACTIONS)
        c->model.action_dim = c->dino.action_dim = s->action_dim;
    if (proprio >= 0) c->dino.proprio_dim = (int)s->columns[proprio].values;
    cgs_status rc = cgs_run_method(c, method, env ? env : "");
    cgs_dataset_close(d);
    return rc;
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
    return rc;
}

static int run(int argc, char **argv, const cgs_verb *self) {
    const char *data = NULL, *out = NULL, *config = NULL, *size = "paper", *method = "lewm-cgs",
               *device = "auto", *precision = NULL, *backbone = NULL, *cache = NULL;
    bool resume = false, quiet = false, json = false, view = false, settings = false;
    int threads = 0;
    const cgs_opt opts[] = {
        {"data", "F.h5", "dataset", OPT_STR, &data, true},
        {"out", "DIR", "run directory; becomes a model directory", OPT_STR, &out, true},
        {"config", "FILE", "settings, `key = value` lines", OPT_STR, &config, false},
        {"size", "NAME", "size preset: paper or small", OPT_STR, &size, false},
        {"method", "NAME",
         "lewm, lewm-ts, lewm-cgs, lewm-cgs-transition, -xyz-all, -full, dinowm-cls, dinowm-patch "
         "(-ts, -cgs)",
         OPT_STR, &method, false},
        {"backbone", "FILE", "frozen backbone of dinowm: DINOv2 weights, or those of cgs pretrain",
         OPT_STR, &backbone, false},
        {"cache", "DIR",
         "where copies made from the dataset lie (beside it, or where CGS_CACHE says)", OPT_STR,
         &cache, false},
        {"resume", NULL, "resume from the checkpoint in DIR", OPT_FLAG, &resume, false},
        {"device", "NAME", "cuda, cpu or ref (a GPU if there is one)", OPT_STR, &device, false},
        {"precision", "P", "f32 or bf16", OPT_STR, &precision, false},
        {"threads", "N", "threads, 0: one per core", OPT_THREADS, &threads, false},
        {"watch", NULL, "sparklines instead of a progress bar (on a terminal)", OPT_FLAG, &view,
         false},
        {"settings", NULL, "print all settings first", OPT_FLAG, &settings, false},
        {"quiet", NULL, "say nothing", OPT_FLAG, &quiet, false},
        {"json", NULL, "print validations as JSON lines", OPT_FLAG, &json, false},
    };
    cgs_words words;
    cgs_run_config c = {0};
    cgs_section sections[2];
    cgs_status rc = cgs_options_parse(self, opts, CGS_COUNT(opts), argc, argv, &words);
    if (rc == CGS_OK) rc = cgs_run_preset(&c, size);
    if (rc == CGS_OK) rc = fit_to_data(&c, data, method);
    if (rc == CGS_OK && backbone) rc = cgs_run_backbone(&c, backbone);
    cgs_run_sections(&c, sections);
    if (rc == CGS_OK && config) rc = cgs_config_read(sections, 2, config);
    for (int i = 0; rc == CGS_OK && i < words.count; i++)
        rc = cgs_config_assign(sections, 2, words.word[i]);
    c.cache = cache;
    if (rc == CGS_OK && precision) rc = cgs_config_set(sections, 2, "train.precision", precision);
    if (rc == CGS_OK) {
        cgs_device d;
        rc = cgs_device_open(&d, device, threads);
        if (rc == CGS_OK) {
            rc = train(&c, data, out, &d, resume, quiet, json, view, settings);
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
    "Settings are dotted keys (cgs help settings lists them); later ones win:\n"
    "  cgs train --data tworooms.h5 --out runs/cgs --size small --method lewm-cgs\n"
    "      train.updates=1000 optim.lr=1e-3",
    run};

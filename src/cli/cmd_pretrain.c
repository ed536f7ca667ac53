/* cmd_pretrain.c - cgs pretrain: trains a stand-in backbone on collected frames. */
#include <stdio.h>

#include "cli/interrupt.h"
#include "cli/lists.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "core/threads.h"
#include "train/pretrain.h"

typedef struct watching {
    cgs_progress bar;
    const cgs_pretrain_options *o;
    double start, last[3]; /* loss, invariance and SIGReg of class tokens */
    int first;             /* update of this process */
    bool json;
} watching;

/* views per second, of the two that each frame has, since the first update */
static double frames_per_s(const watching *w, int update) {
    double since = cgs_now() - w->start;
    return update > w->first && since > 0 ? 2.0 * w->o->batch * (update - w->first) / since : 0;
}

static bool watch(void *user, int update, double loss, double same, double spread) {
    watching *w = user;
    char note[128];
    if (!w->first) {
        w->first = update;
        w->start = cgs_now();
    }
    w->last[0] = loss;
    w->last[1] = same;
    w->last[2] = spread;
    snprintf(note, sizeof note, "%d/%d  loss %.4f  invariance %.4f  sigreg %.3f  %.0f frames/s",
             update, w->o->updates, loss, same, spread, frames_per_s(w, update));
    cgs_progress_update(&w->bar, update, note);
    if (w->json && (update % w->o->checkpoint_every == 0 || update == w->o->updates))
        printf("{\"update\":%d,\"updates\":%d,\"loss\":%.6g,\"invariance\":%.6g,\"sigreg\":%.6g,"
               "\"frames_per_s\":%.4g}\n",
               update, w->o->updates, loss, same, spread, frames_per_s(w, update));
    fflush(stdout);
    return !cgs_interrupted();
}

static cgs_status pretrain(cgs_pretrain_options *o, const char *out, const char *device,
                           int threads, bool quiet, bool json) {
    cgs_device d;
    watching w = {.o = o, .json = json};
    o->watch = watch;
    o->user = &w;
    if (!quiet) cgs_show_log();
    CGS_TRY(cgs_device_open(&d, device, threads));
    cgs_catch_interrupt_to_save();
    cgs_progress_begin(&w.bar, "pretrain", o->updates, quiet);
    cgs_status rc = cgs_pretrain(o, out, &d);
    cgs_progress_end(&w.bar);
    cgs_device_close(&d);
    if (rc == CGS_ESTOPPED) rc = CGS_EIO; /* not a success: there is no backbone yet */
    if (rc == CGS_OK && !quiet && !json && w.first)
        fprintf(stderr, "%s: a " CGS_STAND_IN " backbone; invariance %.4f, SIGReg %.3f\n", out,
                w.last[1], w.last[2]);
    else if (rc == CGS_OK && !quiet && !json)
        fprintf(stderr, "%s: a " CGS_STAND_IN " backbone, all updates had already been made\n",
                out);
    return rc;
}

static int run(int argc, char **argv, const cgs_verb *self) {
    cgs_pretrain_options o = cgs_pretrain_defaults();
    cgs_words data = {0};
    cgs_texts files;
    const char *out = NULL, *device = "auto";
    int threads = 0;
    bool quiet = false, json = false;
    const cgs_opt opts[] = {
        {"data", "F.h5...", "datasets whose images have the same size", OPT_LIST, &data, true},
        {"out", "FILE", "backbone to write (safetensors, torch-hub names)", OPT_STR, &out, true},
        {"size", "NAME", "paper (ViT-S/14 at 196 px) or small (paper)", OPT_STR, &o.size, false},
        {"updates", "N", "updates (2000)", OPT_COUNT, &o.updates, false},
        {"batch", "N", "frames per update (64)", OPT_COUNT, &o.batch, false},
        {"lr", "X", "peak learning rate (5e-4)", OPT_REAL, &o.lr, false},
        {"sigreg", "X", "weight of SIGReg (0.05)", OPT_REAL, &o.sigreg, false},
        {"seed", "S", "seed of weights, frames and views (0)", OPT_U64, &o.seed, false},
        {"checkpoint-every", "N", "updates between checkpoints, FILE.checkpoint (250)", OPT_COUNT,
         &o.checkpoint_every, false},
        {"cache", "DIR",
         "where copies made from the datasets lie (beside them, or where CGS_CACHE says)", OPT_STR,
         &o.cache, false},
        {"resume", NULL, "continue from FILE.checkpoint", OPT_FLAG, &o.resume, false},
        {"device", "NAME", "cuda, cpu or ref (a GPU if there is one)", OPT_STR, &device, false},
        {"precision", "P", "f32 or bf16 (f32)", OPT_STR, &o.precision, false},
        {"threads", "N", "threads (one per core)", OPT_THREADS, &threads, false},
        {"quiet", NULL, "say nothing", OPT_FLAG, &quiet, false},
        {"json", NULL, "one JSON line per checkpoint", OPT_FLAG, &json, false},
    };
    cgs_status rc = cgs_options_parse(self, opts, CGS_COUNT(opts), argc, argv, NULL);
    if (rc == CGS_OK) rc = cgs_list_texts(&files, "data", &data);
    if (rc == CGS_OK) {
        o.data = files.item;
        o.count = files.count;
        rc = pretrain(&o, out, device, threads, quiet, json);
    }
    return cgs_exit_code(self, rc);
}

const cgs_verb cmd_pretrain = {
    "pretrain", "--data F.h5... --out FILE [--size small] [--resume]",
    "trains a stand-in for a pretrained backbone on collected frames",
    "For cgs train --method dinowm-... where DINOv2 weights are not available.  Two views of a\n"
    "frame are trained to the same tokens; SIGReg keeps frames apart.  Results name it.  "
    "Killed\n"
    "at any time, the same command with --resume ends in the same bytes.\n"
    "  cgs pretrain --data pusht.h5 --out standin.safetensors --size small --updates 1000\n"
    "  cgs train --data pusht.h5 --out runs/cls --size small --method dinowm-cls-cgs \\\n"
    "      --backbone standin.safetensors",
    run};

/* cmd_pretrain.c - cgs pretrain: a stand-in backbone from frames collected here. */
#include <stdio.h>

#include "cli/lists.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "train/pretrain.h"

static bool watch(void *user, int update, double loss, double same, double spread) {
    cgs_progress *bar = user;
    char note[96];
    snprintf(note, sizeof note, "%d  loss %.4f  invariance %.4f  sigreg %.3f", update, loss, same,
             spread);
    cgs_progress_update(bar, update, note);
    return !cgs_interrupted();
}

static int run(int argc, char **argv, const cgs_verb *self) {
    cgs_pretrain_options o = cgs_pretrain_defaults();
    cgs_words data = {0};
    cgs_texts files;
    const char *out = NULL, *device = "auto";
    int threads = 0;
    bool quiet = false;
    const cgs_opt opts[] = {
        {"data", "F.h5...", "datasets with pictures of one size", OPT_LIST, &data, true},
        {"out", "FILE", "backbone to write (safetensors, torch-hub names)", OPT_STR, &out, true},
        {"size", "NAME", "paper (ViT-S/14 at 196 px) or small (paper)", OPT_STR, &o.size, false},
        {"updates", "N", "updates (2000)", OPT_INT, &o.updates, false},
        {"batch", "N", "frames an update (64)", OPT_INT, &o.batch, false},
        {"lr", "X", "peak learning rate (5e-4)", OPT_REAL, &o.lr, false},
        {"sigreg", "X", "weight of SIGReg (0.05)", OPT_REAL, &o.sigreg, false},
        {"seed", "S", "of weights, frames and views (0)", OPT_U64, &o.seed, false},
        {"device", "NAME", "cuda, cpu or ref (a GPU if there is one)", OPT_STR, &device, false},
        {"precision", "P", "f32 or bf16 (f32)", OPT_STR, &o.precision, false},
        {"threads", "N", "threads (one a core)", OPT_INT, &threads, false},
        {"quiet", NULL, "say nothing", OPT_FLAG, &quiet, false},
    };
    cgs_status rc = cgs_options_parse(self, opts, CGS_COUNT(opts), argc, argv, NULL);
    if (rc == CGS_OK) rc = cgs_list_texts(&files, "data", &data);
    if (rc == CGS_OK) {
        cgs_device d;
        cgs_progress bar;
        double last[2];
        o.data = files.item;
        o.count = files.count;
        o.watch = watch;
        o.user = &bar;
        rc = cgs_device_open(&d, device, threads);
        if (rc == CGS_OK) {
            cgs_catch_interrupt();
            cgs_progress_begin(&bar, "pretrain", o.updates, quiet);
            rc = cgs_pretrain(&o, out, &d, last);
            cgs_progress_end(&bar);
            cgs_device_close(&d);
        }
        if (rc == CGS_OK && !quiet)
            fprintf(stderr, "%s: a " CGS_STAND_IN " backbone; invariance %.4f, SIGReg %.3f\n", out,
                    last[0], last[1]);
    }
    return cgs_exit_code(self, rc);
}

const cgs_verb cmd_pretrain = {
    "pretrain", "--data F.h5... --out FILE [--size small]",
    "a stand-in for a pretrained backbone, from frames collected here",
    "For cgs train --method dinowm-... where DINOv2 weights cannot be had.  Two views of a frame\n"
    "shall have the same tokens, and SIGReg keeps frames apart.  Results that use it say so.\n"
    "  cgs pretrain --data pusht.h5 --out standin.safetensors --size small --updates 1000\n"
    "  cgs train --data pusht.h5 --out runs/cls --size small --method dinowm-cls-cgs \\\n"
    "      --backbone standin.safetensors",
    run};

/* gpu_train.c - see gpu_train.h. */
#include "gpu_train.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data/dataset.h"
#include "expect.h"
#include "same_file.h"
#include "synthetic.h"
#include "train/frames.h"
#include "train/train.h"

static char folder[64], data[128];

int gpu_train_begin(void **state) {
    (void)state;
    strcpy(folder, "/tmp/cgs-gpu-XXXXXX");
    if (!mkdtemp(folder)) return 1;
    snprintf(data, sizeof data, "%s/data.h5", folder);
    return synthetic_dataset(data, 24, 30, 56, 7) == CGS_OK ? 0 : 1;
}

int gpu_train_end(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

/* ---- runs -------------------------------------------------------------------------- */

/* precision "class": bf16 with the class token and both heads in f32 */
static cgs_run_config tiny(const char *precision) {
    cgs_run_config c;
    bool apart = !strcmp(precision, "class");
    OK(cgs_run_preset(&c, "small"));
    c.model.image_size = 56;
    c.model.width = 64;
    c.model.encoder_layers = 2;
    c.model.encoder_heads = 1; /* 64 wide: the kernels of the paper's model */
    c.model.encoder_mlp = 128;
    c.model.projector_hidden = 64;
    c.model.predictor_layers = 2;
    c.model.predictor_heads = 2;
    c.model.predictor_head_width = 16;
    c.model.predictor_mlp = 96;
    c.model.action_hidden = 64;
    c.model.frameskip = 2;
    c.train.batch = 16;
    c.train.projections = 32;
    c.train.updates = 20;
    c.train.checkpoint_every = 1000;
    c.train.validate_every = 1000;
    c.train.validate_batches = 4;
    c.train.cgs_weight = 0.5f;
    strcpy(c.train.precision.s, apart ? "bf16" : precision);
    if (apart) c.model.class_bits = 32;
    return c;
}

static void path_of(char out[256], const char *run, const char *name) {
    snprintf(out, 256, "%s/%s%s%s", folder, run, *name ? "/" : "", name);
}

static cgs_validation validated; /* of the last run, after update 7 */

/* Trains from where the run stands to the end, or to `stop` without saving what came after
 * update 10, as if it was killed.  Returns the mean loss of the updates it made. */
static double train(const char *run, const char *precision, cgs_device *d, bool resume, int stop) {
    cgs_run_config c = tiny(precision);
    char dir[256];
    cgs_trainer *t;
    cgs_step_info info = {0};
    double sum = 0;
    int updates = 0;
    path_of(dir, run, "");
    OK(cgs_trainer_create(&t, &c, data, dir, d, resume));
    while (!cgs_trainer_done(t) && (!stop || (int)info.step < stop)) {
        OK(cgs_trainer_step(t, &info));
        sum += info.loss;
        updates++;
        if (info.step == 7) OK(cgs_trainer_validate(t, &validated));
        if (info.step == 10 || cgs_trainer_done(t)) OK(cgs_trainer_save(t));
    }
    cgs_trainer_destroy(t);
    return sum / updates;
}

static void same_files(const char *one, const char *other) {
    static const char *const files[] = {"checkpoint.safetensors", "model.safetensors"};
    for (int i = 0; i < 2; i++) {
        char a[256], b[256];
        path_of(a, one, files[i]);
        path_of(b, other, files[i]);
        same_file(a, b);
    }
}

void gpu_train_agrees(cgs_device *cpu, cgs_device *gpu, const char *precision, double tolerance) {
    char whole[32], again[32], broken[32], other[32];
    snprintf(whole, sizeof whole, "whole-%s", precision);
    snprintf(again, sizeof again, "again-%s", precision);
    snprintf(broken, sizeof broken, "broken-%s", precision);
    snprintf(other, sizeof other, "cpu-%s", precision);
    double loss = train(whole, precision, gpu, false, 0);
    train(again, precision, gpu, false, 0);
    train(broken, precision, gpu, false, 13);
    train(broken, precision, gpu, true, 0);
    same_files(whole, again);
    same_files(whole, broken);
    double want = train(other, precision, cpu, false, 0);
    print_message("%s: mean loss %.6f, %.6f on the CPU\n", precision, loss, want);
    assert_true(fabs(loss - want) <= tolerance * want);
}

/* ---- frames ------------------------------------------------------------------------ */

/* refused only where there is no such variant: then frames are sent anyway */
static void send_frames(cgs_device *d) { (void)cgs_device_without(d, "cached_frames"); }

void gpu_train_frames_stay(cgs_device *gpu) {
    cgs_device other;
    OK(cgs_device_open(&other, "cuda", 0));
    send_frames(&other);
    train("kept", "f32", gpu, false, 0);
    cgs_validation kept = validated;
    train("sent", "f32", &other, false, 0);
    cgs_device_close(&other);
    assert_int_equal(kept.windows, validated.windows);
    for (int i = 0; i < CGS_TERMS; i++) assert_true(kept.term[i] == validated.term[i]);
    same_files("kept", "sent");
}

/* As in training the next pictures are on their way before the host waits for anything. */
void gpu_train_frames_sent(void) {
    enum { BATCH = 4, STEPS = 2, SIZE = 56, BYTES = BATCH * STEPS * SIZE * SIZE * 3, ROUNDS = 6 };
    static uint8_t want[BYTES], got[BYTES];
    const double mean[2] = {0, 0}, std[2] = {1, 1};
    cgs_device d;
    cgs_dataset *set;
    cgs_windows windows;
    cgs_split split;
    cgs_loader *loader;
    cgs_frames frames;
    cgs_batch batch;
    cgs_tensor input = {0};
    OK(cgs_device_open(&d, "cuda", 0));
    send_frames(&d);
    OK(d.ops->alloc(&d, &input.data, BYTES));
    OK(cgs_dataset_open(&set, data));
    const cgs_source *source = cgs_dataset_source(set);
    OK(cgs_windows_build(&windows, source, STEPS, 1));
    OK(cgs_split_by_episode(&split, &windows, source->episodes, 1, 1));
    cgs_loader_config config = {.source = source,
                                .windows = &windows,
                                .ids = split.train,
                                .id_count = split.train_count,
                                .batch = BATCH,
                                .image_size = SIZE,
                                .action_mean = mean,
                                .action_std = std,
                                .shuffle = true};
    OK(cgs_loader_create(&loader, &config));
    OK(cgs_frames_open(&frames, &d, source, &windows, BATCH));
    cgs_frames_pin(&frames, loader);
    assert_non_null(frames.pinned);
    OK(cgs_loader_next(loader, &batch));
    OK(cgs_frames_send(&frames, &batch));
    for (int i = 0; i < ROUNDS; i++) {
        memcpy(want, batch.pixels, BYTES);
        OK(cgs_frames_put(&frames, &input, &batch));
        OK(cgs_loader_next(loader, &batch));
        OK(cgs_frames_send(&frames, &batch));
        OK(d.ops->download(&d, got, input.data, BYTES));
        assert_memory_equal(got, want, BYTES);
    }
    cgs_frames_unpin(&frames);
    cgs_loader_destroy(loader);
    cgs_frames_close(&frames);
    cgs_split_free(&split);
    cgs_windows_free(&windows);
    cgs_dataset_close(set);
    d.ops->release(&d, input.data);
    cgs_device_close(&d);
}

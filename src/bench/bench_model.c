/* bench_model.c - frames encoded per second, and frames read per second. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "collect/collect.h"
#include "core/threads.h"
#include "data/loader.h"
#include "data/packed.h"
#include "model/dinowm.h"
#include "model/lewm.h"
#include "ops/check/cost.h"
#include "ops/cpu/gemm.h"

enum { RUNS = 5 };

static cgs_status dinowm(cgs_model **out, cgs_bench_target s, bool with_backbone, cgs_device *d) {
    cgs_dinowm_config c;
    cgs_backbone_view view;
    cgs_backbone *backbone = NULL;
    cgs_dinowm *m = NULL;
    CGS_TRY(cgs_dinowm_preset(&c, s.preset));
    snprintf(c.tokens.s, sizeof c.tokens.s, "%s", s.family);
    CGS_TRY(cgs_dinowm_view(&c, &view));
    cgs_backbone_config of = CGS_VIT_S14;
    if (!strcmp(s.preset, "small")) of = (cgs_backbone_config){96, 4, 3, 384, 8, 8};
    cgs_status rc = CGS_OK;
    if (with_backbone) rc = cgs_backbone_create(&backbone, &of, &view, d, false);
    if (rc == CGS_OK && backbone) rc = cgs_params_init(&backbone->params, 0);
    if (rc == CGS_OK && backbone) rc = cgs_backbone_settle(backbone);
    if (rc == CGS_OK) rc = cgs_dinowm_create(&m, &c, backbone, d, false);
    if (rc != CGS_OK) {
        cgs_backbone_destroy(backbone);
        return rc;
    }
    *out = &m->base;
    return cgs_params_init(&m->params, 0);
}

static cgs_status lewm(cgs_model **out, cgs_bench_target s, cgs_device *d) {
    cgs_lewm_config c;
    cgs_lewm *m;
    CGS_TRY(cgs_lewm_preset(&c, s.preset));
    CGS_TRY(cgs_lewm_create(&m, &c, d, false));
    *out = &m->base;
    return cgs_params_init(&m->params, 0);
}

cgs_status cgs_bench_model(cgs_model **out, cgs_bench_target s, bool with_backbone, cgs_device *d) {
    *out = NULL;
    bool dino = !strcmp(s.family, "cls") || !strcmp(s.family, "patch");
    if (!dino && strcmp(s.family, "lewm") != 0)
        return cgs_fail(CGS_EARG, "\"%.40s\" is not lewm, cls or patch", s.family);
    cgs_status rc = dino ? dinowm(out, s, with_backbone, d) : lewm(out, s, d);
    if (rc != CGS_OK) {
        cgs_model_destroy(*out);
        *out = NULL;
    }
    return rc;
}

/* what is measured: the whole encoder, or the part of DINO-WM's that is frozen */
static cgs_tensor *encoded(cgs_tape *t, cgs_model *m, cgs_tensor *frames) {
    if (m->cls == &cgs_dinowm_class) return cgs_dinowm_features(t, cgs_dinowm_of(m), frames);
    return m->cls->encode(t, m, frames, NULL);
}

cgs_status cgs_bench_encode(cgs_device *d, cgs_bench_target s, cgs_dtype act, int frames,
                            cgs_bench_fn fn, void *user) {
    cgs_model *m = NULL;
    cgs_tape *t = NULL;
    double peak = 0;
    CGS_TRY(cgs_bench_model(&m, s, true, d));
    cgs_status rc = cgs_bench_gemm_peak(d, act, &peak);
    if (rc == CGS_OK) rc = cgs_tape_create(&t, d, act);
    if (rc == CGS_OK) {
        cgs_tape_freeze_parameters(t);
        const int dim[4] = {frames, m->image_size, m->image_size, 3};
        cgs_keep(encoded(t, m, cgs_input(t, "frames", CGS_U8, 4, dim)));
        rc = cgs_tape_finish(t, NULL);
    }
    double seconds[RUNS], flop = 0, bytes = 0;
    for (int i = -2; rc == CGS_OK && i < RUNS;
         i++) { /* the first runs warm up, and capture the tape */
        double start = cgs_now();
        cgs_tape_forward(t);
        rc = d->ops->sync(d);
        if (i >= 0) seconds[i] = cgs_now() - start;
    }
    if (rc == CGS_OK) {
        char name[96], share[160];
        cgs_measured took = cgs_measured_median(seconds, RUNS);
        for (int i = 0; i < cgs_tape_records(t); i++) {
            cgs_cost c = cgs_forward_cost(cgs_tape_record(t, i));
            flop += c.flops;
            bytes += c.bytes;
        }
        bool dino = m->cls == &cgs_dinowm_class;
        snprintf(name, sizeof name, "%s %s%s%s %s, %d frames", dino ? "features" : "encode",
                 s.preset, dino ? " " : "", dino ? s.family : "", act == CGS_BF16 ? "bf16" : "f32",
                 frames);
        fn(user, name, cgs_measured_rate(frames, took), "frames/s");
        fn(user, name, cgs_measured_rate(1e-9 * flop, took), "GFLOP/s");
        snprintf(share, sizeof share, "%s: fraction of the peak rate of matrix products", name);
        fn(user, share, cgs_measured_rate(100 * flop / peak, took), "%");
        fn(user, name, cgs_measured_rate(1e-9 * bytes, took), "GB/s");
    }
    cgs_tape_destroy(t);
    cgs_model_destroy(m);
    return rc;
}

/* batches of a loader over one source: frames per second */
static cgs_status read_rate(const cgs_source *s, const char *name, cgs_bench_fn fn, void *user) {
    cgs_windows w;
    CGS_TRY(cgs_windows_build(&w, s, 4, 5));
    int64_t *ids = malloc((size_t)w.count * sizeof *ids);
    const double mean[2] = {0, 0}, std[2] = {1, 1};
    cgs_loader *l = NULL;
    cgs_status rc =
        ids ? CGS_OK : cgs_fail(CGS_ENOMEM, "no memory for %lld windows", (long long)w.count);
    for (int64_t i = 0; rc == CGS_OK && i < w.count; i++) ids[i] = i;
    cgs_loader_config c = {.source = s,
                           .windows = &w,
                           .ids = ids,
                           .id_count = w.count,
                           .batch = 64,
                           .image_size = s->height,
                           .action_mean = mean,
                           .action_std = std,
                           .shuffle = true,
                           .threads = 1};
    if (rc == CGS_OK) rc = cgs_loader_create(&l, &c);
    double seconds[RUNS];
    for (int i = -1; rc == CGS_OK && i < RUNS; i++) {
        double start = cgs_now();
        for (int k = 0; rc == CGS_OK && k < 8; k++) {
            cgs_batch b;
            rc = cgs_loader_next(l, &b);
        }
        if (i >= 0) seconds[i] = cgs_now() - start;
    }
    if (rc == CGS_OK) {
        cgs_measured took = cgs_measured_median(seconds, RUNS);
        fn(user, name, cgs_measured_rate(8 * 64 * 4, took), "frames/s");
    }
    cgs_loader_destroy(l);
    free(ids);
    cgs_windows_free(&w);
    return rc;
}

cgs_status cgs_bench_data(const char *scratch, cgs_bench_fn fn, void *user) {
    char packed[4096];
    if (snprintf(packed, sizeof packed, "%s.frames", scratch) >= (int)sizeof packed)
        return cgs_fail(CGS_EARG, "%.64s...: path is too long", scratch);
    cgs_collect_options o = {.env = "tworooms", .out = scratch, .episodes = 20, .side = 224};
    cgs_collect_result made;
    cgs_dataset *d = NULL;
    cgs_packed *p = NULL;
    CGS_TRY(cgs_collect(&o, &made));
    cgs_status rc = cgs_dataset_open(&d, scratch);
    if (rc == CGS_OK)
        rc = read_rate(cgs_dataset_source(d), "batches of 224x224 frames from HDF5", fn, user);
    if (rc == CGS_OK) {
        double start = cgs_now();
        rc = cgs_packed_ensure(&p, packed, scratch, 224, NULL, NULL);
        if (rc == CGS_OK)
            fn(user, "packing 224x224 frames",
               cgs_measured_once((double)cgs_dataset_source(d)->rows / (cgs_now() - start)),
               "frames/s");
    }
    if (rc == CGS_OK)
        rc = read_rate(cgs_packed_source(p), "batches of 224x224 frames from the packed copy", fn,
                       user);
    cgs_packed_close(p);
    cgs_dataset_close(d);
    unlink(scratch);
    unlink(packed);
    return rc;
}

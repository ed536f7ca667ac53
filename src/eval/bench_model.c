/* bench_model.c - frames encoded a second, and frames read a second. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/threads.h"
#include "data/loader.h"
#include "data/packed.h"
#include "eval/bench.h"
#include "eval/collect.h"
#include "model/lewm.h"
#include "ops/cost.h"

enum { RUNS = 5 };

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

cgs_status cgs_bench_encode(cgs_device *d, const char *preset, cgs_dtype act, int frames,
                            cgs_bench_fn fn, void *user) {
    cgs_lewm_config c;
    cgs_lewm *m = NULL;
    cgs_tape *t = NULL;
    CGS_TRY(cgs_lewm_preset(&c, preset));
    cgs_status rc = cgs_lewm_create(&m, &c, d, false);
    if (rc == CGS_OK) rc = cgs_params_init(&m->params, 0);
    if (rc == CGS_OK) rc = cgs_tape_create(&t, d, act);
    if (rc == CGS_OK) {
        cgs_tape_freeze_parameters(t);
        const int dim[4] = {frames, c.image_size, c.image_size, 3};
        cgs_keep(cgs_lewm_encode(t, m, cgs_input(t, "frames", CGS_U8, 4, dim), false));
        rc = cgs_tape_finish(t, NULL);
    }
    double seconds[RUNS], flop = 0;
    for (int i = -1; rc == CGS_OK && i < RUNS; i++) { /* the first run warms up */
        double start = cgs_now();
        cgs_tape_forward(t);
        rc = d->ops->sync(d);
        if (i >= 0) seconds[i] = cgs_now() - start;
    }
    if (rc == CGS_OK) {
        char name[96];
        qsort(seconds, RUNS, sizeof *seconds, by_size);
        for (int i = 0; i < cgs_tape_records(t); i++)
            flop += cgs_forward_cost(cgs_tape_record(t, i)).flops;
        snprintf(name, sizeof name, "encode %s %s, %d frames", preset,
                 act == CGS_BF16 ? "bf16" : "f32", frames);
        fn(user, name, frames / seconds[RUNS / 2], "frames/s");
        fn(user, name, 1e-9 * flop / seconds[RUNS / 2], "GFLOP/s");
    }
    cgs_tape_destroy(t);
    cgs_lewm_destroy(m);
    return rc;
}

/* batches of a loader over one source: frames a second */
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
        qsort(seconds, RUNS, sizeof *seconds, by_size);
        fn(user, name, 8 * 64 * 4 / seconds[RUNS / 2], "frames/s");
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
               (double)cgs_dataset_source(d)->rows / (cgs_now() - start), "frames/s");
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

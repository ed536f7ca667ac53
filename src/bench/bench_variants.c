/* bench_variants.c - the gain of each variant of ops/cuda/variants.h: the same work with all of
 * them and without each. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "core/threads.h"
#include "ops/cuda/variants.h"

enum { RUNS = 5, SIDE = 224 };

/* picks the value whose name ends with `suffix` from a measurement's results */
typedef struct capture {
    const char *suffix, *unit;
    cgs_measured value;
} capture;

static void take(void *user, const char *name, cgs_measured value, const char *unit) {
    capture *c = user;
    size_t length = strlen(name), suffix = strlen(c->suffix);
    if (!strcmp(unit, c->unit) && length >= suffix && !strcmp(name + length - suffix, c->suffix))
        c->value = value;
}

/* ---- the workloads, in milliseconds ------------------------------------------------------------
 */

static cgs_status update(cgs_device *d, int windows, cgs_measured *ms) {
    capture c = {.suffix = " frames", .unit = "ms"};
    cgs_status rc = cgs_bench_update(d, "paper", CGS_BF16, 16, windows, false, take, &c);
    *ms = c.value;
    return rc;
}

static cgs_status patches(cgs_device *d, int windows, cgs_measured *ms) {
    (void)windows;
    capture c = {.suffix = "median", .unit = "ms"};
    cgs_bench_target world = {"patch", "paper"};
    cgs_latency_work w = CGS_LATENCY_WORK;
    w.solves = RUNS;
    cgs_status rc = cgs_bench_latency(d, world, CGS_BF16, &w, take, &c);
    *ms = c.value;
    return rc;
}

/* Moves one batch of images to where a tape reads them, as cgs_frames does (train/frames.c): from
 * the device's memory where that is free, otherwise from pinned host memory. */
static cgs_status batch_arrives(cgs_device *d, unsigned char *host, void *from, void *to,
                                const int64_t *which, size_t count, size_t bytes, bool cached,
                                cgs_measured *ms) {
    double took[RUNS];
    for (int i = -1; i < RUNS; i++) { /* the first warms up */
        double begin = cgs_now();
        if (cached) {
            CGS_TRY(d->ops->gather(d, to, from, which, count, bytes));
        } else {
            CGS_TRY(d->ops->send_ahead(d, from, host, count * bytes));
            CGS_TRY(d->ops->take_sent(d, to, from, count * bytes));
        }
        CGS_TRY(d->ops->sync(d));
        if (i >= 0) took[i] = 1e3 * (cgs_now() - begin);
    }
    *ms = cgs_measured_median(took, RUNS);
    return CGS_OK;
}

static cgs_status frames(cgs_device *d, int windows, cgs_measured *ms) {
    const size_t count = 4 * (size_t)windows, bytes = (size_t)SIDE * SIDE * 3;
    size_t unused, all;
    void *from = NULL, *to = NULL;
    CGS_TRY(d->ops->memory(d, &unused, &all));
    unsigned char *host = calloc(count, bytes);
    int64_t *which = malloc(count * sizeof *which);
    cgs_status rc = host && which ? CGS_OK : cgs_fail(CGS_ENOMEM, "bench: no memory for frames");
    for (size_t i = 0; rc == CGS_OK && i < count; i++) which[i] = (int64_t)(count - 1 - i);
    if (rc == CGS_OK) rc = d->ops->alloc(d, &from, count * bytes);
    if (rc == CGS_OK) rc = d->ops->alloc(d, &to, count * bytes);
    if (rc == CGS_OK) rc = d->ops->sync(d);
    bool pinned = rc == CGS_OK && d->ops->pin(d, host, count * bytes);
    if (rc == CGS_OK)
        rc = batch_arrives(d, host, from, to, which, count, bytes, unused > all / 10, ms);
    if (pinned) d->ops->unpin(d, host);
    if (from) d->ops->release(d, from);
    if (to) d->ops->release(d, to);
    free(which);
    free(host);
    return rc;
}

/* ---- with and without ------------------------------------------------------------------------ */

static const struct {
    const char *name;
    cgs_status (*timed)(cgs_device *d, int windows, cgs_measured *ms);
} works[] = {{"update", update}, {"patches", patches}, {"frames", frames}};
enum { WORKS = sizeof works / sizeof works[0] };

static const struct {
    const char *name, *work;
} variants[] = {
#define X(id, before, operation, after, between, runs, timed, when, worth) {#id, #timed},
    CGS_CUDA_VARIANTS(X)
#undef X
};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

static cgs_status measure(cgs_device *d, int windows, int work, cgs_bench_fn fn, void *user) {
    char name[96];
    cgs_measured whole, ms;
    CGS_TRY(cgs_device_without(d, ""));
    CGS_TRY(works[work].timed(d, windows, &whole));
    snprintf(name, sizeof name, "%s, all variants", works[work].name);
    fn(user, name, whole, "ms");
    for (int i = 0; i < VARIANTS; i++) {
        if (strcmp(variants[i].work, works[work].name) != 0) continue;
        CGS_TRY(cgs_device_without(d, variants[i].name));
        CGS_TRY(works[work].timed(d, windows, &ms));
        snprintf(name, sizeof name, "%s, without %s", works[work].name, variants[i].name);
        fn(user, name, ms, "ms");
        fn(user, name, cgs_measured_once(100 * (ms.value - whole.value) / whole.value), "% more");
    }
    return CGS_OK;
}

cgs_status cgs_bench_variants(cgs_device *d, int windows, cgs_bench_fn fn, void *user) {
    CGS_TRY(cgs_device_without(d, "")); /* fails where a device has none */
    cgs_status rc = CGS_OK;
    for (int i = 0; rc == CGS_OK && i < WORKS; i++) rc = measure(d, windows, i, fn, user);
    cgs_device_without(d, "");
    return rc;
}

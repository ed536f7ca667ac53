/* bench_env.c - how fast environments step and render, and data are collected. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/bench.h"
#include "collect/collect.h"
#include "core/threads.h"
#include "env/policy.h"

enum { RUNS = 5, WORLDS = 16, EPISODES = 4 /* per thread, or more */, SIDE_SMALL = 64 };

/* environments in different random states, so that no image is rendered twice in a row */
typedef struct bench {
    cgs_env *env[WORLDS];
    cgs_policy *policy;
    uint8_t *rgb;
    int side;
    uint64_t episode;
} bench;

static void bench_free(bench *b) {
    for (int i = 0; i < WORLDS; i++) cgs_env_destroy(b->env[i]);
    cgs_policy_destroy(b->policy);
    free(b->rgb);
}

static cgs_status bench_make(bench *b, const cgs_env_class *cls) {
    const cgs_policy_class *policy;
    *b = (bench){.side = cls->native};
    /* PushT's weak policy stays near the block: half of its steps are in contact */
    CGS_TRY(cgs_policy_find(cls->id, cls == &cgs_pusht_class ? "weak" : NULL, &policy));
    CGS_TRY(cgs_policy_create(&b->policy, policy));
    b->rgb = malloc((size_t)cls->native * (size_t)cls->native * 3);
    if (!b->rgb) return cgs_fail(CGS_ENOMEM, "no memory for an image");
    for (int i = 0; i < WORLDS; i++) {
        cgs_rng rng = cgs_rng_stream(1, CGS_STREAM_TEST, (uint64_t)i);
        CGS_TRY(cgs_env_create(&b->env[i], cls));
        CGS_TRY(cgs_env_reset(b->env[i], &rng));
    }
    return CGS_OK;
}

/* one policy episode; returns its steps */
static cgs_status run_steps(bench *b, double *count) {
    cgs_env *e = b->env[0];
    CGS_TRY(cgs_policy_begin(b->policy, e, 1, b->episode++));
    while (!cgs_policy_over(b->policy, e)) {
        cgs_policy_act(b->policy, e);
        cgs_env_step(e);
    }
    *count += e->steps;
    return CGS_OK;
}

static cgs_status run_images(bench *b, double *count) {
    for (int i = 0; i < WORLDS; i++) CGS_TRY(cgs_env_render(b->env[i], b->side, b->rgb));
    *count += WORLDS;
    return CGS_OK;
}

/* the median rate of RUNS runs, after a warm-up */
static cgs_status rate(bench *b, cgs_status (*work)(bench *, double *), double seconds,
                       cgs_measured *out) {
    double rates[RUNS];
    for (int r = -1; r < RUNS; r++) {
        double count = 0, start = cgs_now(), took;
        do {
            CGS_TRY(work(b, &count));
            took = cgs_now() - start;
        } while (took < seconds);
        if (r >= 0) rates[r] = count / took;
    }
    *out = cgs_measured_median(rates, RUNS);
    return CGS_OK;
}

static cgs_status bench_class(bench *b, const char *id, double seconds, cgs_bench_fn fn,
                              void *user) {
    char name[64];
    cgs_measured value;
    CGS_TRY(rate(b, run_steps, seconds, &value));
    snprintf(name, sizeof name, "env.%s.step", id);
    fn(user, name, value, "steps/s/core");
    const int sides[2] = {b->side, SIDE_SMALL};
    for (int i = 0; i < 2; i++) {
        b->side = sides[i];
        CGS_TRY(rate(b, run_images, seconds, &value));
        snprintf(name, sizeof name, "env.%s.render.%d", id, b->side);
        fn(user, name, value, "frames/s/core");
    }
    return CGS_OK;
}

static cgs_status collect_once(const char *scratch, const cgs_env_class *cls, int side,
                               int episodes, int seed, cgs_collect_result *result) {
    cgs_collect_options o = {.env = cls->id, /* with its first policy */
                             .out = scratch,
                             .episodes = episodes,
                             .side = side,
                             .seed = (uint64_t)seed};
    CGS_TRY(cgs_collect(&o, result));
    unlink(scratch);
    return CGS_OK;
}

/* side 0: no images */
static cgs_status bench_collect(const char *scratch, const cgs_env_class *cls, int side,
                                double seconds, cgs_bench_fn fn, void *user) {
    double rates[RUNS];
    char name[64];
    int episodes = EPISODES * cgs_threads();
    cgs_collect_result result;
    CGS_TRY(collect_once(scratch, cls, side, episodes, 0, &result)); /* says how many fill a run */
    if (result.seconds < seconds) episodes *= (int)ceil(seconds / fmax(result.seconds, 1e-3));
    for (int r = 0; r < RUNS; r++) {
        CGS_TRY(collect_once(scratch, cls, side, episodes, r, &result));
        rates[r] = (double)result.frames / result.seconds;
    }
    snprintf(name, sizeof name, "env.%s.collect.%d", cls->id, side);
    fn(user, name, cgs_measured_median(rates, RUNS), "frames/s");
    return CGS_OK;
}

cgs_status cgs_bench_env(double seconds, const char *scratch, cgs_bench_fn fn, void *user) {
    for (int i = 0; i < cgs_env_count(); i++) {
        const cgs_env_class *cls = cgs_env_at(i);
        bench b;
        cgs_status rc = bench_make(&b, cls);
        if (rc == CGS_OK) rc = bench_class(&b, cls->id, seconds, fn, user);
        bench_free(&b);
        if (rc == CGS_OK && scratch) rc = bench_collect(scratch, cls, 0, seconds, fn, user);
        if (rc == CGS_OK && scratch)
            rc = bench_collect(scratch, cls, cls->native, seconds, fn, user);
        CGS_TRY(rc);
    }
    return CGS_OK;
}

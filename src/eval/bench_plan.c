/* bench_plan.c - how fast planning through a model is, and what a rollout is made of. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "core/threads.h"
#include "eval/bench.h"
#include "eval/statistics.h"
#include "eval/world.h"
#include "ops/cost.h"
#include "ops/cpu/gemm.h"
#include "plan/planner.h"

enum { RUNS = 5, K = 128, ITERS = 30, STEPS = 100, H = 5 };

typedef struct bed {
    cgs_lewm *model;
    cgs_device *device;
    cgs_dtype act;
    double peak; /* FLOP/s of matrix products */
    float *z, *goal;
    const char *preset;
    cgs_bench_fn fn;
    void *user;
} bed;

static void say(const bed *b, const char *planner, const char *what, double value,
                const char *unit) {
    char name[96];
    snprintf(name, sizeof name, "%s %s %s: %s", planner, b->preset,
             b->act == CGS_BF16 ? "bf16" : "f32", what);
    b->fn(b->user, name, value, unit);
}

static double tape_flops(const cgs_tape *t, bool backward) {
    double sum = 0;
    for (int i = 0; i < cgs_tape_records(t); i++) {
        const cgs_record *r = cgs_tape_record(t, i);
        sum += cgs_forward_cost(r).flops;
        /* weights are constants: of backward's two products only the one for inputs is made */
        if (backward && r->out->wants_grad)
            sum += r->op == CGS_OP_linear ? cgs_forward_cost(r).flops : cgs_backward_cost(r).flops;
    }
    return sum;
}

/* seconds of each kind of operation in one forward run of the tape */
static void breakdown(const bed *b, const char *planner, const cgs_tape *t) {
    double spent[CGS_OP_COUNT] = {0}, total = 0;
    for (int run = 0; run < RUNS; run++)
        for (int i = 0; i < cgs_tape_records(t); i++) {
            const cgs_record *r = cgs_tape_record(t, i);
            double begin = cgs_now();
            b->device->ops->forward[r->op](b->device, r);
            b->device->ops->sync(b->device);
            double took = (cgs_now() - begin) / RUNS;
            spent[r->op] += took;
            total += took;
        }
    for (int op = 0; op < CGS_OP_COUNT; op++) {
        char what[64];
        if (spent[op] < 0.005 * total) continue;
        snprintf(what, sizeof what, "share of %s in a rollout", cgs_op_name((cgs_opcode)op));
        say(b, planner, what, 100 * spent[op] / total, "%");
    }
}

static cgs_status measure(const bed *b, const char *planner) {
    cgs_plan_config p = cgs_plan_defaults();
    bool gradient = !strcmp(planner, "gd");
    snprintf(p.kind.s, sizeof p.kind.s, "%s", planner);
    p.K = K;
    p.iters = ITERS;
    p.gd_steps = STEPS;
    p.H = H;
    p.A = cgs_lewm_block(&b->model->config);
    cgs_rollout_config c = {.episodes = 1,
                            .context = 1,
                            .horizon = H,
                            .samples = gradient ? 1 : K,
                            .gradient = gradient,
                            .group = 1,
                            .act = b->act};
    cgs_planner *solver = NULL;
    cgs_rollout *r = NULL;
    cgs_plan_result result;
    double seconds[RUNS], outside[RUNS];
    cgs_status rc = cgs_rollout_create(&r, b->model, &c);
    if (rc == CGS_OK) rc = cgs_planner_create(&solver, &p, 1);
    if (rc == CGS_OK) rc = cgs_rollout_set(r, 1, b->z, NULL, b->goal);
    cgs_plan_problem q = {
        .E = 1, .cost = cgs_rollout_cost, .gradient = cgs_rollout_gradient, .ctx = r};
    for (int run = 0; run < RUNS && rc == CGS_OK; run++) {
        rc = cgs_planner_solve(solver, &q, &result);
        seconds[run] = result.times.total;
        outside[run] = 100 * (1 - result.times.cost / result.times.total);
    }
    if (rc == CGS_OK) {
        double took = cgs_median(seconds, RUNS);
        double work = tape_flops(cgs_rollout_tape(r), gradient) * (gradient ? STEPS : ITERS);
        say(b, planner, "solve", took, "s");
        say(b, planner, "arithmetic", 1e-9 * work / took, "GFLOP/s");
        say(b, planner, "share of the rate of matrix products", 100 * work / took / b->peak, "%");
        say(b, planner, "outside the rollouts", cgs_median(outside, RUNS), "%");
        say(b, planner, "memory of the tape", 1e-6 * (double)cgs_rollout_memory(r), "MB");
        breakdown(b, planner, cgs_rollout_tape(r));
    }
    cgs_planner_destroy(solver);
    cgs_rollout_destroy(r);
    return rc;
}

cgs_status cgs_bench_plan(cgs_device *d, const char *preset, cgs_dtype act, cgs_bench_fn fn,
                          void *user) {
    cgs_lewm_config c;
    bed b = {.device = d, .act = act, .preset = preset, .fn = fn, .user = user};
    CGS_TRY(cgs_lewm_preset(&c, preset));
    CGS_TRY(cgs_lewm_create(&b.model, &c, d, false));
    cgs_status rc = cgs_params_init(&b.model->params, 0);
    b.z = malloc(2 * (size_t)c.width * sizeof *b.z);
    if (rc == CGS_OK && !b.z) rc = cgs_fail(CGS_ENOMEM, "bench: no memory");
    if (rc == CGS_OK) {
        cgs_rng r = cgs_rng_stream(0, CGS_STREAM_TEST, 0);
        b.goal = b.z + c.width;
        for (int i = 0; i < 2 * c.width; i++) b.z[i] = (float)cgs_rng_normal(&r);
        rc = cgs_bench_gemm_peak(d, act, &b.peak);
    }
    static const char *const planners[] = {"mppi", "cem", "gd"};
    for (int i = 0; i < 3 && rc == CGS_OK; i++) rc = measure(&b, planners[i]);
    free(b.z);
    cgs_lewm_destroy(b.model);
    return rc;
}

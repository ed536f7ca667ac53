/* bench_plan.c - speed of planning through a model, and the time of a rollout by operation. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "core/rng.h"
#include "core/threads.h"
#include "model/prior.h"
#include "ops/check/cost.h"
#include "ops/cpu/gemm.h"
#include "plan/planners.h"
#include "rollout/encoder.h"
#include "rollout/rollout.h"

enum { RUNS = 5, K = 128, ITERS = 30, STEPS = 100, H = 5, MANY = 50 };

typedef struct bed {
    cgs_model *model;
    cgs_device *device;
    cgs_dtype act;
    int episodes;
    double peak;     /* FLOP/s of matrix products */
    float *z, *goal; /* (MANY, D) */
    cgs_bench_target target;
    cgs_bench_fn fn;
    void *user;
} bed;

static void say(const bed *b, const char *planner, const char *what, cgs_measured m,
                const char *unit) {
    char name[128];
    bool lewm = !strcmp(b->target.family, "lewm");
    snprintf(name, sizeof name, "%s %s%s%s %s, %d episode%s: %s", planner, b->target.preset,
             lewm ? "" : " ", lewm ? "" : b->target.family, b->act == CGS_BF16 ? "bf16" : "f32",
             b->episodes, b->episodes == 1 ? "" : "s", what);
    b->fn(b->user, name, m, unit);
}

static double tape_flops(const cgs_tape *t, bool backward) {
    double sum = 0;
    for (int i = 0; i < cgs_tape_records(t); i++) {
        const cgs_record *r = cgs_tape_record(t, i);
        sum += cgs_forward_cost(r).flops;
        /* weights are constants: of backward's two products only the one for inputs runs */
        if (backward && r->out->wants_grad)
            sum += r->op == CGS_OP_linear ? cgs_forward_cost(r).flops : cgs_backward_cost(r).flops;
    }
    return sum;
}

/* of the forward pass; every operand once */
static double tape_bytes(const cgs_tape *t) {
    double sum = 0;
    for (int i = 0; i < cgs_tape_records(t); i++)
        sum += cgs_forward_cost(cgs_tape_record(t, i)).bytes;
    return sum;
}

/* plans in one run of a rollout's tape */
static double tape_plans(const cgs_tape *t) {
    for (int i = cgs_tape_records(t) - 1; i >= 0; i--)
        if (cgs_tape_record(t, i)->op == CGS_OP_sqdist)
            return (double)cgs_numel(cgs_tape_record(t, i)->out);
    return 1;
}

/* shares of each kind of operation in a forward run of the tape */
static cgs_status breakdown(const bed *b, const char *planner, cgs_tape *t) {
    double spent[CGS_OP_COUNT][RUNS] = {{0}}, total[RUNS] = {0};
    int records = cgs_tape_records(t);
    double *seconds = malloc((size_t)records * sizeof *seconds);
    if (!seconds) return cgs_fail(CGS_ENOMEM, "bench: no memory for %d records", records);
    for (int run = 0; run < RUNS; run++) {
        memset(seconds, 0, (size_t)records * sizeof *seconds);
        cgs_tape_forward_timed(t, seconds);
        for (int i = 0; i < records; i++) {
            spent[cgs_tape_record(t, i)->op][run] += seconds[i];
            total[run] += seconds[i];
        }
    }
    free(seconds);
    for (int op = 0; op < CGS_OP_COUNT; op++) {
        char what[64];
        for (int run = 0; run < RUNS; run++) spent[op][run] *= 100 / total[run];
        cgs_measured share = cgs_measured_median(spent[op], RUNS);
        if (share.value < 0.5) continue;
        snprintf(what, sizeof what, "fraction of %s in a rollout", cgs_op_name((cgs_opcode)op));
        say(b, planner, what, share, "%");
    }
    return CGS_OK;
}

/* microseconds of scoring all candidates once on the device, without the planner */
static cgs_status one_scoring(const bed *b, const char *planner, const cgs_device_scorer *q, int E,
                              int n) {
    enum { TIMES = 20 };
    cgs_device *d = b->device;
    size_t rows = (size_t)E * (size_t)q->K, plans = rows * (size_t)n;
    void *memory;
    double took[RUNS];
    bool gradient = cgs_planner_kind_of(planner)->needs & CGS_NEEDS_GRADIENT;
    CGS_TRY(d->ops->alloc(d, &memory, (2 * plans + rows) * sizeof(float)));
    float *cost = memory, *plan = cost + rows, *grad = plan + plans;
    cgs_status rc = q->begin(q->ctx, E);
    for (int run = 0; run < RUNS && rc == CGS_OK; run++) {
        double begin = cgs_now();
        for (int i = 0; i < TIMES; i++)
            if (gradient)
                q->gradient(q->ctx, plan, E, cost, grad);
            else
                q->cost(q->ctx, plan, E, q->K, cost);
        rc = d->ops->sync(d);
        took[run] = 1e6 * (cgs_now() - begin) / TIMES;
    }
    d->ops->release(d, memory);
    if (rc == CGS_OK)
        say(b, planner, "one scoring, launched by the host", cgs_measured_median(took, RUNS), "us");
    return rc;
}

static cgs_plan_config settings(const bed *b, const char *planner) {
    cgs_plan_config p = cgs_plan_defaults();
    snprintf(p.kind.s, sizeof p.kind.s, "%s", planner);
    p.K = K;
    p.iters = ITERS;
    p.gd_steps = STEPS;
    p.H = H;
    p.A = cgs_model_action_block(b->model);
    p.frameskip = b->model->frameskip;
    p.R = b->model->width;
    return p;
}

/* a planner and its rollout for E episodes, and their problem */
typedef struct bench_solver {
    cgs_rollout_config config;
    cgs_planner *planner;
    cgs_rollout *rollout;
    cgs_plan_problem problem;
} bench_solver;

static void close_solver(bench_solver *s) {
    cgs_planner_destroy(s->planner);
    cgs_rollout_destroy(s->rollout);
}

static cgs_status open_solver(bench_solver *s, const bed *b, const cgs_plan_config *p, int E) {
    const cgs_planner_kind *kind = cgs_planner_kind_of(p->kind.s);
    *s = (bench_solver){.config = {.episodes = E,
                                   .context = 1,
                                   .horizon = H,
                                   .samples = cgs_planner_candidates(kind, p),
                                   .gradient = kind->needs & CGS_NEEDS_GRADIENT,
                                   .residual = kind->needs & CGS_NEEDS_RESIDUAL,
                                   .jacobian = kind->needs & CGS_NEEDS_JACOBIAN,
                                   .group = E == 1, /* many: a batch size that is efficient */
                                   .act = b->act}};
    CGS_TRY(cgs_rollout_create_any(&s->rollout, b->model, &s->config));
    CGS_TRY(cgs_planner_create(&s->planner, p, E));
    CGS_TRY(cgs_planner_use_device(s->planner, b->device));
    CGS_TRY(cgs_rollout_set(s->rollout, E, b->z, NULL, b->goal));
    s->problem = (cgs_plan_problem){.E = E,
                                    .cost = cgs_rollout_cost,
                                    .gradient = cgs_rollout_gradient,
                                    .residual = cgs_rollout_residual,
                                    .jacobian = cgs_rollout_jacobian,
                                    .R = cgs_rollout_residuals(s->rollout),
                                    .ctx = s->rollout,
                                    .on_device = cgs_rollout_device_scorer(s->rollout)};
    return CGS_OK;
}

/* work: FLOP of a solve for one episode, measured by the call for one and used by the others */
static cgs_status measure(bed *b, const char *planner, int E, double *work) {
    cgs_plan_config p = settings(b, planner);
    bench_solver s;
    cgs_plan_result result;
    double seconds[RUNS], outside[RUNS];
    b->episodes = E;
    cgs_status rc = open_solver(&s, b, &p, E);
    cgs_plan_problem q = s.problem;
    /* the first solve on a device builds its program */
    if (rc == CGS_OK && q.on_device) {
        rc = cgs_planner_solve(s.planner, &q, &result);
        if (rc == CGS_OK)
            say(b, planner, "first solve", cgs_measured_once(result.times.total), "s");
    }
    for (int run = 0; run < RUNS && rc == CGS_OK; run++) {
        rc = cgs_planner_solve(s.planner, &q, &result);
        seconds[run] = result.times.total;
        outside[run] = 100 * (1 - result.times.cost / result.times.total);
    }
    if (rc == CGS_OK) {
        cgs_tape *t = cgs_rollout_tape(s.rollout);
        cgs_measured took = cgs_measured_median(seconds, RUNS);
        double turns = cgs_plan_iterations(&p);
        turns *= ceil((double)s.config.samples / tape_plans(t)); /* runs of the tape */
        if (E == 1) *work = tape_flops(t, s.config.gradient) * turns;
        say(b, planner, "solve", took, "s");
        say(b, planner, "arithmetic", cgs_measured_rate(1e-9 * *work * E, took), "GFLOP/s");
        say(b, planner, "fraction of the peak rate of matrix products",
            cgs_measured_rate(100 * *work * E / b->peak, took), "%");
        if (q.on_device) {
            say(b, planner, "rollouts by one kernel (1) or by the tape (0)",
                cgs_measured_count(cgs_rollout_fused(s.rollout)), "");
            rc = one_scoring(b, planner, q.on_device, E, p.H * p.A);
        } else {
            say(b, planner, "outside the rollouts", cgs_measured_median(outside, RUNS), "%");
        }
        say(b, planner, "memory of the tape",
            cgs_measured_count(1e-6 * (double)cgs_rollout_memory(s.rollout)), "MB");
        if (E == 1) {
            say(b, planner, "operands of the operations",
                cgs_measured_rate(1e-9 * tape_bytes(t) * turns, took), "GB/s");
            rc = breakdown(b, planner, t);
        }
    }
    close_solver(&s);
    return rc;
}

static cgs_status open_bed(bed *b, cgs_bench_target s) {
    CGS_TRY(cgs_bench_model(&b->model, s, false, b->device));
    size_t n = MANY * (size_t)b->model->width;
    b->z = malloc(2 * n * sizeof *b->z);
    if (!b->z) return cgs_fail(CGS_ENOMEM, "bench: no memory");
    cgs_rng r = cgs_rng_stream(0, CGS_STREAM_TEST, 0);
    b->goal = b->z + n;
    for (size_t i = 0; i < 2 * n; i++) b->z[i] = (float)cgs_rng_normal(&r);
    return CGS_OK;
}

static void close_bed(bed *b) {
    free(b->z);
    cgs_model_destroy(b->model);
}

/* one solve, seconds; e: NULL, or what encodes the current frame first */
static cgs_status one_solve(const bed *b, bench_solver *s, cgs_encoder *e, const uint8_t *image,
                            cgs_prior *prior, double *seconds) {
    cgs_plan_result result;
    float *start = b->goal + b->model->width; /* beds have goals for many episodes */
    double begun = cgs_now();
    if (e) {
        CGS_TRY(cgs_encoder_run(e, image, 1, b->z));
        CGS_TRY(cgs_rollout_set(s->rollout, 1, b->z, NULL, b->goal));
    }
    if (prior) {
        CGS_TRY(cgs_prior_plan(prior, b->z, b->goal, 1, start, NULL));
        s->problem.start = start;
    }
    CGS_TRY(cgs_planner_solve(s->planner, &s->problem, &result));
    *seconds = cgs_now() - begun;
    return CGS_OK;
}

static void say_latency(const bed *b, const cgs_latency_work *w, double *seconds) {
    static const struct {
        const char *name;
        double q;
    } reported[] = {{"median", 50}, {"99th percentile", 99}, {"longest", 100}};
    double *again = seconds + w->solves; /* in the order of the solves: a percentile sorts */
    for (int i = 0; i < 3; i++) {
        char what[64];
        memcpy(again, seconds, (size_t)w->solves * sizeof *again);
        cgs_measured m = cgs_measured_percentile(again, w->solves, reported[i].q);
        snprintf(what, sizeof what, "%ssolve, %s", w->encode ? "image and " : "", reported[i].name);
        say(b, w->planner, what, cgs_measured_times(m, 1e3), "ms");
    }
}

/* a prior of the usual width with random weights, for the planners that begin at one */
static cgs_status open_prior(cgs_prior **out, const bed *b, const cgs_plan_config *p) {
    cgs_prior_card card = {.width = b->model->width, .hidden = 768, .horizon = p->H, .block = p->A};
    if (p->H * p->A > (MANY - 1) * b->model->width)
        return cgs_fail(CGS_EARG, "latency: plans of %d values are too long", p->H * p->A);
    CGS_TRY(cgs_prior_create(out, &card, b->device, false));
    return cgs_params_init(&(*out)->params, 0);
}

static cgs_status latency(bed *b, const cgs_latency_work *w, double *seconds) {
    cgs_plan_config p = settings(b, w->planner);
    p.K = w->samples;
    p.iters = w->iters;
    bench_solver s = {.planner = NULL};
    cgs_encoder *e = NULL;
    size_t side = (size_t)b->model->image_size;
    uint8_t *image = calloc(side * side, 3);
    b->episodes = 1;
    cgs_status rc = image ? CGS_OK : cgs_fail(CGS_ENOMEM, "bench: no memory");
    if (rc == CGS_OK && w->encode) rc = cgs_encoder_create(&e, b->model, b->act, 1);
    if (rc == CGS_OK) rc = open_solver(&s, b, &p, 1);
    cgs_prior *prior = NULL;
    bool needs = cgs_planner_kind_of(w->planner)->needs & CGS_NEEDS_PRIOR;
    if (rc == CGS_OK && needs) rc = open_prior(&prior, b, &p);
    double unused;
    for (int i = 0; i <= w->solves && rc == CGS_OK; i++) /* the first warms up */
        rc = one_solve(b, &s, e, image, prior, i ? &seconds[i - 1] : &unused);
    cgs_prior_destroy(prior);
    close_solver(&s);
    cgs_encoder_destroy(e);
    free(image);
    if (rc == CGS_OK) say_latency(b, w, seconds);
    return rc;
}

cgs_status cgs_bench_latency(cgs_device *d, cgs_bench_target s, cgs_dtype act,
                             const cgs_latency_work *w, cgs_bench_fn fn, void *user) {
    bed b = {.device = d, .act = act, .target = s, .fn = fn, .user = user};
    const cgs_planner_kind *kind = cgs_planner_kind_of(w->planner);
    if (w->solves < 1 || w->samples < 1 || w->iters < 1)
        return cgs_fail(CGS_EARG, "latency: %d solves of %d iterations with %d samples", w->solves,
                        w->iters, w->samples);
    if (!kind || !(kind->needs & CGS_NEEDS_SCORES))
        return cgs_fail(CGS_EARG, "latency: \"%.20s\" is no planner that scores plans", w->planner);
    if (w->encode && strcmp(s.family, "lewm") != 0)
        return cgs_fail(CGS_EARG, "latency: images are encoded by lewm only");
    double *seconds = malloc(2 * (size_t)w->solves * sizeof *seconds);
    cgs_status rc = seconds ? open_bed(&b, s) : cgs_fail(CGS_ENOMEM, "bench: no memory");
    if (rc == CGS_OK) rc = latency(&b, w, seconds);
    close_bed(&b);
    free(seconds);
    return rc;
}

cgs_status cgs_bench_plan(cgs_device *d, cgs_bench_target s, cgs_dtype act, cgs_bench_fn fn,
                          void *user) {
    bed b = {.device = d, .act = act, .target = s, .fn = fn, .user = user};
    cgs_status rc = open_bed(&b, s);
    if (rc == CGS_OK) rc = cgs_bench_gemm_peak(d, act, &b.peak);
    const cgs_planner_kind *kind;
    for (int i = 0; rc == CGS_OK && (kind = cgs_planner_kind_at(i)); i++) {
        double work = 0;
        /* a prior changes where a search begins and not what it costs */
        if (!(kind->needs & CGS_NEEDS_SCORES) || kind->needs & CGS_NEEDS_PRIOR) continue;
        rc = measure(&b, kind->name, 1, &work);
        /* on a CPU the time is proportional to the number of episodes, and for patches it is on any
         * device */
        if (rc == CGS_OK && d->ops->kind == CGS_DEVICE_GPU && strcmp(s.family, "patch") != 0)
            rc = measure(&b, kind->name, MANY, &work);
    }
    close_bed(&b);
    return rc;
}

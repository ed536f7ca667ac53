/* gpu_plan.c - see gpu_plan.h. */
#include "gpu_plan.h"
#include "expect.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/rng.h"
#include "core/threads.h"
#include "gpu_errors.h"
#include "plan/planners.h"
#include "random_model.h"
#include "rollout/rollout.h"
#include "variable.h"

/* The published predictor after a small encoder.  With one layer it is of a model whose class
 * token is f32: that is fused, too. */
static cgs_lewm_config paper_predictor(int layers) {
    cgs_lewm_config c;
    OK(cgs_lewm_preset(&c, "paper"));
    c.image_size = 28;
    c.encoder_layers = 1;
    c.predictor_layers = layers;
    c.class_bits = layers == 1 ? 32 : 16;
    return c;
}

/* ---- whole solves ---------------------------------------------------------------------------- */

enum { EPISODES = 3, K = 64, HORIZON = 5 };

static cgs_plan_config settings_of(const cgs_planner_kind *kind, const cgs_lewm_config *c,
                                   int samples, int turns) {
    cgs_plan_config s = cgs_plan_defaults();
    snprintf(s.kind.s, sizeof s.kind.s, "%s", kind->name);
    s.K = samples;
    s.iters = turns;
    s.gd_steps = 2 * turns;
    s.H = HORIZON;
    s.A = cgs_lewm_action_block(c);
    s.frameskip = c->frameskip;
    s.R = c->width;
    return s;
}

/* the device's own operations while allocations are counted */
static const cgs_backend *own_ops;
static int allocations;

static cgs_status count_alloc(cgs_device *d, void **p, size_t bytes) {
    allocations++;
    return own_ops->alloc(d, p, bytes);
}

/* allocations in d's memory during a solve */
static int allocations_of(cgs_device *d, cgs_planner *p, const cgs_plan_problem *q,
                          cgs_plan_result *result) {
    cgs_backend counting = *d->ops;
    own_ops = d->ops;
    counting.alloc = count_alloc;
    d->ops = &counting;
    allocations = 0;
    cgs_status rc = cgs_planner_solve(p, q, result);
    d->ops = own_ops;
    OK(rc);
    return allocations;
}

/* whether the loop of such a solve can run on a device */
static bool loops_there(const cgs_plan_config *s) {
    return cgs_planner_kind_of(s->kind.s)->kernel != CGS_KERNEL_NONE && !(s->ess > 0) &&
           !(s->shrink < 1);
}

/* a whole solve, twice: the second must give the same bytes, and takes no memory */
static void plan_on(cgs_device *d, cgs_dtype act, const cgs_lewm_config *c,
                    const cgs_plan_config *s, float *plan, double *seconds) {
    const cgs_planner_kind *kind = cgs_planner_kind_of(s->kind.s);
    cgs_lewm *m;
    cgs_rollout *r;
    cgs_planner *p;
    cgs_plan_result result;
    OK(random_model_of(&m, c, d, 4)); /* gates are not zero: actions matter */
    cgs_rollout_config rc = {.episodes = EPISODES,
                             .context = 1,
                             .horizon = HORIZON,
                             .samples = cgs_planner_candidates(kind, s),
                             .gradient = kind->needs & CGS_NEEDS_GRADIENT,
                             .residual = kind->needs & CGS_NEEDS_RESIDUAL,
                             .jacobian = kind->needs & CGS_NEEDS_JACOBIAN,
                             .act = act};
    OK(cgs_rollout_create(&r, m, &rc));
    OK(cgs_planner_create(&p, s, EPISODES));
    OK(cgs_planner_use_device(p, d));
    float *z = malloc(2 * EPISODES * (size_t)c->width * sizeof *z);
    cgs_rng g = cgs_rng_stream(6, CGS_STREAM_TEST, 0);
    for (int i = 0; i < 2 * EPISODES * c->width; i++) z[i] = (float)cgs_rng_normal(&g);
    OK(cgs_rollout_set(r, EPISODES, z, NULL, z + EPISODES * c->width));
    cgs_plan_problem q = {.E = EPISODES,
                          .cost = cgs_rollout_cost,
                          .gradient = cgs_rollout_gradient,
                          .residual = cgs_rollout_residual,
                          .jacobian = cgs_rollout_jacobian,
                          .R = cgs_rollout_residuals(r),
                          .ctx = r,
                          .on_device = cgs_rollout_device_scorer(r)};
    size_t values = (size_t)EPISODES * HORIZON * (size_t)s->A, bytes = values * sizeof *plan;
    float *unit = malloc(bytes); /* a prior's */
    for (size_t i = 0; i < values; i++) unit[i] = 0.2f * (float)(i % 7 + 1);
    /* with them Gauss-Newton goes by the host */
    if (kind->needs & CGS_NEEDS_PRIOR && !(kind->needs & CGS_NEEDS_RESIDUAL)) q.unit = unit;
    OK(cgs_planner_solve(p, &q, &result));
    memcpy(plan, result.plan, bytes);
    assert_int_equal(result.iterations, cgs_plan_iterations(s));
    assert_int_equal(result.device_loop, q.on_device && loops_there(s));
    cgs_planner_reset(p);
    double begin = cgs_now();
    assert_int_equal(allocations_of(d, p, &q, &result), 0);
    *seconds = cgs_now() - begin;
    assert_memory_equal(plan, result.plan, bytes);
    free(z);
    free(unit);
    cgs_planner_destroy(p);
    cgs_rollout_destroy(r);
    cgs_lewm_destroy(m);
}

/* largest difference between two plans; *size: the largest entry */
static double apart(const float *got, const float *want, size_t n, double *size) {
    double worst = 0;
    *size = 0;
    for (size_t k = 0; k < n; k++) {
        double difference = fabs((double)got[k] - want[k]);
        if (!(difference <= worst)) worst = difference; /* NaN counts */
        *size = fmax(*size, fabs((double)want[k]));
    }
    return worst;
}

/* f32, the loop on the host and where it can on the device, against the CPU, which sets how much
 * this is */
static int agree(cgs_device *cpu, cgs_device *gpu, const cgs_lewm_config *c, const char *what,
                 const cgs_plan_config *s) {
    size_t n = (size_t)EPISODES * HORIZON * (size_t)s->A;
    float *want = malloc(n * sizeof *want), *got = malloc(n * sizeof *got);
    double seconds, size;
    int failed = 0;
    plan_on(cpu, CGS_F32, c, s, want, &seconds);
    for (int inside = 0; inside <= loops_there(s); inside++) {
        set_variable("CGS_DEVICE_LOOP", inside ? "1" : "0");
        plan_on(gpu, CGS_F32, c, s, got, &seconds);
        double worst = apart(got, want, n, &size);
        print_message("%s%s, loop on the %s: plans differ by %.2e, the largest entry is %.2f; "
                      "%.1f ms\n",
                      s->kind.s, what, inside ? "device" : "host", worst, size, 1e3 * seconds);
        failed += !(size > 0.01 && worst <= 1e-3);
    }
    set_variable("CGS_DEVICE_LOOP", NULL);
    free(want);
    free(got);
    return failed;
}

void gpu_plan_agree(cgs_device *cpu, cgs_device *gpu) {
    cgs_lewm_config c;
    OK(cgs_lewm_preset(&c, "small"));
    const cgs_planner_kind *kind;
    int failed = 0;
    for (int i = 0; (kind = cgs_planner_kind_at(i)); i++) {
        cgs_plan_config s = settings_of(kind, &c, 16, 3);
        if (loops_there(&s)) failed += agree(cpu, gpu, &c, "", &s);
    }
    assert_int_equal(failed, 0);
}

/* planners whose loop is the host's: only candidates, or a Jacobian's rows, go to the GPU */
void gpu_plan_from_host(cgs_device *cpu, cgs_device *gpu) {
    static const struct {
        const char *kind, *what;
        float ess, shrink;
    } cases[] = {
        {"covo", "", 0, 1},
        {"covo", ", effective samples 4", 4, 1},
        {"mppi", ", effective samples 4", 4, 1},
        {"icem", ", fewer candidates", 0, 0.8f},
        {"lm", "", 0, 1},
    };
    cgs_lewm_config c;
    OK(cgs_lewm_preset(&c, "small"));
    c.encoder_layers = c.predictor_layers = 1; /* a Jacobian has a row for each of 96 values */
    int failed = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cgs_plan_config s = settings_of(cgs_planner_kind_of(cases[i].kind), &c, 12, 3);
        s.ess = cases[i].ess;
        s.shrink = cases[i].shrink;
        assert_false(loops_there(&s));
        failed += agree(cpu, gpu, &c, cases[i].what, &s);
    }
    assert_int_equal(failed, 0);
}

/* what planners read beside their candidates; more rows of gn than values of a plan */
void gpu_plan_options(cgs_device *cpu, cgs_device *gpu) {
    static const struct {
        const char *kind, *what;
        int K, reuse;
        bool mirror;
        float colour, decay, ridge;
    } cases[] = {
        {"mppi", ", mirrored", 16, 0, true, -1, 0, 0.01f},
        {"mppi", ", coloured, shrinking", 15, 0, true, 1, 0.9f, 0.01f},
        {"cem", ", coloured", 16, 0, false, 2, 0, 0.01f},
        {"icem", ", white, mirrored", 15, 0, true, 0, 0, 0.01f},
        {"gn", ", mirrored, reusing", 16, 1, true, 1, 0, 0.01f},
        {"gn", ", without a ridge", 9, 2, false, -1, 1, 0},
        {"gn", ", more rows than values", 60, 1, false, -1, 0, 0.01f},
    };
    cgs_lewm_config c;
    OK(cgs_lewm_preset(&c, "small"));
    int failed = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cgs_plan_config s = settings_of(cgs_planner_kind_of(cases[i].kind), &c, cases[i].K, 3);
        s.reuse = cases[i].reuse;
        s.mirror = cases[i].mirror;
        s.colour = cases[i].colour;
        s.decay = cases[i].decay;
        s.ridge = cases[i].ridge;
        failed += agree(cpu, gpu, &c, cases[i].what, &s);
    }
    assert_int_equal(failed, 0);
}

/* plans of the published predictor in bf16: the loop on the device, fused and by the tape */
void gpu_plan_paper(cgs_device *gpu) {
    cgs_lewm_config c = paper_predictor(6);
    size_t n = (size_t)EPISODES * HORIZON * (size_t)cgs_lewm_action_block(&c);
    float *want = malloc(n * sizeof *want), *got = malloc(n * sizeof *got);
    const cgs_planner_kind *kind;
    for (int i = 0; (kind = cgs_planner_kind_at(i)); i++) {
        double by_tape, by_kernel, size;
        cgs_plan_config s = settings_of(kind, &c, K, 10);
        if (!loops_there(&s)) continue;
        set_variable("CGS_ROLLOUT", "tape");
        plan_on(gpu, CGS_BF16, &c, &s, want, &by_tape);
        set_variable("CGS_ROLLOUT", NULL);
        plan_on(gpu, CGS_BF16, &c, &s, got, &by_kernel);
        double worst = apart(got, want, n, &size);
        print_message("%s, published predictor, bf16, %d episodes: by the tape %.1f ms, fused %.1f "
                      "ms; plans differ by %.2e, the largest entry is %.2f\n",
                      kind->name, EPISODES, 1e3 * by_tape, 1e3 * by_kernel, worst, size);
        assert_true(size > 0.01 && isfinite(worst));
    }
    free(want);
    free(got);
}

/* solves take no device memory, also where the number of episodes changes; q is of the most */
static void no_allocations(cgs_device *gpu, cgs_rollout *r, cgs_planner *p, cgs_plan_problem q,
                           const float *z, const float *goal) {
    cgs_backend counting = *gpu->ops;
    cgs_plan_result result;
    own_ops = gpu->ops;
    counting.alloc = count_alloc;
    gpu->ops = &counting;
    allocations = 0;
    OK(cgs_planner_use_device(p, gpu));
    assert_true(allocations > 0); /* the counter counts */
    allocations = 0;
    for (; q.E > 0; q.E--) {
        OK(cgs_rollout_set(r, q.E, z, NULL, goal));
        OK(cgs_planner_solve(p, &q, &result));
        assert_true(result.device_loop);
    }
    assert_int_equal(allocations, 0);
    gpu->ops = own_ops;
}

/* a deadline cuts, and a cost that is not finite is named, on the device as on the host */
void gpu_plan_loop(cgs_device *gpu) {
    enum { MOST = 2 };
    cgs_lewm *m;
    cgs_rollout *r;
    cgs_planner *p;
    cgs_plan_result result;
    OK(random_model(&m, gpu, 4));
    cgs_plan_config s = cgs_plan_defaults();
    s.K = K;
    s.H = HORIZON;
    s.iters = 100000;
    s.A = cgs_lewm_action_block(&m->config);
    s.deadline = 0.2f;
    cgs_rollout_config rc = {
        .episodes = MOST, .context = 1, .horizon = HORIZON, .samples = K, .act = CGS_F32};
    OK(cgs_rollout_create(&r, m, &rc));
    OK(cgs_planner_create(&p, &s, MOST));
    size_t n = MOST * (size_t)m->config.width;
    float *z = calloc(2 * n, sizeof *z), *goal = z + n;
    for (size_t i = 0; i < n; i++) z[i] = 1;
    OK(cgs_rollout_set(r, MOST, z, NULL, goal));
    cgs_plan_problem q = {
        .E = MOST, .cost = cgs_rollout_cost, .ctx = r, .on_device = cgs_rollout_device_scorer(r)};
    no_allocations(gpu, r, p, q, z, goal);
    q.E = 1;
    OK(cgs_planner_solve(p, &q, &result));
    print_message("deadline 200 ms: %d iterations in %.0f ms\n", result.iterations,
                  1e3 * result.times.total);
    assert_true(result.cut && result.device_loop && result.iterations >= 1);
    assert_memory_equal(result.plan, result.best_plan, sizeof(float) * (size_t)(s.H * s.A));
    z[0] = NAN;
    OK(cgs_rollout_set(r, 1, z, NULL, goal));
    assert_int_equal(cgs_planner_solve(p, &q, &result), CGS_ENUMERIC);
    assert_non_null(strstr(cgs_last_error(), "candidate 0, iteration 0"));
    free(z);
    cgs_planner_destroy(p);
    cgs_rollout_destroy(r);
    cgs_lewm_destroy(m);
}

/* ---- costs and gradients of rollouts --------------------------------------------------------- */

/* costs of plans (count, samples, ...) that are set, inside the device */
static void score_inside(cgs_device *d, const cgs_rollout *r, const float *plan, size_t plans,
                         int count, int samples, float *cost) {
    const cgs_device_scorer *q = cgs_rollout_device_scorer(r);
    size_t rows = (size_t)count * (size_t)samples;
    void *memory;
    assert_non_null(q);
    OK(d->ops->alloc(d, &memory, (plans + rows) * sizeof(float)));
    OK(d->ops->upload(d, memory, plan, plans * sizeof(float)));
    OK(q->begin(q->ctx, count));
    q->cost(q->ctx, memory, count, samples, (float *)memory + plans);
    OK(d->ops->sync(d));
    OK(d->ops->download(d, cost, (float *)memory + plans, rows * sizeof(float)));
    d->ops->release(d, memory);
}

/* costs of `count` episodes of random plans: from the host's functions, or inside the device */
static bool costs_on(cgs_device *d, cgs_dtype act, int layers, int C, int count, int samples, int H,
                     bool inside, float *cost) {
    cgs_lewm_config c = paper_predictor(layers);
    cgs_lewm *m;
    cgs_rollout *r;
    OK(random_model_of(&m, &c, d, 8));
    int A = cgs_lewm_action_block(&c), D = c.width;
    cgs_rollout_config rc = {
        .episodes = count, .context = C, .horizon = H, .samples = samples, .group = 1, .act = act};
    OK(cgs_rollout_create(&r, m, &rc));
    size_t plans = (size_t)count * (size_t)samples * (size_t)(H * A);
    float *z = malloc((size_t)count * (size_t)((C + 1) * D + C * A) * sizeof *z);
    float *goal = z + count * C * D, *past = goal + count * D, *plan = malloc(plans * sizeof *plan);
    for (int e = 0; e < count; e++) { /* an episode's numbers do not depend on the others */
        cgs_rng g = cgs_rng_stream(9, CGS_STREAM_TEST, (uint64_t)e);
        for (int i = 0; i < C * D; i++) z[e * C * D + i] = (float)cgs_rng_normal(&g);
        for (int i = 0; i < D; i++) goal[e * D + i] = (float)cgs_rng_normal(&g);
        for (int i = 0; i < (C - 1) * A; i++) past[e * (C - 1) * A + i] = (float)cgs_rng_normal(&g);
        for (int i = 0; i < samples * H * A; i++)
            plan[e * samples * H * A + i] = (float)cgs_rng_normal(&g);
    }
    OK(cgs_rollout_set(r, count, z, past, goal));
    bool fused = cgs_rollout_fused(r);
    if (inside)
        score_inside(d, r, plan, plans, count, samples, cost);
    else
        OK(cgs_rollout_cost(r, plan, count, samples, cost));
    free(z);
    free(plan);
    cgs_rollout_destroy(r);
    cgs_lewm_destroy(m);
    return fused;
}

/* Residuals of the fused rollout, inside the device: their squares are its costs, and they are
 * those of the tape, as far as bf16 goes. */
void gpu_plan_residuals(cgs_device *gpu) {
    enum { COUNT = 2, SAMPLES = 10, STEPS = 2 };
    cgs_lewm_config c = paper_predictor(1);
    cgs_lewm *m;
    cgs_rollout *r;
    OK(random_model_of(&m, &c, gpu, 8));
    cgs_rollout_config rc = {.episodes = COUNT,
                             .context = 1,
                             .horizon = STEPS,
                             .samples = SAMPLES,
                             .residual = true,
                             .act = CGS_BF16};
    OK(cgs_rollout_create(&r, m, &rc));
    size_t D = (size_t)c.width, rows = COUNT * SAMPLES, n = rows * STEPS;
    size_t values = n * (size_t)cgs_lewm_action_block(&c), places = rows * (D + 1);
    float *given = malloc((values + 2 * COUNT * D) * sizeof *given);
    float *got = malloc(2 * places * sizeof *got), *tape = got + places;
    cgs_rng g = cgs_rng_stream(12, CGS_STREAM_TEST, 0);
    for (size_t i = 0; i < values + 2 * COUNT * D; i++) given[i] = (float)cgs_rng_normal(&g);
    OK(cgs_rollout_set(r, COUNT, given + values, NULL, given + values + COUNT * D));
    const cgs_device_scorer *q = cgs_rollout_device_scorer(r);
    void *memory;
    assert_non_null(q);
    OK(gpu->ops->alloc(gpu, &memory, (values + places) * sizeof *got));
    float *inside = (float *)memory + values; /* costs, then residuals */
    OK(gpu->ops->upload(gpu, memory, given, values * sizeof *given));
    OK(q->begin(q->ctx, COUNT));
    q->residual(q->ctx, memory, COUNT, SAMPLES, inside, inside + rows);
    OK(gpu->ops->sync(gpu));
    OK(gpu->ops->download(gpu, got, inside, places * sizeof *got));
    gpu->ops->release(gpu, memory);
    OK(cgs_rollout_residual(r, given, COUNT, SAMPLES, tape, tape + rows));
    double error = 0, norm = 0;
    for (size_t row = 0; row < rows; row++) {
        double squares = 0;
        for (size_t j = 0; j < D; j++) {
            double x = got[rows + row * D + j], y = tape[rows + row * D + j];
            squares += x * x;
            error += (x - y) * (x - y);
            norm += y * y;
        }
        assert_true(fabs(squares - got[row]) <= 1e-5 * squares);
    }
    print_message("residuals, %s: differ from the tape's by %.2e\n",
                  cgs_rollout_fused(r) ? "fused" : "NOT FUSED", sqrt(error / norm));
    assert_true(sqrt(error / norm) < 2e-2);
    free(given);
    free(got);
    cgs_rollout_destroy(r);
    cgs_lewm_destroy(m);
}

/* gradients of costs by plans, (count, H, A) */
static bool gradients_on(cgs_device *d, cgs_dtype act, int layers, int C, int count, int H,
                         bool inside, float *grad) {
    cgs_lewm_config c = paper_predictor(layers);
    cgs_lewm *m;
    cgs_rollout *r;
    float cost[64];
    OK(random_model_of(&m, &c, d, 8));
    int A = cgs_lewm_action_block(&c), D = c.width;
    cgs_rollout_config rc = {.episodes = count,
                             .context = C,
                             .horizon = H,
                             .samples = 1,
                             .gradient = true,
                             .group = 1,
                             .act = act};
    OK(cgs_rollout_create(&r, m, &rc));
    size_t n = (size_t)(count * H * A);
    float *z = malloc((size_t)count * (size_t)((C + 1) * D + C * A) * sizeof *z);
    float *goal = z + count * C * D, *past = goal + count * D, *plan = malloc(n * sizeof *plan);
    cgs_rng g = cgs_rng_stream(10, CGS_STREAM_TEST, 0);
    for (int i = 0; i < count * ((C + 1) * D + C * A); i++) z[i] = (float)cgs_rng_normal(&g);
    for (size_t i = 0; i < n; i++) plan[i] = (float)cgs_rng_normal(&g);
    OK(cgs_rollout_set(r, count, z, past, goal));
    bool fused = cgs_rollout_fused(r);
    if (inside) {
        const cgs_device_scorer *q = cgs_rollout_device_scorer(r);
        void *memory;
        assert_non_null(q);
        OK(d->ops->alloc(d, &memory, (2 * n + 64) * sizeof(float)));
        float *at = memory;
        OK(d->ops->upload(d, at, plan, n * sizeof(float)));
        OK(q->begin(q->ctx, count));
        q->gradient(q->ctx, at, count, at + 2 * n, at + n);
        OK(d->ops->sync(d));
        OK(d->ops->download(d, grad, at + n, n * sizeof(float)));
        d->ops->release(d, memory);
    } else {
        OK(cgs_rollout_gradient(r, plan, count, cost, grad));
    }
    free(z);
    free(plan);
    cgs_rollout_destroy(r);
    cgs_lewm_destroy(m);
    return fused;
}

void gpu_plan_gradients(cgs_device *cpu, cgs_device *gpu, int layers, int C, int count, int H,
                        const char *rollout) {
    enum { MOST = 4096 };
    static float exact[MOST], tape[MOST], fused[MOST], again[MOST];
    cgs_lewm_config c = paper_predictor(layers);
    int n = count * H * cgs_lewm_action_block(&c);
    set_variable("CGS_ROLLOUT", rollout);
    gradients_on(cpu, CGS_F32, layers, C, count, H, false, exact);
    gradients_on(gpu, CGS_BF16, layers, C, count, H, false, tape);
    bool is = gradients_on(gpu, CGS_BF16, layers, C, count, H, true, fused);
    gradients_on(gpu, CGS_BF16, layers, C, count, H, true, again);
    set_variable("CGS_ROLLOUT", NULL);
    double of_tape = gpu_norm_error(tape, exact, (size_t)n),
           of_fused = gpu_norm_error(fused, exact, (size_t)n);
    print_message(
        "gradient, %d layers, context %d, %d plans, H %d, rollout %s: %s, error %.2e, the "
        "tape's %.2e; first values %.6g %.6g, want %.6g %.6g\n",
        layers, C, count, H, rollout ? rollout : "default", is ? "fused" : "NOT FUSED", of_fused,
        of_tape, fused[0], fused[1], exact[0], exact[1]);
    if (!is) return;
    assert_true(of_fused <= 2 * of_tape + 1e-3);
    assert_memory_equal(fused, again, (size_t)n * sizeof *fused);
}

/* The fused rollout in bf16 must be as near to the CPU's f32 as the tape in bf16 is; padded
 * clusters, several plans per cluster and every context must agree. */
void gpu_plan_costs(cgs_device *cpu, cgs_device *gpu, int layers, int C, int count, int samples,
                    int H, const char *rollout) {
    enum { MOST = 1024 };
    static float exact[MOST], tape[MOST], fused[MOST], again[MOST], alone[MOST];
    int n = count * samples;
    set_variable("CGS_ROLLOUT", rollout);
    costs_on(cpu, CGS_F32, layers, C, count, samples, H, false, exact);
    costs_on(gpu, CGS_BF16, layers, C, count, samples, H, false, tape);
    bool is = costs_on(gpu, CGS_BF16, layers, C, count, samples, H, true, fused);
    costs_on(gpu, CGS_BF16, layers, C, count, samples, H, true, again);
    costs_on(gpu, CGS_BF16, layers, C, 1, samples, H, true, alone);
    set_variable("CGS_ROLLOUT", NULL);
    double of_tape = gpu_spread_error(tape, exact, n), of_fused = gpu_spread_error(fused, exact, n);
    print_message("%d layers, context %d, %d x %d plans, H %d, rollout %s: %s, error %.2e of the "
                  "spread of costs, the tape's %.2e; first costs %.6g %.6g, want %.6g %.6g\n",
                  layers, C, count, samples, H, rollout ? rollout : "default",
                  is ? "fused" : "NOT FUSED", of_fused, of_tape, fused[0], fused[1], exact[0],
                  exact[1]);
    if (!is) return; /* an older GPU: the tape it is */
    assert_true(of_fused <= 2 * of_tape + 1e-3);
    assert_memory_equal(fused, again, (size_t)n * sizeof *fused);
    assert_memory_equal(fused, alone, (size_t)samples * sizeof *fused);
}

/* One rollout, so many plans that they run by tiles: its first episode alone, whose plans are few
 * enough for clusters, and beside the others. */
void gpu_plan_neighbours(cgs_device *gpu) {
    enum { COUNT = 23, SAMPLES = 128, H = 1 };
    cgs_lewm_config c = paper_predictor(1);
    cgs_lewm *m;
    cgs_rollout *r;
    OK(random_model_of(&m, &c, gpu, 8));
    cgs_rollout_config rc = {
        .episodes = COUNT, .context = 1, .horizon = H, .samples = SAMPLES, .act = CGS_BF16};
    OK(cgs_rollout_create(&r, m, &rc));
    size_t D = (size_t)c.width, each = (size_t)(SAMPLES * H * cgs_lewm_action_block(&c));
    float *z = malloc(COUNT * (2 * D + each) * sizeof *z), *goal = z + COUNT * D;
    float *plan = goal + COUNT * D, *cost = malloc(2 * COUNT * SAMPLES * sizeof *cost);
    float *alone = cost + COUNT * SAMPLES;
    cgs_rng g = cgs_rng_stream(11, CGS_STREAM_TEST, 0);
    for (size_t i = 0; i < COUNT * (2 * D + each); i++) z[i] = (float)cgs_rng_normal(&g);
    OK(cgs_rollout_set(r, COUNT, z, NULL, goal));
    score_inside(gpu, r, plan, COUNT * each, COUNT, SAMPLES, cost);
    OK(cgs_rollout_set(r, 1, z, NULL, goal));
    score_inside(gpu, r, plan, each, 1, SAMPLES, alone);
    print_message("%s: first costs %.9g %.9g, alone %.9g %.9g\n",
                  cgs_rollout_fused(r) ? "fused" : "NOT FUSED", cost[0], cost[1], alone[0],
                  alone[1]);
    assert_memory_equal(cost, alone, SAMPLES * sizeof *cost);
    free(z);
    free(cost);
    cgs_rollout_destroy(r);
    cgs_lewm_destroy(m);
}

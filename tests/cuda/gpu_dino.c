/* gpu_dino.c - see gpu_dino.h. */
#include "gpu_dino.h"
#include "expect.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/rng.h"
#include "core/threads.h"
#include "gpu_errors.h"
#include "loss/objective.h"
#include "ops/cuda/variants.h"
#include "plan/planners.h"
#include "rollout/rollout.h"
#include "variable.h"

#define DIM(...) ((const int[]){__VA_ARGS__})

static float *normals(size_t n, uint64_t stream) {
    float *v = malloc(n * sizeof *v);
    cgs_rng r = cgs_rng_stream(21, CGS_STREAM_TEST, stream);
    for (size_t i = 0; i < n; i++) v[i] = (float)cgs_rng_normal(&r);
    return v;
}

/* a predictor of the published shape on a grid of `side` tokens per side */
static cgs_dinowm_config config_of(const char *tokens, int side, int layers) {
    cgs_dinowm_config c;
    OK(cgs_dinowm_preset(&c, "small"));
    strcpy(c.tokens.s, tokens);
    c.size = side * c.patch;
    c.channels = 8;
    c.predictor_layers = layers;
    c.predictor_heads = 2;
    c.predictor_head_width = 64;
    c.predictor_mlp = 256;
    return c;
}

/* ---- features ------------------------------------------------------------------------------ */

static float *features_on(cgs_device *d, cgs_dtype act, bool paper, bool patches, size_t *n) {
    cgs_dinowm_config c;
    cgs_backbone_view view;
    cgs_backbone *b;
    cgs_dinowm *m;
    cgs_tape *t;
    enum { FRAMES = 2 };
    OK(cgs_dinowm_preset(&c, paper ? "paper" : "small"));
    if (!paper) c.size = 40; /* resized, and positions of another grid */
    strcpy(c.tokens.s, patches ? "patch" : "cls");
    OK(cgs_dinowm_view(&c, &view));
    cgs_backbone_config of = paper ? CGS_VIT_S14 : (cgs_backbone_config){96, 2, 3, 128, 8, 8};
    OK(cgs_backbone_create(&b, &of, &view, d, false));
    OK(cgs_params_init(&b->params, 3));
    OK(cgs_backbone_settle(b));
    OK(cgs_dinowm_create(&m, &c, b, d, false));
    OK(cgs_tape_create(&t, d, act));
    cgs_tape_freeze_parameters(t);
    int S = c.image_size;
    cgs_tensor *in = cgs_input(t, "frames", CGS_U8, 4, DIM(FRAMES, S, S, 3));
    cgs_tensor *out = cgs_keep(cgs_dinowm_features(t, m, in));
    OK(cgs_tape_finish(t, NULL));
    size_t bytes = cgs_numel(in);
    uint8_t *pixels = malloc(bytes);
    cgs_rng r = cgs_rng_stream(22, CGS_STREAM_TEST, 0);
    for (size_t i = 0; i < bytes; i++) pixels[i] = (uint8_t)cgs_rng_below(&r, 256);
    OK(d->ops->upload(d, in->data, pixels, bytes));
    for (int run = 0; run < 2; run++) cgs_tape_forward(t); /* the second is a graph */
    *n = cgs_numel(out);
    float *v = malloc(*n * sizeof *v);
    OK(cgs_tensor_read(t, out, v));
    free(pixels);
    cgs_tape_destroy(t);
    cgs_model_destroy(&m->base);
    return v;
}

void gpu_dino_features(cgs_device *cpu, cgs_device *gpu, bool paper) {
    int failed = 0;
    for (int patches = 0; patches < 2; patches++) {
        size_t n;
        float *want = features_on(cpu, CGS_F32, paper, patches, &n);
        for (int half = 0; half < 2; half++) {
            float *got = features_on(gpu, half ? CGS_BF16 : CGS_F32, paper, patches, &n);
            double error = gpu_norm_error(got, want, n), most = half ? 2e-2 : 1e-4;
            print_message("features of %s, %s, %s: differ from the CPU's by %.2e\n",
                          patches ? "patches" : "class tokens", paper ? "paper" : "small",
                          half ? "bf16" : "f32", error);
            failed += !(error <= most);
            free(got);
        }
        free(want);
    }
    assert_int_equal(failed, 0);
}

/* ---- training ------------------------------------------------------------------------------ */

static float *update_on(cgs_device *d, cgs_dtype act, const char *tokens, float *loss, size_t *n) {
    cgs_dinowm_config c = config_of(tokens, 4, 2);
    cgs_dinowm *m;
    cgs_tape *t;
    cgs_objective o = {0};
    const float weights[CGS_TERMS] = {1, 0, 0.1f, 0.5f};
    c.dropout = 0.1f;
    OK(cgs_dinowm_create(&m, &c, NULL, d, true));
    m->dropout_seed = 5;
    OK(cgs_params_init(&m->params, 6));
    OK(cgs_tape_create(&t, d, act));
    OK(cgs_objective_build_dinowm(&o, t, m, 3, 10, 16, false, 7, true));
    cgs_tensor *in[] = {o.features, o.proprio, o.actions, o.reference};
    for (int i = 0; i < 4; i++) {
        float *v = normals(cgs_numel(in[i]), (uint64_t)i);
        OK(cgs_tensor_write(t, in[i], v));
        free(v);
    }
    float ones[9];
    for (int i = 0; i < 9; i++) ones[i] = 1;
    OK(cgs_tensor_write(t, o.mask, ones));
    OK(cgs_tensor_write(t, o.weights, weights));
    cgs_tape_set_step(t, 4);
    cgs_tape_forward(t);
    cgs_tape_backward(t);
    OK(cgs_tensor_read(t, o.total, loss));
    *n = m->params.trainable;
    float *g = malloc(*n * sizeof *g);
    OK(d->ops->download(d, g, m->params.grads, *n * sizeof *g));
    cgs_tape_destroy(t);
    cgs_model_destroy(&m->base);
    return g;
}

void gpu_dino_update(cgs_device *cpu, cgs_device *gpu) {
    static const char *const kinds[] = {"cls", "patch"};
    int failed = 0;
    for (int k = 0; k < 2; k++)
        for (int half = 0; half < 2; half++) {
            size_t n;
            float want, got, near;
            float *exact = update_on(cpu, CGS_F32, kinds[k], &want, &n);
            float *other = update_on(cpu, half ? CGS_BF16 : CGS_F32, kinds[k], &near, &n);
            float *mine = update_on(gpu, half ? CGS_BF16 : CGS_F32, kinds[k], &got, &n);
            double error = gpu_norm_error(mine, exact, n), of_cpu = gpu_norm_error(other, exact, n);
            print_message("update of %s, %s: loss %.6f, want %.6f; gradient off by %.2e, the "
                          "CPU's by %.2e\n",
                          kinds[k], half ? "bf16" : "f32", got, want, error, of_cpu);
            failed +=
                !(error <= 2 * of_cpu + 1e-4 && fabsf(got - want) <= (half ? 2e-2f : 1e-4f) * want);
            free(exact);
            free(other);
            free(mine);
        }
    assert_int_equal(failed, 0);
}

/* ---- planning ------------------------------------------------------------------------------ */

enum { EPISODES = 2, H = 5 };

static void plan_on(cgs_device *d, const cgs_planner_kind *kind, const cgs_dinowm_config *c,
                    float *plan, double *seconds) {
    cgs_dinowm *m;
    cgs_rollout *r;
    cgs_planner *p;
    cgs_plan_result result;
    OK(cgs_dinowm_create(&m, c, NULL, d, false));
    OK(cgs_params_init(&m->params, 8));
    cgs_plan_config s = cgs_plan_defaults();
    snprintf(s.kind.s, sizeof s.kind.s, "%s", kind->name);
    s.K = 16;
    s.iters = 3;
    s.gd_steps = 4;
    s.H = H;
    s.A = cgs_model_action_block(&m->base);
    s.frameskip = m->base.frameskip;
    s.R = m->base.width;
    /* one token a frame: grouped as usual, hundreds of rows; many: no more than are used */
    cgs_rollout_config rc = {.episodes = EPISODES,
                             .context = 1,
                             .horizon = H,
                             .samples = cgs_planner_candidates(kind, &s),
                             .gradient = kind->needs & CGS_NEEDS_GRADIENT,
                             .residual = kind->needs & CGS_NEEDS_RESIDUAL,
                             .group = cgs_dinowm_is_patch(c) ? EPISODES : 0,
                             .act = CGS_F32};
    size_t D = (size_t)m->base.width, bytes = (size_t)(EPISODES * H * s.A) * sizeof *plan;
    float *z = normals(2 * EPISODES * D, 9);
    OK(cgs_rollout_create_any(&r, &m->base, &rc));
    OK(cgs_planner_create(&p, &s, EPISODES));
    OK(cgs_planner_use_device(p, d));
    OK(cgs_rollout_set(r, EPISODES, z, NULL, z + EPISODES * D));
    cgs_plan_problem q = {.E = EPISODES,
                          .cost = cgs_rollout_cost,
                          .gradient = cgs_rollout_gradient,
                          .residual = cgs_rollout_residual,
                          .R = cgs_rollout_residuals(r),
                          .ctx = r,
                          .on_device = cgs_rollout_device_scorer(r)};
    OK(cgs_planner_solve(p, &q, &result));
    assert_int_equal(result.device_loop, q.on_device != NULL);
    memcpy(plan, result.plan, bytes);
    cgs_planner_reset(p);
    double begin = cgs_now();
    OK(cgs_planner_solve(p, &q, &result));
    *seconds = cgs_now() - begin;
    assert_memory_equal(plan, result.plan, bytes);
    free(z);
    cgs_planner_destroy(p);
    cgs_rollout_destroy(r);
    cgs_model_destroy(&m->base);
}

void gpu_dino_plans(cgs_device *cpu, cgs_device *gpu) {
    static const char *const features[] = {"cls", "patch"};
    const cgs_planner_kind *kind;
    float want[EPISODES * H * 10], got[EPISODES * H * 10];
    int failed = 0;
    for (int k = 0; k < 2; k++)
        for (int i = 0; (kind = cgs_planner_kind_at(i)); i++) {
            if (kind->kernel == CGS_KERNEL_NONE || kind->needs & CGS_NEEDS_PRIOR) continue;
            cgs_dinowm_config c = config_of(features[k], 4, 2);
            double seconds;
            plan_on(cpu, kind, &c, want, &seconds);
            for (int inside = 0; inside < 2; inside++) {
                double worst = 0, size = 0;
                set_variable("CGS_DEVICE_LOOP", inside ? "1" : "0");
                plan_on(gpu, kind, &c, got, &seconds);
                for (int j = 0; j < EPISODES * H * 10; j++) {
                    worst = fmax(worst, fabs((double)got[j] - want[j]));
                    size = fmax(size, fabs((double)want[j]));
                }
                print_message("%s, %s, loop on the %s: plans differ by %.2e, the largest entry is "
                              "%.2f; %.1f ms\n",
                              kind->name, features[k], inside ? "device" : "host", worst, size,
                              1e3 * seconds);
                failed += !(size > 0.01 && worst <= 1e-3);
            }
        }
    set_variable("CGS_DEVICE_LOOP", NULL);
    assert_int_equal(failed, 0);
}

/* costs of random plans for one episode */
static void costs_on(cgs_device *d, cgs_dtype act, const cgs_dinowm_config *c, int samples,
                     float *cost, double *seconds) {
    cgs_dinowm *m;
    cgs_rollout *r;
    OK(cgs_dinowm_create(&m, c, NULL, d, false));
    OK(cgs_params_init(&m->params, 8));
    cgs_rollout_config rc = {
        .episodes = 1, .context = 1, .horizon = H, .samples = samples, .group = 1, .act = act};
    size_t D = (size_t)m->base.width;
    float *z = normals(2 * D, 9);
    float *plans = normals((size_t)(samples * H * cgs_model_action_block(&m->base)), 10);
    OK(cgs_rollout_create_any(&r, &m->base, &rc));
    OK(cgs_rollout_set(r, 1, z, NULL, z + D));
    for (int run = 0; run < 3; run++) { /* the second is recorded into a graph */
        double begin = cgs_now();
        OK(cgs_rollout_cost(r, plans, 1, samples, cost));
        *seconds = cgs_now() - begin;
    }
    free(z);
    free(plans);
    cgs_rollout_destroy(r);
    cgs_model_destroy(&m->base);
}

static const char *const variants[] = {
#define X(id, before, operation, after, between, runs, timed, when, worth) #id,
    CGS_CUDA_VARIANTS(X)
#undef X
};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

/* The error of costs without the named variants; prints it. */
static double error_without(const char *names, const cgs_dinowm_config *c, int samples,
                            const float *want) {
    float *got = malloc((size_t)samples * sizeof *got);
    double seconds;
    cgs_device d;
    OK(cgs_device_open(&d, "cuda", 0));
    OK(cgs_device_without(&d, names));
    costs_on(&d, CGS_BF16, c, samples, got, &seconds);
    cgs_device_close(&d);
    double error = gpu_spread_error(got, want, samples);
    print_message("%s, %d tokens per frame, %d plans, without \"%s\": costs off by %.2e of their "
                  "spread, %.2f ms; first %.6g, want %.6g\n",
                  c->tokens.s, cgs_dinowm_tokens(c), samples, names, error, 1e3 * seconds, got[0],
                  want[0]);
    free(got);
    return error;
}

void gpu_dino_costs(cgs_device *cpu, int side, int samples, int layers) {
    static const char *const kinds[] = {"patch", "cls"};
    float *want = malloc((size_t)samples * sizeof *want);
    char all[512] = "";
    double seconds;
    int failed = 0;
    for (int v = 0; v < VARIANTS; v++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s ", variants[v]);
    for (int k = 0; k < 2; k++) {
        cgs_dinowm_config c = config_of(kinds[k], side, layers);
        costs_on(cpu, CGS_F32, &c, samples, want, &seconds);
        double most = 2 * error_without(all, &c, samples, want) + 1e-3; /* generic forms */
        failed += !(error_without("", &c, samples, want) <= most);
        for (int v = 0; v < VARIANTS; v++)
            failed += !(error_without(variants[v], &c, samples, want) <= most);
    }
    free(want);
    assert_int_equal(failed, 0);
}

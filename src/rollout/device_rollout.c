/* device_rollout.c - rollouts inside a device's graphs: what cgs_device_scorer asks for.
 *
 * Contexts and goals are uploaded once per solve.  From then on a scoring is enqueued: plans are
 * gathered into the rows of a run, the run is made, costs and gradients are copied out.  A run is
 * the rollout's tape, or, for sizes the device has a fused predictor for, a tape that only makes
 * modulations of actions and one kernel that does all steps of all rows.  Where gradients are asked
 * for, which are of few plans, a kernel embeds the actions, and that tape is one product. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/environment.h"
#include "plan/planner_kernels.h"
#include "rollout/rollout_internal.h"
#include "rollout/rollout_kernels.h"

/* plans in one run of the fused form: bounds the memory of modulations, and of what forward saves
 * for gradients */
enum { FUSED_ROWS = 8192, FUSED_GRADIENTS = 64 };

typedef struct device_rollout {
    cgs_device_scorer scorer;
    const cgs_rollout_kernels *kernels;
    cgs_device *device;
    float *z, *past, *goal; /* as in the rollout, on the device */
    void *memory;

    void *predictor; /* NULL: not fused */
    cgs_tape *condition;
    cgs_tensor *actions;        /* (G * K, T, A), or for gradients */
    cgs_tensor *embedded;       /* (G * K, T, D); the other is NULL */
    cgs_action_encoder encoder; /* from one to the other */
    void *saved;                /* memory of what it saves */
    cgs_tensor *modulation;     /* (G * K, T, layers * 6D) */
    cgs_tensor weight, bias;    /* from embedded actions to the modulations of all layers at once */
    void *stacked;              /* their memory */
    float *latents;             /* (G * K, H, D) of a fused run, where residuals are wanted */
    int G;                      /* episodes in one fused run */
} device_rollout;

#define DIM(...) ((const int[]){__VA_ARGS__})

static int least(int a, int b) { return a < b ? a : b; }

/* ---- scoring ----------------------------------------------------------------------- */

static cgs_status begin(void *ctx, int E) {
    const cgs_rollout *r = ctx;
    const device_rollout *o = r->on;
    size_t n = (size_t)E * sizeof(float), C = (size_t)r->config.context, D = (size_t)r->D;
    if (E != r->E || !r->has_goal)
        return cgs_fail(CGS_EARG, "rollout: %d episodes, set for %d, goal %s", E, r->E,
                        r->has_goal ? "yes" : "no");
    CGS_TRY(o->device->ops->upload(o->device, o->z, r->z, n * C * D));
    if (C > 1)
        CGS_TRY(o->device->ops->upload(o->device, o->past, r->past, n * (C - 1) * (size_t)r->A));
    return o->device->ops->upload(o->device, o->goal, r->goal, n * D);
}

static cgs_rollout_run run_of(const cgs_rollout *r, const float *plans, int K) {
    const device_rollout *o = r->on;
    return (cgs_rollout_run){.K = K,
                             .C = r->config.context,
                             .H = r->config.horizon,
                             .A = r->A,
                             .D = r->D,
                             .plans = plans,
                             .z = o->z,
                             .past = o->past,
                             .goal = o->goal};
}

/* a run of the rollout's own tape */
static void forward(const cgs_rollout *r, cgs_rollout_run *run) {
    run->G = r->G;
    run->part = r->part;
    run->actions = r->actions->data;
    run->z_run = r->z_in->data;
    run->goal_run = r->goal_in->data;
    r->on->kernels->gather(r->on->device, run);
    cgs_tape_forward(r->tape);
}

/* the weighted sum of the parts of a run's costs: (n, count), rows `stride` apart */
static void take_costs(const cgs_rollout *r, float *to, int n, int count, int stride) {
    const float *part[2] = {r->cost[0]->data, r->parts > 1 ? r->cost[1]->data : NULL};
    const float weight[2] = {r->weight[0], r->parts > 1 ? r->weight[1] : 0};
    r->on->kernels->blend(r->on->device, to, part, weight, n, r->part, count, stride);
}

/* residuals of a run of the tape into (E * K, R) */
static void take_residuals(const cgs_rollout *r, const cgs_rollout_run *run, float *to) {
    int at = 0, R = cgs_rollout_residuals(r);
    for (int i = 0; i < r->parts; i++) {
        int width = cgs_cols(r->now[i]);
        cgs_residual_part part = {.now = r->now[i]->data,
                                  .then = r->then[i]->data,
                                  .to = to,
                                  .width = width,
                                  .stride = width,
                                  .at = at,
                                  .R = R,
                                  .root = sqrtf(r->weight[i])};
        r->on->kernels->residuals(r->on->device, run, &part);
        at += width;
    }
}

/* residual: NULL, or (E * K, R) */
static void tape_cost(const cgs_rollout *r, const float *plans, int E, int K, float *cost,
                      float *residual) {
    cgs_rollout_run run = run_of(r, plans, K);
    for (run.e0 = 0; run.e0 < E; run.e0 += r->G)
        for (run.k0 = 0; run.k0 < K; run.k0 += r->part) {
            run.n = least(r->G, E - run.e0);
            run.count = least(r->part, K - run.k0);
            forward(r, &run);
            take_costs(r, cost + (size_t)run.e0 * (size_t)K + (size_t)run.k0, run.n, run.count, K);
            if (residual) take_residuals(r, &run, residual);
        }
}

/* the same of a fused run, whose latents are those of all steps */
static void take_fused_residuals(const cgs_rollout *r, const cgs_rollout_run *run, float *to) {
    size_t D = (size_t)run->D;
    cgs_residual_part part = {.now = r->on->latents + (size_t)(run->H - 1) * D,
                              .then = r->on->goal + (size_t)run->e0 * D,
                              .to = to,
                              .width = run->D,
                              .stride = run->H * run->D,
                              .R = run->D,
                              .root = 1};
    r->on->kernels->residuals(r->on->device, run, &part);
}

/* residual: NULL, or (E * K, D); grad: NULL, or (E, H, A) */
static void fused(const cgs_rollout *r, const float *plans, int E, int K, float *cost,
                  float *residual, float *grad) {
    const device_rollout *o = r->on;
    cgs_rollout_run run = run_of(r, plans, K);
    run.G = o->G;
    run.part = run.count = K;
    run.actions = o->actions ? o->actions->data : NULL;
    for (run.e0 = 0; run.e0 < E; run.e0 += o->G) {
        run.n = least(o->G, E - run.e0);
        if (o->embedded)
            o->kernels->actions_embed(o->device, &o->encoder, &run, o->embedded->data);
        else
            o->kernels->gather(o->device, &run);
        cgs_tape_forward(o->condition);
        size_t e0 = (size_t)run.e0, C = (size_t)run.C, D = (size_t)run.D;
        cgs_predictor_job job = {.rows = run.n * K,
                                 .K = K,
                                 .C = run.C,
                                 .H = run.H,
                                 .z = o->z + e0 * C * D,
                                 .goal = o->goal + e0 * D,
                                 .modulation = o->modulation->data,
                                 .cost = cost + e0 * (size_t)K,
                                 .latents = residual ? o->latents : NULL,
                                 .gradient = grad ? o->modulation->grad : NULL};
        o->kernels->predictor_run(o->device, o->predictor, &job);
        if (residual) take_fused_residuals(r, &run, residual);
        if (!grad) continue;
        cgs_tape_backward(o->condition);
        o->kernels->actions_back(o->device, &o->encoder, &run, o->embedded->grad,
                                 grad + e0 * (size_t)(run.H * run.A));
    }
}

static void residuals(void *ctx, const float *plans, int E, int K, float *cost, float *residual) {
    const cgs_rollout *r = ctx;
    if (r->on->predictor)
        fused(r, plans, E, K, cost, residual, NULL);
    else
        tape_cost(r, plans, E, K, cost, residual);
}

static void score(void *ctx, const float *plans, int E, int K, float *cost) {
    residuals(ctx, plans, E, K, cost, NULL);
}

static void gradient(void *ctx, const float *plans, int E, float *cost, float *grad) {
    const cgs_rollout *r = ctx;
    const device_rollout *o = r->on;
    if (o->predictor) {
        fused(r, plans, E, 1, cost, NULL, grad);
        return;
    }
    int n = r->config.horizon * r->A, T = r->T * r->A;
    cgs_rollout_run run = run_of(r, plans, 1);
    run.count = 1;
    for (run.e0 = 0; run.e0 < E; run.e0 += r->G) {
        run.n = least(r->G, E - run.e0);
        forward(r, &run);
        cgs_tape_backward(r->tape);
        take_costs(r, cost + run.e0, run.n, 1, 1);
        o->kernels->tails(o->device, grad + (size_t)run.e0 * (size_t)n, r->actions->grad, run.n, T,
                          n, r->gradient_scale);
    }
}

/* ---- life -------------------------------------------------------------------------- */

/* The linear layers to the modulations of all layers, one below the other: one product instead of
 * six. */
static cgs_status stack_modulations(device_rollout *o, const cgs_lewm *m) {
    cgs_device *d = o->device;
    int layers = m->config.predictor_layers, D = m->config.width;
    size_t each = (size_t)6 * (size_t)D, rows = (size_t)layers * each, n = rows * (size_t)D;
    CGS_TRY(d->ops->alloc(d, &o->stacked, (n + rows) * (sizeof(float) + sizeof(uint16_t))));
    float *values = o->stacked, *host = malloc(n * sizeof *host);
    uint16_t *rounded = (uint16_t *)(values + n + rows);
    if (!host) return cgs_fail(CGS_ENOMEM, "rollout: no memory");
    cgs_status rc = CGS_OK;
    for (int bias = 0; bias < 2; bias++) {
        size_t part = bias ? each : each * (size_t)D;
        for (int i = 0; i < layers && rc == CGS_OK; i++) {
            const cgs_tensor *from = bias ? &m->predictor[i].ada.b : &m->predictor[i].ada.w;
            rc = d->ops->download(d, host + (size_t)i * part, from->data, part * sizeof *host);
        }
        if (rc == CGS_OK)
            rc = d->ops->upload(d, values + (bias ? n : 0), host,
                                part * (size_t)layers * sizeof *host);
    }
    free(host);
    CGS_TRY(rc);
    d->ops->round_bf16(d, rounded, values, n + rows);
    o->weight = (cgs_tensor){.name = "modulations",
                             .rank = 2,
                             .dim = {(int)rows, D},
                             .dtype = CGS_F32,
                             .outside = true,
                             .data = values,
                             .bf16 = rounded};
    o->bias = (cgs_tensor){.name = "modulations, bias",
                           .rank = 1,
                           .dim = {(int)rows},
                           .dtype = CGS_F32,
                           .outside = true,
                           .data = values + n,
                           .bf16 = rounded + n};
    return CGS_OK;
}

static cgs_action_encoder encoder_of(const cgs_lewm *m) {
    return (cgs_action_encoder){.conv_w = &m->action_conv.w,
                                .conv_b = &m->action_conv.b,
                                .in_w = &m->action_in.w,
                                .in_b = &m->action_in.b,
                                .out_w = &m->action_out.w,
                                .out_b = &m->action_out.b};
}

/* what the tape of modulations begins with */
static cgs_status open_embedding(device_rollout *o, const cgs_rollout *r, const cgs_lewm *m) {
    size_t tokens = (size_t)(o->G * r->config.samples * r->T), D = (size_t)m->config.width;
    size_t hidden = (size_t)m->config.action_hidden;
    CGS_TRY(o->device->ops->alloc(o->device, &o->saved, tokens * (hidden + D) * sizeof(float)));
    o->encoder = encoder_of(m);
    o->encoder.pre = o->saved;
    o->encoder.sum = o->encoder.pre + tokens * hidden;
    o->embedded = cgs_input(o->condition, "embedded actions", CGS_BF16, 3,
                            DIM(o->G * r->config.samples, r->T, m->config.width));
    cgs_require_grad(o->condition, o->embedded);
    return CGS_OK;
}

/* from actions to modulations */
static cgs_status open_condition(device_rollout *o, const cgs_rollout *r, cgs_lewm *m) {
    CGS_TRY(stack_modulations(o, m));
    CGS_TRY(cgs_tape_create(&o->condition, o->device, r->config.act));
    cgs_tape_freeze_parameters(o->condition);
    cgs_tape_batch_invariant(o->condition);
    cgs_tensor *s;
    if (r->config.gradient) {
        CGS_TRY(open_embedding(o, r, m));
        s = o->embedded;
    } else {
        o->actions = cgs_input(o->condition, "actions", CGS_F32, 3,
                               DIM(o->G * r->config.samples, r->T, r->A));
        s = cgs_lewm_embed_actions(o->condition, m, o->actions, NULL);
    }
    o->modulation = cgs_keep(cgs_linear_f32(o->condition, s, &o->weight, &o->bias));
    if (r->config.gradient) cgs_seed(o->condition, o->modulation);
    return cgs_tape_finish(o->condition, NULL);
}

static cgs_status open_predictor(device_rollout *o, const cgs_rollout *r, cgs_lewm *m) {
    const cgs_lewm_config *c = &m->config;
    cgs_predictor_layer_weights layer[CGS_PREDICTOR_LAYERS];
    if (r->config.act != CGS_BF16) return CGS_OK;
    if (c->predictor_layers > CGS_PREDICTOR_LAYERS) return CGS_OK;
    cgs_action_encoder actions = encoder_of(m);
    if (r->config.gradient && !o->kernels->actions_fit(o->device, &actions, r->A)) return CGS_OK;
    for (int i = 0; i < c->predictor_layers; i++) {
        const cgs_predictor_layer *l = &m->predictor[i];
        layer[i] = (cgs_predictor_layer_weights){&l->attn_norm.w, &l->attn_norm.b, &l->qkv,
                                                 &l->attn_out.w,  &l->attn_out.b,  &l->mlp_norm.w,
                                                 &l->mlp_norm.b,  &l->mlp_in.w,    &l->mlp_in.b,
                                                 &l->mlp_out.w,   &l->mlp_out.b};
    }
    cgs_predictor_weights w = {.layers = c->predictor_layers,
                               .D = c->width,
                               .heads = c->predictor_heads,
                               .width = c->predictor_head_width,
                               .mlp = c->predictor_mlp,
                               .hidden = c->projector_hidden,
                               .history = c->history,
                               .ada_eps = CGS_LEWM_ADA_EPS,
                               .norm_eps = CGS_LEWM_NORM_EPS,
                               .batch_eps = CGS_BATCHNORM_EPS,
                               .layer = layer,
                               .pos = &m->pred_pos,
                               .norm_w = &m->pred_norm.w,
                               .norm_b = &m->pred_norm.b,
                               .proj_in_w = &m->pred_proj.in.w,
                               .proj_in_b = &m->pred_proj.in.b,
                               .proj_norm_w = &m->pred_proj.norm.w,
                               .proj_norm_b = &m->pred_proj.norm.b,
                               .proj_mean = &m->pred_proj.running_mean,
                               .proj_var = &m->pred_proj.running_var,
                               .proj_out_w = &m->pred_proj.out.w,
                               .proj_out_b = &m->pred_proj.out.b};
    int K = r->config.samples, rows = r->config.gradient ? FUSED_GRADIENTS : FUSED_ROWS;
    o->G = least(r->config.declared, K < rows ? rows / K : 1);
    CGS_TRY(o->kernels->predictor_open(o->device, &o->predictor, &w, o->G * K,
                                       r->config.gradient ? r->config.horizon : 0));
    if (!o->predictor) return CGS_OK;
    if (r->config.residual) {
        size_t values = (size_t)(o->G * K) * (size_t)(r->config.horizon * r->D);
        void *p;
        CGS_TRY(o->device->ops->alloc(o->device, &p, values * sizeof(float)));
        o->latents = p;
    }
    return open_condition(o, r, m);
}

cgs_status device_rollout_create(cgs_rollout *r, cgs_model *m) {
    static atomic_uint_fast64_t versions;
    const cgs_rollout_config *c = &r->config;
    cgs_device *d = m->params->device;
    const cgs_planner_kernels *planner = cgs_planner_kernels_of(d);
    const cgs_rollout_kernels *kernels = cgs_rollout_kernels_of(d);
    if (!planner || !kernels || c->samples > planner->most_candidates) return CGS_OK;
    device_rollout *o = r->on = calloc(1, sizeof *o);
    if (!o) return cgs_fail(CGS_ENOMEM, "rollout: no memory");
    o->kernels = kernels;
    o->device = d;
    size_t E = (size_t)c->episodes, C = (size_t)c->context, D = (size_t)r->D, A = (size_t)r->A;
    CGS_TRY(d->ops->alloc(d, &o->memory, E * (C * D + D + (C - 1) * A) * sizeof(float)));
    o->z = o->memory;
    o->goal = o->z + E * C * D;
    o->past = o->goal + E * D;
    if (m->cls == &cgs_lewm_class) CGS_TRY(open_predictor(o, r, (cgs_lewm *)m));
    int parts = (c->samples + r->part - 1) / r->part;
    int runs =
        o->predictor ? (c->episodes + o->G - 1) / o->G : (c->episodes + r->G - 1) / r->G * parts;
    int records = cgs_tape_records(o->predictor ? o->condition : r->tape) + 4;
    o->scorer = (cgs_device_scorer){.device = d,
                                    .version = atomic_fetch_add(&versions, 1) + 1,
                                    .K = c->samples,
                                    .calls = runs * records * (c->gradient ? 3 : 1),
                                    .ctx = r,
                                    .begin = begin,
                                    .cost = score,
                                    .gradient = gradient,
                                    .residual = c->residual ? residuals : NULL,
                                    .R = cgs_rollout_residuals(r)};
    return CGS_OK;
}

void device_rollout_destroy(cgs_rollout *r) {
    device_rollout *o = r->on;
    if (!o) return;
    if (o->predictor) o->kernels->predictor_close(o->device, o->predictor);
    cgs_tape_destroy(o->condition);
    if (o->saved) o->device->ops->release(o->device, o->saved);
    if (o->latents) o->device->ops->release(o->device, o->latents);
    if (o->stacked) o->device->ops->release(o->device, o->stacked);
    if (o->memory) o->device->ops->release(o->device, o->memory);
    free(o);
    r->on = NULL;
}

const cgs_device_scorer *cgs_rollout_device_scorer(const cgs_rollout *r) {
    const char *loop = cgs_environment(CGS_ENV_DEVICE_LOOP);
    if (!r->on || r->fn || r->residual_fn || !r->has_goal || (loop && !strcmp(loop, "0")))
        return NULL;
    return &r->on->scorer;
}

bool cgs_rollout_fused(const cgs_rollout *r) { return r->on && r->on->predictor; }

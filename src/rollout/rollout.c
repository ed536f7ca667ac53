/* rollout.c - see rollout.h.
 *
 * Rows.  A product with few rows is bound by reading its weights and one with very many by
 * the memory of activations.  So a run of the rollout tape takes the candidates of several
 * episodes when they are few, and only a part of one episode's when they are many.  The
 * grouping depends on the model, the device and K (or is the caller's), never on the number of
 * episodes, and thereby the bits of a result do not either. */
#include "rollout/rollout_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_ROWS = 64, MAX_ROWS = 1024, GRADIENT_ROWS = 16 };
enum { GPU_VALUES = 128 * 3528 }; /* of the latents of a run: 128 candidates of 196 tokens */

#define DIM(...) ((const int[]){__VA_ARGS__})

/* ---- rollout ----------------------------------------------------------------------- */

static void layout(cgs_rollout *r) {
    const cgs_rollout_config *c = &r->config;
    cgs_arena *a = &r->arena;
    size_t E = (size_t)c->episodes, C = (size_t)c->context, D = (size_t)r->D, A = (size_t)r->A;
    size_t G = (size_t)r->G, rows = G * (size_t)r->part, H = (size_t)c->horizon;
    r->latent = CGS_TAKE(a, cgs_tensor *, H);
    r->z = CGS_TAKE(a, float, E *C *D);
    r->past = CGS_TAKE(a, float, E *(C - 1) * A);
    r->goal = CGS_TAKE(a, float, E *D);
    r->z_run = CGS_TAKE(a, float, G *C *D);
    r->goal_run = CGS_TAKE(a, float, G *D);
    r->list = CGS_TAKE(a, float, rows *(size_t)r->T *A);
    r->read = CGS_TAKE(a, float, rows *D);
    r->term = CGS_TAKE(a, float, rows);
    r->imagined = CGS_TAKE(a, float, (size_t)r->part *H *D);
    if (c->jacobian) {
        size_t plan = r->pushes ? D * H * A : (size_t)r->T * A;
        r->derivative = CGS_TAKE(a, float, rows *plan);
    }
    if (c->residual) {
        r->parts_now = CGS_TAKE(a, float, rows *D);
        r->parts_then = CGS_TAKE(a, float, G *D);
    }
}

/* The cost as squared distances of parts, and their weighted means as a loss: a mean is over rows
 * and the width of a part, so each row's own gradient comes out divided by that. */
static cgs_status finish_cost(cgs_rollout *r, cgs_model *m, cgs_tensor *last) {
    cgs_tape *t = r->tape;
    int rows = r->G * r->part;
    cgs_compared now = m->cls->compare(t, m, last), goal = m->cls->compare(t, m, r->goal_in);
    cgs_tensor *mean[CGS_MODEL_PARTS], *loss = NULL, *weights = NULL;
    float scale[CGS_MODEL_PARTS];
    r->parts = now.count;
    for (int i = 0; i < now.count; i++) {
        r->cost[i] = cgs_keep(cgs_sqdist(t, now.part[i], goal.part[i]));
        if (r->config.residual) {
            r->now[i] = cgs_keep(now.part[i]);
            r->then[i] = cgs_keep(goal.part[i]);
        }
        r->weight[i] = now.weight[i];
        scale[i] = now.weight[i] * (float)cgs_cols(now.part[i]);
        if (r->config.gradient) mean[i] = cgs_mse(t, now.part[i], goal.part[i]);
    }
    if (r->config.gradient && r->parts == 1) {
        loss = mean[0];
        r->gradient_scale = (float)rows * scale[0];
    } else if (r->config.gradient) {
        weights = cgs_input(t, "weights", CGS_F32, 1, DIM(r->parts));
        loss = cgs_weighted_sum(t, weights, mean, r->parts);
        r->gradient_scale = (float)rows;
    }
    if (r->config.jacobian) rollout_declare_jacobian(r);
    CGS_TRY(cgs_tape_finish(t, loss));
    if (r->config.jacobian) CGS_TRY(rollout_begin_jacobian(r));
    return weights ? cgs_tensor_write(t, weights, scale) : CGS_OK;
}

static cgs_status build_rollout(cgs_rollout *r, cgs_model *m) {
    const cgs_rollout_config *c = &r->config;
    int rows = r->G * r->part, D = r->D;
    CGS_TRY(cgs_tape_create(&r->tape, m->params->device, c->act));
    cgs_tape *t = r->tape;
    cgs_tape_freeze_parameters(t);
    r->z_in = cgs_input(t, "context", CGS_F32, 3, DIM(r->G, c->context, D));
    r->goal_in = cgs_input(t, "goal", CGS_F32, 2, DIM(r->G, D));
    r->actions = cgs_input(t, "actions", CGS_F32, 3, DIM(rows, r->T, r->A));
    if (c->gradient || c->jacobian) cgs_require_grad(t, r->actions);
    m->cls->rollout(t, m, cgs_repeat(t, r->z_in, r->part), r->actions, r->latent, c->horizon);
    for (int s = 0; s < c->horizon; s++) cgs_keep(r->latent[s]);
    return finish_cost(r, m, cgs_reshape(t, r->latent[c->horizon - 1], 2, DIM(rows, D)));
}

/* At most `most` candidates go into a run, and episodes are added up to `few` of them.  Models of
 * many tokens per frame have products of many rows with few candidates: 196 tokens need some 5 MB
 * per candidate, 160 MB with a gradient.  On a GPU, with one token per frame, launches take all the
 * time until there are hundreds of rows; LeWM, whose plans run in a kernel of its own there, does
 * without. */
static void rows_of_a_run(const cgs_model *m, bool gradient, int *most, int *few) {
    bool gpu = m->params->device->ops->kind == CGS_DEVICE_GPU, wide = m->width > 1024;
    *most = wide ? MIN_ROWS : MAX_ROWS;
    *few = wide ? MIN_ROWS / 4 : MIN_ROWS;
    if (gradient) *few = wide ? GRADIENT_ROWS / 4 : GRADIENT_ROWS;
    if (!gpu || m->cls == &cgs_lewm_class) return;
    *most = GPU_VALUES / m->width;
    if (*most < 2 * MIN_ROWS) *most = 2 * MIN_ROWS;
    if (*most > MAX_ROWS) *most = MAX_ROWS;
    *few = gradient ? *most / 16 : *most / 2;
}

/* Where tangents are pushed a row stands for as many as a plan has values; otherwise each value of
 * a residual has a row. */
static void rows_of_jacobians(cgs_rollout *r, const cgs_model *m) {
    r->config.residual = true;
    r->pushes = cgs_tape_pushes(m->params->device);
    if (r->pushes && !r->config.group) r->G = r->G > 4 ? 4 : r->G;
    if (r->pushes) return;
    r->G = 1;
    r->part = r->D;
}

cgs_status cgs_rollout_create(cgs_rollout **out, cgs_lewm *m, const cgs_rollout_config *c) {
    return cgs_rollout_create_any(out, &m->base, c);
}

cgs_status cgs_rollout_create_any(cgs_rollout **out, cgs_model *m, const cgs_rollout_config *c) {
    *out = NULL;
    if (c->context < 1 || c->context > m->history)
        return cgs_fail(CGS_EARG, "rollout: %d context frames, the model sees 1 ... %d", c->context,
                        m->history);
    if (c->episodes < 1 || c->horizon < 1 || c->samples < 1 || c->group < 0 ||
        ((c->gradient || c->jacobian) && c->samples != 1) || (c->gradient && c->jacobian))
        return cgs_fail(CGS_EARG, "rollout: %d episodes, horizon %d, %d samples%s%s are impossible",
                        c->episodes, c->horizon, c->samples, c->gradient ? " for gradients" : "",
                        c->jacobian ? " for Jacobians" : "");
    cgs_rollout *r = calloc(1, sizeof *r);
    if (!r) return cgs_fail(CGS_ENOMEM, "rollout: no memory");
    r->config = *c;
    if (c->declared < c->episodes) r->config.declared = c->episodes;
    r->A = cgs_model_action_block(m);
    r->D = m->width;
    r->T = c->context - 1 + c->horizon;
    int most, few;
    rows_of_a_run(m, c->gradient || c->jacobian, &most, &few);
    int runs = (c->samples + most - 1) / most;
    r->part = (c->samples + runs - 1) / runs;
    r->G = c->group ? c->group : r->part < few ? few / r->part : 1;
    if (c->jacobian) rows_of_jacobians(r, m);
    layout(r);
    cgs_status rc = cgs_arena_bind(&r->arena, "rollout");
    if (rc == CGS_OK) {
        layout(r);
        rc = build_rollout(r, m);
    }
    if (rc == CGS_OK && !c->jacobian) rc = device_rollout_create(r, m);
    if (rc != CGS_OK) {
        cgs_rollout_destroy(r);
        return rc;
    }
    *out = r;
    return CGS_OK;
}

void cgs_rollout_destroy(cgs_rollout *r) {
    if (!r) return;
    device_rollout_destroy(r);
    cgs_tape_destroy(r->tape);
    cgs_arena_free(&r->arena);
    free(r);
}

size_t cgs_rollout_memory(const cgs_rollout *r) { return cgs_tape_memory(r->tape); }
cgs_tape *cgs_rollout_tape(const cgs_rollout *r) { return r->tape; }

void cgs_rollout_use_cost(cgs_rollout *r, cgs_rollout_cost_fn fn, void *user) {
    r->fn = fn;
    r->user = user;
}

cgs_status cgs_rollout_set(cgs_rollout *r, int E, const float *z, const float *past,
                           const float *goal) {
    const cgs_rollout_config *c = &r->config;
    if (E < 1 || E > c->episodes)
        return cgs_fail(CGS_EARG, "rollout: %d episodes, it was created for 1 ... %d", E,
                        c->episodes);
    size_t n = (size_t)E, C = (size_t)c->context, D = (size_t)r->D;
    memcpy(r->z, z, n * C * D * sizeof *z);
    if (C > 1) memcpy(r->past, past, n * (C - 1) * (size_t)r->A * sizeof *past);
    if (goal) memcpy(r->goal, goal, n * D * sizeof *goal);
    r->has_goal = goal != NULL;
    r->E = E;
    return CGS_OK;
}

/* the episode and candidate of a row; unused rows repeat the last used one */
static void place(const cgs_rollout *r, const rollout_batch *b, int row, int *e, int *k) {
    int g = row / r->part, i = row % r->part;
    *e = b->e0 + (g < b->n ? g : b->n - 1);
    *k = b->k0 + (i < b->count ? i : b->count - 1);
}

cgs_status rollout_load(cgs_rollout *r, const rollout_batch *b, const float *plans, int K) {
    const cgs_rollout_config *c = &r->config;
    size_t D = (size_t)r->D, C = (size_t)c->context, A = (size_t)r->A;
    size_t n = (size_t)c->horizon * A, executed = (C - 1) * A, T = (size_t)r->T * A;
    for (int g = 0; g < r->G; g++) {
        size_t e = (size_t)(b->e0 + (g < b->n ? g : b->n - 1));
        memcpy(r->z_run + (size_t)g * C * D, r->z + e * C * D, C * D * sizeof *r->z);
        memcpy(r->goal_run + (size_t)g * D, r->goal + e * D, D * sizeof *r->goal);
    }
    for (int row = 0; row < r->G * r->part; row++) {
        int e, k;
        float *to = r->list + (size_t)row * T;
        place(r, b, row, &e, &k);
        memcpy(to, r->past + (size_t)e * executed, executed * sizeof *to);
        memcpy(to + executed, plans + ((size_t)e * (size_t)K + (size_t)k) * n, n * sizeof *to);
    }
    CGS_TRY(cgs_tensor_write(r->tape, r->z_in, r->z_run));
    CGS_TRY(cgs_tensor_write(r->tape, r->goal_in, r->goal_run));
    return cgs_tensor_write(r->tape, r->actions, r->list);
}

static cgs_status forward(cgs_rollout *r, const rollout_batch *b, const float *plans, int K) {
    CGS_TRY(rollout_load(r, b, plans, K));
    cgs_tape_forward(r->tape);
    return CGS_OK;
}

/* the imagined latents of group g of the run that was just made: out (count, H, D) */
static cgs_status read_latents(cgs_rollout *r, const rollout_batch *b, int g, float *out) {
    size_t D = (size_t)r->D, H = (size_t)r->config.horizon;
    for (size_t s = 0; s < H; s++) {
        CGS_TRY(cgs_tensor_read(r->tape, r->latent[s], r->read));
        const float *from = r->read + (size_t)g * (size_t)r->part * D;
        for (size_t i = 0; i < (size_t)b->count; i++)
            memcpy(out + (i * H + s) * D, from + i * D, D * sizeof *out);
    }
    return CGS_OK;
}

cgs_status rollout_read_costs(cgs_rollout *r) {
    CGS_TRY(cgs_tensor_read(r->tape, r->cost[0], r->read));
    if (r->parts == 1 && r->weight[0] == 1) return CGS_OK;
    for (int row = 0; row < r->G * r->part; row++) r->read[row] *= r->weight[0];
    for (int i = 1; i < r->parts; i++) {
        CGS_TRY(cgs_tensor_read(r->tape, r->cost[i], r->term));
        for (int row = 0; row < r->G * r->part; row++) r->read[row] += r->weight[i] * r->term[row];
    }
    return CGS_OK;
}

int cgs_rollout_residuals(const cgs_rollout *r) {
    int sum = 0;
    if (r->residual_fn) return r->own_residuals;
    for (int i = 0; i < r->parts && r->config.residual && !r->fn; i++)
        sum += (int)cgs_cols(r->now[i]);
    return sum;
}

cgs_status cgs_rollout_use_residual(cgs_rollout *r, cgs_rollout_residual_fn fn, int R, void *user) {
    if (fn && (!r->config.residual || R < 1 || R > r->D))
        return cgs_fail(CGS_EARG, "rollout: residuals of %d values, made for %d", R,
                        r->config.residual ? r->D : 0);
    r->residual_fn = fn;
    r->own_residuals = R;
    r->user = user;
    return CGS_OK;
}

cgs_status rollout_read_residuals(cgs_rollout *r, const rollout_batch *b, int K, float *out) {
    size_t R = (size_t)cgs_rollout_residuals(r), at = 0;
    for (int i = 0; i < r->parts; i++) {
        size_t width = (size_t)cgs_cols(r->now[i]);
        float root = sqrtf(r->weight[i]);
        CGS_TRY(cgs_tensor_read(r->tape, r->now[i], r->parts_now));
        CGS_TRY(cgs_tensor_read(r->tape, r->then[i], r->parts_then));
        for (size_t g = 0; g < (size_t)b->n; g++)
            for (size_t k = 0; k < (size_t)b->count; k++) {
                const float *now = r->parts_now + (g * (size_t)r->part + k) * width;
                const float *then = r->parts_then + g * width;
                size_t row = (size_t)(b->e0 + (int)g) * (size_t)K + (size_t)b->k0 + k;
                float *to = out + row * R + at;
                for (size_t j = 0; j < width; j++) to[j] = root * (now[j] - then[j]);
            }
        at += width;
    }
    return CGS_OK;
}

/* residuals of a function of the caller's, and the costs that they make */
static cgs_status own_residuals(cgs_rollout *r, int episode, const float *plans, int count,
                                float *cost, float *residual) {
    size_t R = (size_t)r->own_residuals;
    CGS_TRY(r->residual_fn(r->user, episode, plans, r->imagined, count, residual));
    for (size_t k = 0; k < (size_t)count; k++) {
        double sum = 0;
        for (size_t j = 0; j < R; j++) sum += (double)residual[k * R + j] * residual[k * R + j];
        cost[k] = (float)sum;
    }
    return CGS_OK;
}

/* what a run hands out: costs, with residuals or without, or the latents themselves */
typedef struct sink {
    float *cost, *residual, *latents;
} sink;

static cgs_status drain(cgs_rollout *r, const rollout_batch *b, const float *plans, int K,
                        sink to) {
    size_t n = (size_t)r->config.horizon * (size_t)r->A;
    size_t latents = (size_t)r->config.horizon * (size_t)r->D;
    if (to.cost && !r->fn) CGS_TRY(rollout_read_costs(r));
    if (to.residual && !r->residual_fn) CGS_TRY(rollout_read_residuals(r, b, K, to.residual));
    for (int g = 0; g < b->n; g++) {
        size_t at = (size_t)(b->e0 + g) * (size_t)K + (size_t)b->k0;
        if (to.latents) {
            CGS_TRY(read_latents(r, b, g, to.latents + at * latents));
        } else if (to.residual && r->residual_fn) {
            size_t R = (size_t)r->own_residuals;
            CGS_TRY(read_latents(r, b, g, r->imagined));
            CGS_TRY(own_residuals(r, b->e0 + g, plans + at * n, b->count, to.cost + at,
                                  to.residual + at * R));
        } else if (r->fn) {
            CGS_TRY(read_latents(r, b, g, r->imagined));
            CGS_TRY(r->fn(r->user, b->e0 + g, plans + at * n, r->imagined, b->count, to.cost + at));
        } else {
            memcpy(to.cost + at, r->read + g * r->part, (size_t)b->count * sizeof *to.cost);
        }
    }
    return CGS_OK;
}

static cgs_status run(cgs_rollout *r, const float *plans, int E, int K, sink to) {
    if (E != r->E || K > r->config.samples)
        return cgs_fail(CGS_EARG, "rollout: %d episodes of %d candidates, set for %d of at most %d",
                        E, K, r->E, r->config.samples);
    if (to.cost && !r->fn && !r->residual_fn && !r->has_goal)
        return cgs_fail(CGS_EARG, "rollout: no goal is set");
    for (int e0 = 0; e0 < E; e0 += r->G)
        for (int k0 = 0; k0 < K; k0 += r->part) {
            rollout_batch b = {e0, E - e0 < r->G ? E - e0 : r->G, k0,
                               K - k0 < r->part ? K - k0 : r->part};
            CGS_TRY(forward(r, &b, plans, K));
            CGS_TRY(drain(r, &b, plans, K, to));
        }
    return CGS_OK;
}

cgs_status cgs_rollout_cost(void *ctx, const float *plans, int E, int K, float *cost) {
    return run(ctx, plans, E, K, (sink){.cost = cost});
}

cgs_status cgs_rollout_residual(void *ctx, const float *plans, int E, int K, float *cost,
                                float *residual) {
    cgs_rollout *r = ctx;
    if (!cgs_rollout_residuals(r))
        return cgs_fail(CGS_EARG, "rollout: made for residuals %s, own cost %s",
                        r->config.residual ? "yes" : "no", r->fn ? "yes" : "no");
    return run(r, plans, E, K, (sink){.cost = cost, .residual = residual});
}

cgs_status cgs_rollout_imagine(cgs_rollout *r, const float *plans, int E, int K, float *z) {
    return run(r, plans, E, K, (sink){.latents = z});
}

cgs_status cgs_rollout_gradient(void *ctx, const float *plans, int E, float *cost, float *grad) {
    cgs_rollout *r = ctx;
    const cgs_rollout_config *c = &r->config;
    if (!c->gradient || r->fn || !r->has_goal || E != r->E)
        return cgs_fail(CGS_EARG,
                        "rollout: made for gradients %s, own cost %s, goal %s, %d "
                        "episodes of %d",
                        c->gradient ? "yes" : "no", r->fn ? "yes" : "no",
                        r->has_goal ? "yes" : "no", E, r->E);
    size_t n = (size_t)c->horizon * (size_t)r->A, T = (size_t)r->T * (size_t)r->A;
    for (int e0 = 0; e0 < E; e0 += r->G) {
        rollout_batch b = {e0, E - e0 < r->G ? E - e0 : r->G, 0, 1};
        CGS_TRY(forward(r, &b, plans, 1));
        cgs_tape_backward(r->tape);
        CGS_TRY(rollout_read_costs(r));
        memcpy(cost + e0, r->read, (size_t)b.n * sizeof *cost);
        CGS_TRY(cgs_tensor_read_grad(r->tape, r->actions, r->list));
        for (int g = 0; g < b.n; g++)
            for (size_t i = 0; i < n; i++)
                grad[(size_t)(e0 + g) * n + i] =
                    r->gradient_scale * r->list[(size_t)g * T + T - n + i];
    }
    return CGS_OK;
}

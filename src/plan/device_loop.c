/* device_loop.c - see device_loop.h.
 *
 * State lies in one piece of memory with a mirror on the host, inputs first: a solve uploads the
 * front, launches, and downloads the rest.  Iterations count themselves on the device, so one
 * graph can hold one iteration, launched again without waiting, or all of them.  All of them are
 * one launch, but a graph of more than some ten thousand calls takes longer to make than it saves.
 */
#include "plan/device_loop.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/rng.h"
#include "core/threads.h"
#include "plan/planner_kernels.h"
#include "plan/planners.h"
#include "plan/refine.h"
#include "plan/search.h"

enum { GRAPHS = 8, MOST_CALLS = 20000 };
static const size_t MOST_WORK = (size_t)4 << 30; /* bytes; planners with more run on the host */

/* some iterations as one launch */
typedef struct loop_graph {
    uint64_t version; /* of what scores */
    int E, span;      /* iterations in it */
    unsigned moved;
    void *handle;
} loop_graph;

struct cgs_device_loop {
    cgs_device *device;
    const cgs_planner_kernels *kernels;
    cgs_plan_config config;
    const cgs_planner_kind *kind;
    int max_E, n, K, iterations;

    cgs_arena mirror;       /* of the memory, on the host */
    cgs_plan_state host;    /* pointers into it           */
    cgs_plan_state state;   /* pointers on the device     */
    unsigned char *memory;  /* device                     */
    void *work;             /* device: what a planner keeps between its kernels */
    size_t inputs, outputs; /* the front ends, the rest begins; in between both */

    loop_graph graphs[GRAPHS];
    int next; /* slot to be used again */
    /* the call that is being captured or run */
    const cgs_device_scorer *scorer;
    int span;
};

/* The loop of Gauss-Newton has one spread for all actions: those of a prior go by the host. */
bool cgs_device_loop_takes(const cgs_device_loop *s, const cgs_plan_problem *q) {
    const cgs_device_scorer *r = q->on_device;
    if (!r || r->device != s->device || r->K != s->K) return false;
    return !(s->kind->needs & CGS_NEEDS_RESIDUAL) ||
           (!q->unit && r->residual && r->R <= s->config.R);
}

static bool is_filtered(const cgs_device_loop *s) {
    return s->kind->reads & CGS_READS_COLOUR && cgs_plan_colour(&s->config) > 0;
}

/* the first pass measures, the second binds */
static void layout(cgs_device_loop *s) {
    cgs_arena *a = &s->mirror;
    cgs_plan_state *h = &s->host;
    size_t E = (size_t)s->max_E, En = E * (size_t)s->n, T = (size_t)s->iterations;
    bool adam = s->kind->kernel == CGS_KERNEL_ADAM;
    bool newton = s->kind->kernel == CGS_KERNEL_GAUSS_NEWTON;
    h->stream = CGS_TAKE(a, uint64_t, E);
    h->solve = CGS_TAKE(a, uint64_t, E);
    h->rates = CGS_TAKE(a, double, adam ? 3 * T : 0);
    h->filter = CGS_TAKE(a, double, is_filtered(s) ? (size_t)cgs_plan_actions(&s->config) : 0);
    h->gn.start = CGS_TAKE(a, float, newton ? En : 0);
    h->turn = CGS_TAKE(a, uint64_t, E);
    h->m = CGS_TAKE(a, float, adam ? En : 0);
    h->v = CGS_TAKE(a, float, adam ? En : 0);
    s->outputs = cgs_align_up(a->used);
    h->mean = CGS_TAKE(a, float, En);
    h->spread = CGS_TAKE(a, float, En);
    h->bad = CGS_TAKE(a, int, 2 * E);
    s->inputs = a->used;
    h->bad_value = CGS_TAKE(a, float, E);
    h->best_plan = CGS_TAKE(a, float, En);
    h->best_cost = CGS_TAKE(a, float, E);
    h->low = CGS_TAKE(a, float, T *E);
    h->average = CGS_TAKE(a, float, T *E);
}

static void *on_device(const cgs_device_loop *s, const void *host) {
    return s->memory + ((const unsigned char *)host - s->mirror.base);
}

/* the next `bytes` of memory at base, NULL: none yet */
static void *take(unsigned char *base, size_t *used, size_t bytes) {
    size_t at = *used;
    *used += (bytes + 255) / 256 * 256;
    return base ? base + at : NULL;
}

/* Pointers to what kernels keep for themselves; returns the bytes it takes. */
static size_t place_work(const cgs_device_loop *s, cgs_plan_state *d, unsigned char *base) {
    size_t E = (size_t)s->max_E, n = (size_t)s->n, EK = E * (size_t)s->K, used = 0;
    d->cost = take(base, &used, EK * sizeof(float));
    d->plans = take(base, &used, EK * n * sizeof(float));
    d->elite = take(base, &used, E * (size_t)d->keep * n * sizeof(float));
    if (s->kind->kernel != CGS_KERNEL_GAUSS_NEWTON) return used;
    cgs_gauss_newton_state *g = &d->gn;
    size_t R = (size_t)g->R, rows = (size_t)g->per * (size_t)g->kept, order = (size_t)g->order;
    g->residual = take(base, &used, EK * R * sizeof(float));
    g->row = take(base, &used, E * rows * (R + n) * sizeof(float));
    g->smooth = take(base, &used, E * order * R * sizeof(float));
    g->unknown = take(base, &used, E * order * R * sizeof(double));
    g->system = take(base, &used, E * 2 * order * order * sizeof(double));
    g->vector = take(base, &used, E * (2 * rows + order + n) * sizeof(double));
    return used;
}

static cgs_plan_state settings(const cgs_device_loop *s) {
    const cgs_plan_config *c = &s->config;
    cgs_plan_state d = {.K = s->K,
                        .n = s->n,
                        .elites = cgs_plan_elites(c),
                        .tau = c->tau,
                        .decay = s->kind->reads & CGS_READS_DECAY ? cgs_plan_decay(c) : 1,
                        .mirror = c->mirror,
                        .actions = cgs_plan_actions(c),
                        .channels = c->A / c->frameskip};
    if (s->kind->reads & CGS_READS_KEEP) d.keep = (int)cgs_plan_icem_kept(c);
    if (s->kind->kernel == CGS_KERNEL_GAUSS_NEWTON) {
        size_t per, kept, rows;
        cgs_plan_gauss_newton_rows(c, &per, &kept);
        rows = per * kept;
        d.gn = (cgs_gauss_newton_state){.R = c->R,
                                        .per = (int)per,
                                        .kept = (int)kept,
                                        .order = rows < (size_t)s->n ? (int)rows : s->n,
                                        .gamma = c->gamma,
                                        .damping = c->damping,
                                        .ridge = c->ridge};
    }
    return d;
}

static cgs_status fill(cgs_device_loop *s) {
    const cgs_plan_config *c = &s->config;
    cgs_plan_state *h = &s->host, *d = &s->state;
    void *p;
    layout(s);
    CGS_TRY(cgs_arena_bind(&s->mirror, "planner"));
    layout(s);
    CGS_TRY(s->device->ops->alloc(s->device, &p, s->mirror.size));
    s->memory = p;
    *d = settings(s);
    CGS_TRY(s->device->ops->alloc(s->device, &s->work, place_work(s, d, NULL)));
    place_work(s, d, s->work);
    d->stream = on_device(s, h->stream);
    d->solve = on_device(s, h->solve);
    d->rates = on_device(s, h->rates);
    if (is_filtered(s)) {
        cgs_noise_filter((double *)(uintptr_t)h->filter, d->actions, cgs_plan_colour(c));
        d->filter = on_device(s, h->filter);
    }
    d->gn.start = on_device(s, h->gn.start);
    d->turn = on_device(s, h->turn);
    d->m = on_device(s, h->m);
    d->v = on_device(s, h->v);
    d->mean = on_device(s, h->mean);
    d->spread = on_device(s, h->spread);
    d->bad = on_device(s, h->bad);
    d->bad_value = on_device(s, h->bad_value);
    d->best_plan = on_device(s, h->best_plan);
    d->best_cost = on_device(s, h->best_cost);
    d->low = on_device(s, h->low);
    d->average = on_device(s, h->average);
    if (s->kind->needs & CGS_NEEDS_GRADIENT) {
        d->grad = d->plans;
        d->plans = d->mean;
    }
    double *rate = (double *)(uintptr_t)h->rates;
    for (int i = 0; s->kind->kernel == CGS_KERNEL_ADAM && i < s->iterations; i++) {
        rate[3 * i] = cgs_plan_descent_rate(c, i);
        rate[3 * i + 1] = 1 - pow(0.9, i + 1);
        rate[3 * i + 2] = 1 - pow(0.999, i + 1);
    }
    return CGS_OK;
}

/* whether its options are among those that kernels know, at these sizes */
static bool has_kernels(const cgs_device_loop *s) {
    const cgs_plan_config *c = &s->config;
    cgs_plan_state d = settings(s);
    if (s->kind->reads & CGS_READS_ESS && c->ess > 0) return false;
    if (s->kind->reads & CGS_READS_SHRINK && c->shrink < 1) return false;
    if (is_filtered(s) && s->n > s->kernels->most_filtered) return false;
    return s->kind->kernel != CGS_KERNEL_GAUSS_NEWTON || place_work(s, &d, NULL) <= MOST_WORK;
}

cgs_status cgs_device_loop_create(cgs_device_loop **out, cgs_device *d, const cgs_plan_config *c,
                                  int max_E) {
    const cgs_planner_kind *kind;
    *out = NULL;
    CGS_TRY(cgs_planner_kind_find(&kind, c->kind.s));
    int K = cgs_planner_candidates(kind, c);
    const cgs_planner_kernels *kernels = cgs_planner_kernels_of(d);
    if (!kernels || kind->kernel == CGS_KERNEL_NONE || K > kernels->most_candidates) return CGS_OK;
    cgs_device_loop *s = calloc(1, sizeof *s);
    if (!s) return cgs_fail(CGS_ENOMEM, "planner: no memory");
    *s = (cgs_device_loop){.device = d,
                           .kernels = kernels,
                           .config = *c,
                           .kind = kind,
                           .max_E = max_E,
                           .n = c->H * c->A,
                           .K = K,
                           .iterations = cgs_plan_iterations(c)};
    cgs_status rc = has_kernels(s) ? fill(s) : CGS_OK;
    if (rc != CGS_OK || !s->memory) {
        cgs_device_loop_destroy(s);
        return rc;
    }
    *out = s;
    return CGS_OK;
}

void cgs_device_loop_destroy(cgs_device_loop *s) {
    if (!s) return;
    for (int i = 0; i < GRAPHS; i++)
        if (s->graphs[i].handle) s->device->ops->drop(s->device, s->graphs[i].handle);
    s->device->ops->release(s->device, s->memory);
    s->device->ops->release(s->device, s->work);
    cgs_arena_free(&s->mirror);
    free(s);
}

/* ---- solving ----------------------------------------------------------------------- */

static void update(const cgs_device_loop *s) {
    switch (s->kind->kernel) {
    case CGS_KERNEL_REFIT: s->kernels->refit(s->device, &s->state); return;
    case CGS_KERNEL_REWEIGHT: s->kernels->reweight(s->device, &s->state); return;
    case CGS_KERNEL_ADAM: s->kernels->adam(s->device, &s->state); return;
    case CGS_KERNEL_GAUSS_NEWTON: s->kernels->gauss_newton(s->device, &s->state); return;
    case CGS_KERNEL_NONE: return; /* has no device loop */
    }
}

/* enqueues `span` iterations */
static void iterate(void *ctx) {
    const cgs_device_loop *s = ctx;
    const cgs_device_scorer *r = s->scorer;
    const cgs_plan_state *d = &s->state;
    for (int i = 0; i < s->span; i++) {
        if (s->kind->reads & CGS_READS_SAMPLES) s->kernels->sample(s->device, d);
        if (s->kind->needs & CGS_NEEDS_GRADIENT)
            r->gradient(r->ctx, d->plans, d->E, d->cost, d->grad);
        else if (s->kind->needs & CGS_NEEDS_RESIDUAL)
            r->residual(r->ctx, d->plans, d->E, d->K, d->cost, d->gn.residual);
        else
            r->cost(r->ctx, d->plans, d->E, d->K, d->cost);
        update(s);
    }
}

static cgs_status send_inputs(cgs_device_loop *s) {
    return s->device->ops->upload(s->device, s->memory, s->mirror.base, s->inputs);
}

/* the graph of `span` iterations for what is set; captured when there is none yet */
static cgs_status find_graph(cgs_device_loop *s, int span, void **handle) {
    unsigned moved = s->device->ops->moved(s->device);
    for (int i = 0; i < GRAPHS; i++) {
        const loop_graph *p = &s->graphs[i];
        if (p->handle && p->version == s->scorer->version && p->E == s->state.E &&
            p->span == span && p->moved == moved) {
            *handle = p->handle;
            return CGS_OK;
        }
    }
    loop_graph *p = &s->graphs[s->next];
    s->next = (s->next + 1) % GRAPHS;
    if (p->handle) s->device->ops->drop(s->device, p->handle);
    *p = (loop_graph){0};
    /* once for real: libraries load code at its first use, which cannot be captured */
    CGS_TRY(send_inputs(s));
    s->span = 1;
    iterate(s);
    s->span = span;
    CGS_TRY(s->device->ops->capture(s->device, handle, iterate, s));
    *p = (loop_graph){s->scorer->version, s->state.E, span, moved, *handle};
    return CGS_OK;
}

static uint64_t episode_id(const cgs_plan_problem *q, int e) {
    return q->episode ? q->episode[e] : (uint64_t)e;
}

static void set_inputs(cgs_device_loop *s, const cgs_plan_problem *q, uint64_t solves) {
    cgs_plan_state *h = &s->host;
    size_t n = (size_t)q->E * (size_t)s->n;
    for (int e = 0; e < q->E; e++) {
        uint64_t seed = q->seed ? q->seed[e] : s->config.seed;
        ((uint64_t *)(uintptr_t)h->stream)[e] =
            cgs_rng_stream(seed, CGS_STREAM_PLAN, episode_id(q, e)).key;
        ((uint64_t *)(uintptr_t)h->solve)[e] = q->solve ? q->solve[e] : solves;
        h->turn[e] = 0;
        h->bad[2 * e] = h->bad[2 * e + 1] = 0;
    }
    for (size_t i = 0; i < n; i++) {
        h->mean[i] = q->start ? q->start[i] : 0;
        h->spread[i] = s->config.sigma * (q->unit ? q->unit[i] : 1);
    }
    if (s->kind->kernel == CGS_KERNEL_GAUSS_NEWTON)
        memcpy((float *)(uintptr_t)h->gn.start, h->mean, n * sizeof *h->mean);
    if (s->kind->kernel == CGS_KERNEL_ADAM) {
        memset(h->m, 0, n * sizeof *h->m);
        memset(h->v, 0, n * sizeof *h->v);
    }
}

/* says what the host's loop would have said first */
static cgs_status judge(const cgs_device_loop *s, const cgs_plan_problem *q) {
    int worst = -1;
    for (int e = 0; e < q->E; e++)
        if (s->host.bad[2 * e] && (worst < 0 || s->host.bad[2 * e] < s->host.bad[2 * worst]))
            worst = e;
    if (worst < 0) return CGS_OK;
    int iteration = s->host.bad[2 * worst] - 1, place = s->host.bad[2 * worst + 1];
    unsigned long long id = episode_id(q, worst);
    double value = s->host.bad_value[worst];
    if (place < 0)
        return cgs_fail(CGS_ENUMERIC,
                        "%s: value %d of the gradient of episode %llu, iteration %d is %g",
                        s->kind->name, -1 - place, id, iteration, value);
    return cgs_fail(CGS_ENUMERIC, "%s: the cost of episode %llu, candidate %d, iteration %d is %g",
                    s->kind->name, id, place, iteration, value);
}

cgs_status cgs_device_loop_solve(cgs_device_loop *s, const cgs_plan_problem *q, uint64_t solves,
                                 float deadline, cgs_plan_result *result) {
    cgs_device *d = s->device;
    double begin = cgs_now(), slowest = 0;
    int done = 0, all = s->iterations;
    bool cut = false;
    void *handle;
    s->scorer = q->on_device;
    s->state.E = q->E;
    s->state.gn.R = s->scorer->R;
    CGS_TRY(s->scorer->begin(s->scorer->ctx, q->E));
    bool whole = deadline <= 0 && (double)all * s->scorer->calls <= MOST_CALLS;
    set_inputs(s, q, solves);
    CGS_TRY(find_graph(s, whole ? all : 1, &handle));
    CGS_TRY(send_inputs(s));
    double ready = cgs_now();
    while (done < all) {
        double start = cgs_now();
        if (done > 0 && deadline > 0 && start - begin + slowest > deadline) {
            cut = true;
            break;
        }
        CGS_TRY(d->ops->launch(d, handle));
        done += whole ? all : 1;
        if (deadline <= 0) continue;
        CGS_TRY(d->ops->sync(d));
        double took = cgs_now() - start;
        slowest = took > slowest ? took : slowest;
    }
    CGS_TRY(d->ops->download(d, s->mirror.base + s->outputs, s->memory + s->outputs,
                             s->mirror.size - s->outputs));
    CGS_TRY(judge(s, q));
    *result = (cgs_plan_result){.plan = cut ? s->host.best_plan : s->host.mean,
                                .spread = s->host.spread,
                                .best = s->host.low,
                                .mean = s->host.average,
                                .best_plan = s->host.best_plan,
                                .iterations = done,
                                .cut = cut,
                                .device_loop = true,
                                .times = {.sample = ready - begin, .cost = cgs_now() - ready}};
    return CGS_OK;
}

/* predictor.cu - all steps of a rollout in one kernel, for the sizes of the published predictor.
 *
 * Launched one by one, a rollout of 128 plans is some 450 small operations, each of which takes
 * longer to start than to run.  Here a cluster of S CTAs runs up to 16 plans through every layer of
 * every step.  A CTA has 16 / S heads, 1/S of the hidden units of every MLP, and owns 16 / S of the
 * plans:
 *
 *   owner     norms and modulates its plans' residual rows, sends them in bf16 to all CTAs
 *   all CTAs  q, k, v of own heads, attention over the window, partial sums of the output product
 *   owner     adds the S partial sums in order, gates, norms, modulates, sends
 *   all CTAs  own hidden units: product, GELU, partial sums of the second product
 *   owner     adds the S partial sums in order, gates
 *
 * Weights come from the L2 cache, once per cluster.  A row's sums do not depend on the other rows:
 * only on S, which is 8 for rollouts and 16 for gradients.  Many plans run by sm90/tiles.cu
 * instead, whose sums have another order; which of the two is decided when a predictor is opened,
 * by the rows it is declared for.
 *
 * Rows of a step are ordered by token, then by plan.  While the window grows only its newest token
 * is new, and keys and values of the others come from the KV cache; once it slides, all are
 * computed. */
#include <stdlib.h>
#include <string.h>

#include "rollout/cuda/predictor_back.cuh"

extern "C" {
#include "core/environment.h"
}

namespace {

enum { ROLLOUT_CTAS = 8 };

/* microseconds of a rollout of 5 steps: by tiles, however many plans; by clusters, as many as fit
 * at a time (docs/performance.md) */
enum { TILES_TIME = 5100, CLUSTERS_TIME = 430 };

struct predictor {
    task base;
    int capacity; /* clusters that run at the same time */
    int gradient; /* steps of jobs that ask for one; 0: none */
    void *slabs, *saved;
    float *cache, *norm;
    void *tiles; /* of sm90/tiles.cu, which then runs all jobs; or NULL */
};

/* with `active`: asks how many clusters run at a time instead */
template <class F>
cudaError_t launch(cgs_device *d, F kernel, int S, size_t shared, const task &t, unsigned clusters,
                   int *active) {
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute attribute[1];
    attribute[0].id = cudaLaunchAttributeClusterDimension;
    attribute[0].val.clusterDim.x = (unsigned)S;
    attribute[0].val.clusterDim.y = attribute[0].val.clusterDim.z = 1;
    config.gridDim = dim3(clusters * (unsigned)S);
    config.blockDim = dim3(THREADS);
    config.dynamicSmemBytes = shared;
    config.stream = stream_of(d);
    config.attrs = attribute;
    config.numAttrs = 1;
    if (shared > (size_t)cgs_cuda_of(d)->max_shared) return cudaErrorInvalidValue;
    /* the most there is, not what this launch takes: graphs hold launches of other sizes */
    cudaError_t e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         cgs_cuda_of(d)->max_shared);
    if (e == cudaSuccess && S > 8)
        e = cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    if (e != cudaSuccess) return e;
    if (active) return cudaOccupancyMaxActiveClusters(active, kernel, &config);
    return cudaLaunchKernelEx(&config, kernel, t);
}

/* SAVE: also what backward reads */
template <bool SAVE>
cudaError_t forward(cgs_device *d, const task &t, unsigned clusters, int *active) {
    const int S = SAVE ? (int)BACKWARD_CTAS : (int)ROLLOUT_CTAS;
    task ours = t;
    ours.slots = forward_slots<S>((size_t)cgs_cuda_of(d)->max_shared, t.N, t.R);
    if (!ours.slots) return cudaErrorInvalidValue;
    return launch(d, imagine<S, SAVE>, S, ring<S>::bytes(ours.slots) + forward_rest<S>(t.N, t.R),
                  ours, clusters, active);
}

cudaError_t backward(cgs_device *d, const task &t, unsigned clusters, int *active) {
    task ours = t;
    ours.slots = back_slots((size_t)cgs_cuda_of(d)->max_shared, t.N, t.H, t.R);
    if (!ours.slots) return cudaErrorInvalidValue;
    return launch(d, imagine_back, BACKWARD_CTAS,
                  ring<BACKWARD_CTAS>::bytes(ours.slots) + back_rest(t.N, t.H, t.R), ours, clusters,
                  active);
}

/* clusters that the GPU holds at the same time; 0 when it cannot */
int active_clusters(cgs_device *d, const task &t, int gradient) {
    int active = 0, back = 1;
    cudaError_t e = gradient ? forward<true>(d, t, 8, &active) : forward<false>(d, t, 8, &active);
    if (e == cudaSuccess && gradient) e = backward(d, t, 8, &back);
    if (e == cudaSuccess) return back > 0 ? active : 0;
    cudaGetLastError();
    return 0;
}

/* takes memory for a packed matrix, and fills it */
const uint4 *packed(cgs_device *d, unsigned char *&at, const cgs_tensor *W, bool transposed) {
    int N = (int)cgs_rows(W), K = cgs_cols(W);
    uint4 *to = (uint4 *)at;
    if (transposed)
        pack_transposed<<<(unsigned)(K / 8), THREADS, 0, stream_of(d)>>>(to, W->bf16, N, K);
    else
        pack_weights<<<(unsigned)(N / 8), THREADS, 0, stream_of(d)>>>(to, W->bf16, K);
    LAUNCHED(d, "packing weights");
    at += cgs_numel(W) * sizeof(uint16_t);
    return to;
}

/* Packs all weights into `staging`, and copies them to `to` as the slabs of S CTAs in the order O:
 * as many bytes. */
template <class O, int S>
void pack_slabs(cgs_device *d, unsigned char *to, unsigned char *staging,
                const cgs_predictor_weights *w, bool transposed) {
    packed_weights all = {};
    all.layers = w->layers;
    for (int i = 0; i < w->layers; i++) {
        const cgs_predictor_layer_weights *b = &w->layer[i];
        all.layer[i].qkv = packed(d, staging, b->qkv, transposed);
        all.layer[i].out = packed(d, staging, b->attn_out_w, transposed);
        all.layer[i].in = packed(d, staging, b->mlp_in_w, transposed);
        all.layer[i].down = packed(d, staging, b->mlp_out_w, transposed);
    }
    all.proj_in = packed(d, staging, w->proj_in_w, transposed);
    all.proj_out = packed(d, staging, w->proj_out_w, transposed);
    dim3 grid((unsigned)ring<S>::slabs_of_step(w->layers), S);
    order_slabs<O><<<grid, THREADS, 0, stream_of(d)>>>((uint4 *)to, all);
    LAUNCHED(d, "weights in the order of use");
}

const float *values(const cgs_tensor *x) { return (const float *)x->data; }

bool fits(const cgs_predictor_weights *w) {
    bool same = w->D == D && w->heads == HEADS && w->width == WIDTH && w->mlp == HIDDEN &&
                w->hidden == HIDDEN && w->history <= MOST_TOKENS &&
                w->layers <= CGS_PREDICTOR_LAYERS && w->proj_in_w->bf16 && w->proj_out_w->bf16;
    for (int i = 0; same && i < w->layers; i++)
        same = w->layer[i].qkv->bf16 && w->layer[i].attn_out_w->bf16 &&
               w->layer[i].mlp_in_w->bf16 && w->layer[i].mlp_out_w->bf16;
    return same;
}

/* whether the environment asks for one way of running rollouts */
bool asked_for(const char *way) {
    const char *text = cgs_environment(CGS_ENV_ROLLOUT);
    return text && !strcmp(text, way);
}

bool choose(cgs_device *d, predictor *p) {
    int major = 0;
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, d->index);
    if (major < 9 || asked_for("tape")) return false;
    p->base.H = p->gradient;
    p->base.R = 16;
    const char *barriers = cgs_environment(CGS_ENV_CLUSTER_BARRIERS);
    p->base.barriers = barriers && strcmp(barriers, "0") != 0;
    p->capacity = active_clusters(d, p->base, p->gradient);
    return p->capacity > 0;
}

/* Plans that a cluster takes: as few as all clusters together allow, since products go by tiles of
 * 16 rows and a window has N rows per plan; as many as these tiles hold.  No bit depends on it. */
int plans_of_cluster(int rows, int capacity, int N) {
    int least = (int)blocks_for((size_t)rows, (size_t)capacity), tiles = (least * N + 15) / 16;
    int most = 16 * tiles / N < 16 ? 16 * tiles / N : 16;
    return most < rows ? most : rows;
}

/* Are so many plans faster by tiles?  Bits depend on the answer, so it is given once, for the rows
 * that a predictor is declared for.  CGS_ROLLOUT=tiles or clusters answers for all. */
bool tiles_win(const predictor *p, int rows) {
    if (asked_for("tiles")) return true;
    if (asked_for("clusters")) return false;
    return blocks_for((size_t)rows, (size_t)16 * p->capacity) * CLUSTERS_TIME > TILES_TIME;
}

/* memory for what forward saves for backward */
cgs_status make_saved(cgs_device *d, predictor *p, const cgs_predictor_weights *w, int rows) {
    saved_pass *s = &p->base.saved;
    s->rows = ((size_t)rows + 15) / 16 * 16;
    size_t steps = (size_t)p->gradient, each = steps * s->rows,
           tokens = each * w->layers * w->history;
    float **to[] = {&s->x1,  &s->x2,   &s->y1,        &s->y2,     &s->qkv,
                    &s->pre, &s->last, &s->projected, &s->latents};
    const size_t sizes[] = {tokens * D, tokens * D,         tokens * D,
                            tokens * D, tokens * 3 * INNER, tokens * HIDDEN,
                            each * D,   each * HIDDEN,      each * D};
    size_t all = 0;
    for (size_t size : sizes) all += size;
    CGS_TRY(d->ops->alloc(d, &p->saved, all * sizeof(float)));
    float *next = (float *)p->saved;
    for (int i = 0; i < 9; i++) {
        *to[i] = next;
        next += sizes[i];
    }
    return CGS_OK;
}

/* weights, and for gradients transposed ones after them */
cgs_status make_slabs(cgs_device *d, predictor *p, const cgs_predictor_weights *w) {
    size_t bytes =
        (size_t)BACKWARD_CTAS * ring<BACKWARD_CTAS>::slabs_of_step(w->layers) * RING_SLAB;
    void *staging;
    CGS_TRY(d->ops->alloc(d, &p->slabs, bytes * (p->gradient ? 2 : 1)));
    CGS_TRY(d->ops->alloc(d, &staging, bytes));
    unsigned char *to = (unsigned char *)p->slabs, *at = (unsigned char *)staging;
    p->base.slabs = (const uint4 *)to;
    if (p->gradient) {
        p->base.saved.slabs = (const uint4 *)(to + bytes);
        pack_slabs<forward_slabs<BACKWARD_CTAS>, BACKWARD_CTAS>(d, to, at, w, false);
        pack_slabs<backward_slabs, BACKWARD_CTAS>(d, to + bytes, at, w, true);
    } else {
        pack_slabs<forward_slabs<ROLLOUT_CTAS>, ROLLOUT_CTAS>(d, to, at, w, false);
    }
    cgs_status rc = d->ops->sync(d);
    d->ops->release(d, staging);
    return rc;
}

cgs_status fill(cgs_device *d, predictor *p, const cgs_predictor_weights *w, int rows) {
    void *memory;
    task *t = &p->base;
    CGS_TRY(make_slabs(d, p, w));
    t->cache_rows = (size_t)rows;
    CGS_TRY(d->ops->alloc(d, &memory,
                          (size_t)w->layers * HEADS * t->cache_rows *
                              (size_t)(w->history > 1 ? w->history - 1 : 1) * 2 * WIDTH *
                              sizeof(float)));
    p->cache = t->cache = (float *)memory;
    CGS_TRY(d->ops->alloc(d, &memory, 2 * HIDDEN * sizeof(float)));
    p->norm = (float *)memory;
    t->proj_scale = p->norm;
    t->proj_shift = p->norm + HIDDEN;
    settle_norm<<<HIDDEN / THREADS, THREADS, 0, stream_of(d)>>>(
        p->norm, p->norm + HIDDEN, values(w->proj_norm_w), values(w->proj_norm_b),
        values(w->proj_mean), values(w->proj_var), w->batch_eps);
    LAUNCHED(d, "batch norm of the projector");
    for (int i = 0; i < w->layers; i++) {
        const cgs_predictor_layer_weights *b = &w->layer[i];
        layer_vectors *to = &t->layer[i];
        to->attn_norm_w = values(b->attn_norm_w);
        to->attn_norm_b = values(b->attn_norm_b);
        to->out_b = values(b->attn_out_b);
        to->mlp_norm_w = values(b->mlp_norm_w);
        to->mlp_norm_b = values(b->mlp_norm_b);
        to->in_b = values(b->mlp_in_b);
        to->down_b = values(b->mlp_out_b);
    }
    t->pos = values(w->pos);
    t->norm_w = values(w->norm_w);
    t->norm_b = values(w->norm_b);
    t->proj_in_b = values(w->proj_in_b);
    t->proj_out_b = values(w->proj_out_b);
    if (p->gradient) CGS_TRY(make_saved(d, p, w, rows));
    return d->ops->sync(d);
}

} // namespace

extern "C" {

cgs_status cgs_cuda_predictor_open(cgs_device *d, void **out, const cgs_predictor_weights *w,
                                   int rows, int gradient) {
    *out = NULL;
    if (!fits(w)) return CGS_OK;
    predictor *p = (predictor *)calloc(1, sizeof *p);
    if (!p) return cgs_fail(CGS_ENOMEM, "no memory for a predictor");
    p->gradient = gradient;
    p->base.N = w->history;
    p->base.layers = w->layers;
    p->base.ada_eps = w->ada_eps;
    p->base.norm_eps = w->norm_eps;
    if (!choose(d, p)) {
        free(p);
        return CGS_OK;
    }
    cgs_status rc = CGS_OK;
    if (!gradient && tiles_win(p, rows)) rc = cgs_cuda_tiles_open(d, &p->tiles, w, rows);
    if (rc == CGS_OK && !p->tiles) rc = fill(d, p, w, rows);
    if (rc == CGS_OK)
        *out = p;
    else
        cgs_cuda_predictor_close(d, p);
    return rc;
}

void cgs_cuda_predictor_run(cgs_device *d, void *handle, const cgs_predictor_job *j) {
    const predictor *p = (const predictor *)handle;
    if (p->tiles) {
        cgs_cuda_tiles_run(d, p->tiles, j);
        return;
    }
    task t = p->base;
    t.rows = j->rows;
    t.K = j->K;
    t.C = j->C;
    t.H = j->H;
    t.T = j->C - 1 + j->H;
    t.z = j->z;
    t.goal = j->goal;
    t.cost = j->cost;
    t.latents = j->latents;
    t.modulation = j->modulation;
    t.saved.gradient = j->gradient;
    t.R = plans_of_cluster(j->rows, p->capacity, t.N);
    bool save = j->gradient != NULL;
    unsigned clusters = blocks_for((size_t)j->rows, (size_t)t.R);
    cudaError_t e =
        save ? forward<true>(d, t, clusters, NULL) : forward<false>(d, t, clusters, NULL);
    STAMP(d, "a rollout");
    show_clocks(stream_of(d), save ? CLOCK_FORWARD : CLOCK_ROLLOUT, clusters);
    if (e == cudaSuccess && save) {
        STAMP(d, "printing");
        e = backward(d, t, clusters, NULL);
        STAMP(d, "its gradient");
        show_clocks(stream_of(d), CLOCK_BACKWARD, clusters);
    }
    cgs_cuda_note(cgs_cuda_of(d), e, "a rollout");
    LAUNCHED(d, "printing");
    SHOW_STAMPS(d, 2 * j->rows + save);
}

void cgs_cuda_predictor_close(cgs_device *d, void *handle) {
    predictor *p = (predictor *)handle;
    if (p->tiles) cgs_cuda_tiles_close(d, p->tiles);
    d->ops->release(d, p->slabs);
    d->ops->release(d, p->saved);
    d->ops->release(d, p->cache);
    d->ops->release(d, p->norm);
    free(p);
}

} /* extern "C" */

/* loader.c - a ring of batches, filled by workers in the order of tickets.
 *
 * Ticket t is the t-th batch since the start.  A worker takes the next ticket when its slot in the
 * ring (t modulo the ring) is free, copies the batch's window numbers under the lock, and fills the
 * slot without it.  The consumer waits for its own ticket, so the order is fixed whatever the
 * workers do.  All memory is allocated at create. */
#include "data/loader.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"

enum { MAX_THREADS = 64, MAX_QUEUE = 256 };

typedef struct place {
    uint8_t *pixels;                  /* (B, T, S, S, 3)   */
    float *actions, *raw;             /* (B, T, f*a)       */
    float *extras[CGS_LOADER_EXTRAS]; /* (B, T, dims)      */
    int64_t *windows;                 /* (B)               */
    int count;
    uint64_t epoch;
    int64_t index;
    bool ready;
    cgs_status status;
    char error[1024];
} place;

struct cgs_loader {
    cgs_loader_config c;
    int B;           /* this rank's share of a full batch */
    int64_t batches; /* an epoch */
    int action;      /* columns */
    int extra[CGS_LOADER_EXTRAS], extra_dims[CGS_LOADER_EXTRAS];
    double mean[1024], std[1024]; /* (action_dim) */

    cgs_arena arena;
    place *ring;    /* (queue) */
    int64_t *order; /* (id_count) of order_epoch */
    uint64_t order_epoch;
    bool order_known;

    pthread_mutex_t lock;
    pthread_cond_t space, filled;
    pthread_t threads[MAX_THREADS];
    int started;
    bool stop;
    uint64_t next_ticket; /* for the workers  */
    uint64_t taken;       /* tickets the consumer is done with */
    bool holding;         /* the consumer uses batch `taken` */
};

/* ---- filling -------------------------------------------------------------------------- */

static void locate(const cgs_loader *l, uint64_t ticket, uint64_t *epoch, int64_t *index) {
    uint64_t n = (uint64_t)l->batches, at = (uint64_t)l->c.start_batch + ticket;
    *epoch = l->c.start_epoch + at / n;
    *index = (int64_t)(at % n);
}

/* which windows the ticket's batch holds; under the lock */
static void assign(cgs_loader *l, place *p, uint64_t ticket) {
    const cgs_loader_config *c = &l->c;
    locate(l, ticket, &p->epoch, &p->index);
    if (c->shuffle && (!l->order_known || l->order_epoch != p->epoch)) {
        cgs_epoch_order(c->seed, p->epoch, c->id_count, l->order);
        l->order_epoch = p->epoch;
        l->order_known = true;
    }
    int64_t first = p->index * c->batch;
    int64_t whole = c->id_count - first < c->batch ? c->id_count - first : c->batch;
    int64_t from = whole * c->rank / c->ranks, to = whole * (c->rank + 1) / c->ranks;
    p->count = (int)(to - from);
    for (int i = 0; i < p->count; i++) {
        int64_t k = first + from + i;
        p->windows[i] = c->ids[c->shuffle ? l->order[k] : k];
    }
}

/* NaN stands for "no action" in the last row of an episode and nowhere else */
static cgs_status standardise(const cgs_loader *l, int episode, int start, float *raw, float *out) {
    const cgs_source *s = l->c.source;
    const int rows = l->c.windows->span, a = s->action_dim;
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < a; j++) {
            float *v = &raw[(size_t)r * a + j];
            bool none = isnan(*v) && start + r == s->ep_len[episode] - 1;
            if (!isfinite(*v) && !none)
                return cgs_fail(CGS_ENUMERIC,
                                "%s: action %d in row %d of episode %d is %g; only an episode's "
                                "last row may be NaN",
                                s->path, j, start + r, episode, *v);
            if (none) *v = 0;
            out[(size_t)r * a + j] = none ? 0 : (float)((*v - l->mean[j]) / l->std[j]);
        }
    return CGS_OK;
}

static cgs_status fill_extra(const cgs_loader *l, int i, int episode, int start, float *out) {
    const cgs_source *s = l->c.source;
    const cgs_windows *w = l->c.windows;
    CGS_TRY(s->read_rows(s->self, l->extra[i], s->ep_offset[episode] + start, w->num_steps,
                         w->frameskip, out));
    for (int k = 0; k < w->num_steps * l->extra_dims[i]; k++)
        if (!isfinite(out[k]))
            return cgs_fail(CGS_ENUMERIC, "%s: column \"%s\" in row %d of episode %d is %g",
                            s->path, s->columns[l->extra[i]].name,
                            start + k / l->extra_dims[i] * w->frameskip, episode, out[k]);
    return CGS_OK;
}

static int64_t first_row(const cgs_loader *l, int64_t window) {
    const cgs_windows *w = l->c.windows;
    return l->c.source->ep_offset[w->episode[window]] + w->start[window];
}

static cgs_status fill(const cgs_loader *l, place *p) {
    const cgs_source *s = l->c.source;
    const cgs_windows *w = l->c.windows;
    const size_t T = (size_t)w->num_steps, S = (size_t)l->c.image_size;
    const size_t block = (size_t)w->span * (size_t)s->action_dim;
    for (int b = 0; p->pixels && s->expect_pixels && b < p->count; b++)
        s->expect_pixels(s->self, first_row(l, p->windows[b]), w->num_steps, w->frameskip);
    for (int b = 0; b < p->count; b++) {
        int episode = w->episode[p->windows[b]], start = w->start[p->windows[b]];
        int64_t row = first_row(l, p->windows[b]);
        float *raw = p->raw + (size_t)b * block;
        if (p->pixels)
            CGS_TRY(s->read_pixels(s->self, row, w->num_steps, w->frameskip,
                                   p->pixels + (size_t)b * T * S * S * 3));
        CGS_TRY(s->read_rows(s->self, l->action, row, w->span, 1, raw));
        CGS_TRY(standardise(l, episode, start, raw, p->actions + (size_t)b * block));
        for (int i = 0; i < l->c.extra_count; i++)
            CGS_TRY(fill_extra(l, i, episode, start,
                               p->extras[i] + (size_t)b * T * (size_t)l->extra_dims[i]));
    }
    return CGS_OK;
}

static void *work(void *user) {
    cgs_loader *l = user;
    pthread_mutex_lock(&l->lock);
    for (;;) {
        while (!l->stop && l->next_ticket >= l->taken + (uint64_t)l->c.queue)
            pthread_cond_wait(&l->space, &l->lock);
        if (l->stop) break;
        uint64_t ticket = l->next_ticket++;
        place *p = &l->ring[ticket % (uint64_t)l->c.queue];
        assign(l, p, ticket);
        pthread_mutex_unlock(&l->lock);

        cgs_status rc = fill(l, p);
        p->status = rc;
        if (rc != CGS_OK) snprintf(p->error, sizeof p->error, "%s", cgs_last_error());

        pthread_mutex_lock(&l->lock);
        p->ready = true;
        pthread_cond_broadcast(&l->filled);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* ---- creating ------------------------------------------------------------------------- */

static cgs_status check_config(const cgs_loader_config *c) {
    const cgs_source *s = c->source;
    if (c->batch < 1) return cgs_fail(CGS_EARG, "a batch of %d windows is impossible", c->batch);
    if (c->ranks < 1 || c->rank < 0 || c->rank >= c->ranks || c->batch % c->ranks)
        return cgs_fail(CGS_EARG, "a batch of %d windows cannot be shared: rank %d of %d", c->batch,
                        c->rank, c->ranks);
    if (c->id_count < 1 || (c->id_count < c->batch && !c->keep_last))
        return cgs_fail(CGS_EARG, "%s: %" PRId64 " windows do not make a batch of %d", s->path,
                        c->id_count, c->batch);
    if (s->pixels < 0 || s->action < 0)
        return cgs_fail(CGS_EFORMAT, "%s: it has no column \"%s\"", s->path,
                        s->pixels < 0 ? "pixels" : "action");
    if (s->height != c->image_size || s->width != c->image_size)
        return cgs_fail(CGS_EFORMAT, "%s: its frames are %dx%d, the model needs %dx%d", s->path,
                        s->height, s->width, c->image_size, c->image_size);
    for (int64_t i = 0; i < c->id_count; i++)
        if (c->ids[i] < 0 || c->ids[i] >= c->windows->count)
            return cgs_fail(CGS_EARG, "%s: window %" PRId64 " of %" PRId64 " does not exist",
                            s->path, c->ids[i], c->windows->count);
    for (int j = 0; j < s->action_dim; j++)
        if (!isfinite(c->action_mean[j]) || !isfinite(c->action_std[j]) || c->action_std[j] <= 0)
            return cgs_fail(CGS_EARG, "action %d has mean %g and standard deviation %g", j,
                            c->action_mean[j], c->action_std[j]);
    return CGS_OK;
}

static void layout(cgs_loader *l) {
    const cgs_loader_config *c = &l->c;
    const size_t B = (size_t)l->B, T = (size_t)c->windows->num_steps, S = (size_t)c->image_size;
    const size_t block = (size_t)c->windows->span * (size_t)c->source->action_dim;
    l->ring = CGS_TAKE(&l->arena, place, c->queue);
    l->order = c->shuffle ? CGS_TAKE(&l->arena, int64_t, c->id_count) : NULL;
    for (int q = 0; q < c->queue; q++) {
        place none, *p = l->ring ? &l->ring[q] : &none;
        p->pixels = c->no_pixels ? NULL : CGS_TAKE(&l->arena, uint8_t, B * T * S * S * 3);
        p->actions = CGS_TAKE(&l->arena, float, B *block);
        p->raw = CGS_TAKE(&l->arena, float, B *block);
        p->windows = CGS_TAKE(&l->arena, int64_t, B);
        for (int i = 0; i < c->extra_count; i++)
            p->extras[i] = CGS_TAKE(&l->arena, float, B *T *(size_t)l->extra_dims[i]);
    }
}

static cgs_status find_columns(cgs_loader *l) {
    const cgs_source *s = l->c.source;
    l->action = s->action;
    if (l->c.extra_count < 0 || l->c.extra_count > CGS_LOADER_EXTRAS)
        return cgs_fail(CGS_EARG, "%d extra columns; at most %d are possible", l->c.extra_count,
                        CGS_LOADER_EXTRAS);
    for (int i = 0; i < l->c.extra_count; i++) {
        l->extra[i] = cgs_source_find(s, l->c.extras[i]);
        if (l->extra[i] < 0 || l->extra[i] == s->pixels)
            return cgs_fail(CGS_EFORMAT, "%s: it has no column \"%s\" of numbers", s->path,
                            l->c.extras[i]);
        l->extra_dims[i] = (int)s->columns[l->extra[i]].values;
    }
    return CGS_OK;
}

cgs_status cgs_loader_create(cgs_loader **out, const cgs_loader_config *config) {
    *out = NULL;
    cgs_loader_config c = *config;
    if (c.ranks == 0) c.ranks = 1;
    if (c.threads <= 0) c.threads = 2;
    if (c.threads > MAX_THREADS) c.threads = MAX_THREADS;
    if (c.queue <= 0) c.queue = c.threads + 2;
    if (c.queue > MAX_QUEUE) c.queue = MAX_QUEUE;
    CGS_TRY(check_config(&c));

    cgs_loader *l = calloc(1, sizeof *l);
    if (!l) return cgs_fail(CGS_ENOMEM, "no memory for a loader");
    l->c = c;
    l->B = c.batch / c.ranks;
    l->batches = c.keep_last ? (c.id_count + c.batch - 1) / c.batch : c.id_count / c.batch;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->space, NULL);
    pthread_cond_init(&l->filled, NULL);
    memcpy(l->mean, c.action_mean, (size_t)c.source->action_dim * sizeof(double));
    memcpy(l->std, c.action_std, (size_t)c.source->action_dim * sizeof(double));

    cgs_status rc = find_columns(l);
    if (rc == CGS_OK && (c.start_batch < 0 || c.start_batch > l->batches))
        rc = cgs_fail(CGS_EARG, "batch %" PRId64 " of %" PRId64 " does not exist", c.start_batch,
                      l->batches);
    if (rc == CGS_OK) {
        layout(l);
        rc = cgs_arena_bind(&l->arena, "the batches of a loader");
    }
    if (rc == CGS_OK) {
        layout(l);
        for (; l->started < c.threads; l->started++)
            if (pthread_create(&l->threads[l->started], NULL, work, l) != 0) break;
        if (l->started == 0) rc = cgs_fail(CGS_ENOMEM, "a loader thread could not be started");
    }
    if (rc != CGS_OK) {
        cgs_loader_destroy(l);
        return rc;
    }
    *out = l;
    return CGS_OK;
}

void cgs_loader_destroy(cgs_loader *l) {
    if (!l) return;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_broadcast(&l->space);
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < l->started; i++) pthread_join(l->threads[i], NULL);
    pthread_cond_destroy(&l->space);
    pthread_cond_destroy(&l->filled);
    pthread_mutex_destroy(&l->lock);
    cgs_arena_free(&l->arena);
    free(l);
}

/* ---- consuming ------------------------------------------------------------------------ */

int64_t cgs_loader_batches(const cgs_loader *l) { return l->batches; }

cgs_status cgs_loader_next(cgs_loader *l, cgs_batch *batch) {
    pthread_mutex_lock(&l->lock);
    if (l->holding) { /* the previous batch goes back to the workers */
        l->ring[l->taken % (uint64_t)l->c.queue].ready = false;
        l->taken++;
        l->holding = false;
        pthread_cond_signal(&l->space);
    }
    place *p = &l->ring[l->taken % (uint64_t)l->c.queue];
    while (!p->ready) pthread_cond_wait(&l->filled, &l->lock);
    if (p->status == CGS_OK) l->holding = true;
    pthread_mutex_unlock(&l->lock);
    if (p->status != CGS_OK) return cgs_fail(p->status, "%s", p->error);

    *batch = (cgs_batch){.epoch = p->epoch,
                         .index = p->index,
                         .count = p->count,
                         .pixels = p->pixels,
                         .actions = p->actions,
                         .raw_actions = p->raw,
                         .windows = p->windows};
    for (int i = 0; i < l->c.extra_count; i++) {
        batch->extras[i] = p->extras[i];
        batch->extra_dims[i] = l->extra_dims[i];
    }
    return CGS_OK;
}

bool cgs_loader_ready(cgs_loader *l) {
    pthread_mutex_lock(&l->lock);
    /* with a ring of one the next batch needs the slot of the one in use */
    bool ready = !(l->holding && l->c.queue == 1) &&
                 l->ring[(l->taken + l->holding) % (uint64_t)l->c.queue].ready;
    pthread_mutex_unlock(&l->lock);
    return ready;
}

void *cgs_loader_memory(const cgs_loader *l, size_t *bytes) {
    *bytes = l->arena.size;
    return l->arena.base;
}

void cgs_loader_position(const cgs_loader *l, uint64_t *epoch, int64_t *batch) {
    locate(l, l->taken + l->holding, epoch, batch);
}

/* params.c - declaring, binding, initialising and reading a model's flat buffers. */
#include "model/params.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"

/* every tensor starts on a boundary for vector loads in both precisions */
#define PARAM_ALIGN ((size_t)64)

static void bind(cgs_params *p, cgs_tensor *t, const cgs_param *e) {
    float *base = e->trainable ? p->values : p->statistics;
    t->data = base + e->offset;
    t->wants_grad = e->trainable && p->grads;
    t->grad = t->wants_grad ? p->grads + e->offset : NULL;
    t->bf16 = e->trainable && p->bf16 ? p->bf16 + e->offset : NULL;
}

static cgs_param *append(cgs_params *p) {
    if (p->count == p->capacity) {
        int capacity = p->capacity ? 2 * p->capacity : 128;
        cgs_param *more = realloc(p->list, (size_t)capacity * sizeof *more);
        if (!more) {
            p->status = cgs_fail(CGS_ENOMEM, "parameters: no memory for %d entries", capacity);
            return NULL;
        }
        p->list = more;
        p->capacity = capacity;
    }
    return &p->list[p->count++];
}

static void declare(cgs_params *p, cgs_tensor *t, cgs_init init, float scale, int rank,
                    const int *dim, bool trainable, bool stacked, const char *fmt, va_list ap) {
    char name[CGS_PARAM_NAME];
    vsnprintf(name, sizeof name, fmt, ap);
    if (p->bound) { /* second pass: the entry exists, bind its memory */
        const cgs_param *e = cgs_params_find(p, name);
        if (!stacked) bind(p, t, e);
    } else {
        cgs_param *e = append(p);
        if (!e) return;
        *e = (cgs_param){.rank = rank, .init = init, .scale = scale, .trainable = trainable};
        memcpy(e->name, name, sizeof name);
        e->count = 1;
        for (int i = 0; i < rank; i++) {
            e->dim[i] = dim[i];
            e->count *= (size_t)dim[i];
        }
        size_t *used = trainable ? &p->trainable : &p->stats;
        /* a stacked part continues its tensor without a gap */
        if (!stacked) *used = (*used + PARAM_ALIGN - 1) / PARAM_ALIGN * PARAM_ALIGN;
        e->offset = *used;
        *used += e->count;
    }
    if (stacked) {
        t->dim[0] += dim[0];
        return;
    }
    t->rank = rank;
    t->dtype = CGS_F32;
    t->outside = t->keep = true;
    for (int i = 0; i < rank; i++) t->dim[i] = dim[i];
    /* files store tables as (1, rows, D) and convolutions as (out, in, ...): both are
       matrices to the operations that use them */
    if (rank == 3 && dim[0] == 1) {
        t->dim[0] = dim[1];
        t->dim[1] = dim[2];
        t->rank = 2;
    } else if (rank > 2) {
        t->dim[1] = (int)(cgs_numel(t) / (size_t)dim[0]);
        t->rank = 2;
    }
}

#define DECLARE(trainable, stacked)                                                                \
    va_list ap;                                                                                    \
    va_start(ap, fmt);                                                                             \
    declare(p, t, init, scale, rank, dim, trainable, stacked, fmt, ap);                            \
    va_end(ap)

void cgs_param_declare(cgs_params *p, cgs_tensor *t, cgs_init init, float scale, int rank,
                       const int *dim, const char *fmt, ...) {
    DECLARE(true, false);
}

void cgs_param_stack(cgs_params *p, cgs_tensor *t, cgs_init init, float scale, int rank,
                     const int *dim, const char *fmt, ...) {
    DECLARE(true, true);
}

void cgs_param_statistic(cgs_params *p, cgs_tensor *t, cgs_init init, int n, const char *fmt, ...) {
    const float scale = 0;
    const int rank = 1, dim[1] = {n};
    DECLARE(false, false);
}

cgs_status cgs_params_bind(cgs_params *p, cgs_device *d, bool training) {
    if (p->status != CGS_OK) return p->status;
    p->device = d;
    size_t n = p->trainable * sizeof(float);
    CGS_TRY(d->ops->alloc(d, (void **)&p->values, n));
    CGS_TRY(d->ops->alloc(d, (void **)&p->statistics, p->stats * sizeof(float) + 1));
    CGS_TRY(d->ops->alloc(d, (void **)&p->bf16, n / 2));
    if (training) {
        CGS_TRY(d->ops->alloc(d, (void **)&p->grads, n));
        CGS_TRY(d->ops->alloc(d, (void **)&p->moment1, n));
        CGS_TRY(d->ops->alloc(d, (void **)&p->moment2, n));
    }
    p->bound = true;
    return CGS_OK;
}

void cgs_params_free(cgs_params *p) {
    if (p->device) {
        void *all[] = {p->values, p->grads, p->moment1, p->moment2, p->bf16, p->statistics};
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
            if (all[i]) p->device->ops->release(p->device, all[i]);
    }
    free(p->list);
    *p = (cgs_params){0};
}

/* element k */
static float draw(const cgs_param *e, cgs_rng *r, size_t k) {
    switch (e->init) {
    case CGS_INIT_ZERO: return 0;
    case CGS_INIT_ONE: return 1;
    case CGS_INIT_NORMAL: return (float)(e->scale * cgs_rng_normal(r));
    case CGS_INIT_UNIFORM: return (float)(e->scale * (2 * cgs_rng_f64(r) - 1));
    case CGS_INIT_IDENTITY: return k / (size_t)e->dim[1] == k % (size_t)e->dim[1];
    }
    return 0;
}

cgs_status cgs_params_init(cgs_params *p, uint64_t seed) {
    for (int i = 0; i < p->count; i++) {
        const cgs_param *e = &p->list[i];
        float *v = malloc(e->count * sizeof *v);
        if (!v) return cgs_fail(CGS_ENOMEM, "%s: no memory to initialise it", e->name);
        cgs_rng r = cgs_rng_stream(seed, CGS_STREAM_INIT, (uint64_t)i);
        for (size_t k = 0; k < e->count; k++) v[k] = draw(e, &r, k);
        cgs_status rc = cgs_param_write(p, e, v);
        free(v);
        CGS_TRY(rc);
    }
    cgs_params_round(p);
    return CGS_OK;
}

void cgs_params_round(cgs_params *p) {
    p->device->ops->round_bf16(p->device, p->bf16, p->values, p->trainable);
}

cgs_status cgs_params_keep(const cgs_params *p, float *values) {
    return p->device->ops->download(p->device, values, p->values, p->trainable * sizeof *values);
}

cgs_status cgs_params_restore(cgs_params *p, const float *values) {
    CGS_TRY(p->device->ops->upload(p->device, p->values, values, p->trainable * sizeof *values));
    cgs_params_round(p);
    return CGS_OK;
}

size_t cgs_params_learnable(const cgs_params *p) {
    size_t n = 0;
    for (int i = 0; i < p->count; i++) n += p->list[i].trainable ? p->list[i].count : 0;
    return n;
}

const cgs_param *cgs_params_find(const cgs_params *p, const char *name) {
    for (int i = 0; i < p->count; i++)
        if (!strcmp(p->list[i].name, name)) return &p->list[i];
    return NULL;
}

static float *place(const cgs_params *p, const cgs_param *e) {
    return (e->trainable ? p->values : p->statistics) + e->offset;
}

cgs_status cgs_param_read(const cgs_params *p, const cgs_param *e, float *out) {
    return p->device->ops->download(p->device, out, place(p, e), e->count * sizeof *out);
}

cgs_status cgs_param_write(cgs_params *p, const cgs_param *e, const float *values) {
    return p->device->ops->upload(p->device, place(p, e), values, e->count * sizeof *values);
}

cgs_status cgs_params_checksum(const cgs_params *p, uint64_t *out) {
    uint64_t h = 0;
    for (int i = 0; i < p->count; i++) {
        const cgs_param *e = &p->list[i];
        float *v = malloc(e->count * sizeof *v);
        if (!v) return cgs_fail(CGS_ENOMEM, "%s: no memory to read it", e->name);
        cgs_status rc = cgs_param_read(p, e, v);
        for (size_t k = 0; k < e->count; k++) {
            uint32_t word;
            memcpy(&word, &v[k], sizeof word);
            h = cgs_mix64(h ^ word);
        }
        free(v);
        CGS_TRY(rc);
    }
    *out = h;
    return CGS_OK;
}

cgs_status cgs_param_read_grad(const cgs_params *p, const cgs_param *e, float *out) {
    if (!e->trainable || !p->grads) return cgs_fail(CGS_EARG, "%s: has no gradient", e->name);
    return p->device->ops->download(p->device, out, p->grads + e->offset, e->count * sizeof *out);
}

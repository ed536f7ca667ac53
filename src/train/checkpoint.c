/* checkpoint.c - saving and loading the state of a training run. */
#include "train/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "core/build.h"
#include "io/safetensors.h"
#include "io/weights.h"

enum { KINDS = 4, BUFFERS = KINDS * CGS_CHECKPOINT_PARTS };
/* of the first part, then of the second */
static const char *const buffer_names[BUFFERS] = {"values",     "moment1",     "moment2",
                                                  "statistics", "values.1",    "moment1.1",
                                                  "moment2.1",  "statistics.1"};

typedef struct host_copy {
    float *data[BUFFERS];
    size_t count[BUFFERS];
    int buffers;
} host_copy;

/* their device memory and sizes */
static int device_buffers(cgs_params *const *part, int parts, float *at[BUFFERS],
                          size_t count[BUFFERS]) {
    for (int k = 0; k < parts; k++) {
        const cgs_params *p = part[k];
        float *all[KINDS] = {p->values, p->moment1, p->moment2, p->statistics};
        for (int i = 0; i < KINDS; i++) {
            at[KINDS * k + i] = all[i];
            count[KINDS * k + i] = i < 3 ? p->trainable : p->stats;
        }
    }
    return KINDS * parts;
}

static void host_free(host_copy *h) {
    for (int i = 0; i < BUFFERS; i++) free(h->data[i]);
}

static cgs_status host_alloc(host_copy *h, cgs_params *const *part, int parts) {
    float *at[BUFFERS];
    *h = (host_copy){{0}, {0}, 0};
    h->buffers = device_buffers(part, parts, at, h->count);
    for (int i = 0; i < h->buffers; i++) {
        h->data[i] = malloc(h->count[i] * sizeof(float) + 1);
        if (!h->data[i]) {
            host_free(h);
            return cgs_fail(CGS_ENOMEM, "checkpoint: no memory for %zu numbers", h->count[i]);
        }
    }
    return CGS_OK;
}

static uint32_t checksum(const host_copy *h) {
    uLong crc = crc32(0, NULL, 0);
    for (int i = 0; i < h->buffers; i++) {
        const unsigned char *p = (const unsigned char *)h->data[i];
        size_t left = h->count[i] * sizeof(float);
        for (; left > 0;) {
            uInt n = left > (1u << 30) ? 1u << 30 : (uInt)left;
            crc = crc32(crc, p, n);
            p += n;
            left -= n;
        }
    }
    return (uint32_t)crc;
}

cgs_status cgs_checkpoint_save(const char *path, cgs_params *const *part, int parts,
                               const cgs_checkpoint *c) {
    cgs_device *d = part[0]->device;
    host_copy h;
    CGS_TRY(host_alloc(&h, part, parts));
    float *at[BUFFERS];
    device_buffers(part, parts, at, h.count);
    cgs_status rc = d->ops->sync(d);
    for (int i = 0; i < h.buffers && rc == CGS_OK; i++)
        rc = d->ops->download(d, h.data[i], at[i], h.count[i] * sizeof(float));
    if (rc == CGS_OK) {
        char step[24], crc[16], tracked[24];
        snprintf(step, sizeof step, "%llu", (unsigned long long)c->step);
        snprintf(crc, sizeof crc, "%08x", checksum(&h));
        snprintf(tracked, sizeof tracked, "%llu", (unsigned long long)c->batches_tracked);
        cgs_save tensors[BUFFERS];
        for (int i = 0; i < h.buffers; i++)
            tensors[i] = (cgs_save){.name = buffer_names[i],
                                    .type = CGS_W_F32,
                                    .rank = 1,
                                    .dim = {(int64_t)h.count[i]},
                                    .data = h.data[i]};
        const cgs_meta meta[] = {{"format", "cgs checkpoint 1"},
                                 {"step", step},
                                 {"crc32", crc},
                                 {"batches_tracked", tracked},
                                 {"config", c->config},
                                 {"dataset", c->identity},
                                 {"code_version", cgs_version()},
                                 {"code_commit", cgs_commit()}};
        rc = cgs_safetensors_write(path, tensors, (size_t)h.buffers, meta,
                                   sizeof meta / sizeof meta[0]);
    }
    host_free(&h);
    return rc;
}

void cgs_checkpoint_free(cgs_checkpoint *c) {
    free(c->config);
    free(c->identity);
    *c = (cgs_checkpoint){0};
}

static cgs_status number(const cgs_weights *w, const char *key, int base, uint64_t *out) {
    const char *text = cgs_weights_meta(w, key);
    char *end;
    if (!text) return cgs_fail(CGS_EFORMAT, "%s: a checkpoint needs \"%s\"", w->path, key);
    *out = strtoull(text, &end, base);
    if (end == text || *end)
        return cgs_fail(CGS_EFORMAT, "%s: \"%s\" is \"%.40s\", not a number", w->path, key, text);
    return CGS_OK;
}

static cgs_status read_meta(const cgs_weights *w, cgs_checkpoint *c) {
    const char *format = cgs_weights_meta(w, "format");
    if (!format || strcmp(format, "cgs checkpoint 1") != 0)
        return cgs_fail(CGS_EFORMAT, "%s: not a checkpoint of this program", w->path);
    CGS_TRY(number(w, "step", 10, &c->step));
    CGS_TRY(number(w, "batches_tracked", 10, &c->batches_tracked));
    const char *config = cgs_weights_meta(w, "config"), *identity = cgs_weights_meta(w, "dataset");
    if (!config || !identity)
        return cgs_fail(CGS_EFORMAT, "%s: a checkpoint needs its settings and dataset", w->path);
    c->config = strdup(config);
    c->identity = strdup(identity);
    return c->config && c->identity ? CGS_OK : cgs_fail(CGS_ENOMEM, "%s: no memory", w->path);
}

cgs_status cgs_checkpoint_inspect(const char *path, cgs_checkpoint *c) {
    cgs_weights *w;
    *c = (cgs_checkpoint){0};
    CGS_TRY(cgs_weights_open(&w, path));
    cgs_status rc = read_meta(w, c);
    cgs_weights_close(w);
    if (rc != CGS_OK) cgs_checkpoint_free(c);
    return rc;
}

static cgs_status read_buffers(const cgs_weights *w, host_copy *h) {
    for (int i = 0; i < h->buffers; i++) {
        const cgs_weight *e = cgs_weights_find(w, buffer_names[i]);
        if (!e || e->type != CGS_W_F32 || e->count != h->count[i])
            return cgs_fail(CGS_EFORMAT, "%s: \"%s\" should hold %zu f32 numbers, has %zu", w->path,
                            buffer_names[i], h->count[i], e ? e->count : 0);
        CGS_TRY(cgs_weights_read(e, h->data[i]));
    }
    uint64_t want = 0;
    CGS_TRY(number(w, "crc32", 16, &want));
    uint32_t got = checksum(h);
    if (got != want)
        return cgs_fail(CGS_EFORMAT, "%s: damaged, its checksum is %08x instead of %08x", w->path,
                        got, (unsigned)want);
    return CGS_OK;
}

cgs_status cgs_checkpoint_load(const char *path, cgs_params *const *part, int parts,
                               cgs_checkpoint *c) {
    *c = (cgs_checkpoint){0};
    cgs_device *d = part[0]->device;
    cgs_weights *w;
    host_copy h;
    CGS_TRY(cgs_weights_open(&w, path));
    cgs_status rc = host_alloc(&h, part, parts);
    if (rc == CGS_OK) {
        float *at[BUFFERS];
        size_t count[BUFFERS];
        device_buffers(part, parts, at, count);
        rc = read_meta(w, c);
        if (rc == CGS_OK) rc = read_buffers(w, &h);
        for (int i = 0; i < h.buffers && rc == CGS_OK; i++)
            rc = d->ops->upload(d, at[i], h.data[i], count[i] * sizeof(float));
        for (int k = 0; k < parts && rc == CGS_OK; k++) cgs_params_round(part[k]);
        host_free(&h);
    }
    cgs_weights_close(w);
    if (rc != CGS_OK) cgs_checkpoint_free(c);
    return rc;
}

cgs_status cgs_checkpoint_fits(const cgs_checkpoint *c, const char *path, const char *config,
                               const char *identity) {
    const char *a = config, *b = c->config;
    while (*a || *b) {
        size_t na = strcspn(a, "\n"), nb = strcspn(b, "\n");
        if (na != nb || memcmp(a, b, na) != 0)
            return cgs_fail(CGS_EARG, "%s was made with \"%.*s\", this run has \"%.*s\"", path,
                            (int)nb, b, (int)na, a);
        a += na + (a[na] == '\n');
        b += nb + (b[nb] == '\n');
    }
    if (strcmp(c->identity, identity) != 0)
        return cgs_fail(CGS_EARG, "%s was made with the data \"%s\", this is \"%s\"", path,
                        c->identity, identity);
    return CGS_OK;
}

/* learner_dinowm.c - training DINO-WM: inputs are features of a frozen backbone and proprioception;
 * two parameter groups.
 *
 * With data.features the backbone encodes every frame of the dataset once and its features are kept
 * in a file beside it; without, it runs in every update.  The latter is for datasets whose features
 * do not fit on a disk: 196 tokens of 384 numbers are 150 kB per frame. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/log.h"
#include "core/rng.h"
#include "core/threads.h"
#include "data/cache.h"
#include "data/features.h"
#include "data/stats.h"
#include "model/dinowm_store.h"
#include "train/learner.h"

enum { FRAMES = 16, GPU_FRAMES = 64 /* per run of the backbone */ };
#define PROPRIO "proprio"
#define DIM(...) ((const int[]){__VA_ARGS__})

typedef struct dino {
    cgs_features *features; /* or NULL: the backbone runs in the tape */
    size_t row_bytes;
    uint8_t *staged; /* (B*T, row_bytes) */
    float *proprio;  /* (B*T, proprio_dim) */
    cgs_dinowm_card card;
    char backbone[4096]; /* its file */
    char copied[4096];   /* the directory that already has a copy of it */
} dino;

/* ---- features ---------------------------------------------------------------------- */

/* runs the backbone on a few frames at a time */
typedef struct looking {
    cgs_tape *tape;
    cgs_tensor *frames, *out;
    int most;               /* frames at a time */
    uint8_t *pixels, *rows; /* (most, ...) */
} looking;

static void look_close(looking *k) {
    cgs_tape_destroy(k->tape);
    free(k->pixels);
    free(k->rows);
}

static cgs_status look_open(looking *k, cgs_dinowm *m, size_t row_bytes, cgs_dtype act) {
    cgs_device *d = m->params.device;
    int S = m->config.image_size;
    *k = (looking){.most = d->ops->memory ? GPU_FRAMES : FRAMES};
    CGS_TRY(cgs_tape_create(&k->tape, d, act));
    cgs_tape_freeze_parameters(k->tape);
    k->frames = cgs_input(k->tape, "frames", CGS_U8, 4, DIM(k->most, S, S, 3));
    k->out = cgs_keep(cgs_dinowm_features(k->tape, m, k->frames));
    CGS_TRY(cgs_tape_finish(k->tape, NULL));
    k->pixels = malloc((size_t)k->most * (size_t)S * (size_t)S * 3);
    k->rows = malloc((size_t)k->most * row_bytes);
    return k->pixels && k->rows ? CGS_OK : cgs_fail(CGS_ENOMEM, "features: no memory");
}

/* rows first .. first+n-1 of the dataset, into k->rows */
static cgs_status look_at(looking *k, const cgs_source *data, int64_t first, int n,
                          size_t row_bytes) {
    cgs_device *d = cgs_tape_device(k->tape);
    CGS_TRY(data->read_pixels(data->self, first, n, 1, k->pixels));
    CGS_TRY(d->ops->upload(d, k->frames->data, k->pixels,
                           cgs_bytes(k->frames) / (size_t)k->most * (size_t)n));
    cgs_tape_forward(k->tape);
    CGS_TRY(d->ops->sync(d));
    return d->ops->download(d, k->rows, k->out->data, (size_t)n * row_bytes);
}

static cgs_status compute(looking *k, cgs_features_writer *w, const cgs_source *data) {
    double start = cgs_now(), told = start;
    int64_t begun = w->written;
    while (w->written < data->rows) {
        int64_t left = data->rows - w->written;
        int n = left < k->most ? (int)left : k->most;
        CGS_TRY(look_at(k, data, w->written, n, w->key.row_bytes));
        CGS_TRY(cgs_features_append(w, k->rows, n));
        double now = cgs_now();
        if (now - told < 10 && w->written < data->rows) continue;
        told = now;
        cgs_log(CGS_INFO, "features: %lld of %lld frames, %.0f frames/s", (long long)w->written,
                (long long)data->rows, (double)(w->written - begun) / (now - start));
    }
    return CGS_OK;
}

/* writes the file, or its missing rows, then opens it */
static cgs_status make_features(dino *s, cgs_dinowm *m, const cgs_source *data, const char *file,
                                const cgs_features_key *key, cgs_dtype act) {
    cgs_features_writer w;
    looking k = {0};
    CGS_TRY(cgs_features_begin(&w, file, key));
    if (cgs_features_open(&s->features, file, key) ==
        CGS_OK) { /* another process made it meanwhile */
        remove(w.part);
        cgs_features_pause(&w);
        return CGS_OK;
    }
    cgs_log(CGS_INFO, "%s: features of %lld frames are computed once (%.3g GB), %lld exist", file,
            (long long)data->rows, 1e-9 * (double)data->rows * (double)key->row_bytes,
            (long long)w.written);
    cgs_status rc = look_open(&k, m, key->row_bytes, act);
    if (rc == CGS_OK) rc = compute(&k, &w, data);
    look_close(&k);
    if (rc == CGS_OK)
        rc = cgs_features_commit(&w);
    else
        cgs_features_pause(&w);
    CGS_TRY(rc);
    return cgs_features_open(&s->features, file, key);
}

static cgs_status ensure(dino *s, cgs_dinowm *m, const cgs_source *data, const char *path,
                         const char *cache, cgs_dtype act) {
    const cgs_dinowm_config *c = &m->config;
    uint64_t hash;
    char file[4096], suffix[CGS_TEXT_MAX + 32];
    CGS_TRY(cgs_backbone_hash(m->backbone, &hash));
    hash = cgs_mix64(hash ^ (uint64_t)act);
    s->row_bytes = (size_t)cgs_dinowm_tokens(c) * (size_t)c->features * cgs_dtype_size(act);
    cgs_features_key key = {hash, path, data->rows, s->row_bytes};
    snprintf(suffix, sizeof suffix, "%s-%08x.features", c->tokens.s, (unsigned)(hash >> 32));
    if (!cache) {
        CGS_TRY(cgs_cache_beside(file, sizeof file, path, suffix));
        if (cgs_features_open(&s->features, file, &key) == CGS_OK) return CGS_OK;
    }
    CGS_TRY(cgs_cache_place(file, sizeof file, path, suffix, cache));
    if (cgs_features_open(&s->features, file, &key) == CGS_OK) return CGS_OK;
    return make_features(s, m, data, file, &key, act);
}

/* ---- the model --------------------------------------------------------------------- */

static cgs_status proprio_statistics(dino *s, const cgs_source *data, int dim) {
    cgs_stats stats;
    int at = cgs_source_find(data, PROPRIO);
    if (at < 0 || (int)data->columns[at].values != dim)
        return cgs_fail(CGS_EFORMAT, "%s: no column \"%s\" of %d numbers", data->path, PROPRIO,
                        dim);
    CGS_TRY(cgs_stats_compute(&stats, data, PROPRIO));
    s->card.proprio_dim = dim;
    for (int i = 0; i < dim; i++) {
        s->card.proprio_mean[i] = stats.mean[i];
        s->card.proprio_std[i] = stats.std_population[i];
    }
    return CGS_OK;
}

static cgs_status open_all(cgs_learner *l, const cgs_run_config *c, const cgs_source *data,
                           const char *path, cgs_device *d, cgs_dtype act) {
    dino *s = l->self;
    cgs_backbone_view view;
    cgs_backbone *backbone;
    cgs_dinowm *m;
    if (!c->train.backbone.s[0])
        return cgs_fail(
            CGS_EARG,
            "%s needs a backbone: --backbone FILE (DINOv2 weights, or the output of cgs "
            "pretrain)",
            c->train.method.s);
    snprintf(s->backbone, sizeof s->backbone, "%s", c->train.backbone.s);
    CGS_TRY(cgs_dinowm_view(&c->dino, &view));
    CGS_TRY(cgs_backbone_load(&backbone, s->backbone, &view, d));
    cgs_status rc = cgs_dinowm_create(&m, &c->dino, backbone, d, true);
    if (rc != CGS_OK) {
        cgs_backbone_destroy(backbone);
        return rc;
    }
    l->model = &m->base;
    m->dropout_seed = c->train.seed;
    snprintf(s->card.origin, sizeof s->card.origin, "%.63s", backbone->origin);
    snprintf(s->card.column, sizeof s->card.column, "%s", PROPRIO);
    CGS_TRY(proprio_statistics(s, data, c->dino.proprio_dim));
    CGS_TRY(cgs_params_init(&m->params, c->train.seed));
    if (c->train.features) {
        CGS_TRY(ensure(s, m, data, path, c->cache, act));
        cgs_backbone_destroy(m->backbone);
        m->backbone = NULL;
    }
    size_t rows = (size_t)c->train.batch * (size_t)(c->dino.history + 1);
    s->staged = malloc(rows * (s->row_bytes ? s->row_bytes : 1));
    s->proprio = malloc(rows * (size_t)c->dino.proprio_dim * sizeof *s->proprio);
    if (!s->staged || !s->proprio) return cgs_fail(CGS_ENOMEM, "no memory for a batch of features");
    l->wants_pixels = m->backbone != NULL;
    l->column = PROPRIO;
    /* projector, adapter and aggregation head have a low rate and no weight decay */
    l->groups = 2;
    l->group[0] = (cgs_group){0, m->heads_end, c->train.head_lr, 0};
    l->group[1] = (cgs_group){m->heads_end, m->params.trainable - m->heads_end, c->train.lr,
                              c->train.weight_decay};
    return CGS_OK;
}

static cgs_status open(cgs_learner *l, const cgs_run_config *c, const cgs_source *data,
                       const char *path, cgs_device *d, cgs_dtype act) {
    l->self = calloc(1, sizeof(dino));
    if (!l->self) return cgs_fail(CGS_ENOMEM, "trainer: no memory");
    return open_all(l, c, data, path, d, act);
}

static void close(cgs_learner *l) {
    dino *s = l->self;
    if (s) {
        cgs_features_close(s->features);
        free(s->staged);
        free(s->proprio);
        free(s);
    }
    cgs_model_destroy(l->model);
}

static cgs_status objective(cgs_objective *o, cgs_tape *t, cgs_model *m, int B, int reference_width,
                            int projections, bool per_window, uint64_t sigreg_key, bool training) {
    return cgs_objective_build_dinowm(o, t, cgs_dinowm_of(m), B, reference_width, projections,
                                      per_window, sigreg_key, training);
}

static cgs_status feed(cgs_learner *l, cgs_tape *t, cgs_objective *o, const cgs_batch *b,
                       const int64_t *row) {
    dino *s = l->self;
    cgs_device *d = cgs_tape_device(t);
    int frames = b->count * (l->model->history + 1), dim = s->card.proprio_dim;
    for (int i = 0; i < frames * dim; i++)
        s->proprio[i] = (float)((b->extras[l->extra][i] - s->card.proprio_mean[i % dim]) /
                                s->card.proprio_std[i % dim]);
    CGS_TRY(cgs_tensor_write(t, o->proprio, s->proprio));
    if (o->frames) return CGS_OK;
    for (int i = 0; i < frames; i++)
        CGS_TRY(cgs_features_read(s->features, row[i], s->staged + (size_t)i * s->row_bytes));
    return d->ops->upload(d, o->features->data, s->staged, cgs_bytes(o->features));
}

static cgs_status save(const cgs_learner *l, const char *dir, const cgs_model_card *card) {
    dino *s = l->self;
    bool copied = !strcmp(s->copied, dir);
    CGS_TRY(
        cgs_dinowm_save(dir, cgs_dinowm_of(l->model), card, &s->card, copied ? NULL : s->backbone));
    snprintf(s->copied, sizeof s->copied, "%s", dir);
    return CGS_OK;
}

const cgs_learner_class cgs_learner_dinowm = {open, close, objective, feed, save};

/* learner_dinowm.c - DINO-WM under training: features of a frozen backbone and proprioception in,
 * two groups of parameters.
 *
 * With data.features the backbone looks at every frame of the dataset once and its features are
 * kept in a file beside it; without, it runs in every update.  The second is for datasets whose
 * features no disk holds: 196 tokens of 384 numbers are 150 kB a frame. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/log.h"
#include "core/rng.h"
#include "core/threads.h"
#include "data/features.h"
#include "data/stats.h"
#include "model/dinowm_store.h"
#include "train/learner.h"

enum { FRAMES = 16, GPU_FRAMES = 64 /* that the backbone sees at a time */ };
#define PROPRIO "proprio"
#define DIM(...) ((const int[]){__VA_ARGS__})

typedef struct dino {
    cgs_features *features; /* or NULL: the backbone runs in the tape */
    size_t row_bytes;
    uint8_t *staged; /* (B*T, row_bytes) */
    float *proprio;  /* (B*T, proprio_dim) */
    cgs_dinowm_card card;
    char backbone[4096]; /* its file */
    char copied[4096];   /* the directory that has a copy of it already */
} dino;

/* ---- features ---------------------------------------------------------------------- */

static cgs_status compute(cgs_dinowm *m, const cgs_source *data, const char *path,
                          const cgs_features_key *key, cgs_dtype act) {
    int S = m->config.image_size;
    size_t frame = (size_t)S * (size_t)S * 3;
    cgs_device *d = m->params.device;
    int batch = d->ops->memory ? GPU_FRAMES : FRAMES;
    cgs_tape *t;
    cgs_features_writer w;
    CGS_TRY(cgs_tape_create(&t, d, act));
    cgs_tape_freeze_parameters(t);
    cgs_tensor *frames = cgs_input(t, "frames", CGS_U8, 4, DIM(batch, S, S, 3));
    cgs_tensor *out = cgs_keep(cgs_dinowm_features(t, m, frames));
    cgs_status rc = cgs_tape_finish(t, NULL);
    uint8_t *pixels = malloc((size_t)batch * frame), *rows = malloc((size_t)batch * key->row_bytes);
    if (rc == CGS_OK && (!pixels || !rows)) rc = cgs_fail(CGS_ENOMEM, "features: no memory");
    bool begun = rc == CGS_OK && (rc = cgs_features_begin(&w, path, key)) == CGS_OK;
    for (int64_t first = 0; rc == CGS_OK && first < data->rows; first += batch) {
        int n = data->rows - first < batch ? (int)(data->rows - first) : batch;
        rc = data->read_pixels(data->self, first, n, 1, pixels);
        if (rc == CGS_OK) rc = d->ops->upload(d, frames->data, pixels, (size_t)n * frame);
        if (rc != CGS_OK) break;
        cgs_tape_forward(t);
        rc = d->ops->sync(d);
        if (rc == CGS_OK) rc = d->ops->download(d, rows, out->data, (size_t)n * key->row_bytes);
        if (rc == CGS_OK) cgs_features_append(&w, rows, n);
    }
    if (begun && rc == CGS_OK)
        rc = cgs_features_commit(&w);
    else if (begun)
        cgs_features_abandon(&w);
    free(pixels);
    free(rows);
    cgs_tape_destroy(t);
    return rc;
}

static cgs_status ensure(dino *s, cgs_dinowm *m, const cgs_source *data, const char *path,
                         cgs_dtype act) {
    const cgs_dinowm_config *c = &m->config;
    uint64_t hash;
    char file[4096];
    CGS_TRY(cgs_backbone_hash(m->backbone, &hash));
    hash = cgs_mix64(hash ^ (uint64_t)act);
    s->row_bytes = (size_t)cgs_dinowm_tokens(c) * (size_t)c->features * cgs_dtype_size(act);
    cgs_features_key key = {hash, path, data->rows, s->row_bytes};
    if (snprintf(file, sizeof file, "%s.%s-%08x.features", path, c->tokens.s,
                 (unsigned)(hash >> 32)) >= (int)sizeof file)
        return cgs_fail(CGS_EARG, "%.64s...: path is too long", path);
    if (cgs_features_open(&s->features, file, &key) == CGS_OK) return CGS_OK;
    double start = cgs_now();
    cgs_log(CGS_INFO, "%s: features of %lld frames are computed once (%.2f GB)", file,
            (long long)data->rows, 1e-9 * (double)data->rows * (double)s->row_bytes);
    CGS_TRY(compute(m, data, file, &key, act));
    cgs_log(CGS_INFO, "%.0f frames/s", (double)data->rows / (cgs_now() - start));
    return cgs_features_open(&s->features, file, &key);
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
        return cgs_fail(CGS_EARG,
                        "%s needs a backbone: --backbone FILE (DINOv2 weights, or what cgs "
                        "pretrain made)",
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
        CGS_TRY(ensure(s, m, data, path, act));
        cgs_backbone_destroy(m->backbone);
        m->backbone = NULL;
    }
    size_t rows = (size_t)c->train.batch * (size_t)(c->dino.history + 1);
    s->staged = malloc(rows * (s->row_bytes ? s->row_bytes : 1));
    s->proprio = malloc(rows * (size_t)c->dino.proprio_dim * sizeof *s->proprio);
    if (!s->staged || !s->proprio) return cgs_fail(CGS_ENOMEM, "no memory for a batch of features");
    l->wants_pixels = m->backbone != NULL;
    l->column = PROPRIO;
    /* projector, adapter and aggregation head learn slowly and do not decay */
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

/* prior_pairs.c - see prior_pairs.h. */
#include "train/prior_pairs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "data/windows.h"
#include "rollout/rollout.h"

enum { READ = 512, IMAGINED = 64 }; /* frames and plans at a time */

/* a running making of pairs */
typedef struct making {
    cgs_prior_pairs *m;
    const cgs_prior_fit_config *c;
    cgs_loaded_model *s;
    cgs_dataset *data;
    const cgs_source *src;
    cgs_prior_fit_observer watch;
    void *user;
} making;

cgs_status cgs_prior_episodes_choose(cgs_prior_episodes *p, const cgs_loaded_model *s,
                                     const cgs_source *data, const cgs_prior_fit_config *c) {
    p->validates = NULL;
    CGS_TRY(cgs_fit_episodes_of(&p->of, s, data));
    if (c->episodes && c->episodes < p->of.count) p->of.count = c->episodes;
    p->validates = malloc((size_t)p->of.count + 1);
    if (!p->validates) return cgs_fail(CGS_ENOMEM, "prior: no memory for %d episodes", p->of.count);
    return cgs_split_episodes(p->of.count, c->fraction, c->seed, p->validates);
}

void cgs_prior_episodes_free(cgs_prior_episodes *p) {
    cgs_fit_episodes_free(&p->of);
    free(p->validates);
    p->validates = NULL;
}

void cgs_prior_pairs_free(cgs_prior_pairs *m) {
    cgs_prior_episodes_free(&m->used);
    free(m->z);
    free(m->first);
    for (int i = 0; i < 2; i++) {
        free(m->start[i]);
        free(m->plan[i]);
        free(m->end[i]);
    }
    memset(m, 0, sizeof *m);
}

const float *cgs_prior_pair_start(const cgs_prior_pairs *m, int side, int64_t i) {
    return m->z + m->start[side][i] * m->D;
}

const float *cgs_prior_pair_end(const cgs_prior_pairs *m, int side, int64_t i) {
    return m->end[side] ? m->end[side] + i * m->D : m->z + (m->start[side][i] + m->ahead) * m->D;
}

static cgs_status tell(const making *f, const char *what, int64_t done, int64_t total) {
    if (!f->watch || f->watch(f->user, what, (double)done, (double)total, NAN, NAN)) return CGS_OK;
    return cgs_fail(CGS_ESTOPPED, "stopped");
}

/* ---- recorded pairs ---------------------------------------------------------------- */

static cgs_status check(making *f) {
    const cgs_lewm_config *m = &f->s->lewm->config;
    int span = f->c->horizon * m->frameskip;
    f->m->stride = f->c->stride ? f->c->stride : m->frameskip;
    if (span % f->m->stride)
        return cgs_fail(CGS_EARG, "prior.stride: %d does not divide the %d rows of a plan",
                        f->m->stride, span);
    if (f->m->stride % f->src->pixels_every != 0)
        return cgs_fail(CGS_EARG, "%s: one row in %d has an image; prior.stride is %d",
                        f->src->path, f->src->pixels_every, f->m->stride);
    if (f->src->pixels < 0 || f->src->action < 0)
        return cgs_fail(CGS_EFORMAT, "%s: images and actions are needed", f->src->path);
    if (f->src->height != m->image_size || f->src->width != m->image_size)
        return cgs_fail(CGS_EARG, "%s: images of %d x %d pixels, the model sees %d x %d",
                        f->src->path, f->src->height, f->src->width, m->image_size, m->image_size);
    f->m->D = m->width;
    f->m->n = f->c->horizon * cgs_lewm_action_block(m);
    f->m->ahead = span / f->m->stride;
    return CGS_OK;
}

/* rows of the i-th episode used */
static int rows_of(const making *f, size_t i) { return f->src->ep_len[f->m->used.of.episode[i]]; }

static int64_t offset_of(const making *f, size_t i) {
    return f->src->ep_offset[f->m->used.of.episode[i]];
}

/* which frames and pairs there are */
static cgs_status count(making *f) {
    cgs_prior_pairs *m = f->m;
    CGS_TRY(cgs_prior_episodes_choose(&f->m->used, f->s, f->src, f->c));
    size_t E = (size_t)f->m->used.of.count;
    m->first = malloc((E + 1) * sizeof *m->first);
    if (!m->first) return cgs_fail(CGS_ENOMEM, "prior: no memory for %zu episodes", E);
    m->first[0] = 0;
    for (size_t e = 0; e < E; e++) {
        int64_t kept = (rows_of(f, e) - 1) / f->m->stride + 1;
        m->first[e + 1] = m->first[e] + kept;
        if (kept > m->ahead) m->count[f->m->used.validates[e]] += kept - m->ahead;
    }
    m->frames = m->first[E];
    if (m->count[0] < f->c->batch || m->count[1] < 1)
        return cgs_fail(CGS_EARG,
                        "%s: %lld pairs of rows %d apart to fit and %lld to validate; %d and 1 "
                        "are needed",
                        f->src->path, (long long)m->count[0], m->ahead * f->m->stride,
                        (long long)m->count[1], f->c->batch);
    m->z = malloc((size_t)m->frames * (size_t)m->D * sizeof *m->z);
    bool ok = m->z;
    for (int i = 0; i < 2; i++) {
        m->start[i] = malloc((size_t)m->count[i] * sizeof *m->start[i]);
        m->plan[i] = malloc((size_t)m->count[i] * (size_t)m->n * sizeof *m->plan[i]);
        ok = ok && m->start[i] && m->plan[i];
    }
    if (!ok) return cgs_fail(CGS_ENOMEM, "prior: no memory for %lld frames", (long long)m->frames);
    return CGS_OK;
}

static cgs_status encode_all(making *f) {
    cgs_prior_pairs *m = f->m;
    size_t frame = (size_t)f->src->height * (size_t)f->src->width * 3;
    int64_t row[READ], done = 0;
    uint8_t *pixels = malloc(READ * frame);
    cgs_status rc = pixels ? CGS_OK : cgs_fail(CGS_ENOMEM, "prior: no memory for %d frames", READ);
    for (size_t e = 0; rc == CGS_OK && done < m->frames;) {
        int n = 0;
        for (int64_t i; n < READ && (i = done + n) < m->frames; n++) {
            while (i >= m->first[e + 1]) e++;
            row[n] = offset_of(f, e) + (i - m->first[e]) * f->m->stride;
        }
        rc = cgs_source_images(f->src, row, n, pixels);
        if (rc == CGS_OK)
            rc = cgs_encoder_run(f->s->encoder, pixels, n, m->z + (size_t)done * (size_t)m->D);
        done += n;
        if (rc == CGS_OK) rc = tell(f, "encode", done, m->frames);
    }
    free(pixels);
    return rc;
}

static cgs_status read_targets(making *f) {
    cgs_prior_pairs *m = f->m;
    const cgs_action_scale *scale = &f->s->scale;
    int dim = scale->dim, span = m->ahead * f->m->stride;
    int64_t at[2] = {0, 0};
    float *raw = NULL;
    cgs_status rc = CGS_OK;
    for (size_t e = 0; e < (size_t)f->m->used.of.count && rc == CGS_OK; e++) {
        int rows = rows_of(f, e), side = f->m->used.validates[e];
        float *more = realloc(raw, (size_t)rows * (size_t)dim * sizeof *raw);
        if (!more) {
            rc = cgs_fail(CGS_ENOMEM, "prior: no memory for an episode of %d rows", rows);
            break;
        }
        raw = more;
        rc = cgs_dataset_read_rows(f->data, "action", offset_of(f, e), rows, raw);
        for (int64_t i = 0; rc == CGS_OK && i + m->ahead < m->first[e + 1] - m->first[e]; i++) {
            const float *from = raw + i * f->m->stride * dim;
            float *to = m->plan[side] + at[side] * m->n;
            m->start[side][at[side]++] = m->first[e] + i;
            for (int k = 0; k < span * dim && rc == CGS_OK; k++) {
                if (!isfinite(from[k]))
                    rc = cgs_fail(
                        CGS_EFORMAT, "%s: action %d of row %lld is %g", f->src->path, k % dim,
                        (long long)(offset_of(f, e) + i * f->m->stride + k / dim), (double)from[k]);
                to[k] = (float)((from[k] - scale->mean[k % dim]) / scale->std[k % dim]);
            }
        }
    }
    free(raw);
    return rc;
}

cgs_status cgs_prior_pairs_make(cgs_prior_pairs *m, cgs_loaded_model *s, cgs_dataset *data,
                                const cgs_prior_fit_config *c, cgs_prior_fit_observer watch,
                                void *user) {
    making f = {m, c, s, data, cgs_dataset_source(data), watch, user};
    memset(m, 0, sizeof *m);
    CGS_TRY(check(&f));
    CGS_TRY(count(&f));
    CGS_TRY(read_targets(&f));
    return encode_all(&f);
}

/* ---- imagined pairs ---------------------------------------------------------------- */

/* plans of one side: pair i gets that of pair order[i] */
static cgs_status exchange(cgs_prior_pairs *m, int side, uint64_t key) {
    size_t n = (size_t)m->n, count = (size_t)m->count[side];
    int64_t *order = malloc(count * sizeof *order);
    float *plan = malloc(count * n * sizeof *plan);
    cgs_status rc = order && plan ? CGS_OK : cgs_fail(CGS_ENOMEM, "prior: no memory for plans");
    if (rc == CGS_OK) {
        cgs_epoch_order(key, (uint64_t)side, m->count[side], order);
        for (size_t i = 0; i < count; i++)
            memcpy(plan + i * n, m->plan[side] + (size_t)order[i] * n, n * sizeof *plan);
        free(m->plan[side]);
        m->plan[side] = plan;
        plan = NULL;
    }
    free(order);
    free(plan);
    return rc;
}

/* the ends of one side; z: (IMAGINED, D), then (IMAGINED, H, D) */
static cgs_status imagine(const making *f, int side, int H, cgs_rollout *r, float *z) {
    cgs_prior_pairs *m = f->m;
    size_t D = (size_t)m->D, steps = (size_t)H;
    float *all = z + IMAGINED * D;
    for (int64_t at = 0; at < m->count[side]; at += IMAGINED) {
        int E = m->count[side] - at < IMAGINED ? (int)(m->count[side] - at) : IMAGINED;
        for (int e = 0; e < E; e++)
            memcpy(z + (size_t)e * D, cgs_prior_pair_start(m, side, at + e), D * sizeof *z);
        CGS_TRY(cgs_rollout_set(r, E, z, NULL, NULL));
        CGS_TRY(cgs_rollout_imagine(r, m->plan[side] + at * m->n, E, 1, all));
        for (size_t e = 0; e < (size_t)E; e++)
            memcpy(m->end[side] + ((size_t)at + e) * D, all + (e * steps + steps - 1) * D,
                   D * sizeof *z);
        CGS_TRY(tell(f, "imagine", at + E, m->count[side]));
    }
    return CGS_OK;
}

cgs_status cgs_prior_pairs_imagine(cgs_prior_pairs *m, cgs_loaded_model *s,
                                   const cgs_prior_fit_config *c, cgs_prior_fit_observer watch,
                                   void *user) {
    making f = {.m = m, .c = c, .s = s, .watch = watch, .user = user};
    cgs_rollout *r = NULL;
    cgs_rollout_config how = {
        .episodes = IMAGINED, .context = 1, .horizon = c->horizon, .samples = 1, .act = s->act};
    size_t D = (size_t)m->D;
    float *z = malloc(IMAGINED * D * (1 + (size_t)c->horizon) * sizeof *z);
    cgs_status rc = z ? CGS_OK : cgs_fail(CGS_ENOMEM, "prior: no memory");
    if (rc == CGS_OK) rc = cgs_rollout_create(&r, s->lewm, &how);
    for (int side = 0; side < 2 && rc == CGS_OK; side++) {
        rc = exchange(m, side, cgs_rng_stream(c->seed, CGS_STREAM_PRIOR, 2).key);
        float *end = malloc((size_t)m->count[side] * D * sizeof *end);
        if (rc == CGS_OK && !end) rc = cgs_fail(CGS_ENOMEM, "prior: no memory for latents");
        m->end[side] = end;
        if (rc == CGS_OK) rc = imagine(&f, side, c->horizon, r, z);
    }
    cgs_rollout_destroy(r);
    free(z);
    return rc;
}

/* prior_fit.c - see prior_fit.h. */
#include "train/prior_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/windows.h"
#include "train/optimiser.h"

#define ROW(kind, name, initial, low, high, key, doc)                                              \
    CGS_CONFIG_ROW(cgs_prior_fit_config, kind, name, initial, low, high, key, doc)
static const cgs_field fields[] = {CGS_PRIOR_FIT_CONFIG(ROW)};
#undef ROW

cgs_section cgs_prior_fit_section(cgs_prior_fit_config *c) {
    return (cgs_section){fields, (int)(sizeof fields / sizeof fields[0]), c};
}

enum { READ = 512 }; /* frames read at a time */

/* the training set, on the host */
typedef struct material {
    int D, n;       /* of a latent, of a plan */
    int ahead;      /* frames from t to the goal */
    int64_t frames; /* of all episodes used, one after the other */
    float *z;       /* (frames, D) */
    int64_t *first; /* (episodes + 1) first frame of each episode used */
    int64_t pairs[2];
    int64_t *pair[2]; /* frame t of each pair; 0: training, 1: validation */
    float *target[2]; /* (pairs, n) */
} material;

typedef struct fitting {
    const cgs_prior_fit_config *c;
    cgs_loaded_model *s;
    cgs_dataset *data;
    const cgs_source *src;
    cgs_prior_fit_observer watch;
    void *user;
    int stride;
    cgs_prior_episodes used;
    material m;
} fitting;

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

static void material_free(material *m) {
    free(m->z);
    free(m->first);
    for (int i = 0; i < 2; i++) {
        free(m->pair[i]);
        free(m->target[i]);
    }
}

static bool tell(fitting *f, const char *what, double done, double total, double loss,
                 double best) {
    return !f->watch || f->watch(f->user, what, done, total, loss, best);
}

/* ---- material ---------------------------------------------------------------------- */

static cgs_status check(fitting *f) {
    const cgs_lewm_config *m = &f->s->lewm->config;
    int span = f->c->horizon * m->frameskip;
    f->stride = f->c->stride ? f->c->stride : m->frameskip;
    if (span % f->stride)
        return cgs_fail(CGS_EARG, "prior.stride: %d does not divide the %d rows of a plan",
                        f->stride, span);
    if (f->stride % f->src->pixels_every != 0)
        return cgs_fail(CGS_EARG, "%s: one row in %d has an image; prior.stride is %d",
                        f->src->path, f->src->pixels_every, f->stride);
    if (f->src->pixels < 0 || f->src->action < 0)
        return cgs_fail(CGS_EFORMAT, "%s: images and actions are needed", f->src->path);
    if (f->src->height != m->image_size || f->src->width != m->image_size)
        return cgs_fail(CGS_EARG, "%s: images of %d x %d pixels, the model sees %d x %d",
                        f->src->path, f->src->height, f->src->width, m->image_size, m->image_size);
    f->m.D = m->width;
    f->m.n = f->c->horizon * cgs_lewm_action_block(m);
    f->m.ahead = span / f->stride;
    return CGS_OK;
}

/* rows of the i-th episode used */
static int rows_of(const fitting *f, size_t i) { return f->src->ep_len[f->used.of.episode[i]]; }

static int64_t offset_of(const fitting *f, size_t i) {
    return f->src->ep_offset[f->used.of.episode[i]];
}

/* which frames and pairs there are */
static cgs_status count(fitting *f) {
    material *m = &f->m;
    CGS_TRY(cgs_prior_episodes_choose(&f->used, f->s, f->src, f->c));
    size_t E = (size_t)f->used.of.count;
    m->first = malloc((E + 1) * sizeof *m->first);
    if (!m->first) return cgs_fail(CGS_ENOMEM, "prior: no memory for %zu episodes", E);
    m->first[0] = 0;
    for (size_t e = 0; e < E; e++) {
        int64_t kept = (rows_of(f, e) - 1) / f->stride + 1;
        m->first[e + 1] = m->first[e] + kept;
        if (kept > m->ahead) m->pairs[f->used.validates[e]] += kept - m->ahead;
    }
    m->frames = m->first[E];
    if (m->pairs[0] < f->c->batch || m->pairs[1] < 1)
        return cgs_fail(CGS_EARG,
                        "%s: %lld pairs of rows %d apart to fit and %lld to validate; %d and 1 "
                        "are needed",
                        f->src->path, (long long)m->pairs[0], m->ahead * f->stride,
                        (long long)m->pairs[1], f->c->batch);
    m->z = malloc((size_t)m->frames * (size_t)m->D * sizeof *m->z);
    bool ok = m->z;
    for (int i = 0; i < 2; i++) {
        m->pair[i] = malloc((size_t)m->pairs[i] * sizeof *m->pair[i]);
        m->target[i] = malloc((size_t)m->pairs[i] * (size_t)m->n * sizeof *m->target[i]);
        ok = ok && m->pair[i] && m->target[i];
    }
    if (!ok) return cgs_fail(CGS_ENOMEM, "prior: no memory for %lld frames", (long long)m->frames);
    return CGS_OK;
}

static cgs_status encode_all(fitting *f) {
    material *m = &f->m;
    size_t frame = (size_t)f->src->height * (size_t)f->src->width * 3;
    int64_t row[READ], done = 0;
    uint8_t *pixels = malloc(READ * frame);
    cgs_status rc = pixels ? CGS_OK : cgs_fail(CGS_ENOMEM, "prior: no memory for %d frames", READ);
    for (size_t e = 0; rc == CGS_OK && done < m->frames;) {
        int n = 0;
        for (int64_t i; n < READ && (i = done + n) < m->frames; n++) {
            while (i >= m->first[e + 1]) e++;
            row[n] = offset_of(f, e) + (i - m->first[e]) * f->stride;
        }
        rc = cgs_source_images(f->src, row, n, pixels);
        if (rc == CGS_OK)
            rc = cgs_encoder_run(f->s->encoder, pixels, n, m->z + (size_t)done * (size_t)m->D);
        done += n;
        if (rc == CGS_OK && !tell(f, "encode", (double)done, (double)m->frames, NAN, NAN))
            rc = cgs_fail(CGS_ESTOPPED, "stopped");
    }
    free(pixels);
    return rc;
}

static cgs_status read_targets(fitting *f) {
    material *m = &f->m;
    const cgs_action_scale *scale = &f->s->scale;
    int dim = scale->dim, span = m->ahead * f->stride;
    int64_t at[2] = {0, 0};
    float *raw = NULL;
    cgs_status rc = CGS_OK;
    for (size_t e = 0; e < (size_t)f->used.of.count && rc == CGS_OK; e++) {
        int rows = rows_of(f, e), side = f->used.validates[e];
        float *more = realloc(raw, (size_t)rows * (size_t)dim * sizeof *raw);
        if (!more) {
            rc = cgs_fail(CGS_ENOMEM, "prior: no memory for an episode of %d rows", rows);
            break;
        }
        raw = more;
        rc = cgs_dataset_read_rows(f->data, "action", offset_of(f, e), rows, raw);
        for (int64_t i = 0; rc == CGS_OK && i + m->ahead < m->first[e + 1] - m->first[e]; i++) {
            const float *from = raw + i * f->stride * dim;
            float *to = m->target[side] + at[side] * m->n;
            m->pair[side][at[side]++] = m->first[e] + i;
            for (int k = 0; k < span * dim && rc == CGS_OK; k++) {
                if (!isfinite(from[k]))
                    rc = cgs_fail(CGS_EFORMAT, "%s: action %d of row %lld is %g", f->src->path,
                                  k % dim, (long long)(offset_of(f, e) + i * f->stride + k / dim),
                                  (double)from[k]);
                to[k] = (float)((from[k] - scale->mean[k % dim]) / scale->std[k % dim]);
            }
        }
    }
    free(raw);
    return rc;
}

/* ---- fitting ----------------------------------------------------------------------- */

/* a tape over one batch, with its loss */
typedef struct step {
    cgs_tape *tape;
    cgs_tensor *in, *target, *loss;
    float *pairs, *targets; /* (batch, 2D), (batch, n) */
    int batch;
} step;

static void step_free(step *s) {
    cgs_tape_destroy(s->tape);
    free(s->pairs);
    free(s->targets);
}

static cgs_status step_build(step *s, cgs_prior *p, const material *m, int batch) {
    const int in[2] = {batch, 2 * m->D}, out[2] = {batch, m->n};
    s->batch = batch;
    s->pairs = malloc((size_t)batch * 2 * (size_t)m->D * sizeof *s->pairs);
    s->targets = malloc((size_t)batch * (size_t)m->n * sizeof *s->targets);
    if (!s->pairs || !s->targets) return cgs_fail(CGS_ENOMEM, "prior: no memory for a batch");
    CGS_TRY(cgs_tape_create(&s->tape, p->params.device, CGS_F32));
    s->in = cgs_input(s->tape, "pair", CGS_F32, 2, in);
    s->target = cgs_input(s->tape, "target", CGS_F32, 2, out);
    s->loss = cgs_keep(cgs_mse(s->tape, cgs_prior_forward(s->tape, p, s->in), s->target));
    return cgs_tape_finish(s->tape, s->loss);
}

/* runs the tape forward on pairs order[0 .. batch) of a side */
static cgs_status step_forward(step *s, const material *m, int side, const int64_t *order,
                               double *loss) {
    size_t D = (size_t)m->D, n = (size_t)m->n;
    for (int i = 0; i < s->batch; i++) {
        int64_t t = m->pair[side][order[i]];
        float *to = s->pairs + (size_t)i * 2 * D;
        memcpy(to, m->z + (size_t)t * D, D * sizeof *to);
        memcpy(to + D, m->z + (size_t)(t + m->ahead) * D, D * sizeof *to);
        memcpy(s->targets + (size_t)i * n, m->target[side] + (size_t)order[i] * n, n * sizeof *to);
    }
    CGS_TRY(cgs_tensor_write(s->tape, s->in, s->pairs));
    CGS_TRY(cgs_tensor_write(s->tape, s->target, s->targets));
    cgs_tape_forward(s->tape);
    float v;
    CGS_TRY(cgs_tensor_read(s->tape, s->loss, &v));
    if (!isfinite(v)) return cgs_fail(CGS_ENUMERIC, "prior: the loss is %g", (double)v);
    *loss = v;
    return CGS_OK;
}

/* mean error over all validation pairs, through the head itself */
static cgs_status validate(cgs_prior *p, const material *m, double *error) {
    size_t D = (size_t)m->D, n = (size_t)m->n;
    float *z = malloc(CGS_PRIOR_ROWS * (2 * D + n) * sizeof *z);
    if (!z) return cgs_fail(CGS_ENOMEM, "prior: no memory");
    float *goal = z + CGS_PRIOR_ROWS * D, *plan = goal + CGS_PRIOR_ROWS * D;
    cgs_status rc = CGS_OK;
    double sum = 0;
    for (int64_t at = 0; at < m->pairs[1] && rc == CGS_OK; at += CGS_PRIOR_ROWS) {
        int count_ = m->pairs[1] - at < CGS_PRIOR_ROWS ? (int)(m->pairs[1] - at) : CGS_PRIOR_ROWS;
        for (size_t i = 0; i < (size_t)count_; i++) {
            size_t t = (size_t)m->pair[1][(size_t)at + i];
            memcpy(z + i * D, m->z + t * D, D * sizeof *z);
            memcpy(goal + i * D, m->z + (t + (size_t)m->ahead) * D, D * sizeof *z);
        }
        rc = cgs_prior_plan(p, z, goal, count_, plan);
        const float *want = m->target[1] + (size_t)at * n;
        for (size_t i = 0; i < (size_t)count_ * n; i++)
            sum += ((double)plan[i] - want[i]) * ((double)plan[i] - want[i]);
    }
    free(z);
    *error = sum / ((double)m->pairs[1] * (double)n);
    return rc;
}

static double zero_error(const material *m) {
    double sum = 0;
    size_t n = (size_t)m->pairs[1] * (size_t)m->n;
    for (size_t i = 0; i < n; i++) sum += (double)m->target[1][i] * m->target[1][i];
    return sum / (double)n;
}

static cgs_status descend(fitting *f, cgs_prior *p, step *s, int64_t *order, float *best_values) {
    const cgs_prior_fit_config *c = f->c;
    const material *m = &f->m;
    cgs_prior_card *card = &p->card;
    int64_t batches = m->pairs[0] / c->batch;
    double loss = NAN, mean = 0;
    int stale = 0, since = 0;
    card->validation_loss = INFINITY;
    for (int u = 0; u < c->updates && stale < c->patience; u++) {
        int64_t k = u % batches;
        if (k == 0)
            cgs_epoch_order(cgs_rng_stream(c->seed, CGS_STREAM_PRIOR, 1).key,
                            (uint64_t)(u / batches), m->pairs[0], order);
        CGS_TRY(step_forward(s, m, 0, order + k * c->batch, &loss));
        const cgs_adamw a = cgs_adamw_usual(c->lr, c->weight_decay, (uint64_t)u + 1);
        CGS_TRY(cgs_descend(s->tape, &p->params, &a));
        mean += loss;
        since++;
        if ((u + 1) % c->every == 0 || u + 1 == c->updates) {
            double error = 0;
            CGS_TRY(validate(p, m, &error));
            stale++;
            if (error < card->validation_loss) {
                stale = 0;
                card->validation_loss = error;
                card->loss = mean / since;
                card->updates = (uint64_t)u + 1;
                CGS_TRY(cgs_params_keep(&p->params, best_values));
            }
            mean = since = 0;
        }
        if (!tell(f, "fit", u + 1, c->updates, loss, card->validation_loss)) break;
    }
    if (!isfinite(card->validation_loss))
        return cgs_fail(CGS_ESTOPPED, "stopped before the first validation");
    return cgs_params_restore(&p->params, best_values);
}

static cgs_status fit(fitting *f, cgs_prior **out) {
    const material *m = &f->m;
    cgs_prior_card card = {.width = m->D,
                           .hidden = f->c->hidden,
                           .horizon = f->c->horizon,
                           .block = cgs_lewm_action_block(&f->s->lewm->config),
                           .model = f->s->weights,
                           .seed = f->c->seed,
                           .split = f->used.of.split,
                           .pairs = m->pairs[0],
                           .validation_pairs = m->pairs[1],
                           .zero_loss = zero_error(m)};
    step s = {0};
    CGS_TRY(cgs_prior_create(out, &card, f->s->lewm->params.device, true));
    cgs_status rc = cgs_params_init(&(*out)->params, f->c->seed);
    int64_t *order = malloc((size_t)m->pairs[0] * sizeof *order);
    float *best = malloc((*out)->params.trainable * sizeof *best);
    if (rc == CGS_OK && (!order || !best)) rc = cgs_fail(CGS_ENOMEM, "prior: no memory");
    if (rc == CGS_OK) rc = step_build(&s, *out, m, f->c->batch);
    if (rc == CGS_OK) rc = descend(f, *out, &s, order, best);
    step_free(&s);
    free(order);
    free(best);
    return rc;
}

cgs_status cgs_prior_fit(cgs_prior **out, cgs_loaded_model *s, cgs_dataset *data,
                         const cgs_prior_fit_config *c, cgs_prior_fit_observer watch, void *user) {
    fitting f = {.c = c,
                 .s = s,
                 .data = data,
                 .src = cgs_dataset_source(data),
                 .watch = watch,
                 .user = user};
    *out = NULL;
    CGS_TRY(check(&f));
    cgs_status rc = count(&f);
    if (rc == CGS_OK) rc = read_targets(&f);
    if (rc == CGS_OK) rc = encode_all(&f);
    if (rc == CGS_OK) rc = fit(&f, out);
    cgs_prior_episodes_free(&f.used);
    material_free(&f.m);
    if (rc != CGS_OK) {
        cgs_prior_destroy(*out);
        *out = NULL;
    }
    return rc;
}

/* learned.c - see learned.h. */
#include "analysis/learned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/ridge.h"
#include "core/numpy_rng.h"
#include "rollout/held_out.h"
#include "rollout/rollout.h"

/* Enough for two digits of a score; more would take longer than a short training. */
enum { FIT = 32, VALIDATION = 8, SCORED = 24, BLOCKS = 32, AHEAD = 5, BATCH = 32 };
enum { EPISODES = FIT + VALIDATION + SCORED };
#define SPLIT_SEED 20260814u
#define CHANGED 8 /* of 255: a pixel that differs by less has not changed */

typedef struct job {
    const cgs_learned_options *o;
    cgs_learned *r;
    cgs_dataset *data;
    const cgs_source *source;
    cgs_loaded_model model;
    cgs_numeric numeric;
    int skip, D, block;
    int episode[EPISODES], blocks[EPISODES], episodes, first_scored; /* fitted ones first */
    cgs_parts parts;                                                 /* frames */
    float *z;                                                        /* (frames, D) */
    double *y;                                                       /* (frames, width) */
    float *action; /* (frames, block) standardised; the last of an episode is not used */
    double moved[2], apart[2], changed, pairs, strangers; /* sums of picture and latent */
} job;

static bool tell(const job *j, const char *what, double done, double total) {
    return !j->o->progress || j->o->progress(j->o->user, what, done, total);
}

/* ---- episodes -------------------------------------------------------------------------- */

static int blocks_of(const job *j, int e) {
    int n = (j->source->ep_len[e] - 1) / j->skip;
    return n < BLOCKS ? n : BLOCKS;
}

static void take(job *j, int e, int *part) {
    j->episode[j->episodes] = e;
    j->blocks[j->episodes] = blocks_of(j, e);
    *part += j->blocks[j->episodes++] + 1;
}

/* episodes of one side, in random order: from (all) where held is `side` */
static void take_some(job *j, const int64_t *order, const uint8_t *held, uint8_t side, int most,
                      int *from, int *part) {
    for (; *from < j->source->episodes && most > 0; ++*from) {
        int e = (int)order[*from];
        if (held[e] != side || blocks_of(j, e) < 1) continue;
        take(j, e, part);
        most--;
    }
}

static int count_of(const job *j, const uint8_t *held, uint8_t side) {
    int n = 0;
    for (int e = 0; e < j->source->episodes; e++) n += held[e] == side && blocks_of(j, e) >= 1;
    return n;
}

/* Where nothing is known of the model's training, the last third of a random order is scored. */
static void hold_out(job *j, const int64_t *order, uint8_t *held) {
    int n = j->source->episodes;
    j->r->held_out = cgs_loaded_model_held_out(&j->model, j->source, held) == CGS_OK;
    if (j->r->held_out) return;
    memset(held, 0, (size_t)n);
    for (int i = n - (n + 2) / 3; i < n; i++) held[order[i]] = 1;
}

static cgs_status choose(job *j) {
    size_t n = (size_t)j->source->episodes;
    int64_t *order = malloc(n * sizeof *order);
    uint8_t *held = calloc(n, 1);
    if (!order || !held) {
        free(order);
        free(held);
        return cgs_fail(CGS_ENOMEM, "%s: no memory for %zu episodes", j->source->path, n);
    }
    cgs_numpy_rng rng = cgs_numpy_rng_create(SPLIT_SEED);
    cgs_numpy_permutation(&rng, order, (int64_t)n);
    hold_out(j, order, held);
    int others = count_of(j, held, 0), validating = others / 5, trained = 0, scored = 0;
    if (validating < 1) validating = 1;
    if (validating > VALIDATION) validating = VALIDATION;
    int fitted = others - validating < FIT ? others - validating : FIT;
    take_some(j, order, held, 0, fitted, &trained, &j->parts.fit);
    take_some(j, order, held, 0, validating, &trained, &j->parts.validation);
    j->first_scored = j->episodes;
    take_some(j, order, held, 1, SCORED, &scored, &j->parts.test);
    free(order);
    free(held);
    j->r->episodes = j->episodes - j->first_scored;
    j->r->frames = j->parts.test;
    if (fitted < 1 || j->parts.validation < 2 || j->parts.test < 2)
        return cgs_fail(CGS_EARG,
                        "%s: too few episodes of a block or more: 3 are needed, to fit, validate "
                        "and score",
                        j->source->path);
    return CGS_OK;
}

/* ---- frames ---------------------------------------------------------------------------- */

/* Mean difference of two pictures, and the fraction of their pixels that differ. */
static double difference(const uint8_t *a, const uint8_t *b, size_t pixels, double *changed) {
    double sum = 0;
    size_t differ = 0;
    for (size_t i = 0; i < pixels; i++) {
        int most = 0;
        for (size_t c = 0; c < 3; c++) {
            int d = abs((int)a[3 * i + c] - (int)b[3 * i + c]);
            sum += d;
            if (d > most) most = d;
        }
        differ += most >= CHANGED;
    }
    if (changed) *changed += (double)differ / (double)pixels;
    return sum / (3 * (double)pixels);
}

static double distance(const float *a, const float *b, int D) {
    double sum = 0;
    for (int i = 0; i < D; i++) sum += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
    return sum;
}

/* neighbouring frames of an episode, and frames of the one before it */
static void add_movement(job *j, const uint8_t *now, const float *z, int frames,
                         const uint8_t *other, const float *other_z, int others) {
    size_t pixels = (size_t)j->source->height * (size_t)j->source->width, bytes = 3 * pixels;
    for (int i = 0; i + 1 < frames; i++) {
        j->moved[0] +=
            difference(now + (size_t)i * bytes, now + (size_t)(i + 1) * bytes, pixels, &j->changed);
        j->moved[1] +=
            distance(z + (size_t)i * (size_t)j->D, z + (size_t)(i + 1) * (size_t)j->D, j->D);
        j->pairs++;
    }
    for (int i = 0; i < frames && i < others; i++) {
        j->apart[0] += difference(now + (size_t)i * bytes, other + (size_t)i * bytes, pixels, NULL);
        j->apart[1] +=
            distance(z + (size_t)i * (size_t)j->D, other_z + (size_t)i * (size_t)j->D, j->D);
        j->strangers++;
    }
}

/* standardised action blocks of an episode: out (blocks, block) */
static cgs_status read_actions(const job *j, int which, float *out) {
    const cgs_source *s = j->source;
    int rows = j->blocks[which] * j->skip, dim = s->action_dim;
    int64_t first = s->ep_offset[j->episode[which]];
    CGS_TRY(s->read_rows(s->self, s->action, first, rows, 1, out));
    for (int i = 0; i < rows * dim; i++) {
        if (!isfinite(out[i]))
            return cgs_fail(CGS_EFORMAT, "%s: action %d of row %lld is %g", s->path, i % dim,
                            (long long)first + i / dim, (double)out[i]);
        out[i] = (float)((out[i] - j->model.mean[i % dim]) / j->model.std[i % dim]);
    }
    return CGS_OK;
}

static cgs_status read_frames(job *j) {
    const cgs_source *s = j->source;
    size_t bytes = (size_t)s->height * (size_t)s->width * 3, at = 0, before = 0;
    uint8_t *pixels = malloc(2 * (BLOCKS + 1) * bytes);
    cgs_status rc =
        pixels ? CGS_OK : cgs_fail(CGS_ENOMEM, "%s: no memory for %d frames", s->path, BLOCKS + 1);
    for (int i = 0; i < j->episodes && rc == CGS_OK; i++) {
        int frames = j->blocks[i] + 1;
        int64_t first = s->ep_offset[j->episode[i]];
        uint8_t *now = pixels + (i % 2 ? (BLOCKS + 1) * bytes : 0);
        uint8_t *other = pixels + (i % 2 ? 0 : (BLOCKS + 1) * bytes);
        float *z = j->z + at * (size_t)j->D;
        rc = s->read_pixels(s->self, first, frames, j->skip, now);
        if (rc == CGS_OK) rc = cgs_encoder_run(j->model.encoder, now, frames, z);
        if (rc == CGS_OK)
            rc = cgs_numeric_read(&j->numeric, s, first, frames, j->skip,
                                  j->y + at * (size_t)j->numeric.width);
        if (rc == CGS_OK) rc = read_actions(j, i, j->action + at * (size_t)j->block);
        if (rc == CGS_OK)
            add_movement(j, now, z, frames, other, j->z + before * (size_t)j->D,
                         i ? j->blocks[i - 1] + 1 : 0);
        before = at;
        at += (size_t)frames;
        if (rc == CGS_OK && !tell(j, "encode", i + 1, j->episodes))
            rc = cgs_fail(CGS_ESTOPPED, "stopped");
    }
    free(pixels);
    return rc;
}

/* ---- prediction ------------------------------------------------------------------------ */

typedef struct starts {
    int *frame; /* (count) of all frames, where an imagined stretch begins */
    int count, ahead;
} starts;

static cgs_status find_starts(starts *s, const job *j) {
    int longest = 0, at = j->parts.fit + j->parts.validation;
    for (int i = j->first_scored; i < j->episodes; i++)
        if (j->blocks[i] > longest) longest = j->blocks[i];
    s->ahead = longest < AHEAD ? longest : AHEAD;
    s->count = 0;
    s->frame = malloc((size_t)j->parts.test * sizeof *s->frame);
    if (!s->frame) return cgs_fail(CGS_ENOMEM, "no memory for %d starts", j->parts.test);
    for (int i = j->first_scored; i < j->episodes; i++) {
        for (int b = 0; b + s->ahead <= j->blocks[i]; b++) s->frame[s->count++] = at + b;
        at += j->blocks[i] + 1;
    }
    return CGS_OK;
}

static void add_errors(cgs_learned_errors *e, const float *guess, const float *from,
                       const float *to, const double *mean, int D) {
    for (int d = 0; d < D; d++) {
        double t = to[d], m = guess[d] - t, c = from[d] - t, a = mean[d] - t;
        e->model += m * m;
        e->copy += c * c;
        e->mean += a * a;
    }
}

/* imagines from some starts and adds the errors: scratch for BATCH of them */
static cgs_status imagine(job *j, cgs_rollout *r, const starts *s, int first, int n,
                          const double *mean, float *scratch) {
    size_t D = (size_t)j->D, plan = (size_t)s->ahead * (size_t)j->block;
    float *z = scratch, *plans = z + BATCH * D, *out = plans + BATCH * plan;
    for (int k = 0; k < n; k++) {
        size_t at = (size_t)s->frame[first + k];
        memcpy(z + (size_t)k * D, j->z + at * D, D * sizeof *z);
        memcpy(plans + (size_t)k * plan, j->action + at * (size_t)j->block, plan * sizeof *plans);
    }
    CGS_TRY(cgs_rollout_set(r, n, z, NULL, NULL));
    CGS_TRY(cgs_rollout_imagine(r, plans, n, 1, out));
    for (int k = 0; k < n; k++)
        for (int h = 0; h < 2; h++) {
            size_t steps = h ? (size_t)s->ahead : 1, at = (size_t)s->frame[first + k];
            const float *guess = out + ((size_t)k * (size_t)s->ahead + steps - 1) * D;
            add_errors(&j->r->ahead[h], guess, j->z + at * D, j->z + (at + steps) * D, mean, j->D);
        }
    return CGS_OK;
}

static cgs_status predict_all(job *j, const starts *s, const double *mean, float *scratch) {
    cgs_rollout *r;
    cgs_rollout_config c = {
        .episodes = BATCH, .context = 1, .horizon = s->ahead, .samples = 1, .act = j->model.act};
    CGS_TRY(cgs_rollout_create(&r, j->model.lewm, &c));
    cgs_status rc = CGS_OK;
    for (int i = 0; i < s->count && rc == CGS_OK; i += BATCH)
        rc = imagine(j, r, s, i, s->count - i < BATCH ? s->count - i : BATCH, mean, scratch);
    cgs_rollout_destroy(r);
    return rc;
}

static cgs_status predict(job *j) {
    starts s;
    size_t D = (size_t)j->D;
    CGS_TRY(find_starts(&s, j));
    double *mean = calloc(D, sizeof *mean);
    size_t each = D + (size_t)s.ahead * ((size_t)j->block + D);
    float *scratch = malloc(BATCH * each * sizeof *scratch);
    cgs_status rc =
        mean && scratch ? CGS_OK : cgs_fail(CGS_ENOMEM, "no memory for imagined latents");
    for (size_t i = 0; rc == CGS_OK && i < (size_t)j->parts.fit; i++)
        for (size_t d = 0; d < D; d++) mean[d] += (double)j->z[i * D + d] / j->parts.fit;
    if (rc == CGS_OK) rc = predict_all(j, &s, mean, scratch);
    for (int h = 0; h < 2; h++) {
        cgs_learned_errors *e = &j->r->ahead[h];
        double n = (double)s.count * (double)D;
        *e = (cgs_learned_errors){h ? s.ahead : 1, e->model / n, e->copy / n, e->mean / n};
    }
    free(s.frame);
    free(mean);
    free(scratch);
    return rc;
}

/* ---- columns --------------------------------------------------------------------------- */

/* whether all numbers of a column are finite, and some of those fitted and scored differ */
static bool usable(const job *j, int k) {
    size_t W = (size_t)j->numeric.width, rows = (size_t)cgs_parts_rows(&j->parts);
    size_t first = (size_t)j->numeric.first[k];
    size_t values = j->source->columns[j->numeric.index[k]].values;
    size_t scored = (size_t)(j->parts.fit + j->parts.validation);
    bool varies[2] = {false, false};
    for (size_t i = 0; i < rows; i++)
        for (size_t v = first; v < first + values; v++) {
            double x = j->y[i * W + v], begin = j->y[(i < scored ? 0 : scored) * W + v];
            if (!isfinite(x) || fabs(x) > 1e30) return false;
            if (fabs(x - begin) > 0) varies[i >= scored] = true;
        }
    return varies[0] && varies[1];
}

/* columns of no use become zeros, so that they do not disturb the others */
static int clear_unusable(job *j, bool *good) {
    size_t W = (size_t)j->numeric.width, rows = (size_t)cgs_parts_rows(&j->parts);
    int n = 0;
    for (int k = 0; k < j->numeric.count; k++) {
        size_t values = j->source->columns[j->numeric.index[k]].values;
        good[k] = usable(j, k);
        n += good[k];
        for (size_t i = 0; !good[k] && i < rows; i++)
            memset(j->y + i * W + (size_t)j->numeric.first[k], 0, values * sizeof *j->y);
    }
    return n;
}

static cgs_status score_columns(job *j, const bool *good, const double *linear,
                                const double *nets) {
    for (int k = 0; k < j->numeric.count; k++) {
        const cgs_column *c = &j->source->columns[j->numeric.index[k]];
        cgs_learned_column *to = &j->r->column[k];
        cgs_columns at = {j->numeric.width, j->numeric.first[k], (int)c->values};
        snprintf(to->name, sizeof to->name, "%s", c->name);
        to->linear = to->nonlinear = NAN;
        if (!good[k]) continue;
        CGS_TRY(cgs_r_squared(&j->parts, j->y, linear, at, c->name, &to->linear));
        CGS_TRY(cgs_r_squared(&j->parts, j->y, nets, at, c->name, &to->nonlinear));
    }
    return CGS_OK;
}

static bool on_nets(void *user, int done, int total) { return tell(user, "probe", done, total); }

static cgs_status probe(job *j) {
    size_t rows = (size_t)cgs_parts_rows(&j->parts), D = (size_t)j->D;
    size_t W = (size_t)j->numeric.width;
    bool good[CGS_NUMERIC_COLUMNS];
    j->r->columns = j->numeric.count;
    j->r->left_out = j->numeric.left_out;
    bool any = clear_unusable(j, good) > 0;
    double *x = malloc(rows * (D + 2 * W + 1) * sizeof *x);
    if (!x) return cgs_fail(CGS_ENOMEM, "no memory for probes of %zu frames", rows);
    double *linear = x + rows * D, *nets = linear + rows * W;
    for (size_t i = 0; i < rows * D; i++) x[i] = (double)j->z[i];
    cgs_probe_config c;
    cgs_section section = cgs_probe_section(&c);
    cgs_config_defaults(&section, 1);
    c.epochs = 60;
    c.patience = 10;
    cgs_mlp_task task = {.x = x, .y = j->y, .k = j->D, .m = j->numeric.width, .out = nets};
    cgs_status rc = CGS_OK;
    if (any)
        rc = cgs_ridge(&j->parts, x, j->D, j->y, j->numeric.width, CGS_RIDGE_COEFFICIENT,
                       "probes of columns", linear);
    if (rc == CGS_OK && any) rc = cgs_probe_fit(&j->parts, &c, &task, 1, on_nets, j);
    if (rc == CGS_OK) rc = score_columns(j, good, linear, nets);
    free(x);
    return rc;
}

/* ---- all of it ------------------------------------------------------------------------- */

static cgs_status open(job *j) {
    CGS_TRY(cgs_dataset_open(&j->data, j->o->data));
    j->source = cgs_dataset_source(j->data);
    const cgs_source *s = j->source;
    CGS_TRY(cgs_loaded_model_open(&j->model, j->o->model, j->o->device, "f32", CGS_FRAMES_BY_DEVICE,
                                  j->data));
    const cgs_lewm_config *c = &j->model.lewm->config;
    j->skip = c->frameskip;
    j->D = c->width;
    j->block = cgs_lewm_action_block(c);
    j->r->weights = j->model.weights;
    if (s->pixels < 0 || s->height != c->image_size || s->width != c->image_size)
        return cgs_fail(CGS_EARG, "%s: pictures of %d x %d pixels, the model sees %d x %d", s->path,
                        s->height, s->width, c->image_size, c->image_size);
    if (j->skip % s->pixels_every != 0)
        return cgs_fail(CGS_EARG, "%s: one row in %d has a picture, frames %d apart miss them",
                        s->path, s->pixels_every, j->skip);
    return cgs_numeric_columns(&j->numeric, s, NULL, 0);
}

static cgs_status measure(job *j) {
    CGS_TRY(open(j));
    CGS_TRY(choose(j));
    size_t frames = (size_t)cgs_parts_rows(&j->parts);
    j->z = malloc(frames * (size_t)j->D * sizeof *j->z);
    j->y = calloc(frames * (size_t)j->numeric.width + 1, sizeof *j->y);
    j->action = malloc(frames * (size_t)j->block * sizeof *j->action);
    if (!j->z || !j->y || !j->action)
        return cgs_fail(CGS_ENOMEM, "no memory for %zu latents", frames);
    CGS_TRY(read_frames(j));
    CGS_TRY(predict(j));
    CGS_TRY(probe(j));
    j->r->pixels = j->pairs > 0 ? j->changed / j->pairs : NAN;
    bool compared = j->strangers > 0 && j->apart[0] > 0 && j->apart[1] > 0 && j->pairs > 0;
    j->r->picture = compared ? j->moved[0] / j->pairs / (j->apart[0] / j->strangers) : NAN;
    j->r->latent = compared ? sqrt(j->moved[1] / j->pairs / (j->apart[1] / j->strangers)) : NAN;
    return CGS_OK;
}

cgs_status cgs_learned_measure(cgs_learned *r, const cgs_learned_options *o) {
    job j = {.o = o, .r = r};
    memset(r, 0, sizeof *r);
    cgs_status rc = measure(&j);
    free(j.z);
    free(j.y);
    free(j.action);
    cgs_loaded_model_close(&j.model);
    cgs_dataset_close(j.data);
    if (rc == CGS_OK) cgs_learned_advise(r);
    return rc;
}

/* surprise.c - see surprise.h. */
#include "analysis/surprise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "rollout/rollout.h"

static const char *const names[] = {"none", "teleport", "freeze", "black", "reverse"};

const char *cgs_edit_name(cgs_edit kind) { return names[kind]; }

cgs_status cgs_edit_parse(const char *text, cgs_edit *kind, int *step) {
    const char *at = strpbrk(text, "@:");
    size_t length = at ? (size_t)(at - text) : strlen(text);
    char *end = NULL;
    for (int k = CGS_EDIT_TELEPORT; k <= CGS_EDIT_REVERSE; k++)
        if (strlen(names[k]) == length && !strncmp(text, names[k], length)) {
            long v = at ? strtol(at + 1, &end, 10) : -1;
            if (!at || end == at + 1 || *end || v < 1 || v > 1 << 20)
                return cgs_fail(CGS_EARG, "\"%.40s\": expected %s@STEP with a step from 1 on", text,
                                names[k]);
            *kind = (cgs_edit)k;
            *step = (int)v;
            return CGS_OK;
        }
    return cgs_fail(CGS_EARG,
                    "unknown edit \"%.40s\": use teleport, freeze, black or reverse, each "
                    "followed by @STEP",
                    text);
}

/* an episode as the model sees it */
typedef struct shown {
    int steps, S, D, A; /* frames, one model step apart */
    uint8_t *frames;    /* (steps, S, S, 3) */
    float *blocks;      /* (steps, A) standardised; of the last frame unused */
    float *z;           /* (steps, D) */
} shown;

static void shown_free(shown *x) {
    free(x->frames);
    free(x->blocks);
    free(x->z);
}

/* copies frames and action blocks from `from` on of an episode to the same indices */
static cgs_status read_from(shown *x, cgs_loaded_model *s, cgs_dataset *data, int episode,
                            int from) {
    const cgs_source *src = cgs_dataset_source(data);
    const cgs_action_scale *scale = &s->scale;
    int skip = s->lewm->config.frameskip;
    size_t image = (size_t)x->S * (size_t)x->S * 3;
    if (skip % src->pixels_every != 0)
        return cgs_fail(CGS_EARG, "%s: one row in %d has an image; frames %d apart cannot be read",
                        src->path, src->pixels_every, skip);
    int64_t row = src->ep_offset[episode] + (int64_t)from * skip;
    CGS_TRY(
        src->read_pixels(src->self, row, x->steps - from, skip, x->frames + (size_t)from * image));
    for (int t = from; t + 1 < x->steps; t++) {
        float *to = x->blocks + (size_t)t * (size_t)x->A;
        row = src->ep_offset[episode] + (int64_t)t * skip;
        CGS_TRY(cgs_dataset_read_rows(data, "action", row, skip, to));
        for (int i = 0; i < x->A; i++) {
            if (!isfinite(to[i]))
                return cgs_fail(CGS_EFORMAT, "%s: action %d of row %lld is %g", src->path,
                                i % scale->dim, (long long)row + i / scale->dim, (double)to[i]);
            to[i] = (float)((to[i] - scale->mean[i % scale->dim]) / scale->std[i % scale->dim]);
        }
    }
    return CGS_OK;
}

static cgs_status open_episode(shown *x, cgs_loaded_model *s, cgs_dataset *data, int episode) {
    const cgs_source *src = cgs_dataset_source(data);
    const cgs_lewm_config *c = &s->lewm->config;
    *x = (shown){.S = c->image_size, .D = c->width, .A = cgs_lewm_action_block(c)};
    if (src->pixels < 0 || src->action < 0)
        return cgs_fail(CGS_EFORMAT, "%s: images and actions are needed", src->path);
    if (src->height != c->image_size || src->width != c->image_size)
        return cgs_fail(CGS_EARG, "%s: images of %d x %d pixels, the model sees %d x %d", src->path,
                        src->height, src->width, c->image_size, c->image_size);
    if (episode < 0 || episode >= src->episodes)
        return cgs_fail(CGS_EARG, "%s: episode %d does not exist; there are %d", src->path, episode,
                        src->episodes);
    x->steps = (src->ep_len[episode] - 1) / c->frameskip + 1;
    if (x->steps < 2)
        return cgs_fail(CGS_EARG, "%s: episode %d has %d rows, a model step is %d", src->path,
                        episode, src->ep_len[episode], c->frameskip);
    size_t n = (size_t)x->steps;
    x->frames = malloc(n * (size_t)x->S * (size_t)x->S * 3);
    x->blocks = calloc(n * (size_t)x->A, sizeof *x->blocks);
    x->z = malloc(n * (size_t)x->D * sizeof *x->z);
    if (!x->frames || !x->blocks || !x->z)
        return cgs_fail(CGS_ENOMEM, "no memory for an episode of %zu steps", n);
    return read_from(x, s, data, episode, 0);
}

/* another episode that is at least as long */
static cgs_status other_episode(const cgs_source *src, int episode, uint64_t seed, int *out) {
    cgs_rng r = cgs_rng_stream(seed, CGS_STREAM_DATA, UINT64_C(1) << 43);
    for (int tries = 0; tries < 10000; tries++) {
        int e = (int)cgs_rng_below(&r, (uint64_t)src->episodes);
        if (e != episode && src->ep_len[e] >= src->ep_len[episode]) {
            *out = e;
            return CGS_OK;
        }
    }
    return cgs_fail(CGS_EARG, "%s: no other episode has the %d rows of episode %d", src->path,
                    src->ep_len[episode], episode);
}

static cgs_status edit(shown *x, cgs_loaded_model *s, cgs_dataset *data, int episode, cgs_edit kind,
                       int step, uint64_t seed) {
    size_t image = (size_t)x->S * (size_t)x->S * 3;
    uint8_t *at = x->frames + (size_t)step * image;
    int other = episode;
    if (kind == CGS_EDIT_NONE) return CGS_OK;
    if (step < 1 || step >= x->steps)
        return cgs_fail(CGS_EARG, "%s@%d: episode %d has the steps 1 ... %d", names[kind], step,
                        episode, x->steps - 1);
    switch (kind) {
    case CGS_EDIT_TELEPORT:
        CGS_TRY(other_episode(cgs_dataset_source(data), episode, seed, &other));
        return read_from(x, s, data, other, step);
    case CGS_EDIT_FREEZE:
        for (int t = step; t < x->steps; t++)
            memcpy(x->frames + (size_t)t * image, at - image, image);
        return CGS_OK;
    case CGS_EDIT_BLACK: memset(at, 0, image); return CGS_OK;
    default: /* negated around the mean, as values are standardised */
        for (size_t i = ((size_t)step - 1) * (size_t)x->A; i < (size_t)x->steps * (size_t)x->A; i++)
            x->blocks[i] = -x->blocks[i];
        return CGS_OK;
    }
}

/* one prediction from the `context` frames before t */
static cgs_status predict(const shown *x, cgs_loaded_model *s, int context, int first, int last,
                          double *error) {
    size_t D = (size_t)x->D, A = (size_t)x->A;
    cgs_rollout_config c = {
        .episodes = 1, .context = context, .horizon = 1, .samples = 1, .group = 1, .act = s->act};
    cgs_rollout *r;
    float *next = malloc(D * sizeof *next);
    if (!next) return cgs_fail(CGS_ENOMEM, "no memory for a frame");
    cgs_status rc = cgs_rollout_create(&r, s->lewm, &c);
    for (int t = first; t <= last && rc == CGS_OK; t++) {
        size_t from = (size_t)(t - context);
        rc =
            cgs_rollout_set(r, 1, x->z + from * D, context > 1 ? x->blocks + from * A : NULL, NULL);
        if (rc == CGS_OK) rc = cgs_rollout_imagine(r, x->blocks + ((size_t)t - 1) * A, 1, 1, next);
        error[t] = 0;
        for (size_t i = 0; rc == CGS_OK && i < D; i++)
            error[t] += pow((double)next[i] - x->z[(size_t)t * D + i], 2) / (double)D;
        if (rc == CGS_OK && !isfinite(error[t]))
            rc = cgs_fail(CGS_ENUMERIC, "the prediction of step %d is not finite", t);
    }
    cgs_rollout_destroy(r);
    free(next);
    return rc;
}

cgs_status cgs_surprise_measure(cgs_surprise *out, cgs_loaded_model *s, cgs_dataset *data,
                                int episode, cgs_edit kind, int step, uint64_t seed) {
    shown x;
    *out = (cgs_surprise){0};
    cgs_status rc = open_episode(&x, s, data, episode);
    if (rc == CGS_OK) rc = edit(&x, s, data, episode, kind, step, seed);
    if (rc == CGS_OK) rc = cgs_encoder_run(s->encoder, x.frames, x.steps, x.z);
    if (rc == CGS_OK) {
        out->steps = x.steps;
        out->error = malloc((size_t)x.steps * sizeof *out->error);
        if (!out->error) rc = cgs_fail(CGS_ENOMEM, "no memory for a curve");
    }
    if (rc == CGS_OK) {
        int history = s->lewm->config.history, most = x.steps - 1;
        out->error[0] = NAN;
        /* the window grows to the history, then slides */
        for (int context = 1; context <= history && context <= most && rc == CGS_OK; context++)
            rc = predict(&x, s, context, context, context < history ? context : most, out->error);
    }
    shown_free(&x);
    if (rc != CGS_OK) {
        free(out->error);
        *out = (cgs_surprise){0};
    }
    return rc;
}

/* anchors.c - see anchors.h. */
#include "analysis/anchors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "data/windows.h"
#include "env/portable.h"
#include "env/tworooms.h"

enum { GRIPPER = 4, TRIES = 20000 };

/* ---- drawing ----------------------------------------------------------------------- */

/* the moments of an episode that count and have an image, into step (length) */
static cgs_status eligible(cgs_dataset *data, int e, int rows, cgs_anchor_rule rule, float *raw,
                           int *step, int *count) {
    const cgs_source *s = cgs_dataset_source(data);
    int length = s->ep_len[e], dim = s->action_dim, closed = 0;
    *count = 0;
    if (length < rows + 1) return CGS_OK;
    if (rule == CGS_ANCHOR_ANY) {
        for (int t = 0; t + rows < length; t += s->pixels_every) step[(*count)++] = t;
        return CGS_OK;
    }
    CGS_TRY(cgs_dataset_read_rows(data, "action", s->ep_offset[e], length - 1, raw));
    for (int t = 0; t < length - 1; t++) {
        closed = raw[t * dim + GRIPPER] > 0 ? closed + 1 : 0;
        int begin = t + 1 - rows;
        if (closed >= rows && begin % s->pixels_every == 0) step[(*count)++] = begin;
    }
    return CGS_OK;
}

cgs_status cgs_anchors_draw(cgs_anchor *out, int count, cgs_dataset *data, int rows,
                            cgs_anchor_rule rule, bool distinct, uint64_t seed) {
    const cgs_source *s = cgs_dataset_source(data);
    int longest = 0, found = 0;
    if (rule == CGS_ANCHOR_GRASP && s->action_dim <= GRIPPER)
        return cgs_fail(CGS_EARG, "%s: actions of %d numbers have no gripper", s->path,
                        s->action_dim);
    for (int e = 0; e < s->episodes; e++)
        if (s->ep_len[e] > longest) longest = s->ep_len[e];
    size_t L = (size_t)longest;
    int64_t *order = malloc((size_t)s->episodes * sizeof *order);
    int *step = malloc(L * sizeof *step);
    float *raw = malloc(L * (size_t)s->action_dim * sizeof *raw);
    cgs_status rc = order && step && raw ? CGS_OK : cgs_fail(CGS_ENOMEM, "anchors: no memory");
    cgs_rng rng = cgs_rng_stream(seed, CGS_STREAM_DATA, 1);
    for (uint64_t round = 0; rc == CGS_OK && found < count; round++) {
        int before = found;
        cgs_epoch_order(cgs_rng_stream(seed, CGS_STREAM_DATA, 0).key, round, s->episodes, order);
        for (int i = 0; i < s->episodes && found < count && rc == CGS_OK; i++) {
            int n, e = (int)order[i];
            rc = eligible(data, e, rows, rule, raw, step, &n);
            if (rc == CGS_OK && n > 0)
                out[found++] = (cgs_anchor){e, step[cgs_rng_below(&rng, (uint64_t)n)]};
        }
        if (rc == CGS_OK && found < count && (distinct || found == before))
            rc = cgs_fail(CGS_EARG,
                          "%s: %d of its %d episodes have %d%s actions in a row; %d are "
                          "needed",
                          s->path, found, s->episodes, rows,
                          rule == CGS_ANCHOR_GRASP ? " grasping" : "", count);
    }
    free(order);
    free(step);
    free(raw);
    return rc;
}

/* ---- stretches ---------------------------------------------------------------------- */

cgs_status cgs_stretch_create(cgs_stretch *s, int frames, int frameskip, int dim, int side) {
    *s = (cgs_stretch){.frames = frames, .frameskip = frameskip, .dim = dim, .side = side};
    size_t pixels = (size_t)frames * (size_t)side * (size_t)side * 3;
    size_t rows = (size_t)(frames - 1) * (size_t)frameskip;
    s->pixels = malloc(pixels);
    s->action = malloc(rows * (size_t)dim * sizeof *s->action);
    if (!s->pixels || !s->action)
        return cgs_fail(CGS_ENOMEM, "no memory for %d frames of %d pixels", frames, side);
    return CGS_OK;
}

void cgs_stretch_free(cgs_stretch *s) {
    free(s->pixels);
    free(s->action);
    memset(s, 0, sizeof *s);
}

cgs_status cgs_stretch_read(cgs_stretch *s, cgs_dataset *data, const cgs_anchor *a, int images) {
    const cgs_source *src = cgs_dataset_source(data);
    int rows = (s->frames - 1) * s->frameskip;
    if (a->episode < 0 || a->episode >= src->episodes)
        return cgs_fail(CGS_EARG, "%s: no episode %d, there are %d", src->path, a->episode,
                        src->episodes);
    if (a->step < 0 || a->step + rows >= src->ep_len[a->episode])
        return cgs_fail(CGS_EARG, "%s: %d rows after step %d of episode %d, which has %d rows",
                        src->path, rows, a->step, a->episode, src->ep_len[a->episode]);
    if (src->pixels < 0 || src->height != s->side || src->width != s->side)
        return cgs_fail(CGS_EARG, "%s: images of %d x %d pixels, %d x %d are needed", src->path,
                        src->height, src->width, s->side, s->side);
    if (a->step % src->pixels_every != 0 || s->frameskip % src->pixels_every != 0)
        return cgs_fail(CGS_EARG,
                        "%s: one row in %d has an image; step %d and frames %d apart miss",
                        src->path, src->pixels_every, a->step, s->frameskip);
    int64_t first = src->ep_offset[a->episode] + a->step;
    CGS_TRY(src->read_pixels(src->self, first, images, s->frameskip, s->pixels));
    CGS_TRY(cgs_dataset_read_rows(data, "action", first, rows, s->action));
    for (int i = 0; i < rows * s->dim; i++)
        if (!isfinite(s->action[i]))
            return cgs_fail(CGS_EFORMAT, "%s: action %d of row %lld is %g", src->path, i % s->dim,
                            (long long)first + i / s->dim, (double)s->action[i]);
    return CGS_OK;
}

void cgs_stretch_standardise(const cgs_stretch *s, const cgs_action_scale *scale, int first_block,
                             int blocks, float *out) {
    int per = s->frameskip * s->dim;
    const float *from = s->action + first_block * per;
    for (int i = 0; i < blocks * per; i++)
        out[i] = (float)((from[i] - scale->mean[i % s->dim]) / scale->std[i % s->dim]);
}

/* ---- zig-zags ----------------------------------------------------------------------- */

enum { LEG = 3 }; /* blocks */

/* one attempt; *free when it touched nothing */
static cgs_status try_zigzag(cgs_stretch *s, cgs_env *e, cgs_rng *rng, bool *is_free) {
    double start[2], swing = CGS_PI / 3;
    for (int i = 0; i < 2; i++)
        start[i] = cgs_round_f32(cgs_rng_range(rng, TWOROOMS_SPAN_LOW, TWOROOMS_SPAN_HIGH));
    double heading = cgs_rng_range(rng, 0, 2 * CGS_PI), size = cgs_rng_range(rng, 0.25, 0.45);
    size_t frame = (size_t)s->side * (size_t)s->side * 3;
    int blocks = s->frames - 1;
    *is_free = false;
    CGS_TRY(cgs_env_start(e, start, 2));
    for (int b = 0; b < blocks; b++) {
        double v[2], angle = heading + (b / LEG % 2 ? swing : -swing);
        cgs_sincos(angle + (b >= blocks / 2 ? CGS_PI : 0), &v[1], &v[0]);
        CGS_TRY(cgs_env_render(e, s->side, s->pixels + (size_t)b * frame));
        for (int k = 0; k < s->frameskip; k++) {
            float *a = s->action + (b * s->frameskip + k) * 2;
            double before[2] = {e->state[0], e->state[1]};
            for (int i = 0; i < 2; i++) {
                a[i] = (float)(size * v[i]);
                e->action[i] = a[i];
            }
            cgs_env_step(e);
            for (int i = 0; i < 2; i++)
                if (fabs(e->state[i] - before[i] - (double)TWOROOMS_SPEED * a[i]) > 1e-3)
                    return CGS_OK;
        }
    }
    *is_free = true;
    return cgs_env_render(e, s->side, s->pixels + (size_t)blocks * frame);
}

cgs_status cgs_zigzag(cgs_stretch *s, const cgs_env_class *env, uint64_t seed, int number) {
    cgs_env *e;
    if (strcmp(env->id, "tworooms"))
        return cgs_fail(CGS_EARG, "%s: zig-zag rollouts are for tworooms", env->id);
    CGS_TRY(cgs_env_create(&e, env));
    cgs_rng rng = cgs_rng_stream(seed, CGS_STREAM_POLICY, (uint64_t)number);
    cgs_status rc = CGS_OK;
    bool is_free = false;
    for (int i = 0; i < TRIES && rc == CGS_OK && !is_free; i++)
        rc = try_zigzag(s, e, &rng, &is_free);
    if (rc == CGS_OK && !is_free)
        rc = cgs_fail(CGS_EARG, "no zig-zag of %d frames fits into a room", s->frames);
    cgs_env_destroy(e);
    return rc;
}

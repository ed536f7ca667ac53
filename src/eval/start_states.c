/* start_states.c - see start_states.h. */
#include "eval/start_states.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/team.h"
#include "eval/recorded_image.h"

cgs_status cgs_state_column(const cgs_source *s, const cgs_env_class *env, const char **name) {
    *name = "state";
    int at = cgs_source_find(s, *name);
    if (at >= 0 && s->columns[at].values == (size_t)env->state_dim) return CGS_OK;
    /* published files of some environments store the state under the name of an observation */
    for (int i = 0; i < env->column_count; i++) {
        at = cgs_source_find(s, env->columns[i].name);
        if (env->columns[i].dim != env->state_dim || env->columns[i].whole || at < 0) continue;
        *name = env->columns[i].name;
        if (s->columns[at].values == (size_t)env->state_dim) return CGS_OK;
    }
    return cgs_fail(CGS_EFORMAT, "%s: no column holds the %d numbers of a state of %s", s->path,
                    env->state_dim, env->id);
}

void cgs_start_states_free(cgs_start_states *c) {
    free(c->state);
    free(c->goal_state);
    free(c->z);
    free(c->past);
    free(c->goal);
    free(c->seed);
    free(c->id);
    memset(c, 0, sizeof *c);
}

static bool allocate(cgs_start_states *c) {
    size_t n = (size_t)c->count, C = (size_t)c->context, D = (size_t)c->D;
    size_t states = n * (size_t)c->state_dim + 1;
    c->state = malloc(states * sizeof *c->state);
    c->goal_state = malloc(states * sizeof *c->goal_state);
    c->z = malloc(n * C * D * sizeof *c->z);
    c->past = malloc((n * (C - 1) * (size_t)c->A + 1) * sizeof *c->past);
    c->goal = malloc(n * D * sizeof *c->goal);
    return c->state && c->goal_state && c->z && c->past && c->goal;
}

/* the action blocks that lead to the start: past (C - 1, A) */
static cgs_status read_past(const cgs_start_states *c, cgs_dataset *data, const cgs_start *s,
                            const cgs_action_scale *scale, float *past) {
    const char *path = cgs_dataset_source(data)->path;
    int rows = (c->context - 1) * scale->frameskip;
    for (int i = 0; i < rows; i++) {
        int64_t step = s->step - rows + i;
        float raw[CGS_ENV_MAX_DIM] = {0}; /* before the episode: raw zeros */
        if (step >= 0)
            CGS_TRY(cgs_dataset_read_rows(data, "action", s->row - s->step + step, 1, raw));
        for (int k = 0; k < scale->dim; k++) {
            if (!isfinite(raw[k]))
                return cgs_fail(CGS_EFORMAT, "%s: action %d of row %lld is %g", path, k,
                                (long long)(s->row - s->step + step), (double)raw[k]);
            past[i * scale->dim + k] = (float)((raw[k] - scale->mean[k]) / scale->std[k]);
        }
    }
    return CGS_OK;
}

/* proprioception of one row, standardised */
static cgs_status read_proprio(cgs_dataset *data, int64_t row, const cgs_proprio_scale *p,
                               float *out) {
    if (!p || !p->dim) return CGS_OK;
    const cgs_source *s = cgs_dataset_source(data);
    int at = cgs_source_find(s, p->column);
    if (at < 0 || s->columns[at].values != (size_t)p->dim)
        return cgs_fail(CGS_EFORMAT, "%s: no column \"%s\" of %d numbers", s->path, p->column,
                        p->dim);
    CGS_TRY(cgs_dataset_read_rows(data, p->column, row, 1, out));
    for (int i = 0; i < p->dim; i++) {
        if (!isfinite(out[i]))
            return cgs_fail(CGS_EFORMAT, "%s: \"%s\" of row %lld is %g", s->path, p->column,
                            (long long)row, (double)out[i]);
        out[i] = (float)((out[i] - p->mean[i]) / p->std[i]);
    }
    return CGS_OK;
}

/* per-thread reader */
typedef struct reader {
    cgs_start_states *c;
    cgs_recorded_images images;
    int goal_offset;
    const cgs_action_scale *scale;
    const cgs_proprio_scale *proprio;
} reader;

/* everything of start state i but its latents: frames (C + 1, ...) are context, then the goal */
static cgs_status read_case(reader *r, int i, const cgs_start *s, uint8_t *frames, size_t frame,
                            float *sensed) {
    cgs_start_states *c = r->c;
    cgs_dataset *data = r->images.data;
    const char *column = r->images.state;
    int64_t first = s->row - s->step;
    int senses = r->proprio ? r->proprio->dim : 0;
    size_t n = (size_t)i, C = (size_t)c->context, dim = (size_t)c->state_dim;
    if (dim > 0) {
        CGS_TRY(cgs_dataset_read_rows_f64(data, column, s->row, 1, c->state + n * dim));
        CGS_TRY(cgs_dataset_read_rows_f64(data, column, s->row + r->goal_offset, 1,
                                          c->goal_state + n * dim));
    }
    for (int k = 0; k < c->context; k++) {
        int64_t step = s->step - (int64_t)(c->context - 1 - k) * r->scale->frameskip;
        if (step < 0) step = 0;
        CGS_TRY(cgs_recorded_images_read(&r->images, first, step, frames + (size_t)k * frame));
        CGS_TRY(read_proprio(data, first + step, r->proprio, sensed + k * senses));
    }
    CGS_TRY(
        cgs_recorded_images_read(&r->images, first, s->step + r->goal_offset, frames + C * frame));
    CGS_TRY(read_proprio(data, s->row + r->goal_offset, r->proprio, sensed + c->context * senses));
    return read_past(c, data, s, r->scale, c->past + n * (C - 1) * (size_t)c->A);
}

enum { TOGETHER = 32 }; /* start states that are read, then encoded, at a time */

typedef struct read_buffers {
    uint8_t *frames; /* (TOGETHER, C + 1, S, S, 3) */
    float *sensed;   /* (TOGETHER, C + 1, proprio) */
    float *z;        /* (TOGETHER, C + 1, D) */
} read_buffers;

typedef struct batch {
    const reader *like;
    const cgs_env_class *env;
    const cgs_start *start;
    int at, n;
    size_t frame;
    const read_buffers *o;
    cgs_failure failure;
} batch;

static void read_batch(void *context) {
    batch *b = context;
    reader r = *b->like;
    size_t F = (size_t)r.c->context + 1;
    size_t senses = r.proprio ? (size_t)r.proprio->dim : 0;
    cgs_status rc = cgs_recorded_images_open(&r.images, b->like->images.data, b->env);
    CGS_QUEUE (i, (size_t)b->n) {
        if (rc == CGS_OK)
            rc =
                read_case(&r, b->at + (int)i, &b->start[b->at + (int)i],
                          b->o->frames + i * F * b->frame, b->frame, b->o->sensed + i * F * senses);
    }
    cgs_failure_note(&b->failure, rc);
    cgs_recorded_images_close(&r.images);
}

/* start states at ... at + n - 1, every thread with its own reader: rendering missing images takes
 * long */
static cgs_status read_some(const reader *like, const cgs_env_class *env, const cgs_starts *starts,
                            int at, int n, size_t frame, const read_buffers *o) {
    batch b = {like, env, starts->start, at, n, frame, o, {0}};
    cgs_together(0, read_batch, &b);
    return cgs_failure_report(&b.failure);
}

static cgs_status read_all(const reader *like, const cgs_env_class *env, const cgs_starts *starts,
                           cgs_encoder *encoder, size_t frame, const read_buffers *o) {
    cgs_start_states *c = like->c;
    size_t C = (size_t)c->context, D = (size_t)c->D;
    bool senses = like->proprio && like->proprio->dim;
    for (int at = 0; at < c->count; at += TOGETHER) {
        int n = c->count - at < TOGETHER ? c->count - at : TOGETHER;
        CGS_TRY(read_some(like, env, starts, at, n, frame, o));
        CGS_TRY(cgs_encoder_sense(encoder, o->frames, senses ? o->sensed : NULL,
                                  n * (c->context + 1), o->z));
        for (size_t i = 0; i < (size_t)n; i++) {
            const float *z = o->z + i * (C + 1) * D;
            size_t to = (size_t)at + i;
            memcpy(c->z + to * C * D, z, C * D * sizeof *z);
            memcpy(c->goal + to * D, z + C * D, D * sizeof *z);
        }
    }
    return CGS_OK;
}

cgs_status cgs_start_states_build(cgs_start_states *c, cgs_dataset *data, const cgs_env_class *env,
                                  const cgs_starts *starts, cgs_encoder *encoder,
                                  const cgs_model *m, const cgs_action_scale *scale,
                                  const cgs_proprio_scale *proprio, int context) {
    const cgs_source *s = cgs_dataset_source(data);
    int S = m->image_size;
    memset(c, 0, sizeof *c);
    if (s->pixels < 0) return cgs_fail(CGS_EFORMAT, "%s: has no images", s->path);
    if (s->height != S || s->width != S)
        return cgs_fail(CGS_EARG, "%s: images of %d x %d pixels, the model sees %d x %d", s->path,
                        s->height, s->width, S, S);
    c->count = starts->count;
    c->context = context;
    c->state_dim = env ? env->state_dim : 0;
    c->D = m->width;
    c->A = cgs_model_action_block(m);
    size_t frame = (size_t)S * (size_t)S * 3, n = TOGETHER * ((size_t)context + 1);
    size_t senses = proprio ? (size_t)proprio->dim : 0;
    reader like = {.c = c,
                   .images = {.data = data},
                   .goal_offset = starts->rule.goal_offset,
                   .scale = scale,
                   .proprio = proprio};
    read_buffers o = {.frames = malloc(n * frame),
                      .sensed = malloc((n * senses + 1) * sizeof *o.sensed),
                      .z = malloc(n * (size_t)c->D * sizeof *o.z)};
    cgs_status rc = CGS_OK;
    if (!o.frames || !o.z || !o.sensed || !allocate(c))
        rc = cgs_fail(CGS_ENOMEM, "%s: no memory for %d starts", s->path, c->count);
    if (rc == CGS_OK) rc = read_all(&like, env, starts, encoder, frame, &o);
    free(o.sensed);
    free(o.frames);
    free(o.z);
    return rc;
}

/* ---- several lists ----------------------------------------------------------------- */

/* appends `more` elements to the first `n` of *list */
static bool append(void **list, size_t size, size_t n, const void *more, size_t count) {
    char *p = realloc(*list, (n + count) * size + 1);
    if (!p) return false;
    *list = p;
    if (more) memcpy(p + n * size, more, count * size);
    return true;
}

#define APPEND(field, values)                                                                      \
    append((void **)&all->field, sizeof *all->field *(size_t)(values), n, list->field, count)

cgs_status cgs_start_states_append(cgs_start_states *all, const cgs_start_states *list,
                                   uint64_t seed) {
    size_t n = (size_t)all->count, count = (size_t)list->count;
    if (n == 0) {
        all->context = list->context;
        all->state_dim = list->state_dim;
        all->D = list->D;
        all->A = list->A;
    }
    if (!APPEND(state, list->state_dim) || !APPEND(goal_state, list->state_dim) ||
        !APPEND(z, list->context * list->D) || !APPEND(past, (list->context - 1) * list->A) ||
        !APPEND(goal, list->D) || !APPEND(seed, 1) || !APPEND(id, 1))
        return cgs_fail(CGS_ENOMEM, "evaluation: no memory for %zu starts", n + count);
    for (size_t i = 0; i < count; i++) {
        all->seed[n + i] = seed;
        all->id[n + i] = i;
    }
    all->count += list->count;
    return CGS_OK;
}

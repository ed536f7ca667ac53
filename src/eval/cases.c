/* cases.c - see cases.h. */
#include "eval/cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "eval/picture.h"

cgs_status cgs_state_column(const cgs_source *s, const cgs_env_class *env, const char **name) {
    *name = "state";
    int at = cgs_source_find(s, *name);
    if (at >= 0 && s->columns[at].values == (size_t)env->state_dim) return CGS_OK;
    /* published files of some environments have the state under the name of a reading */
    for (int i = 0; i < env->column_count; i++) {
        at = cgs_source_find(s, env->columns[i].name);
        if (env->columns[i].dim != env->state_dim || env->columns[i].whole || at < 0) continue;
        *name = env->columns[i].name;
        if (s->columns[at].values == (size_t)env->state_dim) return CGS_OK;
    }
    return cgs_fail(CGS_EFORMAT, "%s: no column holds the %d numbers of a state of %s", s->path,
                    env->state_dim, env->id);
}

void cgs_cases_free(cgs_cases *c) {
    free(c->state);
    free(c->goal_state);
    free(c->z);
    free(c->past);
    free(c->goal);
    memset(c, 0, sizeof *c);
}

static bool allocate(cgs_cases *c) {
    size_t n = (size_t)c->count, C = (size_t)c->context, D = (size_t)c->D;
    size_t states = n * (size_t)c->state_dim;
    c->state = malloc(states * sizeof *c->state);
    c->goal_state = malloc(states * sizeof *c->goal_state);
    c->z = malloc(n * C * D * sizeof *c->z);
    c->past = malloc((n * (C - 1) * (size_t)c->A + 1) * sizeof *c->past);
    c->goal = malloc(n * D * sizeof *c->goal);
    return c->state && c->goal_state && c->z && c->past && c->goal;
}

/* the blocks that lead to the start: past (C - 1, A) */
static cgs_status read_past(const cgs_cases *c, cgs_dataset *data, const cgs_start *s,
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

static cgs_status read_case(cgs_cases *c, int i, cgs_pictures *p, const cgs_start *s,
                            int goal_offset, cgs_encoder *encoder, const cgs_action_scale *scale,
                            const cgs_proprio_scale *proprio, uint8_t *frames, size_t frame,
                            float *sensed, float *z) {
    cgs_dataset *data = p->data;
    int64_t first = s->row - s->step;
    int senses = proprio ? proprio->dim : 0;
    size_t n = (size_t)i, C = (size_t)c->context, D = (size_t)c->D, dim = (size_t)c->state_dim;
    CGS_TRY(cgs_dataset_read_rows_f64(data, p->state, s->row, 1, c->state + n * dim));
    CGS_TRY(cgs_dataset_read_rows_f64(data, p->state, s->row + goal_offset, 1,
                                      c->goal_state + n * dim));
    /* context frames, then the goal */
    for (int k = 0; k < c->context; k++) {
        int64_t step = s->step - (int64_t)(c->context - 1 - k) * scale->frameskip;
        if (step < 0) step = 0;
        CGS_TRY(cgs_pictures_read(p, first, step, frames + (size_t)k * frame));
        CGS_TRY(read_proprio(data, first + step, proprio, sensed + k * senses));
    }
    CGS_TRY(cgs_pictures_read(p, first, s->step + goal_offset, frames + C * frame));
    CGS_TRY(read_proprio(data, s->row + goal_offset, proprio, sensed + c->context * senses));
    CGS_TRY(cgs_encoder_sense(encoder, frames, senses ? sensed : NULL, c->context + 1, z));
    memcpy(c->z + n * C * D, z, C * D * sizeof *z);
    memcpy(c->goal + n * D, z + C * D, D * sizeof *z);
    return read_past(c, data, s, scale, c->past + n * (C - 1) * (size_t)c->A);
}

cgs_status cgs_cases_build(cgs_cases *c, cgs_dataset *data, const cgs_env_class *env,
                           const cgs_starts *starts, cgs_encoder *encoder, const cgs_model *m,
                           const cgs_action_scale *scale, const cgs_proprio_scale *proprio,
                           int context) {
    const cgs_source *s = cgs_dataset_source(data);
    cgs_pictures pictures = {0};
    int S = m->image_size;
    memset(c, 0, sizeof *c);
    if (s->pixels < 0) return cgs_fail(CGS_EFORMAT, "%s: has no pictures", s->path);
    if (s->height != S || s->width != S)
        return cgs_fail(CGS_EARG, "%s: pictures of %d x %d pixels, the model sees %d x %d", s->path,
                        s->height, s->width, S, S);
    c->count = starts->count;
    c->context = context;
    c->state_dim = env->state_dim;
    c->D = m->width;
    c->A = cgs_model_block(m);
    size_t frame = (size_t)S * (size_t)S * 3, F = (size_t)context + 1;
    uint8_t *frames = malloc(F * frame);
    float *z = malloc(F * (size_t)c->D * sizeof *z);
    float *sensed = malloc((F * (size_t)(proprio ? proprio->dim : 0) + 1) * sizeof *sensed);
    cgs_status rc = cgs_pictures_open(&pictures, data, env);
    if (rc == CGS_OK && (!frames || !z || !sensed || !allocate(c)))
        rc = cgs_fail(CGS_ENOMEM, "%s: no memory for %d starts", s->path, c->count);
    for (int i = 0; i < c->count && rc == CGS_OK; i++)
        rc = read_case(c, i, &pictures, &starts->start[i], starts->rule.goal_offset, encoder, scale,
                       proprio, frames, frame, sensed, z);
    cgs_pictures_close(&pictures);
    free(sensed);
    free(frames);
    free(z);
    return rc;
}

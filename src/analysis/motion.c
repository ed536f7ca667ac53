/* motion.c - see motion.h. */
#include "analysis/motion.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/numpy_rng.h"
#include "env/portable.h"
#include "eval/start_states.h"

static cgs_target named(const char *name, int first, int count) {
    cgs_target t = {.first = first, .count = count};
    snprintf(t.name, sizeof t.name, "%s", name);
    return t;
}

int cgs_env_targets(const cgs_env_class *env, cgs_target target[CGS_MAX_TARGETS]) {
    int n = 0;
    for (int i = 0; i < cgs_env_feature_count(env); i++) {
        const char *name = cgs_env_feature_at(env, i).target;
        if (n > 0 && !strcmp(target[n - 1].name, name))
            target[n - 1].count++;
        else if (n < CGS_MAX_TARGETS)
            target[n++] = named(name, i, 1);
    }
    return n;
}

/* The published probes see poses in PushT, whose state ends with two velocities.  An angle in [0, 2
 * pi) jumps where the pose does not, so it is given as a point of the circle. */
int cgs_env_condition(const cgs_env_class *env, const double *state, double *out) {
    bool poses = !strcmp(env->id, "pusht");
    int n = poses ? 6 : env->state_dim;
    if (!state) return n;
    memcpy(out, state, (size_t)(poses ? 4 : n) * sizeof *out);
    if (poses) cgs_sincos(state[4], &out[4], &out[5]);
    return n;
}

/* ---- states ------------------------------------------------------------------------ */

static cgs_status read_joined(cgs_dataset *data, const cgs_env_class *env, int64_t first, int count,
                              double *out) {
    static const char *const names[2] = {"qpos", "qvel"};
    const cgs_source *s = cgs_dataset_source(data);
    size_t width[2] = {0, 0}, S = (size_t)env->state_dim;
    for (int i = 0; i < 2; i++) {
        int at = cgs_source_find(s, names[i]);
        if (at >= 0) width[i] = s->columns[at].values;
    }
    const char *unused;
    if (!width[0] || !width[1] || width[0] + width[1] != S)
        return cgs_state_column(s, env, &unused); /* the sentence of the failure is right */
    double *part = malloc((size_t)count * S * sizeof *part);
    if (!part) return cgs_fail(CGS_ENOMEM, "%s: no memory for %d states", s->path, count);
    cgs_status rc = CGS_OK;
    for (int i = 0; i < 2 && rc == CGS_OK; i++) {
        rc = cgs_dataset_read_rows_f64(data, names[i], first, count, part);
        for (size_t r = 0; r < (size_t)count && rc == CGS_OK; r++)
            memcpy(out + r * S + (i ? width[0] : 0), part + r * width[i], width[i] * sizeof *out);
    }
    free(part);
    return rc;
}

cgs_status cgs_read_states(cgs_dataset *data, const cgs_env_class *env, int64_t first, int count,
                           double *out) {
    const char *name;
    if (cgs_state_column(cgs_dataset_source(data), env, &name) == CGS_OK)
        CGS_TRY(cgs_dataset_read_rows_f64(data, name, first, count, out));
    else
        CGS_TRY(read_joined(data, env, first, count, out));
    for (size_t i = 0; i < (size_t)count * (size_t)env->state_dim; i++)
        if (!isfinite(out[i]))
            return cgs_fail(CGS_EFORMAT, "%s: number %d of the state of row %lld is %g",
                            cgs_dataset_source(data)->path, (int)(i % (size_t)env->state_dim),
                            (long long)first + (long long)(i / (size_t)env->state_dim), out[i]);
    return CGS_OK;
}

/* ---- episodes and parts ------------------------------------------------------------ */

static cgs_status choose(cgs_motion *m, const cgs_source *s) {
    int n = m->episodes, fit = n * 7 / 10, validation = n / 10;
    if (n < 10)
        return cgs_fail(CGS_EARG,
                        "%d episodes cannot be divided into 70 %% fitted, 10 %% validating and "
                        "20 %% scored; at least 10 are needed",
                        n);
    if (n > s->episodes)
        return cgs_fail(CGS_EARG, "%s: %d episodes, the probes need %d (--episodes N)", s->path,
                        s->episodes, n);
    int64_t *order = malloc((size_t)s->episodes * sizeof *order);
    m->episode = malloc((size_t)n * sizeof *m->episode);
    m->blocks = malloc((size_t)n * sizeof *m->blocks);
    if (!order || !m->episode || !m->blocks) {
        free(order);
        return cgs_fail(CGS_ENOMEM, "%s: no memory for %d episodes", s->path, n);
    }
    cgs_numpy_rng rng = cgs_numpy_rng_create(CGS_PROBE_SPLIT_SEED);
    cgs_numpy_permutation(&rng, order, s->episodes);
    for (int i = 0; i < n; i++) {
        m->episode[i] = (int)order[i];
        m->blocks[i] = (s->ep_len[m->episode[i]] - 1) / m->frameskip;
        int *part = i < fit                ? &m->parts.fit
                    : i < fit + validation ? &m->parts.validation
                                           : &m->parts.test;
        *part += m->blocks[i];
    }
    free(order);
    if (m->parts.fit < 2 || m->parts.validation < 1 || m->parts.test < 2)
        return cgs_fail(CGS_EARG,
                        "%s: %d, %d and %d blocks of %d actions to fit, validate and score; 2, 1 "
                        "and 2 are needed",
                        s->path, m->parts.fit, m->parts.validation, m->parts.test, m->frameskip);
    return CGS_OK;
}

/* The features before and after each block of an episode, whose states are in raw: of an
 * environment every row, of columns those that are frameskip apart. */
static void fill_by_env(cgs_motion *m, size_t at, size_t blocks, const double *raw) {
    size_t S = (size_t)m->env->state_dim;
    for (size_t b = 0; b < blocks; b++) {
        double now[CGS_ENV_MAX_DIM], then[CGS_ENV_MAX_DIM];
        const double *before = raw + b * (size_t)m->frameskip * S;
        double *change = m->change + (at + b) * (size_t)m->F;
        cgs_env_condition(m->env, before, m->state + (at + b) * (size_t)m->S);
        cgs_env_features(m->env, before, now);
        cgs_env_features(m->env, before + (size_t)m->frameskip * S, then);
        for (int f = 0; f < m->F; f++) {
            change[f] = then[f] - now[f];
            if (cgs_env_feature_at(m->env, f).angle) change[f] = cgs_wrap_half_turn(change[f]);
        }
    }
}

static void fill_by_columns(cgs_motion *m, size_t at, size_t blocks, const double *raw) {
    size_t F = (size_t)m->F;
    for (size_t i = 0; i < blocks * F; i++) {
        m->state[at * F + i] = raw[i];
        m->change[at * F + i] = raw[i + F] - raw[i];
    }
}

/* the transitions of one episode, after `at` earlier ones; raw: scratch for rows * width */
static cgs_status read_episode(cgs_motion *m, cgs_dataset *data, int which, size_t at,
                               double *raw) {
    const cgs_source *s = cgs_dataset_source(data);
    int e = m->episode[which], dim = s->action_dim;
    int64_t first = s->ep_offset[e];
    size_t blocks = (size_t)m->blocks[which], A = (size_t)m->A;
    if (blocks == 0) return CGS_OK;
    int rows = (int)blocks * m->frameskip;
    CGS_TRY(cgs_dataset_read_rows_f64(data, "action", first, rows, m->action + at * A));
    for (size_t i = 0; i < blocks * A; i++)
        if (!isfinite(m->action[at * A + i]))
            return cgs_fail(CGS_EFORMAT, "%s: action %d of row %lld is %g", s->path,
                            (int)(i % (size_t)dim), (long long)first + (long long)i / dim,
                            m->action[at * A + i]);
    if (m->env) {
        CGS_TRY(cgs_read_states(data, m->env, first, rows + 1, raw));
        fill_by_env(m, at, blocks, raw);
    } else {
        CGS_TRY(cgs_numeric_read(&m->numeric, s, first, (int)blocks + 1, m->frameskip, raw));
        fill_by_columns(m, at, blocks, raw);
    }
    return CGS_OK;
}

static cgs_status read_all(cgs_motion *m, cgs_dataset *data) {
    const cgs_source *s = cgs_dataset_source(data);
    if (s->action < 0) return cgs_fail(CGS_EARG, "%s: no actions", s->path);
    if (m->env && s->action_dim != m->env->action_dim)
        return cgs_fail(CGS_EARG, "%s: actions of %d numbers, %s has %d", s->path, s->action_dim,
                        m->env->id, m->env->action_dim);
    CGS_TRY(choose(m, s));
    size_t rows = (size_t)cgs_parts_rows(&m->parts), longest = 0;
    for (int i = 0; i < m->episodes; i++)
        if ((size_t)s->ep_len[m->episode[i]] > longest) longest = (size_t)s->ep_len[m->episode[i]];
    m->action = malloc(rows * (size_t)m->A * sizeof *m->action);
    m->state = malloc(rows * (size_t)m->S * sizeof *m->state);
    m->change = malloc(rows * (size_t)m->F * sizeof *m->change);
    size_t width = m->env ? (size_t)m->env->state_dim : (size_t)m->F;
    double *raw = malloc(longest * width * sizeof *raw);
    cgs_status rc = CGS_OK;
    if (!m->action || !m->state || !m->change || !raw)
        rc = cgs_fail(CGS_ENOMEM, "%s: no memory for %zu transitions", s->path, rows);
    size_t at = 0;
    for (int i = 0; i < m->episodes && rc == CGS_OK; i++) {
        rc = read_episode(m, data, i, at, raw);
        at += (size_t)m->blocks[i];
    }
    free(raw);
    return rc;
}

cgs_status cgs_motion_read(cgs_motion *m, cgs_dataset *data, const cgs_env_class *env,
                           int frameskip, int episodes) {
    *m = (cgs_motion){.env = env, .world = env->id, .frameskip = frameskip, .episodes = episodes};
    m->A = frameskip * env->action_dim;
    m->S = cgs_env_condition(env, NULL, NULL);
    m->F = cgs_env_feature_count(env);
    m->targets = cgs_env_targets(env, m->target);
    cgs_status rc = read_all(m, data);
    if (rc != CGS_OK) cgs_motion_free(m);
    return rc;
}

/* numbers that are not finite would spoil every probe: they become zeros, and the target is not
 * used */
static void clear_spoiled(cgs_motion *m) {
    size_t rows = (size_t)cgs_parts_rows(&m->parts), F = (size_t)m->F;
    for (size_t f = 0; f < F; f++) {
        bool fine = true;
        for (size_t i = 0; fine && i < rows; i++)
            fine = isfinite(m->state[i * F + f]) && isfinite(m->change[i * F + f]);
        for (size_t i = 0; !fine && i < rows; i++) m->state[i * F + f] = m->change[i * F + f] = 0;
    }
}

cgs_status cgs_motion_read_columns(cgs_motion *m, cgs_dataset *data, const char *const *only,
                                   int count, int frameskip, int episodes) {
    const cgs_source *s = cgs_dataset_source(data);
    *m = (cgs_motion){.world = "", .frameskip = frameskip, .episodes = episodes};
    CGS_TRY(cgs_numeric_columns(&m->numeric, s, only, count));
    if (!m->numeric.count)
        return cgs_fail(CGS_EARG, "%s: no columns of numbers beside actions", s->path);
    m->A = frameskip * s->action_dim;
    m->S = m->F = m->numeric.width;
    for (int k = 0; k < m->numeric.count; k++) {
        const cgs_column *c = &s->columns[m->numeric.index[k]];
        m->target[m->targets++] = named(c->name, m->numeric.first[k], (int)c->values);
    }
    cgs_status rc = read_all(m, data);
    if (rc == CGS_OK)
        clear_spoiled(m);
    else
        cgs_motion_free(m);
    return rc;
}

bool cgs_motion_varies(const cgs_motion *m, int target) {
    const cgs_target *t = &m->target[target];
    size_t F = (size_t)m->F, rows = (size_t)cgs_parts_rows(&m->parts);
    size_t scored = rows - (size_t)m->parts.test;
    bool varies[2] = {false, false};
    for (size_t i = 0; i < rows; i++)
        for (size_t f = (size_t)t->first; f < (size_t)(t->first + t->count); f++)
            if (fabs(m->change[i * F + f] - m->change[(i < scored ? 0 : scored) * F + f]) > 0)
                varies[i >= scored] = true;
    return varies[0] && varies[1];
}

void cgs_motion_free(cgs_motion *m) {
    free(m->episode);
    free(m->blocks);
    free(m->action);
    free(m->state);
    free(m->change);
    memset(m, 0, sizeof *m);
}

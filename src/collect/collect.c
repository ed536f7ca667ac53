/* collect.c - see collect.h.  Every thread simulates, renders and packs its own episodes; the
 * thread that has the next episode in order appends it. */
#include "collect/collect.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/team.h"
#include "core/threads.h"
#include "data/writer.h"
#include "env/policy.h"

/* pixels, action, state, terminated; then the environment's own */
enum { FIXED = 4, MAX_COLUMNS = FIXED + 20 };
enum { ATTEMPTS = 100 }; /* per episode, before its simulation is given up */

/* one thread's environment, policy and episode */
typedef struct worker {
    cgs_env *env;
    cgs_policy *policy;
    int rows;
    void *data[MAX_COLUMNS]; /* (limit + 1, shape of column) */
    cgs_episode packed;
} worker;

typedef struct job {
    const cgs_collect_options *o;
    const cgs_env_class *env;
    const cgs_policy_class *policy;
    cgs_column_spec columns[MAX_COLUMNS]; /* the first is not written without images */
    int column_count;
    cgs_writer *writer;
    int64_t next;         /* episode to be written next */
    int64_t first, turn;  /* the first one of this call, and the next to be written */
    pthread_mutex_t lock; /* of turn and of the result */
    pthread_cond_t turn_changed;
    cgs_failure failure;
    cgs_collect_result *result;
} job;

static cgs_column_spec vector(const char *name, cgs_column_type t, int dim) {
    return (cgs_column_spec){.name = name, .dtype = t, .rank = 1, .shape = {dim}};
}

static void declare_columns(job *j) {
    int64_t side = j->o->side;
    cgs_column_spec *c = j->columns;
    *c++ = (cgs_column_spec){
        .name = "pixels", .dtype = CGS_COL_U8, .rank = 3, .shape = {side, side, 3}};
    *c++ = vector("action", CGS_COL_F32, j->env->action_dim);
    *c++ = vector("state", CGS_COL_F32, j->env->state_dim);
    *c++ = (cgs_column_spec){.name = "terminated", .dtype = CGS_COL_U8, .rank = 0};
    for (int i = 0; i < j->env->column_count; i++) {
        const cgs_env_column *e = &j->env->columns[i];
        *c = vector(e->name, e->whole ? CGS_COL_I32 : CGS_COL_F32, e->dim);
        if (e->whole && e->dim == 1) c->rank = 0;
        c++;
    }
    j->column_count = (int)(c - j->columns);
}

static size_t row_bytes(const cgs_column_spec *c) {
    size_t n = cgs_column_type_size(c->dtype);
    for (int i = 0; i < c->rank; i++) n *= (size_t)c->shape[i];
    return n;
}

/* ---- one episode ---------------------------------------------------------------- */

static void worker_free(job *j, worker *w) {
    cgs_env_destroy(w->env);
    cgs_policy_destroy(w->policy);
    for (int i = 0; i < j->column_count; i++) free(w->data[i]);
    cgs_episode_free(&w->packed);
}

static cgs_status worker_make(job *j, worker *w) {
    memset(w, 0, sizeof *w);
    CGS_TRY(cgs_env_create(&w->env, j->env));
    CGS_TRY(cgs_policy_create(&w->policy, j->policy));
    for (int i = 0; i < j->column_count; i++) {
        w->data[i] = malloc((size_t)(j->env->limit + 1) * row_bytes(&j->columns[i]) + 1);
        if (!w->data[i])
            return cgs_fail(CGS_ENOMEM, "no memory for an episode of %d images of %d pixels",
                            j->env->limit + 1, j->o->side);
    }
    return CGS_OK;
}

/* everything of the present row except its action, which is not known yet */
static cgs_status record(job *j, worker *w, int row) {
    cgs_env *e = w->env;
    size_t frame = row_bytes(&j->columns[0]);
    uint8_t *image = (uint8_t *)w->data[0] + (size_t)row * frame;
    if (frame > 0 && j->o->every > 1 && row % j->o->every != 0)
        memset(image, 0, frame);
    else if (frame > 0)
        CGS_TRY(cgs_env_render(e, j->o->side, image));
    float *state = (float *)w->data[2] + (size_t)row * (size_t)j->env->state_dim;
    for (int i = 0; i < j->env->state_dim; i++) state[i] = (float)e->state[i];
    ((uint8_t *)w->data[3])[row] = j->policy->seeks_goal && row > 0 && *e->success;
    for (int k = 0; k < j->env->column_count; k++) {
        const cgs_env_column *c = &j->env->columns[k];
        double values[CGS_ENV_MAX_DIM];
        cgs_env_read_column(e, k, values);
        for (int i = 0; i < c->dim; i++) {
            size_t at = (size_t)row * (size_t)c->dim + (size_t)i;
            if (c->whole)
                ((int32_t *)w->data[FIXED + k])[at] = (int32_t)values[i];
            else
                ((float *)w->data[FIXED + k])[at] = (float)values[i];
        }
    }
    return CGS_OK;
}

/* one attempt; *broken when the environment refused a step */
static cgs_status try_episode(job *j, worker *w, uint64_t stream, bool *broken) {
    int A = j->env->action_dim;
    float *actions = w->data[1]; /* (limit + 1, A) */
    *broken = false;
    CGS_TRY(cgs_policy_begin(w->policy, w->env, j->o->seed, stream));
    CGS_TRY(record(j, w, 0));
    int row = 0;
    while (!cgs_policy_over(w->policy, w->env)) {
        cgs_policy_act(w->policy, w->env);
        for (int i = 0; i < A; i++) actions[row * A + i] = (float)w->env->action[i];
        cgs_env_step(w->env);
        if (*w->env->done) {
            *broken = true;
            return CGS_OK;
        }
        CGS_TRY(record(j, w, ++row));
    }
    if (row == 0)
        return cgs_fail(CGS_ENUMERIC, "%s: an episode ended before its first step", j->env->id);
    for (int i = 0; i < A; i++) actions[row * A + i] = NAN; /* no action leaves the last row */
    w->rows = row + 1;
    return CGS_OK;
}

static cgs_status run_episode(job *j, worker *w, int64_t episode) {
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        bool broken;
        uint64_t stream = (uint64_t)episode + ((uint64_t)attempt << 40);
        CGS_TRY(try_episode(j, w, stream, &broken));
        if (!broken)
            return cgs_writer_pack(j->writer, w->rows,
                                   (const void *const *)w->data + (j->o->side == 0), &w->packed);
        cgs_log(CGS_WARN, "%s: episode %lld: the simulation failed at step %d; redrawn", j->env->id,
                (long long)episode, w->env->steps + 1);
        pthread_mutex_lock(&j->lock);
        j->result->dropped++;
        pthread_mutex_unlock(&j->lock);
    }
    return cgs_fail(CGS_ENUMERIC, "%s: the simulation of episode %lld failed %d times", j->env->id,
                    (long long)episode, ATTEMPTS);
}

/* ---- all of them ---------------------------------------------------------------- */

static cgs_status write_episode(job *j, const worker *w) {
    CGS_TRY(cgs_writer_put(j->writer, &w->packed));
    j->next++;
    j->result->episodes++;
    j->result->frames += w->rows;
    if (j->o->progress) j->o->progress(j->o->user, j->next, j->result->frames);
    return CGS_OK;
}

/* Episodes are written in order: a thread waits until those before its own are written.  After an
 * episode that could not be made all turns still pass, so that no thread waits forever, but nothing
 * is written after it. */
static void take_turn(job *j, const worker *w, int64_t episode, bool made) {
    pthread_mutex_lock(&j->lock);
    while (j->turn != episode) pthread_cond_wait(&j->turn_changed, &j->lock);
    pthread_mutex_unlock(&j->lock);
    /* an earlier one is missing: a stop is under way */
    if (made && episode == j->next) cgs_failure_note(&j->failure, write_episode(j, w));
    pthread_mutex_lock(&j->lock);
    j->turn++;
    pthread_cond_broadcast(&j->turn_changed);
    pthread_mutex_unlock(&j->lock);
}

static void run_episodes(void *context) {
    job *j = context;
    worker w;
    cgs_failure_note(&j->failure, worker_make(j, &w));
    CGS_QUEUE (i, (size_t)(j->o->episodes - j->first)) {
        int64_t e = j->first + (int64_t)i;
        bool made = false;
        if (j->o->stop && j->o->stop(j->o->user))
            cgs_failure_note(&j->failure, cgs_fail(CGS_ESTOPPED, "stopped"));
        if (!cgs_failure_any(&j->failure)) {
            cgs_status rc = run_episode(j, &w, e);
            made = rc == CGS_OK;
            cgs_failure_note(&j->failure, rc);
        }
        take_turn(j, &w, e, made);
    }
    worker_free(j, &w);
}

static cgs_status run_all(job *j) {
    if (j->next >= j->o->episodes) return CGS_OK;
    j->first = j->turn = j->next;
    if (pthread_mutex_init(&j->lock, NULL)) return cgs_fail(CGS_ENOMEM, "no lock for episodes");
    if (pthread_cond_init(&j->turn_changed, NULL)) {
        pthread_mutex_destroy(&j->lock);
        return cgs_fail(CGS_ENOMEM, "no lock for episodes");
    }
    cgs_together(0, run_episodes, j);
    pthread_cond_destroy(&j->turn_changed);
    pthread_mutex_destroy(&j->lock);
    return CGS_OK;
}

static cgs_status begin_file(job *j) {
    const cgs_collect_options *o = j->o;
    int skip = o->side == 0;
    CGS_TRY(cgs_writer_create(&j->writer, o->out, j->columns + skip, j->column_count - skip));
    CGS_TRY(cgs_writer_text(j->writer, "env", j->env->id));
    CGS_TRY(cgs_writer_integer(j->writer, "env_version", (uint64_t)j->env->version));
    cgs_env_origin origin = cgs_env_origin_of(j->env);
    if (origin.file[0]) {
        CGS_TRY(cgs_writer_text(j->writer, CGS_ENV_FILE, origin.file));
        CGS_TRY(cgs_writer_text(j->writer, CGS_ENV_SHA256, origin.sha256));
    }
    CGS_TRY(cgs_writer_text(j->writer, "policy", j->policy->name));
    CGS_TRY(cgs_writer_integer(j->writer, "seed", o->seed));
    if (o->scene) CGS_TRY(cgs_writer_text(j->writer, "model_xml", o->scene));
    if (o->every > 1) CGS_TRY(cgs_writer_integer(j->writer, "pixels_every", (uint64_t)o->every));
    return cgs_writer_begin(j->writer, &j->next);
}

cgs_status cgs_collect(const cgs_collect_options *o, cgs_collect_result *r) {
    job j = {.o = o, .result = r};
    memset(r, 0, sizeof *r);
    CGS_TRY(cgs_env_find(o->env, &j.env));
    CGS_TRY(cgs_policy_find(j.env->id, o->policy, &j.policy));
    r->policy = j.policy->name;
    r->seeks_goal = j.policy->seeks_goal;
    if (o->episodes < 1)
        return cgs_fail(CGS_EARG, "%lld episodes; at least one is needed", (long long)o->episodes);
    if (o->every < 0) return cgs_fail(CGS_EARG, "every %dth row cannot be rendered", o->every);
    if (o->side != 0 && (o->side < 8 || o->side > CGS_ENV_MAX_SIDE))
        return cgs_fail(CGS_EARG, "an image has 8 to %d pixels per side, not %d", CGS_ENV_MAX_SIDE,
                        o->side);

    double start = cgs_now();
    declare_columns(&j);
    cgs_status rc = begin_file(&j);
    if (rc == CGS_OK) {
        r->resumed = j.next;
        if (j.next > o->episodes)
            rc = cgs_fail(CGS_EARG, "%s: the recording already has %lld episodes, more than %lld",
                          o->out, (long long)j.next, (long long)o->episodes);
    }
    if (rc == CGS_OK) {
        if (o->progress) o->progress(o->user, j.next, 0);
        rc = run_all(&j);
        if (rc == CGS_OK) rc = cgs_failure_report(&j.failure);
    }
    if (rc == CGS_OK) rc = cgs_writer_finish(j.writer);
    cgs_writer_destroy(j.writer);
    r->seconds = cgs_now() - start;
    return rc;
}

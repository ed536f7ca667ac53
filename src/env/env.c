/* env.c - the checks every environment shares, and the batch runner. */
#include "env/env.h"

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/team.h"

/* beyond this no state is meaningful, and Chipmunk would abort on overflow */
static const double LARGEST = 1e5;

/* ---- words ---------------------------------------------------------------------- */

cgs_status cgs_env_refuse(char *error, cgs_status status, const char *format, ...) {
    va_list words;
    va_start(words, format);
    vsnprintf(error, CGS_ENV_ERROR, format, words);
    va_end(words);
    return status;
}

cgs_status cgs_env_said(char *error, cgs_status status) {
    return status == CGS_OK ? CGS_OK : cgs_env_refuse(error, status, "%s", cgs_last_error());
}

cgs_status cgs_env_heard(const cgs_env_class *c, const char *what, cgs_status status, char *error) {
    if (status == CGS_OK) return CGS_OK;
    if ((int)status < 0 || status > CGS_ESTOPPED) status = CGS_EARG;
    error[CGS_ENV_ERROR - 1] = '\0';
    if (!error[0]) return cgs_fail(status, "%s: %s failed without a reason", c->id, what);
    bool named = !strncmp(error, c->id, strlen(c->id));
    return cgs_fail(status, "%s%s%s", named ? "" : c->id, named ? "" : ": ", error);
}

/* ---- randomness ----------------------------------------------------------------- */

static double uniform(cgs_env_random *r) { return cgs_rng_f64(r->stream); }
static double normal(cgs_env_random *r) { return cgs_rng_normal(r->stream); }

static cgs_env_random random_of(cgs_rng *rng) {
    /* beside the stream's draws, none of which it takes */
    uint64_t seed = cgs_mix64(cgs_mix64(rng->key) ^ rng->n);
    return (cgs_env_random){seed, rng, uniform, normal};
}

cgs_rng *cgs_env_rng(const cgs_env_random *random) { return random->stream; }

/* ---- one environment ------------------------------------------------------------ */

/* calls of environments that may not be used from several threads */
static pthread_mutex_t alone = PTHREAD_MUTEX_INITIALIZER;

static void enter(const cgs_env *e) {
    if (!(e->cls->can & CGS_ENV_BATCH)) pthread_mutex_lock(&alone);
}

static cgs_status leave(const cgs_env *e, cgs_status rc) {
    if (!(e->cls->can & CGS_ENV_BATCH)) pthread_mutex_unlock(&alone);
    return rc;
}

static cgs_status open_world(cgs_env *e) {
    char error[CGS_ENV_ERROR] = "";
    if (!e->cls->open) return CGS_OK;
    enter(e);
    cgs_status rc = e->cls->open(e->world, error);
    return leave(e, cgs_env_heard(e->cls, "open", rc, error));
}

static cgs_status build(cgs_env **out, const cgs_env_class *cls) {
    *out = NULL;
    cgs_env *e = calloc(1, sizeof *e);
    if (e) e->world = calloc(1, cls->size ? cls->size : 1);
    if (!e || !e->world) {
        free(e);
        return cgs_fail(CGS_ENOMEM, "%s: no memory for an environment", cls->id);
    }
    e->cls = cls;
    cgs_status rc = open_world(e);
    if (rc == CGS_OK) {
        *out = e;
        return CGS_OK;
    }
    free(e->world);
    free(e);
    return rc;
}

cgs_status cgs_env_create(cgs_env **out, const cgs_env_class *cls) {
    CGS_TRY(build(out, cls));
    cgs_env *e = *out;
    e->owns_rows = true;
    e->state = calloc((size_t)(2 * cls->state_dim + cls->action_dim), sizeof(double));
    e->done = calloc(2, 1);
    if (!e->state || !e->done) {
        cgs_env_destroy(e);
        *out = NULL;
        return cgs_fail(CGS_ENOMEM, "%s: no memory for an environment", cls->id);
    }
    e->goal = e->state + cls->state_dim;
    e->action = e->goal + cls->state_dim;
    e->success = e->done + 1;
    return CGS_OK;
}

void cgs_env_destroy(cgs_env *e) {
    if (!e) return;
    enter(e);
    if (e->cls->close) e->cls->close(e->world);
    (void)leave(e, CGS_OK);
    if (e->owns_rows) {
        free(e->state);
        free(e->done);
    }
    free(e->world);
    free(e);
}

static cgs_status check_vector(const cgs_env *e, const char *what, const double *v, int dim) {
    const cgs_env_class *c = e->cls;
    if (dim != c->state_dim)
        return cgs_fail(CGS_EARG, "%s: a %s has %d numbers, got %d", c->id, what, c->state_dim,
                        dim);
    for (int i = 0; i < dim; i++) {
        if (!isfinite(v[i]))
            return cgs_fail(CGS_ENUMERIC, "%s: component %d of the %s is not finite", c->id, i,
                            what);
        if (fabs(v[i]) > LARGEST)
            return cgs_fail(CGS_EARG, "%s: component %d of the %s is %g, out of any range", c->id,
                            i, what, v[i]);
    }
    return CGS_OK;
}

static bool all_finite(const double *v, int n) {
    for (int i = 0; i < n; i++)
        if (!isfinite(v[i])) return false;
    return true;
}

/* false, and nothing is changed, when the environment's state is not finite */
static bool publish(cgs_env *e) {
    double state[CGS_ENV_MAX_DIM];
    e->cls->get_state(e->world, state);
    if (!all_finite(state, e->cls->state_dim)) return false;
    memcpy(e->state, state, (size_t)e->cls->state_dim * sizeof *state);
    *e->success = cgs_env_reached(e, e->state, e->goal);
    return true;
}

static cgs_status begin(cgs_env *e) {
    e->steps = 0;
    *e->done = 0;
    if (publish(e)) return CGS_OK;
    *e->done = 1;
    return cgs_fail(CGS_ENUMERIC, "%s: a state that is not finite", e->cls->id);
}

static cgs_status reset_world(cgs_env *e, cgs_rng *rng) {
    char error[CGS_ENV_ERROR] = "";
    cgs_env_random random = random_of(rng);
    CGS_TRY(
        cgs_env_heard(e->cls, "reset", e->cls->reset(e->world, &random, e->goal, error), error));
    if (!all_finite(e->goal, e->cls->state_dim))
        return cgs_fail(CGS_ENUMERIC, "%s: a goal that is not finite", e->cls->id);
    e->sought = true;
    return begin(e);
}

cgs_status cgs_env_reset(cgs_env *e, cgs_rng *rng) {
    enter(e);
    return leave(e, reset_world(e, rng));
}

static cgs_status move_world(cgs_env *e, const double *state) {
    char error[CGS_ENV_ERROR] = "";
    return cgs_env_heard(e->cls, "set_state", e->cls->set_state(e->world, state, error), error);
}

static cgs_status can_be_set(const cgs_env_class *c) {
    if (c->can & CGS_ENV_SET_STATE) return CGS_OK;
    return cgs_fail(CGS_EARG, "%s cannot be set to a state", c->id);
}

static cgs_status start_world(cgs_env *e, const double *state) {
    char error[CGS_ENV_ERROR] = "";
    const cgs_env_class *c = e->cls;
    if (c->restart) CGS_TRY(cgs_env_heard(c, "restart", c->restart(e->world, error), error));
    CGS_TRY(move_world(e, state));
    CGS_TRY(move_world(e, state));
    memcpy(e->goal, state, (size_t)c->state_dim * sizeof(double));
    e->sought = false;
    return begin(e);
}

cgs_status cgs_env_start(cgs_env *e, const double *state, int dim) {
    CGS_TRY(can_be_set(e->cls));
    CGS_TRY(check_vector(e, "state", state, dim));
    enter(e);
    return leave(e, start_world(e, state));
}

cgs_status cgs_env_set_state(cgs_env *e, const double *state, int dim) {
    CGS_TRY(can_be_set(e->cls));
    CGS_TRY(check_vector(e, "state", state, dim));
    enter(e);
    cgs_status rc = move_world(e, state);
    return leave(e, rc == CGS_OK ? begin(e) : rc);
}

cgs_status cgs_env_set_goal(cgs_env *e, const double *goal, int dim) {
    CGS_TRY(check_vector(e, "goal", goal, dim));
    if (e->cls->check_goal) {
        char error[CGS_ENV_ERROR] = "";
        enter(e);
        cgs_status rc = e->cls->check_goal(e->world, goal, error);
        CGS_TRY(leave(e, cgs_env_heard(e->cls, "check_goal", rc, error)));
    }
    memcpy(e->goal, goal, (size_t)dim * sizeof(double));
    e->sought = true;
    *e->success = cgs_env_reached(e, e->state, e->goal);
    return CGS_OK;
}

/* An action may end early where a goal is sought, but the strict judge looks at the end only. */
static bool step_world(cgs_env *e) {
    bool early = e->sought && e->judge != CGS_JUDGE_STRICT;
    cgs_env_aim aim = {&e->cls->predicate[e->judge], e->goal};
    return e->cls->step(e->world, e->action, early ? &aim : NULL) && publish(e);
}

void cgs_env_step(cgs_env *e) {
    if (*e->done) return;
    /* an impossible action ends the episode instead of corrupting a dataset */
    for (int i = 0; i < e->cls->action_dim; i++) {
        if (isfinite(e->action[i]) && fabs(e->action[i]) <= LARGEST) continue;
        *e->done = 1;
        return;
    }
    enter(e);
    bool fine = step_world(e);
    (void)leave(e, CGS_OK);
    if (fine)
        e->steps++;
    else
        *e->done = 1;
}

void cgs_env_read_column(const cgs_env *e, int index, double *out) {
    enter(e);
    e->cls->column(e->world, e->state, e->goal, index, out);
    (void)leave(e, CGS_OK);
}

void cgs_env_act(const cgs_env *e, cgs_rng *rng, double *action) {
    cgs_env_random random = random_of(rng);
    enter(e);
    e->cls->act(e->world, e->state, e->goal, e->steps, &random, action);
    (void)leave(e, CGS_OK);
}

bool cgs_env_reached(const cgs_env *e, const double *state, const double *goal) {
    return cgs_env_judged(e->cls, e->judge, state, goal);
}

bool cgs_env_judged(const cgs_env_class *cls, cgs_judge judge, const double *state,
                    const double *goal) {
    const cgs_env_predicate *by = &cls->predicate[judge];
    if (cls->reached) return cls->reached(by, state, goal);
    double square = 0;
    for (int i = 0; i < cls->state_dim; i++) square += (state[i] - goal[i]) * (state[i] - goal[i]);
    return sqrt(square) < by->distance;
}

static cgs_status check_side(const cgs_env_class *c, int side) {
    if (!(c->can & CGS_ENV_RENDER)) return cgs_fail(CGS_EARG, "%s does not draw itself", c->id);
    if (side >= 8 && side <= CGS_ENV_MAX_SIDE) return CGS_OK;
    return cgs_fail(CGS_EARG, "%s: an image has 8 to %d pixels per side, not %d", c->id,
                    CGS_ENV_MAX_SIDE, side);
}

static cgs_status draw(cgs_env *e, int side, uint8_t *rgb) {
    char error[CGS_ENV_ERROR] = "";
    enter(e);
    cgs_status rc = e->cls->render(e->world, side, rgb, error);
    return leave(e, cgs_env_heard(e->cls, "render", rc, error));
}

cgs_status cgs_env_render(cgs_env *e, int side, uint8_t *rgb) {
    CGS_TRY(check_side(e->cls, side));
    return draw(e, side, rgb);
}

/* ---- a batch -------------------------------------------------------------------- */

cgs_status cgs_env_batch_create(cgs_env_batch *b, const cgs_env_class *cls, int count) {
    memset(b, 0, sizeof *b);
    if (count < 1) return cgs_fail(CGS_EARG, "%s: a batch of %d environments", cls->id, count);
    size_t n = (size_t)count, sd = (size_t)cls->state_dim, ad = (size_t)cls->action_dim;
    b->cls = cls;
    b->count = count;
    b->env = calloc(n, sizeof *b->env);
    b->state = calloc(n * sd, sizeof(double));
    b->goal = calloc(n * sd, sizeof(double));
    b->action = calloc(n * ad, sizeof(double));
    b->done = calloc(n, 1);
    b->success = calloc(n, 1);
    if (!b->env || !b->state || !b->goal || !b->action || !b->done || !b->success) {
        cgs_env_batch_destroy(b);
        return cgs_fail(CGS_ENOMEM, "%s: no memory for %d environments", cls->id, count);
    }
    for (int i = 0; i < count; i++) {
        cgs_status rc = build(&b->env[i], cls);
        if (rc != CGS_OK) {
            cgs_env_batch_destroy(b);
            return rc;
        }
        cgs_env *e = b->env[i];
        e->state = b->state + (size_t)i * sd;
        e->goal = b->goal + (size_t)i * sd;
        e->action = b->action + (size_t)i * ad;
        e->done = b->done + i;
        e->success = b->success + i;
    }
    return CGS_OK;
}

void cgs_env_batch_destroy(cgs_env_batch *b) {
    for (int i = 0; b->env && i < b->count; i++) cgs_env_destroy(b->env[i]);
    free(b->env);
    free(b->state);
    free(b->goal);
    free(b->action);
    free(b->done);
    free(b->success);
    memset(b, 0, sizeof *b);
}

void cgs_env_batch_judge(const cgs_env_batch *b, cgs_judge judge) {
    for (int i = 0; i < b->count; i++) b->env[i]->judge = judge;
}

/* the operation that a batch's threads apply to each row */
typedef struct batch_job {
    cgs_env_batch *b;
    cgs_status (*run)(const struct batch_job *j, int i);
    int n;
    /* for reset, start, render */
    uint64_t seed, first;
    const double *states, *goals;
    const int *which;
    int side;
    uint8_t *rgb;
    /* Error sentences are per thread: the first failing row's is copied to the caller. */
    int row;
    cgs_status code;
    char text[512];
} batch_job;

static pthread_mutex_t failures = PTHREAD_MUTEX_INITIALIZER;

static int row_of(const batch_job *j, int i) { return j->which ? j->which[i] : i; }

static void run_rows(void *context) {
    batch_job *j = context;
    CGS_QUEUE (k, (size_t)j->n) {
        int row = row_of(j, (int)k);
        cgs_status rc = j->run(j, (int)k);
        if (rc == CGS_OK) continue;
        pthread_mutex_lock(&failures);
        if (j->code == CGS_OK || row < j->row) {
            j->row = row;
            j->code = rc;
            snprintf(j->text, sizeof j->text, "%s", cgs_last_error());
        }
        pthread_mutex_unlock(&failures);
    }
}

static cgs_status run_batch(batch_job *j) {
    cgs_together(0, run_rows, j);
    return j->code == CGS_OK ? CGS_OK : cgs_fail(j->code, "row %d: %s", j->row, j->text);
}

static cgs_status reset_row(const batch_job *j, int i) {
    cgs_rng rng = cgs_rng_stream(j->seed, CGS_STREAM_ENV, j->first + (uint64_t)i);
    return cgs_env_reset(j->b->env[i], &rng);
}

static cgs_status start_row(const batch_job *j, int i) {
    int dim = j->b->cls->state_dim;
    size_t at = (size_t)i * (size_t)dim;
    CGS_TRY(cgs_env_start(j->b->env[i], j->states + at, dim));
    return j->goals ? cgs_env_set_goal(j->b->env[i], j->goals + at, dim) : CGS_OK;
}

static cgs_status step_row(const batch_job *j, int i) {
    cgs_env_step(j->b->env[i]);
    return CGS_OK;
}

static cgs_status render_row(const batch_job *j, int i) {
    size_t bytes = (size_t)j->side * (size_t)j->side * 3;
    return draw(j->b->env[row_of(j, i)], j->side, j->rgb + (size_t)i * bytes);
}

cgs_status cgs_env_batch_reset(cgs_env_batch *b, uint64_t seed, uint64_t first) {
    batch_job j = {.b = b, .run = reset_row, .n = b->count, .seed = seed, .first = first};
    return run_batch(&j);
}

cgs_status cgs_env_batch_start(cgs_env_batch *b, const double *states, const double *goals) {
    batch_job j = {.b = b, .run = start_row, .n = b->count, .states = states, .goals = goals};
    return run_batch(&j);
}

void cgs_env_batch_step(cgs_env_batch *b) {
    batch_job j = {.b = b, .run = step_row, .n = b->count};
    (void)run_batch(&j);
}

cgs_status cgs_env_batch_render(cgs_env_batch *b, const int *which, int n, int side, uint8_t *rgb) {
    batch_job j = {.b = b, .run = render_row, .n = n, .which = which, .side = side, .rgb = rgb};
    CGS_TRY(check_side(b->cls, side));
    return run_batch(&j);
}

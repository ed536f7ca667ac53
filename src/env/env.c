/* env.c - the registry, the checks every environment shares, and the batch runner. */
#include "env/env.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/team.h"

static const cgs_env_class *const classes[] = {
    &cgs_pusht_class, &cgs_tworooms_class, &cgs_wall_class,
#ifdef CGS_WITH_MUJOCO
    &cgs_umaze_class, &cgs_medium_class,   &cgs_reacher_class, &cgs_cube_class,
#endif
};
enum { CLASS_COUNT = sizeof classes / sizeof classes[0] };

/* beyond this no state is meaningful, and Chipmunk would abort on overflow */
static const double LARGEST = 1e5;

int cgs_env_count(void) { return CLASS_COUNT; }
const cgs_env_class *cgs_env_at(int index) { return classes[index]; }

cgs_status cgs_env_find(const char *id, const cgs_env_class **out) {
    char known[256] = "";
    for (int i = 0; i < CLASS_COUNT; i++) {
        if (!strcmp(classes[i]->id, id)) {
            *out = classes[i];
            return CGS_OK;
        }
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", classes[i]->id);
    }
    return cgs_fail(CGS_EARG, "unknown environment \"%.80s\"; known: %s", id, known);
}

static const char *const judges[CGS_JUDGES] = {"official", "moderate", "strict"};

cgs_status cgs_judge_parse(cgs_judge *j, const char *name) {
    for (int i = 0; i < CGS_JUDGES; i++)
        if (!strcmp(name, judges[i])) {
            *j = (cgs_judge)i;
            return CGS_OK;
        }
    return cgs_fail(CGS_EARG, "protocol: \"%.40s\" is not official, moderate or strict", name);
}

const char *cgs_judge_name(cgs_judge j) { return (unsigned)j < CGS_JUDGES ? judges[j] : "?"; }

/* ---- one environment ------------------------------------------------------------ */

static cgs_status build(cgs_env **out, const cgs_env_class *cls) {
    *out = NULL;
    cgs_env *e = calloc(1, cls->size);
    if (!e) return cgs_fail(CGS_ENOMEM, "%s: no memory for an environment", cls->id);
    e->cls = cls;
    cgs_status rc = cls->open ? cls->open(e) : CGS_OK;
    if (rc != CGS_OK) {
        free(e);
        return rc;
    }
    *out = e;
    return CGS_OK;
}

cgs_status cgs_env_use_model(const char *id, const char *path) {
    const cgs_env_class *cls;
    if (!id) return cgs_fail(CGS_EARG, "%s: name the environment it is for", path);
    CGS_TRY(cgs_env_find(id, &cls));
    if (!cls->use_model) return cgs_fail(CGS_EARG, "%s has no MuJoCo model to replace", id);
    return cls->use_model(path);
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
    if (e->cls->close) e->cls->close(e);
    if (e->owns_rows) {
        free(e->state);
        free(e->done);
    }
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

static void publish(cgs_env *e) {
    e->cls->get_state(e, e->state);
    *e->success = cgs_env_reached(e, e->state, e->goal);
}

static void begin(cgs_env *e) {
    e->steps = 0;
    *e->done = 0;
    publish(e);
}

cgs_status cgs_env_reset(cgs_env *e, cgs_rng *rng) {
    CGS_TRY(e->cls->reset(e, rng));
    e->sought = true;
    begin(e);
    return CGS_OK;
}

cgs_status cgs_env_start(cgs_env *e, const double *state, int dim) {
    CGS_TRY(check_vector(e, "state", state, dim));
    CGS_TRY(e->cls->restart(e));
    CGS_TRY(e->cls->set_state(e, state));
    CGS_TRY(e->cls->set_state(e, state));
    memcpy(e->goal, state, (size_t)dim * sizeof(double));
    e->sought = false;
    begin(e);
    return CGS_OK;
}

cgs_status cgs_env_set_state(cgs_env *e, const double *state, int dim) {
    CGS_TRY(check_vector(e, "state", state, dim));
    CGS_TRY(e->cls->set_state(e, state));
    begin(e);
    return CGS_OK;
}

cgs_status cgs_env_set_goal(cgs_env *e, const double *goal, int dim) {
    CGS_TRY(check_vector(e, "goal", goal, dim));
    if (e->cls->check_goal) CGS_TRY(e->cls->check_goal(e, goal));
    memcpy(e->goal, goal, (size_t)dim * sizeof(double));
    e->sought = true;
    *e->success = cgs_env_reached(e, e->state, e->goal);
    return CGS_OK;
}

void cgs_env_step(cgs_env *e) {
    if (*e->done) return;
    /* an impossible action ends the episode instead of corrupting a dataset */
    for (int i = 0; i < e->cls->action_dim; i++) {
        if (isfinite(e->action[i]) && fabs(e->action[i]) <= LARGEST) continue;
        *e->done = 1;
        return;
    }
    if (!e->cls->step(e, e->action)) {
        *e->done = 1;
        return;
    }
    e->steps++;
    publish(e);
}

bool cgs_env_reached(const cgs_env *e, const double *state, const double *goal) {
    return cgs_env_judged(e->cls, e->judge, state, goal);
}

bool cgs_env_judged(const cgs_env_class *cls, cgs_judge judge, const double *state,
                    const double *goal) {
    return cls->reached(&cls->predicate[judge], state, goal);
}

bool cgs_env_ends_early(const cgs_env *e) { return e->sought && e->judge != CGS_JUDGE_STRICT; }

static cgs_status check_side(const cgs_env_class *c, int side) {
    if (side >= 8 && side <= CGS_ENV_MAX_SIDE) return CGS_OK;
    return cgs_fail(CGS_EARG, "%s: an image has 8 to %d pixels per side, not %d", c->id,
                    CGS_ENV_MAX_SIDE, side);
}

cgs_status cgs_env_render(cgs_env *e, int side, uint8_t *rgb) {
    CGS_TRY(check_side(e->cls, side));
    return e->cls->render(e, side, rgb);
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
    return j->b->cls->render(j->b->env[row_of(j, i)], j->side, j->rgb + (size_t)i * bytes);
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

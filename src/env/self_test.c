/* self_test.c - see self_test.h.
 *
 * Every buffer that a function is given lies between two margins whose bytes are known, so that a
 * function that writes too much is named instead of the crash that it would cause later. */
#include "env/self_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the table ------------------------------------------------------------------ */

enum { COLUMNS_MAX = 20, NAME_MAX_BYTES = 40, LIMIT_MAX = 1000000 };
static const size_t WORLD_MAX = (size_t)1 << 30;

static bool plain_name(const char *s, const char *letters) {
    return s && s[0] && strlen(s) <= NAME_MAX_BYTES && s[strspn(s, letters)] == '\0';
}

static cgs_status check_range(const cgs_env_class *c, const char *what, double value, double low,
                              double high) {
    if (value >= low && value <= high) return CGS_OK;
    return cgs_fail(CGS_EFORMAT, "%s: %s is %g, not between %g and %g", c->id, what, value, low,
                    high);
}

static cgs_status check_numbers(const cgs_env_class *c) {
    CGS_TRY(check_range(c, "version", c->version, 1, 0x7fffffff));
    CGS_TRY(check_range(c, "state_dim", c->state_dim, 1, CGS_ENV_MAX_DIM));
    CGS_TRY(check_range(c, "action_dim", c->action_dim, 1, CGS_ENV_MAX_DIM));
    CGS_TRY(check_range(c, "native", c->native, 8, CGS_ENV_MAX_SIDE));
    CGS_TRY(check_range(c, "limit", c->limit, 1, LIMIT_MAX));
    CGS_TRY(check_range(c, "action_range", c->action_range, 1e-9, 1e5));
    CGS_TRY(check_range(c, "column_count", c->column_count, 0, COLUMNS_MAX));
    CGS_TRY(check_range(c, "feature_count", c->feature_count, 0, CGS_ENV_MAX_DIM));
    CGS_TRY(check_range(c, "size", (double)c->size, 0, (double)WORLD_MAX));
    const unsigned known =
        CGS_ENV_RENDER | CGS_ENV_SET_STATE | CGS_ENV_BATCH | CGS_ENV_DETERMINISTIC;
    if (c->can & ~known)
        return cgs_fail(CGS_EFORMAT, "%s: capability 0x%x is unknown", c->id, c->can & ~known);
    return CGS_OK;
}

static cgs_status check_columns(const cgs_env_class *c) {
    static const char *const ours[] = {"pixels", "action",    "state", "terminated",
                                       "ep_len", "ep_offset", NULL};
    if ((c->column_count && !c->columns) || (c->feature_count && !c->features))
        return cgs_fail(CGS_EFORMAT, "%s: a list of columns or features is NULL", c->id);
    for (int i = 0; i < c->column_count; i++) {
        const cgs_env_column *k = &c->columns[i];
        if (!plain_name(k->name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"))
            return cgs_fail(CGS_EFORMAT, "%s: column %d has no name of letters, digits and \"_\"",
                            c->id, i);
        CGS_TRY(check_range(c, k->name, k->dim, 1, CGS_ENV_MAX_DIM));
        bool taken = false;
        for (int o = 0; ours[o]; o++) taken = taken || !strcmp(k->name, ours[o]);
        for (int o = 0; o < i; o++) taken = taken || !strcmp(k->name, c->columns[o].name);
        if (taken)
            return cgs_fail(CGS_EFORMAT, "%s: the name of column \"%s\" is taken", c->id, k->name);
    }
    for (int i = 0; i < c->feature_count; i++)
        if (!c->features[i].target || !c->features[i].target[0])
            return cgs_fail(CGS_EFORMAT, "%s: feature %d has no name", c->id, i);
    return CGS_OK;
}

static cgs_status check_functions(const cgs_env_class *c) {
    const struct {
        const char *name;
        bool there, needed;
    } f[] = {{"reset", c->reset, true},
             {"step", c->step, true},
             {"get_state", c->get_state, true},
             {"set_state", c->set_state, c->can & CGS_ENV_SET_STATE},
             {"render", c->render, c->can & CGS_ENV_RENDER},
             {"column", c->column, c->column_count},
             {"probe_state", c->probe_state, c->feature_count}};
    for (size_t i = 0; i < sizeof f / sizeof *f; i++)
        if (f[i].needed && !f[i].there)
            return cgs_fail(CGS_EFORMAT, "%s: the function %s is missing", c->id, f[i].name);
    return CGS_OK;
}

cgs_status cgs_env_check_table(cgs_env_class *copy, const cgs_env_class *table) {
    memset(copy, 0, sizeof *copy);
    if (table->abi_version != CGS_ENV_ABI)
        return cgs_fail(CGS_EFORMAT, "made for version %u of cgs/env.h, this is version %u",
                        (unsigned)table->abi_version, (unsigned)CGS_ENV_ABI);
    size_t bytes = table->struct_size;
    if (bytes < sizeof *copy)
        return cgs_fail(CGS_EFORMAT, "struct_size is %zu, a table of version %d has %zu bytes",
                        bytes, CGS_ENV_ABI, sizeof *copy);
    memcpy(copy, table, sizeof *copy);
    if (!plain_name(copy->id, "abcdefghijklmnopqrstuvwxyz0123456789-_"))
        return cgs_fail(CGS_EFORMAT,
                        "the id is not 1 to %d lower-case letters, digits, \"-\" and \"_\"",
                        NAME_MAX_BYTES);
    if (!copy->summary || !copy->predicate[CGS_JUDGE_OFFICIAL].sentence)
        return cgs_fail(CGS_EFORMAT, "%s: no summary, or no sentence that says what success is",
                        copy->id);
    CGS_TRY(check_numbers(copy));
    CGS_TRY(check_columns(copy));
    return check_functions(copy);
}

/* ---- buffers between margins ---------------------------------------------------- */

/* an image of another size than asked for, or in RGBA, still ends inside */
enum { MARGIN = 1 << 18, GUARD = 0xA5, STEPS = 12, TEST_SIDE = 64 };

typedef struct buffer {
    unsigned char *block; /* margin, bytes, margin */
    size_t bytes;
} buffer;

enum { WORLD_A, WORLD_B, STATE, GOAL, ACTION, OUT, SENTENCE, IMAGE, BUFFERS };

typedef struct test {
    const cgs_env_class *c;
    char *stage;
    buffer b[BUFFERS];
    cgs_rng rng;
    double first[2][CGS_ENV_MAX_DIM]; /* state and goal of the first start */
} test;

static cgs_status make(test *t, int which, size_t bytes) {
    buffer *b = &t->b[which];
    free(b->block);
    b->bytes = bytes;
    b->block = malloc(bytes + 2 * (size_t)MARGIN);
    if (!b->block) return cgs_fail(CGS_ENOMEM, "%s: no memory for its test", t->c->id);
    memset(b->block, GUARD, bytes + 2 * (size_t)MARGIN);
    memset(b->block + MARGIN, 0, bytes);
    return CGS_OK;
}

static void *at(const test *t, int which) { return t->b[which].block + MARGIN; }

/* NaNs, so that a number that is not written is seen */
static double *blank(const test *t, int which) {
    memset(at(t, which), 0xFF, t->b[which].bytes);
    return at(t, which);
}

/* equal to itself one byte further on: all bytes are the first */
static bool untouched(const unsigned char *margin) {
    return margin[0] == GUARD && memcmp(margin, margin + 1, MARGIN - 1) == 0;
}

static bool margins_hold(const buffer *b) {
    return untouched(b->block) && untouched(b->block + MARGIN + b->bytes);
}

static char *call(test *t, const char *function) {
    snprintf(t->stage, 64, "%s", function);
    memset(at(t, SENTENCE), 0, CGS_ENV_ERROR);
    return at(t, SENTENCE);
}

/* after a call: what it returned, and what it wrote where it must not */
static cgs_status came_back(test *t, cgs_status rc) {
    for (int i = 0; i < BUFFERS; i++)
        if (!margins_hold(&t->b[i]))
            return cgs_fail(CGS_EFORMAT, "%s: %s wrote outside its buffer", t->c->id, t->stage);
    return cgs_env_heard(t->c, t->stage, rc, at(t, SENTENCE));
}

static cgs_status finite(const test *t, const double *v, int n, const char *what) {
    for (int i = 0; i < n; i++)
        if (!isfinite(v[i]))
            return cgs_fail(CGS_ENUMERIC, "%s: number %d of %s after %s is not finite", t->c->id, i,
                            what, t->stage);
    return CGS_OK;
}

/* ---- the questions -------------------------------------------------------------- */

static cgs_status read_state(test *t, int world) {
    char after[64];
    snprintf(after, sizeof after, "%s", t->stage);
    call(t, "get_state");
    t->c->get_state(at(t, world), blank(t, STATE));
    CGS_TRY(came_back(t, CGS_OK));
    snprintf(t->stage, 64, "%s", after);
    return finite(t, at(t, STATE), t->c->state_dim, "the state");
}

static double uniform(cgs_env_random *r) { return cgs_rng_f64(r->stream); }
static double normal(cgs_env_random *r) { return cgs_rng_normal(r->stream); }

static cgs_status reset(test *t, int world) {
    cgs_rng rng = cgs_rng_stream(7, CGS_STREAM_TEST, 0);
    cgs_env_random random = {7, &rng, uniform, normal};
    char *error = call(t, "reset");
    CGS_TRY(came_back(t, t->c->reset(at(t, world), &random, blank(t, GOAL), error)));
    CGS_TRY(finite(t, at(t, GOAL), t->c->state_dim, "the goal"));
    return read_state(t, world);
}

static cgs_status differs(const test *t, const char *what) {
    return cgs_fail(CGS_EFORMAT,
                    "%s: %s, although it says that it is deterministic (CGS_ENV_DETERMINISTIC)",
                    t->c->id, what);
}

static cgs_status both_start(test *t) {
    size_t bytes = (size_t)t->c->state_dim * sizeof(double);
    CGS_TRY(reset(t, WORLD_A));
    memcpy(t->first[0], at(t, STATE), bytes);
    memcpy(t->first[1], at(t, GOAL), bytes);
    CGS_TRY(reset(t, WORLD_B));
    if (!(t->c->can & CGS_ENV_DETERMINISTIC)) return CGS_OK;
    if (memcmp(t->first[0], at(t, STATE), bytes) != 0 ||
        memcmp(t->first[1], at(t, GOAL), bytes) != 0)
        return differs(t, "two starts with one seed differ");
    return CGS_OK;
}

static cgs_status act_and_step(test *t, int world, int step, bool *over) {
    const cgs_env_class *c = t->c;
    double *action = at(t, ACTION);
    const cgs_env_aim aim = {&c->predicate[CGS_JUDGE_OFFICIAL], at(t, GOAL)};
    for (int i = 0; i < c->action_dim; i++)
        action[i] = c->action_range *
                    (2 * cgs_to_f64(cgs_rng_at(t->rng.key, (uint64_t)(step * 64 + i))) - 1);
    call(t, "step");
    *over = !c->step(at(t, world), action, step % 2 ? &aim : NULL);
    CGS_TRY(came_back(t, CGS_OK));
    return *over ? CGS_OK : read_state(t, world);
}

static cgs_status both_walk(test *t) {
    size_t bytes = (size_t)t->c->state_dim * sizeof(double);
    double there[CGS_ENV_MAX_DIM];
    bool over = false, other = false;
    for (int step = 0; step < STEPS && !over && !other; step++) {
        CGS_TRY(act_and_step(t, WORLD_A, step, &over));
        memcpy(there, at(t, STATE), bytes);
        CGS_TRY(act_and_step(t, WORLD_B, step, &other));
        if (!(t->c->can & CGS_ENV_DETERMINISTIC)) continue;
        if (over != other || (!over && memcmp(there, at(t, STATE), bytes) != 0))
            return differs(t, "the same actions lead two worlds to different states");
    }
    return over || other ? both_start(t) : CGS_OK; /* what comes next needs a state */
}

static cgs_status own_policy(test *t) {
    cgs_rng rng = cgs_rng_stream(7, CGS_STREAM_TEST, 1);
    cgs_env_random random = {7, &rng, uniform, normal};
    if (!t->c->act) return CGS_OK;
    call(t, "act");
    t->c->act(at(t, WORLD_A), t->first[0], t->first[1], 0, &random, blank(t, ACTION));
    CGS_TRY(came_back(t, CGS_OK));
    return finite(t, at(t, ACTION), t->c->action_dim, "the action");
}

static cgs_status what_is_recorded(test *t) {
    const cgs_env_class *c = t->c;
    CGS_TRY(read_state(t, WORLD_A));
    for (int i = 0; i < c->column_count; i++) {
        t->b[OUT].bytes = (size_t)c->columns[i].dim * sizeof(double);
        memset(t->b[OUT].block + MARGIN, GUARD, CGS_ENV_MAX_DIM * sizeof(double) + MARGIN);
        call(t, "column");
        c->column(at(t, WORLD_A), at(t, STATE), at(t, GOAL), i, blank(t, OUT));
        CGS_TRY(came_back(t, CGS_OK));
        CGS_TRY(finite(t, at(t, OUT), c->columns[i].dim, c->columns[i].name));
    }
    if (!c->feature_count) return CGS_OK;
    t->b[OUT].bytes = (size_t)c->feature_count * sizeof(double);
    memset(t->b[OUT].block + MARGIN, GUARD, CGS_ENV_MAX_DIM * sizeof(double) + MARGIN);
    call(t, "probe_state");
    c->probe_state(at(t, STATE), blank(t, OUT));
    CGS_TRY(came_back(t, CGS_OK));
    return finite(t, at(t, OUT), c->feature_count, "the features");
}

/* a state that it was in is put into the other world, as episodes of an evaluation begin */
static cgs_status set_and_read(test *t) {
    const cgs_env_class *c = t->c;
    double want[CGS_ENV_MAX_DIM];
    char *error;
    bool over;
    if (!(c->can & CGS_ENV_SET_STATE)) return CGS_OK;
    /* one step further than the other, or setting could do nothing */
    CGS_TRY(act_and_step(t, WORLD_A, STEPS, &over));
    if (over) CGS_TRY(reset(t, WORLD_A));
    CGS_TRY(read_state(t, WORLD_A));
    memcpy(want, at(t, STATE), (size_t)c->state_dim * sizeof *want);
    if (c->restart) {
        error = call(t, "restart");
        CGS_TRY(came_back(t, c->restart(at(t, WORLD_B), error)));
    }
    for (int twice = 0; twice < 2; twice++) {
        error = call(t, "set_state");
        CGS_TRY(came_back(t, c->set_state(at(t, WORLD_B), want, error)));
    }
    CGS_TRY(read_state(t, WORLD_B));
    const double *got = at(t, STATE);
    for (int i = 0; i < c->state_dim; i++)
        if (fabs(got[i] - want[i]) > 1e-6 * (1 + fabs(want[i])))
            return cgs_fail(CGS_EFORMAT, "%s: number %d of the state was set to %.9g and is %.9g",
                            c->id, i, want[i], got[i]);
    return CGS_OK;
}

static cgs_status judge(test *t) {
    const cgs_env_class *c = t->c;
    char *error;
    if (c->check_goal) {
        error = call(t, "check_goal");
        CGS_TRY(came_back(t, c->check_goal(at(t, WORLD_A), at(t, GOAL), error)));
    }
    call(t, "reached");
    for (int j = 0; j < CGS_JUDGES; j++) {
        if (!c->predicate[j].sentence) continue;
        bool there = cgs_env_judged(c, (cgs_judge)j, at(t, STATE), at(t, STATE));
        CGS_TRY(came_back(t, CGS_OK));
        if (!there)
            return cgs_fail(CGS_EFORMAT, "%s: a state does not reach itself (%s protocol)", c->id,
                            cgs_judge_name((cgs_judge)j));
    }
    return CGS_OK;
}

static cgs_status draw_at(test *t, int side) {
    const cgs_env_class *c = t->c;
    unsigned char *image = at(t, IMAGE);
    size_t bytes = (size_t)side * (size_t)side * 3;
    unsigned char *first = malloc(bytes);
    if (!first) return cgs_fail(CGS_ENOMEM, "%s: no memory for its image", c->id);
    memset(image, GUARD, t->b[IMAGE].bytes);
    t->b[IMAGE].bytes = bytes;
    memset(image + bytes, GUARD, MARGIN);
    cgs_status rc = came_back(t, c->render(at(t, WORLD_A), side, image, call(t, "render")));
    memcpy(first, image, bytes);
    memset(image, GUARD ^ 0xFF, bytes);
    if (rc == CGS_OK) rc = came_back(t, c->render(at(t, WORLD_A), side, image, call(t, "render")));
    for (size_t i = 0; i < bytes && rc == CGS_OK; i++) {
        if (first[i] == GUARD && image[i] == (GUARD ^ 0xFF))
            rc = cgs_fail(CGS_EFORMAT, "%s: byte %zu of an image of %d x %d pixels is not written",
                          c->id, i, side, side);
        else if (first[i] != image[i] && c->can & CGS_ENV_DETERMINISTIC)
            rc = differs(t, "two images of one state differ");
    }
    free(first);
    return rc;
}

static cgs_status draw(test *t) {
    if (!(t->c->can & CGS_ENV_RENDER)) return CGS_OK;
    size_t most = t->c->native > TEST_SIDE ? (size_t)t->c->native : TEST_SIDE;
    CGS_TRY(make(t, IMAGE, most * most * 3));
    CGS_TRY(draw_at(t, t->c->native));
    CGS_TRY(draw_at(t, TEST_SIDE));
    return draw_at(t, TEST_SIDE - 1);
}

static cgs_status ask(test *t) {
    CGS_TRY(both_start(t));
    CGS_TRY(own_policy(t));
    CGS_TRY(both_walk(t));
    CGS_TRY(set_and_read(t));
    CGS_TRY(what_is_recorded(t));
    CGS_TRY(judge(t));
    return draw(t);
}

static cgs_status prepare(test *t) {
    const cgs_env_class *c = t->c;
    size_t state = (size_t)c->state_dim * sizeof(double);
    CGS_TRY(make(t, WORLD_A, c->size));
    CGS_TRY(make(t, WORLD_B, c->size));
    CGS_TRY(make(t, STATE, state));
    CGS_TRY(make(t, GOAL, state));
    CGS_TRY(make(t, ACTION, (size_t)c->action_dim * sizeof(double)));
    CGS_TRY(make(t, OUT, CGS_ENV_MAX_DIM * sizeof(double)));
    CGS_TRY(make(t, SENTENCE, CGS_ENV_ERROR));
    return make(t, IMAGE, 0); /* another when it is drawn */
}

static cgs_status open_world(test *t, int world, bool *opened) {
    if (t->c->open) CGS_TRY(came_back(t, t->c->open(at(t, world), call(t, "open"))));
    *opened = true;
    return CGS_OK;
}

static cgs_status close_world(test *t, int world) {
    if (!t->c->close) return CGS_OK;
    call(t, "close");
    t->c->close(at(t, world));
    return came_back(t, CGS_OK);
}

cgs_status cgs_env_self_test(const cgs_env_class *cls, char *stage) {
    test t = {.c = cls, .stage = stage, .rng = cgs_rng_stream(7, CGS_STREAM_TEST, 2)};
    bool opened[2] = {false, false};
    cgs_status rc = prepare(&t);
    for (int i = 0; i < 2 && rc == CGS_OK; i++) rc = open_world(&t, WORLD_A + i, &opened[i]);
    if (rc == CGS_OK) rc = ask(&t);
    /* after a failure worlds may be in any state: they are left to the end of the process */
    for (int i = 0; i < 2 && rc == CGS_OK; i++)
        if (opened[i]) rc = close_world(&t, WORLD_A + i);
    for (int i = 0; i < BUFFERS; i++) free(t.b[i].block);
    return rc;
}

/* test_plug_in.c - tables from elsewhere: a good one works like the library's own, and every lie
 * that one can tell becomes a sentence. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "core/team.h"
#include "core/threads.h"
#include "env/env.h"
#include "env/policy.h"

/* ---- a world: a point that is pushed about a square ------------------------------- */

/* what it does wrong, in the child in which it is tested */
typedef enum lie {
    HONEST,
    STATE_LONGER,
    STATE_SHORTER,
    GOAL_LONGER,
    WORLD_LARGER,
    WORLD_BEFORE,
    COLUMN_LONGER,
    FEATURES_LONGER,
    ACTION_LONGER,
    ACTION_WRITTEN,
    IMAGE_RGBA,
    IMAGE_NATIVE,
    IMAGE_HALF,
    ERROR_LONGER,
    NAN_STATE,
    NAN_LATER,
    NAN_GOAL,
    NAN_COLUMN,
    RANDOM_START,
    RANDOM_STEP,
    RANDOM_IMAGE,
    STATE_IGNORED,
    GOAL_REFUSED,
    UNREACHABLE,
    FAILS,
    FAILS_SILENTLY,
    CRASHES,
    ABORTS,
    EXITS,
    PRINTS
} lie;
static lie told;

typedef struct point {
    double x, y;
    uint64_t noise;
} point;

static double noise(point *p) { return 1e-3 * (double)(++p->noise % 1000); }

static cgs_status open_point(void *w, char *error) {
    static uint64_t worlds;
    (void)error;
    ((point *)w)->noise = ++worlds * 17;
    return CGS_OK;
}

static cgs_status reset(void *w, cgs_env_random *r, double *goal, char *error) {
    point *p = w;
    p->x = r->uniform(r);
    p->y = told == RANDOM_START ? noise(p) : r->uniform(r);
    goal[0] = r->uniform(r);
    goal[1] = told == NAN_GOAL ? (double)NAN : r->uniform(r);
    if (told == NAN_STATE) p->x = NAN;
    if (told == GOAL_LONGER) goal[2] = 1;
    if (told == WORLD_LARGER) p[1].x = 1;
    if (told == WORLD_BEFORE) p[-1].noise = 1;
    if (told == CRASHES) raise(SIGSEGV);
    if (told == ABORTS) abort();
    if (told == EXITS) exit(0);
    if (told == PRINTS) printf("hello\n"), fflush(stdout);
    if (told == FAILS) snprintf(error, CGS_ENV_ERROR, "the motor is not plugged in");
    if (told == ERROR_LONGER) memset(error, 'x', CGS_ENV_ERROR + 10);
    return told == FAILS || told == FAILS_SILENTLY ? (cgs_status)77 : CGS_OK;
}

static cgs_status set_state(void *w, const double *s, char *error) {
    point *p = w;
    (void)error;
    if (told == STATE_IGNORED) return CGS_OK;
    p->x = s[0];
    p->y = s[1];
    return CGS_OK;
}

static cgs_status check_goal(const void *w, const double *goal, char *error) {
    (void)w;
    if (told != GOAL_REFUSED && goal[0] <= 1) return CGS_OK;
    snprintf(error, CGS_ENV_ERROR, "not there");
    return CGS_EARG;
}

static bool step(void *w, const double *action, const cgs_env_aim *aim) {
    point *p = w;
    (void)aim;
    p->x += 0.01 * action[0] + (told == RANDOM_STEP ? noise(p) : 0);
    p->y += 0.01 * action[1];
    if (told == NAN_LATER) p->y = NAN;
    if (told == ACTION_WRITTEN) ((double *)(uintptr_t)action)[2] = 0;
    return told == NAN_LATER || (fabs(p->x) < 10 && fabs(p->y) < 10);
}

static void get_state(const void *w, double *s) {
    const point *p = w;
    s[0] = p->x;
    if (told != STATE_SHORTER) s[1] = p->y;
    if (told == STATE_LONGER) s[2] = 0;
}

static bool reached(const cgs_env_predicate *by, const double *s, const double *g) {
    return told != UNREACHABLE && hypot(s[0] - g[0], s[1] - g[1]) < by->distance;
}

static cgs_status render(void *w, int side, uint8_t *rgb, char *error) {
    point *p = w;
    (void)error;
    size_t bytes = (size_t)side * (size_t)side * 3;
    if (told == IMAGE_RGBA) bytes = bytes / 3 * 4;
    if (told == IMAGE_NATIVE) bytes = (size_t)96 * 96 * 3;
    if (told == IMAGE_HALF) bytes /= 2;
    memset(rgb, (int)(100 * p->x), bytes);
    if (told == RANDOM_IMAGE) rgb[5] = (uint8_t)++p->noise;
    return CGS_OK;
}

static void column(const void *w, const double *s, const double *g, int index, double *out) {
    (void)w, (void)g;
    out[0] = told == NAN_COLUMN && index == 1 ? (double)NAN : s[0];
    if (told == COLUMN_LONGER) out[1] = 0;
}

static void probe_state(const double *s, double *out) {
    out[0] = s[0] + s[1];
    if (told == FEATURES_LONGER) out[1] = 0;
}

static void act(void *w, const double *s, const double *g, int at, cgs_env_random *r, double *a) {
    (void)w, (void)s, (void)g, (void)at;
    a[0] = 2 * r->uniform(r) - 1;
    a[1] = r->normal(r);
    if (told == ACTION_LONGER) a[2] = 0;
}

static const cgs_env_column columns[] = {{"height", 1, false}, {"count", 1, true}};
static const cgs_env_feature features[] = {{"sum", false}};

static const cgs_env_class honest = {
    .abi_version = CGS_ENV_ABI,
    .struct_size = sizeof(cgs_env_class),
    .id = "point",
    .version = 3,
    .can = CGS_ENV_RENDER | CGS_ENV_SET_STATE | CGS_ENV_BATCH | CGS_ENV_DETERMINISTIC,
    .summary = "a point",
    .predicate = {{"closer than a tenth", 0.1, 0, false}},
    .state_dim = 2,
    .action_dim = 2,
    .native = 32,
    .limit = 20,
    .action_range = 1,
    .columns = columns,
    .column_count = 2,
    .features = features,
    .feature_count = 1,
    .size = sizeof(point),
    .open = open_point,
    .reset = reset,
    .set_state = set_state,
    .check_goal = check_goal,
    .step = step,
    .get_state = get_state,
    .reached = reached,
    .render = render,
    .column = column,
    .probe_state = probe_state,
    .act = act,
};

static void refused(const cgs_env_class *table, const char *words) {
    int before = cgs_env_count();
    cgs_status rc = cgs_env_add(table);
    if (rc == CGS_OK || !strstr(cgs_last_error(), words))
        fail_msg("expected \"%s\", got %s", words, rc == CGS_OK ? "no error" : cgs_last_error());
    assert_int_equal(cgs_env_count(), before);
}

static void test_lies(void **unused) {
    (void)unused;
    static const struct {
        lie told;
        const char *words;
    } lies[] = {
        {STATE_LONGER, "get_state wrote outside"},
        {STATE_SHORTER, "number 1 of the state after reset is not finite"},
        {GOAL_LONGER, "reset wrote outside"},
        {WORLD_LARGER, "reset wrote outside"},
        {WORLD_BEFORE, "reset wrote outside"},
        {COLUMN_LONGER, "column wrote outside"},
        {FEATURES_LONGER, "probe_state wrote outside"},
        {ACTION_LONGER, "act wrote outside"},
        {ACTION_WRITTEN, "step wrote outside"},
        {IMAGE_RGBA, "render wrote outside"},
        {IMAGE_NATIVE, "render wrote outside"},
        {IMAGE_HALF, "of an image of 32 x 32 pixels is not written"},
        {ERROR_LONGER, "reset wrote outside"},
        {NAN_STATE, "number 0 of the state after reset is not finite"},
        {NAN_LATER, "number 1 of the state after step is not finite"},
        {NAN_GOAL, "number 1 of the goal"},
        {NAN_COLUMN, "number 0 of count after column is not finite"},
        {RANDOM_START, "two starts with one seed differ"},
        {RANDOM_STEP, "different states, although it says that it is deterministic"},
        {RANDOM_IMAGE, "two images of one state differ"},
        {STATE_IGNORED, "number 0 of the state was set to"},
        {GOAL_REFUSED, "point: not there"},
        {UNREACHABLE, "a state does not reach itself (official protocol)"},
        {FAILS, "point: the motor is not plugged in"},
        {FAILS_SILENTLY, "reset failed without a reason"},
        {CRASHES, "crashed in its test: Segmentation fault (in reset)"},
        {ABORTS, "crashed in its test: Aborted (in reset)"},
        {EXITS, "ended the process in its test (in reset)"},
    };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        told = lies[i].told;
        refused(&honest, lies[i].words);
    }
    told = HONEST;
}

static void test_tables(void **unused) {
    (void)unused;
    cgs_env_class t;
    const cgs_env_column taken[] = {{"action", 1, false}},
                         twice[] = {{"a", 1, false}, {"a", 1, false}};
    const cgs_env_column wide[] = {{"a", 65, false}}, unnamed[] = {{"a b", 1, false}};
#define WITH(change, words)                                                                        \
    do {                                                                                           \
        t = honest;                                                                                \
        t.change;                                                                                  \
        refused(&t, words);                                                                        \
    } while (0)
    WITH(abi_version = 2, "made for version 2 of cgs/env.h, this is version 1");
    WITH(struct_size = 100, "struct_size is 100");
    WITH(id = NULL, "the id");
    WITH(id = "Two Words", "the id");
    WITH(id = "pusht", "already an environment \"pusht\"");
    WITH(version = 0, "version is 0");
    WITH(summary = NULL, "no summary");
    WITH(predicate[0].sentence = NULL, "what success is");
    WITH(state_dim = 0, "state_dim is 0");
    WITH(state_dim = 65, "state_dim is 65, not between 1 and 64");
    WITH(action_dim = -1, "action_dim is -1");
    WITH(native = 1 << 20, "native is");
    WITH(limit = 0, "limit is 0");
    WITH(action_range = NAN, "action_range is");
    WITH(column_count = 21, "column_count is 21");
    WITH(feature_count = 65, "feature_count is 65");
    WITH(size = SIZE_MAX, "size is");
    WITH(can |= 64, "capability 0x40");
    WITH(columns = NULL, "columns or features is NULL");
    WITH(features = NULL, "columns or features is NULL");
    WITH(columns = taken, "\"action\" is taken");
    WITH(columns = twice, "\"a\" is taken");
    WITH(columns = wide, "a is 65");
    WITH(columns = unnamed, "column 0 has no name");
    WITH(reset = NULL, "the function reset is missing");
    WITH(step = NULL, "the function step is missing");
    WITH(get_state = NULL, "the function get_state is missing");
    WITH(set_state = NULL, "the function set_state is missing");
    WITH(render = NULL, "the function render is missing");
    WITH(column = NULL, "the function column is missing");
    WITH(probe_state = NULL, "the function probe_state is missing");
    assert_int_equal(cgs_env_add(NULL), CGS_EARG);
}

static const cgs_env_class *found(const char *id) {
    const cgs_env_class *cls;
    assert_int_equal(cgs_env_find(id, &cls), CGS_OK);
    return cls;
}

static void test_a_good_one(void **unused) {
    (void)unused;
    cgs_env_class t = honest;
    told = PRINTS;       /* to the test's standard output it cannot */
    t.struct_size += 64; /* of a later header, with members that this library does not know */
    assert_int_equal(cgs_env_add(&t), CGS_OK);
    told = HONEST;
    refused(&t, "already an environment \"point\"");
    const cgs_env_class *cls = found("point");
    assert_true(cgs_env_is_added(cls));
    assert_string_equal(cgs_env_origin_of(cls).file, "");
    assert_false(cgs_env_is_added(found("wall")));
    memset(&t, 0xAA, sizeof t); /* the library has its own */

    /* a batch, whose rows do not depend on threads */
    enum { N = 9 };
    double one[N * 2];
    for (int threads = 1; threads <= 3; threads += 2) {
        cgs_env_batch b;
        cgs_set_threads(threads);
        assert_int_equal(cgs_env_batch_create(&b, cls, N), CGS_OK);
        assert_int_equal(cgs_env_batch_reset(&b, 5, 0), CGS_OK);
        for (int k = 0; k < N * 2; k++) b.action[k] = k % 3 - 1;
        cgs_env_batch_step(&b);
        if (threads == 1)
            memcpy(one, b.state, sizeof one);
        else
            assert_memory_equal(one, b.state, sizeof one);
        cgs_env_batch_destroy(&b);
    }
    cgs_set_threads(0);

    cgs_env *e;
    const double near[2] = {0.5, 0.5}, goal[2] = {0.505, 0.5}, far[2] = {2, 0};
    assert_int_equal(cgs_env_create(&e, cls), CGS_OK);
    assert_int_equal(cgs_env_start(e, near, 2), CGS_OK);
    assert_int_equal(cgs_env_set_goal(e, goal, 2), CGS_OK);
    assert_int_equal(*e->success, 1);
    assert_int_equal(cgs_env_set_goal(e, far, 2), CGS_EARG);
    assert_string_equal(cgs_last_error(), "point: not there");
    /* one that turns bad later ends its episode, and leaves the state as it was */
    told = NAN_LATER;
    e->action[0] = e->action[1] = 1;
    cgs_env_step(e);
    assert_int_equal(*e->done, 1);
    assert_memory_equal(e->state, near, sizeof near);
    told = HONEST;
    cgs_env_destroy(e);
    assert_int_equal(cgs_env_has_judge(cls, CGS_JUDGE_STRICT), CGS_EARG);
    assert_int_equal(cgs_env_has_judge(cls, CGS_JUDGE_OFFICIAL), CGS_OK);
}

/* as little as a table can have */
static void test_defaults(void **unused) {
    (void)unused;
    cgs_env_class t = honest;
    t.id = "bare";
    t.can = CGS_ENV_RENDER;
    t.columns = NULL, t.column_count = 0, t.column = NULL;
    t.features = NULL, t.feature_count = 0, t.probe_state = NULL;
    t.set_state = NULL, t.check_goal = NULL, t.reached = NULL, t.act = NULL, t.open = NULL;
    assert_int_equal(cgs_env_add(&t), CGS_OK);
    const cgs_env_class *cls = found("bare");
    const cgs_policy_class *policy;
    assert_int_equal(cgs_policy_find("bare", NULL, &policy), CGS_OK);
    assert_string_equal(policy->name, "held");
    assert_int_equal(cgs_policy_find("point", NULL, &policy), CGS_OK);
    assert_string_equal(policy->name, "own");
    assert_int_equal(cgs_policy_find("bare", "own", &policy), CGS_EARG);

    const double a[2] = {0.1, 0.1}, near[2] = {0.1, 0.15}, far[2] = {0.2, 0.15};
    double out[CGS_ENV_MAX_DIM];
    assert_true(cgs_env_judged(cls, CGS_JUDGE_OFFICIAL, a, near));
    assert_false(cgs_env_judged(cls, CGS_JUDGE_OFFICIAL, a, far));
    assert_int_equal(cgs_env_feature_count(cls), 2);
    assert_string_equal(cgs_env_feature_at(cls, 1).target, "state");
    cgs_env_features(cls, near, out);
    assert_memory_equal(out, near, sizeof near);

    cgs_env *e;
    assert_int_equal(cgs_env_can_plan(cls), CGS_EARG);
    assert_non_null(strstr(cgs_last_error(), "--recorded"));
    assert_int_equal(cgs_env_create(&e, cls), CGS_OK);
    assert_int_equal(cgs_env_start(e, a, 2), CGS_EARG);
    assert_string_equal(cgs_last_error(), "bare cannot be set to a state");
    cgs_env_destroy(e);
}

/* without CGS_ENV_BATCH the host makes one call at a time */
static int inside, most;
static bool alone_step(void *w, const double *action, const cgs_env_aim *aim) {
    int now = __atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST);
    if (now > most) most = now;
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
    return step(w, action, aim);
}

static void test_one_at_a_time(void **unused) {
    (void)unused;
    cgs_env_class t = honest;
    cgs_env_batch b;
    t.id = "alone";
    t.can &= ~(unsigned)CGS_ENV_BATCH;
    t.step = alone_step;
    assert_int_equal(cgs_env_add(&t), CGS_OK);
    cgs_set_threads(4);
    assert_int_equal(cgs_env_batch_create(&b, found("alone"), 16), CGS_OK);
    assert_int_equal(cgs_env_batch_reset(&b, 1, 0), CGS_OK);
    cgs_env_batch_step(&b);
    assert_int_equal(most, 1);
    cgs_env_batch_destroy(&b);
    cgs_set_threads(0);
}

static void test_files(void **unused) {
    (void)unused;
    const char *id;
    assert_int_equal(cgs_env_load("libmine.so", &id), CGS_EARG);
    assert_non_null(strstr(cgs_last_error(), "a path with a slash"));
    assert_int_equal(cgs_env_load("/nowhere/libmine.so", &id), CGS_EIO);
    assert_int_equal(cgs_env_load("/tmp", &id), CGS_EFORMAT);
    assert_int_equal(cgs_env_load("/proc/self/exe", &id), CGS_EFORMAT);
    assert_non_null(strstr(cgs_last_error(), "cannot be loaded"));
    const cgs_env_class *cls;
    assert_int_equal(cgs_env_find("libmine.so", &cls), CGS_EARG);
    assert_non_null(strstr(cgs_last_error(), "./libmine.so"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lies),          cmocka_unit_test(test_tables),
        cmocka_unit_test(test_a_good_one),    cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_one_at_a_time), cmocka_unit_test(test_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

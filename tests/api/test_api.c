/* test_api.c - the public C API: agents, environments, recording, results. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "allocations.h"
#include "core/threads.h"
#include "expect.h"
#include "plan/planners.h"
#include "random_model.h"

enum { S = 64, D = 96, H = 5, F = 5, ACTIONS = H * F * 2 };

static char dir[64];
static uint8_t here[3 * S * S * 3], there[S * S * 3];

static int setup(void **state) {
    (void)state;
    cgs_sim *sim;
    strcpy(dir, "/tmp/cgs_api_XXXXXX");
    if (!mkdtemp(dir) || random_model_dir(dir, "tworooms", NULL, 4) != CGS_OK) return 1;
    if (cgs_sim_create(&sim, "tworooms") != CGS_OK) return 1;
    cgs_status rc = CGS_OK;
    for (int i = 0; i < 4 && rc == CGS_OK; i++) { /* three frames of a history, and a goal */
        double state_[2] = {40 + 10 * i, 60 + 5 * i};
        rc = cgs_sim_set_state(sim, state_, 2);
        if (rc == CGS_OK) rc = cgs_sim_render(sim, S, i < 3 ? here + i * S * S * 3 : there);
    }
    cgs_sim_destroy(sim);
    return rc;
}

static int teardown(void **state) {
    (void)state;
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

static cgs_agent *agent_of(const char *planner) {
    cgs_agent *a;
    cgs_agent_options o = {.planner = planner, .samples = 24, .iters = 4, .threads = 1};
    OK(cgs_agent_create(&a, dir, &o));
    return a;
}

static void test_describe(void **state) {
    (void)state;
    cgs_agent *a = agent_of(NULL);
    cgs_agent_info i = cgs_agent_describe(a);
    assert_int_equal(i.image_size, S);
    assert_int_equal(i.width, D);
    assert_int_equal(i.history, 3);
    assert_int_equal(i.action_dim, 2);
    assert_int_equal(i.frameskip, F);
    assert_int_equal(i.horizon, H);
    assert_string_equal(i.env, "tworooms");
    assert_string_equal(i.method, "random");
    cgs_agent_destroy(a);
    cgs_agent_destroy(NULL);
}

/* every planner, without allocating; an image and its latent are the same goal */
static void test_plan(void **state) {
    (void)state;
    const cgs_planner_kind *kind;
    for (int p = 0; (kind = cgs_planner_kind_at(p)); p++) {
        if (kind->needs & CGS_NEEDS_PRIOR) continue; /* the model has none */
        double by_image[ACTIONS], by_latent[ACTIONS], executed[2 * F * 2] = {0.3};
        float z[D];
        cgs_plan_report r;
        cgs_observation one = {.frames = here, .count = 1};
        cgs_observation three = {.frames = here, .count = 3, .executed = executed};
        cgs_agent *a = agent_of(kind->name), *b = agent_of(kind->name);
        OK(cgs_agent_encode(b, there, 1, z));
        long before = allocations;
        OK(cgs_agent_goal_image(a, there));
        OK(cgs_agent_goal_latent(b, z));
        OK(cgs_agent_plan(a, &one, 0, by_image, &r));
        OK(cgs_agent_plan(b, &one, 0, by_latent, NULL));
        OK(cgs_agent_plan(a, &three, 0, by_image, NULL));
        OK(cgs_agent_plan(b, &three, 0, by_latent, NULL));
        assert_int_equal(allocations, before);
        assert_memory_equal(by_image, by_latent, sizeof by_image);
        bool scores = kind->needs & CGS_NEEDS_SCORES;
        bool repeats = kind->reads & (CGS_READS_ITERS | CGS_READS_STEPS);
        assert_int_equal(r.iterations, !scores ? 0 : repeats ? 4 : 1);
        assert_int_equal(r.cut, 0);
        assert_int_equal(isnan(r.cost), !scores);
        if (!strcmp(kind->name, "zero")) /* the mean action of the training data */
            for (int i = 0; i < ACTIONS; i++)
                assert_true(fabs(by_image[i] - (i % 2 ? 0.2 : 0.1)) < 1e-6);
        cgs_agent_destroy(a);
        cgs_agent_destroy(b);
    }
}

/* the names are those of the table, and each makes an agent or says what it needs */
static void test_planners(void **state) {
    (void)state;
    bool found = false;
    assert_null(cgs_planner_id(-1));
    assert_null(cgs_planner_id(cgs_planner_count()));
    for (int i = 0; i < cgs_planner_count(); i++) {
        const cgs_planner_kind *kind = cgs_planner_kind_of(cgs_planner_id(i));
        cgs_agent_options o = {.planner = cgs_planner_id(i), .threads = 1};
        cgs_agent *a;
        assert_non_null(kind);
        found |= !strcmp(kind->name, "mppi");
        if (kind->needs & CGS_NEEDS_PRIOR)
            REFUSED(cgs_agent_create(&a, dir, &o), CGS_EIO, "prior");
        else
            OK(cgs_agent_create(&a, dir, &o));
        cgs_agent_destroy(a);
    }
    assert_true(found);
}

/* a search warm-started from the rest of the last plan differs from a cold one */
static void test_warm_start(void **state) {
    (void)state;
    double first[ACTIONS], warm[ACTIONS], cold[ACTIONS];
    cgs_agent *a = agent_of("gd"), *b = agent_of("gd");
    cgs_observation o = {.frames = here, .count = 1};
    OK(cgs_agent_goal_image(a, there));
    OK(cgs_agent_goal_image(b, there));
    OK(cgs_agent_plan(a, &o, 0, first, NULL));
    OK(cgs_agent_plan(b, &o, 0, first, NULL));
    OK(cgs_agent_plan(b, &o, 0, cold, NULL));
    o.advanced = 1;
    OK(cgs_agent_plan(a, &o, 0, warm, NULL));
    assert_memory_equal(first, cold, sizeof first); /* gd draws nothing: the same again */
    assert_true(memcmp(warm, cold, sizeof warm) != 0);
    cgs_agent_destroy(a);
    cgs_agent_destroy(b);
}

static void test_deadline(void **state) {
    (void)state;
    double plan[ACTIONS];
    cgs_agent *a;
    cgs_plan_report r;
    cgs_agent_options o = {.planner = "mppi", .samples = 64, .iters = 100000, .threads = 1};
    cgs_observation see = {.frames = here, .count = 1};
    OK(cgs_agent_create(&a, dir, &o));
    OK(cgs_agent_goal_image(a, there));
    OK(cgs_agent_plan(a, &see, 1e-6, plan, &r));
    assert_int_equal(r.iterations, 1);
    assert_int_equal(r.cut, 1);
    OK(cgs_agent_plan(a, &see, 0.3, plan, &r));
    assert_int_equal(r.cut, 1);
    /* how many fit depends on the machine; all of them would take minutes anywhere */
    assert_true(r.iterations >= 1 && r.iterations < 100000);
    REFUSED(cgs_agent_plan(a, &see, -1, plan, &r), CGS_EARG, "deadline");
    cgs_agent_destroy(a);
}

/* a cost that wants the second action value large and sees actions in the data's units */
typedef struct seen {
    int plans;
    double sum;
} seen;

static cgs_status push(void *user, const float *z, const float *actions, int n, float *cost) {
    seen *s = user;
    for (int i = 0; i < n; i++) {
        double c = 0;
        for (int k = 0; k < ACTIONS; k++) c += k % 2 ? -(double)actions[i * ACTIONS + k] : 0;
        cost[i] = (float)c;
        s->sum += z[i * H * D];
    }
    s->plans += n;
    return CGS_OK;
}

static cgs_status give_up(void *user, const float *z, const float *actions, int n, float *cost) {
    (void)user, (void)z, (void)actions, (void)n, (void)cost;
    return CGS_ESTOPPED;
}

static void test_own_cost(void **state) {
    (void)state;
    double plan[ACTIONS], mean[2] = {0, 0};
    seen s = {0};
    cgs_agent *a = agent_of("cem"), *g = agent_of("gd");
    cgs_observation o = {.frames = here, .count = 1};
    OK(cgs_agent_goal_cost(a, push, &s));
    OK(cgs_agent_plan(a, &o, 0, plan, NULL));
    assert_int_equal(s.plans, 24 * 4);
    assert_true(isfinite(s.sum) && s.sum != 0);
    for (int i = 0; i < ACTIONS; i++) mean[i % 2] += plan[i] / (ACTIONS / 2);
    /* in deviations from the data's mean, the channel that pays off has moved further */
    assert_true((mean[1] - 0.2) / 0.6 > 0.1 + fabs(mean[0] - 0.1) / 0.5);
    OK(cgs_agent_goal_cost(a, give_up, NULL));
    assert_int_equal(cgs_agent_plan(a, &o, 0, plan, NULL), CGS_ESTOPPED);
    REFUSED(cgs_agent_goal_cost(g, push, &s), CGS_EARG, "gd");
    cgs_agent_destroy(g);
    g = agent_of("gn"); /* a cost alone has no residuals */
    REFUSED(cgs_agent_goal_cost(g, push, &s), CGS_EARG, "gn");
    OK(cgs_agent_goal_image(g, here));
    OK(cgs_agent_plan(g, &o, 0, plan, NULL));
    for (int i = 0; i < ACTIONS; i++) assert_true(isfinite(plan[i]));
    cgs_agent_destroy(a);
    cgs_agent_destroy(g);
}

static void test_refusals(void **state) {
    (void)state;
    cgs_agent *a;
    double plan[ACTIONS];
    float z[D] = {0};
    cgs_agent_options o = {.planner = "cma"};
    REFUSED(cgs_agent_create(&a, dir, &o), CGS_EARG, "cma");
    o = (cgs_agent_options){.samples = -3};
    REFUSED(cgs_agent_create(&a, dir, &o), CGS_EARG, "plan.samples: -3");
    o = (cgs_agent_options){.tau = -1};
    REFUSED(cgs_agent_create(&a, dir, &o), CGS_EARG, "plan.tau: -1");
    o = (cgs_agent_options){.planner = "pg-mppi"};
    REFUSED(cgs_agent_create(&a, dir, &o), CGS_EIO, "prior");
    o = (cgs_agent_options){.device = "abacus"};
    REFUSED(cgs_agent_create(&a, dir, &o), CGS_EDEVICE, "abacus");
    assert_int_not_equal(cgs_agent_create(&a, "/nowhere", NULL), CGS_OK);
    assert_null(a);

    a = agent_of("mppi");
    cgs_observation see = {.frames = here, .count = 1};
    REFUSED(cgs_agent_plan(a, &see, 0, plan, NULL), CGS_EARG, "no goal");
    OK(cgs_agent_goal_image(a, there));
    see.count = 4;
    REFUSED(cgs_agent_plan(a, &see, 0, plan, NULL), CGS_EARG, "4 frames");
    see.count = 2;
    REFUSED(cgs_agent_plan(a, &see, 0, plan, NULL), CGS_EARG, "without the actions");
    z[7] = NAN;
    REFUSED(cgs_agent_goal_latent(a, z), CGS_ENUMERIC, "value 7");
    cgs_agent_destroy(a);
}

static void test_sim(void **state) {
    (void)state;
    cgs_sim *s;
    REFUSED(cgs_sim_create(&s, "mars"), CGS_EARG, "mars");
    assert_null(cgs_sim_id(-1));
    assert_null(cgs_sim_id(cgs_sim_count()));
    for (int i = 0; i < cgs_sim_count(); i++) {
        double start[64], action[64] = {0};
        static uint8_t a[S * S * 3], b[S * S * 3];
        OK(cgs_sim_create(&s, cgs_sim_id(i)));
        cgs_sim_info info = cgs_sim_describe(s);
        OK(cgs_sim_reset(s, 5));
        memcpy(start, cgs_sim_state(s), sizeof(double) * (size_t)info.state_dim);
        OK(cgs_sim_render(s, S, a));
        action[0] = 0.5;
        for (int k = 0; k < 5; k++) OK(cgs_sim_step(s, action, info.action_dim));
        assert_true(memcmp(start, cgs_sim_state(s), sizeof(double) * (size_t)info.state_dim) != 0);
        /* the same seed is the same start; a state that is its own goal is a success */
        OK(cgs_sim_reset(s, 5));
        assert_memory_equal(start, cgs_sim_state(s), sizeof(double) * (size_t)info.state_dim);
        OK(cgs_sim_render(s, S, b));
        assert_memory_equal(a, b, sizeof a);
        OK(cgs_sim_set_state(s, start, info.state_dim));
        action[0] = 0;
        OK(cgs_sim_step(s, action, info.action_dim));
        assert_int_equal(cgs_sim_success(s), 1);
        REFUSED(cgs_sim_step(s, action, info.action_dim + 1), CGS_EARG, info.id);
        action[0] = NAN;
        assert_int_equal(cgs_sim_step(s, action, info.action_dim), CGS_EARG);
        cgs_sim_destroy(s);
    }
    cgs_sim_destroy(NULL);
}

/* episodes of an evaluation draw their own candidates, and the same ones again */
static void test_episodes(void **state) {
    (void)state;
    double plan[4][ACTIONS], cost, size;
    static const uint64_t seed[] = {5, 5, 6, 5}, episode[] = {1, 2, 1, 1};
    cgs_observation o = {.frames = here, .count = 1};
    cgs_plan_report r;
    cgs_agent *a = agent_of("cem");
    OK(cgs_agent_goal_image(a, there));
    REFUSED(cgs_agent_weigh(a, &cost, &size), CGS_EARG, "no plan");
    for (int i = 0; i < 4; i++) {
        cgs_agent_begin(a, seed[i], episode[i]);
        OK(cgs_agent_plan(a, &o, 0, plan[i], &r));
        OK(cgs_agent_weigh(a, &cost, &size));
        assert_true(cost > 0 && size > 0 && isfinite(cost) && isfinite(size));
    }
    assert_memory_equal(plan[0], plan[3], sizeof plan[0]);
    assert_true(memcmp(plan[0], plan[1], sizeof plan[0]) &&
                memcmp(plan[0], plan[2], sizeof plan[0]));
    cgs_agent_destroy(a);
    /* settings beside the named ones */
    static const char *const good[] = {"plan.sigma=0.5"}, *const bad[] = {"plan.mars=1"};
    cgs_agent_options with = {.planner = "cem", .settings = good, .setting_count = 1, .threads = 1};
    OK(cgs_agent_create(&a, dir, &with));
    cgs_agent_destroy(a);
    with.settings = bad;
    REFUSED(cgs_agent_create(&a, dir, &with), CGS_EARG, "plan.mars");
}

static void test_result_line(void **state) {
    (void)state;
    cgs_agent *a = agent_of("zero");
    cgs_start start[2] = {{0, 3, 3}, {1, 4, 44}};
    cgs_outcome outcome[2] = {{.success = 1, .first = 9, .actions = 9, .solves = 1},
                              {.actions = 50}};
    cgs_result r = {.env = "mine",
                    .env_version = 2,
                    .dataset = "mine.h5",
                    .dataset_rows = 80,
                    .seed = 3,
                    .history = "native",
                    .success = "any",
                    .budget = 50,
                    .execute = 5,
                    .count = 2,
                    .start = start,
                    .outcome = outcome};
    char hash[17], again[17], *line;
    OK(cgs_result_line(a, &r, hash, &line));
    assert_non_null(strstr(line, hash));
    assert_non_null(strstr(line, "\"env\":\"mine\",\"env_version\":2,\"dataset\":\"mine.h5\""));
    assert_non_null(strstr(line, "\"episodes\":2,\"successes\":1,\"rate\":0.5"));
    cgs_line_free(line);
    cgs_line_free(NULL);
    r.outcome = NULL; /* the hash does not depend on what happened */
    OK(cgs_result_line(a, &r, again, NULL));
    assert_string_equal(hash, again);
    REFUSED(cgs_result_line(a, &r, again, &line), CGS_EARG, "without outcomes");
    r.history = "long";
    REFUSED(cgs_result_line(a, &r, again, NULL), CGS_EARG, "\"long\"");
    r.history = NULL;
    REFUSED(cgs_result_line(a, &r, again, NULL), CGS_EARG, "names no");
    cgs_agent_destroy(a);
}

static void count_found(void *user, int problem, const char *sentence) {
    (void)sentence;
    ((int *)user)[problem]++;
}

static int skip_even(void *user, const cgs_start *s) {
    (void)user;
    return s->row % 2 == 0;
}

/* what is out of order is refused; a recording becomes a dataset that starts are drawn from */
static void test_recording(void **state) {
    (void)state;
    enum { ROWS = 30 };
    static const cgs_column_spec columns[] = {{"pixels", CGS_COL_U8, 3, {8, 8, 3}},
                                              {"action", CGS_COL_F32, 1, {1}}};
    static uint8_t pixels[ROWS * 8 * 8 * 3];
    static float action[ROWS];
    const void *data[] = {pixels, action};
    char path[96];
    int64_t episodes, first;
    int found[2] = {0};
    cgs_writer *w;
    cgs_dataset *d;
    for (int t = 0; t < ROWS; t++) action[t] = t + 1 < ROWS ? (float)(t % 7) : NAN;
    for (size_t i = 0; i < sizeof pixels; i++) pixels[i] = (uint8_t)(i / 192);
    snprintf(path, sizeof path, "%s/mine.h5", dir);
    OK(cgs_writer_create(&w, path, columns, 2));
    REFUSED(cgs_writer_add(w, ROWS, data), CGS_EARG, "no recording has begun");
    REFUSED(cgs_writer_finish(w), CGS_EARG, "no recording has begun");
    OK(cgs_writer_begin(w, &episodes));
    REFUSED(cgs_writer_begin(w, &episodes), CGS_EARG, "begun already");
    REFUSED(cgs_writer_text(w, "env", "mine"), CGS_EARG, "after its beginning");
    for (int e = 0; e < 2; e++) OK(cgs_writer_add(w, ROWS, data));
    OK(cgs_writer_finish(w));
    REFUSED(cgs_writer_add(w, ROWS, data), CGS_EARG, "no recording has begun");
    cgs_writer_destroy(w);

    OK(cgs_dataset_judge(path, NULL, count_found, found));
    assert_int_equal(found[1], 0);
    OK(cgs_dataset_judge(path, "small", count_found, found));
    assert_int_equal(found[1], 1); /* 8 x 8 pixels */
    REFUSED(cgs_dataset_judge(path, "huge", count_found, found), CGS_EARG, "huge");
    OK(cgs_dataset_open(&d, path));
    cgs_dataset_info i = cgs_dataset_describe(d);
    assert_true(i.rows == 2 * ROWS && i.episodes == 2 && i.height == 8 && i.action_dim == 1);
    assert_true(cgs_dataset_episode(d, 1, &first) == ROWS && first == ROWS);
    assert_int_equal(cgs_dataset_episode(d, 2, &first), 0);
    assert_null(cgs_dataset_column(d, i.columns).name);
    assert_null(cgs_dataset_column(d, -1).name);
    cgs_start start[20];
    OK(cgs_dataset_starts(d, 4, 5, 1, NULL, skip_even, NULL, start));
    for (int s = 0; s < 4; s++) assert_true(start[s].row % 2 == 1 && start[s].step + 5 < ROWS);
    REFUSED(cgs_dataset_starts(d, 400, 5, 1, NULL, NULL, NULL, start), CGS_EARG,
            "400 were requested");
    cgs_agent *a = agent_of("zero");
    OK(cgs_dataset_starts(d, 20, 5, 1, a, NULL, NULL, start)); /* one episode of two is held out */
    for (int k = 1; k < 20; k++) assert_int_equal(start[k].episode, start[0].episode);
    cgs_agent_destroy(a);
    cgs_dataset_close(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_describe),  cmocka_unit_test(test_plan),
        cmocka_unit_test(test_planners),  cmocka_unit_test(test_warm_start),
        cmocka_unit_test(test_deadline),  cmocka_unit_test(test_own_cost),
        cmocka_unit_test(test_refusals),  cmocka_unit_test(test_sim),
        cmocka_unit_test(test_episodes),  cmocka_unit_test(test_result_line),
        cmocka_unit_test(test_recording),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

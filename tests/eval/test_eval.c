/* test_eval.c - evaluations: results that are reused and continued, summaries, starts, and input
 * that is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collect/collect.h"
#include "core/file.h"
#include "eval/curvature.h"
#include "eval/evaluate.h"
#include "eval/recorded_image.h"
#include "eval/summary.h"
#include "eval/temperature.h"
#include "eval_bed.h"
#include "expect.h"
#include "plan/curvature.h"
#include "random_model.h"
#include "rollout/held_out.h"
#include "train/prior_fit.h"

static const char *const one_model[1] = {bed_model_a};
static const char *const two_models[2] = {bed_model_a, bed_model_b};
static const char *const mppi_only[] = {"mppi"}, *const some_planners[] = {"mppi", "zero"};
static const int few_samples[] = {1, 4}, few_iters[] = {2};
static const uint64_t two_seeds[] = {0, 42};
static const double taus[] = {64, 128};

static cgs_eval_options small_eval(void) {
    cgs_eval_options o = cgs_eval_defaults();
    o.models = two_models;
    o.model_count = 2;
    o.data = bed_data;
    o.planners = some_planners;
    o.planner_count = 2;
    o.samples = few_samples;
    o.sample_count = 2;
    o.iters = few_iters;
    o.iter_count = 1;
    o.seeds = two_seeds;
    o.seed_count = 2;
    o.episodes = 6;
    o.threads = 1;
    return o;
}

static int lines_of(const char *path, char **text) {
    size_t bytes;
    int lines = 0;
    OK(cgs_read_file(path, 1 << 28, text, &bytes));
    for (size_t i = 0; i < bytes; i++) lines += (*text)[i] == '\n';
    return lines;
}

/* The batch is in the hash where bits depend on it, and changes no line where they do not. */
/* settings of a line, all as usual */
static cgs_eval_settings plain_settings(void) {
    return (cgs_eval_settings){.model = "runs/a",
                               .method = "lewm",
                               .env = "tworooms",
                               .env_version = 1,
                               .dataset = "data.h5",
                               .rule = {.count = 50, .goal_offset = 25},
                               .budget = 50,
                               .execute = 5,
                               .plan = cgs_plan_defaults(),
                               .device = "cpu",
                               .precision = "f32"};
}

static void test_batch_in_hash(void **state) {
    (void)state;
    cgs_eval_settings s = plain_settings();
    char *json, hash[3][17];
    static const int batch[3] = {0, 512, 50};
    for (int i = 0; i < 3; i++) {
        char want[24];
        s.batch = batch[i];
        snprintf(want, sizeof want, "\"batch\":%d}", batch[i]);
        OK(cgs_eval_describe(&s, &json, hash[i]));
        assert_int_equal(strstr(json, want) != NULL, batch[i] != 0);
        free(json);
    }
    assert_string_equal(hash[0], "03d7eebb0f1fe4cf");
    assert_string_not_equal(hash[0], hash[1]);
    assert_string_not_equal(hash[1], hash[2]);
}

/* So are the rule of success and that a prior was checked, where lines from before have neither. */
static void test_rules_in_hash(void **state) {
    (void)state;
    cgs_eval_settings s = {.model = "runs/a",
                           .method = "lewm",
                           .env = "tworooms",
                           .env_version = 1,
                           .dataset = "data.h5",
                           .rule = {.count = 50, .goal_offset = 25},
                           .success = CGS_SUCCESS_SOLVE,
                           .prior_held_out = true,
                           .budget = 50,
                           .execute = 5,
                           .plan = cgs_plan_defaults(),
                           .device = "cpu",
                           .precision = "f32"};
    char *json, hash[2][17];
    OK(cgs_eval_describe(&s, &json, hash[0]));
    assert_non_null(strstr(json, "\"success\":\"solve\",\"prior_held_out\":true,"));
    free(json);
    s.success = CGS_SUCCESS_ANY;
    OK(cgs_eval_describe(&s, &json, hash[1]));
    assert_null(strstr(json, "success"));
    free(json);
    assert_string_not_equal(hash[0], hash[1]);
    assert_string_not_equal(hash[1], "03d7eebb0f1fe4cf"); /* that of test_batch_in_hash */
}

/* A line has the prior's checksum where its planner has one, and lines of others stay as they were
 * (test_hashes). */
static void test_prior_in_hash(void **state) {
    (void)state;
    cgs_eval_settings s = plain_settings();
    char *json, hash[3][17];
    for (int i = 0; i < 3; i++) {
        s.prior = (uint64_t)i;
        OK(cgs_eval_describe(&s, &json, hash[i]));
        assert_int_equal(strstr(json, "\"prior\":") != NULL, i > 0);
        if (i == 2) assert_non_null(strstr(json, "\"prior\":\"0000000000000002\",\"budget\""));
        free(json);
    }
    assert_string_not_equal(hash[0], hash[1]);
    assert_string_not_equal(hash[1], hash[2]);
}

/* The protocol is in the hash where it is not the official one; lines from before it have none. */
static void test_protocol_in_hash(void **state) {
    (void)state;
    cgs_eval_settings s = plain_settings();
    char *json, hash[CGS_JUDGES][17];
    for (int j = 0; j < CGS_JUDGES; j++) {
        char want[40];
        s.judge = (cgs_judge)j;
        snprintf(want, sizeof want, "\"protocol\":\"%s\"", cgs_judge_name(s.judge));
        OK(cgs_eval_describe(&s, &json, hash[j]));
        assert_int_equal(strstr(json, want) != NULL, j != CGS_JUDGE_OFFICIAL);
        free(json);
    }
    assert_string_equal(hash[0], "03d7eebb0f1fe4cf"); /* that of test_batch_in_hash */
    assert_string_not_equal(hash[1], hash[2]);
}

/* A protocol by name: no start that is solved, random actions beside the planner, its own lines and
 * lists of starts; the strict one looks at the end. */
static void test_protocols(void **state) {
    (void)state;
    cgs_eval_options o = small_eval();
    cgs_evaluation e;
    cgs_starts s;
    bed b;
    bed_open(&b, 1, 1, 1);
    o.planner_count = 1;
    o.sample_count = 1;
    o.seed_count = 1;
    o.model_count = 1;
    o.episodes = 20;
    static const char *const names[] = {"moderate", "strict"};
    int successes[2];
    for (int k = 0; k < 2; k++) {
        char name[32];
        snprintf(name, sizeof name, "%s.starts", names[k]);
        o.protocol = names[k];
        o.manifest = bed_path(name);
        OK(cgs_evaluate(&e, &o));
        assert_int_equal(e.count, 2); /* mppi, and random actions */
        assert_string_equal(e.run[1].plan.kind.s, "random");
        successes[k] = e.run[0].result.successes + e.run[1].result.successes;
        cgs_evaluation_free(&e);
        OK(cgs_starts_load(&s, o.manifest, NULL));
        assert_true(s.rule.skip_solved && (int)s.judge == k + 1);
        for (int i = 0; i < s.count; i++) {
            double at[2], goal[2];
            OK(cgs_dataset_read_rows_f64(b.data, "state", s.start[i].row, 1, at));
            OK(cgs_dataset_read_rows_f64(b.data, "state", s.start[i].row + 25, 1, goal));
            /* not even by the easier predicate */
            assert_false(cgs_env_judged(b.env, CGS_JUDGE_OFFICIAL, at, goal));
        }
        cgs_starts_free(&s);
    }
    assert_true(successes[1] <= successes[0]);
    o.protocol = "official"; /* a list of another protocol */
    REFUSED(cgs_evaluate(&e, &o), CGS_EARG, "starts of the strict protocol");
    cgs_evaluation_free(&e);
    o.manifest = NULL;
    o.protocol = "lenient";
    REFUSED(cgs_evaluate(&e, &o), CGS_EARG, "is not official, moderate or strict");
    cgs_evaluation_free(&e);
    o.protocol = "strict";
    o.success = "any";
    REFUSED(cgs_evaluate(&e, &o), CGS_EARG, "judges the end");
    cgs_evaluation_free(&e);
    bed_close(&b);
}

static void test_resume(void **state) {
    (void)state;
    cgs_eval_options o = small_eval();
    const char *path = bed_path("results.jsonl");
    cgs_evaluation e, again;
    char *text, *later;
    o.out = path;
    OK(cgs_evaluate(&e, &o));
    /* (mppi K=1, mppi K=4, zero) x 2 models x 2 seeds */
    assert_int_equal(e.count, 12);
    assert_int_equal(lines_of(path, &text), 12);
    for (int i = 0; i < e.count; i++) assert_false(e.run[i].reused);

    /* a lone candidate is the mean: the zero plan, for every model */
    for (int i = 0; i < 4; i++)
        assert_memory_equal(e.run[i].result.success, e.run[8 + i].result.success, 6);

    /* everything is there: nothing is run, nothing is written */
    OK(cgs_evaluate(&again, &o));
    for (int i = 0; i < again.count; i++) {
        assert_true(again.run[i].reused);
        assert_memory_equal(again.run[i].result.success, e.run[i].result.success, 6);
        assert_string_equal(again.run[i].result.hash, e.run[i].result.hash);
    }
    cgs_evaluation_free(&again);
    assert_int_equal(lines_of(path, &later), 12);
    assert_string_equal(text, later);
    free(later);

    /* a crash in the middle of the tenth line: three runs are missing */
    size_t cut = 0;
    for (int line = 0; line < 9; cut++) line += text[cut] == '\n';
    OK(cgs_write_file(path, text, cut + 100));
    OK(cgs_evaluate(&again, &o));
    int reused = 0;
    for (int i = 0; i < again.count; i++) {
        reused += again.run[i].reused;
        assert_memory_equal(again.run[i].result.success, e.run[i].result.success, 6);
    }
    assert_int_equal(reused, 9);
    cgs_evaluation_free(&again);
    assert_int_equal(lines_of(path, &later), 12);
    assert_memory_equal(text, later, cut);
    free(later);

    /* other settings are other results */
    o.planners = mppi_only;
    o.planner_count = 1;
    o.taus = taus;
    o.tau_count = 2; /* 128 is the default that was used above */
    OK(cgs_evaluate(&again, &o));
    for (int i = 0; i < again.count; i++)
        assert_int_equal(again.run[i].reused, again.run[i].plan.tau == 128);
    cgs_evaluation_free(&again);

    /* a file that is something else is not touched */
    OK(cgs_write_file(path, "hello\n", 6));
    REFUSED(cgs_evaluate(&again, &o), CGS_EFORMAT, "line 1");
    cgs_evaluation_free(&again);
    cgs_evaluation_free(&e);
    free(text);
}

/* Stored results are found by these hashes: they must not change for settings that were there
 * before, whatever else a line or a planner learns. */
static void test_hashes(void **state) {
    (void)state;
    static const struct {
        const char *planner, *hash, *settings;
    } lines[] = {
        {"mppi", "46ff37fbb2a63cc6", "\"samples\":65,\"iters\":29,\"tau\":0.015,\"sigma\":0.7,"},
        {"pg-mppi", "ccb8d66406325fbe", "\"samples\":65,\"iters\":29,\"tau\":0.015,\"sigma\":0.7,"},
        {"cem", "114dfcb13ff6ad44", "\"samples\":65,\"iters\":29,\"elites\":16,\"sigma\":0.7,"},
        {"pg-cem", "2d81b95416b5879e", "\"samples\":65,\"iters\":29,\"elites\":16,\"sigma\":0.7,"},
        {"gd", "d7068a2f875d5b46", "\"steps\":77,\"lr\":0.03,"},
        {"random", "8ee5076e5c6d3683", "\"sigma\":0.7,"},
        {"zero", "80d04f828477ea51", ""},
        {"icem", "071d4f8882a56a3a",
         "\"samples\":65,\"iters\":29,\"elites\":16,\"sigma\":0.7,\"colour\":2,\"keep\":0.3,"},
        {"gn", "2a1c84c85f364ab3",
         "\"samples\":65,\"iters\":29,\"sigma\":0.7,\"gamma\":1,\"decay\":0.8,"},
        {"pg-gn", "a9c51c0a21e6eee0",
         "\"samples\":65,\"iters\":29,\"sigma\":0.7,\"gamma\":1,\"decay\":0.8,"},
        {"covo", "311d9f07f4e8d514",
         "\"samples\":65,\"iters\":29,\"tau\":0.015,\"sigma\":0.7,\"gamma\":1,"},
        {"lm", "a35f13b36384d201", "\"iters\":29,\"gamma\":1,"},
        {"prior", "315a5fd647cdb36d", ""},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        cgs_eval_settings s = {.model = "runs/lewm-cgs",
                               .method = "lewm-cgs",
                               .weights = UINT64_C(0x0123456789abcdef),
                               .env = "tworooms",
                               .env_version = 1,
                               .dataset = "tworooms.h5",
                               .dataset_rows = 40000,
                               .rule = {.count = 50, .goal_offset = 25, .seed = 42},
                               .starts = 7,
                               .budget = 50,
                               .execute = 5,
                               .plan = cgs_plan_defaults(),
                               .device = "cpu",
                               .precision = "f32"};
        char *json, hash[17], part[256];
        snprintf(s.plan.kind.s, sizeof s.plan.kind.s, "%s", lines[i].planner);
        s.plan.K = 65;
        s.plan.iters = 29;
        s.plan.gd_steps = 77;
        s.plan.tau = 0.015f;
        s.plan.sigma = 0.7f;
        s.plan.lr = 0.03f;
        s.plan.seed = 42;
        OK(cgs_eval_describe(&s, &json, hash));
        snprintf(part, sizeof part, "\"planner\":\"%s\",\"horizon\":5,%s\"seed\":\"42\"",
                 lines[i].planner, lines[i].settings);
        if (!strstr(json, part)) fail_msg("%s: no %s in %s", lines[i].planner, part, json);
        assert_string_equal(hash, lines[i].hash);
        free(json);
    }
}

/* options are in a line where they are not at the value that lines without them meant */
static void test_options_in_lines(void **state) {
    (void)state;
    cgs_eval_settings s = {.model = "m", .env = "tworooms", .plan = cgs_plan_defaults()};
    char *json, hash[3][17];
    OK(cgs_eval_describe(&s, &json, hash[0]));
    assert_non_null(strstr(json, "\"tau\":4,"));
    assert_null(strstr(json, "ess"));
    free(json);
    s.plan.gamma = 7; /* mppi does not read it */
    OK(cgs_eval_describe(&s, &json, hash[1]));
    assert_string_equal(hash[0], hash[1]);
    free(json);
    s.plan.ess = 4;
    s.plan.decay = 0.5f;
    s.plan.best = true;
    OK(cgs_eval_describe(&s, &json, hash[1]));
    assert_string_not_equal(hash[0], hash[1]);
    assert_non_null(strstr(json, "\"ess\":4,\"decay\":0.5,\"best\":1,"));
    assert_null(strstr(json, "\"tau\"")); /* which is not read then */
    free(json);
}

/* an environment without a known temperature is planned in all the same */
static void test_unknown_temperature(void **state) {
    (void)state;
    bed b;
    bed_open(&b, 1, 1, 1);
    cgs_plan_config c = cgs_plan_defaults();
    c.K = 64;
    OK(cgs_choose_tau(&c, 0, b.s.model, "tworooms"));
    assert_true(c.tau == 128 && c.ess == 0);
    OK(cgs_choose_tau(&c, 0, b.s.model, "nowhere"));
    assert_true(c.ess == 16);
    c.ess = 5;
    OK(cgs_choose_tau(&c, 0, b.s.model, "nowhere"));
    assert_true(c.ess == 5);
    c.ess = 0;
    OK(cgs_choose_tau(&c, 3, b.s.model, "nowhere"));
    assert_true(c.tau == 3 && c.ess == 0);
    strcpy(c.kind.s, "cem");
    OK(cgs_choose_tau(&c, 0, b.s.model, "nowhere"));
    assert_true(c.ess == 0);
    bed_close(&b);
}

/* a measured temperature: once per model, the same for all its runs and for any team, and only for
 * planners that read one */
static void test_measured_temperature(void **state) {
    (void)state;
    static const char *const planners[] = {"mppi", "cem"};
    static const double two_taus[] = {CGS_TAU_MEASURED, 3};
    cgs_eval_options o = small_eval();
    cgs_evaluation e;
    cgs_plan_config c = cgs_plan_defaults();
    double tau[2];
    for (int threads = 1; threads <= 2; threads++) {
        bed b;
        bed_open(&b, threads, 1, 1);
        OK(cgs_model_curvature(&tau[threads - 1], &b.s, b.data, b.env, &c));
        bed_close(&b);
    }
    assert_true(tau[0] > 0 && tau[0] == tau[1]);
    c.iters = few_iters[0];
    tau[0] = cgs_plan_curvature_tau(&c, tau[0]);
    o.out = NULL;
    o.planners = planners;
    o.taus = two_taus;
    o.tau_count = 2;
    o.sample_count = 1;
    OK(cgs_evaluate(&e, &o));
    assert_int_equal(e.count, 12);
    for (int i = 0; i < 8; i++)
        if (i < 4 && e.run[i].model == 0)
            assert_true(e.run[i].plan.tau == (float)tau[0] && e.run[i].plan.ess == 0);
        else if (i < 4)
            assert_true(e.run[i].plan.tau > 0 && e.run[i].plan.ess == 0);
        else
            assert_true(e.run[i].plan.tau == 3);
    for (int i = 8; i < 12; i++) assert_true(e.run[i].plan.tau == cgs_plan_defaults().tau);
    cgs_evaluation_free(&e);
}

/* rollouts: each planner by its rule, their areas, and settings for those that read them */
static void test_rollouts_axis(void **state) {
    (void)state;
    static const char *const planners[] = {"gn", "cem", "zero"};
    static const int rollouts[] = {8, 32};
    static char decay[] = "plan.decay=0.5", bad[] = "plan.samples=3";
    char *settings[] = {decay};
    cgs_eval_options o = small_eval();
    cgs_evaluation e;
    cgs_summary s;
    o.out = NULL;
    o.model_count = o.seed_count = 1;
    o.planners = planners;
    o.planner_count = 3;
    o.rollouts = rollouts;
    o.rollout_count = 2;
    o.settings = settings;
    o.setting_count = 1;
    OK(cgs_evaluate(&e, &o));
    assert_int_equal(e.count, 5);
    assert_true(e.run[0].plan.K == 8 && e.run[0].plan.iters == 1);
    assert_true(e.run[1].plan.K == 16 && e.run[1].plan.iters == 2);
    assert_true(e.run[2].plan.K == 8 && e.run[2].plan.iters == 1);
    assert_true(e.run[3].plan.K == 16 && e.run[3].plan.iters == 2);
    assert_true(e.run[1].plan.decay == 0.5f);
    OK(cgs_summarise(&s, &e));
    int areas = 0;
    for (int i = 0; i < s.areas; i++)
        if (s.area[i].over == CGS_SWEEP_ROLLOUTS) {
            assert_true(s.area[i].low == 8 && s.area[i].high == 32 && s.area[i].points == 2);
            areas++;
        }
    assert_int_equal(areas, 2);
    cgs_summary_free(&s);
    cgs_evaluation_free(&e);
    settings[0] = bad;
    REFUSED(cgs_evaluate(&e, &o), CGS_EARG, "plan.samples");
    cgs_evaluation_free(&e);
}

static void test_summary(void **state) {
    (void)state;
    cgs_eval_options o = small_eval();
    cgs_evaluation e;
    cgs_summary s;
    OK(cgs_evaluate(&e, &o));
    OK(cgs_summarise(&s, &e));
    assert_int_equal(s.rows, 6);
    assert_int_equal(s.pairs, 3);
    assert_int_equal(s.areas, 2);
    for (int i = 0; i < s.rows; i++) {
        const cgs_eval_run *r = &e.run[2 * i];
        double a = r[0].result.successes / 6.0, b = r[1].result.successes / 6.0;
        assert_true(fabs(s.row[i].mean - 50 * (a + b)) < 1e-9);
        assert_true(fabs(s.row[i].sd - 100 * fabs(a - b) / sqrt(2)) < 1e-9);
        assert_int_equal(s.row[i].episodes, 12);
    }
    /* two points: the area is their mean */
    for (int i = 0; i < 2; i++)
        assert_true(fabs(s.area[i].nauc - (s.row[i].mean + s.row[2 + i].mean) / 2) < 1e-9);
    assert_int_equal(s.pair[0].paired.n, 12);
    cgs_summary_free(&s);
    cgs_evaluation_free(&e);
}

static void replace_last_line(const char *path, const char *text, const char *line) {
    char whole[8192];
    size_t keep = strlen(text) - 1;
    while (text[keep - 1] != '\n') keep--;
    assert_true(keep + strlen(line) < sizeof whole);
    snprintf(whole, sizeof whole, "%.*s%s", (int)keep, text, line);
    OK(cgs_write_file(path, whole, strlen(whole)));
}

static void test_starts(void **state) {
    (void)state;
    cgs_eval_options o = small_eval();
    cgs_evaluation e;
    cgs_starts s;
    char moved[96];
    o.planners = some_planners + 1; /* zero */
    o.planner_count = 1;
    o.seed_count = 1;
    o.held_out = o.skip_solved = true;
    o.manifest = bed_path("starts.jsonl");
    OK(cgs_evaluate(&e, &o));
    cgs_evaluation_free(&e);

    OK(cgs_starts_load(&s, o.manifest, NULL));
    assert_int_equal(s.count, 6);
    assert_true(s.rule.held_out && s.rule.skip_solved);
    bed b;
    bed_open(&b, 1, 1, 1);
    uint8_t held[BED_EPISODES];
    OK(cgs_loaded_model_held_out(&b.s, cgs_dataset_source(b.data), held));
    cgs_env *env;
    OK(cgs_env_create(&env, b.env));
    for (int i = 0; i < s.count; i++) {
        double at[2], goal[2];
        assert_true(held[s.start[i].episode]);
        OK(cgs_dataset_read_rows_f64(b.data, "state", s.start[i].row, 1, at));
        OK(cgs_dataset_read_rows_f64(b.data, "state", s.start[i].row + 25, 1, goal));
        assert_false(cgs_env_reached(env, at, goal));
    }
    /* the manifest decides from now on */
    o.episodes = 3;
    o.held_out = o.skip_solved = false;
    OK(cgs_evaluate(&e, &o));
    assert_int_equal(e.run[0].result.episodes, 6);
    cgs_evaluation_free(&e);
    /* but starts that it calls held out must be held out of these models */
    char *text;
    (void)lines_of(o.manifest, &text);
    int seen = 0;
    while (held[seen]) seen++;
    snprintf(moved, sizeof moved, "{\"episode\":%d,\"step\":0,\"row\":%lld}\n", seen,
             (long long)cgs_dataset_source(b.data)->ep_offset[seen]);
    replace_last_line(o.manifest, text, moved);
    REFUSED(cgs_evaluate(&e, &o), CGS_EFORMAT, "they were changed");
    cgs_evaluation_free(&e);
    /* an older list has no checksum */
    char *older = strdup(text), *protocol = strstr(older, ",\"protocol\"");
    assert_non_null(protocol);
    memmove(protocol, strchr(protocol, '}'), strlen(strchr(protocol, '}')) + 1);
    replace_last_line(o.manifest, older, moved);
    free(older);
    REFUSED(cgs_evaluate(&e, &o), CGS_EARG, "is not held out of every model's training");
    cgs_evaluation_free(&e);
    OK(cgs_write_file(o.manifest, text, strlen(text)));
    free(text);
    /* one that belongs to other data is refused */
    (void)lines_of(o.manifest, &text);
    char *rows = strstr(text, "\"rows\":");
    assert_non_null(rows);
    rows[7] = rows[7] == '9' ? '8' : '9';
    OK(cgs_write_file(o.manifest, text, strlen(text)));
    assert_int_not_equal(cgs_evaluate(&e, &o), CGS_OK);
    cgs_evaluation_free(&e);
    free(text);
    cgs_env_destroy(env);
    cgs_starts_free(&s);
    bed_close(&b);
}

/* A re-rendered image depends on its row alone, also where a simulation remembers contacts. */
static void test_images(void **state) {
    (void)state;
    enum { SIDE = 96, ROWS = 40, FRAME = SIDE * SIDE * 3 };
    const char *path = bed_path("pusht.h5");
    cgs_collect_options c = {.env = "pusht", .out = path, .episodes = 4, .side = SIDE, .every = 5};
    cgs_collect_result r;
    OK(cgs_collect(&c, &r));
    cgs_dataset *data;
    const cgs_env_class *env;
    OK(cgs_dataset_open(&data, path));
    OK(cgs_dataset_env(data, NULL, &env));
    uint8_t *first = malloc(FRAME * ROWS), *again = malloc(FRAME);
    assert_true(first && again);
    for (int e = 0; e < 4; e++) {
        int64_t row = cgs_dataset_source(data)->ep_offset[e];
        cgs_recorded_images forth, back;
        OK(cgs_recorded_images_open(&forth, data, env));
        OK(cgs_recorded_images_open(&back, data, env));
        for (int i = 0; i < ROWS; i++)
            OK(cgs_recorded_images_read(&forth, row, i, first + FRAME * i));
        for (int i = ROWS - 1; i >= 0; i--) {
            OK(cgs_recorded_images_read(&back, row, i, again));
            assert_memory_equal(again, first + FRAME * i, FRAME);
        }
        cgs_recorded_images_close(&forth);
        cgs_recorded_images_close(&back);
    }
    free(first);
    free(again);
    cgs_dataset_close(data);
}

/* ---- bad input --------------------------------------------------------------------- */

static void refuse(const cgs_eval_options *o, cgs_status code, const char *word) {
    cgs_evaluation e;
    REFUSED(cgs_evaluate(&e, o), code, word);
    cgs_evaluation_free(&e);
}

static void test_refusals(void **state) {
    (void)state;
    static const int zero_samples[] = {0}, six[] = {6};
    static const double cold[] = {0};
    static const char *const unknown[] = {"cma"}, *const cem[] = {"cem"}, *const pg[] = {"pg-mppi"};
    cgs_eval_options base = small_eval(), o;
    base.models = one_model;
    base.model_count = 1;
    o = base, o.samples = zero_samples, o.sample_count = 1, refuse(&o, CGS_EARG, "plan.samples: 0");
    o = base, o.planners = cem, o.planner_count = 1, o.samples = six, o.sample_count = 1;
    o.elites = 7, refuse(&o, CGS_EARG, "plan.elites: 7");
    o = base, o.taus = cold, o.tau_count = 1, refuse(&o, CGS_EARG, "plan.tau: 0");
    o = base, o.horizon = 500, refuse(&o, CGS_EARG, "horizon 500");
    o = base, o.horizon = 0, refuse(&o, CGS_EARG, "plan.horizon: 0");
    o = base, o.goal_offset = 5000, refuse(&o, CGS_EARG, "5000 rows later");
    o = base, o.planners = unknown, refuse(&o, CGS_EARG, "\"cma\"");
    o = base, o.planners = pg, o.planner_count = 1, refuse(&o, CGS_EIO, "prior");
    o = base, o.env = "pusht", refuse(&o, CGS_EARG, "tworooms, not in pusht");
    o = base, o.env = "nowhere", refuse(&o, CGS_EARG, "nowhere");
    o = base, o.episodes = 0, refuse(&o, CGS_EARG, "0 were requested");
    o = base, o.budget = 0, refuse(&o, CGS_EARG, "0 actions");
    o = base, o.precision = "f16", refuse(&o, CGS_EARG, "f16");
    o = base, o.success = "twice", refuse(&o, CGS_EARG, "\"twice\" is not any, solve or end");
    o = base, o.data = bed_path("missing.h5"), refuse(&o, CGS_EIO, "missing.h5");
}

/* A prior's split is checked as the model's is, where a planner needs the prior. */
static void test_held_out_prior(void **state) {
    (void)state;
    static const char *const pg[] = {"mppi", "pg-cem"};
    bed b;
    cgs_prior *p;
    cgs_prior_fit_config c;
    cgs_section section = cgs_prior_fit_section(&c);
    cgs_config_defaults(&section, 1);
    c.batch = 16, c.hidden = 8, c.updates = c.every = 1;
    bed_open(&b, 1, 1, 1);
    OK(cgs_prior_fit(&p, &b.s, b.data, &c, NULL, NULL));
    OK(cgs_prior_save(bed_model_a, p));

    cgs_eval_options o = small_eval();
    cgs_evaluation e;
    char *text;
    o.models = one_model;
    o.model_count = 1;
    o.planners = pg;
    o.planner_count = 2;
    o.held_out = true;
    o.out = bed_path("held.jsonl");
    OK(cgs_evaluate(&e, &o));
    cgs_evaluation_free(&e);
    assert_int_equal(lines_of(o.out, &text), 8);
    int marked = 0;
    for (char *at = text; (at = strstr(at, "\"prior_held_out\":true")); at++) marked++;
    assert_int_equal(marked, 4);
    free(text);

    /* a prior that was fitted again does not find the old one's lines, but finds its own again */
    for (int again = 0; again < 2; again++) {
        c.seed = 7;
        cgs_prior *other;
        OK(cgs_prior_fit(&other, &b.s, b.data, &c, NULL, NULL));
        OK(cgs_prior_save(bed_model_a, other));
        cgs_prior_destroy(other);
        OK(cgs_evaluate(&e, &o));
        for (int i = 0; i < e.count; i++) {
            bool prior = !strcmp(e.run[i].plan.kind.s, "pg-cem");
            assert_int_equal(e.run[i].reused, again || !prior);
        }
        cgs_evaluation_free(&e);
    }
    assert_int_equal(lines_of(o.out, &text), 12);
    free(text);

    p->card.split = (cgs_split_record){.split = ""}; /* one from before records */
    OK(cgs_prior_save(bed_model_a, p));
    refuse(&o, CGS_EARG, "the prior is not known to have been fitted without");
    o.planner_count = 1; /* which needs none */
    OK(cgs_evaluate(&e, &o));
    cgs_evaluation_free(&e);
    o.planner_count = 2, o.held_out = false;
    OK(cgs_evaluate(&e, &o));
    cgs_evaluation_free(&e);
    cgs_prior_destroy(p);
    remove(bed_path("a/prior.json"));
    bed_close(&b);
}

/* models that do not belong to the data */
static void test_misfits(void **state) {
    (void)state;
    cgs_device d;
    cgs_lewm *m;
    cgs_lewm_config c;
    const char *dir = bed_path("misfit");
    const char *models[1] = {dir};
    cgs_eval_options o = small_eval();
    o.models = models;
    o.model_count = 1;
    OK(cgs_device_open(&d, "cpu", 1));
    cgs_model_card card = cgs_card_default();
    for (int i = 0; i < 3; i++) card.action_std[i] = 1;

    OK(cgs_lewm_preset(&c, "small")); /* another action size */
    c.action_dim = 3;
    OK(cgs_lewm_create(&m, &c, &d, false));
    OK(cgs_params_init(&m->params, 0));
    OK(cgs_model_save(dir, m, &card));
    cgs_lewm_destroy(m);
    refuse(&o, CGS_EARG, "actions of 3 numbers");

    card.action_std[2] = 0;
    OK(random_model(&m, &d, 1));
    snprintf(card.env, sizeof card.env, "tworooms"); /* another version of the environment */
    snprintf(card.env_version, sizeof card.env_version, "99");
    OK(cgs_model_save(dir, m, &card));
    refuse(&o, CGS_EARG, "version 99 of tworooms");
    snprintf(card.env, sizeof card.env, "wall"); /* another environment */
    OK(cgs_model_save(dir, m, &card));
    refuse(&o, CGS_EARG, "trained in wall");

    /* nothing is known of its held-out episodes */
    snprintf(card.env, sizeof card.env, "tworooms");
    snprintf(card.env_version, sizeof card.env_version, "1");
    snprintf(card.split, sizeof card.split, "window");
    card.train_fraction = 0.9;
    OK(cgs_model_save(dir, m, &card));
    o.held_out = true;
    refuse(&o, CGS_EARG, "split by episode");
    snprintf(card.split, sizeof card.split, "episode");
    card.dataset_bytes = 17;
    OK(cgs_model_save(dir, m, &card));
    refuse(&o, CGS_EARG, "17 bytes");
    o.held_out = false;

    /* costs that overflow */
    const cgs_param *e = cgs_params_find(&m->params, "pred_proj.net.3.bias");
    assert_non_null(e);
    float *v = calloc(e->count, sizeof *v);
    v[0] = 1e30f;
    OK(cgs_param_write(&m->params, e, v));
    free(v);
    card.dataset_bytes = 0;
    OK(cgs_model_save(dir, m, &card));
    refuse(&o, CGS_ENUMERIC, "cost of episode 0, candidate");
    cgs_lewm_destroy(m);
    cgs_device_close(&d);
}

int main(int argc, char **argv) {
    /* for the scripts: test_eval --model DIR ENV DATASET SEED */
    if (argc == 6 && !strcmp(argv[1], "--model")) {
        cgs_status rc = random_model_dir(argv[2], argv[3], argv[4], (uint64_t)atoi(argv[5]));
        if (rc != CGS_OK) fprintf(stderr, "%s\n", cgs_last_error());
        return rc != CGS_OK;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_hashes),
        cmocka_unit_test(test_batch_in_hash),
        cmocka_unit_test(test_summary),
        cmocka_unit_test(test_options_in_lines),
        cmocka_unit_test(test_unknown_temperature),
        cmocka_unit_test(test_measured_temperature),
        cmocka_unit_test(test_rollouts_axis),
        cmocka_unit_test(test_starts),
        cmocka_unit_test(test_images),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_misfits),
        cmocka_unit_test(test_rules_in_hash),
        cmocka_unit_test(test_held_out_prior),
        cmocka_unit_test(test_prior_in_hash),
        cmocka_unit_test(test_protocols),
        cmocka_unit_test(test_protocol_in_hash),
    };
    return cmocka_run_group_tests(tests, bed_setup, bed_teardown);
}

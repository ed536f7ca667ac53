/* test_prior_quality.c - the distance ratio of priors where the answer is known: linear systems
 * whose optimal plan is known, and priors that plan to do nothing. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "analysis/prior_quality.h"
#include "collect/collect.h"
#include "eval/shared_starts.h"
#include "expect.h"
#include "linear_system.h"
#include "model/prior.h"
#include "random_model.h"

enum { EPISODES = 12, H = 5, BLOCK = 10, PLAN = H * BLOCK, WIDTH = 96 };

static char folder[64], data_path[128], model[128];

static int setup(void **state) {
    (void)state;
    strcpy(folder, "/tmp/cgs_prior_XXXXXX");
    if (!mkdtemp(folder)) return 1;
    snprintf(data_path, sizeof data_path, "%s/data.h5", folder);
    snprintf(model, sizeof model, "%s/model", folder);
    cgs_collect_options c = {.env = "tworooms", .out = data_path, .episodes = EPISODES, .side = 64};
    cgs_collect_result r;
    if (cgs_collect(&c, &r) == CGS_OK && !random_model_dir(model, "tworooms", data_path, 1))
        return 0;
    print_error("%s\n", cgs_last_error());
    return 1;
}

static int teardown(void **state) {
    (void)state;
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

/* ---- the ratio ------------------------------------------------------------------------- */

/* the smallest plan that reaches the goal of a system with two latents */
static void reach(const linear *s, float *plan) {
    double m[2][2] = {{0}}, r[2], y[2];
    for (int i = 0; i < 2; i++) {
        r[i] = s->zg[i] - s->free_z[i];
        for (int k = 0; k < 2; k++)
            for (int j = 0; j < s->n; j++) m[i][k] += s->gamma[i][j] * s->gamma[k][j];
    }
    double det = m[0][0] * m[1][1] - m[0][1] * m[1][0];
    y[0] = (m[1][1] * r[0] - m[0][1] * r[1]) / det;
    y[1] = (m[0][0] * r[1] - m[1][0] * r[0]) / det;
    for (int j = 0; j < s->n; j++) plan[j] = (float)(s->gamma[0][j] * y[0] + s->gamma[1][j] * y[1]);
}

static void test_linear(void **state) {
    (void)state;
    enum { E = 5 };
    static const float share[E] = {0, 0.25f, 0.5f, 1, 3}; /* of the way to the goal */
    for (uint64_t k = 0; k < 200; k++) {
        linear s = random_system(k, 2, 2, 3, 1);
        float best[N_MAX], plan[E * N_MAX], nothing[N_MAX] = {0};
        double rho[E];
        reach(&s, best);
        for (int e = 0; e < E; e++)
            for (int j = 0; j < s.n; j++) plan[e * s.n + j] = share[e] * best[j];
        OK(cgs_prior_ratios(linear_cost, &s, plan, nothing, E, s.n, rho));
        for (int e = 0; e < E; e++)
            if (!(fabs(rho[e] - fabs(1 - (double)share[e])) < 1e-5))
                fail_msg("system %d, %g of the way: rho %g", (int)k, (double)share[e], rho[e]);
        /* what counts as nothing divides */
        for (int j = 0; j < s.n; j++) nothing[j] = 0.75f * best[j];
        OK(cgs_prior_ratios(linear_cost, &s, plan, nothing, E, s.n, rho));
        for (int e = 0; e < E; e++) {
            double want = 4 * fabs(1 - (double)share[e]);
            if (!(fabs(rho[e] - want) < 1e-4)) fail_msg("rho %g, want %g", rho[e], want);
        }
    }
}

/* a start at its goal has no ratio, and is named */
static void test_no_distance(void **state) {
    (void)state;
    linear s = random_system(1, 2, 2, 3, 1);
    float plan[2 * N_MAX] = {0}, nothing[N_MAX] = {0};
    double rho[2];
    memcpy(s.zg, s.free_z, sizeof s.zg);
    assert_int_equal(cgs_prior_ratios(linear_cost, &s, plan, nothing, 2, s.n, rho), CGS_ENUMERIC);
    assert_non_null(strstr(cgs_last_error(), "start 0"));
}

/* ---- a model and its prior ------------------------------------------------------------- */

/* stores a prior that always gives the same plan: every block is `block` (BLOCK) */
static void store_prior(const float *block, uint64_t weights) {
    cgs_device d;
    cgs_prior *p;
    float bias[PLAN];
    for (int i = 0; i < PLAN; i++) bias[i] = block[i % BLOCK];
    cgs_prior_card card = {
        .width = WIDTH, .hidden = 4, .horizon = H, .block = BLOCK, .model = weights};
    OK(cgs_device_open(&d, "cpu", 1));
    OK(cgs_prior_create(&p, &card, &d, false)); /* all weights are zero */
    OK(cgs_param_write(&p->params, cgs_params_find(&p->params, "layers.2.bias"), bias));
    cgs_params_round(&p->params);
    OK(cgs_prior_save(model, p));
    cgs_prior_destroy(p);
    cgs_device_close(&d);
}

static cJSON *measure(cgs_nothing nothing) {
    static const char *const models[] = {model};
    static const uint64_t seeds[] = {0, 1};
    cgs_prior_quality_options o = cgs_prior_quality_defaults();
    cJSON *doc;
    o.models = models;
    o.model_count = 1;
    o.data = data_path;
    o.seeds = seeds;
    o.seed_count = 2;
    o.episodes = 6;
    o.nothing = nothing;
    o.device = "cpu";
    o.precision = "f32";
    o.threads = 1;
    OK(cgs_prior_quality_run(&doc, &o, "the command"));
    return doc;
}

static const cJSON *entry(const cJSON *doc) {
    const cJSON *list = cJSON_GetObjectItem(doc, "models");
    assert_int_equal(cJSON_GetArraySize(list), 1);
    return cJSON_GetArrayItem(list, 0);
}

static double part(const cJSON *m, const char *name, const char *key) {
    return cJSON_GetObjectItem(cJSON_GetObjectItem(m, name), key)->valuedouble;
}

/* largest distance of a ratio from 1 */
static double from_one(const cJSON *doc) {
    double worst = 0;
    const cJSON *r;
    cJSON_ArrayForEach(r, cJSON_GetObjectItem(entry(doc), "ratios")) {
        worst = fmax(worst, fabs(r->valuedouble - 1));
    }
    return worst;
}

/* A prior that does nothing has ratio 1 where its nothing is the one that divides. */
static void test_nothing(void **state) {
    (void)state;
    cgs_device d;
    cgs_loaded_model s;
    OK(cgs_device_open(&d, "cpu", 1));
    OK(cgs_loaded_model_open(&s, model, &d, "f32", 4, NULL));
    float still[BLOCK], zero[BLOCK] = {0};
    for (int i = 0; i < BLOCK; i++) still[i] = (float)(-s.mean[i % 2] / s.std[i % 2]);
    uint64_t weights = s.weights;
    cgs_loaded_model_close(&s);
    cgs_device_close(&d);

    for (int kind = 0; kind < 2; kind++) {
        store_prior(kind == CGS_NOTHING_CONTROL ? still : zero, weights);
        cJSON *same = measure((cgs_nothing)kind), *other = measure((cgs_nothing)!kind);
        const cJSON *m = entry(same);
        assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(m, "ratios")), 12);
        assert_true(from_one(same) < 1e-5);
        assert_true(fabs(part(m, "rho", "mean") - 1) < 1e-5);
        assert_true(fabs(part(m, "rho_median", "median") - 1) < 1e-5);
        assert_string_equal(cJSON_GetObjectItem(same, "zero")->valuestring,
                            kind == CGS_NOTHING_CONTROL ? "control" : "mean");
        printf("the other kind of nothing: ratios differ from 1 by up to %.3f\n", from_one(other));
        assert_true(from_one(other) > 1e-3);
        m = entry(other);
        assert_true(part(m, "rho", "lo") <= part(m, "rho", "mean") &&
                    part(m, "rho", "mean") <= part(m, "rho", "hi"));
        cJSON_Delete(same);
        cJSON_Delete(other);
    }
    /* another model's prior is refused */
    store_prior(zero, weights + 1);
    static const char *const models[] = {model};
    cgs_prior_quality_options o = cgs_prior_quality_defaults();
    cJSON *doc;
    o.models = models;
    o.model_count = 1;
    o.data = data_path;
    o.device = "cpu";
    assert_int_not_equal(cgs_prior_quality_run(&doc, &o, NULL), CGS_OK);
    assert_non_null(strstr(cgs_last_error(), "fitted to weights"));
    cJSON_Delete(doc);
}

/* Of a prior that always says 0 with a spread of 1, the coverage is the share of recorded values
 * that lie so near the mean action; a spread ten times as wide covers all of them. */
static void test_coverage(void **state) {
    (void)state;
    static const double reach[] = {0.67449, 1.28155, 1.64485, 1.95996};
    static const char *const level[] = {"50", "80", "90", "95"};
    cgs_device d;
    cgs_loaded_model s;
    OK(cgs_device_open(&d, "cpu", 1));
    OK(cgs_loaded_model_open(&s, model, &d, "f32", 4, NULL));
    for (int wide = 0; wide < 2; wide++) {
        cgs_prior *p;
        float factor[PLAN];
        cgs_prior_card card = {.spread = true,
                               .width = WIDTH,
                               .hidden = 4,
                               .horizon = H,
                               .block = BLOCK,
                               .model = s.weights};
        for (int i = 0; i < PLAN; i++) factor[i] = wide ? 10 : 1;
        OK(cgs_prior_create(&p, &card, &d, false)); /* log-variances of 0 */
        OK(cgs_prior_calibrate(p, factor));
        OK(cgs_prior_save(model, p));
        cgs_prior_destroy(p);
        cJSON *doc = measure(CGS_NOTHING_CONTROL);
        const cJSON *m = entry(doc), *coverage = cJSON_GetObjectItem(m, "coverage");
        assert_string_equal(cJSON_GetObjectItem(m, "spread")->valuestring, "learned");
        assert_true(fabs(cJSON_GetObjectItem(m, "mean_spread")->valuedouble - factor[0]) < 1e-6);
        double inside[4] = {0}, values = 0;
        cgs_dataset *data;
        OK(cgs_dataset_open(&data, data_path));
        for (uint64_t seed = 0; seed < 2; seed++) {
            cgs_starts starts;
            cgs_start_rule rule = {.count = 6, .goal_offset = 25, .seed = seed};
            OK(cgs_shared_starts(&starts, &s, 1, cgs_dataset_source(data), &rule));
            for (int e = 0; e < starts.count; e++) {
                float raw[PLAN];
                OK(cgs_dataset_read_rows(data, "action", starts.start[e].row, PLAN / 2, raw));
                for (int i = 0; i < PLAN; i++, values++)
                    for (int l = 0; l < 4; l++)
                        inside[l] +=
                            fabs((raw[i] - s.mean[i % 2]) / s.std[i % 2]) < reach[l] * factor[i];
            }
            cgs_starts_free(&starts);
        }
        cgs_dataset_close(data);
        for (int l = 0; l < 4; l++) {
            double got = cJSON_GetObjectItem(coverage, level[l])->valuedouble;
            printf("%s: %.6f, counted %.6f\n", level[l], got, inside[l] / values);
            assert_true(fabs(got - inside[l] / values) < 1e-6); /* six digits are written */
            assert_true(wide ? got > 0.9999 : l > 0 || got < 0.9);
        }
        cJSON_Delete(doc);
    }
    cgs_loaded_model_close(&s);
    cgs_device_close(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear),
        cmocka_unit_test(test_no_distance),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_coverage),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

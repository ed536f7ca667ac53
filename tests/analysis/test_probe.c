/* test_probe.c - probes on systems whose answers are known, and where their data come from. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "analysis/document.h"
#include "analysis/probe_run.h"
#include "collect/collect.h"
#include "core/rng.h"
#include "core/threads.h"
#include "random_model.h"

#define NEAR(a, b, tolerance) assert_true(fabs((a) - (b)) <= (tolerance))

/* ---- a system that can be solved on paper ------------------------------------------- */

enum { FIT = 1200, VALIDATION = 300, TEST = 500, ROWS = FIT + VALIDATION + TEST, A = 4, S = 3 };

/* what a target depends on: action alone and linearly, state alone, their product, nothing */
static const cgs_env_feature features[] = {
    {"linear", false}, {"linear", false}, {"state", false}, {"product", false}, {"noise", false}};
enum { LINEAR, STATE, PRODUCT, NOISE, TARGETS, F = 5 };

static const cgs_env_class known_class = {
    .id = "known", .features = features, .feature_count = F, .state_dim = S, .action_dim = A};

static void known_motion(cgs_motion *m) {
    cgs_rng r = cgs_rng_stream(3, CGS_STREAM_TEST, 0);
    *m = (cgs_motion){.env = &known_class, .frameskip = 1, .A = A, .S = S, .F = F};
    m->targets = cgs_env_targets(&known_class, m->target);
    m->parts = (cgs_parts){FIT, VALIDATION, TEST};
    m->action = malloc(ROWS * A * sizeof(double));
    m->state = malloc(ROWS * S * sizeof(double));
    m->change = malloc(ROWS * F * sizeof(double));
    for (int i = 0; i < ROWS; i++) {
        double *a = m->action + i * A, *s = m->state + i * S, *y = m->change + i * F;
        for (int k = 0; k < A; k++) a[k] = 3 + 2 * cgs_rng_normal(&r);
        for (int k = 0; k < S; k++) s[k] = cgs_rng_range(&r, -2, 2);
        y[0] = 0.5 * a[0] - a[2] + 7;
        y[1] = 100 * a[1];
        y[2] = cos(2 * s[0]) + 0.3 * s[1];
        y[3] = (a[3] - 3) * s[2];
        y[4] = cgs_rng_normal(&r);
    }
}

#define WITHIN(value, low, high)                                                                   \
    do {                                                                                           \
        double v_ = (value);                                                                       \
        if (!(v_ >= (low) && v_ <= (high))) {                                                      \
            printf("%s is %g, outside %g ... %g\n", #value, v_, (double)(low), (double)(high));    \
            fail();                                                                                \
        }                                                                                          \
    } while (0)

/* latents that hold every change linearly but the product, and forty numbers of noise */
static double *known_latents(const cgs_motion *m, int *D) {
    cgs_rng r = cgs_rng_stream(4, CGS_STREAM_TEST, 0);
    *D = 48;
    double *z = malloc(ROWS * 48 * sizeof *z);
    for (int i = 0; i < ROWS; i++) {
        const double *y = m->change + i * F;
        for (int k = 0; k < *D; k++) z[i * *D + k] = 0.01 * cgs_rng_normal(&r);
        z[i * *D + 0] = y[0] + y[2];
        z[i * *D + 1] = y[0] - y[2];
        z[i * *D + 2] = y[1] / 10;
        z[i * *D + 3] = y[4];
    }
    return z;
}

static void test_known_system(void **unused) {
    (void)unused;
    cgs_motion m;
    cgs_probe_physics p;
    bool requested[CGS_MAX_TARGETS] = {true, true, true, true};
    cgs_probe_options o = cgs_probe_defaults();
    known_motion(&m);
    assert_int_equal(m.targets, TARGETS);
    o.config.hidden = 64;
    o.config.batch = 128;
    o.config.epochs = 40;
    assert_int_equal(cgs_probe_physical(&p, &m, requested, &o.config, NULL, NULL), CGS_OK);
    const double *linear = p.row[LINEAR].score, *state = p.row[STATE].score;
    const double *product = p.row[PRODUCT].score, *noise = p.row[NOISE].score;

    /* exactly linear in the action */
    WITHIN(linear[CGS_P_A_lin], 1 - 1e-9, 1);
    WITHIN(linear[CGS_P_AS_lin], 1 - 1e-9, 1);
    WITHIN(linear[CGS_P_A_mlp], 0.99, 1);
    WITHIN(linear[CGS_P_S_lin], -0.05, 0.01);
    WITHIN(linear[CGS_R2_A_given_S], 0.99, 1);
    /* purely state-dependent; the linear part is 0.12 of 0.62 */
    WITHIN(state[CGS_P_A_lin], -0.05, 0.01);
    WITHIN(state[CGS_P_A_mlp], -0.1, 0.02);
    WITHIN(state[CGS_P_S_lin], 0.1, 0.3);
    WITHIN(state[CGS_P_S_mlp], 0.98, 1);
    WITHIN(state[CGS_P_AS_mlp], 0.95, 1);
    /* neither alone, both together */
    WITHIN(product[CGS_P_A_mlp], -0.1, 0.02);
    WITHIN(product[CGS_P_S_mlp], -0.1, 0.02);
    WITHIN(product[CGS_P_AS_lin], -0.05, 0.02);
    WITHIN(product[CGS_P_AS_mlp], 0.9, 1);
    WITHIN(product[CGS_R2_A_given_S], 0.9, 1);
    for (int i = 0; i < CGS_PHYSICAL_SCORES; i++) WITHIN(noise[i], -0.15, 0.02);
    /* definitions hold among the scores */
    for (int t = 0; t < TARGETS; t++) {
        const double *s = p.row[t].score;
        NEAR(s[CGS_R2_A_given_S], 1 - (1 - s[CGS_P_AS_mlp]) / (1 - s[CGS_P_S_mlp]), 1e-9);
    }

    int D;
    double *z = known_latents(&m, &D), *both[2] = {z, malloc(ROWS * 48 * sizeof(double))};
    int width[2] = {D, D};
    cgs_rng r = cgs_rng_stream(5, CGS_STREAM_TEST, 0);
    for (int i = 0; i < ROWS * D; i++) both[1][i] = cgs_rng_normal(&r); /* knows nothing */
    cgs_latent_row row[2 * CGS_MAX_TARGETS];
    assert_int_equal(
        cgs_probe_latent(&m, &p, requested, &o.config, 2, both, width, row, NULL, NULL), CGS_OK);
    const double *d = row[LINEAR].score;
    WITHIN(d[CGS_D_lin], 0.9999, 1);
    WITHIN(d[CGS_D_mlp], 0.95, 1);
    WITHIN(d[CGS_C_A], 0.9999, 1); /* the effect of the action is the change itself */
    WITHIN(d[CGS_B_A], 0.9999, 1);
    WITHIN(d[CGS_B_AS], 0.99, 1);
    d = row[STATE].score;
    WITHIN(d[CGS_D_lin], 0.9999, 1);
    WITHIN(d[CGS_C_AS], 0.95, 1);
    WITHIN(d[CGS_B_AS], 0.95, 1);
    WITHIN(d[CGS_B_A], -0.1, 0.1); /* the action predicts nothing: all of the change is apart */
    d = row[PRODUCT].score;
    WITHIN(d[CGS_D_lin], -0.1, 0.02); /* it is not in the latents */
    WITHIN(d[CGS_C_AS], -0.1, 0.02);
    d = row[NOISE].score;
    WITHIN(d[CGS_D_lin], 0.9999, 1); /* latents hold it, no action or state predicts it */
    WITHIN(d[CGS_B_AS], -0.2, 0.2);
    for (int t = 0; t < TARGETS; t++) {
        WITHIN(row[CGS_MAX_TARGETS + t].score[CGS_D_lin], -0.15, 0.02);
        WITHIN(row[CGS_MAX_TARGETS + t].score[CGS_C_AS], -0.2, 0.02);
    }
    free(both[0]);
    free(both[1]);
    cgs_probe_physics_free(&p);
    cgs_motion_free(&m);
}

/* nets run side by side; their number of threads must not matter */
static void test_threads(void **unused) {
    (void)unused;
    cgs_motion m;
    double score[2][CGS_PHYSICAL_SCORES];
    bool requested[CGS_MAX_TARGETS] = {false, true};
    cgs_probe_options o = cgs_probe_defaults();
    known_motion(&m);
    o.config.epochs = 3;
    for (int i = 0; i < 2; i++) {
        cgs_probe_physics p;
        cgs_set_threads(i ? 2 : 1);
        assert_int_equal(cgs_probe_physical(&p, &m, requested, &o.config, NULL, NULL), CGS_OK);
        memcpy(score[i], p.row[STATE].score, sizeof score[i]);
        assert_true(isnan(p.row[LINEAR].score[CGS_P_A_mlp])); /* not requested */
        cgs_probe_physics_free(&p);
    }
    cgs_set_threads(0);
    assert_memory_equal(score[0], score[1], sizeof score[0]);
    cgs_motion_free(&m);
}

static void test_ridge(void **unused) {
    (void)unused;
    /* two rows to fit, one column: the weight on standardised numbers is n / (n + c) */
    const cgs_parts p = {2, 0, 1};
    const double x[3] = {-1, 1, 5}, y[3] = {10, 20, 0};
    double out[3], score;
    assert_int_equal(cgs_ridge(&p, x, 1, y, 1, 0.5, "one", out), CGS_OK);
    NEAR(out[2], 15 + 5 * 5 * 2 / 2.5, 1e-12);
    /* columns that are multiples of each other: the penalty shares the weight */
    const double twice[6] = {-1, -2, 1, 2, 5, 10};
    assert_int_equal(cgs_ridge(&p, twice, 2, y, 1, 1e-4, "two", out), CGS_OK);
    NEAR(out[2], 40, 1e-2);
    /* without a penalty there is no answer, and it is said so */
    assert_int_equal(cgs_ridge(&p, twice, 2, y, 1, 0, "no penalty", out), CGS_ENUMERIC);
    assert_non_null(
        strstr(cgs_last_error(), "no penalty: the covariance of the inputs is singular"));
    const double constant[3] = {4, 4, 4};
    assert_int_equal(cgs_ridge(&p, constant, 1, y, 1, 1e-4, "still", out), CGS_ENUMERIC);
    assert_non_null(strstr(cgs_last_error(), "still: none of the 1 inputs"));
    const cgs_parts two = {1, 0, 2};
    assert_int_equal(cgs_r_squared(&two, constant, x, (cgs_columns){1, 0, 1}, "rest", &score),
                     CGS_ENUMERIC);
    assert_non_null(strstr(cgs_last_error(), "rest: never changes"));
    assert_int_equal(cgs_r_squared(&two, x, y, (cgs_columns){1, 0, 1}, "y", &score), CGS_OK);
    NEAR(score, 1 - (19.0 * 19 + 25) / 8, 1e-12);
}

/* ---- recorded data ------------------------------------------------------------------- */

static char folder[] = "/tmp/cgs-probe-XXXXXX";
static char data_path[64], model_path[64];

static int make_data(void **unused) {
    (void)unused;
    if (!mkdtemp(folder)) return -1;
    snprintf(data_path, sizeof data_path, "%s/data.h5", folder);
    snprintf(model_path, sizeof model_path, "%s/model", folder);
    const cgs_collect_options o = {
        .env = "tworooms", .out = data_path, .episodes = 20, .side = 64, .seed = 5};
    cgs_collect_result r;
    return cgs_collect(&o, &r) == CGS_OK &&
                   random_model_dir(model_path, "tworooms", data_path, 1) == CGS_OK
               ? 0
               : -1;
}

static int remove_data(void **unused) {
    (void)unused;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) == 0 ? 0 : -1;
}

static void test_motion(void **unused) {
    (void)unused;
    /* numpy.random.default_rng(20260814).permutation(20) */
    static const int order[20] = {2,  6,  13, 9,  12, 3,  17, 7, 4,  11,
                                  15, 19, 0,  18, 14, 16, 5,  1, 10, 8};
    cgs_dataset *d;
    cgs_motion m;
    const cgs_env_class *env;
    assert_int_equal(cgs_dataset_open(&d, data_path), CGS_OK);
    assert_int_equal(cgs_dataset_env(d, NULL, &env), CGS_OK);
    assert_int_equal(cgs_motion_read(&m, d, env, 5, 20), CGS_OK);
    const cgs_source *s = cgs_dataset_source(d);
    int at = 0, part[3] = {0};
    for (int i = 0; i < 20; i++) {
        assert_int_equal(m.episode[i], order[i]);
        assert_int_equal(m.blocks[i], (s->ep_len[order[i]] - 1) / 5);
        part[i < 14 ? 0 : i < 16 ? 1 : 2] += m.blocks[i];
    }
    assert_int_equal(m.parts.fit, part[0]);
    assert_int_equal(m.parts.validation, part[1]);
    assert_int_equal(m.parts.test, part[2]);
    for (int i = 0; i < 20; i++)
        for (int b = 0; b < m.blocks[i]; b++, at++) {
            float before[2], after[2], action[10];
            int64_t row = s->ep_offset[order[i]] + 5 * b;
            cgs_dataset_read_rows(d, "state", row, 1, before);
            cgs_dataset_read_rows(d, "state", row + 5, 1, after);
            cgs_dataset_read_rows(d, "action", row, 5, action);
            for (int k = 0; k < 2; k++) {
                assert_true(m.state[at * 2 + k] == (double)before[k]);
                assert_true(m.change[at * 2 + k] == (double)after[k] - before[k]);
            }
            for (int k = 0; k < 10; k++) assert_true(m.action[at * 10 + k] == (double)action[k]);
        }
    cgs_motion_free(&m);
    /* too few, in the file or for the split */
    assert_int_equal(cgs_motion_read(&m, d, env, 5, 21), CGS_EARG);
    assert_non_null(strstr(cgs_last_error(), "20 episodes, the probes need 21"));
    assert_int_equal(cgs_motion_read(&m, d, env, 5, 9), CGS_EARG);
    assert_non_null(strstr(cgs_last_error(), "9 episodes cannot be divided"));
    cgs_dataset_close(d);
}

static void test_run(void **unused) {
    (void)unused;
    const char *models[] = {model_path}, *targets[] = {"agent position"}, *wrong[] = {"block yaw"};
    cgs_probe_options o = cgs_probe_defaults();
    cgs_probe_result first, second;
    o.models = models;
    o.model_count = 1;
    o.data = data_path;
    o.episodes = 20;
    o.device = "cpu";
    o.config.epochs = 3;
    o.targets = wrong;
    o.target_count = 1;
    assert_int_equal(cgs_probe_run(&first, &o), CGS_EARG);
    assert_non_null(
        strstr(cgs_last_error(), "tworooms has no target \"block yaw\"; it has: agent"));
    cgs_probe_result_free(&first);

    o.targets = targets;
    assert_int_equal(cgs_probe_run(&first, &o), CGS_OK);
    assert_int_equal(first.cached, 0);
    assert_int_equal(cgs_probe_run(&second, &o), CGS_OK);
    assert_int_equal(second.cached, 1); /* the file beside the model, and the same numbers */
    assert_memory_equal(first.latent, second.latent, sizeof *first.latent);
    WITHIN(first.physical[0].score[CGS_P_A_lin], 0.6, 1);

    cJSON *doc;
    assert_int_equal(cgs_probe_document(&doc, &first, "cgs probe"), CGS_OK);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(doc, "format")), "cgs-probe");
    const cJSON *row = cJSON_GetArrayItem(cJSON_GetObjectItem(doc, "physical"), 0);
    NEAR(cJSON_GetObjectItem(cJSON_GetObjectItem(row, "published"), "P_A_lin")->valuedouble, 0.952,
         1e-12);
    NEAR(cJSON_GetObjectItem(row, "P_AS_mlp")->valuedouble, first.physical[0].score[CGS_P_AS_mlp],
         1e-5);
    cJSON_Delete(doc);
    cgs_probe_result_free(&first);
    cgs_probe_result_free(&second);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ridge),   cmocka_unit_test(test_known_system),
        cmocka_unit_test(test_threads), cmocka_unit_test(test_motion),
        cmocka_unit_test(test_run),
    };
    return cmocka_run_group_tests(tests, make_data, remove_data);
}

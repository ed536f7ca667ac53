/* test_geometry.c - Jacobians against differences, paths, response images and the mechanism
 * where the answer is known. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "analysis/geometry.h"
#include "analysis/paths.h"
#include "analysis/response.h"
#include "collect/collect.h"
#include "core/rng.h"
#include "random_model.h"

#define NEAR(a, b, tolerance) assert_true(fabs((a) - (b)) <= (tolerance))

/* ---- Jacobian ------------------------------------------------------------------------ */

enum { H = 5, BLOCK = 10, PLAN = H * BLOCK, WIDTH = 96 };

static void test_jacobian(void **unused) {
    (void)unused;
    cgs_device d;
    cgs_lewm *m;
    cgs_terminal *t;
    assert_int_equal(cgs_device_open(&d, "cpu", 0), CGS_OK);
    assert_int_equal(random_model(&m, &d, 1), CGS_OK);
    assert_int_equal(cgs_terminal_create(&t, m, CGS_F32, H, 2 * PLAN), CGS_OK);
    assert_int_equal(cgs_terminal_plan_size(t), PLAN);
    assert_int_equal(cgs_terminal_width(t), WIDTH);

    cgs_rng r = cgs_rng_stream(1, CGS_STREAM_TEST, 0);
    float z[WIDTH], plan[PLAN], *moved = malloc(2 * PLAN * PLAN * sizeof *moved);
    float *end = malloc(2 * PLAN * WIDTH * sizeof *end);
    double *J = malloc(WIDTH * PLAN * sizeof *J);
    for (int i = 0; i < WIDTH; i++) z[i] = (float)cgs_rng_normal(&r);
    for (int i = 0; i < PLAN; i++) plan[i] = (float)cgs_rng_normal(&r);
    const float h = 0.01f;
    for (int k = 0; k < PLAN; k++)
        for (int side = 0; side < 2; side++) {
            float *p = moved + (2 * k + side) * PLAN;
            memcpy(p, plan, sizeof plan);
            p[k] += side ? -h : h;
        }
    assert_int_equal(cgs_terminal_jacobian(t, z, plan, J), CGS_OK);
    assert_int_equal(cgs_terminal_predict(t, z, moved, 2 * PLAN, end), CGS_OK);
    double apart = 0, size = 0, first = 0;
    for (int i = 0; i < WIDTH; i++)
        for (int k = 0; k < PLAN; k++) {
            double slope = ((double)end[2 * k * WIDTH + i] - end[(2 * k + 1) * WIDTH + i]) /
                           ((double)moved[2 * k * PLAN + k] - moved[(2 * k + 1) * PLAN + k]);
            apart += (slope - J[i * PLAN + k]) * (slope - J[i * PLAN + k]);
            size += J[i * PLAN + k] * J[i * PLAN + k];
            if (k < BLOCK) first += J[i * PLAN + k] * J[i * PLAN + k];
        }
    printf("Jacobian: size %.4f, of the first block %.4f, differs from slopes by %.2e of it\n",
           sqrt(size), sqrt(first), sqrt(apart / size));
    assert_true(size > 1e-4 && first > 0);
    assert_true(sqrt(apart / size) < 2e-3);
    free(moved);
    free(end);
    free(J);
    cgs_terminal_destroy(t);
    cgs_lewm_destroy(m);
    cgs_device_close(&d);
}

static void test_constant_moves(void **unused) {
    (void)unused;
    cgs_lewm_config c;
    double U[125 * 3], G[9], value[3], V[9];
    assert_int_equal(cgs_lewm_preset(&c, "small"), CGS_OK);
    c.action_dim = 5;
    cgs_constant_moves(&c, 5, 3, U);
    for (int i = 0; i < 125; i++)
        for (int k = 0; k < 3; k++) NEAR(U[i * 3 + k], i % 5 == k ? 0.2 : 0, 1e-15);
    /* J = diag-like: component k answers to channel k with strength k + 1 */
    double *J = calloc(4 * 125, sizeof *J);
    for (int k = 0; k < 3; k++)
        for (int s = 0; s < 25; s++) J[k * 125 + s * 5 + k] = (k + 1) * 0.2;
    assert_int_equal(cgs_response_gram(J, 4, 125, U, 3, G), CGS_OK);
    for (int i = 0; i < 9; i++) NEAR(G[i], i % 4 == 0 ? (i / 4 + 1) * (i / 4 + 1) : 0, 1e-12);
    assert_int_equal(cgs_symmetric_eigen(G, 3, value, V), CGS_OK);
    NEAR(value[0], 1, 1e-12);
    NEAR(value[2], 9, 1e-12);
    NEAR(fabs(V[0]), 1, 1e-12);
    free(J);
}

/* ---- paths --------------------------------------------------------------------------- */

enum { STEPS = 29, KA = 10, KZ = 40 };

/* orthonormal rows (n, k) by Gram-Schmidt */
static void random_frame(double *x, int n, int k, uint64_t seed) {
    cgs_rng r = cgs_rng_stream(seed, CGS_STREAM_TEST, 1);
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < k; j++) x[i * k + j] = cgs_rng_normal(&r);
        for (int b = 0; b < i; b++) {
            double dot = 0;
            for (int j = 0; j < k; j++) dot += x[i * k + j] * x[b * k + j];
            for (int j = 0; j < k; j++) x[i * k + j] -= dot * x[b * k + j];
        }
        cgs_unit_rows(x + i * k, 1, k);
    }
}

static void test_alignment(void **unused) {
    (void)unused;
    double a[STEPS * KA], z[STEPS * KZ], frame[KA * KZ], W[KZ * KA];
    double action[(STEPS + 1) * 3], latent[(STEPS + 1) * 3];
    cgs_rng r = cgs_rng_stream(2, CGS_STREAM_TEST, 0);
    for (int i = 0; i < STEPS * KA; i++) a[i] = cgs_rng_normal(&r);
    cgs_unit_rows(a, STEPS, KA);
    random_frame(frame, KA, KZ, 3);
    cgs_rotate_rows(a, STEPS, KA, frame, KZ, z); /* latents are rotated actions */

    assert_int_equal(cgs_procrustes(z, KZ, a, KA, STEPS, W), CGS_OK);
    for (int i = 0; i < KZ; i++)
        for (int j = 0; j < KA; j++) NEAR(W[i * KA + j], frame[j * KZ + i], 1e-9);
    for (int rigid = 0; rigid < 2; rigid++)
        for (int d = 2; d <= 3; d++) {
            assert_int_equal(cgs_align_paths(a, KA, z, KZ, STEPS, d, rigid, action, latent),
                             CGS_OK);
            for (int j = 0; j < d; j++) NEAR(action[j], 0, 1e-12);
            for (int i = 0; i < (STEPS + 1) * d; i++) NEAR(action[i], latent[i], 1e-9);
        }
    /* a latent that always goes the same way makes a straight path of the same number of steps,
     * and no map makes it follow the turns */
    for (int i = 0; i < STEPS; i++)
        for (int j = 0; j < KZ; j++) z[i * KZ + j] = frame[j];
    assert_int_equal(cgs_align_paths(a, KA, z, KZ, STEPS, 2, false, action, latent), CGS_OK);
    for (int i = 2; i <= STEPS; i++)
        for (int j = 0; j < 2; j++) NEAR(latent[i * 2 + j], i * latent[2 + j], 1e-9);
    /* nothing moves */
    memset(z, 0, sizeof z);
    assert_int_equal(cgs_align_paths(a, KA, z, KZ, STEPS, 2, false, action, latent), CGS_ENUMERIC);
}

static void test_axes(void **unused) {
    (void)unused;
    /* points on an ellipse in the plane of the second and third coordinate */
    double x[40 * 3], axes[6];
    for (int i = 0; i < 40; i++) {
        x[i * 3] = 5;
        x[i * 3 + 1] = 1 + sin(i * 0.157079632679);
        x[i * 3 + 2] = 3 * cos(i * 0.157079632679);
    }
    assert_int_equal(cgs_principal_axes(x, 40, 3, 2, axes), CGS_OK);
    const double want[6] = {0, 0, 0, 1, 1, 0};
    for (int i = 0; i < 6; i++) NEAR(axes[i], want[i], 1e-6);
    assert_int_equal(cgs_principal_axes(x, 40, 3, 4, axes), CGS_EARG);
}

/* ---- response images --------------------------------------------------------------- */

static void test_heat(void **unused) {
    (void)unused;
    double U[PLAN * 2], B[2 * WIDTH], r[CGS_DIRECTIONS * WIDTH], heat[CGS_HEAT], ideal[CGS_HEAT];
    float plan[PLAN], plans[(CGS_DIRECTIONS + 1) * PLAN];
    cgs_lewm_config c;
    assert_int_equal(cgs_lewm_preset(&c, "small"), CGS_OK);
    cgs_constant_moves(&c, H, 2, U);
    for (int i = 0; i < PLAN; i++) plan[i] = (float)(i % 7) / 8; /* exact, and so are sums */
    cgs_response_plans(plan, PLAN, U, plans);
    cgs_response_ideal(ideal);
    random_frame(B, 2, WIDTH, 5);
    for (int squeezed = 0; squeezed < 2; squeezed++) {
        /* F(a) = s B'(Q'a), linear; isotropic when both rows of B count the same */
        for (int j = 0; j < CGS_DIRECTIONS; j++) {
            double q[2] = {0, 0};
            for (int i = 0; i < PLAN; i++)
                for (int k = 0; k < 2; k++)
                    q[k] += U[2 * i + k] * ((double)plans[(j + 1) * PLAN + i] - plans[i]);
            NEAR(hypot(q[0], q[1]), CGS_RESPONSE_STEP, 1e-7); /* equal moves */
            for (int i = 0; i < WIDTH; i++)
                r[j * WIDTH + i] = 3 * (q[0] * B[i] + (squeezed ? 0.1 : 1) * q[1] * B[WIDTH + i]);
        }
        assert_int_equal(cgs_response_cosines(r, WIDTH, heat), CGS_OK);
        double error = cgs_response_error(heat, ideal);
        if (squeezed)
            assert_true(error > 0.3);
        else
            assert_true(error < 1e-5); /* plans are float32 */
    }
    for (int i = 0; i < CGS_DIRECTIONS; i++) {
        NEAR(ideal[i * CGS_DIRECTIONS + i], 1, 1e-12);
        NEAR(ideal[i * CGS_DIRECTIONS + (i + 16) % 32], -1, 1e-12);
        NEAR(ideal[i * CGS_DIRECTIONS + (i + 8) % 32], 0, 1e-12);
    }
    memset(r, 0, sizeof r);
    assert_int_equal(cgs_response_cosines(r, WIDTH, heat), CGS_ENUMERIC);
}

/* ---- mechanism ----------------------------------------------------------------------- */

static void test_mechanism(void **unused) {
    (void)unused;
    const double G[9] = {2, 0, 0, 0, 4, 0, 0, 0, 6}, zero[9] = {0};
    double lambda[3], p[CGS_BUDGETS], one = 0;
    assert_int_equal(cgs_normalised_spectrum(G, 3, lambda), CGS_OK);
    NEAR(lambda[0], 1.5, 1e-12);
    NEAR(lambda[2], 0.5, 1e-12);
    NEAR(cgs_contraction_limit(lambda, 3), 1 / 1.5, 1e-12);
    assert_int_equal(cgs_normalised_spectrum(zero, 3, lambda), CGS_ENUMERIC);

    /* one draw is the mean itself, whatever the cost: a ball of radius 1 around a point at
     * distance 1 holds this much of a normal distribution in three dimensions */
    double mass = 0.5 * erf(sqrt(2)) - (1 - exp(-2)) / sqrt(2 * 3.14159265358979323846);
    const double round[3] = {1, 1, 1}, flat[3] = {1.45, 1.45, 0.1};
    double with_round[CGS_BUDGETS], with_flat[CGS_BUDGETS];
    for (int anchor = 0; anchor < 8; anchor++) {
        cgs_progress_probability(round, 3, 0, (uint64_t)anchor, p);
        one += p[0] / 8;
        if (anchor == 0) memcpy(with_round, p, sizeof p);
    }
    assert_true(fabs(one - mass) < 4 * sqrt(mass * (1 - mass) / (8 * CGS_BATCHES)));
    cgs_progress_probability(flat, 3, 0, 0, with_flat);
    assert_true(with_flat[0] == with_round[0]); /* shared draws */
    for (int b = 1; b < CGS_BUDGETS; b++) assert_true(with_round[b] >= with_round[b - 1]);
    assert_true(with_round[8] > 0.999); /* 256 draws come close to one half */
    assert_true(with_flat[5] < with_round[5] - 0.1);
    cgs_progress_probability(round, 3, 0, 0, p);
    assert_memory_equal(p, with_round, sizeof p); /* and again */
}

/* ---- the whole experiment ------------------------------------------------------------ */

static char folder[] = "/tmp/cgs-geometry-XXXXXX";
static char data_path[64], model_path[2][64];

static int make_data(void **unused) {
    (void)unused;
    if (!mkdtemp(folder)) return -1;
    snprintf(data_path, sizeof data_path, "%s/data.h5", folder);
    const cgs_collect_options o = {
        .env = "tworooms", .out = data_path, .episodes = 12, .side = 64, .seed = 5};
    cgs_collect_result r;
    if (cgs_collect(&o, &r) != CGS_OK) return -1;
    for (int i = 0; i < 2; i++) {
        snprintf(model_path[i], sizeof model_path[i], "%s/model%d", folder, i);
        if (random_model_dir(model_path[i], "tworooms", data_path, (uint64_t)i + 1) != CGS_OK)
            return -1;
    }
    return 0;
}

static int remove_data(void **unused) {
    (void)unused;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) == 0 ? 0 : -1;
}

static void test_zigzag(void **unused) {
    (void)unused;
    const cgs_env_class *env;
    cgs_stretch s, again;
    assert_int_equal(cgs_env_find("tworooms", &env), CGS_OK);
    assert_int_equal(cgs_stretch_create(&s, 30, 5, 2, 64), CGS_OK);
    assert_int_equal(cgs_stretch_create(&again, 30, 5, 2, 64), CGS_OK);
    assert_int_equal(cgs_zigzag(&s, env, 0, 0), CGS_OK);
    assert_int_equal(cgs_zigzag(&again, env, 0, 0), CGS_OK);
    assert_memory_equal(s.action, again.action, 145 * 2 * sizeof(float));
    assert_memory_equal(s.pixels, again.pixels, 30 * 64 * 64 * 3);
    int turns = 0;
    for (int b = 1; b < 29; b++)
        turns += memcmp(s.action + b * 10, s.action + (b - 1) * 10, 2 * sizeof(float)) != 0;
    assert_true(turns >= 9);
    assert_int_equal(cgs_zigzag(&again, env, 0, 1), CGS_OK);
    assert_memory_not_equal(s.action, again.action, 145 * 2 * sizeof(float));
    cgs_stretch_free(&s);
    cgs_stretch_free(&again);
}

static const cJSON *get(const cJSON *o, const char *name) {
    const cJSON *item = cJSON_GetObjectItem(o, name);
    assert_non_null(item);
    return item;
}

static void check_interval(const cJSON *o, const char *name, double low, double high) {
    const cJSON *m = get(o, name);
    double mean = get(m, "mean")->valuedouble;
    assert_true(mean >= low && mean <= high);
    assert_true(get(m, "lo")->valuedouble <= mean && mean <= get(m, "hi")->valuedouble);
}

static void test_experiment(void **unused) {
    (void)unused;
    const char *models[] = {model_path[0], model_path[1]};
    const cgs_window recorded = {{0, 3}, 2};
    cgs_geometry_options o = cgs_geometry_defaults();
    cJSON *doc;
    o.models = models;
    o.model_count = 2;
    o.data = data_path;
    o.anchors = 6;
    o.device = "cpu";
    assert_int_equal(cgs_geometry_run(&doc, &o, "cgs geometry"), CGS_OK);
    assert_int_equal(cJSON_GetArraySize(get(doc, "windows")), 2);
    assert_int_equal(cJSON_GetArraySize(get(doc, "ideal")), CGS_HEAT);
    const cJSON *w, *s;
    cJSON_ArrayForEach(w, get(doc, "windows")) {
        assert_string_equal(cJSON_GetStringValue(get(w, "source")), "zig-zag rollout");
        assert_int_equal(cJSON_GetArraySize(get(w, "actions")), 30);
        assert_int_equal(cJSON_GetArraySize(get(w, "models")), 2);
        const cJSON *m = cJSON_GetArrayItem(get(w, "models"), 1);
        assert_string_equal(cJSON_GetStringValue(get(m, "name")), "random (model1)");
        assert_int_equal(cJSON_GetArraySize(get(m, "path")), 30);
        assert_int_equal(cJSON_GetArraySize(get(m, "heat")), CGS_HEAT);
        NEAR(cJSON_GetArrayItem(get(m, "heat"), 33)->valuedouble, 1, 1e-6);
    }
    assert_int_equal(cJSON_GetArraySize(get(doc, "summary")), 2);
    cJSON_ArrayForEach(s, get(doc, "summary")) {
        check_interval(s, "gram_error", 0, 1);
        check_interval(s, "isotropy", 1e-6, 1);
        check_interval(s, "pair_error", 0, 2);
        check_interval(s, "direction_cosine", -1, 1);
    }
    cJSON_Delete(doc);

    /* a recorded window, and what cannot be */
    o.window = &recorded;
    o.window_count = 1;
    o.frames = 8;
    o.model_count = 1;
    assert_int_equal(cgs_geometry_run(&doc, &o, "cgs geometry"), CGS_OK);
    w = cJSON_GetArrayItem(get(doc, "windows"), 0);
    assert_string_equal(cJSON_GetStringValue(get(w, "source")), "recorded");
    assert_int_equal(cJSON_GetArraySize(get(w, "actions")), 8);
    cJSON_Delete(doc);
    o.frames = 300;
    assert_int_equal(cgs_geometry_run(&doc, &o, NULL), CGS_EARG);
    assert_non_null(strstr(cgs_last_error(), "1495 rows after step 3 of episode 0"));
    cJSON_Delete(doc);

    o.anchors = 12;
    assert_int_equal(cgs_mechanism_run(&doc, &o, "cgs geometry"), CGS_OK);
    const cJSON *m = cJSON_GetArrayItem(get(doc, "models"), 0);
    assert_int_equal(cJSON_GetArraySize(get(m, "lambda_min")), 12);
    for (int i = 0; i < 12; i++)
        NEAR(cJSON_GetArrayItem(get(m, "q_inf"), i)->valuedouble,
             1 / (1 + cJSON_GetArrayItem(get(m, "lambda_min"), i)->valuedouble), 2e-6);
    assert_int_equal(cJSON_GetArraySize(get(m, "p")), CGS_BUDGETS);
    assert_int_equal((int)get(doc, "directions")->valuedouble, 2);
    cJSON_Delete(doc);
    o.anchors = 13; /* anchors are of distinct episodes */
    assert_int_equal(cgs_mechanism_run(&doc, &o, NULL), CGS_EARG);
    assert_non_null(strstr(cgs_last_error(), "12 of its 12 episodes have 25 actions in a row; 13"));
    cJSON_Delete(doc);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jacobian),  cmocka_unit_test(test_constant_moves),
        cmocka_unit_test(test_alignment), cmocka_unit_test(test_axes),
        cmocka_unit_test(test_heat),      cmocka_unit_test(test_mechanism),
        cmocka_unit_test(test_zigzag),    cmocka_unit_test(test_experiment),
    };
    return cmocka_run_group_tests(tests, make_data, remove_data);
}

/* test_rollout.c - rollouts of plans through a model: frames, costs and gradients against their
 * definition.  The model is the small preset with random weights, which do not matter here. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/rng.h"
#include "expect.h"
#include "random_model.h"
#include "rollout/rollout.h"
#include "sanitized.h"

enum { D = 96, A = 10, N = 3, H = 5 };

static void fill(float *x, size_t n, uint64_t seed) {
    cgs_rng r = cgs_rng_stream(seed, CGS_STREAM_TEST, 0);
    for (size_t i = 0; i < n; i++) x[i] = (float)cgs_rng_normal(&r);
}

/* One plan, one window after the other, everything recomputed: the definition. */
static void definition(cgs_lewm *m, int C, const float *z, const float *past, const float *plan,
                       float *frames /* (H, D) */) {
    float list_z[(N + H) * D], list_a[(N - 1 + H) * A];
    memcpy(list_z, z, sizeof(float) * (size_t)(C * D));
    memcpy(list_a, past, sizeof(float) * (size_t)((C - 1) * A));
    memcpy(list_a + (C - 1) * A, plan, sizeof(float) * H * A);
    for (int s = 0; s < H; s++) {
        int w = C + s < N ? C + s : N, first = C + s - w;
        cgs_tape *t;
        OK(cgs_tape_create(&t, m->params.device, CGS_F32));
        cgs_tape_freeze_parameters(t);
        const int zd[3] = {1, w, D}, ad[3] = {1, w, A};
        cgs_tensor *zi = cgs_input(t, "z", CGS_F32, 3, zd);
        cgs_tensor *ai = cgs_input(t, "a", CGS_F32, 3, ad);
        cgs_conditioning c = cgs_lewm_condition(t, m, ai, NULL);
        cgs_tensor *out = cgs_keep(cgs_lewm_predict(t, m, zi, &c, 0, false, false));
        OK(cgs_tape_finish(t, NULL));
        OK(cgs_tensor_write(t, zi, list_z + first * D));
        OK(cgs_tensor_write(t, ai, list_a + first * A));
        cgs_tape_forward(t);
        float all[N * D];
        OK(cgs_tensor_read(t, out, all));
        memcpy(list_z + (C + s) * D, all + (w - 1) * D, sizeof(float) * D);
        memcpy(frames + s * D, all + (w - 1) * D, sizeof(float) * D);
        cgs_tape_destroy(t);
    }
}

static void rollout_against_definition(const char *backend, int C, int E, int K, double tolerance) {
    cgs_device d;
    cgs_lewm *m;
    cgs_rollout *r;
    OK(cgs_device_open(&d, backend, 1));
    OK(random_model(&m, &d, 3));
    size_t rows = (size_t)(E * K);
    int stride = K > 10 ? K / 5 : 1; /* of many candidates, a few */
    float *z = malloc(sizeof(float) * (size_t)(E * C * D));
    float *past = malloc(sizeof(float) * (size_t)(E * N * A)),
          *goal = malloc(sizeof(float) * (size_t)(E * D));
    float *plans = malloc(sizeof(float) * rows * H * A), *cost = malloc(sizeof(float) * rows);
    float *frames = malloc(sizeof(float) * rows * H * D);
    fill(z, (size_t)(E * C * D), 1);
    fill(past, (size_t)(E * N * A), 2);
    fill(goal, (size_t)(E * D), 3);
    fill(plans, rows * H * A, 4);
    cgs_rollout_config c = {
        .episodes = E, .context = C, .horizon = H, .samples = K, .act = CGS_F32};
    OK(cgs_rollout_create(&r, m, &c));
    OK(cgs_rollout_set(r, E, z, past, goal));
    OK(cgs_rollout_cost(r, plans, E, K, cost));
    OK(cgs_rollout_imagine(r, plans, E, K, frames));
    for (int e = 0; e < E; e++)
        for (int k = 0; k < K; k += stride) {
            float want[H * D];
            size_t row = (size_t)(e * K + k);
            definition(m, C, z + e * C * D, past + e * (C - 1) * A, plans + row * H * A, want);
            double sum = 0, worst = 0;
            for (int i = 0; i < H * D; i++)
                worst = fmax(worst, fabs(want[i] - frames[row * H * D + (size_t)i]));
            for (int i = 0; i < D; i++)
                sum += pow((double)want[(H - 1) * D + i] - goal[e * D + i], 2);
            if (!(worst < tolerance) || !(fabs(cost[row] - sum) < tolerance * sum))
                fail_msg(
                    "%s, C %d, episode %d, candidate %d: frames differ by %g, cost %g, want %g",
                    backend, C, e, k, worst, (double)cost[row], sum);
        }
    cgs_rollout_destroy(r);
    cgs_lewm_destroy(m);
    cgs_device_close(&d);
    free(z), free(past), free(goal), free(plans), free(cost), free(frames);
}

static void test_rollout(void **state) {
    (void)state;
    for (int C = 1; C <= N; C++) {
        rollout_against_definition("ref", C, 3, 5, 1e-5);
        rollout_against_definition("cpu", C, 3, 5, 1e-4);
    }
    rollout_against_definition("cpu", 1, 2, 70, 1e-4);   /* one episode per run      */
    rollout_against_definition("cpu", 1, 1, 1100, 1e-4); /* several runs an episode */
}

/* the candidates' costs must depend on their actions, or nothing above means anything */
static void test_actions_matter(void **state) {
    (void)state;
    cgs_device d;
    cgs_lewm *m;
    cgs_rollout *r;
    float z[D], goal[D], plans[2 * H * A], cost[2];
    OK(cgs_device_open(&d, "cpu", 1));
    OK(random_model(&m, &d, 3));
    cgs_rollout_config c = {
        .episodes = 1, .context = 1, .horizon = H, .samples = 2, .act = CGS_F32};
    OK(cgs_rollout_create(&r, m, &c));
    fill(z, D, 1);
    fill(goal, D, 2);
    memset(plans, 0, sizeof plans);
    for (int block = 0; block < H; block++) {
        memset(plans, 0, sizeof plans);
        plans[H * A + block * A + 3] = 1;
        OK(cgs_rollout_set(r, 1, z, NULL, goal));
        OK(cgs_rollout_cost(r, plans, 1, 2, cost));
        if (!(fabsf(cost[0] - cost[1]) > 1e-2f * cost[0]))
            fail_msg("block %d: costs %g and %g", block, (double)cost[0], (double)cost[1]);
    }
    cgs_rollout_destroy(r);
    cgs_lewm_destroy(m);
    cgs_device_close(&d);
}

static void test_gradient(void **state) {
    (void)state;
    enum { E = 3 };
    for (int C = 1; C <= N; C += 2) {
        cgs_device d;
        cgs_lewm *m;
        cgs_rollout *r, *g;
        float z[E * N * D], past[E * N * A], goal[E * D], plans[E * H * A], cost[E],
            grad[E * H * A];
        float probe[E * 2 * H * A], ends[E * 2], way[E * H * A];
        OK(cgs_device_open(&d, "cpu", 1));
        OK(random_model(&m, &d, 5));
        cgs_rollout_config c = {
            .episodes = E, .context = C, .horizon = H, .samples = 2, .act = CGS_F32};
        OK(cgs_rollout_create(&r, m, &c));
        c.samples = 1;
        c.gradient = true;
        OK(cgs_rollout_create(&g, m, &c));
        fill(z, E * N * D, 1);
        fill(past, E * N * A, 2);
        fill(goal, E * D, 3);
        fill(plans, E * H * A, 4);
        fill(way, E * H * A, 5);
        OK(cgs_rollout_set(r, E, z, past, goal));
        OK(cgs_rollout_set(g, E, z, past, goal));
        OK(cgs_rollout_gradient(g, plans, E, cost, grad));
        const float step = 0.004f;
        for (int e = 0; e < E; e++)
            for (int side = 0; side < 2; side++)
                for (int i = 0; i < H * A; i++)
                    probe[(e * 2 + side) * H * A + i] =
                        plans[e * H * A + i] + (side ? -step : step) * way[e * H * A + i];
        OK(cgs_rollout_cost(r, probe, E, 2, ends));
        for (int e = 0; e < E; e++) {
            double along = 0, slope = ((double)ends[2 * e] - ends[2 * e + 1]) / (2 * step), mid;
            for (int i = 0; i < H * A; i++)
                along += (double)grad[e * H * A + i] * way[e * H * A + i];
            mid = (ends[2 * e] + ends[2 * e + 1]) / 2;
            assert_true(fabs(mid - cost[e]) < 0.01 * mid);
            if (!(fabs(along - slope) < 0.01 * fabs(slope) + 2e-3))
                fail_msg("C %d, episode %d: gradient %g, difference %g", C, e, along, slope);
        }
        cgs_rollout_destroy(r);
        cgs_rollout_destroy(g);
        cgs_lewm_destroy(m);
        cgs_device_close(&d);
    }
}

static cgs_status count_cost(void *user, int episode, const float *plans, const float *z, int n,
                             float *cost) {
    (void)plans;
    for (int i = 0; i < n; i++) cost[i] = z[i * H * D] + (float)episode; /* first frame, value 0 */
    *(int *)user += n;
    return CGS_OK;
}

static void test_own_cost(void **state) {
    (void)state;
    enum { E = 2, K = 7 };
    cgs_device d;
    cgs_lewm *m;
    cgs_rollout *r;
    static float z[E * D], plans[E * K * H * A], cost[E * K], frames[E * K * H * D];
    int calls = 0;
    OK(cgs_device_open(&d, "cpu", 1));
    OK(random_model(&m, &d, 3));
    cgs_rollout_config c = {
        .episodes = E, .context = 1, .horizon = H, .samples = K, .act = CGS_F32};
    OK(cgs_rollout_create(&r, m, &c));
    fill(z, E * D, 1);
    fill(plans, E * K * H * A, 2);
    OK(cgs_rollout_set(r, E, z, NULL, NULL));
    REFUSED(cgs_rollout_cost(r, plans, E, K, cost), CGS_EARG, "goal");
    cgs_rollout_use_cost(r, count_cost, &calls);
    OK(cgs_rollout_cost(r, plans, E, K, cost));
    OK(cgs_rollout_imagine(r, plans, E, K, frames));
    assert_int_equal(calls, E * K);
    for (int i = 0; i < E * K; i++) assert_true(cost[i] == frames[i * H * D] + (float)(i / K));
    cgs_rollout_destroy(r);
    cgs_lewm_destroy(m);
    cgs_device_close(&d);
}

/* residuals: the latents' differences from the goal, beside the very costs of cgs_rollout_cost */
static void residuals_against_latents(int E, int K) {
    cgs_device d;
    cgs_lewm *m;
    cgs_rollout *r, *plain;
    size_t rows = (size_t)(E * K);
    float *z = malloc(sizeof(float) * (size_t)(2 * E * D)), *goal = z + E * D;
    float *plans = malloc(sizeof(float) * rows * H * A), *frames;
    float *cost = malloc(sizeof(float) * 2 * rows), *residual = malloc(sizeof(float) * rows * D);
    frames = malloc(sizeof(float) * rows * H * D);
    OK(cgs_device_open(&d, "cpu", 1));
    OK(random_model(&m, &d, 3));
    cgs_rollout_config c = {
        .episodes = E, .context = 1, .horizon = H, .samples = K, .act = CGS_F32};
    OK(cgs_rollout_create(&plain, m, &c));
    c.residual = true;
    OK(cgs_rollout_create(&r, m, &c));
    fill(z, (size_t)(2 * E * D), 1);
    fill(plans, rows * H * A, 2);
    OK(cgs_rollout_set(r, E, z, NULL, goal));
    OK(cgs_rollout_set(plain, E, z, NULL, goal));
    assert_int_equal(cgs_rollout_residuals(r), D);
    assert_int_equal(cgs_rollout_residuals(plain), 0);
    OK(cgs_rollout_residual(r, plans, E, K, cost, residual));
    OK(cgs_rollout_cost(plain, plans, E, K, cost + rows));
    assert_memory_equal(cost, cost + rows, sizeof(float) * rows);
    OK(cgs_rollout_imagine(r, plans, E, K, frames));
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < D; j++)
            assert_true(residual[i * D + j] ==
                        frames[(i * H + H - 1) * D + j] - goal[i / (size_t)K * D + j]);
    REFUSED(cgs_rollout_residual(plain, plans, E, K, cost, residual), CGS_EARG, "residuals no");
    cgs_rollout_destroy(r);
    cgs_rollout_destroy(plain);
    cgs_lewm_destroy(m);
    cgs_device_close(&d);
    free(z), free(plans), free(frames), free(cost), free(residual);
}

static void test_residuals(void **state) {
    (void)state;
    residuals_against_latents(3, 5);    /* several episodes per run, the last run not full */
    residuals_against_latents(1, 1100); /* several runs per episode */
}

/* way-points and a penalty: the first latent and the first action */
static cgs_status way_point(void *user, int episode, const float *plans, const float *z, int n,
                            float *residual) {
    ++*(int *)user;
    for (int i = 0; i < n; i++) {
        residual[2 * i] = z[i * H * D] - (float)episode;
        residual[2 * i + 1] = 0.5f * plans[i * H * A];
    }
    return CGS_OK;
}

static void test_own_residual(void **state) {
    (void)state;
    enum { E = 2, K = 7 };
    cgs_device d;
    cgs_lewm *m;
    cgs_rollout *r;
    static float z[E * D], plans[E * K * H * A], cost[E * K], residual[E * K * 2];
    static float frames[E * K * H * D];
    int calls = 0;
    OK(cgs_device_open(&d, "cpu", 1));
    OK(random_model(&m, &d, 3));
    cgs_rollout_config c = {
        .episodes = E, .context = 1, .horizon = H, .samples = K, .residual = true, .act = CGS_F32};
    OK(cgs_rollout_create(&r, m, &c));
    fill(z, E * D, 1);
    fill(plans, E * K * H * A, 2);
    OK(cgs_rollout_set(r, E, z, NULL, NULL));
    REFUSED(cgs_rollout_use_residual(r, way_point, D + 1, &calls), CGS_EARG, "97 values");
    OK(cgs_rollout_use_residual(r, way_point, 2, &calls));
    assert_int_equal(cgs_rollout_residuals(r), 2);
    OK(cgs_rollout_residual(r, plans, E, K, cost, residual));
    OK(cgs_rollout_imagine(r, plans, E, K, frames));
    assert_int_equal(calls, E);
    for (int i = 0; i < E * K; i++) {
        float a = frames[i * H * D] - (float)(i / K), b = 0.5f * plans[i * H * A];
        assert_true(residual[2 * i] == a && residual[2 * i + 1] == b);
        assert_true(fabsf(cost[i] - (a * a + b * b)) <= 1e-6f * cost[i]);
    }
    /* a cost alone has no residuals */
    OK(cgs_rollout_use_residual(r, NULL, 0, NULL));
    cgs_rollout_use_cost(r, count_cost, &calls);
    assert_int_equal(cgs_rollout_residuals(r), 0);
    REFUSED(cgs_rollout_residual(r, plans, E, K, cost, residual), CGS_EARG, "own cost yes");
    cgs_rollout_destroy(r);
    cgs_lewm_destroy(m);
    cgs_device_close(&d);
}

/* what a rollout without forward mode does, as a GPU's: the reference without it */
static cgs_backend without_tangents;

/* The Jacobian by both modes against differences of the residuals, and against the gradient: J' 2
 * r.
 */
static void jacobian_of(cgs_device *d, int C, int E) {
    enum { n = H * A };
    cgs_lewm *m;
    cgs_rollout *r, *g, *c;
    static float z[3 * N * D], past[3 * N * A], goal[3 * D], plans[3 * n], way[n];
    static float cost[3], residual[3 * D], J[3 * D * n], grad[3 * n];
    OK(random_model(&m, d, 5));
    cgs_rollout_config o = {
        .episodes = E, .context = C, .horizon = H, .samples = 1, .jacobian = true, .act = CGS_F32};
    OK(cgs_rollout_create(&r, m, &o));
    o.jacobian = false;
    o.gradient = true;
    OK(cgs_rollout_create(&g, m, &o));
    o.gradient = false;
    o.residual = true;
    o.samples = 2;
    OK(cgs_rollout_create(&c, m, &o));
    fill(z, (size_t)(E * C * D), 1);
    fill(past, (size_t)(E * N * A), 2);
    fill(goal, (size_t)(E * D), 3);
    fill(plans, (size_t)(E * n), 4);
    fill(way, n, 5);
    assert_int_equal(cgs_rollout_residuals(r), D);
    OK(cgs_rollout_set(r, E, z, past, goal));
    OK(cgs_rollout_set(g, E, z, past, goal));
    OK(cgs_rollout_set(c, E, z, past, goal));
    float gradient_cost[3], probe[3 * 2 * n], ends[3 * 2], moved[3 * 2 * D];
    for (int repeat = 0; repeat < 2; repeat++)
        OK(cgs_rollout_jacobian(r, plans, E, cost, residual, J));
    OK(cgs_rollout_gradient(g, plans, E, gradient_cost, grad));
    const float step = 0.01f;
    for (int e = 0; e < E; e++)
        for (int i = 0; i < 2 * n; i++)
            probe[e * 2 * n + i] = plans[e * n + i % n] + (i < n ? step : -step) * way[i % n];
    OK(cgs_rollout_residual(c, probe, E, 2, ends, moved));
    for (int e = 0; e < E; e++) {
        double off = 0, size = 0, wrong = 0, long_ = 0;
        assert_true(fabsf(cost[e] - gradient_cost[e]) < 1e-4f * cost[e]);
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int i = 0; i < D; i++) sum += 2.0 * residual[e * D + i] * J[(e * D + i) * n + j];
            off += pow(sum - grad[e * n + j], 2);
            size += pow(grad[e * n + j], 2);
        }
        for (int i = 0; i < D; i++) {
            double along = 0;
            for (int j = 0; j < n; j++) along += (double)J[(e * D + i) * n + j] * way[j];
            double two = ((double)moved[e * 2 * D + i] - moved[(e * 2 + 1) * D + i]) / (2 * step);
            wrong += pow(along - two, 2);
            long_ += pow(two, 2);
        }
        if (!(sqrt(off / size) < 1e-4) || !(sqrt(wrong / long_) < 2e-3))
            fail_msg("C %d, episode %d: %g off the gradient, %g off differences", C, e,
                     sqrt(off / size), sqrt(wrong / long_));
    }
    o.samples = 1;
    o.gradient = o.jacobian = true;
    cgs_rollout *none;
    REFUSED(cgs_rollout_create(&none, m, &o), CGS_EARG, "for Jacobians");
    REFUSED(cgs_rollout_jacobian(c, plans, E, cost, residual, J), CGS_EARG, "for Jacobians no");
    cgs_rollout_destroy(r);
    cgs_rollout_destroy(g);
    cgs_rollout_destroy(c);
    cgs_lewm_destroy(m);
}

/* the bits of an episode's Jacobian do not depend on the others of its batch, nor on threads */
static void test_jacobian_alone(void **state) {
    (void)state;
    enum { E = 6, n = H * A };
    static float z[E * D], goal[E * D], plans[E * n], cost[2], residual[E * D], J[2][E * D * n];
    fill(z, E * D, 1);
    fill(goal, E * D, 3);
    fill(plans, E * n, 4);
    for (int threads = 1; threads <= 3; threads++) {
        cgs_device d;
        cgs_lewm *m;
        cgs_rollout *r;
        float costs[E];
        OK(cgs_device_open(&d, "cpu", threads));
        OK(random_model(&m, &d, 5));
        cgs_rollout_config o = {.episodes = E,
                                .context = 1,
                                .horizon = H,
                                .samples = 1,
                                .jacobian = true,
                                .act = CGS_BF16};
        OK(cgs_rollout_create(&r, m, &o));
        OK(cgs_rollout_set(r, E, z, NULL, goal));
        OK(cgs_rollout_jacobian(r, plans, E, costs, residual, J[threads > 1]));
        for (int e = 0; e < E; e++) {
            OK(cgs_rollout_set(r, 1, z + e * D, NULL, goal + e * D));
            OK(cgs_rollout_jacobian(r, plans + e * n, 1, cost, residual, J[1] + (E - 1) * D * n));
            const float *one = J[1] + (E - 1) * D * n;
            if (threads == 1) assert_memory_equal(one, J[0] + e * D * n, sizeof(float) * D * n);
            assert_true(cost[0] == costs[e]);
        }
        OK(cgs_rollout_set(r, E, z, NULL, goal));
        OK(cgs_rollout_jacobian(r, plans, E, costs, residual, J[1]));
        assert_memory_equal(J[1], J[0], sizeof J[0]);
        cgs_rollout_destroy(r);
        cgs_lewm_destroy(m);
        cgs_device_close(&d);
    }
}

static void test_jacobian(void **state) {
    (void)state;
    for (int C = 1; C <= (SANITIZED ? 1 : N); C += 2) {
        cgs_device cpu, ref, plain;
        OK(cgs_device_open(&cpu, "cpu", 2));
        jacobian_of(&cpu, C, 3);
        cgs_device_close(&cpu);
        OK(cgs_device_open(&ref, "ref", 1));
        jacobian_of(&ref, C, 1);
        without_tangents = *ref.ops;
        memset(without_tangents.tangent, 0, sizeof without_tangents.tangent);
        plain = ref;
        plain.ops = &without_tangents;
        jacobian_of(&plain, C, 2);
        cgs_device_close(&ref);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rollout),   cmocka_unit_test(test_actions_matter),
        cmocka_unit_test(test_gradient),  cmocka_unit_test(test_own_cost),
        cmocka_unit_test(test_residuals), cmocka_unit_test(test_own_residual),
        cmocka_unit_test(test_jacobian),  cmocka_unit_test(test_jacobian_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

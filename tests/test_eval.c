/* test_eval.c - planning through a model, the closed loop, and evaluations.
 *
 * The model is the small preset with random weights: it plans badly, but a rollout, a
 * history and a result file do not care. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/file.h"
#include "core/rng.h"
#include "core/threads.h"
#include "eval/clone.h"
#include "eval/collect.h"
#include "eval/evaluate.h"
#include "eval/subject.h"
#include "eval/summary.h"
#include "random_model.h"

enum { SIDE = 64, EPISODES = 24, D = 96, A = 10, N = 3, H = 5 };

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != CGS_OK) fail_msg("%s: %s", #call, cgs_last_error());                         \
    } while (0)

/* the call fails with this code and a sentence that names this */
#define REFUSED(call, code, word)                                                                  \
    do {                                                                                           \
        assert_int_equal((call), (code));                                                          \
        if (!strstr(cgs_last_error(), (word)))                                                     \
            fail_msg("\"%s\" does not mention \"%s\"", cgs_last_error(), word);                    \
    } while (0)

static char folder[64], data_path[128], model_a[128], model_b[128];

static const char *in_folder(const char *name) {
    static char path[8][192];
    static int next;
    next = (next + 1) % 8;
    snprintf(path[next], sizeof path[next], "%s/%s", folder, name);
    return path[next];
}

static int setup(void **state) {
    (void)state;
    strcpy(folder, "/tmp/cgs_eval_XXXXXX");
    if (!mkdtemp(folder)) return 1;
    strcpy(data_path, in_folder("data.h5"));
    strcpy(model_a, in_folder("a"));
    strcpy(model_b, in_folder("b"));
    cgs_collect_options c = {
        .env = "tworooms", .out = data_path, .episodes = EPISODES, .side = SIDE};
    cgs_collect_result r;
    if (cgs_collect(&c, &r) != CGS_OK || random_model_dir(model_a, "tworooms", data_path, 1) ||
        random_model_dir(model_b, "tworooms", data_path, 2)) {
        print_error("%s\n", cgs_last_error());
        return 1;
    }
    return 0;
}

static int teardown(void **state) {
    (void)state;
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static void fill(float *x, size_t n, uint64_t seed) {
    cgs_rng r = cgs_rng_stream(seed, CGS_STREAM_TEST, 0);
    for (size_t i = 0; i < n; i++) x[i] = (float)cgs_rng_normal(&r);
}

/* ---- rollouts ---------------------------------------------------------------------- */

/* One plan, one window after the other, everything computed anew: the definition. */
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
        for (int k = 0; k<K; k += K> 10 ? K / 5 : 1) {
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
    rollout_against_definition("cpu", 1, 2, 70, 1e-4);   /* one episode a run      */
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

/* ---- the closed loop --------------------------------------------------------------- */

typedef struct bed { /* a dataset, a model and starts */
    cgs_device d;
    cgs_dataset *data;
    cgs_subject s;
    const cgs_env_class *env;
    cgs_starts starts;
    cgs_cases cases;
} bed;

static void bed_open(bed *b, int threads, int count, int context) {
    memset(b, 0, sizeof *b);
    OK(cgs_device_open(&b->d, "cpu", threads));
    OK(cgs_dataset_open(&b->data, data_path));
    OK(cgs_subject_open(&b->s, model_a, &b->d, "f32", 4, b->data));
    OK(cgs_dataset_env(b->data, NULL, &b->env));
    OK(cgs_subject_fits(&b->s, b->env, cgs_dataset_source(b->data)));
    const cgs_source *src = cgs_dataset_source(b->data);
    int64_t length[EPISODES];
    for (int i = 0; i < src->episodes; i++) length[i] = src->ep_len[i];
    cgs_episodes ep = {src->episodes, length, src->ep_offset, NULL};
    cgs_start_rule rule = {.count = count, .goal_offset = 25};
    OK(cgs_starts_choose(&b->starts, &ep, &rule, NULL, NULL));
    OK(cgs_cases_build(&b->cases, b->data, b->env, &b->starts, b->s.encoder, b->s.world,
                       &b->s.scale, NULL, context));
}

static void bed_close(bed *b) {
    cgs_cases_free(&b->cases);
    cgs_starts_free(&b->starts);
    cgs_subject_close(&b->s);
    cgs_dataset_close(b->data);
    cgs_device_close(&b->d);
}

static cgs_loop_config loop_config(bed *b, const char *planner, cgs_history history, int batch) {
    cgs_loop_config c = {.model = b->s.world,
                         .encoder = b->s.encoder,
                         .env = b->env,
                         .scale = b->s.scale,
                         .plan = cgs_plan_defaults(),
                         .history = history,
                         .act = CGS_F32,
                         .budget = 50,
                         .batch = batch};
    snprintf(c.plan.kind.s, sizeof c.plan.kind.s, "%s", planner);
    c.plan.K = 8;
    c.plan.iters = 3;
    c.plan.gd_steps = 3;
    c.plan.tau = 128;
    return c;
}

/* the same outcomes whatever the batch and the number of threads; planner seconds aside */
static void test_determinism(void **state) {
    (void)state;
    enum { COUNT = 5 };
    static const char *const planners[] = {"mppi", "cem", "gd", "zero", "random"};
    cgs_outcome first[5][COUNT];
    memset(first, 0, sizeof first);
    for (int variant = 0; variant < 4; variant++) {
        const int batches[] = {COUNT, 1, 2, COUNT}, threads[] = {1, 1, 1, 2};
        bed b;
        bed_open(&b, threads[variant], COUNT, 1);
        for (int p = 0; p < 5; p++) {
            cgs_outcome out[COUNT];
            memset(out, 0, sizeof out);
            cgs_loop_config c = loop_config(&b, planners[p], CGS_HISTORY_ONLINE, batches[variant]);
            cgs_loop *l;
            OK(cgs_loop_create(&l, &c));
            OK(cgs_loop_run(l, &b.cases, out));
            cgs_loop_destroy(l);
            if (variant == 0) memcpy(first[p], out, sizeof out);
            for (int i = 0; i < COUNT; i++) {
                cgs_outcome *w = &first[p][i], *o = &out[i];
                assert_true(o->success == w->success && o->first == w->first);
                assert_true(o->actions == w->actions && o->solves == w->solves);
                assert_true(o->success ? o->first == o->actions : o->actions == 50);
                if (memcmp(&o->planned, &w->planned, 4) || memcmp(&o->reached, &w->reached, 4))
                    fail_msg("%s, variant %d, episode %d: planned %.9g and %.9g, reached %.9g and "
                             "%.9g",
                             planners[p], variant, i, (double)o->planned, (double)w->planned,
                             (double)o->reached, (double)w->reached);
            }
        }
        bed_close(&b);
    }
    cgs_set_threads(0);
}

/* frames that the dataset protocol sees before the first action */
static void test_recorded_history(void **state) {
    (void)state;
    bed b;
    bed_open(&b, 1, 24, N);
    const cgs_source *src = cgs_dataset_source(b.data);
    static uint8_t frame[SIDE * SIDE * 3];
    int padded = 0;
    for (int i = 0; i < b.cases.count; i++) {
        const cgs_start *s = &b.starts.start[i];
        for (int k = 0; k < N; k++) {
            int64_t step = s->step - 5 * (N - 1 - k);
            float z[D];
            OK(cgs_dataset_read_pixels(b.data, src->ep_offset[s->episode] + (step < 0 ? 0 : step),
                                       1, frame));
            OK(cgs_encoder_run(b.s.encoder, frame, 1, z));
            for (int j = 0; j < D; j++)
                assert_true(fabsf(z[j] - b.cases.z[(i * N + k) * D + j]) < 1e-5f);
        }
        for (int k = 0; k < (N - 1) * 5; k++) {
            int64_t step = s->step - (N - 1) * 5 + k;
            float raw[2] = {0, 0};
            padded += step < 0;
            if (step >= 0)
                OK(cgs_dataset_read_rows(b.data, "action", src->ep_offset[s->episode] + step, 1,
                                         raw));
            for (int j = 0; j < 2; j++) {
                double want = (raw[j] - b.s.mean[j]) / b.s.std[j];
                assert_true(fabs(want - b.cases.past[i * (N - 1) * A + k * 2 + j]) < 1e-5);
            }
        }
        double goal[2];
        OK(cgs_dataset_read_rows_f64(b.data, "state", s->row + 25, 1, goal));
        assert_true(goal[0] == b.cases.goal_state[2 * i] &&
                    goal[1] == b.cases.goal_state[2 * i + 1]);
    }
    assert_true(padded > 0); /* some start lies before step 10, or the padding was not tested */
    bed_close(&b);
}

/* What a solve saw, judged from outside: its own rollout against one whose context this test
 * put together from the frames it watched. */
typedef struct spy {
    bed *b;
    cgs_history history;
    uint8_t *frame; /* (51, S, S, 3) of the only episode, by step */
    float *plan;    /* (2, H, A) */
    int solves, context[2];
} spy;

static cgs_status spy_step(void *user, const cgs_env_batch *envs, int step) {
    spy *s = user;
    return cgs_env_render(envs->env[0], SIDE, s->frame + (size_t)step * SIDE * SIDE * 3);
}

static void spy_solved(void *user, const cgs_plan_problem *q, const cgs_plan_result *r,
                       const int *active) {
    spy *s = user;
    const cgs_cases *c = &s->b->cases;
    float z[N * D], past[N * A], mine[H * D], theirs[H * D], plans[8 * H * A], all[8 * H * D];
    int C = 1;
    assert_int_equal(q->E, 1);
    assert_int_equal(active[0], 0);
    memcpy(s->plan + s->solves * H * A, r->plan, sizeof(float) * H * A);
    if (s->solves == 0) { /* recorded frames */
        C = s->history == CGS_HISTORY_DATASET ? N : 1;
        memcpy(z, c->z + (c->context - C) * D, sizeof(float) * (size_t)(C * D));
        memcpy(past, c->past + (c->context - C) * A, sizeof(float) * (size_t)((C - 1) * A));
    } else { /* after 15, 20 and 25 actions; blocks 3 and 4 */
        C = s->history == CGS_HISTORY_NATIVE ? 1 : N;
        for (int i = 0; i < C; i++)
            OK(cgs_encoder_run(s->b->s.encoder,
                               s->frame + (size_t)(25 - 5 * (C - 1 - i)) * SIDE * SIDE * 3, 1,
                               z + i * D));
        memcpy(past, s->plan + 3 * A, sizeof(float) * 2 * A);
    }
    s->context[s->solves] = C;
    cgs_rollout *own;
    cgs_rollout_config config = {
        .episodes = 1, .context = C, .horizon = H, .samples = 8, .act = CGS_F32};
    OK(cgs_rollout_create(&own, s->b->s.model, &config));
    OK(cgs_rollout_set(own, 1, z, past, c->goal));
    for (int k = 0; k < 8; k++) memcpy(plans + k * H * A, r->plan, sizeof(float) * H * A);
    OK(cgs_rollout_imagine(own, plans, 1, 8, all));
    memcpy(mine, all, sizeof mine);
    OK(cgs_rollout_imagine(q->ctx, plans, 1, 8, all));
    memcpy(theirs, all, sizeof theirs);
    for (int i = 0; i < H * D; i++)
        if (!(fabsf(mine[i] - theirs[i]) < 1e-4f))
            fail_msg("history %s, solve %d: value %d is %g, want %g", cgs_history_name(s->history),
                     s->solves, i, (double)theirs[i], (double)mine[i]);
    cgs_rollout_destroy(own);
    s->solves++;
}

static void test_histories(void **state) {
    (void)state;
    bed b;
    bed_open(&b, 1, 1, N);
    static uint8_t frames[51 * SIDE * SIDE * 3];
    for (int h = 0; h < 3; h++) {
        float plans[2 * H * A];
        spy s = {.b = &b, .history = (cgs_history)h, .frame = frames, .plan = plans};
        cgs_loop_config c = loop_config(&b, "mppi", (cgs_history)h, 1);
        c.watch = (cgs_loop_watch){.solved = spy_solved, .stepped = spy_step, .user = &s};
        cgs_loop *l;
        cgs_outcome out;
        OK(cgs_loop_create(&l, &c));
        OK(cgs_loop_run(l, &b.cases, &out));
        assert_int_equal(s.solves, out.success && out.first <= 25 ? 1 : 2);
        assert_int_equal(s.solves, 2); /* this start must not be solved early */
        static const int want[3][2] = {{1, 1}, {N, N}, {1, N}};
        assert_int_equal(s.context[0], want[h][0]);
        assert_int_equal(s.context[1], want[h][1]);
        cgs_loop_destroy(l);
    }
    bed_close(&b);
}

/* executing fewer blocks than were planned: more solves, histories of every length */
static void test_receding(void **state) {
    (void)state;
    bed b;
    bed_open(&b, 1, 2, 1);
    static const char *const planners[] = {"mppi", "gd"};
    for (int p = 0; p < 2; p++) {
        cgs_loop_config c = loop_config(&b, planners[p], CGS_HISTORY_ONLINE, 2);
        c.execute = 1;
        cgs_loop *l;
        cgs_outcome out[2];
        OK(cgs_loop_create(&l, &c));
        OK(cgs_loop_run(l, &b.cases, out));
        for (int i = 0; i < 2; i++) assert_int_equal(out[i].solves, (out[i].actions + 4) / 5);
        cgs_loop_destroy(l);
        c.execute = 6;
        REFUSED(cgs_loop_create(&l, &c), CGS_EARG, "6 blocks");
    }
    bed_close(&b);
}

/* ---- the prior --------------------------------------------------------------------- */

typedef struct losses {
    double first, last, best;
    int encoded;
} losses;

static bool note_loss(void *user, const char *what, double done, double total, double loss,
                      double best) {
    losses *l = user;
    if (!strcmp(what, "encode")) l->encoded = done == total;
    if (isnan(loss)) return true;
    if (done == 1) l->first = loss;
    l->last = loss;
    l->best = best;
    return true;
}

/* memorises a few episodes; what is stored is the best validation, bit for bit */
static void test_prior(void **state) {
    (void)state;
    bed b;
    bed_open(&b, 1, 4, 1);
    cgs_clone_config c;
    cgs_section section = cgs_clone_section(&c);
    cgs_config_defaults(&section, 1);
    c.batch = 64;
    c.hidden = 128;
    c.updates = 300;
    c.every = 10;
    c.patience = 1000;
    c.lr = 0.01f; /* latents of random weights differ little */
    losses l = {0};
    cgs_prior *p, *q;
    OK(cgs_clone_fit(&p, &b.s, b.data, &c, note_loss, &l));
    assert_true(l.encoded);
    if (!(l.last < 0.6 * l.first)) fail_msg("loss %g at first, %g at last", l.first, l.last);
    assert_true(p->card.validation_loss == l.best && p->card.updates % 10 == 0);
    assert_true(p->card.pairs > 0 && p->card.validation_pairs > 0 && p->card.zero_loss > 0);

    OK(cgs_prior_save(model_a, p));
    OK(cgs_prior_load(&q, model_a, b.s.weights, &b.d));
    float mine[4 * H * A], theirs[4 * H * A];
    OK(cgs_prior_plan(p, b.cases.z, b.cases.goal, 4, mine));
    OK(cgs_prior_plan(q, b.cases.z, b.cases.goal, 4, theirs));
    assert_memory_equal(mine, theirs, sizeof mine);
    assert_true(memcmp(mine, mine + H * A, sizeof(float) * H * A) != 0);
    cgs_prior_destroy(q);
    REFUSED(cgs_prior_load(&q, model_a, b.s.weights + 1, &b.d), CGS_EFORMAT, "fitted to weights");

    /* a lone candidate of a prior-guided planner is the prior's plan */
    cgs_loop_config k = loop_config(&b, "pg-mppi", CGS_HISTORY_NATIVE, 4);
    cgs_outcome out[4];
    cgs_loop *loop;
    REFUSED(cgs_loop_create(&loop, &k), CGS_EARG, "needs a prior");
    k.prior = p;
    k.plan.K = 1;
    OK(cgs_loop_create(&loop, &k));
    OK(cgs_loop_run(loop, &b.cases, out));
    cgs_loop_destroy(loop);
    for (int i = 0; i < 4; i++) assert_true(isfinite(out[i].planned));
    k.plan.H = 4;
    REFUSED(cgs_loop_create(&loop, &k), CGS_EARG, "prior plans 5 blocks");
    cgs_prior_destroy(p);
    remove(in_folder("a/prior.json"));

    c.horizon = 500;
    REFUSED(cgs_clone_fit(&p, &b.s, b.data, &c, NULL, NULL), CGS_EARG, "2500 apart");
    bed_close(&b);
}

/* ---- evaluations ------------------------------------------------------------------- */

static const char *const one_model[1] = {model_a}, *const two_models[2] = {model_a, model_b};
static const char *const mppi_only[] = {"mppi"}, *const some_planners[] = {"mppi", "zero"};
static const int few_samples[] = {1, 4}, few_iters[] = {2};
static const uint64_t two_seeds[] = {0, 42};
static const double taus[] = {64, 128};

static cgs_eval_options small_eval(void) {
    cgs_eval_options o = cgs_eval_defaults();
    o.models = two_models;
    o.model_count = 2;
    o.data = data_path;
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

static void test_resume(void **state) {
    (void)state;
    cgs_eval_options o = small_eval();
    const char *path = in_folder("results.jsonl");
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

static void test_starts(void **state) {
    (void)state;
    cgs_eval_options o = small_eval();
    cgs_evaluation e;
    cgs_starts s;
    o.planners = some_planners + 1; /* zero */
    o.planner_count = 1;
    o.seed_count = 1;
    o.held_out = o.skip_solved = true;
    o.manifest = in_folder("starts.jsonl");
    OK(cgs_evaluate(&e, &o));
    cgs_evaluation_free(&e);

    OK(cgs_starts_load(&s, o.manifest, NULL));
    assert_int_equal(s.count, 6);
    assert_true(s.rule.held_out && s.rule.skip_solved);
    bed b;
    bed_open(&b, 1, 1, 1);
    uint8_t held[EPISODES];
    OK(cgs_subject_held_out(&b.s, cgs_dataset_source(b.data), held));
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
    /* one that belongs to other data is refused */
    char *text;
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
    o = base, o.episodes = 0, refuse(&o, CGS_EARG, "0 are wanted");
    o = base, o.budget = 0, refuse(&o, CGS_EARG, "0 actions");
    o = base, o.precision = "f16", refuse(&o, CGS_EARG, "f16");
    o = base, o.data = in_folder("missing.h5"), refuse(&o, CGS_EIO, "missing.h5");
}

/* models that do not belong to the data */
static void test_misfits(void **state) {
    (void)state;
    cgs_device d;
    cgs_lewm *m;
    cgs_lewm_config c;
    const char *dir = in_folder("misfit");
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
        cmocka_unit_test(test_rollout),     cmocka_unit_test(test_actions_matter),
        cmocka_unit_test(test_gradient),    cmocka_unit_test(test_own_cost),
        cmocka_unit_test(test_determinism), cmocka_unit_test(test_recorded_history),
        cmocka_unit_test(test_histories),   cmocka_unit_test(test_receding),
        cmocka_unit_test(test_prior),       cmocka_unit_test(test_resume),
        cmocka_unit_test(test_summary),     cmocka_unit_test(test_starts),
        cmocka_unit_test(test_refusals),    cmocka_unit_test(test_misfits),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

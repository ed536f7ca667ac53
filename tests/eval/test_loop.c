/* test_loop.c - the closed loop of planning and acting, what a solve sees of the past, and the
 * prior that planners may start from. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/threads.h"
#include "eval/episode.h"
#include "eval_bed.h"
#include "expect.h"
#include "plan/planners.h"
#include "rollout/rollout.h"
#include "train/prior_fit.h"

enum { SIDE = BED_SIDE, D = 96, A = 10, N = 3, H = 5 };

static cgs_loop_config loop_config(bed *b, const char *planner, cgs_history history, int batch) {
    cgs_loop_config c = {.model = b->s.model,
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
    enum { MOST = 64 };
    static cgs_outcome first[MOST][COUNT];
    for (int variant = 0; variant < 4; variant++) {
        const int batches[] = {COUNT, 1, 2, COUNT}, threads[] = {1, 1, 1, 2};
        bed b;
        bed_open(&b, threads[variant], COUNT, 1);
        const cgs_planner_kind *kind;
        for (int p = 0; p < MOST && (kind = cgs_planner_kind_at(p)); p++) {
            if (kind->needs & CGS_NEEDS_PRIOR) continue;
            cgs_outcome out[COUNT];
            memset(out, 0, sizeof out);
            cgs_loop_config c = loop_config(&b, kind->name, CGS_HISTORY_ONLINE, batches[variant]);
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
                             kind->name, variant, i, (double)o->planned, (double)w->planned,
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
    const cgs_start_states *c = &s->b->cases;
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
    OK(cgs_rollout_create(&own, s->b->s.lewm, &config));
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
        c.watch = (cgs_loop_observer){.solved = spy_solved, .stepped = spy_step, .user = &s};
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
        REFUSED(cgs_loop_create(&l, &c), CGS_EARG, "6 action blocks");
    }
    bed_close(&b);
}

/* ---- when success counts ------------------------------------------------------------- */

enum { BUDGET = 50, SOLVE = 25, PASSED = 7 }; /* actions; of a plan; of a state on the way */

/* the states of the first episode of a batch, the start included */
static cgs_status note_state(void *user, const cgs_env_batch *envs, int step) {
    memcpy((double *)user + 2 * step, envs->state, 2 * sizeof(double));
    return CGS_OK;
}

static cgs_judge judge;

static cgs_outcome run_for(bed *b, cgs_success_rule rule, int execute, const double goal[2],
                           double *states) {
    cgs_loop_config c = loop_config(b, "mppi", CGS_HISTORY_NATIVE, 1);
    cgs_loop *l;
    cgs_outcome out;
    c.success = rule;
    c.judge = judge;
    c.execute = execute;
    if (states) c.watch.stepped = note_state, c.watch.user = states;
    memcpy(b->cases.goal_state, goal, 2 * sizeof *goal);
    OK(cgs_loop_create(&l, &c));
    OK(cgs_loop_run(l, &b->cases, &out));
    cgs_loop_destroy(l);
    return out;
}

/* A goal that is passed on the way counts after every action and not after a solve; one that a plan
 * ends in counts for both. */
static void test_success_rules(void **state) {
    (void)state;
    bed b;
    bed_open(&b, 1, 1, 1);
    static double at[2 * (BUDGET + 1)];
    const double nowhere[2] = {20, 200};
    const double *passed = at + 2 * PASSED, *end = at + 2 * SOLVE;
    cgs_env *env;
    OK(cgs_env_create(&env, b.env));
    cgs_outcome out = run_for(&b, CGS_SUCCESS_ANY, 0, nowhere, at);
    assert_true(!out.success && out.actions == BUDGET);
    /* otherwise the test says nothing */
    assert_false(cgs_env_reached(env, end, passed));
    assert_false(cgs_env_reached(env, at + 2 * BUDGET, passed));

    out = run_for(&b, CGS_SUCCESS_ANY, 0, passed, NULL);
    assert_true(out.success && out.first <= PASSED && out.actions == out.first);
    out = run_for(&b, CGS_SUCCESS_SOLVE, 0, passed, NULL);
    assert_true(!out.success && out.actions == BUDGET && out.solves == 2);
    out = run_for(&b, CGS_SUCCESS_ANY, 0, end, NULL);
    assert_true(out.success && out.first <= SOLVE);
    out = run_for(&b, CGS_SUCCESS_SOLVE, 0, end, NULL);
    assert_true(out.success && out.first == SOLVE && out.actions == SOLVE && out.solves == 1);
    /* at the end alone */
    out = run_for(&b, CGS_SUCCESS_END, 0, passed, NULL);
    assert_true(!out.success && out.actions == BUDGET);
    out = run_for(&b, CGS_SUCCESS_END, 0, at + 2 * BUDGET, NULL);
    assert_true(out.success && out.first == BUDGET && out.actions == BUDGET);
    /* a judge with half the tolerance */
    double beside[2] = {at[2 * BUDGET] + 12, at[2 * BUDGET + 1]};
    for (int j = 0; j < 2; j++) {
        judge = j ? CGS_JUDGE_MODERATE : CGS_JUDGE_OFFICIAL;
        out = run_for(&b, CGS_SUCCESS_END, 0, beside, NULL);
        assert_int_equal(out.success, j == 0);
    }
    judge = CGS_JUDGE_OFFICIAL;
    /* after each replanning */
    run_for(&b, CGS_SUCCESS_ANY, 2, nowhere, at);
    out = run_for(&b, CGS_SUCCESS_SOLVE, 2, at + 2 * BUDGET, NULL);
    assert_true(out.success && out.first % 10 == 0);
    assert_int_equal(cgs_success_of(&b.s), CGS_SUCCESS_ANY);
    cgs_env_destroy(env);
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
    cgs_prior_fit_config c;
    cgs_section section = cgs_prior_fit_section(&c);
    cgs_config_defaults(&section, 1);
    c.batch = 64;
    c.hidden = 128;
    c.updates = 300;
    c.every = 10;
    c.patience = 1000;
    c.lr = 0.01f; /* latents of random weights differ little */
    /* with nothing held out, so that there are enough of them to tell latents apart */
    b.s.card.split[0] = '\0';
    losses l = {0};
    cgs_prior *p, *q;
    OK(cgs_prior_fit(&p, &b.s, b.data, &c, note_loss, &l));
    assert_true(l.encoded);
    if (!(l.last < 0.6 * l.first)) fail_msg("loss %g at first, %g at last", l.first, l.last);
    assert_true(p->card.validation_loss == l.best && p->card.updates % 10 == 0);
    assert_true(p->card.pairs > 0 && p->card.validation_pairs > 0 && p->card.zero_loss > 0);

    OK(cgs_prior_save(bed_model_a, p));
    OK(cgs_prior_load(&q, bed_model_a, b.s.weights, &b.d));
    float mine[4 * H * A], theirs[4 * H * A];
    OK(cgs_prior_plan(p, b.cases.z, b.cases.goal, 4, mine));
    OK(cgs_prior_plan(q, b.cases.z, b.cases.goal, 4, theirs));
    assert_memory_equal(mine, theirs, sizeof mine);
    assert_true(memcmp(mine, mine + H * A, sizeof(float) * H * A) != 0);
    cgs_prior_destroy(q);
    REFUSED(cgs_prior_load(&q, bed_model_a, b.s.weights + 1, &b.d), CGS_EFORMAT,
            "fitted to weights");

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
    REFUSED(cgs_loop_create(&loop, &k), CGS_EARG, "prior plans 5 action blocks");
    cgs_prior_destroy(p);
    remove(bed_path("a/prior.json"));

    c.horizon = 500;
    REFUSED(cgs_prior_fit(&p, &b.s, b.data, &c, NULL, NULL), CGS_EARG, "2500 apart");
    bed_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_determinism), cmocka_unit_test(test_recorded_history),
        cmocka_unit_test(test_histories),   cmocka_unit_test(test_receding),
        cmocka_unit_test(test_prior),       cmocka_unit_test(test_success_rules),
    };
    return cmocka_run_group_tests(tests, bed_setup, bed_teardown);
}

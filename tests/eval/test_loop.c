/* test_loop.c - the closed loop of planning and acting, what a solve sees of the past, and the
 * prior that planners may start from. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/file.h"
#include "core/rng.h"
#include "core/threads.h"
#include "eval/episode.h"
#include "eval/prior_weight.h"
#include "eval_bed.h"
#include "expect.h"
#include "plan/planners.h"
#include "rollout/rollout.h"
#include "sanitized.h"
#include "train/prediction_error.h"
#include "train/prior_fit.h"
#include "train/prior_pairs.h"

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
    for (int variant = 0; variant < (SANITIZED ? 2 : 4); variant++) {
        const int batches[] = {COUNT, 2, 1, COUNT}, threads[] = {1, 2, 1, 2};
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

/* frames that went to the encoder, which keeps them there */
static size_t frames_seen;
static const void *eye;

static cgs_status count_frames(cgs_device *d, void *to, const void *from, size_t bytes) {
    size_t frame = SIDE * SIDE * 3;
    if (!eye) eye = to;
    if (eye == to) frames_seen += bytes / frame;
    return cgs_backend_cpu.upload(d, to, from, bytes);
}

/* Who scores nothing looks at the end alone, whose distance from the goal is told; another looks
 * before its second solve, too. */
static void test_blind(void **state) {
    (void)state;
    enum { COUNT = 5 };
    cgs_backend counting = cgs_backend_cpu;
    counting.upload = count_frames;
    bed b;
    bed_open(&b, 1, COUNT, 1);
    const cgs_backend *real = b.d.ops;
    b.d.ops = &counting;
    static const uint8_t black[SIDE * SIDE * 3];
    float z[D];
    eye = NULL;
    OK(cgs_encoder_run(b.s.encoder, black, 1, z));
    const char *const planners[] = {"zero", "random", "mppi"};
    for (int p = 0; p < 3; p++) {
        cgs_outcome out[COUNT];
        int second = 0;
        cgs_loop *l;
        cgs_loop_config c = loop_config(&b, planners[p], CGS_HISTORY_NATIVE, COUNT);
        OK(cgs_loop_create(&l, &c));
        frames_seen = 0;
        OK(cgs_loop_run(l, &b.cases, out));
        cgs_loop_destroy(l);
        for (int i = 0; i < COUNT; i++) {
            assert_true(isfinite(out[i].reached));
            second += out[i].solves > 1;
        }
        assert_true(second > 0);
        assert_int_equal(frames_seen, COUNT + (p == 2 ? second : 0));
    }
    b.d.ops = real;
    bed_close(&b);
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
    OK(cgs_prior_load(&q, bed_model_a, CGS_PRIOR_BEHAVIOUR, b.s.weights, &b.d));
    float mine[4 * H * A], theirs[4 * H * A];
    OK(cgs_prior_plan(p, b.cases.z, b.cases.goal, 4, mine, NULL));
    OK(cgs_prior_plan(q, b.cases.z, b.cases.goal, 4, theirs, NULL));
    assert_memory_equal(mine, theirs, sizeof mine);
    assert_true(memcmp(mine, mine + H * A, sizeof(float) * H * A) != 0);
    cgs_prior_destroy(q);
    REFUSED(cgs_prior_load(&q, bed_model_a, CGS_PRIOR_BEHAVIOUR, b.s.weights + 1, &b.d),
            CGS_EFORMAT, "fitted to weights");

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

/* settings with which a head learns something of a few episodes of random weights' latents */
static cgs_prior_fit_config quick_fit(const char *kind, const char *spread) {
    cgs_prior_fit_config c;
    cgs_section section = cgs_prior_fit_section(&c);
    cgs_config_defaults(&section, 1);
    strcpy(c.kind.s, kind);
    strcpy(c.spread.s, spread);
    c.batch = 64;
    c.hidden = 64;
    c.updates = 100;
    c.every = 10;
    c.lr = 0.01f;
    return c;
}

/* mean over the validation pairs and the values of a plan of the squared distance in spreads, and
 * the worst of a value */
static double distance_in_spreads(const bed *b, cgs_prior *p, const cgs_prior_fit_config *c,
                                  double *worst) {
    cgs_prior_pairs m;
    bed *own = (bed *)(uintptr_t)b;
    static float plan[H * A], spread[H * A];
    double square[H * A] = {0}, mean = 0;
    OK(cgs_prior_pairs_make(&m, &own->s, own->data, c, NULL, NULL));
    if (p->card.kind == CGS_PRIOR_INVERSE) OK(cgs_prior_pairs_imagine(&m, &own->s, c, NULL, NULL));
    for (int64_t i = 0; i < m.count[1]; i++) {
        OK(cgs_prior_plan(p, cgs_prior_pair_start(&m, 1, i), cgs_prior_pair_end(&m, 1, i), 1, plan,
                          spread));
        for (int j = 0; j < H * A; j++) {
            double away = ((double)plan[j] - m.plan[1][i * H * A + j]) / spread[j];
            square[j] += away * away / (double)m.count[1];
        }
    }
    *worst = 0;
    for (int j = 0; j < H * A; j++) {
        mean += square[j] / (H * A);
        *worst = fmax(*worst, fabs(square[j] - 1));
    }
    cgs_prior_pairs_free(&m);
    return mean;
}

/* A spread is likelier than one of 1, calibrated on the validation pairs, and stored bit for bit;
 * files that say impossible things of it are refused. */
static void test_spread(void **state) {
    (void)state;
    static const char *const kinds[] = {"behaviour", "inverse"};
    for (int kind = 0; kind < 2; kind++) {
        bed b;
        cgs_prior *p, *q;
        double worst;
        bed_open(&b, 1, 4, 1);
        b.s.card.split[0] = '\0';
        cgs_prior_fit_config c = quick_fit(kinds[kind], "learned");
        OK(cgs_prior_fit(&p, &b.s, b.data, &c, NULL, NULL));
        assert_true(p->card.likelihood < 0.5 * p->card.validation_loss);
        assert_true(fabs(distance_in_spreads(&b, p, &c, &worst) - 1) < 1e-4 && worst < 1e-3);

        OK(cgs_prior_save(bed_model_a, p));
        OK(cgs_prior_load(&q, bed_model_a, (cgs_prior_kind)kind, b.s.weights, &b.d));
        float mine[8 * H * A], theirs[8 * H * A];
        OK(cgs_prior_plan(p, b.cases.z, b.cases.goal, 4, mine, mine + 4 * H * A));
        OK(cgs_prior_plan(q, b.cases.z, b.cases.goal, 4, theirs, theirs + 4 * H * A));
        assert_memory_equal(mine, theirs, sizeof mine);
        assert_true(q->card.spread && (int)q->card.kind == kind);
        cgs_prior_destroy(q);
        if (kind) { /* the other kind is not there */
            REFUSED(cgs_prior_load(&q, bed_model_a, CGS_PRIOR_BEHAVIOUR, b.s.weights, &b.d),
                    CGS_EIO, "has no prior");
        }
        float factor[H * A];
        for (int i = 0; i < H * A; i++) factor[i] = 1;
        factor[7] = -1;
        OK(cgs_param_write(&p->params, cgs_params_find(&p->params, "spread.factor"), factor));
        OK(cgs_prior_save(bed_model_a, p));
        REFUSED(cgs_prior_load(&q, bed_model_a, (cgs_prior_kind)kind, b.s.weights, &b.d),
                CGS_EFORMAT, "spread of value 7");
        cgs_prior_destroy(p);
        remove(bed_path(kind ? "a/inverse.json" : "a/prior.json"));
        strcpy(c.spread.s, "wide");
        REFUSED(cgs_prior_fit(&p, &b.s, b.data, &c, NULL, NULL), CGS_EARG, "not unit or learned");
        bed_close(&b);
    }
}

/* A prior without a spread is written as it always was; a changed card is refused by name. */
static void test_prior_versions(void **state) {
    (void)state;
    static const struct {
        const char *from, *to, *says;
    } changes[] = {{"\"learned\"", "\"broad\"", "\"spread\" is not"},
                   {"\"behaviour\"", "\"other\"", "\"kind\" is not"},
                   {"\"behaviour\"", "\"inverse\"", "of the kind \"inverse\""},
                   {"\"likelihood\"", "\"likelihoods\"", "\"likelihood\" is not"},
                   {"\"version\":\t2", "\"version\":\t3", "\"version\" is not"}};
    bed b;
    cgs_prior *p;
    cgs_prior_card card;
    char *text, changed[4096];
    size_t n;
    bed_open(&b, 1, 1, 1);
    cgs_prior_fit_config c = quick_fit("behaviour", "unit");
    c.updates = c.every = 1;
    OK(cgs_prior_fit(&p, &b.s, b.data, &c, NULL, NULL));
    OK(cgs_prior_save(bed_model_a, p));
    OK(cgs_read_file(bed_path("a/prior.json"), 1 << 20, &text, &n));
    assert_non_null(strstr(text, "\"version\":\t1"));
    assert_null(strstr(text, "kind"));
    free(text);
    cgs_prior_destroy(p);
    strcpy(c.spread.s, "learned");
    OK(cgs_prior_fit(&p, &b.s, b.data, &c, NULL, NULL));
    OK(cgs_prior_save(bed_model_a, p));
    cgs_prior_destroy(p);
    OK(cgs_read_file(bed_path("a/prior.json"), 1 << 20, &text, &n));
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        const char *at = strstr(text, changes[i].from);
        assert_non_null(at);
        snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, changes[i].to,
                 at + strlen(changes[i].from));
        OK(cgs_write_file(bed_path("a/prior.json"), changed, strlen(changed)));
        REFUSED(cgs_prior_load_card(&card, bed_model_a, CGS_PRIOR_BEHAVIOUR), CGS_EFORMAT,
                changes[i].says);
    }
    free(text);
    remove(bed_path("a/prior.json"));
    bed_close(&b);
}

/* the same outcomes with a spread, whatever the batch and the threads; others without it */
static void test_spread_determinism(void **state) {
    (void)state;
    enum { COUNT = 5, PLANNERS = 3 };
    static const char *const names[PLANNERS] = {"pg-mppi", "pg-cem", "pg-gn"};
    static cgs_outcome first[PLANNERS][COUNT];
    for (int variant = 0; variant < 5; variant++) {
        const int batches[] = {COUNT, 1, 2, COUNT, COUNT}, threads[] = {1, 1, 1, 2, 1};
        bool product = variant < 4;
        bed b;
        cgs_prior *p;
        bed_open(&b, threads[variant], COUNT, 1);
        cgs_prior_fit_config fit = quick_fit("behaviour", "learned");
        fit.updates = 20;
        OK(cgs_prior_fit(&p, &b.s, b.data, &fit, NULL, NULL));
        for (int k = 0; k < PLANNERS; k++) {
            cgs_outcome out[COUNT];
            int same = 0;
            memset(out, 0, sizeof out);
            cgs_loop_config c = loop_config(&b, names[k], CGS_HISTORY_ONLINE, batches[variant]);
            cgs_loop *l;
            c.prior = p;
            c.plan.product = product;
            OK(cgs_loop_create(&l, &c));
            OK(cgs_loop_run(l, &b.cases, out));
            cgs_loop_destroy(l);
            if (variant == 0) memcpy(first[k], out, sizeof out);
            for (int i = 0; i < COUNT; i++)
                same += !memcmp(&out[i].planned, &first[k][i].planned, 4) &&
                        !memcmp(&out[i].reached, &first[k][i].reached, 4);
            if (same != (product ? COUNT : 0))
                fail_msg("%s, variant %d: %d of %d outcomes are the same", names[k], variant, same,
                         COUNT);
        }
        cgs_prior_destroy(p);
        bed_close(&b);
    }
    cgs_set_threads(0);
}

/* ---- the prediction error -------------------------------------------------------------- */

/* Where the recorded ends are those that the model imagines there is no error; where isotropic
 * noise is added, its variance is found. */
static void test_prediction_error(void **state) {
    (void)state;
    bed b;
    cgs_prior_pairs m;
    cgs_rollout *r;
    bed_open(&b, 1, 1, 1);
    b.s.card.split[0] = '\0';
    cgs_prior_fit_config c = quick_fit("behaviour", "unit");
    OK(cgs_prior_pairs_make(&m, &b.s, b.data, &c, NULL, NULL));
    OK(cgs_prediction_error(&b.s, &m, &c));
    assert_int_equal(b.s.card.prediction_horizon, H);
    assert_true(b.s.card.prediction_variance > 0);
    double squares = 0;
    int64_t first = m.count[1] < 128 ? m.count[1] : 1; /* all of them are measured */
    for (int64_t i = 0; i < first * H * A; i++)
        squares += (double)m.plan[1][i] * m.plan[1][i] / (double)(first * H * A);
    printf("%d pairs, variance of plans %.4g, %.4g\n", (int)m.count[1], b.s.card.plan_variance,
           squares);
    assert_true(first > 1 && fabs(b.s.card.plan_variance - squares) < 1e-9);

    cgs_rollout_config how = {
        .episodes = 1, .context = 1, .horizon = H, .samples = 1, .act = b.s.act};
    OK(cgs_rollout_create(&r, b.s.lewm, &how));
    float *end = malloc((size_t)m.count[1] * D * sizeof *end), z[H * D];
    for (int64_t i = 0; i < m.count[1]; i++) {
        OK(cgs_rollout_set(r, 1, cgs_prior_pair_start(&m, 1, i), NULL, NULL));
        OK(cgs_rollout_imagine(r, m.plan[1] + i * H * A, 1, 1, z));
        memcpy(end + i * D, z + (H - 1) * D, D * sizeof *end);
    }
    m.end[1] = end;
    OK(cgs_prediction_error(&b.s, &m, &c));
    printf("no error: %.3g\n", b.s.card.prediction_variance);
    assert_true(b.s.card.prediction_variance < 1e-10);
    cgs_rng g = cgs_rng_stream(12, CGS_STREAM_TEST, 0);
    for (int64_t i = 0; i < m.count[1] * D; i++) end[i] += (float)(0.05 * cgs_rng_normal(&g));
    OK(cgs_prediction_error(&b.s, &m, &c));
    /* 16 coordinates of each pair, 128 at most: five standard errors */
    double pairs = fmin(128, (double)m.count[1]), want = 0.05 * 0.05;
    printf("noise: %.4g, %.4g was added\n", b.s.card.prediction_variance, want);
    assert_true(fabs(b.s.card.prediction_variance / want - 1) < 5 * sqrt(2 / (16 * pairs)));
    cgs_rollout_destroy(r);
    cgs_prior_pairs_free(&m);
    bed_close(&b);
}

/* what a card says of a planner's gamma, to two digits */
static void test_gamma(void **state) {
    (void)state;
    bed b;
    cgs_prior *p;
    bed_open(&b, 1, 1, 1);
    cgs_plan_config c = cgs_plan_defaults();
    strcpy(c.kind.s, "gn");
    OK(cgs_choose_gamma(&c, &b.s));
    assert_true(c.gamma == 1.0f); /* it was given */
    c.gamma = -1;
    REFUSED(cgs_choose_gamma(&c, &b.s), CGS_EARG, "no prediction error for plans of 5 blocks");
    b.s.card.prediction_horizon = 5;
    b.s.card.prediction_variance = 0.25;
    b.s.card.plan_variance = 1.1;
    OK(cgs_choose_gamma(&c, &b.s));
    assert_true(c.gamma == 0.23f);
    c.gamma = -1;
    c.H = 4;
    REFUSED(cgs_choose_gamma(&c, &b.s), CGS_EARG, "plans of 4 blocks");
    c.H = 5;
    strcpy(c.kind.s, "pg-gn");
    REFUSED(cgs_choose_gamma(&c, &b.s), CGS_EIO, "has no prior");
    for (int spread = 0; spread < 2; spread++) {
        cgs_prior_fit_config fit = quick_fit("behaviour", spread ? "learned" : "unit");
        fit.updates = fit.every = 1;
        OK(cgs_prior_fit(&p, &b.s, b.data, &fit, NULL, NULL));
        p->card.validation_loss = 0.5;
        OK(cgs_prior_save(bed_model_a, p));
        cgs_prior_destroy(p);
        b.s.card.prediction_variance = 0.25; /* the fit measured it */
        for (int product = 0; product < 2; product++) {
            c.gamma = -1;
            c.product = product;
            OK(cgs_choose_gamma(&c, &b.s));
            assert_true(c.gamma == (spread && product ? 0.17f : 0.5f));
        }
    }
    strcpy(c.kind.s, "mppi"); /* reads none */
    c.gamma = -1;
    OK(cgs_choose_gamma(&c, &b.s));
    remove(bed_path("a/prior.json"));
    bed_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_determinism),
        cmocka_unit_test(test_blind),
        cmocka_unit_test(test_recorded_history),
        cmocka_unit_test(test_histories),
        cmocka_unit_test(test_receding),
        cmocka_unit_test(test_spread),
        cmocka_unit_test(test_prior_versions),
        cmocka_unit_test(test_spread_determinism),
        cmocka_unit_test(test_gamma),
        cmocka_unit_test(test_prediction_error),
        cmocka_unit_test(test_prior),
        cmocka_unit_test(test_success_rules),
    };
    return cmocka_run_group_tests(tests, bed_setup, bed_teardown);
}

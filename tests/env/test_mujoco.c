/* test_mujoco.c - Reacher, Cube and PointMaze: models, control, motion and bad input. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "env/env.h"

#ifndef CGS_WITH_MUJOCO
int main(void) {
    printf("built without MuJoCo\n");
    return 77;
}
#else

#include "env/cube.h"
#include "env/mujoco_models.h"
#include "env/mujoco_world.h"
#include "env/policy.h"
#include "env/portable.h"

static cgs_env *make(const cgs_env_class *cls) {
    cgs_env *e;
    assert_int_equal(cgs_env_create(&e, cls), CGS_OK);
    return e;
}

static void act(cgs_env *e, const double *action) {
    memcpy(e->action, action, (size_t)e->cls->action_dim * sizeof *action);
    cgs_env_step(e);
    assert_int_equal(*e->done, 0);
}

static void start(cgs_env *e, const double *s) {
    assert_int_equal(cgs_env_start(e, s, e->cls->state_dim), CGS_OK);
}

static void near_to(const char *what, double value, double want, double within) {
    printf("%-44s %10.5f (%g)\n", what, value, want);
    assert_true(fabs(value - want) <= within);
}

/* ---- the Cube model ------------------------------------------------------------- */

static cgs_mj_source cube_source = {"cube", cgs_mjcf_cube, 21, 20, 7, NULL, NULL};

static const mjModel *cube_model(void) {
    const mjModel *m;
    assert_int_equal(cgs_mj_model(&cube_source, &m), CGS_OK);
    return m;
}

static void test_cube_model(void **unused) {
    (void)unused;
    const mjModel *m = cube_model();
    assert_int_equal(m->nq, 21);
    assert_int_equal(m->nv, 20);
    assert_int_equal(m->nu, 7);
    assert_int_equal(m->neq, 3);
    assert_int_equal(m->ntendon, 1);
    near_to("mass of the cube", m->body_mass[mj_name2id(m, mjOBJ_BODY, "cube")], 0.07936, 1e-9);
    near_to("its inertia", m->body_inertia[3 * mj_name2id(m, mjOBJ_BODY, "cube")], 2.1163e-5, 1e-9);

    /* our kinematics against MuJoCo's, flange against pinch */
    mjData *d = mj_makeData(m);
    int flange = mj_name2id(m, mjOBJ_SITE, "flange"), pinch = mj_name2id(m, mjOBJ_SITE, "pinch");
    cgs_rng rng = cgs_rng_stream(5, CGS_STREAM_TEST, 0);
    double worst = 0, worst_jacobian = 0;
    for (int n = 0; n < 50; n++) {
        cgs_cube_pose mine;
        double J[36], jp[3 * 20], jr[3 * 20];
        for (int k = 0; k < CUBE_ARM; k++) d->qpos[k] = cgs_rng_range(&rng, -3, 3);
        mj_kinematics(m, d);
        mj_comPos(m, d);
        mj_jacSite(m, d, jp, jr, flange);
        cgs_cube_flange(d->qpos, &mine, J);
        for (int k = 0; k < 3; k++)
            worst = fmax(worst, fabs(mine.pos[k] - d->site_xpos[3 * flange + k]));
        for (int k = 0; k < 9; k++)
            worst = fmax(worst, fabs(mine.rot[k] - d->site_xmat[9 * flange + k]));
        for (int r = 0; r < 3; r++)
            for (int k = 0; k < CUBE_ARM; k++) {
                worst_jacobian = fmax(worst_jacobian, fabs(J[6 * r + k] - jp[20 * r + k]));
                worst_jacobian = fmax(worst_jacobian, fabs(J[18 + 6 * r + k] - jr[20 * r + k]));
            }
        cgs_cube_pinch(d->qpos, &mine);
        for (int k = 0; k < 3; k++)
            worst = fmax(worst, fabs(mine.pos[k] - d->site_xpos[3 * pinch + k]));
        for (int k = 0; k < 9; k++)
            worst = fmax(worst, fabs(mine.rot[k] - d->site_xmat[9 * pinch + k]));
    }
    near_to("forward kinematics, largest difference", worst, 0, 1e-9);
    near_to("Jacobian, largest difference", worst_jacobian, 0, 1e-9);

    /* the flange in the pinch frame: 0.1558 back along z, a quarter turn about z */
    const double *P = d->site_xmat + 9 * pinch, *Q = d->site_xmat + 9 * flange;
    double t[3] = {0}, quarter[9] = {0, -1, 0, 1, 0, 0, 0, 0, 1};
    for (int r = 0; r < 3; r++)
        for (int k = 0; k < 3; k++)
            t[r] += P[3 * k + r] * (d->site_xpos[3 * flange + k] - d->site_xpos[3 * pinch + k]);
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 3; c++) {
            double v = 0;
            for (int k = 0; k < 3; k++) v += P[3 * k + r] * Q[3 * k + c];
            assert_true(fabs(v - quarter[3 * r + c]) < 1e-9);
        }
    assert_true(fabs(t[0]) < 1e-9 && fabs(t[1]) < 1e-9);
    near_to("flange behind the pinch", t[2], -0.1558, 1e-9);
    mj_deleteData(d);
}

/* settled without gravity: the gap between the pads and how far the tips reach */
static void test_gripper_table(void **unused) {
    (void)unused;
    static const double table[][3] = {{0.00, 85.2, -4.8}, {0.10, 77.7, -2.1}, {0.20, 69.8, 0.4},
                                      {0.30, 61.5, 2.6},  {0.40, 52.9, 4.4},  {0.50, 44.0, 5.9},
                                      {0.60, 34.9, 7.1},  {0.70, 25.6, 7.9},  {0.80, 16.2, 8.3},
                                      {0.90, 6.8, 8.4},   {0.98, 0.4, 8.3}};
    mjModel *m = mj_copyModel(NULL, cube_model());
    mjData *d = mj_makeData(m);
    m->opt.gravity[2] = 0;
    int hand = mj_name2id(m, mjOBJ_BODY, "hand"), pinch = mj_name2id(m, mjOBJ_SITE, "pinch");
    int right = mj_name2id(m, mjOBJ_BODY, "right_pad"),
        left = mj_name2id(m, mjOBJ_BODY, "left_pad");
    double worst_gap = 0, worst_tip = 0;
    for (int k = 0; k < (int)(sizeof table / sizeof table[0]); k++) {
        /* drive until the opening is the table's: the command needs a little more */
        double command = 255 * table[k][0];
        for (int n = 0; n < 4000; n++) {
            d->ctrl[6] = fmin(255, fmax(0, command));
            mj_step(m, d);
            if (n % 100 == 99) command += 120 * (table[k][0] - d->qpos[6] / 0.8);
        }
        mj_kinematics(m, d);
        /* the tip boxes are the first collision shapes of the pads */
        int tips[2], count = 0;
        for (int g = 0; g < m->ngeom; g++)
            if ((m->geom_bodyid[g] == right || m->geom_bodyid[g] == left) &&
                m->geom_priority[g] == 1 && m->geom_pos[3 * g + 2] > 0.02)
                tips[count++] = g;
        assert_int_equal(count, 2);
        double gap = 0, below = 0;
        for (int c = 0; c < 3; c++) {
            double y = d->xmat[9 * hand + 3 * c + 1], z = d->xmat[9 * hand + 3 * c + 2];
            gap += y * (d->geom_xpos[3 * tips[0] + c] - d->geom_xpos[3 * tips[1] + c]);
            below += z * ((d->geom_xpos[3 * tips[0] + c] + d->geom_xpos[3 * tips[1] + c]) / 2 -
                          d->site_xpos[3 * pinch + c]);
        }
        gap = 1000 * (fabs(gap) - 0.008);
        below *= 1000;
        printf("opening %.3f: gap %.1f mm (%.1f), tips %.1f mm (%.1f)\n", d->qpos[6] / 0.8, gap,
               table[k][1], below, table[k][2]);
        worst_gap = fmax(worst_gap, fabs(gap - table[k][1]));
        worst_tip = fmax(worst_tip, fabs(below - table[k][2]));
    }
    assert_true(worst_gap <= 0.5 && worst_tip <= 0.5);
    mj_deleteData(d);
    mj_deleteModel(m);
}

/* ---- Cube control --------------------------------------------------------------- */

/* the hand at a place, the cube out of its way */
static void cube_at(cgs_env *e, const double *hand, double yaw) {
    double s[CUBE_STATE] = {0};
    const double home[CUBE_ARM] = {-CGS_PI / 2, -CGS_PI / 2, CGS_PI / 2,
                                   -CGS_PI / 2, -CGS_PI / 2, 0};
    memcpy(s, home, sizeof home);
    assert_true(cgs_cube_reach(s, hand, yaw) >= 0);
    s[CUBE_AT] = 0.3, s[CUBE_AT + 1] = 0.3, s[CUBE_AT + 2] = CUBE_REST, s[CUBE_AT + 3] = 1;
    start(e, s);
}

static const double HAND[3] = {0.425, 0, 0.275};

static void test_cube_control(void **unused) {
    (void)unused;
    cgs_env *e = make(&cgs_cube_class);
    cgs_cube_view v;
    const double none[5] = {0};

    /* nothing holds the hand up */
    cube_at(e, HAND, 0);
    for (int k = 1; k <= 50; k++) {
        act(e, none);
        cgs_cube_measure(e, &v);
        if (k == 1) near_to("zero action, mm after 1 step", 1000 * (v.hand[2] - 0.275), -1.4, 0.05);
        if (k == 10) near_to("... after 10", 1000 * (v.hand[2] - 0.275), -13.7, 0.05);
        if (k == 50) near_to("... after 50", 1000 * (v.hand[2] - 0.275), -65.7, 0.2);
    }

    /* one closes, minus one opens */
    const double close[5] = {0, 0, 0, 0, 1}, open[5] = {0, 0, 0, 0, -1};
    static const int when[4] = {1, 4, 7, 10};
    static const double opening[4] = {0.29, 0.84, 0.97, 0.98};
    cube_at(e, HAND, 0);
    for (int k = 1, i = 0; k <= 10; k++) {
        act(e, close);
        cgs_cube_measure(e, &v);
        if (k == when[i]) near_to("opening while closing", v.opening, opening[i++], 0.01);
    }
    for (int k = 0; k < 3; k++) act(e, open);
    cgs_cube_measure(e, &v);
    near_to("opening after 3 steps of opening", v.opening, 0.27, 0.01);

    /* the motors follow part of the way within a step */
    double ratio = 0;
    for (int axis = 0; axis < 2; axis++)
        for (int sign = -1; sign <= 1; sign += 2) {
            double a[5] = {0};
            cube_at(e, HAND, 0);
            a[axis] = sign;
            act(e, a);
            cgs_cube_measure(e, &v);
            ratio += sign * (v.hand[axis] - HAND[axis]) / 0.05 / 4;
        }
    near_to("share of a commanded step", ratio, 0.39, 0.015);
    cgs_env_destroy(e);
}

static void test_cube_reach(void **unused) {
    (void)unused;
    cgs_rng rng = cgs_rng_stream(6, CGS_STREAM_TEST, 0);
    double updates = 0;
    int failures = 0, count = 0;
    cgs_env *e = make(&cgs_cube_class);
    for (int n = 0; n < 200; n++) {
        double joints[CUBE_ARM], hand[3], yaw = cgs_rng_range(&rng, -CGS_PI, CGS_PI);
        for (int k = 0; k < 3; k++)
            hand[k] = cgs_rng_range(&rng, cgs_cube_arm_low[k], cgs_cube_arm_high[k]);
        cube_at(e, hand, yaw);
        memcpy(joints, e->state, sizeof joints);
        for (int k = 0; k < 20; k++, count++) {
            for (int i = 0; i < 3; i++) {
                double low[3] = {0.25, -0.35, 0.02}, high[3] = {0.6, 0.35, 0.35};
                hand[i] += 0.05 * 0.39 * cgs_rng_range(&rng, -1, 1);
                hand[i] = fmin(fmax(hand[i], low[i]), high[i]);
            }
            yaw += 0.3 * 0.39 * cgs_rng_range(&rng, -1, 1);
            int used = cgs_cube_reach(joints, hand, yaw);
            cgs_cube_pose at;
            cgs_cube_pinch(joints, &at);
            failures += used < 0;
            for (int i = 0; i < 3; i++) assert_true(fabs(at.pos[i] - hand[i]) < 2e-4);
            assert_true(fabs(cgs_wrap_half_turn(cgs_cube_yaw_of(at.rot) - yaw)) < 2e-4);
            updates += used;
        }
    }
    cgs_env_destroy(e);
    assert_int_equal(failures, 0);
    near_to("updates of the inverse kinematics, mean", updates / count, 2, 0.5);
}

/* windows of 25 recorded actions, replayed from their first state */
static void test_cube_replay(void **unused) {
    (void)unused;
    enum { EPISODES = 2, STEPS = 200, SPAN = 25 };
    static double state[STEPS + 1][CUBE_STATE], action[STEPS][5];
    const cgs_policy_class *pc;
    cgs_policy *p;
    cgs_env *e = make(&cgs_cube_class), *again = make(&cgs_cube_class);
    double sum = 0, worst = 0;
    int windows = 0;
    assert_int_equal(cgs_policy_find("cube", NULL, &pc), CGS_OK);
    assert_int_equal(cgs_policy_create(&p, pc), CGS_OK);
    for (int k = 0; k < EPISODES; k++) {
        assert_int_equal(cgs_policy_begin(p, e, 2, (uint64_t)k), CGS_OK);
        memcpy(state[0], e->state, sizeof state[0]);
        for (int t = 0; t < STEPS; t++) {
            cgs_policy_act(p, e);
            memcpy(action[t], e->action, sizeof action[t]);
            cgs_env_step(e);
            assert_int_equal(*e->done, 0);
            memcpy(state[t + 1], e->state, sizeof state[0]);
        }
        for (int t = 0; t + SPAN <= STEPS; t += SPAN, windows++) {
            double s[CUBE_STATE], d = 0;
            for (int i = 0; i < CUBE_STATE; i++) s[i] = cgs_round_f32(state[t][i]);
            start(again, s);
            for (int i = 0; i < SPAN; i++) act(again, action[t + i]);
            for (int i = 0; i < 3; i++)
                d += pow(again->state[CUBE_AT + i] - state[t + SPAN][CUBE_AT + i], 2);
            sum += sqrt(d);
            worst = fmax(worst, sqrt(d));
        }
    }
    near_to("replay, mean error of the cube in mm", 1000 * sum / windows, 0, 1);
    near_to("... worst", 1000 * worst, 0, 40);
    cgs_policy_destroy(p);
    cgs_env_destroy(e);
    cgs_env_destroy(again);
}

static void test_cube_success(void **unused) {
    (void)unused;
    cgs_env *e = make(&cgs_cube_class);
    double s[CUBE_STATE] = {0}, g[CUBE_STATE] = {0};
    s[CUBE_AT + 2] = 0.02;
    g[CUBE_AT + 2] = 0.0599;
    assert_true(cgs_env_reached(e, s, g));
    g[CUBE_AT + 2] = 0.0601;
    assert_false(cgs_env_reached(e, s, g));
    g[CUBE_AT + 2] = 0.02, g[CUBE_AT + 3] = 1, s[CUBE_AT + 6] = 1; /* rotated: does not matter */
    assert_true(cgs_env_reached(e, s, g));
    cgs_env_destroy(e);
}

/* An attitude counts for the strict judge only, and up to what looks the same. */
static void test_cube_judges(void **unused) {
    (void)unused;
    static const struct {
        double q[4];
        bool strict;
    } cases[] = {
        {{1, 0, 0, 0}, true},
        {{-2, 0, 0, 0}, true},                   /* neither sign nor length */
        {{0, 0, 1, 0}, true},                    /* half a turn */
        {{0.70710678, 0, 0, 0.70710678}, true},  /* a quarter turn */
        {{0, 0.70710678, -0.70710678, 0}, true}, /* half, about an edge */
        {{0.5, -0.5, 0.5, 0.5}, true},           /* a third, about a corner */
        {{0.99691733, 0, 0, 0.07845910}, true},  /* 9 degrees */
        {{0.99539620, 0, 0, 0.09584575}, false}, /* 11 degrees */
        {{0.92387953, 0, 0, 0.38268343}, false}, /* 45, the farthest of a yaw */
        {{0.64944805, 0, 0, 0.76040597}, true},  /* 99 */
        {{0.63607822, 0, 0, 0.77162458}, false}, /* 101 */
        {{0, 0, 0, 0}, false},
    };
    double s[CUBE_STATE] = {0}, g[CUBE_STATE] = {0};
    const double quarter[4] = {0.70710678, 0.70710678, 0, 0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int k = 0; k < 2; k++) {
            memcpy(s + CUBE_AT + 3, cases[i].q, sizeof cases[i].q);
            memcpy(g + CUBE_AT + 3, k ? quarter : cases[0].q, sizeof quarter);
            assert_true(cgs_env_judged(&cgs_cube_class, CGS_JUDGE_MODERATE, s, g));
            if (cgs_env_judged(&cgs_cube_class, CGS_JUDGE_STRICT, s, g) != cases[i].strict)
                fail_msg("attitude %zu from %d", i, k);
        }
    memcpy(s + CUBE_AT + 3, cases[0].q, sizeof cases[0].q);
    for (int j = 0; j < CGS_JUDGES; j++)
        for (int far = 0; far < 2; far++) {
            s[CUBE_AT] = far ? 0.0201 : 0.0199;
            assert_int_equal(cgs_env_judged(&cgs_cube_class, (cgs_judge)j, s, g),
                             j == CGS_JUDGE_OFFICIAL || !far);
        }
}

/* The other MuJoCo environments, and that Reacher's action ends early for the judge in charge. */
static void test_other_judges(void **unused) {
    (void)unused;
    const double at[4] = {0}, near[4] = {0.0249, -0.0249}, far[4] = {0.0251}, away[4] = {0.249};
    const double apart[4] = {0.251}, nudge[2] = {0.1, 0}, goal[4] = {0.04};
    const cgs_env_class *r = &cgs_reacher_class, *m = &cgs_umaze_class;
    for (int j = CGS_JUDGE_MODERATE; j < CGS_JUDGES; j++) {
        assert_true(cgs_env_judged(r, (cgs_judge)j, at, near));
        assert_false(cgs_env_judged(r, (cgs_judge)j, at, far));
        assert_true(cgs_env_judged(m, (cgs_judge)j, at, away));
        assert_false(cgs_env_judged(m, (cgs_judge)j, at, apart));
    }
    double speed[CGS_JUDGES];
    for (int j = 0; j < CGS_JUDGES; j++) {
        cgs_env *e = make(r);
        e->judge = (cgs_judge)j;
        start(e, at);
        assert_int_equal(cgs_env_set_goal(e, goal, 4), CGS_OK); /* reached for the official judge */
        act(e, nudge);
        speed[j] = e->state[2];
        cgs_env_destroy(e);
    }
    /* the official one stops after the first substep */
    assert_true(fabs(speed[CGS_JUDGE_OFFICIAL] - speed[CGS_JUDGE_MODERATE]) > 1e-3);
    assert_true(fabs(speed[CGS_JUDGE_MODERATE] - speed[CGS_JUDGE_STRICT]) < 1e-12);
}

/* ---- Reacher -------------------------------------------------------------------- */

/* the closed form of one substep; q and v are changed */
static void reacher_substep(double *q, double *v, const double *a) {
    double k = 2.73947e-4, c = cos(q[1]), s = sin(q[1]);
    double m11 = 9.7581e-4 + 2 * k * c, m12 = 1.88674e-4 + k * c, m22 = 1.88674e-4;
    double b1 = -k * s * (2 * v[0] * v[1] + v[1] * v[1]), b2 = k * s * v[0] * v[0];
    double r1 = 0.02 * (0.05 * a[0] - b1 - 0.01 * v[0]),
           r2 = 0.02 * (0.05 * a[1] - b2 - 0.01 * v[1]);
    m11 += 0.0002, m22 += 0.0002;
    double det = m11 * m22 - m12 * m12;
    v[0] += (r1 * m22 - r2 * m12) / det;
    v[1] += (m11 * r2 - m12 * r1) / det;
    for (int i = 0; i < 2; i++) q[i] += 0.02 * v[i];
}

static void test_reacher(void **unused) {
    (void)unused;
    cgs_env *e = make(&cgs_reacher_class);
    const double rest[4] = {0}, push[2] = {1, 0}, nowhere[4] = {0, 5, 0, 0};
    double q[2] = {0}, v[2] = {0};
    reacher_substep(q, v, push);
    near_to("closed form, shoulder after a substep", v[0], 0.8525, 1e-4);
    near_to("... wrist", v[1], -1.0147, 1e-4);
    reacher_substep(q, v, push);
    start(e, rest);
    assert_int_equal(cgs_env_set_goal(e, nowhere, 4), CGS_OK);
    act(e, push);
    near_to("shoulder speed after an action", e->state[2], v[0], 1e-3);
    near_to("wrist speed", e->state[3], v[1], 1e-3);
    near_to("shoulder angle", e->state[0], q[0], 1e-4);

    /* random actions against the closed form, away from the wrist's limit */
    cgs_rng rng = cgs_rng_stream(7, CGS_STREAM_TEST, 0);
    double worst = 0;
    for (int n = 0; n < 50; n++) {
        double s[4] = {cgs_rng_range(&rng, -3, 3), cgs_rng_range(&rng, -1, 1), 0, 0};
        start(e, s);
        assert_int_equal(cgs_env_set_goal(e, nowhere, 4), CGS_OK);
        memcpy(q, s, sizeof q);
        memcpy(v, s + 2, sizeof v);
        for (int t = 0; t < 10; t++) {
            double a[2] = {cgs_rng_range(&rng, -1, 1), cgs_rng_range(&rng, -1, 1)};
            act(e, a);
            for (int k = 0; k < 2; k++) reacher_substep(q, v, a);
            if (fabs(q[1]) > 2.5) break;
            worst = fmax(worst, fmax(fabs(e->state[0] - q[0]), fabs(e->state[1] - q[1])));
        }
    }
    near_to("10 random actions, worst angle", worst, 0, 1e-3);

    /* torque over damping */
    start(e, rest);
    assert_int_equal(cgs_env_set_goal(e, nowhere, 4), CGS_OK);
    for (int t = 0; t < 200; t++) act(e, push);
    near_to("shoulder speed under constant torque", e->state[2], 5.0, 0.02);

    /* success: raw angles, and the second substep is skipped */
    const double near[4] = {0.0499, -0.0499, 9, 9}, edge[4] = {0.0501, 0, 0, 0};
    const double turn[4] = {2 * CGS_PI, 0, 0, 0};
    assert_true(cgs_env_reached(e, rest, near));
    assert_false(cgs_env_reached(e, rest, edge));
    assert_false(cgs_env_reached(e, rest, turn));
    double one[2] = {0}, speed[2] = {0};
    reacher_substep(one, speed, push);
    const double goal[4] = {one[0], one[1] - 0.04, 0, 0};
    start(e, rest);
    assert_int_equal(cgs_env_set_goal(e, goal, 4), CGS_OK);
    act(e, push);
    assert_int_equal(*e->success, 1);
    assert_true(fabs(e->state[0] - one[0]) < 1e-4);

    /* without a goal both substeps happen, though the arm is still where it started */
    const double nudge[2] = {0.1, 0};
    double whole[4];
    start(e, rest);
    assert_int_equal(cgs_env_set_goal(e, nowhere, 4), CGS_OK);
    act(e, nudge);
    memcpy(whole, e->state, sizeof whole);
    start(e, rest);
    act(e, nudge);
    assert_true(cgs_env_reached(e, e->state, rest));
    assert_memory_equal(e->state, whole, sizeof whole);
    cgs_env_destroy(e);
}

/* ---- PointMaze ------------------------------------------------------------------ */

static void test_pointmaze(void **unused) {
    (void)unused;
    static const double u[7] = {1, 1, 1, 1, 1, -1, 0};
    static const double golden[7][2] = {{1.0356113345, 1.1851604933}, {1.1300586421, 2.3562749327},
                                        {1.2826446223, 3.5135097864}, {1.4926802384, 4.6570295498},
                                        {1.7594846199, 5.7869967687}, {1.9720927188, 3.7555814820},
                                        {2.1585343802, 3.7110718140}};
    const cgs_env_class *classes[2] = {&cgs_umaze_class, &cgs_medium_class};
    /* the same motion along a corridor of each maze, in both directions of the maze */
    cgs_env *e = make(classes[0]);
    double s[4] = {1.0, 3.0, 0, 0};
    start(e, s);
    double worst = 0;
    for (int k = 0; k < 7; k++) {
        const double a[2] = {u[k], 0};
        act(e, a);
        worst = fmax(worst, fabs(e->state[0] - golden[k][0]));
        worst = fmax(worst, fabs(e->state[2] - golden[k][1]));
    }
    near_to("free motion, worst", worst, 0, 1e-9);

    /* pushed against a wall: rests a ball's radius away, little deeper */
    double corner[4] = {3.0, 3.0, 0, 0};
    start(e, corner);
    const double push[2] = {1, 1};
    double deepest = 0;
    for (int k = 0; k < 100; k++) {
        act(e, push);
        deepest = fmax(deepest, fmax(e->state[0], e->state[1]) - 3.2);
    }
    near_to("rests at", e->state[0], 3.2, 0.02);
    near_to("deepest on the way", deepest, 0, 0.05);
    assert_true(fabs(e->state[2]) < 0.05);

    /* no tunnel: the fastest ball from the middle of cells in every direction */
    for (int c = 0; c < 2; c++) {
        const char *const *maze = c ? cgs_maze_medium : cgs_maze_umaze;
        cgs_env *f = make(classes[c]);
        cgs_rng rng = cgs_rng_stream(8, CGS_STREAM_TEST, (uint64_t)c);
        for (int n = 0; n < 40; n++) {
            assert_int_equal(cgs_env_reset(f, &rng), CGS_OK);
            double a[2] = {cgs_rng_range(&rng, -1, 1) > 0 ? 1 : -1,
                           cgs_rng_range(&rng, -1, 1) > 0 ? 1 : -1};
            for (int t = 0; t < 60; t++) {
                act(f, a);
                int row = (int)floor(f->state[0] + 0.7), col = (int)floor(f->state[1] + 0.7);
                assert_true(row >= 0 && row < 8 && col >= 0 && col < 8);
                /* the centre is never inside a wall cell, shrunk by what a ball sinks in */
                double x = f->state[0] + 0.7 - row, y = f->state[1] + 0.7 - col;
                bool deep = x > 0.15 && x < 0.85 && y > 0.15 && y < 0.85;
                assert_false(deep && maze[row][col] == '#');
            }
        }
        cgs_env_destroy(f);
    }

    const double here[4] = {1, 1, 0, 0}, there[4] = {1.3, 1.399, 9, 9},
                 edge[4] = {1.3, 1.401, 0, 0};
    assert_true(cgs_env_reached(e, here, there));
    assert_false(cgs_env_reached(e, here, edge));
    cgs_env_destroy(e);
}

/* ---- bad input ------------------------------------------------------------------ */

static void test_bad_input(void **unused) {
    (void)unused;
    const cgs_env_class *classes[] = {&cgs_cube_class, &cgs_reacher_class, &cgs_umaze_class,
                                      &cgs_medium_class};
    for (int c = 0; c < 4; c++) {
        cgs_env *e = make(classes[c]), *f = make(classes[c]);
        int S = e->cls->state_dim, A = e->cls->action_dim;
        cgs_rng one = cgs_rng_stream(9, CGS_STREAM_TEST, 0), two = one;
        double before[CGS_ENV_MAX_DIM], wild[CGS_ENV_MAX_DIM];
        assert_int_equal(cgs_env_reset(e, &one), CGS_OK);
        assert_int_equal(cgs_env_reset(f, &two), CGS_OK);
        assert_memory_equal(e->state, f->state, (size_t)S * sizeof(double));

        /* beyond the range is the range */
        for (int i = 0; i < A; i++) e->action[i] = i % 2 ? 7.5 : -3, f->action[i] = i % 2 ? 1 : -1;
        cgs_env_step(e);
        cgs_env_step(f);
        assert_memory_equal(e->state, f->state, (size_t)S * sizeof(double));

        /* not a number: the episode is over, the state what it was */
        memcpy(before, e->state, sizeof(double) * (size_t)S);
        e->action[A - 1] = NAN;
        cgs_env_step(e);
        assert_int_equal(*e->done, 1);
        assert_memory_equal(e->state, before, (size_t)S * sizeof(double));

        /* states that are no states */
        before[0] = NAN;
        assert_int_equal(cgs_env_start(f, before, S), CGS_ENUMERIC);
        assert_int_equal(cgs_env_start(f, before, S - 1), CGS_EARG);

        /* a simulation that explodes ends the episode and the next one is fine */
        for (int i = 0; i < S; i++) wild[i] = 9e4;
        if (cgs_env_start(f, wild, S) == CGS_OK) {
            for (int t = 0; t < 200 && !*f->done; t++) {
                for (int i = 0; i < A; i++) f->action[i] = 1;
                cgs_env_step(f);
                for (int i = 0; i < S; i++) assert_true(isfinite(f->state[i]));
            }
            printf("%s: from a wild state %s\n", f->cls->id, *f->done ? "it ended" : "it went on");
        }
        cgs_rng three = cgs_rng_stream(9, CGS_STREAM_TEST, 0);
        assert_int_equal(cgs_env_reset(f, &three), CGS_OK);
        for (int i = 0; i < A; i++) f->action[i] = i % 2 ? 1 : -1;
        cgs_env_step(f);
        assert_int_equal(*f->done, 0);
        assert_memory_equal(f->state, e->state, (size_t)S * sizeof(double));
        cgs_env_destroy(e);
        cgs_env_destroy(f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cube_model),   cmocka_unit_test(test_gripper_table),
        cmocka_unit_test(test_cube_control), cmocka_unit_test(test_cube_reach),
        cmocka_unit_test(test_cube_replay),  cmocka_unit_test(test_cube_success),
        cmocka_unit_test(test_reacher),      cmocka_unit_test(test_pointmaze),
        cmocka_unit_test(test_bad_input),    cmocka_unit_test(test_cube_judges),
        cmocka_unit_test(test_other_judges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif

/* cube.c - Cube: an arm with a gripper moves a cube to a goal position.
 *
 * An action is a change of the measured pose of the hand, within the workspace; inverse kinematics
 * gives joint targets that motors track for 25 substeps.  Gravity is not compensated, so a zero
 * action lets the hand sink.  As upstream, the measured pose is that of the beginning of the last
 * substep, 2 ms ago; after set_state it is that of the state. */
#include "env/cube.h"

#include <math.h>
#include <string.h>

#include "env/mujoco_env.h"
#include "env/mujoco_models.h"
#include "env/portable.h"

#pragma STDC FP_CONTRACT OFF

enum { SUBSTEPS = 25, NATIVE = 224 };

const double cgs_cube_scale[5] = {0.05, 0.05, 0.05, 0.3, 1.0};
const double cgs_cube_arm_low[3] = {0.25, -0.35, 0.20};
const double cgs_cube_arm_high[3] = {0.6, 0.35, 0.35};
static const double LOW[3] = {0.25, -0.35, 0.02}, HIGH[3] = {0.6, 0.35, 0.35};
static const double BLOCK_LOW[2] = {0.3, -0.3}, BLOCK_HIGH[2] = {0.55, 0.3};
static const double START[3] = {0.425, 0, 0.275};
static const double HOME[CUBE_ARM] = {-CGS_PI / 2, -CGS_PI / 2, CGS_PI / 2,
                                      -CGS_PI / 2, -CGS_PI / 2, 0};
static const double CLOSED = 0.8; /* driver angle of a closed gripper */
static const double FULL = 255;   /* gripper command of a closed gripper */
static const double FIRM = 50;    /* a wrench of this size is a contact of 1 */

typedef struct cube {
    cgs_mj_env world;
    int pad;                 /* body of the right pad */
    double before[CUBE_ARM]; /* arm joints when the last substep began */
} cube;

static cgs_mj_source source = {"cube", cgs_mjcf_cube, 21, 20, 7, NULL, NULL};

static cgs_status use_model(const char *path, char *error) {
    return cgs_env_said(error, cgs_mj_use_file(&source, path));
}

static cgs_status open_world(void *world, char *error) {
    cube *w = world;
    CGS_TRY(cgs_mj_env_open(&w->world, &source, false, error));
    w->pad = cgs_mj_body(w->world.model, "right_pad");
    if (w->pad >= 0) return CGS_OK;
    cgs_mj_env_close(w);
    return cgs_env_refuse(error, CGS_EFORMAT, "cube: the model has no body \"right_pad\"");
}

/* ---- motion --------------------------------------------------------------------- */

static double clip(double v, double low, double high) {
    return v < low ? low : v > high ? high : v;
}

static double opening_of(const double *qpos) { return clip(qpos[CUBE_ARM] / CLOSED, 0, 1); }

static void settle(void *context) {
    cube *w = context;
    mj_forward(w->world.model, w->world.data);
    mj_rnePostConstraint(w->world.model, w->world.data);
    memcpy(w->before, w->world.data->qpos, sizeof w->before);
}

static cgs_status settled(cube *w, char *error) {
    return cgs_env_said(error, cgs_mj_guard(settle, w) ? CGS_OK : CGS_ENUMERIC);
}

static cgs_status restart(void *world, char *error) {
    cube *w = world;
    mj_resetData(w->world.model, w->world.data);
    memcpy(w->world.data->qpos, HOME, sizeof HOME);
    return settled(w, error);
}

/* ctrl and the solver's warm start stay, as upstream: the next action overwrites the former */
static cgs_status set_state(void *world, const double *s, char *error) {
    cube *w = world;
    memcpy(w->world.data->qpos, s, CUBE_QPOS * sizeof *s);
    memcpy(w->world.data->qvel, s + CUBE_QPOS, CUBE_QVEL * sizeof *s);
    return settled(w, error);
}

static void advance(void *context) {
    cube *w = context;
    for (int k = 0; k < SUBSTEPS; k++) {
        memcpy(w->before, w->world.data->qpos, sizeof w->before);
        mj_step(w->world.model, w->world.data);
    }
    mj_rnePostConstraint(w->world.model, w->world.data); /* the force on the pad */
}

static bool step(void *world, const double *action, const cgs_env_aim *aim) {
    (void)aim;
    cube *w = world;
    cgs_cube_pose hand;
    double pos[3], joints[CUBE_ARM], a[5];
    for (int i = 0; i < 5; i++) a[i] = clip(action[i], -1, 1) * cgs_cube_scale[i];
    cgs_cube_pinch(w->before, &hand);
    for (int i = 0; i < 3; i++) pos[i] = clip(hand.pos[i] + a[i], LOW[i], HIGH[i]);
    memcpy(joints, w->world.data->qpos, sizeof joints);
    cgs_cube_reach(joints, pos, cgs_wrap_half_turn(cgs_cube_yaw_of(hand.rot) + a[3]));
    memcpy(w->world.data->ctrl, joints, sizeof joints);
    w->world.data->ctrl[CUBE_ARM] = FULL * clip(opening_of(w->world.data->qpos) + a[4], 0, 1);
    return cgs_mj_env_advance(&w->world, advance, w);
}

static void put_block(double *q, cgs_rng *rng) {
    double s, c;
    for (int i = 0; i < 2; i++) q[i] = cgs_rng_range(rng, BLOCK_LOW[i], BLOCK_HIGH[i]);
    cgs_sincos(cgs_rng_range(rng, 0, 2 * CGS_PI) / 2, &s, &c);
    q[2] = CUBE_REST;
    q[3] = c, q[4] = q[5] = 0, q[6] = s;
}

static cgs_status reset(void *world, cgs_env_random *random, double *goal, char *error) {
    cgs_rng *rng = cgs_env_rng(random);
    cube *w = world;
    CGS_TRY(restart(w, error));
    double *q = w->world.data->qpos, yaw = cgs_rng_range(rng, -CGS_PI, CGS_PI);
    if (cgs_cube_reach(q, START, yaw) < 0)
        return cgs_env_refuse(error, CGS_ENUMERIC, "cube: the arm cannot start with a yaw of %g",
                              yaw);
    put_block(q + CUBE_AT, rng);
    memcpy(goal, q, CUBE_QPOS * sizeof *q);
    memset(goal + CUBE_QPOS, 0, CUBE_QVEL * sizeof *q);
    put_block(goal + CUBE_AT, rng);
    return settled(w, error);
}

/* The smallest angle between two attitudes (quaternions, w first) of a cube whose faces look alike:
 * over its 24 rotations q, |<a, b q>| is largest at one of these three.  With c = conj(a) b sorted
 * by size, those are the identity, a quarter turn about an axis, and a third about a diagonal. */
static double turned(const double *a, const double *b) {
    double c[4] = {a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3],
                   a[0] * b[1] - a[1] * b[0] - a[2] * b[3] + a[3] * b[2],
                   a[0] * b[2] - a[2] * b[0] - a[3] * b[1] + a[1] * b[3],
                   a[0] * b[3] - a[3] * b[0] - a[1] * b[2] + a[2] * b[1]};
    double most = 0, second = 0, sum = 0, square = 0;
    for (int i = 0; i < 4; i++) {
        double v = fabs(c[i]);
        sum += v;
        square += v * v;
        if (v > most) {
            second = most;
            most = v;
        } else if (v > second) {
            second = v;
        }
    }
    if (!(square > 0)) return CGS_PI; /* not an attitude */
    double best = fmax(most, fmax((most + second) / sqrt(2), sum / 2)) / sqrt(square);
    return 2 * acos(fmin(best, 1));
}

static bool reached(const cgs_env_predicate *by, const double *s, const double *g) {
    const double *p = s + CUBE_AT, *q = g + CUBE_AT;
    double x = p[0] - q[0], y = p[1] - q[1], z = p[2] - q[2];
    if (!(sqrt(x * x + y * y + z * z) <= by->distance)) return false;
    return !(by->angle > 0) || turned(p + 3, q + 3) <= by->angle;
}

/* ---- observations ---------------------------------------------- */

static double contact_of(const cube *w) {
    double sum = 0;
    for (int i = 0; i < 6; i++)
        sum += w->world.data->cfrc_ext[6 * w->pad + i] * w->world.data->cfrc_ext[6 * w->pad + i];
    return clip(sqrt(sum) / FIRM, 0, 1);
}

static void measure(const cube *w, const double *s, const double *g, cgs_cube_view *out) {
    cgs_cube_pose hand;
    cgs_cube_pinch(w->before, &hand);
    memcpy(out->hand, hand.pos, sizeof out->hand);
    out->hand_yaw = cgs_cube_yaw_of(hand.rot);
    out->opening = opening_of(s);
    out->contact = contact_of(w);
    memcpy(out->block, s + CUBE_AT, sizeof out->block);
    out->block_yaw = cgs_cube_yaw_of_quat(s + CUBE_AT + 3);
    memcpy(out->goal, g + CUBE_AT, sizeof out->goal);
    out->goal_yaw = cgs_cube_yaw_of_quat(g + CUBE_AT + 3);
}

void cgs_cube_measure(const cgs_env *e, cgs_cube_view *out) {
    measure(e->world, e->state, e->goal, out);
}

enum {
    COL_OBSERVATION,
    COL_QPOS,
    COL_QVEL,
    COL_JOINT_POS,
    COL_JOINT_VEL,
    COL_HAND_POS,
    COL_HAND_YAW,
    COL_OPENING,
    COL_GRIP_VEL,
    COL_CONTACT,
    COL_BLOCK_POS,
    COL_BLOCK_QUAT,
    COL_BLOCK_YAW,
    COL_GOAL_POS,
    COL_GOAL_YAW,
    COL_CONTROL,
    COL_TIME
};

static const cgs_env_column columns[] = {
    [COL_OBSERVATION] = {"observation", 28, false},
    [COL_QPOS] = {"qpos", CUBE_QPOS, false},
    [COL_QVEL] = {"qvel", CUBE_QVEL, false},
    [COL_JOINT_POS] = {"proprio_joint_pos", CUBE_ARM, false},
    [COL_JOINT_VEL] = {"proprio_joint_vel", CUBE_ARM, false},
    [COL_HAND_POS] = {"proprio_effector_pos", 3, false},
    [COL_HAND_YAW] = {"proprio_effector_yaw", 1, false},
    [COL_OPENING] = {"proprio_gripper_opening", 1, false},
    [COL_GRIP_VEL] = {"proprio_gripper_vel", 1, false},
    [COL_CONTACT] = {"proprio_gripper_contact", 1, false},
    [COL_BLOCK_POS] = {"privileged_block_0_pos", 3, false},
    [COL_BLOCK_QUAT] = {"privileged_block_0_quat", 4, false},
    [COL_BLOCK_YAW] = {"privileged_block_0_yaw", 1, false},
    [COL_GOAL_POS] = {"privileged_target_block_pos", 3, false},
    [COL_GOAL_YAW] = {"privileged_target_block_yaw", 1, false},
    [COL_CONTROL] = {"control", 7, false},
    [COL_TIME] = {"time", 1, false},
};

/* a position as upstream scales it for policies */
static void observe_place(double *out, const double *p) {
    static const double centre[3] = {0.425, 0, 0};
    for (int i = 0; i < 3; i++) out[i] = (p[i] - centre[i]) * 10;
}

static void observe(const double *s, const cgs_cube_view *v, double *out) {
    memcpy(out, s, CUBE_ARM * sizeof *out);
    memcpy(out + 6, s + CUBE_QPOS, CUBE_ARM * sizeof *out);
    observe_place(out + 12, v->hand);
    cgs_sincos(v->hand_yaw, &out[16], &out[15]);
    out[17] = 3 * v->opening;
    out[18] = v->contact;
    observe_place(out + 19, v->block);
    memcpy(out + 22, s + CUBE_AT + 3, 4 * sizeof *out);
    cgs_sincos(v->block_yaw, &out[27], &out[26]);
}

static void column(const void *world, const double *s, const double *goal, int index, double *out) {
    const cube *w = world;
    cgs_cube_view v;
    measure(w, s, goal, &v);
    switch (index) {
    case COL_OBSERVATION: observe(s, &v, out); break;
    case COL_QPOS: memcpy(out, s, CUBE_QPOS * sizeof *out); break;
    case COL_QVEL: memcpy(out, s + CUBE_QPOS, CUBE_QVEL * sizeof *out); break;
    case COL_JOINT_POS: memcpy(out, s, CUBE_ARM * sizeof *out); break;
    case COL_JOINT_VEL: memcpy(out, s + CUBE_QPOS, CUBE_ARM * sizeof *out); break;
    case COL_HAND_POS: memcpy(out, v.hand, sizeof v.hand); break;
    case COL_HAND_YAW: *out = v.hand_yaw; break;
    case COL_OPENING: *out = v.opening; break;
    case COL_GRIP_VEL: *out = s[CUBE_QPOS + CUBE_ARM]; break;
    case COL_CONTACT: *out = v.contact; break;
    case COL_BLOCK_POS: memcpy(out, v.block, sizeof v.block); break;
    case COL_BLOCK_QUAT: memcpy(out, s + CUBE_AT + 3, 4 * sizeof *out); break;
    case COL_BLOCK_YAW: *out = v.block_yaw; break;
    case COL_GOAL_POS: memcpy(out, v.goal, sizeof v.goal); break;
    case COL_GOAL_YAW: *out = v.goal_yaw; break;
    case COL_CONTROL: memcpy(out, w->world.data->ctrl, 7 * sizeof *out); break;
    default: *out = w->world.data->time; break;
    }
}

static const cgs_env_feature features[] = {
    {"joint position", false},
    {"joint position", false},
    {"joint position", false},
    {"joint position", false},
    {"joint position", false},
    {"joint position", false},
    {"end-effector position", false},
    {"end-effector position", false},
    {"end-effector position", false},
    {"end-effector yaw", true},
    {"gripper opening", false},
    {"block position", false},
    {"block position", false},
    {"block position", false},
    {"block yaw", true},
};

static void probe_state(const double *s, double *out) {
    cgs_cube_pose hand;
    cgs_cube_pinch(s, &hand);
    memcpy(out, s, CUBE_ARM * sizeof *out);
    memcpy(out + 6, hand.pos, sizeof hand.pos);
    out[9] = cgs_cube_yaw_of(hand.rot);
    out[10] = opening_of(s);
    memcpy(out + 11, s + CUBE_AT, 3 * sizeof *out);
    out[14] = cgs_cube_yaw_of_quat(s + CUBE_AT + 3);
}

const cgs_env_class cgs_cube_class = {
    CGS_ENV_OURS,
    .id = "cube",
    .version = CGS_MJ_VERSION(1),
    .summary = "an arm with a gripper moves a cube to a place",
    .predicate =
        {{"the cube's centre is at most 4 cm from the goal's, in three dimensions", CUBE_NEAR, 0,
          false},
         {"the cube's centre is at most 2 cm from the goal's", CUBE_NEAR / 2, 0, false},
         {"the cube's centre is at most 2 cm from the goal's, and it is turned by at most 10 "
          "degrees, or to where it looks the same",
          CUBE_NEAR / 2, CGS_PI / 18, false}},
    .state_dim = CUBE_STATE,
    .action_dim = 5,
    .native = NATIVE,
    .limit = 200,
    .action_range = 1,
    .columns = columns,
    .column_count = sizeof columns / sizeof columns[0],
    .features = features,
    .feature_count = sizeof features / sizeof features[0],
    .size = sizeof(cube),
    .use_model = use_model,
    .open = open_world,
    .close = cgs_mj_env_close,
    .restart = restart,
    .reset = reset,
    .set_state = set_state,
    .step = step,
    .get_state = cgs_mj_env_get_state,
    .reached = reached,
    .render = cgs_mj_env_render,
    .column = column,
    .probe_state = probe_state,
};

/* reacher.c - Reacher: a planar arm of two links turns to given joint angles.
 *
 * Success compares raw angles, as upstream does: the shoulder winds up, and a whole turn
 * away is not the goal.  It is tested after each of the two substeps of an action, and the
 * second is skipped once it holds; a world that was given no goal makes both. */
#include <math.h>
#include <string.h>

#include "env/mujoco_env.h"
#include "env/mujoco_models.h"
#include "env/portable.h"

#pragma STDC FP_CONTRACT OFF

enum { SUBSTEPS = 2, NATIVE = 224 };
static const double LINK = 0.12; /* both links, to the fingertip */
#define NEAR 0.05                /* radians, each joint          */

typedef struct reacher {
    cgs_mj_env world;
    double target[2]; /* of the task that is not used here; recorded only */
} reacher;

static cgs_mj_source source = {"reacher", cgs_mjcf_reacher, 2, 2, 2, NULL, NULL};

static cgs_status use_model(const char *path, char *error) {
    return cgs_env_said(error, cgs_mj_use_file(&source, path));
}

static cgs_status open_world(void *world, char *error) {
    return cgs_mj_env_open(world, &source, false, error);
}

/* ---- motion --------------------------------------------------------------------- */

static bool reached(const cgs_env_predicate *p, const double *s, const double *g) {
    return fabs(s[0] - g[0]) < p->distance && fabs(s[1] - g[1]) < p->distance;
}

/* the second half of a step, then the first half of the next: positions stay current */
typedef struct attempt {
    cgs_mj_env *w;
    const cgs_env_aim *aim;
} attempt;

static void advance(void *context) {
    const attempt *a = context;
    cgs_mj_env *w = a->w;
    for (int k = 0; k < SUBSTEPS; k++) {
        mj_step2(w->model, w->data);
        mj_step1(w->model, w->data);
        if (a->aim && reached(a->aim->by, w->data->qpos, a->aim->goal)) break;
    }
}

static bool step(void *world, const double *action, const cgs_env_aim *aim) {
    attempt a = {world, aim};
    double *ctrl = a.w->data->ctrl;
    for (int i = 0; i < 2; i++) ctrl[i] = action[i] < -1 ? -1 : action[i] > 1 ? 1 : action[i];
    return cgs_mj_env_advance(a.w, advance, &a);
}

static cgs_status reset(void *world, cgs_env_random *random, double *goal, char *error) {
    cgs_rng *rng = cgs_env_rng(random);
    reacher *r = world;
    const double wrist = r->world.model->jnt_range[3];
    double s[4] = {0}, sine, cosine;
    s[0] = cgs_rng_range(rng, -CGS_PI, CGS_PI);
    s[1] = cgs_rng_range(rng, -wrist, wrist);
    goal[0] = cgs_rng_range(rng, -CGS_PI, CGS_PI);
    goal[1] = cgs_rng_range(rng, -wrist, wrist);
    goal[2] = goal[3] = 0;
    double radius = cgs_rng_range(rng, 0.05, 0.20);
    cgs_sincos(cgs_rng_range(rng, 0, 2 * CGS_PI), &sine, &cosine);
    r->target[0] = radius * sine;
    r->target[1] = radius * cosine;
    CGS_TRY(cgs_mj_env_restart(world, error));
    return cgs_mj_env_set_state(world, s, error);
}

/* ---- what is recorded ----------------------------------------------------------- */

static void fingertip(const double *s, double *xy) {
    double sine0, cosine0, sine1, cosine1;
    cgs_sincos(s[0], &sine0, &cosine0);
    cgs_sincos(s[0] + s[1], &sine1, &cosine1);
    xy[0] = LINK * cosine0 + LINK * cosine1;
    xy[1] = LINK * sine0 + LINK * sine1;
}

static const cgs_env_column columns[] = {{"observation", 6, false},
                                         {"qpos", 2, false},
                                         {"qvel", 2, false},
                                         {"finger_pos", 2, false},
                                         {"target_pos", 2, false}};

static void column(const void *world, const double *s, const double *goal, int index, double *out) {
    (void)goal;
    const reacher *r = world;
    double tip[2];
    fingertip(s, tip);
    switch (index) {
    case 0:
        for (int i = 0; i < 2; i++) {
            out[i] = s[i];
            out[2 + i] = r->target[i] - tip[i];
            out[4 + i] = s[2 + i];
        }
        break;
    case 1: memcpy(out, s, 2 * sizeof *out); break;
    case 2: memcpy(out, s + 2, 2 * sizeof *out); break;
    case 3: memcpy(out, tip, sizeof tip); break;
    default: memcpy(out, r->target, sizeof r->target); break;
    }
}

static const cgs_env_feature features[] = {{"joint position", false},
                                           {"joint position", false},
                                           {"fingertip position", false},
                                           {"fingertip position", false}};

static void probe_state(const double *s, double *out) {
    memcpy(out, s, 2 * sizeof *out);
    fingertip(s, out + 2);
}

const cgs_env_class cgs_reacher_class = {
    CGS_ENV_OURS,
    .id = "reacher",
    .version = CGS_MJ_VERSION(1),
    .summary = "a planar arm of two links turns to given joint angles",
    .predicate = {{"both joints are closer than 0.05 rad to the goal, without wrapping, after any "
                   "of the two substeps of an action",
                   NEAR, 0, false},
                  {"both joints are closer than 0.025 rad to the goal, without wrapping, after any "
                   "of the two substeps of an action",
                   NEAR / 2, 0, false},
                  {"both joints are closer than 0.025 rad to the goal, without wrapping", NEAR / 2,
                   0, false}},
    .state_dim = 4,
    .action_dim = 2,
    .native = NATIVE,
    .limit = 200,
    .action_range = 1,
    .columns = columns,
    .column_count = sizeof columns / sizeof columns[0],
    .features = features,
    .feature_count = sizeof features / sizeof features[0],
    .size = sizeof(reacher),
    .use_model = use_model,
    .open = open_world,
    .close = cgs_mj_env_close,
    .restart = cgs_mj_env_restart,
    .reset = reset,
    .set_state = cgs_mj_env_set_state,
    .step = step,
    .get_state = cgs_mj_env_get_state,
    .reached = reached,
    .render = cgs_mj_env_render,
    .column = column,
    .probe_state = probe_state,
};

/* pointmaze.c - PointMaze: a force moves a ball through a maze, in two layouts.
 *
 * Positions are joint positions, 1.2 less than the world's.  Speeds are clipped to 5 before
 * each action, as upstream does. */
#include <math.h>
#include <string.h>

#include "env/mujoco_env.h"
#include "env/mujoco_models.h"
#include "env/portable.h"

#pragma STDC FP_CONTRACT OFF

enum { SUBSTEPS = 5, NATIVE = 224 };
#define NEAR 0.5 /* success */
static const double SPEED = 5, START_SPEED = 5.2262554;

static cgs_mj_source umaze = {"pointmaze-umaze", cgs_mjcf_umaze, 2, 2, 2, NULL, NULL};
static cgs_mj_source medium = {"pointmaze-medium", cgs_mjcf_medium, 2, 2, 2, NULL, NULL};

static cgs_status use_umaze(const char *path, char *error) {
    return cgs_env_said(error, cgs_mj_use_file(&umaze, path));
}
static cgs_status use_medium(const char *path, char *error) {
    return cgs_env_said(error, cgs_mj_use_file(&medium, path));
}

static cgs_status open_maze(cgs_mj_env *w, cgs_mj_source *s, char *error) {
    CGS_TRY(cgs_mj_env_open(w, s, true, error));
    /* upstream returns OpenGL's rows unflipped */
    w->view.upside_down = true;
    return CGS_OK;
}

static cgs_status open_umaze(void *world, char *error) { return open_maze(world, &umaze, error); }
static cgs_status open_medium(void *world, char *error) { return open_maze(world, &medium, error); }

/* ---- motion --------------------------------------------------------------------- */

static double clip(double v, double range) { return v < -range ? -range : v > range ? range : v; }

static void advance(void *context) {
    cgs_mj_env *w = context;
    for (int k = 0; k < SUBSTEPS; k++) mj_step(w->model, w->data);
}

static bool step(void *world, const double *action, const cgs_env_aim *aim) {
    (void)aim;
    mjData *d = ((cgs_mj_env *)world)->data;
    for (int i = 0; i < 2; i++) {
        d->ctrl[i] = clip(action[i], 1);
        d->qvel[i] = clip(d->qvel[i], SPEED);
    }
    return cgs_mj_env_advance(world, advance, world);
}

static bool reached(const cgs_env_predicate *p, const double *s, const double *g) {
    double dx = s[0] - g[0], dy = s[1] - g[1];
    return sqrt(dx * dx + dy * dy) < p->distance;
}

/* ---- starts --------------------------------------------------------------------- */

static bool within(double v, double low, double high) { return v >= low && v <= high; }

static void draw_speed(cgs_rng *rng, double *s) {
    for (int i = 2; i < 4; i++) s[i] = cgs_rng_range(rng, -START_SPEED, START_SPEED);
}

static void draw_umaze(cgs_rng *rng, double *s) {
    for (;;) {
        double x = s[0] = cgs_rng_range(rng, 0.5, 3.1), y = s[1] = cgs_rng_range(rng, 0.5, 3.1);
        if (within(x, 0.5, 1.1) || within(x, 2.5, 3.1)) break;
        if (x > 1.1 && x < 2.5 && within(y, 2.5, 3.1)) break;
    }
    draw_speed(rng, s);
}

/* the n-th free cell: 'O' row by row, then 'G'; n < 0: how many there are */
static int medium_cell(int n, int *row, int *col) {
    int seen = 0;
    for (const char *mark = "OG"; *mark; mark++)
        for (int i = 0; cgs_maze_medium[i]; i++)
            for (int j = 0; cgs_maze_medium[i][j]; j++) {
                if (cgs_maze_medium[i][j] != *mark) continue;
                if (seen++ == n) *row = i, *col = j;
            }
    return seen;
}

/* cell numbers are used as joint positions, 0.2 away from the middle of the cell */
static void draw_medium(cgs_rng *rng, int cell, double *s) {
    int row = 0, col = 0;
    medium_cell(cell, &row, &col);
    s[0] = row + cgs_rng_range(rng, -0.25, 0.25);
    s[1] = col + cgs_rng_range(rng, -0.25, 0.25);
    draw_speed(rng, s);
}

static cgs_status begin(void *world, const double *s, char *error) {
    CGS_TRY(cgs_mj_env_restart(world, error));
    return cgs_mj_env_set_state(world, s, error);
}

static cgs_status reset_umaze(void *world, cgs_env_random *random, double *goal, char *error) {
    cgs_rng *rng = cgs_env_rng(random);
    double s[4];
    draw_umaze(rng, s);
    draw_umaze(rng, goal);
    return begin(world, s, error);
}

static cgs_status reset_medium(void *world, cgs_env_random *random, double *goal, char *error) {
    cgs_rng *rng = cgs_env_rng(random);
    double s[4];
    int row, col;
    uint64_t cells = (uint64_t)medium_cell(-1, &row, &col);
    int from = (int)cgs_rng_below(rng, cells), to = (int)cgs_rng_below(rng, cells);
    if (to == from) to = (int)cgs_rng_below(rng, cells);
    draw_medium(rng, from, s);
    draw_medium(rng, to, goal);
    return begin(world, s, error);
}

/* ---- what is recorded ----------------------------------------------------------- */

static void column(const void *world, const double *state, const double *goal, int index,
                   double *out) {
    (void)world, (void)goal, (void)index;
    memcpy(out, state, 4 * sizeof *out);
}

static void probe_state(const double *s, double *out) { memcpy(out, s, 2 * sizeof *out); }

static const cgs_env_column columns[] = {{"proprio", 4, false}};
static const cgs_env_feature features[] = {{"agent position", false}, {"agent position", false}};

#define POINTMAZE(name, text, maze)                                                                \
    {                                                                                              \
        CGS_ENV_OURS,                                                                              \
            .id = name, .version = CGS_MJ_VERSION(1), .summary = text,                             \
            .predicate = {{"the ball is closer than 0.5 to the goal", NEAR, 0, false},             \
                          {"the ball is closer than 0.25 to the goal", NEAR / 2, 0, false},        \
                          {"the ball is closer than 0.25 to the goal", NEAR / 2, 0, false}},       \
            .state_dim = 4, .action_dim = 2, .native = NATIVE, .limit = 99, .action_range = 1,     \
            .columns = columns, .column_count = 1, .features = features, .feature_count = 2,       \
            .size = sizeof(cgs_mj_env), .open = open_##maze, .close = cgs_mj_env_close,            \
            .restart = cgs_mj_env_restart, .reset = reset_##maze,                                  \
            .set_state = cgs_mj_env_set_state, .step = step, .get_state = cgs_mj_env_get_state,    \
            .reached = reached, .render = cgs_mj_env_render, .column = column,                     \
            .probe_state = probe_state, .use_model = use_##maze,                                   \
    }

const cgs_env_class cgs_umaze_class =
    POINTMAZE("pointmaze-umaze", "a force moves a ball through a U-shaped maze", umaze);
const cgs_env_class cgs_medium_class =
    POINTMAZE("pointmaze-medium", "a force moves a ball through a larger maze", medium);

/* mujoco_world.h - MuJoCo for the environments: models compiled once, data, failures.
 *
 * A model is compiled from text the first time it is needed, shared by every environment and kept
 * until the process ends.  MuJoCo reports a diverged simulation by warnings and a programming error
 * by a callback that must not return; the former are read from the data, the latter becomes a
 * failure by running MuJoCo inside cgs_mj_guard. */
#ifndef CGS_ENV_MUJOCO_WORLD_H
#define CGS_ENV_MUJOCO_WORLD_H

#include <mujoco/mujoco.h>
#include <stdbool.h>

#include "core/status.h"
#include "env/scene.h"

/* The version of an environment: our own number, then that of MuJoCo. */
#define CGS_MJ_VERSION(own) ((own)*10000000 + mjVERSION_HEADER)

typedef struct cgs_mj_source {
    const char *name;
    size_t (*text)(char *out, size_t size);
    int nq, nv, nu; /* what the environment relies on    */
    mjModel *model; /* NULL until first used             */
    char *file;     /* its file, NULL: the text   */
} cgs_mj_source;

/* The model of a source, compiled on first use.  Never freed. */
cgs_status cgs_mj_model(cgs_mj_source *s, const mjModel **out);

/* Takes the model from an XML file; an error once it is in use. */
cgs_status cgs_mj_use_file(cgs_mj_source *s, const char *path);

/* The body of that name, with or without prefixes ("arm/gripper/pad" is "pad"), or -1. */
int cgs_mj_body(const mjModel *m, const char *name);

/* Runs work(context); false when MuJoCo aborted inside it.  Must not be nested. */
bool cgs_mj_guard(void (*work)(void *context), void *context);

/* MuJoCo's first warning since the data were reset, or NULL. */
const char *cgs_mj_trouble(const mjData *d);

/* ---- images ------------------------------------------------------------------- */

/* Draws a model in any pose.  Poses come from qpos through elementary functions that are
 * the same bits on every machine, so the image is a function of qpos alone. */
typedef struct cgs_mj_view {
    const mjModel *model;
    mjData *data; /* poses only, never simulated */
    mjvScene scene;
    mjvOption option;
    cgs_scene image;
    cgs_scene_image canvas;
    bool upside_down; /* row 0 is the bottom of the view */
} cgs_mj_view;

cgs_status cgs_mj_view_open(cgs_mj_view *v, const mjModel *m, bool sites);
void cgs_mj_view_close(cgs_mj_view *v);
/* qpos: (nq); rgb: (side, side, 3) */
cgs_status cgs_mj_view_draw(cgs_mj_view *v, const double *qpos, int side, uint8_t *rgb);
/* The scene of a pose, for comparisons with other renderers; valid until the next call. */
cgs_status cgs_mj_view_scene(cgs_mj_view *v, const double *qpos);

#endif /* CGS_ENV_MUJOCO_WORLD_H */

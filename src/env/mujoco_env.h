/* mujoco_env.h - shared by the MuJoCo environments: simulation data, and functions for their
 * classes.
 *
 * A state is all joint positions, then all velocities. */
#ifndef CGS_ENV_MUJOCO_ENV_H
#define CGS_ENV_MUJOCO_ENV_H

#include "env/env.h"
#include "env/mujoco_world.h"

/* The first member of each of these environments. */
typedef struct cgs_mj_env {
    cgs_env base;
    const mjModel *model;
    mjData *data;
    cgs_mj_view view;
} cgs_mj_env;

/* sites: render them */
cgs_status cgs_mj_env_open(cgs_env *e, cgs_mj_source *s, bool sites);
void cgs_mj_env_close(cgs_env *e);
cgs_status cgs_mj_env_restart(cgs_env *e);
cgs_status cgs_mj_env_set_state(cgs_env *e, const double *state);
void cgs_mj_env_get_state(const cgs_env *e, double *state);
cgs_status cgs_mj_env_render(cgs_env *e, int side, uint8_t *rgb);

/* Runs advance(e), which simulates; false when MuJoCo aborted or warned. */
bool cgs_mj_env_advance(cgs_env *e, void (*advance)(void *e));

#endif /* CGS_ENV_MUJOCO_ENV_H */

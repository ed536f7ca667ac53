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
    const mjModel *model;
    mjData *data;
    cgs_mj_view view;
} cgs_mj_env;

/* sites: render them */
cgs_status cgs_mj_env_open(cgs_mj_env *w, cgs_mj_source *s, bool sites, char *error);
void cgs_mj_env_close(void *world);
cgs_status cgs_mj_env_restart(void *world, char *error);
cgs_status cgs_mj_env_set_state(void *world, const double *state, char *error);
void cgs_mj_env_get_state(const void *world, double *state);
cgs_status cgs_mj_env_render(void *world, int side, uint8_t *rgb, char *error);

/* Runs advance(context), which simulates; false when MuJoCo aborted or warned. */
bool cgs_mj_env_advance(cgs_mj_env *w, void (*advance)(void *context), void *context);

#endif /* CGS_ENV_MUJOCO_ENV_H */

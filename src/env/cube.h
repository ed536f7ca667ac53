/* cube.h - constants of the Cube environment and the view of its policies. */
#ifndef CGS_ENV_CUBE_H
#define CGS_ENV_CUBE_H

#include <stdbool.h>

#include "env/env.h"

/* qpos: arm 0-5, right finger 6-9 (its driver first), left finger 10-13, cube 14-20;
 * qvel follows. */
enum { CUBE_QPOS = 21, CUBE_QVEL = 20, CUBE_STATE = 41, CUBE_ARM = 6, CUBE_AT = 14 };

#define CUBE_DT 0.05   /* seconds per action */
#define CUBE_NEAR 0.04 /* success distance, metres */
#define CUBE_REST 0.02 /* height of the cube's centre on the floor */

extern const double cgs_cube_scale[5];                         /* of an action of 1 */
extern const double cgs_cube_arm_low[3], cgs_cube_arm_high[3]; /* workspace of the hand */

/* ---- the arm (cube_arm.c) -------------------------------------------------------- */

typedef struct cgs_cube_pose {
    double pos[3], rot[9]; /* rot: row-major */
} cgs_cube_pose;

/* The flange from the six arm joints, and its Jacobian (6, 6) when J is not NULL: rows are
 * linear and angular velocity in the world. */
void cgs_cube_flange(const double *joints, cgs_cube_pose *out, double *J);
/* The point between the fingertips, in a frame that points down like the fingers. */
void cgs_cube_pinch(const double *joints, cgs_cube_pose *out);
/* Solves for joints with the pinch at pos, pointing down, with this yaw.  Returns the number of
 * updates, or -1 when 20 were not enough. */
int cgs_cube_reach(double *joints, const double *pos, double yaw);

double cgs_cube_yaw_of(const double *rot);       /* of a row-major rotation */
double cgs_cube_yaw_of_quat(const double *quat); /* w first */

/* ---- what policies see ------------------------------------------------ */

typedef struct cgs_cube_view {
    double hand[3], hand_yaw; /* pinch, as the last substep began */
    double opening;           /* 0 open ... 1 closed */
    double contact;           /* force on the right pad, 0 ... 1 */
    double block[3], block_yaw;
    double goal[3], goal_yaw;
} cgs_cube_view;

void cgs_cube_measure(const cgs_env *e, cgs_cube_view *out);

#endif /* CGS_ENV_CUBE_H */

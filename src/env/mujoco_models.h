/* mujoco_models.h - the physical models as MJCF text, primitives only.
 *
 * Rotations are written as quaternions and capsules by centre and half length: MuJoCo's compiler
 * would use sin and atan2, whose last bit can differ between machines, and images must not. */
#ifndef CGS_ENV_MUJOCO_MODELS_H
#define CGS_ENV_MUJOCO_MODELS_H

#include <stddef.h>

/* Write the text of a model into out (size bytes); the length it needs, as snprintf. */
size_t cgs_mjcf_reacher(char *out, size_t size);
size_t cgs_mjcf_umaze(char *out, size_t size);
size_t cgs_mjcf_medium(char *out, size_t size);
size_t cgs_mjcf_cube(char *out, size_t size);

/* Rows of a maze, '#' a wall; the row index is x, the column index y.  NULL at the end. */
extern const char *const cgs_maze_umaze[], *const cgs_maze_medium[];

#endif /* CGS_ENV_MUJOCO_MODELS_H */

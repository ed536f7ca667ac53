/* wall.h - geometry the environment and its policy share, in grid units. */
#ifndef CGS_ENV_WALL_H
#define CGS_ENV_WALL_H

#include "env/env.h"
#include "env/raster.h"

#define WALL_GRID 65
#define WALL_LOW 4.0 /* border lines */
#define WALL_HIGH 60.0
#define WALL_X 32.0 /* the inner wall of the default layout, its half width, its door */
#define WALL_HALF 3.0
#define WALL_DOOR_Y 30.0
#define WALL_DOOR_HALF 4.0
#define WALL_DOT 1.7 /* standard deviation of the dot */

/* Moves the inner wall and its door, for datasets with a layout per episode.  Lasts until the next
 * restart or reset. */
cgs_status cgs_wall_set_layout(cgs_env *e, double wall_x, double door_y);

#endif /* CGS_ENV_WALL_H */

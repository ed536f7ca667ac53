/* tworooms.h - geometry the environment and its policy share, in pixels. */
#ifndef CGS_ENV_TWOROOMS_H
#define CGS_ENV_TWOROOMS_H

#define TWOROOMS_SIDE 224
#define TWOROOMS_RADIUS 7.0f
#define TWOROOMS_SPEED 5.0f
#define TWOROOMS_WALL_X 112.0f
#define TWOROOMS_WALL_HALF 5.0f
#define TWOROOMS_DOOR_Y 49.0f
#define TWOROOMS_DOOR_HALF 14.0f
#define TWOROOMS_SPAN_LOW 14.0f /* where agents and targets are sampled */
#define TWOROOMS_SPAN_HIGH 209.0f
#define TWOROOMS_NEAR 16.0f /* success */

#endif /* CGS_ENV_TWOROOMS_H */

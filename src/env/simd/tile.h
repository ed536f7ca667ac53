/* tile.h - what scene.c prepares for one image and the loops over a tile's samples read. */
#ifndef CGS_ENV_SIMD_TILE_H
#define CGS_ENV_SIMD_TILE_H

#include "env/scene.h"

enum {
    TILE = 8,          /* pixels per side */
    ACROSS = 2 * TILE, /* samples per side */
    SAMPLES = ACROSS * ACROSS,
    MAX_SHAPES = CGS_SCENE_SHAPES
};

/* The eye in a shape's own frame: a ray is origin + t (ahead + u right + v up). */
typedef struct cgs_local_eye {
    float origin[3], ahead[3], right[3], up[3];
} cgs_local_eye;

typedef struct cgs_frame {
    const cgs_scene *scene;
    float step; /* distance of neighbouring samples on the plane one unit ahead */
    int shapes;
    cgs_local_eye eye[MAX_SHAPES];
    /* a capsule around each shape: middle, half axis, radius (< 0: casts no shadow) */
    float middle[3][MAX_SHAPES], half[3][MAX_SHAPES], radius[MAX_SHAPES];
    /* outlines in the image: a box, and an interval along a normal (nx, ny) of the long
     * side; in samples */
    float left[MAX_SHAPES], right[MAX_SHAPES], top[MAX_SHAPES], bottom[MAX_SHAPES];
    float nx[MAX_SHAPES], ny[MAX_SHAPES], low[MAX_SHAPES], high[MAX_SHAPES];
} cgs_frame;

/* Marks the shapes whose shadow from a lamp can fall into a ball; returns how many. */
typedef int cgs_casters_fn(const cgs_frame *f, const cgs_lamp *lamp, const float *ball,
                           int16_t *out);
/* Draws the tile at column x and row y with the listed shapes; reach: see cgs_scene_image. */
typedef void cgs_tile_fn(const cgs_frame *f, int x, int y, const int16_t *list, int count,
                         uint8_t *rgb, float *reach);

cgs_tile_fn cgs_tile_base;
cgs_casters_fn cgs_casters_base;
#if defined __x86_64__
cgs_tile_fn cgs_tile_v3, cgs_tile_v4;
cgs_casters_fn cgs_casters_v3, cgs_casters_v4;
#endif

#endif /* CGS_ENV_SIMD_TILE_H */

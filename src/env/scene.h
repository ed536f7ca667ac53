/* scene.h - a small ray caster for scenes of primitives: headless, anti-aliased, and the
 * same bytes on every machine.
 *
 * Each pixel is the mean of 2 x 2 samples.  The image is rendered in tiles of 8 x 8 pixels: a tile
 * has a list of its visible shapes, finds the nearest one for each sample, then shades the samples
 * of one shape together, so that every inner loop runs over samples with the shape as a constant.
 * Those loops are compiled once per instruction set (simd/scene_tile.c) and use only operations
 * that IEEE 754 rounds exactly.
 *
 * Lighting is that of MuJoCo's OpenGL renderer: lamps without shadow are summed, clamped to
 * one and multiplied by the texture; each lamp with a shadow is clamped by itself and added
 * where nothing blocks it. */
#ifndef CGS_ENV_SCENE_H
#define CGS_ENV_SCENE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"

enum { CGS_SCENE_SHAPES = 160, CGS_SCENE_LAMPS = 8 };

typedef enum cgs_shape_kind {
    CGS_SHAPE_PLANE, /* one-sided, facing local +z; half sizes x and y, 0: infinite */
    CGS_SHAPE_SPHERE,
    CGS_SHAPE_CAPSULE, /* radius, -, half length of the straight part along z */
    CGS_SHAPE_ELLIPSOID,
    CGS_SHAPE_CYLINDER, /* radius, -, half length along z */
    CGS_SHAPE_BOX
} cgs_shape_kind;

typedef struct cgs_texture {
    const uint8_t *rgb; /* (height, width, 3); a sky is six square faces, one below another */
    int width, height;
} cgs_texture;

typedef struct cgs_shape {
    cgs_shape_kind kind;
    bool still; /* the same in every image of this scene */
    float size[3];
    float pos[3], axis[3][3]; /* axis[k]: local axis k in the world */
    float rgb[3], emission, specular;
    int gloss;              /* exponent of the highlight */
    cgs_texture texture;    /* planes only; rgb NULL: none */
    float texture_scale[2]; /* repetitions per length along local x and y */
} cgs_shape;

typedef struct cgs_lamp {
    bool parallel, shadow;
    float pos[3], dir[3]; /* dir: where it shines */
    float ambient[3], diffuse[3], specular[3], attenuation[3];
    float cutoff; /* cosine of the cone's half angle; -1: shines everywhere */
    int exponent; /* of the cone */
} cgs_lamp;

typedef struct cgs_eye {
    float pos[3], right[3], up[3], forward[3];
    float tan_half_fov; /* tangent of half the field of view */
} cgs_eye;

typedef struct cgs_scene {
    cgs_shape shape[CGS_SCENE_SHAPES];
    int shapes;
    cgs_lamp lamp[CGS_SCENE_LAMPS];
    int lamps;
    cgs_eye eye;
    cgs_texture sky; /* rgb NULL: black */
} cgs_scene;

/* Cached between images of one scene: the static parts. */
typedef struct cgs_scene_image {
    int side, tiles;     /* tiles per row */
    uint8_t *background; /* (tiles, tiles, 64, 3) the still shapes alone */
    float (*reach)[4];   /* (tiles, tiles) a ball around what is seen of them, radius < 0: sky */
    struct cgs_frame *frame; /* scratch */
    int isa; /* which compilation of the loops to use; 0: the best on this machine (tests choose) */
} cgs_scene_image;

/* rgb: (side, side, 3).  The scene's still shapes, lamps and eye must stay what they were at
 * the first call with this canvas.  upside_down: row 0 is the bottom of the view. */
cgs_status cgs_scene_draw(cgs_scene_image *c, const cgs_scene *s, int side, bool upside_down,
                          uint8_t *rgb);
void cgs_canvas_free(cgs_scene_image *c);

/* Compilations of the loops this machine can run: 1 to 3. */
int cgs_scene_isas(void);

#endif /* CGS_ENV_SCENE_H */

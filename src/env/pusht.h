/* pusht.h - shared by the files of PushT: constants, the struct, drawing. */
#ifndef CGS_ENV_PUSHT_H
#define CGS_ENV_PUSHT_H

#include "env/env.h"
#include "env/raster.h"

#define PUSHT_WORLD 512
#define PUSHT_SUBSTEPS 10
#define PUSHT_DT 0.01
#define PUSHT_KP 100.0
#define PUSHT_KV 20.0
#define PUSHT_ACTION_SCALE 100.0
#define PUSHT_AGENT_RADIUS 15.0
#define PUSHT_WALL_RADIUS 2.0
#define PUSHT_MASS 1.0
#define PUSHT_MOMENT 3000.0 /* about the origin, and the bar counted twice: upstream's value */
#define PUSHT_COG_Y 45.0    /* centre of gravity (0, 45) */

/* the two parts of the T, in the block's coordinates: origin in the middle of the bar's
 * outer edge, y toward the stem */
extern const double cgs_pusht_part[2][4][2];
/* ends of the four walls, in order of creation */
extern const double cgs_pusht_wall[4][2][2];

/* contents of an image */
typedef struct cgs_pusht_scene {
    double agent[2], block[2], angle;
    int ticks;             /* contacts of the last substep */
    double tick[16][2][2]; /* their marks: two ends each   */
} cgs_pusht_scene;

/* Scratch for drawing, kept by an environment. */
typedef struct cgs_pusht_painter {
    cgs_pixel *canvas;   /* (512, 512); only the changed part is ever touched */
    int side;            /* of the images below */
    cgs_resample shrink; /* 512 to side */
    uint8_t *still;      /* (side, side, 3) the image without block and agent */
} cgs_pusht_painter;

cgs_status cgs_pusht_paint(cgs_pusht_painter *p, const cgs_pusht_scene *scene, int side,
                           uint8_t *rgb);
/* The 512-pixel canvas as upstream draws it, before it is shrunk.  canvas: (512, 512) */
void cgs_pusht_canvas(const cgs_pusht_scene *scene, cgs_pixel *canvas);
void cgs_pusht_painter_free(cgs_pusht_painter *p);

/* The scene of a PushT environment, contacts included. */
void cgs_pusht_scene_of(cgs_env *e, cgs_pusht_scene *scene);
/* Contact points per substep of the last action, rounded up. */
int cgs_pusht_contacts(const cgs_env *e);

#endif /* CGS_ENV_PUSHT_H */

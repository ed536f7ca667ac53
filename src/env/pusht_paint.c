/* pusht_paint.c - the image of PushT.
 *
 * Upstream draws a 512-pixel canvas and shrinks it to 224 with two bilinear taps per axis.
 * Most of that image never changes, so it is made once; a frame copies it and redraws
 * only the outputs that the block, the agent and the contact ticks can reach.  The green
 * T is decoration: it stands at one pose whatever the goal of the episode is.
 *
 * Other sizes are the exact area average of the same canvas. */
#include <stdlib.h>
#include <string.h>

#include "env/portable.h"
#include "env/pusht.h"

static const cgs_pixel WHITE = {255, 255, 255, 0};
static const cgs_pixel GOAL = {144, 238, 144, 0};
static const cgs_pixel BLOCK_FILL = {143, 163, 184, 0}, BLOCK_EDGE = {119, 136, 153, 0};
static const cgs_pixel AGENT_FILL = {78, 126, 255, 0}, AGENT_RING = {65, 105, 225, 0};
static const cgs_pixel WALL = {211, 211, 211, 0};
static const cgs_pixel TICK = {231, 76, 60, 0};

enum { EDGE_RADIUS = 2, AGENT_OUTER = 15, AGENT_INNER = 11, MAX_BOXES = 2 + 16 };

/* corners of one part of the T on the pixel grid */
static void corners(int part, const double *origin, double angle, int *x, int *y) {
    double s, c;
    cgs_sincos(angle, &s, &c);
    for (int i = 0; i < 4; i++) {
        double u = cgs_pusht_part[part][i][0], v = cgs_pusht_part[part][i][1];
        x[i] = cgs_raster_round(origin[0] + (c * u - s * v));
        y[i] = cgs_raster_round(origin[1] + (s * u + c * v));
    }
}

static void draw_ground(cgs_raster *c) {
    static const double middle[2] = {256, 256};
    for (int y = c->clip.y0; y <= c->clip.y1; y++)
        for (int x = c->clip.x0; x <= c->clip.x1; x++)
            c->pixel[(size_t)y * PUSHT_WORLD + (size_t)x] = WHITE;
    for (int part = 0; part < 2; part++) {
        int x[4], y[4];
        corners(part, middle, CGS_PI / 4, x, y);
        cgs_raster_polygon(c, x, y, 4, GOAL);
    }
}

static void draw_walls(cgs_raster *c) {
    for (int i = 0; i < 4; i++) {
        const double(*w)[2] = cgs_pusht_wall[i];
        cgs_raster_fat_segment(c, (int)w[0][0], (int)w[0][1], (int)w[1][0], (int)w[1][1],
                               EDGE_RADIUS, WALL);
    }
}

/* everything inside the clip box, in upstream's order; scene NULL: nothing that moves */
static void draw(cgs_raster *c, const cgs_pusht_scene *scene) {
    draw_ground(c);
    if (scene) {
        for (int part = 0; part < 2; part++) {
            int x[4], y[4];
            corners(part, scene->block, scene->angle, x, y);
            cgs_raster_polygon(c, x, y, 4, BLOCK_FILL);
            for (int i = 0; i < 4; i++) {
                int k = (i + 1) % 4;
                cgs_raster_fat_segment(c, x[i], y[i], x[k], y[k], EDGE_RADIUS, BLOCK_EDGE);
            }
        }
        int ax = cgs_raster_round(scene->agent[0]), ay = cgs_raster_round(scene->agent[1]);
        cgs_raster_disc(c, ax, ay, AGENT_OUTER, AGENT_RING);
        cgs_raster_disc(c, ax, ay, AGENT_INNER, AGENT_FILL);
    }
    draw_walls(c);
    for (int i = 0; scene && i < scene->ticks; i++) {
        const double(*t)[2] = scene->tick[i];
        cgs_raster_smooth_line(c, cgs_raster_round(t[0][0]), cgs_raster_round(t[0][1]),
                               cgs_raster_round(t[1][0]), cgs_raster_round(t[1][1]), TICK);
    }
}

void cgs_pusht_canvas(const cgs_pusht_scene *scene, cgs_pixel *canvas) {
    cgs_raster c = {canvas, PUSHT_WORLD, {0, 0, PUSHT_WORLD - 1, PUSHT_WORLD - 1}};
    draw(&c, scene);
}

/* ---- what changed --------------------------------------------------------------- */

static void cover(cgs_box *b, int x, int y, int reach) {
    if (x - reach < b->x0) b->x0 = x - reach;
    if (y - reach < b->y0) b->y0 = y - reach;
    if (x + reach > b->x1) b->x1 = x + reach;
    if (y + reach > b->y1) b->y1 = y + reach;
}

static const cgs_box NOTHING = {1 << 20, 1 << 20, -(1 << 20), -(1 << 20)};

/* boxes of canvas pixels that may differ from the still image; returns how many */
static int changed(const cgs_pusht_scene *s, cgs_box *box) {
    int n = 0;
    box[n] = NOTHING;
    for (int part = 0; part < 2; part++) {
        int x[4], y[4];
        corners(part, s->block, s->angle, x, y);
        for (int i = 0; i < 4; i++) cover(&box[n], x[i], y[i], EDGE_RADIUS + 1);
    }
    n++;
    box[n] = NOTHING;
    cover(&box[n++], cgs_raster_round(s->agent[0]), cgs_raster_round(s->agent[1]), AGENT_OUTER);
    for (int i = 0; i < s->ticks; i++) {
        box[n] = NOTHING;
        for (int k = 0; k < 2; k++)
            cover(&box[n], cgs_raster_round(s->tick[i][k][0]), cgs_raster_round(s->tick[i][k][1]),
                  1);
        n++;
    }
    return n;
}

static int largest(int a, int b) { return a > b ? a : b; }
static int smallest(int a, int b) { return a < b ? a : b; }

/* boxes that meet are joined, so that no output is made twice */
static int join(cgs_box *box, int n) {
    for (int i = 0; i < n; i++)
        for (int k = i + 1; k < n; k++) {
            cgs_box *a = &box[i], *b = &box[k];
            if (a->x1 < b->x0 || b->x1 < a->x0 || a->y1 < b->y0 || b->y1 < a->y0) continue;
            *a = (cgs_box){smallest(a->x0, b->x0), smallest(a->y0, b->y0), largest(a->x1, b->x1),
                           largest(a->y1, b->y1)};
            *b = box[--n];
            i = -1; /* the grown box may meet an earlier one */
            break;
        }
    return n;
}

static cgs_status prepare(cgs_pusht_painter *p, int side) {
    if (p->side == side) return CGS_OK;
    cgs_pusht_painter_free(p);
    p->canvas = malloc(sizeof(cgs_pixel) * PUSHT_WORLD * PUSHT_WORLD);
    p->still = malloc((size_t)side * (size_t)side * 3);
    if (!p->canvas || !p->still) {
        cgs_pusht_painter_free(p);
        return cgs_fail(CGS_ENOMEM, "pusht: no memory for an image of %d pixels", side);
    }
    cgs_status rc = side == cgs_pusht_class.native
                        ? cgs_resample_bilinear(&p->shrink, PUSHT_WORLD, side)
                        : cgs_resample_area(&p->shrink, PUSHT_WORLD, side);
    if (rc != CGS_OK) {
        cgs_pusht_painter_free(p);
        return rc;
    }
    cgs_pusht_canvas(NULL, p->canvas);
    cgs_resample_run(&p->shrink, (const uint8_t *)p->canvas, sizeof(cgs_pixel),
                     (cgs_box){0, 0, side - 1, side - 1}, p->still);
    p->side = side;
    return CGS_OK;
}

void cgs_pusht_painter_free(cgs_pusht_painter *p) {
    free(p->canvas);
    free(p->still);
    cgs_resample_free(&p->shrink);
    memset(p, 0, sizeof *p);
}

cgs_status cgs_pusht_paint(cgs_pusht_painter *p, const cgs_pusht_scene *scene, int side,
                           uint8_t *rgb) {
    CGS_TRY(prepare(p, side));
    memcpy(rgb, p->still, (size_t)side * (size_t)side * 3);
    cgs_box box[MAX_BOXES];
    int n = join(box, changed(scene, box));
    for (int i = 0; i < n; i++) {
        cgs_box b = {largest(box[i].x0, 0), largest(box[i].y0, 0),
                     smallest(box[i].x1, PUSHT_WORLD - 1), smallest(box[i].y1, PUSHT_WORLD - 1)};
        if (b.x1 < b.x0 || b.y1 < b.y0) continue;
        cgs_box out = b;
        cgs_resample_touched(&p->shrink, &out.x0, &out.x1);
        cgs_resample_touched(&p->shrink, &out.y0, &out.y1);
        if (out.x1 < out.x0 || out.y1 < out.y0) continue;
        cgs_box need = out;
        cgs_resample_needed(&p->shrink, &need.x0, &need.x1);
        cgs_resample_needed(&p->shrink, &need.y0, &need.y1);
        cgs_raster c = {p->canvas, PUSHT_WORLD, need};
        draw(&c, scene);
        cgs_resample_run(&p->shrink, (const uint8_t *)p->canvas, sizeof(cgs_pixel), out, rgb);
    }
    return CGS_OK;
}

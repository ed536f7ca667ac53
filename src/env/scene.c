/* scene.c - prepares an image, decides which tiles must be drawn and with which shapes. */
#include "env/scene.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/cpu.h"
#include "env/simd/tile.h"

#pragma STDC FP_CONTRACT OFF

typedef struct loops {
    cgs_tile_fn *tile;
    cgs_casters_fn *casters;
} loops;

static const loops LOOPS[] = {
    {cgs_tile_base, cgs_casters_base},
#if defined __x86_64__
    {cgs_tile_v3, cgs_casters_v3},
    {cgs_tile_v4, cgs_casters_v4},
#endif
};

int cgs_scene_isas(void) {
    int most = (int)(sizeof LOOPS / sizeof LOOPS[0]), may = (int)cgs_cpu_ask()->own + 1;
    return may < most ? may : most;
}

static float dot(const float *a, const float *b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

/* ---- preparing shapes ----------------------------------------------------------- */

static void look_from(cgs_local_eye *e, const cgs_shape *g, const cgs_eye *eye) {
    float way[3] = {eye->pos[0] - g->pos[0], eye->pos[1] - g->pos[1], eye->pos[2] - g->pos[2]};
    for (int k = 0; k < 3; k++) {
        e->origin[k] = dot(g->axis[k], way);
        e->ahead[k] = dot(g->axis[k], eye->forward);
        e->right[k] = dot(g->axis[k], eye->right);
        e->up[k] = dot(g->axis[k], eye->up);
    }
}

/* half sizes of a box around the shape, in its own frame */
static void half_sizes(const cgs_shape *g, float *h) {
    bool round = g->kind == CGS_SHAPE_CAPSULE || g->kind == CGS_SHAPE_CYLINDER;
    for (int k = 0; k < 3; k++) h[k] = g->size[round && k == 1 ? 0 : k];
    if (g->kind == CGS_SHAPE_CAPSULE) h[2] += g->size[0];
    if (g->kind == CGS_SHAPE_PLANE) h[2] = 0;
}

/* a capsule around what can cast a shadow; planes do not */
static void surround(cgs_frame *f, int i, const cgs_shape *g, const float *h) {
    int longest = h[2] >= h[0] && h[2] >= h[1] ? 2 : h[1] >= h[0] ? 1 : 0;
    float a = h[(longest + 1) % 3], b = h[(longest + 2) % 3];
    float length = h[longest], radius = sqrtf(a * a + b * b);
    if (g->kind == CGS_SHAPE_PLANE) radius = -1;
    if (g->kind == CGS_SHAPE_SPHERE) length = 0, radius = g->size[0];
    if (g->kind == CGS_SHAPE_CAPSULE) longest = 2, length = g->size[2], radius = g->size[0];
    if (g->kind == CGS_SHAPE_CYLINDER && longest == 2) radius = g->size[0];
    f->radius[i] = radius;
    for (int c = 0; c < 3; c++) {
        f->middle[c][i] = g->pos[c];
        f->half[c][i] = length * g->axis[longest][c];
    }
}

/* The outline of the surrounding box in the image: everything it can cover. */
static void outline(cgs_frame *f, int i, const cgs_shape *g, const float *h) {
    const cgs_eye *eye = &f->scene->eye;
    const float everywhere = 1e9f, nearest = 1e-3f, margin = 0.01f;
    float x[8], y[8], way[3];
    f->left[i] = f->top[i] = f->low[i] = -everywhere;
    f->right[i] = f->bottom[i] = f->high[i] = everywhere;
    f->nx[i] = f->ny[i] = 0;
    if (g->kind == CGS_SHAPE_PLANE && (h[0] <= 0 || h[1] <= 0)) return;
    for (int k = 0; k < 8; k++) {
        for (int c = 0; c < 3; c++)
            way[c] = g->pos[c] - eye->pos[c] + (k & 1 ? h[0] : -h[0]) * g->axis[0][c] +
                     (k & 2 ? h[1] : -h[1]) * g->axis[1][c] +
                     (k & 4 ? h[2] : -h[2]) * g->axis[2][c];
        float depth = dot(way, eye->forward);
        if (depth < nearest) return; /* beside or behind the eye: no outline */
        x[k] = (dot(way, eye->right) / depth + eye->tan_half_fov) / f->step;
        y[k] = (eye->tan_half_fov - dot(way, eye->up) / depth) / f->step;
    }
    /* across the longest side of the box: what a box in the image cannot exclude */
    int longest = h[2] >= h[0] && h[2] >= h[1] ? 4 : h[1] >= h[0] ? 2 : 1;
    float nx = -(y[longest] - y[0]), ny = x[longest] - x[0];
    f->left[i] = f->right[i] = x[0];
    f->top[i] = f->bottom[i] = y[0];
    f->low[i] = f->high[i] = nx * x[0] + ny * y[0];
    for (int k = 1; k < 8; k++) {
        float across = nx * x[k] + ny * y[k];
        f->left[i] = fminf(f->left[i], x[k]);
        f->right[i] = fmaxf(f->right[i], x[k]);
        f->top[i] = fminf(f->top[i], y[k]);
        f->bottom[i] = fmaxf(f->bottom[i], y[k]);
        f->low[i] = fminf(f->low[i], across);
        f->high[i] = fmaxf(f->high[i], across);
    }
    f->left[i] -= margin, f->right[i] += margin, f->top[i] -= margin, f->bottom[i] += margin;
    float slack = margin * (fabsf(nx) + fabsf(ny));
    f->nx[i] = nx, f->ny[i] = ny, f->low[i] -= slack, f->high[i] += slack;
}

static void prepare(cgs_frame *f, const cgs_scene *s, int side) {
    f->scene = s;
    f->shapes = s->shapes;
    f->step = s->eye.tan_half_fov / (float)side;
    for (int i = 0; i < s->shapes; i++) {
        float h[3];
        half_sizes(&s->shape[i], h);
        look_from(&f->eye[i], &s->shape[i], &s->eye);
        surround(f, i, &s->shape[i], h);
        outline(f, i, &s->shape[i], h);
    }
}

/* ---- tiles ---------------------------------------------------------------------- */

static bool covers(const cgs_frame *f, int i, int x, int y) {
    float x0 = (float)(x * ACROSS), y0 = (float)(y * ACROSS);
    float x1 = x0 + ACROSS, y1 = y0 + ACROSS;
    if (f->right[i] < x0 || f->left[i] > x1 || f->bottom[i] < y0 || f->top[i] > y1) return false;
    float nx = f->nx[i], ny = f->ny[i];
    float middle = nx * (x0 + ACROSS / 2) + ny * (y0 + ACROSS / 2);
    float wide = (fabsf(nx) + fabsf(ny)) * (ACROSS / 2);
    return middle + wide >= f->low[i] && middle - wide <= f->high[i];
}

/* can a moving shape cast a shadow on this tile's static shapes? */
static bool shadowed(const cgs_frame *f, const loops *run, const float *ball) {
    int16_t casters[MAX_SHAPES];
    if (ball[3] < 0) return false;
    for (int l = 0; l < f->scene->lamps; l++) {
        if (!f->scene->lamp[l].shadow) continue;
        int n = run->casters(f, &f->scene->lamp[l], ball, casters);
        for (int k = 0; k < n; k++)
            if (!f->scene->shape[casters[k]].still) return true;
    }
    return false;
}

static void store(uint8_t *rgb, int side, int x, int y, bool upside_down, const uint8_t *tile) {
    int wide = side - x * TILE < TILE ? side - x * TILE : TILE;
    for (int j = 0; j < TILE && y * TILE + j < side; j++) {
        int row = y * TILE + j;
        if (upside_down) row = side - 1 - row;
        memcpy(rgb + ((size_t)row * (size_t)side + (size_t)(x * TILE)) * 3, tile + j * TILE * 3,
               (size_t)wide * 3);
    }
}

/* the image without moving shapes, cached in the canvas */
static cgs_status draw_background(cgs_scene_image *c, const cgs_scene *s, const loops *run) {
    cgs_frame *f = c->frame;
    cgs_scene *still = malloc(sizeof *still);
    if (!still) return cgs_fail(CGS_ENOMEM, "no memory for a scene");
    *still = *s;
    still->shapes = 0;
    for (int i = 0; i < s->shapes; i++)
        if (s->shape[i].still) still->shape[still->shapes++] = s->shape[i];
    prepare(f, still, c->side);
    for (int y = 0; y < c->tiles; y++)
        for (int x = 0; x < c->tiles; x++) {
            int16_t list[MAX_SHAPES];
            int n = 0, at = y * c->tiles + x;
            for (int i = 0; i < f->shapes; i++)
                if (covers(f, i, x, y)) list[n++] = (int16_t)i;
            run->tile(f, x, y, list, n, c->background + (size_t)at * TILE * TILE * 3, c->reach[at]);
        }
    free(still);
    return CGS_OK;
}

static cgs_status open_canvas(cgs_scene_image *c, const cgs_scene *s, int side, const loops *run) {
    int isa = c->isa;
    cgs_canvas_free(c);
    c->isa = isa;
    c->tiles = (side + TILE - 1) / TILE;
    size_t tiles = (size_t)c->tiles * (size_t)c->tiles;
    c->background = calloc(tiles, TILE * TILE * 3);
    c->reach = calloc(tiles, sizeof *c->reach);
    c->frame = calloc(1, sizeof *c->frame);
    if (!c->background || !c->reach || !c->frame) {
        cgs_canvas_free(c);
        return cgs_fail(CGS_ENOMEM, "no memory for an image of %d pixels", side);
    }
    c->side = side;
    cgs_status rc = draw_background(c, s, run);
    if (rc != CGS_OK) cgs_canvas_free(c);
    return rc;
}

cgs_status cgs_scene_draw(cgs_scene_image *c, const cgs_scene *s, int side, bool upside_down,
                          uint8_t *rgb) {
    const loops *run = &LOOPS[(c->isa > 0 ? c->isa : cgs_scene_isas()) - 1];
    if (c->side != side) CGS_TRY(open_canvas(c, s, side, run));
    cgs_frame *f = c->frame;
    prepare(f, s, side);
    for (int y = 0; y < c->tiles; y++)
        for (int x = 0; x < c->tiles; x++) {
            int16_t list[MAX_SHAPES];
            uint8_t tile[TILE * TILE * 3];
            int n = 0, at = y * c->tiles + x;
            bool moves = false;
            for (int i = 0; i < f->shapes; i++)
                if (covers(f, i, x, y)) {
                    list[n++] = (int16_t)i;
                    moves |= !s->shape[i].still;
                }
            const uint8_t *from = c->background + (size_t)at * TILE * TILE * 3;
            if (moves || shadowed(f, run, c->reach[at])) {
                run->tile(f, x, y, list, n, tile, NULL);
                from = tile;
            }
            store(rgb, side, x, y, upside_down, from);
        }
    return CGS_OK;
}

void cgs_canvas_free(cgs_scene_image *c) {
    free(c->background);
    free(c->reach);
    free(c->frame);
    memset(c, 0, sizeof *c);
}

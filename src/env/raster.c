/* raster.c - drawing primitives.  Every footprint is integer arithmetic (the smooth line
 * blends in float32 with single IEEE operations), so an image is the same bytes everywhere. */
#include "env/raster.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#pragma STDC FP_CONTRACT OFF

static int clamp(int v, int lo, int hi) { return v < lo ? lo : v > hi ? hi : v; }

int cgs_raster_round(double v) {
    if (!(v > -1e6)) return -1000000;
    if (v > 1e6) return 1000000;
    return (int)nearbyint(v);
}

/* one row from xa to xb, both included, in any order */
static void span(cgs_raster *c, int xa, int xb, int y, cgs_pixel color) {
    if (y < c->clip.y0 || y > c->clip.y1) return;
    int lo = xa < xb ? xa : xb, hi = xa < xb ? xb : xa;
    if (lo < c->clip.x0) lo = c->clip.x0;
    if (hi > c->clip.x1) hi = c->clip.x1;
    cgs_pixel *row = c->pixel + (size_t)y * (size_t)c->side;
    for (int x = lo; x <= hi; x++) row[x] = color;
}

/* Half the width of each row of the upper half of a disc, as measured; the lower half
 * mirrors it. */
static const uint8_t DISC_2[] = {1, 2};
static const uint8_t DISC_11[] = {3, 5, 6, 8, 8, 9, 10, 10, 11, 11, 11};
static const uint8_t DISC_15[] = {3, 6, 8, 9, 10, 11, 12, 13, 13, 14, 14, 14, 15, 15, 15};

void cgs_raster_disc(cgs_raster *c, int cx, int cy, int r, cgs_pixel color) {
    const uint8_t *half = r == 2 ? DISC_2 : r == 11 ? DISC_11 : DISC_15;
    assert(r == 2 || r == 11 || r == 15);
    for (int i = 0; i < r; i++) {
        span(c, cx - half[i], cx + half[i] - 1, cy - r + i, color);
        span(c, cx - half[i], cx + half[i] - 1, cy + r - 1 - i, color);
    }
}

void cgs_raster_polygon(cgs_raster *c, const int *x, const int *y, int n, cgs_pixel color) {
    int top = y[0], bottom = y[0];
    for (int i = 1; i < n; i++) {
        top = y[i] < top ? y[i] : top;
        bottom = y[i] > bottom ? y[i] : bottom;
    }
    if (top == bottom) { /* one row high */
        int lo = x[0], hi = x[0];
        for (int i = 1; i < n; i++) {
            lo = x[i] < lo ? x[i] : lo;
            hi = x[i] > hi ? x[i] : hi;
        }
        span(c, lo, hi, top, color);
        return;
    }
    int first = clamp(top, c->clip.y0, c->clip.y1 + 1), last = clamp(bottom, -1, c->clip.y1);
    for (int row = first; row <= last; row++) {
        int lo = 0, hi = -1;
        for (int i = 0; i < n; i++) {
            int k = i ? i - 1 : n - 1;
            if (y[k] == y[i]) continue;
            int up = y[k] < y[i] ? k : i, down = up == k ? i : k;
            /* an edge owns its upper end; the lowest row belongs to the edges that end there */
            bool crosses = row >= y[up] && row < y[down];
            if (!crosses && !(row == bottom && y[down] == bottom)) continue;
            /* division truncates toward zero: part of the footprint */
            int at = (row - y[up]) * (x[down] - x[up]) / (y[down] - y[up]) + x[up];
            if (hi < lo) {
                lo = hi = at;
            } else {
                lo = at < lo ? at : lo;
                hi = at > hi ? at : hi;
            }
        }
        if (lo <= hi) span(c, lo, hi, row, color);
    }
}

/* a line `width` thick, grown along the axis it runs less along */
static void thick_line(cgs_raster *c, int x1, int y1, int x2, int y2, int width, cgs_pixel color) {
    int dx = abs(x2 - x1), dy = abs(y2 - y1);
    int sx = x1 < x2 ? 1 : -1, sy = y1 < y2 ? 1 : -1;
    int error = (dx > dy ? dx : -dy) / 2;
    int before = (width - 1) / 2, after = width / 2;
    for (;;) {
        if (dx <= dy) {
            span(c, x1 - before, x1 + after, y1, color);
        } else {
            for (int y = y1 - before; y <= y1 + after; y++) span(c, x1, x1, y, color);
        }
        if (x1 == x2 && y1 == y2) return;
        int e = error;
        if (e > -dx) {
            error -= dy;
            x1 += sx;
        }
        if (e < dy) {
            error += dx;
            y1 += sy;
        }
    }
}

static bool outside(const cgs_raster *c, int x1, int y1, int x2, int y2, int reach) {
    return (x1 + reach < c->clip.x0 && x2 + reach < c->clip.x0) ||
           (x1 - reach > c->clip.x1 && x2 - reach > c->clip.x1) ||
           (y1 + reach < c->clip.y0 && y2 + reach < c->clip.y0) ||
           (y1 - reach > c->clip.y1 && y2 - reach > c->clip.y1);
}

void cgs_raster_fat_segment(cgs_raster *c, int x1, int y1, int x2, int y2, int r, cgs_pixel color) {
    if (outside(c, x1, y1, x2, y2, r + 2)) return;
    thick_line(c, x1, y1, x2, y2, 2 * r, color);
    double ox = abs(y2 - y1), oy = abs(x2 - x1);
    if (ox == 0 && oy == 0) return;
    double scale = r / sqrt(ox * ox + oy * oy);
    int qx = cgs_raster_round(ox * scale), qy = cgs_raster_round(oy * scale);
    int x[4] = {x1 - qx, x1 + qx, x2 + qx, x2 - qx};
    int y[4] = {y1 - qy, y1 + qy, y2 + qy, y2 - qy};
    cgs_raster_polygon(c, x, y, 4, color);
    cgs_raster_disc(c, x1, y1, r, color);
    cgs_raster_disc(c, x2, y2, r, color);
}

/* ---- the smooth line ------------------------------------------------------------ */

static uint8_t mix(uint8_t over, uint8_t under, float share) {
    return (uint8_t)(share * (float)over + (1 - share) * (float)under);
}

static void blend(cgs_raster *c, int x, int y, cgs_pixel color, float share) {
    if (x < c->clip.x0 || x > c->clip.x1 || y < c->clip.y0 || y > c->clip.y1) return;
    cgs_pixel *p = &c->pixel[(size_t)y * (size_t)c->side + (size_t)x];
    p->r = mix(color.r, p->r, share);
    p->g = mix(color.g, p->g, share);
    p->b = mix(color.b, p->b, share);
}

void cgs_raster_smooth_line(cgs_raster *c, int x1, int y1, int x2, int y2, cgs_pixel color) {
    if (outside(c, x1, y1, x2, y2, 2)) return;
    /* u runs along the longer axis, v across */
    bool steep = abs(x2 - x1) < abs(y2 - y1);
    int u1 = steep ? y1 : x1, v1 = steep ? x1 : y1;
    int u2 = steep ? y2 : x2, v2 = steep ? x2 : y2;
    if (u2 < u1) {
        int t = u1;
        u1 = u2, u2 = t;
        t = v1, v1 = v2, v2 = t;
    }
    if (u1 == u2) {
        blend(c, x1, y1, color, 1);
        return;
    }
    /* both ends lie on pixels; between them the line shares its weight between two */
    float slope = (float)(v2 - v1) / (float)(u2 - u1), v = (float)v1;
    for (int u = u1; u <= u2; u++, v += slope) {
        float at = u == u2 ? (float)v2 : v;
        int low = (int)floorf(at);
        float share = 1 - at + (float)low;
        blend(c, steep ? low : u, steep ? u : low, color, share);
        if ((float)low < at) blend(c, steep ? low + 1 : u, steep ? u : low + 1, color, 1 - share);
    }
}

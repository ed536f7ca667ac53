/* wall.c - Wall: a dot on a 65 x 65 grid, two rooms, one door; moves bounce.
 *
 * A move is a straight line tested against the jambs of the door, then against the box of
 * the room it started in.  Bounces always drift half a unit along the wall.  A purely
 * vertical move into the border divides by zero upstream and gives a position that is not
 * a number; here such a step ends the episode. */
#include "env/wall.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "env/portable.h"

#pragma STDC FP_CONTRACT OFF

#define NEAR 4.5 /* grid units: success */
static const double DISPLACEMENT = 2, BOUNCE = 0.5, KEEP_OFF = 0.3;
enum { GRID = WALL_GRID, NATIVE = 224 };

typedef struct wall {
    double x, y;
    double wall_x, door_y;
    cgs_scaled_image scaled;
} wall;

/* ---- motion --------------------------------------------------------------------- */

static double sign(double v) { return v > 0 ? 1 : v < 0 ? -1 : v; } /* keeps NaN */

static double keep_inside(double v, double lo, double hi) {
    if (v <= lo) return lo + KEEP_OFF;
    if (v >= hi) return hi - KEEP_OFF;
    return v;
}

static void move(const wall *w, double x2, double y2, double *rx, double *ry) {
    double x1 = w->x, y1 = w->y;
    double slope = (y2 - y1) / (x2 - x1), offset = y1 - slope * x1;
    double face_l = w->wall_x - WALL_HALF, face_r = w->wall_x + WALL_HALF;
    double jamb_hi = w->door_y + WALL_DOOR_HALF, jamb_lo = w->door_y - WALL_DOOR_HALF;

    /* the jambs, from inside the opening */
    for (int k = 0; k < 2; k++) {
        double jamb = k == 0 ? jamb_hi : jamb_lo;
        bool meets = k == 0 ? y2 > y1 && y1 < jamb && jamb < y2 : y2 < y1 && y2 < jamb && jamb < y1;
        double x = (jamb - offset) / slope;
        if (!meets || !(x >= face_l && x <= face_r)) continue;
        *rx = x + BOUNCE;
        *ry = k == 0 ? jamb - BOUNCE : jamb + BOUNCE;
        return;
    }

    /* the room: its inner side has the door as a hole */
    bool in_left = w->wall_x > x1;
    double left = in_left ? WALL_LOW : face_r, right = in_left ? face_l : WALL_HIGH;
    bool hit_v = false, hit_h = false;
    double vx = 0, vy = 0, hx = 0, hy = 0;
    for (int k = 0; k < 2 && !hit_v; k++) {
        double line = k == 0 ? left : right;
        bool hole = in_left ? k == 1 : k == 0;
        if (!(sign(x1 - line) * sign(x2 - line) <= 0)) continue;
        double y = slope * line + offset;
        if (hole && y >= jamb_lo && y <= jamb_hi) continue;
        hit_v = true;
        vx = line;
        vy = y;
    }
    for (int k = 0; k < 2 && !hit_h; k++) {
        double line = k == 0 ? WALL_LOW : WALL_HIGH;
        if (!(sign(y1 - line) * sign(y2 - line) <= 0)) continue;
        hit_h = true;
        hx = (line - offset) / slope;
        hy = line;
    }
    if (!hit_v && !hit_h) {
        *rx = x2;
        *ry = y2;
        return;
    }
    if (hit_v && hit_h) {
        double dv = (vx - x1) * (vx - x1) + (vy - y1) * (vy - y1);
        double dh = (hx - x1) * (hx - x1) + (hy - y1) * (hy - y1);
        hit_v = dv < dh;
    }
    double x = hit_v ? vx + BOUNCE * sign(x1 - vx) : hx + BOUNCE;
    double y = hit_v ? vy + BOUNCE : hy + BOUNCE * sign(y1 - hy);
    *rx = keep_inside(x, left, right);
    *ry = keep_inside(y, WALL_LOW, WALL_HIGH);
}

static bool step(void *world, const double *action, const cgs_env_aim *aim) {
    (void)aim;
    wall *w = world;
    double x, y;
    move(w, w->x + DISPLACEMENT * action[0], w->y + DISPLACEMENT * action[1], &x, &y);
    if (!isfinite(x) || !isfinite(y)) return false;
    w->x = x;
    w->y = y;
    return true;
}

static void default_layout(wall *w) {
    w->wall_x = WALL_X;
    w->door_y = WALL_DOOR_Y;
}

static cgs_status restart(void *world, char *error) {
    (void)error;
    wall *w = world;
    default_layout(w);
    w->x = w->y = 16;
    return CGS_OK;
}

static void close_world(void *world) { cgs_scaled_image_free(&((wall *)world)->scaled); }

cgs_status cgs_wall_set_layout(cgs_env *e, double wall_x, double door_y) {
    wall *w = e->world;
    if (!(wall_x > WALL_LOW + WALL_HALF && wall_x < WALL_HIGH - WALL_HALF) ||
        !(door_y >= WALL_LOW && door_y <= WALL_HIGH))
        return cgs_fail(CGS_EARG, "wall: no wall can stand at x %g with a door at y %g", wall_x,
                        door_y);
    w->wall_x = wall_x;
    w->door_y = door_y;
    return CGS_OK;
}

/* start and goal in different rooms, two deviations of the dot away from every wall */
static cgs_status reset(void *world, cgs_env_random *random, double *goal, char *error) {
    (void)error;
    cgs_rng *rng = cgs_env_rng(random);
    wall *w = world;
    const double margin = 2 * WALL_DOT;
    default_layout(w);
    double xs = cgs_rng_range(rng, WALL_LOW + margin, WALL_X - WALL_HALF - margin);
    double xg = cgs_rng_range(rng, WALL_X + WALL_HALF + margin, WALL_HIGH - margin);
    double ys = cgs_rng_range(rng, WALL_LOW + margin, WALL_HIGH - margin);
    double yg = cgs_rng_range(rng, WALL_LOW + margin, WALL_HIGH - margin);
    bool swap = cgs_rng_f64(rng) < 0.5;
    w->x = swap ? xg : xs;
    w->y = ys;
    goal[0] = swap ? xs : xg;
    goal[1] = yg;
    return CGS_OK;
}

static cgs_status set_state(void *world, const double *s, char *error) {
    wall *w = world;
    for (int i = 0; i < 2; i++)
        if (s[i] < 0 || s[i] > GRID - 1)
            return cgs_env_refuse(error, CGS_EARG,
                                  "wall: component %d of the state is %g, outside 0 to %d", i, s[i],
                                  GRID - 1);
    w->x = s[0];
    w->y = s[1];
    return CGS_OK;
}

static void get_state(const void *world, double *s) {
    const wall *w = world;
    s[0] = w->x;
    s[1] = w->y;
}

static bool reached(const cgs_env_predicate *p, const double *s, const double *g) {
    double dx = g[0] - s[0], dy = g[1] - s[1];
    return sqrt(dx * dx + dy * dy) < p->distance;
}

static void column(const void *world, const double *state, const double *goal, int index,
                   double *out) {
    (void)world, (void)goal, (void)index;
    memcpy(out, state, 2 * sizeof *out);
}

static void probe_state(const double *s, double *out) { memcpy(out, s, 2 * sizeof *out); }

/* ---- image -------------------------------------------------------------------- */

static bool is_wall(const wall *w, int x, int y) {
    if (x == (int)WALL_LOW || x == (int)WALL_HIGH || y == (int)WALL_LOW || y == (int)WALL_HIGH)
        return true;
    return fabs(x - w->wall_x) <= WALL_HALF && fabs(y - w->door_y) > WALL_DOOR_HALF;
}

/* the dot is red on white and hidden by walls; only green and blue carry it */
static void draw_grid(const wall *w, uint8_t red[GRID][GRID], uint8_t rest[GRID][GRID]) {
    float fx = (float)w->x, fy = (float)w->y, peak = 0;
    float dot[GRID][GRID];
    for (int y = 0; y < GRID; y++)
        for (int x = 0; x < GRID; x++) {
            float dx = (float)x - fx, dy = (float)y - fy;
            float at = -(dx * dx + dy * dy) / (float)(2 * WALL_DOT * WALL_DOT);
            dot[y][x] = at < -80 ? 0 : cgs_expf(at);
            if (dot[y][x] > peak) peak = dot[y][x];
        }
    for (int y = 0; y < GRID; y++)
        for (int x = 0; x < GRID; x++) {
            bool black = is_wall(w, x, y);
            red[y][x] = black ? 0 : 255;
            rest[y][x] = black ? 0 : (uint8_t)(255 - (int)(255 * (dot[y][x] / peak)));
        }
}

/* Bilinear at half-pixel centres, edges repeated.  Weights are multiples of 1/448, so the
 * sums are exact; upstream keeps the fractions, a byte image rounds them. */
static void enlarge(uint8_t in[GRID][GRID], uint8_t *rgb, int first, int last) {
    enum { UNIT = 2 * NATIVE };
    int lo[NATIVE], hi[NATIVE], part[NATIVE];
    for (int i = 0; i < NATIVE; i++) {
        int at = (2 * i + 1) * GRID - NATIVE; /* source position times UNIT */
        if (at < 0) at = 0;
        lo[i] = at / UNIT;
        part[i] = at % UNIT;
        hi[i] = lo[i] + 1 < GRID ? lo[i] + 1 : GRID - 1;
    }
    for (int j = 0; j < NATIVE; j++) {
        int mixed[GRID]; /* the row between two grid rows, times UNIT */
        for (int x = 0; x < GRID; x++)
            mixed[x] = in[lo[j]][x] * (UNIT - part[j]) + in[hi[j]][x] * part[j];
        for (int i = 0; i < NATIVE; i++) {
            int v = mixed[lo[i]] * (UNIT - part[i]) + mixed[hi[i]] * part[i];
            uint8_t byte = (uint8_t)((v + UNIT * UNIT / 2) / (UNIT * UNIT));
            for (int k = first; k <= last; k++) rgb[(j * NATIVE + i) * 3 + k] = byte;
        }
    }
}

static void draw_native(const void *what, uint8_t *rgb) {
    const wall *w = what;
    uint8_t red[GRID][GRID], rest[GRID][GRID];
    draw_grid(w, red, rest);
    enlarge(red, rgb, 0, 0);
    enlarge(rest, rgb, 1, 2);
}

static cgs_status render(void *world, int side, uint8_t *rgb, char *error) {
    return cgs_env_said(error, cgs_scaled_image_draw(&((wall *)world)->scaled, draw_native, world,
                                                     NATIVE, side, rgb));
}

static const cgs_env_column columns[] = {{"proprio", 2, false}};
static const cgs_env_feature features[] = {{"agent position", false}, {"agent position", false}};

const cgs_env_class cgs_wall_class = {
    CGS_ENV_OURS,
    .id = "wall",
    .version = 1,
    .summary = "a dot crosses a wall through its door",
    .predicate = {{"the dot is closer than 4.5 grid units to the goal", NEAR, 0, false},
                  {"the dot is closer than 2.25 grid units to the goal", NEAR / 2, 0, false},
                  {"the dot is closer than 2.25 grid units to the goal", NEAR / 2, 0, false}},
    .state_dim = 2,
    .action_dim = 2,
    .native = NATIVE,
    .limit = 49,
    .action_range = 1,
    .columns = columns,
    .column_count = 1,
    .features = features,
    .feature_count = 2,
    .size = sizeof(wall),
    .open = restart,
    .close = close_world,
    .restart = restart,
    .reset = reset,
    .set_state = set_state,
    .step = step,
    .get_state = get_state,
    .reached = reached,
    .render = render,
    .column = column,
    .probe_state = probe_state,
};

/* tworooms.c - TwoRooms: a point moves through a door between two rooms.
 *
 * Kinematic, in float32 as upstream.  The wall test looks at the side the step started
 * from and at the new height only, so an agent that leaves the opening vertically is put
 * beside the wall, and a hit pushes back by half a pixel. */
#include "env/tworooms.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "env/env.h"
#include "env/portable.h"
#include "env/raster.h"

#pragma STDC FP_CONTRACT OFF

static const float LOWEST = 14.0f + TWOROOMS_RADIUS, HIGHEST = 210.0f - TWOROOMS_RADIUS;
static const float DOOR_MARGIN = 1.75f;
enum { SIDE = TWOROOMS_SIDE, REACH = 42 /* the blob changes no byte farther away */ };

typedef struct tworooms {
    float x, y;
    cgs_scaled_image scaled;
} tworooms;

/* ---- motion --------------------------------------------------------------------- */

static float clampf(float v, float lo, float hi) { return v < lo ? lo : v > hi ? hi : v; }

static bool step(void *world, const double *action, const cgs_env_aim *aim) {
    (void)aim;
    tworooms *t = world;
    float x = t->x + TWOROOMS_SPEED * clampf((float)action[0], -1, 1);
    float y = t->y + TWOROOMS_SPEED * clampf((float)action[1], -1, 1);
    x = clampf(x, LOWEST, HIGHEST);
    y = clampf(y, LOWEST, HIGHEST);

    const float left = TWOROOMS_WALL_X - TWOROOMS_WALL_HALF - TWOROOMS_RADIUS;
    const float right = TWOROOMS_WALL_X + TWOROOMS_WALL_HALF + TWOROOMS_RADIUS;
    const float half = TWOROOMS_DOOR_HALF + DOOR_MARGIN;
    bool in_door = y >= TWOROOMS_DOOR_Y - half && y <= TWOROOMS_DOOR_Y + half;
    if (t->x < TWOROOMS_WALL_X && x > left && !in_door) x = left - 0.5f;
    if (t->x >= TWOROOMS_WALL_X && x < right && !in_door) x = right + 0.5f;
    t->x = x;
    t->y = y;
    return true;
}

static cgs_status restart(void *world, char *error) {
    (void)error;
    tworooms *t = world;
    t->x = 60;
    t->y = 112;
    return CGS_OK;
}

static void close_world(void *world) { cgs_scaled_image_free(&((tworooms *)world)->scaled); }

/* upstream's current environment: the agent outside the wall zone, the target anywhere */
static cgs_status reset(void *world, cgs_env_random *random, double *goal, char *error) {
    (void)error;
    cgs_rng *rng = cgs_env_rng(random);
    tworooms *t = world;
    do {
        t->x = (float)cgs_rng_range(rng, TWOROOMS_SPAN_LOW, TWOROOMS_SPAN_HIGH);
        t->y = (float)cgs_rng_range(rng, TWOROOMS_SPAN_LOW, TWOROOMS_SPAN_HIGH);
    } while (fabsf(t->x - TWOROOMS_WALL_X) <= TWOROOMS_WALL_HALF + TWOROOMS_RADIUS);
    for (int i = 0; i < 2; i++)
        goal[i] = cgs_round_f32(cgs_rng_range(rng, TWOROOMS_SPAN_LOW, TWOROOMS_SPAN_HIGH));
    return CGS_OK;
}

static cgs_status set_state(void *world, const double *s, char *error) {
    tworooms *t = world;
    for (int i = 0; i < 2; i++)
        if (s[i] < 0 || s[i] > SIDE - 1)
            return cgs_env_refuse(error, CGS_EARG,
                                  "tworooms: component %d of the state is %g, outside 0 to %d", i,
                                  s[i], SIDE - 1);
    t->x = (float)s[0];
    t->y = (float)s[1];
    return CGS_OK;
}

static cgs_status check_goal(const void *world, const double *g, char *error) {
    (void)world;
    for (int i = 0; i < 2; i++)
        if (g[i] < TWOROOMS_SPAN_LOW || g[i] > TWOROOMS_SPAN_HIGH)
            return cgs_env_refuse(error, CGS_EARG,
                                  "tworooms: component %d of the goal is %g, outside %g to %g", i,
                                  g[i], (double)TWOROOMS_SPAN_LOW, (double)TWOROOMS_SPAN_HIGH);
    return CGS_OK;
}

static void get_state(const void *world, double *s) {
    const tworooms *t = world;
    s[0] = t->x;
    s[1] = t->y;
}

static bool reached(const cgs_env_predicate *p, const double *s, const double *g) {
    float dx = (float)s[0] - (float)g[0], dy = (float)s[1] - (float)g[1];
    return (double)sqrtf(dx * dx + dy * dy) < p->distance;
}

static void column(const void *world, const double *state, const double *goal, int index,
                   double *out) {
    (void)world, (void)goal, (void)index; /* proprio and pos_agent are the same two numbers */
    memcpy(out, state, 2 * sizeof *out);
}

static void probe_state(const double *s, double *out) { memcpy(out, s, 2 * sizeof *out); }

/* ---- image -------------------------------------------------------------------- */

static uint8_t rooms[SIDE * SIDE * 3]; /* the image without the agent, made once */
static pthread_once_t rooms_once = PTHREAD_ONCE_INIT;

static bool is_border(int k) { return (k >= 10 && k <= 13) || (k >= 210 && k <= 213); }

static void draw_rooms(void) {
    const int half = (int)TWOROOMS_WALL_HALF, door = (int)TWOROOMS_DOOR_HALF;
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            bool wall =
                abs(x - (int)TWOROOMS_WALL_X) <= half && abs(y - (int)TWOROOMS_DOOR_Y) > door;
            bool black = wall || is_border(x) || is_border(y);
            memset(rooms + (y * SIDE + x) * 3, black ? 0 : 255, 3);
        }
}

static int nearest(float v) {
    int k = (int)nearbyintf(v);
    return k < 0 ? 0 : k > SIDE - 1 ? SIDE - 1 : k;
}

/* e^(-square / (2 r^2)), square in float32 as upstream computes it */
static float blob(float square) {
    return cgs_expf(-square / (2 * TWOROOMS_RADIUS * TWOROOMS_RADIUS));
}

/* A Gaussian blob of red, scaled so that its nearest pixel is pure red, laid over rooms
 * and walls alike; float32 products, truncated. */
static void draw_native(const void *what, uint8_t *rgb) {
    const tworooms *t = what;
    pthread_once(&rooms_once, draw_rooms);
    memcpy(rgb, rooms, sizeof rooms);
    int cx = nearest(t->x), cy = nearest(t->y);
    float nx = (float)cx - t->x, ny = (float)cy - t->y;
    float peak = blob(nx * nx + ny * ny);
    int x0 = cx > REACH ? cx - REACH : 0, x1 = cx < SIDE - 1 - REACH ? cx + REACH : SIDE - 1;
    int y0 = cy > REACH ? cy - REACH : 0, y1 = cy < SIDE - 1 - REACH ? cy + REACH : SIDE - 1;
    float alpha[2 * REACH + 1];
    for (int y = y0; y <= y1; y++) {
        float dy = (float)y - t->y;
        for (int x = x0; x <= x1; x++) {
            float dx = (float)x - t->x;
            alpha[x - x0] = blob(dx * dx + dy * dy) / peak;
        }
        uint8_t *p = rgb + (y * SIDE + x0) * 3;
        for (int x = x0; x <= x1; x++, p += 3) {
            float a = alpha[x - x0], under = (float)p[0] * (1 - a);
            p[0] = (uint8_t)(under + 255 * a);
            p[1] = p[2] = (uint8_t)under; /* rooms are grey: one channel stands for all */
        }
    }
}

static cgs_status render(void *world, int side, uint8_t *rgb, char *error) {
    return cgs_env_said(error, cgs_scaled_image_draw(&((tworooms *)world)->scaled, draw_native,
                                                     world, SIDE, side, rgb));
}

static const cgs_env_column columns[] = {{"proprio", 2, false}, {"pos_agent", 2, false}};
static const cgs_env_feature features[] = {{"agent position", false}, {"agent position", false}};

const cgs_env_class cgs_tworooms_class = {
    CGS_ENV_OURS,
    .id = "tworooms",
    .version = 1,
    .summary = "a point moves between two rooms through a door",
    .predicate = {{"the agent is closer than 16 px to the goal", TWOROOMS_NEAR, 0, false},
                  {"the agent is closer than 8 px to the goal", TWOROOMS_NEAR / 2, 0, false},
                  {"the agent is closer than 8 px to the goal", TWOROOMS_NEAR / 2, 0, false}},
    .state_dim = 2,
    .action_dim = 2,
    .native = SIDE,
    .limit = 100,
    .action_range = 1,
    .columns = columns,
    .column_count = 2,
    .features = features,
    .feature_count = 2,
    .size = sizeof(tworooms),
    .close = close_world,
    .restart = restart,
    .reset = reset,
    .set_state = set_state,
    .check_goal = check_goal,
    .step = step,
    .get_state = get_state,
    .reached = reached,
    .render = render,
    .column = column,
    .probe_state = probe_state,
};

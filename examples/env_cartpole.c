/* env_cartpole.c - an environment of one's own: a cart on a rail carries a pole that swings freely.
 *
 *   gcc -O2 -shared -fPIC $(pkg-config --cflags cgs) -o libcartpole.so env_cartpole.c -lm
 *   cgs collect --env ./libcartpole.so --out cartpole.h5
 *   cgs train --data cartpole.h5 --out model
 *   cgs eval --env ./libcartpole.so --data cartpole.h5 --model model
 *
 * A state is the cart's position and speed, the pole's angle (0: upright) and its rate; the action
 * is a force.  The goal is a place of the cart with an angle of the pole. */
#include <cgs/env.h>
#include <math.h>
#include <stdio.h>

enum { X, SPEED, ANGLE, RATE, STATE };
enum { SUBSTEPS = 5 };
static const double STEP = 0.01, PI = 3.14159265358979323846;
static const double GRAVITY = 9.81, CART = 1.0, POLE = 0.2, HALF = 0.4; /* kg, kg, m */
static const double FORCE = 10, DRAG = 0.5, RAIL = 2;                   /* N, N s/m, m */

typedef struct world {
    double s[STATE];
} world;

/* ---- motion --------------------------------------------------------------------- */

static double wrap(double angle) { return angle - 2 * PI * floor((angle + PI) / (2 * PI)); }

static void advance(double *s, double force) {
    double sine = sin(s[ANGLE]), cosine = cos(s[ANGLE]), total = CART + POLE;
    double push = (force - DRAG * s[SPEED] + POLE * HALF * s[RATE] * s[RATE] * sine) / total;
    double turn =
        (GRAVITY * sine - cosine * push) / (HALF * (4.0 / 3 - POLE * cosine * cosine / total));
    s[SPEED] += STEP * (push - POLE * HALF * turn * cosine / total);
    s[RATE] += STEP * turn;
    s[X] += STEP * s[SPEED];
    s[ANGLE] = wrap(s[ANGLE] + STEP * s[RATE]);
    if (fabs(s[X]) < RAIL) return;
    s[X] = s[X] > 0 ? RAIL : -RAIL;
    s[SPEED] = 0;
}

static bool step(void *w, const double *action, const cgs_env_aim *aim) {
    (void)aim; /* an action has no parts that it could end after */
    double force = FORCE * fmax(-1, fmin(1, action[0]));
    for (int k = 0; k < SUBSTEPS; k++) advance(((world *)w)->s, force);
    return true;
}

static void draw_state(cgs_env_random *random, double *s) {
    s[X] = 1.5 * (2 * random->uniform(random) - 1);
    s[ANGLE] = PI * (2 * random->uniform(random) - 1);
    s[SPEED] = 0.5 * random->normal(random);
    s[RATE] = random->normal(random);
}

static cgs_status reset(void *w, cgs_env_random *random, double *goal, char *error) {
    (void)error;
    draw_state(random, ((world *)w)->s);
    draw_state(random, goal);
    return CGS_OK;
}

static cgs_status set_state(void *w, const double *state, char *error) {
    if (fabs(state[X]) > RAIL) {
        snprintf(error, CGS_ENV_ERROR, "the rail ends at %g, the cart cannot be at %g", RAIL,
                 state[X]);
        return CGS_EARG;
    }
    for (int i = 0; i < STATE; i++) ((world *)w)->s[i] = state[i];
    ((world *)w)->s[ANGLE] = wrap(state[ANGLE]);
    return CGS_OK;
}

static void get_state(const void *w, double *state) {
    for (int i = 0; i < STATE; i++) state[i] = ((const world *)w)->s[i];
}

static bool reached(const cgs_env_predicate *by, const double *state, const double *goal) {
    return fabs(state[X] - goal[X]) < by->distance &&
           fabs(wrap(state[ANGLE] - goal[ANGLE])) < by->angle;
}

/* ---- what it looks like ----------------------------------------------------------- */

static double between(double v, double low, double high) {
    return v < low ? low : v > high ? high : v;
}

/* distance of a point from the line between a and b */
static double from_line(double x, double y, double ax, double ay, double bx, double by) {
    double dx = bx - ax, dy = by - ay, length = dx * dx + dy * dy;
    double along = between(((x - ax) * dx + (y - ay) * dy) / length, 0, 1);
    return hypot(x - ax - along * dx, y - ay - along * dy);
}

/* lays a color over a pixel where the distance to a shape (in pixels) is below its radius */
static void cover(uint8_t *pixel, double distance, double radius, const uint8_t *color) {
    double share = between(radius - distance + 0.5, 0, 1);
    for (int i = 0; i < 3; i++)
        pixel[i] = (uint8_t)(pixel[i] + share * (color[i] - pixel[i]) + 0.5);
}

static cgs_status render(void *w, int side, uint8_t *rgb, char *error) {
    static const uint8_t rail[3] = {120, 120, 120}, cart[3] = {40, 70, 200},
                         pole[3] = {210, 40, 30};
    const double *s = ((world *)w)->s;
    double scale = side / 5.0, middle = side / 2.0; /* five metres are seen */
    double x = middle + scale * s[X], tip_x = x + scale * 2 * HALF * sin(s[ANGLE]);
    double tip_y = middle - scale * 2 * HALF * cos(s[ANGLE]);
    (void)error;
    for (int row = 0; row < side; row++)
        for (int column = 0; column < side; column++) {
            uint8_t *pixel = rgb + 3 * (row * side + column);
            double px = column + 0.5, py = row + 0.5;
            pixel[0] = pixel[1] = pixel[2] = 255;
            cover(pixel, fabs(py - middle), 0.01 * side, rail);
            cover(pixel, fmax(fabs(px - x) / 2, fabs(py - middle)), 0.03 * side, cart);
            cover(pixel, from_line(px, py, x, middle, tip_x, tip_y), 0.015 * side, pole);
            cover(pixel, hypot(px - tip_x, py - tip_y), 0.04 * side, pole);
        }
    return CGS_OK;
}

static void probe_state(const double *state, double *out) {
    out[0] = state[X];
    out[1] = state[ANGLE];
}

static const cgs_env_feature features[] = {{"cart position", false}, {"pole angle", true}};

const cgs_env_class cgs_plug_in = {
    .abi_version = CGS_ENV_ABI,
    .struct_size = sizeof(cgs_env_class),
    .id = "cartpole",
    .version = 1,
    .can = CGS_ENV_RENDER | CGS_ENV_SET_STATE | CGS_ENV_BATCH | CGS_ENV_DETERMINISTIC,
    .summary = "a cart on a rail carries a pole that swings freely",
    .predicate =
        {{"the cart is within 0.3 m and the pole within 0.3 rad of the goal", 0.3, 0.3, false},
         {"the cart is within 0.15 m and the pole within 0.15 rad of the goal", 0.15, 0.15, false},
         {"the cart is within 0.15 m and the pole within 0.15 rad of the goal", 0.15, 0.15, false}},
    .state_dim = STATE,
    .action_dim = 1,
    .native = 64,
    .limit = 100,
    .action_range = 1,
    .features = features,
    .feature_count = 2,
    .size = sizeof(world),
    .reset = reset,
    .set_state = set_state,
    .step = step,
    .get_state = get_state,
    .reached = reached,
    .render = render,
    .probe_state = probe_state,
};

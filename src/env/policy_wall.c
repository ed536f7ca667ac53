/* policy_wall.c - a heading that wanders, step lengths that vary.
 *
 * The published file's generator is unknown; this is the one shipped beside it (von Mises
 * increments of concentration 5, truncated normal lengths) with lengths scaled so that the
 * standard deviation of an action component is the published 0.45. */
#include <math.h>

#include "env/policy.h"
#include "env/portable.h"
#include "env/wall.h"

#pragma STDC FP_CONTRACT OFF

static const float CONCENTRATION = 5;
static const double LENGTH = 1.0, SPREAD = 0.4, SHORTEST = 0.2, LONGEST = 1.8, SCALE = 0.6;

typedef struct walk {
    cgs_policy base;
    double heading;
} walk;

/* von Mises by rejection from the uniform: about one draw in five is kept */
static double von_mises(cgs_rng *rng) {
    for (;;) {
        double turn = cgs_rng_range(rng, -CGS_PI, CGS_PI), s, c;
        cgs_sincos(turn, &s, &c);
        if (cgs_rng_f64(rng) < (double)cgs_expf(CONCENTRATION * ((float)c - 1))) return turn;
    }
}

static double step_length(cgs_rng *rng) {
    for (;;) {
        double v = LENGTH + SPREAD * cgs_rng_normal(rng);
        if (v >= SHORTEST && v <= LONGEST) return SCALE * v;
    }
}

static cgs_status begin(cgs_policy *p, cgs_env *e) {
    walk *w = (walk *)p;
    double s[2] = {cgs_rng_range(&p->start, WALL_LOW, WALL_HIGH),
                   cgs_rng_range(&p->start, WALL_LOW, WALL_HIGH)};
    if (fabs(s[0] - WALL_X) <= WALL_HALF) { /* inside the wall: to a random side of it */
        bool left = cgs_rng_f64(&p->start) < 0.5;
        s[0] = left ? cgs_rng_range(&p->start, WALL_LOW, WALL_X - WALL_HALF)
                    : cgs_rng_range(&p->start, WALL_X + WALL_HALF, WALL_HIGH);
    }
    w->heading = cgs_rng_range(&p->start, -CGS_PI, CGS_PI);
    return cgs_env_start(e, s, 2);
}

static void act(cgs_policy *p, const cgs_env *e, double *action) {
    walk *w = (walk *)p;
    double s, c, length = step_length(&p->rng);
    if (e->steps > 0) w->heading = cgs_wrap_half_turn(w->heading + von_mises(&p->rng));
    cgs_sincos(w->heading, &s, &c);
    action[0] = length * c;
    action[1] = length * s;
}

const cgs_policy_class cgs_policy_wall_walk = {
    .env = "wall",
    .name = "walk",
    .summary = "a wandering heading with steps of varying length",
    .size = sizeof(walk),
    .begin = begin,
    .act = act,
};

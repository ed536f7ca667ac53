/* policy_expert.c - an expert for PushT: it plans pushes in a copy of the simulator.
 *
 * Published PushT data are human demonstrations with several levels of noise.  This stands in for
 * them: it moves the block to sampled poses, one after the other, by sampling-based
 * model-predictive control.  A candidate is a manoeuvre (a point on the block's outline, a
 * direction, a length, a pace); its cost is the pose error after it was executed in the model by
 * the same controller that executes it in the environment.  The best candidate runs; while it
 * pushes, variations of it are tried every few steps.  Pace and noise level are drawn per episode,
 * so that both slow careful and fast sloppy demonstrations occur.
 *
 * An action is executed in the Chipmunk environment; the model only ranks candidates. */
#include <math.h>
#include <string.h>

#include "env/policy.h"
#include "env/portable.h"
#include "env/pusht.h"
#include "env/pusht_model.h"

enum {
    CANDIDATES = 90,  /* new manoeuvres tried per plan            */
    REFINEMENTS = 30, /* of the best so far                       */
    VARIATIONS = 16,  /* of the running push, at every review     */
    HORIZON = 45,     /* model steps per candidate, at most       */
    REVIEW_EVERY = 5, /* steps of a push between reviews          */
    PATIENCE = 150,   /* steps spent on one goal                  */
    SHORTEST = 48,    /* actions in an episode                    */
    LONGEST = 245
};
static const double PERIMETER = 480;   /* px around the outline */
static const double RING = 98;         /* a circle about the block that no part of it reaches */
static const double CLEARANCE = 17;    /* agent radius and a little */
static const double STANDOFF = 20;     /* where a push starts from, off the outline */
static const double RADIAN = 40;       /* px that a radian of error counts for */
static const double STEP_COST = 0.25;  /* px that a step counts for */
static const double CLOSE_ENOUGH = 12; /* px, error at which a goal counts as reached */

/* the outline of the T in the block's frame, edge by edge, outside to the left */
static const double OUTLINE[8][4] = {{-60, 0, 60, 0},    {60, 0, 60, 30},     {60, 30, 15, 30},
                                     {15, 30, 15, 120},  {15, 120, -15, 120}, {-15, 120, -15, 30},
                                     {-15, 30, -60, 30}, {-60, 30, -60, 0}};

typedef enum phase { IDLE, APPROACH, PUSH } phase;

typedef struct manoeuvre {
    phase phase;
    double at;                  /* px along the outline */
    double point[2], normal[2]; /* on the outline, in the block's frame about its centre */
    double lean;                /* push direction against the inward normal, radians */
    double length;              /* px to push */
    double walk, pace;          /* size of an action while approaching, while pushing */
    double from[2], way[2];     /* of the push, set when it starts */
    double drift[2];            /* the action while idle */
    int left;                   /* idle steps left */
} manoeuvre;

typedef struct expert {
    cgs_policy base;
    int length;     /* actions in this episode */
    double noise;   /* standard deviation of the action noise */
    double haste;   /* scales walk and pace */
    double sway[2]; /* correlated noise */
    double goal[3]; /* block centre and angle */
    int goal_steps; /* spent on it */
    manoeuvre now;
    int since_review;
} expert;

/* ---- geometry ------------------------------------------------------------------- */

static void to_world(const cgs_pusht_model *m, const double *local, double *world) {
    world[0] = m->block[0] + (m->cosine * local[0] - m->sine * local[1]);
    world[1] = m->block[1] + (m->sine * local[0] + m->cosine * local[1]);
}

/* distance of a point to the block, 0 inside */
static double distance_to_block(const cgs_pusht_model *m, double x, double y) {
    double dx = x - m->block[0], dy = y - m->block[1], best = 1e9;
    double u = m->cosine * dx + m->sine * dy, v = m->cosine * dy - m->sine * dx + PUSHT_COG_Y;
    for (int part = 0; part < 2; part++) {
        const double(*c)[2] = cgs_pusht_part[part];
        double eu = fmax(fmax(c[0][0] - u, u - c[2][0]), 0);
        double ev = fmax(fmax(c[0][1] - v, v - c[2][1]), 0);
        best = fmin(best, eu * eu + ev * ev);
    }
    return sqrt(best);
}

static bool clear_way(const cgs_pusht_model *m, const double *to) {
    double dx = to[0] - m->agent[0], dy = to[1] - m->agent[1], d = sqrt(dx * dx + dy * dy);
    int n = (int)(d / 8) + 1;
    for (int i = 1; i <= n; i++)
        if (distance_to_block(m, m->agent[0] + dx * i / n, m->agent[1] + dy * i / n) < CLEARANCE)
            return false;
    return true;
}

static double error_of(const cgs_pusht_model *m, const double *goal) {
    double dx = m->block[0] - goal[0], dy = m->block[1] - goal[1];
    return sqrt(dx * dx + dy * dy) + RADIAN * fabs(cgs_wrap_half_turn(m->angle - goal[2]));
}

/* ---- the controller: a manoeuvre turned into actions ---------------------------- */

/* where to walk next on the way to `goal`: straight if nothing is in between, else out to
 * the ring, along it, and in again */
static void waypoint(const cgs_pusht_model *m, const double *goal, double *out) {
    memcpy(out, goal, 2 * sizeof *out);
    if (clear_way(m, goal)) return;
    double ax = m->agent[0] - m->block[0], ay = m->agent[1] - m->block[1];
    double gx = goal[0] - m->block[0], gy = goal[1] - m->block[1];
    double ra = sqrt(ax * ax + ay * ay) + 1e-9, rg = sqrt(gx * gx + gy * gy) + 1e-9;
    double dot = (ax * gx + ay * gy) / (ra * rg), cross = (ax * gy - ay * gx) / (ra * rg);
    if (dot > 0.94) return; /* the same side: the way in */
    double ux = ax / ra, uy = ay / ra;
    if (ra > RING - 10) { /* a quarter of a radian along the ring, the shorter way */
        double s = cross > 0 ? 0.4794255386 : -0.4794255386, c = 0.8775825619;
        double rx = c * ux - s * uy, ry = s * ux + c * uy;
        ux = rx;
        uy = ry;
    }
    out[0] = fmin(fmax(m->block[0] + RING * ux, 12), PUSHT_WORLD - 12);
    out[1] = fmin(fmax(m->block[1] + RING * uy, 12), PUSHT_WORLD - 12);
}

/* the next action; the phase becomes IDLE with nothing left when the manoeuvre is over */
static void follow(manoeuvre *k, const cgs_pusht_model *m, double *action) {
    action[0] = action[1] = 0;
    if (k->phase == IDLE) {
        if (k->left > 0) {
            k->left--;
            action[0] = k->drift[0], action[1] = k->drift[1];
        }
        return;
    }
    if (k->phase == APPROACH) {
        double local[2] = {k->point[0] + STANDOFF * k->normal[0],
                           k->point[1] + STANDOFF * k->normal[1]};
        double goal[2], next[2];
        to_world(m, local, goal);
        waypoint(m, goal, next);
        double dx = next[0] - m->agent[0], dy = next[1] - m->agent[1], d = sqrt(dx * dx + dy * dy);
        bool there = next[0] == goal[0] && next[1] == goal[1] && d < 7;
        if (!there) {
            double size = fmin(k->walk, d / 45 + 0.02);
            action[0] = size * dx / d;
            action[1] = size * dy / d;
            return;
        }
        double s, c, in[2];
        cgs_sincos(k->lean, &s, &c);
        in[0] = -(m->cosine * k->normal[0] - m->sine * k->normal[1]);
        in[1] = -(m->sine * k->normal[0] + m->cosine * k->normal[1]);
        k->way[0] = c * in[0] - s * in[1];
        k->way[1] = s * in[0] + c * in[1];
        memcpy(k->from, m->agent, sizeof k->from);
        k->phase = PUSH;
    }
    double gone = (m->agent[0] - k->from[0]) * k->way[0] + (m->agent[1] - k->from[1]) * k->way[1];
    if (gone >= k->length) {
        k->phase = IDLE;
        return;
    }
    action[0] = k->pace * k->way[0];
    action[1] = k->pace * k->way[1];
}

/* the cost of a manoeuvre begun now: error at its end, and time */
static double try_out(manoeuvre k, cgs_pusht_model m, const double *goal) {
    for (int t = 0; t < HORIZON; t++) {
        double action[2];
        follow(&k, &m, action);
        cgs_pusht_model_step(&m, action); /* the step after a push lets the agent come to rest */
        if (k.phase == IDLE) return error_of(&m, goal) + STEP_COST * t;
    }
    return error_of(&m, goal) + STEP_COST * HORIZON;
}

/* ---- choosing ------------------------------------------------------------------- */

/* the manoeuvre that pushes `at` px along the outline */
static void place(manoeuvre *k, double at) {
    k->at = at = fmod(at + PERIMETER, PERIMETER);
    for (int i = 0; i < 8; i++) {
        const double *e = OUTLINE[i];
        double dx = e[2] - e[0], dy = e[3] - e[1], length = fabs(dx) + fabs(dy);
        if (at > length) {
            at -= length;
            continue;
        }
        k->point[0] = e[0] + at / length * dx;
        k->point[1] = e[1] + at / length * dy - PUSHT_COG_Y;
        k->normal[0] = dy / length;
        k->normal[1] = -dx / length;
        return;
    }
}

static manoeuvre sample(expert *x) {
    cgs_rng *rng = &x->base.rng;
    manoeuvre k = {.phase = APPROACH};
    place(&k, cgs_rng_range(rng, 0, PERIMETER));
    double u = cgs_rng_f64(rng); /* short pushes are as useful as long ones */
    k.lean = cgs_rng_range(rng, -0.6, 0.6);
    k.length = STANDOFF - PUSHT_AGENT_RADIUS + 2 + 100 * u * u;
    k.walk = x->haste * cgs_rng_range(rng, 0.22, 0.5);
    k.pace = x->haste * cgs_rng_range(rng, 0.12, 0.4);
    return k;
}

static manoeuvre vary(expert *x, manoeuvre k) {
    cgs_rng *rng = &x->base.rng;
    place(&k, k.at + 8 * cgs_rng_normal(rng));
    k.lean += 0.12 * cgs_rng_normal(rng);
    k.length = fmax(k.length * (1 + 0.2 * cgs_rng_normal(rng)), 2);
    return k;
}

/* a short pause or stroll */
static void idle(expert *x, int steps) {
    cgs_rng *rng = &x->base.rng;
    x->now = (manoeuvre){.phase = IDLE, .left = steps};
    double size = cgs_rng_f64(rng) < 0.5 ? 0.02 : 0.2;
    for (int i = 0; i < 2; i++) x->now.drift[i] = size * cgs_rng_normal(rng);
}

static void new_goal(expert *x) {
    cgs_rng *rng = &x->base.rng;
    double s, c;
    if (cgs_rng_f64(rng) < 0.65) { /* around the target pose of the demonstrations */
        x->goal[2] = CGS_PI / 4 + 0.3 * cgs_rng_normal(rng);
        cgs_sincos(x->goal[2], &s, &c);
        x->goal[0] = 256 - s * PUSHT_COG_Y + 25 * cgs_rng_normal(rng);
        x->goal[1] = 256 + c * PUSHT_COG_Y + 25 * cgs_rng_normal(rng);
    } else {
        x->goal[0] = cgs_rng_range(rng, 150, 360);
        x->goal[1] = cgs_rng_range(rng, 150, 360);
        x->goal[2] = cgs_rng_range(rng, -CGS_PI, CGS_PI);
    }
    x->goal_steps = 0;
}

static void plan(expert *x, const cgs_pusht_model *m) {
    double best = 1e9, before = error_of(m, x->goal);
    for (int i = 0; i < CANDIDATES + REFINEMENTS; i++) {
        manoeuvre k = i < CANDIDATES ? sample(x) : vary(x, x->now);
        double cost = try_out(k, *m, x->goal);
        if (cost >= best) continue;
        best = cost;
        x->now = k;
    }
    x->since_review = 0;
    /* no candidate helps: walk away a little and replan from there */
    if (best > before + 5) idle(x, 4);
}

/* variations of a running push; the unchanged one is among them */
static void review(expert *x, const cgs_pusht_model *m) {
    cgs_rng *rng = &x->base.rng;
    manoeuvre kept = x->now;
    double best = try_out(kept, *m, x->goal);
    for (int i = 0; i < VARIATIONS; i++) {
        manoeuvre k = x->now;
        double s, c;
        cgs_sincos(0.35 * cgs_rng_normal(rng), &s, &c);
        k.way[0] = c * x->now.way[0] - s * x->now.way[1];
        k.way[1] = s * x->now.way[0] + c * x->now.way[1];
        k.pace = x->now.pace * cgs_rng_range(rng, 0.7, 1.4);
        memcpy(k.from, m->agent, sizeof k.from);
        k.length = cgs_rng_range(rng, 0, 60);
        double cost = try_out(k, *m, x->goal);
        if (cost >= best) continue;
        best = cost;
        kept = k;
    }
    x->now = kept;
    x->since_review = 0;
}

/* ---- the policy ----------------------------------------------------------------- */

static double truncated_normal(cgs_rng *rng, double mean, double spread, double lo, double hi) {
    for (;;) {
        double v = mean + spread * cgs_rng_normal(rng);
        if (v >= lo && v <= hi) return v;
    }
}

static cgs_status begin(cgs_policy *p, cgs_env *e) {
    static const double levels[4] = {0.02, 0.05, 0.1, 0.18};
    expert *x = (expert *)p;
    cgs_rng *rng = &p->start;
    *x = (expert){.base = *p};
    x->length = (int)truncated_normal(rng, 120, 46, SHORTEST, LONGEST + 0.999);
    x->noise = levels[cgs_rng_below(rng, 4)];
    x->haste = cgs_rng_range(rng, 0.55, 0.95);

    /* a start without overlaps, the block inside the walls */
    double s[7] = {0};
    cgs_pusht_model m;
    do {
        double cx = cgs_rng_range(rng, 110, 400), cy = cgs_rng_range(rng, 110, 400), sine, cosine;
        s[4] = cgs_rng_range(rng, 0, 2 * CGS_PI);
        cgs_sincos(s[4], &sine, &cosine);
        s[2] = cx + sine * PUSHT_COG_Y;
        s[3] = cy - cosine * PUSHT_COG_Y;
        s[0] = cgs_rng_range(rng, 50, 450);
        s[1] = cgs_rng_range(rng, 50, 450);
        cgs_pusht_model_set(&m, s);
    } while (distance_to_block(&m, s[0], s[1]) < CLEARANCE);
    new_goal(x);
    return cgs_env_start(e, s, 7);
}

static void act(cgs_policy *p, const cgs_env *e, double *action) {
    expert *x = (expert *)p;
    cgs_rng *rng = &p->rng;
    cgs_pusht_model m;
    cgs_pusht_model_set(&m, e->state);

    x->goal_steps++;
    if (error_of(&m, x->goal) < CLOSE_ENOUGH || x->goal_steps > PATIENCE) {
        new_goal(x);
        idle(x, (int)cgs_rng_below(rng, 10));
    }
    if (x->now.phase == PUSH && ++x->since_review >= REVIEW_EVERY) review(x, &m);
    if (x->now.phase == IDLE && x->now.left == 0) plan(x, &m);
    follow(&x->now, &m, action);

    /* correlated noise: drift instead of jitter */
    for (int i = 0; i < 2; i++) {
        x->sway[i] = 0.7 * x->sway[i] + 0.714 * x->noise * cgs_rng_normal(rng);
        double a = action[i] + x->sway[i];
        action[i] = a < -1 ? -1 : a > 1 ? 1 : a;
    }
}

static bool over(const cgs_policy *p, const cgs_env *e) {
    return e->steps >= ((const expert *)p)->length;
}

const cgs_policy_class cgs_policy_pusht_expert = {
    .env = "pusht",
    .name = "expert",
    .summary = "pushes the block to sampled poses, planning in the simulator, with noise",
    .size = sizeof(expert),
    .begin = begin,
    .act = act,
    .over = over,
};

/* policy_cube.c - two oracles that pick the cube up and put it at the episode's goal.
 *
 * The plan oracle draws keyframes, samples them every control step with smoothed noise and tracks
 * the samples; when a plan ends it makes the next one for the same goal, so the cube is picked up
 * and put back repeatedly.  Its statistics match the published data.  The Markov oracle decides
 * from the present state alone. */
#include <math.h>
#include <string.h>

#include "env/cube.h"
#include "env/policy.h"
#include "env/portable.h"

#pragma STDC FP_CONTRACT OFF

static double clip(double v, double low, double high) {
    return v < low ? low : v > high ? high : v;
}

static cgs_status begin_episode(cgs_policy *p, cgs_env *e) { return cgs_env_reset(e, &p->start); }

/* ---- plan oracle ---------------------------------------------------------------- */

enum { KEYS = 11, LONGEST = 160, REACH = 2 };
static const double DURATION = 0.4, JITTER = 0.08, NOISE = 0.1;

typedef struct key {
    double time, pos[3], yaw, grip;
} key;

typedef struct plan {
    cgs_policy base;
    int count;                 /* samples of the present plan; 0: none yet */
    int begun;                 /* step it began at */
    bool over;                 /* its last sample was used */
    double sample[LONGEST][5]; /* position, yaw, grip: absolute */
} plan;

/* A cube looks the same after a quarter turn: of its yaws the one nearest to another, both
 * as numbers in [0, 2 pi), not as angles. */
static double align(double yaw, double to) {
    double base = cgs_wrap_turn(yaw), goal = cgs_wrap_turn(to), best = base;
    for (int i = -4; i <= 4; i++) {
        double candidate = base + i * CGS_PI / 2;
        if (fabs(candidate - goal) < fabs(best - goal)) best = candidate;
    }
    return best;
}

static void set_key(key *k, double after, const double *pos, double lift, double yaw, double grip) {
    k->time = after;
    memcpy(k->pos, pos, sizeof k->pos);
    k->pos[2] += lift;
    k->yaw = yaw;
    k->grip = grip;
}

static void draw_keys(cgs_rng *rng, const cgs_cube_view *v, key *k) {
    const double D = DURATION;
    double pick_lift = 0.1 + cgs_rng_range(rng, 0, 0.1);
    double place_lift = 0.1 + cgs_rng_range(rng, 0, 0.1);
    double pick_yaw = align(v->block_yaw, v->hand_yaw), place_yaw = align(v->goal_yaw, pick_yaw);
    double middle_yaw = pick_yaw + cgs_wrap_half_turn(place_yaw - pick_yaw) / 2;
    double middle[3], final[3];
    for (int i = 0; i < 2; i++)
        middle[i] = (v->block[i] + v->goal[i]) / 2 + cgs_rng_range(rng, -0.1, 0.1);
    middle[2] = v->hand[2] + cgs_rng_range(rng, 0, 0.2);
    for (int i = 0; i < 3; i++)
        final[i] = cgs_rng_range(rng, cgs_cube_arm_low[i], cgs_cube_arm_high[i]);
    double final_yaw = cgs_rng_range(rng, -CGS_PI, CGS_PI);

    set_key(&k[0], 0, v->hand, 0, v->hand_yaw, 0);
    set_key(&k[1], D, v->block, pick_lift, pick_yaw, 0);
    set_key(&k[2], 1.5 * D, v->block, 0, pick_yaw, 0);
    set_key(&k[3], D, v->block, 0, pick_yaw, 1);
    set_key(&k[4], D, v->block, pick_lift, pick_yaw, 1);
    set_key(&k[5], D, middle, 0, middle_yaw, 1);
    set_key(&k[6], D, v->goal, place_lift, place_yaw, 1);
    set_key(&k[7], 1.5 * D, v->goal, 0, place_yaw, 1);
    set_key(&k[8], D, v->goal, 0, place_yaw, 0);
    set_key(&k[9], D, v->goal, place_lift, place_yaw, 0);
    set_key(&k[10], D, final, 0, final_yaw, 0);
    for (int i = 1; i < KEYS; i++) k[i].time += k[i - 1].time;
    for (int i = 1; i < KEYS; i++) k[i].time += JITTER * cgs_rng_range(rng, -1, 1);
}

/* Normal noise smoothed over neighbouring samples by exp(-2 d^2); the ends are mirrored. */
static void add_noise(cgs_rng *rng, double (*sample)[5], int count) {
    static const double weight[REACH + 1] = {0.78657072588734223, 0.10645077197359151,
                                             0.00026386508273735414};
    double noise[LONGEST];
    for (int c = 0; c < 5; c++) {
        for (int i = 0; i < count; i++) noise[i] = cgs_rng_normal(rng);
        for (int i = 0; i < count; i++) {
            double sum = 0;
            for (int d = -REACH; d <= REACH; d++) {
                int j = i + d;
                j = j < 0 ? -1 - j : j >= count ? 2 * count - 1 - j : j;
                sum += weight[d < 0 ? -d : d] * noise[j];
            }
            sample[i][c] += NOISE * cgs_cube_scale[c] * sum;
        }
    }
}

static void make_plan(plan *p, const cgs_env *e) {
    cgs_cube_view v;
    key k[KEYS];
    cgs_cube_measure(e, &v);
    draw_keys(&p->base.rng, &v, k);
    p->begun = e->steps;
    p->over = false;
    p->count = 0;
    for (int at = 0; p->count < LONGEST && p->count * CUBE_DT < k[KEYS - 1].time; p->count++) {
        double time = p->count * CUBE_DT, *out = p->sample[p->count];
        while (time > k[at + 1].time) at++;
        const key *a = &k[at], *b = &k[at + 1];
        double f = (time - a->time) / (b->time - a->time);
        for (int i = 0; i < 3; i++) out[i] = a->pos[i] + f * (b->pos[i] - a->pos[i]);
        out[3] = cgs_wrap_half_turn(a->yaw + f * cgs_wrap_half_turn(b->yaw - a->yaw));
        out[4] = a->grip + f * (b->grip - a->grip);
    }
    add_noise(&p->base.rng, p->sample, p->count);
}

static cgs_status plan_begin(cgs_policy *p, cgs_env *e) {
    ((plan *)p)->count = 0;
    return begin_episode(p, e);
}

/* differences of yaw are not wrapped: upstream's are not */
static void plan_act(cgs_policy *base, const cgs_env *e, double *action) {
    plan *p = (plan *)base;
    cgs_cube_view v;
    if (p->count == 0 || p->over) make_plan(p, e);
    int at = e->steps - p->begun;
    if (at >= p->count - 1) {
        at = p->count - 1;
        p->over = true;
    }
    cgs_cube_measure(e, &v);
    const double now[5] = {v.hand[0], v.hand[1], v.hand[2], v.hand_yaw, v.opening};
    for (int i = 0; i < 5; i++)
        action[i] = clip((p->sample[at][i] - now[i]) / cgs_cube_scale[i], -1, 1);
}

const cgs_policy_class cgs_policy_cube_plan = {
    .env = "cube",
    .name = "plan",
    .summary = "tracks keyframes that repeatedly carry the cube to the goal",
    .size = sizeof(plan),
    .begin = plan_begin,
    .act = plan_act,
};

/* ---- Markov oracle -------------------------------------------------------------- */

static const double ABOVE = 0.18, CLEAR = 0.16, AT_BLOCK = 0.02, BESIDE = 0.04;
static const double GAIN = 5, TURN_GAIN = 3, REACH_MIN = 0.4;
enum { PATIENCE = 200 };

typedef struct markov {
    cgs_policy base;
    double final[3], final_yaw, noise;
    int begun;
} markov;

static void begin_subtask(markov *m, const cgs_env *e) {
    for (int i = 0; i < 3; i++)
        m->final[i] = cgs_rng_range(&m->base.rng, cgs_cube_arm_low[i], cgs_cube_arm_high[i]);
    m->final_yaw = cgs_rng_range(&m->base.rng, -CGS_PI, CGS_PI);
    m->begun = e->steps;
}

static cgs_status markov_begin(cgs_policy *p, cgs_env *e) {
    markov *m = (markov *)p;
    CGS_TRY(begin_episode(p, e));
    m->noise = cgs_rng_range(&p->rng, 0, 0.1);
    begin_subtask(m, e);
    return CGS_OK;
}

static double gap(const double *a, const double *b, int dims) {
    double sum = 0;
    for (int i = 0; i < dims; i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sqrt(sum);
}

/* the turn to the nearest of a cube's four yaws */
static double turn_to(double yaw, double from) { return align(yaw, from) - cgs_wrap_turn(from); }

static void markov_act(cgs_policy *base, const cgs_env *e, double *action) {
    static const double spread[5] = {1, 1, 1, 3, 10};
    markov *m = (markov *)base;
    cgs_cube_view v;
    cgs_cube_measure(e, &v);
    bool placed = gap(v.block, v.goal, 3) <= AT_BLOCK;
    if ((placed && gap(v.hand, m->final, 3) <= BESIDE) || e->steps - m->begun >= PATIENCE)
        begin_subtask(m, e);

    /* where to go, how to turn, what the fingers do */
    const double *to = v.block;
    double lift = 0, height = 0, yaw = turn_to(v.block_yaw, v.hand_yaw), grip = 1;
    bool high = v.hand[2] > CLEAR, beside = gap(v.block, v.goal, 2) > BESIDE;
    if (!placed && gap(v.hand, v.block, 2) > BESIDE) {
        lift = ABOVE, grip = -1;
    } else if (!placed && gap(v.hand, v.block, 3) > AT_BLOCK) {
        grip = -1;
    } else if (!placed && v.contact <= 0.5) {
        grip = 1;
    } else if (!placed) {
        yaw = turn_to(v.goal_yaw, v.block_yaw);
        if (beside && !high)
            height = 2 * ABOVE;
        else
            to = v.goal, lift = beside ? ABOVE : 0;
    } else if (v.contact >= 0.1) {
        to = v.goal, yaw = turn_to(v.goal_yaw, v.block_yaw), grip = -1;
    } else {
        yaw = m->final_yaw - v.hand_yaw, grip = -1;
        if (high)
            to = m->final;
        else
            height = 2 * CLEAR;
    }

    double way[3] = {to[0] - v.hand[0], to[1] - v.hand[1], to[2] + lift - v.hand[2]};
    if (height > 0) way[2] = height - v.hand[2];
    double length = sqrt(way[0] * way[0] + way[1] * way[1] + way[2] * way[2]);
    double stretch = length > 1e-9 && length < REACH_MIN ? REACH_MIN / length : 1;
    for (int i = 0; i < 3; i++) action[i] = GAIN * stretch * way[i];
    action[3] = TURN_GAIN * yaw;
    action[4] = grip;
    for (int i = 0; i < 5; i++) {
        double a = clip(action[i], -1, 1) + m->noise * spread[i] * cgs_rng_normal(&base->rng);
        action[i] = clip(a, -1, 1);
    }
}

const cgs_policy_class cgs_policy_cube_markov = {
    .env = "cube",
    .name = "markov",
    .summary = "decides from the present state: above the cube, grasp, carry, release",
    .size = sizeof(markov),
    .begin = markov_begin,
    .act = markov_act,
};

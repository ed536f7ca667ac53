/* policy_weak.c - PushT's weak policy: random targets kept near the block. */
#include <math.h>

#include "env/policy.h"
#include "env/pusht.h"

static const double KEEP_NEAR = 100; /* of the block's origin, per axis */
enum { LENGTH = 100 };

static cgs_status begin(cgs_policy *p, cgs_env *e) { return cgs_env_reset(e, &p->start); }

static double clamp(double v, double lo, double hi) { return v < lo ? lo : v > hi ? hi : v; }

static void act(cgs_policy *p, const cgs_env *e, double *action) {
    for (int i = 0; i < 2; i++) {
        double agent = e->state[i], block = e->state[2 + i];
        double target = agent + PUSHT_ACTION_SCALE * cgs_rng_range(&p->rng, -1, 1);
        target = clamp(target, block - KEEP_NEAR, block + KEEP_NEAR);
        action[i] = clamp((target - agent) / PUSHT_ACTION_SCALE, -1, 1);
    }
}

static bool over(const cgs_policy *p, const cgs_env *e) {
    (void)p;
    return e->steps >= LENGTH;
}

const cgs_policy_class cgs_policy_pusht_weak = {
    .env = "pusht",
    .name = "weak",
    .summary = "random targets within 100 px of the block, 100 actions",
    .seeks_goal = true,
    .size = sizeof(cgs_policy),
    .begin = begin,
    .act = act,
    .over = over,
};

/* policy_reacher.c - uniform random torques without a goal.
 *
 * The environment stops in the middle of an action when its goal is reached; recorded motion must
 * not, so the goal is placed out of the wrist's reach. */
#include "env/policy.h"
#include "env/portable.h"

static cgs_status begin(cgs_policy *p, cgs_env *e) {
    CGS_TRY(cgs_env_reset(e, &p->start));
    const double nowhere[4] = {0, CGS_PI + 1, 0, 0};
    return cgs_env_set_goal(e, nowhere, 4);
}

static void act(cgs_policy *p, const cgs_env *e, double *action) {
    for (int i = 0; i < e->cls->action_dim; i++) action[i] = cgs_rng_range(&p->rng, -1, 1);
}

const cgs_policy_class cgs_policy_reacher_uniform = {
    .env = "reacher",
    .name = "uniform",
    .summary = "independent torques, uniform over the range, no goal",
    .size = sizeof(cgs_policy),
    .begin = begin,
    .act = act,
};

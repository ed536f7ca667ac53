/* policy.c - the registry of policies, and those for every environment: two random ones, and what
 * the environment's class brings. */
#include "env/policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "env/portable.h"

/* ---- random: uniform over the nominal range ------------------------------------- */

static cgs_status random_begin(cgs_policy *p, cgs_env *e) { return cgs_env_reset(e, &p->start); }

static void random_act(cgs_policy *p, const cgs_env *e, double *action) {
    double range = e->cls->action_range;
    for (int i = 0; i < e->cls->action_dim; i++) action[i] = cgs_rng_range(&p->rng, -range, range);
}

static const cgs_policy_class random_policy = {
    .name = "random",
    .summary = "independent actions, uniform over the nominal range",
    .size = sizeof(cgs_policy),
    .begin = random_begin,
    .act = random_act,
};

/* ---- held: actions that last ---------------------------------------------------- */

/* Independent actions hardly move what has inertia: their mean over some steps is near zero. */
enum { LONGEST = 10 };

typedef struct held {
    cgs_policy base;
    int left; /* steps for which the action stays */
    double action[CGS_ENV_MAX_DIM];
} held;

static cgs_status held_begin(cgs_policy *p, cgs_env *e) {
    ((held *)p)->left = 0;
    return cgs_env_reset(e, &p->start);
}

static void held_act(cgs_policy *p, const cgs_env *e, double *action) {
    held *h = (held *)p;
    if (h->left == 0) {
        h->left = 1 + (int)cgs_rng_below(&p->rng, LONGEST);
        random_act(p, e, h->action);
    }
    h->left--;
    memcpy(action, h->action, (size_t)e->cls->action_dim * sizeof *action);
}

static const cgs_policy_class held_policy = {
    .name = "held",
    .summary = "random actions, each held for 1 to 10 steps",
    .size = sizeof(held),
    .begin = held_begin,
    .act = held_act,
};

/* ---- own: what the environment's class brings ------------------------------------ */

static void own_act(cgs_policy *p, const cgs_env *e, double *action) {
    cgs_env_act(e, &p->rng, action);
}

static const cgs_policy_class own_policy = {
    .own = true,
    .name = "own",
    .summary = "the policy that comes with the environment",
    .size = sizeof(cgs_policy),
    .begin = random_begin,
    .act = own_act,
};

/* ---- registry ------------------------------------------------------------------- */

static const cgs_policy_class *const classes[] = {
    &cgs_policy_pusht_expert,
    &cgs_policy_pusht_weak,
    &cgs_policy_tworooms_expert,
    &cgs_policy_wall_walk,
#ifdef CGS_WITH_MUJOCO
    &cgs_policy_reacher_uniform,
    &cgs_policy_cube_plan,
    &cgs_policy_cube_markov,
#endif
    &own_policy,
    &random_policy,
    &held_policy,
};
enum { CLASS_COUNT = sizeof classes / sizeof classes[0] };

int cgs_policy_count(void) { return CLASS_COUNT; }
const cgs_policy_class *cgs_policy_at(int index) { return classes[index]; }

bool cgs_policy_fits(const cgs_policy_class *p, const cgs_env_class *env) {
    return p->own ? env->act != NULL : !p->env || !strcmp(p->env, env->id);
}

cgs_status cgs_policy_find(const char *env, const char *name, const cgs_policy_class **out) {
    char known[256] = "";
    const cgs_env_class *cls;
    CGS_TRY(cgs_env_find(env, &cls));
    if (!name && cgs_env_is_added(cls)) name = cls->act ? own_policy.name : held_policy.name;
    for (int i = 0; i < CLASS_COUNT; i++) {
        const cgs_policy_class *c = classes[i];
        if (!cgs_policy_fits(c, cls)) continue;
        if (!name || !strcmp(c->name, name)) {
            *out = c;
            return CGS_OK;
        }
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", c->name);
    }
    return cgs_fail(CGS_EARG, "%s has no policy \"%.80s\"; it has %s", env, name, known);
}

cgs_status cgs_policy_create(cgs_policy **out, const cgs_policy_class *cls) {
    *out = calloc(1, cls->size);
    if (!*out) return cgs_fail(CGS_ENOMEM, "no memory for policy %s", cls->name);
    (*out)->cls = cls;
    return CGS_OK;
}

void cgs_policy_destroy(cgs_policy *p) { free(p); }

cgs_status cgs_policy_begin(cgs_policy *p, cgs_env *e, uint64_t seed, uint64_t episode) {
    p->start = cgs_rng_stream(seed, CGS_STREAM_ENV, episode);
    p->rng = cgs_rng_stream(seed, CGS_STREAM_POLICY, episode);
    return p->cls->begin(p, e);
}

void cgs_policy_act(cgs_policy *p, cgs_env *e) {
    p->cls->act(p, e, e->action);
    /* datasets store float32: the stored action must be the executed one */
    for (int i = 0; i < e->cls->action_dim; i++) e->action[i] = cgs_round_f32(e->action[i]);
}

bool cgs_policy_over(const cgs_policy *p, const cgs_env *e) {
    if (*e->done || e->steps >= e->cls->limit) return true;
    if (p->cls->seeks_goal && e->steps > 0 && *e->success) return true;
    return p->cls->over && p->cls->over(p, e);
}

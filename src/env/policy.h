/* policy.h - behaviour policies for data collection, by name.
 *
 * A policy starts the episode (it may choose start and goal), gives actions, and says when the
 * episode is over.  Everything random comes from two streams of (seed, episode): ENV for start and
 * goal, POLICY for actions; so an episode depends only on these. */
#ifndef CGS_ENV_POLICY_H
#define CGS_ENV_POLICY_H

#include "env/env.h"

typedef struct cgs_policy cgs_policy;

typedef struct cgs_policy_class {
    const char *env; /* environment id, or NULL: any */
    bool own;        /* only of environments whose class has a policy */
    const char *name, *summary;
    bool seeks_goal; /* moves to the environment's goal and stops there */
    size_t size;     /* sizeof the concrete struct */
    cgs_status (*begin)(cgs_policy *p, cgs_env *e);
    void (*act)(cgs_policy *p, const cgs_env *e, double *action); /* (action_dim) */
    bool (*over)(const cgs_policy *p, const cgs_env *e);          /* after a step */
} cgs_policy_class;

struct cgs_policy {
    const cgs_policy_class *cls;
    cgs_rng start, rng; /* streams ENV and POLICY of the episode */
};

int cgs_policy_count(void);
const cgs_policy_class *cgs_policy_at(int index);
bool cgs_policy_fits(const cgs_policy_class *p, const cgs_env_class *env);
/* name NULL: the first policy listed for the environment; of one that was added its own, or random
 * actions that are held.  CGS_EARG lists the known names. */
cgs_status cgs_policy_find(const char *env, const char *name, const cgs_policy_class **out);

cgs_status cgs_policy_create(cgs_policy **out, const cgs_policy_class *cls);
void cgs_policy_destroy(cgs_policy *p);

cgs_status cgs_policy_begin(cgs_policy *p, cgs_env *e, uint64_t seed, uint64_t episode);
/* Writes e->action, in float32 values. */
void cgs_policy_act(cgs_policy *p, cgs_env *e);
/* True when the episode is over: the policy says so, the environment ended it, or it
 * reached the environment's limit. */
bool cgs_policy_over(const cgs_policy *p, const cgs_env *e);

extern const cgs_policy_class cgs_policy_pusht_expert, cgs_policy_pusht_weak,
    cgs_policy_tworooms_expert, cgs_policy_wall_walk, cgs_policy_reacher_uniform,
    cgs_policy_cube_plan, cgs_policy_cube_markov;

#endif /* CGS_ENV_POLICY_H */

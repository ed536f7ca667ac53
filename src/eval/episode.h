/* episode.h - the closed loop: observe, plan, execute some action blocks, observe again.
 *
 * A loop runs a batch of episodes: their environments step in parallel and one
 * solve plans for all that have not reached their goal.  An episode's result depends on its
 * start state, its id and the settings, not on its neighbours (docs/numerics.md).
 *
 *   cgs_loop_create    planner, tapes, environments
 *   cgs_loop_run       start states -> outcomes
 *   cgs_loop_destroy
 *
 * What the planner sees (history):
 *   native    only the present frame
 *   dataset   the frames recorded before the start, later those that the loop saw
 *   online    only the start, later the frames that the loop saw
 * Frames of a history are one model step apart, the newest last; between them lie the executed
 * action blocks. */
#ifndef CGS_EVAL_EPISODE_H
#define CGS_EVAL_EPISODE_H

#include "eval/start_states.h"
#include "model/prior.h"
#include "plan/planner.h"

typedef enum cgs_history {
    CGS_HISTORY_NATIVE,
    CGS_HISTORY_DATASET,
    CGS_HISTORY_ONLINE
} cgs_history;
cgs_status cgs_history_parse(cgs_history *h, const char *name);
const char *cgs_history_name(cgs_history h);

/* When the success predicate counts.  The paper judges LeWM after every action; the planners that
 * DINO-WM is compared with judge the state that an executed plan leaves behind. */
typedef enum cgs_success_rule {
    CGS_SUCCESS_ANY,   /* after every action */
    CGS_SUCCESS_SOLVE, /* after the last action executed of a plan, and at the end of the budget */
    CGS_SUCCESS_END    /* at the end of the budget */
} cgs_success_rule;
cgs_status cgs_success_parse(cgs_success_rule *r, const char *name);
const char *cgs_success_name(cgs_success_rule r);
/* The default: solve for DINO-WM, any for LeWM. */
cgs_success_rule cgs_success_of(const cgs_loaded_model *s);

/* Observer callbacks; any may be NULL. */
typedef struct cgs_loop_observer {
    /* after a solve: its problem and result; active (E) names the episodes of the batch */
    void (*solved)(void *user, const cgs_plan_problem *q, const cgs_plan_result *r,
                   const int *active);
    /* after the start (step 0) and every action, of the whole batch */
    cgs_status (*stepped)(void *user, const cgs_env_batch *envs, int step);
    bool (*stop)(void *user); /* asked between batches: true ends with CGS_ESTOPPED */
    void (*progress)(void *user, int episodes); /* progress so far */
    void *user;
} cgs_loop_observer;

typedef struct cgs_loop_config {
    cgs_model *model;
    cgs_encoder *encoder;
    cgs_prior *prior; /* for the planners that need one */
    const cgs_env_class *env;
    cgs_action_scale scale;
    cgs_proprio_scale proprio; /* where the model has it as an input */
    cgs_plan_config plan;      /* A is set from the model */
    cgs_history history;
    cgs_success_rule success;
    cgs_judge judge; /* whose predicate */
    cgs_dtype act;
    int budget;                /* largest number of actions per episode */
    int execute;               /* action blocks of a plan to execute before replanning; 0: all */
    int batch;                 /* episodes planned at once */
    int declared;              /* episodes that rollouts are declared for; 0: batch */
    const cgs_env_batch *envs; /* that many environments, borrowed; NULL: the loop makes its own,
                                  which takes longer than a short search (Cube: 30 ms each) */
    cgs_loop_observer watch;
} cgs_loop_config;

typedef struct cgs_loop cgs_loop;

/* Everything in the configuration is borrowed except settings. */
cgs_status cgs_loop_create(cgs_loop **out, const cgs_loop_config *c);
void cgs_loop_destroy(cgs_loop *l);

/* Context frames that a start state needs: the model's history for `dataset`, otherwise 1. */
int cgs_history_context(cgs_history h, const cgs_model *m);

/* outcome: (count) */
cgs_status cgs_loop_run(cgs_loop *l, const cgs_start_states *cases, cgs_outcome *outcome);

#endif /* CGS_EVAL_EPISODE_H */

/* start_states.h - the start states of evaluation episodes: state, context and goal.  Read and
 * encoded once per model and list of starts, then used by every planner.
 *
 * The first solve sees the recorded frame instead of a rendered one, as in the published protocol;
 * the goal image is the recorded one too (recorded_image.h: where a dataset has none). */
#ifndef CGS_EVAL_START_STATES_H
#define CGS_EVAL_START_STATES_H

#include "data/dataset.h"
#include "env/env.h"
#include "eval/starts.h"
#include "rollout/loaded_model.h"

typedef struct cgs_start_states {
    int count, context; /* C */
    int state_dim, D, A;
    double *state, *goal_state; /* (count, state_dim) */
    float *z;                   /* (count, C, D) recorded frames, the start last */
    float *past;                /* (count, C - 1, A) standardised blocks between them */
    float *goal;                /* (count, D) */
    uint64_t *seed, *id;        /* (count) identify their noise; NULL: plan.seed, and 0, 1, ... */
} cgs_start_states;

/* The column that holds the environment's whole state, or an error that names the file. */
cgs_status cgs_state_column(const cgs_source *s, const cgs_env_class *env, const char **name);

/* context: 1, or the frames of the dataset-initialised protocol: frameskip rows apart, copies of
 * the episode's first frame before it, actions before it zero as recorded.  proprio may be NULL
 * where the model needs none.  env NULL: no states are read (state_dim 0), and no episode can be
 * played.  Free with cgs_start_states_free, also after a failure. */
cgs_status cgs_start_states_build(cgs_start_states *c, cgs_dataset *data, const cgs_env_class *env,
                                  const cgs_starts *starts, cgs_encoder *encoder,
                                  const cgs_model *m, const cgs_action_scale *scale,
                                  const cgs_proprio_scale *proprio, int context);
void cgs_start_states_free(cgs_start_states *c);

/* Appends the start states of one list to those of others (all zero at first), so that they can be
 * planned together.  Each keeps the noise that it would have alone under its list's seed. */
cgs_status cgs_start_states_append(cgs_start_states *all, const cgs_start_states *list,
                                   uint64_t seed);

#endif /* CGS_EVAL_START_STATES_H */

/* cases.h - evaluation episodes before anybody plans: where they start, what they see, where
 * they should go.  Read and encoded once for a model and a list of starts, then used by every
 * planner.
 *
 * The first solve sees the recorded frame, not a rendered one, as the published protocol has
 * it; the goal picture is the recorded one too (picture.h says what happens where a dataset
 * has none). */
#ifndef CGS_EVAL_CASES_H
#define CGS_EVAL_CASES_H

#include "data/dataset.h"
#include "env/env.h"
#include "eval/starts.h"
#include "eval/world.h"

/* How primitive actions are standardised: (a - mean) / std for each channel. */
typedef struct cgs_action_scale {
    int dim, frameskip;
    const double *mean, *std; /* (dim) */
} cgs_action_scale;

/* The same for proprioception, and the column it is read from. */
typedef struct cgs_proprio_scale {
    int dim; /* 0: none */
    const char *column;
    const double *mean, *std; /* (dim) */
} cgs_proprio_scale;

typedef struct cgs_cases {
    int count, context; /* C */
    int state_dim, D, A;
    double *state, *goal_state; /* (count, state_dim) */
    float *z;                   /* (count, C, D) recorded frames, the start last */
    float *past;                /* (count, C - 1, A) standardised blocks between them */
    float *goal;                /* (count, D) */
    uint64_t *seed, *id;        /* (count) that name their noise; NULL: plan.seed, and 0, 1, ... */
} cgs_cases;

/* The column that holds the environment's whole state, or an error that names the file. */
cgs_status cgs_state_column(const cgs_source *s, const cgs_env_class *env, const char **name);

/* context: 1, or the frames of the dataset-initialised protocol: frameskip rows apart, copies
 * of the episode's first frame before it, actions before it zero as recorded.  proprio may be
 * NULL where the model wants none.  Free with cgs_cases_free, also after a failure. */
cgs_status cgs_cases_build(cgs_cases *c, cgs_dataset *data, const cgs_env_class *env,
                           const cgs_starts *starts, cgs_encoder *encoder, const cgs_model *m,
                           const cgs_action_scale *scale, const cgs_proprio_scale *proprio,
                           int context);
void cgs_cases_free(cgs_cases *c);

/* Puts the cases of one list behind those of others (all zero at first), so that they can be
 * planned for together.  Each keeps the noise that it would have alone under its list's seed. */
cgs_status cgs_cases_join(cgs_cases *all, const cgs_cases *list, uint64_t seed);

#endif /* CGS_EVAL_CASES_H */

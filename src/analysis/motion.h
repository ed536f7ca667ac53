/* motion.h - the data of probes: recorded action blocks, the physical state before each, and the
 * change of the environment's physical quantities over it.
 *
 * Episodes are drawn with NumPy's default_rng(20260814).permutation over all episodes of the
 * file; the first 70 % of those used are fitted, the next 10 % validate, the rest are scored
 * (140, 20 and 40 of 200).  Inside an episode only every frameskip-th row counts. */
#ifndef CGS_ANALYSIS_MOTION_H
#define CGS_ANALYSIS_MOTION_H

#include "analysis/columns.h"
#include "analysis/ridge.h"
#include "data/dataset.h"
#include "env/env.h"

#define CGS_PROBE_SPLIT_SEED 20260814u

enum { CGS_MAX_TARGETS = 16 };

/* a physical quantity: some neighbouring features */
typedef struct cgs_target {
    char name[CGS_COLUMN_NAME];
    int first, count;
} cgs_target;

typedef struct cgs_motion {
    const cgs_env_class *env; /* NULL: features are columns of the data */
    const char *world;        /* its id, or "" */
    cgs_numeric numeric;      /* these columns */
    int frameskip;
    int A, S, F; /* widths of an action block, of a state as probes see it, of all features */
    int targets;
    cgs_target target[CGS_MAX_TARGETS];
    int episodes;
    int *episode; /* (episodes) those used, in the order of the parts */
    int *blocks;  /* (episodes) transitions of each; it has one frame more */
    cgs_parts parts;
    double *action; /* (rows, A) as recorded */
    double *state;  /* (rows, S) before the block */
    double *change; /* (rows, F); differences of angles lie in (-pi, pi] */
} cgs_motion;

int cgs_env_targets(const cgs_env_class *env, cgs_target target[CGS_MAX_TARGETS]);
/* A state (state_dim) as probes see it: writes out (at most state_dim + 1 numbers) and returns how
 * many.  PushT: the poses of agent and block, the block's angle as sine and cosine; elsewhere the
 * whole state.  state NULL: only counts. */
int cgs_env_condition(const cgs_env_class *env, const double *state, double *out);

/* episodes: how many to use; fewer in the file, or too few for the three parts, is an error. */
cgs_status cgs_motion_read(cgs_motion *m, cgs_dataset *data, const cgs_env_class *env,
                           int frameskip, int episodes);
/* The same of columns of the data instead of an environment's features, only (count) or all of
 * numbers (NULL).  The state that probes see is all of them. */
cgs_status cgs_motion_read_columns(cgs_motion *m, cgs_dataset *data, const char *const *only,
                                   int count, int frameskip, int episodes);
/* Whether a target's changes are finite and differ, in what is fitted and in what is scored. */
bool cgs_motion_varies(const cgs_motion *m, int target);
void cgs_motion_free(cgs_motion *m);

/* Rows first .. first+count-1 of the environment's whole state: out (count, state_dim).  Files that
 * store it as qpos and qvel are supported. */
cgs_status cgs_read_states(cgs_dataset *data, const cgs_env_class *env, int64_t first, int count,
                           double *out);

#endif /* CGS_ANALYSIS_MOTION_H */

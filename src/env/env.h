/* env.h - environments: plain structs with a class table, single or in a batch.
 *
 * A concrete environment is a struct whose first member is cgs_env.  Its inputs and outputs are in
 * rows that it does not own: a batch keeps one contiguous (N, ...) array per field and points every
 * environment at its row; a single environment gets its own row.  States and actions are double:
 * the physics of PushT needs it, and a float32 environment (TwoRooms) rounds on entry.
 *
 * Order of calls: create; then either reset (a random start and goal) or start (a given state) and
 * set_goal; then step until *done; render and read at any time; destroy.
 *
 * Rendering depends only on the state (and, for PushT, on the contacts of the last substep), never
 * on the machine: same state, same bytes.
 *
 * Bad input: a state or goal of the wrong size or with a component that is not finite or absurdly
 * large is refused with a sentence and changes nothing.  Such an action ends the episode: *done is
 * set and the state stays what it was.  Success does not end the episode; a protocol that stops
 * there sets *done itself. */
#ifndef CGS_ENV_ENV_H
#define CGS_ENV_ENV_H

#include <stdbool.h>
#include <stdint.h>

#include "core/rng.h"
#include "core/status.h"

#define CGS_ENV_MAX_DIM 64 /* longest state, action, column or probe vector */
#define CGS_ENV_MAX_SIDE 2048

typedef struct cgs_env cgs_env;

/* One column of a dataset row beside pixels, action and state. */
typedef struct cgs_env_column {
    const char *name;
    int dim;
    bool whole; /* whole numbers, stored as int32 instead of float32 */
} cgs_env_column;

/* One physical feature for probes.  Features of one target share its name. */
typedef struct cgs_env_feature {
    const char *target;
    bool angle; /* differences are wrapped to (-pi, pi] */
} cgs_env_feature;

/* Who judges whether a goal is reached: the published predicate, the same with half its
 * tolerances, or one that asks for more (docs/planning.md). */
typedef enum cgs_judge {
    CGS_JUDGE_OFFICIAL,
    CGS_JUDGE_MODERATE,
    CGS_JUDGE_STRICT,
    CGS_JUDGES
} cgs_judge;
cgs_status cgs_judge_parse(cgs_judge *j, const char *name);
const char *cgs_judge_name(cgs_judge j);

/* A success predicate. */
typedef struct cgs_env_predicate {
    const char *sentence;
    double distance;  /* how far from the goal, in the environment's unit             */
    double angle;     /* how far turned from it, in radians; 0: angles do not count   */
    bool object_only; /* of the agent and the object that it moves, only the object counts */
} cgs_env_predicate;

typedef struct cgs_env_class {
    const char *id;
    int version; /* increases whenever the same state and action could give another result */
    const char *summary;                     /* one line */
    cgs_env_predicate predicate[CGS_JUDGES]; /* of success */
    int state_dim, action_dim;
    int native;          /* side in pixels of the images that upstream feeds to a model */
    int limit;           /* actions in a collected episode, at most */
    double action_range; /* a component nominally lies in [-range, range]; nothing is clipped */

    const cgs_env_column *columns; /* (column_count) */
    int column_count;
    const cgs_env_feature *features; /* (feature_count) */
    int feature_count;

    size_t size; /* sizeof the concrete struct */

    /* Loads the physical model from a file instead; NULL: not supported. */
    cgs_status (*use_model)(const char *path);

    /* Builds the members of the zeroed struct, and frees them. */
    cgs_status (*open)(cgs_env *e);
    void (*close)(cgs_env *e);

    /* A new simulation in its construction pose, without memory of earlier contacts. */
    cgs_status (*restart)(cgs_env *e);
    /* A new simulation with a random start and goal. */
    cgs_status (*reset)(cgs_env *e, cgs_rng *rng);
    /* Moves the running simulation to a state, with upstream's side effects. */
    cgs_status (*set_state)(cgs_env *e, const double *state);
    /* Refuses an impossible goal; NULL: every finite goal is possible. */
    cgs_status (*check_goal)(const cgs_env *e, const double *goal);
    /* Applies one action; false when the simulation left its representable range. */
    bool (*step)(cgs_env *e, const double *action);
    void (*get_state)(const cgs_env *e, double *state); /* (state_dim) */
    /* by a predicate of the class */
    bool (*reached)(const cgs_env_predicate *p, const double *state, const double *goal);
    cgs_status (*render)(cgs_env *e, int side, uint8_t *rgb); /* (side, side, 3) */
    void (*column)(const cgs_env *e, int index, double *out); /* (columns[index].dim) */
    void (*probe_state)(const double *state, double *out);    /* (feature_count) */
} cgs_env_class;

struct cgs_env {
    const cgs_env_class *cls;
    /* borrowed rows */
    double *state;    /* (state_dim) out: after reset, start, set_state and step */
    double *goal;     /* (state_dim) out: what success is measured against        */
    double *action;   /* (action_dim) in                                          */
    uint8_t *done;    /* in and out: 1 freezes the environment until the next start */
    uint8_t *success; /* out: 1 when the predicate holds in the present state     */
    int steps;        /* actions applied since the last start                     */
    bool sought;      /* there is a goal, which may end an action early: not after start alone */
    cgs_judge judge;  /* whose predicate counts; the published one unless it is set */
    bool owns_rows;
};

/* ---- registry ------------------------------------------------------------------- */
int cgs_env_count(void);
const cgs_env_class *cgs_env_at(int index);
/* CGS_EARG names the id and lists the known ones. */
cgs_status cgs_env_find(const char *id, const cgs_env_class **out);

/* Replaces the environment's physical model by the one in the file (MuJoCo's XML, with the same
 * numbers of coordinates and actuators).  To be called before its first use in the process. */
cgs_status cgs_env_use_model(const char *id, const char *path);

/* ---- one environment ------------------------------------------------------------ */
cgs_status cgs_env_create(cgs_env **out, const cgs_env_class *cls);
void cgs_env_destroy(cgs_env *e);

cgs_status cgs_env_reset(cgs_env *e, cgs_rng *rng);
/* A new simulation put into `state` (dim numbers): restart, then set_state twice, as upstream's
 * reset does when start and goal agree.  Success is measured against the state until set_goal, but
 * no action ends early for it. */
cgs_status cgs_env_start(cgs_env *e, const double *state, int dim);
/* One set_state on the running simulation, with its side effects. */
cgs_status cgs_env_set_state(cgs_env *e, const double *state, int dim);
cgs_status cgs_env_set_goal(cgs_env *e, const double *goal, int dim);
/* Reads e->action; writes state, success and, after an impossible action, done. */
void cgs_env_step(cgs_env *e);
/* Is `state` a success for `goal`?  Both (state_dim). */
bool cgs_env_reached(const cgs_env *e, const double *state, const double *goal);
bool cgs_env_judged(const cgs_env_class *cls, cgs_judge judge, const double *state,
                    const double *goal);
/* May an action end early because the goal is reached?  The strict judge looks at the end only. */
bool cgs_env_ends_early(const cgs_env *e);
/* rgb: (side, side, 3).  8 <= side <= CGS_ENV_MAX_SIDE. */
cgs_status cgs_env_render(cgs_env *e, int side, uint8_t *rgb);

/* ---- a batch -------------------------------------------------------------------- */
/* N environments of one class over contiguous buffers.  Every call runs on threads (core/team.h);
 * results do not depend on their number. */
typedef struct cgs_env_batch {
    const cgs_env_class *cls;
    int count;        /* N */
    cgs_env **env;    /* (N) */
    double *state;    /* (N, state_dim)  */
    double *goal;     /* (N, state_dim)  */
    double *action;   /* (N, action_dim) */
    uint8_t *done;    /* (N) */
    uint8_t *success; /* (N) */
} cgs_env_batch;

cgs_status cgs_env_batch_create(cgs_env_batch *b, const cgs_env_class *cls, int count);
void cgs_env_batch_destroy(cgs_env_batch *b);
/* Before the next start. */
void cgs_env_batch_judge(const cgs_env_batch *b, cgs_judge judge);
/* Environment i draws from stream (seed, ENV, first + i). */
cgs_status cgs_env_batch_reset(cgs_env_batch *b, uint64_t seed, uint64_t first);
/* states, goals: (N, state_dim); goals may be NULL. */
cgs_status cgs_env_batch_start(cgs_env_batch *b, const double *states, const double *goals);
void cgs_env_batch_step(cgs_env_batch *b);
/* The environments which[0 .. n-1], or the first n where which is NULL: rgb (n, side, side, 3). */
cgs_status cgs_env_batch_render(cgs_env_batch *b, const int *which, int n, int side, uint8_t *rgb);

/* ---- concrete classes ----------------------------------------------------------- */
extern const cgs_env_class cgs_pusht_class, cgs_tworooms_class, cgs_wall_class;
/* only in builds with MuJoCo */
extern const cgs_env_class cgs_reacher_class, cgs_cube_class, cgs_umaze_class, cgs_medium_class;

#endif /* CGS_ENV_ENV_H */

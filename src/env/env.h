/* env.h - environments: the public table (cgs/env.h) run by the host, single or in a batch.
 *
 * A cgs_env is a world of a class and the rows that it reads and writes, which it does not own: a
 * batch keeps one contiguous (N, ...) array per field and points every environment at its row; a
 * single environment gets its own row.  States and actions are double: the physics of PushT needs
 * it, and a float32 environment (TwoRooms) rounds on entry.
 *
 * Order of calls: create; then either reset (a random start and goal) or start (a given state) and
 * set_goal; then step until *done; render and read at any time; destroy.
 *
 * Rendering depends only on the state (and, for PushT, on the contacts of the last substep), never
 * on the machine: same state, same bytes.
 *
 * Bad input: a state or goal of the wrong size or with a component that is not finite or absurdly
 * large is refused with a sentence and changes nothing.  Such an action ends the episode: *done is
 * set and the state stays what it was.  So does an environment that gives such a state.  Success
 * does not end the episode; a protocol that stops there sets *done itself. */
#ifndef CGS_ENV_ENV_H
#define CGS_ENV_ENV_H

#include <stdbool.h>
#include <stdint.h>

#include "cgs/env.h"
#include "core/rng.h"
#include "core/status.h"

typedef struct cgs_env cgs_env;

cgs_status cgs_judge_parse(cgs_judge *j, const char *name);
const char *cgs_judge_name(cgs_judge j);

struct cgs_env {
    const cgs_env_class *cls;
    void *world; /* (cls->size) */
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
/* Those of the library first, then those that were added. */
int cgs_env_count(void);
const cgs_env_class *cgs_env_at(int index);
/* CGS_EARG names the id and lists the known ones. */
cgs_status cgs_env_find(const char *id, const cgs_env_class **out);

/* What identifies an environment's code beside its id and version: a plug-in's file name and the
 * SHA-256 of its bytes in hexadecimal; empty for all others. */
#define CGS_ENV_FILE "env_file" /* their names in datasets and results */
#define CGS_ENV_SHA256 "env_sha256"
typedef struct cgs_env_origin {
    char file[128], sha256[65];
} cgs_env_origin;
cgs_env_origin cgs_env_origin_of(const cgs_env_class *cls);
bool cgs_env_is_added(const cgs_env_class *cls); /* it is not one of the library's */
/* Registers a copy of a tested table; CGS_EARG when its id is taken. */
cgs_status cgs_env_register(const cgs_env_class *table, const cgs_env_origin *origin);
/* Is there a protocol of that judge?  CGS_EARG says that there is not. */
cgs_status cgs_env_has_judge(const cgs_env_class *cls, cgs_judge judge);
/* CGS_EARG says what it cannot do that planning needs: draw itself, be set to a state. */
cgs_status cgs_env_can_plan(const cgs_env_class *cls);

/* What a function of a class returned, as a status of this library with its sentence. */
cgs_status cgs_env_heard(const cgs_env_class *cls, const char *what, cgs_status status,
                         char *error);

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
/* The numbers of a column of the present row: out (columns[index].dim). */
void cgs_env_read_column(const cgs_env *e, int index, double *out);
/* What the policy of a class that has one does next: action (action_dim). */
void cgs_env_act(const cgs_env *e, cgs_rng *rng, double *action);
/* Is `state` a success for `goal`?  Both (state_dim). */
bool cgs_env_reached(const cgs_env *e, const double *state, const double *goal);
bool cgs_env_judged(const cgs_env_class *cls, cgs_judge judge, const double *state,
                    const double *goal);
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

/* ---- physical features ---------------------------------------------------------- */
/* Those of a class without any are the components of its state, in one target, "state". */
int cgs_env_feature_count(const cgs_env_class *cls);
cgs_env_feature cgs_env_feature_at(const cgs_env_class *cls, int index);
void cgs_env_features(const cgs_env_class *cls, const double *state, double *out);

/* ---- concrete classes ----------------------------------------------------------- */
/* what all of them begin with */
#define CGS_ENV_OURS                                                                               \
    .abi_version = CGS_ENV_ABI, .struct_size = sizeof(cgs_env_class),                              \
    .can = CGS_ENV_RENDER | CGS_ENV_SET_STATE | CGS_ENV_BATCH | CGS_ENV_DETERMINISTIC

extern const cgs_env_class cgs_pusht_class, cgs_tworooms_class, cgs_wall_class;
/* only in builds with MuJoCo */
extern const cgs_env_class cgs_reacher_class, cgs_cube_class, cgs_umaze_class, cgs_medium_class;

/* For their functions.  The random source of a reset, as a stream. */
cgs_rng *cgs_env_rng(const cgs_env_random *random);
/* Writes the sentence and returns the status. */
__attribute__((format(printf, 3, 4))) cgs_status cgs_env_refuse(char *error, cgs_status status,
                                                                const char *format, ...);
/* The same with the sentence that cgs_fail was given, after a call that returned `status`. */
cgs_status cgs_env_said(char *error, cgs_status status);

#endif /* CGS_ENV_ENV_H */

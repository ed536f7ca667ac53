/* env.h - environments of your own: the table that a simulator fills in.
 *
 * The environments of this library are such tables, and so is a plug-in's: a shared library with
 * one exported symbol, `cgs_plug_in`, of type cgs_env_class.  It needs this header alone and
 * links nothing of this library:
 *
 *   gcc -shared -fPIC -I/usr/include -o libmine.so MINE.c -lm
 *   cgs collect --env ./libmine.so --out mine.h5
 *
 * A program that links this library registers the same table with cgs_env_add.
 *
 * A world is one running simulation.  The host owns its memory (`size` zeroed bytes, aligned as
 * malloc does) and every buffer that a function is given; nothing is kept beyond a call.  Order of
 * calls: open; then either reset (a random start and goal), or restart and set_state (a given
 * start); then step; get_state, render and column at any time; close.
 *
 * Functions that can fail return CGS_OK, or another status with one sentence in `error`, a buffer
 * of CGS_ENV_ERROR bytes.  They neither exit nor print.
 *
 * Different worlds are independent of each other.  With CGS_ENV_BATCH they are used from several
 * threads at once; without it the host makes one call at a time.  One world is never used by two
 * threads at once. */
#ifndef CGS_ENV_H
#define CGS_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cgs/cgs.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CGS_ENV_ABI 1      /* the version of this table */
#define CGS_ENV_ERROR 512  /* bytes of a sentence, with its end */
#define CGS_ENV_MAX_DIM 64 /* longest state, action, column or vector of features */
#define CGS_ENV_MAX_SIDE 2048

/* What an environment can do. */
enum {
    CGS_ENV_RENDER = 1,       /* draws itself; needed for images, so for collecting and planning */
    CGS_ENV_SET_STATE = 2,    /* can be put into any state that it was in; needed for planning  */
    CGS_ENV_BATCH = 4,        /* several worlds may be used from several threads at once        */
    CGS_ENV_DETERMINISTIC = 8 /* the same random numbers and actions give the same bits         */
};

/* One column of a dataset row beside pixels, action and state. */
typedef struct cgs_env_column {
    const char *name;
    int dim;
    bool whole; /* whole numbers, stored as int32 instead of float32 */
} cgs_env_column;

/* One physical feature for probes.  Neighbours with one target's name belong together. */
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

/* A success predicate.  Of another than the official one the sentence may be NULL: there is no such
 * protocol. */
typedef struct cgs_env_predicate {
    const char *sentence;
    double distance;  /* how far from the goal, in the environment's unit             */
    double angle;     /* how far turned from it, in radians; 0: angles do not count   */
    bool object_only; /* of the agent and the object that it moves, only the object counts */
} cgs_env_predicate;

/* What may end an action early. */
typedef struct cgs_env_aim {
    const cgs_env_predicate *by;
    const double *goal; /* (state_dim) */
} cgs_env_aim;

/* Random numbers of the host: its draws are the same on every machine. */
typedef struct cgs_env_random {
    uint64_t seed; /* for a generator of your own; another one in every episode */
    void *stream;  /* the host's */
    double (*uniform)(struct cgs_env_random *r); /* in (0, 1)                */
    double (*normal)(struct cgs_env_random *r);  /* mean 0, deviation 1      */
} cgs_env_random;

/* Functions without "may be NULL" are required, of those with a capability's name if it is set. */
typedef struct cgs_env_class {
    uint32_t abi_version; /* CGS_ENV_ABI */
    uint32_t struct_size; /* sizeof(cgs_env_class) */
    const char *id;       /* lower-case letters, digits, "-" and "_" */
    int version; /* 1 or more; increases whenever a state and an action could give another result */
    unsigned can;                            /* CGS_ENV_RENDER | ... */
    const char *summary;                     /* one line */
    cgs_env_predicate predicate[CGS_JUDGES]; /* of success */
    int state_dim, action_dim;
    int native;          /* side in pixels of images, where nobody asks for another */
    int limit;           /* actions in a collected episode, at most */
    double action_range; /* a component nominally lies in [-range, range]; nothing is clipped */

    const cgs_env_column *columns; /* (column_count) may be NULL */
    int column_count;
    const cgs_env_feature *features; /* (feature_count) may be NULL: the state's components */
    int feature_count;

    size_t size; /* bytes of a world */

    /* Loads the physical model from a file instead (--model-xml).  May be NULL. */
    cgs_status (*use_model)(const char *path, char *error);

    /* Builds what a zeroed world points to, and frees it.  Either may be NULL. */
    cgs_status (*open)(void *world, char *error);
    void (*close)(void *world);

    /* A new simulation in its construction pose, without memory of what was before.  May be NULL:
     * set_state says everything. */
    cgs_status (*restart)(void *world, char *error);
    /* A new simulation with a random start; writes a random goal (state_dim). */
    cgs_status (*reset)(void *world, cgs_env_random *random, double *goal, char *error);
    /* CGS_ENV_SET_STATE: moves the running simulation to a state. */
    cgs_status (*set_state)(void *world, const double *state, char *error);
    /* Refuses an impossible goal.  May be NULL: every finite goal is possible. */
    cgs_status (*check_goal)(const void *world, const double *goal, char *error);
    /* Applies one action; false when the simulation cannot go on, which ends the episode.  aim may
     * be NULL; otherwise an action of several parts may end after the one that reaches it. */
    bool (*step)(void *world, const double *action, const cgs_env_aim *aim);
    void (*get_state)(const void *world, double *state); /* (state_dim) */
    /* Does `state` satisfy the predicate for the goal?  May be NULL: the states are closer than
     * its distance. */
    bool (*reached)(const cgs_env_predicate *by, const double *state, const double *goal);
    /* CGS_ENV_RENDER: draws the present state, rgb (side, side, 3), from the top; 8 <= side <=
     * CGS_ENV_MAX_SIDE. */
    cgs_status (*render)(void *world, int side, uint8_t *rgb, char *error);
    /* A column's numbers (dim).  Required where there are columns. */
    void (*column)(const void *world, const double *state, const double *goal, int index,
                   double *out);
    /* A state's features (feature_count).  Required where there are features. */
    void (*probe_state)(const double *state, double *out);
    /* A policy for collecting data: writes action (action_dim).  step: 0 after a start.  May be
     * NULL: random actions that are held for some steps. */
    void (*act)(void *world, const double *state, const double *goal, int step,
                cgs_env_random *random, double *action);
} cgs_env_class;

/* What a plug-in exports, whatever it hides besides. */
#ifdef __GNUC__
__attribute__((visibility("default")))
#endif
extern const cgs_env_class cgs_plug_in;

/* Registers a table for cgs_sim_create and everything else that takes an environment's id, after a
 * test of it: sizes, finite numbers, two starts with one seed alike, set_state then the state, and
 * that nothing is written outside its buffers.  The test runs in a child process, so that a crash
 * in it is a sentence too. */
cgs_status cgs_env_add(const cgs_env_class *table);
/* The same for the table of a shared library, which stays loaded; path: with a slash, nothing is
 * searched for.  *id (may be NULL) receives the environment's id. */
cgs_status cgs_env_load(const char *path, const char **id);

#ifdef __cplusplus
}
#endif
#endif /* CGS_ENV_H */

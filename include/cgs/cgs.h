/* cgs.h - public C API of cgs: latent world models that are easy to plan with.
 *
 * Everything a program may rely on is declared here; anything else can change.
 *
 * Ownership: a *_create call hands the object to the caller; the matching
 * *_destroy takes it back and accepts NULL.  Pointers returned by getters are
 * borrowed and live as long as the object they came from.
 *
 * Errors: functions that can fail return cgs_status.  cgs_last_error() holds one
 * sentence for the calling thread, until its next failing call.
 *
 * Threads: two objects may be used from two threads; one object may not. */
#ifndef CGS_CGS_H
#define CGS_CGS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CGS_VERSION_MAJOR 0
#define CGS_VERSION_MINOR 1
#define CGS_VERSION_PATCH 0
#define CGS_VERSION "0.1.0"

typedef enum cgs_status {
    CGS_OK = 0,
    CGS_EARG,     /* the caller passed something impossible              */
    CGS_ENOMEM,   /* host or device memory ran out                       */
    CGS_EIO,      /* a file could not be opened, read or written         */
    CGS_EFORMAT,  /* a file was read but is not what it claims to be     */
    CGS_EDEVICE,  /* no such device, or the device reported a failure    */
    CGS_ENUMERIC, /* NaN or Inf where a finite number is required        */
    CGS_ESTOPPED  /* the caller asked for a stop; what was saved is valid */
} cgs_status;

/* One sentence on the last failure of the calling thread. */
const char *cgs_last_error(void);

/* A word for a status code: "ok", "argument", "memory", ... */
const char *cgs_status_name(cgs_status s);

/* The version of the library that runs, as text. */
const char *cgs_version(void);

/* Where log lines go.  level: 0 debug, 1 information, 2 warning, 3 error.
 * NULL restores the default: warnings and errors go to standard error, the others nowhere. */
typedef void (*cgs_log_fn)(void *user, int level, const char *line);
void cgs_set_log(cgs_log_fn fn, void *user);

/* ---- planning with a trained model ----------------------------------------------------
 *
 * An agent is a model directory (config.json + model.safetensors) with a planner, for one
 * robot.  Creation takes all the memory; planning allocates nothing.
 *
 *   cgs_agent_create, cgs_agent_goal_image, then in a loop: take an image, cgs_agent_plan,
 *   execute the first actions of the plan
 *
 * An action block is `frameskip` primitive actions, which the robot executes one by one.  The
 * model predicts one frame per action block, and a plan has `horizon` action blocks.  Actions
 * go in and come out in the units of the training data. */
typedef struct cgs_agent cgs_agent;

/* The names of the planners; `cgs help plan` describes each.  NULL beyond the last. */
int cgs_planner_count(void);
const char *cgs_planner_id(int i);

/* Zeros and NULLs mean the values in brackets.  A planner ignores what it does not read. */
typedef struct cgs_agent_options {
    const char *device;    /* ["cpu"]                                              */
    const char *precision; /* "f32" or "bf16" [as the model was trained]           */
    int threads;           /* [one per core]                                       */
    const char *planner;   /* a name that cgs_planner_id gives ["mppi"]            */
    int samples;           /* candidates per iteration [128]                       */
    int iters;             /* iterations [30], or steps of a descent [100]         */
    int horizon;           /* action action blocks per plan [5]                          */
    double tau;            /* temperature [by the model's environment]             */
    uint64_t seed;         /* of the random candidates                                    */
} cgs_agent_options;

/* options: NULL for the defaults. */
cgs_status cgs_agent_create(cgs_agent **out, const char *dir, const cgs_agent_options *options);
void cgs_agent_destroy(cgs_agent *a);

typedef struct cgs_agent_info {
    int image_size; /* S: images are S x S */
    int width;      /* D: numbers in a latent, the model's own description of an image */
    int history;    /* images that an observation can have at most */
    int action_dim, frameskip, horizon;
    const char *env, *method; /* environment and training method; may be "" */
} cgs_agent_info;
cgs_agent_info cgs_agent_describe(const cgs_agent *a);

/* Images rgb (n, S, S, 3) -> latents z (n, D). */
cgs_status cgs_agent_encode(cgs_agent *a, const uint8_t *rgb, int n, float *z);

/* The goal: an image (S, S, 3), a latent (D), or a cost function of the caller.  The latest call
 * of the three counts; images and latents are copied. */
cgs_status cgs_agent_goal_image(cgs_agent *a, const uint8_t *rgb);
cgs_status cgs_agent_goal_latent(cgs_agent *a, const float *z);
/* Scores n plans.  actions (n, horizon, frameskip, action_dim) are the plans, z (n, horizon, D)
 * the latents that the model predicts after each action block, cost (n) the result: lower is
 * better.  Anything but CGS_OK ends the planning.  Not for planners that need a gradient,
 * residuals (gn) or a prior. */
typedef cgs_status (*cgs_cost_fn)(void *user, const float *z, const float *actions, int n,
                                  float *cost);
cgs_status cgs_agent_goal_cost(cgs_agent *a, cgs_cost_fn fn, void *user);

typedef struct cgs_observation {
    const uint8_t *frames;  /* (count, S, S, 3), one action block apart, the latest last */
    int count;              /* of images, 1 ... history */
    const double *executed; /* (count - 1, frameskip, action_dim) between them; NULL for one */
    int advanced;           /* action blocks of the last plan that were executed since: the search
                             * starts from what is left of it.  0: it starts from nothing */
} cgs_observation;

typedef struct cgs_plan_report {
    double seconds; /* of encoding and planning */
    int iterations; /* that were completed */
    int cut;        /* 1: the deadline passed, and this is the best plan so far */
    double cost;    /* lowest of the last iteration; NaN for planners that compute none */
} cgs_plan_report;

/* Plans.  actions (horizon, frameskip, action_dim) receives the plan, the action block to execute
 * next first.  deadline: seconds that encoding and planning may take together, 0 for no limit;
 * the first iteration is always completed.  report may be NULL. */
cgs_status cgs_agent_plan(cgs_agent *a, const cgs_observation *o, double deadline, double *actions,
                          cgs_plan_report *report);

/* ---- environments ----------------------------------------------------------------------
 * Simulators that come with the library.  Create one, then reset it (random start and goal) or
 * set its state and goal; then step. */
typedef struct cgs_sim cgs_sim;

typedef struct cgs_sim_info {
    const char *id, *summary, *success; /* success: the predicate as a sentence */
    int version, state_dim, action_dim;
    double action_range; /* an action nominally lies in [-range, range] */
} cgs_sim_info;

int cgs_sim_count(void);
/* The i-th environment's id, or NULL. */
const char *cgs_sim_id(int i);

cgs_status cgs_sim_create(cgs_sim **out, const char *id);
void cgs_sim_destroy(cgs_sim *s);
cgs_sim_info cgs_sim_describe(const cgs_sim *s);

cgs_status cgs_sim_reset(cgs_sim *s, uint64_t seed);
/* A fresh world in that state, (dim) numbers, which is also its goal until set_goal; but no step
 * ends early because such a goal is met. */
cgs_status cgs_sim_set_state(cgs_sim *s, const double *state, int dim);
cgs_status cgs_sim_set_goal(cgs_sim *s, const double *goal, int dim);
const double *cgs_sim_state(const cgs_sim *s); /* (state_dim) */
const double *cgs_sim_goal(const cgs_sim *s);  /* (state_dim) */
/* One primitive action, (dim) numbers. */
cgs_status cgs_sim_step(cgs_sim *s, const double *action, int dim);
/* 1 when the present state satisfies the predicate for the goal. */
int cgs_sim_success(const cgs_sim *s);
/* Draws the present state: rgb (side, side, 3). */
cgs_status cgs_sim_render(cgs_sim *s, int side, uint8_t *rgb);

#ifdef __cplusplus
}
#endif
#endif /* CGS_CGS_H */

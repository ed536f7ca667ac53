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
    const char *device;          /* ["cpu"]                                              */
    const char *precision;       /* "f32" or "bf16" [as the model was trained]           */
    int threads;                 /* [one per core]                                       */
    const char *planner;         /* a name that cgs_planner_id gives ["mppi"]            */
    int samples;                 /* candidates per iteration [128]                       */
    int iters;                   /* iterations [30], or steps of a descent [100]         */
    int horizon;                 /* action blocks per plan [5]                           */
    double tau;                  /* temperature [by the model's environment]             */
    uint64_t seed;               /* of the random candidates                             */
    const char *const *settings; /* (setting_count) "plan.KEY=VALUE", of those that
                                    `cgs help settings` lists [none]               */
    int setting_count;
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

/* Another episode begins: the next search starts from nothing, and its random candidates are those
 * of that episode of an evaluation with that seed (0 until the first call). */
void cgs_agent_begin(cgs_agent *a, uint64_t seed, uint64_t episode);

/* What the model says of the last plan for a goal that is an image or a latent: its cost, and the
 * root mean square of its standardised actions. */
cgs_status cgs_agent_weigh(cgs_agent *a, double *cost, double *size);

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

/* ---- recording a dataset ---------------------------------------------------------------
 * Episode by episode into NAME.part, which becomes NAME at the end: there is either no dataset or a
 * complete one, and a recording that was interrupted is continued.  docs/formats.md describes the
 * file.
 *
 *   cgs_writer_create, cgs_writer_text ..., cgs_writer_begin, cgs_writer_add ..., cgs_writer_finish
 */
typedef struct cgs_writer cgs_writer;

#define CGS_COLUMN_RANK 4

/* The types of numbers in columns; f32, f64, i32, i64 and u8 can be written. */
typedef enum cgs_column_type {
    CGS_COL_OTHER = 0, /* text or anything else that is not a number: listed, never read */
    CGS_COL_F32,
    CGS_COL_F64,
    CGS_COL_I8,
    CGS_COL_U8,
    CGS_COL_I16,
    CGS_COL_U16,
    CGS_COL_I32,
    CGS_COL_U32,
    CGS_COL_I64,
    CGS_COL_U64
} cgs_column_type;

typedef struct cgs_column_spec {
    const char *name;
    cgs_column_type dtype;
    int rank; /* of one row: 0 for a number, 3 for an image */
    int64_t shape[CGS_COLUMN_RANK];
} cgs_column_spec;

/* The index columns (ep_len, ep_offset, episode_idx, step_idx) are added by the writer. */
cgs_status cgs_writer_create(cgs_writer **out, const char *path, const cgs_column_spec *columns,
                             int column_count);
/* Without finish: NAME.part stays, to be continued. */
void cgs_writer_destroy(cgs_writer *w);

/* Attributes, before begin.  The writer adds code_version and code_commit itself. */
cgs_status cgs_writer_text(cgs_writer *w, const char *name, const char *value);
cgs_status cgs_writer_integer(cgs_writer *w, const char *name, uint64_t value);
cgs_status cgs_writer_real(cgs_writer *w, const char *name, double value);

/* Starts or continues the recording; *episodes: how many it has already.  A NAME.part with other
 * columns or attributes, or an existing NAME, is an error. */
cgs_status cgs_writer_begin(cgs_writer *w, int64_t *episodes);

/* Adds an episode of `rows` rows: T actions make T + 1 rows, and the last row of a
 * floating "action" column must be NaN.  data[c]: (rows, shape of column c), in the
 * column's number type. */
cgs_status cgs_writer_add(cgs_writer *w, int rows, const void *const *data);

/* Writes NAME from all episodes added so far and removes NAME.part. */
cgs_status cgs_writer_finish(cgs_writer *w);

/* ---- reading a dataset ----------------------------------------------------------------- */
typedef struct cgs_dataset cgs_dataset;

/* CGS_EIO when a file cannot be read, CGS_EFORMAT when it contradicts itself. */
cgs_status cgs_dataset_open(cgs_dataset **out, const char *path);
void cgs_dataset_close(cgs_dataset *d);

typedef struct cgs_dataset_info {
    int64_t rows;
    int episodes, columns;
    int height, width; /* of the images, 0 without */
    int action_dim;    /* numbers of an action, 0 without */
} cgs_dataset_info;
cgs_dataset_info cgs_dataset_describe(const cgs_dataset *d);

/* Column i, with its shape; the name is NULL beyond the last. */
cgs_column_spec cgs_dataset_column(const cgs_dataset *d, int i);
/* The first row of episode e and how many it has; 0 rows: there is no such episode. */
int cgs_dataset_episode(const cgs_dataset *d, int e, int64_t *first);

/* Consecutive rows of a column of numbers: out (count, numbers of a row). */
cgs_status cgs_dataset_read_rows_f64(cgs_dataset *d, const char *column, int64_t first, int count,
                                     double *out);
/* Consecutive images: out (count, height, width, 3). */
cgs_status cgs_dataset_read_pixels(cgs_dataset *d, int64_t first, int count, uint8_t *out);

/* What training (problem) or a careful person (no problem) finds wrong with a file, a sentence
 * each, as `cgs data check` says it; every row is read.  size: "small", "paper", or NULL for
 * images of any size.  Returns a failure only where the file could not be judged. */
typedef void (*cgs_found_fn)(void *user, int problem, const char *sentence);
cgs_status cgs_dataset_judge(const char *path, const char *size, cgs_found_fn fn, void *user);

/* A recorded row from which an episode of an evaluation begins: row = first row of the episode +
 * step. */
typedef struct cgs_start {
    int64_t episode, step, row;
} cgs_start;

/* Draws starts, `count` of them, as `cgs eval` draws them, in ascending rows; the goal of each lies
 * goal_offset rows later.  held_out: an agent, whose model has not been trained on their episodes,
 * or NULL.  skip: answers 1 for starts that are not wanted, or NULL. */
typedef int (*cgs_skip_fn)(void *user, const cgs_start *s);
cgs_status cgs_dataset_starts(cgs_dataset *d, int count, int goal_offset, uint64_t seed,
                              const cgs_agent *held_out, cgs_skip_fn skip, void *user,
                              cgs_start *out);

/* ---- results -----------------------------------------------------------------------------
 * What `cgs eval` says of its episodes, for loops of one's own. */
typedef struct cgs_interval {
    double low, high;
} cgs_interval;

/* Wilson's 95 % score interval of a proportion; [0, 1] for n = 0. */
cgs_interval cgs_wilson(int successes, int n);

/* Two methods on the same starts.  difference = rate of a - rate of b. */
typedef struct cgs_paired {
    int n, both, only_a, only_b, neither;
    double difference;
    cgs_interval newcombe;  /* square-and-add of the two Wilson intervals */
    cgs_interval bootstrap; /* resampling pairs */
    double p;               /* McNemar's exact test, two-sided */
} cgs_paired;

/* a, b: (n) zero for failure, anything else for success; n >= 1. */
cgs_status cgs_compare_paired(const uint8_t *a, const uint8_t *b, int n, int resamples,
                              uint64_t seed, cgs_paired *out);

/* How one episode went.  Costs that a planner does not have are NaN. */
typedef struct cgs_outcome {
    int success; /* 1: the predicate held when it counted */
    int first;   /* actions until then, or 0 */
    int actions; /* carried out */
    int solves;
    float planned;  /* lowest cost in the last iteration of the last solve */
    float reached;  /* |z - goal|^2 of the last frame's whole latent */
    double seconds; /* encoding and planning */
    /* of the first plan alone, which separates what the model's cost, the model and the predicate
     * do: */
    int first_success; /* the predicate held at one of its actions where each counts, or after its
                        * last */
    float first_cost;  /* that the model gives it */
    float first_size;  /* root mean square of its standardised values */
    double first_seconds; /* of its solve, without encoding */
} cgs_outcome;

/* An evaluation of an agent in one environment. */
typedef struct cgs_result {
    const char *env; /* its name, and a number that grows when it changes */
    int env_version;
    const char *dataset; /* name of the file that the starts are from; "" for none */
    int64_t dataset_rows;
    uint64_t seed;       /* of the starts and of cgs_agent_begin */
    int goal_offset;     /* rows from start to goal; 0 where goals are no recorded rows */
    int held_out;        /* 1: starts are held out of the model's training */
    int skip_solved;     /* 1: none of them is at its goal already */
    const char *history; /* "native", or "online" */
    const char *success; /* when the predicate counts: "any", "solve" or "end" */
    int budget;          /* most actions of an episode */
    int execute;         /* action blocks of a plan that are executed */
    int compact;         /* 1: a short line */
    int count;
    const cgs_start *start;     /* (count) */
    const cgs_outcome *outcome; /* (count); NULL for the hash alone */
} cgs_result;

/* The line that `cgs eval --out` writes, without its end, and the hash in it, which tells whether a
 * file has this result.  line: NULL, or receives a text for cgs_line_free. */
cgs_status cgs_result_line(const cgs_agent *a, const cgs_result *r, char hash[17], char **line);
void cgs_line_free(char *text);

/* ---- training ---------------------------------------------------------------------------
 * What `cgs train` does.  NULLs mean the values in brackets. */
typedef struct cgs_train_options {
    const char *data, *out; /* dataset; run directory, which becomes a model directory */
    const char *size;       /* "paper" or "small" ["paper", or the sizes of init] */
    const char *method;     /* as `cgs help train` lists them ["lewm-cgs"] */
    const char *init;       /* a model to begin with: a directory or a weight file [none] */
    const char *cache;      /* where copies made from the dataset lie [beside it] */
    const char *device;     /* ["auto": a GPU if there is one] */
    const char *precision;  /* "f32" or "bf16" [by the settings] */
    int threads;            /* [one per core] */
    int resume;             /* 1: go on from the checkpoint in out, where there is one */
    int force;              /* 1: replace the run or the model in out */
    const char *const
        *settings; /* (setting_count) "KEY=VALUE", as `cgs help settings` lists them */
    int setting_count;
} cgs_train_options;

typedef struct cgs_train_progress {
    uint64_t step, total; /* updates done, and of the whole run */
    double loss, prediction, rate, frames_per_second;
    int validated; /* 1: after this update held-out windows were looked at: */
    double valid_prediction, valid_mean, valid_copy; /* errors of the model, of predicting the mean
                                                      * latent, and of predicting the last one */
} cgs_train_progress;

/* Called after every update, by the thread that called cgs_train; 0 saves and stops. */
typedef int (*cgs_train_fn)(void *user, const cgs_train_progress *p);

/* Returns when the run is finished, with CGS_ESTOPPED when fn has stopped it: the same call with
 * resume goes on, to the same bits as if it had not been stopped.  fn may be NULL. */
cgs_status cgs_train(const cgs_train_options *o, cgs_train_fn fn, void *user);

#ifdef __cplusplus
}
#endif
#endif /* CGS_CGS_H */

/* evaluate.h - goal-reaching success: models x planners x settings x seeds on shared starts.
 *
 * For every seed the starts are chosen once (starts.h), encoded once per model (start_states.h) and
 * run in the closed loop (episode.h) with every planner setting.  The seed of the starts is also
 * the seed of the planner's noise, so all models get the same starts and the same noise and can be
 * compared in pairs.
 *
 * Results are appended to a file (results.h); those that the file already has are reused. */
#ifndef CGS_EVAL_EVALUATE_H
#define CGS_EVAL_EVALUATE_H

#include "eval/results.h"
#include "eval/temperature.h"
#include "model/store.h"

enum { CGS_BATCH_BY_DEVICE = 0 };

typedef struct cgs_eval_options {
    const char *const *models; /* (model_count) directories */
    int model_count;
    const char *env; /* NULL: that of the models or the data */
    const char *data;
    const char *out;      /* result file, or NULL */
    bool compact;         /* short lines (results.h) */
    const char *manifest; /* list of starts to reuse, or to save; with several seeds its name
                           * is followed by "." and the seed.  NULL: none */
    const char *const *planners;
    char *const *settings; /* (setting_count) "plan.KEY=VALUE", for the planners that read them */
    const int *samples, *iters;
    const int *rollouts; /* per solve; where given, planners with a rule choose samples and
                          * iterations by it */
    const double *taus;  /* none: the default of the environment; CGS_TAU_MEASURED: curvature.h */
    const uint64_t *seeds;
    int planner_count, setting_count, sample_count, rollout_count, iter_count, tau_count,
        seed_count;
    int horizon, execute, budget, goal_offset, episodes, elites, gd_steps;
    int batch; /* most episodes planned at once, of all seeds together; declared to rollouts, so
                * that on a GPU a result's last bits depend on it (docs/numerics.md) */
    bool held_out, skip_solved, whole_range;
    cgs_history history;
    /* official, moderate or strict (docs/planning.md), with a run of random actions beside the
     * planners; NULL: official without it */
    const char *protocol;
    const char *success;            /* any, solve or end; NULL: by protocol and kind of model */
    const char *device, *precision; /* precision NULL: as the model was trained */
    int threads;
    /* Called now and then; both may be NULL. */
    void (*progress)(void *user, const char *what, double done, double total);
    bool (*stop)(void *user);
    void *user;
} cgs_eval_options;

/* The published protocol: 50 starts of seeds 0, 1, 42, goal 25 rows later, 50 actions, plans of 5
 * action blocks, executed completely, K = 128, I = 30.  Lists are left empty. */
cgs_eval_options cgs_eval_defaults(void);

/* One setting of one model, for one seed. */
typedef struct cgs_eval_run {
    int model; /* index */
    cgs_plan_config plan;
    uint64_t seed;
    bool reused; /* found in the file */
    cgs_eval_result result;
} cgs_eval_run;

typedef struct cgs_evaluation {
    const cgs_env_class *env;
    cgs_model_card *card; /* (models) */
    char (*backbone)[64]; /* (models) origin of a frozen backbone, or "" */
    int models, count;
    cgs_eval_run *run; /* (count) ordered by setting, then model, then seed */
} cgs_evaluation;

/* Free with cgs_evaluation_free, also after a failure.  After CGS_ESTOPPED the same call resumes.
 */
cgs_status cgs_evaluate(cgs_evaluation *e, const cgs_eval_options *o);
void cgs_evaluation_free(cgs_evaluation *e);

#endif /* CGS_EVAL_EVALUATE_H */

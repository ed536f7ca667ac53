/* results.h - results of evaluations as JSON lines.
 *
 * One line is one model, one planner setting and one seed, with every setting and every
 * episode inside:
 *   {"format":"cgs-eval","version":1,"hash":"...","settings":{...},"episodes":n,"successes":k,
 *    "rate":r,"wilson":[low,high],"seconds":s,
 *    "first_plan":{"successes":k,"cost":c,"size":x,"seconds":[p50,p99]},
 *    "code_version":"...","code_commit":"...",
 *    "outcomes":[{"episode":e,"step":t,"success":true,"first":a,"actions":a,"solves":2,
 *                 "planned":c,"reached":c,"seconds":s,"first_plan":true,"first_cost":c}, ...]}
 *
 * `first_plan` is of the first plans alone: how many of them reached the goal, the median of the
 * costs that the model gives them, the root mean square of their values, and percentiles of the
 * seconds of their solves.  Lines from before it do not have it.
 *
 * A compact line has in place of that list only what tables and comparisons read:
 *    "outcomes":{"success":"0110...","solves":n,"seconds":s}, a digit per episode, and sums.
 *
 * `hash` is a checksum of the text of `settings`: two lines with the same hash would hold the same
 * numbers, so a run whose hash is in the file is not repeated. */
#ifndef CGS_EVAL_RESULTS_H
#define CGS_EVAL_RESULTS_H

#include "eval/episode.h"

/* Everything a result depends on, except numbers that its planner does not use. */
typedef struct cgs_eval_settings {
    const char *model; /* directory, as given */
    char method[64];   /* from its card */
    char backbone[64]; /* origin of a frozen backbone ("stand-in", "dinov2"), or "" */
    uint64_t weights;  /* checksum */
    const char *env;
    int env_version;
    char env_file[128], env_sha256[65]; /* of a plug-in; left out where it is none */
    char dataset[256];                  /* file name */
    int64_t dataset_rows;
    cgs_start_rule rule;
    uint64_t starts; /* checksum of the rows */
    cgs_history history;
    cgs_success_rule success; /* left out where it is any, which lines from before it meant */
    cgs_judge judge;          /* left out where it is the official one, likewise */
    bool prior_held_out;      /* starts are held out of the prior's fit too; false where the planner
                               * needs none, and then it is left out */
    uint64_t prior; /* checksum of the prior; 0 where the planner needs none, and then it is left
                     * out: a prior that is fitted again must not find the old one's lines */
    int budget, execute;
    cgs_plan_config plan; /* with the seed of the noise */
    const char *device, *precision;
    /* beside the settings, and not in the hash */
    uint64_t train_seed; /* of the model; weights tell models apart */
    bool compact;
    int batch; /* episodes that rollouts are declared for on a GPU, which chooses its kernels by
                * it; 0 where nothing depends on it, and then it is left out */
} cgs_eval_settings;

/* The first plans of a result; successes < 0: its line is from before they were recorded. */
typedef struct cgs_first_plans {
    int successes;
    double cost, size, p50, p99; /* NAN where there is none */
} cgs_first_plans;
/* of n outcomes, or an error: no memory */
cgs_status cgs_first_plans_of(cgs_first_plans *f, const cgs_outcome *o, int n);

typedef struct cgs_eval_result {
    char hash[17];
    int episodes, successes;
    double seconds;   /* planner time per episode, mean */
    uint8_t *success; /* (episodes) owned */
    cgs_first_plans first;
} cgs_eval_result;

/* The settings as JSON, and their hash.  The caller frees *json. */
cgs_status cgs_eval_describe(const cgs_eval_settings *s, char **json, char hash[17]);

/* One line without its end; the caller frees *line. */
cgs_status cgs_eval_line(const cgs_eval_settings *s, const cgs_starts *starts,
                         const cgs_outcome *outcome, char **line);

/* The results of a file, in its order.  A file that does not exist is empty; an unfinished
 * last line (a crash, a full disk) is cut off; anything else that is not a result is
 * CGS_EFORMAT with its line. */
typedef struct cgs_eval_file {
    cgs_eval_result *result; /* (count) */
    int count;
} cgs_eval_file;
cgs_status cgs_eval_file_read(cgs_eval_file *f, const char *path);
void cgs_eval_file_free(cgs_eval_file *f);
const cgs_eval_result *cgs_eval_file_find(const cgs_eval_file *f, const char *hash);

/* Appends a line and syncs it to disk. */
cgs_status cgs_eval_file_append(const char *path, const char *line);

#endif /* CGS_EVAL_RESULTS_H */

/* rates.h - the results of a run, sorted: protocols, planner settings, models.
 *
 * Results are comparable only when everything but the model is the same.  So lines are grouped into
 * protocols (environment, data, starts, budget, history, device, precision).  Within one, a row is
 * a planner with all its numbers, a column is a model, and training seeds of the same model
 * (folders named METHOD-sSEED) share a column. */
#ifndef CGS_REPORT_RATES_H
#define CGS_REPORT_RATES_H

#include "core/mixed.h"
#include "report/folder.h"

/* A column: a model. */
typedef struct cgs_rate_model {
    char method[64], name[128];
    char folder[128]; /* last part of its directory, without the seed */
    int style;
} cgs_rate_model;

/* A row: a planner with its numbers.  NAN where it has none. */
typedef struct cgs_rate_setting {
    char planner[32];
    double K, iters, tau;
    char rest[256]; /* all other numbers, as text */
    char key[320];  /* all numbers */
} cgs_rate_setting;

/* First plans alone: how many reached the goal, -1 where lines do not say; medians of the model's
 * cost, size of actions, seconds of a solve. */
typedef struct cgs_rate_first {
    int successes;
    double cost, size, p50, p99;
} cgs_rate_first;

/* One line of the file. */
typedef struct cgs_rate_run {
    int model, setting;
    char pairing[160]; /* what two lines must share for a paired comparison */
    char train[32];    /* the training seed, as the model's folder names it; "": the first */
    char start[128];   /* of the pairing, the starts and the noise */
    char seed[32], commit[32]; /* of the starts; of the code */
    int episodes, successes, solves;
    double seconds;   /* of planning, all episodes together */
    cgs_rate_first first;
    uint8_t *success; /* (episodes) */
} cgs_rate_run;

typedef struct cgs_protocol {
    char env[64];
    char name[192];  /* environment, and how it differs from the others of the run */
    cJSON *settings; /* what all its lines share */
    char *key;
    cgs_rate_model *model;
    cgs_rate_setting *setting;
    cgs_rate_run *run;
    int models, settings_count, runs;
} cgs_protocol;

typedef struct cgs_rates {
    cgs_protocol *protocol;
    int count, lines, replaced;
} cgs_rates;

/* Reads results.jsonl of a run, or the run itself when it is such a file.  Lines that are not
 * results become a warning.  Free with cgs_rates_free. */
void cgs_rates_read(cgs_rates *r, const cgs_folder *f, cgs_page *p);
void cgs_rates_free(cgs_rates *r);

/* A model in a setting, over its seeds; percent. */
typedef struct cgs_rate {
    int runs, episodes, successes;
    double mean, sd;
    cgs_interval wilson;
    double solve_seconds; /* NAN without solves */
    cgs_rate_first first; /* successes of all runs; means over runs of the other numbers */
} cgs_rate;
/* false when there is no result */
bool cgs_rate_of(const cgs_protocol *q, int setting, int model, cgs_rate *out);

/* Model b minus model a on the starts that both have; false when there are none.  The bootstrap
 * interval is left out. */
bool cgs_rate_pair(const cgs_protocol *q, int setting, int a, int b, cgs_paired *out);

/* Model b minus model a over training seeds and starts, in points, of the training seeds whose
 * lines have all starts of the first for both; false when there are none. */
bool cgs_rate_mixed(const cgs_protocol *q, int setting, int a, int b, cgs_mixed *out);

/* A sweep: settings that differ in one number only, by that number.  index: (settings_count)
 * Returns how many; 0 when the setting is not the first of its sweep. */
typedef enum cgs_rate_over {
    CGS_OVER_K,
    CGS_OVER_ITERS,
    CGS_OVER_TAU,
    CGS_OVER_ROLLOUTS /* K times I, where the planner's rule chose them */
} cgs_rate_over;
double cgs_rate_x(const cgs_rate_setting *s, cgs_rate_over over);
int cgs_rate_sweep(const cgs_protocol *q, int setting, cgs_rate_over over, int *index);

/* Area under the sweep for a model, in percent; false when a point is missing. */
bool cgs_rate_area(const cgs_protocol *q, const int *index, int n, cgs_rate_over over, int model,
                   double *nauc);
/* Area of b minus area of a on the same starts, with a bootstrap interval over starts. */
bool cgs_rate_area_pair(const cgs_protocol *q, const int *index, int n, cgs_rate_over over, int a,
                        int b, double *difference, cgs_interval *interval);

/* For qsort: families, then roles as in the paper, then folders. */
int cgs_rate_model_order(const void *a, const void *b);

/* The column of a role in a family, or -1.  A family's plain method is its baseline. */
int cgs_rate_find(const cgs_protocol *q, const char *family, int role);

#endif /* CGS_REPORT_RATES_H */

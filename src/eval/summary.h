/* summary.h - summary of an evaluation: rates over seeds, areas under sweeps, comparisons. */
#ifndef CGS_EVAL_SUMMARY_H
#define CGS_EVAL_SUMMARY_H

#include "core/statistics.h"
#include "eval/evaluate.h"

/* One model with one planner setting, over all seeds. */
typedef struct cgs_summary_row {
    int model;
    const cgs_plan_config *plan; /* of the evaluation */
    int seeds, episodes, successes;
    double mean, sd;     /* of the seeds' rates, in percent; sd with divisor seeds - 1 */
    cgs_interval wilson; /* of all episodes together, in percent */
    double seconds;      /* planner time of an episode */
    /* first plans: successes of all seeds, -1 where a line does not say; means over seeds of the
     * other numbers */
    cgs_first_plans first;
} cgs_summary_row;

/* A sweep over one setting with everything else fixed. */
typedef enum cgs_sweep {
    CGS_SWEEP_SAMPLES,
    CGS_SWEEP_ITERS,
    CGS_SWEEP_TAU,
    CGS_SWEEP_ROLLOUTS, /* samples times iterations, where the planner's rule chose them */
    CGS_SWEEPS
} cgs_sweep;
typedef struct cgs_summary_area {
    int model;
    cgs_sweep over;              /* x = log2 K, I, log2 tau or log2 (K I) */
    const cgs_plan_config *plan; /* the first of the sweep */
    int points;
    double low, high; /* of the setting itself */
    double nauc;      /* in percent */
} cgs_summary_area;

/* Model b against model a with the same planner setting: difference = rate of b - rate of a. */
typedef struct cgs_summary_pair {
    int a, b;
    const cgs_plan_config *plan;
    cgs_paired paired;
} cgs_summary_pair;

typedef struct cgs_summary {
    cgs_summary_row *row; /* settings, then models */
    cgs_summary_area *area;
    cgs_summary_pair *pair;
    int rows, areas, pairs;
} cgs_summary;

/* Borrows from the evaluation.  Free with cgs_summary_free, also after a failure. */
cgs_status cgs_summarise(cgs_summary *s, const cgs_evaluation *e);
void cgs_summary_free(cgs_summary *s);

#endif /* CGS_EVAL_SUMMARY_H */

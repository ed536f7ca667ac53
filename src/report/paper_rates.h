/* paper_rates.h - the paper's numbers, which the page shows beside the measured ones.
 *
 * Success is in percent, mean and sample deviation over three evaluation seeds of 50 episodes,
 * with I = 30.  Every function returns false where the paper gives no number. */
#ifndef CGS_REPORT_PAPER_RATES_H
#define CGS_REPORT_PAPER_RATES_H

#include <stdbool.h>

typedef struct cgs_published {
    double mean, sd;
} cgs_published;

/* 0 plain, 1 with temporal straightening, 2 with CGS; -1 for a method without numbers. */
int cgs_published_role(const char *method);

/* Success of a method preset ("lewm-cgs", "dinowm-cls-ts") with a planner; K is ignored by "gd". */
bool cgs_published_rate(const char *method, const char *env, const char *planner, int K,
                        cgs_published *out);

/* Areas under success over K = 1, 2, 4, ... 256, over I and over tau, in percent. */
bool cgs_published_budget(const char *method, const char *env, const char *planner, double *nauc);
bool cgs_published_refinement(const char *method, const char *env, const char *planner,
                              double *nauc);
bool cgs_published_temperature(const char *method, const char *env, double *nauc);

/* Reacher at K = 128 by observed history ("native", "dataset", "online"), and the area over K from
 * 1 to 256 (NAN for "gd"); methods lewm, lewm-cgs and lewm-cgs-transition. */
bool cgs_published_history(const char *method, const char *history, const char *planner,
                           cgs_published *rate, double *nauc);

/* Cube by CGS reference: areas over K from 1 to 256 and over I. */
bool cgs_published_cube_reference(const char *method, const char *planner, double *over_K,
                                  double *over_I);

/* Mean cosine of consecutive latent steps at the end of training. */
bool cgs_published_cosine(const char *method, const char *env, double *cosine);

/* Seconds of planning an episode on PushT (two solves, K = 128, I = 30 or 100 steps), measured on
 * the paper's machine: "lewm" or "dinowm-patch", each with CGS; "cem", "mppi" or "gd". */
bool cgs_published_seconds(const char *method, const char *planner, double *seconds);

#endif /* CGS_REPORT_PAPER_RATES_H */

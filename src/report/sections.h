/* sections.h - the sections of a page, each drawn only when its data exist. */
#ifndef CGS_REPORT_SECTIONS_H
#define CGS_REPORT_SECTIONS_H

#include "report/paper_rates.h"
#include "report/plot.h"
#include "report/rates.h"

/* The verdict at the top; returns the sentence in `sentence` (size bytes). */
void cgs_section_verdict(cgs_page *p, const cgs_folder *f, const cgs_rates *r, char *sentence,
                         size_t size);
void cgs_section_success(cgs_page *p, const cgs_folder *f, const cgs_rates *r);
void cgs_section_sweeps(cgs_page *p, const cgs_folder *f, const cgs_rates *r);
/* Success over rollouts, of the planners whose rules divide them. */
void cgs_section_rollouts(cgs_page *p, const cgs_folder *f, const cgs_rates *r);
void cgs_section_ablations(cgs_page *p, const cgs_folder *f, const cgs_rates *r);
/* DINO-WM's table and, where LeWM was measured too, the comparison of architectures. */
void cgs_section_frozen(cgs_page *p, const cgs_folder *f, const cgs_rates *r);
void cgs_section_architectures(cgs_page *p, const cgs_folder *f, const cgs_rates *r);
void cgs_section_timing(cgs_page *p, const cgs_folder *f, const cgs_rates *r);
/* Fills `straight` (CGS_MOST_TRAINED) with the straightness of the trained models; returns how
 * many. */
typedef struct cgs_straightness {
    char method[64], name[128], env[64];
    double cosine; /* of consecutive steps of held-out windows, at the end; NAN without them */
} cgs_straightness;
enum { CGS_MOST_TRAINED = 24 };
int cgs_section_training(cgs_page *p, const cgs_folder *f, cgs_straightness *straight);
void cgs_section_learned(cgs_page *p, const cgs_folder *f);
void cgs_section_geometry(cgs_page *p, const cgs_folder *f);
void cgs_section_mechanism(cgs_page *p, const cgs_folder *f);
void cgs_section_probe(cgs_page *p, const cgs_folder *f);
void cgs_section_theory(cgs_page *p, const cgs_folder *f);
/* returns prior-quality.json, or NULL; the caller frees it */
cJSON *cgs_section_priors(cgs_page *p, const cgs_folder *f, const cgs_rates *r);
void cgs_section_plans(cgs_page *p, const cgs_folder *f);
void cgs_section_decode(cgs_page *p, const cgs_folder *f);
void cgs_section_surprise(cgs_page *p, const cgs_folder *f);
void cgs_section_stages(cgs_page *p, const cgs_folder *f);

/* ---- shared by the sections on analyses -------------------------------------------- */

/* The distribution of a number over a model's anchors or starts, a list under `key`. */
typedef struct cgs_distribution {
    const char *key, *title;
    cgs_axis x;
    const char *y; /* label of the y axis */
    bool marked;   /* a line at `mark` */
    double mark;
    const char *caption;
} cgs_distribution;
/* The empirical distribution function: the fraction of values at or below x, one line per model. */
void cgs_draw_distribution(cgs_page *p, const cJSON *models, const cgs_distribution *what);

/* ---- shared by the sections on results --------------------------------------------- */

/* "MPPI, K = 128", with I and tau where the protocol has several of them. */
void cgs_setting_label(const cgs_protocol *q, int setting, char *out, size_t size);
/* The paper's number for a model in a setting, when the setting is the paper's: I = 30 or 100
 * steps, and the environment's temperature. */
/* The environment's own temperature, or a planner or environment that has none; frozen: of DINO-WM.
 */
bool cgs_setting_own_tau(const cgs_protocol *q, int setting, bool frozen);
bool cgs_setting_published(const cgs_protocol *q, int setting, int model, cgs_published *out);
/* The paper's area under a sweep: over the same K where the paper gives the curve, else over its
 * own grid. */
bool cgs_sweep_published(const cgs_protocol *q, const int *index, int n, cgs_rate_over over,
                         int model, double *nauc);
/* Whether the setting's planner was also run with other values of the number. */
bool cgs_setting_several(const cgs_protocol *q, int setting, cgs_rate_over over);
/* The numbers that distinguish a setting from the others of its planner, as bits cgs_rate_over. */
unsigned cgs_setting_numbers(const cgs_protocol *q, int setting);
/* "MPPI K=128 I=30", or in prose "MPPI, K = 128, I = 30", with the numbers that it has. */
void cgs_setting_text(const cgs_rate_setting *s, const char *planner, unsigned numbers, bool prose,
                      char *out, size_t size);
/* One setting per planner, the nearest to K = 128, I = 30 and the environment's temperature. index:
 * (settings_count)  Returns how many, in the order of the settings. */
int cgs_headlines(const cgs_protocol *q, int *index);
/* Whether a planner scores no plan: a model cannot change what it reaches. */
bool cgs_is_control(const char *planner);

/* CGS and the methods it is compared with in one family; ts is -1 where there is none. */
enum { CGS_FAMILIES = 4 };
typedef struct cgs_rivals {
    int plain, ts, cgs;
} cgs_rivals;
/* The n-th family that has a baseline and CGS. */
bool cgs_find_rivals(const cgs_protocol *q, int n, cgs_rivals *out);

/* A difference with a typographic sign; zero gets both signs. */
#define CGS_MINUS "\xE2\x88\x92"
void cgs_format_signed(char *out, size_t size, double v);
/* A cell of a table: a model's success in a setting with its interval, the paper's beside it. */
void cgs_rate_cell(cgs_page *p, const cgs_protocol *q, int setting, int model);
/* The provenance of its lines: shared settings, seeds, commands. */
void cgs_protocol_note(cgs_page *p, const cgs_folder *f, const cgs_protocol *q);

#endif /* CGS_REPORT_SECTIONS_H */

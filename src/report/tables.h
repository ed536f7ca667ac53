/* tables.h - the numbers of runs as Markdown, laid out like the paper's tables.
 *
 * Documents include this output, so that no number in them is copied by hand.  The numbers come
 * from the functions that the page uses. */
#ifndef CGS_REPORT_TABLES_H
#define CGS_REPORT_TABLES_H

#include "report/sections.h"

enum { CGS_MOST_PRIORS = 12 }; /* models of a run whose priors were measured */

/* What a run gives to the tables. */
typedef struct cgs_tables_run {
    const char *path; /* as given */
    char folder[128]; /* last part of it */
    cgs_rates rates;
    cgs_straightness model[CGS_MOST_TRAINED];
    int models;
    cJSON *stages; /* the lines of stages.jsonl */
    cJSON *priors; /* prior-quality.json, or NULL */
} cgs_tables_run;

/* Writes the tables of all runs (count) into one file and returns their number. */
cgs_status cgs_tables_write(const cgs_tables_run *run, int count, const char *title,
                            const char *path, int *written);

/* ---- shared by the files that write them ------------------------------------------- */

/* A protocol of a run, and its label. */
typedef struct cgs_tables_protocol {
    const cgs_protocol *q;
    bool held_out; /* starts in episodes that no model was trained on */
    char label[512];
} cgs_tables_protocol;

typedef struct cgs_tables {
    cgs_text text;
    int written;
    const cgs_tables_run *run;
    int count;
    cgs_tables_protocol *protocol;
    int protocols;
    /* scratch, as large as the largest protocol and all models together need */
    int *index, *other;       /* (settings) */
    double *grid;             /* (settings of all) */
    struct cgs_md_cell *cell; /* (settings of all or models of all, whichever are more) */
    cgs_rate_model *column;   /* (models of all) */
    int columns;
} cgs_tables;

/* Begins a table: a heading before the first one (*open becomes true), then an empty line. */
void cgs_tables_begin(cgs_tables *t, bool *open, const char *title, const char *sentence);
/* Collects in t->column the models of the protocols that are, or are not, held out. */
void cgs_tables_columns(cgs_tables *t, bool held_out);
void cgs_tables_column(cgs_tables *t, const char *method, const char *name);
/* Sorts the columns as the page does. */
void cgs_tables_sort(cgs_tables *t);
/* The head of a table with these columns, and the rule below it. */
void cgs_tables_head(cgs_tables *t);
/* Begins a row with the label of a run. */
void cgs_tables_env(cgs_tables *t, int run, const char *env);
/* The model of a protocol with the name of a column, or -1. */
int cgs_tables_find(const cgs_protocol *q, const char *name);

/* tables_rates.c */
void cgs_tables_success(cgs_tables *t);
void cgs_tables_over_K(cgs_tables *t);
void cgs_tables_held_out(cgs_tables *t);
/* tables_areas.c */
void cgs_tables_areas(cgs_tables *t, cgs_rate_over over);
void cgs_tables_temperature(cgs_tables *t);
/* tables_priors.c */
void cgs_tables_priors(cgs_tables *t);
/* tables_commands.c */
void cgs_tables_commands(cgs_tables *t);

/* The families of which the protocols have CGS and its baseline, for columns of differences. */
typedef struct cgs_tables_families {
    char name[CGS_FAMILIES][64];
    int count;
} cgs_tables_families;
cgs_tables_families cgs_tables_rivals(const cgs_tables *t, bool held_out);
/* "CGS - LeWM", or "CGS - TS"; the family is named where there are several. */
void cgs_tables_rival_head(cgs_tables *t, const cgs_tables_families *f, int i, bool ts);
/* CGS and its baseline of a family in a protocol; false where one is missing. */
bool cgs_tables_rivals_in(const cgs_protocol *q, const char *family, cgs_rivals *out);

/* Sweeps over a number that have at least two points, one after the other: the first setting of
 * the next one from *at on.  index: (settings)  Returns how many points, 0 at the end. */
int cgs_tables_sweep(const cgs_protocol *q, cgs_rate_over over, int *at, int *index);
/* "MPPI"; with I, K and tau where the protocol has several such sweeps of the planner. */
void cgs_tables_sweep_label(cgs_tables *t, const cgs_protocol *q, int setting, cgs_rate_over over,
                            char *out, size_t size);
/* Adds a sweep's values to t->grid, which stays sorted; returns their number. */
int cgs_tables_grid(cgs_tables *t, int points, const cgs_protocol *q, const int *index, int n,
                    cgs_rate_over over);

#endif /* CGS_REPORT_TABLES_H */

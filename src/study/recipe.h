/* recipe.h - studies as data.
 *
 * A row is one kind of stage: a command line of this program with placeholders.  A recipe names its
 * rows, the models it trains and the values of the placeholders.  stages.h turns a recipe into a
 * list of commands; to add an experiment, add rows to recipe.c.
 *
 * In a command {key} is replaced by the value of a setting, which may contain placeholders itself,
 * and @ by the folder of the study.  Settings come from the defaults, the recipe, its preset and
 * the user; later ones win.  Three are not placeholders but for the list of stages: "rows" replaces
 * the recipe's, "seeds" are the training seeds, and "minutes" says what each row takes on two quiet
 * cores ("collect:1 train:16"), for estimates.
 *
 * A group is a name for several recipes: each is a separate study in its own folder, and one page
 * shows them all. */
#ifndef CGS_STUDY_RECIPE_H
#define CGS_STUDY_RECIPE_H

#include <stdbool.h>

/* the output of rows that add lines to those of others */
#define CGS_STUDY_LINES "@/results.jsonl"

/* How often a row is run. */
typedef enum cgs_each {
    CGS_EACH_STUDY, /* once; {models} are those of the first training seed            */
    CGS_EACH_SEED,  /* once per training seed; {models} are those of the seed           */
    CGS_EACH_MODEL, /* once per model and training seed; {model}, {method}, {extra}      */
    CGS_EACH_FIRST  /* once per model of the first training seed                        */
} cgs_each;

typedef struct cgs_study_row {
    const char *id; /* its name in recipes, needs and --only                     */
    cgs_each each;
    const char *name;    /* of a stage, with placeholders                                     */
    const char *command; /* words of the command line                                 */
    const char *output;  /* exists when the stage is finished                          */
    const char *needs; /* ids of rows that must be finished; "*": all before it, failed or not   */
    const char *after; /* ids of rows whose lines it takes over instead of computing them again: it
                          waits for them where several run side by side                */
    bool keeps; /* the output may continue earlier work: one made with other settings is refused
                   instead of overwritten                             */
    bool whole; /* the output appears when it is complete, not before         */
    bool means; /* the output is needed by other stages only: once they are finished, it may go */
} cgs_study_row;

typedef struct cgs_variant {
    const char *label;  /* folder under models/ */
    const char *method; /* preset of cgs train  */
    const char *extra;  /* more settings        */
} cgs_variant;

typedef enum cgs_preset {
    CGS_PRESET_PAPER,
    CGS_PRESET_SMALL,
    CGS_PRESET_BRIEF,  /* the paper's sizes with as little data, training and evaluation as fits
                          into minutes on one GPU */
    CGS_PRESET_LAPTOP, /* small models and several training seeds, in hours on two cores */
    CGS_PRESET_TINY,   /* everything in seconds: that it runs, not what it finds */
    CGS_PRESETS
} cgs_preset;
extern const char *const cgs_preset_names[CGS_PRESETS];

typedef struct cgs_recipe {
    const char *name, *what;
    const char *rows;           /* ids, in order                                       */
    const cgs_variant *variant; /* (variants)                                          */
    int variants;
    const char *settings;            /* key=value, separated by bars                        */
    const char *preset[CGS_PRESETS]; /* the same; NULL: there is no such preset              */
} cgs_recipe;

/* A name for several recipes. */
typedef struct cgs_recipe_group {
    const char *name, *what;
    const char *members; /* names of recipes, separated by spaces */
} cgs_recipe_group;

extern const cgs_study_row cgs_study_rows[];
extern const int cgs_study_row_count;
extern const cgs_recipe cgs_recipes[];
extern const int cgs_recipe_count;
extern const cgs_recipe_group cgs_recipe_groups[];
extern const int cgs_recipe_group_count;
extern const char cgs_study_defaults[]; /* key=value, separated by bars */

const cgs_study_row *cgs_study_row_find(const char *id);         /* NULL: none */
const cgs_recipe *cgs_recipe_find(const char *name);             /* NULL: none */
const cgs_recipe_group *cgs_recipe_group_find(const char *name); /* NULL: none */

/* A table or figure of the paper and the stages that make it. */
typedef struct cgs_paper_item {
    const char *item, *what;
    const char *recipes; /* names of recipes or groups, separated by spaces */
    const char *only;    /* ids for --only; NULL: the whole recipe */
} cgs_paper_item;
extern const cgs_paper_item cgs_paper_items[];
extern const int cgs_paper_item_count;

#endif /* CGS_STUDY_RECIPE_H */

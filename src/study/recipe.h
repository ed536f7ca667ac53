/* recipe.h - what a study consists of, as data.
 *
 * A row is one kind of stage: a command line of this program with holes.  A recipe names the
 * rows it is made of, the models it trains and the numbers that fill the holes.  stages.h
 * turns a recipe into a list of commands; adding an experiment is adding rows to recipe.c.
 *
 * In a command {key} is replaced by the value of a setting, which may have holes itself, and @
 * by the folder of the study.  Settings come, later ones winning, from the defaults, the recipe,
 * its preset and the user.
 *
 * A group is a name for several recipes: each is a study of its own in a folder of its name, and
 * one page shows them all. */
#ifndef CGS_STUDY_RECIPE_H
#define CGS_STUDY_RECIPE_H

#include <stdbool.h>

/* How often a row happens. */
typedef enum cgs_each {
    CGS_EACH_STUDY, /* once; {models} are those of the first training seed            */
    CGS_EACH_SEED,  /* once per training seed; {models} are those of the seed           */
    CGS_EACH_MODEL, /* once per model and training seed; {model}, {method}, {extra}      */
    CGS_EACH_FIRST  /* once per model of the first training seed                        */
} cgs_each;

typedef struct cgs_study_row {
    const char *id; /* how recipes, needs and --only call it                     */
    cgs_each each;
    const char *name;    /* of a stage, with holes                                     */
    const char *command; /* words of the command line                                 */
    const char *output;  /* there when the stage is finished                          */
    const char *needs;   /* ids of rows that must be finished; "*": all before it, whatever
                          * became of them                                             */
    bool keeps;          /* the output continues earlier work: made with other settings, it is
                          * refused instead of overwritten                             */
    bool whole;          /* the output appears when it is complete, not before         */
} cgs_study_row;

typedef struct cgs_variant {
    const char *label;  /* folder under models/ */
    const char *method; /* preset of cgs train  */
    const char *extra;  /* more settings        */
} cgs_variant;

typedef struct cgs_recipe {
    const char *name, *what;
    const char *rows;           /* ids, in order                                       */
    const cgs_variant *variant; /* (variants)                                          */
    int variants;
    const char *settings; /* key=value, separated by bars                        */
    /* the same, by preset; NULL: the preset is not offered.  brief: the paper's sizes, but as
     * little data, training and evaluation as fits into minutes on one GPU */
    const char *paper, *small, *brief;
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

/* A table or figure of the paper and the commands that make it. */
typedef struct cgs_paper_item {
    const char *item, *what;
    const char *recipes; /* names of recipes or groups, separated by spaces */
    const char *only;    /* ids for --only; NULL: the whole recipe */
} cgs_paper_item;
extern const cgs_paper_item cgs_paper_items[];
extern const int cgs_paper_item_count;

#endif /* CGS_STUDY_RECIPE_H */

/* stages.h - a recipe turned into a list of commands, and the journal of the finished ones.
 *
 * Stages are in the order of training seeds: a seed is trained and evaluated completely before the
 * next begins, so that whatever time there is gives whole rows.
 *
 *   cgs_study_create   lists the stages of a recipe with their commands and hashes
 *   cgs_study_begin    makes the folder, writes study.json and reads stages.jsonl
 *   cgs_stage_state    done, to do, or refused
 *   cgs_stage_started  before its command runs;  cgs_stage_finished  after it succeeded
 *   cgs_study_sort_journal  after stages that ran side by side
 *   cgs_study_destroy
 *
 * A stage is identified by the hash of what it computes: its command without device, threads and
 * the name of the folder, and the hashes of the stages it needs.  So a finished stage is not rerun,
 * a changed setting reruns what depends on it, and a folder can be moved.
 *
 * Files of a study: study.json, stages.jsonl (one line per finished stage), logs/NAME.txt (a
 * line with hash and command, then what the command printed), parts/NAME.jsonl while it runs. */
#ifndef CGS_STUDY_STAGES_H
#define CGS_STUDY_STAGES_H

#include "core/status.h"
#include "study/recipe.h"

enum { CGS_FOUND_MAX = 400 };

typedef struct cgs_stage {
    const cgs_study_row *row;
    char *name;
    char **word; /* (words) the command from the verb on, NULL-terminated */
    int words;
    char *output; /* path */
    char *log;    /* path */
    char *part; /* path: its result lines while others write theirs (parts.c); NULL: it has none */
    int round;  /* of training seeds, from 0 */
    int *needs, *after; /* (need_count), (after_count) stages */
    int need_count, after_count;
    char hash[17];
    bool selected, finished;
    /* finished, and its output is gone, but nothing that is left to do needs it */
    bool spared;
    double minutes;            /* expected, on two quiet cores; 0: unknown */
    double seconds;            /* duration, when finished */
    char found[CGS_FOUND_MAX]; /* one line, when finished      */
} cgs_stage;

typedef struct cgs_study {
    const cgs_recipe *recipe;
    char *dir, *preset, *env, *device, *precision, *seeds, *journal;
    char *backbone;        /* file that was given, or NULL */
    cgs_stage *stage;      /* (count) in the order in which they run */
    int count, seed_count; /* stages; training seeds */
} cgs_study;

typedef struct cgs_study_options {
    const cgs_recipe *recipe;
    const char *dir;
    const char *preset;    /* of cgs_preset_names                                  */
    const char *device;    /* NULL: left to the commands                           */
    const char *precision; /* NULL: left to the commands                           */
    int threads, cores;    /* of most commands, and of those that no GPU helps; 0: left to them */
    const char *data;      /* a dataset that exists; NULL: one is collected        */
    /* an environment that is not the recipe's: its id, and the path of its plug-in where it is one
     */
    const char *env, *plug_in;
    const char *backbone;          /* of DINO-WM, a file; NULL: one is pretrained          */
    const char *seeds;             /* training seeds, "3072,1"; NULL: the recipe's         */
    const char *const *assignment; /* (assignments) key=value, over the recipe's settings  */
    int assignments;
    const char *const *only; /* (onlys) ids or names; what they need is added     */
    int onlys;
} cgs_study_options;

/* Destroy with cgs_study_destroy, also after a failure. */
cgs_status cgs_study_create(cgs_study **out, const cgs_study_options *o);
void cgs_study_destroy(cgs_study *s);

cgs_status cgs_study_begin(cgs_study *s);
/* The part of it that only reads: which stages are finished. */
cgs_status cgs_study_read(cgs_study *s);

typedef enum cgs_stage_do {
    CGS_STAGE_RUN,
    CGS_STAGE_DONE,  /* in the journal, and its output exists                        */
    CGS_STAGE_ADOPT, /* complete, but the program ended before the journal had it        */
} cgs_stage_do;
/* CGS_EARG when the output was made with other settings and would be lost or mixed. */
cgs_status cgs_stage_state(const cgs_stage *g, cgs_stage_do *todo);

/* command: as it would be typed, for the journal */
cgs_status cgs_stage_started(const cgs_study *s, cgs_stage *g, const char *command);
cgs_status cgs_stage_finished(cgs_study *s, cgs_stage *g, const char *command, double seconds,
                              const char *found);

/* The journal in the order of the list, in which stages that ran side by side did not end. */
cgs_status cgs_study_sort_journal(const cgs_study *s);

/* parts.c: stages that run side by side cannot all write to results.jsonl.  Each writes to its
 * part, a copy that knows the lines there are; joining appends the new ones and removes the part.
 * Done in the order of the list, that gives the file that one stage after another would have given.
 * A part that does not exist is joined already. */
cgs_status cgs_stage_open_part(const cgs_study *s, const cgs_stage *g);
cgs_status cgs_stage_join_part(const cgs_stage *g);

/* found.c: the result in one line, from what the command printed (the log), at most CGS_FOUND_MAX -
 * 1 bytes. */
void cgs_stage_found(const cgs_stage *g, char found[CGS_FOUND_MAX]);

#endif /* CGS_STUDY_STAGES_H */

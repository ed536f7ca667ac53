/* options.h - one table per verb parses, documents and completes its options. */
#ifndef CGS_CLI_OPTIONS_H
#define CGS_CLI_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

#include "core/status.h"

typedef enum cgs_opt_kind {
    OPT_FLAG,    /* bool *        present or not                       */
    OPT_INT,     /* int *         from 0                               */
    OPT_COUNT,   /* int *      from 1                               */
    OPT_THREADS, /* int *      0 (one per core) to CGS_THREADS_MOST */
    OPT_U64,     /* uint64_t *                                         */
    OPT_REAL,    /* double *                                           */
    OPT_STR,     /* const char **                                      */
    OPT_LIST     /* cgs_words *   every following word up to the next option or key=value */
} cgs_opt_kind;

typedef struct cgs_opt {
    const char *name; /* without the dashes                  */
    const char *arg;  /* name of the value in the help */
    const char *help;
    cgs_opt_kind kind;
    void *value; /* holds the default until parsed      */
    bool required;
} cgs_opt;

typedef struct cgs_words {
    char **word;
    int count;
} cgs_words;

/* A verb of the program; run gets the arguments after the verb.  Its option table lives
 * inside run, which calls cgs_options_parse before anything else: help, man page and
 * completion reach the table that way (manual.h). */
typedef struct cgs_verb {
    const char *name;
    const char *synopsis; /* arguments, one line                   */
    const char *summary;  /* what it does, one line                */
    const char *details;  /* a paragraph and examples, or NULL     */
    int (*run)(int argc, char **argv, const struct cgs_verb *self);
} cgs_verb;

/* Parses argv into the table.  Words that are not options go to `words` (operands
 * and key=value settings); with words == NULL they are errors.  "--help" prints the
 * verb's help and makes the function return CGS_ESTOPPED, which cgs_exit_code turns to 0. */
cgs_status cgs_options_parse(const cgs_verb *verb, const cgs_opt *opts, int count, int argc,
                             char **argv, cgs_words *words);

/* Turns a status into an exit code (0, 1, or 2 for usage errors) and prints the message on standard
 * error.  Every verb ends with it. */
int cgs_exit_code(const cgs_verb *verb, cgs_status rc);

#define CGS_COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

#endif /* CGS_CLI_OPTIONS_H */

/* study_run.h - runs the stages of one or several studies, some of them side by side. */
#ifndef CGS_CLI_STUDY_RUN_H
#define CGS_CLI_STUDY_RUN_H

#include "study/stages.h"

typedef struct cgs_study_member {
    const char *name;
    cgs_study *study; /* after cgs_study_begin; NULL: left out */
} cgs_study_member;

typedef struct cgs_study_run {
    const cgs_study_member *member; /* (members) */
    int members;
    bool group;      /* a group: its members are named in what is printed */
    int jobs;        /* stages that run at a time */
    double deadline; /* cgs_now; 0: none */
    bool quiet, json;
    /* after every round of a member of a group, when all of its stages have ended; may be NULL */
    cgs_status (*round_ended)(void *user);
    void *user;
    int incomplete; /* result: members with stages that failed or were skipped */
} cgs_study_run;

/* Runs in the order of rounds, within a round of members, within a member of its list; with several
 * jobs a stage begins when those it needs have ended and no earlier one can.  A stage that fails
 * keeps only those that need it from running.  CGS_EIO where something is left to do, in words for
 * a single study that failed; the caller says it for a group. */
cgs_status cgs_study_run_all(cgs_study_run *r);

/* the stages with their commands */
void cgs_study_print_plan(const cgs_study_run *r);

#endif /* CGS_CLI_STUDY_RUN_H */

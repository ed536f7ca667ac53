/* findings.h - everything that was found about a dataset, one sentence each, so that a person who
 * repairs a file learns of all of it at once. */
#ifndef CGS_DATA_FINDINGS_H
#define CGS_DATA_FINDINGS_H

#include <stdbool.h>

#include "core/status.h"

#define CGS_FINDINGS 32 /* of each kind are kept; more are counted */

typedef struct cgs_sentence {
    char s[400];
} cgs_sentence;

/* Zero it before use. */
typedef struct cgs_findings {
    int problems, remarks; /* found: a dataset with a problem cannot be trained on */
    cgs_sentence problem[CGS_FINDINGS], remark[CGS_FINDINGS];
    cgs_status code; /* of the first problem */
} cgs_findings;

void cgs_findings_problem(cgs_findings *f, cgs_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void cgs_findings_remark(cgs_findings *f, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Makes a failure to read `path` a problem, and CGS_OK; what is no fault of the file (no memory, a
 * stop) is returned as it is. */
cgs_status cgs_findings_failure(cgs_findings *f, cgs_status rc, const char *path);

/* CGS_OK without a problem; else all of them in one sentence about the file. */
cgs_status cgs_findings_report(const cgs_findings *f, const char *path);

#endif /* CGS_DATA_FINDINGS_H */

/* report.h - one self-contained HTML page from the folders of runs, and their tables as Markdown.
 *
 * A run is a folder that other verbs wrote into (docs/formats.md), or a single file of results.
 * Each section is drawn when its files exist.  A damaged or unknown file becomes a warning, on the
 * page and through `warn`; only a run that does not exist, or runs with nothing to draw, are
 * failures. */
#ifndef CGS_REPORT_REPORT_H
#define CGS_REPORT_REPORT_H

#include "core/status.h"

typedef struct cgs_report_options {
    const char *const *runs; /* (count) */
    int count;
    const char *out;
    const char *title;  /* NULL: from the runs */
    const char *tables; /* Markdown file to write as well; NULL: none */
    const char *claims; /* the same for the claims (claims.h) */
    void (*warn)(void *user, const char *sentence);
    void *user;
} cgs_report_options;

typedef struct cgs_report_summary {
    int sections, figures, warnings, tables;
    char verdict[512]; /* of the first run */
} cgs_report_summary;

cgs_status cgs_report_write(const cgs_report_options *o, cgs_report_summary *out);

#endif /* CGS_REPORT_REPORT_H */

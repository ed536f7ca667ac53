/* markdown.h - tables in Markdown, entry by entry.
 *
 * A row is a sequence of cgs_md_entry, cgs_md_cells and others, each of which begins with a bar,
 * then cgs_md_end.  The first row is followed by cgs_md_rule. */
#ifndef CGS_REPORT_MARKDOWN_H
#define CGS_REPORT_MARKDOWN_H

#include "core/statistics.h"
#include "io/text.h"

/* A measured number and its annotations. */
typedef struct cgs_md_cell {
    bool got;        /* else "not run" */
    char strong[48]; /* begins with the number; bold where it is the best of its row */
    char tail[96];   /* interval, the paper's number */
} cgs_md_cell;

/* A text, escaped: whatever it contains, no markup, no new column, no new line. */
void cgs_md_words(cgs_text *t, const char *text);
/* The same as the next cell of a row. */
void cgs_md_entry(cgs_text *t, const char *text);
/* best: the highest numbers, as printed, are bold where there is something to compare. */
void cgs_md_cells(cgs_text *t, const cgs_md_cell *cell, int count, bool best);
/* "+1.2 (-0.8 to 3.3)", with a real minus sign. */
void cgs_md_difference(cgs_text *t, double v, cgs_interval interval);
/* A line of an indented code block, in which nothing is markup. */
void cgs_md_code(cgs_text *t, const char *line);
void cgs_md_end(cgs_text *t);
void cgs_md_rule(cgs_text *t, int columns);

#endif /* CGS_REPORT_MARKDOWN_H */

/* page.h - one self-contained HTML page.
 *
 * Sections are opened and closed one after the other.  They contain figures (cgs_page_figure ...
 * cgs_page_figure_end, drawn into the text it returns), grids of figures, tables, notes and
 * commands.  cgs_page_write adds the head, the verdict, the warnings and the list of sections.  All
 * texts are escaped here. */
#ifndef CGS_REPORT_PAGE_H
#define CGS_REPORT_PAGE_H

#include "io/text.h"

typedef struct cgs_page {
    cgs_text top;  /* verdicts, before everything else */
    cgs_text nav;  /* links to the sections            */
    cgs_text body; /* the sections                     */
    char **warning;
    int warnings, sections, figures, runs;
    const char *run; /* name of the run that is being drawn; NULL when there is only one */
    bool in_row;
    void (*warn)(void *user, const char *sentence); /* called with each warning; may be NULL */
    void *user;
} cgs_page;

void cgs_page_free(cgs_page *p);

/* Reports a problem with a folder, once on the page and once to `warn`. */
void cgs_page_warn(cgs_page *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

void cgs_page_section(cgs_page *p, const char *id, const char *title);
void cgs_page_section_end(cgs_page *p);
void cgs_page_subtitle(cgs_page *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cgs_page_note(cgs_page *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The command that made what is above it; nothing for NULL or "". */
void cgs_page_command(cgs_page *p, const char *command);

void cgs_page_grid(cgs_page *p, bool small);
void cgs_page_grid_end(cgs_page *p);
cgs_text *cgs_page_figure(cgs_page *p);
void cgs_page_figure_end(cgs_page *p, const char *caption);
/* An embedded image of type "image/png" or "image/gif". */
void cgs_page_image(cgs_page *p, const char *type, const void *data, size_t bytes, const char *alt);

/* A table that scrolls horizontally where it does not fit.  tall: also vertically. */
void cgs_page_table(cgs_page *p, bool tall);
void cgs_page_row(cgs_page *p);
void cgs_page_head(cgs_page *p, const char *text);
/* A row's name; style >= 0 adds a dot of its colour. */
void cgs_page_name(cgs_page *p, const char *text, int style);
/* A number, small print below it and the published number (NULL: none); good: 1 better, -1 worse, 0
 * neither. */
void cgs_page_cell(cgs_page *p, const char *main, const char *below, const char *published,
                   int good);
void cgs_page_words(cgs_page *p, const char *text);
void cgs_page_table_end(cgs_page *p);

/* Writes the whole page. */
cgs_status cgs_page_write(const cgs_page *p, const char *path, const char *title);

/* The style sheet (style.c), rule by rule, then NULL. */
extern const char *const cgs_page_style[];

#endif /* CGS_REPORT_PAGE_H */

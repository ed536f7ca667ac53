/* markdown.c - see markdown.h. */
#include "report/markdown.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/sections.h"

void cgs_md_words(cgs_text *t, const char *text) {
    static const char marks[] = "\\|*_`[]~#$";
    char part[512];
    for (const char *s = text; *s;) {
        size_t n = strcspn(s, marks);
        if (n > sizeof part - 1) n = sizeof part - 1;
        snprintf(part, sizeof part, "%.*s", (int)n, s);
        cgs_text_escape(t, part);
        s += n;
        if (*s && strchr(marks, *s)) cgs_text_printf(t, "\\%c", *s++);
    }
}

void cgs_md_entry(cgs_text *t, const char *text) {
    cgs_text_put(t, "| ");
    cgs_md_words(t, text);
    if (*text) cgs_text_put(t, " ");
}

void cgs_md_cells(cgs_text *t, const cgs_md_cell *cell, int count, bool best) {
    double high = -INFINITY;
    int got = 0;
    for (int i = 0; i < count; i++)
        if (cell[i].got) {
            got++;
            high = fmax(high, strtod(cell[i].strong, NULL));
        }
    for (int i = 0; i < count; i++) {
        /* compares printed numbers: two that look the same are both best */
        bool bold = best && got > 1 && cell[i].got && !(strtod(cell[i].strong, NULL) < high);
        const char *mark = bold ? "**" : "", *text = cell[i].got ? cell[i].strong : "not run";
        cgs_text_printf(t, "| %s%s%s%s ", mark, text, mark, cell[i].tail);
    }
}

/* a bound gets no plus sign, and there is no "-0.0" */
static void format_bound(char *out, size_t size, double v) {
    snprintf(out, size, "%s%.1f", v < -0.05 ? CGS_MINUS : "", fabs(v));
}

void cgs_md_difference(cgs_text *t, double v, cgs_interval interval) {
    char middle[32], low[32], high[32];
    cgs_format_signed(middle, sizeof middle, v);
    format_bound(low, sizeof low, interval.low);
    format_bound(high, sizeof high, interval.high);
    cgs_text_printf(t, "| %s (%s to %s) ", middle, low, high);
}

void cgs_md_code(cgs_text *t, const char *line) {
    cgs_text_put(t, "    ");
    cgs_text_line(t, line);
    cgs_text_put(t, "\n");
}

void cgs_md_end(cgs_text *t) { cgs_text_put(t, "|\n"); }

void cgs_md_rule(cgs_text *t, int columns) {
    for (int i = 0; i < columns; i++) cgs_text_put(t, "|---");
    cgs_md_end(t);
}

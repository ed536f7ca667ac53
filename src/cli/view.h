/* view.h - a training run drawn in a terminal: sparklines of losses, throughput, memory and
 * the time left.
 *
 * Lines are drawn over themselves with cursor-up and clear-line, the oldest of the ANSI codes:
 * no alternate screen, no hidden cursor, nothing to restore when the connection breaks. */
#ifndef CGS_CLI_VIEW_H
#define CGS_CLI_VIEW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "train/learning_check.h"
#include "train/train.h"

/* One number over the updates, kept in buckets of equal length that double when they are full. */
enum { CGS_SERIES_MAX = 512 };
typedef struct cgs_series {
    double sum[CGS_SERIES_MAX], last;
    int n[CGS_SERIES_MAX];
    int count, per; /* buckets in use, values per bucket */
} cgs_series;

void cgs_series_add(cgs_series *s, double v);
/* `width` cells of bars from low to high into out (4 * width + 1 bytes); a long range of
 * positive numbers is drawn logarithmically.  Characters of one byte unless utf8. */
void cgs_series_draw(const cgs_series *s, int width, bool utf8, char *out);

typedef struct cgs_view {
    char title[128], footer[256];
    uint64_t step, total;
    double seconds; /* of an update, a running mean */
    double memory;  /* bytes */
    cgs_series loss, term[CGS_TERMS], rate, cosine;
    cgs_learning_check check;
    int drawn; /* lines on the screen */
    double drawn_at;
} cgs_view;

void cgs_view_begin(cgs_view *v, const char *title);
void cgs_view_step(cgs_view *v, const cgs_step_info *i, double memory);
void cgs_view_validation(cgs_view *v, const cgs_validation *valid);
/* Redraws in place.  width, height: of the terminal; 0: 80 x 24. */
void cgs_view_draw(cgs_view *v, FILE *to, int width, int height, bool utf8);

#endif /* CGS_CLI_VIEW_H */

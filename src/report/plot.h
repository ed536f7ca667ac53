/* plot.h - plots: axes with ticks, legends, lines with bands, intervals, bars, heat maps, paths.
 *
 * A plot is one panel about as wide as a phone; a wide page sets several side by side.  Series have
 * a style: a number that is a colour (class "c0", "c1", ...) and a mark, so that no two differ by
 * colour alone.  Non-finite values are left out. */
#ifndef CGS_REPORT_PLOT_H
#define CGS_REPORT_PLOT_H

#include "io/svg.h"

/* Styles of the methods, as in the paper: blue, brown and green. */
enum { CGS_STYLE_PLAIN, CGS_STYLE_TS, CGS_STYLE_CGS, CGS_STYLE_OTHER, CGS_STYLES = 8 };

typedef enum cgs_axis_scale { CGS_AXIS_LINEAR, CGS_AXIS_LOG2, CGS_AXIS_LOG10 } cgs_axis_scale;

typedef struct cgs_axis {
    const char *label;
    cgs_axis_scale scale;
    bool fixed; /* from low to high; otherwise as the data need it */
    double low, high;
} cgs_axis;

enum {
    CGS_LINE_MARKS = 1,   /* a mark at each point, with its numbers     */
    CGS_LINE_FAINT = 2,   /* thin and dashed: published numbers   */
    CGS_LINE_POINTS = 4,  /* marks without a line                       */
    CGS_LINE_STEPS = 8,   /* a step function                 */
    CGS_LINE_OUTSIDE = 16 /* does not widen the axes; clamped to their edge */
};

typedef struct cgs_plot_series {
    const char *name; /* in the legend; NULL: not there */
    int style, flags, n;
    const double *x, *y;      /* (n) */
    const double *low, *high; /* (n) a band, or NULL */
} cgs_plot_series;

typedef struct cgs_plot {
    const char *title;
    cgs_axis x, y;
    const cgs_plot_series *series;
    int count;
    bool marked; /* a vertical line at mark, with mark_label */
    double mark;
    const char *mark_label;
} cgs_plot;

void cgs_plot_lines(cgs_text *t, const cgs_plot *p);

/* A row of a plot of intervals or bars; low and high equal value where there is no interval. */
typedef struct cgs_plot_row {
    const char *label;
    double value, low, high;
    int style;
} cgs_plot_row;

/* Values with their intervals about a line at zero. */
void cgs_plot_intervals(cgs_text *t, const char *title, const char *axis, const cgs_plot_row *row,
                        int rows);
/* Horizontal bars from zero. */
void cgs_plot_bars(cgs_text *t, const char *title, const char *axis, const cgs_plot_row *row,
                   int rows);

/* cosine: (n, n) from -1 to 1 */
void cgs_plot_heat(cgs_text *t, const char *title, int style, const double *cosine, int n);
/* the colours of the heat maps with their values */
void cgs_plot_heat_scale(cgs_text *t, const char *label);

/* A path through 2 or 3 dimensions.  style -1: the reference, dashed. */
typedef struct cgs_plot_path {
    const char *name;
    int style, n;
    const double *at; /* (n, dims) */
} cgs_plot_path;

/* Paths on equal axes; three dimensions are projected from above and the side. */
void cgs_plot_paths(cgs_text *t, const char *title, const cgs_plot_path *path, int paths, int dims);

/* ---- parts that the plots share --------------------------------------------------- */

/* Round numbers from low to high, at most `most`.  tick: (16).  Returns how many. */
int cgs_plot_ticks(double low, double high, cgs_axis_scale scale, int most, double *tick);
/* A number in the short form of axis labels. */
void cgs_plot_number(char *out, size_t size, double v);
/* Estimated width of a legend's text; fonts differ, so it errs on the wide side. */
double cgs_plot_text_width(const char *s);
/* The legend in rows of `width`; returns its height.  t NULL: only measures. */
typedef struct cgs_plot_key {
    const char *name;
    int style, flags;
} cgs_plot_key;
double cgs_plot_legend(cgs_text *t, double x, double y, double width, const cgs_plot_key *key,
                       int keys);

enum { CGS_PLOT_WIDTH = 380, CGS_PLOT_HEIGHT = 270 };

#endif /* CGS_REPORT_PLOT_H */

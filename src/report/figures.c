/* figures.c - intervals, bars, heat maps and paths; see plot.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/plot.h"

/* ---- rows: intervals and bars ------------------------------------------------------ */

typedef struct rows_frame {
    double left, top, width, bottom, low, high;
} rows_frame;

static double at(const rows_frame *f, double v) {
    double p = (v - f->low) / (f->high - f->low);
    return f->left + f->width * (p < 0 ? 0 : p > 1 ? 1 : p);
}

/* title, axis with ticks and labels of the rows; the range always holds zero */
static rows_frame begin_rows(cgs_text *t, const char *title, const char *axis,
                             const cgs_plot_row *row, int rows, double step) {
    rows_frame f = {.left = 120, .top = 32, .low = 0, .high = 0};
    double longest = 0;
    for (int i = 0; i < rows; i++) {
        const double v[3] = {row[i].value, row[i].low, row[i].high};
        for (int k = 0; k < 3; k++)
            if (isfinite(v[k])) {
                f.low = v[k] < f.low ? v[k] : f.low;
                f.high = v[k] > f.high ? v[k] : f.high;
            }
        longest = fmax(longest, cgs_plot_text_width(row[i].label));
    }
    double span = f.high - f.low;
    if (!(span > 0)) span = f.high = 1;
    if (f.low < 0) f.low -= 0.06 * span;
    f.high += 0.06 * span;
    double label = longest + 14;
    f.left = label < 60 ? 60 : label > 190 ? 190 : label;
    f.width = CGS_PLOT_WIDTH - f.left - 16;
    f.bottom = f.top + step * rows + 6;
    cgs_svg_begin(t, CGS_PLOT_WIDTH, f.bottom + 40, title);
    cgs_svg_text(t, "title", 8, 16, 's', title);
    double tick[16];
    char text[32];
    int n = cgs_plot_ticks(f.low, f.high, CGS_AXIS_LINEAR, 6, tick);
    for (int i = 0; i < n; i++) {
        double x = at(&f, tick[i]);
        cgs_svg_line(t, "grid", x, f.top - 4, x, f.bottom);
        cgs_plot_number(text, sizeof text, tick[i]);
        cgs_svg_text(t, "tick", x, f.bottom + 14, 'm', text);
    }
    cgs_svg_line(t, "zero", at(&f, 0), f.top - 4, at(&f, 0), f.bottom);
    cgs_svg_text(t, "label", f.left + f.width / 2, f.bottom + 31, 'm', axis);
    for (int i = 0; i < rows; i++) {
        char name[64];
        snprintf(name, sizeof name, "%.60s", row[i].label);
        cgs_svg_text(t, "row", f.left - 8, f.top + step * (i + 0.5) + 4, 'e', name);
    }
    return f;
}

void cgs_plot_intervals(cgs_text *t, const char *title, const char *axis, const cgs_plot_row *row,
                        int rows) {
    double step = 24;
    rows_frame f = begin_rows(t, title, axis, row, rows, step);
    for (int i = 0; i < rows; i++) {
        double y = f.top + step * (i + 0.5);
        char class[32], hint[128];
        if (!isfinite(row[i].value)) continue;
        snprintf(class, sizeof class, "whisker c%d", row[i].style);
        cgs_svg_line(t, class, at(&f, row[i].low), y, at(&f, row[i].high), y);
        snprintf(class, sizeof class, "mark f%d", row[i].style);
        snprintf(hint, sizeof hint, "%+.3g [%+.3g, %+.3g]", row[i].value, row[i].low, row[i].high);
        cgs_svg_mark(t, class, row[i].style, at(&f, row[i].value), y, 5, hint);
    }
    cgs_svg_end(t);
}

void cgs_plot_bars(cgs_text *t, const char *title, const char *axis, const cgs_plot_row *row,
                   int rows) {
    double step = 20;
    rows_frame f = begin_rows(t, title, axis, row, rows, step);
    for (int i = 0; i < rows; i++) {
        double y = f.top + step * i, x = at(&f, row[i].value), zero = at(&f, 0);
        char class[32], text[32];
        if (!isfinite(row[i].value)) continue;
        snprintf(class, sizeof class, "bar f%d", row[i].style);
        cgs_svg_rect(t, class, zero < x ? zero : x, y + 3, fabs(x - zero), step - 6);
        snprintf(text, sizeof text, "%.3g", row[i].value);
        /* inside a bar that fills the width, after it otherwise */
        bool inside = x > f.left + f.width - 44;
        cgs_svg_text(t, inside ? "inbar" : "tick", inside ? x - 5 : x + 5, y + step / 2 + 4,
                     inside ? 'e' : 's', text);
    }
    cgs_svg_end(t);
}

/* ---- heat maps --------------------------------------------------------------------- */

enum { HEAT = 190 };

void cgs_plot_heat(cgs_text *t, const char *title, int style, const double *cosine, int n) {
    char class[32];
    cgs_svg_begin(t, HEAT + 20, HEAT + 34, title);
    snprintf(class, sizeof class, "title t%d", style);
    cgs_svg_text(t, style < 0 ? "title" : class, 10, 16, 's', title);
    cgs_svg_cells(t, 10, 24, HEAT, cosine, n, n);
    cgs_svg_rect(t, "box", 10, 24, HEAT, HEAT);
    cgs_svg_end(t);
}

void cgs_plot_heat_scale(cgs_text *t, const char *label) {
    char class[16], text[16];
    cgs_svg_begin(t, CGS_PLOT_WIDTH, 44, label);
    for (int i = 0; i <= 32; i++) {
        snprintf(class, sizeof class, "h%d", i);
        cgs_svg_rect(t, class, 40 + 300.0 * i / 33, 6, 300.0 / 33 + 0.3, 12);
    }
    cgs_svg_rect(t, "box", 40, 6, 300, 12);
    for (int i = 0; i <= 2; i++) {
        cgs_plot_number(text, sizeof text, i - 1);
        cgs_svg_text(t, "tick", 40 + 150.0 * i, 31, 'm', text);
    }
    cgs_svg_text(t, "tick", 190, 42, 'm', label);
    cgs_svg_end(t);
}

/* ---- paths ------------------------------------------------------------------------- */

enum { PATH_SIDE = 300 };

/* Azimuth 30 degrees, elevation 22; two dimensions are drawn as they are. */
static void project(const double *v, int dims, double *x, double *y) {
    *x = v[0];
    *y = v[1];
    if (dims < 3) return;
    const double ca = 0.8660254, sa = 0.5, ce = 0.9271839, se = 0.3746066;
    double depth = sa * v[0] + ca * v[1];
    *x = ca * v[0] - sa * v[1];
    *y = ce * v[2] + se * depth;
}

typedef struct view {
    double x, y, scale, left, top;
} view;

static view fit(const cgs_plot_path *path, int paths, int dims, double top) {
    double box[4] = {INFINITY, -INFINITY, INFINITY, -INFINITY};
    for (int p = 0; p < paths; p++)
        for (int i = 0; i < path[p].n; i++) {
            double x, y;
            project(path[p].at + (size_t)i * (size_t)dims, dims, &x, &y);
            if (!isfinite(x) || !isfinite(y)) continue;
            box[0] = fmin(box[0], x);
            box[1] = fmax(box[1], x);
            box[2] = fmin(box[2], y);
            box[3] = fmax(box[3], y);
        }
    double span = fmax(box[1] - box[0], box[3] - box[2]);
    if (!isfinite(span)) return (view){0, 0, 1, CGS_PLOT_WIDTH / 2.0, top + PATH_SIDE / 2.0};
    return (view){(box[0] + box[1]) / 2, (box[2] + box[3]) / 2,
                  (PATH_SIDE - 30) / (span > 0 ? span : 1), CGS_PLOT_WIDTH / 2.0,
                  top + PATH_SIDE / 2.0};
}

static void to_page(const view *w, const double *v, int dims, double *xy) {
    project(v, dims, &xy[0], &xy[1]);
    xy[0] = w->left + w->scale * (xy[0] - w->x);
    xy[1] = w->top - w->scale * (xy[1] - w->y);
}

/* three short arrows in the corner show the orientation of the axes */
static void draw_triad(cgs_text *t, double top) {
    static const char *const name[3] = {"1", "2", "3"};
    view w = {0, 0, 26, 40, top + PATH_SIDE - 34};
    for (int k = 0; k < 3; k++) {
        double zero[3] = {0, 0, 0}, tip[3] = {0, 0, 0}, a[2], b[2];
        tip[k] = 1;
        to_page(&w, zero, 3, a);
        to_page(&w, tip, 3, b);
        cgs_svg_line(t, "axis", a[0], a[1], b[0], b[1]);
        cgs_svg_text(t, "tick", a[0] + 1.35 * (b[0] - a[0]), a[1] + 1.35 * (b[1] - a[1]) + 3, 'm',
                     name[k]);
    }
}

static void draw_path(cgs_text *t, const view *w, const cgs_plot_path *p, int dims) {
    double *xy = malloc(2 * (size_t)(p->n > 0 ? p->n : 1) * sizeof *xy);
    if (!xy) {
        t->failed = true;
        return;
    }
    for (int i = 0; i < p->n; i++) to_page(w, p->at + (size_t)i * (size_t)dims, dims, xy + 2 * i);
    char class[32];
    snprintf(class, sizeof class, "path c%d", p->style);
    cgs_svg_polyline(t, p->style < 0 ? "ref" : class, xy, p->n);
    snprintf(class, sizeof class, "mark f%d", p->style);
    const char *mark = p->style < 0 ? "refmark" : class;
    if (p->n > 0) {
        cgs_svg_mark(t, mark, 1, xy[0], xy[1], 4, "start");
        cgs_svg_mark(t, mark, 3, xy[2 * p->n - 2], xy[2 * p->n - 1], 5, "end");
    }
    free(xy);
}

void cgs_plot_paths(cgs_text *t, const char *title, const cgs_plot_path *path, int paths,
                    int dims) {
    cgs_plot_key *key = calloc((size_t)(paths > 0 ? paths : 1), sizeof *key);
    if (!key) {
        t->failed = true;
        return;
    }
    for (int p = 0; p < paths; p++) key[p] = (cgs_plot_key){path[p].name, path[p].style, 0};
    double legend = cgs_plot_legend(NULL, 0, 0, CGS_PLOT_WIDTH - 24, key, paths), top = 28 + legend;
    view w = fit(path, paths, dims, top);
    cgs_svg_begin(t, CGS_PLOT_WIDTH, top + PATH_SIDE + 4, title);
    cgs_svg_text(t, "title", 10, 16, 's', title);
    cgs_plot_legend(t, 10, 24, CGS_PLOT_WIDTH - 24, key, paths);
    cgs_svg_rect(t, "pane", 10, top, CGS_PLOT_WIDTH - 20, PATH_SIDE);
    if (dims == 3) draw_triad(t, top);
    for (int p = 0; p < paths; p++) draw_path(t, &w, &path[p], dims);
    cgs_svg_end(t);
    free(key);
}

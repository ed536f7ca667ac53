/* plot.c - axes, ticks, legends, lines and bands; see plot.h. */
#include "report/plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TICKS = 16, LEFT = 50, RIGHT = 14, BOTTOM = 42 };

/* ---- numbers and ticks ------------------------------------------------------------- */

void cgs_plot_number(char *out, size_t size, double v) {
    double a = fabs(v);
    if (a >= 1e6) {
        snprintf(out, size, "%gM", v / 1e6);
    } else if (a >= 1e4) {
        snprintf(out, size, "%gk", v / 1e3);
    } else if (a > 0 && a < 1e-3) {
        int power = (int)floor(log10(a) + 1e-9);
        snprintf(out, size, "%.3ge%d", v / pow(10, power), power);
    } else {
        snprintf(out, size, "%.4g", v);
    }
    if (out[0] == '-' && size > 4) { /* a real minus sign is as wide as a digit; a hyphen is not */
        char rest[32];
        snprintf(rest, sizeof rest, "%s", out + 1);
        snprintf(out, size, "\xE2\x88\x92%s", rest);
    }
}

static int linear_ticks(double low, double high, int most, double *tick) {
    double raw = (high - low) / most, unit = pow(10, floor(log10(raw)));
    double step = raw <= unit       ? unit
                  : raw <= 2 * unit ? 2 * unit
                  : raw <= 5 * unit ? 5 * unit
                                    : 10 * unit;
    int n = 0;
    for (double i = ceil(low / step - 1e-9); i * step <= high + 1e-9 * step && n < MAX_TICKS; i++)
        tick[n++] = fabs(i) < 0.5 ? 0 : i * step;
    return n;
}

int cgs_plot_ticks(double low, double high, cgs_axis_scale scale, int most, double *tick) {
    if (!(high > low) || most < 2) return 0;
    if (most > MAX_TICKS) most = MAX_TICKS;
    if (scale == CGS_AXIS_LINEAR) return linear_ticks(low, high, most, tick);
    if (!(low > 0)) return 0;
    double base = scale == CGS_AXIS_LOG2 ? 2 : 10, first = ceil(log(low) / log(base) - 1e-9);
    double last = floor(log(high) / log(base) + 1e-9);
    int n = 0;
    if (last - first < 2 && base > 2) {
        /* hardly more than a decade: ticks at 1, 2 and 5 */
        static const double part[] = {1, 2, 5};
        for (double i = first - 1; i <= last; i++)
            for (int k = 0; k < 3; k++) {
                double v = part[k] * pow(10, i);
                if (v >= low && v <= high && n < MAX_TICKS) tick[n++] = v;
            }
        if (n >= 3) return n;
    }
    if (last - first < 1) return linear_ticks(low, high, most, tick);
    double stride = ceil((last - first + 1) / most);
    n = 0;
    for (double i = first; i <= last && n < MAX_TICKS; i += stride) tick[n++] = pow(base, i);
    return n;
}

/* ---- legend ------------------------------------------------------------------------ */

double cgs_plot_text_width(const char *s) {
    double em = 0;
    for (const char *p = s; *p; p++) {
        if (((unsigned char)*p & 0xC0) == 0x80) continue; /* a UTF-8 continuation byte */
        em += strchr("MW@%\xE2", *p)                               ? 0.95
              : strchr("ijlI.,:;|()[] ", *p)                       ? 0.38
              : *p == '+' || *p == '=' || (*p >= 'A' && *p <= 'Z') ? 0.76
                                                                   : 0.63;
    }
    return 11.5 * em;
}

static void swatch(cgs_text *t, const cgs_plot_key *k, double x, double y) {
    char class[32];
    if (k->style < 0) {
        cgs_svg_line(t, "ref", x, y - 4, x + 18, y - 4);
        return;
    }
    if (!(k->flags & CGS_LINE_POINTS)) {
        snprintf(class, sizeof class, "%s c%d", k->flags & CGS_LINE_FAINT ? "faint" : "line",
                 k->style);
        cgs_svg_line(t, class, x, y - 4, x + 18, y - 4);
    }
    if (k->flags & (CGS_LINE_MARKS | CGS_LINE_POINTS)) {
        snprintf(class, sizeof class, "mark f%d", k->style);
        cgs_svg_mark(t, class, k->style, x + 9, y - 4, 3.5, NULL);
    }
}

double cgs_plot_legend(cgs_text *t, double x, double y, double width, const cgs_plot_key *key,
                       int keys) {
    double at = 0, row = 0;
    int shown = 0;
    for (int i = 0; i < keys; i++) {
        if (!key[i].name) continue;
        char name[96];
        snprintf(name, sizeof name, "%.80s", key[i].name);
        double w = 24 + cgs_plot_text_width(name) + 9;
        if (at > 0 && at + w > width + 9) {
            at = 0;
            row += 16;
        }
        if (t) {
            swatch(t, &key[i], x + at, y + row + 11);
            cgs_svg_text(t, "key", x + at + 23, y + row + 11, 's', name);
        }
        at += w;
        shown++;
    }
    return shown ? row + 18 : 0;
}

/* ---- lines ------------------------------------------------------------------------- */

typedef struct frame {
    double left, top, width, height;
    cgs_axis x, y;
} frame;

static double unscale(double v, cgs_axis_scale s) {
    return s == CGS_AXIS_LINEAR ? v : v > 0 ? log2(v) : NAN;
}

static double place(double v, const cgs_axis *a) {
    double low = unscale(a->low, a->scale), high = unscale(a->high, a->scale);
    return (unscale(v, a->scale) - low) / (high - low);
}

static double at_x(const frame *f, double v) { return f->left + f->width * place(v, &f->x); }
/* lines are clipped at the frame */
static double at_y(const frame *f, double v) {
    double p = place(v, &f->y);
    if (isfinite(p)) p = p < 0 ? 0 : p > 1 ? 1 : p;
    return f->top + f->height * (1 - p);
}

static void include(cgs_axis *a, double v) {
    if (!isfinite(v) || (a->scale != CGS_AXIS_LINEAR && !(v > 0))) return;
    if (v < a->low) a->low = v;
    if (v > a->high) a->high = v;
}

static void widen(cgs_axis *a, double margin) {
    if (!(a->low <= a->high)) {
        a->low = a->scale == CGS_AXIS_LINEAR ? 0 : 1;
        a->high = a->scale == CGS_AXIS_LINEAR ? 1 : 2;
    }
    if (a->scale != CGS_AXIS_LINEAR) {
        double ratio = pow(a->high / a->low, margin);
        if (!(ratio > 1.0001)) ratio = 1.2;
        a->low /= ratio;
        a->high *= ratio;
        return;
    }
    double span = a->high - a->low;
    if (!(span > 1e-12 * fabs(a->high))) span = fabs(a->high) > 0 ? fabs(a->high) : 1;
    a->low -= margin * span;
    a->high += margin * span;
}

static void find_range(frame *f, const cgs_plot *p) {
    f->x = p->x;
    f->y = p->y;
    for (int k = 0; k < 2; k++) {
        cgs_axis *a = k ? &f->y : &f->x;
        if (a->fixed && a->high > a->low) continue;
        a->low = INFINITY;
        a->high = -INFINITY;
        for (int s = 0; s < p->count; s++)
            for (int i = 0; i < p->series[s].n && !(p->series[s].flags & CGS_LINE_OUTSIDE); i++) {
                include(a, k ? p->series[s].y[i] : p->series[s].x[i]);
                if (k && p->series[s].low) include(a, p->series[s].low[i]);
                if (k && p->series[s].high) include(a, p->series[s].high[i]);
            }
        if (!k && p->marked) include(a, p->mark);
        widen(a, k ? 0.06 : a->scale == CGS_AXIS_LINEAR ? 0.0 : 0.04);
    }
}

static void draw_axes(cgs_text *t, const frame *f) {
    double tick[MAX_TICKS];
    char label[32];
    double bottom = f->top + f->height;
    int n = cgs_plot_ticks(f->y.low, f->y.high, f->y.scale, 6, tick);
    for (int i = 0; i < n; i++) {
        double y = at_y(f, tick[i]);
        cgs_plot_number(label, sizeof label, tick[i]);
        cgs_svg_line(t, "grid", f->left, y, f->left + f->width, y);
        cgs_svg_text(t, "tick", f->left - 6, y + 3.5, 'e', label);
    }
    n = cgs_plot_ticks(f->x.low, f->x.high, f->x.scale, f->x.scale == CGS_AXIS_LOG2 ? 9 : 6, tick);
    for (int i = 0; i < n; i++) {
        double x = at_x(f, tick[i]);
        cgs_plot_number(label, sizeof label, tick[i]);
        cgs_svg_line(t, "axis", x, bottom, x, bottom + 4);
        cgs_svg_text(t, "tick", x, bottom + 15, 'm', label);
    }
    cgs_svg_line(t, "axis", f->left, bottom, f->left + f->width, bottom);
    if (f->x.label) cgs_svg_text(t, "label", f->left + f->width / 2, bottom + 32, 'm', f->x.label);
    if (f->y.label) cgs_svg_text_up(t, "label", 11, f->top + f->height / 2, f->y.label);
}

static void draw_band(cgs_text *t, const frame *f, const cgs_plot_series *s, double *xy) {
    int n = 0;
    for (int i = 0; i < s->n; i++, n++) {
        xy[2 * n] = at_x(f, s->x[i]);
        xy[2 * n + 1] = at_y(f, s->high[i]);
    }
    for (int i = s->n - 1; i >= 0; i--, n++) {
        xy[2 * n] = at_x(f, s->x[i]);
        xy[2 * n + 1] = at_y(f, s->low[i]);
    }
    char class[32];
    snprintf(class, sizeof class, "band f%d", s->style);
    cgs_svg_polygon(t, class, xy, n);
}

static void draw_series(cgs_text *t, const frame *f, const cgs_plot_series *s, double *xy) {
    char class[32], hint[160];
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        double x = at_x(f, s->x[i]), y = at_y(f, s->y[i]);
        if ((s->flags & CGS_LINE_STEPS) && n > 0) {
            xy[2 * n] = x;
            xy[2 * n + 1] = xy[2 * n - 1];
            n++;
        }
        xy[2 * n] = x;
        xy[2 * n + 1] = y;
        n++;
    }
    if (!(s->flags & CGS_LINE_POINTS)) {
        snprintf(class, sizeof class, "%s c%d", s->flags & CGS_LINE_FAINT ? "faint" : "line",
                 s->style);
        cgs_svg_polyline(t, class, xy, n);
    }
    if (!(s->flags & (CGS_LINE_MARKS | CGS_LINE_POINTS))) return;
    snprintf(class, sizeof class, "mark f%d", s->style);
    for (int i = 0; i < s->n; i++) {
        int used = snprintf(hint, sizeof hint, "%.60s: %.4g at %.4g", s->name ? s->name : "",
                            s->y[i], s->x[i]);
        if (s->low && s->high && used > 0 && used < (int)sizeof hint)
            snprintf(hint + used, sizeof hint - (size_t)used, " [%.4g, %.4g]", s->low[i],
                     s->high[i]);
        cgs_svg_mark(t, class, s->style, at_x(f, s->x[i]), at_y(f, s->y[i]), 3.4, hint);
    }
}

void cgs_plot_lines(cgs_text *t, const cgs_plot *p) {
    int most = 1;
    for (int s = 0; s < p->count; s++)
        if (p->series[s].n > most) most = p->series[s].n;
    double *xy = malloc(4 * (size_t)most * sizeof *xy);
    cgs_plot_key *key = calloc((size_t)(p->count > 0 ? p->count : 1), sizeof *key);
    if (!xy || !key) {
        t->failed = true;
        goto done;
    }
    for (int s = 0; s < p->count; s++)
        key[s] = (cgs_plot_key){p->series[s].name, p->series[s].style, p->series[s].flags};
    frame f = {.left = LEFT, .width = CGS_PLOT_WIDTH - LEFT - RIGHT};
    double legend = cgs_plot_legend(NULL, 0, 0, f.width, key, p->count);
    f.top = 30 + legend;
    f.height = CGS_PLOT_HEIGHT - BOTTOM - 48;
    find_range(&f, p);
    cgs_svg_begin(t, CGS_PLOT_WIDTH, f.top + f.height + BOTTOM, p->title);
    cgs_svg_text(t, "title", LEFT, 16, 's', p->title);
    cgs_plot_legend(t, LEFT, 24, f.width, key, p->count);
    draw_axes(t, &f);
    if (p->marked) {
        double x = at_x(&f, p->mark);
        cgs_svg_line(t, "ref", x, f.top, x, f.top + f.height);
        if (p->mark_label) cgs_svg_text(t, "tick", x + 4, f.top + 9, 's', p->mark_label);
    }
    for (int s = 0; s < p->count; s++)
        if (p->series[s].low && p->series[s].high) draw_band(t, &f, &p->series[s], xy);
    for (int s = 0; s < p->count; s++) draw_series(t, &f, &p->series[s], xy);
    cgs_svg_end(t);
done:
    free(xy);
    free(key);
}

/* svg.c - see svg.h. */
#include "io/svg.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* large enough for any drawing, small enough for a viewer's floats */
#define FAR 1e5

/* a coordinate, without trailing zeros */
static void number(cgs_text *t, double v) {
    char s[32];
    if (!isfinite(v)) v = 0;
    v = v > FAR ? FAR : v < -FAR ? -FAR : v;
    int n = snprintf(s, sizeof s, "%.2f", v);
    while (n > 0 && s[n - 1] == '0') s[--n] = '\0';
    if (n > 0 && s[n - 1] == '.') s[--n] = '\0';
    cgs_text_put(t, !strcmp(s, "-0") ? "0" : s);
}

static void attribute(cgs_text *t, const char *name, double v) {
    cgs_text_printf(t, " %s=\"", name);
    number(t, v);
    cgs_text_put(t, "\"");
}

static void pair(cgs_text *t, double x, double y) {
    number(t, x);
    cgs_text_put(t, " ");
    number(t, y);
}

void cgs_svg_begin(cgs_text *t, double width, double height, const char *label) {
    cgs_text_printf(t,
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
                    "role=\"img\" aria-label=\"",
                    width, height);
    cgs_text_escape(t, label);
    cgs_text_put(t, "\">\n");
}

void cgs_svg_end(cgs_text *t) { cgs_text_put(t, "</svg>\n"); }

void cgs_svg_line(cgs_text *t, const char *class, double x1, double y1, double x2, double y2) {
    cgs_text_printf(t, "<path class=\"%s\" d=\"M", class);
    pair(t, x1, y1);
    cgs_text_put(t, "L");
    pair(t, x2, y2);
    cgs_text_put(t, "\"/>\n");
}

void cgs_svg_rect(cgs_text *t, const char *class, double x, double y, double width, double height) {
    cgs_text_printf(t, "<rect class=\"%s\"", class);
    attribute(t, "x", x);
    attribute(t, "y", y);
    attribute(t, "width", width > 0 ? width : 0);
    attribute(t, "height", height > 0 ? height : 0);
    cgs_text_put(t, "/>\n");
}

void cgs_svg_circle(cgs_text *t, const char *class, double x, double y, double r) {
    cgs_text_printf(t, "<circle class=\"%s\"", class);
    attribute(t, "cx", x);
    attribute(t, "cy", y);
    attribute(t, "r", r);
    cgs_text_put(t, "/>\n");
}

void cgs_svg_polyline(cgs_text *t, const char *class, const double *xy, int n) {
    cgs_text_printf(t, "<path class=\"%s\" d=\"", class);
    bool open = false;
    for (int i = 0; i < n; i++) {
        bool there = isfinite(xy[2 * i]) && isfinite(xy[2 * i + 1]);
        if (there) {
            cgs_text_put(t, open ? "L" : "M");
            pair(t, xy[2 * i], xy[2 * i + 1]);
        }
        open = there;
    }
    cgs_text_put(t, "\"/>\n");
}

void cgs_svg_polygon(cgs_text *t, const char *class, const double *xy, int n) {
    cgs_text_printf(t, "<path class=\"%s\" d=\"", class);
    bool first = true;
    for (int i = 0; i < n; i++) {
        if (!isfinite(xy[2 * i]) || !isfinite(xy[2 * i + 1])) continue;
        cgs_text_put(t, first ? "M" : "L");
        pair(t, xy[2 * i], xy[2 * i + 1]);
        first = false;
    }
    cgs_text_put(t, first ? "\"/>\n" : "Z\"/>\n");
}

void cgs_svg_text(cgs_text *t, const char *class, double x, double y, char anchor,
                  const char *text) {
    cgs_text_printf(t, "<text class=\"%s\"", class);
    attribute(t, "x", x);
    attribute(t, "y", y);
    if (anchor == 'm') cgs_text_put(t, " text-anchor=\"middle\"");
    if (anchor == 'e') cgs_text_put(t, " text-anchor=\"end\"");
    cgs_text_put(t, ">");
    cgs_text_escape(t, text);
    cgs_text_put(t, "</text>\n");
}

void cgs_svg_text_up(cgs_text *t, const char *class, double x, double y, const char *text) {
    cgs_text_printf(t, "<text class=\"%s\" text-anchor=\"middle\" transform=\"translate(", class);
    pair(t, x, y);
    cgs_text_put(t, ") rotate(-90)\">");
    cgs_text_escape(t, text);
    cgs_text_put(t, "</text>\n");
}

void cgs_svg_mark(cgs_text *t, const char *class, int shape, double x, double y, double r,
                  const char *hint) {
    /* corners on the unit circle's square, drawn so that the areas look alike */
    static const double corner[][12] = {
        {-.9, -.9, .9, -.9, .9, .9, -.9, .9},
        {0, -1.15, 1.05, .8, -1.05, .8},
        {0, -1.25, 1.25, 0, 0, 1.25, -1.25, 0},
        {0, 1.15, 1.05, -.8, -1.05, -.8},
    };
    static const int corners[] = {4, 3, 4, 3};
    if (!isfinite(x) || !isfinite(y)) return;
    if (hint) {
        cgs_text_put(t, "<g><title>");
        cgs_text_escape(t, hint);
        cgs_text_put(t, "</title>");
    }
    shape = shape % 5;
    if (shape == 0) {
        cgs_svg_circle(t, class, x, y, r);
    } else {
        double xy[12];
        for (int i = 0; i < corners[shape - 1]; i++) {
            xy[2 * i] = x + r * corner[shape - 1][2 * i];
            xy[2 * i + 1] = y + r * corner[shape - 1][2 * i + 1];
        }
        cgs_svg_polygon(t, class, xy, corners[shape - 1]);
    }
    if (hint) cgs_text_put(t, "</g>\n");
}

void cgs_svg_cells(cgs_text *t, double x, double y, double size, const double *value, int rows,
                   int columns) {
    cgs_text_put(t, "<g class=\"cells\" transform=\"translate(");
    pair(t, x, y);
    cgs_text_printf(t, ") scale(%.5f %.5f)\">\n", size / columns, size / rows);
    /* one path per level: a tenth of the text that as many rectangles would take */
    for (int level = 0; level <= 32; level++) {
        bool any = false;
        for (int i = 0; i < rows * columns; i++) {
            if (!isfinite(value[i])) continue;
            double v = value[i] < -1 ? -1 : value[i] > 1 ? 1 : value[i];
            if ((int)lround(16 * (v + 1)) != level) continue;
            if (!any) cgs_text_printf(t, "<path class=\"h%d\" d=\"", level);
            any = true;
            cgs_text_printf(t, "M%d %dh1v1h-1z", i % columns, i / columns);
        }
        if (any) cgs_text_put(t, "\"/>\n");
    }
    cgs_text_put(t, "</g>\n");
}

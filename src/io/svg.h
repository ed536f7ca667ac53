/* svg.h - the shapes of a drawing, as SVG inside a page.
 *
 * Colours are not written here: a shape has a class, and the page's style sheet gives it a colour
 * for light and dark themes.  Classes are names in the program, never text from a file.  Texts are
 * escaped.  Coordinates are rounded to a hundredth; one that is not finite becomes 0. */
#ifndef CGS_IO_SVG_H
#define CGS_IO_SVG_H

#include "io/text.h"

/* A drawing of width x height units that scales with the page; label describes it for screen
 * readers. */
void cgs_svg_begin(cgs_text *t, double width, double height, const char *label);
void cgs_svg_end(cgs_text *t);

void cgs_svg_line(cgs_text *t, const char *class, double x1, double y1, double x2, double y2);
void cgs_svg_rect(cgs_text *t, const char *class, double x, double y, double width, double height);
void cgs_svg_circle(cgs_text *t, const char *class, double x, double y, double r);

/* xy: (n, 2).  Points that are not finite break a line and are left out of a polygon. */
void cgs_svg_polyline(cgs_text *t, const char *class, const double *xy, int n);
void cgs_svg_polygon(cgs_text *t, const char *class, const double *xy, int n);

/* anchor: 's' at the start, 'm' in the middle, 'e' at the end of the text */
void cgs_svg_text(cgs_text *t, const char *class, double x, double y, char anchor,
                  const char *text);
/* reads upwards */
void cgs_svg_text_up(cgs_text *t, const char *class, double x, double y, const char *text);

/* A mark with a tooltip (NULL: none).  shape: 0 circle, 1 square, 2 triangle, 3 diamond, 4 triangle
 * downwards; further ones repeat. */
void cgs_svg_mark(cgs_text *t, const char *class, int shape, double x, double y, double r,
                  const char *hint);

/* A grid of cells (rows, columns) of one unit by one unit, scaled into a square of `size`, with
 * values from -1 to 1 as classes "h0" (-1) to "h32" (1); a non-finite value leaves its cell empty.
 */
void cgs_svg_cells(cgs_text *t, double x, double y, double size, const double *value, int rows,
                   int columns);

#endif /* CGS_IO_SVG_H */

/* page.c - see page.h. */
#include "report/page.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/build.h"
#include "core/file.h"

enum { MAX_WARNINGS = 100 };

void cgs_page_free(cgs_page *p) {
    cgs_text_free(&p->top);
    cgs_text_free(&p->nav);
    cgs_text_free(&p->body);
    for (int i = 0; i < p->warnings; i++) free(p->warning[i]);
    free(p->warning);
    memset(p, 0, sizeof *p);
}

void cgs_page_warn(cgs_page *p, const char *format, ...) {
    char line[1024];
    va_list ap;
    va_start(ap, format);
    vsnprintf(line, sizeof line, format, ap);
    va_end(ap);
    for (int i = 0; i < p->warnings; i++)
        if (!strcmp(p->warning[i], line)) return;
    if (p->warnings >= MAX_WARNINGS) return;
    char **more = realloc(p->warning, (size_t)(p->warnings + 1) * sizeof *more);
    if (!more) {
        p->body.failed = true;
        return;
    }
    p->warning = more;
    if (!(more[p->warnings] = strdup(line))) {
        p->body.failed = true;
        return;
    }
    p->warnings++;
    if (p->warn) p->warn(p->user, line);
}

/* ---- sections ---------------------------------------------------------------------- */

void cgs_page_section(cgs_page *p, const char *id, const char *title) {
    p->sections++;
    cgs_text_printf(&p->nav, "<a href=\"#%s-%d\">", id, p->runs);
    cgs_text_escape(&p->nav, title);
    cgs_text_put(&p->nav, "</a>\n");
    cgs_text_printf(&p->body, "<section id=\"%s-%d\">\n<h2>", id, p->runs);
    cgs_text_escape(&p->body, title);
    if (p->run) {
        cgs_text_put(&p->body, " <small>");
        cgs_text_escape(&p->body, p->run);
        cgs_text_put(&p->body, "</small>");
    }
    cgs_text_put(&p->body, "</h2>\n");
}

void cgs_page_section_end(cgs_page *p) { cgs_text_put(&p->body, "</section>\n"); }

/* formatted text between two tags */
static void tagged(cgs_text *t, const char *open, const char *close, const char *format,
                   va_list ap) {
    char line[4096];
    vsnprintf(line, sizeof line, format, ap);
    cgs_text_put(t, open);
    cgs_text_escape(t, line);
    cgs_text_put(t, close);
}

void cgs_page_subtitle(cgs_page *p, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    tagged(&p->body, "<h3>", "</h3>\n", format, ap);
    va_end(ap);
}

void cgs_page_note(cgs_page *p, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    tagged(&p->body, "<p class=\"note\">", "</p>\n", format, ap);
    va_end(ap);
}

void cgs_page_command(cgs_page *p, const char *command) {
    if (!command || !command[0]) return;
    cgs_text_put(&p->body, "<pre class=\"cmd\"><code>");
    cgs_text_escape(&p->body, command);
    cgs_text_put(&p->body, "</code></pre>\n");
}

/* ---- figures ----------------------------------------------------------------------- */

void cgs_page_grid(cgs_page *p, bool small) {
    cgs_text_printf(&p->body, "<div class=\"grid%s\">\n", small ? " small" : "");
}

void cgs_page_grid_end(cgs_page *p) { cgs_text_put(&p->body, "</div>\n"); }

cgs_text *cgs_page_figure(cgs_page *p) {
    p->figures++;
    cgs_text_put(&p->body, "<figure>\n");
    return &p->body;
}

void cgs_page_figure_end(cgs_page *p, const char *caption) {
    if (caption && caption[0]) {
        cgs_text_put(&p->body, "<figcaption>");
        cgs_text_escape(&p->body, caption);
        cgs_text_put(&p->body, "</figcaption>\n");
    }
    cgs_text_put(&p->body, "</figure>\n");
}

void cgs_page_image(cgs_page *p, const char *type, const void *data, size_t bytes,
                    const char *alt) {
    cgs_text_put(&p->body, "<img alt=\"");
    cgs_text_escape(&p->body, alt);
    cgs_text_printf(&p->body, "\" src=\"data:%s;base64,", type);
    cgs_text_base64(&p->body, data, bytes);
    cgs_text_put(&p->body, "\">\n");
}

/* ---- tables ------------------------------------------------------------------------ */

void cgs_page_table(cgs_page *p, bool tall) {
    cgs_text_printf(&p->body, "<div class=\"scroll%s\" tabindex=\"0\"><table>\n",
                    tall ? " tall" : "");
    p->in_row = false;
}

void cgs_page_row(cgs_page *p) {
    cgs_text_put(&p->body, p->in_row ? "</tr>\n<tr>" : "<tr>");
    p->in_row = true;
}

void cgs_page_head(cgs_page *p, const char *text) {
    cgs_text_put(&p->body, "<th scope=\"col\">");
    cgs_text_escape(&p->body, text);
    cgs_text_put(&p->body, "</th>");
}

void cgs_page_name(cgs_page *p, const char *text, int style) {
    cgs_text_put(&p->body, "<th scope=\"row\">");
    if (style >= 0) cgs_text_printf(&p->body, "<i class=\"dot b%d\"></i>", style);
    cgs_text_escape(&p->body, text);
    cgs_text_put(&p->body, "</th>");
}

/* one line of small print per line of text */
static void small(cgs_text *t, const char *class, const char *text) {
    char line[256];
    for (const char *end; *text; text = *end ? end + 1 : end) {
        end = text + strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)(end - text), text);
        cgs_text_printf(t, "<small%s>", class);
        cgs_text_escape(t, line);
        cgs_text_put(t, "</small>");
    }
}

void cgs_page_cell(cgs_page *p, const char *main, const char *below, const char *published,
                   int good) {
    const char *class = good > 0 ? " class=\"better\"" : good < 0 ? " class=\"worse\"" : "";
    cgs_text_printf(&p->body, "<td%s>", class);
    cgs_text_escape(&p->body, main);
    if (below) small(&p->body, "", below);
    if (published) small(&p->body, " class=\"pub\"", published);
    cgs_text_put(&p->body, "</td>");
}

void cgs_page_words(cgs_page *p, const char *text) {
    cgs_text_put(&p->body, "<td class=\"words\">");
    cgs_text_escape(&p->body, text);
    cgs_text_put(&p->body, "</td>");
}

void cgs_page_table_end(cgs_page *p) {
    cgs_text_put(&p->body, p->in_row ? "</tr>\n</table></div>\n" : "</table></div>\n");
    p->in_row = false;
}

/* ---- the whole --------------------------------------------------------------------- */

/* colours of the heat maps: blue at -1, white at 0, red at 1 */
static void write_heat_style(cgs_text *t) {
    static const double end[2][3] = {{33, 102, 172}, {178, 24, 43}};
    for (int i = 0; i <= 32; i++) {
        double v = (i - 16) / 16.0, a = v < 0 ? -v : v;
        const double *c = end[v > 0];
        /* saturation rises late, so that weak relations look weak */
        a = 0.35 * a + 0.65 * a * a;
        cgs_text_printf(t, ".h%d{fill:rgb(%.0f,%.0f,%.0f)}", i, 247 + a * (c[0] - 247),
                        247 + a * (c[1] - 247), 247 + a * (c[2] - 247));
    }
    cgs_text_put(t, "\n");
}

static void write_head(cgs_text *t, const char *title) {
    cgs_text_put(t, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                    /* the page is self-contained: it fetches nothing and runs nothing */
                    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                    "img-src data:; style-src 'unsafe-inline'\">\n"
                    "<meta name=\"color-scheme\" content=\"light dark\">\n<title>");
    cgs_text_escape(t, title);
    cgs_text_put(t, "</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n");
    for (const char *const *rule = cgs_page_style; *rule; rule++) cgs_text_put(t, *rule);
    write_heat_style(t);
    cgs_text_put(t, "</style>\n</head>\n<body>\n<header>\n<h1>");
    cgs_text_escape(t, title);
    cgs_text_put(t, "</h1>\n");
}

static void write_warnings(cgs_text *t, const cgs_page *p) {
    if (p->warnings == 0) return;
    cgs_text_put(t, "<aside class=\"warn\" role=\"note\"><b>Left out of this page:</b><ul>\n");
    for (int i = 0; i < p->warnings; i++) {
        cgs_text_put(t, "<li>");
        cgs_text_escape(t, p->warning[i]);
        cgs_text_put(t, "</li>\n");
    }
    cgs_text_put(t, "</ul></aside>\n");
}

cgs_status cgs_page_write(const cgs_page *p, const char *path, const char *title) {
    cgs_text t = {0};
    write_head(&t, title);
    if (p->top.used) cgs_text_bytes(&t, p->top.s, p->top.used);
    cgs_text_put(&t, "</header>\n");
    write_warnings(&t, p);
    cgs_text_put(&t, "<nav aria-label=\"Sections\">\n");
    if (p->nav.used) cgs_text_bytes(&t, p->nav.s, p->nav.used);
    cgs_text_put(&t, "</nav>\n<main>\n");
    if (p->body.used) cgs_text_bytes(&t, p->body.s, p->body.used);
    cgs_text_put(&t, "</main>\n<footer>cgs ");
    cgs_text_escape(&t, cgs_version());
    cgs_text_put(&t, ", commit ");
    cgs_text_escape(&t, cgs_commit());
    cgs_text_put(&t, ". Intervals are 95 %. Published numbers are from the paper "
                     "\xE2\x80\x9C"
                     "Control-Geometry Straightening for Sampling-Based Latent "
                     "Planning\xE2\x80\x9D.</footer>\n</body>\n</html>\n");
    cgs_status rc = CGS_OK;
    if (p->top.failed || p->nav.failed || p->body.failed) t.failed = true;
    rc = cgs_text_check(&t, "report");
    if (rc == CGS_OK) rc = cgs_write_file(path, t.s, t.used);
    cgs_text_free(&t);
    return rc;
}

/* csv.c - see csv.h. */
#include "io/csv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"

enum { MOST_COLUMNS = 4096 };

static const size_t LARGEST = (size_t)1 << 30;

static char separator(const char *text) {
    const char marks[] = ",;\t";
    for (const char *p = text; *p && *p != '\n'; p++)
        if (strchr(marks, *p)) return *p;
    return ',';
}

/* Cuts one cell out of the text at *at, in place, and moves behind its separator; *last says
 * whether its line ends with it. */
static char *take_cell(char **at, char mark, bool *last) {
    char *p = *at, *to, *cell;
    while (*p == ' ') p++;
    if (*p == '"') {
        cell = to = ++p;
        for (; *p && !(*p == '"' && p[1] != '"'); *to++ = *p++)
            if (*p == '"') p++; /* two stand for one */
        if (*p) p++;
        while (*p && *p != mark && *p != '\n') p++;
    } else {
        cell = p;
        while (*p && *p != mark && *p != '\n') p++;
        for (to = p; to > cell && (to[-1] == ' ' || to[-1] == '\r'); to--) {
        }
    }
    *last = *p != mark;
    *at = *p ? p + 1 : p;
    *to = '\0';
    return cell;
}

static void skip_empty_lines(char **at) {
    char *p = *at;
    for (;;) {
        while (*p == ' ' || *p == '\r') p++;
        if (*p != '\n') break;
        *at = ++p;
    }
    if (!*p) *at = p;
}

static cgs_status read_names(cgs_csv *c, const char *path, char **at, char mark) {
    c->name = malloc(MOST_COLUMNS * sizeof *c->name);
    if (!c->name) return cgs_fail(CGS_ENOMEM, "%s: no memory", path);
    for (bool last = false; !last;) {
        if (c->columns == MOST_COLUMNS)
            return cgs_fail(CGS_EFORMAT, "%s: more than %d columns", path, MOST_COLUMNS);
        c->name[c->columns++] = take_cell(at, mark, &last);
    }
    return CGS_OK;
}

static cgs_status read_rows(cgs_csv *c, const char *path, char *at, char mark) {
    size_t room = 0;
    for (skip_empty_lines(&at); *at; skip_empty_lines(&at)) {
        if (c->rows == room) {
            room = room ? 2 * room : 256;
            char **more = realloc(c->cell, room * c->columns * sizeof *more);
            if (!more) return cgs_fail(CGS_ENOMEM, "%s: no memory for %zu lines", path, room);
            c->cell = more;
        }
        size_t n = 0;
        for (bool last = false; !last; n++) {
            char *cell = take_cell(&at, mark, &last);
            if (n < c->columns) c->cell[c->rows * c->columns + n] = cell;
        }
        if (n != c->columns)
            return cgs_fail(CGS_EFORMAT, "%s: line %zu after the names has %zu cells, they are %zu",
                            path, c->rows + 1, n, c->columns);
        c->rows++;
    }
    return CGS_OK;
}

cgs_status cgs_csv_read(cgs_csv *c, const char *path) {
    size_t bytes;
    *c = (cgs_csv){0};
    CGS_TRY(cgs_read_file(path, LARGEST, &c->text, &bytes));
    if (memchr(c->text, 0, bytes)) return cgs_fail(CGS_EFORMAT, "%s: not a text", path);
    char *at = c->text;
    if (!strncmp(at, "\xef\xbb\xbf", 3)) at += 3; /* a mark that some programs write */
    skip_empty_lines(&at);
    if (!*at) return cgs_fail(CGS_EFORMAT, "%s: no line of names", path);
    char mark = separator(at);
    CGS_TRY(read_names(c, path, &at, mark));
    return read_rows(c, path, at, mark);
}

void cgs_csv_free(cgs_csv *c) {
    free(c->text);
    free(c->name);
    free(c->cell);
    *c = (cgs_csv){0};
}

bool cgs_csv_number(const cgs_csv *c, size_t row, size_t column, double *out) {
    const char *cell = c->cell[row * c->columns + column];
    char *end;
    *out = NAN;
    if (!*cell) return true;
    if (!strcmp(cell, "True") || !strcmp(cell, "true")) return *out = 1, true;
    if (!strcmp(cell, "False") || !strcmp(cell, "false")) return *out = 0, true;
    *out = strtod(cell, &end);
    return end != cell && !*end;
}

/* columns.c - see columns.h. */
#include "analysis/columns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* where a row lies and how its episode ends, not what is in it */
static bool is_index(const char *name) {
    static const char *const names[] = {
        "ep_len",      "ep_offset",   "ep_idx", "episode_idx", "step_idx", "episode_index",
        "step",        "frame_index", "index",  "task_index",  "timestep", "is_first",
        "is_terminal", "is_last",     "done",   "terminated",  "truncated"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(names[i], name)) return true;
    return false;
}

static bool is_numeric(const cgs_source *s, int i) {
    const cgs_column *c = &s->columns[i];
    return i != s->pixels && i != s->action && c->readable && c->rows == s->rows &&
           c->values >= 1 && c->values <= CGS_NUMERIC_WIDTH && !is_index(c->name);
}

static void add(cgs_numeric *n, const cgs_source *s, int i) {
    int values = (int)s->columns[i].values;
    if (n->count == CGS_NUMERIC_COLUMNS || n->width + values > 4 * CGS_NUMERIC_WIDTH) {
        n->left_out++;
        return;
    }
    n->index[n->count] = i;
    n->first[n->count++] = n->width;
    n->width += values;
}

static cgs_status unknown(const cgs_source *s, const char *name) {
    char known[400] = "";
    for (int i = 0; i < s->column_count; i++) {
        size_t used = strlen(known);
        if (is_numeric(s, i))
            snprintf(known + used, sizeof known - used, "%s%.60s", used ? ", " : "",
                     s->columns[i].name);
    }
    return cgs_fail(CGS_EARG, "%s has no column of numbers \"%.60s\"; it has: %s", s->path, name,
                    *known ? known : "none");
}

cgs_status cgs_numeric_columns(cgs_numeric *n, const cgs_source *s, const char *const *only,
                               int count) {
    *n = (cgs_numeric){0};
    for (int k = 0; only && k < count; k++) {
        int i = cgs_source_find(s, only[k]);
        if (i < 0 || !is_numeric(s, i)) return unknown(s, only[k]);
        add(n, s, i);
    }
    for (int i = 0; !only && i < s->column_count; i++)
        if (is_numeric(s, i)) add(n, s, i);
    return CGS_OK;
}

cgs_status cgs_numeric_read(const cgs_numeric *n, const cgs_source *s, int64_t first, int count,
                            int stride, double *out) {
    float *part = malloc((size_t)count * CGS_NUMERIC_WIDTH * sizeof *part);
    if (!part) return cgs_fail(CGS_ENOMEM, "%s: no memory for %d rows", s->path, count);
    cgs_status rc = CGS_OK;
    for (int k = 0; k < n->count && rc == CGS_OK; k++) {
        size_t values = s->columns[n->index[k]].values;
        rc = s->read_rows(s->self, n->index[k], first, count, stride, part);
        for (size_t r = 0; rc == CGS_OK && r < (size_t)count; r++)
            for (size_t v = 0; v < values; v++)
                out[r * (size_t)n->width + (size_t)n->first[k] + v] = (double)part[r * values + v];
    }
    free(part);
    return rc;
}

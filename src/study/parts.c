/* parts.c - result lines of stages that run side by side; see stages.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "study/stages.h"

#define LINES_LIMIT ((size_t)1 << 30)

/* the whole lines of a file, the last of which a crash may have cut; none where it does not exist
 */
static cgs_status read_lines(const char *path, char **text, size_t *bytes) {
    *text = NULL;
    *bytes = 0;
    if (!cgs_file_exists(path)) return CGS_OK;
    CGS_TRY(cgs_read_file(path, LINES_LIMIT, text, bytes));
    const char *last = *bytes ? memrchr(*text, '\n', *bytes) : NULL;
    *bytes = last ? (size_t)(last - *text) + 1 : 0;
    return CGS_OK;
}

/* A line says first which settings it is of. */
static bool is_known(const char *text, size_t bytes, const char *line, size_t length) {
    static const char key[] = "\"hash\":\"";
    enum { DIGITS = 16 };
    size_t size = sizeof key - 1 + DIGITS;
    const char *at = memmem(line, length, key, sizeof key - 1);
    if (!at || (size_t)(at - line) + size > length) return false;
    return bytes && memmem(text, bytes, at, size);
}

/* appends the lines of a file that text does not have */
static cgs_status add_file(char **text, size_t *bytes, const char *path) {
    char *more;
    size_t n;
    CGS_TRY(read_lines(path, &more, &n));
    char *all = realloc(*text, *bytes + n + 1);
    if (!all) {
        free(more);
        return cgs_fail(CGS_ENOMEM, "%s: no memory", path);
    }
    *text = all;
    for (size_t at = 0; at < n;) {
        size_t length = (size_t)((char *)memchr(more + at, '\n', n - at) - (more + at)) + 1;
        if (!is_known(all, *bytes, more + at, length)) {
            memcpy(all + *bytes, more + at, length);
            *bytes += length;
        }
        at += length;
    }
    free(more);
    return CGS_OK;
}

cgs_status cgs_stage_open_part(const cgs_study *s, const cgs_stage *g) {
    char *text;
    size_t bytes;
    cgs_status rc = read_lines(g->output, &text, &bytes);
    for (int i = 0; rc == CGS_OK && i < g->after_count; i++)
        rc = add_file(&text, &bytes, s->stage[g->after[i]].part);
    if (rc == CGS_OK) rc = cgs_write_file(g->part, text ? text : "", bytes);
    free(text);
    return rc;
}

cgs_status cgs_stage_join_part(const cgs_stage *g) {
    char *text;
    size_t bytes;
    if (!g->part || !cgs_file_exists(g->part)) return CGS_OK;
    cgs_status rc = read_lines(g->output, &text, &bytes);
    if (rc == CGS_OK) rc = add_file(&text, &bytes, g->part);
    if (rc == CGS_OK && bytes) rc = cgs_write_file(g->output, text, bytes);
    if (rc == CGS_OK && unlink(g->part) != 0)
        rc = cgs_fail(CGS_EIO, "%s: %s", g->part, strerror(errno));
    free(text);
    return rc;
}

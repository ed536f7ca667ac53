/* check.c - see check.h. */
#include "data/check.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 64 };

/* columns that may hold NaN or nothing of interest */
static bool describes_state(const cgs_column *c) {
    static const char *const not [] = {"action", "reward",      "goal",  "variation",
                                       "score",  "render_time", "pixels"};
    if (c->dtype != CGS_COL_F32 && c->dtype != CGS_COL_F64) return false;
    for (size_t i = 0; i < sizeof not / sizeof not [0]; i++)
        if (!strncmp(c->name, not [i], strlen(not [i]))) return false;
    return true;
}

static cgs_status check_frames(cgs_findings *found, const cgs_source *s, cgs_check *out,
                               cgs_check_progress progress, void *user) {
    if (s->pixels < 0) return CGS_OK;
    const size_t frame = (size_t)s->height * (size_t)s->width * 3;
    uint8_t *frames = malloc(frame * (PIECE + 1)), *first = frames + frame * PIECE;
    if (!frames) return cgs_fail(CGS_ENOMEM, "%s: no memory for frames", s->path);
    cgs_status rc = CGS_OK;
    bool alike = true;
    for (int64_t at = 0; at < s->rows && rc == CGS_OK; at += PIECE) {
        int n = s->rows - at < PIECE ? (int)(s->rows - at) : PIECE;
        if (progress && !progress(user, at, s->rows))
            rc = cgs_fail(CGS_ESTOPPED, "%s: the check was stopped", s->path);
        else
            rc = s->read_pixels(s->self, at, n, 1, frames);
        if (rc != CGS_OK) break;
        if (at == 0) memcpy(first, frames, frame);
        for (int i = 0; i < n && alike; i++)
            alike = !memcmp(first, frames + (size_t)i * frame, frame);
        out->frames += n;
    }
    free(frames);
    if (rc == CGS_OK && alike && s->rows > 1)
        cgs_findings_remark(found, "all %" PRId64 " frames are the same picture", s->rows);
    return rc;
}

static cgs_status check_numbers(cgs_findings *found, const cgs_source *s, int column,
                                cgs_check *out) {
    const cgs_column *c = &s->columns[column];
    int longest = 0;
    for (int e = 0; e < s->episodes; e++)
        if (s->ep_len[e] > longest) longest = s->ep_len[e];
    float *rows = malloc((size_t)longest * c->values * sizeof *rows);
    if (!rows) return cgs_fail(CGS_ENOMEM, "%s: no memory for column \"%s\"", s->path, c->name);
    cgs_status rc = CGS_OK;
    bool told = !describes_state(c);
    for (int e = 0; e < s->episodes && rc == CGS_OK; e++) {
        size_t n = (size_t)s->ep_len[e] * c->values;
        rc = s->read_rows(s->self, column, s->ep_offset[e], s->ep_len[e], 1, rows);
        if (rc == CGS_OK) out->numbers += (int64_t)n;
        for (size_t i = 0; i < n && rc == CGS_OK && !told; i++) {
            if (isfinite(rows[i])) continue;
            cgs_findings_remark(found,
                                "column \"%s\" in row %zu of episode %d is %g: training does not "
                                "read it, probes and plans to recorded states may",
                                c->name, i / c->values, e, (double)rows[i]);
            told = true;
        }
    }
    free(rows);
    return rc;
}

cgs_status cgs_dataset_check(cgs_findings *found, cgs_check *out, cgs_dataset *d,
                             const cgs_needs *needs, cgs_check_progress progress, void *user) {
    const cgs_source *s = cgs_dataset_source(d);
    *out = (cgs_check){0};
    CGS_TRY(cgs_dataset_accept(found, &out->accepted, d, needs));
    for (int i = 0; i < s->column_count; i++) {
        const cgs_column *c = &s->columns[i];
        char shape[CGS_COLUMN_TEXT];
        if (i == s->pixels || c->dtype == CGS_COL_OTHER) continue;
        if (c->rows != s->rows)
            cgs_findings_remark(found,
                                "column %s has not the %" PRId64 " rows of the data and is "
                                "not used",
                                cgs_column_describe(c, shape), s->rows);
        else if (c->readable && (i == s->action || describes_state(c)))
            CGS_TRY(cgs_findings_failure(found, check_numbers(found, s, i, out), s->path));
    }
    return cgs_findings_failure(found, check_frames(found, s, out, progress, user), s->path);
}

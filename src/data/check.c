/* check.c - reads a whole dataset once and checks all of it. */
#include "data/check.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 64, MAX_ACTION = 16, MOVES = 2 };

/* Alignment is judged only where it is obvious: actions that explain nearly all of the displacement
 * that led to their row and much less of the following one. */
static const double clear = 0.9, unclear = 0.6;

/* columns that may hold NaN or nothing of interest */
static bool describes_state(const cgs_column *c) {
    static const char *const not [] = {"action", "reward",      "goal",  "variation",
                                       "score",  "render_time", "pixels"};
    if (c->dtype != CGS_COL_F32 && c->dtype != CGS_COL_F64) return false;
    for (size_t i = 0; i < sizeof not / sizeof not [0]; i++)
        if (!strncmp(c->name, not [i], strlen(not [i]))) return false;
    return c->readable;
}

/* ---- reading everything ---------------------------------------------------------------- */

static cgs_status check_frames(const cgs_source *s, cgs_check *out, cgs_check_progress progress,
                               void *user) {
    if (s->pixels < 0) return CGS_OK;
    const size_t frame = (size_t)s->height * (size_t)s->width * 3;
    uint8_t *frames = malloc(frame * PIECE);
    if (!frames) return cgs_fail(CGS_ENOMEM, "%s: no memory for frames", s->path);
    cgs_status rc = CGS_OK;
    for (int64_t first = 0; first < s->rows && rc == CGS_OK; first += PIECE) {
        int n = s->rows - first < PIECE ? (int)(s->rows - first) : PIECE;
        if (progress && !progress(user, first, s->rows))
            rc = cgs_fail(CGS_ESTOPPED, "%s: the check was stopped", s->path);
        else
            rc = s->read_pixels(s->self, first, n, 1, frames);
        out->frames += n;
    }
    free(frames);
    return rc;
}

static cgs_status check_action(const cgs_source *s, int e, const float *rows) {
    const int L = s->ep_len[e], A = s->action_dim;
    for (int r = 0; r < L; r++)
        for (int j = 0; j < A; j++) {
            float v = rows[(size_t)r * (size_t)A + (size_t)j];
            if (r == 0 && L > 1 && isnan(v))
                return cgs_fail(CGS_EFORMAT,
                                "%s: action %d in row 0 of episode %d is NaN: actions lie one row "
                                "late (row t must hold the action executed from it)",
                                s->path, j, e);
            if (r + 1 < L && !isfinite(v))
                return cgs_fail(CGS_ENUMERIC, "%s: action %d in row %d of episode %d is %g",
                                s->path, j, r, e, v);
            if (r + 1 == L && !isnan(v))
                return cgs_fail(CGS_EFORMAT,
                                "%s: action %d in the last row (%d) of episode %d is %g, NaN is "
                                "expected",
                                s->path, j, r, e, v);
        }
    return CGS_OK;
}

static cgs_status check_numbers(const cgs_source *s, int column, cgs_check *out) {
    const cgs_column *c = &s->columns[column];
    int longest = 0;
    for (int e = 0; e < s->episodes; e++)
        if (s->ep_len[e] > longest) longest = s->ep_len[e];
    float *rows = malloc((size_t)longest * c->values * sizeof *rows);
    if (!rows) return cgs_fail(CGS_ENOMEM, "%s: no memory for column \"%s\"", s->path, c->name);
    cgs_status rc = CGS_OK;
    for (int e = 0; e < s->episodes && rc == CGS_OK; e++) {
        size_t n = (size_t)s->ep_len[e] * c->values;
        rc = s->read_rows(s->self, column, s->ep_offset[e], s->ep_len[e], 1, rows);
        out->numbers += (int64_t)n;
        if (rc == CGS_OK && column == s->action) rc = check_action(s, e, rows);
        for (size_t i = 0; i < n && rc == CGS_OK && describes_state(c); i++)
            if (!isfinite(rows[i]))
                rc = cgs_fail(CGS_ENUMERIC, "%s: column \"%s\" in row %zu of episode %d is %g",
                              s->path, c->name, i / c->values, e, rows[i]);
    }
    free(rows);
    return rc;
}

/* ---- alignment --------------------------------------------------------------------------- */

/* normal equations of y = w [1, a], for MOVES outputs at once */
typedef struct fit {
    int n; /* inputs, the constant included */
    double xx[MAX_ACTION + 1][MAX_ACTION + 1];
    double xy[MAX_ACTION + 1][MOVES];
    double y[MOVES], yy[MOVES];
    double count;
} fit;

static void fit_add(fit *f, const float *action, const double *move) {
    double x[MAX_ACTION + 1] = {1};
    for (int i = 1; i < f->n; i++) x[i] = action[i - 1];
    for (int i = 0; i < f->n; i++) {
        for (int j = 0; j < f->n; j++) f->xx[i][j] += x[i] * x[j];
        for (int k = 0; k < MOVES; k++) f->xy[i][k] += x[i] * move[k];
    }
    for (int k = 0; k < MOVES; k++) {
        f->y[k] += move[k];
        f->yy[k] += move[k] * move[k];
    }
    f->count++;
}

/* explained variance, by elimination with pivots on the diagonal; linearly dependent inputs are
 * skipped */
static double fit_explained(const fit *given) {
    fit f = *given;
    double explained = 0, total = 0;
    for (int i = 0; i < f.n; i++) {
        double pivot = f.xx[i][i];
        if (pivot <= 1e-9 * (given->xx[i][i] + 1e-300)) continue;
        for (int k = 0; k < MOVES && i > 0; k++) explained += f.xy[i][k] * f.xy[i][k] / pivot;
        for (int r = i + 1; r < f.n; r++) {
            double share = f.xx[r][i] / pivot;
            for (int c = i; c < f.n; c++) f.xx[r][c] -= share * f.xx[i][c];
            for (int k = 0; k < MOVES; k++) f.xy[r][k] -= share * f.xy[i][k];
        }
    }
    for (int k = 0; k < MOVES; k++) total += f.yy[k] - f.y[k] * f.y[k] / f.count;
    return total > 0 ? explained / total : NAN;
}

static cgs_status check_alignment(const cgs_source *s, cgs_check *out) {
    static const char *const positions[] = {"pos_agent", "proprio", "state", "qpos"};
    int column = -1;
    for (int i = 0; i < 4 && column < 0; i++) {
        column = cgs_source_find(s, positions[i]);
        if (column >= 0 && (s->columns[column].values < MOVES || !s->columns[column].readable))
            column = -1;
    }
    const int A = s->action_dim;
    if (column < 0 || s->action < 0 || A < 1 || A > MAX_ACTION) return CGS_OK;
    memcpy(out->column, s->columns[column].name, sizeof out->column);
    const size_t width = s->columns[column].values;
    fit now = {.n = A + 1}, late = {.n = A + 1};
    cgs_status rc = CGS_OK;
    for (int e = 0; e < s->episodes && rc == CGS_OK; e++) {
        const int L = s->ep_len[e];
        float *x = malloc((size_t)L * width * sizeof *x);
        float *a = malloc((size_t)L * (size_t)A * sizeof *a);
        if (!x || !a) rc = cgs_fail(CGS_ENOMEM, "%s: no memory for an episode", s->path);
        if (rc == CGS_OK) rc = s->read_rows(s->self, column, s->ep_offset[e], L, 1, x);
        if (rc == CGS_OK) rc = s->read_rows(s->self, s->action, s->ep_offset[e], L, 1, a);
        for (int t = 0; t + 2 < L && rc == CGS_OK; t++) {
            double move[MOVES];
            for (int k = 0; k < MOVES; k++)
                move[k] = (double)x[(size_t)(t + 1) * width + (size_t)k] -
                          x[(size_t)t * width + (size_t)k];
            fit_add(&now, a + (size_t)t * (size_t)A, move);
            fit_add(&late, a + (size_t)(t + 1) * (size_t)A, move);
        }
        free(x);
        free(a);
    }
    CGS_TRY(rc);
    if (now.count < 4 * (A + 1)) return CGS_OK;
    out->explained_now = fit_explained(&now);
    out->explained_late = fit_explained(&late);
    if (out->explained_late > clear && out->explained_now < unclear)
        return cgs_fail(CGS_EFORMAT,
                        "%s: actions lie one row late: the action of row t+1 explains %.0f%% of "
                        "the change of \"%s\" from row t to t+1, that of row t only %.0f%%",
                        s->path, 100 * out->explained_late, out->column, 100 * out->explained_now);
    return CGS_OK;
}

cgs_status cgs_dataset_check(cgs_dataset *d, cgs_check *out, cgs_check_progress progress,
                             void *user) {
    const cgs_source *s = cgs_dataset_source(d);
    *out = (cgs_check){.explained_now = NAN, .explained_late = NAN};
    for (int i = 0; i < s->column_count; i++) {
        const cgs_column *c = &s->columns[i];
        if (i == s->pixels || c->dtype == CGS_COL_OTHER || c->rows != s->rows) continue;
        if (i == s->action || describes_state(c)) CGS_TRY(check_numbers(s, i, out));
    }
    CGS_TRY(check_alignment(s, out));
    return check_frames(s, out, progress, user);
}

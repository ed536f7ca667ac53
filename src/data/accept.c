/* accept.c - see accept.h. */
#include "data/accept.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/windows.h"

#define CHECKED "alignment_checked" /* attribute of a file */

enum { MAX_FITTED = 16 /* action channels */, MOVES = 2, PIECE = 4096 /* rows */ };

/* Alignment is judged only where it is obvious: actions that explain nearly all of the displacement
 * that led to their row and much less of the following one. */
static const double clear = 0.9, unclear = 0.6;

/* ---- images and lengths ------------------------------------------------------------------ */

static cgs_status judge_images(cgs_findings *found, const cgs_source *s, const cgs_needs *needs) {
    if (s->pixels < 0) {
        cgs_findings_problem(found, CGS_EFORMAT,
                             "it has no column \"pixels\" (u8, rows x height x width x 3)");
        return CGS_OK;
    }
    if (s->height != s->width)
        cgs_findings_problem(
            found, CGS_EFORMAT,
            "frames are %dx%d (width x height), square ones are expected; cgs data convert makes "
            "them",
            s->width, s->height);
    else if (needs->image_size && s->height != needs->image_size)
        cgs_findings_problem(
            found, CGS_EARG,
            "frames are %dx%d, model.image_size is %d; cgs data convert makes that of them%s",
            s->width, s->height, needs->image_size,
            s->height == 64 ? ", or --size small of cgs train a model for these" : "");
    uint8_t *first = malloc((size_t)s->height * (size_t)s->width * 3);
    if (!first) return cgs_fail(CGS_ENOMEM, "%s: no memory for a frame", s->path);
    cgs_status rc = s->read_pixels(s->self, s->ep_offset[0], 1, 1, first);
    free(first);
    return cgs_findings_failure(found, rc, s->path);
}

static cgs_status judge_lengths(cgs_findings *found, cgs_accepted *out, const cgs_source *s,
                                const cgs_needs *needs) {
    if (!needs->num_steps) return CGS_OK;
    cgs_windows w;
    cgs_status rc = cgs_windows_build(&w, s, needs->num_steps, needs->frameskip);
    if (rc != CGS_OK) return cgs_findings_failure(found, rc, s->path);
    out->windows = w.count;
    if (w.skipped)
        cgs_findings_remark(found,
                            "%d of %d episodes are shorter than a window of %d rows (%d frames, %d "
                            "apart) and are not used",
                            w.skipped, s->episodes, w.span, needs->num_steps, needs->frameskip);
    cgs_windows_free(&w);
    return CGS_OK;
}

/* ---- actions ----------------------------------------------------------------------------- */

typedef struct actions {
    int last_rows;                                     /* that hold an action */
    float low[CGS_MAX_ACTIONS], high[CGS_MAX_ACTIONS]; /* (action_dim) of finite values */
    bool any;                                          /* a finite row was seen */
    int64_t bad;                                       /* values that are not finite */
    int at_episode, at_row, at_channel;                /* the first of them */
    float value;
} actions;

static void look_at_action(actions *k, int e, int row, int rows, const float *a, int A) {
    bool last = row + 1 == rows, finite = true;
    for (int j = 0; j < A; j++) {
        finite = finite && isfinite(a[j]);
        if (isfinite(a[j])) {
            k->low[j] = k->any && k->low[j] < a[j] ? k->low[j] : a[j];
            k->high[j] = k->any && k->high[j] > a[j] ? k->high[j] : a[j];
        } else if (!(last && isnan(a[j]))) {
            if (k->bad++ == 0)
                k->at_episode = e, k->at_row = row, k->at_channel = j, k->value = a[j];
        }
    }
    k->any = k->any || finite;
    k->last_rows += last && finite;
}

static void judge_values(cgs_findings *found, const cgs_source *s, const actions *k) {
    if (k->bad && k->at_row == 0 && isnan(k->value))
        cgs_findings_problem(found, CGS_EFORMAT,
                             "action %d in row 0 of episode %d is NaN: actions lie one row late "
                             "(row t must hold the action executed from it)",
                             k->at_channel, k->at_episode);
    else if (k->bad)
        cgs_findings_problem(found, CGS_ENUMERIC,
                             "action %d in row %d of episode %d is %g (of %" PRId64
                             " values that are not finite; only an episode's last row may be NaN)",
                             k->at_channel, k->at_row, k->at_episode, (double)k->value, k->bad);
    if (!k->any) {
        cgs_findings_problem(found, CGS_ENUMERIC, "no row has an action of finite numbers");
        return;
    }
    for (int j = 0; j < s->action_dim; j++)
        if (k->low[j] == k->high[j])
            cgs_findings_remark(found, "action %d is always %g: nothing can be learnt of it", j,
                                (double)k->low[j]);
    if (k->last_rows)
        cgs_findings_remark(found,
                            "the last row of %d of %d episodes holds an action, which leads to no "
                            "row: it counts for mean and deviation only (NaN leaves it out)",
                            k->last_rows, s->episodes);
}

static cgs_status judge_actions(cgs_findings *found, const cgs_source *s, const cgs_needs *needs) {
    const int A = s->action_dim;
    if (s->action < 0) {
        cgs_findings_problem(found, CGS_EFORMAT,
                             "it has no column \"action\" (numbers, rows x channels)");
        return CGS_OK;
    }
    if (A > CGS_MAX_ACTIONS) {
        cgs_findings_problem(found, CGS_EARG, "actions have %d numbers, at most %d are possible", A,
                             CGS_MAX_ACTIONS);
        return CGS_OK;
    }
    if (needs->action_dim && A != needs->action_dim)
        cgs_findings_problem(found, CGS_EARG, "actions have %d numbers, model.action_dim is %d", A,
                             needs->action_dim);
    actions k = {0};
    float *piece = malloc(PIECE * (size_t)A * sizeof *piece);
    if (!piece) return cgs_fail(CGS_ENOMEM, "%s: no memory for actions", s->path);
    cgs_status rc = CGS_OK;
    for (int e = 0; e < s->episodes && rc == CGS_OK; e++)
        for (int i = 0; i < s->ep_len[e] && rc == CGS_OK; i += PIECE) {
            int n = s->ep_len[e] - i < PIECE ? s->ep_len[e] - i : PIECE;
            rc = s->read_rows(s->self, s->action, s->ep_offset[e] + i, n, 1, piece);
            for (int r = 0; r < n && rc == CGS_OK; r++)
                look_at_action(&k, e, i + r, s->ep_len[e], piece + (size_t)r * (size_t)A, A);
        }
    free(piece);
    if (rc == CGS_OK) judge_values(found, s, &k);
    return cgs_findings_failure(found, rc, s->path);
}

/* ---- alignment --------------------------------------------------------------------------- */

/* normal equations of y = w [1, a], for MOVES outputs at once */
typedef struct fit {
    int n; /* inputs, the constant included */
    double xx[MAX_FITTED + 1][MAX_FITTED + 1];
    double xy[MAX_FITTED + 1][MOVES];
    double y[MOVES], yy[MOVES];
    double count;
} fit;

static void fit_add(fit *f, const float *action, const double *move) {
    double x[MAX_FITTED + 1] = {1};
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

static cgs_status judge_alignment(cgs_findings *found, cgs_accepted *out, cgs_dataset *d) {
    const cgs_source *s = cgs_dataset_source(d);
    static const char *const positions[] = {"pos_agent", "proprio", "state", "qpos"};
    int column = -1;
    for (int i = 0; i < 4 && column < 0; i++) {
        column = cgs_source_find(s, positions[i]);
        if (column >= 0 && (s->columns[column].values < MOVES || !s->columns[column].readable))
            column = -1;
    }
    const int A = s->action_dim;
    if (column < 0 || s->action < 0 || A < 1 || A > MAX_FITTED) return CGS_OK;
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
            bool known = true;
            for (int k = 0; k < MOVES; k++) {
                move[k] = (double)x[(size_t)(t + 1) * width + (size_t)k] -
                          x[(size_t)t * width + (size_t)k];
                known = known && isfinite(move[k]);
            }
            if (!known) continue;
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
    if (!(out->explained_late > clear && out->explained_now < unclear)) return CGS_OK;
    if (cgs_dataset_attribute(d, CHECKED)) return CGS_OK;
    cgs_findings_problem(
        found, CGS_EFORMAT,
        "actions lie one row late: the action of row t+1 explains %.0f%% of the change of \"%s\" "
        "from row t to t+1, that of row t only %.0f%%; shift them up by one row, or, if the world "
        "is like that, give the file an attribute \"" CHECKED "\"",
        100 * out->explained_late, out->column, 100 * out->explained_now);
    return CGS_OK;
}

cgs_status cgs_dataset_accept(cgs_findings *found, cgs_accepted *out, cgs_dataset *d,
                              const cgs_needs *needs) {
    const cgs_source *s = cgs_dataset_source(d);
    int before = found->problems;
    *out = (cgs_accepted){.explained_now = NAN, .explained_late = NAN};
    CGS_TRY(judge_images(found, s, needs));
    CGS_TRY(judge_lengths(found, out, s, needs));
    CGS_TRY(judge_actions(found, s, needs));
    /* among actions that are not numbers there is nothing to fit */
    return found->problems == before ? judge_alignment(found, out, d) : CGS_OK;
}

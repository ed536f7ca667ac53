/* training.c - curves of training from the metrics of every model of a run. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/statistics.h"
#include "report/method.h"
#include "report/paper_rates.h"
#include "report/plot.h"
#include "report/sections.h"
#include "train/gradient_monitor.h"
#include "train/learning_check.h"

enum { BINS = 160, MAX_VALID = 512 };

/* The curves.  Each is a mean over bins of updates, as raw values would be noise. */
enum { PRED, SIGREG, TS, CGS, COSINE, RATE, GRADIENT, SPEED, CURVES };
static const struct {
    const char *key, *title, *axis;
    cgs_axis_scale scale;
    bool validated;
} curve[CURVES] = {
    {"pred", "Prediction loss", "mean squared error", CGS_AXIS_LOG10, true},
    {"sigreg", "SIGReg", "statistic", CGS_AXIS_LOG10, true},
    {"ts", "Temporal straightening loss", "1 \xE2\x88\x92 cosine", CGS_AXIS_LINEAR, true},
    {"cgs", "CGS loss", "squared cosine gap", CGS_AXIS_LINEAR, true},
    {"cosine", "Consecutive cosine", "mean cosine", CGS_AXIS_LINEAR, true},
    {"lr", "Learning rate", "learning rate", CGS_AXIS_LINEAR, false},
    {"grad_norm", "Norm of the gradient", "norm", CGS_AXIS_LOG10, false},
    {"frames_per_s", "Throughput", "frames per second", CGS_AXIS_LINEAR, false},
};

typedef struct trained {
    char method[64], name[128], folder[256];
    int style;
    double last; /* highest step */
    double sum[CURVES][BINS];
    int hits[CURVES][BINS];
    double x[BINS], y[CURVES][BINS];
    double vx[MAX_VALID], vy[CURVES][MAX_VALID];
    int valid;
    cgs_gradient_monitor monitor;
    cgs_learning_check check;
    double grew; /* the step at which the gradient monitor fired, or 0 */
    cJSON *card; /* of config.json, or NULL */
} trained;

/* ---- reading ----------------------------------------------------------------------- */

static void find_last(void *user, const cJSON *line) {
    trained *t = user;
    double step = cgs_json_number(line, "step");
    if (step > t->last && step < 1e12) t->last = step;
}

static double value_of(const cJSON *from, int c) {
    double v = cgs_json_number(from, curve[c].key);
    /* the loss is one minus the cosine */
    if (c == COSINE && isnan(v)) v = 1 - cgs_json_number(from, "ts");
    return v;
}

static void add_line(void *user, const cJSON *line) {
    trained *t = user;
    double step = cgs_json_number(line, "step");
    const cJSON *valid = cJSON_GetObjectItemCaseSensitive(line, "valid");
    if (!(step >= 0) || !(step <= t->last)) return;
    if (cJSON_IsObject(valid)) {
        if (t->valid == MAX_VALID) return;
        t->vx[t->valid] = step;
        for (int c = 0; c < CURVES; c++) t->vy[c][t->valid] = value_of(valid, c);
        t->valid++;
        return;
    }
    if (cgs_gradient_monitor_add(&t->monitor, value_of(line, GRADIENT))) t->grew = step;
    cgs_learning_line(&t->check, line);
    int bin = (int)(step / (t->last + 1) * BINS);
    for (int c = 0; c < CURVES; c++) {
        double v = value_of(line, c);
        if (isnan(v)) continue;
        t->sum[c][bin] += v;
        t->hits[c][bin]++;
    }
}

static void read_card(trained *t, const cgs_folder *f, cgs_page *p) {
    char name[512];
    snprintf(name, sizeof name, "%s/config.json", t->folder);
    cJSON *config = cgs_folder_json(f, p, name, NULL);
    cJSON *ours = config ? cJSON_GetObjectItemCaseSensitive(config, "cgs") : NULL;
    t->card = ours ? cJSON_DetachItemFromObjectCaseSensitive(ours, "card") : NULL;
    cJSON_Delete(config);
    const char *last = strrchr(t->folder, '/');
    snprintf(t->method, sizeof t->method, "%.60s",
             cgs_json_text(t->card, "method", last ? last + 1 : t->folder));
    t->style = cgs_method_style(t->method);
    snprintf(t->name, sizeof t->name, "%s", cgs_method_title(t->method));
}

/* reads a model; false when it has no metrics */
static bool read_model(trained *t, const cgs_folder *f, cgs_page *p, const char *folder) {
    char name[512];
    memset(t, 0, sizeof *t);
    snprintf(t->folder, sizeof t->folder, "%.250s", folder);
    snprintf(name, sizeof name, "%s/metrics.jsonl", t->folder);
    cgs_folder_lines(f, p, name, find_last, t);
    if (!(t->last > 0)) return false;
    cgs_folder_lines(f, p, name, add_line, t);
    for (int b = 0; b < BINS; b++) {
        t->x[b] = (b + 0.5) * (t->last + 1) / BINS;
        for (int c = 0; c < CURVES; c++)
            t->y[c][b] = t->hits[c][b] ? t->sum[c][b] / t->hits[c][b] : NAN;
    }
    /* empty bins would break the curve: close the gaps */
    for (int c = 0; c < CURVES; c++)
        for (int b = 1; b < BINS; b++)
            if (isnan(t->y[c][b])) t->y[c][b] = t->y[c][b - 1];
    read_card(t, f, p);
    if (t->grew > 0)
        cgs_page_warn(p,
                      "%s: by update %.0f the norm of its gradient had grown tenfold; comparisons "
                      "with it may reflect the training instead of the method",
                      t->folder, t->grew);
    char sentence[CGS_LEARNING_SENTENCE];
    cgs_learning_sentence(&t->check, sentence, sizeof sentence);
    if (*sentence) cgs_page_warn(p, "%s: %s", t->folder, sentence);
    return true;
}

static int read_models(trained *t, const cgs_folder *f, cgs_page *p) {
    static const char *const below[] = {"models", "."}, *const prefix[] = {"models/", ""};
    int n = 0;
    for (int k = 0; k < 2 && n == 0; k++) {
        cgs_names names = cgs_folder_list(f, below[k], 256);
        for (int i = 0; i < names.count && n < CGS_MOST_TRAINED; i++) {
            char folder[300];
            snprintf(folder, sizeof folder, "%s%.200s", prefix[k], names.name[i]);
            n += read_model(&t[n], f, p, folder);
        }
        cgs_names_free(&names);
    }
    if (n == 0) n = read_model(t, f, p, ".");
    return n;
}

static void name_apart(trained *t, int n) {
    int taken[CGS_STYLES];
    for (int i = 0; i < n && i < CGS_STYLES; i++)
        taken[i] = t[i].style = cgs_style_apart(t[i].style, taken, i);
    for (int i = CGS_STYLES; i < n; i++) t[i].style = i % CGS_STYLES;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            if (k != i && !strcmp(t[k].method, t[i].method)) {
                const char *last = strrchr(t[i].folder, '/');
                snprintf(t[i].name, sizeof t[i].name, "%.60s, %.60s", cgs_method_title(t[i].method),
                         last ? last + 1 : t[i].folder);
            }
}

static int by_role(const void *a, const void *b) {
    const trained *x = a, *y = b;
    if (x->style != y->style) return x->style - y->style;
    return strcmp(x->folder, y->folder);
}

/* ---- drawing ----------------------------------------------------------------------- */

static void draw_curve(cgs_page *p, const trained *t, int n, int c) {
    cgs_plot_series series[2 * CGS_MOST_TRAINED];
    int count = 0;
    bool any = false, valid = false;
    double last = 1, high = -INFINITY;
    for (int i = 0; i < n; i++) {
        int points = 0;
        for (int b = 0; b < BINS; b++)
            if (isfinite(t[i].y[c][b])) {
                points++;
                high = fmax(high, t[i].y[c][b]);
            }
        any |= points > 0;
        last = fmax(last, t[i].last);
        if (points)
            series[count++] =
                (cgs_plot_series){t[i].name, t[i].style, 0, BINS, t[i].x, t[i].y[c], NULL, NULL};
    }
    if (!any) return;
    bool outside = false;
    for (int i = 0; curve[c].validated && i < n; i++) {
        if (t[i].valid == 0) continue;
        for (int v = 0; v < t[i].valid; v++) {
            valid |= isfinite(t[i].vy[c][v]);
            outside |= t[i].vy[c][v] > 1.2 * high;
        }
        series[count++] = (cgs_plot_series){
            NULL, t[i].style, CGS_LINE_POINTS | CGS_LINE_OUTSIDE, t[i].valid, t[i].vx, t[i].vy[c],
            NULL, NULL};
    }
    cgs_plot plot = {.title = curve[c].title,
                     .x = {.label = "updates", .fixed = true, .low = 0, .high = 1.01 * last},
                     .y = {.label = curve[c].axis, .scale = curve[c].scale},
                     .series = series,
                     .count = count};
    cgs_plot_lines(cgs_page_figure(p), &plot);
    cgs_page_figure_end(p, outside ? "Marks: validation; clamped to the edge where it lies outside."
                           : valid ? "Marks: validation."
                                   : NULL);
}

static void number_cell(cgs_page *p, const char *format, double v, const char *published) {
    char text[64];
    if (!isfinite(v)) {
        cgs_page_cell(p, "\xE2\x80\x93", NULL, published, 0);
        return;
    }
    size_t sign = v < 0 ? (size_t)snprintf(text, sizeof text, "\xE2\x88\x92") : 0;
    snprintf(text + sign, sizeof text - sign, format, fabs(v));
    cgs_page_cell(p, text, NULL, published, 0);
}

static double median_speed(const trained *t) {
    double x[BINS];
    int n = 0;
    for (int b = 0; b < BINS; b++)
        if (t->hits[SPEED][b]) x[n++] = t->y[SPEED][b];
    return n ? cgs_median(x, n) : NAN;
}

static void model_table(cgs_page *p, const trained *t, int n) {
    static const char *const head[] = {"model",  "updates",  "pred",      "SIGReg", "TS",  "CGS",
                                       "cosine", "frames/s", "precision", "seed",   "data"};
    cgs_page_table(p, false);
    cgs_page_row(p);
    for (size_t i = 0; i < sizeof head / sizeof *head; i++) cgs_page_head(p, head[i]);
    for (int i = 0; i < n; i++) {
        const trained *m = &t[i];
        double pub;
        char paper[64];
        bool known = cgs_published_cosine(m->method, cgs_json_text(m->card, "env", ""), &pub);
        if (known)
            snprintf(paper, sizeof paper, "paper %s%.3f", pub < 0 ? "\xE2\x88\x92" : "", fabs(pub));
        cgs_page_row(p);
        cgs_page_name(p, m->name, m->style);
        number_cell(p, "%.0f", m->last, NULL);
        for (int c = PRED; c <= COSINE; c++)
            number_cell(p, "%.4g", m->valid ? m->vy[c][m->valid - 1] : m->y[c][BINS - 1],
                        c == COSINE && known ? paper : NULL);
        number_cell(p, "%.0f", median_speed(m), NULL);
        cgs_page_words(p, cgs_json_text(m->card, "precision", "\xE2\x80\x93"));
        cgs_page_words(p, cgs_json_text(m->card, "seed", "\xE2\x80\x93"));
        cgs_page_words(p, cgs_json_text(m->card, "dataset", "\xE2\x80\x93"));
    }
    cgs_page_table_end(p);
    cgs_page_note(p, "Losses and cosine: the last validation where there is one, else the last "
                     "training batches. Frames per second: the median.");
}

static cgs_straightness straightness_of(const trained *t) {
    cgs_straightness s = {.cosine = t->valid ? t->vy[COSINE][t->valid - 1] : NAN};
    snprintf(s.method, sizeof s.method, "%s", t->method);
    snprintf(s.name, sizeof s.name, "%s", t->name);
    snprintf(s.env, sizeof s.env, "%.60s", cgs_json_text(t->card, "env", ""));
    return s;
}

int cgs_section_training(cgs_page *p, const cgs_folder *f, cgs_straightness *straight) {
    if (f->single) return 0;
    trained *t = calloc(CGS_MOST_TRAINED, sizeof *t);
    if (!t) {
        p->body.failed = true;
        return 0;
    }
    int n = read_models(t, f, p);
    if (n) {
        qsort(t, (size_t)n, sizeof *t, by_role);
        name_apart(t, n);
        cgs_page_section(p, "training", "Training");
        model_table(p, t, n);
        cgs_page_grid(p, false);
        for (int c = 0; c < CURVES; c++) draw_curve(p, t, n, c);
        cgs_page_grid_end(p);
        cgs_folder_commands(f, p, "train");
        cgs_folder_commands(f, p, "prior");
        cgs_page_section_end(p);
    }
    for (int i = 0; i < n; i++) {
        straight[i] = straightness_of(&t[i]);
        cJSON_Delete(t[i].card);
    }
    free(t);
    return n;
}

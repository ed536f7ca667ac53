/* ablations.c - success over one setting of the training at a time.
 *
 * The model named after its method is the reference.  Models of the method that differ from it in
 * one setting form a curve with it.  Values come from the settings that each training stored beside
 * its model. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/method.h"
#include "report/sections.h"

enum { KNOBS = 4, MAX_MODELS = 32, MAX_PLANNERS = 6 };

static const struct {
    const char *key, *title, *axis;
    cgs_axis_scale scale;
} knob[KNOBS] = {
    {"loss.cgs.ramp", "Ramp of the CGS weight", "fraction of the updates", CGS_AXIS_LINEAR},
    {"model.history", "History", "frames N", CGS_AXIS_LINEAR},
    {"loss.sigreg.weight", "Weight of SIGReg", "\xCE\xBB of SIGReg", CGS_AXIS_LINEAR},
    {"loss.cgs.weight", "Weight of CGS", "\xCE\xBB of CGS", CGS_AXIS_LOG10},
};

typedef struct variants {
    const cgs_protocol *q;
    int reference;
    int count, model[MAX_MODELS]; /* columns of the protocol, the reference included */
    double value[MAX_MODELS][KNOBS];
} variants;

/* the settings of a training: "key = value" lines */
static bool read_knobs(const cgs_folder *f, cgs_page *p, const char *folder, double *value) {
    char name[300], *rest;
    int found = 0;
    if (folder[0] == '.') return false;
    snprintf(name, sizeof name, "models/%.200s/config.txt", folder);
    char *text = cgs_folder_text(f, p, name);
    for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\n", &rest)) {
        char key[64];
        double v;
        if (sscanf(line, " %63[^ =] = %lf", key, &v) != 2 || !isfinite(v)) continue;
        for (int k = 0; k < KNOBS; k++)
            if (!strcmp(key, knob[k].key)) {
                value[k] = v;
                found |= 1 << k;
            }
    }
    free(text);
    return found == (1 << KNOBS) - 1;
}

static bool find_variants(variants *v, const cgs_protocol *q, const cgs_folder *f, cgs_page *p) {
    const char *method = NULL;
    *v = (variants){.q = q, .reference = -1};
    for (int m = 0; m < q->models && !method; m++)
        for (int k = 0; k < m; k++)
            if (!strcmp(q->model[k].method, q->model[m].method)) method = q->model[m].method;
    for (int m = 0; method && m < q->models && v->count < MAX_MODELS; m++) {
        if (strcmp(q->model[m].method, method) != 0) continue;
        if (!read_knobs(f, p, q->model[m].folder, v->value[v->count])) continue;
        if (!strcmp(q->model[m].folder, method)) v->reference = v->count;
        v->model[v->count++] = m;
    }
    return v->reference >= 0 && v->count > 1;
}

static bool same(double a, double b) { return fabs(a - b) <= 1e-6 * fmax(fabs(a), fabs(b)); }

/* the variants that differ from the reference only in knob k, sorted by its value */
static int on_curve(const variants *v, int k, int *index) {
    int n = 0;
    for (int i = 0; i < v->count; i++) {
        bool fits = true;
        for (int o = 0; o < KNOBS; o++)
            fits &= o == k || same(v->value[i][o], v->value[v->reference][o]);
        if (!fits) continue;
        int at = n++;
        for (; at > 0 && v->value[index[at - 1]][k] > v->value[i][k]; at--)
            index[at] = index[at - 1];
        index[at] = i;
    }
    return n;
}

static void draw_knob(cgs_page *p, const variants *v, int k, const int *setting, int settings) {
    double at[MAX_PLANNERS][4][MAX_MODELS];
    cgs_plot_series series[MAX_PLANNERS];
    int index[MAX_MODELS], n = on_curve(v, k, index), count = 0;
    for (int s = 0; s < settings && count < MAX_PLANNERS; s++) {
        const char *planner = v->q->setting[setting[s]].planner;
        if (cgs_is_control(planner)) continue;
        double *x = at[count][0], *y = at[count][1], *low = at[count][2], *high = at[count][3];
        int got = 0;
        for (int i = 0; i < n; i++) {
            cgs_rate r;
            if (!cgs_rate_of(v->q, setting[s], v->model[index[i]], &r)) continue;
            x[got] = v->value[index[i]][k];
            y[got] = r.mean;
            low[got] = r.wilson.low;
            high[got++] = r.wilson.high;
        }
        if (got < 2) continue;
        series[count] = (cgs_plot_series){cgs_planner_name(planner),
                                          CGS_STYLE_OTHER + count % (CGS_STYLES - CGS_STYLE_OTHER),
                                          CGS_LINE_MARKS,
                                          got,
                                          x,
                                          y,
                                          low,
                                          high};
        count++;
    }
    if (count == 0) return;
    cgs_plot plot = {.title = knob[k].title,
                     .x = {.label = knob[k].axis, .scale = knob[k].scale},
                     .y = {.label = "success, %", .fixed = true, .low = 0, .high = 101},
                     .series = series,
                     .count = count,
                     .marked = true,
                     .mark = v->value[v->reference][k],
                     .mark_label = "reference"};
    cgs_plot_lines(cgs_page_figure(p), &plot);
    cgs_page_figure_end(p, NULL);
}

void cgs_section_ablations(cgs_page *p, const cgs_folder *f, const cgs_rates *r) {
    bool open = false;
    for (int i = 0; i < r->count; i++) {
        const cgs_protocol *q = &r->protocol[i];
        variants v;
        if (!find_variants(&v, q, f, p)) continue;
        int *setting = malloc((size_t)q->settings_count * sizeof *setting);
        if (!setting) {
            p->body.failed = true;
            break;
        }
        int settings = cgs_headlines(q, setting);
        if (!open) cgs_page_section(p, "ablations", "Training ablations");
        open = true;
        cgs_page_subtitle(p, "%s", q->name);
        cgs_page_grid(p, false);
        for (int k = 0; k < KNOBS; k++) draw_knob(p, &v, k, setting, settings);
        cgs_page_grid_end(p);
        cgs_page_note(p, "One setting of %s is varied at a time. Bands: Wilson's 95 %% interval.",
                      cgs_method_title(q->model[v.model[v.reference]].method));
        cgs_protocol_note(p, f, q);
        free(setting);
    }
    if (open) cgs_page_section_end(p);
}

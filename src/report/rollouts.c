/* rollouts.c - success over rollouts per solve: every planner at the same cost. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/method.h"
#include "report/plot.h"
#include "report/sections.h"

/* The planners of a protocol that were swept over rollouts. */
typedef struct swept {
    int *index; /* (CGS_STYLES, settings) */
    int n[CGS_STYLES], count, left_out;
} swept;

static bool find(swept *s, const cgs_protocol *q) {
    size_t settings = (size_t)q->settings_count;
    *s = (swept){.index = malloc((CGS_STYLES + 1) * settings * sizeof *s->index)};
    if (!s->index) return false;
    for (int i = 0; i < q->settings_count; i++) {
        int *to = s->index + (size_t)s->count * settings;
        int n = cgs_rate_sweep(q, i, CGS_OVER_ROLLOUTS, to);
        if (n < 2) continue;
        if (s->count == CGS_STYLES) {
            s->left_out++;
            continue;
        }
        s->n[s->count++] = n;
    }
    return true;
}

/* the planner's name; where it was swept with several settings, with those that others lack */
static void name_curve(const cgs_protocol *q, const swept *s, int i, char *out, size_t size) {
    size_t settings = (size_t)q->settings_count;
    const cgs_rate_setting *of = &q->setting[s->index[(size_t)i * settings]];
    size_t used = (size_t)snprintf(out, size, "%.30s", cgs_planner_name(of->planner));
    for (int k = 0; k < s->count; k++) {
        const cgs_rate_setting *other = &q->setting[s->index[(size_t)k * settings]];
        char words[sizeof of->rest], *rest = NULL;
        if (k == i || strcmp(other->planner, of->planner) != 0) continue;
        snprintf(words, sizeof words, "%s", of->rest);
        for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
            if (!strstr(other->rest, word) && !strstr(out, word) && used < size)
                used += (size_t)snprintf(out + used, size - used, " %.40s", word);
    }
}

static void draw(cgs_page *p, const cgs_protocol *q, const swept *s, int model) {
    size_t settings = (size_t)q->settings_count;
    double *at = malloc(4 * CGS_STYLES * settings * sizeof *at), lowest = 100;
    cgs_plot_series series[CGS_STYLES];
    char names[CGS_STYLES][80];
    int count = 0;
    if (!at) {
        p->body.failed = true;
        return;
    }
    for (int i = 0; i < s->count; i++) {
        const int *index = s->index + (size_t)i * settings;
        double *x = at + 4 * (size_t)i * settings, *y = x + settings, *low = y + settings;
        double *high = low + settings;
        int got = 0;
        for (int k = 0; k < s->n[i]; k++) {
            cgs_rate r;
            if (!cgs_rate_of(q, index[k], model, &r)) continue;
            x[got] = cgs_rate_x(&q->setting[index[k]], CGS_OVER_ROLLOUTS);
            y[got] = r.mean;
            low[got] = r.wilson.low;
            high[got++] = r.wilson.high;
            lowest = fmin(lowest, r.wilson.low);
        }
        name_curve(q, s, i, names[i], sizeof names[i]);
        if (got)
            series[count++] = (cgs_plot_series){names[i], i, CGS_LINE_MARKS, got, x, y, low, high};
    }
    char title[160];
    snprintf(title, sizeof title, "%.60s on %.60s", q->model[model].name, cgs_env_name(q->env));
    cgs_plot plot = {.title = title,
                     .x = {.label = "rollouts per solve", .scale = CGS_AXIS_LOG2},
                     .y = {.label = "success, %",
                           .fixed = true,
                           .low = fmax(0, 10 * floor((lowest - 2) / 10)),
                           .high = 101},
                     .series = series,
                     .count = count};
    cgs_plot_lines(cgs_page_figure(p), &plot);
    cgs_page_figure_end(p, "Bands: Wilson's 95 % interval.");
    free(at);
}

/* the area of each planner and model, and below it the time of a solve with the most rollouts */
static void table(cgs_page *p, const cgs_protocol *q, const swept *s) {
    cgs_page_table(p, false);
    cgs_page_row(p);
    cgs_page_head(p, "area under the curve");
    for (int m = 0; m < q->models; m++) cgs_page_head(p, q->model[m].name);
    for (int i = 0; i < s->count; i++) {
        const int *index = s->index + (size_t)i * (size_t)q->settings_count;
        const cgs_rate_setting *first = &q->setting[index[0]];
        const cgs_rate_setting *last = &q->setting[index[s->n[i] - 1]];
        char name[80], label[160];
        name_curve(q, s, i, name, sizeof name);
        snprintf(label, sizeof label, "%s, %g \xE2\x80\xA6 %g (%d)", name,
                 cgs_rate_x(first, CGS_OVER_ROLLOUTS), cgs_rate_x(last, CGS_OVER_ROLLOUTS),
                 s->n[i]);
        cgs_page_row(p);
        cgs_page_name(p, label, i);
        for (int m = 0; m < q->models; m++) {
            double area;
            cgs_rate r;
            char text[32] = "\xE2\x80\x93", below[48] = "";
            if (cgs_rate_area(q, index, s->n[i], CGS_OVER_ROLLOUTS, m, &area))
                snprintf(text, sizeof text, "%.1f", area);
            if (cgs_rate_of(q, index[s->n[i] - 1], m, &r) && isfinite(r.solve_seconds))
                snprintf(below, sizeof below, "%.1f ms", 1e3 * r.solve_seconds);
            cgs_page_cell(p, text, *below ? below : NULL, NULL, 0);
        }
    }
    cgs_page_table_end(p);
    cgs_page_note(p, "Area under success over log2 of rollouts by the trapezoidal rule, divided by "
                     "the width, in percent; below it the time of a solve with the most rollouts, "
                     "encoding included, per episode of a batch.");
    if (s->left_out) cgs_page_note(p, "%d more sweeps are not shown.", s->left_out);
}

void cgs_section_rollouts(cgs_page *p, const cgs_folder *f, const cgs_rates *r) {
    bool open = false;
    for (int i = 0; i < r->count; i++) {
        const cgs_protocol *q = &r->protocol[i];
        swept s;
        if (!find(&s, q)) p->body.failed = true;
        if (s.index && s.count) {
            if (!open) cgs_page_section(p, "rollouts", "Success over rollouts");
            open = true;
            cgs_page_grid(p, false);
            for (int m = 0; m < q->models; m++) draw(p, q, &s, m);
            cgs_page_grid_end(p);
            table(p, q, &s);
            cgs_protocol_note(p, f, q);
        }
        free(s.index);
    }
    if (open) cgs_page_section_end(p);
}

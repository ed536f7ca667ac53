/* sweeps.c - curves of success over samples K, iterations I and temperature tau, and the areas
 * under them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/method.h"
#include "report/paper_rates.h"
#include "report/plot.h"
#include "report/sections.h"

enum { MAX_PLOTS = 12 };

static const struct {
    const char *id, *title, *axis, *what;
    cgs_axis_scale scale;
} kinds[] = {
    {"budget", "Sampling budget", "samples K", "K", CGS_AXIS_LOG2},
    {"refinement", "Refinement", "iterations I", "I", CGS_AXIS_LINEAR},
    {"temperature", "Temperature of MPPI", "temperature \xCF\x84", "\xCF\x84", CGS_AXIS_LOG2},
};

/* Memory of the curves of one plot: x, y, low, high, published x and y of each model. */
typedef struct curves {
    double *at;
    cgs_plot_series *series;
    int count;
} curves;

static bool curves_create(curves *c, int models, int points) {
    c->count = 0;
    c->at = malloc(6 * (size_t)models * (size_t)points * sizeof *c->at);
    c->series = calloc(2 * (size_t)models, sizeof *c->series);
    return c->at && c->series;
}

static void curves_free(curves *c) {
    free(c->at);
    free(c->series);
}

static void add_model(curves *c, const cgs_protocol *q, const int *index, int n, cgs_rate_over over,
                      int m) {
    double *x = c->at + 6 * (size_t)m * (size_t)n, *y = x + n, *low = y + n, *high = low + n;
    double *px = high + n, *py = px + n;
    int got = 0, paper = 0;
    for (int i = 0; i < n; i++) {
        const cgs_rate_setting *s = &q->setting[index[i]];
        cgs_rate r;
        cgs_published pub;
        if (cgs_rate_of(q, index[i], m, &r)) {
            x[got] = cgs_rate_x(s, over);
            y[got] = r.mean;
            low[got] = r.wilson.low;
            high[got++] = r.wilson.high;
        }
        if (over == CGS_OVER_K && cgs_setting_published(q, index[i], m, &pub)) {
            px[paper] = s->K;
            py[paper++] = pub.mean;
        }
    }
    const cgs_rate_model *k = &q->model[m];
    if (got)
        c->series[c->count++] =
            (cgs_plot_series){k->name, k->style, CGS_LINE_MARKS, got, x, y, low, high};
    if (paper > 1)
        c->series[c->count++] =
            (cgs_plot_series){NULL, k->style, CGS_LINE_FAINT, paper, px, py, NULL, NULL};
}

static void draw_sweep(cgs_page *p, const cgs_protocol *q, const int *index, int n,
                       cgs_rate_over over) {
    const cgs_rate_setting *s = &q->setting[index[0]];
    curves c;
    char title[160], fixed[64] = "", tau[32] = "";
    if (!curves_create(&c, q->models, n)) {
        p->body.failed = true;
        curves_free(&c);
        return;
    }
    for (int m = 0; m < q->models; m++) add_model(&c, q, index, n, over, m);
    if (over == CGS_OVER_K && isfinite(s->iters))
        snprintf(fixed, sizeof fixed, ", I = %g", s->iters);
    if (over != CGS_OVER_K && isfinite(s->K)) snprintf(fixed, sizeof fixed, ", K = %g", s->K);
    if (over != CGS_OVER_TAU && isfinite(s->tau))
        snprintf(tau, sizeof tau, ", \xCF\x84 = %g", s->tau);
    snprintf(title, sizeof title, "%s on %s%s%s", cgs_planner_name(s->planner),
             cgs_env_name(q->env), fixed, tau);
    double low = 100;
    bool paper = false;
    for (int i = 0; i < c.count; i++) {
        paper |= (c.series[i].flags & CGS_LINE_FAINT) != 0;
        for (int k = 0; k < c.series[i].n; k++)
            low = fmin(low, c.series[i].low ? c.series[i].low[k] : c.series[i].y[k]);
    }
    /* from a multiple of ten below the lowest interval up to 100 */
    cgs_plot plot = {.title = title,
                     .x = {.label = kinds[over].axis, .scale = kinds[over].scale},
                     .y = {.label = "success, %",
                           .fixed = true,
                           .low = fmax(0, 10 * floor((low - 2) / 10)),
                           .high = 101},
                     .series = c.series,
                     .count = c.count};
    cgs_plot_lines(cgs_page_figure(p), &plot);
    cgs_page_figure_end(p, paper ? "Bands: Wilson's 95 % interval. Thin dashed: published."
                                 : "Bands: Wilson's 95 % interval.");
    curves_free(&c);
}

/* ---- areas ------------------------------------------------------------------------- */

static void difference_cell(cgs_page *p, const cgs_protocol *q, const int *index, int n,
                            cgs_rate_over over, cgs_rivals r) {
    cgs_interval d;
    double v;
    char text[32], low[32], high[32], below[96];
    if (!cgs_rate_area_pair(q, index, n, over, r.plain, r.cgs, &v, &d)) {
        cgs_page_cell(p, "\xE2\x80\x93", NULL, NULL, 0);
        return;
    }
    cgs_format_signed(text, sizeof text, v);
    cgs_format_signed(low, sizeof low, d.low);
    cgs_format_signed(high, sizeof high, d.high);
    snprintf(below, sizeof below, "[%s, %s]", low, high);
    cgs_page_cell(p, text, below, NULL, d.low > 0 ? 1 : d.high < 0 ? -1 : 0);
}

static void area_row(cgs_page *p, const cgs_protocol *q, const int *index, int n,
                     cgs_rate_over over, const cgs_rivals *pair, int pairs) {
    const cgs_rate_setting *first = &q->setting[index[0]], *last = &q->setting[index[n - 1]];
    char text[64], paper[64], label[128];
    double v, pub;
    cgs_page_row(p);
    snprintf(label, sizeof label, "%s, %s = %g \xE2\x80\xA6 %g (%d)",
             cgs_planner_name(first->planner), kinds[over].what, cgs_rate_x(first, over),
             cgs_rate_x(last, over), n);
    cgs_page_name(p, label, -1);
    for (int m = 0; m < q->models; m++) {
        bool known = cgs_sweep_published(q, index, n, over, m, &pub);
        if (known) snprintf(paper, sizeof paper, "paper %.1f", pub);
        bool got = cgs_rate_area(q, index, n, over, m, &v);
        snprintf(text, sizeof text, "%.1f", got ? v : 0);
        cgs_page_cell(p, got ? text : "\xE2\x80\x93", NULL, known ? paper : NULL, 0);
    }
    for (int i = 0; i < pairs; i++) difference_cell(p, q, index, n, over, pair[i]);
}

static void area_table(cgs_page *p, const cgs_protocol *q, cgs_rate_over over, int *index) {
    cgs_rivals pair[CGS_FAMILIES];
    int pairs = 0;
    while (pairs < CGS_FAMILIES && cgs_find_rivals(q, pairs, &pair[pairs])) pairs++;
    cgs_page_table(p, false);
    cgs_page_row(p);
    cgs_page_head(p, "area under the curve");
    for (int m = 0; m < q->models; m++) cgs_page_head(p, q->model[m].name);
    for (int i = 0; i < pairs; i++) {
        char head[160];
        snprintf(head, sizeof head, "%.60s " CGS_MINUS " %.60s", q->model[pair[i].cgs].name,
                 q->model[pair[i].plain].name);
        cgs_page_head(p, head);
    }
    for (int s = 0; s < q->settings_count; s++) {
        int n = cgs_rate_sweep(q, s, over, index);
        if (n >= 2) area_row(p, q, index, n, over, pair, pairs);
    }
    cgs_page_table_end(p);
    cgs_page_note(p,
                  "nAUC: area under success over %s by the trapezoidal rule, divided by the width, "
                  "in percent. "
                  "The difference has a 95 %% bootstrap interval over starts.%s",
                  over == CGS_OVER_ITERS ? "I"
                  : over == CGS_OVER_K   ? "log2 K"
                                         : "log2 \xCF\x84",
                  over == CGS_OVER_K ? " The paper's area is taken over the same K."
                                     : " The paper's area is over its own grid.");
}

/* ---- sections ---------------------------------------------------------------------- */

static void sweep_section(cgs_page *p, const cgs_folder *f, const cgs_rates *r,
                          cgs_rate_over over) {
    bool open = false;
    for (int i = 0; i < r->count; i++) {
        const cgs_protocol *q = &r->protocol[i];
        int *index = malloc((size_t)q->settings_count * sizeof *index), plots = 0, more = 0;
        if (!index) p->body.failed = true;
        for (int s = 0; index && s < q->settings_count; s++) {
            int n = cgs_rate_sweep(q, s, over, index);
            if (n < 2) continue;
            if (plots == MAX_PLOTS) {
                more++;
                continue;
            }
            if (!open) cgs_page_section(p, kinds[over].id, kinds[over].title);
            open = true;
            if (plots++ == 0) cgs_page_grid(p, false);
            draw_sweep(p, q, index, n, over);
        }
        if (plots) {
            cgs_page_grid_end(p);
            if (more) cgs_page_note(p, "%d more sweeps appear only in the table of areas.", more);
            area_table(p, q, over, index);
            cgs_protocol_note(p, f, q);
        }
        free(index);
    }
    if (open) cgs_page_section_end(p);
}

void cgs_section_sweeps(cgs_page *p, const cgs_folder *f, const cgs_rates *r) {
    for (int over = 0; over < 3; over++) sweep_section(p, f, r, (cgs_rate_over)over);
}

/* tables_rates.c - tables of success: at K = 128, over K, and on held-out starts. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/markdown.h"
#include "report/method.h"
#include "report/tables.h"

static const char *row_name(const char *planner) {
    return !strcmp(planner, "zero") ? "zero action" : cgs_planner_name(planner);
}

/* Models in a setting.  The success of a control planner ("zero", "random") does not depend on the
 * model, so one model's result is complete. */
static void put_cells(cgs_tables *t, const cgs_protocol *q, int setting, int count) {
    bool control = cgs_is_control(q->setting[setting].planner);
    for (int i = 0; control && i < count; i++) {
        const cgs_md_cell *c = &t->cell[i];
        if (c->got) {
            cgs_md_cells(&t->text, c, 1, false);
        } else {
            cgs_md_entry(&t->text, "");
        }
    }
    if (!control) cgs_md_cells(&t->text, t->cell, count, true);
}

/* ---- at K = 128 -------------------------------------------------------------------- */

static void spread_cell(const cgs_protocol *q, int setting, int model, cgs_md_cell *c) {
    cgs_rate r;
    cgs_published pub;
    *c = (cgs_md_cell){.got = cgs_rate_of(q, setting, model, &r)};
    if (c->got && r.runs > 1)
        snprintf(c->strong, sizeof c->strong, "%.1f \xC2\xB1 %.1f", r.mean, r.sd);
    if (c->got && r.runs == 1) snprintf(c->strong, sizeof c->strong, "%.1f", r.mean);
    if (cgs_setting_published(q, setting, model, &pub))
        snprintf(c->tail, sizeof c->tail, " (%.1f)", pub.mean);
}

/* K = 128 and I = 30, or a planner that has neither */
static bool is_headline(const cgs_rate_setting *s) {
    return !(s->K < 128 || s->K > 128 || s->iters < 30 || s->iters > 30);
}

static void success_row(cgs_tables *t, const cgs_protocol *q, int setting) {
    cgs_md_entry(&t->text, row_name(q->setting[setting].planner));
    for (int m = 0; m < q->models; m++) spread_cell(q, setting, m, &t->cell[m]);
    put_cells(t, q, setting, q->models);
    cgs_md_end(&t->text);
}

void cgs_tables_success(cgs_tables *t) {
    bool open = false;
    for (int i = 0; i < t->protocols; i++) {
        const cgs_protocol *q = t->protocol[i].q;
        if (t->protocol[i].held_out) continue;
        int n = cgs_headlines(q, t->index), kept = 0;
        for (int k = 0; k < n; k++)
            if (is_headline(&q->setting[t->index[k]])) t->index[kept++] = t->index[k];
        if (kept == 0) continue;
        cgs_tables_begin(
            t, &open, "Success at K = 128",
            "Percent of starts, mean \xC2\xB1 sample deviation over seeds (of "
            "starts and of training); the paper's mean in brackets; the best of ours in bold.");
        cgs_md_entry(&t->text, t->protocol[i].label);
        for (int m = 0; m < q->models; m++) cgs_md_entry(&t->text, q->model[m].name);
        cgs_md_end(&t->text);
        cgs_md_rule(&t->text, 1 + q->models);
        for (int k = 0; k < kept; k++) success_row(t, q, t->index[k]);
    }
}

/* ---- over K ------------------------------------------------------------------------ */

static void over_K_row(cgs_tables *t, const cgs_protocol *q, int n, int points, int model) {
    char name[128], label[320];
    cgs_tables_sweep_label(t, q, t->index[0], CGS_OVER_K, name, sizeof name);
    snprintf(label, sizeof label, "%s, %s", name, q->model[model].name);
    cgs_md_entry(&t->text, label);
    for (int p = 0; p < points; p++) {
        cgs_md_cell *c = &t->cell[p];
        *c = (cgs_md_cell){0};
        for (int i = 0; i < n; i++) {
            double K = q->setting[t->index[i]].K;
            cgs_rate r;
            cgs_published pub;
            if (K < t->grid[p] || K > t->grid[p]) continue;
            c->got = cgs_rate_of(q, t->index[i], model, &r);
            if (c->got) snprintf(c->strong, sizeof c->strong, "%.1f", r.mean);
            if (cgs_setting_published(q, t->index[i], model, &pub))
                snprintf(c->tail, sizeof c->tail, " (%.1f)", pub.mean);
        }
    }
    cgs_md_cells(&t->text, t->cell, points, false);
    cgs_md_end(&t->text);
}

void cgs_tables_over_K(cgs_tables *t) {
    bool open = false;
    for (int i = 0; i < t->protocols; i++) {
        const cgs_protocol *q = t->protocol[i].q;
        int points = 0, n;
        if (t->protocol[i].held_out) continue;
        for (int at = 0; (n = cgs_tables_sweep(q, CGS_OVER_K, &at, t->index));)
            points = cgs_tables_grid(t, points, q, t->index, n, CGS_OVER_K);
        if (points == 0) continue;
        cgs_tables_begin(t, &open, "Over K",
                         "Percent of starts, mean over seeds; the paper's mean in "
                         "brackets.");
        cgs_md_entry(&t->text, t->protocol[i].label);
        for (int p = 0; p < points; p++) {
            char head[32];
            snprintf(head, sizeof head, "%s%g", p ? "" : "K = ", t->grid[p]);
            cgs_md_entry(&t->text, head);
        }
        cgs_md_end(&t->text);
        cgs_md_rule(&t->text, 1 + points);
        for (int at = 0; (n = cgs_tables_sweep(q, CGS_OVER_K, &at, t->index));)
            for (int m = 0; m < q->models; m++) over_K_row(t, q, n, points, m);
    }
}

/* ---- held-out starts --------------------------------------------------------------- */

static void interval_cell(const cgs_protocol *q, int setting, int model, cgs_md_cell *c) {
    cgs_rate r;
    *c = (cgs_md_cell){.got = model >= 0 && cgs_rate_of(q, setting, model, &r)};
    if (!c->got) return;
    snprintf(c->strong, sizeof c->strong, "%.1f", r.mean);
    snprintf(c->tail, sizeof c->tail, " [%.1f, %.1f]", r.wilson.low, r.wilson.high);
}

static void difference(cgs_tables *t, const cgs_protocol *q, int setting, int a, int b) {
    cgs_paired d;
    if (cgs_is_control(q->setting[setting].planner)) {
        cgs_md_entry(&t->text, "");
    } else if (a >= 0 && b >= 0 && cgs_rate_pair(q, setting, a, b, &d)) {
        cgs_md_difference(&t->text, 100 * d.difference,
                          (cgs_interval){100 * d.newcombe.low, 100 * d.newcombe.high});
    } else {
        cgs_md_entry(&t->text, "not run");
    }
}

static void held_out_row(cgs_tables *t, const cgs_tables_protocol *of, int setting,
                         const cgs_tables_families *f) {
    const cgs_rate_setting *s = &of->q->setting[setting];
    char label[160];
    cgs_setting_text(s, row_name(s->planner), cgs_setting_numbers(of->q, setting), true, label,
                     sizeof label);
    cgs_md_entry(&t->text, of->label);
    cgs_md_entry(&t->text, label);
    for (int c = 0; c < t->columns; c++)
        interval_cell(of->q, setting, cgs_tables_find(of->q, t->column[c].name), &t->cell[c]);
    put_cells(t, of->q, setting, t->columns);
    for (int i = 0; i < f->count; i++) {
        cgs_rivals r;
        if (!cgs_tables_rivals_in(of->q, f->name[i], &r)) r = (cgs_rivals){-1, -1, -1};
        difference(t, of->q, setting, r.plain, r.cgs);
        difference(t, of->q, setting, r.ts, r.cgs);
    }
    cgs_md_end(&t->text);
}

void cgs_tables_held_out(cgs_tables *t) {
    cgs_tables_families f = cgs_tables_rivals(t, true);
    bool open = false;
    cgs_tables_columns(t, true);
    if (t->columns == 0) return;
    cgs_tables_begin(t, &open, "Held-out starts",
                     "Percent of starts in episodes that no model was trained on, with Wilson's "
                     "95 % interval, the best of ours in bold; differences on the same starts, "
                     "with Newcombe's.");
    cgs_md_entry(&t->text, "");
    cgs_md_entry(&t->text, "planner");
    for (int c = 0; c < t->columns; c++) cgs_md_entry(&t->text, t->column[c].name);
    for (int i = 0; i < f.count; i++) {
        cgs_tables_rival_head(t, &f, i, false);
        cgs_tables_rival_head(t, &f, i, true);
    }
    cgs_md_end(&t->text);
    cgs_md_rule(&t->text, 2 + t->columns + 2 * f.count);
    for (int i = 0; i < t->protocols; i++)
        for (int s = 0; t->protocol[i].held_out && s < t->protocol[i].q->settings_count; s++)
            held_out_row(t, &t->protocol[i], s, &f);
}

/* tables_areas.c - tables of sweeps: areas under success over K and over iterations, and success
 * over temperature. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/markdown.h"
#include "report/method.h"
#include "report/tables.h"

/* ---- rivals ------------------------------------------------------------------------ */

cgs_tables_families cgs_tables_rivals(const cgs_tables *t, bool held_out) {
    cgs_tables_families f = {.count = 0};
    for (int i = 0; i < t->protocols; i++) {
        const cgs_protocol *q = t->protocol[i].q;
        cgs_rivals r;
        for (int n = 0; t->protocol[i].held_out == held_out && cgs_find_rivals(q, n, &r); n++) {
            char family[64];
            int known = 0;
            cgs_method_role(q->model[r.cgs].method, family);
            while (known < f.count && strcmp(f.name[known], family) != 0) known++;
            if (known == f.count && f.count < CGS_FAMILIES)
                snprintf(f.name[f.count++], sizeof f.name[0], "%s", family);
        }
    }
    return f;
}

void cgs_tables_rival_head(cgs_tables *t, const cgs_tables_families *f, int i, bool ts) {
    char head[160];
    const char *plain = cgs_method_title(f->name[i]);
    if (ts && f->count == 1) {
        snprintf(head, sizeof head, "CGS " CGS_MINUS " TS");
    } else {
        snprintf(head, sizeof head, "CGS " CGS_MINUS " %s%s", plain, ts ? "+TS" : "");
    }
    cgs_md_entry(&t->text, head);
}

bool cgs_tables_rivals_in(const cgs_protocol *q, const char *family, cgs_rivals *out) {
    for (int n = 0; cgs_find_rivals(q, n, out); n++) {
        char found[64];
        cgs_method_role(q->model[out->cgs].method, found);
        if (!strcmp(found, family)) return true;
    }
    return false;
}

/* ---- sweeps ------------------------------------------------------------------------ */

int cgs_tables_sweep(const cgs_protocol *q, cgs_rate_over over, int *at, int *index) {
    while (*at < q->settings_count) {
        int n = cgs_rate_sweep(q, (*at)++, over, index);
        if (n >= 2) return n;
    }
    return 0;
}

void cgs_tables_sweep_label(cgs_tables *t, const cgs_protocol *q, int setting, cgs_rate_over over,
                            char *out, size_t size) {
    const cgs_rate_setting *s = &q->setting[setting];
    int sweeps = 0;
    for (int at = 0; cgs_tables_sweep(q, over, &at, t->other);)
        sweeps += !strcmp(q->setting[t->other[0]].planner, s->planner);
    unsigned others = 7u & ~(1u << over);
    cgs_setting_text(s, cgs_planner_name(s->planner), sweeps > 1 ? others : 0, true, out, size);
}

int cgs_tables_grid(cgs_tables *t, int points, const cgs_protocol *q, const int *index, int n,
                    cgs_rate_over over) {
    for (int i = 0; i < n; i++) {
        double x = cgs_rate_x(&q->setting[index[i]], over);
        int at = 0;
        while (at < points && t->grid[at] < x) at++;
        if (at < points && !(t->grid[at] > x)) continue;
        memmove(t->grid + at + 1, t->grid + at, (size_t)(points - at) * sizeof *t->grid);
        t->grid[at] = x;
        points++;
    }
    return points;
}

/* ---- areas ------------------------------------------------------------------------- */

static void area_cell(const cgs_protocol *q, const int *index, int n, cgs_rate_over over, int model,
                      cgs_md_cell *c) {
    double v, pub;
    *c = (cgs_md_cell){.got = model >= 0 && cgs_rate_area(q, index, n, over, model, &v)};
    if (c->got) snprintf(c->strong, sizeof c->strong, "%.1f", v);
    if (model >= 0 && cgs_sweep_published(q, index, n, over, model, &pub))
        snprintf(c->tail, sizeof c->tail, " (%.1f)", pub);
}

static void area_row(cgs_tables *t, const cgs_tables_protocol *of, int n, cgs_rate_over over,
                     const cgs_tables_families *f) {
    char label[128];
    cgs_tables_sweep_label(t, of->q, t->index[0], over, label, sizeof label);
    cgs_md_entry(&t->text, of->label);
    cgs_md_entry(&t->text, label);
    for (int c = 0; c < t->columns; c++)
        area_cell(of->q, t->index, n, over, cgs_tables_find(of->q, t->column[c].name), &t->cell[c]);
    cgs_md_cells(&t->text, t->cell, t->columns, true);
    for (int i = 0; i < f->count; i++) {
        cgs_rivals r;
        cgs_interval d;
        double v;
        if (cgs_tables_rivals_in(of->q, f->name[i], &r) &&
            cgs_rate_area_pair(of->q, t->index, n, over, r.plain, r.cgs, &v, &d)) {
            cgs_md_difference(&t->text, v, d);
        } else {
            cgs_md_entry(&t->text, "not run");
        }
    }
    cgs_md_end(&t->text);
}

static void area_head(cgs_tables *t, const cgs_tables_families *f) {
    cgs_md_entry(&t->text, "");
    cgs_md_entry(&t->text, "planner");
    for (int c = 0; c < t->columns; c++) cgs_md_entry(&t->text, t->column[c].name);
    for (int i = 0; i < f->count; i++) cgs_tables_rival_head(t, f, i, false);
    cgs_md_end(&t->text);
    cgs_md_rule(&t->text, 2 + t->columns + f->count);
}

void cgs_tables_areas(cgs_tables *t, cgs_rate_over over) {
    cgs_tables_families f = cgs_tables_rivals(t, false);
    bool open = false;
    cgs_tables_columns(t, false);
    for (int i = 0; i < t->protocols; i++) {
        int n;
        if (t->protocol[i].held_out) continue;
        for (int at = 0; (n = cgs_tables_sweep(t->protocol[i].q, over, &at, t->index));) {
            if (!open) {
                cgs_tables_begin(
                    t, &open, over == CGS_OVER_K ? "Area over K" : "Area over iterations",
                    over == CGS_OVER_K
                        ? "Area under success over log2 K, in percent; the paper's over the same K "
                          "in brackets, the best of ours in bold; the difference with a 95 % "
                          "bootstrap interval over starts."
                        : "Area under success over I, in percent; the paper's over its own grid "
                          "in brackets, the best of ours in bold; the difference with a 95 % "
                          "bootstrap interval over starts.");
                area_head(t, &f);
            }
            area_row(t, &t->protocol[i], n, over, &f);
        }
    }
}

/* ---- temperature ------------------------------------------------------------------- */

static void temperature_row(cgs_tables *t, const cgs_tables_protocol *of, int n, int points,
                            int m) {
    const cgs_protocol *q = of->q;
    char name[128], label[800];
    cgs_tables_sweep_label(t, q, t->index[0], CGS_OVER_TAU, name, sizeof name);
    /* the paper sweeps MPPI alone, so it needs no name */
    bool plain = !strcmp(name, "MPPI");
    snprintf(label, sizeof label, "%s, %s%s%s", of->label, plain ? "" : name, plain ? "" : ", ",
             q->model[m].name);
    cgs_md_entry(&t->text, label);
    for (int p = 0; p < points; p++) {
        t->cell[p] = (cgs_md_cell){0};
        for (int i = 0; i < n; i++) {
            double tau = q->setting[t->index[i]].tau;
            cgs_rate r;
            if (tau < t->grid[p] || tau > t->grid[p]) continue;
            t->cell[p].got = cgs_rate_of(q, t->index[i], m, &r);
            snprintf(t->cell[p].strong, sizeof t->cell[p].strong, "%.1f", r.mean);
        }
    }
    area_cell(q, t->index, n, CGS_OVER_TAU, m, &t->cell[points]);
    cgs_md_cells(&t->text, t->cell, points + 1, false);
    cgs_md_end(&t->text);
}

void cgs_tables_temperature(cgs_tables *t) {
    bool open = false;
    int points = 0, n;
    for (int i = 0; i < t->protocols; i++)
        for (int at = 0; !t->protocol[i].held_out &&
                         (n = cgs_tables_sweep(t->protocol[i].q, CGS_OVER_TAU, &at, t->index));)
            points = cgs_tables_grid(t, points, t->protocol[i].q, t->index, n, CGS_OVER_TAU);
    if (points == 0) return;
    cgs_tables_begin(t, &open, "Over temperature",
                     "Percent of starts with MPPI, mean over seeds, and the area over "
                     "log2 \xCF\x84; the paper's area, over its own grid, in brackets.");
    cgs_md_entry(&t->text, "\xCF\x84");
    for (int p = 0; p < points; p++) {
        char head[32];
        snprintf(head, sizeof head, "%g", t->grid[p]);
        cgs_md_entry(&t->text, head);
    }
    cgs_md_entry(&t->text, "area (paper)");
    cgs_md_end(&t->text);
    cgs_md_rule(&t->text, 2 + points);
    for (int i = 0; i < t->protocols; i++)
        for (int at = 0; !t->protocol[i].held_out &&
                         (n = cgs_tables_sweep(t->protocol[i].q, CGS_OVER_TAU, &at, t->index));)
            for (int m = 0; m < t->protocol[i].q->models; m++)
                temperature_row(t, &t->protocol[i], n, points, m);
}

/* architectures.c - DINO-WM on frozen features (the paper's Table 13), and the architectures side
 * by side: success (Figure 5, left) and the time of planning (Table 14; Figure 5, right).
 *
 * Every result line names the origin of the frozen features, and so does the note of every table.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/method.h"
#include "report/plot.h"
#include "report/sections.h"

enum { MAX_COLUMNS = 16, MAX_MODELS = 16 };

static const char *const planners[] = {"cem", "mppi", "gd"};
enum { PLANNERS = 3 };

static bool is_dino(const char *method) { return !strncmp(method, "dinowm", 6); }

static bool has_dino(const cgs_protocol *q) {
    for (int m = 0; m < q->models; m++)
        if (is_dino(q->model[m].method)) return true;
    return false;
}

static void backbone_note(cgs_page *p, const cgs_protocol *q) {
    const char *origin = cgs_json_text(q->settings, "backbone", "unknown");
    if (!strcmp(origin, "stand-in"))
        cgs_page_note(p, "Backbone: stand-in, a network trained by cgs pretrain on frames of the "
                         "environment. The paper used DINOv2, so its numbers are no "
                         "reference for these; compare the differences between rows.");
    else
        cgs_page_note(p, "Backbone: %.60s, according to its file.", origin);
}

/* ---- Table 13 ---------------------------------------------------------------------- */

/* settings of the paper's planners, in its order; column: (MAX_COLUMNS) */
static int columns_of(const cgs_protocol *q, int *column) {
    int n = 0;
    for (int k = 0; k < PLANNERS; k++)
        for (int s = 0; s < q->settings_count && n < MAX_COLUMNS; s++)
            if (!strcmp(q->setting[s].planner, planners[k])) column[n++] = s;
    return n;
}

static void frozen_table(cgs_page *p, const cgs_folder *f, const cgs_protocol *q) {
    int column[MAX_COLUMNS], n = columns_of(q, column);
    char label[96];
    cgs_page_subtitle(p, "%s", q->name);
    cgs_page_table(p, false);
    cgs_page_row(p);
    cgs_page_head(p, "model");
    for (int i = 0; i < n; i++) {
        cgs_setting_label(q, column[i], label, sizeof label);
        cgs_page_head(p, label);
    }
    for (int m = 0; m < q->models; m++) {
        if (!is_dino(q->model[m].method)) continue;
        cgs_page_row(p);
        cgs_page_name(p, q->model[m].name, cgs_method_style(q->model[m].method));
        for (int i = 0; i < n; i++) cgs_rate_cell(p, q, column[i], m);
    }
    cgs_page_table_end(p);
    cgs_page_note(p,
                  "The paper's Table 13 for %s: success in percent, mean \xC2\xB1 sample deviation "
                  "over evaluation seeds, Wilson's 95 %% interval below, the paper's number beside "
                  "it. Paired differences are in the section on success rates.",
                  cgs_env_name(q->env));
    backbone_note(p, q);
    cgs_protocol_note(p, f, q);
}

void cgs_section_frozen(cgs_page *p, const cgs_folder *f, const cgs_rates *r) {
    bool open = false;
    for (int i = 0; i < r->count; i++) {
        if (!has_dino(&r->protocol[i])) continue;
        if (!open) cgs_page_section(p, "frozen", "World models on frozen features");
        open = true;
        frozen_table(p, f, &r->protocol[i]);
    }
    if (open) cgs_page_section_end(p);
}

/* ---- Figure 5, left ---------------------------------------------------------------- */

static bool contained(const cJSON *a, const cJSON *b) {
    for (const cJSON *v = a->child; v; v = v->next)
        if (strcmp(v->string, "backbone") != 0 &&
            !cJSON_Compare(v, cJSON_GetObjectItemCaseSensitive(b, v->string), true))
            return false;
    return true;
}

/* the protocol of models without a frozen backbone with otherwise equal settings, or NULL */
static const cgs_protocol *plain_protocol(const cgs_rates *r, const cgs_protocol *q) {
    for (int i = 0; i < r->count; i++) {
        const cgs_protocol *o = &r->protocol[i];
        if (o != q && !cJSON_HasObjectItem(o->settings, "backbone") &&
            contained(o->settings, q->settings) && contained(q->settings, o->settings))
            return o;
    }
    return NULL;
}

static bool equal(double a, double b) {
    return isnan(a) || isnan(b) ? isnan(a) && isnan(b) : !(a < b || a > b);
}

/* a setting with equal samples and iterations; temperatures depend on the family's cost */
static int alike(const cgs_protocol *q, const cgs_rate_setting *s) {
    for (int i = 0; i < q->settings_count; i++)
        if (!strcmp(q->setting[i].planner, s->planner) && equal(q->setting[i].K, s->K) &&
            equal(q->setting[i].iters, s->iters))
            return i;
    return -1;
}

static int add_bars(cgs_plot_row *row, int rows, const cgs_protocol *q, int setting) {
    for (int m = 0; m < q->models && rows < MAX_MODELS && setting >= 0; m++) {
        cgs_rate x;
        char family[64];
        if (cgs_method_role(q->model[m].method, family) == CGS_ROLE_OTHER) continue;
        if (!cgs_rate_of(q, setting, m, &x)) continue;
        row[rows++] = (cgs_plot_row){q->model[m].name, x.mean, x.wilson.low, x.wilson.high,
                                     cgs_method_style(q->model[m].method)};
    }
    return rows;
}

static void draw_success(cgs_page *p, const cgs_protocol *dino, const cgs_protocol *lewm) {
    int *index = malloc((size_t)dino->settings_count * sizeof *index);
    int n = index ? cgs_headlines(dino, index) : 0;
    if (!index) p->body.failed = true;
    cgs_page_grid(p, false);
    for (int k = 0; k < PLANNERS; k++)
        for (int i = 0; i < n; i++) {
            const cgs_rate_setting *s = &dino->setting[index[i]];
            cgs_plot_row row[MAX_MODELS];
            char title[96], label[64];
            if (strcmp(s->planner, planners[k]) != 0) continue;
            int rows = add_bars(row, 0, dino, index[i]);
            if (lewm) rows = add_bars(row, rows, lewm, alike(lewm, s));
            if (isfinite(s->K))
                snprintf(label, sizeof label, ", K=%g", s->K);
            else
                label[0] = '\0';
            snprintf(title, sizeof title, "%s on %s%s", cgs_planner_name(s->planner),
                     cgs_env_name(dino->env), label);
            cgs_plot_bars(cgs_page_figure(p), title, "success, %", row, rows);
            cgs_page_figure_end(p, NULL);
        }
    cgs_page_grid_end(p);
    free(index);
}

/* ---- Table 14 and Figure 5, right -------------------------------------------------- */

static const cJSON *planner_of(const cJSON *model, const char *planner) {
    const cJSON *list = cgs_json_list(model, "planners");
    for (const cJSON *t = list ? list->child : NULL; t; t = t->next)
        if (!strcmp(cgs_json_text(t, "planner", ""), planner)) return t;
    return NULL;
}

static void seconds_cell(cgs_page *p, const cJSON *model, const char *planner) {
    const cJSON *t = planner_of(model, planner);
    double v = cgs_json_number(t, "seconds"), pub;
    char text[32], spread[64], paper[48];
    snprintf(text, sizeof text, "%.4g s", v);
    snprintf(spread, sizeof spread, "%.4g \xE2\x80\xA6 %.4g", cgs_json_number(t, "least"),
             cgs_json_number(t, "most"));
    bool known = cgs_published_seconds(cgs_json_text(model, "method", ""), planner, &pub);
    if (known) snprintf(paper, sizeof paper, "paper %.3f s", pub);
    cgs_page_cell(p, isnan(v) ? "\xE2\x80\x93" : text, isnan(v) ? NULL : spread,
                  known ? paper : NULL, 0);
}

static void ratio_cell(cgs_page *p, const cJSON *model, const char *planner) {
    const char *method = cgs_json_text(model, "method", "");
    double v = cgs_json_number(planner_of(model, planner), "ratio"), own, lewm;
    char text[32], paper[48];
    snprintf(text, sizeof text, "%.1f\xC3\x97", v);
    bool known = cgs_published_seconds(method, planner, &own) &&
                 cgs_published_seconds("lewm", planner, &lewm);
    if (known) snprintf(paper, sizeof paper, "paper %.1f\xC3\x97", own / lewm);
    cgs_page_cell(p, isnan(v) ? "\xE2\x80\x93" : text, NULL, known ? paper : NULL, 0);
}

static void time_table(cgs_page *p, const cJSON *models) {
    cgs_page_table(p, false);
    cgs_page_row(p);
    cgs_page_head(p, "model");
    for (int k = 0; k < PLANNERS; k++) cgs_page_head(p, cgs_planner_name(planners[k]));
    for (int ratios = 0; ratios < 2; ratios++) {
        int count = 0;
        for (const cJSON *m = models->child; m && count < MAX_MODELS; m = m->next, count++) {
            char name[128], label[160];
            int style;
            cgs_json_model(m, name, sizeof name, &style);
            if (ratios && count == 0) continue; /* the denominator of the ratios */
            snprintf(label, sizeof label, "%.100s%s", name, ratios ? " / LeWM" : "");
            cgs_page_row(p);
            cgs_page_name(p, label, ratios ? -1 : style);
            for (int k = 0; k < PLANNERS; k++)
                if (ratios)
                    ratio_cell(p, m, planners[k]);
                else
                    seconds_cell(p, m, planners[k]);
        }
    }
    cgs_page_table_end(p);
}

static void draw_times(cgs_page *p, const cJSON *models) {
    cgs_page_grid(p, false);
    for (int k = 0; k < PLANNERS; k++) {
        cgs_plot_row row[MAX_MODELS];
        char label[MAX_MODELS][160], title[96];
        int rows = 0;
        for (const cJSON *m = models->child; m && rows < MAX_MODELS; m = m->next) {
            char name[128];
            int style;
            const cJSON *t = planner_of(m, planners[k]);
            double v = cgs_json_number(t, "seconds"), ratio = cgs_json_number(t, "ratio");
            if (!(v >= 0)) continue;
            cgs_json_model(m, name, sizeof name, &style);
            char times[32] = "";
            if (rows) snprintf(times, sizeof times, ", %.1f\xC3\x97", ratio);
            snprintf(label[rows], sizeof label[rows], "%.60s%s", name, times);
            row[rows] = (cgs_plot_row){label[rows], v, v, v, CGS_STYLE_CGS};
            rows++;
        }
        if (rows == 0) continue;
        snprintf(title, sizeof title, "Planning with %s", cgs_planner_name(planners[k]));
        cgs_plot_bars(cgs_page_figure(p), title, "seconds per episode", row, rows);
        cgs_page_figure_end(p, NULL);
    }
    cgs_page_grid_end(p);
}

static void timing(cgs_page *p, const cJSON *j) {
    const cJSON *models = cgs_json_list(j, "models");
    if (!models || !models->child) return;
    cgs_page_subtitle(p, "Planning time");
    time_table(p, models);
    draw_times(p, models);
    cgs_page_note(
        p,
        "The paper's Table 14: seconds of planning per episode (two solves) at K = %g, I = "
        "%g, %g steps of GD; median, minimum and maximum of %g runs. Models of size %.20s with "
        "random weights and PushT's actions, in one process on %.30s in %.10s. The paper's "
        "seconds come from its own machine and code, with CGS: compare only ratios.",
        cgs_json_number(j, "samples"), cgs_json_number(j, "iters"), cgs_json_number(j, "gd_steps"),
        cgs_json_number(j, "runs"), cgs_json_text(j, "size", "?"), cgs_json_text(j, "device", "?"),
        cgs_json_text(j, "precision", "?"));
    cgs_page_command(p, cgs_json_text(j, "command", NULL));
}

void cgs_section_architectures(cgs_page *p, const cgs_folder *f, const cgs_rates *r) {
    const cgs_protocol *dino = NULL, *lewm = NULL;
    cJSON *j = cgs_folder_json(f, p, "timing.json", "cgs-timing");
    for (int i = 0; i < r->count && !lewm; i++) {
        if (!has_dino(&r->protocol[i])) continue;
        dino = &r->protocol[i];
        lewm = plain_protocol(r, dino);
    }
    if (lewm || j) {
        cgs_page_section(p, "architectures", "Architectures");
        if (lewm) {
            draw_success(p, dino, lewm);
            cgs_page_note(p,
                          "The left of the paper's Figure 5: the same starts and planners, each "
                          "architecture plain, with TS and with CGS. The numbers, with intervals "
                          "and the paper's, are in the tables.");
            backbone_note(p, dino);
        }
        if (j) timing(p, j);
        cgs_page_section_end(p);
    }
    cJSON_Delete(j);
}

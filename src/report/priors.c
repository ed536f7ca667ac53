/* priors.c - matched priors before any search: their distance from the goal, and their success
 * alone. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/planners.h"
#include "report/paper_rates.h"
#include "report/sections.h"

enum { MAX_MODELS = 12 };

#define RHO "\xCF\x81"
#define DASH "\xE2\x80\x93"

/* ---- the ratio ----------------------------------------------------------------------- */

/* "centre [lo, hi]" of an object with an interval */
static void interval_cell(cgs_page *p, const cJSON *v, const char *centre, double published) {
    double middle = cgs_json_number(v, centre), low = cgs_json_number(v, "lo");
    double high = cgs_json_number(v, "hi");
    char main[64], below[64], paper[64];
    snprintf(main, sizeof main, "%.3f", middle);
    snprintf(below, sizeof below, "[%.3f, %.3f]", low, high);
    snprintf(paper, sizeof paper, "paper %.3f", published);
    cgs_page_cell(p, isnan(middle) ? DASH : main, isnan(low) || isnan(high) ? NULL : below,
                  isnan(published) ? NULL : paper, 0);
}

static void ratio_table(cgs_page *p, const cJSON *j, const cJSON *models) {
    double starts = cgs_json_number(j, "starts");
    int count = 0;
    cgs_page_table(p, false);
    cgs_page_row(p);
    cgs_page_head(p, "model");
    cgs_page_head(p, "mean " RHO);
    cgs_page_head(p, "median " RHO);
    cgs_page_head(p, "starts with " RHO " < 1");
    for (const cJSON *m = models->child; m && count < MAX_MODELS; m = m->next, count++) {
        char name[128], text[32];
        int style;
        cgs_json_model(m, name, sizeof name, &style);
        cgs_page_row(p);
        cgs_page_name(p, name, style);
        interval_cell(p, cJSON_GetObjectItemCaseSensitive(m, "rho"), "mean",
                      cgs_json_number(m, "published"));
        interval_cell(p, cJSON_GetObjectItemCaseSensitive(m, "rho_median"), "median", NAN);
        double share = 100 * cgs_json_number(m, "below_one") / starts;
        snprintf(text, sizeof text, "%.1f %%", share);
        cgs_page_cell(p, isfinite(share) ? text : DASH, NULL, NULL, 0);
    }
    cgs_page_table_end(p);
    bool mean = !strcmp(cgs_json_text(j, "zero", ""), "mean");
    bool held_out = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(j, "held_out"));
    char where[64] = "";
    if (starts >= 0 && starts < 1e9)
        snprintf(where, sizeof where, " %.0f %sstarts.", starts, held_out ? "held-out " : "");
    cgs_page_note(p,
                  RHO " is the distance of the predicted end of the prior's plan from the goal, "
                      "divided by the distance that doing nothing leaves (%s). 95 %% "
                      "bootstrap intervals.%s",
                  mean ? "the mean action throughout" : "zero control throughout", where);
}

/* ---- success without search ----------------------------------------------------------- */

/* The setting in which the prior is the only candidate, or -1.  With one candidate there is nothing
 * to choose from, so cem and mppi, and any number of iterations, give the same plan. */
static int lone_prior(const cgs_protocol *q) {
    for (int s = 0; s < q->settings_count; s++) {
        const cgs_rate_setting *k = &q->setting[s];
        const cgs_planner_kind *kind = cgs_planner_kind_of(k->planner);
        if (kind && kind->needs & CGS_NEEDS_PRIOR && k->K > 0 && k->K < 2) return s;
    }
    return -1;
}

static void draw_alone(cgs_page *p, const cgs_protocol *q, int setting) {
    cgs_plot_row row[MAX_MODELS];
    int rows = 0;
    for (int m = 0; m < q->models && rows < MAX_MODELS; m++) {
        cgs_rate r;
        if (!cgs_rate_of(q, setting, m, &r)) continue;
        row[rows++] = (cgs_plot_row){q->model[m].name, r.mean, r.wilson.low, r.wilson.high,
                                     q->model[m].style};
    }
    if (rows == 0) return;
    cgs_plot_intervals(cgs_page_figure(p), "Success of the prior alone",
                       "success in %, with 95 % interval", row, rows);
    cgs_page_figure_end(p, q->name);
}

static void alone_row(cgs_page *p, const cgs_protocol *q, int setting, const cgs_protocol *head) {
    bool native = !strcmp(cgs_json_text(q->settings, "history", "native"), "native");
    cgs_page_row(p);
    cgs_page_name(p, q->name, -1);
    for (int m = 0; m < head->models; m++) {
        char main[64], below[64], paper[64];
        cgs_published pub;
        cgs_rate r;
        int at = -1;
        for (int i = 0; i < q->models; i++)
            if (!strcmp(q->model[i].folder, head->model[m].folder)) at = i;
        bool known = native && cgs_published_rate(head->model[m].method, q->env,
                                                  q->setting[setting].planner, 1, &pub);
        if (known) snprintf(paper, sizeof paper, "paper %.1f \xC2\xB1 %.1f", pub.mean, pub.sd);
        bool got = at >= 0 && cgs_rate_of(q, setting, at, &r);
        if (got) {
            snprintf(main, sizeof main, "%.1f", r.mean);
            snprintf(below, sizeof below, "[%.1f, %.1f]", r.wilson.low, r.wilson.high);
        }
        cgs_page_cell(p, got ? main : DASH, got ? below : NULL, known ? paper : NULL, 0);
    }
}

static void alone_table(cgs_page *p, const cgs_rates *r, const cgs_protocol *head) {
    cgs_page_table(p, false);
    cgs_page_row(p);
    cgs_page_head(p, "success of the prior alone, %");
    for (int m = 0; m < head->models; m++) cgs_page_head(p, head->model[m].name);
    for (int i = 0; i < r->count; i++) {
        int s = lone_prior(&r->protocol[i]);
        if (s >= 0) alone_row(p, &r->protocol[i], s, head);
    }
    cgs_page_table_end(p);
    cgs_page_note(p, "The plan of the prior is executed as it is: one candidate, nothing to "
                     "choose from. Wilson's 95 %% interval.");
}

/* ---- the section ----------------------------------------------------------------------- */

cJSON *cgs_section_priors(cgs_page *p, const cgs_folder *f, const cgs_rates *r) {
    cJSON *j = cgs_folder_json(f, p, "prior-quality.json", "cgs-prior-quality");
    const cJSON *models = cgs_json_list(j, "models");
    const cgs_protocol *head = NULL;
    if (models && !models->child) models = NULL;
    for (int i = 0; i < r->count && !head; i++)
        if (lone_prior(&r->protocol[i]) >= 0) head = &r->protocol[i];
    if (j && !models)
        cgs_page_warn(p, "%s/prior-quality.json: \"models\" is not a list of models", f->path);
    if (models || head) {
        cgs_page_section(p, "priors", "Matched priors before any search");
        if (models) ratio_table(p, j, models);
        if (head) alone_table(p, r, head);
        cgs_page_grid(p, false);
        if (models)
            cgs_draw_distribution(
                p, models,
                &(cgs_distribution){.key = "ratios",
                                    .title = "Distance from the goal under the prior",
                                    .x = {.label = RHO, .scale = CGS_AXIS_LOG2},
                                    .y = "starts at or below, %",
                                    .marked = true,
                                    .mark = 1,
                                    .caption = "Further left is closer to the goal. Dashed: "
                                               "doing nothing."});
        for (int i = 0; i < r->count; i++) {
            int s = lone_prior(&r->protocol[i]);
            if (s >= 0) draw_alone(p, &r->protocol[i], s);
        }
        cgs_page_grid_end(p);
        cgs_page_command(p, cgs_json_text(j, "command", ""));
        cgs_page_section_end(p);
    }
    return j;
}

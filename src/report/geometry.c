/* geometry.c - control-response heat maps, action and latent paths, and the mechanism of MPPI. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/method.h"
#include "report/plot.h"
#include "report/sections.h"

enum { SIDE = 32, CELLS = SIDE * SIDE, MAX_WINDOWS = 8, MAX_MODELS = 12, MAX_POINTS = 4096 };

/* "Episode 11 from step 4", or the window's number where the file does not name it */
static void name_window(const cJSON *w, int number, char *out, size_t size) {
    double episode = cgs_json_number(w, "episode"), step = cgs_json_number(w, "step");
    if (episode >= 0 && step >= 0) {
        snprintf(out, size, "Episode %.0f from step %.0f", episode, step);
    } else {
        const char *source = cgs_json_text(w, "source", "");
        snprintf(out, size, "Window %d%s%.60s", number + 1, source[0] ? ", " : "", source);
    }
}

/* ---- windows ----------------------------------------------------------------------- */

static void draw_heats(cgs_page *p, const cJSON *window, const cJSON *ideal) {
    double cosine[CELLS];
    int style;
    cgs_page_grid(p, true);
    if (cgs_json_numbers(ideal, cosine, CELLS) == CELLS) {
        cgs_plot_heat(cgs_page_figure(p), "Ideal", -1, cosine, SIDE);
        cgs_page_figure_end(p, NULL);
    }
    const cJSON *models = cgs_json_list(window, "models");
    int count = 0;
    for (const cJSON *m = models ? models->child : NULL; m && count < MAX_MODELS;
         m = m->next, count++) {
        char name[128];
        cgs_json_model(m, name, sizeof name, &style);
        if (cgs_json_numbers(cgs_json_list(m, "heat"), cosine, CELLS) != CELLS) continue;
        cgs_plot_heat(cgs_page_figure(p), name, style, cosine, SIDE);
        cgs_page_figure_end(p, NULL);
    }
    cgs_page_grid_end(p);
}

/* the points of a list of lists; returns how many */
static int read_path(const cJSON *list, int dims, double *at) {
    int n = 0;
    if (!list) return 0;
    for (const cJSON *v = list->child; v && n < MAX_POINTS; v = v->next) {
        double *x = at + (size_t)n * (size_t)dims;
        if (cgs_json_numbers(v, x, dims) != dims) return 0;
        bool finite = true;
        for (int k = 0; k < dims; k++) finite &= isfinite(x[k]) && fabs(x[k]) < 1e30;
        n += finite;
    }
    return n;
}

static void draw_paths(cgs_page *p, const cJSON *window, const char *title) {
    int dims = cgs_json_number(window, "dims") >= 3 ? 3 : 2, paths = 0;
    size_t capacity = (size_t)MAX_POINTS * (size_t)dims;
    double *at = malloc((MAX_MODELS + 1) * capacity * sizeof *at);
    cgs_plot_path path[MAX_MODELS + 1];
    char name[MAX_MODELS][128];
    if (!at) {
        p->body.failed = true;
        return;
    }
    int n = read_path(cgs_json_list(window, "actions"), dims, at);
    if (n) path[paths++] = (cgs_plot_path){"actions", -1, n, at};
    const cJSON *models = cgs_json_list(window, "models");
    int count = 0;
    for (const cJSON *m = models ? models->child : NULL; m && count < MAX_MODELS;
         m = m->next, count++) {
        double *here = at + (size_t)(count + 1) * capacity;
        int style;
        cgs_json_model(m, name[count], sizeof name[count], &style);
        n = read_path(cgs_json_list(m, "path"), dims, here);
        if (n) path[paths++] = (cgs_plot_path){name[count], style, n, here};
    }
    if (paths) {
        cgs_plot_paths(cgs_page_figure(p), title, path, paths, dims);
        cgs_page_figure_end(p, NULL);
    }
    free(at);
}

/* ---- summary ----------------------------------------------------------------------- */

enum { MEASURES = 4 };
static const char *const measures[MEASURES] = {"gram_error", "isotropy", "pair_error",
                                               "direction_cosine"};
static const char *const measure_names[MEASURES] = {"Gram error", "isotropy", "pair error",
                                                    "direction cosine"};

static void mean_cell(cgs_page *p, const cJSON *v) {
    double mean = cgs_json_number(v, "mean"), low = cgs_json_number(v, "lo");
    double high = cgs_json_number(v, "hi");
    char main[64], below[64];
    if (isnan(mean)) {
        cgs_page_cell(p, "\xE2\x80\x93", NULL, NULL, 0);
        return;
    }
    snprintf(main, sizeof main, "%.3f", mean);
    snprintf(below, sizeof below, "[%.3f, %.3f]", low, high);
    cgs_page_cell(p, main, isnan(low) || isnan(high) ? NULL : below, NULL, 0);
}

static void summary_table(cgs_page *p, const cJSON *summary) {
    if (!summary || !summary->child) return;
    cgs_page_table(p, false);
    cgs_page_row(p);
    cgs_page_head(p, "model");
    cgs_page_head(p, "anchors");
    for (int k = 0; k < MEASURES; k++) cgs_page_head(p, measure_names[k]);
    int count = 0;
    for (const cJSON *m = summary->child; m && count < MAX_MODELS; m = m->next, count++) {
        char name[128], text[32];
        int style;
        cgs_json_model(m, name, sizeof name, &style);
        cgs_page_row(p);
        cgs_page_name(p, name, style);
        double anchors = cgs_json_number(m, "anchors");
        snprintf(text, sizeof text, "%.0f", anchors);
        cgs_page_cell(p, isnan(anchors) ? "\xE2\x80\x93" : text, NULL, NULL, 0);
        for (int k = 0; k < MEASURES; k++)
            mean_cell(p, cJSON_GetObjectItemCaseSensitive(m, measures[k]));
    }
    cgs_page_table_end(p);
    cgs_page_note(
        p, "Mean over anchors with a 95 %% bootstrap interval. Gram error: distance of the "
           "response matrix from the ideal one (0 is ideal). Isotropy: smallest over largest "
           "curvature of a plan's cost (1 is ideal). Pair error: difference between the cosine of "
           "two actions "
           "and that of the latent changes they cause (0 is ideal). Direction cosine: cosine "
           "between an "
           "action and the latent change it causes, after one common rotation (1 is ideal).");
}

static void draw_summary(cgs_page *p, const cJSON *summary) {
    if (!summary || !summary->child) return;
    cgs_page_grid(p, false);
    for (int k = 0; k < MEASURES; k++) {
        cgs_plot_row row[MAX_MODELS];
        char name[MAX_MODELS][128];
        int rows = 0, count = 0;
        for (const cJSON *m = summary->child; m && count < MAX_MODELS; m = m->next, count++) {
            const cJSON *v = cJSON_GetObjectItemCaseSensitive(m, measures[k]);
            double mean = cgs_json_number(v, "mean");
            int style;
            if (isnan(mean)) continue;
            cgs_json_model(m, name[rows], sizeof name[rows], &style);
            row[rows] = (cgs_plot_row){name[rows], mean, cgs_json_number(v, "lo"),
                                       cgs_json_number(v, "hi"), style};
            rows++;
        }
        if (rows == 0) continue;
        cgs_plot_intervals(cgs_page_figure(p), measure_names[k], "mean with 95 % interval", row,
                           rows);
        cgs_page_figure_end(p, NULL);
    }
    cgs_page_grid_end(p);
}

void cgs_section_geometry(cgs_page *p, const cgs_folder *f) {
    cJSON *j = cgs_folder_json(f, p, "geometry.json", "cgs-geometry");
    if (!j) return;
    const cJSON *windows = cgs_json_list(j, "windows"), *summary = cgs_json_list(j, "summary");
    const cJSON *w = windows ? windows->child : NULL;
    char title[96];
    cgs_page_section(p, "geometry", "Control geometry");
    summary_table(p, summary);
    draw_summary(p, summary);
    if (w) {
        cgs_page_subtitle(p, "Responses to circular perturbations of the actions");
        cgs_page_note(p,
                      "Cosines between the predicted endpoint changes of %d perturbations around "
                      "a circle. The closer to the ideal matrix, the better a planner's steps are "
                      "told apart.",
                      SIDE);
        cgs_plot_heat_scale(cgs_page_figure(p), "cosine");
        cgs_page_figure_end(p, NULL);
    }
    int count = 0;
    for (; w && count < MAX_WINDOWS; w = w->next, count++) {
        name_window(w, count, title, sizeof title);
        cgs_page_subtitle(p, "%s", title);
        draw_heats(p, w, cgs_json_list(j, "ideal"));
    }
    if (w) cgs_page_note(p, "The file contains more windows; the first %d are drawn.", MAX_WINDOWS);
    if (windows && windows->child) {
        cgs_page_subtitle(p, "Action paths and the latent paths they cause");
        cgs_page_note(p, "Squares are starts, diamonds are ends. Latent paths are aligned and "
                         "projected onto the principal directions of the actions.");
        cgs_page_grid(p, false);
        count = 0;
        for (w = windows->child; w && count < MAX_WINDOWS; w = w->next, count++) {
            name_window(w, count, title, sizeof title);
            draw_paths(p, w, title);
        }
        cgs_page_grid_end(p);
    }
    cgs_page_command(p, cgs_json_text(j, "command", ""));
    cgs_page_section_end(p);
    cJSON_Delete(j);
}

/* ---- mechanism --------------------------------------------------------------------- */

static void draw_progress(cgs_page *p, const cJSON *j, const cJSON *models) {
    double x[64], v[3][MAX_MODELS][64];
    cgs_plot_series series[MAX_MODELS];
    char name[MAX_MODELS][128];
    int n = cgs_json_numbers(cgs_json_list(j, "samples"), x, 64), count = 0;
    static const char *const key[] = {"p", "lo", "hi"};
    for (const cJSON *m = models->child; m && count < MAX_MODELS; m = m->next) {
        int style, got[3];
        cgs_json_model(m, name[count], sizeof name[count], &style);
        for (int k = 0; k < 3; k++) {
            got[k] = cgs_json_numbers(cgs_json_list(m, key[k]), v[k][count], 64);
            for (int i = 0; i < got[k]; i++) v[k][count][i] *= 100;
        }
        if (n == 0 || got[0] != n) continue;
        bool band = got[1] == n && got[2] == n;
        series[count] = (cgs_plot_series){name[count],
                                          style,
                                          CGS_LINE_MARKS,
                                          n,
                                          x,
                                          v[0][count],
                                          band ? v[1][count] : NULL,
                                          band ? v[2][count] : NULL};
        count++;
    }
    if (count == 0) return;
    cgs_plot plot = {.title = "Probability that an update makes progress",
                     .x = {.label = "samples K", .scale = CGS_AXIS_LOG2},
                     .y = {.label = "Pr(q_K < 1), %", .fixed = true, .low = 0, .high = 101},
                     .series = series,
                     .count = count};
    cgs_plot_lines(cgs_page_figure(p), &plot);
    cgs_page_figure_end(p, "Bands: 95 % interval.");
}

static void draw_contraction(cgs_page *p, const cJSON *models) {
    cgs_draw_distribution(
        p, models,
        &(cgs_distribution){.key = "q_inf",
                            .title = "Contraction of the population update",
                            .x = {.label = "contraction q\xE2\x88\x9E"},
                            .y = "anchors at or below, %",
                            .caption = "Further left is faster: below 1 every update helps."});
}

static const cJSON *published_for(const cJSON *j, const char *name) {
    const cJSON *all = cgs_json_list(j, "published");
    for (const cJSON *v = all ? all->child : NULL; v; v = v->next)
        if (!strcmp(cgs_json_text(v, "name", ""), name)) return v;
    return NULL;
}

static void mechanism_table(cgs_page *p, const cJSON *j, const cJSON *models) {
    double x[64], pr[64];
    int n = cgs_json_numbers(cgs_json_list(j, "samples"), x, 64), at = -1, count = 0;
    for (int i = 0; i < n; i++)
        if (x[i] > 31.5 && x[i] < 32.5) at = i;
    cgs_page_table(p, false);
    cgs_page_row(p);
    cgs_page_head(p, "model");
    cgs_page_head(p, "median q\xE2\x88\x9E");
    cgs_page_head(p, "Pr(q_K < 1) at K = 32");
    for (const cJSON *m = models->child; m && count < MAX_MODELS; m = m->next, count++) {
        char name[128], text[2][32], paper[2][48];
        int style;
        cgs_json_model(m, name, sizeof name, &style);
        const cJSON *pub = published_for(j, name);
        double q = cgs_json_number(m, "q_inf_median"), pq = cgs_json_number(pub, "q_inf_median");
        double p32 = cgs_json_number(pub, "p32");
        bool has = at >= 0 && cgs_json_numbers(cgs_json_list(m, "p"), pr, 64) > at;
        snprintf(text[0], sizeof text[0], "%.3f", q);
        snprintf(paper[0], sizeof paper[0], "paper %.3f", pq);
        snprintf(text[1], sizeof text[1], "%.1f %%", has ? 100 * pr[at] : 0);
        snprintf(paper[1], sizeof paper[1], "paper %.1f %%", 100 * p32);
        cgs_page_row(p);
        cgs_page_name(p, name, style);
        cgs_page_cell(p, isnan(q) ? "\xE2\x80\x93" : text[0], NULL, isnan(pq) ? NULL : paper[0], 0);
        cgs_page_cell(p, has && isfinite(pr[at]) ? text[1] : "\xE2\x80\x93", NULL,
                      isnan(p32) ? NULL : paper[1], 0);
    }
    cgs_page_table_end(p);
    const cJSON *published = cgs_json_list(j, "published");
    cgs_page_note(p, "%.0f anchors, %.0f batches, \xCF\x84 = %g.%s", cgs_json_number(j, "anchors"),
                  cgs_json_number(j, "batches"), cgs_json_number(j, "tau"),
                  published && published->child ? " The paper's numbers are for Cube." : "");
}

void cgs_section_mechanism(cgs_page *p, const cgs_folder *f) {
    cJSON *j = cgs_folder_json(f, p, "mechanism.json", "cgs-mechanism");
    const cJSON *models = cgs_json_list(j, "models");
    if (models && models->child) {
        cgs_page_section(p, "mechanism", "Mechanism of MPPI");
        cgs_page_grid(p, false);
        draw_contraction(p, models);
        draw_progress(p, j, models);
        cgs_page_grid_end(p);
        mechanism_table(p, j, models);
        cgs_page_command(p, cgs_json_text(j, "command", ""));
        cgs_page_section_end(p);
    } else if (j) {
        cgs_page_warn(p, "%s/mechanism.json: \"models\" is not a list of models", f->path);
    }
    cJSON_Delete(j);
}

/* distribution.c - empirical distribution functions, one line per model. */
#include <math.h>
#include <stdlib.h>

#include "report/plot.h"
#include "report/sections.h"

enum { MAX_MODELS = 12, MAX_POINTS = 4096 };

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void cgs_draw_distribution(cgs_page *p, const cJSON *models, const cgs_distribution *what) {
    double(*value)[MAX_POINTS] = malloc(2 * MAX_MODELS * sizeof *value);
    double(*share)[MAX_POINTS] = value ? value + MAX_MODELS : NULL;
    cgs_plot_series series[MAX_MODELS];
    char name[MAX_MODELS][128];
    int count = 0;
    if (!value) p->body.failed = true;
    for (const cJSON *m = models->child; value && m && count < MAX_MODELS; m = m->next) {
        int style, kept = 0,
                   n = cgs_json_numbers(cgs_json_list(m, what->key), value[count], MAX_POINTS);
        for (int i = 0; i < n; i++)
            if (isfinite(value[count][i])) value[count][kept++] = value[count][i];
        if (kept == 0) continue;
        cgs_json_model(m, name[count], sizeof name[count], &style);
        qsort(value[count], (size_t)kept, sizeof **value, by_value);
        for (int i = 0; i < kept; i++) share[count][i] = 100.0 * (i + 1) / kept;
        series[count] = (cgs_plot_series){name[count],  style,        CGS_LINE_STEPS, kept,
                                          value[count], share[count], NULL,           NULL};
        count++;
    }
    if (count) {
        cgs_plot plot = {.title = what->title,
                         .x = what->x,
                         .y = {.label = what->y, .fixed = true, .low = 0, .high = 101},
                         .series = series,
                         .count = count,
                         .marked = what->marked,
                         .mark = what->mark};
        cgs_plot_lines(cgs_page_figure(p), &plot);
        cgs_page_figure_end(p, what->caption);
    }
    free(value);
}

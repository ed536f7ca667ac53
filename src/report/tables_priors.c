/* tables_priors.c - matched priors before any search (Figure 14 of the paper). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/folder.h"
#include "report/markdown.h"
#include "report/tables.h"

static const cJSON *first_model(const cgs_tables_run *r) {
    const cJSON *models = cgs_json_list(r->priors, "models");
    return models ? models->child : NULL;
}

static const cJSON *find_model(const cgs_tables_run *r, const char *column) {
    for (const cJSON *m = first_model(r); m; m = m->next) {
        char name[128];
        int style;
        cgs_json_model(m, name, sizeof name, &style);
        if (!strcmp(name, column)) return m;
    }
    return NULL;
}

static void fill(cgs_md_cell *cell, const cJSON *m) {
    const cJSON *rho = m ? cJSON_GetObjectItemCaseSensitive(m, "rho") : NULL;
    double mean = cgs_json_number(rho, "mean"), low = cgs_json_number(rho, "lo"),
           high = cgs_json_number(rho, "hi"), paper = cgs_json_number(m, "published");
    int used = 0;
    *cell = (cgs_md_cell){.got = isfinite(mean)};
    snprintf(cell->strong, sizeof cell->strong, "%.3f", mean);
    if (isfinite(low) && isfinite(high))
        used = snprintf(cell->tail, sizeof cell->tail, " [%.3f, %.3f]", low, high);
    if (isfinite(paper) && used < (int)sizeof cell->tail)
        snprintf(cell->tail + used, sizeof cell->tail - (size_t)used, " (%.3f)", paper);
}

void cgs_tables_priors(cgs_tables *t) {
    bool open = false;
    t->columns = 0;
    for (int i = 0; i < t->count; i++) {
        int count = 0;
        for (const cJSON *m = first_model(&t->run[i]); m && count < CGS_MOST_PRIORS;
             m = m->next, count++) {
            char name[128];
            int style;
            const char *method = cgs_json_model(m, name, sizeof name, &style);
            cgs_tables_column(t, method, name);
        }
    }
    if (t->columns == 0) return;
    cgs_tables_sort(t);
    cgs_tables_begin(
        t, &open, "Matched priors before any search",
        "Mean distance of the predicted end of the prior's plan from the goal, divided "
        "by that of doing nothing, with a 95 % bootstrap interval; the paper's in "
        "brackets. The success of the plan itself is that of PG-MPPI with K = 1.");
    cgs_tables_head(t);
    for (int i = 0; i < t->count; i++) {
        if (!first_model(&t->run[i])) continue;
        cgs_tables_env(t, i, cgs_json_text(t->run[i].priors, "env", ""));
        for (int c = 0; c < t->columns; c++)
            fill(&t->cell[c], find_model(&t->run[i], t->column[c].name));
        cgs_md_cells(&t->text, t->cell, t->columns, false);
        cgs_md_end(&t->text);
    }
}

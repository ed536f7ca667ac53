/* learned.c - what models have learned, on data alone: their files learned.json as one section. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/sections.h"

enum { MOST_MODELS = 24, MOST_ROWS = 16 };
#define DASH "\xE2\x80\x93"

typedef struct learned_models {
    cJSON *doc[MOST_MODELS];
    char name[MOST_MODELS][128];
    int count;
} learned_models;

static void take(learned_models *all, const cgs_folder *f, cgs_page *p, const char *folder,
                 const char *name) {
    char path[300];
    snprintf(path, sizeof path, "%s%slearned.json", folder, *folder ? "/" : "");
    if (all->count == MOST_MODELS) return;
    cJSON *doc = cgs_folder_json(f, p, path, "cgs-learned");
    if (!doc) return;
    all->doc[all->count] = doc;
    snprintf(all->name[all->count++], 128, "%.120s", name);
}

/* as training curves are found: models/NAME, else NAME, else the folder itself */
static void find(learned_models *all, const cgs_folder *f, cgs_page *p) {
    static const char *const below[] = {"models", "."}, *const prefix[] = {"models/", ""};
    *all = (learned_models){0};
    for (int k = 0; k < 2 && all->count == 0; k++) {
        cgs_names names = cgs_folder_list(f, below[k], 256);
        for (int i = 0; i < names.count; i++) {
            char folder[280];
            snprintf(folder, sizeof folder, "%s%.200s", prefix[k], names.name[i]);
            take(all, f, p, folder, names.name[i]);
        }
        cgs_names_free(&names);
    }
    if (all->count == 0) take(all, f, p, "", f->last);
}

static void number_cell(cgs_page *p, double v, int good) {
    char text[32];
    snprintf(text, sizeof text, "%.3g", v);
    cgs_page_cell(p, isnan(v) ? DASH : text, NULL, NULL, good);
}

static void prediction_table(cgs_page *p, const learned_models *all) {
    static const char *const head[] = {"model", "blocks ahead", "error", "of a copy",
                                       "of the mean"};
    cgs_page_table(p, false);
    cgs_page_row(p);
    for (int k = 0; k < 5; k++) cgs_page_head(p, head[k]);
    for (int i = 0; i < all->count; i++) {
        const cJSON *list = cgs_json_list(all->doc[i], "prediction");
        int n = 0;
        for (const cJSON *e = list ? list->child : NULL; e && n < MOST_ROWS; e = e->next, n++) {
            double model = cgs_json_number(e, "model"), copy = cgs_json_number(e, "copy");
            double mean = cgs_json_number(e, "mean");
            cgs_page_row(p);
            cgs_page_name(p, all->name[i], -1);
            number_cell(p, cgs_json_number(e, "blocks"), 0);
            number_cell(p, model, model < copy && model < mean ? 1 : -1);
            number_cell(p, copy, 0);
            number_cell(p, mean, 0);
        }
    }
    cgs_page_table_end(p);
    cgs_page_note(p, "Mean squared error of predicted latents, from one picture and recorded "
                     "actions. A copy: the latent stays as it is; the mean: of all latents.");
}

static void column_table(cgs_page *p, const learned_models *all) {
    static const char *const head[] = {"model", "column", "linear", "nonlinear"};
    cgs_page_table(p, false);
    cgs_page_row(p);
    for (int k = 0; k < 4; k++) cgs_page_head(p, head[k]);
    for (int i = 0; i < all->count; i++) {
        const cJSON *list = cgs_json_list(all->doc[i], "columns");
        int n = 0;
        for (const cJSON *e = list ? list->child : NULL; e && n < MOST_ROWS; e = e->next, n++) {
            cgs_page_row(p);
            cgs_page_name(p, all->name[i], -1);
            cgs_page_words(p, cgs_json_text(e, "name", "?"));
            number_cell(p, cgs_json_number(e, "linear"), 0);
            number_cell(p, cgs_json_number(e, "nonlinear"), 0);
        }
    }
    cgs_page_table_end(p);
    cgs_page_note(p,
                  "R2 of the data's columns from the latent of the same moment, on episodes that "
                  "the probes were not fitted to; 1 is perfect.");
}

static void movement_table(cgs_page *p, const learned_models *all) {
    static const char *const head[] = {"model", "pixels that change, %", "picture, %", "latent, %"};
    static const char *const keys[] = {"pixels", "picture", "latent"};
    cgs_page_table(p, false);
    cgs_page_row(p);
    for (int k = 0; k < 4; k++) cgs_page_head(p, head[k]);
    for (int i = 0; i < all->count; i++) {
        const cJSON *m = cJSON_GetObjectItemCaseSensitive(all->doc[i], "movement");
        cgs_page_row(p);
        cgs_page_name(p, all->name[i], -1);
        for (int k = 0; k < 3; k++) number_cell(p, 100 * cgs_json_number(m, keys[k]), 0);
    }
    cgs_page_table_end(p);
    cgs_page_note(p, "What one action block moves; picture and latent in percent of the way to "
                     "another episode.");
}

static void advice(cgs_page *p, const learned_models *all) {
    for (int i = 0; i < all->count; i++) {
        const cJSON *list = cgs_json_list(all->doc[i], "advice");
        int n = 0;
        for (const cJSON *e = list ? list->child : NULL; e && n < MOST_ROWS; e = e->next, n++)
            if (cJSON_IsString(e)) cgs_page_note(p, "%.100s: %.400s", all->name[i], e->valuestring);
    }
}

void cgs_section_learned(cgs_page *p, const cgs_folder *f) {
    learned_models all;
    find(&all, f, p);
    if (!all.count) return;
    cgs_page_section(p, "learned", "What was learned");
    prediction_table(p, &all);
    column_table(p, &all);
    movement_table(p, &all);
    advice(p, &all);
    cgs_page_section_end(p);
    for (int i = 0; i < all.count; i++) cJSON_Delete(all.doc[i]);
}

/* probe.c - tables of the probes and of the numerically checked theorems. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/method.h"
#include "report/plot.h"
#include "report/sections.h"

enum { MAX_ROWS = 64, MAX_MODELS = 12 };

/* a score with the published one below it */
static void score_cell(cgs_page *p, const cJSON *row, const char *key) {
    const cJSON *pub = cJSON_GetObjectItemCaseSensitive(row, "published");
    double v = cgs_json_number(row, key), w = cgs_json_number(pub, key);
    char text[32], paper[48];
    snprintf(text, sizeof text, "%.3f", v);
    snprintf(paper, sizeof paper, "paper %.3f", w);
    cgs_page_cell(p, isnan(v) ? "\xE2\x80\x93" : text, NULL, isnan(w) ? NULL : paper, 0);
}

static void physical_table(cgs_page *p, const cJSON *rows) {
    static const char *const key[] = {"P_A_lin",  "P_A_mlp",  "P_S_lin",     "P_S_mlp",
                                      "P_AS_lin", "P_AS_mlp", "R2_A_given_S"};
    static const char *const head[] = {"A, linear",  "A, MLP",  "S, linear", "S, MLP",
                                       "AS, linear", "AS, MLP", "A given S"};
    if (!rows || !rows->child) return;
    cgs_page_subtitle(p, "How well actions and states predict motion");
    cgs_page_table(p, false);
    cgs_page_row(p);
    cgs_page_head(p, "target");
    for (int k = 0; k < 7; k++) cgs_page_head(p, head[k]);
    int count = 0;
    for (const cJSON *r = rows->child; r && count < MAX_ROWS; r = r->next, count++) {
        cgs_page_row(p);
        cgs_page_name(p, cgs_json_text(r, "target", "?"), -1);
        for (int k = 0; k < 7; k++) score_cell(p, r, key[k]);
    }
    cgs_page_table_end(p);
    cgs_page_note(p,
                  "The same for all models: true motion predicted from actions (A), states (S) and "
                  "both. A given S: what actions add to states.");
}

static const char *const probe_keys[] = {"D_lin", "D_mlp", "C_A", "C_AS", "B_A", "B_AS"};

static void model_rows(cgs_page *p, const cJSON *models, const char *target) {
    int count = 0;
    for (const cJSON *m = models->child; m && count < MAX_MODELS; m = m->next, count++) {
        char name[128];
        int style;
        cgs_json_model(m, name, sizeof name, &style);
        const cJSON *rows = cgs_json_list(m, "rows");
        for (const cJSON *r = rows ? rows->child : NULL; r; r = r->next)
            if (!strcmp(cgs_json_text(r, "target", "?"), target)) {
                cgs_page_row(p);
                cgs_page_name(p, target, -1);
                cgs_page_name(p, name, style);
                for (int k = 0; k < 6; k++) score_cell(p, r, probe_keys[k]);
                break;
            }
    }
}

static void representation_table(cgs_page *p, const cJSON *j, const cJSON *models) {
    static const char *const head[] = {"target", "model", "D, linear", "D, MLP",
                                       "C(A)",   "C(AS)", "B(A)",      "B(AS)"};
    const cJSON *targets = cgs_json_list(j, "targets");
    cgs_page_subtitle(p, "How well latent steps predict motion");
    cgs_page_table(p, false);
    cgs_page_row(p);
    for (int k = 0; k < 8; k++) cgs_page_head(p, head[k]);
    int count = 0;
    for (const cJSON *t = targets ? targets->child : NULL; t && count < MAX_ROWS;
         t = t->next, count++)
        if (cJSON_IsString(t)) model_rows(p, models, t->valuestring);
    cgs_page_table_end(p);
    cgs_page_note(
        p,
        "Explained variance (R2) on episodes that the probes were not fitted to; 1 is perfect. D: "
        "true motion decoded from the latent step. C: the motion that actions (A), or actions and "
        "states (AS), "
        "predict, decoded from the latent step. B: agreement of the linear D with those.");
}

void cgs_section_probe(cgs_page *p, const cgs_folder *f) {
    cJSON *j = cgs_folder_json(f, p, "probe.json", "cgs-probe");
    if (!j) return;
    const cJSON *models = cgs_json_list(j, "models");
    cgs_page_section(p, "probe", "Probes of physical motion");
    if (models && models->child) representation_table(p, j, models);
    physical_table(p, cgs_json_list(j, "physical"));
    cgs_page_command(p, cgs_json_text(j, "command", ""));
    cgs_page_section_end(p);
    cJSON_Delete(j);
}

/* ---- theory ------------------------------------------------------------------------ */

static void count_cell(cgs_page *p, double v, int good) {
    char text[32];
    snprintf(text, sizeof text, "%.0f", v);
    cgs_page_cell(p, isnan(v) ? "\xE2\x80\x93" : text, NULL, NULL, good);
}

/* systems that meet the statement's hypotheses, and those that do not */
static void trials_cell(cgs_page *p, double trials, double outside) {
    char text[32], below[48];
    snprintf(text, sizeof text, "%.0f", trials);
    snprintf(below, sizeof below, "%.0f outside", outside);
    cgs_page_cell(p, isnan(trials) ? "\xE2\x80\x93" : text, outside > 0 ? below : NULL, NULL, 0);
}

static void value_cell(cgs_page *p, double v) {
    char text[32];
    snprintf(text, sizeof text, "%.3g", v);
    cgs_page_cell(p, isnan(v) ? "\xE2\x80\x93" : text, NULL, NULL, 0);
}

static void statement_table(cgs_page *p, const cJSON *j, const cJSON *list) {
    static const char *const head[] = {"statement",  "says",         "checked by",      "trials",
                                       "violations", "worst margin", "median tightness"};
    int count = 0, broken = 0;
    cgs_page_table(p, cJSON_GetArraySize(list) > 12);
    cgs_page_row(p);
    for (int k = 0; k < 7; k++) cgs_page_head(p, head[k]);
    for (const cJSON *s = list->child; s && count < MAX_ROWS; s = s->next, count++) {
        double violations = cgs_json_number(s, "violations");
        broken += violations > 0;
        cgs_page_row(p);
        cgs_page_name(p, cgs_json_text(s, "name", "?"), -1);
        cgs_page_words(p, cgs_json_text(s, "what", ""));
        cgs_page_words(p, cgs_json_text(s, "check", ""));
        trials_cell(p, cgs_json_number(s, "trials"), cgs_json_number(s, "outside"));
        count_cell(p, violations, violations > 0 ? -1 : isnan(violations) ? 0 : 1);
        value_cell(p, cgs_json_number(s, "worst_margin"));
        value_cell(p, cgs_json_number(s, "median_tightness"));
    }
    cgs_page_table_end(p);
    cgs_page_note(p,
                  "%d statements on %.0f random systems (seed %.0f): %d hold in every trial, %d "
                  "do not. Outside: systems that do not meet a statement's hypotheses.",
                  count, cgs_json_number(j, "systems"), cgs_json_number(j, "seed"), count - broken,
                  broken);
}

static void premise_cell(cgs_page *p, const cJSON *v) {
    double mean = cgs_json_number(v, "mean"), low = cgs_json_number(v, "lo");
    double high = cgs_json_number(v, "hi");
    char main[32], below[64];
    snprintf(main, sizeof main, "%.3g", mean);
    snprintf(below, sizeof below, "[%.3g, %.3g]", low, high);
    cgs_page_cell(p, isnan(mean) ? "\xE2\x80\x93" : main, isnan(low) || isnan(high) ? NULL : below,
                  NULL, 0);
}

static void premise_table(cgs_page *p, const cJSON *models) {
    static const char *const key[] = {"drift", "mixed_defect", "isotropy", "xi"};
    static const char *const head[] = {"drift", "mixed defect", "isotropy", "\xCE\xBE"};
    if (!models || !models->child) return;
    cgs_page_subtitle(p, "The premises in trained models");
    cgs_page_table(p, false);
    cgs_page_row(p);
    cgs_page_head(p, "model");
    cgs_page_head(p, "anchors");
    for (int k = 0; k < 4; k++) cgs_page_head(p, head[k]);
    cgs_page_head(p, "so");
    int count = 0;
    for (const cJSON *m = models->child; m && count < MAX_MODELS; m = m->next, count++) {
        char name[128];
        int style;
        cgs_json_model(m, name, sizeof name, &style);
        cgs_page_row(p);
        cgs_page_name(p, name, style);
        count_cell(p, cgs_json_number(m, "anchors"), 0);
        for (int k = 0; k < 4; k++) premise_cell(p, cJSON_GetObjectItemCaseSensitive(m, key[k]));
        cgs_page_words(p, cgs_json_text(m, "holds", ""));
    }
    cgs_page_table_end(p);
}

void cgs_section_theory(cgs_page *p, const cgs_folder *f) {
    cJSON *j = cgs_folder_json(f, p, "theory.json", "cgs-theory");
    if (!j) return;
    const cJSON *list = cgs_json_list(j, "statements");
    cgs_page_section(p, "theory", "Theory, checked numerically");
    if (list && list->child) statement_table(p, j, list);
    premise_table(p, cgs_json_list(j, "models"));
    cgs_page_command(p, cgs_json_text(j, "command", ""));
    cgs_page_section_end(p);
    cJSON_Delete(j);
}

/* images.c - planned episodes, decoded plans, surprise, and the stages of the study. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/method.h"
#include "report/plot.h"
#include "report/sections.h"

enum { MAX_IMAGES = 24, MAX_EPISODES = 12, MAX_MODELS = 12, MAX_STEPS = 4096, MAX_STAGES = 512 };

#define PNG_MAGIC "\x89PNG\r\n"
#define GIF_MAGIC "GIF8"

/* ---- plans ------------------------------------------------------------------------- */

static void draw_plan(cgs_page *p, const cgs_folder *f, const char *stem) {
    char name[320], title[256], caption[512];
    char *data;
    size_t bytes;
    snprintf(name, sizeof name, "plans/%.250s.gif", stem);
    if (!cgs_folder_image(f, p, name, GIF_MAGIC, &data, &bytes)) return;
    snprintf(name, sizeof name, "plans/%.250s.json", stem);
    cJSON *j = cgs_folder_json(f, p, name, NULL);
    const cJSON *success = j ? cJSON_GetObjectItemCaseSensitive(j, "success") : NULL;
    const char *method = cgs_method_title(cgs_json_text(j, "method", ""));
    snprintf(title, sizeof title, "%.200s", cgs_json_text(j, "title", stem));
    snprintf(caption, sizeof caption, "%s%s%.60s%s%.30s%s", title, method[0] ? " \xC2\xB7 " : "",
             method, j ? " \xC2\xB7 " : "",
             j ? cgs_planner_name(cgs_json_text(j, "planner", "")) : "",
             cJSON_IsTrue(success)    ? " \xC2\xB7 reached the goal"
             : cJSON_IsFalse(success) ? " \xC2\xB7 did not reach the goal"
                                      : "");
    cgs_page_figure(p);
    cgs_page_image(p, "image/gif", data, bytes, title);
    cgs_page_figure_end(p, caption);
    cgs_page_command(p, cgs_json_text(j, "command", ""));
    cJSON_Delete(j);
    free(data);
}

void cgs_section_plans(cgs_page *p, const cgs_folder *f) {
    cgs_names names = cgs_folder_list(f, "plans", 4096);
    int drawn = 0;
    for (int i = 0; i < names.count; i++) {
        char *dot = strrchr(names.name[i], '.');
        if (!dot || strcmp(dot, ".gif") != 0) continue;
        *dot = '\0';
        if (drawn++ == 0) {
            cgs_page_section(p, "plans", "Planned episodes");
            cgs_page_grid(p, false);
        }
        if (drawn > MAX_IMAGES) continue;
        cgs_text_put(&p->body, "<div>\n");
        draw_plan(p, f, names.name[i]);
        cgs_text_put(&p->body, "</div>\n");
    }
    if (drawn) {
        cgs_page_grid_end(p);
        if (drawn > MAX_IMAGES)
            cgs_page_note(p, "The folder contains %d episodes; the first %d are shown.", drawn,
                          MAX_IMAGES);
        cgs_page_section_end(p);
    }
    cgs_names_free(&names);
}

/* ---- decoded strips ---------------------------------------------------------------- */

void cgs_section_decode(cgs_page *p, const cgs_folder *f) {
    cJSON *j = cgs_folder_json(f, p, "decode.json", "cgs-decode");
    const cJSON *strips = cgs_json_list(j, "strips");
    if (strips && strips->child) {
        int count = 0;
        cgs_page_section(p, "decode", "What the model imagines");
        cgs_page_note(p,
                      "One column per model step: the simulator, and the decoded latent that the "
                      "model predicted for the plan that was then executed. The last column is the "
                      "goal and its decoded latent.");
        for (const cJSON *s = strips->child; s && count < MAX_IMAGES; s = s->next, count++) {
            char *data, caption[512];
            size_t bytes, used;
            const char *title = cgs_json_text(s, "title", "strip");
            const cJSON *rows = cgs_json_list(s, "rows");
            const cJSON *success = cJSON_GetObjectItemCaseSensitive(s, "success");
            if (!cgs_folder_image(f, p, cgs_json_text(s, "png", ""), PNG_MAGIC, &data, &bytes))
                continue;
            snprintf(caption, sizeof caption, "%.200s%s", title,
                     cJSON_IsTrue(success)    ? " \xC2\xB7 reached the goal"
                     : cJSON_IsFalse(success) ? " \xC2\xB7 did not reach the goal"
                                              : "");
            int row = 0;
            for (const cJSON *r = rows ? rows->child : NULL; r && row < 4; r = r->next, row++) {
                used = strlen(caption);
                snprintf(caption + used, sizeof caption - used, "%s%.40s",
                         row ? " / " : " \xC2\xB7 rows from the top: ",
                         cJSON_IsString(r) ? r->valuestring : "?");
            }
            cgs_page_figure(p);
            cgs_text_put(&p->body, "<div class=\"scroll strip\" tabindex=\"0\">");
            cgs_page_image(p, "image/png", data, bytes, title);
            cgs_text_put(&p->body, "</div>\n");
            cgs_page_figure_end(p, caption);
            free(data);
        }
        cgs_page_command(p, cgs_json_text(j, "command", ""));
        cgs_page_section_end(p);
    }
    cJSON_Delete(j);
}

/* ---- surprise ---------------------------------------------------------------------- */

static void draw_surprise(cgs_page *p, const cJSON *e) {
    const cJSON *models = cgs_json_list(e, "models");
    double(*v)[MAX_STEPS] = malloc((MAX_MODELS + 1) * sizeof *v);
    cgs_plot_series series[MAX_MODELS];
    char name[MAX_MODELS][128], title[160];
    int count = 0;
    if (!v) p->body.failed = true;
    for (int i = 0; v && i < MAX_STEPS; i++) v[MAX_MODELS][i] = i;
    for (const cJSON *m = models && v ? models->child : NULL; m && count < MAX_MODELS;
         m = m->next) {
        int style, n = cgs_json_numbers(cgs_json_list(m, "error"), v[count], MAX_STEPS);
        if (n == 0) continue;
        cgs_json_model(m, name[count], sizeof name[count], &style);
        series[count] =
            (cgs_plot_series){name[count], style, 0, n, v[MAX_MODELS], v[count], NULL, NULL};
        count++;
    }
    double edited = cgs_json_number(e, "edited_at");
    snprintf(title, sizeof title, "%.120s", cgs_json_text(e, "title", "episode"));
    cgs_plot plot = {.title = title,
                     .x = {.label = "step"},
                     .y = {.label = "prediction error"},
                     .series = series,
                     .count = count,
                     .marked = isfinite(edited) && edited >= 0 && edited < MAX_STEPS,
                     .mark = edited,
                     .mark_label = "edited"};
    if (count) {
        cgs_plot_lines(cgs_page_figure(p), &plot);
        cgs_page_figure_end(p, NULL);
    }
    free(v);
}

void cgs_section_surprise(cgs_page *p, const cgs_folder *f) {
    cJSON *j = cgs_folder_json(f, p, "surprise.json", "cgs-surprise");
    const cJSON *episodes = cgs_json_list(j, "episodes");
    if (episodes && episodes->child) {
        int count = 0;
        cgs_page_section(p, "surprise", "Surprise");
        cgs_page_note(p, "Error of the model's prediction of the next latent. Where an episode was "
                         "edited, a model that understands it is surprised.");
        cgs_page_grid(p, false);
        for (const cJSON *e = episodes->child; e && count < MAX_EPISODES; e = e->next, count++)
            draw_surprise(p, e);
        cgs_page_grid_end(p);
        cgs_page_command(p, cgs_json_text(j, "command", ""));
        cgs_page_section_end(p);
    }
    cJSON_Delete(j);
}

/* ---- stages ------------------------------------------------------------------------ */

static void format_seconds(char *out, size_t size, double s) {
    if (isnan(s)) {
        snprintf(out, size, "\xE2\x80\x93");
    } else if (s < 60) {
        snprintf(out, size, "%.1f s", s);
    } else if (s < 3600) {
        snprintf(out, size, "%.1f min", s / 60);
    } else {
        snprintf(out, size, "%.1f h", s / 3600);
    }
}

static void study_note(cgs_page *p, const cJSON *study) {
    static const char *const key[] = {"env", "preset", "device", "precision", "commit"};
    char text[512] = "";
    for (size_t i = 0, used = 0; i < sizeof key / sizeof *key; i++) {
        const char *v = cgs_json_text(study, key[i], "");
        if (v[0] && used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %.60s",
                                     used ? ", " : "", key[i], v);
    }
    if (text[0]) cgs_page_note(p, "Study: %s.", text);
}

void cgs_section_stages(cgs_page *p, const cgs_folder *f) {
    if (!f->study && !f->stages->child) return;
    cgs_page_section(p, "stages", "How this was made");
    study_note(p, f->study);
    if (f->stages->child) {
        double total = 0;
        int count = 0;
        cgs_page_table(p, false);
        cgs_page_row(p);
        cgs_page_head(p, "stage");
        cgs_page_head(p, "time");
        cgs_page_head(p, "found");
        cgs_page_head(p, "command");
        for (const cJSON *s = f->stages->child; s && count < MAX_STAGES; s = s->next, count++) {
            char time[32];
            double seconds = cgs_json_number(s, "seconds");
            if (seconds > 0) total += seconds;
            format_seconds(time, sizeof time, seconds);
            cgs_page_row(p);
            cgs_page_name(p, cgs_json_text(s, "stage", "?"), -1);
            cgs_page_cell(p, time, NULL, NULL, 0);
            cgs_page_words(p, cgs_json_text(s, "found", ""));
            cgs_text_put(&p->body, "<td class=\"words\"><code>");
            cgs_text_escape(&p->body, cgs_json_text(s, "command", ""));
            cgs_text_put(&p->body, "</code></td>");
        }
        cgs_page_table_end(p);
        char time[32];
        format_seconds(time, sizeof time, total);
        cgs_page_note(p, "%d stages, %s in all.", count, time);
    }
    cgs_page_section_end(p);
}

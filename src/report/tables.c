/* tables.c - see tables.h.  Here: the order of the tables and the labels of runs. */
#include "report/tables.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "report/markdown.h"
#include "report/method.h"

/* ---- names ------------------------------------------------------------------------- */

static bool has_env(const cgs_tables_run *r, const char *env) {
    for (int i = 0; i < r->rates.count; i++)
        if (!strcmp(r->rates.protocol[i].env, env)) return true;
    for (int i = 0; i < r->models; i++)
        if (!strcmp(r->model[i].env, env)) return true;
    return false;
}

/* "TwoRooms", or "TwoRooms (folder)" where other runs have the same environment, unless the folder
 * has its name */
static void run_label(const cgs_tables *t, int run, const char *env, const char *name, char *out,
                      size_t size) {
    const cgs_tables_run *r = &t->run[run];
    bool shared = !env[0], twice = false;
    for (int i = 0; i < t->count; i++) {
        if (i == run) continue;
        shared |= has_env(&t->run[i], env);
        twice |= !strcmp(t->run[i].folder, r->folder);
    }
    if (shared && (twice || strcmp(r->folder, env) != 0)) {
        snprintf(out, size, "%s%s(%.250s)", name, name[0] ? " " : "", twice ? r->path : r->folder);
    } else {
        snprintf(out, size, "%s", name);
    }
}

static bool is_held_out(const cgs_protocol *q) {
    return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(q->settings, "held_out"));
}

static void name_protocol(const cgs_tables *t, int run, int protocol, cgs_tables_protocol *out) {
    const cgs_rates *r = &t->run[run].rates;
    const cgs_protocol *q = &r->protocol[protocol];
    bool alone = !cJSON_HasObjectItem(q->settings, "protocol");
    for (int i = 0; i < r->count; i++)
        alone &= i == protocol || strcmp(r->protocol[i].env, q->env) != 0 ||
                 is_held_out(&r->protocol[i]) != is_held_out(q);
    *out = (cgs_tables_protocol){.q = q, .held_out = is_held_out(q)};
    run_label(t, run, q->env, alone ? cgs_env_name(q->env) : q->name, out->label,
              sizeof out->label);
}

void cgs_tables_env(cgs_tables *t, int run, const char *env) {
    char label[512];
    run_label(t, run, env, cgs_env_name(env), label, sizeof label);
    cgs_md_entry(&t->text, label);
}

/* ---- columns ----------------------------------------------------------------------- */

void cgs_tables_column(cgs_tables *t, const char *method, const char *name) {
    for (int i = 0; i < t->columns; i++)
        if (!strcmp(t->column[i].name, name)) return;
    cgs_rate_model *m = &t->column[t->columns++];
    memset(m, 0, sizeof *m);
    snprintf(m->method, sizeof m->method, "%s", method);
    snprintf(m->name, sizeof m->name, "%s", name);
    snprintf(m->folder, sizeof m->folder, "%s", name);
}

void cgs_tables_sort(cgs_tables *t) {
    qsort(t->column, (size_t)t->columns, sizeof *t->column, cgs_rate_model_order);
}

void cgs_tables_columns(cgs_tables *t, bool held_out) {
    t->columns = 0;
    for (int i = 0; i < t->protocols; i++) {
        const cgs_protocol *q = t->protocol[i].q;
        for (int m = 0; m < q->models && t->protocol[i].held_out == held_out; m++)
            cgs_tables_column(t, q->model[m].method, q->model[m].name);
    }
    cgs_tables_sort(t);
}

void cgs_tables_head(cgs_tables *t) {
    cgs_md_entry(&t->text, "");
    for (int c = 0; c < t->columns; c++) cgs_md_entry(&t->text, t->column[c].name);
    cgs_md_end(&t->text);
    cgs_md_rule(&t->text, 1 + t->columns);
}

int cgs_tables_find(const cgs_protocol *q, const char *name) {
    for (int m = 0; m < q->models; m++)
        if (!strcmp(q->model[m].name, name)) return m;
    return -1;
}

void cgs_tables_begin(cgs_tables *t, bool *open, const char *title, const char *sentence) {
    if (!*open)
        cgs_text_printf(&t->text, "%s## %s\n\n%s\n", t->written ? "\n" : "", title, sentence);
    cgs_text_put(&t->text, "\n");
    *open = true;
    t->written++;
}

/* ---- straightness ------------------------------------------------------------------ */

static const cgs_straightness *straightness(const cgs_tables_run *r, const char *name) {
    for (int i = 0; i < r->models; i++)
        if (!strcmp(r->model[i].name, name) && isfinite(r->model[i].cosine)) return &r->model[i];
    return NULL;
}

static void format_cosine(char *out, size_t size, const char *before, double v, const char *after) {
    snprintf(out, size, "%s%s%.3f%s", before, v < -0.0005 ? CGS_MINUS : "", fabs(v), after);
}

static void straightness_row(cgs_tables *t, int run, const char *env) {
    cgs_tables_env(t, run, env);
    for (int c = 0; c < t->columns; c++) {
        const cgs_straightness *s = straightness(&t->run[run], t->column[c].name);
        cgs_md_cell *cell = &t->cell[c];
        double paper;
        *cell = (cgs_md_cell){.got = s != NULL};
        if (s) format_cosine(cell->strong, sizeof cell->strong, "", s->cosine, "");
        if (cgs_published_cosine(t->column[c].method, env, &paper))
            format_cosine(cell->tail, sizeof cell->tail, " (", paper, ")");
    }
    cgs_md_cells(&t->text, t->cell, t->columns, false);
    cgs_md_end(&t->text);
}

static void write_straightness(cgs_tables *t) {
    bool open = false;
    t->columns = 0;
    for (int i = 0; i < t->count; i++)
        for (int m = 0; m < t->run[i].models; m++)
            if (isfinite(t->run[i].model[m].cosine))
                cgs_tables_column(t, t->run[i].model[m].method, t->run[i].model[m].name);
    if (t->columns == 0) return;
    cgs_tables_sort(t);
    cgs_tables_begin(t, &open, "Straightness",
                     "Mean cosine of consecutive latent steps on held-out windows at the end of "
                     "training; the paper's in brackets.");
    cgs_tables_head(t);
    for (int i = 0; i < t->count; i++)
        for (int m = 0; m < t->run[i].models; m++)
            if (isfinite(t->run[i].model[m].cosine)) {
                straightness_row(t, i, t->run[i].model[m].env);
                break;
            }
}

/* ---- all of them ------------------------------------------------------------------- */

static bool create(cgs_tables *t) {
    size_t protocols = 1, models = 1, settings = 1, largest = 1;
    for (int i = 0; i < t->count; i++) {
        models += (size_t)t->run[i].models + CGS_MOST_PRIORS;
        for (int k = 0; k < t->run[i].rates.count; k++) {
            const cgs_protocol *q = &t->run[i].rates.protocol[k];
            size_t n = (size_t)q->settings_count;
            protocols++;
            models += (size_t)q->models;
            settings += n;
            if (n > largest) largest = n;
        }
    }
    t->protocol = calloc(protocols, sizeof *t->protocol);
    t->index = calloc(largest, sizeof *t->index);
    t->other = calloc(largest, sizeof *t->other);
    t->grid = calloc(settings, sizeof *t->grid);
    t->cell = calloc(models + settings, sizeof *t->cell);
    t->column = calloc(models, sizeof *t->column);
    return t->protocol && t->index && t->other && t->grid && t->cell && t->column;
}

static void destroy(cgs_tables *t) {
    free(t->protocol);
    free(t->index);
    free(t->other);
    free(t->grid);
    free(t->cell);
    free(t->column);
    cgs_text_free(&t->text);
}

static void write_title(cgs_tables *t, const char *title) {
    cgs_text_put(&t->text, "# ");
    cgs_md_words(&t->text, title);
    cgs_text_put(&t->text, "\n\nWritten by `cgs report --tables` from the lines of the runs.\n\n");
}

cgs_status cgs_tables_write(const cgs_tables_run *run, int count, const char *title,
                            const char *path, int *written) {
    cgs_tables t = {.run = run, .count = count};
    t.text.failed = !create(&t);
    if (!t.text.failed) {
        write_title(&t, title);
        for (int i = 0; i < count; i++)
            for (int k = 0; k < run[i].rates.count; k++)
                name_protocol(&t, i, k, &t.protocol[t.protocols++]);
        cgs_tables_success(&t);
        cgs_tables_over_K(&t);
        cgs_tables_areas(&t, CGS_OVER_K);
        cgs_tables_areas(&t, CGS_OVER_ITERS);
        cgs_tables_temperature(&t);
        cgs_tables_held_out(&t);
        cgs_tables_priors(&t);
        write_straightness(&t);
        if (t.written) cgs_tables_commands(&t);
    }
    *written = t.written;
    cgs_status rc = cgs_text_check(&t.text, path);
    if (rc == CGS_OK && t.written == 0)
        rc = cgs_fail(CGS_EFORMAT,
                      "%s: nothing for the tables: no results, and no validation in metrics", path);
    if (rc == CGS_OK) rc = cgs_write_file(path, t.text.s, t.text.used);
    destroy(&t);
    return rc;
}

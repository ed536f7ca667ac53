/* figures.c - see figures.h. */
#include "bench/figures.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/document.h"
#include "core/file.h"

enum { LIMIT = 16 << 20, MOST = 100000 };

/* ---- the fields, for writing, reading and comparing ------------------------------------------ */

typedef struct field {
    const char *key;
    size_t at, size;
    bool setting; /* part of the machine or the settings, not of the code */
} field;

#define FIELD(type, member, setting)                                                               \
    { #member, offsetof(type, member), sizeof(((type *)NULL)->member), setting }
static const field of_figure[] = {FIELD(cgs_figure, bench, false), FIELD(cgs_figure, name, false),
                                  FIELD(cgs_figure, unit, false)};
static const field of_conditions[] = {
    FIELD(cgs_conditions, device, true),   FIELD(cgs_conditions, processor, true),
    FIELD(cgs_conditions, isa, true),      FIELD(cgs_conditions, machine, true),
    FIELD(cgs_conditions, version, false), FIELD(cgs_conditions, commit, false)};
#undef FIELD
enum {
    FIGURE_TEXTS = sizeof of_figure / sizeof of_figure[0],
    CONDITION_TEXTS = sizeof of_conditions / sizeof of_conditions[0]
};

static const char *text_at(const void *object, const field *f) {
    return (const char *)object + f->at;
}

/* ---- writing --------------------------------------------------------------------------------- */

cJSON *cgs_figure_json(const cgs_figure *f, const cgs_conditions *c) {
    cJSON *line = cJSON_CreateObject();
    for (int i = 0; i < FIGURE_TEXTS; i++)
        cgs_document_text_field(line, of_figure[i].key, text_at(f, &of_figure[i]));
    cgs_document_number(line, "value", f->m.value);
    cgs_document_number(line, "least", f->m.least);
    cgs_document_number(line, "most", f->m.most);
    cgs_document_number(line, "runs", f->m.runs);
    cgs_document_number(line, "threads", c->threads);
    for (int i = 0; i < CONDITION_TEXTS; i++)
        cgs_document_text_field(line, of_conditions[i].key, text_at(c, &of_conditions[i]));
    return line;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* where a file is being read, for messages */
typedef struct place {
    const char *path;
    int line;
} place;

static cgs_status read_text(void *object, const field *f, const cJSON *line, place p) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(line, f->key);
    if (!cJSON_IsString(v) || !v->valuestring)
        return cgs_fail(CGS_EFORMAT, "%s: line %d has no text \"%s\"", p.path, p.line, f->key);
    if (strlen(v->valuestring) >= f->size)
        return cgs_fail(CGS_EFORMAT, "%s: line %d: \"%s\" has %zu characters, at most %zu fit",
                        p.path, p.line, f->key, strlen(v->valuestring), f->size - 1);
    strcpy((char *)object + f->at, v->valuestring);
    return CGS_OK;
}

static cgs_status read_number(double *out, const char *key, const cJSON *line, place p) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(line, key);
    if (!cJSON_IsNumber(v) || !isfinite(v->valuedouble))
        return cgs_fail(CGS_EFORMAT, "%s: line %d has no number \"%s\"", p.path, p.line, key);
    *out = v->valuedouble;
    return CGS_OK;
}

static cgs_status read_count(int *out, const char *key, const cJSON *line, place p) {
    double value = 0;
    CGS_TRY(read_number(&value, key, line, p));
    if (value < 0 || value > INT_MAX || value != floor(value))
        return cgs_fail(CGS_EFORMAT, "%s: line %d: \"%s\" is %g, not a count", p.path, p.line, key,
                        value);
    *out = (int)value;
    return CGS_OK;
}

static cgs_status read_figure(cgs_figure *f, cgs_conditions *c, const cJSON *line, place p) {
    for (int i = 0; i < FIGURE_TEXTS; i++) CGS_TRY(read_text(f, &of_figure[i], line, p));
    for (int i = 0; i < CONDITION_TEXTS; i++) CGS_TRY(read_text(c, &of_conditions[i], line, p));
    CGS_TRY(read_count(&c->threads, "threads", line, p));
    CGS_TRY(read_count(&f->m.runs, "runs", line, p));
    CGS_TRY(read_number(&f->m.value, "value", line, p));
    CGS_TRY(read_number(&f->m.least, "least", line, p));
    CGS_TRY(read_number(&f->m.most, "most", line, p));
    if (!(f->m.least <= f->m.value && f->m.value <= f->m.most))
        return cgs_fail(CGS_EFORMAT, "%s: line %d: %g is not between %g and %g", p.path, p.line,
                        f->m.value, f->m.least, f->m.most);
    return CGS_OK;
}

static bool same_conditions(const cgs_conditions *a, const cgs_conditions *b) {
    for (int i = 0; i < CONDITION_TEXTS; i++)
        if (strcmp(text_at(a, &of_conditions[i]), text_at(b, &of_conditions[i])) != 0) return false;
    return a->threads == b->threads;
}

static cgs_status read_line(cgs_figures *f, const char *text, size_t bytes, place p) {
    cJSON *line = cJSON_ParseWithLength(text, bytes);
    cgs_conditions c = {.threads = 0};
    cgs_figure figure = {.taken = false};
    cgs_status rc = CGS_OK;
    if (!cJSON_IsObject(line))
        rc = cgs_fail(CGS_EFORMAT, "%s: line %d is not a JSON object", p.path, p.line);
    if (rc == CGS_OK) rc = read_figure(&figure, &c, line, p);
    cJSON_Delete(line);
    if (rc != CGS_OK) return rc;
    if (f->count == 0) f->conditions = c;
    if (!same_conditions(&c, &f->conditions))
        return cgs_fail(CGS_EFORMAT,
                        "%s: line %d was measured on another machine, with other settings or by "
                        "other code than line 1",
                        p.path, p.line);
    f->at[f->count++] = figure;
    return CGS_OK;
}

cgs_status cgs_figures_read(cgs_figures *f, const char *path) {
    char *data;
    size_t bytes;
    int lines = 0;
    *f = (cgs_figures){.count = 0};
    CGS_TRY(cgs_read_file(path, LIMIT, &data, &bytes));
    for (size_t i = 0; i < bytes; i++) lines += data[i] == '\n';
    cgs_status rc = CGS_OK;
    if (bytes == 0)
        rc = cgs_fail(CGS_EFORMAT, "%s: the file is empty", path);
    else if (data[bytes - 1] != '\n')
        rc = cgs_fail(CGS_EFORMAT, "%s: the last line has no end", path);
    else if (lines > MOST)
        rc = cgs_fail(CGS_EFORMAT, "%s: %d lines, at most %d are read", path, lines, MOST);
    else if (!(f->at = malloc((size_t)lines * sizeof *f->at)))
        rc = cgs_fail(CGS_ENOMEM, "%s: no memory for %d figures", path, lines);
    const char *at = data;
    for (int i = 1; rc == CGS_OK && i <= lines; i++) {
        const char *end = memchr(at, '\n', bytes - (size_t)(at - data));
        rc = read_line(f, at, (size_t)(end - at), (place){path, i});
        at = end + 1;
    }
    free(data);
    if (rc != CGS_OK) cgs_figures_free(f);
    return rc;
}

void cgs_figures_free(cgs_figures *f) {
    free(f->at);
    *f = (cgs_figures){.count = 0};
}

/* ---- comparing ------------------------------------------------------------------------------- */

const cgs_figure *cgs_figures_take(cgs_figures *f, const cgs_figure *like) {
    for (int i = 0; i < f->count; i++) {
        cgs_figure *x = &f->at[i];
        if (x->taken || strcmp(x->bench, like->bench) != 0 || strcmp(x->name, like->name) != 0 ||
            strcmp(x->unit, like->unit) != 0)
            continue;
        x->taken = true;
        return x;
    }
    return NULL;
}

void cgs_conditions_differ(char *out, size_t size, const cgs_conditions *now,
                           const cgs_conditions *before) {
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < CONDITION_TEXTS && used < size; i++) {
        const field *f = &of_conditions[i];
        const char *a = text_at(now, f), *b = text_at(before, f);
        if (!f->setting || !strcmp(a, b)) continue;
        used += (size_t)snprintf(out + used, size - used, "%s%s is %s, was %s", used ? "; " : "",
                                 f->key, a, b);
    }
    if (now->threads != before->threads && used < size)
        snprintf(out + used, size - used, "%sthreads is %d, was %d", used ? "; " : "", now->threads,
                 before->threads);
}

/* document.c - see document.h. */
#include "analysis/document.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/build.h"
#include "core/file.h"
#include "env/env.h"

enum { RESAMPLES = 2000 };

/* the item, which now belongs to `to`, or NULL */
static cJSON *attach(cJSON *to, const char *name, cJSON *item) {
    bool fine = to && item &&
                (name ? cJSON_AddItemToObject(to, name, item) : cJSON_AddItemToArray(to, item));
    if (fine) return item;
    cJSON_Delete(item);
    return NULL;
}

cJSON *cgs_document_object(cJSON *to, const char *name) {
    return attach(to, name, cJSON_CreateObject());
}

cJSON *cgs_document_array(cJSON *to, const char *name) {
    return attach(to, name, cJSON_CreateArray());
}

static cJSON *number(double value) {
    char text[32];
    if (!isfinite(value)) return cJSON_CreateNull();
    snprintf(text, sizeof text, "%.6g", value); /* cJSON prints the shortest that reads back */
    return cJSON_CreateNumber(strtod(text, NULL));
}

void cgs_document_number(cJSON *to, const char *name, double value) {
    attach(to, name, number(value));
}

void cgs_document_text_field(cJSON *to, const char *name, const char *value) {
    attach(to, name, cJSON_CreateString(value));
}

void cgs_document_numbers(cJSON *to, const char *name, const double *value, int n) {
    cJSON *list = cgs_document_array(to, name);
    for (int i = 0; i < n; i++) attach(list, NULL, number(value[i]));
}

cgs_status cgs_document_mean(cJSON *to, const char *name, const double *x, int n) {
    cgs_interval i;
    CGS_TRY(cgs_bootstrap_mean(x, n, RESAMPLES, 0, &i));
    cJSON *o = cgs_document_object(to, name);
    cgs_document_number(o, "mean", cgs_mean(x, n));
    cgs_document_number(o, "lo", i.low);
    cgs_document_number(o, "hi", i.high);
    return CGS_OK;
}

cgs_status cgs_document_median(cJSON *to, const char *name, const double *x, int n) {
    cgs_interval i;
    CGS_TRY(cgs_bootstrap_median(x, n, RESAMPLES, 0, &i));
    double *sorted = malloc((size_t)n * sizeof *sorted);
    if (!sorted) return cgs_fail(CGS_ENOMEM, "%s: no memory for %d values", name, n);
    memcpy(sorted, x, (size_t)n * sizeof *sorted);
    cJSON *o = cgs_document_object(to, name);
    cgs_document_number(o, "median", cgs_median(sorted, n));
    cgs_document_number(o, "lo", i.low);
    cgs_document_number(o, "hi", i.high);
    free(sorted);
    return CGS_OK;
}

cgs_status cgs_document_create(cJSON **out, const char *format, const char *command,
                               const char *env) {
    *out = cJSON_CreateObject();
    if (!*out) return cgs_fail(CGS_ENOMEM, "%s: no memory", format);
    cgs_document_text_field(*out, "format", format);
    cgs_document_number(*out, "version", 1);
    cgs_document_text_field(*out, "command", command ? command : "");
    cgs_document_text_field(*out, "code_commit", cgs_commit());
    cgs_document_text_field(*out, "env", env);
    cgs_document_env(*out, env);
    return CGS_OK;
}

void cgs_document_env(cJSON *to, const char *env) {
    for (int i = 0; i < cgs_env_count(); i++) {
        const cgs_env_class *c = cgs_env_at(i);
        cgs_env_origin origin = cgs_env_origin_of(c);
        if (strcmp(c->id, env) != 0 || !origin.file[0]) continue;
        cgs_document_number(to, "env_version", c->version);
        cgs_document_text_field(to, CGS_ENV_FILE, origin.file);
        cgs_document_text_field(to, CGS_ENV_SHA256, origin.sha256);
    }
}

static cgs_status text_of(const cJSON *doc, char **out) {
    *out = cJSON_PrintUnformatted(doc);
    return *out ? CGS_OK : cgs_fail(CGS_ENOMEM, "no memory for a result");
}

cgs_status cgs_document_print(const cJSON *doc, FILE *to) {
    char *text;
    CGS_TRY(text_of(doc, &text));
    fprintf(to, "%s\n", text);
    free(text);
    return CGS_OK;
}

cgs_status cgs_document_save(const cJSON *doc, const char *path) {
    char *text;
    CGS_TRY(text_of(doc, &text));
    cgs_status rc = cgs_write_file(path, text, strlen(text));
    free(text);
    return rc;
}

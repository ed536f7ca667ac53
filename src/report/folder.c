/* folder.c - see folder.h. */
#include "report/folder.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/file.h"
#include "io/gzip.h"
#include "report/method.h"

#define JSON_LIMIT ((size_t)128 << 20)
#define LINES_LIMIT ((size_t)1 << 30)
#define IMAGE_LIMIT ((size_t)16 << 20)
#define TEXT_LIMIT ((size_t)1 << 20)

/* ---- files ------------------------------------------------------------------------- */

static void add_stage(void *user, const cJSON *line) {
    cgs_folder *f = user;
    cJSON *copy = cJSON_Duplicate(line, 1);
    if (copy && !cJSON_AddItemToArray(f->stages, copy)) cJSON_Delete(copy);
}

cgs_status cgs_folder_open(cgs_folder *f, const char *path, cgs_page *p) {
    struct stat st;
    memset(f, 0, sizeof *f);
    f->path = path;
    f->env = "";
    if (stat(path, &st) != 0) return cgs_fail(CGS_EIO, "%s: there is no such run", path);
    f->single = !S_ISDIR(st.st_mode);
    /* the last part of the path, without trailing slashes */
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/') end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/') begin--;
    snprintf(f->last, sizeof f->last, "%.*s", (int)(end - begin), path + begin);
    snprintf(f->name, sizeof f->name, "%s", f->last);
    f->stages = cJSON_CreateArray();
    if (!f->stages) return cgs_fail(CGS_ENOMEM, "%s: no memory", path);
    if (f->single) return CGS_OK;
    f->study = cgs_folder_json(f, p, "study.json", NULL);
    f->env = cgs_json_text(f->study, "env", "");
    const char *name = cgs_json_text(f->study, "name", NULL);
    if (name) snprintf(f->name, sizeof f->name, "%.120s", name);
    cgs_folder_lines(f, p, "stages.jsonl", add_stage, f);
    return CGS_OK;
}

void cgs_folder_close(cgs_folder *f) {
    cJSON_Delete(f->study);
    cJSON_Delete(f->stages);
    memset(f, 0, sizeof *f);
}

/* the path of a file of the folder; false when it does not exist */
static bool find_file(const cgs_folder *f, const char *name, char path[4096]) {
    struct stat st;
    if (f->single) return false;
    return cgs_path_join(path, 4096, f->path, name) == CGS_OK && stat(path, &st) == 0 &&
           S_ISREG(st.st_mode);
}

cJSON *cgs_folder_json(const cgs_folder *f, cgs_page *p, const char *name, const char *format) {
    char path[4096], *data;
    size_t bytes;
    if (!find_file(f, name, path)) return NULL;
    if (cgs_read_file(path, JSON_LIMIT, &data, &bytes) != CGS_OK) {
        cgs_page_warn(p, "%s", cgs_last_error());
        return NULL;
    }
    cJSON *j = cJSON_ParseWithLength(data, bytes);
    free(data);
    if (!cJSON_IsObject(j)) {
        cgs_page_warn(p, "%s: not a JSON object", path);
    } else if (format && strcmp(cgs_json_text(j, "format", ""), format) != 0) {
        cgs_page_warn(p, "%s: \"format\" is \"%.40s\", not \"%s\"", path,
                      cgs_json_text(j, "format", ""), format);
    } else if (format && cgs_json_number(j, "version") != 1) {
        cgs_page_warn(p, "%s: version %g, but this program reads version 1", path,
                      cgs_json_number(j, "version"));
    } else {
        return j;
    }
    cJSON_Delete(j);
    return NULL;
}

char *cgs_folder_text(const cgs_folder *f, cgs_page *p, const char *name) {
    char path[4096], *data;
    size_t bytes;
    if (!find_file(f, name, path)) return NULL;
    if (cgs_read_file(path, TEXT_LIMIT, &data, &bytes) == CGS_OK) return data;
    cgs_page_warn(p, "%s", cgs_last_error());
    return NULL;
}

void cgs_folder_lines(const cgs_folder *f, cgs_page *p, const char *name,
                      void (*fn)(void *user, const cJSON *line), void *user) {
    char path[4096], *data;
    size_t bytes;
    if (f->single && !name) {
        snprintf(path, sizeof path, "%.4000s", f->path);
    } else {
        char packed[256];
        if (!name) return;
        snprintf(packed, sizeof packed, "%s.gz", name);
        if (!find_file(f, name, path) && !find_file(f, packed, path)) return;
    }
    if (cgs_read_gzip(path, LINES_LIMIT, &data, &bytes) != CGS_OK) {
        cgs_page_warn(p, "%s", cgs_last_error());
        return;
    }
    int number = 0, bad = 0, first = 0;
    for (char *at = data, *end = data + bytes; at < end;) {
        char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((stop ? stop : end) - at);
        number++;
        cJSON *j = n ? cJSON_ParseWithLength(at, n) : NULL;
        if (cJSON_IsObject(j)) {
            fn(user, j);
        } else if (n && stop) {
            if (bad++ == 0) first = number;
        }
        cJSON_Delete(j);
        at += n + 1;
    }
    free(data);
    if (bad)
        cgs_page_warn(p, "%s: %d of %d lines are not JSON objects, the first is line %d", path, bad,
                      number, first);
}

bool cgs_folder_image(const cgs_folder *f, cgs_page *p, const char *name, const char *magic,
                      char **data, size_t *bytes) {
    char path[4096];
    *data = NULL;
    if (name[0] == '/' || !strncmp(name, "../", 3) || strstr(name, "/../")) {
        cgs_page_warn(p, "%s: names the image \"%.200s\", which is outside the run", f->path, name);
        return false;
    }
    if (!find_file(f, name, path)) {
        cgs_page_warn(p, "%s: there is no image \"%.200s\"", f->path, name);
        return false;
    }
    if (cgs_read_file(path, IMAGE_LIMIT, data, bytes) != CGS_OK) {
        cgs_page_warn(p, "%s", cgs_last_error());
        return false;
    }
    if (*bytes >= strlen(magic) && !memcmp(*data, magic, strlen(magic))) return true;
    cgs_page_warn(p, "%s: not a %s", path, magic[0] == 'G' ? "GIF" : "PNG");
    free(*data);
    *data = NULL;
    return false;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

cgs_names cgs_folder_list(const cgs_folder *f, const char *below, int most) {
    cgs_names all = {0};
    char path[4096];
    if (f->single || cgs_path_join(path, sizeof path, f->path, below) != CGS_OK) return all;
    DIR *d = opendir(path);
    if (!d) return all;
    for (struct dirent *e; (e = readdir(d)) && all.count < 4096;) {
        if (e->d_name[0] == '.') continue;
        char **more = realloc(all.name, (size_t)(all.count + 1) * sizeof *more);
        if (!more) break;
        all.name = more;
        if (!(more[all.count] = strdup(e->d_name))) break;
        all.count++;
    }
    closedir(d);
    if (all.count) qsort(all.name, (size_t)all.count, sizeof *all.name, by_name);
    while (all.count > most) free(all.name[--all.count]);
    return all;
}

void cgs_names_free(cgs_names *n) {
    for (int i = 0; i < n->count; i++) free(n->name[i]);
    free(n->name);
    memset(n, 0, sizeof *n);
}

/* the word after the program's name */
static bool runs_verb(const char *command, const char *verb) {
    const char *space = strchr(command, ' ');
    size_t n = strlen(verb);
    return space && !strncmp(space + 1, verb, n) && (space[n + 1] == ' ' || space[n + 1] == '\0');
}

void cgs_folder_commands(const cgs_folder *f, cgs_page *p, const char *verb) {
    for (const cJSON *s = f->stages->child; s; s = s->next) {
        const char *command = cgs_json_text(s, "command", "");
        if (runs_verb(command, verb)) cgs_page_command(p, command);
    }
}

/* ---- values ------------------------------------------------------------------------ */

const char *cgs_json_text(const cJSON *object, const char *key, const char *otherwise) {
    const cJSON *v = object ? cJSON_GetObjectItemCaseSensitive(object, key) : NULL;
    return cJSON_IsString(v) && v->valuestring ? v->valuestring : otherwise;
}

static double number(const cJSON *v) {
    return cJSON_IsNumber(v) && isfinite(v->valuedouble) ? v->valuedouble : NAN;
}

double cgs_json_number(const cJSON *object, const char *key) {
    return object ? number(cJSON_GetObjectItemCaseSensitive(object, key)) : NAN;
}

int cgs_json_numbers(const cJSON *list, double *out, int most) {
    int n = 0;
    if (!cJSON_IsArray(list)) return 0;
    for (const cJSON *v = list->child; v && n < most; v = v->next) out[n++] = number(v);
    return n;
}

const cJSON *cgs_json_list(const cJSON *object, const char *key) {
    const cJSON *v = object ? cJSON_GetObjectItemCaseSensitive(object, key) : NULL;
    return cJSON_IsArray(v) ? v : NULL;
}

const char *cgs_json_model(const cJSON *model, char *name, size_t size, int *style) {
    const char *method = cgs_json_text(model, "method", "");
    *style = cgs_method_style(method);
    const char *called = cgs_json_text(model, "name", NULL);
    if (!called) called = method[0] ? cgs_method_title(method) : "a model";
    snprintf(name, size, "%s", called);
    return method;
}

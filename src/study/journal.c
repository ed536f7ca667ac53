/* journal.c - the state of a study: study.json, stages.jsonl and the logs of its stages. */
#define _GNU_SOURCE
#include <cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/build.h"
#include "core/file.h"
#include "env/env.h"
#include "study/stages.h"

#define JOURNAL_LIMIT ((size_t)64 << 20)

static cgs_status no_memory(void) { return cgs_fail(CGS_ENOMEM, "study: no memory"); }

/* ---- study.json ---------------------------------------------------------------------- */

/* the environments that were added in this process are those that the commands load too */
static void add_plug_in(cJSON *to, const char *id) {
    for (int i = 0; i < cgs_env_count(); i++) {
        const cgs_env_class *c = cgs_env_at(i);
        cgs_env_origin origin = cgs_env_origin_of(c);
        if (strcmp(c->id, id) != 0 || !origin.file[0]) continue;
        cJSON_AddNumberToObject(to, "env_version", c->version);
        cJSON_AddStringToObject(to, CGS_ENV_FILE, origin.file);
        cJSON_AddStringToObject(to, CGS_ENV_SHA256, origin.sha256);
    }
}

static cgs_status write_about(const cgs_study *s) {
    cJSON *j = cJSON_CreateObject(), *methods = cJSON_CreateArray(), *seeds = cJSON_CreateArray();
    cJSON_AddStringToObject(j, "format", "cgs-study");
    cJSON_AddNumberToObject(j, "version", 1);
    cJSON_AddStringToObject(j, "name", s->recipe->name);
    cJSON_AddStringToObject(j, "what", s->recipe->what);
    cJSON_AddStringToObject(j, "env", s->env);
    add_plug_in(j, s->env);
    cJSON_AddStringToObject(j, "preset", s->preset);
    cJSON_AddStringToObject(j, "device", s->device);
    cJSON_AddStringToObject(j, "precision", s->precision);
    cJSON_AddStringToObject(j, "commit", cgs_commit());
    if (s->backbone) cJSON_AddStringToObject(j, "backbone", s->backbone);
    for (int i = 0; i < s->recipe->variants; i++)
        cJSON_AddItemToArray(methods, cJSON_CreateString(s->recipe->variant[i].label));
    for (const char *p = s->seeds; *p; p += strspn(p, ", ")) {
        size_t n = strcspn(p, ", ");
        char *one = strndup(p, n);
        cJSON_AddItemToArray(seeds, cJSON_CreateString(one ? one : ""));
        free(one);
        p += n;
    }
    cJSON_AddItemToObject(j, "methods", methods);
    cJSON_AddItemToObject(j, "seeds", seeds);
    char *text = cJSON_Print(j), path[4096];
    cJSON_Delete(j);
    if (!text) return no_memory();
    cgs_status rc = cgs_path_join(path, sizeof path, s->dir, "study.json");
    if (rc == CGS_OK) rc = cgs_write_file(path, text, strlen(text));
    cJSON_free(text);
    return rc;
}

/* ---- stages.jsonl -------------------------------------------------------------------- */

static const char *text_of(const cJSON *j, const char *key) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(j, key);
    return cJSON_IsString(v) ? v->valuestring : NULL;
}

static cgs_status note_line(cgs_study *s, int number, const char *line, size_t bytes) {
    cJSON *j = cJSON_ParseWithLength(line, bytes);
    const char *hash = text_of(j, "hash"), *found = text_of(j, "found");
    const cJSON *seconds = cJSON_GetObjectItemCaseSensitive(j, "seconds");
    if (!hash) {
        cJSON_Delete(j);
        return cgs_fail(CGS_EFORMAT, "%s: line %d is not a finished stage", s->journal, number);
    }
    for (int i = 0; i < s->count; i++) {
        cgs_stage *g = &s->stage[i];
        if (strcmp(g->hash, hash) != 0) continue;
        g->finished = true;
        g->seconds = cJSON_IsNumber(seconds) ? seconds->valuedouble : 0;
        snprintf(g->found, sizeof g->found, "%s", found ? found : "");
    }
    cJSON_Delete(j);
    return CGS_OK;
}

/* An incomplete last line was cut by a crash: it is dropped, and its stage is rerun. */
static cgs_status read_journal(cgs_study *s) {
    char *text;
    size_t bytes;
    if (!cgs_file_exists(s->journal)) return CGS_OK;
    CGS_TRY(cgs_read_file(s->journal, JOURNAL_LIMIT, &text, &bytes));
    cgs_status rc = CGS_OK;
    size_t at = 0;
    for (int number = 1; rc == CGS_OK; number++) {
        char *end = memchr(text + at, '\n', bytes - at);
        if (!end) break;
        rc = note_line(s, number, text + at, (size_t)(end - text) - at);
        at = (size_t)(end - text) + 1;
    }
    if (rc == CGS_OK && at < bytes) rc = cgs_write_file(s->journal, text, at);
    free(text);
    return rc;
}

/* does the command of g name the output of another stage, as most name the dataset? */
static bool reads(const cgs_stage *g, const cgs_stage *other) {
    for (int i = 0; i < g->words; i++)
        if (!strcmp(g->word[i], other->output)) return true;
    return false;
}

/* Finished stages whose output was deleted, as weights are before lines are published, are remade
 * only for those that need them and have to run. */
static void spare(cgs_study *s) {
    bool *wanted = calloc((size_t)s->count + 1, sizeof *wanted);
    for (int i = s->count - 1; wanted && i >= 0; i--) {
        cgs_stage *g = &s->stage[i];
        bool there = cgs_file_exists(g->output), gone = g->finished && !there && g->row->means;
        g->spared = gone && !wanted[i];
        bool runs = g->selected && !g->spared && !(g->finished && there);
        bool all = !strcmp(g->row->needs, "*"); /* takes whatever exists */
        for (int k = 0; runs && !all && k < g->need_count; k++) wanted[g->needs[k]] = true;
        for (int k = 0; runs && k < i; k++)
            if (reads(g, &s->stage[k])) wanted[k] = true;
    }
    free(wanted); /* without memory nothing is spared */
}

cgs_status cgs_study_read(cgs_study *s) {
    CGS_TRY(read_journal(s));
    spare(s);
    return CGS_OK;
}

cgs_status cgs_study_begin(cgs_study *s) {
    char path[4096];
    CGS_TRY(cgs_path_join(path, sizeof path, s->dir, "logs"));
    CGS_TRY(cgs_make_dirs(path));
    CGS_TRY(cgs_path_join(path, sizeof path, s->dir, "plans"));
    CGS_TRY(cgs_make_dirs(path));
    CGS_TRY(cgs_path_join(path, sizeof path, s->dir, "parts"));
    CGS_TRY(cgs_make_dirs(path));
    /* of a program that was killed */
    for (int i = 0; i < s->count; i++) CGS_TRY(cgs_stage_join_part(&s->stage[i]));
    CGS_TRY(cgs_study_read(s));
    return write_about(s);
}

static cgs_status append_line(const char *path, const char *line) {
    FILE *f = fopen(path, "ab");
    if (!f) return cgs_fail(CGS_EIO, "%s: %s", path, strerror(errno));
    bool ok = fprintf(f, "%s\n", line) > 0 && fflush(f) == 0 && fsync(fileno(f)) == 0;
    int code = errno;
    if (fclose(f) != 0) ok = false;
    return ok ? CGS_OK : cgs_fail(CGS_EIO, "%s: %s", path, strerror(code));
}

cgs_status cgs_stage_finished(cgs_study *s, cgs_stage *g, const char *command, double seconds,
                              const char *found) {
    char when[32], took[32];
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc);
    snprintf(took, sizeof took, "%.1f", seconds);
    cJSON *j = cJSON_CreateObject();
    cJSON_AddStringToObject(j, "stage", g->name);
    cJSON_AddStringToObject(j, "hash", g->hash);
    cJSON_AddStringToObject(j, "command", command);
    cJSON_AddRawToObject(j, "seconds", took);
    cJSON_AddStringToObject(j, "found", found);
    cJSON_AddStringToObject(j, "finished", when);
    cJSON_AddStringToObject(j, "commit", cgs_commit());
    char *line = cJSON_PrintUnformatted(j);
    cJSON_Delete(j);
    cgs_status rc = line ? append_line(s->journal, line) : no_memory();
    cJSON_free(line);
    CGS_TRY(rc);
    g->finished = true;
    g->seconds = seconds;
    snprintf(g->found, sizeof g->found, "%s", found);
    return CGS_OK;
}

/* moves the line of a stage from the journal's text to the end of another */
static void move_line(char *from, size_t *left, char *to, size_t *used, const cgs_stage *g) {
    char mark[40];
    snprintf(mark, sizeof mark, "\"hash\":\"%s\"", g->hash);
    char *at = memmem(from, *left, mark, strlen(mark));
    if (!at) return;
    char *begin = memrchr(from, '\n', (size_t)(at - from));
    begin = begin ? begin + 1 : from;
    char *end = memchr(at, '\n', *left - (size_t)(at - from));
    if (!end) return;
    size_t n = (size_t)(end + 1 - begin);
    memcpy(to + *used, begin, n);
    *used += n;
    *left -= n;
    memmove(begin, end + 1, *left - (size_t)(begin - from));
}

/* Lines of stages that are not in the list stay, before the others. */
cgs_status cgs_study_sort_journal(const cgs_study *s) {
    char *text;
    size_t bytes, used = 0;
    if (!cgs_file_exists(s->journal)) return CGS_OK;
    CGS_TRY(cgs_read_file(s->journal, JOURNAL_LIMIT, &text, &bytes));
    size_t left = bytes;
    char *sorted = malloc(bytes + 1), *all = malloc(bytes + 1);
    cgs_status rc = sorted && all ? CGS_OK : no_memory();
    for (int i = 0; rc == CGS_OK && i < s->count; i++)
        if (s->stage[i].finished) move_line(text, &left, sorted, &used, &s->stage[i]);
    if (rc == CGS_OK) {
        memcpy(all, text, left);
        memcpy(all + left, sorted, used);
        rc = cgs_write_file(s->journal, all, bytes);
    }
    free(sorted);
    free(all);
    free(text);
    return rc;
}

/* ---- stages -------------------------------------------------------------------------- */

/* The first line of a log is "HASH COMMAND"; was it this stage with these settings? */
static bool begun(const cgs_stage *g) {
    char hash[17] = "";
    FILE *f = fopen(g->log, "rb");
    if (!f) return false;
    size_t n = fread(hash, 1, 16, f);
    fclose(f);
    return n == 16 && !strcmp(hash, g->hash);
}

cgs_status cgs_stage_state(const cgs_stage *g, cgs_stage_do *todo) {
    bool there = cgs_file_exists(g->output);
    *todo = CGS_STAGE_RUN;
    if (g->finished && (there || g->spared)) {
        *todo = CGS_STAGE_DONE;
        return CGS_OK;
    }
    if (!there || !g->row->keeps) return CGS_OK;
    if (!begun(g))
        return cgs_fail(CGS_EARG,
                        "%s was made with other settings; give another --out, or delete it to "
                        "remake it",
                        g->output);
    if (g->row->whole) *todo = CGS_STAGE_ADOPT;
    return CGS_OK;
}

/* Removes a stage from the journal. */
static cgs_status forget(const cgs_study *s, const cgs_stage *g) {
    char *text, mark[40];
    size_t bytes, kept = 0;
    CGS_TRY(cgs_read_file(s->journal, JOURNAL_LIMIT, &text, &bytes));
    snprintf(mark, sizeof mark, "\"hash\":\"%s\"", g->hash);
    for (size_t at = 0, end; at < bytes; at = end) {
        char *stop = memchr(text + at, '\n', bytes - at);
        end = stop ? (size_t)(stop - text) + 1 : bytes;
        if (memmem(text + at, end - at, mark, strlen(mark))) continue;
        memmove(text + kept, text + at, end - at);
        kept += end - at;
    }
    cgs_status rc = cgs_write_file(s->journal, text, kept);
    free(text);
    return rc;
}

cgs_status cgs_stage_started(const cgs_study *s, cgs_stage *g, const char *command) {
    /* its output was deleted; from now on the file may be incomplete */
    if (g->finished) CGS_TRY(forget(s, g));
    g->finished = false;
    size_t size = strlen(command) + 32;
    char *text = malloc(size);
    if (!text) return no_memory();
    snprintf(text, size, "%s %s\n", g->hash, command);
    cgs_status rc = cgs_write_file(g->log, text, strlen(text));
    free(text);
    return rc;
}

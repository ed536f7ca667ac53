/* results.c - see results.h. */
#include "eval/results.h"

#include <cJSON.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/build.h"
#include "core/file.h"
#include "core/statistics.h"
#include "data/checksum.h"
#include "plan/planners.h"

#define FORMAT "cgs-eval"
#define VERSION 1
#define FILE_LIMIT ((size_t)1 << 30)

/* ---- writing ----------------------------------------------------------------------- */

static void put_u64(cJSON *j, const char *key, uint64_t v, const char *format) {
    char text[24]; /* as text: not every 64-bit number survives JSON */
    snprintf(text, sizeof text, format, (unsigned long long)v);
    cJSON_AddStringToObject(j, key, text);
}

/* a float as the shortest decimal that reads back the same */
static void put_float(cJSON *j, const char *key, float v) {
    char text[32];
    if (!isfinite(v)) {
        cJSON_AddNullToObject(j, key);
        return;
    }
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)v);
        if (strtof(text, NULL) == v) break;
    }
    cJSON_AddRawToObject(j, key, text);
}

static void put_seconds(cJSON *j, const char *key, double v) {
    char text[32];
    snprintf(text, sizeof text, "%.6g", v);
    cJSON_AddRawToObject(j, key, text);
}

/* of the settings that tell planners apart, those that this one reads */
static void put_planner(cJSON *j, const cgs_plan_config *p) {
    const cgs_planner_kind *kind = cgs_planner_kind_of(p->kind.s);
    const cgs_planner_setting *s;
    cJSON_AddStringToObject(j, "planner", p->kind.s);
    cJSON_AddNumberToObject(j, "horizon", p->H);
    for (int i = 0; kind && (s = cgs_planner_setting_at(i)); i++) {
        if (!cgs_planner_shows(kind, s, p)) continue;
        if (s->whole)
            cJSON_AddNumberToObject(j, s->key, s->value(p));
        else
            put_float(j, s->key, (float)s->value(p));
    }
    if (p->deadline > 0) put_float(j, "deadline", p->deadline);
    put_u64(j, "seed", p->seed, "%llu");
}

static cJSON *describe(const cgs_eval_settings *s) {
    cJSON *j = cJSON_CreateObject();
    cJSON_AddStringToObject(j, "model", s->model);
    cJSON_AddStringToObject(j, "method", s->method);
    if (s->backbone[0]) cJSON_AddStringToObject(j, "backbone", s->backbone);
    put_u64(j, "weights", s->weights, "%016llx");
    cJSON_AddStringToObject(j, "env", s->env);
    cJSON_AddNumberToObject(j, "env_version", s->env_version);
    if (s->env_file[0]) {
        cJSON_AddStringToObject(j, CGS_ENV_FILE, s->env_file);
        cJSON_AddStringToObject(j, CGS_ENV_SHA256, s->env_sha256);
    }
    cJSON_AddStringToObject(j, "dataset", s->dataset);
    cJSON_AddNumberToObject(j, "dataset_rows", (double)s->dataset_rows);
    cJSON_AddNumberToObject(j, "episodes", s->rule.count);
    put_u64(j, "start_seed", s->rule.seed, "%llu");
    cJSON_AddNumberToObject(j, "goal_offset", s->rule.goal_offset);
    cJSON_AddBoolToObject(j, "whole_range", s->rule.whole_range);
    cJSON_AddBoolToObject(j, "held_out", s->rule.held_out);
    cJSON_AddBoolToObject(j, "skip_solved", s->rule.skip_solved);
    put_u64(j, "starts", s->starts, "%016llx");
    cJSON_AddStringToObject(j, "history", cgs_history_name(s->history));
    if (s->success != CGS_SUCCESS_ANY)
        cJSON_AddStringToObject(j, "success", cgs_success_name(s->success));
    if (s->judge != CGS_JUDGE_OFFICIAL)
        cJSON_AddStringToObject(j, "protocol", cgs_judge_name(s->judge));
    if (s->prior_held_out) cJSON_AddTrueToObject(j, "prior_held_out");
    if (s->prior) put_u64(j, "prior", s->prior, "%016llx");
    cJSON_AddNumberToObject(j, "budget", s->budget);
    cJSON_AddNumberToObject(j, "execute", s->execute);
    put_planner(j, &s->plan);
    cJSON_AddStringToObject(j, "device", s->device);
    cJSON_AddStringToObject(j, "precision", s->precision);
    if (s->batch) cJSON_AddNumberToObject(j, "batch", s->batch);
    return j;
}

cgs_status cgs_eval_describe(const cgs_eval_settings *s, char **json, char hash[17]) {
    cJSON *j = describe(s);
    *json = j ? cJSON_PrintUnformatted(j) : NULL;
    cJSON_Delete(j);
    if (!*json) return cgs_fail(CGS_ENOMEM, "results: no memory for settings");
    snprintf(hash, 17, "%016llx", (unsigned long long)cgs_checksum(*json, strlen(*json)));
    return CGS_OK;
}

static cJSON *outcomes(const cgs_starts *starts, const cgs_outcome *o) {
    cJSON *all = cJSON_CreateArray();
    for (int i = 0; i < starts->count; i++) {
        cJSON *j = cJSON_CreateObject();
        cJSON_AddNumberToObject(j, "episode", (double)starts->start[i].episode);
        cJSON_AddNumberToObject(j, "step", (double)starts->start[i].step);
        cJSON_AddBoolToObject(j, "success", o[i].success);
        cJSON_AddNumberToObject(j, "first", o[i].first);
        cJSON_AddNumberToObject(j, "actions", o[i].actions);
        cJSON_AddNumberToObject(j, "solves", o[i].solves);
        put_float(j, "planned", o[i].planned);
        put_float(j, "reached", o[i].reached);
        put_seconds(j, "seconds", o[i].seconds);
        cJSON_AddBoolToObject(j, "first_plan", o[i].first_success);
        put_float(j, "first_cost", o[i].first_cost);
        cJSON_AddItemToArray(all, j);
    }
    return all;
}

cgs_status cgs_first_plans_of(cgs_first_plans *f, const cgs_outcome *o, int n) {
    double *x = malloc((size_t)n * sizeof *x), squares = 0;
    if (!x) return cgs_fail(CGS_ENOMEM, "results: no memory for %d outcomes", n);
    *f = (cgs_first_plans){0};
    for (int i = 0; i < n; i++) {
        f->successes += o[i].first_success;
        squares += (double)o[i].first_size * o[i].first_size / n;
        x[i] = o[i].first_cost;
    }
    f->size = sqrt(squares);
    f->cost = cgs_median(x, n);
    for (int i = 0; i < n; i++) x[i] = o[i].first_seconds;
    f->p50 = cgs_median(x, n);
    f->p99 = cgs_percentile(x, n, 99);
    free(x);
    return CGS_OK;
}

static cJSON *describe_first(const cgs_first_plans *f) {
    cJSON *j = cJSON_CreateObject(), *pair = cJSON_AddArrayToObject(j, "seconds");
    cJSON_AddNumberToObject(j, "successes", f->successes);
    put_float(j, "cost", (float)f->cost);
    put_float(j, "size", (float)f->size);
    cJSON_AddItemToArray(pair, cJSON_CreateNumber((float)f->p50));
    cJSON_AddItemToArray(pair, cJSON_CreateNumber((float)f->p99));
    return j;
}

static cJSON *compact_outcomes(int n, const cgs_outcome *o) {
    cJSON *j = cJSON_CreateObject();
    char *digits = calloc((size_t)n + 1, 1);
    double solves = 0, seconds = 0;
    for (int i = 0; digits && i < n; i++) {
        digits[i] = o[i].success ? '1' : '0';
        solves += o[i].solves;
        seconds += o[i].seconds;
    }
    /* without memory there is no list, and the line is refused by its reader */
    if (digits) cJSON_AddStringToObject(j, "success", digits);
    cJSON_AddNumberToObject(j, "solves", solves);
    put_seconds(j, "seconds", seconds);
    free(digits);
    return j;
}

cgs_status cgs_eval_line(const cgs_eval_settings *s, const cgs_starts *starts,
                         const cgs_outcome *outcome, char **line) {
    char *settings, hash[17];
    CGS_TRY(cgs_eval_describe(s, &settings, hash));
    int successes = 0, n = starts->count;
    double seconds = 0;
    for (int i = 0; i < n; i++) {
        successes += outcome[i].success;
        seconds += outcome[i].seconds / n;
    }
    cgs_first_plans first;
    cgs_status rc = cgs_first_plans_of(&first, outcome, n);
    if (rc != CGS_OK) {
        cJSON_free(settings);
        return rc;
    }
    cgs_interval w = cgs_wilson(successes, n);
    cJSON *j = cJSON_CreateObject(), *pair = cJSON_CreateArray();
    cJSON_AddStringToObject(j, "format", FORMAT);
    cJSON_AddNumberToObject(j, "version", VERSION);
    cJSON_AddStringToObject(j, "hash", hash);
    cJSON_AddRawToObject(j, "settings", settings);
    put_u64(j, "train_seed", s->train_seed, "%llu");
    cJSON_AddNumberToObject(j, "episodes", n);
    cJSON_AddNumberToObject(j, "successes", successes);
    cJSON_AddNumberToObject(j, "rate", (double)successes / n);
    cJSON_AddItemToArray(pair, cJSON_CreateNumber(w.low));
    cJSON_AddItemToArray(pair, cJSON_CreateNumber(w.high));
    cJSON_AddItemToObject(j, "wilson", pair);
    put_seconds(j, "seconds", seconds);
    cJSON_AddItemToObject(j, "first_plan", describe_first(&first));
    cJSON_AddStringToObject(j, "code_version", cgs_version());
    cJSON_AddStringToObject(j, "code_commit", cgs_commit());
    cJSON_AddItemToObject(j, "outcomes",
                          s->compact ? compact_outcomes(n, outcome) : outcomes(starts, outcome));
    *line = cJSON_PrintUnformatted(j);
    cJSON_Delete(j);
    cJSON_free(settings);
    return *line ? CGS_OK : cgs_fail(CGS_ENOMEM, "results: no memory for a line");
}

cgs_status cgs_eval_file_append(const char *path, const char *line) {
    FILE *f = fopen(path, "ab");
    if (!f) return cgs_fail(CGS_EIO, "%s: %s", path, strerror(errno));
    bool ok = fprintf(f, "%s\n", line) > 0 && fflush(f) == 0 && fsync(fileno(f)) == 0;
    int code = errno;
    if (fclose(f) != 0 && ok) {
        ok = false;
        code = errno;
    }
    return ok ? CGS_OK : cgs_fail(CGS_EIO, "%s: %s", path, strerror(code));
}

/* ---- reading ----------------------------------------------------------------------- */

/* of a compact line */
static const char *parse_digits(const char *digits, cgs_eval_result *r) {
    size_t n = strlen(digits);
    if (n == 0 || n > INT_MAX || strspn(digits, "01") != n) return "\"success\" is not 0 and 1";
    r->success = malloc(n);
    if (!r->success) return "no memory";
    r->episodes = (int)n;
    for (size_t i = 0; i < n; i++) {
        r->success[i] = digits[i] == '1';
        r->successes += r->success[i];
    }
    return NULL;
}

static double number_of(const cJSON *j) { return cJSON_IsNumber(j) ? j->valuedouble : NAN; }

static void parse_first(const cJSON *j, cgs_first_plans *f) {
    const cJSON *seconds = cJSON_GetObjectItemCaseSensitive(j, "seconds");
    double successes = number_of(cJSON_GetObjectItemCaseSensitive(j, "successes"));
    *f = (cgs_first_plans){.successes = successes >= 0 && successes < 1e9 ? (int)successes : -1,
                           .cost = number_of(cJSON_GetObjectItemCaseSensitive(j, "cost")),
                           .size = number_of(cJSON_GetObjectItemCaseSensitive(j, "size")),
                           .p50 = number_of(cJSON_GetArrayItem(seconds, 0)),
                           .p99 = number_of(cJSON_GetArrayItem(seconds, 1))};
}

static const char *parse_result(const cJSON *j, cgs_eval_result *r) {
    const cJSON *format = cJSON_GetObjectItemCaseSensitive(j, "format");
    const cJSON *hash = cJSON_GetObjectItemCaseSensitive(j, "hash");
    const cJSON *seconds = cJSON_GetObjectItemCaseSensitive(j, "seconds");
    const cJSON *all = cJSON_GetObjectItemCaseSensitive(j, "outcomes");
    if (!cJSON_IsString(format) || strcmp(format->valuestring, FORMAT))
        return "\"format\" is not \"" FORMAT "\"";
    if (!cJSON_IsString(hash) || strlen(hash->valuestring) != 16) return "\"hash\" is no hash";
    const cJSON *digits = cJSON_GetObjectItemCaseSensitive(all, "success");
    if (!cJSON_IsString(digits) && (!cJSON_IsArray(all) || !all->child))
        return "\"outcomes\" is no list";
    snprintf(r->hash, sizeof r->hash, "%s", hash->valuestring);
    r->seconds = cJSON_IsNumber(seconds) ? seconds->valuedouble : 0;
    parse_first(cJSON_GetObjectItemCaseSensitive(j, "first_plan"), &r->first);
    if (cJSON_IsString(digits)) return parse_digits(digits->valuestring, r);
    r->episodes = cJSON_GetArraySize(all);
    r->success = malloc((size_t)r->episodes);
    if (!r->success) return "no memory";
    int i = 0;
    for (const cJSON *o = all->child; o; o = o->next, i++) {
        const cJSON *success = cJSON_GetObjectItemCaseSensitive(o, "success");
        if (!cJSON_IsBool(success)) return "an outcome has no \"success\"";
        r->success[i] = cJSON_IsTrue(success);
        r->successes += r->success[i];
    }
    return NULL;
}

static cgs_status add_line(cgs_eval_file *f, const char *path, int number, const char *text,
                           size_t bytes) {
    cgs_eval_result *more = realloc(f->result, (size_t)(f->count + 1) * sizeof *more);
    if (!more) return cgs_fail(CGS_ENOMEM, "%s: no memory for line %d", path, number);
    f->result = more;
    cgs_eval_result *r = &more[f->count++];
    memset(r, 0, sizeof *r);
    cJSON *j = cJSON_ParseWithLength(text, bytes);
    const char *problem = j ? parse_result(j, r) : "not JSON";
    cJSON_Delete(j);
    if (problem) return cgs_fail(CGS_EFORMAT, "%s, line %d: %s", path, number, problem);
    return CGS_OK;
}

cgs_status cgs_eval_file_read(cgs_eval_file *f, const char *path) {
    memset(f, 0, sizeof *f);
    if (!cgs_file_exists(path)) return CGS_OK;
    char *text;
    size_t bytes, at = 0;
    CGS_TRY(cgs_read_file(path, FILE_LIMIT, &text, &bytes));
    cgs_status rc = CGS_OK;
    for (int number = 1; at < bytes && rc == CGS_OK; number++) {
        const char *end = memchr(text + at, '\n', bytes - at);
        if (!end) break;
        size_t length = (size_t)(end - text) - at;
        if (length) rc = add_line(f, path, number, text + at, length);
        at += length + 1;
    }
    if (rc == CGS_OK && at < bytes) rc = cgs_write_file(path, text, at); /* the unfinished line */
    free(text);
    if (rc != CGS_OK) cgs_eval_file_free(f);
    return rc;
}

void cgs_eval_file_free(cgs_eval_file *f) {
    for (int i = 0; i < f->count; i++) free(f->result[i].success);
    free(f->result);
    memset(f, 0, sizeof *f);
}

const cgs_eval_result *cgs_eval_file_find(const cgs_eval_file *f, const char *hash) {
    for (int i = 0; i < f->count; i++)
        if (!strcmp(f->result[i].hash, hash)) return &f->result[i];
    return NULL;
}

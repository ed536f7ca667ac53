/* manifest.c - lists of starts as JSON lines; files are untrusted. */
#include <cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "eval/starts.h"

#define FORMAT "cgs-starts"
#define VERSION 1
#define FILE_LIMIT ((size_t)256 << 20)
#define LINE_MIN strlen("{\"episode\":0,\"step\":0,\"row\":0}")
#define WHOLE_MAX 0x1p53 /* whole numbers up to here are exact in JSON */

/* of a plug-in: which one, beside what the dataset's name says */
static bool add_env(cJSON *head, const cgs_env_class *env) {
    cgs_env_origin origin = env ? cgs_env_origin_of(env) : (cgs_env_origin){"", ""};
    if (!origin.file[0]) return true;
    return cJSON_AddStringToObject(head, "env", env->id) &&
           cJSON_AddNumberToObject(head, "env_version", env->version) &&
           cJSON_AddStringToObject(head, CGS_ENV_FILE, origin.file) &&
           cJSON_AddStringToObject(head, CGS_ENV_SHA256, origin.sha256);
}

cgs_status cgs_starts_save(const cgs_starts *s, const char *path) {
    char seed[24], starts[24];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)s->rule.seed);
    snprintf(starts, sizeof starts, "%016llx", (unsigned long long)cgs_starts_hash(s));
    cJSON *head = cJSON_CreateObject();
    char *text = NULL;
    if (head && cJSON_AddStringToObject(head, "format", FORMAT) &&
        cJSON_AddNumberToObject(head, "version", VERSION) &&
        cJSON_AddStringToObject(head, "dataset", s->dataset.s) &&
        cJSON_AddNumberToObject(head, "episodes", (double)s->episodes) &&
        cJSON_AddNumberToObject(head, "rows", (double)s->rows) &&
        cJSON_AddNumberToObject(head, "count", s->count) &&
        /* as text: not every 64-bit seed survives a JSON number */
        cJSON_AddStringToObject(head, "seed", seed) &&
        cJSON_AddNumberToObject(head, "goal_offset", s->rule.goal_offset) &&
        cJSON_AddBoolToObject(head, "whole_range", s->rule.whole_range) &&
        cJSON_AddBoolToObject(head, "held_out", s->rule.held_out) &&
        cJSON_AddBoolToObject(head, "skip_solved", s->rule.skip_solved) &&
        cJSON_AddStringToObject(head, "protocol", cgs_judge_name(s->judge)) &&
        add_env(head, s->env) && cJSON_AddStringToObject(head, "starts", starts))
        text = cJSON_PrintUnformatted(head);
    cJSON_Delete(head);
    if (!text) return cgs_fail(CGS_ENOMEM, "%s: no memory for its first line", path);

    cgs_newfile file;
    cgs_status rc = cgs_newfile_open(&file, path);
    if (rc == CGS_OK) {
        fprintf(file.f, "%s\n", text);
        for (int i = 0; i < s->count; i++)
            fprintf(file.f, "{\"episode\":%lld,\"step\":%lld,\"row\":%lld}\n",
                    (long long)s->start[i].episode, (long long)s->start[i].step,
                    (long long)s->start[i].row);
        rc = cgs_newfile_commit(&file); /* reports a full disk */
    }
    cJSON_free(text);
    return rc;
}

/* the position that messages point to */
typedef struct place {
    const char *path;
    int line;
} place;

static cgs_status whole(const place *at, const cJSON *object, const char *key, double low,
                        double high, int64_t *out) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!cJSON_IsNumber(v))
        return cgs_fail(CGS_EFORMAT, "%s:%d: \"%s\" is missing or not a number", at->path, at->line,
                        key);
    double x = v->valuedouble;
    if (!(x >= low && x <= high) || x != floor(x))
        return cgs_fail(CGS_EFORMAT, "%s:%d: \"%s\" is %g, a whole number in %g ... %g is expected",
                        at->path, at->line, key, x, low, high);
    *out = (int64_t)x;
    return CGS_OK;
}

static cgs_status text_of(const place *at, const cJSON *object, const char *key, char *out,
                          size_t size) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!cJSON_IsString(v) || strlen(v->valuestring) >= size)
        return cgs_fail(CGS_EFORMAT, "%s:%d: \"%s\" is missing or not a short text", at->path,
                        at->line, key);
    memcpy(out, v->valuestring, strlen(v->valuestring) + 1);
    return CGS_OK;
}

static cgs_status flag(const place *at, const cJSON *object, const char *key, bool *out) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!cJSON_IsBool(v))
        return cgs_fail(CGS_EFORMAT, "%s:%d: \"%s\" is missing or not true or false", at->path,
                        at->line, key);
    *out = cJSON_IsTrue(v);
    return CGS_OK;
}

/* hash: (17), empty in files from before it */
static cgs_status read_head(const place *at, const cJSON *j, cgs_starts *s, char *hash) {
    char format[32], seed[24];
    int64_t version, count, goal;
    CGS_TRY(text_of(at, j, "format", format, sizeof format));
    if (strcmp(format, FORMAT) != 0)
        return cgs_fail(CGS_EFORMAT, "%s:%d: format \"%s\", expected \"" FORMAT "\"", at->path,
                        at->line, format);
    CGS_TRY(whole(at, j, "version", 0, WHOLE_MAX, &version));
    if (version != VERSION)
        return cgs_fail(CGS_EFORMAT, "%s:%d: version %lld, this program reads version %d", at->path,
                        at->line, (long long)version, VERSION);
    CGS_TRY(text_of(at, j, "dataset", s->dataset.s, sizeof s->dataset.s));
    CGS_TRY(whole(at, j, "episodes", 1, 0x1p40, &s->episodes));
    CGS_TRY(whole(at, j, "rows", 1, 0x1p41, &s->rows));
    CGS_TRY(whole(at, j, "count", 1, 0x1p24, &count));
    CGS_TRY(whole(at, j, "goal_offset", 1, 0x1p30, &goal));
    CGS_TRY(text_of(at, j, "seed", seed, sizeof seed));
    errno = 0;
    s->rule.seed = strtoull(seed, NULL, 10);
    if (!seed[0] || seed[strspn(seed, "0123456789")] || errno)
        return cgs_fail(CGS_EFORMAT, "%s:%d: \"seed\" is \"%s\", not a 64-bit number", at->path,
                        at->line, seed);
    CGS_TRY(flag(at, j, "whole_range", &s->rule.whole_range));
    CGS_TRY(flag(at, j, "held_out", &s->rule.held_out));
    CGS_TRY(flag(at, j, "skip_solved", &s->rule.skip_solved));
    if (cJSON_HasObjectItem(j, "protocol")) {
        char protocol[32];
        CGS_TRY(text_of(at, j, "protocol", protocol, sizeof protocol));
        if (cgs_judge_parse(&s->judge, protocol) != CGS_OK)
            return cgs_fail(CGS_EFORMAT, "%s:%d: protocol \"%s\" is unknown", at->path, at->line,
                            protocol);
        CGS_TRY(text_of(at, j, "starts", hash, 17));
    }
    s->rule.goal_offset = (int)goal;
    s->rule.count = s->count = (int)count;
    return CGS_OK;
}

static cgs_status check_dataset(const place *at, const cgs_starts *s, const cgs_episodes *ep) {
    int64_t rows = ep->count ? ep->offset[ep->count - 1] + ep->length[ep->count - 1] : 0;
    if (s->episodes == ep->count && s->rows == rows) return CGS_OK;
    return cgs_fail(CGS_EFORMAT,
                    "%s: made for a dataset of %lld episodes and %lld rows, this one has %lld and "
                    "%lld",
                    at->path, (long long)s->episodes, (long long)s->rows, (long long)ep->count,
                    (long long)rows);
}

static cgs_status read_start(const place *at, const cJSON *j, const cgs_starts *s,
                             const cgs_episodes *ep, cgs_start *out) {
    CGS_TRY(whole(at, j, "episode", 0, (double)(s->episodes - 1), &out->episode));
    CGS_TRY(whole(at, j, "step", 0, (double)(s->rows - 1), &out->step));
    CGS_TRY(whole(at, j, "row", 0, (double)(s->rows - 1), &out->row));
    if (!ep) return CGS_OK;
    int64_t e = out->episode;
    if (out->step >= ep->length[e] - s->rule.goal_offset || out->row != ep->offset[e] + out->step)
        return cgs_fail(CGS_EFORMAT,
                        "%s:%d: step %lld, row %lld is no start in episode %lld, which has %lld "
                        "rows from row %lld and needs %d more for the goal",
                        at->path, at->line, (long long)out->step, (long long)out->row, (long long)e,
                        (long long)ep->length[e], (long long)ep->offset[e], s->rule.goal_offset);
    return CGS_OK;
}

/* the object on one line; NULL and a sentence when it is not one */
static cJSON *parse_line(const place *at, const char *line, size_t bytes) {
    const char *end = NULL;
    cJSON *j = cJSON_ParseWithLengthOpts(line, bytes, &end, 0);
    size_t used = j ? (size_t)(end - line) : 0;
    while (j && used < bytes && strchr(" \t\r", line[used]) && line[used]) used++;
    if (cJSON_IsObject(j) && used == bytes) return j;
    cJSON_Delete(j);
    cgs_fail(CGS_EFORMAT, "%s:%d: not a JSON object", at->path, at->line);
    return NULL;
}

static cgs_status read_lines(cgs_starts *out, const char *path, const char *text, size_t bytes,
                             const cgs_episodes *ep) {
    place at = {path, 0};
    char hash[17] = "", found[17];
    int read = 0;
    for (const char *line = text, *end = text + bytes; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t length = (size_t)((stop ? stop : end) - line);
        at.line++;
        if (at.line > 1 && read == out->count)
            return cgs_fail(CGS_EFORMAT, "%s:%d: more than the %d starts its first line promises",
                            path, at.line, out->count);
        cJSON *j = parse_line(&at, line, length);
        if (!j) return CGS_EFORMAT;
        cgs_status rc = at.line == 1 ? read_head(&at, j, out, hash)
                                     : read_start(&at, j, out, ep, &out->start[read]);
        cJSON_Delete(j);
        CGS_TRY(rc);
        if (at.line == 1) {
            if ((size_t)out->count > bytes / LINE_MIN)
                return cgs_fail(CGS_EFORMAT, "%s: %zu bytes cannot hold the %d starts it promises",
                                path, bytes, out->count);
            if (ep) CGS_TRY(check_dataset(&at, out, ep));
            out->start = calloc((size_t)out->count, sizeof *out->start);
            if (!out->start)
                return cgs_fail(CGS_ENOMEM, "%s: no memory for %d starts", path, out->count);
        } else {
            read++;
        }
        line += length + 1;
    }
    if (at.line == 0) return cgs_fail(CGS_EFORMAT, "%s: empty", path);
    if (read < out->count)
        return cgs_fail(CGS_EFORMAT, "%s: ends after %d of the %d starts its first line promises",
                        path, read, out->count);
    snprintf(found, sizeof found, "%016llx", (unsigned long long)cgs_starts_hash(out));
    if (*hash && strcmp(hash, found) != 0)
        return cgs_fail(CGS_EFORMAT,
                        "%s: its starts have the checksum %s, not %s: they were changed", path,
                        found, hash);
    return CGS_OK;
}

cgs_status cgs_starts_load(cgs_starts *out, const char *path, const cgs_episodes *ep) {
    char *text;
    size_t bytes;
    memset(out, 0, sizeof *out);
    CGS_TRY(cgs_read_file(path, FILE_LIMIT, &text, &bytes));
    cgs_status rc = read_lines(out, path, text, bytes, ep);
    free(text);
    if (rc != CGS_OK) cgs_starts_free(out);
    return rc;
}

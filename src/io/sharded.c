/* sharded.c - see sharded.h; indices are untrusted. */
#include "io/sharded.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_INDEX ((uint64_t)4 << 20)
#define MAX_SHARDS 256 /* all of them are open at a time */
#define MAX_NAME 256

/* a file's name, which leads nowhere else */
static int plain_name(const char *s) {
    return *s && *s != '.' && strlen(s) < MAX_NAME && !strchr(s, '/');
}

static cgs_status open_shard(cgs_weights *w, const char *name) {
    char path[4096];
    const char *slash = strrchr(w->path, '/');
    int folder = slash ? (int)(slash + 1 - w->path) : 0;
    if (w->shards == MAX_SHARDS)
        return cgs_fail(CGS_EFORMAT, "%s: more than %d files", w->path, MAX_SHARDS);
    if (snprintf(path, sizeof path, "%.*s%s", folder, w->path, name) >= (int)sizeof path)
        return cgs_fail(CGS_EFORMAT, "%s: the path of %.40s... is too long", w->path, name);
    cgs_weights **more = realloc(w->shard, (w->shards + 1) * sizeof *more);
    if (!more) return cgs_fail(CGS_ENOMEM, "%s: no memory for its files", w->path);
    w->shard = more;
    cgs_status rc = cgs_weights_open_shard(&w->shard[w->shards], path);
    if (rc != CGS_OK) return cgs_fail_in(rc, w->path);
    w->file_bytes += w->shard[w->shards++]->file_bytes;
    return CGS_OK;
}

static const cgs_weights *shard_of(const cgs_weights *w, const char *name) {
    for (size_t i = 0; i < w->shards; i++) {
        const char *path = w->shard[i]->path, *slash = strrchr(path, '/');
        if (!strcmp(slash ? slash + 1 : path, name)) return w->shard[i];
    }
    return NULL;
}

/* one tensor of the index: its file is open afterwards and has it */
static cgs_status read_pair(cgs_weights *w, const cJSON *pair) {
    if (!cJSON_IsString(pair) || !plain_name(pair->valuestring))
        return cgs_fail(CGS_EFORMAT, "%s: %.80s: \"%.80s\" is no file in the folder of the index",
                        w->path, pair->string,
                        cJSON_IsString(pair) ? pair->valuestring : "(no text)");
    if (!shard_of(w, pair->valuestring)) CGS_TRY(open_shard(w, pair->valuestring));
    const cgs_weights *shard = shard_of(w, pair->valuestring);
    if (cgs_weights_find(shard, pair->string)) return CGS_OK;
    return cgs_fail(CGS_EFORMAT, "%s: %s has no tensor \"%.200s\"", w->path, pair->valuestring,
                    pair->string);
}

static cgs_status add_all(cgs_weights *w, cgs_weights *shard) {
    for (size_t i = 0; i < shard->count; i++) {
        CGS_TRY(cgs_weights_add(w, &shard->entry[i]));
        w->entry[w->count - 1].owner = shard; /* which reads it */
    }
    return CGS_OK;
}

static cgs_status read_map(cgs_weights *w, const cJSON *map) {
    const cJSON *pair;
    if (!cJSON_IsObject(map) || !map->child)
        return cgs_fail(CGS_EFORMAT, "%s: neither weights nor an index of them: no \"weight_map\"",
                        w->path);
    cJSON_ArrayForEach(pair, map) CGS_TRY(read_pair(w, pair));
    for (size_t i = 0; i < w->shards; i++) CGS_TRY(add_all(w, w->shard[i]));
    return CGS_OK;
}

cgs_status cgs_sharded_contents(cgs_weights *w) {
    w->format = "sharded safetensors";
    if (w->file_bytes > MAX_INDEX)
        return cgs_fail(CGS_EFORMAT, "%s: %" PRIu64 " bytes, an index has at most %" PRIu64,
                        w->path, w->file_bytes, MAX_INDEX);
    size_t n = (size_t)w->file_bytes;
    char *text = malloc(n + 1);
    if (!text) return cgs_fail(CGS_ENOMEM, "%s: no memory for its text", w->path);
    text[n] = '\0';
    cgs_status rc = cgs_weights_pread(w, 0, text, n);
    if (rc == CGS_OK && (!cgs_is_utf8(text, n) || strstr(text, "\\u0000")))
        rc = cgs_fail(CGS_EFORMAT, "%s: not a text file in UTF-8", w->path);
    cJSON *root = rc == CGS_OK ? cJSON_ParseWithLength(text, n) : NULL;
    free(text);
    if (rc == CGS_OK && !root) rc = cgs_fail(CGS_EFORMAT, "%s: not valid JSON", w->path);
    if (rc == CGS_OK) rc = read_map(w, cJSON_GetObjectItemCaseSensitive(root, "weight_map"));
    cJSON_Delete(root);
    return rc;
}

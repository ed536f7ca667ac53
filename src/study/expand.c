/* expand.c - see expand.h. */
#include "study/expand.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void cgs_settings_free(cgs_settings *s) {
    for (int i = 0; i < s->count; i++) {
        free(s->key[i]);
        free(s->value[i]);
    }
    s->count = 0;
}

static int find(const cgs_settings *s, const char *key) {
    for (int i = 0; i < s->count; i++)
        if (!strcmp(s->key[i], key)) return i;
    return -1;
}

const char *cgs_settings_get(const cgs_settings *s, const char *key) {
    int at = find(s, key);
    return at < 0 ? NULL : s->value[at];
}

cgs_status cgs_settings_put(cgs_settings *s, const char *key, const char *value) {
    char *copy = strdup(value);
    int at = find(s, key);
    if (at < 0 && s->count < CGS_SETTINGS_MAX && copy) {
        at = s->count;
        s->value[at] = NULL;
        s->key[at] = strdup(key);
        if (s->key[at])
            s->count++;
        else
            at = -1;
    }
    if (at < 0 || !copy) {
        free(copy);
        return cgs_fail(CGS_ENOMEM, "study: no memory for the setting %.40s", key);
    }
    free(s->value[at]);
    s->value[at] = copy;
    return CGS_OK;
}

cgs_status cgs_settings_add(cgs_settings *s, const char *text) {
    while (text && *text) {
        size_t n = strcspn(text, "|"), name = strcspn(text, "=");
        if (name >= n || name == 0)
            return cgs_fail(CGS_EARG, "\"%.*s\" is not key=value", (int)n, text);
        char *key = strndup(text, name), *value = strndup(text + name + 1, n - name - 1);
        cgs_status rc = key && value ? cgs_settings_put(s, key, value)
                                     : cgs_fail(CGS_ENOMEM, "study: no memory for settings");
        free(key);
        free(value);
        CGS_TRY(rc);
        text += n + (text[n] == '|');
    }
    return CGS_OK;
}

/* depth: of placeholders in the values of placeholders; no setting needs more than two */
static cgs_status fill(FILE *f, const char *text, const cgs_settings *s, int depth) {
    if (depth > 8) return cgs_fail(CGS_EARG, "study: circular settings");
    while (*text) {
        size_t plain = strcspn(text, "{");
        fwrite(text, 1, plain, f);
        text += plain;
        if (!*text) break;
        char key[64];
        size_t n = strcspn(text, "}") - 1;
        snprintf(key, sizeof key, "%.*s", (int)n, text + 1);
        const char *value = cgs_settings_get(s, key);
        if (!value) return cgs_fail(CGS_EARG, "study: unknown setting \"%s\"", key);
        CGS_TRY(fill(f, value, s, depth + 1));
        text += n + 2;
    }
    return CGS_OK;
}

cgs_status cgs_expand(char **out, const char *text, const cgs_settings *s) {
    size_t size;
    *out = NULL;
    FILE *f = open_memstream(out, &size);
    if (!f) return cgs_fail(CGS_ENOMEM, "study: no memory for a command");
    cgs_status rc = fill(f, text, s, 0);
    bool bad = ferror(f);
    if (fclose(f) != 0 || bad) rc = cgs_fail(CGS_ENOMEM, "study: no memory for a command");
    if (rc != CGS_OK) {
        free(*out);
        *out = NULL;
    }
    return rc;
}

char *cgs_in_folder(const char *text, const char *dir) {
    char *out = NULL;
    size_t size;
    FILE *f = open_memstream(&out, &size);
    if (!f) return NULL;
    for (; *text; text++) {
        if (*text == '@')
            fputs(dir, f);
        else
            fputc(*text, f);
    }
    fclose(f);
    return out;
}

char **cgs_split_words(const char *text, int *words) {
    *words = 0;
    char **list = calloc(strlen(text) / 2 + 2, sizeof *list);
    while (list) {
        text += strspn(text, " ");
        size_t n = strcspn(text, " ");
        if (n == 0) return list;
        list[*words] = strndup(text, n);
        if (!list[*words]) break;
        ++*words;
        text += n;
    }
    for (int i = 0; list && i < *words; i++) free(list[i]);
    free(list);
    return NULL;
}

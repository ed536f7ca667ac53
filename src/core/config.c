/* config.c - parsing, defaults and dumps of listed settings. */
#include "core/config.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/nearest.h"

#define CONFIG_FILE_LIMIT ((size_t)1 << 20)

static cgs_status bad_value(const cgs_field *f, const char *text, const char *expected) {
    return cgs_fail(CGS_EARG, "%s: \"%.80s\" is not %s", f->key, text, expected);
}

static cgs_status out_of_range(const cgs_field *f, const char *text) {
    return cgs_fail(CGS_EARG, "%s: %.80s is outside %g ... %g", f->key, text, f->low, f->high);
}

/* the value is written only when the whole text parsed */
static cgs_status set_field(const cgs_field *f, void *values, const char *text) {
    void *at = (char *)values + f->offset;
    char *end = NULL;
    errno = 0;
    switch (f->kind) {
    case CGS_KIND_int: {
        long v = strtol(text, &end, 10);
        if (end == text || *end || errno || v < INT_MIN || v > INT_MAX)
            return bad_value(f, text, "a whole number");
        if ((double)v < f->low || (double)v > f->high) return out_of_range(f, text);
        *(int *)at = (int)v;
        return CGS_OK;
    }
    case CGS_KIND_u64: {
        unsigned long long v = strtoull(text, &end, 10);
        if (end == text || *end || errno || text[0] == '-')
            return bad_value(f, text, "a whole number of at least 0");
        *(uint64_t *)at = v;
        return CGS_OK;
    }
    case CGS_KIND_float: {
        if (f->low <= -1 && f->low >= -1 && !strcmp(text, "auto")) text = "-1";
        float v = strtof(text, &end);
        if (end == text || *end || !isfinite(v)) return bad_value(f, text, "a finite number");
        if ((double)v < f->low || (double)v > f->high) return out_of_range(f, text);
        *(float *)at = v;
        return CGS_OK;
    }
    case CGS_KIND_flag:
        if (!strcmp(text, "true") || !strcmp(text, "1"))
            *(bool *)at = true;
        else if (!strcmp(text, "false") || !strcmp(text, "0"))
            *(bool *)at = false;
        else
            return bad_value(f, text, "true or false");
        return CGS_OK;
    case CGS_KIND_text:
        if (strlen(text) >= CGS_TEXT_MAX)
            return cgs_fail(CGS_EARG, "%s: longer than %d characters", f->key, CGS_TEXT_MAX - 1);
        strcpy(((cgs_type_text *)at)->s, text);
        return CGS_OK;
    }
    return cgs_fail(CGS_EARG, "%s: unknown kind of setting", f->key);
}

void cgs_config_defaults(const cgs_section *s, int sections) {
    for (int i = 0; i < sections; i++)
        for (int k = 0; k < s[i].count; k++) {
            const cgs_field *f = &s[i].fields[k];
            /* text defaults are written as string literals in the lists: drop the quotes */
            char plain[CGS_TEXT_MAX];
            size_t n = strlen(f->initial);
            bool quoted = n >= 2 && f->initial[0] == '"';
            snprintf(plain, sizeof plain, "%.*s", (int)(quoted ? n - 2 : n),
                     f->initial + (quoted ? 1 : 0));
            /* C literals of numbers: 5e-5f and 3072u */
            if (!quoted && f->kind == CGS_KIND_float && plain[strlen(plain) - 1] == 'f')
                plain[strlen(plain) - 1] = '\0';
            cgs_status rc = set_field(f, s[i].values, plain);
            (void)rc; /* a default that does not parse is caught by tests/test_core */
        }
}

cgs_status cgs_config_set(const cgs_section *s, int sections, const char *key, const char *text) {
    cgs_nearest near = cgs_nearest_to(key);
    for (int i = 0; i < sections; i++)
        for (int k = 0; k < s[i].count; k++) {
            const cgs_field *f = &s[i].fields[k];
            if (!strcmp(key, f->key)) return set_field(f, s[i].values, text);
            cgs_nearest_offer(&near, f->key);
        }
    return cgs_fail(CGS_EARG, "unknown setting \"%.80s\"%s", key, cgs_nearest_hint(&near));
}

static char *trim(char *s) {
    while (isspace((unsigned char)*s)) s++;
    char *end = s + strlen(s);
    while (end > s && isspace((unsigned char)end[-1])) *--end = '\0';
    return s;
}

cgs_status cgs_config_assign(const cgs_section *s, int sections, const char *assignment) {
    char copy[CGS_TEXT_MAX + 128];
    if (snprintf(copy, sizeof copy, "%s", assignment) >= (int)sizeof copy)
        return cgs_fail(CGS_EARG, "\"%.40s...\": too long for a setting", assignment);
    char *equals = strchr(copy, '=');
    if (!equals) return cgs_fail(CGS_EARG, "\"%.80s\": expected key=value", assignment);
    *equals = '\0';
    return cgs_config_set(s, sections, trim(copy), trim(equals + 1));
}

cgs_status cgs_config_read(const cgs_section *s, int sections, const char *path) {
    char *text;
    size_t bytes;
    CGS_TRY(cgs_read_file(path, CONFIG_FILE_LIMIT, &text, &bytes));
    cgs_status rc = CGS_OK;
    if (memchr(text, '\0', bytes)) rc = cgs_fail(CGS_EFORMAT, "%s: not a text file", path);
    int number = 0;
    for (char *line = text; rc == CGS_OK && line;) {
        char *next = strchr(line, '\n');
        if (next) *next++ = '\0';
        number++;
        char *hash = strchr(line, '#');
        if (hash) *hash = '\0';
        line = trim(line);
        if (*line && cgs_config_assign(s, sections, line) != CGS_OK) {
            char where[4200];
            snprintf(where, sizeof where, "%s:%d", path, number);
            rc = cgs_fail_in(CGS_EFORMAT, where);
        }
        line = next;
    }
    free(text);
    return rc;
}

/* the fewest digits that read back the same: 0.001, not 0.00100000005 */
static void format_float(char *out, size_t size, float v) {
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(out, size, "%.*g", digits, (double)v);
        if (strtof(out, NULL) == v) return;
    }
}

void cgs_config_format(const cgs_field *f, const void *values, char *out, size_t size) {
    const void *at = (const char *)values + f->offset;
    switch (f->kind) {
    case CGS_KIND_int: snprintf(out, size, "%d", *(const int *)at); break;
    case CGS_KIND_u64:
        snprintf(out, size, "%llu", (unsigned long long)*(const uint64_t *)at);
        break;
    case CGS_KIND_float: format_float(out, size, *(const float *)at); break;
    case CGS_KIND_flag: snprintf(out, size, "%s", *(const bool *)at ? "true" : "false"); break;
    case CGS_KIND_text: snprintf(out, size, "%s", ((const cgs_type_text *)at)->s); break;
    }
}

void cgs_config_dump(const cgs_section *s, int sections, FILE *to, bool docs) {
    char value[CGS_TEXT_MAX];
    for (int i = 0; i < sections; i++)
        for (int k = 0; k < s[i].count; k++) {
            const cgs_field *f = &s[i].fields[k];
            cgs_config_format(f, s[i].values, value, sizeof value);
            if (docs) fprintf(to, "# %s\n", f->doc);
            fprintf(to, "%s = %s\n", f->key, value);
        }
}

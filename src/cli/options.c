/* options.c - option tables: parsing. */
#include "cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/manual.h"
#include "cli/plain.h"
#include "core/made_dirs.h"
#include "core/nearest.h"
#include "core/threads.h"

static cgs_status set_int(const cgs_opt *o, const char *text, int low, int high) {
    char *end;
    errno = 0;
    long v = strtol(text, &end, 10);
    if (end == text || *end)
        return cgs_fail(CGS_EARG, "--%s wants a whole number, got \"%.80s\"", o->name, text);
    if (errno || v < low || v > high)
        return cgs_fail(CGS_EARG, "--%s wants a whole number from %d to %d, got \"%.80s\"", o->name,
                        low, high, text);
    *(int *)o->value = (int)v;
    return CGS_OK;
}

static cgs_status set_option(const cgs_opt *o, const char *text) {
    char *end;
    errno = 0;
    switch (o->kind) {
    case OPT_INT: return set_int(o, text, 0, INT_MAX);
    case OPT_COUNT: return set_int(o, text, 1, INT_MAX);
    case OPT_THREADS: return set_int(o, text, 0, CGS_THREADS_MOST);
    case OPT_U64: {
        unsigned long long v = strtoull(text, &end, 10);
        if (end == text || *end || errno || text[0] == '-')
            return cgs_fail(CGS_EARG, "--%s wants a whole number of at least 0, got \"%.80s\"",
                            o->name, text);
        *(uint64_t *)o->value = v;
        return CGS_OK;
    }
    case OPT_REAL: {
        double v = strtod(text, &end);
        if (end == text || *end || !isfinite(v))
            return cgs_fail(CGS_EARG, "--%s wants a number, got \"%.80s\"", o->name, text);
        *(double *)o->value = v;
        return CGS_OK;
    }
    default: *(const char **)o->value = text; return CGS_OK;
    }
}

static cgs_status unknown_option(const char *arg, const cgs_opt *opts, int count) {
    char name[80];
    const char *bare = arg + strspn(arg, "-");
    snprintf(name, sizeof name, "%.*s", (int)strcspn(bare, "="), bare);
    cgs_nearest near = cgs_nearest_to(name);
    for (int k = 0; k < count; k++) cgs_nearest_offer(&near, opts[k].name);
    const char *hint = cgs_nearest_hint(&near);
    if (!*hint) return cgs_fail(CGS_EARG, "unknown option \"%.80s\"", arg);
    return cgs_fail(CGS_EARG, "unknown option \"%.80s\"; did you mean \"--%s\"?", arg, near.word);
}

/* "key=value" or "dotted.key=value"; a path with a '=' in it has a '/' before that */
static bool is_setting(const char *word) {
    size_t n = strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.");
    return n > 0 && word[n] == '=';
}

cgs_status cgs_options_parse(const cgs_verb *verb, const cgs_opt *opts, int count, int argc,
                             char **argv, cgs_words *words) {
    /* lists point into argv, so other words are kept separately; a program parses once */
    static char **kept;
    bool seen[64] = {false};
    if (words) {
        char **grown = realloc(kept, ((size_t)argc + 1) * sizeof *grown);
        if (!grown) return cgs_fail(CGS_ENOMEM, "no memory for %d words", argc);
        kept = grown;
        *words = (cgs_words){kept, 0};
    }
    for (int i = 0; i < argc; i++) {
        char *arg = argv[i];
        if (cgs_manual_answer(arg, verb, opts, count)) return CGS_ESTOPPED;
        if (strncmp(arg, "--", 2) != 0) {
            if (*arg == '-' && isalpha((unsigned char)arg[1]))
                return unknown_option(arg, opts, count);
            if (!words) return cgs_fail(CGS_EARG, "unexpected argument \"%.80s\"", arg);
            words->word[words->count++] = arg;
            continue;
        }

        /* both "--name value" and "--name=value" */
        size_t length = strcspn(arg + 2, "=");
        const char *inline_value = arg[2 + length] == '=' ? arg + 3 + length : NULL;
        int hit = -1;
        for (int k = 0; k < count; k++)
            if (strlen(opts[k].name) == length && !strncmp(arg + 2, opts[k].name, length)) hit = k;
        if (hit < 0) return unknown_option(arg, opts, count);
        const cgs_opt *o = &opts[hit];
        seen[hit] = true;

        if (o->kind == OPT_FLAG) {
            if (inline_value) return cgs_fail(CGS_EARG, "--%s takes no value", o->name);
            *(bool *)o->value = true;
        } else if (o->kind == OPT_LIST) {
            cgs_words *list = o->value;
            list->word = argv + i + 1;
            list->count = 0;
            if (inline_value) { /* the first value takes the option's place */
                list->word = argv + i;
                list->count = 1;
                argv[i] = arg + 3 + length;
            }
            while (i + 1 < argc && strncmp(argv[i + 1], "--", 2) != 0 &&
                   !(words && is_setting(argv[i + 1])))
                i++, list->count++;
            if (!list->count) return cgs_fail(CGS_EARG, "--%s needs at least one value", o->name);
        } else {
            /* a value that begins with "--" is written --name=--value */
            if (!inline_value && (i + 1 == argc || !strncmp(argv[i + 1], "--", 2)))
                return cgs_fail(CGS_EARG, "--%s needs a value", o->name);
            CGS_TRY(set_option(o, inline_value ? inline_value : argv[++i]));
        }
    }
    for (int k = 0; k < count; k++)
        if (opts[k].required && !seen[k])
            return cgs_fail(CGS_EARG, "--%s is required", opts[k].name);
    return CGS_OK;
}

int cgs_exit_code(const cgs_verb *verb, cgs_status rc) {
    if (rc == CGS_OK || rc == CGS_ESTOPPED) return 0;
    cgs_remove_empty_dirs();
    fprintf(stderr, "cgs %s: ", verb->name);
    cgs_print_plain(cgs_last_error(), stderr);
    fputc('\n', stderr);
    if (rc == CGS_EARG) {
        fprintf(stderr, "try: cgs help %s\n", verb->name);
        return 2;
    }
    return 1;
}

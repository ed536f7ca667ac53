/* options.c - option tables: parsing, help, man page and completion words. */
#include "cli/options.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/plain.h"

void cgs_options_usage(const cgs_verb *verb, const cgs_opt *opts, int count, FILE *to) {
    fprintf(to, "usage: cgs %s%s%s\n\n%s\n", verb->name, *verb->synopsis ? " " : "",
            verb->synopsis, verb->summary);
    if (count) fprintf(to, "\noptions:\n");
    for (int i = 0; i < count; i++) {
        char left[64];
        snprintf(left, sizeof left, "--%s %s", opts[i].name, opts[i].arg ? opts[i].arg : "");
        fprintf(to, "  %-24s %s%s\n", left, opts[i].help, opts[i].required ? " (required)" : "");
    }
    if (verb->details) fprintf(to, "\n%s\n", verb->details);
}

/* text with the characters that roff would read as commands made harmless */
static void roff_text(const char *s, FILE *to) {
    bool line_start = true;
    for (; *s; s++) {
        if (line_start && (*s == '.' || *s == '\'')) fputs("\\&", to);
        if (*s == '\\') fputs("\\e", to);
        else if (*s == '-') fputs("\\-", to);
        else fputc(*s, to);
        line_start = *s == '\n';
    }
}

static void roff_usage(const cgs_verb *verb, const cgs_opt *opts, int count, FILE *to) {
    fprintf(to, ".SS cgs %s ", verb->name);
    roff_text(verb->synopsis, to);
    fputc('\n', to);
    roff_text(verb->summary, to);
    fputc('\n', to);
    for (int i = 0; i < count; i++) {
        fputs(".TP\n.B ", to);
        fprintf(to, "\\-\\-%s", opts[i].name);
        if (opts[i].arg) fprintf(to, " \\fI%s\\fR", opts[i].arg);
        fputc('\n', to);
        roff_text(opts[i].help, to);
        fputc('\n', to);
    }
    if (verb->details) {
        fputs(".PP\n.nf\n", to);
        roff_text(verb->details, to);
        fputs("\n.fi\n", to);
    }
}

static cgs_status set_option(const cgs_opt *o, const char *text) {
    char *end;
    errno = 0;
    switch (o->kind) {
    case OPT_INT: {
        long v = strtol(text, &end, 10);
        if (end == text || *end || errno || v < INT_MIN || v > INT_MAX)
            return cgs_fail(CGS_EARG, "--%s wants a whole number, got \"%.80s\"", o->name, text);
        *(int *)o->value = (int)v;
        return CGS_OK;
    }
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

cgs_status cgs_options_parse(const cgs_verb *verb, const cgs_opt *opts, int count, int argc,
                             char **argv, cgs_words *words) {
    bool seen[64] = {false};
    if (words) *words = (cgs_words){argv, 0};
    for (int i = 0; i < argc; i++) {
        char *arg = argv[i];
        if (!strcmp(arg, "--help") || !strcmp(arg, "-h")) {
            cgs_options_usage(verb, opts, count, stdout);
            return CGS_ESTOPPED;
        }
        if (!strcmp(arg, "--help=man")) {
            roff_usage(verb, opts, count, stdout);
            return CGS_ESTOPPED;
        }
        if (!strcmp(arg, "--help=words")) {
            for (int k = 0; k < count; k++) printf("--%s\n", opts[k].name);
            return CGS_ESTOPPED;
        }
        if (strncmp(arg, "--", 2) != 0) {
            if (!words)
                return cgs_fail(CGS_EARG, "unexpected argument \"%.80s\"", arg);
            words->word[words->count++] = arg; /* count <= i: never overtakes the reading */
            continue;
        }

        /* both "--name value" and "--name=value" */
        size_t length = strcspn(arg + 2, "=");
        const char *inline_value = arg[2 + length] == '=' ? arg + 3 + length : NULL;
        int hit = -1;
        for (int k = 0; k < count; k++)
            if (strlen(opts[k].name) == length && !strncmp(arg + 2, opts[k].name, length)) hit = k;
        if (hit < 0) return cgs_fail(CGS_EARG, "unknown option \"%.80s\"", arg);
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
            while (i + 1 < argc && strncmp(argv[i + 1], "--", 2) != 0) i++, list->count++;
            if (!list->count) return cgs_fail(CGS_EARG, "--%s needs at least one value", o->name);
        } else {
            if (!inline_value && i + 1 == argc)
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
    fprintf(stderr, "cgs %s: ", verb->name);
    cgs_print_plain(cgs_last_error(), stderr);
    fputc('\n', stderr);
    if (rc == CGS_EARG) {
        fprintf(stderr, "try: cgs help %s\n", verb->name);
        return 2;
    }
    return 1;
}

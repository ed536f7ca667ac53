/* command.c - see command.h. */
#include "cli/command.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static size_t put(char *out, size_t size, size_t at, const char *text) {
    int n = snprintf(out + at, size - at, "%s", text);
    return n < 0 || at + (size_t)n >= size ? size - 1 : at + (size_t)n;
}

const char *cgs_command_text(char *out, size_t size, const char *verb, int argc, char **argv) {
    size_t at = put(out, size, 0, "cgs ");
    at = put(out, size, at, verb);
    for (int i = 0; i < argc; i++) {
        bool quote = !argv[i][0] || strpbrk(argv[i], " \t\n\"'\\$*?;&|<>()[]{}#`~") != NULL;
        at = put(out, size, at, quote ? " '" : " ");
        for (const char *c = argv[i]; *c; c++)
            at = put(out, size, at, *c == '\'' ? "'\\''" : (const char[]){*c, 0});
        if (quote) at = put(out, size, at, "'");
    }
    return out;
}

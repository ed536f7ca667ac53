/* main.c - the cgs program: finds the verb, or prints help. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cgs/cgs.h"
#include "cli/manual.h"
#include "cli/progress.h"
#include "cli/verbs.h"

static const cgs_verb *const verbs[] = {
#define ROW(name) &cmd_##name,
    CGS_VERBS(ROW)
#undef ROW
};

static const cgs_verb *find_verb(const char *name) {
    for (int i = 0; i < CGS_COUNT(verbs); i++)
        if (!strcmp(verbs[i]->name, name)) return verbs[i];
    return NULL;
}

static void print_verbs(FILE *to) {
    fprintf(to, "cgs %s - latent world models that are easy to plan with\n\n", cgs_version());
    fprintf(to, "usage: cgs VERB [options]\n       cgs help [VERB | settings | --man | --bash]\n"
                "       cgs --help | -h | --version\n\n");
    for (int i = 0; i < CGS_COUNT(verbs); i++)
        fprintf(to, "  %-10s %s\n", verbs[i]->name, verbs[i]->summary);
    fprintf(to, "  %-10s %s\n", "help",
            "this list; the options of a verb, all settings, the manual as a page");
}

static int help(int argc, char **argv) {
    if (argc == 0) {
        print_verbs(stdout);
        return 0;
    }
    if (!strcmp(argv[0], "--man")) {
        cgs_manual_man(verbs, CGS_COUNT(verbs));
        return 0;
    }
    if (!strcmp(argv[0], "--bash")) {
        cgs_manual_bash(verbs, CGS_COUNT(verbs));
        return 0;
    }
    if (!strcmp(argv[0], "settings")) {
        cgs_manual_settings();
        return 0;
    }
    const cgs_verb *v = find_verb(argv[0]);
    if (!v) {
        fprintf(stderr, "cgs help: no verb is called \"%.80s\"; cgs help lists them\n", argv[0]);
        return 2;
    }
    char word[] = CGS_ASK_HELP;
    char *only_help[] = {word, NULL};
    return v->run(1, only_help, v);
}

int main(int argc, char **argv) {
    if (argc < 2) {
        print_verbs(stderr);
        return 2;
    }
    if (!strcmp(argv[1], "help") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
        return help(argc - 2, argv + 2);
    if (!strcmp(argv[1], "--version")) {
        printf("cgs %s\n", cgs_version());
        return 0;
    }
    const cgs_verb *v = find_verb(argv[1]);
    if (!v) {
        fprintf(stderr, "cgs: no verb is called \"%.80s\"; cgs help lists them\n", argv[1]);
        return 2;
    }
    if (cgs_wants_debug()) cgs_show_log();
    return v->run(argc - 2, argv + 2, v);
}

/* main.c - the cgs program: finds the verb, or prints help. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cgs/cgs.h"
#include "cli/completion.h"
#include "cli/crash.h"
#include "cli/instructions.h"
#include "cli/manual.h"
#include "cli/plain.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "core/cpu.h"
#include "core/nearest.h"

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

static int unknown_verb(const char *where, const char *name) {
    cgs_nearest near = cgs_nearest_to(name);
    for (int i = 0; i < CGS_COUNT(verbs); i++) cgs_nearest_offer(&near, verbs[i]->name);
    const char *hint = cgs_nearest_hint(&near);
    fprintf(stderr, "%s: unknown verb \"", where);
    cgs_print_plain(name, stderr);
    fprintf(stderr, "\"%s\n", *hint ? hint : "; cgs help lists them");
    return 2;
}

static void print_verbs(FILE *to) {
    fprintf(to, "cgs %s - latent world models that are easy to plan with\n\n", cgs_version());
    fprintf(to, "usage: cgs [--isa SET] VERB [options]\n       cgs help [VERB | settings | --man | "
                "--bash | --zsh | --fish]\n"
                "       cgs --help | -h | --version\n\n");
    for (int i = 0; i < CGS_COUNT(verbs); i++)
        fprintf(to, "  %-10s %s\n", verbs[i]->name, verbs[i]->summary);
    fprintf(to, "  %-10s %s\n", "help",
            "this list; the options of a verb, all settings, the manual as a page");
    fprintf(to, "\n  %-10s %s\n", "--isa SET",
            "the highest instruction set to use, also of libraries: base, v3, v4 or amx");
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
    if (!strncmp(argv[0], "--", 2) && cgs_completion(argv[0] + 2, verbs, CGS_COUNT(verbs)))
        return 0;
    if (!strcmp(argv[0], "settings")) {
        cgs_manual_settings();
        return 0;
    }
    const cgs_verb *v = find_verb(argv[0]);
    if (!v) return unknown_verb("cgs help", argv[0]);
    char word[] = CGS_ASK_HELP;
    char *only_help[] = {word, NULL};
    return v->run(1, only_help, v);
}

/* a failure before any verb runs */
static int refuse(cgs_status rc) {
    fprintf(stderr, "cgs: ");
    cgs_print_plain(cgs_last_error(), stderr);
    fputc('\n', stderr);
    return rc == CGS_EARG ? 2 : 1;
}

int main(int argc, char **argv) {
    char **all = argv;
    cgs_status rc = cgs_take_isa(&argc, &argv);
    if (rc != CGS_OK) return refuse(rc);
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
    if (!v) return unknown_verb("cgs", argv[1]);
    rc = cgs_cpu_check();
    if (rc != CGS_OK) return refuse(rc);
    cgs_limit_lapack(all);
    cgs_crash_explain(v->name);
    if (cgs_wants_debug()) cgs_show_log();
    return v->run(argc - 2, argv + 2, v);
}

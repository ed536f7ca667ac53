/* main.c - the cgs program: finds the verb, prints help, man page and completion. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cgs/cgs.h"
#include "cli/verbs.h"
#include "train/train.h"

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
    fprintf(to, "usage: cgs VERB [options]\n\n");
    for (int i = 0; i < CGS_COUNT(verbs); i++)
        fprintf(to, "  %-10s %s\n", verbs[i]->name, verbs[i]->summary);
    fprintf(to, "  %-10s %s\n", "help", "this list; cgs help VERB for one verb, cgs help settings");
}

static int describe_all(const char *format) {
    char word[32];
    for (int i = 0; i < CGS_COUNT(verbs); i++) {
        snprintf(word, sizeof word, "--help=%s", format);
        char *argv[] = {word, NULL};
        if (!strcmp(format, "words")) printf("%s\n", verbs[i]->name);
        verbs[i]->run(1, argv, verbs[i]);
    }
    return 0;
}

static int print_man(void) {
    printf(".TH CGS 1 \"\" \"cgs %s\"\n.SH NAME\ncgs \\- latent world models that are easy to "
           "plan with\n.SH SYNOPSIS\n.B cgs\n.I VERB\n[options]\n.SH VERBS\n",
           cgs_version());
    return describe_all("man");
}

/* every setting of training with its default and meaning */
static int print_settings(void) {
    cgs_run_config c = {0};
    cgs_section sections[2];
    cgs_run_sections(&c, sections);
    cgs_config_defaults(sections, 2);
    cgs_config_dump(sections, 2, stdout, true);
    return 0;
}

static int help(int argc, char **argv) {
    if (argc == 0) {
        print_verbs(stdout);
        return 0;
    }
    if (!strcmp(argv[0], "--man")) return print_man();
    if (!strcmp(argv[0], "--words")) return describe_all("words");
    if (!strcmp(argv[0], "settings")) return print_settings();
    const cgs_verb *v = find_verb(argv[0]);
    if (!v) {
        fprintf(stderr, "cgs help: no verb is called \"%.80s\"; cgs help lists them\n", argv[0]);
        return 2;
    }
    char word[] = "--help";
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
    return v->run(argc - 2, argv + 2, v);
}

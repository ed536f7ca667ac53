/* manual.c - help and man page, from the option tables that parse. */
#include "cli/manual.h"

#include <string.h>

#include "cgs/cgs.h"
#include "cli/completion.h"
#include "cli/planners.h"
#include "core/environment.h"
#include "train/prior_fit.h"
#include "train/probe_fit.h"
#include "train/train.h"

/* ---- help --------------------------------------------------------------------------------- */

/* what the values of --planner are */
static void list_planners(void) {
    const cgs_planner_kind *kind;
    char reads[CGS_PLANNER_READS];
    printf("\nplanners:\n");
    for (int i = 0; (kind = cgs_planner_kind_at(i)); i++)
        printf("  %-24s %s; %s\n", kind->name, kind->summary,
               cgs_planner_reads(reads, sizeof reads, kind));
}

/* what those of --device are */
static void list_devices(void) {
    printf("\ndevices:\n"
           "  %-24s %s\n  %-24s %s\n  %-24s %s\n  this build has %s; cgs info says which work\n",
           "cuda, cuda:1, ...", "a GPU, the second, ...", "cpu",
           "this processor, by the best instruction set that it has", "ref",
           "the reference: one thread, slow, to compare with", cgs_device_names());
}

static void usage(const cgs_verb *verb, const cgs_opt *opts, int count) {
    printf("usage: cgs %s%s%s\n\n%s\n\noptions:\n", verb->name, *verb->synopsis ? " " : "",
           verb->synopsis, verb->summary);
    for (int i = 0; i < count; i++) {
        char left[64];
        snprintf(left, sizeof left, "--%s %s", opts[i].name, opts[i].arg ? opts[i].arg : "");
        printf("  %-24s %s%s\n", left, opts[i].help, opts[i].required ? " (required)" : "");
    }
    printf("  %-24s %s\n", "--help, -h", "this text");
    for (int i = 0; i < count; i++)
        if (!strcmp(opts[i].name, "planner"))
            list_planners();
        else if (!strcmp(opts[i].name, "device"))
            list_devices();
    if (verb->details) printf("\n%s\n", verb->details);
}

/* the settings that verbs take as key=value words */
enum { SECTIONS = 5 };
static const char *const taken_by[SECTIONS] = {"train", "train", "prior", "probe", "eval"};

typedef struct settings {
    cgs_run_config run;
    cgs_prior_fit_config clone;
    cgs_probe_config probe;
    cgs_plan_config plan;
    cgs_section section[SECTIONS];
} settings;

/* the default of a setting as one would type it; the tables hold it as C source */
static const char *initial(const cgs_field *f, char out[CGS_TEXT_MAX]) {
    bool text = f->kind == CGS_KIND_text;
    snprintf(out, CGS_TEXT_MAX, "%.*s", (int)(strlen(f->initial) - (text ? 2 : 0)),
             f->initial + text);
    if (f->kind == CGS_KIND_flag) strcpy(out, strcmp(out, "1") == 0 ? "true" : "false");
    return out;
}

static void open_settings(settings *s) {
    cgs_run_sections(&s->run, s->section);
    s->section[2] = cgs_prior_fit_section(&s->clone);
    s->section[3] = cgs_probe_section(&s->probe);
    s->section[4] = cgs_plan_tuning(&s->plan);
}

void cgs_manual_each_key(const char *verb, void (*each)(const char *key)) {
    settings s;
    open_settings(&s);
    for (int i = 0; i < SECTIONS; i++)
        for (int k = 0; !strcmp(taken_by[i], verb) && k < s.section[i].count; k++)
            each(s.section[i].fields[k].key);
}

void cgs_manual_settings(void) {
    settings s;
    char value[CGS_TEXT_MAX];
    open_settings(&s);
    for (int i = 0; i < SECTIONS; i++) {
        if (i == 0 || strcmp(taken_by[i], taken_by[i - 1]) != 0)
            printf("%s# ---- cgs %s ----\n", i ? "\n" : "", taken_by[i]);
        for (int k = 0; k < s.section[i].count; k++) {
            const cgs_field *f = &s.section[i].fields[k];
            printf("# %s\n%s = %s\n", f->doc, f->key, initial(f, value));
        }
    }
}

/* ---- man page ------------------------------------------------------------------------------ */

/* text with roff's special characters escaped */
static void roff(const char *s) {
    bool line_start = true;
    for (; *s; s++) {
        if (line_start && (*s == '.' || *s == '\'')) fputs("\\&", stdout);
        switch (*s) {
        case '\\': fputs("\\e", stdout); break;
        case '-': fputs("\\-", stdout); break;
        case '\'': fputs("\\(aq", stdout); break;
        case '`': fputs("\\(ga", stdout); break;
        case '^': fputs("\\(ha", stdout); break;
        case '~': fputs("\\(ti", stdout); break;
        default: putchar(*s);
        }
        line_start = *s == '\n';
    }
}

/* a tagged paragraph: bold name, argument in italics, text */
static void roff_item(const char *dashes, const char *name, const char *arg, const char *text,
                      const char *after) {
    fputs(".TP\n\\fB", stdout);
    roff(dashes);
    roff(name);
    fputs("\\fR", stdout);
    if (arg) {
        fputs(" \\fI", stdout);
        roff(arg);
        fputs("\\fR", stdout);
    }
    putchar('\n');
    roff(text);
    roff(after);
    putchar('\n');
}

static void roff_verb(const cgs_verb *verb, const cgs_opt *opts, int count) {
    printf(".SS cgs %s\n.B cgs %s\n", verb->name, verb->name);
    roff(verb->synopsis);
    fputs("\n.PP\n", stdout);
    roff(verb->summary);
    putchar('\n');
    for (int i = 0; i < count; i++)
        roff_item("--", opts[i].name, opts[i].arg, opts[i].help,
                  opts[i].required ? " (required)" : "");
    if (!verb->details) return;
    fputs(".PP\n.nf\n", stdout);
    roff(verb->details);
    fputs("\n.fi\n", stdout);
}

void cgs_manual_ask(const cgs_verb *verb, const char *question) {
    char word[16];
    snprintf(word, sizeof word, "%s", question);
    char *argv[] = {word, NULL};
    verb->run(1, argv, verb);
}

static void roff_planners(void) {
    const cgs_planner_kind *kind;
    char reads[CGS_PLANNER_READS];
    printf(
        ".SH PLANNERS\n"
        "What \\fB\\-\\-planner\\fR of several verbs takes, and the settings that each reads.\n");
    for (int i = 0; (kind = cgs_planner_kind_at(i)); i++) {
        roff_item("", kind->name, NULL, kind->summary, ";");
        roff(cgs_planner_reads(reads, sizeof reads, kind));
        putchar('\n');
    }
}

void cgs_manual_man(const cgs_verb *const *verbs, int count) {
    printf(
        ".TH CGS 1 \"\" \"cgs %s\" \"User Commands\"\n"
        ".SH NAME\ncgs \\- latent world models that are easy to plan with\n"
        ".SH SYNOPSIS\n.B cgs\n[\\fB\\-\\-isa\\fR \\fISET\\fR]\n.I VERB\n[options]\n.br\n"
        ".B cgs help\n[\\fIVERB\\fR | settings | \\-\\-man | \\-\\-bash | \\-\\-zsh | "
        "\\-\\-fish]\n.br\n"
        ".B cgs \\-\\-version\n"
        ".SH DESCRIPTION\n"
        "Collects pixel\\-action data from control environments, trains joint embedding world\n"
        "models with Control\\-Geometry Straightening (CGS), plans through them and measures how\n"
        "often goals are reached.\n"
        "Each step is one verb.\n"
        ".PP\n"
        "Every verb takes \\fB\\-\\-help\\fR (\\fB\\-h\\fR), and options as \\fB\\-\\-name\\fR\n"
        "\\fIvalue\\fR or \\fB\\-\\-name=\\fR\\fIvalue\\fR.\n"
        "Progress goes to standard error: a bar on a terminal, elsewhere a line now and then.\n"
        "\\fB\\-\\-isa\\fR \\fISET\\fR before the verb, or the variable \\fBCGS_ISA\\fR, is the\n"
        "highest instruction set that own code and libraries may use: base, v3 (AVX2), v4 "
        "(AVX\\-512)\n"
        "or amx; \\fBcgs info\\fR says which is used and why.\n"
        "With \\fB\\-\\-json\\fR a verb prints one JSON object per line on standard output.\n"
        "Verbs write whole files or none; rerun an interrupted command and it resumes where\n"
        "interrupted.\n"
        ".SH VERBS\n",
        cgs_version());
    for (int i = 0; i < count; i++) cgs_manual_ask(verbs[i], CGS_ASK_MAN);
    printf(".SS cgs help\nThe list of verbs; with a verb its options; with \\fBsettings\\fR the\n"
           "settings; with \\fB\\-\\-man\\fR this page; with \\fB\\-\\-bash\\fR,\n"
           "\\fB\\-\\-zsh\\fR or \\fB\\-\\-fish\\fR the completion script of that shell.\n");
    roff_planners();
    printf(".SH SETTINGS\n"
           "Settings are \\fIkey\\fR=\\fIvalue\\fR words after the options; those of\n"
           "\\fBcgs train\\fR may also be lines of the file that \\fB\\-\\-config\\fR names.\n"
           "Each is shown with its default.\n");
    settings s;
    char value[CGS_TEXT_MAX];
    open_settings(&s);
    for (int i = 0; i < SECTIONS; i++) {
        if (i == 0 || strcmp(taken_by[i], taken_by[i - 1]) != 0)
            printf(".SS Settings of cgs %s\n", taken_by[i]);
        for (int k = 0; k < s.section[i].count; k++) {
            const cgs_field *f = &s.section[i].fields[k];
            roff_item("", f->key, initial(f, value), f->doc, "");
        }
    }
    printf(".SH ENVIRONMENT\n"
           "Read once at start; \\fBcgs info\\fR lists those that are set.\n");
    for (int i = 0; i < CGS_ENV_COUNT; i++) {
        cgs_variable_row row = cgs_environment_row((cgs_variable)i);
        roff_item("", row.name, row.values, row.help, "");
    }
    printf(".SH EXIT STATUS\n"
           "0 on success, 2 on a usage error, 1 on any other failure; the reason is one sentence\n"
           "on standard error.\n");
}

bool cgs_manual_answer(const char *arg, const cgs_verb *verb, const cgs_opt *opts, int count) {
    if (!strcmp(arg, CGS_ASK_HELP) || !strcmp(arg, "-h"))
        usage(verb, opts, count);
    else if (!strcmp(arg, CGS_ASK_MAN))
        roff_verb(verb, opts, count);
    else
        return cgs_completion_answer(arg, verb, opts, count);
    return true;
}

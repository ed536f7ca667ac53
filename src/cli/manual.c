/* manual.c - help, man page and bash completion, all from the option tables that parse. */
#include "cli/manual.h"

#include <ctype.h>
#include <string.h>

#include "cgs/cgs.h"
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

static void ask(const cgs_verb *verb, const char *question) {
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
        ".B cgs help\n[\\fIVERB\\fR | settings | \\-\\-man | \\-\\-bash]\n.br\n"
        ".B cgs \\-\\-version\n"
        ".SH DESCRIPTION\n"
        "Collects pixel\\-action data from control environments, trains joint embedding world\n"
        "models with Control\\-Geometry Straightening (CGS), plans through them and measures how\n"
        "often goals are reached.\n"
        "Each step is one verb.\n"
        ".PP\n"
        "Every verb takes \\fB\\-\\-help\\fR (\\fB\\-h\\fR), and options as \\fB\\-\\-name\\fR\n"
        "\\fIvalue\\fR or \\fB\\-\\-name=\\fR\\fIvalue\\fR.\n"
        "Progress goes to standard error, and only to a terminal.\n"
        "\\fB\\-\\-isa\\fR \\fISET\\fR before the verb, or the variable \\fBCGS_ISA\\fR, is the\n"
        "highest instruction set that own code and libraries may use: base, v3 (AVX2), v4 "
        "(AVX\\-512)\n"
        "or amx; \\fBcgs info\\fR says which is used and why.\n"
        "With \\fB\\-\\-json\\fR a verb prints one JSON object per line on standard output.\n"
        "Verbs write whole files or none; rerun an interrupted command and it resumes where\n"
        "interrupted.\n"
        ".SH VERBS\n",
        cgs_version());
    for (int i = 0; i < count; i++) ask(verbs[i], CGS_ASK_MAN);
    printf(".SS cgs help\nThe list of verbs; with a verb its options; with \\fBsettings\\fR the\n"
           "settings; with \\fB\\-\\-man\\fR this page, with \\fB\\-\\-bash\\fR the\n"
           "completion script of bash.\n");
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

/* ---- completion ---------------------------------------------------------------------------- */

/* The values of an option whose help lists them ("cuda, cpu or ref (...)"), each followed by a
 * space; an empty text where the help is a sentence. */
static void choices(const cgs_opt *o, char *out, size_t size) {
    size_t used = 0;
    *out = 0;
    if (!strcmp(o->name, "env")) {
        for (int i = 0; i < cgs_sim_count() && used < size; i++)
            used += (size_t)snprintf(out + used, size - used, "%s ", cgs_sim_id(i));
        return;
    }
    const char *s = o->help, *colon = strstr(s, ": "), *bracket = strstr(s, " (");
    if (colon && (!bracket || colon < bracket)) s = colon + 2;
    int words = 0;
    while (s && *s && s != bracket) {
        size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-");
        const char *next = s + n;
        if (*s != '-' && used + n + 1 < size) {
            used += (size_t)snprintf(out + used, size - used, "%.*s ", (int)n, s);
            words++;
        }
        if (!strncmp(next, ", ", 2))
            s = next + 2;
        else if (!strncmp(next, " or ", 4))
            s = next + 4;
        else if (n > 0 && (!*next || next == bracket))
            break;
        else
            words = 0, s = NULL; /* a sentence */
    }
    if (words < 2) *out = 0;
}

static void bash_verb(const cgs_verb *verb, const cgs_opt *opts, int count) {
    printf("    %s)\n        words=\"", verb->name);
    for (int i = 0; i < count; i++) printf("--%s ", opts[i].name);
    printf("--help\"\n");
    settings s;
    open_settings(&s);
    for (int i = 0; i < SECTIONS; i++) {
        if (strcmp(taken_by[i], verb->name) != 0) continue;
        printf("        keys+=\"");
        for (int k = 0; k < s.section[i].count; k++) printf("%s ", s.section[i].fields[k].key);
        printf("\"\n");
    }

    /* "info|preview|check FILE": the action comes first */
    size_t n = strcspn(verb->synopsis, " ");
    if (memchr(verb->synopsis, '|', n) && islower((unsigned char)*verb->synopsis)) {
        printf("        operands=\"");
        for (size_t i = 0; i < n; i++) putchar(verb->synopsis[i] == '|' ? ' ' : verb->synopsis[i]);
        printf("\"\n");
    }
    printf("        case $last in\n");
    for (int i = 0; i < count; i++) {
        char list[512];
        if (opts[i].kind == OPT_FLAG) {
            printf("        --%s) last= ;;\n", opts[i].name);
            continue;
        }
        if (opts[i].kind == OPT_STR || opts[i].kind == OPT_LIST)
            choices(&opts[i], list, sizeof list);
        else
            *list = 0;
        printf("        --%s) values=\"%s\"%s ;;\n", opts[i].name, list,
               opts[i].kind == OPT_LIST ? " several=1" : "");
    }
    printf("        esac ;;\n");
}

void cgs_manual_bash(const cgs_verb *const *verbs, int count) {
    printf("# bash completion of cgs %s, made by `cgs help --bash`\n"
           "_cgs() {\n"
           "    local first=1\n"
           "    [[ ${COMP_WORDS[1]} == --isa ]] && ((COMP_CWORD > 1)) && first=3\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[first]-}\n"
           "    local words= operands= keys= values= several= last= i back=0\n"
           "    COMPREPLY=()\n"
           "    if ((COMP_CWORD == 2 && first == 3)); then\n"
           "        COMPREPLY=($(compgen -W \"base v3 v4 amx\" -- \"$cur\"))\n"
           "        return\n"
           "    fi\n"
           "    if ((COMP_CWORD == first)); then\n"
           "        COMPREPLY=($(compgen -W \"",
           cgs_version());
    for (int i = 0; i < count; i++) printf("%s ", verbs[i]->name);
    printf("help --help --version --isa\" -- \"$cur\"))\n"
           "        return\n"
           "    fi\n"
           "    # the option before the cursor, and how many words lie between\n"
           "    for ((i = COMP_CWORD - 1; i > first; i--)); do\n"
           "        if [[ ${COMP_WORDS[i]} == --* ]]; then last=${COMP_WORDS[i]}; break; fi\n"
           "        back=$((back + 1))\n"
           "    done\n"
           "    case $verb in\n");
    for (int i = 0; i < count; i++) ask(verbs[i], CGS_ASK_BASH);
    printf("    help)\n        words=\"--man --bash\"\n        operands=\"settings");
    for (int i = 0; i < count; i++) printf(" %s", verbs[i]->name);
    printf("\" ;;\n"
           "    esac\n"
           "    if [[ $cur == -* ]]; then\n"
           "        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
           "    elif [[ $last && ($back == 0 || $several) ]]; then\n"
           "        COMPREPLY=($(compgen -W \"$values\" -- \"$cur\"))\n"
           "    elif [[ $keys && $cur ]]; then\n"
           "        COMPREPLY=($(compgen -S = -W \"$keys\" -- \"$cur\"))\n"
           "        compopt -o nospace\n"
           "    elif ((COMP_CWORD == first + 1)); then\n"
           "        COMPREPLY=($(compgen -W \"$operands\" -- \"$cur\"))\n"
           "    fi\n"
           "}\n"
           "# where nothing above fits, file names\n"
           "complete -o default -F _cgs cgs\n");
}

bool cgs_manual_answer(const char *arg, const cgs_verb *verb, const cgs_opt *opts, int count) {
    if (!strcmp(arg, CGS_ASK_HELP) || !strcmp(arg, "-h"))
        usage(verb, opts, count);
    else if (!strcmp(arg, CGS_ASK_MAN))
        roff_verb(verb, opts, count);
    else if (!strcmp(arg, CGS_ASK_BASH))
        bash_verb(verb, opts, count);
    else
        return false;
    return true;
}

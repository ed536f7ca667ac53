/* completion.c - see completion.h.
 *
 * What can follow an option or a verb is found once, for all shells: values() and operands(). */
#include "cli/completion.h"

#include <ctype.h>
#include <stdarg.h>
#include <string.h>

#include "cgs/cgs.h"
#include "cli/manual.h"
#include "env/policy.h"
#include "study/recipe.h"
#include "train/method.h"

/* ---- what can follow ---------------------------------------------------------------------- */

enum { WORDS = 2048 };

/* words, each followed by a space */
typedef struct list {
    char text[WORDS];
    size_t used;
} list;

static void add(list *l, const char *word, size_t n) {
    if (l->used + n + 2 > sizeof l->text) return;
    l->used += (size_t)snprintf(l->text + l->used, sizeof l->text - l->used, "%.*s ", (int)n, word);
}

static void add_word(list *l, const char *word) { add(l, word, strlen(word)); }

/* the words of a help that lists them ("cuda, cpu or ref (...)"); none where it is a sentence */
static void add_listed(list *l, const char *help) {
    const char *s = help, *colon = strstr(s, ": "), *bracket = strstr(s, " (");
    if (colon && (!bracket || colon < bracket)) s = colon + 2;
    int words = 0;
    while (s && *s && s != bracket) {
        size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-");
        const char *next = s + n;
        add(l, s, n);
        words++;
        if (!strncmp(next, ", ", 2))
            s = next + 2;
        else if (!strncmp(next, " or ", 4))
            s = next + 4;
        else if (n > 0 && (!*next || next == bracket))
            break;
        else
            words = 0, s = NULL; /* a sentence */
    }
    if (words < 2) *l = (list){.used = 0};
}

static void add_policies(list *l) {
    for (int i = 0; i < cgs_policy_count(); i++) {
        char name[64];
        snprintf(name, sizeof name, " %s ", cgs_policy_at(i)->name);
        if (!strstr(l->text, name + (l->used == 0))) add_word(l, cgs_policy_at(i)->name);
    }
}

/* of an option */
static list values(const cgs_opt *o) {
    list l = {.used = 0};
    const cgs_method *m;
    if (o->kind != OPT_STR && o->kind != OPT_LIST) return l;
    if (!strcmp(o->name, "env"))
        for (int i = 0; i < cgs_sim_count(); i++) add_word(&l, cgs_sim_id(i));
    else if (!strcmp(o->name, "method"))
        for (int i = 0; (m = cgs_method_at(i)); i++) add_word(&l, m->name);
    else if (!strcmp(o->name, "policy"))
        add_policies(&l);
    else if (!strcmp(o->name, "only"))
        for (int i = 0; i < cgs_study_row_count; i++) add_word(&l, cgs_study_rows[i].id);
    else
        add_listed(&l, o->help);
    return l;
}

/* of a verb: its first word, where that is one of a few */
static list operands(const cgs_verb *verb) {
    list l = {.used = 0};
    if (!strcmp(verb->name, "reproduce")) {
        add_word(&l, "list");
        for (int i = 0; i < cgs_recipe_count; i++) add_word(&l, cgs_recipes[i].name);
        for (int i = 0; i < cgs_recipe_group_count; i++) add_word(&l, cgs_recipe_groups[i].name);
    }
    /* "info|preview|check FILE" */
    size_t n = strcspn(verb->synopsis, " ");
    if (!memchr(verb->synopsis, '|', n) || !islower((unsigned char)*verb->synopsis)) return l;
    for (const char *s = verb->synopsis; s < verb->synopsis + n; s += strcspn(s, "| ") + 1)
        add(&l, s, strcspn(s, "| "));
    return l;
}

static void print_key(const char *key) { printf("%s= ", key); }

/* ---- bash --------------------------------------------------------------------------------- */

static void print_bare_key(const char *key) { printf("%s ", key); }

static void bash_verb(const cgs_verb *verb, const cgs_opt *opts, int count) {
    printf("    %s)\n        words=\"", verb->name);
    for (int i = 0; i < count; i++) printf("--%s ", opts[i].name);
    printf("--help\"\n        keys=\"");
    cgs_manual_each_key(verb->name, print_bare_key);
    printf("\"\n        operands=\"%s\"\n        case $last in\n", operands(verb).text);
    for (int i = 0; i < count; i++) {
        if (opts[i].kind == OPT_FLAG)
            printf("        --%s) last= ;;\n", opts[i].name);
        else
            printf("        --%s) values=\"%s\"%s ;;\n", opts[i].name, values(&opts[i]).text,
                   opts[i].kind == OPT_LIST ? " several=1" : "");
    }
    printf("        esac ;;\n");
}

static void bash(const cgs_verb *const *verbs, int count) {
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
    for (int i = 0; i < count; i++) cgs_manual_ask(verbs[i], "--help=bash");
    printf("    help)\n        words=\"--man --bash --zsh --fish\"\n        operands=\"settings");
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

/* ---- zsh ---------------------------------------------------------------------------------- */

/* text inside '...', with a backslash before those of `special` */
static void quoted(const char *text, const char *special) {
    for (; *text; text++) {
        if (strchr(special, *text)) putchar('\\');
        if (*text == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*text == '\n' ? ' ' : *text);
    }
}

static void zsh_option(const cgs_opt *o) {
    list l = values(o);
    printf("            '--%s[", o->name);
    quoted(o->help, "[]:\\");
    printf("]");
    if (o->kind != OPT_FLAG) {
        printf(":");
        quoted(o->arg ? o->arg : "", "[]:\\");
        if (l.used)
            printf(":(%s)", l.text);
        else
            printf(o->kind == OPT_STR || o->kind == OPT_LIST ? ":_files" : ": ");
    }
    printf("' \\\n");
}

static void zsh_verb(const cgs_verb *verb, const cgs_opt *opts, int count) {
    list l = operands(verb);
    printf("    %s)\n        several=(", verb->name);
    for (int i = 0; i < count; i++)
        if (opts[i].kind == OPT_LIST) printf("--%s '%s' ", opts[i].name, values(&opts[i]).text);
    printf(")\n        _arguments \\\n");
    for (int i = 0; i < count; i++) zsh_option(&opts[i]);
    if (l.used) printf("            '1: :(%s)' \\\n", l.text);
    printf("            '--help[this text]' '*: :_cgs_words ");
    cgs_manual_each_key(verb->name, print_key);
    printf("' ;;\n");
}

static void zsh(const cgs_verb *const *verbs, int count) {
    printf("#compdef cgs\n"
           "# zsh completion of cgs %s, made by `cgs help --zsh`\n"
           "\n"
           "# more values of an option that takes several, settings of a verb, or file names\n"
           "_cgs_words() {\n"
           "    local i\n"
           "    for ((i = CURRENT - 1; i > 1; i--)); do [[ $words[i] == --* ]] && break; done\n"
           "    if ((i > 1)) && [[ -n $several[$words[i]] ]]; then\n"
           "        compadd -- ${=several[$words[i]]}\n"
           "        return\n"
           "    fi\n"
           "    if [[ -n $PREFIX ]] && (($#)); then compadd -S '' -- \"$@\" && return; fi\n"
           "    _files\n"
           "}\n"
           "\n"
           "_cgs() {\n"
           "    local -a verbs\n"
           "    local -A several\n"
           "    verbs=(\n",
           cgs_version());
    for (int i = 0; i < count; i++) {
        printf("        '%s:", verbs[i]->name);
        quoted(verbs[i]->summary, ":\\");
        printf("'\n");
    }
    printf(
        "        'help:options of a verb, settings, manual' '--isa:the highest instruction set'\n"
        "    )\n"
        "    if [[ $words[2] == --isa ]] && ((CURRENT > 2)); then\n"
        "        if ((CURRENT == 3)); then compadd base v3 v4 amx; return; fi\n"
        "        words[2,3]=()\n"
        "        ((CURRENT -= 2))\n"
        "    fi\n"
        "    if ((CURRENT == 2)); then _describe -t verbs verb verbs; return; fi\n"
        "    shift words\n"
        "    ((CURRENT--))\n"
        "    case $words[1] in\n");
    for (int i = 0; i < count; i++) cgs_manual_ask(verbs[i], "--help=zsh");
    printf("    help) compadd settings --man --bash --zsh --fish");
    for (int i = 0; i < count; i++) printf(" %s", verbs[i]->name);
    printf(" ;;\n    esac\n}\n\n"
           "# as a file of $fpath it is called; read by `source` it registers itself\n"
           "if [[ $funcstack[1] == _cgs ]]; then _cgs \"$@\"; else compdef _cgs cgs; fi\n");
}

/* ---- fish --------------------------------------------------------------------------------- */

static void fish_line(const char *verb, const char *format, ...) {
    va_list more;
    printf("complete -c cgs -n '__cgs_verb %s' ", verb);
    va_start(more, format);
    vprintf(format, more);
    va_end(more);
}

static void fish_verb(const cgs_verb *verb, const cgs_opt *opts, int count) {
    list first = operands(verb);
    if (first.used) fish_line(verb->name, "-f -a '%s'\n", first.text);
    fish_line(verb->name, "-a '");
    cgs_manual_each_key(verb->name, print_key);
    printf("'\n");
    for (int i = 0; i < count; i++) {
        const cgs_opt *o = &opts[i];
        list l = values(o);
        fish_line(verb->name, "-l %s", o->name);
        if (l.used)
            printf(" -x -a '%s'", l.text);
        else if (o->kind != OPT_FLAG)
            printf(o->kind == OPT_STR || o->kind == OPT_LIST ? " -r -F" : " -x");
        printf(" -d '");
        quoted(o->help, "\\");
        printf("'\n");
    }
}

static void fish(const cgs_verb *const *verbs, int count) {
    printf("# fish completion of cgs %s, made by `cgs help --fish`\n"
           "\n"
           "# the words behind the program and --isa SET\n"
           "function __cgs_words\n"
           "    set -l words (commandline -opc)\n"
           "    set -e words[1]\n"
           "    if test \"$words[1]\" = --isa\n"
           "        set -e words[1]\n"
           "        set -e words[1]\n"
           "    end\n"
           "    string join -- \\n $words\n"
           "end\n"
           "\n"
           "function __cgs_verb\n"
           "    set -l words (__cgs_words)\n"
           "    test \"$words[1]\" = $argv[1]\n"
           "end\n"
           "\n"
           "function __cgs_no_verb\n"
           "    set -l words (__cgs_words)\n"
           "    test (count $words) -eq 0\n"
           "end\n"
           "\n"
           "complete -c cgs -n __cgs_no_verb -l isa -x -a 'base v3 v4 amx' -d 'the highest "
           "instruction set'\n"
           "complete -c cgs -n __cgs_no_verb -l version -d 'the version'\n",
           cgs_version());
    for (int i = 0; i < count; i++) {
        printf("complete -c cgs -n __cgs_no_verb -f -a %s -d '", verbs[i]->name);
        quoted(verbs[i]->summary, "\\");
        printf("'\n");
    }
    printf(
        "complete -c cgs -n __cgs_no_verb -f -a help -d 'options of a verb, settings, manual'\n");
    fish_line("help", "-f -a 'settings --man --bash --zsh --fish");
    for (int i = 0; i < count; i++) printf(" %s", verbs[i]->name);
    printf("'\n");
    for (int i = 0; i < count; i++) cgs_manual_ask(verbs[i], "--help=fish");
}

/* ---- shells ------------------------------------------------------------------------------- */

static const struct {
    const char *name, *question;
    void (*script)(const cgs_verb *const *verbs, int count);
    void (*verb)(const cgs_verb *verb, const cgs_opt *opts, int count);
} shells[] = {{"bash", "--help=bash", bash, bash_verb},
              {"zsh", "--help=zsh", zsh, zsh_verb},
              {"fish", "--help=fish", fish, fish_verb}};

bool cgs_completion(const char *shell, const cgs_verb *const *verbs, int count) {
    for (int i = 0; i < CGS_COUNT(shells); i++) {
        if (strcmp(shells[i].name, shell) != 0) continue;
        shells[i].script(verbs, count);
        return true;
    }
    return false;
}

bool cgs_completion_answer(const char *arg, const cgs_verb *verb, const cgs_opt *opts, int count) {
    for (int i = 0; i < CGS_COUNT(shells); i++) {
        if (strcmp(shells[i].question, arg) != 0) continue;
        shells[i].verb(verb, opts, count);
        return true;
    }
    return false;
}

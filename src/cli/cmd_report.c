/* cmd_report.c - cgs report: one page with the results of a study. */
#include <string.h>
#include <sys/stat.h>

#include "cli/plain.h"
#include "cli/verbs.h"
#include "report/report.h"

static void print_warning(void *user, const char *sentence) {
    (void)user;
    fputs("cgs report: ", stderr);
    cgs_print_plain(sentence, stderr);
    fputc('\n', stderr);
}

static void print_json(const cgs_report_summary *s, double bytes) {
    printf("{\"sections\":%d,\"figures\":%d,\"tables\":%d,\"warnings\":%d,\"bytes\":%.0f}\n",
           s->sections, s->figures, s->tables, s->warnings, bytes);
}

static int run(int argc, char **argv, const cgs_verb *self) {
    const char *out = "report.html", *title = NULL, *tables = NULL, *claims = NULL;
    bool json = false, quiet = false;
    const cgs_opt opts[] = {
        {"out", "FILE", "the page (report.html)", OPT_STR, &out, false},
        {"title", "TEXT", "title of the page (the names of the runs)", OPT_STR, &title, false},
        {"tables", "FILE",
         "also write success, sweeps, areas, priors, straightness and commands as Markdown",
         OPT_STR, &tables, false},
        {"claims", "FILE",
         "also write as Markdown what of the paper's claims holds over training seeds and starts",
         OPT_STR, &claims, false},
        {"quiet", NULL, "print only warnings and errors", OPT_FLAG, &quiet, false},
        {"json", NULL, "print what was drawn as one line of JSON", OPT_FLAG, &json, false},
    };
    cgs_words words;
    cgs_report_summary s = {0};
    struct stat st = {0};
    cgs_status rc = cgs_options_parse(self, opts, CGS_COUNT(opts), argc, argv, &words);
    if (rc == CGS_OK && words.count == 0)
        rc = cgs_fail(CGS_EARG, "name at least one run: a folder, or a file of results");
    if (rc == CGS_OK && tables && !strcmp(tables, out))
        rc = cgs_fail(CGS_EARG, "--tables and --out name the same file, \"%s\"", out);
    if (rc == CGS_OK && claims && (!strcmp(claims, out) || (tables && !strcmp(claims, tables))))
        rc = cgs_fail(CGS_EARG, "--claims and another option name the same file, \"%s\"", claims);
    if (rc == CGS_OK) {
        cgs_report_options o = {.runs = (const char *const *)words.word,
                                .count = words.count,
                                .out = out,
                                .title = title,
                                .tables = tables,
                                .claims = claims,
                                .warn = print_warning};
        rc = cgs_report_write(&o, &s);
    }
    if (rc == CGS_OK && stat(out, &st) == 0) {
        if (json) {
            print_json(&s, (double)st.st_size);
        } else if (!quiet) {
            cgs_print_plain(s.verdict, stdout);
            printf("\n%s: %d sections, %d figures, %.0f KiB\n", out, s.sections, s.figures,
                   (double)st.st_size / 1024);
            if (tables) printf("%s: %d tables\n", tables, s.tables);
        }
    }
    return cgs_exit_code(self, rc);
}

const cgs_verb cmd_report = {
    "report", "RUN... [--out report.html] [--tables FILE.md] [--claims FILE.md]",
    "one self-contained page: verdict, tables, curves, heat maps, images",
    "A RUN is the folder of a study, or a file of results from cgs eval. Each section is drawn\n"
    "when its files exist; damaged or unknown files are named in a warning.\n"
    "--tables writes the numbers of all runs as Markdown, laid out like the paper's tables: mean\n"
    "and deviation, areas, intervals, the paper's number in brackets, and the commands of the "
    "runs.\n"
    "--claims writes one table of \"CGS above LeWM\" and \"CGS above TS\" with each planner: "
    "confirmed,\n"
    "not confirmed or reversed, by an interval over training seeds and starts.\n"
    "\n"
    "  cgs report runs/demo --out report.html\n"
    "  cgs report results.jsonl\n"
    "  cgs report runs/cube runs/tworooms --tables tables.md --claims claims.md\n",
    run};

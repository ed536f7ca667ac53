/* cmd_reproduce.c - cgs reproduce: a study of the paper, stage by stage.
 *
 * Each stage is a verb of this program, run as a child process with the command that is printed.  A
 * crash of one does not affect the others; a finished one is not rerun. */
#define _GNU_SOURCE /* nice */
#include <cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "cli/child.h"
#include "cli/command.h"
#include "cli/verbs.h"
#include "core/file.h"
#include "core/threads.h"
#include "study/expand.h"
#include "study/stages.h"

enum { WORDS_MAX = 64, COMMAND_MAX = 8192, LAPTOP_NICE = 10 };

typedef struct job {
    cgs_study_options study;
    char again[4096]; /* the command to resume with */
    const char *base; /* folder of a group */
    double deadline;  /* cgs_now, 0: none */
    bool dry, quiet, json;
    bool terse;               /* finished stages are not listed: a later round of a group */
    double others;            /* minutes of other studies that are not finished, as expected */
    double expected, elapsed; /* of what is finished: minutes as expected, and in fact */
} job;

/* ---- what there is ------------------------------------------------------------------- */

/* what the laptop preset is expected to take; 0: there is none */
static double laptop_minutes(const cgs_recipe *r) {
    cgs_study *s;
    cgs_study_options o = {
        .recipe = r, .dir = "runs", .preset = cgs_preset_names[CGS_PRESET_LAPTOP]};
    double minutes = 0;
    if (!r->preset[CGS_PRESET_LAPTOP]) return 0;
    if (cgs_study_create(&s, &o) == CGS_OK)
        for (int i = 0; i < s->count; i++) minutes += s->stage[i].minutes;
    cgs_study_destroy(s);
    return minutes;
}

static int print_list(void) {
    printf("studies: cgs reproduce NAME [--preset paper|small|brief|laptop|tiny] [--out DIR]\n");
    for (int i = 0; i < cgs_recipe_count; i++) {
        const cgs_recipe *r = &cgs_recipes[i];
        printf("  %-23s %s (%s%s)\n", r->name, r->what,
               r->preset[CGS_PRESET_PAPER] && r->preset[CGS_PRESET_SMALL]
                   ? "paper: a GPU; small: CPU or GPU"
               : r->preset[CGS_PRESET_PAPER] ? "a GPU"
                                             : "CPU or GPU",
               r->preset[CGS_PRESET_BRIEF] ? "; brief: minutes on a GPU" : "");
        double minutes = laptop_minutes(r);
        if (minutes > 0)
            printf("  %-23s laptop: about %.1f h on two quiet cores\n", "", minutes / 60);
        printf("  %-23s stages: %s\n", "", r->rows);
    }
    for (int i = 0; i < cgs_recipe_group_count; i++) {
        const cgs_recipe_group *g = &cgs_recipe_groups[i];
        printf("  %-23s %s\n  %-23s studies: %s\n", g->name, g->what, "", g->members);
        int members;
        double minutes = 0;
        char **name = cgs_split_words(g->members, &members);
        for (int k = 0; name && k < members; k++) {
            minutes += laptop_minutes(cgs_recipe_find(name[k]));
            free(name[k]);
        }
        free(name);
        if (minutes > 0)
            printf("  %-23s laptop: about %.1f h on two quiet cores\n", "", minutes / 60);
    }
    printf("\ntables and figures of the paper; each command also runs the stages it needs\n");
    for (int i = 0; i < cgs_paper_item_count; i++) {
        const cgs_paper_item *p = &cgs_paper_items[i];
        printf("  %-14s %s\n", p->item, p->what);
        char names[128];
        snprintf(names, sizeof names, "%s", p->recipes);
        for (char *s = names; (s = strchr(s, ' ')); s++) *s = '|';
        printf("  %-14s cgs reproduce %s%s%s\n", "", names, p->only ? " --only " : "",
               p->only ? p->only : "");
    }
    printf("\nThe paper preset trains ViT-Tiny on 224 x 224 pixels for ten epochs; the small one\n"
           "trains 1.2 M parameters on 64 x 64 pixels for 1,000 updates.  brief has the paper's "
           "sizes with\n"
           "little data, few updates and few starts.  laptop trains small models with several "
           "seeds, and a\n"
           "seed is finished before the next begins; tiny only shows that everything runs.\n");
    return 0;
}

/* ---- words --------------------------------------------------------------------------- */

static void clock_text(char *out, size_t size, double seconds) {
    long s = (long)(seconds + 0.5);
    if (s >= 3600)
        snprintf(out, size, "%ld:%02ld:%02ld h", s / 3600, s / 60 % 60, s % 60);
    else if (s >= 60)
        snprintf(out, size, "%ld:%02ld min", s / 60, s % 60);
    else
        snprintf(out, size, "%.1f s", seconds);
}

static void print_found(const job *j, const cgs_stage *g, const char *how) {
    char took[32];
    clock_text(took, sizeof took, g->seconds);
    if (j->quiet || j->json) return;
    printf("        %s%s (%s)\n", how, *g->found ? g->found : "finished", took);
    fflush(stdout);
}

/* as it would be typed; out: (COMMAND_MAX) */
static const char *command_of(const cgs_stage *g, char *out) {
    return cgs_command_text(out, COMMAND_MAX, g->word[0], g->words - 1, g->word + 1);
}

static void print_json(const cgs_stage *g, const char *state) {
    char command[COMMAND_MAX];
    cJSON *j = cJSON_CreateObject();
    cJSON_AddStringToObject(j, "stage", g->name);
    cJSON_AddStringToObject(j, "hash", g->hash);
    cJSON_AddStringToObject(j, "state", state);
    cJSON_AddNumberToObject(j, "seconds", g->seconds);
    cJSON_AddStringToObject(j, "found", g->found);
    cJSON_AddStringToObject(j, "command", command_of(g, command));
    char *text = cJSON_PrintUnformatted(j);
    if (text) printf("%s\n", text);
    fflush(stdout);
    cJSON_free(text);
    cJSON_Delete(j);
}

/* ---- running ------------------------------------------------------------------------- */

/* One program at a time in a folder.  The lock is inherited by the command that runs, so it
 * outlives a program that was killed until that command has saved its work. */
static cgs_status lock_folder(const char *dir, int *fd) {
    char path[4096];
    CGS_TRY(cgs_path_join(path, sizeof path, dir, ".lock"));
    *fd = open(path, O_RDWR | O_CREAT, 0644);
    if (*fd < 0) return cgs_fail(CGS_EIO, "%s: %s", path, strerror(errno));
    for (int tries = 0; flock(*fd, LOCK_EX | LOCK_NB) != 0; tries++) {
        if (tries == 100)
            return cgs_fail(CGS_EIO, "%s: another cgs reproduce is running in this folder", dir);
        struct timespec pause = {.tv_nsec = 100 * 1000 * 1000};
        nanosleep(&pause, NULL);
    }
    return CGS_OK;
}

/* A stage with "*" takes whatever exists and waits for nothing. */
static bool needs_met(const cgs_study *s, const cgs_stage *g) {
    bool all = !strcmp(g->row->needs, "*");
    for (int i = 0; !all && i < g->need_count; i++)
        if (!s->stage[g->needs[i]].finished) return false;
    return true;
}

static cgs_status run_stage(job *j, cgs_study *s, cgs_stage *g, double deadline,
                            cgs_child_end *end) {
    char found[CGS_FOUND_MAX];
    char command[COMMAND_MAX];
    double start = cgs_now();
    command_of(g, command);
    if (!j->quiet && !j->json) printf("        %s\n", command);
    fflush(stdout);
    CGS_TRY(cgs_stage_started(s, g, command));
    CGS_TRY(cgs_child_run(g->word, g->log, deadline, end));
    if (*end != CGS_CHILD_OK) return CGS_OK;
    if (!cgs_file_exists(g->output)) { /* a success without its output is a failure */
        *end = CGS_CHILD_FAILED;
        fprintf(stderr, "cgs reproduce: %s did not write %s\n", g->name, g->output);
        return CGS_OK;
    }
    cgs_stage_found(g, found);
    CGS_TRY(cgs_stage_finished(s, g, command, cgs_now() - start, found));
    print_found(j, g, "");
    return CGS_OK;
}

typedef struct tally {
    int done, ran, failed, waiting;
} tally;

static cgs_status do_stage(job *j, cgs_study *s, cgs_stage *g, double deadline, tally *t,
                           cgs_child_end *end) {
    cgs_stage_do todo;
    *end = CGS_CHILD_OK;
    if (!needs_met(s, g)) {
        if (!j->quiet) fprintf(stderr, "        skipped: a stage that it needs failed\n");
        t->waiting++;
        return CGS_OK;
    }
    CGS_TRY(cgs_stage_state(g, &todo));
    if (todo == CGS_STAGE_ADOPT) {
        char found[CGS_FOUND_MAX], command[COMMAND_MAX];
        cgs_stage_found(g, found);
        CGS_TRY(cgs_stage_finished(s, g, command_of(g, command), 0, found));
    }
    if (todo == CGS_STAGE_RUN) {
        CGS_TRY(run_stage(j, s, g, deadline, end));
        t->ran += *end == CGS_CHILD_OK;
        t->failed += *end == CGS_CHILD_FAILED;
        if (*end == CGS_CHILD_FAILED && !j->quiet)
            fprintf(stderr, "        failed; its log is %s\n", g->log);
    } else {
        print_found(j, g, "done before: ");
        t->done++;
    }
    if (j->json) print_json(g, *end == CGS_CHILD_OK ? "finished" : "unfinished");
    return CGS_OK;
}

/* how long what is left takes: as expected, times how much longer than expected it took so far */
static void print_stage(const job *j, const cgs_study *s, int at, int number, int total) {
    double left = j->others, expected = j->expected, elapsed = j->elapsed;
    char text[40];
    for (int i = 0; i < s->count; i++) {
        const cgs_stage *g = &s->stage[i];
        if (!g->selected || g->spared) continue;
        if (!g->finished && i >= at) left += g->minutes;
        if (g->finished && g->minutes > 0 && g->seconds > 0) {
            expected += g->minutes;
            elapsed += g->seconds / 60;
        }
    }
    printf("[%2d/%d] %s", number, total, s->stage[at].name);
    if (left > 0) {
        left *= expected > 2 ? elapsed / expected : 1;
        snprintf(text, sizeof text, left < 90 ? "%.0f min" : "%.1f h",
                 left < 90 ? left : left / 60);
        printf("  (about %s left)", text);
    }
    printf("\n");
}

static cgs_status run_all(job *j, cgs_study *s) {
    double start = cgs_now(), deadline = j->deadline;
    int total = 0, number = 0;
    tally t = {0};
    for (int i = 0; i < s->count; i++) total += s->stage[i].selected;
    for (int i = 0; i < s->count; i++) {
        cgs_stage *g = &s->stage[i];
        cgs_child_end end = CGS_CHILD_OK;
        if (!g->selected) continue;
        number++;
        if (j->terse && g->finished && (g->spared || cgs_file_exists(g->output))) {
            t.done++;
            continue;
        }
        if (!j->quiet && !j->json) print_stage(j, s, i, number, total);
        if (cgs_child_stopped())
            end = CGS_CHILD_STOPPED;
        else if (deadline > 0 && cgs_now() > deadline)
            end = CGS_CHILD_TIMEOUT;
        else
            CGS_TRY(do_stage(j, s, g, deadline, &t, &end));
        if (end == CGS_CHILD_STOPPED || end == CGS_CHILD_TIMEOUT)
            return cgs_fail(
                CGS_EIO, "%s at \"%s\", %d of %d stages are finished; rerun the command to resume",
                end == CGS_CHILD_STOPPED ? "stopped" : "the time budget is used up", g->name,
                t.done + t.ran, total);
    }
    char took[32];
    clock_text(took, sizeof took, cgs_now() - start);
    if (t.failed)
        return cgs_fail(CGS_EIO,
                        "%d of %d stages failed, %d were skipped; rerun the command to retry",
                        t.failed, total, t.waiting);
    if (!j->quiet && !j->json) {
        printf("\n%s: %d of %d stages done now, %d before, in %s\n", s->dir, t.ran, total, t.done,
               took);
        char page[4096];
        if (cgs_path_join(page, sizeof page, s->dir, "report.html") == CGS_OK &&
            cgs_file_exists(page))
            printf("open %s\n", page);
    }
    return CGS_OK;
}

static void print_plan(const cgs_study *s) {
    int total = 0, number = 0;
    for (int i = 0; i < s->count; i++) total += s->stage[i].selected;
    for (int i = 0; i < s->count; i++) {
        const cgs_stage *g = &s->stage[i];
        if (!g->selected) continue;
        char command[COMMAND_MAX];
        printf("[%2d/%d] %s  (%s)\n        %s\n", ++number, total, g->name, g->hash,
               command_of(g, command));
    }
}

static cgs_status reproduce(job *j) {
    cgs_study *s;
    int lock = -1;
    cgs_status rc = cgs_study_create(&s, &j->study);
    if (rc == CGS_OK && j->dry) {
        print_plan(s);
    } else if (rc == CGS_OK) {
        rc = cgs_make_dirs(s->dir);
        if (rc == CGS_OK) rc = lock_folder(s->dir, &lock);
        if (rc == CGS_OK) rc = cgs_study_begin(s);
        cgs_child_catch();
        if (rc == CGS_OK) rc = run_all(j, s);
        if (lock >= 0) close(lock);
    }
    cgs_study_destroy(s);
    return rc;
}

/* ---- groups -------------------------------------------------------------------------- */

/* one page of all members that have a page of their own */
static cgs_status report_all(const job *j, const char *base, char *const *dir, int dirs) {
    char *word[WORDS_MAX], page[4096], log[4096], out[] = "--out", verb[] = "report";
    int n = 0;
    cgs_child_end end;
    CGS_TRY(cgs_path_join(page, sizeof page, base, "report.html"));
    CGS_TRY(cgs_path_join(log, sizeof log, base, "report.txt"));
    word[n++] = verb;
    for (int i = 0; i < dirs && n < WORDS_MAX - 3; i++) {
        char own[4096];
        CGS_TRY(cgs_path_join(own, sizeof own, dir[i], "report.html"));
        if (cgs_file_exists(own)) word[n++] = dir[i];
    }
    if (n == 1) return CGS_OK;
    word[n++] = out;
    word[n++] = page;
    word[n] = NULL;
    CGS_TRY(cgs_child_run(word, log, 0, &end));
    if (end != CGS_CHILD_OK) return cgs_fail(CGS_EIO, "no combined page; the reason is in %s", log);
    if (!j->quiet && !j->json) printf("\nall studies: open %s\n", page);
    return CGS_OK;
}

/* The time of the other members, all their seeds, and of what is left to later rounds of this one;
 * *seeds: training seeds of this one. */
static cgs_status look_around(job *j, char *const *name, char **dir, int members, int at, int round,
                              int *seeds) {
    j->others = j->expected = j->elapsed = 0;
    for (int i = 0; i < members; i++) {
        cgs_study *s;
        j->study.recipe = cgs_recipe_find(name[i]);
        j->study.dir = dir[i];
        j->study.rounds = 0;
        cgs_status rc = cgs_study_create(&s, &j->study);
        int now = s ? s->count : 0; /* stages up to this round */
        if (rc == CGS_OK) rc = cgs_study_read(s);
        if (rc == CGS_OK && i == at) {
            cgs_study *upto;
            *seeds = s->seed_count;
            j->study.rounds = round + 1;
            rc = cgs_study_create(&upto, &j->study);
            now = upto ? upto->count : 0;
            cgs_study_destroy(upto);
        }
        for (int k = 0; rc == CGS_OK && k < s->count; k++) {
            const cgs_stage *g = &s->stage[k];
            if (!g->selected || g->spared || (i == at && k < now)) continue;
            if (!g->finished) j->others += g->minutes;
            if (g->finished && g->minutes > 0 && g->seconds > 0) {
                j->expected += g->minutes;
                j->elapsed += g->seconds / 60;
            }
        }
        cgs_study_destroy(s);
        CGS_TRY(rc);
    }
    j->study.recipe = cgs_recipe_find(name[at]);
    j->study.dir = dir[at];
    j->study.rounds = round + 1;
    return CGS_OK;
}

/* Depth first: the first training seed of every member, then the second.  A study that fails does
 * not keep the others from running. */
static cgs_status run_members(job *j, char *const *name, char **dir, int members, int *failed) {
    bool more = true;
    for (int round = 0; more; round++) {
        more = false;
        j->terse = round > 0;
        for (int i = 0; i < members; i++) {
            int seeds = 0;
            CGS_TRY(look_around(j, name, dir, members, i, round, &seeds));
            if (round >= seeds) continue;
            more = more || round + 1 < seeds;
            if (!j->quiet && !j->json) {
                printf("%s%s", round || i ? "\n" : "", name[i]);
                if (seeds > 1) printf(", training seed %d of %d", round + 1, seeds);
                printf("\n");
            }
            cgs_status rc = reproduce(j);
            bool over = cgs_child_stopped() || (j->deadline > 0 && cgs_now() > j->deadline);
            if (rc == CGS_EARG || (rc != CGS_OK && over)) return rc;
            if (rc != CGS_OK) fprintf(stderr, "cgs reproduce %s: %s\n", name[i], cgs_last_error());
            *failed += rc != CGS_OK;
            if (rc == CGS_OK && !j->dry && seeds > 1) /* what there is, as it comes */
                CGS_TRY(report_all(j, j->base, dir, members));
        }
    }
    return CGS_OK;
}

static cgs_status reproduce_group(job *j, const cgs_recipe_group *g, const char *base) {
    int members, failed = 0;
    char **name = cgs_split_words(g->members, &members);
    char **dir = name ? calloc((size_t)members, sizeof *dir) : NULL;
    cgs_status rc = dir ? CGS_OK : cgs_fail(CGS_ENOMEM, "reproduce: no memory");
    if (rc == CGS_OK && j->study.data)
        rc = cgs_fail(CGS_EARG, "each study of %s has its own data; give --data to a single study",
                      g->name);
    for (int i = 0; rc == CGS_OK && i < members; i++) {
        dir[i] = malloc(4096);
        rc = dir[i] ? cgs_path_join(dir[i], 4096, base, name[i])
                    : cgs_fail(CGS_ENOMEM, "reproduce: no memory");
    }
    j->base = base;
    if (rc == CGS_OK) rc = run_members(j, name, dir, members, &failed);
    if (rc == CGS_OK && !j->dry) rc = report_all(j, base, dir, members);
    if (rc == CGS_OK && failed)
        rc = cgs_fail(CGS_EIO, "%d of %d studies are not complete; rerun the command to retry",
                      failed, members);
    for (int i = 0; name && i < members; i++) {
        if (dir) free(dir[i]);
        free(name[i]);
    }
    free(dir);
    free(name);
    return rc;
}

/* the first that a study, or the first of a group, has */
static const char *first_preset(const cgs_recipe *r, const cgs_recipe_group *group) {
    char name[64];
    if (group) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(group->members, " "), group->members);
        r = cgs_recipe_find(name);
    }
    int p = 0;
    while (p < CGS_PRESETS - 1 && !r->preset[p]) p++;
    return cgs_preset_names[p];
}

static int run(int argc, char **argv, const cgs_verb *self) {
    job j = {0};
    const char *out = NULL, *preset = NULL, *seeds = NULL;
    const cgs_recipe_group *group = NULL;
    double budget = 0;
    int episodes = 0, updates = -1;
    cgs_words words = {0}, only = {0};
    const cgs_opt opts[] = {
        {"out", "DIR", "folder of the study (runs/NAME)", OPT_STR, &out, false},
        {"preset", "P", "paper, small, brief, laptop or tiny (the first there is)", OPT_STR,
         &preset, false},
        {"device", "D", "cuda or cpu (a GPU if there is one)", OPT_STR, &j.study.device, false},
        {"precision", "P", "f32 or bf16 (bf16)", OPT_STR, &j.study.precision, false},
        {"threads", "N", "threads (one per core)", OPT_INT, &j.study.threads, false},
        {"episodes", "N", "episodes to collect (by recipe)", OPT_INT, &episodes, false},
        {"updates", "N", "updates per training (by recipe; 0: ten epochs)", OPT_INT, &updates,
         false},
        {"seeds", "LIST", "training seeds, separated by commas (by recipe: 3072)", OPT_STR, &seeds,
         false},
        {"data", "F.h5", "use this dataset instead of collecting one", OPT_STR, &j.study.data,
         false},
        {"backbone", "FILE", "DINO-WM: weights of the frozen backbone instead of a stand-in",
         OPT_STR, &j.study.backbone, false},
        {"only", "STAGE ...", "run only these stages and those they need", OPT_LIST, &only, false},
        {"budget-minutes", "M", "stop after this time; rerun to resume", OPT_REAL, &budget, false},
        {"dry-run", NULL, "print the commands without running them", OPT_FLAG, &j.dry, false},
        {"json", NULL, "one JSON object per stage", OPT_FLAG, &j.json, false},
        {"quiet", NULL, "print only failures", OPT_FLAG, &j.quiet, false},
    };
    /* the command to resume with is the one given, copied before parsing changes argv */
    cgs_command_text(j.again, sizeof j.again, self->name, argc, argv);
    cgs_status rc = cgs_options_parse(self, opts, CGS_COUNT(opts), argc, argv, &words);
    if (rc == CGS_OK && words.count == 0)
        rc = cgs_fail(CGS_EARG, "name a study; cgs reproduce list shows them");
    if (rc == CGS_OK && !strcmp(words.word[0], "list")) return print_list();
    if (rc == CGS_OK) {
        j.study.recipe = cgs_recipe_find(words.word[0]);
        group = cgs_recipe_group_find(words.word[0]);
        if (!j.study.recipe && !group)
            rc = cgs_fail(CGS_EARG, "unknown study \"%.40s\"; cgs reproduce list shows them",
                          words.word[0]);
    }
    if (rc == CGS_OK && words.count + only.count + 2 > WORDS_MAX)
        rc = cgs_fail(CGS_EARG, "more than %d settings", WORDS_MAX - 2);
    if (rc == CGS_OK) {
        const char *assignment[WORDS_MAX];
        char dir[256], some_episodes[32], some_updates[32];
        int n = 0;
        snprintf(some_episodes, sizeof some_episodes, "episodes=%d", episodes);
        snprintf(some_updates, sizeof some_updates, "updates=%d", updates);
        if (episodes > 0) assignment[n++] = some_episodes;
        if (updates >= 0) assignment[n++] = some_updates;
        for (int i = 1; i < words.count; i++) assignment[n++] = words.word[i];
        int stages = 0; /* the list takes every word up to the next option, settings too */
        for (int i = 0; i < only.count; i++) {
            if (strchr(only.word[i], '='))
                assignment[n++] = only.word[i];
            else
                only.word[stages++] = only.word[i];
        }
        snprintf(dir, sizeof dir, "runs/%.200s", words.word[0]);
        j.study.dir = out ? out : dir;
        j.study.preset = preset ? preset : first_preset(j.study.recipe, group);
        /* for hours beside other work */
        if (!strcmp(j.study.preset, cgs_preset_names[CGS_PRESET_LAPTOP]) && !j.dry &&
            nice(LAPTOP_NICE) < 0)
            errno = 0; /* it is only a courtesy */
        j.deadline = budget > 0 ? cgs_now() + 60 * budget : 0;
        j.study.seeds = seeds;
        j.study.assignment = assignment;
        j.study.assignments = n;
        j.study.only = (const char *const *)only.word;
        j.study.onlys = stages;
        rc = group ? reproduce_group(&j, group, j.study.dir) : reproduce(&j);
    }
    int code = cgs_exit_code(self, rc);
    if (code == 1) fprintf(stderr, "resume with: %s\n", j.again);
    return code;
}

const cgs_verb cmd_reproduce = {
    "reproduce",
    "NAME|list [--preset paper|small|brief|laptop|tiny] [--out DIR] [--only STAGE ...] [key=value "
    "...]",
    "a study of the paper, from data to report, stage by stage",
    "Each stage is a command of this program, which is printed and can be run by itself.  A\n"
    "finished stage is not rerun: after Ctrl-C, a crash or a reboot, rerun the command and it\n"
    "resumes.  cgs reproduce list shows the studies, their stages and what each table and\n"
    "figure of the paper needs.  Settings of a recipe (K=1,8,64 held=500 ...) can be changed;\n"
    "--dry-run prints the commands.\n"
    "  cgs reproduce demo\n"
    "  cgs reproduce tworooms --preset small --only budget-mppi held-out\n"
    "  cgs reproduce main --preset laptop\n"
    "  cgs reproduce pusht --seeds 3072,1,2 --budget-minutes 240\n"
    "  cgs reproduce dinowm --backbone dinov2_vits14_pretrain.pth",
    run};

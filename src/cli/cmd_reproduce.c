/* cmd_reproduce.c - cgs reproduce: a study of the paper, or a group of them; study_run.c runs their
 * stages. */
#define _GNU_SOURCE /* nice */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "cli/child.h"
#include "cli/command.h"
#include "cli/env_option.h"
#include "cli/study_run.h"
#include "cli/verbs.h"
#include "core/file.h"
#include "core/nearest.h"
#include "core/threads.h"
#include "study/expand.h"

enum { WORDS_MAX = 64, LAPTOP_NICE = 10, MEMBERS_MAX = 16, PATH_BYTES = 4096, JOBS_MAX = 256 };

typedef struct job {
    cgs_study_options study;
    cgs_study_run run;
    char again[4096]; /* the command to resume with */
    const char *base; /* folder of a group, or NULL */
    bool dry;
    /* a group has several, each in a folder of its own */
    cgs_study_member member[MEMBERS_MAX];
    char dir[MEMBERS_MAX][PATH_BYTES];
    int lock[MEMBERS_MAX];
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

/* ---- groups -------------------------------------------------------------------------- */

/* one page of all members that have a page of their own, as they come */
static cgs_status report_all(void *user) {
    const job *j = user;
    char *word[MEMBERS_MAX + 4], page[PATH_BYTES], log[PATH_BYTES], out[] = "--out",
                                                                    verb[] = "report";
    int n = 0;
    cgs_child_end end;
    CGS_TRY(cgs_path_join(page, sizeof page, j->base, "report.html"));
    CGS_TRY(cgs_path_join(log, sizeof log, j->base, "report.txt"));
    word[n++] = verb;
    for (int i = 0; i < j->run.members; i++) {
        char own[PATH_BYTES];
        CGS_TRY(cgs_path_join(own, sizeof own, j->dir[i], "report.html"));
        if (cgs_file_exists(own)) word[n++] = (char *)j->dir[i];
    }
    if (n == 1) return CGS_OK;
    word[n++] = out;
    word[n++] = page;
    word[n] = NULL;
    CGS_TRY(cgs_child_run(word, log, &end));
    if (end != CGS_CHILD_OK && !cgs_child_stopped())
        return cgs_fail(CGS_EIO, "no combined page; the reason is in %s", log);
    if (!j->run.quiet && !j->run.json) printf("\nall studies: open %s\n", page);
    return CGS_OK;
}

/* A study that cannot begin, because another program works in its folder, does not keep the others
 * of its group from running. */
static cgs_status begin_member(job *j, int i) {
    cgs_study *s = j->member[i].study;
    cgs_status rc = cgs_make_dirs(s->dir);
    if (rc == CGS_OK) rc = lock_folder(s->dir, &j->lock[i]);
    if (rc == CGS_OK) rc = cgs_study_begin(s);
    if (rc == CGS_OK || !j->run.group) return rc;
    fprintf(stderr, "cgs reproduce %s: %s\n", j->member[i].name, cgs_last_error());
    cgs_study_destroy(s);
    j->member[i].study = NULL;
    j->run.incomplete++;
    return CGS_OK;
}

static cgs_status run_members(job *j) {
    cgs_status rc = CGS_OK;
    if (j->dry) {
        cgs_study_print_plan(&j->run);
        return CGS_OK;
    }
    for (int i = 0; rc == CGS_OK && i < j->run.members; i++) rc = begin_member(j, i);
    cgs_child_catch();
    if (rc == CGS_OK) rc = cgs_study_run_all(&j->run);
    if (rc == CGS_OK && j->run.group) rc = report_all(j);
    if (rc == CGS_OK && j->run.incomplete && j->run.group)
        rc = cgs_fail(CGS_EIO, "%d of %d studies are not complete; rerun the command to retry",
                      j->run.incomplete, j->run.members);
    return rc;
}

/* names: of the studies, one or those of a group */
static cgs_status reproduce(job *j, char *const *name, int members) {
    const char *dir = j->study.dir;
    cgs_status rc = CGS_OK;
    for (int i = 0; rc == CGS_OK && i < members; i++) {
        j->lock[i] = -1;
        if (j->run.group) rc = cgs_path_join(j->dir[i], PATH_BYTES, dir, name[i]);
        j->study.recipe = cgs_recipe_find(name[i]);
        j->study.dir = j->run.group ? j->dir[i] : dir;
        j->member[i].name = name[i];
        j->run.members++;
        if (rc == CGS_OK) rc = cgs_study_create(&j->member[i].study, &j->study);
    }
    j->run.member = j->member;
    if (rc == CGS_OK) rc = run_members(j);
    for (int i = 0; i < j->run.members; i++) {
        if (j->lock[i] >= 0) close(j->lock[i]);
        cgs_study_destroy(j->member[i].study);
    }
    return rc;
}

static cgs_status reproduce_group(job *j, const cgs_recipe_group *g) {
    int members;
    if (j->study.data)
        return cgs_fail(
            CGS_EARG, "each study of %s has its own data; give --data to a single study", g->name);
    char **name = cgs_split_words(g->members, &members);
    if (!name) return cgs_fail(CGS_ENOMEM, "reproduce: no memory");
    j->base = j->study.dir;
    j->run.group = true;
    j->run.round_ended = report_all;
    j->run.user = j;
    cgs_status rc = members <= MEMBERS_MAX
                        ? reproduce(j, name, members)
                        : cgs_fail(CGS_EARG, "%s has more than %d studies", g->name, MEMBERS_MAX);
    for (int i = 0; i < members; i++) free(name[i]);
    free(name);
    return rc;
}

/* Several jobs share the cores; collecting data runs before most others and has them all. */
static void share_cores(job *j) {
    j->study.cores = j->study.threads;
    if (j->run.jobs < 2 || j->study.threads) return;
    int each = cgs_threads() / j->run.jobs;
    j->study.threads = each > 1 ? each : 1;
}

static cgs_status unknown_study(const char *name) {
    cgs_nearest near = cgs_nearest_to(name);
    for (int i = 0; i < cgs_recipe_count; i++) cgs_nearest_offer(&near, cgs_recipes[i].name);
    for (int i = 0; i < cgs_recipe_group_count; i++)
        cgs_nearest_offer(&near, cgs_recipe_groups[i].name);
    const char *hint = cgs_nearest_hint(&near);
    return cgs_fail(CGS_EARG, "unknown study \"%.40s\"%s", name,
                    *hint ? hint : "; cgs reproduce list shows them");
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
    job j = {.run.jobs = 1};
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
        {"threads", "N", "threads (one per core; of each job: its share)", OPT_THREADS,
         &j.study.threads, false},
        {"episodes", "N", "episodes to collect (by recipe)", OPT_COUNT, &episodes, false},
        {"updates", "N", "updates per training (by recipe; 0: ten epochs)", OPT_INT, &updates,
         false},
        {"seeds", "LIST", "training seeds, separated by commas (by recipe: 3072)", OPT_STR, &seeds,
         false},
        {"jobs", "N", "stages at a time, where they do not need each other (1)", OPT_INT,
         &j.run.jobs, false},
        {"data", "F.h5", "use this dataset instead of collecting one", OPT_STR, &j.study.data,
         false},
        {"env", "ID", "instead of the study's environment: another, or a plug-in's path", OPT_STR,
         &j.study.env, false},
        {"backbone", "FILE", "DINO-WM: weights of the frozen backbone instead of a stand-in",
         OPT_STR, &j.study.backbone, false},
        {"only", "STAGE ...", "run only these stages and those they need", OPT_LIST, &only, false},
        {"budget-minutes", "M", "stop after this time; rerun to resume", OPT_REAL, &budget, false},
        {"dry-run", NULL, "print the commands without running them", OPT_FLAG, &j.dry, false},
        {"json", NULL, "one JSON object per stage", OPT_FLAG, &j.run.json, false},
        {"quiet", NULL, "print only failures", OPT_FLAG, &j.run.quiet, false},
    };
    /* the command to resume with is the one given, copied before parsing changes argv */
    cgs_command_text(j.again, sizeof j.again, self->name, argc, argv);
    cgs_status rc = cgs_options_parse(self, opts, CGS_COUNT(opts), argc, argv, &words);
    if (rc == CGS_OK && j.study.env && strchr(j.study.env, '/')) j.study.plug_in = j.study.env;
    if (rc == CGS_OK) rc = cgs_env_option(&j.study.env);
    if (rc == CGS_OK && words.count == 0)
        rc = cgs_fail(CGS_EARG, "name a study; cgs reproduce list shows them");
    if (rc == CGS_OK && !strcmp(words.word[0], "list")) return print_list();
    if (rc == CGS_OK) {
        j.study.recipe = cgs_recipe_find(words.word[0]);
        group = cgs_recipe_group_find(words.word[0]);
        if (!j.study.recipe && !group) rc = unknown_study(words.word[0]);
    }
    if (rc == CGS_OK && (j.run.jobs < 1 || j.run.jobs > JOBS_MAX))
        rc = cgs_fail(CGS_EARG, "--jobs %d: 1 to %d stages at a time", j.run.jobs, JOBS_MAX);
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
        share_cores(&j);
        j.run.deadline = budget > 0 ? cgs_now() + 60 * budget : 0;
        j.study.seeds = seeds;
        j.study.assignment = assignment;
        j.study.assignments = n;
        j.study.only = (const char *const *)only.word;
        j.study.onlys = stages;
        char *own = words.word[0];
        rc = group ? reproduce_group(&j, group) : reproduce(&j, &own, 1);
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
    "With --jobs N stages that do not need each other run side by side; they share the cores, and\n"
    "a GPU if there is one.  Results are the same as with one at a time.\n"
    "  cgs reproduce demo\n"
    "  cgs reproduce tworooms --preset small --only budget-mppi held-out\n"
    "  cgs reproduce main --preset laptop\n"
    "  cgs reproduce pusht --seeds 3072,1,2 --budget-minutes 240\n"
    "  cgs reproduce dinowm --backbone dinov2_vits14_pretrain.pth",
    run};

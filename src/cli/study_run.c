/* study_run.c - see study_run.h.
 *
 * Each stage is a verb of this program, run as a child process with the command that is printed.  A
 * crash of one does not affect the others; a finished one is not rerun.  Stages that run side by
 * side write their result lines to parts, which are joined in the order of the list, so that
 * results do not depend on the number of jobs. */
#include "cli/study_run.h"

#include <cJSON.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/child.h"
#include "cli/command.h"
#include "cli/plain.h"
#include "cli/progress.h"
#include "core/file.h"
#include "core/threads.h"

enum { COMMAND_MAX = 8192, TEXT_MAX = 512 };

typedef enum item_state { WAITS, RUNS, ENDED, FAILED, SKIPPED } item_state;

/* a stage of a member, in the order in which they run */
typedef struct item {
    const cgs_study_member *member;
    cgs_stage *stage;
    int number, total; /* among those of its member */
    item_state state;
    bool ran; /* in this run */
    cgs_child child;
    double start;
} item;

typedef struct runner {
    cgs_study_run *o;
    item *item; /* (items) */
    int items, running;
    bool stopped, timed_out;
    cgs_status rc;
    cgs_progress bar; /* where several run at a time */
    double start;
} runner;

/* ---- the order ----------------------------------------------------------------------- */

static int rounds_of(const cgs_study_member *m) { return m->study ? m->study->seed_count : 0; }

static int most_rounds(const cgs_study_run *o) {
    int most = 0;
    for (int i = 0; i < o->members; i++)
        if (rounds_of(&o->member[i]) > most) most = rounds_of(&o->member[i]);
    return most;
}

static void add_items(runner *r, const cgs_study_member *m, int round) {
    cgs_study *s = m->study;
    int number = 0, total = 0;
    for (int i = 0; s && i < s->count; i++) total += s->stage[i].selected;
    for (int i = 0; s && i < s->count; i++) {
        if (!s->stage[i].selected) continue;
        number++;
        if (s->stage[i].round != round) continue;
        r->item[r->items++] =
            (item){.member = m, .stage = &s->stage[i], .number = number, .total = total};
    }
}

static cgs_status list_items(runner *r, cgs_study_run *o) {
    size_t n = 1;
    *r = (runner){.o = o, .start = cgs_now()};
    for (int i = 0; i < o->members; i++)
        n += o->member[i].study ? (size_t)o->member[i].study->count : 0;
    r->item = calloc(n, sizeof *r->item);
    if (!r->item) return cgs_fail(CGS_ENOMEM, "study: no memory for its stages");
    for (int round = 0; round < most_rounds(o); round++)
        for (int i = 0; i < o->members; i++) add_items(r, &o->member[i], round);
    return CGS_OK;
}

static bool over(const item *it) { return it->state != WAITS && it->state != RUNS; }

/* an item's stage, by its place in the list of its study; NULL: not selected */
static const item *find(const runner *r, const cgs_study *s, int stage) {
    for (int i = 0; i < r->items; i++)
        if (r->item[i].stage == &s->stage[stage]) return &r->item[i];
    return NULL;
}

/* have all of these ended? */
static bool all_over(const runner *r, const cgs_study *s, const int *stage, int count) {
    for (int i = 0; i < count; i++) {
        const item *it = find(r, s, stage[i]);
        if (it && !over(it)) return false;
    }
    return true;
}

static bool is_ready(const runner *r, const item *it) {
    const cgs_study *s = it->member->study;
    const cgs_stage *g = it->stage;
    return it->state == WAITS && all_over(r, s, g->needs, g->need_count) &&
           all_over(r, s, g->after, g->after_count);
}

/* A stage with "*" takes whatever exists and waits for nothing. */
static bool needs_met(const item *it) {
    const cgs_stage *g = it->stage;
    bool all = !strcmp(g->row->needs, "*");
    for (int i = 0; !all && i < g->need_count; i++)
        if (!it->member->study->stage[g->needs[i]].finished) return false;
    return true;
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

/* as it would be typed; out: (COMMAND_MAX) */
static const char *command_of(const cgs_stage *g, char *out) {
    return cgs_command_text(out, COMMAND_MAX, g->word[0], g->words - 1, g->word + 1);
}

static bool alone(const runner *r) { return r->o->jobs == 1; }

static bool speaks(const runner *r) { return !r->o->quiet && !r->o->json; }

/* How long what is left takes: as expected, times how much longer than expected it took so far. */
static double minutes_left(const runner *r) {
    double left = 0, expected = 0, elapsed = 0;
    for (int i = 0; i < r->items; i++) {
        const cgs_stage *g = r->item[i].stage;
        if (g->spared) continue;
        if (!g->finished && !over(&r->item[i])) left += g->minutes;
        if (g->finished && g->minutes > 0 && g->seconds > 0) {
            expected += g->minutes;
            elapsed += g->seconds / 60;
        }
    }
    return expected > 2 ? left * elapsed / expected / r->o->jobs : left;
}

static void print_stage(const runner *r, const item *it) {
    double left = minutes_left(r);
    char text[40];
    printf("[%2d/%d] ", it->number, it->total);
    if (r->o->group && !alone(r)) printf("%s: ", it->member->name);
    printf("%s", it->stage->name);
    snprintf(text, sizeof text, left < 90 ? "%.0f min" : "%.1f h", left < 90 ? left : left / 60);
    if (left > 0) printf("  (about %s left)", text);
    printf("\n");
}

/* a member of a group, and which of its seeds, where that changes */
static void print_heading(const runner *r, const item *it) {
    const item *before = it > r->item ? it - 1 : NULL;
    bool same = before && before->member == it->member && before->stage->round == it->stage->round;
    if (!r->o->group || same) return;
    int seeds = rounds_of(it->member);
    printf("%s%s", before ? "\n" : "", it->member->name);
    if (seeds > 1) printf(", training seed %d of %d", it->stage->round + 1, seeds);
    printf("\n");
}

static void print_found(const item *it, const char *how) {
    char took[32];
    clock_text(took, sizeof took, it->stage->seconds);
    printf("        %s%s (%s)\n", how, *it->stage->found ? it->stage->found : "finished", took);
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
    cJSON_free(text);
    cJSON_Delete(j);
}

/* beside the log of a stage that runs side by side with others; out: (4096) */
static const char *errors_of(const cgs_stage *g, char *out) {
    snprintf(out, 4096, "%.*s.err", (int)(strlen(g->log) - strlen(".txt")), g->log);
    return out;
}

/* the last line of what a stage wrote to its errors */
static void print_reason(const cgs_stage *g) {
    char path[4096], *text;
    size_t bytes;
    if (cgs_read_file(errors_of(g, path), (size_t)1 << 26, &text, &bytes) != CGS_OK) return;
    while (bytes && (text[bytes - 1] == '\n' || text[bytes - 1] == '\r')) text[--bytes] = '\0';
    const char *last = strrchr(text, '\n');
    fputs("        ", stderr);
    cgs_print_plain(last ? last + 1 : text, stderr);
    fputc('\n', stderr);
    free(text);
}

/* it leaves the terminal while lines are printed, and goes on counting from the beginning */
static void begin_bar(runner *r) {
    if (alone(r)) return;
    cgs_progress_begin(&r->bar, "stages", 1, !speaks(r));
    r->bar.start = r->start;
}

static void show_bar(runner *r) {
    double done = 0, total = 0;
    char note[TEXT_MAX] = "";
    for (int i = 0; i < r->items; i++) {
        const item *it = &r->item[i];
        double minutes = it->stage->minutes > 0 ? it->stage->minutes : 1;
        if (over(it) && !it->ran) continue;
        total += minutes;
        if (over(it)) done += minutes;
        if (it->state != RUNS || *note) continue;
        snprintf(note, sizeof note, "%.100s", it->stage->name);
        if (r->running > 1)
            snprintf(note, sizeof note, "%.100s and %d more", it->stage->name, r->running - 1);
    }
    r->bar.total = total;
    cgs_progress_update(&r->bar, done, note);
}

/* ---- running ------------------------------------------------------------------------- */

/* result lines, in the order of the list up to the first stage that has not ended; all: of those
 * behind it, too */
static cgs_status join_parts(runner *r, const cgs_study *s, bool all) {
    for (int i = 0; s && i < s->count; i++) {
        const item *it = find(r, s, i);
        if (it && !over(it) && !all) return CGS_OK;
        if (it) CGS_TRY(cgs_stage_join_part(it->stage));
    }
    return CGS_OK;
}

/* the last of a round of a member of a group that has several */
static bool ends_round(const runner *r, const item *it) {
    for (int i = 0; i < r->items; i++) {
        const item *o = &r->item[i];
        if (o->member == it->member && o->stage->round == it->stage->round && !over(o))
            return false;
    }
    return r->o->group && rounds_of(it->member) > 1;
}

static cgs_status close_item(runner *r, item *it, item_state state) {
    it->state = state;
    if (r->o->json && state != SKIPPED)
        print_json(it->stage, state == ENDED ? "finished" : "unfinished");
    fflush(stdout);
    CGS_TRY(join_parts(r, it->member->study, false));
    return r->o->round_ended && ends_round(r, it) ? r->o->round_ended(r->o->user) : CGS_OK;
}

static cgs_status start_child(runner *r, item *it) {
    cgs_stage *g = it->stage;
    char command[COMMAND_MAX], errors[4096];
    command_of(g, command);
    if (speaks(r) && alone(r)) printf("        %s\n", command);
    fflush(stdout);
    CGS_TRY(cgs_stage_started(it->member->study, g, command));
    it->start = cgs_now();
    it->ran = true;
    if (alone(r)) return cgs_child_start(&it->child, g->word, g->log, NULL);
    char **word = calloc((size_t)g->words + 1, sizeof *word);
    if (!word) return cgs_fail(CGS_ENOMEM, "study: no memory for a command");
    for (int i = 0; i < g->words; i++) {
        bool lines = g->part && !strcmp(g->word[i], g->output);
        word[i] = lines ? g->part : g->word[i];
    }
    cgs_status rc = g->part ? cgs_stage_open_part(it->member->study, g) : CGS_OK;
    if (rc == CGS_OK) rc = cgs_child_start(&it->child, word, g->log, errors_of(g, errors));
    free(word);
    return rc;
}

/* it is done before, cannot be done, or begins */
static cgs_status begin(runner *r, item *it) {
    cgs_stage *g = it->stage;
    cgs_stage_do todo;
    char found[CGS_FOUND_MAX], command[COMMAND_MAX];
    if (speaks(r) && alone(r)) print_heading(r, it);
    if (speaks(r) && alone(r)) print_stage(r, it);
    if (!needs_met(it)) {
        if (!r->o->quiet && alone(r))
            fprintf(stderr, "        skipped: a stage that it needs failed\n");
        return close_item(r, it, SKIPPED);
    }
    CGS_TRY(cgs_stage_state(g, &todo));
    if (todo == CGS_STAGE_RUN) {
        it->state = RUNS;
        r->running++;
        return start_child(r, it);
    }
    if (todo == CGS_STAGE_ADOPT) {
        cgs_stage_found(g, found);
        CGS_TRY(cgs_stage_finished(it->member->study, g, command_of(g, command), 0, found));
    }
    if (speaks(r) && !alone(r)) print_stage(r, it);
    if (speaks(r)) print_found(it, "done before: ");
    return close_item(r, it, ENDED);
}

/* a success without its output is a failure; result lines are in its part */
static bool has_output(const runner *r, const item *it) {
    const cgs_stage *g = it->stage;
    const char *path = !alone(r) && g->part ? g->part : g->output;
    if (cgs_file_exists(path)) return true;
    fprintf(stderr, "cgs reproduce: %s did not write %s\n", g->name, path);
    return false;
}

static cgs_status finish(runner *r, item *it, cgs_child_end end) {
    cgs_stage *g = it->stage;
    char found[CGS_FOUND_MAX], command[COMMAND_MAX], errors[4096];
    r->running--;
    if (end == CGS_CHILD_OK && !has_output(r, it)) end = CGS_CHILD_FAILED;
    if (!alone(r) && end != CGS_CHILD_FAILED) unlink(errors_of(g, errors));
    if (end == CGS_CHILD_STOPPED || end == CGS_CHILD_TIMEOUT) {
        it->state = WAITS; /* for the next run */
        if (r->o->json) print_json(g, "unfinished");
        return CGS_OK;
    }
    command_of(g, command);
    if (end == CGS_CHILD_OK) {
        cgs_stage_found(g, found);
        CGS_TRY(cgs_stage_finished(it->member->study, g, command, cgs_now() - it->start, found));
    }
    if (!alone(r)) cgs_progress_end(&r->bar);
    if (speaks(r) && !alone(r)) {
        print_stage(r, it);
        printf("        %s\n", command);
    }
    if (end == CGS_CHILD_OK && speaks(r)) print_found(it, "");
    fflush(stdout);
    if (end == CGS_CHILD_FAILED && !r->o->quiet) {
        if (!alone(r)) print_reason(g);
        fprintf(stderr, "        failed; its log is %s\n", g->log);
    }
    begin_bar(r);
    return close_item(r, it, end == CGS_CHILD_OK ? ENDED : FAILED);
}

/* one look at every child: ended ones are closed, and all are asked to stop where it is time */
static cgs_status look(runner *r) {
    bool ask = cgs_child_signalled(), ended;
    double deadline = r->o->deadline;
    r->stopped = r->stopped || cgs_child_stopped();
    r->timed_out = r->timed_out || (deadline > 0 && cgs_now() > deadline);
    for (int i = 0; i < r->items; i++) {
        item *it = &r->item[i];
        cgs_child_end end;
        if (it->state != RUNS) continue;
        if (ask) cgs_child_stop(&it->child);
        if (r->timed_out || r->rc != CGS_OK) cgs_child_time_out(&it->child);
        CGS_TRY(cgs_child_look(&it->child, &ended, &end));
        if (ended) CGS_TRY(finish(r, it, end));
    }
    return CGS_OK;
}

/* the first that can begin; NULL: none, or none may */
static item *next_item(runner *r) {
    if (r->running >= r->o->jobs || r->stopped || r->timed_out || r->rc != CGS_OK) return NULL;
    for (int i = 0; i < r->items; i++)
        if (is_ready(r, &r->item[i])) return &r->item[i];
    return NULL;
}

static void keep(runner *r, cgs_status rc) {
    if (r->rc == CGS_OK) r->rc = rc;
}

/* After an error that no stage made, such as a full disk, the children are asked to stop, and
 * waited for. */
static void run_items(runner *r) {
    if (r->o->jobs > 1) cgs_progress_begin(&r->bar, "stages", 1, r->o->quiet || r->o->json);
    keep(r, look(r));
    for (;;) {
        item *it = next_item(r);
        if (it) {
            keep(r, begin(r, it));
        } else if (r->running) {
            cgs_child_pause();
            if (!alone(r)) show_bar(r);
        } else {
            break;
        }
        keep(r, look(r));
    }
    cgs_progress_end(&r->bar);
}

/* ---- the end ------------------------------------------------------------------------- */

typedef struct tally {
    int total, done, ran, failed, skipped;
    const item *first; /* that is left to do */
} tally;

static tally count(const runner *r, const cgs_study_member *m) {
    tally t = {0};
    for (int i = 0; i < r->items; i++) {
        const item *it = &r->item[i];
        if (m && it->member != m) continue;
        t.total++;
        t.ran += it->state == ENDED && it->ran;
        t.done += it->state == ENDED && !it->ran;
        t.failed += it->state == FAILED;
        t.skipped += it->state == SKIPPED;
        if (it->state == WAITS && !t.first) t.first = it;
    }
    return t;
}

static cgs_status close_member(runner *r, const cgs_study_member *m, double seconds) {
    tally t = count(r, m);
    char took[32], page[4096];
    clock_text(took, sizeof took, seconds);
    if (t.failed) {
        r->o->incomplete++;
        (void)cgs_fail(CGS_EIO,
                       "%d of %d stages failed, %d were skipped; rerun the command to retry",
                       t.failed, t.total, t.skipped);
        if (r->o->group) fprintf(stderr, "cgs reproduce %s: %s\n", m->name, cgs_last_error());
        return CGS_EIO;
    }
    if (!speaks(r)) return CGS_OK;
    printf("\n%s: %d of %d stages done now, %d before, in %s\n", m->study->dir, t.ran, t.total,
           t.done, took);
    if (cgs_path_join(page, sizeof page, m->study->dir, "report.html") == CGS_OK &&
        cgs_file_exists(page))
        printf("open %s\n", page);
    return CGS_OK;
}

static cgs_status say_where(const runner *r) {
    tally t = count(r, NULL);
    const char *member = r->o->group && t.first ? t.first->member->name : "";
    return cgs_fail(CGS_EIO,
                    "%s at \"%.60s%s%.120s\", %d of %d stages are finished; rerun the command to "
                    "resume",
                    r->stopped ? "stopped" : "the time budget is used up", member,
                    *member ? ": " : "", t.first ? t.first->stage->name : "", t.done + t.ran,
                    t.total);
}

/* lines and journals in their order, whatever came between */
static cgs_status put_in_order(runner *r) {
    cgs_status rc = CGS_OK;
    for (int i = 0; i < r->o->members; i++) {
        const cgs_study *s = r->o->member[i].study;
        if (rc == CGS_OK) rc = join_parts(r, s, true);
        if (rc == CGS_OK && s) rc = cgs_study_sort_journal(s);
    }
    return rc;
}

cgs_status cgs_study_run_all(cgs_study_run *o) {
    runner r;
    cgs_status rc = list_items(&r, o);
    if (rc == CGS_OK) {
        run_items(&r);
        rc = r.rc;
        if (rc == CGS_OK) rc = put_in_order(&r);
    }
    if (rc == CGS_OK && count(&r, NULL).first) {
        rc = say_where(&r);
    } else if (rc == CGS_OK) {
        for (int i = 0; i < o->members; i++) {
            cgs_status end =
                o->member[i].study ? close_member(&r, &o->member[i], cgs_now() - r.start) : CGS_OK;
            if (end != CGS_OK && !o->group) rc = end;
        }
    }
    free(r.item);
    return rc;
}

void cgs_study_print_plan(const cgs_study_run *o) {
    runner r;
    cgs_study_run copy = *o;
    if (list_items(&r, &copy) != CGS_OK) return;
    for (int i = 0; i < r.items; i++) {
        const item *it = &r.item[i];
        char command[COMMAND_MAX];
        print_heading(&r, it);
        printf("[%2d/%d] %s  (%s)\n        %s\n", it->number, it->total, it->stage->name,
               it->stage->hash, command_of(it->stage, command));
    }
    free(r.item);
}

/* cmd_watch.c - cgs watch: shows a training run while it goes on.
 *
 * Reads metrics.jsonl as it grows and does not touch the run, which may be on another machine with
 * the same disk.  In the folder of a study it shows the training with the newest metrics. */
#include <cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/interrupt.h"
#include "cli/plain.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "cli/view.h"
#include "core/file.h"

enum { LINE_MAX_BYTES = 1 << 16 };

typedef struct reader {
    char path[4096]; /* of metrics.jsonl */
    long offset;     /* read so far      */
    cgs_view view;
} reader;

static double number(const cJSON *j, const char *key) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(j, key);
    return cJSON_IsNumber(v) ? v->valuedouble : NAN;
}

static void take_line(cgs_view *view, const char *line) {
    cJSON *j = cJSON_Parse(line);
    const cJSON *valid = cJSON_GetObjectItemCaseSensitive(j, "valid");
    double step = number(j, "step"), total = number(j, "total"), memory = number(j, "memory_mib");
    if (valid) {
        cgs_validation v = {.cosine = number(valid, "cosine")};
        cgs_view_validation(view, &v);
    } else if (step > 0) {
        cgs_step_info i = {.step = (uint64_t)step,
                           .total = total > 0 ? (uint64_t)total : 0,
                           .loss = number(j, "loss"),
                           .frames_per_s = number(j, "frames_per_s"),
                           .seconds = number(j, "seconds")};
        for (int k = 0; k < CGS_TERMS; k++) i.term[k] = number(j, cgs_term_names[k]);
        if (isnan(i.seconds)) i.seconds = 0;
        cgs_view_step(view, &i, isnan(memory) ? 0 : memory * (1 << 20));
        cgs_learning_line(&view->check, j);
    }
    cJSON_Delete(j);
}

/* reads what was appended; a file that shrank was resumed from a checkpoint and is reread */
static void read_more(reader *r) {
    static char line[LINE_MAX_BYTES];
    struct stat st;
    FILE *f = fopen(r->path, "rb");
    if (!f) return;
    if (fstat(fileno(f), &st) == 0 && st.st_size < r->offset) {
        int drawn = r->view.drawn;
        char title[sizeof r->view.title];
        memcpy(title, r->view.title, sizeof title);
        cgs_view_begin(&r->view, title);
        r->view.drawn = drawn;
        r->offset = 0;
    }
    if (fseek(f, r->offset, SEEK_SET) == 0) {
        while (fgets(line, sizeof line, f)) {
            size_t n = strlen(line);
            if (line[n - 1] != '\n') break; /* still being written */
            take_line(&r->view, line);
            r->offset += (long)n;
        }
    }
    fclose(f);
}

/* ---- which run ----------------------------------------------------------------------- */

/* DIR itself, or the training under DIR/models that was written to last */
static bool find_run(const char *dir, char *path, size_t size, bool *study) {
    char models[4096], some[4096];
    struct stat st;
    time_t newest = 0;
    *study = false;
    if (cgs_path_join(path, size, dir, "metrics.jsonl") == CGS_OK && cgs_file_exists(path))
        return true;
    if (cgs_path_join(models, sizeof models, dir, "models") != CGS_OK) return false;
    DIR *d = opendir(models);
    if (!d) return false;
    *study = true;
    bool any = false;
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        int n = snprintf(some, sizeof some, "%s/%s/metrics.jsonl", models, e->d_name);
        if (n >= (int)sizeof some || stat(some, &st) != 0 || st.st_mtime < newest) continue;
        newest = st.st_mtime;
        snprintf(path, size, "%s", some);
        any = true;
    }
    closedir(d);
    return any;
}

static bool is_study(const char *dir) {
    char path[4096];
    return cgs_path_join(path, sizeof path, dir, "study.json") == CGS_OK && cgs_file_exists(path);
}

/* cgs reproduce holds the lock of its folder while it works */
static bool at_work(const char *dir) {
    char path[4096];
    if (cgs_path_join(path, sizeof path, dir, ".lock") != CGS_OK) return false;
    int fd = open(path, O_RDONLY);
    if (fd < 0) return false;
    bool locked = flock(fd, LOCK_SH | LOCK_NB) != 0;
    close(fd);
    return locked;
}

/* the stage that finished last, below the image */
static void last_stage(const char *dir, char *out, size_t size) {
    char path[4096], tail[4096];
    out[0] = '\0';
    if (cgs_path_join(path, sizeof path, dir, "stages.jsonl") != CGS_OK) return;
    FILE *f = fopen(path, "rb");
    if (!f) return;
    fseek(f, 0, SEEK_END);
    long end = ftell(f), from = end > (long)sizeof tail - 1 ? end - (long)sizeof tail + 1 : 0;
    fseek(f, from, SEEK_SET);
    size_t n = fread(tail, 1, sizeof tail - 1, f);
    fclose(f);
    while (n && tail[n - 1] == '\n') n--;
    tail[n] = '\0';
    char *line = strrchr(tail, '\n');
    cJSON *j = cJSON_Parse(line ? line + 1 : tail);
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(j, "stage");
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(j, "found");
    if (cJSON_IsString(name))
        snprintf(out, size, "last: %.60s: %.160s", name->valuestring,
                 cJSON_IsString(found) ? found->valuestring : "");
    for (char *p = out; *p; p++) /* a file must not send control codes to the terminal */
        if ((unsigned char)*p < 32 || (unsigned char)*p > 126) *p = '?';
    cJSON_Delete(j);
}

static void look(reader *r, const char *dir, bool *found, bool *study) {
    char path[4096];
    *found = find_run(dir, path, sizeof path, study);
    if (!*found) return;
    if (strcmp(path, r->path) != 0) {
        char title[128], *slash;
        memcpy(r->path, path, sizeof path);
        slash = strrchr(path, '/');
        *slash = '\0';
        slash = strrchr(path, '/');
        snprintf(title, sizeof title, "%.100s", slash ? slash + 1 : path);
        for (char *p = title; *p; p++)
            if ((unsigned char)*p < 32 || (unsigned char)*p > 126) *p = '?';
        int drawn = r->view.drawn;
        cgs_view_begin(&r->view, title);
        r->view.drawn = drawn;
        r->offset = 0;
    }
    read_more(r);
    if (*study) last_stage(dir, r->view.footer, sizeof r->view.footer);
}

static cgs_status watch(const char *dir, bool once, bool quiet) {
    static reader r; /* a few series of fixed size: too much for a stack */
    struct stat st;
    bool terminal = isatty(STDOUT_FILENO), found = false, study = false;
    if (stat(dir, &st) != 0) return cgs_fail(CGS_EIO, "%s: %s", dir, strerror(errno));
    if (quiet || (!terminal && !once)) return CGS_OK;
    cgs_catch_interrupt();
    bool waiting = false;
    while (!cgs_interrupted()) {
        int width, height;
        look(&r, dir, &found, &study);
        if (once && !found)
            return cgs_fail(CGS_EIO, "%s: no metrics.jsonl, here or under models/", dir);
        cgs_terminal_size(STDOUT_FILENO, &width, &height);
        if (found)
            cgs_view_draw(&r.view, stdout, width, height, cgs_terminal_utf8());
        else if (!waiting)
            printf("%s: no training yet; waiting (Ctrl-C ends)\n", dir);
        waiting = true;
        fflush(stdout);
        bool complete = found && r.view.total && r.view.step >= r.view.total;
        bool over = is_study(dir) ? !at_work(dir) : complete;
        if (once || (over && found)) break;
        for (int i = 0; i < 10 && !cgs_interrupted(); i++) {
            struct timespec pause = {.tv_nsec = 100 * 1000 * 1000};
            nanosleep(&pause, NULL);
        }
    }
    return CGS_OK;
}

static int run(int argc, char **argv, const cgs_verb *self) {
    bool once = false, quiet = false;
    cgs_words words;
    const cgs_opt opts[] = {
        {"once", NULL, "draw once, also when the output is not a terminal", OPT_FLAG, &once, false},
        {"quiet", NULL, "say nothing", OPT_FLAG, &quiet, false},
    };
    cgs_status rc = cgs_options_parse(self, opts, CGS_COUNT(opts), argc, argv, &words);
    if (rc == CGS_OK && words.count != 1)
        rc = cgs_fail(CGS_EARG, "needs one folder, got %d", words.count);
    if (rc == CGS_OK) rc = watch(words.word[0], once, quiet);
    return cgs_exit_code(self, rc);
}

const cgs_verb cmd_watch = {
    "watch", "DIR [--once]", "shows a running training: sparklines in the terminal",
    "DIR is a run directory of cgs train or the folder of cgs reproduce.  Draws once per second\n"
    "until the run ends or Ctrl-C; the run itself is not touched.  Silent when the output is not\n"
    "a terminal.  cgs train --watch draws the same instead of its progress bar.",
    run};

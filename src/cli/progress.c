/* progress.c - the progress bar and the interrupt flag. */
#define _GNU_SOURCE
#include "cli/progress.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/plain.h"
#include "core/environment.h"
#include "core/log.h"
#include "core/threads.h"

enum { WIDTH = 28 };

void cgs_progress_begin(cgs_progress *p, const char *label, double total, bool quiet) {
    *p = (cgs_progress){.label = label,
                        .total = total,
                        .start = cgs_now(),
                        .last_draw = -1e9,
                        .on = !quiet && isatty(STDERR_FILENO)};
}

static void clock_text(char *out, size_t size, double seconds) {
    long s = seconds < 0 ? 0 : (long)(seconds + 0.5);
    if (s >= 3600)
        snprintf(out, size, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(out, size, "%ld:%02ld", s / 60, s % 60);
}

void cgs_progress_update(cgs_progress *p, double done, const char *note) {
    double now = cgs_now();
    if (!p->on || (now - p->last_draw < 0.1 && done < p->total)) return;
    p->last_draw = now;
    double share = p->total > 0 ? done / p->total : 0;
    share = share < 0 ? 0 : share > 1 ? 1 : share;
    char bar[WIDTH + 1], left[32] = "?";
    int filled = (int)(share * WIDTH);
    memset(bar, '.', WIDTH);
    memset(bar, '#', (size_t)filled);
    bar[WIDTH] = '\0';
    if (share > 0) clock_text(left, sizeof left, (now - p->start) * (1 - share) / share);
    fprintf(stderr, "\r\033[K%s [%s] %3.0f%% %s left  %s", p->label, bar, 100 * share, left,
            note ? note : "");
    fflush(stderr);
}

void cgs_progress_end(cgs_progress *p) {
    if (p->on) fprintf(stderr, "\r\033[K");
    p->on = false;
}

bool cgs_phases_update(cgs_phases *p, const char *phase, double done, double total,
                       const char *note) {
    if (p->phase != phase) {
        cgs_progress_end(&p->bar);
        cgs_progress_begin(&p->bar, phase, total, p->quiet);
        p->phase = phase;
    }
    cgs_progress_update(&p->bar, done, note);
    return !cgs_interrupted();
}

bool cgs_on_phase(void *phases, const char *phase, double done, double total) {
    return cgs_phases_update(phases, phase, done, total, NULL);
}

static volatile sig_atomic_t interrupted;

static void on_signal(int sig) {
    if (interrupted) {
        signal(sig, SIG_DFL);
        raise(sig);
    }
    interrupted = 1;
}

bool cgs_wants_debug(void) {
    const char *level = cgs_environment(CGS_ENV_LOG);
    return level && !strcmp(level, "debug");
}

static void show_line(void *user, int level, const char *line) {
    (void)user;
    if (level < CGS_INFO && !cgs_wants_debug()) return;
    fputs("cgs: ", stderr);
    cgs_print_plain(line, stderr);
    fputc('\n', stderr);
}

void cgs_show_log(void) { cgs_set_log(show_line, NULL); }

void cgs_catch_interrupt(void) {
    struct sigaction a = {.sa_handler = on_signal};
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
}

bool cgs_interrupted(void) { return interrupted; }

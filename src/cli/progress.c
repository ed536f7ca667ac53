/* progress.c - see progress.h. */
#define _GNU_SOURCE
#include "cli/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/interrupt.h"
#include "cli/plain.h"
#include "cli/terminal.h"
#include "core/environment.h"
#include "core/log.h"
#include "core/threads.h"

enum { BAR = 28, LINE = 400 };

/* seconds between lines where there is no terminal; 0: none */
static double seconds_between(void) {
    const char *given = cgs_environment(CGS_ENV_PROGRESS);
    double s = given ? strtod(given, NULL) : 30;
    return s > 0 ? s : 0;
}

void cgs_progress_begin(cgs_progress *p, const char *label, double total, bool quiet) {
    bool bar = isatty(STDERR_FILENO);
    *p = (cgs_progress){.label = label,
                        .total = total,
                        .start = cgs_now(),
                        .last_draw = -1e9,
                        .every = bar ? 0.1 : seconds_between(),
                        .bar = bar};
    p->on = !quiet && p->every > 0;
    if (!bar) p->last_draw = p->start; /* what is done at once needs no line */
}

static void clock_text(char *out, size_t size, double seconds) {
    long s = seconds < 0 ? 0 : (long)(seconds + 0.5);
    if (s >= 3600)
        snprintf(out, size, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(out, size, "%ld:%02ld", s / 60, s % 60);
}

/* The note gives way first, then the bar: a line that is wrapped would scroll. */
static void draw_bar(const cgs_progress *p, double share, const char *left, const char *note) {
    char line[LINE], bar[BAR + 1];
    int width, height;
    cgs_terminal_size(STDERR_FILENO, &width, &height);
    if (width < 1) width = 80;
    int rest = (int)strlen(p->label) + (int)strlen(left) + (int)strlen(" [] 100%  left");
    int cells = width - 1 - rest < BAR ? width - 1 - rest : BAR;
    cells = cells < 0 ? 0 : cells;
    int filled = (int)(share * cells);
    memset(bar, '.', BAR);
    memset(bar, '#', (size_t)filled);
    bar[cells] = '\0';
    snprintf(line, sizeof line, "%s [%s] %3.0f%% %s left%s%s", p->label, bar, 100 * share, left,
             *note ? "  " : "", note);
    size_t end = strlen(line) < (size_t)width ? strlen(line) : (size_t)width - 1;
    while (end > 0 && ((unsigned char)line[end] & 0xC0) == 0x80) end--; /* whole characters */
    line[end] = '\0';
    fputs("\r\033[K", stderr);
    cgs_print_plain(line, stderr);
}

void cgs_progress_update(cgs_progress *p, double done, const char *note) {
    double now = cgs_now(), share = p->total > 0 ? done / p->total : 0;
    bool ended = done >= p->total;
    /* the end of what took no time is no news either */
    if (!p->on || (now - p->last_draw < p->every && !(ended && p->bar))) return;
    p->last_draw = now;
    share = share < 0 ? 0 : share > 1 ? 1 : share;
    char left[32] = "?";
    if (!note) note = "";
    if (share > 0) clock_text(left, sizeof left, (now - p->start) * (1 - share) / share);
    if (p->bar)
        draw_bar(p, share, left, note);
    else
        fprintf(stderr, "%s: %.0f%%, %s left%s%s\n", p->label, 100 * share, left, *note ? ", " : "",
                note);
    fflush(stderr);
}

void cgs_progress_end(cgs_progress *p) {
    if (p->on && p->bar) fputs("\r\033[K", stderr);
    p->on = false;
}

bool cgs_phases_update(cgs_phases *p, const char *phase, double done, double total,
                       const char *note) {
    if (p->phase != phase) {
        double before = p->bar.last_draw;
        cgs_progress_end(&p->bar);
        cgs_progress_begin(&p->bar, phase, total, p->quiet);
        if (p->phase && !p->bar.bar) p->bar.last_draw = before; /* many short phases are long */
        p->phase = phase;
    }
    cgs_progress_update(&p->bar, done, note);
    return !cgs_interrupted();
}

bool cgs_on_phase(void *phases, const char *phase, double done, double total) {
    return cgs_phases_update(phases, phase, done, total, NULL);
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

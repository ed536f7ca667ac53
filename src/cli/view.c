/* view.c - see view.h. */
#define _POSIX_C_SOURCE 200809L
#include "cli/view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- series -------------------------------------------------------------------------- */

void cgs_series_add(cgs_series *s, double v) {
    if (!isfinite(v)) return;
    s->last = v;
    if (s->per == 0) s->per = 1;
    if (s->count == 0 || s->n[s->count - 1] == s->per) {
        if (s->count == CGS_SERIES_MAX) { /* full: merge pairs of buckets */
            for (int i = 0; i < CGS_SERIES_MAX / 2; i++) {
                s->sum[i] = s->sum[2 * i] + s->sum[2 * i + 1];
                s->n[i] = s->n[2 * i] + s->n[2 * i + 1];
            }
            s->count /= 2;
            s->per *= 2;
        }
        s->sum[s->count] = 0;
        s->n[s->count++] = 0;
    }
    s->sum[s->count - 1] += v;
    s->n[s->count - 1]++;
}

/* the mean of the buckets under one cell */
static double cell(const cgs_series *s, int at, int width) {
    int from = (int)((long)at * s->count / width), to = (int)((long)(at + 1) * s->count / width);
    double sum = 0;
    long n = 0;
    if (to == from) to = from + 1;
    for (int i = from; i < to; i++) {
        sum += s->sum[i];
        n += s->n[i];
    }
    return n ? sum / (double)n : NAN;
}

void cgs_series_draw(const cgs_series *s, int width, bool utf8, char *out) {
    static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char plain[] = "_.-=+*%#";
    int cells = width < s->count ? width : s->count;
    double low = INFINITY, high = -INFINITY;
    out[0] = '\0';
    for (int i = 0; i < cells; i++) {
        low = fmin(low, cell(s, i, cells));
        high = fmax(high, cell(s, i, cells));
    }
    bool logs = low > 0 && high > 8 * low;
    size_t used = 0;
    for (int i = 0; i < cells; i++) {
        double v = cell(s, i, cells);
        double share =
            high > low ? (logs ? log(v / low) / log(high / low) : (v - low) / (high - low)) : 0.5;
        int level = (int)(share * 8);
        level = level < 0 ? 0 : level > 7 ? 7 : level;
        used += (size_t)(utf8 ? sprintf(out + used, "%s", bars[level])
                              : sprintf(out + used, "%c", plain[level]));
    }
}

/* ---- the view ------------------------------------------------------------------------ */

void cgs_view_begin(cgs_view *v, const char *title) {
    memset(v, 0, sizeof *v);
    v->drawn_at = -1e9;
    snprintf(v->title, sizeof v->title, "%s", title);
}

void cgs_view_step(cgs_view *v, const cgs_step_info *i, double memory) {
    v->step = i->step;
    v->total = i->total;
    v->memory = memory;
    v->seconds = v->seconds > 0 ? 0.95 * v->seconds + 0.05 * i->seconds : i->seconds;
    cgs_series_add(&v->loss, i->loss);
    for (int k = 0; k < CGS_TERMS; k++) cgs_series_add(&v->term[k], i->term[k]);
    cgs_series_add(&v->rate, i->frames_per_s);
    if (i->compared)
        cgs_learning_check_add(&v->check, i->step, i->total, i->term[CGS_TERM_PRED], i->trivial);
}

void cgs_view_validation(cgs_view *v, const cgs_validation *valid) {
    cgs_series_add(&v->cosine, valid->cosine);
}

static void clock_text(char *out, size_t size, double seconds) {
    long s = (long)(seconds + 0.5);
    if (s >= 3600)
        snprintf(out, size, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(out, size, "%ld:%02ld", s / 60, s % 60);
}

typedef struct canvas {
    FILE *to;
    int width, height, lines;
    bool utf8, codes;
} canvas;

/* one line of text, cut to the width; the text before the sparkline is plain ASCII */
static void put(canvas *c, const char *text, const char *spark) {
    if (c->lines + 1 >= c->height)
        return; /* never more lines than the screen has: it would scroll */
    fprintf(c->to, "%s%.*s%s\n", c->codes ? "\r\033[K" : "", c->width - 1, text, spark);
    c->lines++;
}

static void put_series(canvas *c, const char *name, const cgs_series *s, const char *format) {
    char text[64], number[32];
    char *spark = malloc(4 * (size_t)c->width + 1);
    if (!spark || !s->count) {
        free(spark);
        return;
    }
    snprintf(number, sizeof number, format, s->last);
    snprintf(text, sizeof text, "  %-12s %10s  ", name, number);
    int cells = c->width - 2 - (int)strlen(text);
    if (cells > 0) cgs_series_draw(s, cells < 100 ? cells : 100, c->utf8, spark);
    put(c, text, cells > 0 ? spark : "");
    free(spark);
}

/* what is wrong with the run, over as many lines as it needs */
static void put_sentence(canvas *c, const cgs_learning_check *check) {
    char sentence[CGS_LEARNING_SENTENCE], *at = sentence;
    cgs_learning_sentence(check, sentence, sizeof sentence);
    while (*at) {
        size_t room = (size_t)c->width - 1, n = strlen(at);
        if (n > room) {
            n = room;
            while (n > 1 && at[n] != ' ') n--;
        }
        char rest = at[n];
        at[n] = '\0';
        put(c, at, "");
        at += n + (rest == ' ');
        if (rest != ' ') *at = rest;
    }
}

void cgs_view_draw(cgs_view *v, FILE *to, int width, int height, bool utf8) {
    canvas c = {.to = to, .utf8 = utf8, .codes = isatty(fileno(to))};
    c.width = width > 20 ? width : 80;
    c.height = height > 3 ? height : 24;
    char head[256], bar[21], left[32] = "?";
    double share = v->total ? (double)v->step / (double)v->total : 0;
    memset(bar, '.', 20);
    memset(bar, '#', (size_t)(20 * (share < 1 ? share : 1)));
    bar[20] = '\0';
    if (v->total >= v->step)
        clock_text(left, sizeof left, v->seconds * (double)(v->total - v->step));
    if (v->total)
        snprintf(head, sizeof head, "%.60s  [%s] %llu of %llu updates, %s left", v->title, bar,
                 (unsigned long long)v->step, (unsigned long long)v->total, left);
    else
        snprintf(head, sizeof head, "%.60s  %llu updates", v->title, (unsigned long long)v->step);
    if (v->drawn && c.codes) fprintf(to, "\033[%dA", v->drawn);
    put(&c, head, "");
    put_series(&c, "loss", &v->loss, "%.4f");
    static const char *const names[CGS_TERMS] = {"prediction", "SIGReg", "TS", "CGS"};
    for (int k = 0; k < CGS_TERMS; k++) put_series(&c, names[k], &v->term[k], "%.4f");
    put_series(&c, "cosine", &v->cosine, "%+.3f");
    put_series(&c, "frames/s", &v->rate, "%.0f");
    if (v->memory > 0) {
        snprintf(head, sizeof head, "  %-12s %6.0f MiB", "memory", v->memory / (1 << 20));
        put(&c, head, "");
    }
    if (v->check.count) {
        snprintf(head, sizeof head, "  %-12s %10.4f  the mean latent's error, a copy's %.4f",
                 "trivial", v->check.mean, v->check.copy);
        put(&c, head, "");
    }
    put_sentence(&c, &v->check);
    if (v->footer[0]) put(&c, v->footer, "");
    while (c.lines < v->drawn && c.lines + 1 < c.height) put(&c, "", "");
    v->drawn = c.lines;
    fflush(to);
}

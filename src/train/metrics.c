/* metrics.c - JSON lines, CSV and TensorBoard events of a training run. */
#include "train/metrics.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/file.h"
#include "core/threads.h"
#include "io/events.h"

#define METRICS_LIMIT ((size_t)1 << 30)

struct cgs_metrics {
    FILE *json, *csv;
    cgs_events *events;
    char path[4096];
};

static double wall_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The step of a line that begins with `key`, or -1. */
static long long line_step(const char *line, const char *key) {
    if (strncmp(line, key, strlen(key)) != 0) return -1;
    return atoll(line + strlen(key));
}

/* rewrites a file with its lines up to a step; drops a last line cut by a crash */
static cgs_status keep_lines(const char *path, const char *key, uint64_t last, bool header) {
    char *text;
    size_t bytes;
    if (!cgs_file_exists(path)) return CGS_OK;
    CGS_TRY(cgs_read_file(path, METRICS_LIMIT, &text, &bytes));
    size_t keep = 0;
    for (char *line = text; line < text + bytes;) {
        char *end = memchr(line, '\n', (size_t)(text + bytes - line));
        if (!end) break;
        long long step = line_step(line, key);
        bool first = header && line == text;
        if (!first && (step < 0 || (uint64_t)step > last)) break;
        keep = (size_t)(end + 1 - text);
        line = end + 1;
    }
    cgs_status rc = cgs_write_file(path, text, keep);
    free(text);
    return rc;
}

static FILE *open_append(const char *path, bool fresh) { return fopen(path, fresh ? "w" : "a"); }

cgs_status cgs_metrics_open(cgs_metrics **out, const char *dir, uint64_t resume_step) {
    *out = NULL;
    char csv[4096];
    cgs_metrics *m = calloc(1, sizeof *m);
    if (!m) return cgs_fail(CGS_ENOMEM, "metrics: no memory");
    bool fresh = resume_step == 0;
    cgs_status rc = cgs_path_join(m->path, sizeof m->path, dir, "metrics.jsonl");
    if (rc == CGS_OK) rc = cgs_path_join(csv, sizeof csv, dir, "metrics.csv");
    if (rc == CGS_OK && !fresh) rc = keep_lines(m->path, "{\"step\":", resume_step, false);
    if (rc == CGS_OK && !fresh) rc = keep_lines(csv, "", resume_step, true);
    if (rc == CGS_OK) {
        m->json = open_append(m->path, fresh);
        m->csv = open_append(csv, fresh);
        if (!m->json || !m->csv) rc = cgs_fail(CGS_EIO, "%s: %s", m->path, strerror(errno));
    }
    if (rc == CGS_OK) rc = cgs_events_open(&m->events, dir, (int64_t)resume_step, wall_clock());
    if (rc == CGS_OK && fresh)
        fprintf(m->csv,
                "step,epoch,lr,loss,pred,sigreg,ts,cgs,cgs_weight,grad_norm,frames_per_s\n");
    if (rc == CGS_OK)
        *out = m;
    else
        cgs_metrics_close(m);
    return rc;
}

static cgs_status flushed(cgs_metrics *m) {
    if (fflush(m->json) != 0 || fflush(m->csv) != 0)
        return cgs_fail(CGS_EIO, "%s: %s", m->path, strerror(errno));
    return cgs_events_flush(m->events);
}

static cgs_status trivial_events(cgs_metrics *m, const char *phase, int64_t step,
                                 cgs_trivial trivial, double now) {
    char copy[32], mean[32];
    snprintf(copy, sizeof copy, "%s/copy", phase);
    snprintf(mean, sizeof mean, "%s/mean", phase);
    CGS_TRY(cgs_events_scalar(m->events, step, copy, (float)trivial.copy, now));
    return cgs_events_scalar(m->events, step, mean, (float)trivial.mean, now);
}

cgs_status cgs_metrics_step(cgs_metrics *m, const cgs_step_info *i) {
    fprintf(m->json, "{\"step\":%llu,\"epoch\":%llu,\"lr\":%.9g,\"loss\":%.9g",
            (unsigned long long)i->step, (unsigned long long)i->epoch, i->lr, i->loss);
    for (int k = 0; k < CGS_TERMS; k++)
        fprintf(m->json, ",\"%s\":%.9g", cgs_term_names[k], i->term[k]);
    fprintf(m->json,
            ",\"cgs_weight\":%.9g,\"grad_norm\":%.9g,\"frames_per_s\":%.6g,\"waited\":%.4g",
            i->cgs_weight, i->grad_norm, i->frames_per_s, i->waited);
    if (i->compared)
        fprintf(m->json, ",\"copy\":%.6g,\"mean\":%.6g", i->trivial.copy, i->trivial.mean);
    fprintf(m->json, ",\"seconds\":%.4g,\"memory_mib\":%.0f,\"total\":%llu}\n", i->seconds,
            cgs_peak_memory() / (1 << 20), (unsigned long long)i->total);
    fprintf(m->csv, "%llu,%llu,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.6g\n",
            (unsigned long long)i->step, (unsigned long long)i->epoch, i->lr, i->loss, i->term[0],
            i->term[1], i->term[2], i->term[3], i->cgs_weight, i->grad_norm, i->frames_per_s);
    double now = wall_clock();
    char tag[32];
    int64_t step = (int64_t)i->step;
    CGS_TRY(cgs_events_scalar(m->events, step, "train/loss", (float)i->loss, now));
    CGS_TRY(cgs_events_scalar(m->events, step, "train/lr", (float)i->lr, now));
    CGS_TRY(cgs_events_scalar(m->events, step, "train/grad_norm", (float)i->grad_norm, now));
    for (int k = 0; k < CGS_TERMS; k++) {
        snprintf(tag, sizeof tag, "train/%s", cgs_term_names[k]);
        CGS_TRY(cgs_events_scalar(m->events, step, tag, (float)i->term[k], now));
    }
    if (i->compared) CGS_TRY(trivial_events(m, "train", step, i->trivial, now));
    return flushed(m);
}

cgs_status cgs_metrics_validation(cgs_metrics *m, uint64_t step, const cgs_validation *v) {
    fprintf(m->json, "{\"step\":%llu,\"valid\":{\"windows\":%d", (unsigned long long)step,
            v->windows);
    double now = wall_clock();
    char tag[32];
    for (int k = 0; k < CGS_TERMS; k++) {
        fprintf(m->json, ",\"%s\":%.9g", cgs_term_names[k], v->term[k]);
        snprintf(tag, sizeof tag, "valid/%s", cgs_term_names[k]);
        CGS_TRY(cgs_events_scalar(m->events, (int64_t)step, tag, (float)v->term[k], now));
    }
    fprintf(m->json, ",\"copy\":%.6g,\"mean\":%.6g,\"cosine\":%.9g}}\n", v->trivial.copy,
            v->trivial.mean, v->cosine);
    CGS_TRY(trivial_events(m, "valid", (int64_t)step, v->trivial, now));
    CGS_TRY(cgs_events_scalar(m->events, (int64_t)step, "valid/cosine", (float)v->cosine, now));
    return flushed(m);
}

cgs_status cgs_metrics_close(cgs_metrics *m) {
    if (!m) return CGS_OK;
    if (m->json) fclose(m->json);
    if (m->csv) fclose(m->csv);
    cgs_status rc = cgs_events_close(m->events);
    free(m);
    return rc;
}

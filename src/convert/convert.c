/* convert.c - see convert.h. */
#include "convert/convert.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/writer.h"

/* of pictures and numbers of one episode, which is written as a whole */
static const size_t LARGEST_EPISODE = (size_t)8 << 30;

typedef struct conversion {
    const cgs_convert_options *o;
    cgs_recording *in;
    cgs_writer *writer;
    cgs_fitter fitter;
    /* one episode */
    int64_t rows, taken;
    int64_t written;                    /* episodes */
    uint8_t *frames;                    /* (rows, size, size, 3) */
    void *column[CGS_RECORDED_COLUMNS]; /* (rows, values) f32 or f64 */
    double *numbers;                    /* (rows, widest) */
    cgs_converted *out;
} conversion;

/* ---- declaring ---------------------------------------------------------------------------- */

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static cgs_status open_writer(conversion *c) {
    const cgs_recording *in = c->in;
    cgs_column_spec spec[CGS_RECORDED_COLUMNS + 1];
    spec[0] = (cgs_column_spec){"pixels", CGS_COL_U8, 3, {c->o->size, c->o->size, 3}};
    for (int i = 0; i < in->columns; i++)
        spec[i + 1] = (cgs_column_spec){in->column[i].name,
                                        in->column[i].wide ? CGS_COL_F64 : CGS_COL_F32,
                                        1,
                                        {in->column[i].values}};
    CGS_TRY(cgs_writer_create(&c->writer, c->o->out, spec, in->columns + 1));
    CGS_TRY(cgs_writer_text(c->writer, "converted_from", base_name(in->path)));
    CGS_TRY(cgs_writer_text(c->writer, "actions", c->o->late ? "late" : "as recorded"));
    if (in->frame_rate > 0) CGS_TRY(cgs_writer_real(c->writer, "frame_rate", in->frame_rate));
    return cgs_writer_begin(c->writer, &c->out->resumed);
}

static void describe(conversion *c) {
    const cgs_recording *in = c->in;
    cgs_converted *out = c->out;
    size_t used = 0;
    snprintf(out->note, sizeof out->note, "%s", in->note);
    out->columns = in->columns;
    for (int i = 0; i < in->columns && used < sizeof out->names; i++)
        used += (size_t)snprintf(out->names + used, sizeof out->names - used, "%s%s (%d)",
                                 i ? ", " : "", in->column[i].name, in->column[i].values);
}

/* ---- an episode --------------------------------------------------------------------------- */

static void free_episode(conversion *c) {
    free(c->frames);
    free(c->numbers);
    for (int i = 0; i < CGS_RECORDED_COLUMNS; i++) {
        free(c->column[i]);
        c->column[i] = NULL;
    }
    c->frames = NULL;
    c->numbers = NULL;
}

static cgs_status make_room(conversion *c, int64_t episode) {
    const cgs_recording *in = c->in;
    const size_t frame = (size_t)c->o->size * (size_t)c->o->size * 3;
    size_t widest = 1, row = frame;
    for (int i = 0; i < in->columns; i++) {
        size_t n = (size_t)in->column[i].values;
        widest = widest > n ? widest : n;
        row += n * sizeof(double);
    }
    row += widest * sizeof(double);
    if (c->rows < 1 || (size_t)c->rows > LARGEST_EPISODE / row)
        return cgs_fail(CGS_EFORMAT, "%s: episode %" PRId64 " has %" PRId64 " rows", in->path,
                        episode, c->rows);
    const size_t rows = (size_t)c->rows;
    bool all = (c->frames = malloc(rows * frame)) != NULL;
    all = (c->numbers = malloc(rows * widest * sizeof(double))) != NULL && all;
    for (int i = 0; i < in->columns; i++) {
        size_t size = in->column[i].wide ? sizeof(double) : sizeof(float);
        c->column[i] = malloc(rows * (size_t)in->column[i].values * size);
        all = all && c->column[i];
    }
    return all ? CGS_OK
               : cgs_fail(CGS_ENOMEM, "%s: no memory for an episode of %" PRId64 " rows", in->path,
                          c->rows);
}

static cgs_status take(void *user, const cgs_picture *p) {
    conversion *c = user;
    const size_t frame = (size_t)c->o->size * (size_t)c->o->size * 3;
    if (c->taken == c->rows)
        return cgs_fail(CGS_EFORMAT, "%s: more pictures than rows", c->in->path);
    c->out->width = p->width;
    c->out->height = p->height;
    return cgs_fitter_run(&c->fitter, p, c->frames + (size_t)c->taken++ * frame);
}

/* row t gets the action that leads from it, the last row none */
static void align(const conversion *c, double *action, size_t values) {
    const size_t rows = (size_t)c->rows;
    if (c->o->late) memmove(action, action + values, (rows - 1) * values * sizeof *action);
    for (size_t j = 0; j < values; j++) action[(rows - 1) * values + j] = NAN;
}

static cgs_status read_episode(conversion *c, int64_t episode) {
    const cgs_recording *in = c->in;
    for (int i = 0; i < in->columns; i++) {
        const size_t values = (size_t)in->column[i].values, n = (size_t)c->rows * values;
        CGS_TRY(in->numbers(in->self, i, c->numbers));
        if (i == in->action) align(c, c->numbers, values);
        if (in->column[i].wide)
            memcpy(c->column[i], c->numbers, n * sizeof(double));
        else
            for (size_t k = 0; k < n; k++) ((float *)c->column[i])[k] = (float)c->numbers[k];
    }
    c->taken = 0;
    CGS_TRY(in->pictures(in->self, take, c));
    if (c->taken == c->rows) return CGS_OK;
    return cgs_fail(CGS_EFORMAT,
                    "%s: episode %" PRId64 " has %" PRId64 " pictures for %" PRId64 " rows",
                    in->path, episode, c->taken, c->rows);
}

static cgs_status convert_episode(conversion *c, int64_t episode) {
    const void *data[CGS_RECORDED_COLUMNS + 1];
    CGS_TRY(c->in->begin(c->in->self, episode, &c->rows));
    CGS_TRY(make_room(c, episode));
    CGS_TRY(read_episode(c, episode));
    data[0] = c->frames;
    for (int i = 0; i < c->in->columns; i++) data[i + 1] = c->column[i];
    cgs_status rc = cgs_writer_add(c->writer, (int)c->rows, data);
    if (rc == CGS_ENUMERIC)
        rc = cgs_fail(rc, "%s: episode %" PRId64 ": %s%s", c->in->path, episode, cgs_last_error(),
                      c->o->late ? "" : " (NaN in row 0 would mean --late)");
    c->out->rows += c->rows;
    return rc;
}

/* a conversion that failed before its first episode leaves nothing behind */
static void forget(const conversion *c) {
    char part[4112];
    snprintf(part, sizeof part, "%.4096s.part", c->o->out);
    remove(part);
}

cgs_status cgs_convert(const cgs_convert_options *o, cgs_converted *out,
                       cgs_convert_progress progress, void *user) {
    conversion c = {.o = o, .out = out};
    *out = (cgs_converted){0};
    CGS_TRY(cgs_fitter_create(&c.fitter, o->fit, o->size));
    cgs_status rc = cgs_recording_open(&c.in, o->in, &o->choices);
    if (rc == CGS_OK) {
        describe(&c);
        out->episodes = c.in->episodes;
        rc = open_writer(&c);
    }
    const bool begun = rc == CGS_OK;
    for (int64_t e = out->resumed; rc == CGS_OK && e < c.in->episodes; e++) {
        rc = convert_episode(&c, e);
        free_episode(&c);
        c.written += rc == CGS_OK;
        if (rc == CGS_OK && progress && !progress(user, e + 1, c.in->episodes))
            rc = cgs_fail(CGS_ESTOPPED,
                          "%s: stopped after episode %" PRId64 "; the same command "
                          "goes on",
                          o->out, e);
    }
    if (rc == CGS_OK) rc = cgs_writer_finish(c.writer);
    cgs_writer_destroy(c.writer);
    if (rc != CGS_OK && begun && c.written + out->resumed == 0) forget(&c);
    cgs_recording_close(c.in);
    cgs_fitter_free(&c.fitter);
    return rc;
}

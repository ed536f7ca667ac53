/* recording_folder.c - pictures or videos beside tables.
 *
 *   FOLDER/run1/0001.png ... + one .csv     each subfolder an episode; or FOLDER itself the only
 * one FOLDER/run1/any.mp4 + one .csv          likewise FOLDER/run1.mp4 + FOLDER/run1.csv       each
 * pair an episode
 *
 * A line of a table belongs to a picture, in the order of the numbers in the names; of a video, to
 * the picture nearest to its time where there is a column of times in seconds, else in order.  The
 * last picture may lack its line.  Columns whose names differ in a number at the end (x_0, x_1) are
 * one column of several values; those of the action begin with "action". */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert/recording.h"
#include "io/csv.h"
#include "io/png.h"
#include "io/video.h"

enum { PATH = 8192 };

typedef struct run {
    char *table, *video; /* files; or */
    char *folder;        /* with pictures */
} run;

typedef struct folder {
    cgs_recording *r;
    const cgs_choices *choices;
    run *run; /* (count) */
    size_t count;
    char column[CGS_RECORDED_COLUMNS][CGS_COLUMN_NAME]; /* names in the table, without numbers */
    /* of the open episode */
    const run *now;
    cgs_csv csv;
    cgs_listing pictures;
    int64_t rows;
} folder;

static const char *const tables[] = {".csv", ".tsv", NULL};
static const char *const stills[] = {".png", NULL};
static const char *const videos[] = {".mp4", ".mkv", ".webm", ".avi", ".mov", ".m4v", ".gif", NULL};

/* ---- episodes ----------------------------------------------------------------------------- */

static char *join(const char *dir, const char *name) {
    char path[PATH];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return strdup(path);
}

static cgs_status add(folder *f, run e) {
    if ((f->count & (f->count - 1)) == 0) { /* the room doubles */
        run *more = realloc(f->run, (f->count ? 2 * f->count : 1) * sizeof *more);
        if (!more) return cgs_fail(CGS_ENOMEM, "%s: no memory for episodes", f->r->path);
        f->run = more;
    }
    f->run[f->count++] = e;
    if (!e.table || (!e.video && !e.folder))
        return cgs_fail(CGS_ENOMEM, "%s: no memory for episodes", f->r->path);
    return CGS_OK;
}

/* the table that is called like a video, or the only one there is */
static const char *table_of(const cgs_listing *t, const char *video, bool alone) {
    size_t stem = (size_t)(strrchr(video, '.') - video);
    for (size_t i = 0; i < t->count; i++)
        if (!strncmp(t->name[i], video, stem) && t->name[i][stem] == '.' &&
            !strchr(t->name[i] + stem + 1, '.'))
            return t->name[i];
    return alone && t->count == 1 ? t->name[0] : NULL;
}

/* the episodes that lie in a folder itself */
static cgs_status look_into(folder *f, const char *dir) {
    cgs_listing t, s = {0}, v = {0};
    CGS_TRY(cgs_listing_read(&t, dir, tables));
    cgs_status rc = cgs_listing_read(&s, dir, stills);
    if (rc == CGS_OK) rc = cgs_listing_read(&v, dir, videos);
    for (size_t i = 0; i < v.count && rc == CGS_OK; i++) {
        const char *table = table_of(&t, v.name[i], v.count == 1);
        if (!table)
            rc = cgs_fail(CGS_EFORMAT, "%s/%s: no table (.csv) is called like it", dir, v.name[i]);
        else
            rc = add(f, (run){join(dir, table), join(dir, v.name[i]), NULL});
    }
    if (rc == CGS_OK && v.count == 0 && s.count > 0 && t.count != 1)
        rc = cgs_fail(CGS_EFORMAT, "%s: %zu pictures and %zu tables (.csv), one is expected", dir,
                      s.count, t.count);
    else if (rc == CGS_OK && v.count == 0 && s.count > 0)
        rc = add(f, (run){join(dir, t.name[0]), NULL, strdup(dir)});
    cgs_listing_free(&t);
    cgs_listing_free(&s);
    cgs_listing_free(&v);
    return rc;
}

static cgs_status find_episodes(folder *f) {
    static const char *const any[] = {"", NULL};
    cgs_listing names;
    CGS_TRY(look_into(f, f->r->path));
    CGS_TRY(cgs_listing_read(&names, f->r->path, any));
    cgs_status rc = CGS_OK;
    for (size_t i = 0; i < names.count && rc == CGS_OK; i++) {
        char *path = join(f->r->path, names.name[i]);
        if (!path) rc = cgs_fail(CGS_ENOMEM, "%s: no memory", f->r->path);
        if (rc == CGS_OK && cgs_is_folder(path)) rc = look_into(f, path);
        free(path);
    }
    cgs_listing_free(&names);
    if (rc == CGS_OK && f->count == 0)
        rc = cgs_fail(CGS_EFORMAT,
                      "%s: neither HDF5, npz nor LeRobot, and no pictures (.png) or videos with a "
                      "table (.csv)",
                      f->r->path);
    return rc;
}

/* ---- columns ------------------------------------------------------------------------------ */

/* the name without a number at its end and what stands before that: "x_0", "x.0", "x[0]" -> "x" */
static void stem_of(const char *name, char *out, size_t size) {
    snprintf(out, size, "%s", name);
    size_t n = strlen(out), m = n;
    while (m > 0 && (out[m - 1] == ']' || out[m - 1] == ')')) m--;
    size_t digits = m;
    while (digits > 0 && out[digits - 1] >= '0' && out[digits - 1] <= '9') digits--;
    if (digits == m) return;
    while (digits > 0 && strchr("_.[( ", out[digits - 1])) digits--;
    if (digits > 0) out[digits] = '\0';
}

static bool is_action(const folder *f, const char *name) {
    const char *begin = f->choices->action ? f->choices->action : "action";
    return !strncmp(name, begin, strlen(begin));
}

/* which recorded column a column of the table belongs to, by name */
static void recorded_name(const folder *f, const char *name, char *out, size_t size) {
    if (is_action(f, name))
        snprintf(out, size, "action");
    else
        stem_of(name, out, size);
}

static bool is_number_column(const cgs_csv *t, size_t column) {
    double v;
    for (size_t r = 0; r < t->rows; r++)
        if (!cgs_csv_number(t, r, column, &v)) return false;
    return t->rows > 0;
}

static cgs_status choose_columns(folder *f) {
    const cgs_csv *t = &f->csv;
    char stem[CGS_COLUMN_NAME], all[480];
    size_t used = 0;
    *all = '\0';
    for (size_t i = 0; i < t->columns; i++) {
        recorded_name(f, t->name[i], stem, sizeof stem);
        if (used < sizeof all)
            used +=
                (size_t)snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", t->name[i]);
        int at = -1;
        for (int k = 0; k < f->r->columns && at < 0; k++)
            if (!strcmp(f->column[k], stem)) at = k;
        if (!is_number_column(t, i)) {
            if (at >= 0 || is_action(f, t->name[i]))
                return cgs_fail(CGS_EFORMAT, "%s: column %s is not numbers", f->now->table,
                                t->name[i]);
            continue;
        }
        if (at >= 0) {
            f->r->column[at].values++;
            continue;
        }
        cgs_recording_add(f->r, stem, 1, !is_action(f, t->name[i]), &at);
        if (at >= 0) memcpy(f->column[at], stem, sizeof stem);
        if (at >= 0 && is_action(f, t->name[i])) f->r->action = at;
    }
    if (f->r->action < 0)
        return cgs_fail(CGS_EFORMAT,
                        "%s: no column's name begins with \"%s\"; choose with --action NAME among: "
                        "%s",
                        f->now->table, f->choices->action ? f->choices->action : "action", all);
    return CGS_OK;
}

/* ---- an episode --------------------------------------------------------------------------- */

static cgs_status take_nothing(void *user, const cgs_picture *p) {
    return (void)user, (void)p, CGS_OK;
}

static int time_column(const cgs_csv *t) {
    static const char *const names[] = {"timestamp", "time", "time_s", "seconds"};
    for (int k = 0; k < 4; k++)
        for (size_t i = 0; i < t->columns; i++)
            if (!strcmp(t->name[i], names[k]) && is_number_column(t, i)) return (int)i;
    return -1;
}

/* hands on the pictures of a video: all of them, or the nearest to each line's time; *taken: how
 * many that were */
static cgs_status play(folder *f, cgs_take_picture take, void *user, int64_t *taken) {
    const cgs_csv *t = &f->csv;
    const int timed = time_column(t);
    cgs_video *v;
    cgs_video_frame frame;
    bool more;
    CGS_TRY(cgs_video_open(&v, f->now->video));
    const double half = cgs_video_rate(v) > 0 ? 0.5 / cgs_video_rate(v) : 0;
    cgs_status rc = cgs_video_next(v, &frame, &more);
    double first = 0, wanted = 0;
    if (timed >= 0) cgs_csv_number(t, 0, (size_t)timed, &first);
    for (*taken = 0; rc == CGS_OK && more;) {
        const cgs_picture p = {frame.rgb, frame.width, frame.height, 3, false};
        if (timed < 0) {
            rc = take(user, &p);
            ++*taken;
        }
        /* every line whose time is nearer to this picture than to the next */
        while (timed >= 0 && rc == CGS_OK && *taken < (int64_t)t->rows) {
            cgs_csv_number(t, (size_t)*taken, (size_t)timed, &wanted);
            if (!(wanted - first <= frame.time + half)) break;
            rc = take(user, &p);
            ++*taken;
        }
        if (rc == CGS_OK) rc = cgs_video_next(v, &frame, &more);
    }
    cgs_video_close(v);
    return rc;
}

static cgs_status read_rate(folder *f) {
    cgs_video *v;
    if (!f->now->video || f->r->frame_rate > 0) return CGS_OK;
    CGS_TRY(cgs_video_open(&v, f->now->video));
    f->r->frame_rate = cgs_video_rate(v);
    cgs_video_close(v);
    return CGS_OK;
}

static void end_episode(folder *f) {
    cgs_csv_free(&f->csv);
    cgs_listing_free(&f->pictures);
}

static cgs_status begin(void *self, int64_t episode, int64_t *rows) {
    folder *f = self;
    end_episode(f);
    f->now = &f->run[episode];
    CGS_TRY(cgs_csv_read(&f->csv, f->now->table));
    if (f->now->folder) {
        CGS_TRY(cgs_listing_read(&f->pictures, f->now->folder, stills));
        f->rows = (int64_t)f->pictures.count;
    } else if (time_column(&f->csv) >= 0) {
        f->rows = (int64_t)f->csv.rows;
    } else {
        CGS_TRY(play(f, take_nothing, NULL, &f->rows));
    }
    *rows = f->rows;
    int64_t lines = (int64_t)f->csv.rows;
    if (lines == f->rows || lines == f->rows - 1) return CGS_OK;
    return cgs_fail(CGS_EFORMAT, "%s: %" PRId64 " lines for %" PRId64 " pictures%s", f->now->table,
                    lines, f->rows,
                    f->now->video ? "; a column \"time\" in seconds would say which is whose" : "");
}

static cgs_status numbers(void *self, int column, double *out) {
    folder *f = self;
    const cgs_csv *t = &f->csv;
    const int values = f->r->column[column].values;
    char stem[CGS_COLUMN_NAME];
    int found = 0;
    for (size_t i = 0; i < t->columns; i++) {
        recorded_name(f, t->name[i], stem, sizeof stem);
        if (strcmp(stem, f->column[column]) != 0) continue;
        for (int64_t r = 0; r < f->rows && found < values; r++) {
            double *to = &out[r * values + found];
            *to = NAN;
            if (r < (int64_t)t->rows && !cgs_csv_number(t, (size_t)r, i, to))
                return cgs_fail(
                    CGS_EFORMAT, "%s: line %" PRId64 " after the names: %s is \"%.40s\"",
                    f->now->table, r + 1, t->name[i], t->cell[(size_t)r * t->columns + i]);
        }
        found++;
    }
    if (found == values) return CGS_OK;
    return cgs_fail(CGS_EFORMAT, "%s: %d columns of \"%s\", the first episode has %d",
                    f->now->table, found, f->column[column], values);
}

static cgs_status show_stills(folder *f, cgs_take_picture take, void *user) {
    for (size_t i = 0; i < f->pictures.count; i++) {
        char path[PATH];
        uint8_t *rgb;
        cgs_picture p = {.channels = 3};
        snprintf(path, sizeof path, "%s/%s", f->now->folder, f->pictures.name[i]);
        CGS_TRY(cgs_png_read(path, &rgb, &p.width, &p.height));
        p.data = rgb;
        cgs_status rc = take(user, &p);
        free(rgb);
        CGS_TRY(rc);
    }
    return CGS_OK;
}

static cgs_status pictures(void *self, cgs_take_picture take, void *user) {
    folder *f = self;
    if (f->now->folder) return show_stills(f, take, user);
    int64_t taken;
    CGS_TRY(play(f, take, user, &taken));
    if (taken == f->rows) return CGS_OK;
    return cgs_fail(CGS_EFORMAT, "%s: pictures for %" PRId64 " of %" PRId64 " lines", f->now->video,
                    taken, f->rows);
}

static void close_folder(void *self) {
    folder *f = self;
    end_episode(f);
    for (size_t i = 0; i < f->count; i++) {
        free(f->run[i].table);
        free(f->run[i].video);
        free(f->run[i].folder);
    }
    free(f->run);
    free(f);
}

cgs_status cgs_recording_open_folder(cgs_recording *r, const cgs_choices *c) {
    folder *f = calloc(1, sizeof *f);
    if (!f) return cgs_fail(CGS_ENOMEM, "%s: no memory", r->path);
    *f = (folder){.r = r, .choices = c};
    r->self = f;
    r->begin = begin;
    r->numbers = numbers;
    r->pictures = pictures;
    r->close = close_folder;
    r->frame_rate = c->frame_rate;
    CGS_TRY(find_episodes(f));
    r->episodes = (int64_t)f->count;
    f->now = &f->run[0];
    CGS_TRY(cgs_csv_read(&f->csv, f->now->table));
    CGS_TRY(choose_columns(f));
    CGS_TRY(read_rate(f));
    snprintf(r->note, sizeof r->note, "%s with tables", f->now->video ? "videos" : "pictures");
    return CGS_OK;
}

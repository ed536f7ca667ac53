/* recording_arrays.c - episodes in arrays of HDF5 or npz files, found by names and shapes.
 *
 *   one action array for each group     every group is an episode ("data/demo_0/actions")
 *   (E, T, ...) arrays                  E episodes of T rows, fewer where lengths are stored
 *   (N, ...) arrays                     one after the other: ends from lengths, from an index of
 *                                       episodes or steps, or from flags; without any, one episode
 *
 * A folder of such files is all of their episodes. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert/arrays.h"
#include "convert/recording.h"

enum { MOST_WIDTH = 1024 /* values of a row that is not a picture */, LEAST_SIDE = 8, LIST = 480 };

#define MOST_EPISODES ((int64_t)1 << 24)
#define MOST_ROWS ((int64_t)1 << 31)

/* where an episode lies in a file */
typedef struct place {
    int file, action, pixels;   /* arrays */
    int64_t first, rows;        /* of those, or of row `outer` of them */
    int64_t outer;              /* (E, T, ...): which episode, else -1 */
    char group[CGS_ARRAY_NAME]; /* "" or "data/demo_0/" */
} place;

typedef struct picked {
    cgs_recording *r;
    const cgs_choices *choices;
    char **file; /* (files) paths */
    int files;
    cgs_arrays *open; /* of file `which`, or NULL */
    int which;
    char source[CGS_RECORDED_COLUMNS][CGS_ARRAY_NAME]; /* (columns) names in their group */
    place *place;                                      /* (episodes) */
    int64_t places, room;
    place now;
    double *row; /* scratch, (a picture or a step) */
} picked;

/* ---- names and shapes ----------------------------------------------------------------------- */

static bool last_part_is(const char *path, const char *name) {
    size_t n = strlen(path), m = strlen(name);
    return n >= m && !strcmp(path + n - m, name) && (n == m || path[n - m - 1] == '/');
}

static bool is_action(const picked *k, const char *name) {
    if (k->choices->action) return last_part_is(name, k->choices->action);
    return last_part_is(name, "action") || last_part_is(name, "actions");
}

static bool channels(int64_t n) { return n == 1 || n == 3 || n == 4; }
static bool side(int64_t n) { return n >= LEAST_SIDE && n <= CGS_PICTURE_SIDE; }

/* whether the axes of an array after the first `lead` are a picture's; fills all but its data */
static bool picture_shape(const cgs_array *a, int lead, cgs_picture *p) {
    const int64_t *d = a->dim + lead;
    const int rank = a->rank - lead;
    if (a->type != CGS_COL_U8 && a->type != CGS_COL_F32 && a->type != CGS_COL_F64) return false;
    if (rank == 2 && side(d[0]) && side(d[1]) && a->type == CGS_COL_U8)
        *p = (cgs_picture){.width = (int)d[1], .height = (int)d[0], .channels = 1};
    else if (rank == 3 && channels(d[2]) && side(d[0]) && side(d[1]))
        *p = (cgs_picture){.width = (int)d[1], .height = (int)d[0], .channels = (int)d[2]};
    else if (rank == 3 && channels(d[0]) && side(d[1]) && side(d[2]))
        *p = (cgs_picture){
            .width = (int)d[2], .height = (int)d[1], .channels = (int)d[0], .planar = true};
    else
        return false;
    return true;
}

static bool in_group(const cgs_array *a, const char *group) {
    return !strncmp(a->name, group, strlen(group));
}

/* The array of pictures of a group with that many leading axes: the one asked for, or the only one.
 * *several: there is more than one, which more axes do not help against. */
static cgs_status find_pictures(const picked *k, const char *group, int lead, int *out,
                                bool *several) {
    const cgs_arrays *a = k->open;
    char text[LIST];
    cgs_picture p;
    int found = 0;
    *out = -1;
    *several = false;
    for (int i = 0; i < a->count; i++) {
        const cgs_array *x = &a->array[i];
        if (!in_group(x, group) || !picture_shape(x, lead, &p)) continue;
        const char *asked = k->choices->pixels;
        if (asked && !last_part_is(x->name, asked)) continue;
        if (!asked && !strcmp(x->name + strlen(group), "pixels")) { /* ours go first */
            *out = i;
            return CGS_OK;
        }
        *out = i;
        found++;
    }
    if (found == 1) return CGS_OK;
    *several = found > 1;
    return cgs_fail(CGS_EFORMAT, "%s: %s pictures%s%s%s; choose with --pixels NAME among: %s",
                    a->path, found ? "several arrays of" : "no array of", *group ? " in " : "",
                    group, found ? "" : " (height x width, with 1, 3 or 4 channels first or last)",
                    cgs_arrays_list(a, text, sizeof text));
}

/* ---- episodes of a file ------------------------------------------------------------------- */

static cgs_status add_place(picked *k, const place *p) {
    if (p->rows < 1) return CGS_OK;
    if (p->rows > MOST_ROWS || k->places == MOST_EPISODES)
        return cgs_fail(CGS_EFORMAT, "%s: an episode of %" PRId64 " rows, %" PRId64 " before it",
                        k->open->path, p->rows, k->places);
    if (k->places == k->room) {
        int64_t room = k->room ? 2 * k->room : 64;
        place *more = realloc(k->place, (size_t)room * sizeof *more);
        if (!more) return cgs_fail(CGS_ENOMEM, "%s: no memory for episodes", k->open->path);
        k->place = more;
        k->room = room;
    }
    k->place[k->places++] = *p;
    return CGS_OK;
}

/* a whole array of one number per row, malloc'd; NULL where there is none of these names */
static cgs_status read_index(const picked *k, const char *const *names, int64_t rows, double **out,
                             int64_t *count) {
    *out = NULL;
    for (; *names; names++)
        for (int i = 0; i < k->open->count; i++) {
            const cgs_array *a = &k->open->array[i];
            if (!last_part_is(a->name, *names) || a->values != 1) continue;
            if (rows >= 0 && a->dim[0] != rows) continue;
            *count = a->dim[0];
            *out = malloc((size_t)a->dim[0] * sizeof **out);
            if (!*out) return cgs_fail(CGS_ENOMEM, "%s: no memory", k->open->path);
            cgs_status rc = k->open->numbers(k->open->self, i, 0, a->dim[0], *out);
            if (rc != CGS_OK) {
                free(*out);
                *out = NULL;
            }
            return rc;
        }
    return CGS_OK;
}

static const char *const length_names[] = {
    "ep_len", "episode_lengths", "lengths", "seq_lengths", "traj_lengths", "episode_length", NULL};
static const char *const end_names[] = {"episode_ends", "ends", NULL};
static const char *const offset_names[] = {"ep_offset", "episode_starts", NULL};
static const char *const episode_names[] = {
    "episode_idx", "ep_idx", "episode_index", "episode_id", "episode", "traj_id", NULL};
static const char *const step_names[] = {"step_idx", "frame_index", "timestep", "step", "t", NULL};
static const char *const flag_names[][6] = {
    {"done", "dones", NULL},
    {"terminal", "terminals", "terminated", "is_terminal", NULL},
    {"timeout", "timeouts", "truncated", "is_last", NULL}};

static cgs_status out_of_file(const picked *k, double first, double rows, int64_t all) {
    return cgs_fail(CGS_EFORMAT,
                    "%s: an episode of %.17g rows from row %.17g on, there are %" PRId64,
                    k->open->path, rows, first, all);
}

/* lengths, with the first rows where those are stored */
static cgs_status by_lengths(picked *k, place p, int64_t all, bool *found) {
    double *length, *offset = NULL;
    int64_t n, m = 0, at = 0;
    CGS_TRY(read_index(k, length_names, -1, &length, &n));
    if (!length) return CGS_OK;
    *found = true;
    cgs_status rc = read_index(k, offset_names, n, &offset, &m);
    for (int64_t e = 0; e < n && rc == CGS_OK; e++) {
        double first = offset ? offset[e] : (double)at;
        if (!(length[e] >= 1 && first >= 0 && first + length[e] <= (double)all))
            rc = out_of_file(k, first, length[e], all);
        p.first = rc == CGS_OK ? (int64_t)first : 0;
        p.rows = rc == CGS_OK ? (int64_t)length[e] : 0;
        at = p.first + p.rows;
        if (rc == CGS_OK) rc = add_place(k, &p);
    }
    free(length);
    free(offset);
    return rc;
}

static cgs_status by_ends(picked *k, place p, int64_t all, bool *found) {
    double *end;
    int64_t n, at = 0;
    CGS_TRY(read_index(k, end_names, -1, &end, &n));
    if (!end) return CGS_OK;
    *found = true;
    cgs_status rc = CGS_OK;
    for (int64_t e = 0; e < n && rc == CGS_OK; e++) {
        if (!(end[e] > (double)at && end[e] <= (double)all))
            rc = out_of_file(k, (double)at, end[e] - (double)at, all);
        p.first = at;
        if (rc == CGS_OK) at = (int64_t)end[e];
        p.rows = at - p.first;
        if (rc == CGS_OK) rc = add_place(k, &p);
    }
    free(end);
    return rc;
}

/* cuts where `ends(row)` says that the episode ends with this row */
typedef bool (*row_ends)(double *const *index, int64_t row);

static bool episode_changes(double *const *x, int64_t r) { return x[0][r + 1] != x[0][r]; }
static bool steps_fall(double *const *x, int64_t r) { return x[0][r + 1] <= x[0][r]; }
static bool flag_is_set(double *const *x, int64_t r) {
    return (x[0] && x[0][r] != 0) || (x[1] && x[1][r] != 0) || (x[2] && x[2][r] != 0);
}

static cgs_status cut(picked *k, place p, int64_t all, double *const *index, row_ends ends) {
    p.first = 0;
    for (int64_t r = 0; r < all; r++) {
        if (r + 1 < all && !ends(index, r)) continue;
        p.rows = r + 1 - p.first;
        CGS_TRY(add_place(k, &p));
        p.first = r + 1;
    }
    return CGS_OK;
}

static cgs_status by_rows(picked *k, place p, int64_t all, const char **how) {
    double *index[3] = {NULL, NULL, NULL};
    int64_t n;
    *how = "an index of episodes";
    cgs_status rc = read_index(k, episode_names, all, &index[0], &n);
    row_ends ends = episode_changes;
    if (rc == CGS_OK && !index[0]) {
        rc = read_index(k, step_names, all, &index[0], &n);
        ends = steps_fall;
        *how = "numbers of steps";
    }
    if (rc == CGS_OK && !index[0]) {
        for (int i = 0; i < 3 && rc == CGS_OK; i++)
            rc = read_index(k, flag_names[i], all, &index[i], &n);
        ends = flag_is_set;
        *how = index[0] || index[1] || index[2] ? "flags at their ends" : "files, one each";
    }
    if (rc == CGS_OK) rc = cut(k, p, all, index, ends);
    for (int i = 0; i < 3; i++) free(index[i]);
    return rc;
}

static cgs_status flat(picked *k, place p, const char **how) {
    const cgs_array *a = &k->open->array[p.action];
    const int64_t rows = k->open->array[p.pixels].dim[0];
    bool found = false;
    p.outer = -1;
    *how = "stored lengths";
    CGS_TRY(by_lengths(k, p, rows, &found));
    if (!found) *how = "stored ends";
    if (!found) CGS_TRY(by_ends(k, p, rows, &found));
    int64_t before = k->places;
    if (!found) CGS_TRY(by_rows(k, p, rows, how));
    if (a->dim[0] == rows || (a->dim[0] == rows - 1 && !found && k->places == before + 1))
        return CGS_OK;
    return cgs_fail(CGS_EFORMAT, "%s: %" PRId64 " actions (%s) for %" PRId64 " pictures",
                    k->open->path, a->dim[0], a->name, rows);
}

/* (E, T, ...) */
static cgs_status nested(picked *k, place p, const char **how) {
    const cgs_array *a = &k->open->array[p.action], *x = &k->open->array[p.pixels];
    double *length;
    int64_t n;
    *how = "a first axis of episodes";
    if (a->rank < 2 || a->dim[0] != x->dim[0] ||
        (a->dim[1] != x->dim[1] && a->dim[1] != x->dim[1] - 1))
        return cgs_fail(
            CGS_EFORMAT,
            "%s: actions (%s) of %" PRId64 " x %" PRId64 " episodes and steps, pictures "
            "of %" PRId64 " x %" PRId64,
            k->open->path, a->name, a->dim[0], a->rank > 1 ? a->dim[1] : 0, x->dim[0], x->dim[1]);
    CGS_TRY(read_index(k, length_names, x->dim[0], &length, &n));
    cgs_status rc = CGS_OK;
    for (int64_t e = 0; e < x->dim[0] && rc == CGS_OK; e++) {
        p.outer = e;
        p.rows = x->dim[1];
        if (length && !(length[e] >= 1 && length[e] <= (double)p.rows))
            rc = out_of_file(k, 0, length[e], p.rows);
        else if (length)
            p.rows = (int64_t)length[e];
        if (rc == CGS_OK) rc = add_place(k, &p);
    }
    free(length);
    return rc;
}

static void group_of(const char *name, const char *action, char *group) {
    size_t n = strlen(name) - strlen(action);
    memcpy(group, name, n);
    group[n] = '\0';
}

static int by_group(const void *a, const void *b) {
    return cgs_natural_order(((const place *)a)->group, ((const place *)b)->group);
}

/* every group with an action is an episode */
static cgs_status grouped(picked *k, int file) {
    const cgs_arrays *a = k->open;
    const int64_t before = k->places;
    bool several;
    for (int i = 0; i < a->count; i++) {
        const char *slash = strrchr(a->array[i].name, '/');
        if (!is_action(k, a->array[i].name)) continue;
        const char *own = k->choices->action ? k->choices->action
                          : slash            ? slash + 1
                                             : a->array[i].name;
        place p = {.file = file, .action = i, .outer = -1};
        group_of(a->array[i].name, own, p.group);
        CGS_TRY(find_pictures(k, p.group, 1, &p.pixels, &several));
        p.rows = a->array[p.pixels].dim[0];
        if (a->array[i].dim[0] != p.rows && a->array[i].dim[0] != p.rows - 1)
            return cgs_fail(CGS_EFORMAT, "%s: %" PRId64 " actions (%s) for %" PRId64 " pictures",
                            a->path, a->array[i].dim[0], a->array[i].name, p.rows);
        CGS_TRY(add_place(k, &p));
    }
    qsort(k->place + before, (size_t)(k->places - before), sizeof *k->place, by_group);
    return CGS_OK;
}

static cgs_status open_file(picked *k, int file) {
    if (k->open && k->which == file) return CGS_OK;
    cgs_arrays_close(k->open);
    k->open = NULL;
    CGS_TRY(cgs_arrays_open(&k->open, k->file[file]));
    k->which = file;
    return CGS_OK;
}

static cgs_status look_at_file(picked *k, int file, const char **how) {
    char text[LIST];
    CGS_TRY(open_file(k, file));
    const cgs_arrays *a = k->open;
    int actions = 0;
    place p = {.file = file};
    for (int i = 0; i < a->count; i++)
        if (is_action(k, a->array[i].name)) {
            p.action = i;
            actions++;
        }
    if (actions == 0)
        return cgs_fail(CGS_EFORMAT, "%s: no array \"%s\"; choose with --action NAME among: %s",
                        a->path, k->choices->action ? k->choices->action : "action",
                        cgs_arrays_list(a, text, sizeof text));
    *how = "groups, one each";
    if (actions > 1) return grouped(k, file);
    /* an axis of episodes more than one of steps, where the pictures have both */
    bool several = false;
    cgs_status rc = CGS_EFORMAT;
    if (a->array[p.action].rank < 3) rc = find_pictures(k, "", 1, &p.pixels, &several);
    if (rc == CGS_OK) return flat(k, p, how);
    if (several) return rc;
    CGS_TRY(find_pictures(k, "", 2, &p.pixels, &several));
    return nested(k, p, how);
}

/* ---- columns ------------------------------------------------------------------------------ */

static bool is_of(const char *const *names, const char *name) {
    for (; *names; names++)
        if (last_part_is(name, *names)) return true;
    return false;
}

/* numbers that go with the rows of the first episode */
static void choose_columns(picked *k) {
    const place *p = &k->place[0];
    const cgs_array *all = k->open->array, *x = &all[p->pixels], *a = &all[p->action];
    const int lead = p->outer >= 0 ? 2 : 1;
    cgs_picture picture;
    for (int turn = 0; turn < 2; turn++) /* the action first: nothing may take its name */
        for (int i = 0; i < k->open->count; i++) {
            const cgs_array *one = &all[i];
            const char *name = one->name + strlen(p->group);
            size_t values =
                lead == 2 && one->rank > 1 ? one->values / (size_t)one->dim[1] : one->values;
            int index;
            if ((i == p->action) != (turn == 0)) continue;
            if (!in_group(one, p->group) || one->rank < lead || one->dim[lead - 1] < 1) continue;
            if (turn == 1 && (picture_shape(one, lead, &picture) || values > MOST_WIDTH ||
                              one->dim[0] != x->dim[0] ||
                              (lead == 2 && one->dim[1] != x->dim[1] && one->dim[1] != a->dim[1])))
                continue;
            if (turn == 1 && (is_of(length_names, name) || is_of(end_names, name) ||
                              is_of(offset_names, name) || is_of(episode_names, name)))
                continue;
            bool wide = one->type != CGS_COL_F32 && one->type != CGS_COL_U8 &&
                        one->type != CGS_COL_I8 && one->type != CGS_COL_I16 &&
                        one->type != CGS_COL_U16;
            cgs_recording_add(k->r, turn == 0 ? "action" : name, (int)values,
                              turn == 0 ? false : wide, &index);
            if (index >= 0) snprintf(k->source[index], sizeof k->source[index], "%s", name);
            if (index >= 0 && turn == 0) k->r->action = index;
        }
}

/* ---- reading an episode --------------------------------------------------------------------- */

static cgs_status begin(void *self, int64_t episode, int64_t *rows) {
    picked *k = self;
    k->now = k->place[episode];
    *rows = k->now.rows;
    return open_file(k, k->now.file);
}

/* rows of an array that belong to the episode; (E, T, ...) arrays are read an episode at a time */
static cgs_status read_rows(picked *k, int array, int64_t first, int64_t count, size_t values,
                            double *out) {
    const cgs_arrays *a = k->open;
    const place *p = &k->now;
    if (p->outer < 0) return a->numbers(a->self, array, p->first + first, count, out);
    double *whole = malloc(a->array[array].values * sizeof *whole);
    if (!whole) return cgs_fail(CGS_ENOMEM, "%s: no memory for an episode", a->path);
    cgs_status rc = a->numbers(a->self, array, p->outer, 1, whole);
    if (rc == CGS_OK)
        memcpy(out, whole + (size_t)first * values, (size_t)count * values * sizeof *out);
    free(whole);
    return rc;
}

static cgs_status numbers(void *self, int column, double *out) {
    picked *k = self;
    const place *p = &k->now;
    char name[2 * CGS_ARRAY_NAME];
    snprintf(name, sizeof name, "%s%s", p->group, k->source[column]);
    int i = cgs_arrays_find(k->open, name);
    if (i < 0)
        return cgs_fail(CGS_EFORMAT, "%s: it has no array %s as the first episode has",
                        k->open->path, name);
    const cgs_array *a = &k->open->array[i];
    const size_t values = (size_t)k->r->column[column].values;
    const int64_t there = p->outer >= 0 ? a->dim[1] : a->dim[0] - p->first;
    int64_t have = there < p->rows ? there : p->rows;
    if (a->values != (p->outer >= 0 ? values * (size_t)a->dim[1] : values) || have < p->rows - 1)
        return cgs_fail(CGS_EFORMAT,
                        "%s: array %s has %" PRId64 " rows of %zu values, %" PRId64
                        " of %zu are expected",
                        k->open->path, name, there, a->values, p->rows, values);
    CGS_TRY(read_rows(k, i, 0, have, values, out));
    for (size_t j = (size_t)have * values; j < (size_t)p->rows * values; j++) out[j] = NAN;
    return CGS_OK;
}

/* fractions of white, or bytes that were stored as fractions of one */
static void to_bytes(const double *from, size_t n, bool unit, uint8_t *to) {
    for (size_t i = 0; i < n; i++) {
        double v = unit ? from[i] * 255 : from[i];
        to[i] = (uint8_t)(v >= 255 ? 255 : v > 0 ? v + 0.5 : 0);
    }
}

/* `rows` pictures from row `first` of the array (of its episode) */
static cgs_status read_pictures(picked *k, size_t values, int64_t first, int64_t rows,
                                uint8_t *out) {
    const cgs_arrays *a = k->open;
    const place *p = &k->now;
    const cgs_array *x = &a->array[p->pixels];
    if (x->type == CGS_COL_U8) return a->bytes(a->self, p->pixels, first, rows, out);
    double *whole = malloc((size_t)rows * values * sizeof *whole);
    if (!whole) return cgs_fail(CGS_ENOMEM, "%s: no memory for pictures", a->path);
    cgs_status rc = a->numbers(a->self, p->pixels, first, rows, whole);
    double most = 0;
    for (size_t i = 0; rc == CGS_OK && i < (size_t)rows * values; i++) {
        if (!(whole[i] >= 0 && whole[i] <= 255))
            rc = cgs_fail(CGS_EFORMAT, "%s: %s holds %g, which is no brightness (0 to 1 or to 255)",
                          a->path, x->name, whole[i]);
        most = most > whole[i] ? most : whole[i];
    }
    if (rc == CGS_OK) to_bytes(whole, (size_t)rows * values, most <= 1, out);
    free(whole);
    return rc;
}

static cgs_status pictures(void *self, cgs_take_picture take, void *user) {
    enum { TOGETHER = 16 };
    picked *k = self;
    const place *p = &k->now;
    const cgs_array *x = &k->open->array[p->pixels];
    const bool inner = p->outer >= 0;
    cgs_picture shape;
    if (!picture_shape(x, inner ? 2 : 1, &shape))
        return cgs_fail(CGS_EFORMAT, "%s: %s holds no pictures", k->open->path, x->name);
    const size_t frame = (size_t)shape.width * (size_t)shape.height * (size_t)shape.channels;
    uint8_t *bytes = malloc(inner ? x->values : frame * TOGETHER);
    if (!bytes) return cgs_fail(CGS_ENOMEM, "%s: no memory for pictures", k->open->path);
    cgs_status rc = inner ? read_pictures(k, x->values, p->outer, 1, bytes) : CGS_OK;
    for (int64_t r = 0; r < p->rows && rc == CGS_OK; r++) {
        int64_t left = p->rows - r;
        if (!inner && r % TOGETHER == 0)
            rc = read_pictures(k, frame, p->first + r, left < TOGETHER ? left : TOGETHER, bytes);
        shape.data = bytes + frame * (size_t)(inner ? r : r % TOGETHER);
        if (rc == CGS_OK) rc = take(user, &shape);
    }
    free(bytes);
    return rc;
}

/* ---- opening -------------------------------------------------------------------------------- */

static void close_picked(void *self) {
    picked *k = self;
    cgs_arrays_close(k->open);
    for (int i = 0; i < k->files; i++) free(k->file[i]);
    free(k->file);
    free(k->place);
    free(k);
}

static cgs_status list_files(picked *k) {
    static const char *const endings[] = {".h5", ".hdf5", ".npz", NULL};
    cgs_listing names = {0};
    const bool folder = cgs_is_folder(k->r->path);
    if (folder) CGS_TRY(cgs_listing_read(&names, k->r->path, endings));
    size_t n = folder ? names.count : 1;
    cgs_status rc = CGS_OK;
    k->file = calloc(n, sizeof *k->file);
    for (size_t i = 0; k->file && i < n && rc == CGS_OK; i++) {
        char path[8192];
        snprintf(path, sizeof path, "%s%s%s", k->r->path, folder ? "/" : "",
                 folder ? names.name[i] : "");
        k->file[i] = strdup(path);
        if (!k->file[i]) rc = cgs_fail(CGS_ENOMEM, "%s: no memory", k->r->path);
        k->files += k->file[i] != NULL;
    }
    if (!k->file) rc = cgs_fail(CGS_ENOMEM, "%s: no memory", k->r->path);
    cgs_listing_free(&names);
    return rc;
}

cgs_status cgs_recording_open_arrays(cgs_recording *r, const cgs_choices *c) {
    picked *k = calloc(1, sizeof *k);
    if (!k) return cgs_fail(CGS_ENOMEM, "%s: no memory", r->path);
    *k = (picked){.r = r, .choices = c};
    r->self = k;
    r->begin = begin;
    r->numbers = numbers;
    r->pictures = pictures;
    r->close = close_picked;
    const char *how = "";
    CGS_TRY(list_files(k));
    for (int i = 0; i < k->files; i++) CGS_TRY(look_at_file(k, i, &how));
    r->episodes = k->places;
    if (k->places == 0) return CGS_OK;
    CGS_TRY(open_file(k, k->place[0].file));
    choose_columns(k);
    const cgs_array *x = &k->open->array[k->place[0].pixels];
    snprintf(r->note, sizeof r->note, "pictures from \"%s\", actions from \"%s\"; episodes by %s",
             x->name, k->open->array[k->place[0].action].name, how);
    return CGS_OK;
}

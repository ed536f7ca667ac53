/* recording_lerobot.c - LeRobot datasets of versions 2 and 3.
 *
 *   meta/info.json      features (name, dtype, shape), pictures per second, where files lie
 *   version 2           a Parquet file and a video of every camera for every episode
 *   version 3           several episodes in each; meta/episodes/.../file-000.parquet says where
 *
 * A row's picture is the one of the video that is nearest to its time. */
#include <cjson/cJSON.h>
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert/recording.h"
#include "core/file.h"
#include "io/parquet.h"
#include "io/video.h"

enum { PATH = 8192, NAME = 256 };

#define MOST_EPISODES ((int64_t)1 << 24)

/* where an episode of version 3 lies */
typedef struct place {
    int64_t episode, chunk, file, video_chunk, video_file;
    double begin; /* seconds of the video before it */
} place;

typedef struct lerobot {
    cgs_recording *r;
    int version;
    double rate;
    int64_t chunk_size; /* version 2: episodes in a folder */
    char data_path[NAME], video_path[NAME], camera[NAME];
    char source[CGS_RECORDED_COLUMNS][NAME]; /* (columns) features */
    place *place;                            /* (episodes) version 3 */

    char table_path[PATH]; /* of the open table */
    cgs_parquet *table;
    cgs_parquet_data column[CGS_RECORDED_COLUMNS]; /* (columns) read when they are asked for */
    cgs_parquet_data time, index;                  /* seconds, and the episode of every row */
    int64_t first, rows;                           /* of the episode, in the table */
    place now;

    char film_path[PATH]; /* of the open video */
    cgs_video *film;
    cgs_video_frame frame; /* its last picture */
    bool showing;          /* whether there is one */
} lerobot;

bool cgs_is_lerobot(const char *path) {
    char info[PATH];
    return cgs_path_join(info, sizeof info, path, "meta/info.json") == CGS_OK &&
           cgs_file_exists(info);
}

/* ---- paths ---------------------------------------------------------------------------------- */

typedef struct fill {
    const char *name;
    int64_t number;
    const char *text; /* instead of the number */
} fill;

/* "{name}" and "{name:03d}" become what they stand for; *bad where one stands for nothing known */
static size_t fill_hole(const char *hole, size_t length, const fill *f, int fills, char *out,
                        size_t size, bool *bad) {
    size_t name = 0;
    int digits = 0;
    while (name < length && hole[name] != ':') name++;
    if (name < length) digits = atoi(hole + name + 1); /* "03d" */
    if (digits < 0 || digits > 18) digits = 0;
    for (int i = 0; i < fills; i++) {
        if (strlen(f[i].name) != name || strncmp(f[i].name, hole, name) != 0) continue;
        return (size_t)(f[i].text ? snprintf(out, size, "%s", f[i].text)
                                  : snprintf(out, size, "%0*" PRId64, digits, f[i].number));
    }
    *bad = true;
    return 0;
}

static cgs_status fill_path(const lerobot *l, const char *pattern, const place *at, char *out) {
    const fill fills[] = {
        {"episode_chunk", l->chunk_size > 0 ? at->episode / l->chunk_size : 0, NULL},
        {"episode_index", at->episode, NULL},
        {"chunk_index", at->chunk, NULL},
        {"file_index", at->file, NULL},
        {"video_key", 0, l->camera}};
    size_t used = (size_t)snprintf(out, PATH, "%s/", l->r->path);
    bool bad = false;
    for (const char *p = pattern; *p && !bad && used < PATH - NAME;) {
        const char *end = *p == '{' ? strchr(p, '}') : NULL;
        if (end) {
            used +=
                fill_hole(p + 1, (size_t)(end - p - 1), fills, 5, out + used, PATH - used, &bad);
            p = end + 1;
        } else {
            out[used++] = *p++;
        }
    }
    if (bad || used >= PATH - NAME)
        return cgs_fail(CGS_EFORMAT, "%s: meta/info.json has the path \"%s\"", l->r->path, pattern);
    out[used] = '\0';
    return CGS_OK;
}

/* a file of the dataset lies inside its folder */
static bool stays_inside(const char *pattern) {
    return *pattern && *pattern != '/' && !strstr(pattern, "..");
}

/* ---- meta/info.json ------------------------------------------------------------------------- */

static bool is_bookkeeping(const char *name) {
    static const char *const names[] = {"timestamp", "frame_index", "episode_index", "index"};
    for (int i = 0; i < 4; i++)
        if (!strcmp(name, names[i])) return true;
    return false;
}

/* values of a feature of numbers; 0: of something else */
static int width_of(const cJSON *feature) {
    const char *dtype = cJSON_GetStringValue(cJSON_GetObjectItem(feature, "dtype"));
    const cJSON *shape = cJSON_GetObjectItem(feature, "shape");
    static const char *const numbers[] = {"float32", "float64", "int64", "int32", "bool"};
    bool number = false;
    for (int i = 0; i < 5 && dtype; i++) number = number || !strcmp(dtype, numbers[i]);
    if (!number || cJSON_GetArraySize(shape) != 1) return 0;
    const cJSON *n = cJSON_GetArrayItem(shape, 0);
    return cJSON_IsNumber(n) && n->valuedouble >= 1 && n->valuedouble <= 4096 ? n->valueint : 0;
}

static void add_column(lerobot *l, const char *name, bool action, const cJSON *feature) {
    const char *dtype = cJSON_GetStringValue(cJSON_GetObjectItem(feature, "dtype"));
    int index, width = width_of(feature);
    if (width == 0 || strlen(name) >= NAME) return;
    bool wide = !action && strcmp(dtype, "float32") != 0 && strcmp(dtype, "bool") != 0;
    cgs_recording_add(l->r, action ? "action" : name, width, wide, &index);
    if (index < 0) return;
    snprintf(l->source[index], NAME, "%s", name);
    if (action) l->r->action = index;
}

static cgs_status choose_camera(lerobot *l, const cJSON *features, const char *asked) {
    char all[480] = "";
    size_t used = 0;
    int found = 0;
    bool stills = false;
    for (const cJSON *f = features->child; f; f = f->next) {
        const char *dtype = cJSON_GetStringValue(cJSON_GetObjectItem(f, "dtype"));
        if (!dtype || !f->string || strlen(f->string) >= NAME) continue;
        stills = stills || !strcmp(dtype, "image");
        if (strcmp(dtype, "video") != 0) continue;
        if (used < sizeof all)
            used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", used ? ", " : "",
                                     f->string);
        size_t n = strlen(f->string), m = asked ? strlen(asked) : 0;
        bool wanted = !asked || (n >= m && !strcmp(f->string + n - m, asked));
        if (!wanted) continue;
        snprintf(l->camera, NAME, "%s", f->string);
        found++;
    }
    if (found == 1)
        return stays_inside(l->camera)
                   ? CGS_OK
                   : cgs_fail(CGS_EFORMAT, "%s: a camera called \"%s\"", l->r->path, l->camera);
    return cgs_fail(CGS_EFORMAT, "%s: %s%s%s%s", l->r->path,
                    found ? "several cameras: choose one with --pixels NAME: "
                          : "no camera with videos",
                    found || !*all ? "" : " of that name; there are ", all,
                    !found && stills ? " (pictures inside Parquet files are not read)" : "");
}

static cgs_status read_features(lerobot *l, const cJSON *info, const cgs_choices *c) {
    const cJSON *features = cJSON_GetObjectItem(info, "features");
    const char *action = c->action ? c->action : "action";
    if (!cJSON_IsObject(features))
        return cgs_fail(CGS_EFORMAT, "%s: meta/info.json has no features", l->r->path);
    const cJSON *a = cJSON_GetObjectItemCaseSensitive(features, action);
    if (a) add_column(l, action, true, a);
    if (l->r->action < 0)
        return cgs_fail(CGS_EFORMAT, "%s: meta/info.json has no feature \"%s\" of numbers",
                        l->r->path, action);
    for (const cJSON *f = features->child; f; f = f->next)
        if (f->string && f != a && !is_bookkeeping(f->string)) add_column(l, f->string, false, f);
    return choose_camera(l, features, c->pixels);
}

static cgs_status read_text(const lerobot *l, const cJSON *info, const char *key, char *out) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(info, key));
    if (!text || !stays_inside(text) || strlen(text) >= NAME)
        return cgs_fail(CGS_EFORMAT, "%s: meta/info.json has no %s that can be used", l->r->path,
                        key);
    strcpy(out, text);
    return CGS_OK;
}

static double number_of(const cJSON *info, const char *key) {
    const cJSON *n = cJSON_GetObjectItem(info, key);
    return cJSON_IsNumber(n) ? n->valuedouble : 0;
}

static cgs_status understand(lerobot *l, const cJSON *info, const cgs_choices *c) {
    const char *version = cJSON_GetStringValue(cJSON_GetObjectItem(info, "codebase_version"));
    l->version =
        version && version[0] == 'v' && isdigit((unsigned char)version[1]) ? atoi(version + 1) : 0;
    if (l->version != 2 && l->version != 3)
        return cgs_fail(CGS_EFORMAT, "%s: LeRobot %.20s; versions 2 and 3 are read", l->r->path,
                        version ? version : "of no version");
    l->rate = number_of(info, "fps");
    if (!(l->rate > 0 && l->rate < 1e5))
        return cgs_fail(CGS_EFORMAT, "%s: meta/info.json has no fps", l->r->path);
    double episodes = number_of(info, "total_episodes"), size = number_of(info, "chunks_size");
    if (!(episodes >= 1 && episodes <= (double)MOST_EPISODES && size >= 0 && size < 1e9))
        return cgs_fail(CGS_EFORMAT, "%s: meta/info.json has total_episodes %g, chunks_size %g",
                        l->r->path, episodes, size);
    l->r->episodes = (int64_t)episodes;
    l->chunk_size = (int64_t)size;
    l->r->frame_rate = l->rate;
    CGS_TRY(read_text(l, info, "data_path", l->data_path));
    CGS_TRY(read_features(l, info, c));
    return read_text(l, info, "video_path", l->video_path);
}

static cgs_status read_info(lerobot *l, const cgs_choices *c) {
    char path[PATH], *text;
    size_t bytes;
    CGS_TRY(cgs_path_join(path, sizeof path, l->r->path, "meta/info.json"));
    CGS_TRY(cgs_read_file(path, (size_t)64 << 20, &text, &bytes));
    cJSON *info = cJSON_Parse(text);
    free(text);
    cgs_status rc = info ? understand(l, info, c) : cgs_fail(CGS_EFORMAT, "%s: not JSON", path);
    cJSON_Delete(info);
    return rc;
}

/* ---- version 3: where episodes lie -------------------------------------------------------------
 */

static cgs_status read_flat(cgs_parquet *t, const char *path, const char *name,
                            cgs_parquet_data *out) {
    int i = cgs_parquet_find(t, name);
    if (i < 0) return cgs_fail(CGS_EFORMAT, "%s: it has no column \"%s\"", path, name);
    CGS_TRY(cgs_parquet_read(t, i, out));
    if (out->count == cgs_parquet_rows(t)) return CGS_OK;
    cgs_parquet_data_free(out);
    return cgs_fail(CGS_EFORMAT, "%s: column \"%s\" is not one number a row", path, name);
}

static bool whole(double v) { return v >= 0 && v < 1e9 && v == floor(v); }

static cgs_status take_places(lerobot *l, const char *path, cgs_parquet *t, cgs_parquet_data *d) {
    const char *names[] = {"episode_index", "data/chunk_index", "data/file_index"};
    const char *of_video[] = {"chunk_index", "file_index", "from_timestamp"};
    for (int i = 0; i < 3; i++) CGS_TRY(read_flat(t, path, names[i], &d[i]));
    for (int i = 0; i < 3; i++) {
        char name[2 * NAME];
        snprintf(name, sizeof name, "videos/%s/%s", l->camera, of_video[i]);
        CGS_TRY(read_flat(t, path, name, &d[3 + i]));
    }
    for (int64_t r = 0; r < cgs_parquet_rows(t); r++) {
        for (int i = 0; i < 5; i++)
            if (!whole(d[i].value[r]))
                return cgs_fail(CGS_EFORMAT, "%s: row %" PRId64 " places an episode at %g", path, r,
                                d[i].value[r]);
        int64_t e = (int64_t)d[0].value[r];
        if (e >= l->r->episodes || l->place[e].episode >= 0 || !(fabs(d[5].value[r]) < 1e9))
            return cgs_fail(CGS_EFORMAT,
                            "%s: row %" PRId64 " places episode %" PRId64 " of %" PRId64, path, r,
                            e, l->r->episodes);
        l->place[e] = (place){e,
                              (int64_t)d[1].value[r],
                              (int64_t)d[2].value[r],
                              (int64_t)d[3].value[r],
                              (int64_t)d[4].value[r],
                              d[5].value[r]};
    }
    return CGS_OK;
}

static cgs_status read_places_of(lerobot *l, const char *path) {
    cgs_parquet *t;
    cgs_parquet_data d[6] = {{0}};
    CGS_TRY(cgs_parquet_open(&t, path));
    cgs_status rc = take_places(l, path, t, d);
    for (int i = 0; i < 6; i++) cgs_parquet_data_free(&d[i]);
    cgs_parquet_close(t);
    return rc;
}

static cgs_status read_places(lerobot *l) {
    static const char *const any[] = {"", NULL}, *const parquet[] = {".parquet", NULL};
    char root[PATH], folder[2 * PATH], path[3 * PATH];
    cgs_listing chunks, files;
    l->place = malloc((size_t)l->r->episodes * sizeof *l->place);
    if (!l->place) return cgs_fail(CGS_ENOMEM, "%s: no memory for episodes", l->r->path);
    for (int64_t e = 0; e < l->r->episodes; e++) l->place[e].episode = -1;
    CGS_TRY(cgs_path_join(root, sizeof root, l->r->path, "meta/episodes"));
    CGS_TRY(cgs_listing_read(&chunks, root, any));
    cgs_status rc = CGS_OK;
    for (size_t c = 0; c < chunks.count && rc == CGS_OK; c++) {
        snprintf(folder, sizeof folder, "%s/%s", root, chunks.name[c]);
        if (!cgs_is_folder(folder)) continue;
        rc = cgs_listing_read(&files, folder, parquet);
        for (size_t i = 0; rc == CGS_OK && i < files.count; i++) {
            snprintf(path, sizeof path, "%s/%s", folder, files.name[i]);
            rc = read_places_of(l, path);
        }
        cgs_listing_free(&files);
    }
    cgs_listing_free(&chunks);
    for (int64_t e = 0; e < l->r->episodes && rc == CGS_OK; e++)
        if (l->place[e].episode < 0)
            rc = cgs_fail(CGS_EFORMAT, "%s: no file says where episode %" PRId64 " lies", root, e);
    return rc;
}

/* ---- an episode ---------------------------------------------------------------------------------
 */

static void close_table(lerobot *l) {
    for (int i = 0; i < CGS_RECORDED_COLUMNS; i++) cgs_parquet_data_free(&l->column[i]);
    cgs_parquet_data_free(&l->time);
    cgs_parquet_data_free(&l->index);
    cgs_parquet_close(l->table);
    l->table = NULL;
    *l->table_path = '\0';
}

static cgs_status open_table(lerobot *l) {
    char path[PATH];
    CGS_TRY(fill_path(l, l->data_path, &l->now, path));
    if (!strcmp(path, l->table_path)) return CGS_OK;
    close_table(l);
    CGS_TRY(cgs_parquet_open(&l->table, path));
    CGS_TRY(read_flat(l->table, path, "timestamp", &l->time));
    CGS_TRY(read_flat(l->table, path, "episode_index", &l->index));
    memcpy(l->table_path, path, sizeof path);
    return CGS_OK;
}

static cgs_status begin(void *self, int64_t episode, int64_t *rows) {
    lerobot *l = self;
    l->now = l->place ? l->place[episode] : (place){.episode = episode};
    CGS_TRY(open_table(l));
    const int64_t all = cgs_parquet_rows(l->table);
    l->first = 0;
    while (l->first < all && l->index.value[l->first] != (double)episode) l->first++;
    for (l->rows = 0; l->first + l->rows < all; l->rows++)
        if (l->index.value[l->first + l->rows] != (double)episode) break;
    *rows = l->rows;
    return l->rows > 0
               ? CGS_OK
               : cgs_fail(CGS_EFORMAT, "%s: no row of episode %" PRId64, l->table_path, episode);
}

static cgs_status numbers(void *self, int column, double *out) {
    lerobot *l = self;
    cgs_parquet_data *d = &l->column[column];
    const int64_t width = l->r->column[column].values;
    if (!d->begin) {
        int i = cgs_parquet_find(l->table, l->source[column]);
        if (i < 0)
            return cgs_fail(CGS_EFORMAT, "%s: it has no column \"%s\"", l->table_path,
                            l->source[column]);
        CGS_TRY(cgs_parquet_read(l->table, i, d));
    }
    for (int64_t r = l->first; r < l->first + l->rows; r++)
        if (d->begin[r + 1] - d->begin[r] != width)
            return cgs_fail(CGS_EFORMAT,
                            "%s: row %" PRId64 " of column \"%s\" has %" PRId64 " values, %" PRId64
                            " are expected",
                            l->table_path, r, l->source[column], d->begin[r + 1] - d->begin[r],
                            width);
    memcpy(out, d->value + d->begin[l->first], (size_t)(l->rows * width) * sizeof *out);
    return CGS_OK;
}

static cgs_status rewind_film(lerobot *l, const char *path) {
    cgs_video_close(l->film);
    l->film = NULL;
    *l->film_path = '\0';
    CGS_TRY(cgs_video_open(&l->film, path));
    memcpy(l->film_path, path, PATH);
    return cgs_video_next(l->film, &l->frame, &l->showing);
}

/* the picture nearest to a time; videos are read forwards */
static cgs_status show(lerobot *l, const char *path, double wanted) {
    const double half = 0.5 / l->rate;
    if (!l->film || strcmp(path, l->film_path) || !l->showing || l->frame.time > wanted + half)
        CGS_TRY(rewind_film(l, path));
    while (l->showing && l->frame.time <= wanted - half)
        CGS_TRY(cgs_video_next(l->film, &l->frame, &l->showing));
    if (l->showing && l->frame.time <= wanted + 2 * half) return CGS_OK;
    return cgs_fail(CGS_EFORMAT, "%s: no picture at %.3f s", path, wanted);
}

static cgs_status pictures(void *self, cgs_take_picture take, void *user) {
    lerobot *l = self;
    char path[PATH];
    place film = l->now;
    film.chunk = l->now.video_chunk;
    film.file = l->now.video_file;
    CGS_TRY(fill_path(l, l->video_path, &film, path));
    for (int64_t r = 0; r < l->rows; r++) {
        double at = l->now.begin + l->time.value[l->first + r];
        if (!(fabs(at) < 1e9))
            return cgs_fail(CGS_EFORMAT, "%s: the time of row %" PRId64 " is %g", l->table_path,
                            l->first + r, at);
        CGS_TRY(show(l, path, at));
        const cgs_picture p = {l->frame.rgb, l->frame.width, l->frame.height, 3, false};
        CGS_TRY(take(user, &p));
    }
    return CGS_OK;
}

static void close_lerobot(void *self) {
    lerobot *l = self;
    close_table(l);
    cgs_video_close(l->film);
    free(l->place);
    free(l);
}

cgs_status cgs_recording_open_lerobot(cgs_recording *r, const cgs_choices *c) {
    lerobot *l = calloc(1, sizeof *l);
    if (!l) return cgs_fail(CGS_ENOMEM, "%s: no memory", r->path);
    l->r = r;
    r->self = l;
    r->begin = begin;
    r->numbers = numbers;
    r->pictures = pictures;
    r->close = close_lerobot;
    CGS_TRY(read_info(l, c));
    if (l->version == 3) CGS_TRY(read_places(l));
    snprintf(r->note, sizeof r->note,
             "LeRobot version %d, pictures from \"%s\", actions from \"%s\"", l->version, l->camera,
             l->source[r->action]);
    return CGS_OK;
}

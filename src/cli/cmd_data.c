/* cmd_data.c - cgs data info, preview, check, convert: a dataset before it is used. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "convert/convert.h"
#include "data/check.h"
#include "data/dataset.h"
#include "data/stats.h"
#include "io/gif.h"
#include "train/train.h"

typedef struct request {
    const char *file, *out;
    const char *size, *fit, *pixels, *action;
    bool late;
    cgs_words settings;
    bool json, quiet;
    int episodes, frames, fps;
} request;

/* ---- info -------------------------------------------------------------------------------- */

typedef struct lengths {
    int shortest, longest;
    double mean;
} lengths;

static lengths episode_lengths(const cgs_source *s) {
    lengths l = {INT_MAX, 0, 0};
    for (int e = 0; e < s->episodes; e++) {
        if (s->ep_len[e] < l.shortest) l.shortest = s->ep_len[e];
        if (s->ep_len[e] > l.longest) l.longest = s->ep_len[e];
        l.mean += s->ep_len[e];
    }
    l.mean /= s->episodes;
    return l;
}

static void print_info(cgs_dataset *d, const cgs_stats *stats) {
    const cgs_source *s = cgs_dataset_source(d);
    lengths l = episode_lengths(s);
    printf("%s\n\n", s->path);
    printf("episodes   %d of %d to %d rows (mean %.1f)\n", s->episodes, l.shortest, l.longest,
           l.mean);
    printf("rows       %" PRId64 "\n", s->rows);
    if (s->pixels >= 0) printf("frames     %dx%d", s->width, s->height);
    if (s->pixels >= 0 && s->pixels_every > 1) printf(", one row in %d", s->pixels_every);
    if (s->pixels >= 0) printf("\n");
    printf("\ncolumn                           type  row            stored as\n");
    for (int i = 0; i < s->column_count; i++) {
        const cgs_column *c = &s->columns[i];
        char shape[64] = "";
        for (int k = 0; k < c->rank && k < CGS_COLUMN_RANK; k++) {
            size_t used = strlen(shape);
            snprintf(shape + used, sizeof shape - used, "%s%" PRId64, k ? "x" : "", c->shape[k]);
        }
        printf("%-32s %-5s %-14s %s%s\n", c->name, cgs_column_type_name(c->dtype),
               c->rank ? shape : "1", cgs_dataset_layout(d, i),
               c->dtype != CGS_COL_OTHER && !c->readable ? " (cannot be read)" : "");
    }
    int n;
    const cgs_attribute *a = cgs_dataset_attributes(d, &n);
    if (n) printf("\nattribute                        value\n");
    for (int i = 0; i < n; i++) printf("%-32s %s\n", a[i].name, a[i].value);
    if (!stats) return;
    printf("\naction     mean          std (n-1)     std (n)       least         greatest\n");
    for (int j = 0; j < stats->dims; j++)
        printf("%-10d %-13.6g %-13.6g %-13.6g %-13.6g %-13.6g%s\n", j, stats->mean[j],
               stats->std_unbiased[j], stats->std_population[j], stats->low[j], stats->high[j],
               stats->constant[j] ? " constant: std set to 1" : "");
    printf("over %" PRId64 " rows; %" PRId64 " with NaN skipped\n", stats->rows, stats->skipped);
}

static cgs_status print_json(cJSON *root) {
    char *text = root ? cJSON_PrintUnformatted(root) : NULL;
    cJSON_Delete(root);
    if (!text) return cgs_fail(CGS_ENOMEM, "no memory for the result");
    puts(text);
    cJSON_free(text);
    return CGS_OK;
}

static cgs_status print_info_json(cgs_dataset *d, const cgs_stats *stats) {
    const cgs_source *s = cgs_dataset_source(d);
    lengths l = episode_lengths(s);
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "file", s->path);
    cJSON_AddNumberToObject(root, "episodes", s->episodes);
    cJSON_AddNumberToObject(root, "rows", (double)s->rows);
    cJSON_AddNumberToObject(root, "shortest", l.shortest);
    cJSON_AddNumberToObject(root, "longest", l.longest);
    cJSON_AddNumberToObject(root, "height", s->height);
    cJSON_AddNumberToObject(root, "width", s->width);
    cJSON_AddNumberToObject(root, "action_dim", s->action_dim);
    cJSON *columns = cJSON_AddArrayToObject(root, "columns");
    for (int i = 0; i < s->column_count; i++) {
        const cgs_column *c = &s->columns[i];
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "name", c->name);
        cJSON_AddStringToObject(o, "dtype", cgs_column_type_name(c->dtype));
        cJSON *shape = cJSON_AddArrayToObject(o, "shape");
        for (int k = 0; k < c->rank && k < CGS_COLUMN_RANK; k++)
            cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)c->shape[k]));
        cJSON_AddStringToObject(o, "layout", cgs_dataset_layout(d, i));
        cJSON_AddBoolToObject(o, "readable", c->readable);
        cJSON_AddItemToArray(columns, o);
    }
    int n;
    const cgs_attribute *a = cgs_dataset_attributes(d, &n);
    cJSON *attributes = cJSON_AddObjectToObject(root, "attributes");
    for (int i = 0; i < n; i++) {
        /* as text: a seed may need more than the 53 bits of a JSON number */
        if (a[i].number)
            cJSON_AddRawToObject(attributes, a[i].name, a[i].value);
        else
            cJSON_AddStringToObject(attributes, a[i].name, a[i].value);
    }
    if (stats) {
        cJSON *o = cJSON_AddObjectToObject(root, "action");
        cJSON_AddNumberToObject(o, "rows", (double)stats->rows);
        cJSON_AddNumberToObject(o, "skipped", (double)stats->skipped);
        cJSON_AddItemToObject(o, "mean", cJSON_CreateDoubleArray(stats->mean, stats->dims));
        cJSON_AddItemToObject(o, "std_unbiased",
                              cJSON_CreateDoubleArray(stats->std_unbiased, stats->dims));
        cJSON_AddItemToObject(o, "std_population",
                              cJSON_CreateDoubleArray(stats->std_population, stats->dims));
        cJSON_AddItemToObject(o, "low", cJSON_CreateDoubleArray(stats->low, stats->dims));
        cJSON_AddItemToObject(o, "high", cJSON_CreateDoubleArray(stats->high, stats->dims));
    }
    return print_json(root);
}

static cgs_status info(cgs_dataset *d, const request *r) {
    cgs_stats stats;
    bool known = cgs_dataset_source(d)->action >= 0;
    if (known) CGS_TRY(cgs_stats_compute(&stats, cgs_dataset_source(d), "action"));
    if (r->json) return print_info_json(d, known ? &stats : NULL);
    print_info(d, known ? &stats : NULL);
    return CGS_OK;
}

/* ---- check ------------------------------------------------------------------------------- */

static bool show_check(void *user, int64_t done, int64_t total) {
    cgs_progress *p = user;
    p->total = (double)total;
    cgs_progress_update(p, (double)done, NULL);
    return !cgs_interrupted();
}

static void add_sentences(cJSON *root, const char *name, const cgs_sentence *list, int count) {
    cJSON *array = cJSON_AddArrayToObject(root, name);
    for (int i = 0; i < count && i < CGS_FINDINGS; i++)
        cJSON_AddItemToArray(array, cJSON_CreateString(list[i].s));
}

static cgs_status print_check_json(const cgs_findings *found, const cgs_check *c,
                                   const cgs_source *s, const char *file) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "file", file);
    cJSON_AddBoolToObject(root, "ok", found->problems == 0);
    add_sentences(root, "problems", found->problem, found->problems);
    add_sentences(root, "remarks", found->remark, found->remarks);
    if (s) {
        cJSON_AddNumberToObject(root, "episodes", s->episodes);
        cJSON_AddNumberToObject(root, "frames", (double)c->frames);
        cJSON_AddNumberToObject(root, "numbers", (double)c->numbers);
        cJSON_AddNumberToObject(root, "windows", (double)c->accepted.windows);
    }
    if (s && *c->accepted.column && !isnan(c->accepted.explained_now)) {
        cJSON_AddStringToObject(root, "aligned_with", c->accepted.column);
        cJSON_AddNumberToObject(root, "explained_now", c->accepted.explained_now);
        cJSON_AddNumberToObject(root, "explained_late", c->accepted.explained_late);
    }
    return print_json(root);
}

static void print_check(const cgs_check *c, const cgs_source *s) {
    printf("%s: %d episodes, %" PRId64 " frames and %" PRId64 " numbers read, no problem found\n",
           s->path, s->episodes, c->frames, c->numbers);
    printf("frames %dx%d, actions of %d numbers, %" PRId64 " windows to train on\n", s->width,
           s->height, s->action_dim, c->accepted.windows);
    if (*c->accepted.column && !isnan(c->accepted.explained_now))
        printf("the action of a row explains %.0f%% of the change of \"%s\" to the next row, that "
               "of the next row %.0f%%\n",
               100 * c->accepted.explained_now, c->accepted.column,
               100 * c->accepted.explained_late);
}

/* Windows are those of the settings given, frames of any size are fine unless one is asked for. */
static cgs_status read_needs(const request *r, cgs_needs *needs) {
    cgs_run_config c = {0};
    cgs_section sections[2];
    CGS_TRY(cgs_run_preset(&c, r->size ? r->size : "paper"));
    if (!r->size) c.model.image_size = 0;
    cgs_run_sections(&c, sections);
    for (int i = 0; i < r->settings.count; i++)
        CGS_TRY(cgs_config_assign(sections, 2, r->settings.word[i]));
    *needs = (cgs_needs){.image_size = c.model.image_size,
                         .num_steps = c.model.history + 1,
                         .frameskip = c.model.frameskip};
    return CGS_OK;
}

/* everything that is found, a line each on standard error; then the verdict */
static cgs_status check(const char *file, const request *r) {
    cgs_dataset *d = NULL;
    cgs_findings found = {0};
    cgs_check c = {0};
    cgs_needs needs;
    CGS_TRY(read_needs(r, &needs));
    cgs_status rc = cgs_dataset_open_finding(&d, file, &found);
    if (rc != CGS_OK && found.problems == 0) return rc;
    const cgs_source *s = d ? cgs_dataset_source(d) : NULL;
    if (d) {
        cgs_progress bar;
        cgs_progress_begin(&bar, "check", (double)s->rows, r->quiet);
        cgs_catch_interrupt();
        rc = cgs_dataset_check(&found, &c, d, &needs, show_check, &bar);
        cgs_progress_end(&bar);
        if (rc == CGS_ESTOPPED) rc = cgs_fail(CGS_EIO, "stopped before the end of the file");
    }
    bool judged = !d || rc == CGS_OK;
    if (judged && r->json) rc = print_check_json(&found, &c, s, file);
    for (int i = 0; judged && !r->json && i < found.problems && i < CGS_FINDINGS; i++)
        fprintf(stderr, "problem: %s\n", found.problem[i].s);
    for (int i = 0; judged && !r->json && !r->quiet && i < found.remarks && i < CGS_FINDINGS; i++)
        fprintf(stderr, "remark: %s\n", found.remark[i].s);
    if (judged && !found.problems && !r->json && !r->quiet) print_check(&c, s);
    cgs_dataset_close(d);
    if (judged && found.problems)
        return cgs_fail(CGS_EFORMAT, "%s: %d problem%s: cgs train refuses it", file, found.problems,
                        found.problems == 1 ? "" : "s");
    return rc;
}

/* ---- preview ----------------------------------------------------------------------------- */

enum { GAP = 4 /* pixels between episodes */, MOST_EPISODES = 16 };

typedef struct strip {
    const cgs_source *s;
    int n;                      /* episodes side by side */
    int episode[MOST_EPISODES]; /* (n) */
    int width;
    uint8_t *rgb;   /* (height, width, 3) one row's image */
    uint8_t *frame; /* (height, source width, 3) */
} strip;

/* an episode that has ended keeps its last frame */
static cgs_status draw(strip *p, int t) {
    const cgs_source *s = p->s;
    for (int i = 0; i < p->n; i++) {
        int e = p->episode[i];
        if (t >= s->ep_len[e] || t % s->pixels_every != 0) continue;
        CGS_TRY(s->read_pixels(s->self, s->ep_offset[e] + t, 1, 1, p->frame));
        const size_t line = (size_t)s->width * 3;
        for (int y = 0; y < s->height; y++)
            memcpy(p->rgb +
                       ((size_t)y * (size_t)p->width + (size_t)i * (size_t)(s->width + GAP)) * 3,
                   p->frame + (size_t)y * line, line);
    }
    return CGS_OK;
}

static cgs_status preview(cgs_dataset *d, const request *r) {
    const cgs_source *s = cgs_dataset_source(d);
    if (!r->out) return cgs_fail(CGS_EARG, "preview needs --out FILE.gif");
    if (s->pixels < 0) return cgs_fail(CGS_EFORMAT, "%s: it has no column \"pixels\"", s->path);
    if (r->episodes < 1 || r->episodes > MOST_EPISODES)
        return cgs_fail(CGS_EARG, "--episodes %d is not in 1..%d", r->episodes, MOST_EPISODES);
    if (r->frames < 1) return cgs_fail(CGS_EARG, "--frames %d is not positive", r->frames);
    if (r->fps < 0 || r->fps > 50) return cgs_fail(CGS_EARG, "--fps %d is not in 0..50", r->fps);

    strip p = {.s = s, .n = r->episodes < s->episodes ? r->episodes : s->episodes};
    int longest = 0;
    for (int i = 0; i < p.n; i++) { /* spread over the dataset */
        p.episode[i] = (int)((int64_t)i * s->episodes / p.n);
        if (s->ep_len[p.episode[i]] > longest) longest = s->ep_len[p.episode[i]];
    }
    if (longest > r->frames) longest = r->frames;
    p.width = p.n * s->width + (p.n - 1) * GAP;
    const size_t bytes = (size_t)p.width * (size_t)s->height * 3;
    p.rgb = malloc(bytes);
    p.frame = malloc((size_t)s->width * (size_t)s->height * 3);
    const char *rate = cgs_dataset_attribute(d, "frame_rate");
    double fps = r->fps ? r->fps : rate ? atof(rate) : 10;
    if (!(fps >= 1 && fps <= 50)) fps = fps > 50 ? 50 : 10;
    cgs_gif *g = NULL;
    cgs_status rc = CGS_OK;
    if (!p.rgb || !p.frame) rc = cgs_fail(CGS_ENOMEM, "no memory for an image");
    if (rc == CGS_OK) memset(p.rgb, 128, bytes);
    if (rc == CGS_OK) rc = cgs_gif_open(&g, r->out, p.width, s->height);
    for (int t = 0; t < longest && rc == CGS_OK; t++) {
        rc = draw(&p, t);
        /* hold the last frame before the loop restarts */
        int delay = (int)(100 / fps + 0.5);
        if (rc == CGS_OK) rc = cgs_gif_add(g, p.rgb, t + 1 == longest ? delay + 70 : delay);
    }
    if (rc == CGS_OK)
        rc = cgs_gif_close(g);
    else
        cgs_gif_abandon(g);
    if (rc == CGS_OK && !r->quiet)
        fprintf(stderr, "%s: %d episodes, %d frames\n", r->out, p.n, longest);
    free(p.rgb);
    free(p.frame);
    return rc;
}

/* ---- convert ----------------------------------------------------------------------------- */

static bool show_conversion(void *user, int64_t done, int64_t total) {
    cgs_progress *p = user;
    p->total = (double)total;
    cgs_progress_update(p, (double)done, NULL);
    return !cgs_interrupted();
}

static cgs_status read_conversion(const char *in, const request *r, cgs_convert_options *o) {
    *o = (cgs_convert_options){.in = in,
                               .out = r->out,
                               .size = 224,
                               .late = r->late,
                               .choices = {r->pixels, r->action, r->fps}};
    char *end = NULL;
    if (!r->out) return cgs_fail(CGS_EARG, "convert needs --out FILE.h5");
    if (r->size) o->size = (int)strtol(r->size, &end, 10);
    if (end && (end == r->size || *end))
        return cgs_fail(CGS_EARG, "--size \"%.40s\" is not a number of pixels", r->size);
    return cgs_fit_of(r->fit, &o->fit);
}

static cgs_status convert(const char *in, const request *r) {
    cgs_convert_options o;
    cgs_converted made;
    cgs_progress bar;
    CGS_TRY(read_conversion(in, r, &o));
    cgs_progress_begin(&bar, "convert", 1, r->quiet);
    cgs_catch_interrupt();
    cgs_status rc = cgs_convert(&o, &made, show_conversion, &bar);
    cgs_progress_end(&bar);
    if (rc == CGS_ESTOPPED) rc = CGS_EIO; /* not a success: the file is not there yet */
    CGS_TRY(rc);
    if (r->json) {
        cJSON *root = cJSON_CreateObject();
        cJSON_AddStringToObject(root, "file", r->out);
        cJSON_AddNumberToObject(root, "episodes", (double)made.episodes);
        cJSON_AddNumberToObject(root, "resumed", (double)made.resumed);
        cJSON_AddNumberToObject(root, "rows", (double)made.rows);
        cJSON_AddStringToObject(root, "columns", made.names);
        cJSON_AddStringToObject(root, "understood", made.note);
        return print_json(root);
    }
    if (r->quiet) return CGS_OK;
    printf("%s: %s\n", in, made.note);
    printf("%s: %" PRId64 " episodes, %" PRId64
           " rows; frames %dx%d, by %s from %dx%d; columns %s\n",
           r->out, made.episodes, made.rows, o.size, o.size, r->fit, made.width, made.height,
           made.names);
    return CGS_OK;
}

/* ---- the verb ------------------------------------------------------------------------------ */

static int run(int argc, char **argv, const cgs_verb *self) {
    static const struct {
        const char *name;
        cgs_status (*run)(cgs_dataset *, const request *);
    } actions[] = {{"info", info}, {"preview", preview}};
    request r = {.episodes = 4, .frames = 300, .fit = "crop"};
    const cgs_opt opts[] = {
        {"out", "FILE", "preview: the animation (GIF) to write; convert: the dataset", OPT_STR,
         &r.out, false},
        {"episodes", "N", "preview: episodes side by side (4)", OPT_COUNT, &r.episodes, false},
        {"frames", "N", "preview: most frames (300)", OPT_COUNT, &r.frames, false},
        {"fps", "N",
         "preview: frames per second (the dataset's rate, or 10); convert: of pictures with tables",
         OPT_INT, &r.fps, false},
        {"size", "SIZE",
         "check: whether frames suit this preset of cgs train (any size); convert: pixels per side "
         "(224)",
         OPT_STR, &r.size, false},
        {"fit", "HOW", "convert: crop, pad or stretch pictures that are not square (crop)", OPT_STR,
         &r.fit, false},
        {"pixels", "NAME", "convert: which array or camera, where there are several", OPT_STR,
         &r.pixels, false},
        {"action", "NAME", "convert: what the actions are called (action, actions)", OPT_STR,
         &r.action, false},
        {"late", NULL, "convert: a row holds the action that led to it, not the one from it",
         OPT_FLAG, &r.late, false},
        {"json", NULL, "one JSON object on standard output", OPT_FLAG, &r.json, false},
        {"quiet", NULL, "no progress bar, no message on success", OPT_FLAG, &r.quiet, false}};
    cgs_words words;
    cgs_status rc = cgs_options_parse(self, opts, CGS_COUNT(opts), argc, argv, &words);
    bool checks = rc == CGS_OK && words.count >= 2 && !strcmp(words.word[0], "check");
    bool converts = rc == CGS_OK && words.count == 2 && !strcmp(words.word[0], "convert");
    int which = -1;
    if (rc == CGS_OK && (words.count < 2 || (words.count > 2 && !checks)))
        rc = cgs_fail(CGS_EARG, "needs info, preview, check or convert, and a file");
    for (int i = 0; rc == CGS_OK && i < CGS_COUNT(actions); i++)
        if (!strcmp(words.word[0], actions[i].name)) which = i;
    if (rc == CGS_OK && which < 0 && !checks && !converts)
        rc = cgs_fail(CGS_EARG, "unknown action \"%.80s\": use info, preview, check or convert",
                      words.word[0]);
    if (checks) {
        r.settings = (cgs_words){words.word + 2, words.count - 2};
        rc = check(words.word[1], &r);
    } else if (converts) {
        rc = convert(words.word[1], &r);
    } else if (rc == CGS_OK) {
        cgs_dataset *d;
        rc = cgs_dataset_open(&d, words.word[1]);
        if (rc == CGS_OK) {
            rc = actions[which].run(d, &r);
            cgs_dataset_close(d);
        }
    }
    return cgs_exit_code(self, rc);
}

const cgs_verb cmd_data = {
    "data", "info|preview|check|convert FILE [options] [key=value ...]",
    "describes, previews or checks a dataset, or makes one of other recordings",
    "  cgs data info pusht.h5                       columns, attributes, action statistics\n"
    "  cgs data check pusht.h5                      reads all of it; exit 1 where cgs train would\n"
    "                                               refuse it, with all that was found\n"
    "  cgs data preview pusht.h5 --out pusht.gif    a few episodes side by side\n"
    "  cgs data convert demo.hdf5 --out d.h5        HDF5 of any layout, npz, folders of PNG or "
    "video\n"
    "                                               with CSV, LeRobot: see docs/your-data.md",
    run};

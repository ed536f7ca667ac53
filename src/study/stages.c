/* stages.c - a recipe becomes a list of stages; see stages.h. */
#include "study/stages.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/file.h"
#include "core/nearest.h"
#include "data/checksum.h"
#include "env/env.h"
#include "study/expand.h"

enum { SEEDS_MAX = 64 };
#define BACKBONE_LIMIT ((size_t)8 << 30)

/* while the list grows */
typedef struct builder {
    cgs_study *study;
    const cgs_study_options *o;
    cgs_settings settings;
    char *seed[SEEDS_MAX];
    int seeds;
    int *seed_of, *model_of; /* (count) of each stage; -1: of all */
    int round;               /* of training seeds */
    uint64_t backbone;       /* checksum of the file that was given */
} builder;

static cgs_status no_memory(void) { return cgs_fail(CGS_ENOMEM, "study: no memory for stages"); }

static bool has_word(const char *list, const char *word) {
    size_t n = strlen(word);
    for (const char *p = list; (p = strstr(p, word)); p += n)
        if ((p == list || p[-1] == ' ') && (p[n] == ' ' || p[n] == '\0')) return true;
    return false;
}

/* ---- settings ------------------------------------------------------------------------ */

/* a mistyped key must not pass silently: only what the recipe or the defaults know */
static cgs_status assign(cgs_settings *s, const char *text) {
    char key[64];
    size_t n = strcspn(text, "=");
    if (!text[n] || n == 0 || n >= sizeof key || strpbrk(text, "|{}"))
        return cgs_fail(CGS_EARG, "\"%.80s\" is not key=value", text);
    snprintf(key, sizeof key, "%.*s", (int)n, text);
    if (!cgs_settings_get(s, key)) {
        cgs_nearest near = cgs_nearest_to(key);
        for (int i = 0; i < s->count; i++) cgs_nearest_offer(&near, s->key[i]);
        return cgs_fail(CGS_EARG, "unknown setting of a study \"%s\"%s", key,
                        cgs_nearest_hint(&near));
    }
    return cgs_settings_put(s, key, text + n + 1);
}

/* "--name value", or nothing */
static cgs_status option(cgs_settings *s, const char *key, const char *name, const char *value) {
    char text[300] = "";
    if (value) snprintf(text, sizeof text, "--%s %.256s", name, value);
    return cgs_settings_put(s, key, text);
}

/* a file of the user instead of one that the study makes */
static cgs_status given(builder *b, const char *key, const char *path) {
    if (!path) return CGS_OK;
    if (strpbrk(path, " @{}|"))
        return cgs_fail(CGS_EARG, "%.200s: the path must not contain spaces, @, braces or bars",
                        path);
    return cgs_settings_put(&b->settings, key, path);
}

/* backbones of equal shape have files of equal size, so they are compared by checksum */
static cgs_status look_at_backbone(builder *b) {
    char *bytes;
    size_t n;
    if (!has_word(b->o->recipe->rows, "pretrain"))
        return cgs_fail(CGS_EARG, "%s has no frozen backbone", b->o->recipe->name);
    CGS_TRY(cgs_read_file(b->o->backbone, BACKBONE_LIMIT, &bytes, &n));
    b->backbone = cgs_checksum(bytes, n);
    free(bytes);
    return CGS_OK;
}

/* the recipe's environment and its policy give way; what is loaded is asked for in every command */
static cgs_status other_env(builder *b) {
    const cgs_study_options *o = b->o;
    CGS_TRY(given(b, "env", o->plug_in ? o->plug_in : o->env));
    CGS_TRY(cgs_settings_put(&b->settings, "policy", ""));
    return option(&b->settings, "plug_in", "env", o->plug_in);
}

/* rows that an environment cannot have: responses are drawn in the plane of two action channels */
static bool impossible(const cgs_study_options *o, const char *row) {
    const cgs_env_class *env;
    return o->env && !strcmp(row, "geometry") && cgs_env_find(o->env, &env) == CGS_OK &&
           env->action_dim < 2;
}

static cgs_status gather(builder *b) {
    const cgs_study_options *o = b->o;
    const cgs_recipe *r = o->recipe;
    int p = 0;
    while (p < CGS_PRESETS && strcmp(cgs_preset_names[p], o->preset) != 0) p++;
    if (p == CGS_PRESETS)
        return cgs_fail(CGS_EARG,
                        "unknown preset \"%.40s\": use paper, small, brief, laptop or tiny",
                        o->preset);
    const char *sized = r->preset[p];
    if (!sized) return cgs_fail(CGS_EARG, "%s has no preset \"%s\"", r->name, o->preset);
    CGS_TRY(cgs_settings_add(&b->settings, cgs_study_defaults));
    CGS_TRY(cgs_settings_add(&b->settings, r->settings));
    CGS_TRY(cgs_settings_add(&b->settings, sized));
    if (o->env) CGS_TRY(other_env(b));
    for (int i = 0; i < o->assignments; i++) CGS_TRY(assign(&b->settings, o->assignment[i]));
    CGS_TRY(given(b, "data", o->data));
    CGS_TRY(given(b, "backbone", o->backbone));
    if (o->backbone) CGS_TRY(look_at_backbone(b));
    return option(&b->settings, "precision", "precision", o->precision);
}

static cgs_status list_seeds(builder *b) {
    const char *all = b->o->seeds ? b->o->seeds : cgs_settings_get(&b->settings, "seeds");
    const char *text = all;
    while (*text) {
        size_t n = strcspn(text, ", ");
        bool digits = n > 0;
        for (size_t i = 0; i < n; i++) digits = digits && isdigit((unsigned char)text[i]);
        if (!digits || b->seeds == SEEDS_MAX)
            return cgs_fail(CGS_EARG, "\"%.80s\" is not a list of at most %d seeds", all,
                            SEEDS_MAX);
        b->seed[b->seeds] = strndup(text, n);
        if (!b->seed[b->seeds++]) return no_memory();
        text += n;
        text += strspn(text, ", ");
    }
    b->study->seeds = strdup(all);
    b->study->seed_count = b->seeds;
    if (!b->study->seeds) return no_memory();
    return b->seeds ? CGS_OK : cgs_fail(CGS_EARG, "at least one training seed is needed");
}

/* ---- one stage ------------------------------------------------------------------------ */

/* the first seed has no suffix, so that more seeds can be added later */
static void model_name(const builder *b, int model, int seed, char *out, size_t size) {
    const char *label = b->o->recipe->variant[model].label;
    if (seed == 0)
        snprintf(out, size, "%s", label);
    else
        snprintf(out, size, "%s-s%s", label, b->seed[seed]);
}

static cgs_status set_model_holes(builder *b, int model, int seed) {
    char name[160], *all = NULL;
    size_t size;
    int s = seed < 0 ? 0 : seed;
    FILE *f = open_memstream(&all, &size);
    if (!f) return no_memory();
    for (int i = 0; i < b->o->recipe->variants; i++) {
        model_name(b, i, s, name, sizeof name);
        fprintf(f, "%s@/models/%s", i ? " " : "", name);
    }
    cgs_status rc = fclose(f) == 0 ? cgs_settings_put(&b->settings, "models", all) : no_memory();
    free(all);
    CGS_TRY(rc);
    char of_seed[64] = "";
    if (s > 0) snprintf(of_seed, sizeof of_seed, ", seed %.40s", b->seed[s]);
    CGS_TRY(cgs_settings_put(&b->settings, "of_seed", of_seed));
    CGS_TRY(cgs_settings_put(&b->settings, "first_seed", ""));
    CGS_TRY(cgs_settings_put(&b->settings, "seed", b->seed[s]));
    if (model < 0) return CGS_OK;
    model_name(b, model, s, name, sizeof name);
    CGS_TRY(cgs_settings_put(&b->settings, "model", name));
    CGS_TRY(cgs_settings_put(&b->settings, "method", b->o->recipe->variant[model].method));
    return cgs_settings_put(&b->settings, "extra", b->o->recipe->variant[model].extra);
}

/* The first seed is named where there are others, but not in the names of logs. */
static cgs_status name_first_seed(builder *b, const cgs_study_row *row, int seed) {
    char text[64];
    if (seed != 0 || b->seeds < 2 || row->each == CGS_EACH_FIRST) return CGS_OK;
    snprintf(text, sizeof text, ", seed %.40s", b->seed[0]);
    return cgs_settings_put(&b->settings, "first_seed", text);
}

/* "collect:1 train:16": of one row, 0 where it is not there */
static double minutes_of(const builder *b, const char *id) {
    size_t n = strlen(id);
    for (const char *p = cgs_settings_get(&b->settings, "minutes"); (p = strstr(p, id)); p += n)
        if (p[n] == ':' && (p == cgs_settings_get(&b->settings, "minutes") || p[-1] == ' '))
            return strtod(p + n + 1, NULL);
    return 0;
}

/* does stage i need stage j, whose row it names? */
static bool concerns(const builder *b, int i, int j) {
    bool seed = b->seed_of[i] < 0 || b->seed_of[j] < 0 || b->seed_of[i] == b->seed_of[j];
    bool model = b->model_of[i] < 0 || b->model_of[j] < 0 || b->model_of[i] == b->model_of[j];
    return seed && model;
}

/* the stages before stage `at` whose rows are named; "*": all of them */
static cgs_status find_stages(builder *b, int at, const char *ids, int **found, int *count) {
    cgs_study *s = b->study;
    *found = calloc((size_t)at + 1, sizeof **found);
    if (!*found) return no_memory();
    bool all = !strcmp(ids, "*");
    for (int j = 0; j < at; j++)
        if (all || (has_word(ids, s->stage[j].row->id) && concerns(b, at, j)))
            (*found)[(*count)++] = j;
    return CGS_OK;
}

static cgs_status link_stages(builder *b, int at) {
    cgs_stage *g = &b->study->stage[at];
    CGS_TRY(find_stages(b, at, g->row->needs, &g->needs, &g->need_count));
    return find_stages(b, at, g->row->after, &g->after, &g->after_count);
}

/* The hash covers a stage's words before the folder and the machine are filled in. */
static cgs_status hash_stage(builder *b, cgs_stage *g, const char *text) {
    char *all = NULL;
    size_t size;
    FILE *f = open_memstream(&all, &size);
    if (!f) return no_memory();
    fputs(text, f);
    if (b->o->data) { /* a different file of the same name is different data */
        struct stat st;
        if (stat(b->o->data, &st) == 0) fprintf(f, " %lld bytes", (long long)st.st_size);
    }
    if (b->o->backbone) fprintf(f, " backbone %016llx", (unsigned long long)b->backbone);
    for (int i = 0; i < g->need_count; i++) fprintf(f, " %s", b->study->stage[g->needs[i]].hash);
    if (fclose(f) != 0) {
        free(all);
        return no_memory();
    }
    snprintf(g->hash, sizeof g->hash, "%016llx", (unsigned long long)cgs_checksum(all, size));
    free(all);
    return CGS_OK;
}

static cgs_status set_machine(builder *b, bool real) {
    char threads[24];
    snprintf(threads, sizeof threads, "%d", b->o->threads);
    char cores[24];
    snprintf(cores, sizeof cores, "%d", b->o->cores);
    CGS_TRY(option(&b->settings, "device", "device", real ? b->o->device : NULL));
    CGS_TRY(option(&b->settings, "cores", "threads", real && b->o->cores > 0 ? cores : NULL));
    return option(&b->settings, "threads", "threads", real && b->o->threads > 0 ? threads : NULL);
}

/* "Train X, seed 3" as a file name: "train-x-seed-3" */
static char *slug(const char *name) {
    char *out = strdup(name);
    size_t n = 0;
    for (const char *p = name; out && *p; p++) {
        bool good = isalnum((unsigned char)*p) || *p == '.' || *p == '-';
        if (good)
            out[n++] = (char)tolower((unsigned char)*p);
        else if (n && out[n - 1] != '-')
            out[n++] = '-';
    }
    if (out) out[n] = '\0';
    return out;
}

/* DIR/FOLDER/NAME.ENDING, owned by the caller; NULL: no memory, or no name for want of it */
static char *path_of(const char *dir, const char *folder, const char *name, const char *ending) {
    if (!name) return NULL;
    size_t size = strlen(dir) + strlen(folder) + strlen(name) + strlen(ending) + 4;
    char *path = malloc(size);
    if (path) snprintf(path, size, "%s/%s/%s.%s", dir, folder, name, ending);
    return path;
}

static cgs_status fill_stage(builder *b, int at) {
    cgs_stage *g = &b->study->stage[at];
    const char *dir = b->o->dir;
    char *text = NULL, *output = NULL, *file = NULL;
    CGS_TRY(link_stages(b, at));
    cgs_status rc = set_machine(b, false);
    if (rc == CGS_OK) rc = cgs_expand(&text, g->row->command, &b->settings);
    if (rc == CGS_OK) rc = hash_stage(b, g, text);
    free(text);
    text = NULL;
    if (rc == CGS_OK) rc = set_machine(b, true);
    if (rc == CGS_OK) rc = cgs_expand(&text, g->row->command, &b->settings);
    if (rc == CGS_OK) rc = cgs_expand(&output, g->row->output, &b->settings);
    char *plain = NULL;
    if (rc == CGS_OK) rc = cgs_expand(&plain, g->row->name, &b->settings);
    if (rc == CGS_OK) rc = name_first_seed(b, g->row, b->seed_of[at]);
    if (rc == CGS_OK) rc = cgs_expand(&g->name, g->row->name, &b->settings);
    g->minutes = minutes_of(b, g->row->id);
    if (rc == CGS_OK) {
        g->word = cgs_split_words(text, &g->words);
        g->output = cgs_in_folder(output, dir);
        file = slug(plain);
        g->log = path_of(dir, "logs", file, "txt");
        bool lines = !strcmp(g->row->output, CGS_STUDY_LINES);
        if (lines) g->part = path_of(dir, "parts", file, "jsonl");
        if (!g->word || !g->output || !g->log || (lines && !g->part)) rc = no_memory();
    }
    for (int i = 0; rc == CGS_OK && i < g->words;
         i++) { /* after splitting: dir may contain spaces */
        char *word = cgs_in_folder(g->word[i], dir);
        if (!word) {
            rc = no_memory();
        } else {
            free(g->word[i]);
            g->word[i] = word;
        }
    }
    free(plain);
    free(text);
    free(output);
    free(file);
    return rc;
}

static cgs_status add_stage(builder *b, const cgs_study_row *row, int model, int seed) {
    cgs_study *s = b->study;
    size_t n = (size_t)s->count + 1;
    cgs_stage *more = realloc(s->stage, n * sizeof *more);
    if (more) s->stage = more;
    int *seeds = realloc(b->seed_of, n * sizeof *seeds);
    if (seeds) b->seed_of = seeds;
    int *models = realloc(b->model_of, n * sizeof *models);
    if (models) b->model_of = models;
    if (!more || !seeds || !models) return no_memory();
    b->seed_of[s->count] = seed;
    b->model_of[s->count] = model;
    s->stage[s->count] = (cgs_stage){.row = row, .round = b->round};
    s->count++;
    CGS_TRY(set_model_holes(b, model, seed));
    return fill_stage(b, s->count - 1);
}

/* the stages of a row that belong to a training seed */
static cgs_status add_row(builder *b, const cgs_study_row *row, int seed) {
    bool once = row->each == CGS_EACH_STUDY || row->each == CGS_EACH_FIRST;
    if (once && seed > 0) return CGS_OK;
    if (row->each == CGS_EACH_STUDY) return add_stage(b, row, -1, -1);
    if (row->each == CGS_EACH_SEED) return add_stage(b, row, -1, seed);
    for (int m = 0; m < b->o->recipe->variants; m++) CGS_TRY(add_stage(b, row, m, seed));
    return CGS_OK;
}

/* ---- the list ------------------------------------------------------------------------ */

static bool called(const cgs_stage *g, const char *what) {
    return !strcmp(g->row->id, what) || !strcmp(g->name, what);
}

/* the requested stages and, backwards, those they need */
static cgs_status choose(cgs_study *s, const cgs_study_options *o, const char *rows) {
    for (int k = 0; k < o->onlys; k++) {
        bool any = false;
        for (int i = 0; i < s->count; i++) {
            if (!called(&s->stage[i], o->only[k])) continue;
            any = s->stage[i].selected = true;
        }
        if (!any && impossible(o, o->only[k]))
            return cgs_fail(CGS_EARG, "%s has one action channel, %s needs two", o->env,
                            o->only[k]);
        if (!any)
            return cgs_fail(CGS_EARG, "%s has no stage \"%.80s\"; its stages are %s",
                            s->recipe->name, o->only[k], rows);
    }
    for (int i = s->count - 1; i >= 0; i--) {
        cgs_stage *g = &s->stage[i];
        if (!o->onlys) g->selected = true;
        bool all = !strcmp(g->row->needs, "*"); /* takes whatever exists */
        for (int k = 0; g->selected && !all && k < g->need_count; k++)
            s->stage[g->needs[k]].selected = true;
    }
    return CGS_OK;
}

static cgs_status build(builder *b) {
    cgs_study *s = b->study;
    const cgs_recipe *r = b->o->recipe;
    CGS_TRY(gather(b));
    CGS_TRY(list_seeds(b));
    int ids;
    const char *own = cgs_settings_get(&b->settings, "rows"), *rows = *own ? own : r->rows;
    char **id = cgs_split_words(rows, &ids);
    if (!id) return no_memory();
    cgs_status rc = CGS_OK;
    for (int k = 0; k < b->seeds * ids && rc == CGS_OK; k++) {
        const char *what = id[k % ids];
        const cgs_study_row *row = cgs_study_row_find(what);
        bool there = (b->o->data && !strcmp(what, "collect")) ||
                     (b->o->backbone && !strcmp(what, "pretrain")) || impossible(b->o, what);
        if (!row) rc = cgs_fail(CGS_EARG, "unknown row \"%s\"", what);
        b->round = k / ids;
        if (rc == CGS_OK && !there) rc = add_row(b, row, b->round);
    }
    for (int i = 0; i < ids; i++) free(id[i]);
    free(id);
    CGS_TRY(rc);
    s->env = strdup(b->o->env ? b->o->env : cgs_settings_get(&b->settings, "env"));
    s->preset = strdup(b->o->preset);
    s->dir = strdup(b->o->dir);
    s->device = strdup(b->o->device ? b->o->device : "auto");
    s->precision = strdup(b->o->precision ? b->o->precision : "default");
    if (b->o->backbone) s->backbone = strdup(b->o->backbone);
    s->journal = cgs_in_folder("@/stages.jsonl", b->o->dir);
    if (!s->env || !s->preset || !s->dir || !s->seeds || !s->device || !s->precision ||
        !s->journal || (b->o->backbone && !s->backbone))
        return no_memory();
    return choose(s, b->o, rows);
}

cgs_status cgs_study_create(cgs_study **out, const cgs_study_options *o) {
    builder b = {.o = o};
    b.study = calloc(1, sizeof *b.study);
    *out = b.study;
    if (!b.study) return no_memory();
    b.study->recipe = o->recipe;
    cgs_status rc = build(&b);
    cgs_settings_free(&b.settings);
    for (int i = 0; i < b.seeds; i++) free(b.seed[i]);
    free(b.seed_of);
    free(b.model_of);
    return rc;
}

void cgs_study_destroy(cgs_study *s) {
    if (!s) return;
    for (int i = 0; i < s->count; i++) {
        cgs_stage *g = &s->stage[i];
        for (int k = 0; k < g->words; k++) free(g->word[k]);
        free(g->word);
        free(g->name);
        free(g->output);
        free(g->log);
        free(g->part);
        free(g->needs);
        free(g->after);
    }
    free(s->stage);
    free(s->dir);
    free(s->preset);
    free(s->env);
    free(s->device);
    free(s->precision);
    free(s->seeds);
    free(s->journal);
    free(s->backbone);
    free(s);
}

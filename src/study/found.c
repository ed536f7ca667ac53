/* found.c - a stage's result in one line, from what its command printed. */
#include <cJSON.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "study/stages.h"
#include "train/method.h"

#define LOG_LIMIT ((size_t)64 << 20)
#define METRICS_LIMIT ((size_t)1 << 30)

typedef struct line {
    char *text; /* (CGS_FOUND_MAX) */
    size_t used;
} line;

__attribute__((format(printf, 2, 3))) static void say(line *l, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(l->text + l->used, CGS_FOUND_MAX - l->used, format, ap);
    va_end(ap);
    l->used += n > 0 ? (size_t)n : 0;
    if (l->used > CGS_FOUND_MAX - 1) l->used = CGS_FOUND_MAX - 1;
}

static double number(const cJSON *j, const char *key) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(j, key);
    return cJSON_IsNumber(v) ? v->valuedouble : NAN;
}

static const char *word(const cJSON *j, const char *key) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(j, key);
    return cJSON_IsString(v) ? v->valuestring : "";
}

static const cJSON *last_of(const cJSON *all) {
    return cJSON_GetArrayItem(all, cJSON_GetArraySize(all) - 1);
}

/* models are named as in the paper; others by their folder */
static const char *model_name(const char *path) {
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    const cgs_method *m = cgs_method_find(base);
    if (!m || m->role == CGS_ROLE_OTHER) return base;
    const char *family = "DINO-WM ";
    size_t n = strlen(family);
    return strncmp(m->title, family, n) ? m->title : m->title + n;
}

/* ---- by verb ------------------------------------------------------------------------- */

static void collected(line *l, const cJSON *all, const cgs_stage *g) {
    (void)g;
    const cJSON *j = last_of(all);
    if (isnan(number(j, "episodes"))) return;
    say(l, "%.0f episodes, %.0f frames", number(j, "episodes"), number(j, "rows"));
    double rate = number(j, "frames_per_second");
    if (rate > 0) say(l, ", %.0f frames/s", rate);
}

/* from metrics.jsonl, which also has the updates before an interruption */
static void trained(line *l, const cJSON *all, const cgs_stage *g) {
    (void)all;
    char path[4096], *text;
    size_t bytes;
    const char *slash = strrchr(g->output, '/');
    snprintf(path, sizeof path, "%.*s/metrics.jsonl", slash ? (int)(slash - g->output) : 0,
             g->output);
    if (cgs_read_file(path, METRICS_LIMIT, &text, &bytes) != CGS_OK) return;
    char *valid = NULL;
    for (char *p = text; (p = strstr(p, "\"valid\":{")); p++) valid = p;
    while (valid && valid > text && valid[-1] != '\n') valid--;
    cJSON *j = valid ? cJSON_ParseWithOpts(valid, NULL, false) : NULL;
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(j, "valid");
    if (v)
        say(l, "%.0f updates; held-out: prediction %.3f, SIGReg %.2f, CGS %.3f, cosine %+.3f",
            number(j, "step"), number(v, "pred"), number(v, "sigreg"), number(v, "cgs"),
            number(v, "cosine"));
    cJSON_Delete(j);
    free(text);
}

static void pretrained(line *l, const cJSON *all, const cgs_stage *g) {
    (void)g;
    const cJSON *j = last_of(all);
    if (isnan(number(j, "invariance"))) return;
    say(l, "%.0f updates; distance of two views %.4f, SIGReg %.3f", number(j, "update"),
        number(j, "invariance"), number(j, "sigreg"));
}

static void planned(line *l, const cJSON *all, const cgs_stage *g) {
    (void)g;
    const cJSON *j = last_of(all);
    if (isnan(number(j, "actions"))) return;
    bool won = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(j, "success"));
    if (won)
        say(l, "reached the goal after %.0f actions", number(j, "actions"));
    else
        say(l, "did not reach the goal in %.0f actions", number(j, "actions"));
}

/* The setting whose rates are shown: the most samples or iterations of each planner. */
static bool is_largest(const cJSON *all, const cJSON *j) {
    const cJSON *o;
    cJSON_ArrayForEach(o, all) {
        if (strcmp(word(o, "kind"), "rate") || strcmp(word(o, "planner"), word(j, "planner")))
            continue;
        if (number(o, "samples") > number(j, "samples") || number(o, "iters") > number(j, "iters"))
            return false;
    }
    return true;
}

static void evaluated(line *l, const cJSON *all, const cgs_stage *g) {
    (void)g;
    const cJSON *j;
    const char *planner = "";
    bool any_area = false;
    cJSON_ArrayForEach(j, all) any_area |= !strcmp(word(j, "kind"), "nauc");
    cJSON_ArrayForEach(j, all) {
        bool rate = !strcmp(word(j, "kind"), "rate"), area = !strcmp(word(j, "kind"), "nauc");
        if (any_area ? !area : !rate) continue;
        if (rate && !is_largest(all, j)) continue;
        if (strcmp(planner, word(j, "planner")) != 0) {
            planner = word(j, "planner");
            say(l, "%s%s%s:", l->used ? "; " : "", planner, area ? " area" : "");
        } else {
            say(l, ",");
        }
        say(l, " %s %.1f", model_name(word(j, "model")), number(j, area ? "nauc" : "mean"));
    }
    if (l->used) say(l, " %%");
}

/* ---- by result file ------------------------------------------------------------------ */

static cJSON *result_of(const cgs_stage *g) {
    char *text;
    size_t bytes;
    if (cgs_read_file(g->output, METRICS_LIMIT, &text, &bytes) != CGS_OK) return NULL;
    cJSON *j = cJSON_ParseWithLength(text, bytes);
    free(text);
    return j;
}

static const cJSON *item(const cJSON *j, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(j, key);
}

/* "what: LeWM 0.1, LeWM+TS 0.2"; value(entry) gives the number of an entry of the list */
static void say_each(line *l, const char *what, const cJSON *list,
                     double (*value)(const cJSON *entry)) {
    const cJSON *e;
    bool first = true;
    cJSON_ArrayForEach(e, list) {
        if (first) say(l, "%s%s", l->used ? "; " : "", what);
        say(l, "%s %s %.3g", first ? ":" : ",", word(e, "name"), value(e));
        first = false;
    }
}

static double gram_error(const cJSON *e) { return number(item(e, "gram_error"), "mean"); }
static double isotropy(const cJSON *e) { return number(item(e, "isotropy"), "mean"); }
static double q_inf(const cJSON *e) { return number(e, "q_inf_median"); }
static double decoded(const cJSON *e) {
    return number(cJSON_GetArrayItem(item(e, "rows"), 0), "D_lin");
}

static double mean_ratio(const cJSON *e) { return number(item(e, "rho"), "mean"); }
static double image_error(const cJSON *e) { return number(e, "error"); }

/* a prior that was fitted, or all of them measured */
static void fitted(line *l, const cJSON *all, const cgs_stage *g) {
    const cJSON *card = last_of(all);
    cJSON *j = strstr(g->output, ".json") ? result_of(g) : NULL;
    say_each(l, "distance from the goal under the prior, relative to doing nothing",
             item(j, "models"), mean_ratio);
    if (!isnan(number(card, "validation_loss")))
        say(l, "squared error on validation pairs %.3f; the mean action has %.3f",
            number(card, "validation_loss"), number(card, "zero_loss"));
    cJSON_Delete(j);
}

static void drawn(line *l, const cJSON *all, const cgs_stage *g) {
    (void)all;
    cJSON *j = result_of(g);
    say_each(l, "squared error of decoded frames", item(j, "decoders"), image_error);
    cJSON_Delete(j);
}

/* mean prediction error of the first episode, which is as recorded */
static double mean_error(const cJSON *e) {
    const cJSON *v;
    double sum = 0;
    int n = 0;
    cJSON_ArrayForEach(v, item(e, "error")) {
        if (!cJSON_IsNumber(v)) continue;
        sum += v->valuedouble;
        n++;
    }
    return n ? sum / n : NAN;
}

static void surprised(line *l, const cJSON *all, const cgs_stage *g) {
    (void)all;
    cJSON *j = result_of(g);
    say_each(l, "mean surprise as recorded",
             item(cJSON_GetArrayItem(item(j, "episodes"), 0), "models"), mean_error);
    cJSON_Delete(j);
}

static void measured(line *l, const cJSON *all, const cgs_stage *g) {
    (void)all;
    cJSON *j = result_of(g);
    say_each(l, "distance of responses from the ideal", item(j, "summary"), gram_error);
    say_each(l, "isotropy", item(j, "summary"), isotropy);
    say_each(l, "contraction of MPPI (lower is better)", item(j, "models"), q_inf);
    cJSON_Delete(j);
}

static void probed(line *l, const cJSON *all, const cgs_stage *g) {
    (void)all;
    char what[96];
    cJSON *j = result_of(g);
    const cJSON *target = cJSON_GetArrayItem(item(j, "targets"), 0);
    snprintf(what, sizeof what, "R2 of %.60s, linear",
             cJSON_IsString(target) ? target->valuestring : "motion");
    say_each(l, what, item(j, "models"), decoded);
    cJSON_Delete(j);
}

/* planning time on patch tokens relative to LeWM, by planner */
static void timed(line *l, const cJSON *all, const cgs_stage *g) {
    (void)all;
    cJSON *j = result_of(g);
    const cJSON *e;
    cJSON_ArrayForEach(e, item(j, "models")) {
        if (strcmp(word(e, "method"), "dinowm-patch") != 0) continue;
        const cJSON *t;
        cJSON_ArrayForEach(t, item(e, "planners"))
            say(l, "%s %s %.1fx", l->used ? "," : "patch tokens against LeWM:", word(t, "planner"),
                number(t, "ratio"));
    }
    cJSON_Delete(j);
}

static void checked(line *l, const cJSON *all, const cgs_stage *g) {
    (void)all;
    cJSON *j = result_of(g);
    const cJSON *e;
    double trials = 0, violations = 0;
    cJSON_ArrayForEach(e, item(j, "statements")) {
        trials += number(e, "trials");
        violations += number(e, "violations");
    }
    if (j)
        say(l, "%d statements, %.0f trials, %.0f violations",
            cJSON_GetArraySize(item(j, "statements")), trials, violations);
    cJSON_Delete(j);
}

/* ---- the log ------------------------------------------------------------------------- */

static const struct {
    const char *verb;
    void (*tell)(line *l, const cJSON *all, const cgs_stage *g);
} verbs[] = {{"collect", collected},  {"train", trained},       {"prior", fitted},
             {"plan", planned},       {"eval", evaluated},      {"geometry", measured},
             {"probe", probed},       {"theory", checked},      {"decode", drawn},
             {"surprise", surprised}, {"pretrain", pretrained}, {"bench", timed}};

/* every line that is a JSON object; lines that are not are left out */
static cJSON *parse_lines(char *text, char **last) {
    cJSON *all = cJSON_CreateArray();
    *last = NULL;
    char *rest;
    for (char *p = strtok_r(text, "\n", &rest); p; p = strtok_r(NULL, "\n", &rest)) {
        cJSON *j = *p == '{' ? cJSON_Parse(p) : NULL;
        if (j) cJSON_AddItemToArray(all, j);
        if (p[strspn(p, " \t\r")]) *last = p;
    }
    return all;
}

void cgs_stage_found(const cgs_stage *g, char found[CGS_FOUND_MAX]) {
    line l = {.text = found};
    char *text, *last;
    size_t bytes;
    found[0] = '\0';
    if (cgs_read_file(g->log, LOG_LIMIT, &text, &bytes) != CGS_OK) return;
    char *body = strchr(text, '\n'); /* after the line with the command */
    cJSON *all = parse_lines(body ? body + 1 : text + bytes, &last);
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        if (g->words && !strcmp(g->word[0], verbs[i].verb)) verbs[i].tell(&l, all, g);
    if (!l.used && last && *last != '{') say(&l, "%s", last);
    cJSON_Delete(all);
    free(text);
}

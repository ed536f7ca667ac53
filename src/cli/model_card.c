/* model_card.c - see model_card.h.  What files say is printed without control characters. */
#include "cli/model_card.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/plain.h"
#include "core/file.h"
#include "env/env.h"

/* ---- plans ----------------------------------------------------------------------------- */

#define LONGEST_LINE ((size_t)64 << 20)
#define KEY "settings" /* of an entry while results are read */

static double number(const cJSON *of, const char *key) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(of, key);
    return cJSON_IsNumber(v) ? v->valuedouble : NAN;
}

static const char *text(const cJSON *of, const char *key) {
    const char *v = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(of, key));
    return v ? v : "";
}

/* The settings without what is drawn: results that differ in seeds alone are one entry. */
static char *key_of(const cJSON *settings) {
    static const char *const drawn[] = {"seed", "start_seed", "starts", "model"};
    cJSON *copy = cJSON_Duplicate(settings, true);
    for (int i = 0; i < 4; i++) cJSON_DeleteItemFromObjectCaseSensitive(copy, drawn[i]);
    char *key = cJSON_PrintUnformatted(copy);
    cJSON_Delete(copy);
    return key;
}

static cJSON *new_entry(cJSON *plans, const cJSON *settings, const char *key) {
    static const char *const texts[] = {"env", "protocol", "planner"};
    static const char *const numbers[] = {"samples", "iters", "tau"};
    cJSON *p = cJSON_CreateObject();
    for (int i = 0; p && i < 3; i++)
        if (text(settings, texts[i])[0])
            cJSON_AddStringToObject(p, texts[i], text(settings, texts[i]));
    for (int i = 0; p && i < 3; i++)
        if (isfinite(number(settings, numbers[i])))
            cJSON_AddNumberToObject(p, numbers[i], number(settings, numbers[i]));
    if (p) cJSON_AddStringToObject(p, KEY, key);
    if (p) cJSON_AddItemToArray(plans, p);
    return p;
}

/* the entry of the same settings, or a new one */
static cJSON *entry_of(cJSON *plans, const cJSON *settings) {
    char *key = key_of(settings);
    cJSON *p = key ? plans->child : NULL;
    while (p && strcmp(text(p, KEY), key) != 0) p = p->next;
    if (!p && key) p = new_entry(plans, settings, key);
    cJSON_free(key);
    return p;
}

static void add_to(cJSON *entry, const char *key, double more) {
    cJSON *v = cJSON_GetObjectItemCaseSensitive(entry, key);
    if (v)
        cJSON_SetNumberValue(v, v->valuedouble + more);
    else if (entry)
        cJSON_AddNumberToObject(entry, key, more);
}

static void read_line(cJSON *plans, const char *line, const char *weights) {
    cJSON *j = cJSON_Parse(line);
    const cJSON *settings = cJSON_GetObjectItemCaseSensitive(j, "settings");
    double episodes = number(j, "episodes"), successes = number(j, "successes");
    bool counts = episodes >= 1 && episodes <= 1e9 && successes >= 0 && successes <= episodes;
    if (!strcmp(text(settings, "weights"), weights) && text(settings, "planner")[0] && counts) {
        cJSON *entry = entry_of(plans, settings);
        add_to(entry, "episodes", episodes);
        add_to(entry, "successes", successes);
    }
    cJSON_Delete(j);
}

/* lines that do not name the weights are not parsed: files may be large */
static bool read_results(cJSON *plans, const char *path, const char *weights) {
    FILE *f = fopen(path, "rb");
    if (!f) return false;
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    while ((n = getline(&line, &room, f)) > 0 && (size_t)n < LONGEST_LINE)
        if (strstr(line, weights)) read_line(plans, line, weights);
    free(line);
    fclose(f);
    cJSON *p;
    cJSON_ArrayForEach(p, plans) cJSON_DeleteItemFromObjectCaseSensitive(p, KEY);
    return cJSON_GetArraySize(plans) > 0;
}

static cgs_status add_plans(cJSON *to, const cgs_described *m) {
    static const char *const places[] = {"results.jsonl", "../results.jsonl",
                                         "../../results.jsonl"};
    char weights[24], path[4096];
    cJSON *plans = cJSON_CreateArray();
    if (!plans) return cgs_fail(CGS_ENOMEM, "%s: no memory to describe it", m->dir);
    snprintf(weights, sizeof weights, "%016" PRIx64, m->weights);
    bool found = false;
    for (int i = 0; m->is_dir && !found && i < 3; i++)
        if (cgs_path_join(path, sizeof path, m->dir, places[i]) == CGS_OK)
            found = read_results(plans, path, weights);
    if (found)
        cJSON_AddItemToObject(to, "plans", plans);
    else
        cJSON_Delete(plans);
    return CGS_OK;
}

/* ---- needs ----------------------------------------------------------------------------- */

cgs_status cgs_model_card_add(cJSON *to, const cgs_described *m) {
    const cgs_env_class *env;
    const char *id = m->has_card ? m->card->env : "";
    cJSON *needs = cJSON_AddObjectToObject(to, "needs");
    bool statistics = m->has_card && cgs_card_has_statistics(m->card);
    bool ok = needs && cJSON_AddNumberToObject(needs, "image_size", m->model->image_size) &&
              cJSON_AddNumberToObject(needs, "action_dim", m->model->action_dim) &&
              cJSON_AddNumberToObject(needs, "frameskip", m->model->frameskip) &&
              cJSON_AddBoolToObject(needs, "action_statistics", !statistics);
    if (ok && m->dino)
        ok = cJSON_AddStringToObject(needs, "column", m->dino->column) &&
             cJSON_AddNumberToObject(needs, "column_values", m->dino->proprio_dim);
    if (ok && *id)
        ok = cJSON_AddStringToObject(needs, "environment", id) &&
             cJSON_AddBoolToObject(needs, "environment_is_here", cgs_env_find(id, &env) == CGS_OK);
    if (!ok) return cgs_fail(CGS_ENOMEM, "%s: no memory to describe it", m->dir);
    return add_plans(to, m);
}

/* ---- as text --------------------------------------------------------------------------- */

static void say(const char *s) { cgs_print_plain(s, stdout); }

static void title(const char *s) { printf("%-12s ", s); }

static void print_training(const cJSON *info, const cJSON *card) {
    double episodes = number(card, "dataset_episodes");
    double updates = number(card, "updates"), whole = number(card, "schedule_updates");
    if (!text(card, "dataset")[0]) {
        title("trained on");
        printf("unknown data: it was imported\n");
        return;
    }
    title(updates > 0 ? "trained on" : "actions of");
    say(text(card, "dataset"));
    if (episodes > 0) printf(", %.0f episodes", episodes);
    if (text(card, "env")[0]) printf(" of "), say(text(card, "env"));
    if (updates > 0 && number(card, "train_fraction") < 1)
        printf(", %.3g %% of them", 100 * number(card, "train_fraction"));
    printf("\n");
    if (!(updates > 0)) return;
    title("trained by");
    say(text(card, "method"));
    if (text(card, "recipe")[0]) printf(", recipe "), say(text(card, "recipe"));
    printf(", %.0f", updates);
    if (whole > updates) printf(" of %.0f", whole);
    printf(" updates, seed "), say(text(card, "seed"));
    if (text(card, "init")[0]) printf(", beginning with "), say(text(card, "init"));
    printf("\n");
    const cJSON *t = cJSON_GetObjectItemCaseSensitive(info, "training");
    if (!t) return;
    title("predicts");
    printf("with an error of %.3g in training; a copy has %.3g, the mean %.3g\n",
           number(t, "prediction"), number(t, "copy"), number(t, "mean"));
}

static bool same_line(const cJSON *p, const cJSON *q) {
    static const char *const keys[] = {"planner", "env", "protocol"};
    for (int i = 0; i < 3; i++)
        if (strcmp(text(p, keys[i]), text(q, keys[i])) != 0) return false;
    return true;
}

static double rate(const cJSON *p) { return number(p, "successes") / number(p, "episodes"); }

/* the best setting of a planner, and of how many */
static void print_best(const cJSON *first, const cJSON *plans) {
    const cJSON *p, *best = first;
    int settings = 0;
    cJSON_ArrayForEach(p, plans) {
        if (!same_line(p, first)) continue;
        settings++;
        if (rate(p) > rate(best)) best = p;
    }
    printf(": %.1f %% of %.0f goals", 100 * rate(best), number(best, "episodes"));
    if (number(best, "samples") > 0) printf(", %.0f candidates", number(best, "samples"));
    if (number(best, "iters") > 0) printf(", %.0f times", number(best, "iters"));
    if (number(best, "tau") > 0) printf(", tau %.3g", number(best, "tau"));
    printf(settings > 1 ? " (the best of %d settings)\n" : "\n", settings);
}

/* one line for each planner and task, in the order of the results */
static void print_plans(const cJSON *plans) {
    const cJSON *p, *earlier;
    cJSON_ArrayForEach(p, plans) {
        for (earlier = plans->child; earlier != p && !same_line(earlier, p);)
            earlier = earlier->next;
        if (earlier != p) continue;
        title("plans");
        say(text(p, "env")), printf(" by "), say(text(p, "planner"));
        if (text(p, "protocol")[0]) printf(" ("), say(text(p, "protocol")), printf(")");
        print_best(p, plans);
    }
}

static void print_needs(const cJSON *needs) {
    double size = number(needs, "image_size");
    title("needs");
    printf("pictures of %.0f x %.0f, actions of %.0f numbers, %.0f to a block", size, size,
           number(needs, "action_dim"), number(needs, "frameskip"));
    if (text(needs, "column")[0])
        printf(", %.0f numbers of ", number(needs, "column_values")), say(text(needs, "column"));
    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(needs, "action_statistics")))
        printf(", means and deviations of actions (--data)");
    if (text(needs, "environment")[0]) {
        printf("; "), say(text(needs, "environment"));
        printf(cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(needs, "environment_is_here"))
                   ? ", which this build has"
                   : ", which this build does not have");
    }
    printf("\n");
}

void cgs_model_card_print(const cJSON *info) {
    const cJSON *needs = cJSON_GetObjectItemCaseSensitive(info, "needs");
    const cJSON *card = cJSON_GetObjectItemCaseSensitive(info, "card");
    if (!needs) return;
    print_training(info, card);
    print_plans(cJSON_GetObjectItemCaseSensitive(info, "plans"));
    print_needs(needs);
    printf("\n");
}

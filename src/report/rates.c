/* rates.c - see rates.h. */
#include "report/rates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/planners.h"
#include "report/method.h"
#include "report/plot.h"

enum { RESAMPLES = 2000, MAX_EPISODES = 1 << 20 };

/* ---- reading ----------------------------------------------------------------------- */

typedef struct reader {
    cgs_rates *rates;
    int foreign; /* lines that are not results */
    const char *why;
    bool failed;
} reader;

/* the array with room for one more element, zeroed; NULL leaves the old one as it was */
static void *grow(void *array, int count, size_t size) {
    char *more = realloc(array, (size_t)(count + 1) * size);
    if (more) memset(more + (size_t)count * size, 0, size);
    return more;
}

static bool is_model_key(const char *key) {
    static const char *const keys[] = {"model", "method",     "weights", "prior",
                                       "seed",  "start_seed", "starts"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!strcmp(key, keys[i])) return true;
    return false;
}

/* planner settings that every planner has; the others are rows of CGS_PLANNER_SETTINGS */
static bool is_planner_key(const char *key) {
    static const char *const keys[] = {"planner", "horizon", "deadline", "batch", "prior_held_out"};
    const cgs_planner_setting *s;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!strcmp(key, keys[i])) return true;
    for (int i = 0; (s = cgs_planner_setting_at(i)); i++)
        if (!strcmp(key, s->key)) return true;
    return false;
}

static cgs_protocol *find_protocol(cgs_rates *r, const cJSON *settings) {
    cJSON *shared = cJSON_CreateObject();
    for (const cJSON *v = settings->child; v; v = v->next)
        if (v->string && !is_model_key(v->string) && !is_planner_key(v->string)) {
            cJSON *copy = cJSON_Duplicate(v, 1);
            if (!copy || !cJSON_AddItemToObject(shared, v->string, copy)) cJSON_Delete(copy);
        }
    char *key = shared ? cJSON_PrintUnformatted(shared) : NULL;
    for (int i = 0; key && i < r->count; i++)
        if (!strcmp(r->protocol[i].key, key)) {
            free(key);
            cJSON_Delete(shared);
            return &r->protocol[i];
        }
    cgs_protocol *more = key ? grow(r->protocol, r->count, sizeof *more) : NULL;
    if (!more) {
        free(key);
        cJSON_Delete(shared);
        return NULL;
    }
    r->protocol = more;
    cgs_protocol *q = &more[r->count++];
    q->settings = shared;
    q->key = key;
    snprintf(q->env, sizeof q->env, "%.60s", cgs_json_text(settings, "env", ""));
    return q;
}

/* "runs/lewm-cgs-s2" into "lewm-cgs" and "2" */
static void split_model(const char *path, char folder[128], char seed[32]) {
    const char *last = strrchr(path, '/');
    snprintf(folder, 128, "%.120s", last ? last + 1 : path);
    seed[0] = '\0';
    size_t n = strlen(folder), at = n;
    while (at > 0 && folder[at - 1] >= '0' && folder[at - 1] <= '9') at--;
    if (at == n || at < 3 || folder[at - 1] != 's' || folder[at - 2] != '-') return;
    snprintf(seed, 32, "%.30s", folder + at);
    folder[at - 2] = '\0';
}

/* "lewm-cgs-2" of the method lewm-cgs is its training seed 2, too */
static void find_seed(const char *method, char folder[128], char seed[32]) {
    size_t n = strlen(method);
    if (*seed || strncmp(folder, method, n) != 0 || folder[n] != '-') return;
    if (!folder[n + 1] || strspn(folder + n + 1, "0123456789") != strlen(folder + n + 1)) return;
    snprintf(seed, 32, "%.30s", folder + n + 1);
    folder[n] = '\0';
}

static int find_model(cgs_protocol *q, const char *method, const char *folder) {
    for (int i = 0; i < q->models; i++)
        if (!strcmp(q->model[i].method, method) && !strcmp(q->model[i].folder, folder)) return i;
    cgs_rate_model *more = grow(q->model, q->models, sizeof *more);
    if (!more) return -1;
    q->model = more;
    cgs_rate_model *m = &more[q->models++];
    snprintf(m->method, sizeof m->method, "%.60s", method);
    snprintf(m->folder, sizeof m->folder, "%.120s", folder);
    snprintf(m->name, sizeof m->name, "%s", cgs_method_title(m->method));
    m->style = cgs_method_style(m->method);
    return q->models - 1;
}

/* Adds "KEY=number", where there is one, to what no axis and no label says of a setting.  Elites
 * are never there: they follow from K unless they were set, and a sweep over K must not split on
 * them. */
static void put_rest(cgs_rate_setting *s, const cJSON *settings, const char *key) {
    size_t used = strlen(s->rest);
    double v = cgs_json_number(settings, key);
    if (isfinite(v))
        snprintf(s->rest + used, sizeof s->rest - used, "%s%s=%g", used ? " " : "", key, v);
}

static int find_setting(cgs_protocol *q, const cJSON *settings) {
    cgs_rate_setting s = {0};
    snprintf(s.planner, sizeof s.planner, "%.30s", cgs_json_text(settings, "planner", "?"));
    s.K = cgs_json_number(settings, "samples");
    s.iters = cgs_json_number(settings, "iters");
    s.tau = cgs_json_number(settings, "tau");
    put_rest(&s, settings, "horizon");
    const cgs_planner_setting *read;
    for (int i = 0; (read = cgs_planner_setting_at(i)); i++)
        if (read->bit & ~(CGS_READS_SAMPLES | CGS_READS_ITERS | CGS_READS_TAU | CGS_READS_ELITES))
            put_rest(&s, settings, read->key);
    put_rest(&s, settings, "deadline");
    snprintf(s.key, sizeof s.key, "%g %g %g %g %.200s", s.K, s.iters, s.tau,
             cgs_json_number(settings, "elites"), s.rest);
    for (int i = 0; i < q->settings_count; i++)
        if (!strcmp(q->setting[i].planner, s.planner) && !strcmp(q->setting[i].key, s.key))
            return i;
    cgs_rate_setting *more = grow(q->setting, q->settings_count, sizeof *more);
    if (!more) return -1;
    q->setting = more;
    more[q->settings_count] = s;
    return q->settings_count++;
}

/* what is wrong with a line, or NULL */
static const char *check_line(const cJSON *line, const cJSON **settings, const cJSON **outcomes) {
    if (strcmp(cgs_json_text(line, "format", ""), "cgs-eval") != 0) return "not a cgs-eval result";
    *settings = cJSON_GetObjectItemCaseSensitive(line, "settings");
    if (!cJSON_IsObject(*settings)) return "without settings";
    *outcomes = cJSON_GetObjectItemCaseSensitive(line, "outcomes");
    if (cJSON_IsObject(*outcomes)) {
        const char *digits = cgs_json_text(*outcomes, "success", "");
        if (!*digits || strspn(digits, "01") != strlen(digits)) return "without outcomes";
        return strlen(digits) > MAX_EPISODES ? "with too many episodes" : NULL;
    }
    *outcomes = cgs_json_list(line, "outcomes") ? *outcomes : NULL;
    if (!*outcomes || !(*outcomes)->child) return "without outcomes";
    if (cJSON_GetArraySize(*outcomes) > MAX_EPISODES) return "with too many episodes";
    for (const cJSON *o = (*outcomes)->child; o; o = o->next)
        if (!cJSON_IsBool(cJSON_GetObjectItemCaseSensitive(o, "success")))
            return "with an outcome that is neither success nor failure";
    return NULL;
}

/* a compact line */
static bool fill_digits(cgs_rate_run *r, const cJSON *outcomes) {
    const char *digits = cgs_json_text(outcomes, "success", "");
    double solves = cgs_json_number(outcomes, "solves");
    double seconds = cgs_json_number(outcomes, "seconds");
    free(r->success);
    r->episodes = (int)strlen(digits);
    r->success = malloc(strlen(digits));
    r->successes = r->solves = 0;
    r->seconds = 0;
    for (int i = 0; r->success && i < r->episodes; i++) {
        r->success[i] = digits[i] == '1';
        r->successes += r->success[i];
    }
    if (isfinite(seconds) && seconds >= 0 && solves >= 1 && solves < 1e9) {
        r->solves = (int)solves;
        r->seconds = seconds;
    }
    return r->success != NULL;
}

static bool fill_run(cgs_rate_run *r, const cJSON *outcomes) {
    if (cJSON_IsObject(outcomes)) return fill_digits(r, outcomes);
    int n = cJSON_GetArraySize(outcomes), i = 0;
    free(r->success);
    r->success = malloc((size_t)n);
    r->episodes = n;
    r->successes = r->solves = 0;
    r->seconds = 0;
    if (!r->success) return false;
    for (const cJSON *o = outcomes->child; o; o = o->next, i++) {
        double solves = cgs_json_number(o, "solves"), seconds = cgs_json_number(o, "seconds");
        r->success[i] = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(o, "success")) != 0;
        r->successes += r->success[i];
        if (isfinite(seconds) && seconds >= 0 && solves >= 1 && solves < 1e6) {
            r->solves += (int)solves;
            r->seconds += seconds;
        }
    }
    return true;
}

static cgs_rate_first first_of(const cJSON *line) {
    const cJSON *j = cJSON_GetObjectItemCaseSensitive(line, "first_plan");
    const cJSON *seconds = cgs_json_list(j, "seconds");
    double successes = cgs_json_number(j, "successes");
    cgs_rate_first f = {.successes = successes >= 0 && successes < 1e9 ? (int)successes : -1,
                        .cost = cgs_json_number(j, "cost"),
                        .size = cgs_json_number(j, "size"),
                        .p50 = NAN,
                        .p99 = NAN};
    if (cJSON_GetArraySize(seconds) == 2) {
        f.p50 = cJSON_GetNumberValue(cJSON_GetArrayItem(seconds, 0));
        f.p99 = cJSON_GetNumberValue(cJSON_GetArrayItem(seconds, 1));
    }
    return f;
}

static void add_line(void *user, const cJSON *line) {
    reader *rd = user;
    const cJSON *settings = NULL, *outcomes = NULL;
    const char *why = check_line(line, &settings, &outcomes);
    if (why) {
        rd->foreign++;
        rd->why = why;
        return;
    }
    char folder[128], seed[32], method[64], pairing[160];
    cgs_protocol *q = find_protocol(rd->rates, settings);
    split_model(cgs_json_text(settings, "model", ""), folder, seed);
    snprintf(method, sizeof method, "%.60s", cgs_json_text(settings, "method", "unknown"));
    find_seed(method, folder, seed);
    int m = q ? find_model(q, method, folder) : -1;
    int s = q ? find_setting(q, settings) : -1;
    if (m < 0 || s < 0) {
        rd->failed = true;
        return;
    }
    snprintf(pairing, sizeof pairing, "%.30s/%.30s/%.30s/%.30s", seed,
             cgs_json_text(settings, "seed", ""), cgs_json_text(settings, "start_seed", ""),
             cgs_json_text(settings, "starts", ""));
    rd->rates->lines++;
    cgs_rate_run *run = NULL;
    for (int i = 0; i < q->runs && !run; i++)
        if (q->run[i].model == m && q->run[i].setting == s && !strcmp(q->run[i].pairing, pairing))
            run = &q->run[i];
    /* the same setting again: the model was retrained, and the last line counts */
    if (run) rd->rates->replaced++;
    if (!run) {
        cgs_rate_run *more = grow(q->run, q->runs, sizeof *more);
        if (more) q->run = more;
        run = more ? &more[q->runs++] : NULL;
    }
    if (!run || !fill_run(run, outcomes)) {
        rd->failed = true;
        return;
    }
    run->model = m;
    run->setting = s;
    run->first = first_of(line);
    snprintf(run->pairing, sizeof run->pairing, "%s", pairing);
    snprintf(run->train, sizeof run->train, "%s", seed);
    snprintf(run->start, sizeof run->start, "%.120s", strchr(pairing, '/'));
    snprintf(run->seed, sizeof run->seed, "%.30s", cgs_json_text(settings, "start_seed", "?"));
    snprintf(run->commit, sizeof run->commit, "%.30s", cgs_json_text(line, "code_commit", "?"));
}

/* the place of a planner in the table; unknown ones come last */
static int place(const char *planner) {
    int i = 0;
    const cgs_planner_kind *kind;
    while ((kind = cgs_planner_kind_at(i)) && strcmp(kind->name, planner) != 0) i++;
    return i;
}

static int by_numbers(const void *a, const void *b) {
    const cgs_rate_setting *x = a, *y = b;
    int px = place(x->planner), py = place(y->planner);
    if (px != py) return px - py;
    int name = strcmp(x->planner, y->planner);
    if (name) return name;
    const double vx[3] = {x->iters, x->tau, x->K}, vy[3] = {y->iters, y->tau, y->K};
    for (int i = 0; i < 3; i++)
        if (vx[i] < vy[i] || vx[i] > vy[i]) return vx[i] < vy[i] ? -1 : 1;
    return strcmp(x->key, y->key);
}

int cgs_rate_model_order(const void *a, const void *b) {
    const cgs_rate_model *x = a, *y = b;
    char fx[64], fy[64];
    cgs_role rx = cgs_method_role(x->method, fx), ry = cgs_method_role(y->method, fy);
    int family = strcmp(fx, fy);
    if (family) return family;
    if (rx != ry) return rx < ry ? -1 : 1;
    int method = strcmp(x->method, y->method);
    return method ? method : strcmp(x->folder, y->folder);
}

/* Sorts models and settings as the paper does, and renumbers them in the runs. */
static bool sort_protocol(cgs_protocol *q) {
    cgs_rate_model *models = malloc((size_t)q->models * sizeof *models);
    cgs_rate_setting *settings = malloc((size_t)q->settings_count * sizeof *settings);
    bool ok = models && settings;
    if (ok) {
        memcpy(models, q->model, (size_t)q->models * sizeof *models);
        memcpy(settings, q->setting, (size_t)q->settings_count * sizeof *settings);
        qsort(q->model, (size_t)q->models, sizeof *q->model, cgs_rate_model_order);
        qsort(q->setting, (size_t)q->settings_count, sizeof *q->setting, by_numbers);
    }
    for (int i = 0; ok && i < q->runs; i++) {
        cgs_rate_run *r = &q->run[i];
        int m = 0, s = 0;
        while (cgs_rate_model_order(&q->model[m], &models[r->model])) m++;
        while (by_numbers(&q->setting[s], &settings[r->setting])) s++;
        r->model = m;
        r->setting = s;
    }
    free(models);
    free(settings);
    return ok;
}

/* several models of one method differ by folder name and colour */
static void name_apart(cgs_protocol *q) {
    int taken[CGS_STYLES];
    for (int i = 0; i < q->models && i < CGS_STYLES; i++)
        taken[i] = q->model[i].style = cgs_style_apart(q->model[i].style, taken, i);
    for (int i = CGS_STYLES; i < q->models; i++) q->model[i].style = i % CGS_STYLES;
    for (int i = 0; i < q->models; i++) {
        bool shared = false;
        for (int k = 0; k < q->models; k++)
            shared |= k != i && !strcmp(q->model[k].method, q->model[i].method);
        if (!shared) continue;
        snprintf(q->model[i].name, sizeof q->model[i].name, "%.60s, %.60s",
                 cgs_method_title(q->model[i].method), q->model[i].folder);
    }
}

/* Names of the settings in which two protocols of an environment differ. */
static void name_protocols(cgs_rates *r) {
    for (int i = 0; i < r->count; i++) {
        cgs_protocol *q = &r->protocol[i];
        size_t used = (size_t)snprintf(q->name, sizeof q->name, "%.60s", cgs_env_name(q->env));
        for (const cJSON *v = q->settings->child; v && used < sizeof q->name - 1; v = v->next) {
            bool differs = false;
            for (int k = 0; k < r->count; k++)
                differs |=
                    !strcmp(r->protocol[k].env, q->env) &&
                    !cJSON_Compare(
                        v, cJSON_GetObjectItemCaseSensitive(r->protocol[k].settings, v->string),
                        true);
            /* never silent: another judge */
            if (!differs && strcmp(v->string, "protocol") != 0) continue;
            char number[32];
            snprintf(number, sizeof number, "%g", cJSON_IsNumber(v) ? v->valuedouble : 0);
            int n = snprintf(q->name + used, sizeof q->name - used, ", %s%.30s%s%.40s",
                             cJSON_IsFalse(v) ? "not " : "", v->string, cJSON_IsBool(v) ? "" : " ",
                             cJSON_IsString(v)   ? v->valuestring
                             : cJSON_IsNumber(v) ? number
                                                 : "");
            used = n < 0 ? sizeof q->name : used + (size_t)n;
        }
        for (char *c = q->name; *c; c++)
            if (*c == '_') *c = ' ';
    }
}

void cgs_rates_read(cgs_rates *r, const cgs_folder *f, cgs_page *p) {
    memset(r, 0, sizeof *r);
    reader rd = {.rates = r};
    cgs_folder_lines(f, p, f->single ? NULL : "results.jsonl", add_line, &rd);
    for (int i = 0; i < r->count && !rd.failed; i++) {
        if (r->protocol[i].models == 0 || r->protocol[i].settings_count == 0) continue;
        rd.failed = !sort_protocol(&r->protocol[i]);
        name_apart(&r->protocol[i]);
    }
    name_protocols(r);
    if (rd.foreign)
        cgs_page_warn(p, "%s%s: %d lines are not results, the last is %s", f->path,
                      f->single ? "" : "/results.jsonl", rd.foreign, rd.why);
    if (rd.failed) p->body.failed = true;
}

void cgs_rates_free(cgs_rates *r) {
    for (int i = 0; i < r->count; i++) {
        cgs_protocol *q = &r->protocol[i];
        for (int k = 0; k < q->runs; k++) free(q->run[k].success);
        free(q->run);
        free(q->model);
        free(q->setting);
        free(q->key);
        cJSON_Delete(q->settings);
    }
    free(r->protocol);
    memset(r, 0, sizeof *r);
}

/* ---- rates and comparisons --------------------------------------------------------- */

static const cgs_rate_run *next_run(const cgs_protocol *q, int setting, int model, int *at) {
    for (; *at < q->runs; (*at)++)
        if (q->run[*at].setting == setting && q->run[*at].model == model) return &q->run[(*at)++];
    return NULL;
}

static const cgs_rate_run *partner(const cgs_protocol *q, const cgs_rate_run *r, int setting,
                                   int model) {
    int at = 0;
    const cgs_rate_run *x;
    while ((x = next_run(q, setting, model, &at)))
        if (!strcmp(x->pairing, r->pairing) && x->episodes == r->episodes) return x;
    return NULL;
}

static void add_first(cgs_rate_first *to, const cgs_rate_first *f) {
    to->successes = to->successes < 0 || f->successes < 0 ? -1 : to->successes + f->successes;
    to->cost += f->cost;
    to->size += f->size;
    to->p50 += f->p50;
    to->p99 += f->p99;
}

bool cgs_rate_of(const cgs_protocol *q, int setting, int model, cgs_rate *out) {
    double *rates = malloc((size_t)(q->runs > 0 ? q->runs : 1) * sizeof *rates), seconds = 0;
    int at = 0, solves = 0;
    const cgs_rate_run *r;
    *out = (cgs_rate){0};
    while (rates && (r = next_run(q, setting, model, &at))) {
        rates[out->runs++] = 100.0 * r->successes / r->episodes;
        out->episodes += r->episodes;
        out->successes += r->successes;
        seconds += r->seconds;
        solves += r->solves;
        add_first(&out->first, &r->first);
    }
    if (out->runs) {
        out->first.cost /= out->runs;
        out->first.size /= out->runs;
        out->first.p50 /= out->runs;
        out->first.p99 /= out->runs;
        out->mean = cgs_mean(rates, out->runs);
        out->sd = cgs_sample_sd(rates, out->runs);
        cgs_interval w = cgs_wilson(out->successes, out->episodes);
        out->wilson = (cgs_interval){100 * w.low, 100 * w.high};
        out->solve_seconds = solves ? seconds / solves : NAN;
    }
    free(rates);
    return out->runs > 0;
}

bool cgs_rate_pair(const cgs_protocol *q, int setting, int a, int b, cgs_paired *out) {
    size_t n = 0;
    int at = 0;
    const cgs_rate_run *r, *o;
    while ((r = next_run(q, setting, a, &at)))
        if (partner(q, r, setting, b)) n += (size_t)r->episodes;
    if (n == 0 || n > MAX_EPISODES) return false;
    uint8_t *x = malloc(2 * n), *y = x ? x + n : NULL;
    if (!x) return false;
    n = 0;
    at = 0;
    while ((r = next_run(q, setting, a, &at)))
        if ((o = partner(q, r, setting, b))) {
            memcpy(x + n, o->success, (size_t)o->episodes);
            memcpy(y + n, r->success, (size_t)r->episodes);
            n += (size_t)r->episodes;
        }
    /* a single resample: the page shows Newcombe's interval, which needs no bootstrap */
    bool ok = cgs_compare_paired(x, y, (int)n, 1, 0, out) == CGS_OK;
    free(x);
    return ok;
}

/* the lines of a training seed with these starts, or, where it has starts of its own, with as many
 * of the same seeds */
static const cgs_rate_run *run_of(const cgs_protocol *q, int setting, int model, const char *train,
                                  const cgs_rate_run *like) {
    const char *hash = strrchr(like->start, '/');
    size_t seeds = hash ? (size_t)(hash - like->start) + 1 : 0;
    const cgs_rate_run *r, *found = NULL;
    int at = 0;
    while ((r = next_run(q, setting, model, &at))) {
        if (strcmp(r->train, train) != 0 || r->episodes != like->episodes) continue;
        if (!strcmp(r->start, like->start)) return r;
        if (!strncmp(r->start, like->start, seeds)) found = r;
    }
    return found;
}

/* gain: (starts) of a training seed, or NULL to ask whether all its lines are there; *crossed
 * becomes false where its starts are others than those of the first */
static bool gain_of(const cgs_protocol *q, int setting, int a, int b, const char *train,
                    const char *first, double *gain, bool *crossed) {
    int at = 0;
    const cgs_rate_run *like;
    while ((like = next_run(q, setting, a, &at))) {
        if (strcmp(like->train, first) != 0) continue;
        const cgs_rate_run *x = run_of(q, setting, a, train, like);
        const cgs_rate_run *y = x ? run_of(q, setting, b, train, x) : NULL;
        if (!y || strcmp(x->start, y->start) != 0) return false;
        if (gain && strcmp(x->start, like->start) != 0) *crossed = false;
        for (int e = 0; gain && e < like->episodes; e++)
            *gain++ = 100.0 * (y->success[e] - x->success[e]);
    }
    return true;
}

bool cgs_rate_mixed(const cgs_protocol *q, int setting, int a, int b, cgs_mixed *out) {
    int at = 0, seeds = 0;
    size_t starts = 0;
    bool crossed = true;
    const cgs_rate_run *r, *first = NULL;
    while ((r = next_run(q, setting, a, &at))) {
        if (!first && gain_of(q, setting, a, b, r->train, r->train, NULL, NULL)) first = r;
        if (first && !strcmp(r->train, first->train)) starts += (size_t)r->episodes;
    }
    if (starts < 2 || starts > MAX_EPISODES) return false;
    double *gain = malloc((size_t)q->runs * starts * sizeof *gain);
    bool ok = gain != NULL;
    at = 0;
    while (ok && (r = next_run(q, setting, a, &at))) {
        bool again = false; /* a training seed once, by its first line */
        for (const cgs_rate_run *o = q->run; o < r; o++)
            again =
                again || (o->setting == setting && o->model == a && !strcmp(o->train, r->train));
        if (again || !gain_of(q, setting, a, b, r->train, first->train, NULL, NULL)) continue;
        gain_of(q, setting, a, b, r->train, first->train, gain + (size_t)seeds++ * starts,
                &crossed);
    }
    ok = ok && cgs_mixed_difference(gain, seeds, (int)starts, crossed, out) == CGS_OK;
    free(gain);
    return ok;
}

/* ---- sweeps ------------------------------------------------------------------------ */

double cgs_rate_x(const cgs_rate_setting *s, cgs_rate_over over) {
    if (over == CGS_OVER_ROLLOUTS)
        return cgs_planner_divides(cgs_planner_kind_of(s->planner), s->K, s->iters)
                   ? s->K * s->iters
                   : NAN;
    return over == CGS_OVER_K ? s->K : over == CGS_OVER_ITERS ? s->iters : s->tau;
}

static bool same(double a, double b) {
    return isnan(a) || isnan(b) ? isnan(a) && isnan(b) : !(a < b || a > b);
}

static bool same_sweep(const cgs_rate_setting *a, const cgs_rate_setting *b, cgs_rate_over over) {
    return !strcmp(a->planner, b->planner) && !strcmp(a->rest, b->rest) &&
           (over == CGS_OVER_K || over == CGS_OVER_ROLLOUTS || same(a->K, b->K)) &&
           (over == CGS_OVER_ITERS || over == CGS_OVER_ROLLOUTS || same(a->iters, b->iters)) &&
           (over == CGS_OVER_TAU || same(a->tau, b->tau));
}

int cgs_rate_sweep(const cgs_protocol *q, int setting, cgs_rate_over over, int *index) {
    const cgs_rate_setting *s = &q->setting[setting];
    int n = 0;
    if (!(cgs_rate_x(s, over) > 0)) return 0;
    for (int i = 0; i < q->settings_count; i++) {
        double x = cgs_rate_x(&q->setting[i], over);
        if (!(x > 0) || !same_sweep(&q->setting[i], s, over)) continue;
        if (n == 0 && i != setting) return 0;
        /* two settings with the same number (but other elites) would make the line double back */
        if (n > 0 && !(x > cgs_rate_x(&q->setting[index[n - 1]], over))) continue;
        index[n++] = i;
    }
    return n;
}

static double abscissa(const cgs_protocol *q, int setting, cgs_rate_over over) {
    double x = cgs_rate_x(&q->setting[setting], over);
    return over == CGS_OVER_ITERS ? x : log2(x);
}

bool cgs_rate_area(const cgs_protocol *q, const int *index, int n, cgs_rate_over over, int model,
                   double *nauc) {
    double *x = malloc(2 * (size_t)n * sizeof *x), *y = x ? x + n : NULL;
    bool ok = x != NULL;
    for (int i = 0; ok && i < n; i++) {
        cgs_rate r;
        ok = cgs_rate_of(q, index[i], model, &r);
        x[i] = abscissa(q, index[i], over);
        y[i] = r.mean;
    }
    ok = ok && cgs_nauc(x, y, n, nauc) == CGS_OK;
    free(x);
    return ok;
}

/* The area is linear in the successes, so each start has its own area, and the difference of two
 * models is the mean of the differences over starts. */
bool cgs_rate_area_pair(const cgs_protocol *q, const int *index, int n, cgs_rate_over over, int a,
                        int b, double *difference, cgs_interval *interval) {
    if (n < 2) return false;
    size_t starts = 0;
    int at = 0;
    const cgs_rate_run *r;
    while ((r = next_run(q, index[0], a, &at))) starts += (size_t)r->episodes;
    if (starts == 0 || starts > MAX_EPISODES) return false;
    double *gain = calloc(starts, sizeof *gain);
    double width = abscissa(q, index[n - 1], over) - abscissa(q, index[0], over);
    bool ok = gain && width > 0;
    size_t offset = 0;
    at = 0;
    while (ok && (r = next_run(q, index[0], a, &at))) {
        for (int i = 0; ok && i < n; i++) {
            const cgs_rate_run *x = partner(q, r, index[i], a), *y = partner(q, r, index[i], b);
            ok = x && y;
            double left = i > 0 ? abscissa(q, index[i - 1], over) : abscissa(q, index[i], over);
            double right = abscissa(q, index[i + 1 < n ? i + 1 : i], over);
            for (int e = 0; ok && e < r->episodes; e++)
                gain[offset + (size_t)e] +=
                    100 * (right - left) / 2 / width * (y->success[e] - x->success[e]);
        }
        offset += (size_t)r->episodes;
    }
    if (ok) {
        *difference = cgs_mean(gain, (int)starts);
        ok = cgs_bootstrap_mean(gain, (int)starts, RESAMPLES, 0, interval) == CGS_OK;
    }
    free(gain);
    return ok;
}

int cgs_rate_find(const cgs_protocol *q, const char *family, int role) {
    int found = -1;
    for (int i = 0; i < q->models; i++) {
        char name[64];
        if ((int)cgs_method_role(q->model[i].method, name) != role || strcmp(name, family) != 0)
            continue;
        /* among variants of a method, the one named after it is the reference */
        if (!strcmp(q->model[i].folder, q->model[i].method)) return i;
        if (found < 0) found = i;
    }
    return found;
}

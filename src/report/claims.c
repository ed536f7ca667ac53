/* claims.c - see claims.h. */
#include "report/claims.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "report/markdown.h"
#include "report/method.h"

enum { PLANNERS = 5, RIVALS = 2, NAME = 320 };
static const char *const planners[PLANNERS] = {"mppi", "pg-mppi", "cem", "pg-cem", "gd"};
static const char *const rivals[RIVALS] = {"LeWM", "LeWM+TS"};
static const char *const words[] = {"one seed", "not confirmed", "**confirmed**", "**reversed**"};

typedef enum verdict { ONE_SEED, NOT_CONFIRMED, CONFIRMED, REVERSED } verdict;

typedef struct claim {
    bool got;
    cgs_mixed m;
    double p; /* corrected for all claims of the page */
    verdict is;
} claim;

/* A family of models in an environment, under one protocol. */
typedef struct group {
    char name[NAME];
    bool held_out, other; /* another judge, or another history */
    claim of[RIVALS][PLANNERS];
} group;

typedef struct page {
    cgs_text text;
    group *group; /* (count) */
    int count;
} page;

/* ---- what there is ------------------------------------------------------------------- */

/* the paper's own numbers: K = 128, I = 30, 100 steps, the environment's temperature */
static int setting_of(const cgs_protocol *q, const char *planner, bool frozen) {
    for (int s = 0; s < q->settings_count; s++) {
        const cgs_rate_setting *x = &q->setting[s];
        const char *steps = strstr(x->rest, "steps=");
        if (strcmp(x->planner, planner) != 0 || !cgs_setting_own_tau(q, s, frozen)) continue;
        if (x->K < 128 || x->K > 128 || x->iters < 30 || x->iters > 30) continue;
        if (!steps || strtol(steps + strlen("steps="), NULL, 10) == 100) return s;
    }
    return -1;
}

static verdict judge(const cgs_mixed *m) {
    if (m->seeds < 2) return ONE_SEED;
    return m->interval.low > 0 ? CONFIRMED : m->interval.high < 0 ? REVERSED : NOT_CONFIRMED;
}

static void add_group(page *p, const cgs_tables_run *run, const cgs_protocol *q,
                      const cgs_rivals *r) {
    group *more = realloc(p->group, (size_t)(p->count + 1) * sizeof *more);
    if (!more) {
        p->text.failed = true;
        return;
    }
    p->group = more;
    group *g = &more[p->count];
    memset(g, 0, sizeof *g);
    bool any = false, frozen = !strncmp(q->model[r->cgs].method, "dinowm", 6);
    const char *history = cgs_json_text(q->settings, "history", "native");
    const char *protocol = cgs_json_text(q->settings, "protocol", "");
    g->held_out = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(q->settings, "held_out"));
    g->other = *protocol || strcmp(history, "native") != 0;
    for (int k = 0; k < PLANNERS; k++) {
        int s = setting_of(q, planners[k], frozen);
        const int below[RIVALS] = {r->plain, r->ts};
        for (int i = 0; s >= 0 && i < RIVALS; i++) {
            claim *c = &g->of[i][k];
            c->got = below[i] >= 0 && cgs_rate_mixed(q, s, below[i], r->cgs, &c->m);
            if (c->got) c->is = judge(&c->m);
            cgs_paired d; /* of one training seed: the interval that the other tables have */
            if (c->got && c->is == ONE_SEED && cgs_rate_pair(q, s, below[i], r->cgs, &d))
                c->m.starts_only = (cgs_interval){100 * d.newcombe.low, 100 * d.newcombe.high};
            any = any || c->got;
        }
    }
    if (!any) return;
    snprintf(g->name, sizeof g->name, "%.60s (%.120s%s%.40s%s%.40s%s%.40s%s)", cgs_env_name(q->env),
             run->folder, g->held_out ? ", held-out starts" : "", frozen ? ", " : "",
             frozen ? q->model[r->cgs].method : "", *protocol ? ", " : "",
             *protocol ? protocol : "", strcmp(history, "native") != 0 ? ", history " : "",
             strcmp(history, "native") != 0 ? history : "");
    p->count++;
}

/* Holm's correction of all claims with several training seeds together */
static void correct(page *p, int *several) {
    size_t most = (size_t)p->count * RIVALS * PLANNERS + 1;
    double *value = malloc(most * sizeof *value);
    claim **of = malloc(most * sizeof *of);
    int n = 0;
    for (int g = 0; value && of && g < p->count; g++)
        for (int k = 0; k < RIVALS * PLANNERS; k++) {
            claim *c = &p->group[g].of[k / PLANNERS][k % PLANNERS];
            if (!c->got || c->is == ONE_SEED) continue;
            value[n] = cgs_mixed_p(&c->m);
            of[n++] = c;
        }
    if (!value || !of || cgs_holm(value, n) != CGS_OK) p->text.failed = true;
    for (int i = 0; i < n; i++) of[i]->p = value[i];
    *several = n;
    free(value);
    free(of);
}

/* ---- the page ------------------------------------------------------------------------ */

static void head(page *p, const char *first) {
    cgs_md_entry(&p->text, first);
    for (int k = 0; k < PLANNERS; k++) {
        char text[64];
        bool samples = strcmp(planners[k], "gd") != 0;
        snprintf(text, sizeof text, "%s%s", cgs_planner_name(planners[k]),
                 samples ? ", K = 128" : "");
        cgs_md_entry(&p->text, text);
    }
    cgs_md_end(&p->text);
    cgs_md_rule(&p->text, 1 + PLANNERS);
}

static void points(char *out, size_t size, double v) {
    snprintf(out, size, "%s%.1f", v < -0.05 ? CGS_MINUS : "", fabs(v));
}

static void put_claim(page *p, const claim *c) {
    if (!c->got) {
        cgs_md_entry(&p->text, "");
        return;
    }
    char middle[32], low[32], high[32], from[32], to[32];
    cgs_format_signed(middle, sizeof middle, c->m.difference);
    points(from, sizeof from, c->m.starts_only.low);
    points(to, sizeof to, c->m.starts_only.high);
    cgs_text_printf(&p->text, "| %s%s %s", words[c->is],
                    c->is > NOT_CONFIRMED && c->p < 0.05 ? " *" : "", middle);
    if (c->is != ONE_SEED) {
        points(low, sizeof low, c->m.interval.low);
        points(high, sizeof high, c->m.interval.high);
        cgs_text_printf(&p->text, " (%s to %s; %d seeds)", low, high, c->m.seeds);
    }
    cgs_text_printf(&p->text, ", these models %s to %s ", from, to);
}

static void put_table(page *p, const char *title, const char *what, bool held_out, bool other) {
    bool open = false;
    for (int i = 0; i < RIVALS; i++) {
        bool begun = false;
        for (int g = 0; g < p->count; g++) {
            const group *x = &p->group[g];
            char label[64];
            if (x->held_out != held_out || x->other != other) continue;
            if (!open) cgs_text_printf(&p->text, "\n## %s\n\n%s\n", title, what);
            open = true;
            if (!begun) {
                snprintf(label, sizeof label, "CGS above %s", rivals[i]);
                cgs_text_put(&p->text, "\n");
                head(p, label);
            }
            begun = true;
            cgs_md_entry(&p->text, x->name);
            for (int k = 0; k < PLANNERS; k++) put_claim(p, &x->of[i][k]);
            cgs_md_end(&p->text);
        }
    }
}

static void put_counts(page *p, int several) {
    int count[4] = {0}, kept[4] = {0}, total = 0;
    for (int g = 0; g < p->count; g++)
        for (int k = 0; k < RIVALS * PLANNERS; k++) {
            const claim *c = &p->group[g].of[k / PLANNERS][k % PLANNERS];
            if (!c->got) continue;
            total++;
            count[c->is]++;
            kept[c->is] += c->is != ONE_SEED && c->p < 0.05;
        }
    cgs_text_printf(&p->text,
                    "Of %d comparisons %d have one training seed only. Of the other %d, %d are "
                    "confirmed, %d not confirmed\nand %d reversed; if nothing were different, "
                    "chance would confirm about %.1f and reverse as many. After\nHolm's correction "
                    "for all of them together, %d stay confirmed and %d reversed (marked *).\n",
                    total, count[ONE_SEED], several, count[CONFIRMED], count[NOT_CONFIRMED],
                    count[REVERSED], several / 40.0, kept[CONFIRMED], kept[REVERSED]);
}

static void write_page(page *p) {
    int several;
    correct(p, &several);
    cgs_text_put(
        &p->text,
        "# The claims\n\nWritten by `cgs report --claims` from the lines of the runs.\n\n"
        "A claim is that CGS reaches more goals than LeWM, or than TS, with one planner and the\n"
        "paper's settings (K = 128, I = 30, GD 100 steps). A difference in points is **confirmed** "
        "or\n"
        "**reversed** where its 95 % interval over training seeds and starts, in brackets, "
        "excludes\n"
        "zero. The other interval is over starts alone: it speaks of these very models, and with "
        "one\n"
        "training seed there is no other; then nothing can be said about the methods.\n\n");
    put_counts(p, several);
    put_table(p, "Recorded starts", "The paper's protocol.", false, false);
    put_table(p, "Held-out starts", "Starts in episodes that no compared model was trained on.",
              true, false);
    put_table(p, "Other judges and histories", "See `cgs eval --protocol` and `--history`.", false,
              true);
    put_table(p, "Other judges, held-out starts", "Both.", true, true);
}

cgs_status cgs_claims_write(const cgs_tables_run *run, int count, const char *path) {
    page p = {0};
    for (int i = 0; i < count; i++)
        for (int k = 0; k < run[i].rates.count; k++) {
            const cgs_protocol *q = &run[i].rates.protocol[k];
            cgs_rivals r;
            for (int n = 0; n < CGS_FAMILIES && cgs_find_rivals(q, n, &r); n++)
                add_group(&p, &run[i], q, &r);
        }
    write_page(&p);
    cgs_status rc = cgs_text_check(&p.text, path);
    if (rc == CGS_OK && p.count == 0)
        rc = cgs_fail(CGS_EFORMAT, "%s: no run compares CGS with LeWM or TS at K = 128", path);
    if (rc == CGS_OK) rc = cgs_write_file(path, p.text.s, p.text.used);
    free(p.group);
    cgs_text_free(&p.text);
    return rc;
}

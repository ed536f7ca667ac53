/* success.c - the verdict, tables of success rates with paired differences, and timing.
 *
 * A difference is called clear when its 95 % interval (Newcombe's, for paired proportions) excludes
 * zero.  That speaks of the models at hand; where there are several training seeds the badge
 * follows the interval over seeds and starts (core/mixed.h).  There is no correction for multiple
 * comparisons, and the page says so; claims.c has one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/method.h"
#include "report/paper_rates.h"
#include "report/plot.h"
#include "report/sections.h"

/* ---- verdict ----------------------------------------------------------------------- */

typedef struct tally {
    int better, worse, even;
} tally;

static tally count_settings(const cgs_protocol *q, int plain, int cgs) {
    tally t = {0};
    cgs_paired d;
    for (int s = 0; s < q->settings_count; s++) {
        if (cgs_is_control(q->setting[s].planner) || !cgs_rate_pair(q, s, plain, cgs, &d)) continue;
        if (d.newcombe.low > 0) {
            t.better++;
        } else if (d.newcombe.high < 0) {
            t.worse++;
        } else {
            t.even++;
        }
    }
    return t;
}

static int headline(const cgs_protocol *q, const int *index, int n, int plain, int cgs) {
    cgs_paired d;
    for (int i = 0; i < n; i++)
        if (!cgs_is_control(q->setting[index[i]].planner) &&
            cgs_rate_pair(q, index[i], plain, cgs, &d))
            return index[i];
    return -1;
}

static void write_sentence(const cgs_protocol *q, int s, int plain, int cgs, const cgs_paired *d,
                           char *out, size_t size) {
    cgs_rate r;
    char label[160] = "", low[32], high[32];
    double points = 100 * d->difference;
    cgs_rate_of(q, s, cgs, &r);
    const cgs_rate_setting *x = &q->setting[s];
    if (isfinite(x->K)) snprintf(label, sizeof label, " at K=%g", x->K);
    size_t used = strlen(label);
    if (isfinite(x->iters) && cgs_setting_several(q, s, CGS_OVER_ITERS))
        used += (size_t)snprintf(label + used, sizeof label - used, ", I=%g", x->iters);
    if (isfinite(x->tau) && cgs_setting_several(q, s, CGS_OVER_TAU))
        snprintf(label + used, sizeof label - used, ", \xCF\x84=%g", x->tau);
    cgs_format_signed(low, sizeof low, 100 * d->newcombe.low);
    cgs_format_signed(high, sizeof high, 100 * d->newcombe.high);
    bool clear = d->newcombe.low > 0 || d->newcombe.high < 0;
    char apart[160];
    if (fabs(points) < 0.05) {
        snprintf(apart, sizeof apart, "level with %.60s", q->model[plain].name);
    } else {
        snprintf(apart, sizeof apart, "%.1f points %s %.60s%s", fabs(points),
                 points > 0 ? "above" : "below", q->model[plain].name,
                 clear ? "" : ", which may be chance");
    }
    snprintf(out, size,
             "%.60s reaches %.1f %% on %s with %s%s, %s (95 %% interval %s to %s, %d paired "
             "episodes).",
             q->model[cgs].name, r.mean, cgs_env_name(q->env), cgs_planner_name(x->planner), label,
             apart, low, high, d->n);
}

static void draw_verdict(cgs_page *p, const cgs_protocol *q, int plain, int cgs, const int *index,
                         int n) {
    cgs_plot_row *row = calloc((size_t)(n > 0 ? n : 1), sizeof *row);
    char(*label)[96] = calloc((size_t)(n > 0 ? n : 1), sizeof *label), title[160];
    int rows = 0;
    for (int i = 0; row && label && i < n; i++) {
        cgs_paired d;
        if (!cgs_rate_pair(q, index[i], plain, cgs, &d)) continue;
        cgs_setting_label(q, index[i], label[rows], sizeof label[rows]);
        row[rows] = (cgs_plot_row){label[rows], 100 * d.difference, 100 * d.newcombe.low,
                                   100 * d.newcombe.high, q->model[cgs].style};
        rows++;
    }
    if (!row || !label) p->top.failed = true;
    if (rows) {
        p->figures++;
        snprintf(title, sizeof title, "%.60s minus %.60s", q->model[cgs].name,
                 q->model[plain].name);
        cgs_text_put(&p->top, "<figure>\n");
        cgs_plot_intervals(&p->top, title, "points of success, with 95 % interval", row, rows);
        cgs_text_put(&p->top, "</figure>\n");
    }
    free(row);
    free(label);
}

/* what is said of the methods, and not of these very models */
static void write_seeds(cgs_page *p, const cgs_mixed *m) {
    char middle[32], low[32], high[32];
    if (m->seeds < 2) {
        cgs_text_put(&p->top,
                     "<p>One training seed: the interval is over starts and speaks of these "
                     "very models, not of others that the same methods would give.</p>\n");
        return;
    }
    cgs_format_signed(middle, sizeof middle, m->difference);
    cgs_format_signed(low, sizeof low, m->interval.low);
    cgs_format_signed(high, sizeof high, m->interval.high);
    cgs_text_printf(&p->top,
                    "<p>Over %d training seeds and the starts: %s points (95 %% interval %s to %s)."
                    "</p>\n",
                    m->seeds, middle, low, high);
}

static void verdict_of(cgs_page *p, const cgs_folder *f, const cgs_protocol *q, int plain, int cgs,
                       bool alone, char *sentence, size_t size) {
    int *index = malloc((size_t)q->settings_count * sizeof *index);
    int n = index ? cgs_headlines(q, index) : 0;
    if (!index) p->top.failed = true;
    int s = headline(q, index, n, plain, cgs);
    cgs_paired d;
    if (s < 0 || !cgs_rate_pair(q, s, plain, cgs, &d)) {
        free(index);
        return;
    }
    tally t = count_settings(q, plain, cgs);
    int total = t.better + t.worse + t.even;
    /* by chance one interval in forty lies entirely on the wrong side of zero */
    bool mixed = 40 * t.better > total && 40 * t.worse > total;
    cgs_mixed m = {0};
    bool several = cgs_rate_mixed(q, s, plain, cgs, &m) && m.seeds > 1;
    const char *badge = several && m.interval.low > 0    ? "CGS helped"
                        : several && m.interval.high < 0 ? "CGS did worse"
                        : several                        ? "No clear difference over training seeds"
                        : mixed                          ? "Mixed"
                        : d.newcombe.low > 0             ? "CGS helped"
                        : d.newcombe.high < 0            ? "CGS did worse"
                        : t.better > total / 2           ? "CGS mostly helped"
                        : t.worse > total / 2            ? "CGS mostly did worse"
                                                         : "No clear difference";
    const char *class = strstr(badge, "helped") ? "good" : strstr(badge, "worse") ? "bad" : "even";
    write_sentence(q, s, plain, cgs, &d, sentence, size);
    cgs_text_printf(&p->top, "<div class=\"verdict %s\">\n<div>", class);
    if (!alone) {
        cgs_text_put(&p->top, "<p class=\"run\">");
        cgs_text_escape(&p->top, f->name);
        cgs_text_put(&p->top, ": ");
        cgs_text_escape(&p->top, q->name);
        cgs_text_put(&p->top, "</p>");
    }
    cgs_text_printf(&p->top, "<p class=\"badge\">%s</p>\n<p class=\"lead\">", badge);
    cgs_text_escape(&p->top, sentence);
    cgs_text_put(&p->top, "</p>\n");
    write_seeds(p, &m);
    if (total > 1)
        cgs_text_printf(&p->top,
                        "<p>Over all %d planner settings: clearly better in %d, clearly worse in "
                        "%d, inconclusive in %d. Each interval stands by itself: there is no "
                        "correction for multiple comparisons.</p>\n",
                        total, t.better, t.worse, t.even);
    cgs_text_put(&p->top, "</div>\n");
    if (q->settings_count <= 10) {
        n = 0;
        for (int i = 0; i < q->settings_count; i++) index[n++] = i;
    }
    draw_verdict(p, q, plain, cgs, index, n);
    cgs_text_put(&p->top, "</div>\n");
    free(index);
}

void cgs_section_verdict(cgs_page *p, const cgs_folder *f, const cgs_rates *r, char *sentence,
                         size_t size) {
    sentence[0] = '\0';
    for (int i = 0; i < r->count && i < 8; i++) {
        const cgs_protocol *q = &r->protocol[i];
        cgs_rivals of;
        for (int n = 0; n < CGS_FAMILIES && cgs_find_rivals(q, n, &of); n++) {
            char one[512] = "";
            bool alone = !p->run && r->count == 1;
            verdict_of(p, f, q, of.plain, of.cgs, alone, one, sizeof one);
            if (!sentence[0]) snprintf(sentence, size, "%s", one);
        }
    }
    if (sentence[0]) return;
    snprintf(sentence, size,
             "%.100s has no results of a method with and without CGS on the same "
             "starts, so there is no verdict.",
             f->name);
    cgs_text_put(&p->top, "<div class=\"verdict even\"><div><p class=\"badge\">No verdict</p>"
                          "<p class=\"lead\">");
    cgs_text_escape(&p->top, sentence);
    cgs_text_put(&p->top, "</p></div></div>\n");
}

/* ---- tables ------------------------------------------------------------------------ */

void cgs_rate_cell(cgs_page *p, const cgs_protocol *q, int setting, int model) {
    cgs_rate r;
    cgs_published pub;
    char main[64], below[64], paper[64];
    bool known = cgs_setting_published(q, setting, model, &pub);
    if (known) snprintf(paper, sizeof paper, "paper %.1f \xC2\xB1 %.1f", pub.mean, pub.sd);
    if (!cgs_rate_of(q, setting, model, &r)) {
        cgs_page_cell(p, "\xE2\x80\x93", NULL, known ? paper : NULL, 0);
        return;
    }
    if (r.runs > 1) {
        snprintf(main, sizeof main, "%.1f \xC2\xB1 %.1f", r.mean, r.sd);
    } else {
        snprintf(main, sizeof main, "%.1f", r.mean);
    }
    snprintf(below, sizeof below, "[%.1f, %.1f]", r.wilson.low, r.wilson.high);
    cgs_page_cell(p, main, below, known ? paper : NULL, 0);
}

static void pair_cell(cgs_page *p, const cgs_protocol *q, int setting, int a, int b) {
    cgs_paired d;
    char main[64], low[32], high[32], below[128], paper[64], gap[32];
    cgs_published x, y;
    bool known =
        cgs_setting_published(q, setting, a, &x) && cgs_setting_published(q, setting, b, &y);
    if (known) {
        cgs_format_signed(gap, sizeof gap, y.mean - x.mean);
        snprintf(paper, sizeof paper, "paper %s", gap);
    }
    if (!cgs_rate_pair(q, setting, a, b, &d)) {
        cgs_page_cell(p, "\xE2\x80\x93", NULL, known ? paper : NULL, 0);
        return;
    }
    cgs_format_signed(main, sizeof main, 100 * d.difference);
    cgs_format_signed(low, sizeof low, 100 * d.newcombe.low);
    cgs_format_signed(high, sizeof high, 100 * d.newcombe.high);
    char p_value[32];
    if (d.p < 0.001) {
        snprintf(p_value, sizeof p_value, "p < 0.001");
    } else {
        snprintf(p_value, sizeof p_value, "p = %.2g", d.p);
    }
    snprintf(below, sizeof below, "[%s, %s]\n%s", low, high, p_value);
    cgs_page_cell(p, main, below, known ? paper : NULL,
                  d.newcombe.low > 0    ? 1
                  : d.newcombe.high < 0 ? -1
                                        : 0);
}

/* Columns of differences: every method minus its family's plain one, and CGS minus TS. */
static bool compared(const cgs_protocol *q, int a, int b) {
    char fa[64], fb[64];
    cgs_role ra = cgs_method_role(q->model[a].method, fa);
    cgs_role rb = cgs_method_role(q->model[b].method, fb);
    if (strcmp(fa, fb) != 0 || a == b) return false;
    if (ra == CGS_ROLE_PLAIN) return rb != CGS_ROLE_PLAIN;
    return ra == CGS_ROLE_TS && rb == CGS_ROLE_CGS;
}

static void rate_table(cgs_page *p, const cgs_protocol *q, const int *index, int n, bool tall) {
    char head[256], label[96];
    cgs_page_table(p, tall);
    cgs_page_row(p);
    cgs_page_head(p, "planner");
    for (int m = 0; m < q->models; m++) cgs_page_head(p, q->model[m].name);
    for (int b = q->models - 1; b >= 0; b--)
        for (int a = 0; a < q->models; a++)
            if (compared(q, a, b)) {
                snprintf(head, sizeof head, "%.60s " CGS_MINUS " %.60s", q->model[b].name,
                         q->model[a].name);
                cgs_page_head(p, head);
            }
    for (int i = 0; i < n; i++) {
        cgs_page_row(p);
        cgs_setting_label(q, index[i], label, sizeof label);
        cgs_page_name(p, label, -1);
        for (int m = 0; m < q->models; m++) cgs_rate_cell(p, q, index[i], m);
        for (int b = q->models - 1; b >= 0; b--)
            for (int a = 0; a < q->models; a++)
                if (compared(q, a, b)) pair_cell(p, q, index[i], a, b);
    }
    cgs_page_table_end(p);
}

/* whether a line of the protocol says what first plans did */
static bool has_first(const cgs_protocol *q) {
    for (int i = 0; i < q->runs; i++)
        if (q->run[i].first.successes >= 0) return true;
    return false;
}

static void first_cell(cgs_page *p, const cgs_protocol *q, int setting, int model) {
    cgs_rate r;
    char main[32], below[96];
    if (!cgs_rate_of(q, setting, model, &r) || r.first.successes < 0) {
        cgs_page_cell(p, "\xE2\x80\x93", NULL, NULL, 0);
        return;
    }
    snprintf(main, sizeof main, "%.1f", 100.0 * r.first.successes / r.episodes);
    snprintf(below, sizeof below, "cost %.3g, size %.2f\n%.3g, %.3g ms", r.first.cost, r.first.size,
             1e3 * r.first.p50, 1e3 * r.first.p99);
    cgs_page_cell(p, main, below, NULL, 0);
}

/* what the model's cost, the model and the predicate do, apart */
static void first_table(cgs_page *p, const cgs_protocol *q) {
    char label[96];
    if (!has_first(q)) return;
    cgs_page_subtitle(p, "The first plan alone");
    cgs_page_table(p, q->settings_count > 10);
    cgs_page_row(p);
    cgs_page_head(p, "planner");
    for (int m = 0; m < q->models; m++) cgs_page_head(p, q->model[m].name);
    for (int i = 0; i < q->settings_count; i++) {
        cgs_page_row(p);
        cgs_setting_label(q, i, label, sizeof label);
        cgs_page_name(p, label, -1);
        for (int m = 0; m < q->models; m++) first_cell(p, q, i, m);
    }
    cgs_page_table_end(p);
    cgs_page_note(p, "Percent of goals reached by the first plan, without replanning; below it the "
                     "median cost that the model gives these plans (how well the search minimises "
                     "it), the root mean square of their standardised actions (what the predicate "
                     "may reward by itself), and median and 99th percentile of the time of a solve, "
                     "per episode of a batch.");
}

/* adds a word to a list unless it is there */
static void add_word(char *list, size_t size, const char *word) {
    size_t n = strlen(word), used = strlen(list);
    if (n == 0) return;
    for (const char *at = list; (at = strstr(at, word)); at += n)
        if ((at == list || at[-1] == ' ') && (at[n] == '\0' || at[n] == ',')) return;
    if (used + n + 3 < size) snprintf(list + used, size - used, "%s%s", used ? ", " : "", word);
}

/* settings of a planner that its label does not show: "MPPI (I=30, horizon=5 sigma=1)" */
static void describe_planners(const cgs_protocol *q, char *out, size_t size) {
    out[0] = '\0';
    for (int i = 0; i < q->settings_count; i++) {
        const cgs_rate_setting *s = &q->setting[i];
        char word[400], iters[32] = "", tau[32] = "";
        if (isfinite(s->iters) && !cgs_setting_several(q, i, CGS_OVER_ITERS))
            snprintf(iters, sizeof iters, "I=%g ", s->iters);
        if (isfinite(s->tau) && !cgs_setting_several(q, i, CGS_OVER_TAU))
            snprintf(tau, sizeof tau, "\xCF\x84=%g ", s->tau);
        snprintf(word, sizeof word, "%s (%s%s%s)", cgs_planner_name(s->planner), iters, tau,
                 s->rest);
        add_word(out, size, word);
    }
}

void cgs_protocol_note(cgs_page *p, const cgs_folder *f, const cgs_protocol *q) {
    char text[2048], planners[1024], seeds[256] = "", commits[256] = "";
    size_t used = 0;
    for (const cJSON *v = q->settings->child; v && used < sizeof text - 200; v = v->next) {
        char *value = cJSON_IsString(v) ? NULL : cJSON_PrintUnformatted(v);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.40s %.80s", used ? ", " : "",
                                 v->string,
                                 cJSON_IsString(v) ? v->valuestring
                                 : value           ? value
                                                   : "?");
        cJSON_free(value);
    }
    for (int i = 0; i < q->runs; i++) {
        add_word(seeds, sizeof seeds, q->run[i].seed);
        add_word(commits, sizeof commits, q->run[i].commit);
    }
    describe_planners(q, planners, sizeof planners);
    cgs_page_note(p, "Settings: %s. Planners: %s. Seeds %s; code %s.", used ? text : "none",
                  planners, seeds, commits);
    cgs_folder_commands(f, p, "eval");
}

static void success_of(cgs_page *p, const cgs_folder *f, const cgs_protocol *q) {
    int *index = malloc((size_t)q->settings_count * sizeof *index);
    if (!index) {
        p->body.failed = true;
        return;
    }
    int n = cgs_headlines(q, index);
    bool all = q->settings_count <= 10;
    bool frozen = cJSON_HasObjectItem(q->settings, "backbone");
    cgs_page_subtitle(p, "%s%s", q->name, all ? "" : ": each planner nearest to K = 128, I = 30");
    if (!all) rate_table(p, q, index, n, false);
    for (int i = 0; i < q->settings_count; i++) index[i] = i;
    if (!all) cgs_page_subtitle(p, "All %d settings", q->settings_count);
    rate_table(p, q, index, q->settings_count, !all);
    cgs_page_note(p,
                  "Success in percent: mean \xC2\xB1 sample deviation over seeds (of starts and of "
                  "training), and Wilson's 95 %% interval of all episodes together. Differences "
                  "are paired, start "
                  "by start, with Newcombe's 95 %% interval and McNemar's exact p; coloured where "
                  "the interval excludes zero. The paper's numbers are for its model size "
                  "(224 \xC3\x97 224 pixels%s) and its data.",
                  frozen ? ", DINOv2 features" : ", 18 M parameters");
    first_table(p, q);
    cgs_protocol_note(p, f, q);
    free(index);
}

void cgs_section_success(cgs_page *p, const cgs_folder *f, const cgs_rates *r) {
    if (r->count == 0) return;
    cgs_page_section(p, "success", "Success rates");
    for (int i = 0; i < r->count; i++) success_of(p, f, &r->protocol[i]);
    if (r->replaced)
        cgs_page_note(p, "%d lines repeat a model, setting and seed; the last one counts.",
                      r->replaced);
    cgs_page_section_end(p);
}

/* ---- timing ------------------------------------------------------------------------ */

/* time per solve by model, for one setting; false when there is none */
static bool draw_timing(cgs_page *p, const cgs_protocol *q, int setting) {
    cgs_plot_row *row = calloc((size_t)q->models, sizeof *row);
    char label[96];
    int rows = 0;
    if (!row) p->body.failed = true;
    for (int m = 0; row && m < q->models; m++) {
        cgs_rate r;
        if (!cgs_rate_of(q, setting, m, &r) || !(r.solve_seconds > 0)) continue;
        double ms = 1000 * r.solve_seconds;
        row[rows++] = (cgs_plot_row){q->model[m].name, ms, ms, ms, q->model[m].style};
    }
    if (rows) {
        cgs_setting_label(q, setting, label, sizeof label);
        cgs_plot_bars(cgs_page_figure(p), label, "milliseconds per solve", row, rows);
        cgs_page_figure_end(p, NULL);
    }
    free(row);
    return rows > 0;
}

static void timing_of(cgs_page *p, const cgs_folder *f, const cgs_protocol *q) {
    int *index = malloc((size_t)q->settings_count * sizeof *index), drawn = 0;
    int n = index ? cgs_headlines(q, index) : 0;
    if (!index) p->body.failed = true;
    cgs_page_grid(p, false);
    for (int i = 0; i < n; i++)
        if (!cgs_is_control(q->setting[index[i]].planner)) drawn += draw_timing(p, q, index[i]);
    cgs_page_grid_end(p);
    if (drawn) {
        cgs_page_note(p,
                      "Planner time per solve on %s, mean over all episodes, on %.30s in %.10s. "
                      "Episodes are planned in batches; this is the time per episode.",
                      cgs_env_name(q->env),
                      cgs_json_text(q->settings, "device", "an unknown device"),
                      cgs_json_text(q->settings, "precision", "unknown precision"));
        if (!strcmp(q->env, "pusht") && !cJSON_HasObjectItem(q->settings, "backbone"))
            cgs_page_note(p,
                          "Published for LeWM+CGS on PushT at K = 128, seconds per episode: MPPI "
                          "1.850, CEM 5.163, GD 0.161.");
        cgs_folder_commands(f, p, "eval");
    }
    free(index);
}

void cgs_section_timing(cgs_page *p, const cgs_folder *f, const cgs_rates *r) {
    bool any = false;
    for (int i = 0; i < r->count; i++)
        for (int k = 0; k < r->protocol[i].runs; k++)
            any |= r->protocol[i].run[k].seconds > 0 && r->protocol[i].run[k].solves > 0;
    if (!any) return;
    cgs_page_section(p, "timing", "Planning time");
    for (int i = 0; i < r->count; i++) timing_of(p, f, &r->protocol[i]);
    cgs_page_section_end(p);
}

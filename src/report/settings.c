/* settings.c - shared by the sections on results: the text of a setting, the settings that
 * represent the others, the paper's numbers for them, and the models to compare. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval/temperature.h"
#include "plan/planners.h"
#include "report/method.h"
#include "report/paper_rates.h"
#include "report/sections.h"

void cgs_format_signed(char *out, size_t size, double v) {
    snprintf(out, size, "%s%.1f", v < -0.05 ? CGS_MINUS : v >= 0.05 ? "+" : "\xC2\xB1", fabs(v));
}

/* ---- settings ---------------------------------------------------------------------- */

bool cgs_setting_several(const cgs_protocol *q, int setting, cgs_rate_over over) {
    double x = cgs_rate_x(&q->setting[setting], over);
    for (int i = 0; i < q->settings_count; i++) {
        double y = cgs_rate_x(&q->setting[i], over);
        if (!strcmp(q->setting[i].planner, q->setting[setting].planner) && (y < x || y > x))
            return true;
    }
    return false;
}

void cgs_setting_text(const cgs_rate_setting *s, const char *planner, unsigned numbers, bool prose,
                      char *out, size_t size) {
    static const char *const symbol[] = {"K", "I", "\xCF\x84"};
    size_t used = (size_t)snprintf(out, size, "%s", planner);
    for (int i = 0; i < 3 && used < size; i++) {
        double v = cgs_rate_x(s, (cgs_rate_over)i);
        if (!(numbers >> i & 1) || !isfinite(v)) continue;
        used +=
            (size_t)snprintf(out + used, size - used, prose ? ", %s = %g" : " %s=%g", symbol[i], v);
    }
}

unsigned cgs_setting_numbers(const cgs_protocol *q, int setting) {
    unsigned numbers = 1u << CGS_OVER_K;
    for (int i = CGS_OVER_ITERS; i <= CGS_OVER_TAU; i++)
        if (cgs_setting_several(q, setting, (cgs_rate_over)i)) numbers |= 1u << i;
    return numbers;
}

void cgs_setting_label(const cgs_protocol *q, int setting, char *out, size_t size) {
    const cgs_rate_setting *s = &q->setting[setting];
    cgs_setting_text(s, cgs_planner_name(s->planner), cgs_setting_numbers(q, setting), false, out,
                     size);
}

/* The paper's numbers belong to the model named after its method, and to the official judge. */
static bool is_the_method(const cgs_protocol *q, int model) {
    const cgs_rate_model *m = &q->model[model];
    bool alone = !cJSON_HasObjectItem(q->settings, "protocol");
    if (!alone) return false;
    for (int i = 0; i < q->models; i++)
        alone &= i == model || strcmp(q->model[i].method, m->method);
    return alone || !strcmp(m->folder, m->method);
}

bool cgs_setting_own_tau(const cgs_protocol *q, int setting, bool frozen) {
    double tau = q->setting[setting].tau;
    double own = (double)cgs_family_tau(frozen ? "dinowm" : "lewm", q->env);
    return !isfinite(tau) || !(own > 0) || fabs(tau - own) <= 1e-3 * own;
}

bool cgs_setting_published(const cgs_protocol *q, int setting, int model, cgs_published *out) {
    const cgs_rate_setting *s = &q->setting[setting];
    const char *method = q->model[model].method;
    const char *history = cgs_json_text(q->settings, "history", "native");
    bool frozen = !strncmp(method, "dinowm", 6);
    double nauc;
    const char *steps = strstr(s->rest, "steps=");
    int K = s->K > 0 && s->K < 1e9 ? (int)s->K : 0;
    if (!is_the_method(q, model)) return false;
    if (isfinite(s->iters) && (s->iters < 30 || s->iters > 30)) return false;
    if (steps && strtol(steps + strlen("steps="), NULL, 10) != 100) return false;
    if (!cgs_setting_own_tau(q, setting, frozen)) return false;
    if (!strcmp(history, "native") && cgs_published_rate(method, q->env, s->planner, K, out))
        return true;
    return !strcmp(q->env, "reacher") && (K == 128 || !strcmp(s->planner, "gd")) &&
           cgs_published_history(method, history, s->planner, out, &nauc);
}

/* settings of the planner that share I and tau: the sweep it is part of */
static int sweep_size(const cgs_protocol *q, int setting) {
    const cgs_rate_setting *s = &q->setting[setting];
    int n = 0;
    for (int i = 0; i < q->settings_count; i++) {
        const cgs_rate_setting *o = &q->setting[i];
        n += !strcmp(o->planner, s->planner) && !(o->iters < s->iters || o->iters > s->iters) &&
             !(o->tau < s->tau || o->tau > s->tau);
    }
    return n;
}

static double distance(const cgs_protocol *q, int setting) {
    const cgs_rate_setting *s = &q->setting[setting];
    double d = isfinite(s->K) && s->K > 0 ? fabs(log2(s->K) - 7) : 0;
    if (isfinite(s->iters) && s->iters > 0) d += fabs(log2(s->iters / 30));
    /* an unusual temperature counts, but less than an unusual K or I */
    bool frozen = cJSON_HasObjectItem(q->settings, "backbone");
    if (!cgs_setting_own_tau(q, setting, frozen)) d += 0.1;
    return d - 1e-3 * fmin(sweep_size(q, setting), 50);
}

int cgs_headlines(const cgs_protocol *q, int *index) {
    int n = 0;
    for (int i = 0; i < q->settings_count; i++) {
        bool best = true;
        for (int k = 0; k < q->settings_count && best; k++)
            if (k != i && !strcmp(q->setting[k].planner, q->setting[i].planner)) {
                double a = distance(q, i), b = distance(q, k);
                best = a < b || (!(a > b) && i < k);
            }
        if (best) index[n++] = i;
    }
    return n;
}

bool cgs_is_control(const char *planner) {
    const cgs_planner_kind *kind = cgs_planner_kind_of(planner);
    return kind && !(kind->needs & CGS_NEEDS_SCORES);
}

/* ---- areas of the paper ------------------------------------------------------------ */

/* of a curve whose points the paper gives */
static bool area_of_curve(const cgs_protocol *q, const int *index, int n, int m, double *nauc) {
    double x[16], y[16];
    if (n > 16) return false;
    for (int i = 0; i < n; i++) {
        cgs_published pub;
        if (!cgs_setting_published(q, index[i], m, &pub)) return false;
        x[i] = log2(q->setting[index[i]].K);
        y[i] = pub.mean;
    }
    return cgs_nauc(x, y, n, nauc) == CGS_OK;
}

bool cgs_sweep_published(const cgs_protocol *q, const int *index, int n, cgs_rate_over over, int m,
                         double *nauc) {
    const char *method = q->model[m].method, *planner = q->setting[index[0]].planner;
    double first = q->setting[index[0]].K, last = q->setting[index[n - 1]].K, other;
    bool whole = n == 9 && first < 2 && last > 255 && last < 257;
    cgs_published rate;
    if (cJSON_HasObjectItem(q->settings, "protocol")) return false;
    if (over == CGS_OVER_K) {
        const char *history = cgs_json_text(q->settings, "history", "native");
        if (area_of_curve(q, index, n, m, nauc)) {
            /* of the unrounded means, where the paper gives it */
            if (whole) cgs_published_budget(method, q->env, planner, nauc);
            return true;
        }
        if (whole && !strcmp(q->env, "reacher"))
            return cgs_published_history(method, history, planner, &rate, nauc);
        return whole && !strcmp(q->env, "cube") &&
               cgs_published_cube_reference(method, planner, nauc, &other);
    }
    if (first < 128 || first > 128) return false;
    if (over == CGS_OVER_TAU)
        return !strcmp(planner, "mppi") && cgs_published_temperature(method, q->env, nauc);
    return cgs_published_refinement(method, q->env, planner, nauc) ||
           (!strcmp(q->env, "cube") && cgs_published_cube_reference(method, planner, &other, nauc));
}

/* ---- rivals ------------------------------------------------------------------------ */

bool cgs_find_rivals(const cgs_protocol *q, int n, cgs_rivals *out) {
    for (int i = 0; i < q->models; i++) {
        char family[64];
        if (cgs_method_role(q->model[i].method, family) != CGS_ROLE_CGS) continue;
        *out = (cgs_rivals){cgs_rate_find(q, family, CGS_ROLE_PLAIN),
                            cgs_rate_find(q, family, CGS_ROLE_TS),
                            cgs_rate_find(q, family, CGS_ROLE_CGS)};
        if (out->cgs == i && out->plain >= 0 && n-- == 0) return true;
    }
    return false;
}

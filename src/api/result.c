/* result.c - result lines of the public API (include/cgs/cgs.h): those of `cgs eval`, for episodes
 * that somebody else's loop ran. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "api/agent_internal.h"
#include "eval/results.h"

static cgs_status describe_prior(const cgs_agent *a, const cgs_result *r, cgs_eval_settings *s) {
    if (!a->prior) return CGS_OK;
    s->prior_held_out = r->held_out;
    return cgs_params_checksum(&a->prior->params, &s->prior);
}

static cgs_status describe(const cgs_agent *a, const cgs_result *r, const cgs_starts *starts,
                           cgs_eval_settings *s) {
    bool on_gpu = a->device.ops->kind == CGS_DEVICE_GPU;
    *s = (cgs_eval_settings){.model = a->dir,
                             .weights = a->s.weights,
                             .env = r->env,
                             .env_version = r->env_version,
                             .dataset_rows = r->dataset_rows,
                             .rule = starts->rule,
                             .starts = cgs_starts_hash(starts),
                             .budget = r->budget,
                             .execute = r->execute,
                             .plan = a->plan,
                             .device = a->device.ops->name,
                             .precision = cgs_loaded_model_precision(&a->s),
                             .train_seed = a->s.card.seed,
                             .compact = r->compact,
                             .batch = on_gpu && cgs_plan_iterations(&a->plan) > 0};
    s->plan.seed = r->seed;
    memcpy(s->method, a->s.card.method, sizeof s->method);
    snprintf(s->dataset, sizeof s->dataset, "%s", r->dataset);
    CGS_TRY(cgs_history_parse(&s->history, r->history));
    CGS_TRY(cgs_success_parse(&s->success, r->success));
    return describe_prior(a, r, s);
}

cgs_status cgs_result_line(const cgs_agent *a, const cgs_result *r, char hash[17], char **line) {
    if (!r->env || !r->dataset || !r->history || !r->success || r->count < 1 || !r->start)
        return cgs_fail(CGS_EARG, "result: it names no environment, dataset, history, success rule "
                                  "or start");
    if (line && !r->outcome) return cgs_fail(CGS_EARG, "result: a line without outcomes");
    cgs_starts starts = {.rule = {.count = r->count,
                                  .goal_offset = r->goal_offset,
                                  .seed = r->seed,
                                  .held_out = r->held_out,
                                  .skip_solved = r->skip_solved},
                         .count = r->count,
                         .start = (cgs_start *)r->start};
    cgs_eval_settings s;
    char *settings;
    CGS_TRY(describe(a, r, &starts, &s));
    CGS_TRY(cgs_eval_describe(&s, &settings, hash));
    cJSON_free(settings);
    return line ? cgs_eval_line(&s, &starts, r->outcome, line) : CGS_OK;
}

void cgs_line_free(char *text) { cJSON_free(text); }

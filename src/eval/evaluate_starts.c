/* evaluate_starts.c - where the episodes of an evaluation begin; see evaluate_internal.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "eval/evaluate_internal.h"
#include "plan/planners.h"
#include "rollout/held_out.h"

/* the priors of a model that runs start from were fitted without its held-out episodes */
static cgs_status check_priors(const cgs_eval_session *b, int model) {
    bool checked[CGS_PRIOR_KINDS] = {false};
    cgs_prior_kind kind;
    for (int i = 0; i < b->e->count; i++) {
        if (!cgs_eval_run_prior(&b->e->run[i], &kind) || checked[kind]) continue;
        CGS_TRY(cgs_prior_without_held_out(&b->loaded[model], b->source, kind));
        checked[kind] = true;
    }
    return CGS_OK;
}

/* episodes that no model of the comparison has trained on, nor the prior of one that needs it */
static cgs_status find_held_out(cgs_eval_session *b) {
    if (b->use) return CGS_OK;
    size_t n = (size_t)b->source->episodes;
    uint8_t *held = malloc(n);
    b->use = malloc(n);
    if (!held || !b->use) {
        free(held);
        return cgs_fail(CGS_ENOMEM, "evaluation: no memory for %zu episodes", n);
    }
    memset(b->use, 1, n);
    cgs_status rc = CGS_OK;
    for (int i = 0; i < b->o->model_count && rc == CGS_OK; i++) {
        rc = cgs_loaded_model_held_out(&b->loaded[i], b->source, held);
        if (rc == CGS_OK) rc = check_priors(b, i);
        for (size_t k = 0; k < n && rc == CGS_OK; k++) b->use[k] &= held[k];
    }
    free(held);
    return rc;
}

/* Held-out starts of a manifest were held out of the models that it was made for; these may be
 * others. */
static cgs_status check_manifest(cgs_eval_session *b, const char *name, const cgs_starts *s) {
    if (!b->o->held_out && !s->rule.held_out) return CGS_OK;
    CGS_TRY(find_held_out(b));
    for (int i = 0; i < s->count; i++)
        if (!b->use[s->start[i].episode])
            return cgs_fail(CGS_EARG,
                            "%s: episode %lld of its starts is not held out of every model's "
                            "training",
                            name, (long long)s->start[i].episode);
    return CGS_OK;
}

/* starts that satisfy the success predicate before anything is done */
typedef struct solved_filter {
    cgs_eval_session *b;
    const char *column;
} solved_filter;

static cgs_status skip_solved(void *ctx, const cgs_start *s, bool *skip) {
    solved_filter *f = ctx;
    double state[CGS_ENV_MAX_DIM], goal[CGS_ENV_MAX_DIM];
    CGS_TRY(cgs_dataset_read_rows_f64(f->b->data, f->column, s->row, 1, state));
    CGS_TRY(
        cgs_dataset_read_rows_f64(f->b->data, f->column, s->row + f->b->o->goal_offset, 1, goal));
    const cgs_env_class *env = f->b->e->env;
    /* a stricter judge who asks for less of the agent may be content where the official one is not
     */
    *skip = cgs_env_judged(env, CGS_JUDGE_OFFICIAL, state, goal) ||
            cgs_env_judged(env, f->b->judge, state, goal);
    return CGS_OK;
}

static cgs_status choose_starts(cgs_eval_session *b, int seed, const cgs_episodes *ep) {
    const cgs_eval_options *o = b->o;
    cgs_start_rule rule = {.count = o->episodes,
                           .goal_offset = o->goal_offset,
                           .seed = o->seeds[seed],
                           .whole_range = o->whole_range,
                           .held_out = o->held_out,
                           .skip_solved = o->skip_solved || b->judge != CGS_JUDGE_OFFICIAL};
    cgs_starts *s = &b->starts[seed];
    char name[4096];
    if (o->manifest) {
        int n = o->seed_count > 1 ? snprintf(name, sizeof name, "%s.%llu", o->manifest,
                                             (unsigned long long)o->seeds[seed])
                                  : snprintf(name, sizeof name, "%s", o->manifest);
        if (n < 0 || n >= (int)sizeof name)
            return cgs_fail(CGS_EARG, "%.64s...: the name is too long", o->manifest);
        if (cgs_file_exists(name)) {
            CGS_TRY(cgs_starts_load(s, name, ep));
            if (s->judge != b->judge)
                return cgs_fail(CGS_EARG, "%s: starts of the %s protocol, not of the %s one", name,
                                cgs_judge_name(s->judge), cgs_judge_name(b->judge));
            return check_manifest(b, name, s);
        }
    }
    solved_filter f = {.b = b};
    if (rule.skip_solved) CGS_TRY(cgs_state_column(b->source, b->e->env, &f.column));
    CGS_TRY(cgs_starts_choose(s, ep, &rule, rule.skip_solved ? skip_solved : NULL, &f));
    s->judge = b->judge;
    s->env = b->e->env;
    const char *slash = strrchr(o->data, '/');
    snprintf(s->dataset.s, sizeof s->dataset.s, "%.255s", slash ? slash + 1 : o->data);
    return o->manifest ? cgs_starts_save(s, name) : CGS_OK;
}

cgs_status cgs_eval_session_starts(cgs_eval_session *b) {
    const cgs_eval_options *o = b->o;
    int frameskip = b->loaded[0].model->frameskip, longest = 0;
    for (int i = 0; i < b->source->episodes; i++)
        if (b->source->ep_len[i] > longest) longest = b->source->ep_len[i];
    if (o->horizon > 0 && (int64_t)o->horizon * frameskip >= longest)
        return cgs_fail(CGS_EARG,
                        "horizon %d: a plan of %lld actions is longer than every episode of %s "
                        "(at most %d)",
                        o->horizon, (long long)o->horizon * frameskip, o->data, longest - 1);
    if (o->held_out) CGS_TRY(find_held_out(b));
    cgs_episodes ep = {.count = b->source->episodes,
                       .length = b->ep_len,
                       .offset = b->source->ep_offset,
                       .use = b->use};
    for (int i = 0; i < o->seed_count; i++) CGS_TRY(choose_starts(b, i, &ep));
    return CGS_OK;
}

/* dataset.c - datasets in the public API (include/cgs/cgs.h): what a file has, what is wrong with
 * it, and where episodes of an evaluation may begin. */
#include <stdlib.h>
#include <string.h>

#include "api/agent_internal.h"
#include "data/check.h"
#include "eval/starts.h"
#include "rollout/held_out.h"
#include "train/train.h"

cgs_dataset_info cgs_dataset_describe(const cgs_dataset *d) {
    const cgs_source *s = cgs_dataset_source(d);
    return (cgs_dataset_info){s->rows,   s->episodes, s->column_count,
                              s->height, s->width,    s->action_dim};
}

cgs_column_spec cgs_dataset_column(const cgs_dataset *d, int i) {
    const cgs_source *s = cgs_dataset_source(d);
    if (i < 0 || i >= s->column_count) return (cgs_column_spec){0};
    const cgs_column *c = &s->columns[i];
    cgs_column_spec out = {.name = c->name, .dtype = c->dtype, .rank = c->rank};
    memcpy(out.shape, c->shape, sizeof out.shape);
    return out;
}

int cgs_dataset_episode(const cgs_dataset *d, int e, int64_t *first) {
    const cgs_source *s = cgs_dataset_source(d);
    if (e < 0 || e >= s->episodes) return 0;
    *first = s->ep_offset[e];
    return s->ep_len[e];
}

/* ---- judging --------------------------------------------------------------------------- */

static cgs_status judge(cgs_findings *found, const char *path, const char *size) {
    cgs_run_config c;
    cgs_dataset *d = NULL;
    cgs_check seen;
    CGS_TRY(cgs_run_preset(&c, size ? size : "paper"));
    cgs_needs needs = {.image_size = size ? c.model.image_size : 0,
                       .num_steps = c.model.history + 1,
                       .frameskip = c.model.frameskip};
    cgs_status rc = cgs_dataset_open_finding(&d, path, found);
    if (rc == CGS_OK) rc = cgs_dataset_check(found, &seen, d, &needs, NULL, NULL);
    cgs_dataset_close(d);
    return found->problems ? CGS_OK : rc;
}

cgs_status cgs_dataset_judge(const char *path, const char *size, cgs_found_fn fn, void *user) {
    cgs_findings *found = calloc(1, sizeof *found);
    if (!found) return cgs_fail(CGS_ENOMEM, "%s: no memory", path);
    cgs_status rc = judge(found, path, size);
    for (int i = 0; rc == CGS_OK && i < found->problems && i < CGS_FINDINGS; i++)
        fn(user, 1, found->problem[i].s);
    for (int i = 0; rc == CGS_OK && i < found->remarks && i < CGS_FINDINGS; i++)
        fn(user, 0, found->remark[i].s);
    free(found);
    return rc;
}

/* ---- starts ---------------------------------------------------------------------------- */

typedef struct choosing {
    cgs_skip_fn skip;
    void *user;
} choosing;

static cgs_status ask(void *ctx, const cgs_start *s, bool *skip) {
    const choosing *c = ctx;
    *skip = c->skip(c->user, s) != 0;
    return CGS_OK;
}

/* use: (episodes) room for the held-out ones; length: (episodes) */
static cgs_status choose(const cgs_source *s, const cgs_start_rule *rule, const cgs_agent *held_out,
                         choosing *c, uint8_t *use, int64_t *length, cgs_start *out) {
    cgs_episodes ep = {.count = s->episodes, .length = length, .offset = s->ep_offset};
    cgs_starts starts;
    for (int i = 0; i < s->episodes; i++) length[i] = s->ep_len[i];
    if (held_out) {
        CGS_TRY(cgs_loaded_model_held_out(&held_out->s, s, use));
        if (held_out->prior)
            CGS_TRY(cgs_prior_without_held_out(&held_out->s, s,
                                               cgs_solver_prior_kind(&held_out->plan)));
        ep.use = use;
    }
    CGS_TRY(cgs_starts_choose(&starts, &ep, rule, c->skip ? ask : NULL, c));
    memcpy(out, starts.start, (size_t)starts.count * sizeof *out);
    cgs_starts_free(&starts);
    return CGS_OK;
}

cgs_status cgs_dataset_starts(cgs_dataset *d, int count, int goal_offset, uint64_t seed,
                              const cgs_agent *held_out, cgs_skip_fn skip, void *user,
                              cgs_start *out) {
    const cgs_source *s = cgs_dataset_source(d);
    cgs_start_rule rule = {.count = count, .goal_offset = goal_offset, .seed = seed};
    choosing c = {skip, user};
    uint8_t *use = malloc((size_t)s->episodes);
    int64_t *length = malloc((size_t)s->episodes * sizeof *length);
    cgs_status rc = use && length ? choose(s, &rule, held_out, &c, use, length, out)
                                  : cgs_fail(CGS_ENOMEM, "starts: no memory");
    free(use);
    free(length);
    return rc;
}

/* evaluate_runs.c - runs the settings of an evaluation and stores results; see evaluate_internal.h.
 */
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/threads.h"
#include "data/checksum.h"
#include "eval/evaluate_internal.h"
#include "eval/solver.h"
#include "plan/planners.h"

/* episodes at once: limited by the memory of images and environments */
enum { CPU_BATCH = 50, GPU_BATCH = 512 };

static int seed_index(const cgs_eval_options *o, uint64_t seed) {
    int i = 0;
    while (o->seeds[i] != seed) i++;
    return i;
}

static bool on_gpu(const cgs_eval_session *b) { return b->device.ops->kind == CGS_DEVICE_GPU; }

/* Episodes that rollouts are declared for.  It does not follow from how many starts there are or
 * are left to do: on a GPU bits depend on it, and a sweep that goes on must not mix them. */
static int declared_batch(const cgs_eval_session *b) {
    if (b->o->batch != CGS_BATCH_BY_DEVICE) return b->o->batch;
    return on_gpu(b) ? GPU_BATCH : CPU_BATCH;
}

static cgs_success_rule success_rule(const cgs_eval_session *b, const cgs_loaded_model *s) {
    cgs_success_rule r = b->judge == CGS_JUDGE_STRICT ? CGS_SUCCESS_END : cgs_success_of(s);
    if (b->o->success) (void)cgs_success_parse(&r, b->o->success); /* checked before */
    return r;
}

bool cgs_eval_run_prior(const cgs_eval_run *r, cgs_prior_kind *kind) {
    *kind = cgs_solver_prior_kind(&r->plan);
    return cgs_planner_kind_of(r->plan.kind.s)->needs & CGS_NEEDS_PRIOR;
}

static uint64_t *prior_checksum(const cgs_eval_session *b, int model, cgs_prior_kind kind) {
    return &b->prior[model * CGS_PRIOR_KINDS + (int)kind];
}

cgs_status cgs_eval_session_priors(cgs_eval_session *b) {
    for (int i = 0; i < b->e->count; i++) {
        const cgs_eval_run *r = &b->e->run[i];
        const cgs_loaded_model *s = &b->loaded[r->model];
        cgs_prior_kind kind;
        cgs_prior *p;
        if (!cgs_eval_run_prior(r, &kind) || *prior_checksum(b, r->model, kind)) continue;
        CGS_TRY(cgs_prior_load(&p, s->dir, kind, s->weights, &b->device));
        cgs_status rc = cgs_params_checksum(&p->params, prior_checksum(b, r->model, kind));
        cgs_prior_destroy(p);
        CGS_TRY(rc);
    }
    return CGS_OK;
}

static cgs_eval_settings settings_of(cgs_eval_session *b, const cgs_eval_run *r) {
    const cgs_loaded_model *s = &b->loaded[r->model];
    const cgs_starts *starts = &b->starts[seed_index(b->o, r->seed)];
    cgs_prior_kind kind;
    bool prior = cgs_eval_run_prior(r, &kind);
    cgs_eval_settings out = {.model = s->dir,
                             .weights = s->weights,
                             .env = b->e->env->id,
                             .env_version = b->e->env->version,
                             .dataset_rows = b->source->rows,
                             .rule = starts->rule,
                             .history = b->o->history,
                             .success = success_rule(b, s),
                             .judge = b->judge,
                             .prior_held_out = starts->rule.held_out && prior,
                             .prior = prior ? *prior_checksum(b, r->model, kind) : 0,
                             .budget = b->o->budget,
                             .execute = b->o->execute ? b->o->execute : b->o->horizon,
                             .plan = r->plan,
                             .train_seed = s->card.seed,
                             .compact = b->o->compact,
                             .device = b->device.ops->name,
                             .precision = cgs_loaded_model_precision(s)};
    if (on_gpu(b) && cgs_plan_iterations(&r->plan) > 0) out.batch = declared_batch(b);
    cgs_env_origin origin = cgs_env_origin_of(b->e->env);
    memcpy(out.env_file, origin.file, sizeof out.env_file);
    memcpy(out.env_sha256, origin.sha256, sizeof out.env_sha256);
    memcpy(out.method, s->card.method, sizeof out.method);
    memcpy(out.backbone, s->dino.origin, sizeof out.backbone);
    snprintf(out.dataset, sizeof out.dataset, "%.255s", starts->dataset.s);
    out.starts = cgs_starts_hash(starts);
    return out;
}

static cgs_status copy_result(cgs_eval_result *to, const cgs_eval_result *from) {
    *to = *from;
    to->success = malloc((size_t)from->episodes);
    if (!to->success) return cgs_fail(CGS_ENOMEM, "evaluation: no memory for a result");
    memcpy(to->success, from->success, (size_t)from->episodes);
    return CGS_OK;
}

cgs_status cgs_eval_session_find_done(cgs_eval_session *b) {
    for (int i = 0; i < b->e->count; i++) {
        cgs_eval_run *r = &b->e->run[i];
        cgs_eval_settings s = settings_of(b, r);
        char *json, hash[17];
        CGS_TRY(cgs_eval_describe(&s, &json, hash));
        free(json);
        for (int k = 0; k < i; k++)
            if (!strcmp(b->e->run[k].result.hash, hash))
                return cgs_fail(CGS_EARG, "%s: %s with the same settings is listed twice", s.model,
                                r->plan.kind.s);
        const cgs_eval_result *old = cgs_eval_file_find(&b->file, hash);
        if (old) {
            CGS_TRY(copy_result(&r->result, old));
            r->reused = true;
        } else {
            memcpy(r->result.hash, hash, sizeof hash);
            b->total += s.rule.count;
        }
    }
    return CGS_OK;
}

static void on_progress(void *user, int episodes) {
    cgs_eval_session *b = user;
    if (b->o->progress) b->o->progress(b->o->user, "evaluate", b->done + episodes, b->total);
}

static bool on_stop(void *user) {
    cgs_eval_session *b = user;
    return b->o->stop && b->o->stop(b->o->user);
}

static cgs_status keep_result(cgs_eval_session *b, cgs_eval_run *r, const cgs_starts *starts,
                              const cgs_outcome *outcome) {
    cgs_eval_settings s = settings_of(b, r);
    r->result.episodes = starts->count;
    r->result.success = malloc((size_t)starts->count);
    if (!r->result.success) return cgs_fail(CGS_ENOMEM, "evaluation: no memory for a result");
    for (int i = 0; i < starts->count; i++) {
        r->result.success[i] = outcome[i].success;
        r->result.successes += outcome[i].success;
        r->result.seconds += outcome[i].seconds / starts->count;
    }
    CGS_TRY(cgs_first_plans_of(&r->result.first, outcome, starts->count));
    if (!b->o->out) return CGS_OK;
    char *line;
    CGS_TRY(cgs_eval_line(&s, starts, outcome, &line));
    cgs_status rc = cgs_eval_file_append(b->o->out, line);
    free(line);
    return rc;
}

/* Cases of the seeds that a plan is still missing for, planned for together: the smaller a batch,
 * the longer a GPU waits.  Nothing is drawn differently for it. */
typedef struct lot {
    cgs_start_states cases;
    bool *in; /* (seeds) */
} lot;

static bool missing(const cgs_eval_run *r) { return !r->reused; }

static cgs_status fill_lot(cgs_eval_session *b, lot *l, cgs_loaded_model *s,
                           const cgs_eval_run *run) {
    const cgs_eval_options *o = b->o;
    bool same = l->cases.count > 0;
    for (int i = 0; i < o->seed_count; i++) same = same && l->in[i] == missing(&run[i]);
    if (same) return CGS_OK;
    cgs_start_states_free(&l->cases);
    for (int i = 0; i < o->seed_count; i++) {
        cgs_start_states list = {0};
        l->in[i] = missing(&run[i]);
        if (!l->in[i]) continue;
        cgs_status rc = cgs_start_states_build(&list, b->data, b->e->env, &b->starts[i], s->encoder,
                                               s->model, &s->scale, &s->proprio,
                                               cgs_history_context(o->history, s->model));
        if (rc == CGS_OK) rc = cgs_start_states_append(&l->cases, &list, run[i].seed);
        cgs_start_states_free(&list);
        CGS_TRY(rc);
    }
    return CGS_OK;
}

/* one setting of one model: run (seeds) */
static cgs_status run_plan(cgs_eval_session *b, cgs_eval_run *run, cgs_prior *prior, const lot *l) {
    const cgs_eval_options *o = b->o;
    cgs_loaded_model *s = &b->loaded[run->model];
    int count = l->cases.count, declared = declared_batch(b);
    int batch = declared < count ? declared : count;
    if (b->envs.count != batch) {
        cgs_env_batch_destroy(&b->envs);
        CGS_TRY(cgs_env_batch_create(&b->envs, b->e->env, batch));
    }
    cgs_loop_config c = {.model = s->model,
                         .encoder = s->encoder,
                         .prior = prior,
                         .env = b->e->env,
                         .scale = s->scale,
                         .proprio = s->proprio,
                         .plan = run->plan,
                         .history = o->history,
                         .success = success_rule(b, s),
                         .judge = b->judge,
                         .act = s->act,
                         .budget = o->budget,
                         .execute = o->execute,
                         .batch = batch,
                         .declared = declared,
                         .envs = &b->envs,
                         .watch = {.progress = on_progress, .stop = on_stop, .user = b}};
    cgs_loop *loop = NULL;
    cgs_outcome *outcome = malloc((size_t)count * sizeof *outcome), *at = outcome;
    double begun = cgs_now(), made, planning = 0;
    cgs_status rc = outcome ? cgs_loop_create(&loop, &c)
                            : cgs_fail(CGS_ENOMEM, "evaluation: no memory for outcomes");
    made = cgs_now();
    if (rc == CGS_OK) rc = cgs_loop_run(loop, &l->cases, outcome);
    for (int i = 0; i < count && rc == CGS_OK; i++) planning += outcome[i].seconds;
    cgs_log(CGS_DEBUG, "%s K=%d, %d starts: %.3f s to make, %.3f s to run, %.3f s of it planning",
            run->plan.kind.s, run->plan.K, count, made - begun, cgs_now() - made, planning);
    for (int i = 0; i < o->seed_count && rc == CGS_OK; i++) {
        if (!l->in[i]) continue;
        rc = keep_result(b, &run[i], &b->starts[i], at);
        at += b->starts[i].count;
    }
    if (rc == CGS_OK) b->done += count;
    cgs_loop_destroy(loop);
    free(outcome);
    return rc;
}

/* every plan of one model that is not done yet; add_runs lists the seeds of a plan one after
 * the other */
cgs_status cgs_eval_session_run(cgs_eval_session *b, int model) {
    cgs_loaded_model *s = &b->loaded[model];
    int seeds = b->o->seed_count;
    cgs_prior *prior[CGS_PRIOR_KINDS] = {NULL};
    lot l = {.in = calloc((size_t)seeds, sizeof *l.in)};
    cgs_status rc = l.in ? CGS_OK : cgs_fail(CGS_ENOMEM, "evaluation: no memory");
    for (int i = 0; i < b->e->count && rc == CGS_OK; i += seeds) {
        cgs_eval_run *run = &b->e->run[i];
        cgs_prior_kind kind;
        bool any = false;
        for (int k = 0; k < seeds; k++) any = any || missing(&run[k]);
        if (run->model != model || !any) continue;
        if (cgs_eval_run_prior(run, &kind) && !prior[kind])
            rc = cgs_prior_load(&prior[kind], s->dir, kind, s->weights, &b->device);
        if (rc == CGS_OK) rc = fill_lot(b, &l, s, run);
        if (rc == CGS_OK) rc = run_plan(b, run, prior[kind], &l);
    }
    cgs_start_states_free(&l.cases);
    free(l.in);
    for (int i = 0; i < CGS_PRIOR_KINDS; i++) cgs_prior_destroy(prior[i]);
    return rc;
}

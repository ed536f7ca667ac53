/* evaluate.c - see evaluate.h. */
#include "eval/evaluate.h"

#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "data/checksum.h"
#include "eval/subject.h"

/* episodes side by side: memory of pictures and environments speaks against more */
enum { CPU_BATCH = 50, GPU_BATCH = 512 };

float cgs_default_tau(const char *env) {
    static const struct {
        const char *env;
        float tau;
    } known[] = {{"pusht", 4}, {"cube", 64}, {"tworooms", 128}, {"reacher", 64}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (!strcmp(known[i].env, env)) return known[i].tau;
    return 0;
}

float cgs_family_tau(const char *family, const char *env) {
    static const struct {
        const char *env;
        float tau;
    } known[] = {{"pusht", 0.015f},
                 {"wall", 5e-6f},
                 {"pointmaze-umaze", 1e-3f},
                 {"pointmaze-medium", 3e-3f}};
    if (strcmp(family, "dinowm") != 0) return cgs_default_tau(env);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (!strcmp(known[i].env, env)) return known[i].tau;
    return 0;
}

float cgs_model_tau(const cgs_model *m, const char *env) {
    return cgs_family_tau(m->cls->family, env);
}

cgs_eval_options cgs_eval_defaults(void) {
    return (cgs_eval_options){.horizon = 5,
                              .budget = 50,
                              .goal_offset = 25,
                              .episodes = 50,
                              .batch = CGS_BATCH_BY_DEVICE,
                              .gd_steps = 100,
                              .device = "auto"};
}

/* what one evaluation holds while it runs */
typedef struct bench {
    const cgs_eval_options *o;
    cgs_evaluation *e;
    cgs_device device;
    cgs_dataset *data;
    const cgs_source *source;
    cgs_subject *subject; /* (models) */
    int64_t *ep_len;      /* (episodes) */
    uint8_t *use;         /* (episodes) or NULL */
    cgs_starts *starts;   /* (seeds) */
    cgs_eval_file file;
    double done, total; /* episodes */
} bench;

/* ---- preparation ------------------------------------------------------------------- */

static cgs_status check_lists(const cgs_eval_options *o) {
    if (o->model_count < 1 || o->planner_count < 1 || o->sample_count < 1 || o->iter_count < 1 ||
        o->seed_count < 1)
        return cgs_fail(CGS_EARG, "at least one model, planner, number of samples, number of "
                                  "iterations and seed is needed");
    for (int i = 0; i < o->seed_count; i++)
        for (int k = 0; k < i; k++)
            if (o->seeds[i] == o->seeds[k])
                return cgs_fail(CGS_EARG, "seed %llu is listed twice",
                                (unsigned long long)o->seeds[i]);
    return CGS_OK;
}

static cgs_status open_all(bench *b) {
    const cgs_eval_options *o = b->o;
    CGS_TRY(cgs_device_open(&b->device, o->device, o->threads));
    CGS_TRY(cgs_dataset_open(&b->data, o->data));
    b->source = cgs_dataset_source(b->data);
    if (b->source->pixels < 0) return cgs_fail(CGS_EFORMAT, "%s: has no pictures", o->data);
    b->e->models = o->model_count;
    b->e->card = calloc((size_t)o->model_count, sizeof *b->e->card);
    b->e->backbone = calloc((size_t)o->model_count, sizeof *b->e->backbone);
    b->subject = calloc((size_t)o->model_count, sizeof *b->subject);
    b->starts = calloc((size_t)o->seed_count, sizeof *b->starts);
    b->ep_len = malloc((size_t)b->source->episodes * sizeof *b->ep_len);
    if (!b->e->card || !b->e->backbone || !b->subject || !b->starts || !b->ep_len)
        return cgs_fail(CGS_ENOMEM, "evaluation: no memory");
    for (int i = 0; i < b->source->episodes; i++) b->ep_len[i] = b->source->ep_len[i];
    CGS_TRY(cgs_dataset_env(b->data, o->env, &b->e->env));
    for (int i = 0; i < o->model_count; i++) {
        CGS_TRY(cgs_subject_open_any(&b->subject[i], o->models[i], &b->device, o->precision,
                                     CGS_FRAMES_BY_DEVICE, b->data));
        CGS_TRY(cgs_subject_fits(&b->subject[i], b->e->env, b->source));
        b->e->card[i] = b->subject[i].card;
        memcpy(b->e->backbone[i], b->subject[i].dino.origin, sizeof b->e->backbone[i]);
    }
    return CGS_OK;
}

/* episodes that no model of the comparison has trained on */
static cgs_status find_held_out(bench *b) {
    if (!b->o->held_out) return CGS_OK;
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
        rc = cgs_subject_held_out(&b->subject[i], b->source, held);
        for (size_t k = 0; k < n && rc == CGS_OK; k++) b->use[k] &= held[k];
    }
    free(held);
    return rc;
}

/* starts that satisfy the success predicate before anything is done */
typedef struct solved_filter {
    bench *b;
    const char *column;
    cgs_env *env;
} solved_filter;

static cgs_status skip_solved(void *ctx, const cgs_start *s, bool *skip) {
    solved_filter *f = ctx;
    double state[CGS_ENV_MAX_DIM], goal[CGS_ENV_MAX_DIM];
    CGS_TRY(cgs_dataset_read_rows_f64(f->b->data, f->column, s->row, 1, state));
    CGS_TRY(
        cgs_dataset_read_rows_f64(f->b->data, f->column, s->row + f->b->o->goal_offset, 1, goal));
    *skip = cgs_env_reached(f->env, state, goal);
    return CGS_OK;
}

static cgs_status choose_starts(bench *b, int seed, const cgs_episodes *ep) {
    const cgs_eval_options *o = b->o;
    cgs_start_rule rule = {.count = o->episodes,
                           .goal_offset = o->goal_offset,
                           .seed = o->seeds[seed],
                           .whole_range = o->whole_range,
                           .held_out = o->held_out,
                           .skip_solved = o->skip_solved};
    cgs_starts *s = &b->starts[seed];
    char name[4096];
    if (o->manifest) {
        int n = o->seed_count > 1 ? snprintf(name, sizeof name, "%s.%llu", o->manifest,
                                             (unsigned long long)o->seeds[seed])
                                  : snprintf(name, sizeof name, "%s", o->manifest);
        if (n < 0 || n >= (int)sizeof name)
            return cgs_fail(CGS_EARG, "%.64s...: the name is too long", o->manifest);
        if (cgs_file_exists(name)) return cgs_starts_load(s, name, ep);
    }
    solved_filter f = {.b = b};
    cgs_status rc = CGS_OK;
    if (o->skip_solved) {
        rc = cgs_state_column(b->source, b->e->env, &f.column);
        if (rc == CGS_OK) rc = cgs_env_create(&f.env, b->e->env);
    }
    if (rc == CGS_OK) rc = cgs_starts_choose(s, ep, &rule, o->skip_solved ? skip_solved : NULL, &f);
    cgs_env_destroy(f.env);
    CGS_TRY(rc);
    const char *slash = strrchr(o->data, '/');
    snprintf(s->dataset.s, sizeof s->dataset.s, "%.255s", slash ? slash + 1 : o->data);
    return o->manifest ? cgs_starts_save(s, name) : CGS_OK;
}

static cgs_status choose_all(bench *b) {
    const cgs_eval_options *o = b->o;
    int frameskip = b->subject[0].world->frameskip, longest = 0;
    for (int i = 0; i < b->source->episodes; i++)
        if (b->source->ep_len[i] > longest) longest = b->source->ep_len[i];
    if (o->horizon > 0 && (int64_t)o->horizon * frameskip >= longest)
        return cgs_fail(CGS_EARG,
                        "horizon %d: a plan of %lld actions is longer than every episode of %s "
                        "(at most %d)",
                        o->horizon, (long long)o->horizon * frameskip, o->data, longest - 1);
    CGS_TRY(find_held_out(b));
    cgs_episodes ep = {.count = b->source->episodes,
                       .length = b->ep_len,
                       .offset = b->source->ep_offset,
                       .use = b->use};
    for (int i = 0; i < o->seed_count; i++) CGS_TRY(choose_starts(b, i, &ep));
    return CGS_OK;
}

/* ---- the list of runs -------------------------------------------------------------- */

/* own_tau: each model at the temperature that is known for its cost */
static cgs_status add_runs(bench *b, const cgs_plan_config *p, bool own_tau) {
    CGS_TRY(cgs_plan_check(p));
    cgs_evaluation *e = b->e;
    int more = b->o->model_count * b->o->seed_count;
    cgs_eval_run *list = realloc(e->run, (size_t)(e->count + more) * sizeof *list);
    if (!list) return cgs_fail(CGS_ENOMEM, "evaluation: no memory for %d runs", e->count + more);
    e->run = list;
    for (int m = 0; m < b->o->model_count; m++)
        for (int s = 0; s < b->o->seed_count; s++) {
            cgs_eval_run *r = &list[e->count++];
            *r = (cgs_eval_run){.model = m, .plan = *p, .seed = b->o->seeds[s]};
            r->plan.seed = r->seed;
            r->plan.A = cgs_model_block(b->subject[m].world);
            if (own_tau) r->plan.tau = cgs_model_tau(b->subject[m].world, b->e->env->id);
        }
    return CGS_OK;
}

/* only what a planner uses is swept: CEM has no temperature, GD no samples */
static cgs_status add_planner(bench *b, const char *name) {
    const cgs_eval_options *o = b->o;
    cgs_plan_config p = cgs_plan_defaults();
    cgs_plan_kind kind;
    CGS_TRY(cgs_plan_kind_parse(&kind, name));
    snprintf(p.kind.s, sizeof p.kind.s, "%s", name);
    p.H = o->horizon;
    p.elites = o->elites;
    p.gd_steps = o->gd_steps;
    bool mppi = kind == CGS_PLAN_MPPI || kind == CGS_PLAN_PG_MPPI;
    bool samples = mppi || kind == CGS_PLAN_CEM || kind == CGS_PLAN_PG_CEM;
    bool own_tau = mppi && !o->tau_count;
    for (int i = 0; own_tau && i < o->model_count; i++)
        if (!(cgs_model_tau(b->subject[i].world, b->e->env->id) > 0))
            return cgs_fail(CGS_EARG, "%s: no temperature is known for %s; give --tau", name,
                            b->e->env->id);
    for (int k = 0; k < (samples ? o->sample_count : 1); k++)
        for (int i = 0; i < (samples ? o->iter_count : 1); i++)
            for (int t = 0; t < (mppi && o->tau_count ? o->tau_count : 1); t++) {
                if (samples) {
                    p.K = o->samples[k];
                    p.iters = o->iters[i];
                }
                if (mppi && o->tau_count) p.tau = (float)o->taus[t];
                CGS_TRY(add_runs(b, &p, own_tau));
            }
    return CGS_OK;
}

/* ---- running ----------------------------------------------------------------------- */

static int seed_index(const cgs_eval_options *o, uint64_t seed) {
    int i = 0;
    while (o->seeds[i] != seed) i++;
    return i;
}

static cgs_eval_settings settings_of(bench *b, const cgs_eval_run *r) {
    const cgs_subject *s = &b->subject[r->model];
    const cgs_starts *starts = &b->starts[seed_index(b->o, r->seed)];
    cgs_eval_settings out = {.model = s->dir,
                             .weights = s->weights,
                             .env = b->e->env->id,
                             .env_version = b->e->env->version,
                             .dataset_rows = b->source->rows,
                             .rule = starts->rule,
                             .history = b->o->history,
                             .budget = b->o->budget,
                             .execute = b->o->execute ? b->o->execute : b->o->horizon,
                             .plan = r->plan,
                             .device = b->device.ops->name,
                             .precision = cgs_subject_precision(s)};
    memcpy(out.method, s->card.method, sizeof out.method);
    memcpy(out.backbone, s->dino.origin, sizeof out.backbone);
    snprintf(out.dataset, sizeof out.dataset, "%.255s", starts->dataset.s);
    uint64_t h = 0;
    for (int i = 0; i < starts->count; i++) h = cgs_mix64(h ^ (uint64_t)starts->start[i].row);
    out.starts = h;
    return out;
}

static cgs_status copy_result(cgs_eval_result *to, const cgs_eval_result *from) {
    *to = *from;
    to->success = malloc((size_t)from->episodes);
    if (!to->success) return cgs_fail(CGS_ENOMEM, "evaluation: no memory for a result");
    memcpy(to->success, from->success, (size_t)from->episodes);
    return CGS_OK;
}

static cgs_status find_done(bench *b) {
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
    bench *b = user;
    if (b->o->progress) b->o->progress(b->o->user, "evaluate", b->done + episodes, b->total);
}

static bool on_stop(void *user) {
    bench *b = user;
    return b->o->stop && b->o->stop(b->o->user);
}

static cgs_status keep_result(bench *b, cgs_eval_run *r, const cgs_starts *starts,
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
    if (!b->o->out) return CGS_OK;
    char *line;
    CGS_TRY(cgs_eval_line(&s, starts, outcome, &line));
    cgs_status rc = cgs_eval_file_append(b->o->out, line);
    free(line);
    return rc;
}

/* Cases of the seeds that a plan is still wanted for, planned for together: the smaller a batch,
 * the longer a GPU waits.  Nothing is drawn differently for it. */
typedef struct lot {
    cgs_cases cases;
    bool *in; /* (seeds) */
} lot;

static bool wanted(const cgs_eval_run *r) { return !r->reused; }

static cgs_status fill_lot(bench *b, lot *l, cgs_subject *s, const cgs_eval_run *run) {
    const cgs_eval_options *o = b->o;
    bool same = l->cases.count > 0;
    for (int i = 0; i < o->seed_count; i++) same = same && l->in[i] == wanted(&run[i]);
    if (same) return CGS_OK;
    cgs_cases_free(&l->cases);
    for (int i = 0; i < o->seed_count; i++) {
        cgs_cases list = {0};
        l->in[i] = wanted(&run[i]);
        if (!l->in[i]) continue;
        cgs_status rc = cgs_cases_build(&list, b->data, b->e->env, &b->starts[i], s->encoder,
                                        s->world, &s->scale, &s->proprio,
                                        cgs_history_context(o->history, s->world));
        if (rc == CGS_OK) rc = cgs_cases_join(&l->cases, &list, run[i].seed);
        cgs_cases_free(&list);
        CGS_TRY(rc);
    }
    return CGS_OK;
}

/* one plan for one model: run (seeds) */
static cgs_status run_plan(bench *b, cgs_eval_run *run, cgs_prior *prior, const lot *l) {
    const cgs_eval_options *o = b->o;
    cgs_subject *s = &b->subject[run->model];
    int count = l->cases.count, batch = o->batch;
    if (batch == CGS_BATCH_BY_DEVICE) batch = b->device.ops->planning ? GPU_BATCH : CPU_BATCH;
    cgs_loop_config c = {.model = s->world,
                         .encoder = s->encoder,
                         .prior = prior,
                         .env = b->e->env,
                         .scale = s->scale,
                         .proprio = s->proprio,
                         .plan = run->plan,
                         .history = o->history,
                         .act = s->act,
                         .budget = o->budget,
                         .execute = o->execute,
                         .batch = batch < count ? batch : count,
                         .watch = {.progress = on_progress, .stop = on_stop, .user = b}};
    cgs_loop *loop = NULL;
    cgs_outcome *outcome = malloc((size_t)count * sizeof *outcome), *at = outcome;
    cgs_status rc = outcome ? cgs_loop_create(&loop, &c)
                            : cgs_fail(CGS_ENOMEM, "evaluation: no memory for outcomes");
    if (rc == CGS_OK) rc = cgs_loop_run(loop, &l->cases, outcome);
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

/* every plan of one model that is not done yet; add_runs lists the seeds of a plan one behind
 * the other */
static cgs_status run_model(bench *b, int model) {
    cgs_subject *s = &b->subject[model];
    int seeds = b->o->seed_count;
    cgs_prior *prior = NULL;
    lot l = {.in = calloc((size_t)seeds, sizeof *l.in)};
    cgs_status rc = l.in ? CGS_OK : cgs_fail(CGS_ENOMEM, "evaluation: no memory");
    for (int i = 0; i < b->e->count && rc == CGS_OK; i += seeds) {
        cgs_eval_run *run = &b->e->run[i];
        cgs_plan_kind kind = CGS_PLAN_ZERO;
        bool any = false;
        for (int k = 0; k < seeds; k++) any = any || wanted(&run[k]);
        if (run->model != model || !any) continue;
        rc = cgs_plan_kind_parse(&kind, run->plan.kind.s);
        if (rc == CGS_OK && cgs_plan_wants_prior(kind) && !prior)
            rc = cgs_prior_load(&prior, s->dir, s->weights, &b->device);
        if (rc == CGS_OK) rc = fill_lot(b, &l, s, run);
        if (rc == CGS_OK) rc = run_plan(b, run, prior, &l);
    }
    cgs_cases_free(&l.cases);
    free(l.in);
    cgs_prior_destroy(prior);
    return rc;
}

static cgs_status evaluate(bench *b) {
    const cgs_eval_options *o = b->o;
    CGS_TRY(check_lists(o));
    CGS_TRY(open_all(b));
    for (int i = 0; i < o->planner_count; i++) CGS_TRY(add_planner(b, o->planners[i]));
    CGS_TRY(choose_all(b));
    if (o->out) CGS_TRY(cgs_eval_file_read(&b->file, o->out));
    CGS_TRY(find_done(b));
    for (int m = 0; m < o->model_count; m++) CGS_TRY(run_model(b, m));
    return CGS_OK;
}

cgs_status cgs_evaluate(cgs_evaluation *e, const cgs_eval_options *o) {
    bench b = {.o = o, .e = e};
    memset(e, 0, sizeof *e);
    cgs_status rc = evaluate(&b);
    for (int i = 0; b.subject && i < o->model_count; i++) cgs_subject_close(&b.subject[i]);
    for (int i = 0; b.starts && i < o->seed_count; i++) cgs_starts_free(&b.starts[i]);
    cgs_eval_file_free(&b.file);
    cgs_dataset_close(b.data);
    cgs_device_close(&b.device);
    free(b.subject);
    free(b.starts);
    free(b.ep_len);
    free(b.use);
    return rc;
}

void cgs_evaluation_free(cgs_evaluation *e) {
    for (int i = 0; i < e->count; i++) free(e->run[i].result.success);
    free(e->run);
    free(e->card);
    free(e->backbone);
    memset(e, 0, sizeof *e);
}

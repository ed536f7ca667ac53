/* solver.c - see solver.h. */
#include "eval/solver.h"

#include <stdlib.h>
#include <string.h>

#include "plan/refine.h"

static cgs_status check_prior(const cgs_solver *s) {
    const cgs_solver_config *c = &s->config;
    const cgs_prior_card *p = c->prior ? &c->prior->card : NULL;
    int H = c->plan.H, A = c->plan.A, D = c->model->width;
    if (!(s->kind->needs & CGS_NEEDS_PRIOR)) return CGS_OK;
    if (!p) return cgs_fail(CGS_EARG, "%s needs a prior", s->kind->name);
    if (p->horizon == H && p->block == A && p->width == D) return CGS_OK;
    return cgs_fail(
        CGS_EARG,
        "the prior plans %d action blocks of %d values from latents of %d, %s needs %d of %d "
        "from %d",
        p->horizon, p->block, p->width, s->kind->name, H, A, D);
}

cgs_status cgs_solver_create(cgs_solver *s, const cgs_solver_config *c) {
    *s = (cgs_solver){.config = *c};
    CGS_TRY(cgs_planner_kind_find(&s->kind, c->plan.kind.s));
    CGS_TRY(check_prior(s));
    s->config.plan.frameskip = c->model->frameskip;
    if (s->kind->needs & CGS_NEEDS_RESIDUALS) s->config.plan.R = c->model->width;
    CGS_TRY(cgs_planner_create(&s->planner, &s->config.plan, c->episodes));
    CGS_TRY(cgs_planner_use_device(s->planner, c->model->params->device));
    if (s->kind->reads & CGS_READS_PRODUCT && c->plan.product && c->prior->card.spread) {
        s->unit = malloc((size_t)c->episodes * (size_t)(c->plan.H * c->plan.A) * sizeof *s->unit);
        if (!s->unit) return cgs_fail(CGS_ENOMEM, "solver: no memory");
    }
    s->rest = calloc((size_t)c->plan.A, sizeof *s->rest);
    if (!s->rest) return cgs_fail(CGS_ENOMEM, "solver: no memory");
    for (int i = 0; s->kind->starts_at_rest && i < c->plan.A; i++) {
        int k = i % c->scale.dim;
        s->rest[i] = (float)(-c->scale.mean[k] / c->scale.std[k]);
    }
    return CGS_OK;
}

void cgs_solver_destroy(cgs_solver *s) {
    cgs_planner_destroy(s->planner);
    for (int i = 0; i <= CGS_CONTEXT_MAX; i++) cgs_rollout_destroy(s->rollout[i]);
    free(s->rest);
    free(s->unit);
    memset(s, 0, sizeof *s);
}

cgs_status cgs_solver_add_context(cgs_solver *s, int context) {
    const cgs_solver_config *c = &s->config;
    if (s->rollout[context] || !(s->kind->needs & CGS_NEEDS_SCORES)) return CGS_OK;
    cgs_rollout_config r = {.episodes = c->episodes,
                            .declared = c->declared,
                            .context = context,
                            .horizon = c->plan.H,
                            .samples = cgs_planner_candidates(s->kind, &c->plan),
                            .gradient = s->kind->needs & CGS_NEEDS_GRADIENT,
                            .residual = s->kind->needs & CGS_NEEDS_RESIDUAL,
                            .jacobian = s->kind->needs & CGS_NEEDS_JACOBIAN,
                            .group = c->group,
                            .act = c->act};
    return cgs_rollout_create_any(&s->rollout[context], c->model, &r);
}

cgs_status cgs_solver_start(cgs_solver *s, int E, const float *z, const float *goal,
                            const float *last, int executed, float *start) {
    const cgs_plan_config *p = &s->config.plan;
    if (s->kind->needs & CGS_NEEDS_PRIOR) {
        CGS_TRY(cgs_prior_plan(s->config.prior, z, goal, E, start, s->unit));
        if (s->unit) cgs_plan_product(s->unit, (int64_t)E * p->H * p->A);
        return CGS_OK;
    }
    cgs_plan_shift(start, last, E, p->H, p->A, executed, s->rest);
    return CGS_OK;
}

cgs_status cgs_solver_solve(cgs_solver *s, const cgs_solver_job *j, cgs_plan_problem *q,
                            cgs_plan_result *result) {
    cgs_rollout *r = s->rollout[j->context];
    int R = r ? cgs_rollout_residuals(r) : 0;
    if (r) CGS_TRY(cgs_rollout_set(r, j->E, j->z, j->past, j->goal));
    *q = (cgs_plan_problem){.E = j->E,
                            .episode = j->episode,
                            .seed = j->seed,
                            .solve = j->solve,
                            .start = j->start,
                            .unit = s->unit,
                            .cost = cgs_rollout_cost,
                            .gradient = cgs_rollout_gradient,
                            .residual = R ? cgs_rollout_residual : NULL,
                            .jacobian = R ? cgs_rollout_jacobian : NULL,
                            .R = R,
                            .ctx = r,
                            .on_device = r ? cgs_rollout_device_scorer(r) : NULL};
    return cgs_planner_solve(s->planner, q, result);
}

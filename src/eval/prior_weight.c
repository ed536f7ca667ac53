/* prior_weight.c - see prior_weight.h. */
#include "eval/prior_weight.h"

#include <stdio.h>
#include <stdlib.h>

#include "eval/solver.h"

/* of plans around where the planner starts, in the units that it measures them in */
static cgs_status variance_of_plans(const cgs_plan_config *c, const cgs_loaded_model *s,
                                    double *variance) {
    const cgs_planner_kind *kind = cgs_planner_kind_of(c->kind.s);
    cgs_prior_card p;
    *variance = s->card.plan_variance;
    if (!(kind->needs & CGS_NEEDS_PRIOR)) return CGS_OK;
    CGS_TRY(cgs_prior_load_card(&p, s->dir, cgs_solver_prior_kind(c)));
    *variance = p.validation_loss;
    /* plans are measured in spreads of a product: v / (1 + v) counts as 1 */
    if (p.spread && c->product) *variance = 1 + p.validation_loss;
    return CGS_OK;
}

cgs_status cgs_choose_gamma(cgs_plan_config *c, const cgs_loaded_model *s) {
    const cgs_planner_kind *kind;
    char text[32];
    double plans;
    CGS_TRY(cgs_planner_kind_find(&kind, c->kind.s));
    if (!(kind->reads & CGS_READS_GAMMA) || !cgs_plan_gamma_open(c)) return CGS_OK;
    CGS_TRY(variance_of_plans(c, s, &plans));
    if (s->card.prediction_horizon != c->H || !(plans > 0))
        return cgs_fail(CGS_EARG,
                        "plan.gn.gamma: %s: its card has no prediction error for plans of %d "
                        "blocks; cgs prior measures it",
                        s->dir, c->H);
    snprintf(text, sizeof text, "%.1e", s->card.prediction_variance / plans);
    c->gamma = strtof(text, NULL);
    return CGS_OK;
}

/* planners.c - the rows; see planners.h. */
#include "plan/planners.h"

#include <stdio.h>
#include <string.h>

#include "plan/search.h"

enum {
    READS_GAUSSIAN = CGS_READS_SAMPLES | CGS_READS_ITERS | CGS_READS_SIGMA | CGS_READS_COLOUR |
                     CGS_READS_MIRROR | CGS_READS_BEST,
    READS_CEM = READS_GAUSSIAN | CGS_READS_ELITES,
    READS_MPPI = READS_GAUSSIAN | CGS_READS_TAU | CGS_READS_ESS | CGS_READS_DECAY,
    READS_GN = READS_GAUSSIAN | CGS_READS_GAMMA | CGS_READS_DECAY | CGS_READS_DAMPING |
               CGS_READS_REUSE | CGS_READS_RIDGE,
    READS_PRIOR = CGS_READS_PRODUCT | CGS_READS_INVERSE /* of a search that begins at one */
};

/* Planners that keep one number per candidate need many; 3,840 are the published 128 x 30. */
static void divide_evenly(int rollouts, int *K, int *iters) {
    int I = (int)floor(sqrt(rollouts) / 2);
    *iters = I < 1 ? 1 : I;
    *K = rollouts / *iters;
}

/* Sixteen candidates say most of what there is to know about the directions that matter; the next
 * sixteen say more at the new mean, up to eight times. */
static void divide_by_sixteen(int rollouts, int *K, int *iters) {
    *K = rollouts < 16 ? rollouts : rollouts > 128 ? rollouts / 8 : 16;
    *iters = rollouts < 16 ? 1 : rollouts > 128 ? 8 : rollouts / 16;
}

static const cgs_planner_kind rows[] = {
    {.name = "mppi",
     .title = "MPPI",
     .summary = "the candidates' average, weighted by exp(-cost / tau)",
     .needs = CGS_NEEDS_COST,
     .reads = READS_MPPI,
     .divide = divide_evenly,
     .kernel = CGS_KERNEL_REWEIGHT,
     .memory = cgs_plan_mppi_memory,
     .update = cgs_plan_mppi_update},
    {.name = "pg-mppi",
     .title = "PG-MPPI",
     .summary = "mppi around the mean of a prior (cgs prior)",
     .needs = CGS_NEEDS_COST | CGS_NEEDS_PRIOR,
     .reads = READS_MPPI | READS_PRIOR,
     .divide = divide_evenly,
     .kernel = CGS_KERNEL_REWEIGHT,
     .memory = cgs_plan_mppi_memory,
     .update = cgs_plan_mppi_update},
    {.name = "cem",
     .title = "CEM",
     .summary = "mean and spread refitted to the candidates of lowest cost",
     .needs = CGS_NEEDS_COST,
     .reads = READS_CEM,
     .divide = divide_evenly,
     .kernel = CGS_KERNEL_REFIT,
     .memory = cgs_plan_cem_memory,
     .update = cgs_plan_cem_update},
    {.name = "pg-cem",
     .title = "PG-CEM",
     .summary = "cem around the mean of a prior (cgs prior)",
     .needs = CGS_NEEDS_COST | CGS_NEEDS_PRIOR,
     .reads = READS_CEM | READS_PRIOR,
     .divide = divide_evenly,
     .kernel = CGS_KERNEL_REFIT,
     .memory = cgs_plan_cem_memory,
     .update = cgs_plan_cem_update},
    {.name = "icem",
     .title = "iCEM",
     .summary = "cem with coloured noise and kept elites; returns the best plan scored",
     .needs = CGS_NEEDS_COST,
     .reads = READS_CEM | CGS_READS_KEEP | CGS_READS_SHRINK,
     .divide = divide_evenly,
     .returns_best = true,
     .colour = 2,
     .kernel = CGS_KERNEL_REFIT,
     .memory = cgs_plan_icem_memory,
     .propose = cgs_plan_icem_propose,
     .update = cgs_plan_icem_update},
    {.name = "covo",
     .title = "CoVO-MPPI",
     .summary = "mppi with the covariance that suits the curvature candidates show",
     .needs = CGS_NEEDS_COST | CGS_NEEDS_RESIDUAL,
     .reads = READS_MPPI | CGS_READS_GAMMA | CGS_READS_RIDGE,
     .divide = divide_evenly,
     .memory = cgs_plan_covo_memory,
     .propose = cgs_plan_covo_propose,
     .update = cgs_plan_covo_update},
    {.name = "gn",
     .title = "GN",
     .summary = "Gauss-Newton steps by the responses of the candidates' latents",
     .needs = CGS_NEEDS_COST | CGS_NEEDS_RESIDUAL,
     .reads = READS_GN,
     .divide = divide_by_sixteen,
     .kernel = CGS_KERNEL_GAUSS_NEWTON,
     .decay = 0.8f,
     .memory = cgs_plan_gauss_newton_memory,
     .begin = cgs_plan_gauss_newton_begin,
     .update = cgs_plan_gauss_newton_update},
    {.name = "pg-gn",
     .title = "PG-GN",
     .summary = "gn around the mean of a prior (cgs prior)",
     .needs = CGS_NEEDS_COST | CGS_NEEDS_RESIDUAL | CGS_NEEDS_PRIOR,
     .reads = READS_GN | READS_PRIOR,
     .divide = divide_by_sixteen,
     .kernel = CGS_KERNEL_GAUSS_NEWTON,
     .decay = 0.8f,
     .memory = cgs_plan_gauss_newton_memory,
     .begin = cgs_plan_gauss_newton_begin,
     .update = cgs_plan_gauss_newton_update},
    {.name = "lm",
     .title = "LM",
     .summary = "Levenberg-Marquardt steps by exact Jacobians of the latent",
     .needs = CGS_NEEDS_JACOBIAN,
     .reads = CGS_READS_ITERS | CGS_READS_GAMMA | CGS_READS_DAMPING,
     .memory = cgs_plan_levenberg_memory,
     .begin = cgs_plan_levenberg_begin,
     .update = cgs_plan_levenberg_update},
    {.name = "prior",
     .title = "Prior",
     .summary = "the mean of a prior (cgs prior); asks for no cost",
     .needs = CGS_NEEDS_PRIOR,
     .reads = CGS_READS_INVERSE},
    {.name = "gd",
     .title = "GD",
     .summary = "gradient descent with Adam from the action at rest",
     .needs = CGS_NEEDS_GRADIENT,
     .reads = CGS_READS_STEPS | CGS_READS_LR,
     .starts_at_rest = true,
     .kernel = CGS_KERNEL_ADAM,
     .memory = cgs_plan_descent_memory,
     .begin = cgs_plan_descent_begin,
     .update = cgs_plan_descent_update},
    {.name = "random",
     .title = "Random",
     .summary = "the mean action plus noise; asks for no cost",
     .reads = CGS_READS_SIGMA,
     .begin = cgs_plan_random_begin},
    {.name = "zero", .title = "Zero", .summary = "the mean action; asks for no cost"},
};
enum { ROWS = sizeof rows / sizeof *rows };

const cgs_planner_kind *cgs_planner_kind_at(int i) { return i >= 0 && i < ROWS ? &rows[i] : NULL; }

const cgs_planner_kind *cgs_planner_kind_of(const char *name) {
    for (int i = 0; i < ROWS; i++)
        if (!strcmp(rows[i].name, name)) return &rows[i];
    return NULL;
}

cgs_status cgs_planner_kind_find(const cgs_planner_kind **out, const char *name) {
    char names[CGS_PLANNER_NAMES];
    *out = cgs_planner_kind_of(name);
    if (*out) return CGS_OK;
    return cgs_fail(CGS_EARG, "plan.planner: \"%.80s\" is not %s", name,
                    cgs_planner_names(names, sizeof names, 0));
}

const char *cgs_planner_names(char *out, size_t size, unsigned without) {
    const char *name[ROWS];
    int count = 0;
    size_t used = 0;
    for (int i = 0; i < ROWS; i++)
        if (!(rows[i].needs & without)) name[count++] = rows[i].name;
    *out = 0;
    for (int i = 0; i < count && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s",
                                 i == 0           ? ""
                                 : i + 1 == count ? " or "
                                                  : ", ",
                                 name[i]);
    return out;
}

int cgs_planner_candidates(const cgs_planner_kind *kind, const cgs_plan_config *c) {
    return kind->reads & CGS_READS_SAMPLES ? c->K : 1;
}

/* ---- settings that planners read ----------------------------------------------------- */

#define X(id, key, label, whole, value, silent)                                                    \
    static double value_of_##id(const cgs_plan_config *c) { return value; }
CGS_PLANNER_SETTINGS(X)
#undef X

static const cgs_planner_setting settings[] = {
#define X(id, key, label, whole, value, silent)                                                    \
    {CGS_READS_##id, key, label, whole, silent, value_of_##id},
    CGS_PLANNER_SETTINGS(X)
#undef X
};

const cgs_planner_setting *cgs_planner_setting_at(int i) {
    return i >= 0 && i < CGS_PLANNER_SETTING_COUNT ? &settings[i] : NULL;
}

bool cgs_planner_shows(const cgs_planner_kind *kind, const cgs_planner_setting *s,
                       const cgs_plan_config *c) {
    double value = s->value(c);
    return kind->reads & s->bit && !(value <= s->silent && value >= s->silent);
}

bool cgs_planner_divides(const cgs_planner_kind *kind, double K, double iters) {
    int k, i;
    if (!kind || !kind->divide || !(K >= 1 && iters >= 1 && K * iters < 1e9)) return false;
    kind->divide((int)(K * iters), &k, &i);
    return k == (int)K && i == (int)iters;
}

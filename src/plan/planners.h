/* planners.h - the table of planners.
 *
 * A planner is a row: what it is called, what it asks of its caller, which settings it reads, how
 * it moves the proposal after an iteration was scored, and what does the same on a device.
 * Whatever lists planners or tells them apart follows from the rows: options, help, man page and
 * completion, the public API, sweeps, the fields (and so the hash) of result lines, labels and
 * order in reports, and the tests of what all planners promise. */
#ifndef CGS_PLAN_PLANNERS_H
#define CGS_PLAN_PLANNERS_H

#include <math.h>

#include "plan/planner.h"

/* What a planner asks of its caller. */
typedef enum cgs_planner_need {
    CGS_NEEDS_COST = 1 << 0,     /* costs of its candidates */
    CGS_NEEDS_GRADIENT = 1 << 1, /* the cost of one plan, and its gradient */
    CGS_NEEDS_PRIOR = 1 << 2,    /* the mean of a prior as its start */
    CGS_NEEDS_RESIDUAL = 1 << 3, /* residuals of its candidates, beside their costs */
    CGS_NEEDS_JACOBIAN = 1 << 4, /* residuals of one plan, and their derivatives */
    CGS_NEEDS_SCORES = CGS_NEEDS_COST | CGS_NEEDS_GRADIENT | CGS_NEEDS_JACOBIAN,
    /* residuals in any way, of which the planner must know the size */
    CGS_NEEDS_RESIDUALS = CGS_NEEDS_RESIDUAL | CGS_NEEDS_JACOBIAN
} cgs_planner_need;

/* The settings that some planners read and others do not, in the order of result lines:
 * identifier, key in a line, label in tables ("": not shown there), whether it is a whole number,
 * its value in the settings `c`, and the value at which lines and labels leave it out (NAN: never):
 * that of options which lines from before them did not have. */
#define CGS_PLANNER_SETTINGS(X)                                                                    \
    X(SAMPLES, "samples", "K", true, c->K, NAN)                                                    \
    X(ITERS, "iters", "I", true, c->iters, NAN)                                                    \
    X(ELITES, "elites", "", true, cgs_plan_elites(c), NAN)                                         \
    X(TAU, "tau", "tau", false, c->ess > 0 ? 0 : c->tau, 0)                                        \
    X(SIGMA, "sigma", "", false, c->sigma, NAN)                                                    \
    X(STEPS, "steps", "steps", true, c->gd_steps, NAN)                                             \
    X(LR, "lr", "", false, c->lr, NAN)                                                             \
    X(GAMMA, "gamma", "gamma", false, c->gamma, NAN)                                               \
    X(ESS, "ess", "ess", false, c->ess, 0)                                                         \
    X(DECAY, "decay", "decay", false, cgs_plan_decay(c), 1)                                        \
    X(COLOUR, "colour", "colour", false, cgs_plan_colour(c), 0)                                    \
    X(MIRROR, "mirror", "mirror", true, c->mirror, 0)                                              \
    X(BEST, "best", "best", true, c->best, 0)                                                      \
    X(DAMPING, "damping", "damping", false, c->damping, 1e-4f)                                     \
    X(REUSE, "reuse", "reuse", true, c->reuse, 0)                                                  \
    X(RIDGE, "ridge", "ridge", false, c->ridge, 0.01f)                                             \
    X(KEEP, "keep", "", false, c->keep, NAN)                                                       \
    X(SHRINK, "shrink", "shrink", false, c->shrink, 1)                                             \
    X(PRODUCT, "product", "product", true, c->product, 1)                                          \
    X(INVERSE, "inverse", "inverse", true, c->inverse, 0)

enum {
#define X(id, key, label, whole, value, silent) CGS_SETTING_##id,
    CGS_PLANNER_SETTINGS(X)
#undef X
        CGS_PLANNER_SETTING_COUNT
};

/* The same as bits, for cgs_planner_kind.reads. */
enum {
#define X(id, key, label, whole, value, silent) CGS_READS_##id = 1 << CGS_SETTING_##id,
    CGS_PLANNER_SETTINGS(X)
#undef X
};

typedef struct cgs_planner_setting {
    unsigned bit; /* CGS_READS_... */
    const char *key, *label;
    bool whole;
    double silent; /* the value at which it is left out; NAN: never */
    double (*value)(const cgs_plan_config *c);
} cgs_planner_setting;

/* What moves the proposal where the loop runs on a device (planner_kernels.h). */
typedef enum cgs_planner_kernel {
    CGS_KERNEL_NONE, /* nothing: the loop always runs on the host */
    CGS_KERNEL_REFIT,
    CGS_KERNEL_REWEIGHT,
    CGS_KERNEL_ADAM,
    CGS_KERNEL_GAUSS_NEWTON
} cgs_planner_kernel;

struct cgs_search; /* search.h */

typedef struct cgs_planner_kind {
    const char *name;    /* in settings, options and result lines */
    const char *title;   /* in reports */
    const char *summary; /* one line, for help */
    unsigned needs;      /* CGS_NEEDS_... */
    unsigned reads;      /* CGS_READS_...; SAMPLES: an iteration scores K Gaussian candidates, not
                          * the plan itself; ITERS or STEPS: how many iterations a solve makes */
    bool starts_at_rest; /* where nothing is known of a plan, the search begins at the raw action 0,
                          * an actuator at rest, and not at the mean action of the data: a descent
                          * follows one trajectory from there, candidates surround the mean */
    bool returns_best;   /* the best plan scored, not the final mean */
    float colour;        /* exponent of its noise where the settings give none */
    float decay;         /* factor of its spread likewise; 0: 1 */
    cgs_planner_kernel kernel;
    /* The planner's rule for how many candidates and iterations to make of `rollouts` per solve, at
     * most as many together; NULL: it has none.  What a rule gives, it gives again for the product.
     */
    void (*divide)(int rollouts, int *K, int *iters);
    /* bytes of its own for E episodes, cgs_search.own; NULL: none */
    size_t (*memory)(const cgs_plan_config *c, int E);
    /* before the first iteration; NULL: mean and spread are as the settings say */
    void (*begin)(struct cgs_search *s);
    /* after candidates were drawn, before they are scored; NULL: they stay */
    void (*propose)(struct cgs_search *s);
    /* after an iteration was scored; NULL for planners that ask for no scores */
    void (*update)(struct cgs_search *s);
} cgs_planner_kind;

/* The rows, in the order of help texts and reports; NULL beyond the last. */
const cgs_planner_kind *cgs_planner_kind_at(int i);
/* The row of a name; NULL where there is none. */
const cgs_planner_kind *cgs_planner_kind_of(const char *name);
/* The same, or an error that lists the names. */
cgs_status cgs_planner_kind_find(const cgs_planner_kind **out, const char *name);

/* "a, b or c": the planners that need nothing of `without` (CGS_NEEDS_...).  Returns out. */
enum { CGS_PLANNER_NAMES = 256 }; /* a size that holds all of them */
const char *cgs_planner_names(char *out, size_t size, unsigned without);

/* The settings above; NULL beyond the last. */
const cgs_planner_setting *cgs_planner_setting_at(int i);

/* Whether the lines and labels of a planner have the setting. */
bool cgs_planner_shows(const cgs_planner_kind *kind, const cgs_planner_setting *s,
                       const cgs_plan_config *c);

/* Whether candidates and iterations are what the planner's rule makes of their product. */
bool cgs_planner_divides(const cgs_planner_kind *kind, double K, double iters);

/* Plans per episode that one iteration scores, at most. */
int cgs_planner_candidates(const cgs_planner_kind *kind, const cgs_plan_config *c);

#endif /* CGS_PLAN_PLANNERS_H */

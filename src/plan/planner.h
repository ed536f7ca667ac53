/* planner.h - action sequences of low cost, for a batch of independent episodes.
 *
 * A planner owns no model.  It is given a function that scores candidate plans, or one that
 * differentiates the score of a plan, and searches over (H, A): H blocks of A standardised
 * action values.  No value is ever clipped.
 *
 *   cgs_planner_create      all memory on the host, from one arena
 *   cgs_planner_use_device  optional: all memory on a device, for solves whose loop runs there
 *   cgs_planner_solve       as often as needed
 *   cgs_planner_reset       before another run of episodes
 *   cgs_planner_destroy
 *
 * An iteration of a sampling planner draws K candidates around a mean, the first of which is the
 * mean itself, scores them, and moves the mean (and the spread); one of a descent scores its plan.
 * planners.h has the table of planners: what each needs, reads and does.
 *
 * A solve allocates nothing; only where its loop runs on a device it captures a graph, whose memory
 * is the driver's, when a scorer or a number of episodes is new (device_loop.h).
 *
 * Noise is a pure function of (seed, episode id, solve, iteration, candidate, coordinate), see
 * refine.h, and every sum has a fixed order.  So a plan depends neither on the other episodes of a
 * batch nor on the number of threads, as far as its costs do not (docs/numerics.md). */
#ifndef CGS_PLAN_PLANNER_H
#define CGS_PLAN_PLANNER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/config.h"
#include "core/status.h"

/* clang-format off */
/* What a command or a model decides. */
#define CGS_PLAN_CHOICES(X)                                                                        \
    X(text,  kind,           "mppi", 0,     0,       "plan.planner",                               \
      "name of a row in the table of planners")                                                    \
    X(int,   K,              128,    1,     1 << 24, "plan.samples",                               \
      "candidates scored in an iteration, the mean included")                                      \
    X(int,   iters,          30,     1,     1 << 20, "plan.iters",                                 \
      "iterations of the sampling planners")                                                       \
    X(int,   gd_steps,       100,    1,     1 << 20, "plan.gd.steps",                              \
      "Adam steps of gradient descent")                                                            \
    X(int,   H,              5,      1,     4096,    "plan.horizon",                               \
      "action blocks in a plan")                                                                   \
    X(int,   A,              10,     1,     4096,    "plan.action_size",                           \
      "values in an action block; taken from the model")                                           \
    X(int,   frameskip,      1,      1,     4096,    "plan.frameskip",                             \
      "primitive actions in an action block; taken from the model")                                \
    X(int,   R,              0,      0,     1 << 24, "plan.residual_size",                         \
      "values in a residual, at most, for planners that need residuals; taken from the model")     \
    X(int,   elites,         0,      0,     1 << 24, "plan.elites",                                \
      "candidates cem refits to; 0: the fraction below")                                           \
    X(float, tau,            4.0f,   1e-30, 1e30,    "plan.tau",                                   \
      "temperature of mppi, on the scale of the cost")                                             \
    X(u64,   seed,           0,      0,     0,       "plan.seed",                                  \
      "seed of the candidates")
/* What else planners read: plan.key=value where a command takes settings. */
#define CGS_PLAN_TUNING(X)                                                                         \
    X(float, elite_fraction, 0.25f,  1e-6,  1,       "plan.elite_fraction",                        \
      "share of candidates cem refits to, rounded down, at least one candidate")                   \
    X(float, sigma,          1.0f,   1e-30, 1e30,    "plan.sigma",                                 \
      "standard deviation of the first proposal")                                                  \
    X(float, lr,             0.1f,   1e-30, 1e30,    "plan.gd.lr",                                 \
      "first learning rate of gradient descent")                                                   \
    X(float, decay,          0.0f,   0,     1,       "plan.decay",                                 \
      "factor of the spread after each iteration of mppi, covo and gn; 0: 0.8 for gn, else 1")     \
    X(float, ess,            0.0f,   0,     1e9,     "plan.ess",                                   \
      "effective number of candidates, 1 / sum of squared weights, that mppi chooses its "         \
      "temperature for in every iteration; 0: the temperature is plan.tau")                        \
    X(float, colour,         -1.0f,  -1,    16,      "plan.colour",                                \
      "exponent b of noise over primitive actions with spectrum f^-b, 0: white; "                  \
      "-1: 2 for icem, 0 for others")                                                              \
    X(flag,  mirror,         false,  0,     1,       "plan.mirror",                                \
      "draw candidates in pairs, the second mirrored at the mean")                                 \
    X(flag,  best,           false,  0,     1,       "plan.best",                                  \
      "return the plan of lowest cost among all scored, not the final mean")                       \
    X(float, keep,           0.3f,   0,     1,       "plan.icem.keep",                             \
      "share of icem's elites that are candidates again in the next iteration")                    \
    X(float, shrink,         1.0f,   1e-6,  1,       "plan.icem.shrink",                           \
      "factor of icem's candidates after each iteration, down to twice the elites")                \
    X(float, gamma,          1.0f,   -1,    1e30,    "plan.gn.gamma",                              \
      "weight of the squared distance from the start in gn and lm, and least curvature in covo: "  \
      "variance of the prediction's error over variance of plans around the start; -1 (auto): as " \
      "the model's card says")                                                                     \
    X(float, damping,        1e-4f,  0,     1e6,     "plan.gn.damping",                            \
      "damping of gn's weights, in units of the mean squared response of a candidate; lm's first "  \
      "one, by the largest curvature of a value")                                                  \
    X(int,   reuse,          0,      0,     1 << 10, "plan.gn.reuse",                              \
      "earlier iterations whose candidates gn uses again")                                         \
    X(float, ridge,          0.01f,  0,     1e6,     "plan.gn.ridge",                              \
      "ridge of the regression of residuals on plans in gn, in units of the mean squared length "  \
      "of a candidate's difference from the mean")                                                 \
    X(flag,  product,        true,   0,     1,       "plan.product",                               \
      "where the prior has a spread: draw around its mean with the product of its Gaussian and a " \
      "unit one, not with the unit one alone")                                                     \
    X(flag,  inverse,        false,  0,     1,       "plan.inverse",                               \
      "the prior is the model's inverse-dynamics head, not its behaviour-cloning one")             \
    X(float, deadline,       0.0f,   0,     1e9,     "plan.deadline",                              \
      "seconds a solve may take; 0: no limit")
/* clang-format on */

typedef struct cgs_plan_config {
    CGS_CONFIG_STRUCT(CGS_PLAN_CHOICES)
    CGS_CONFIG_STRUCT(CGS_PLAN_TUNING)
} cgs_plan_config;

/* The tuning as a section of a configuration; `c` holds the values. */
cgs_section cgs_plan_tuning(cgs_plan_config *c);
cgs_plan_config cgs_plan_defaults(void);

/* Refuses impossible settings by name; cgs_planner_create calls it. */
cgs_status cgs_plan_check(const cgs_plan_config *c);
/* Candidates cem refits to: `elites`, or max(1, floor(K * elite_fraction)). */
int cgs_plan_elites(const cgs_plan_config *c);
/* Primitive actions in a plan. */
static inline int cgs_plan_actions(const cgs_plan_config *c) { return c->H * c->frameskip; }
/* Whether gamma is still to be chosen by a model's card; a planner is not created with it. */
static inline bool cgs_plan_gamma_open(const cgs_plan_config *c) {
    return c->gamma <= -1 && c->gamma >= -1;
}
/* Factor of the spread after an iteration: `decay`, or what the planner is known for. */
float cgs_plan_decay(const cgs_plan_config *c);
/* Exponent of its noise: `colour`, or what the planner is known for. */
float cgs_plan_colour(const cgs_plan_config *c);
/* Candidates of an iteration: K, or what icem's shrink leaves of it. */
int cgs_plan_candidates(const cgs_plan_config *c, int iteration);
/* Iterations a solve makes: iters or gd_steps as the planner reads them, otherwise 1; 1 where K = 1
 * makes more useless; 0 for planners that ask for no scores. */
int cgs_plan_iterations(const cgs_plan_config *c);

/* Scores K candidates of each of E episodes.
 * plans: (E*K, H, A), the candidates of episode e are rows e*K .. e*K+K-1.  cost: (E*K). */
typedef cgs_status (*cgs_plan_cost_fn)(void *ctx, const float *plans, int E, int K, float *cost);

/* The same for a cost that is a sum of squares, |residual|^2 up to a factor: residual (E*K, R). */
typedef cgs_status (*cgs_plan_residual_fn)(void *ctx, const float *plans, int E, int K, float *cost,
                                           float *residual);

/* Residuals of one plan of each of E episodes and their derivatives.  plans: (E, H, A).  cost: (E).
 * residual: (E, R).  jacobian: (E, R, H*A). */
typedef cgs_status (*cgs_plan_jacobian_fn)(void *ctx, const float *plans, int E, float *cost,
                                           float *residual, float *jacobian);

/* Scores one plan of each of E episodes and differentiates the score.
 * plans: (E, H, A).  cost: (E).  grad: (E, H, A), of each episode's own cost. */
typedef cgs_status (*cgs_plan_gradient_fn)(void *ctx, const float *plans, int E, float *cost,
                                           float *grad);

/* The same functions for a solve whose loop runs on a device (device_loop.h): they enqueue work
 * there and return, and their pointers are to the device's memory. */
typedef struct cgs_device_scorer {
    struct cgs_device *device;
    uint64_t version; /* no two objects, and no two states of one, have the same */
    int K;            /* candidates per episode that it scores, 1 for gradients */
    int calls;        /* launches that one scoring takes, roughly */
    void *ctx;
    cgs_status (*begin)(void *ctx, int E); /* before each solve: brings what it needs there */
    void (*cost)(void *ctx, const float *plans, int E, int K, float *cost);
    void (*gradient)(void *ctx, const float *plans, int E, float *cost, float *grad);
    /* NULL: it has none; R: values in a residual */
    void (*residual)(void *ctx, const float *plans, int E, int K, float *cost, float *residual);
    int R;
} cgs_device_scorer;

/* What to solve.  Everything is borrowed for the length of the call. */
typedef struct cgs_plan_problem {
    int E;                   /* episodes, at most those the planner was created for */
    const uint64_t *episode; /* (E) ids that name the episodes' noise; NULL: 0 .. E-1 */
    const uint64_t *seed;    /* (E) seeds of that noise; NULL: plan.seed for all */
    const uint64_t *solve;   /* (E) each episode's number of solves so far, below 2^32;
                              * NULL: the planner's own count since reset */
    const float *start;      /* (E, H, A) initial means; NULL: zeros */
    const float *unit;       /* (E, H, A) what counts as 1 in each value of a plan: the first
                              * proposal has the spread plan.sigma * unit, gn measures distances of
                              * plans in it.  NULL: 1 */
    cgs_plan_cost_fn cost;
    cgs_plan_gradient_fn gradient;
    cgs_plan_residual_fn residual;      /* of the same cost, which then is not asked for alone */
    cgs_plan_jacobian_fn jacobian;      /* of those residuals */
    int R;                              /* values in a residual, at most plan.residual_size */
    void *ctx;                          /* handed to these functions */
    const cgs_device_scorer *on_device; /* used instead where the planner has memory on its device:
                                         * the loop then runs there.  NULL: it runs on the host */
} cgs_plan_problem;

/* Where the time of a solve went, in seconds.  On a device all of an iteration is `cost`. */
typedef struct cgs_plan_times {
    double sample, cost, update, total;
} cgs_plan_times;

/* What came out.  The arrays belong to the planner and live until its next solve. */
typedef struct cgs_plan_result {
    const float *plan;      /* (E, H, A) final mean; where cut, the best plan scored so far */
    const float *spread;    /* (E, H, A) standard deviation of the last proposal */
    const float *best;      /* (iterations, E) lowest cost of each iteration */
    const float *mean;      /* (iterations, E) mean cost of each iteration */
    const float *best_plan; /* (E, H, A) the plan of lowest cost among all scored */
    int iterations;         /* complete ones */
    bool cut;               /* the deadline came before the last iteration */
    bool device_loop;       /* the loop ran on a device */
    cgs_plan_times times;
} cgs_plan_result;

typedef struct cgs_planner cgs_planner;

/* A planner for batches of at most max_E episodes.  Settings are copied. */
cgs_status cgs_planner_create(cgs_planner **out, const cgs_plan_config *c, int max_E);
void cgs_planner_destroy(cgs_planner *p);

/* Takes the device memory that solves for max_E episodes need there.  Does nothing where the device
 * has no kernels of planners or not for as many candidates, or the planner has no update there:
 * then solves run their loop on the host. */
cgs_status cgs_planner_use_device(cgs_planner *p, struct cgs_device *d);

/* Seconds that solves may take from now on; 0: no limit. */
void cgs_planner_set_deadline(cgs_planner *p, float seconds);

/* Starts counting solves from zero again. */
void cgs_planner_reset(cgs_planner *p);

/* Plans for all episodes of the problem.  With a deadline no iteration is begun that
 * would end after it, judged by the slowest so far; the first is always made.
 * A cost or gradient that is not finite is CGS_ENUMERIC and names its place. */
cgs_status cgs_planner_solve(cgs_planner *p, const cgs_plan_problem *problem,
                             cgs_plan_result *result);

/* The start of the next solve after `executed` of H blocks were carried out: the rest
 * of the plan moves to the front, `fill` (A) (NULL: zeros) repeats after it.
 * plan, next: (E, H, A), which may be the same array. */
void cgs_plan_shift(float *next, const float *plan, int E, int H, int A, int executed,
                    const float *fill);

#endif /* CGS_PLAN_PLANNER_H */

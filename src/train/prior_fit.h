/* prior_fit.h - fitting a model's prior to a dataset.
 *
 * A pair is a row t with the row H * frameskip later in the same episode: the input is the two
 * frozen latents, the target the standardised actions between them; of inverse dynamics, a row t
 * with what the model imagines at the end of actions that were recorded elsewhere.  Only episodes
 * that the model trained on are read (rollout/held_out.h); some of them validate, and the head with
 * the lowest validation error is the result.  With a spread it is the one with the highest
 * likelihood, calibrated on the same episodes. */
#ifndef CGS_TRAIN_PRIOR_FIT_H
#define CGS_TRAIN_PRIOR_FIT_H

#include "core/config.h"
#include "model/prior.h"
#include "rollout/held_out.h"

/* clang-format off */
#define CGS_PRIOR_FIT_CONFIG(X)                                                                        \
    X(text,  kind,         "behaviour", 0, 0,   "prior.kind",                                    \
      "behaviour: recorded frames and plans; inverse: what the model imagines of plans")           \
    X(text,  spread,       "unit", 0,    0,     "prior.spread",                                    \
      "unit: plans alone, by their squared error; learned: with spreads, by their likelihood")     \
    X(int,   horizon,      5,    1,    4096,    "prior.horizon",  "action blocks per plan")              \
    X(int,   hidden,       768,  1,    65536,   "prior.hidden",   "width of both hidden layers")   \
    X(int,   batch,        1024, 2,    1 << 20, "prior.batch",    "pairs per update")               \
    X(int,   updates,      3000, 1,    1 << 30, "prior.updates",  "most updates")               \
    X(int,   every,        100,  1,    1 << 30, "prior.every",    "updates between validations")   \
    X(int,   patience,     10,   1,    1 << 30, "prior.patience",                                  \
      "validations without improvement before it stops")                                     \
    X(float, lr,           1e-3, 0,    10,      "prior.lr",       "learning rate")                 \
    X(float, weight_decay, 1e-4, 0,    10,      "prior.weight_decay", "decoupled")                 \
    X(float, fraction,     0.9,  0.01, 0.999,   "prior.train_fraction",                            \
      "fraction of the episodes used to fit; the others validate")                       \
    X(int,   stride,       0,    0,    4096,    "prior.stride",                                    \
      "rows between the frames used; 0: the frameskip")                                       \
    X(int,   episodes,     0,    0,    1 << 30, "prior.episodes", "the model's training episodes used; 0: all")         \
    X(u64,   seed,         0,    0,    0,       "prior.seed",     "seed of weights, order and validation")
/* clang-format on */

typedef struct cgs_prior_fit_config {
    CGS_CONFIG_STRUCT(CGS_PRIOR_FIT_CONFIG)
} cgs_prior_fit_config;

cgs_section cgs_prior_fit_section(cgs_prior_fit_config *c);

/* Progress: the activity, how far it is; loss and best are NaN until known.  Returning false stops
 * the fit, which keeps the best head so far. */
typedef bool (*cgs_prior_fit_observer)(void *user, const char *what, double done, double total,
                                       double loss, double best);

/* The episodes of a fit, in the order of the file: the first c->episodes of those that the model
 * trained on.  Free with cgs_prior_episodes_free, also after a failure. */
typedef struct cgs_prior_episodes {
    cgs_fit_episodes of;
    uint8_t *validates; /* (of.count) 1: it validates, 0: it is fitted */
} cgs_prior_episodes;
cgs_status cgs_prior_episodes_choose(cgs_prior_episodes *p, const cgs_loaded_model *s,
                                     const cgs_source *data, const cgs_prior_fit_config *c);
void cgs_prior_episodes_free(cgs_prior_episodes *p);

/* The best head, ready to be saved; the caller destroys it.  Beside it s->card gets the error of
 * the model's predictions (prediction_error.h). */
cgs_status cgs_prior_fit(cgs_prior **out, cgs_loaded_model *s, cgs_dataset *data,
                         const cgs_prior_fit_config *c, cgs_prior_fit_observer watch, void *user);

#endif /* CGS_TRAIN_PRIOR_FIT_H */

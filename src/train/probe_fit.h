/* probe_fit.h - small nonlinear probes: in-128-GELU-128-GELU-out, fitted with Adam.
 *
 * A probe is an ensemble of three nets that differ in their seed (7, 17, 27); each keeps the
 * weights of the epoch with the lowest validation error, and the prediction is their mean. Inputs
 * and targets are standardised by the training rows.  Nets are fitted side by side, each on one
 * thread, so results do not depend on the number of threads. */
#ifndef CGS_TRAIN_PROBE_FIT_H
#define CGS_TRAIN_PROBE_FIT_H

#include <stdbool.h>

#include "core/config.h"

/* clang-format off */
#define CGS_PROBE_CONFIG(X)                                                                        \
    X(int,   hidden,   128,  1, 65536,   "probe.hidden",   "width of both hidden layers")          \
    X(int,   batch,    64,   1, 1 << 20, "probe.batch",    "rows per update")                       \
    X(int,   epochs,   150,  1, 1 << 20, "probe.epochs",   "most passes over the training rows") \
    X(int,   patience, 60,   1, 1 << 20, "probe.patience",                                         \
      "epochs without improvement before a net stops")                         \
    X(float, lr,       3e-3, 0, 10,      "probe.lr",       "learning rate")                        \
    X(flag,  joint,    false, 0, 1,      "probe.joint",                                            \
      "one net for all targets of an environment instead of one each")
/* clang-format on */

typedef struct cgs_probe_config {
    CGS_CONFIG_STRUCT(CGS_PROBE_CONFIG)
} cgs_probe_config;

cgs_section cgs_probe_section(cgs_probe_config *c);

/* Rows come in three consecutive parts: training, validation and scored rows. */
typedef struct cgs_parts {
    int fit, validation, test;
} cgs_parts;

static inline int cgs_parts_rows(const cgs_parts *p) { return p->fit + p->validation + p->test; }

enum { CGS_PROBE_SEEDS = 3 };

/* One regression: y (rows, m) from x (rows, k). */
typedef struct cgs_mlp_task {
    const double *x, *y;
    int k, m;
    double *out;                        /* (rows, m) predictions of all rows, in units of y */
    int best_epoch[CGS_PROBE_SEEDS];    /* out */
    double validation[CGS_PROBE_SEEDS]; /* out: mean squared error, standardised */
} cgs_mlp_task;

/* Called by one thread at a time: `done` of `total` nets are fitted; returning false stops. */
typedef bool (*cgs_probe_fit_observer)(void *user, int done, int total);

/* Fits all tasks, which share the parts.  watch may be NULL. */
cgs_status cgs_probe_fit(const cgs_parts *p, const cgs_probe_config *c, cgs_mlp_task *tasks,
                         int count, cgs_probe_fit_observer watch, void *user);

#endif /* CGS_TRAIN_PROBE_FIT_H */

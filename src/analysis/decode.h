/* decode.h - fitting a decoder to a model, and strips of imagined beside simulated frames. */
#ifndef CGS_ANALYSIS_DECODE_H
#define CGS_ANALYSIS_DECODE_H

#include "core/config.h"
#include "eval/subject.h"
#include "model/decoder.h"

/* clang-format off */
#define CGS_DECODE_CONFIG(X)                                                                       \
    X(int,   width,   64,   4,    1024,    "decode.width",   "width of a token")                   \
    X(int,   layers,  2,    0,    16,      "decode.layers",  "blocks")                             \
    X(int,   heads,   4,    1,    64,      "decode.heads",   "attention heads")                    \
    X(int,   frames,  4096, 16,   1 << 20, "decode.frames",  "frames it is fitted to")             \
    X(int,   batch,   32,   1,    4096,    "decode.batch",   "frames an update")                   \
    X(int,   updates, 1500, 1,    1 << 30, "decode.updates", "updates")                            \
    X(float, lr,      1e-3, 0,    10,      "decode.lr",      "learning rate, falling to 0")        \
    X(float, weight_decay, 1e-4, 0, 10,    "decode.weight_decay", "decoupled")                     \
    X(u64,   seed,    0,    0,    0,       "decode.seed",    "of weights, frames and order")
/* clang-format on */

typedef struct cgs_decode_config {
    CGS_CONFIG_STRUCT(CGS_DECODE_CONFIG)
} cgs_decode_config;

cgs_section cgs_decode_section(cgs_decode_config *c);

/* What is being done, how far it is; loss is NaN until known.  False stops. */
typedef bool (*cgs_decode_watch)(void *user, const char *what, double done, double total,
                                 double loss);

/* A decoder fitted to frames of the dataset; an eighth of them judge it.  The caller saves and
 * destroys it. */
cgs_status cgs_decode_fit(cgs_decoder **out, cgs_subject *s, cgs_dataset *data,
                          const cgs_decode_config *c, cgs_decode_watch watch, void *user);

/* Planned episodes, as the simulator and as the model saw them. */
typedef struct cgs_strip_options {
    const char *planner; /* "mppi" */
    int samples, iters, horizon, budget, goal_offset, episodes;
    double tau; /* 0: of the environment */
    uint64_t seed;
    bool held_out; /* from episodes that the model never trained on */
} cgs_strip_options;
cgs_strip_options cgs_strip_defaults(void);

typedef struct cgs_strip {
    bool found, success;
    int episode, step;  /* of the dataset */
    int frames;         /* columns, without the goal */
    int width, height;  /* of the picture */
    uint8_t *rgb;       /* (height, width, 3): above the simulator, below what was imagined; the
                         * last column is the goal and its decoded latent */
    double pixel_error; /* mean absolute difference of the two rows, of 255 */
} cgs_strip;

/* Plans `episodes` starts and draws the first that failed and the first that succeeded:
 * strip[0] and strip[1]; one that did not occur is not found.  Free both, also after a
 * failure. */
cgs_status cgs_strips_draw(cgs_strip strip[2], cgs_subject *s, cgs_decoder *p, cgs_dataset *data,
                           const cgs_strip_options *o);
void cgs_strips_free(cgs_strip strip[2]);

#endif /* CGS_ANALYSIS_DECODE_H */

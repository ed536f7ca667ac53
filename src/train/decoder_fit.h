/* decoder_fit.h - fitting a pixel decoder to a model's latents. */
#ifndef CGS_TRAIN_DECODER_FIT_H
#define CGS_TRAIN_DECODER_FIT_H

#include "core/config.h"
#include "model/decoder.h"
#include "rollout/held_out.h"

/* clang-format off */
#define CGS_DECODER_FIT_CONFIG(X)                                                                       \
    X(int,   width,   64,   4,    1024,    "decode.width",   "width of a token")                   \
    X(int,   layers,  2,    0,    16,      "decode.layers",  "blocks")                             \
    X(int,   heads,   4,    1,    64,      "decode.heads",   "attention heads")                    \
    X(int,   frames,  4096, 16,   1 << 20, "decode.frames",  "frames it is fitted to")             \
    X(int,   batch,   32,   1,    4096,    "decode.batch",   "frames per update")                   \
    X(int,   updates, 1500, 1,    1 << 30, "decode.updates", "updates")                            \
    X(float, lr,      1e-3, 0,    10,      "decode.lr",      "learning rate, falling to 0")        \
    X(float, weight_decay, 1e-4, 0, 10,    "decode.weight_decay", "decoupled")                     \
    X(u64,   seed,    0,    0,    0,       "decode.seed",    "seed of weights, frames and order")
/* clang-format on */

typedef struct cgs_decoder_fit_config {
    CGS_CONFIG_STRUCT(CGS_DECODER_FIT_CONFIG)
} cgs_decoder_fit_config;

cgs_section cgs_decoder_fit_section(cgs_decoder_fit_config *c);

/* Progress: the activity, how far it is; loss is NaN until known.  Returning false stops. */
typedef bool (*cgs_decoder_fit_observer)(void *user, const char *what, double done, double total,
                                         double loss);

/* A decoder fitted to frames of the episodes that the model trained on (rollout/held_out.h); an
 * eighth of them validate it.  The caller saves and
 * destroys it. */
cgs_status cgs_decoder_fit(cgs_decoder **out, cgs_loaded_model *s, cgs_dataset *data,
                           const cgs_decoder_fit_config *c, cgs_decoder_fit_observer watch,
                           void *user);

#endif /* CGS_TRAIN_DECODER_FIT_H */

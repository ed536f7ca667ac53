/* store.h - a model directory: config.json + model.safetensors, nothing executable.
 *
 * model.safetensors holds the published tensor names (Transformers 4.x spelling), f32, so
 * upstream code can load it.  config.json holds the sizes in upstream's nested form and,
 * under "cgs", everything a user of the weights needs to know: the model card. */
#ifndef CGS_MODEL_STORE_H
#define CGS_MODEL_STORE_H

#include "model/lewm.h"

#define CGS_CARD_ACTIONS 64

/* What travels with the weights. */
typedef struct cgs_model_card {
    char method[64];      /* "lewm-cgs", or "imported"                       */
    char env[64];         /* environment id of the training data, or ""      */
    char env_version[64];
    char dataset[256];    /* file name of the training data                  */
    int64_t dataset_bytes, stats_rows;
    double action_mean[CGS_CARD_ACTIONS], action_std[CGS_CARD_ACTIONS]; /* (action_dim) */
    char std_divisor[16]; /* "rows" or "rows-1"                              */
    char precision[8];    /* "f32" or "bf16"                                 */
    char reference[32];   /* CGS reference                                   */
    double sigreg_weight, ts_weight, cgs_weight;
    uint64_t seed, updates, schedule_updates;
    /* which episodes were kept out of training, so that evaluation can use them */
    double train_fraction;
    char split[16];       /* "episode" or "window"                           */
    char code_version[32], code_commit[32];
} cgs_model_card;

/* Writes both files, each atomically, weights first. */
cgs_status cgs_model_save(const char *dir, const cgs_lewm *m, const cgs_model_card *card);

/* Creates the model on a device and loads it.  card may be NULL.  A tensor that is missing,
 * has another shape, or is not a finite number is named. */
cgs_status cgs_model_load(cgs_lewm **out, cgs_model_card *card, const char *dir, cgs_device *d,
                          bool training);

/* Fills an existing model from a weight file; both Transformers spellings and a "model."
 * prefix are accepted, tensors that are no part of LeWM are counted in *ignored. */
cgs_status cgs_lewm_load_weights(cgs_lewm *m, const char *path, int *ignored);

/* Sizes from the shapes of a weight file (and nothing else): what `cgs import` uses when a
 * config.json is missing or silent. */
cgs_status cgs_lewm_infer_config(cgs_lewm_config *c, const char *weights_path);

#endif /* CGS_MODEL_STORE_H */

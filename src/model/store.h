/* store.h - a model directory: config.json + model.safetensors, nothing executable.
 *
 * model.safetensors has the published tensor names (Transformers 4.x) in f32, so upstream code can
 * load it.  config.json has the sizes in upstream's nested form and, under "cgs", everything a user
 * of the weights needs to know: the model card.  docs/formats.md specifies both. */
#ifndef CGS_MODEL_STORE_H
#define CGS_MODEL_STORE_H

#include "model/lewm.h"

#define CGS_CARD_ACTIONS 64

/* Stored with the weights. */
typedef struct cgs_model_card {
    char method[64]; /* "lewm-cgs", or "imported"                       */
    char recipe[16]; /* "published", "robust"; "": not known            */
    char init[256];  /* the model that training began with, or ""       */
    char env[64];    /* environment id of the training data, or ""      */
    char env_version[64];
    char dataset[256]; /* file name of the training data                  */
    int64_t dataset_bytes, stats_rows;
    int64_t dataset_episodes; /* 0: not known                                   */
    double action_mean[CGS_CARD_ACTIONS], action_std[CGS_CARD_ACTIONS]; /* (action_dim) */
    char std_divisor[16]; /* "rows" or "rows-1"                              */
    char precision[8];    /* "f32" or "bf16"                                 */
    char reference[32];   /* CGS reference                                   */
    double sigreg_weight, ts_weight, cgs_weight;
    uint64_t seed, updates, schedule_updates;
    /* the split, so that evaluation can use the held-out episodes */
    double train_fraction;
    char split[16]; /* "episode" or "window"                           */
    char code_version[32], code_commit[32];
    /* what plans of prediction_horizon action blocks (0: not measured) are weighed by, see
     * docs/planning.md: variances of the prediction's error and of plans around the mean action */
    int64_t prediction_horizon;
    double prediction_variance, plan_variance;
} cgs_model_card;

/* An empty card: imported, f32, written by this build. */
cgs_model_card cgs_card_default(void);
/* Whether the action statistics are known; deviations of 0 mean unknown. */
bool cgs_card_has_statistics(const cgs_model_card *card);
/* Checks for finite numbers, and either no statistics or one mean and one positive deviation per
 * action. */
cgs_status cgs_card_check(const cgs_model_card *card, int action_dim);

/* Writes both files, each atomically, weights first; creates the directory. */
cgs_status cgs_model_save(const char *dir, const cgs_lewm *m, const cgs_model_card *card);

/* Writes config.json alone: the card has changed, the weights have not. */
cgs_status cgs_model_save_card(const char *dir, const cgs_lewm *m, const cgs_model_card *card);

/* The two files of a directory. */
#define CGS_WEIGHTS_FILE "model.safetensors"
#define CGS_CONFIG_FILE "config.json"

/* Creates the model on a device and loads it.  card may be NULL.  A missing, misshapen or
 * non-finite tensor is named. */
cgs_status cgs_model_load(cgs_lewm **out, cgs_model_card *card, const char *dir, cgs_device *d,
                          bool training);

/* Options and results of importing a weight file. */
typedef struct cgs_import {
    const char *config;  /* in: path of a config.json, or NULL               */
    int action_dim;      /* in: numbers of one action where known, else 0    */
    char *const *ignore; /* in: (ignores) patterns of tensors to leave out */
    int ignores;
    int ignored;       /* out: tensors that are no part of a model or were left out */
    char some[160];    /* out: names of those, as many as there is room for */
    bool has_card;     /* out: the file or its config.json carries a card  */
    char guessed[160]; /* out: keys of the sizes that were guessed; "" if none */
    char doubt[200];   /* out: a sentence on layers that seem to be missing; "" if none */
} cgs_import;

/* The same for a single weight file, ours or upstream's.  Sizes that neither `how` nor the file
 * gives are inferred from shapes.  card may be NULL. */
cgs_status cgs_model_import(cgs_lewm **out, cgs_model_card *card, cgs_import *how,
                            const char *weights, cgs_device *d, bool training);

/* Writes only the weights.  With a card the file's metadata contains its config.json. */
cgs_status cgs_lewm_save_weights(const cgs_lewm *m, const char *path, const cgs_model_card *card);

/* Fills an existing model from a weight file, by any of the names of tensor_names.h; what belongs
 * to a training alone is counted in *ignored (may be NULL).  After a failure the model has a
 * mixture of old and new weights. */
cgs_status cgs_lewm_load_weights(cgs_lewm *m, const char *path, int *ignored);

/* Sizes from the shapes of a weight file (and nothing else).  What shapes do not determine (heads,
 * frameskip) is guessed. */
cgs_status cgs_lewm_infer_config(cgs_lewm_config *c, const char *weights_path);

/* Whether a file still has the bytes that were written. */
typedef enum cgs_checksum_state {
    CGS_CHECKSUM_NONE, /* the file has none            */
    CGS_CHECKSUM_GOOD,
    CGS_CHECKSUM_WRONG
} cgs_checksum_state;
struct cgs_weights; /* io/weights.h */
cgs_status cgs_weights_checksum(cgs_checksum_state *state, const struct cgs_weights *w);

#endif /* CGS_MODEL_STORE_H */

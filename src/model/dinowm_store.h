/* dinowm_store.h - a model directory of DINO-WM: config.json, model.safetensors (what was trained)
 * and backbone.weights (a copy of the frozen network's file, whatever its format). */
#ifndef CGS_MODEL_DINOWM_STORE_H
#define CGS_MODEL_DINOWM_STORE_H

#include "model/dinowm.h"
#include "model/store.h"

#define CGS_BACKBONE_FILE "backbone.weights"
#define CGS_CARD_PROPRIO 64

/* Stored with the weights in addition to the common card. */
typedef struct cgs_dinowm_card {
    char origin[64]; /* of the backbone: "dinov2", or "stand-in" */
    char column[64]; /* of proprioception in datasets */
    int proprio_dim;
    double proprio_mean[CGS_CARD_PROPRIO], proprio_std[CGS_CARD_PROPRIO]; /* (proprio_dim) */
} cgs_dinowm_card;

/* backbone: file to copy into the directory, or NULL when the directory has it. */
cgs_status cgs_dinowm_save(const char *dir, const cgs_dinowm *m, const cgs_model_card *card,
                           const cgs_dinowm_card *more, const char *backbone);
/* Creates and fills the model and its backbone. */
cgs_status cgs_dinowm_load(cgs_dinowm **out, cgs_model_card *card, cgs_dinowm_card *more,
                           const char *dir, cgs_device *d, bool training);
/* Whether a directory's config.json is of a DINO-WM model. */
bool cgs_dinowm_is_dir(const char *dir);

#endif /* CGS_MODEL_DINOWM_STORE_H */

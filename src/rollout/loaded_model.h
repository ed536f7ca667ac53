/* loaded_model.h - a model directory opened for work, and whether it fits the environment and the
 * data it is to work on. */
#ifndef CGS_ROLLOUT_LOADED_MODEL_H
#define CGS_ROLLOUT_LOADED_MODEL_H

#include "data/dataset.h"
#include "env/env.h"
#include "model/dinowm_store.h"
#include "model/lewm.h"
#include "rollout/encoder.h"

/* How primitive actions are standardised: (a - mean) / std for each channel. */
typedef struct cgs_action_scale {
    int dim, frameskip;
    const double *mean, *std; /* (dim) */
} cgs_action_scale;

/* The same for proprioception, and the column it is read from. */
typedef struct cgs_proprio_scale {
    int dim; /* 0: none */
    const char *column;
    const double *mean, *std; /* (dim) */
} cgs_proprio_scale;

typedef struct cgs_loaded_model {
    const char *dir; /* borrowed */
    cgs_model *model;
    cgs_lewm *lewm; /* the same, or NULL when it is of another kind */
    cgs_model_card card;
    cgs_dinowm_card dino; /* of a DINO-WM model */
    uint64_t weights;     /* checksum */
    cgs_dtype act;
    double mean[CGS_CARD_ACTIONS], std[CGS_CARD_ACTIONS]; /* of primitive actions */
    cgs_action_scale scale;                               /* points at them */
    cgs_proprio_scale proprio;                            /* dim 0: images alone */
    cgs_encoder *encoder;
} cgs_loaded_model;

enum { CGS_FRAMES_BY_DEVICE = 0 };

/* precision: "f32", "bf16", or NULL for what the model was trained in.  frames: batch of the
 * encoder, CGS_FRAMES_BY_DEVICE for one that suits the device.  data (may be NULL) lends its action
 * statistics to a model without any. */
cgs_status cgs_loaded_model_open(cgs_loaded_model *s, const char *dir, cgs_device *d,
                                 const char *precision, int frames, cgs_dataset *data);
/* The same for models of every kind; the former refuses all but LeWM. */
cgs_status cgs_loaded_model_open_any(cgs_loaded_model *s, const char *dir, cgs_device *d,
                                     const char *precision, int frames, cgs_dataset *data);
void cgs_loaded_model_close(cgs_loaded_model *s);
const char *cgs_loaded_model_precision(const cgs_loaded_model *s);

/* The checksum by which results know a model. */
cgs_status cgs_weights_identity(cgs_model *m, uint64_t *out);

/* The environment of a dataset: `id`, or what the file says when id is NULL.  A file that was
 * collected in another environment or another version of it is refused. */
cgs_status cgs_dataset_env(cgs_dataset *d, const char *id, const cgs_env_class **env);
/* The same, *env NULL where the file names none, or one that this build does not have; data of a
 * plug-in want it. */
cgs_status cgs_dataset_env_if_any(cgs_dataset *d, const char *id, const cgs_env_class **env);
/* Refuses a model of another environment, another version, or another action size; env NULL: of
 * pictures of another size alone. */
cgs_status cgs_loaded_model_fits(const cgs_loaded_model *s, const cgs_env_class *env,
                                 const cgs_source *data);

#endif /* CGS_ROLLOUT_LOADED_MODEL_H */

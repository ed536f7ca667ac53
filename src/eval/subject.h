/* subject.h - a model directory opened for work, and whether it fits the environment and the
 * data it is to work on. */
#ifndef CGS_EVAL_SUBJECT_H
#define CGS_EVAL_SUBJECT_H

#include "eval/cases.h"
#include "model/dinowm_store.h"

typedef struct cgs_subject {
    const char *dir; /* borrowed */
    cgs_model *world;
    cgs_lewm *model; /* the same, or NULL when it is of another kind */
    cgs_model_card card;
    cgs_dinowm_card dino; /* of a DINO-WM model */
    uint64_t weights; /* checksum */
    cgs_dtype act;
    double mean[CGS_CARD_ACTIONS], std[CGS_CARD_ACTIONS]; /* of primitive actions */
    cgs_action_scale scale;                               /* points at them */
    cgs_proprio_scale proprio;                            /* dim 0: pictures alone */
    cgs_encoder *encoder;
} cgs_subject;

enum { CGS_FRAMES_BY_DEVICE = 0 };

/* precision: "f32", "bf16", or NULL for what the model was trained in.  frames: batch of the
 * encoder, CGS_FRAMES_BY_DEVICE for one that suits the device.  data (may be NULL) lends its action statistics to a model without any. */
cgs_status cgs_subject_open(cgs_subject *s, const char *dir, cgs_device *d, const char *precision,
                            int frames, cgs_dataset *data);
/* The same for models of every kind; the former refuses all but LeWM. */
cgs_status cgs_subject_open_any(cgs_subject *s, const char *dir, cgs_device *d,
                                const char *precision, int frames, cgs_dataset *data);
void cgs_subject_close(cgs_subject *s);
const char *cgs_subject_precision(const cgs_subject *s);

/* The environment of a dataset: `id`, or what the file says when id is NULL.  A file that was
 * collected in another environment or another version of it is refused. */
cgs_status cgs_dataset_env(cgs_dataset *d, const char *id, const cgs_env_class **env);
/* Refuses a model of another environment, another version, or another action size. */
cgs_status cgs_subject_fits(const cgs_subject *s, const cgs_env_class *env, const cgs_source *data);

/* held (episodes): 1 for those that the model never trained on.  Refused unless it was trained
 * on this file with a split by episode. */
cgs_status cgs_subject_held_out(const cgs_subject *s, const cgs_source *data, uint8_t *held);

/* Starts for models that are compared on the same ones; where the rule says held_out, from
 * episodes that none of them trained on.  Free with cgs_starts_free, also after a failure. */
cgs_status cgs_subjects_starts(cgs_starts *out, const cgs_subject *s, int subjects,
                               const cgs_source *data, const cgs_start_rule *rule);

#endif /* CGS_EVAL_SUBJECT_H */

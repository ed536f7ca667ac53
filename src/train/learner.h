/* learner.h - a model in training, as the trainer sees it: its creation, the inputs of its
 * objective, the learning rates of its parameters, and its storage. */
#ifndef CGS_TRAIN_LEARNER_H
#define CGS_TRAIN_LEARNER_H

#include "data/dataset.h"
#include "data/loader.h"
#include "model/store.h"
#include "train/optimiser.h"
#include "train/train.h"

typedef struct cgs_learner cgs_learner;

typedef struct cgs_learner_class {
    /* Makes the model with initial weights, and whatever its inputs need.  data: the frames. */
    cgs_status (*open)(cgs_learner *l, const cgs_run_config *c, const cgs_source *data,
                       const char *path, cgs_device *d, cgs_dtype act);
    void (*close)(cgs_learner *l);
    cgs_status (*objective)(cgs_objective *o, cgs_tape *t, cgs_model *m, int B, int reference_width,
                            int projections, bool per_window, uint64_t sigreg_key, bool training);
    /* Fills inputs of the objective other than images, actions and references, which the trainer
     * fills; row (B*T): the row of each frame.  NULL: there are none. */
    cgs_status (*feed)(cgs_learner *l, cgs_tape *t, cgs_objective *o, const cgs_batch *b,
                       const int64_t *row);
    cgs_status (*save)(const cgs_learner *l, const char *dir, const cgs_model_card *card);
} cgs_learner_class;

struct cgs_learner {
    const cgs_learner_class *cls;
    cgs_model *model;
    cgs_group group[CGS_GROUPS];
    int groups;
    const char *column; /* of the data that it needs at every frame, or NULL */
    bool wants_pixels;  /* the trainer fills the objective's frames (frames.h) */
    int extra;          /* the column's index in a batch */
    void *self;
};

/* Chosen by the method of the run. */
const cgs_learner_class *cgs_learner_class_of(const cgs_run_config *c);

extern const cgs_learner_class cgs_learner_lewm, cgs_learner_dinowm;

#endif /* CGS_TRAIN_LEARNER_H */

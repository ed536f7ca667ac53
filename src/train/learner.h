/* learner.h - a model under training, as the trainer sees it: how it is made, what its objective
 * is given, which of its parameters learn how fast, and how it is stored. */
#ifndef CGS_TRAIN_LEARNER_H
#define CGS_TRAIN_LEARNER_H

#include "data/dataset.h"
#include "data/loader.h"
#include "model/store.h"
#include "train/train.h"

/* A stretch of the flat parameters with a learning rate of its own. */
typedef struct cgs_group {
    size_t first, count;
    float lr, weight_decay;
} cgs_group;

typedef struct cgs_learner cgs_learner;

typedef struct cgs_learner_class {
    /* Makes the model with initial weights, and whatever feeding it needs.  data: the frames. */
    cgs_status (*open)(cgs_learner *l, const cgs_run_config *c, const cgs_source *data,
                       const char *path, cgs_device *d, cgs_dtype act);
    void (*close)(cgs_learner *l);
    cgs_status (*objective)(cgs_objective *o, cgs_tape *t, cgs_model *m, int B, int reference_width,
                            int projections, bool per_window, uint64_t sigreg_key, bool training);
    /* Fills what the objective needs beside images, actions and references, which the trainer
     * brings; row (B*T): of each frame.  NULL: nothing. */
    cgs_status (*feed)(cgs_learner *l, cgs_tape *t, cgs_objective *o, const cgs_batch *b,
                       const int64_t *row);
    cgs_status (*save)(const cgs_learner *l, const char *dir, const cgs_model_card *card);
} cgs_learner_class;

struct cgs_learner {
    const cgs_learner_class *cls;
    cgs_model *model;
    cgs_group group[2];
    int groups;
    const char *column; /* of the data that it wants at every frame, or NULL */
    bool wants_pixels;  /* the objective has frames to be filled by the trainer (frames.h) */
    int extra;          /* the column's place in a batch */
    void *self;
};

/* By the method of the run. */
const cgs_learner_class *cgs_learner_class_of(const cgs_run_config *c);

extern const cgs_learner_class cgs_learner_lewm, cgs_learner_dinowm;

#endif /* CGS_TRAIN_LEARNER_H */

/* model.h - what training, planning and evaluation need of a world model, whichever it is.
 *
 * A concrete model (lewm.h, dinowm.h) is a struct whose first member is cgs_model.  To all
 * others a frame is a latent of `width` numbers, made from the image and, where a model wants
 * it, from proprioception; a rollout turns latents and blocks of actions into latents; and the
 * distance to a goal is a weighted sum of squared distances of parts of the latents. */
#ifndef CGS_MODEL_MODEL_H
#define CGS_MODEL_MODEL_H

#include "model/params.h"
#include "ops/tape.h"

typedef struct cgs_model cgs_model;

#define CGS_MODEL_PARTS 2

/* Parts of latents that are compared with those of the goal. */
typedef struct cgs_compared {
    int count;
    cgs_tensor *part[CGS_MODEL_PARTS]; /* each (n, ...) */
    float weight[CGS_MODEL_PARTS];     /* of a part's squared distance */
} cgs_compared;

typedef struct cgs_model_class {
    const char *family; /* "lewm", "dinowm" */
    void (*destroy)(cgs_model *m);
    /* frames (F, S, S, 3) u8, proprio (F, proprio_dim) standardised or NULL -> z (F, width) */
    cgs_tensor *(*encode)(cgs_tape *t, cgs_model *m, cgs_tensor *frames, cgs_tensor *proprio);
    /* z (B, C, width), actions (B, C - 1 + H, block) -> H frames, each (B, 1, width) */
    void (*rollout)(cgs_tape *t, cgs_model *m, cgs_tensor *z, cgs_tensor *actions,
                    cgs_tensor **frames, int H);
    /* z (n, width) */
    cgs_compared (*compare)(cgs_tape *t, cgs_model *m, cgs_tensor *z);
} cgs_model_class;

struct cgs_model {
    const cgs_model_class *cls;
    cgs_params *params; /* what is trained */
    int image_size, width, history, action_dim, frameskip;
    int proprio_dim;          /* 0: images alone */
    uint64_t batches_tracked; /* updates that batch norm has seen */
};

static inline int cgs_model_action_block(const cgs_model *m) {
    return m->action_dim * m->frameskip;
}
static inline void cgs_model_destroy(cgs_model *m) {
    if (m) m->cls->destroy(m);
}

#endif /* CGS_MODEL_MODEL_H */

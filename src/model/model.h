/* model.h - the interface of a world model to training, planning and evaluation.
 *
 * A concrete model (lewm.h, dinowm.h) is a struct whose first member is cgs_model.  For everything
 * else an image and, where the model needs it, proprioception are encoded to a latent of `width`
 * numbers; a rollout maps latents and action blocks to latents; and the distance to a goal is a
 * weighted sum of squared distances between parts of latents. */
#ifndef CGS_MODEL_MODEL_H
#define CGS_MODEL_MODEL_H

#include "model/params.h"
#include "ops/tape.h"

typedef struct cgs_model cgs_model;

#define CGS_MODEL_PARTS 2

/* Parts of latents that are compared with the goal's. */
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
    /* z (B, C, width), actions (B, C - 1 + H, block) -> H latents, each (B, 1, width) */
    void (*rollout)(cgs_tape *t, cgs_model *m, cgs_tensor *z, cgs_tensor *actions,
                    cgs_tensor **frames, int H);
    /* z (n, width) */
    cgs_compared (*compare)(cgs_tape *t, cgs_model *m, cgs_tensor *z);
} cgs_model_class;

struct cgs_model {
    const cgs_model_class *cls;
    cgs_params *params; /* what is trained */
    int image_size, width, history, action_dim, frameskip;
    int proprio_dim;          /* 0: images only */
    uint64_t batches_tracked; /* updates of batch norm's statistics */
};

static inline int cgs_model_action_block(const cgs_model *m) {
    return m->action_dim * m->frameskip;
}
static inline void cgs_model_destroy(cgs_model *m) {
    if (m) m->cls->destroy(m);
}

#endif /* CGS_MODEL_MODEL_H */

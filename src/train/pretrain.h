/* pretrain.h - a stand-in for a pretrained backbone, trained on frames collected here.
 *
 * Where no DINOv2 weights can be had, a ViT of the same form learns from the frames themselves:
 * two views of a frame, changed in light and with a piece cut out, shall have the same class
 * token and the same patch tokens (through two heads that are thrown away), and SIGReg keeps the
 * tokens of different frames apart.  Views are not shifted: where things are is what a planner
 * needs.  Every result that uses such a backbone says so. */
#ifndef CGS_TRAIN_PRETRAIN_H
#define CGS_TRAIN_PRETRAIN_H

#include "model/backbone.h"

#define CGS_STAND_IN "stand-in"

typedef struct cgs_pretrain_options {
    const char *const *data; /* (count) datasets with pictures of one size */
    int count;
    const char *size; /* "paper" (ViT-S/14 at 196 px) or "small" (4 layers, patch 8, 64 px) */
    int updates, batch; /* frames an update */
    double lr, sigreg;
    uint64_t seed;
    const char *precision; /* "f32" or "bf16" */
    /* After each update; returning false ends with CGS_ESTOPPED and nothing is written. */
    bool (*watch)(void *user, int update, double loss, double same, double spread);
    void *user;
} cgs_pretrain_options;

cgs_pretrain_options cgs_pretrain_defaults(void);

/* last (may be NULL): invariance and SIGReg of class tokens in the last update. */
cgs_status cgs_pretrain(const cgs_pretrain_options *o, const char *out, cgs_device *d,
                        double last[2]);

#endif /* CGS_TRAIN_PRETRAIN_H */

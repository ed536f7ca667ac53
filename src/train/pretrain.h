/* pretrain.h - trains a stand-in for a pretrained backbone on collected frames.
 *
 * Where DINOv2 weights are not available, a ViT of the same form learns from the frames themselves:
 * two views of a frame, with changed brightness and a rectangle cut out, are trained to the same
 * class token and patch tokens (through two heads that are discarded), and SIGReg keeps the tokens
 * of different frames apart.  Every result that uses such a backbone says so.
 *
 * The state of a run is its weights, moments and the number of updates, kept in OUT.checkpoint; a
 * killed run resumes bit for bit.  OUT appears when all updates are done. */
#ifndef CGS_TRAIN_PRETRAIN_H
#define CGS_TRAIN_PRETRAIN_H

#include "model/backbone.h"

#define CGS_STAND_IN "stand-in"

typedef struct cgs_pretrain_options {
    const char *const *data; /* (count) datasets with images of one size */
    int count;
    const char *cache;  /* folder for copies made from the datasets; NULL: the usual places */
    const char *size;   /* "paper" (ViT-S/14 at 196 px) or "small" (4 layers, patch 8, 64 px) */
    int updates, batch; /* frames per update */
    double lr, sigreg;
    uint64_t seed;
    const char *precision; /* "f32" or "bf16" */
    int checkpoint_every;  /* updates */
    bool resume; /* resume from OUT.checkpoint if it exists; without this flag an existing one is
                    refused */
    /* After each update; returning false saves a checkpoint and ends with CGS_ESTOPPED. */
    bool (*watch)(void *user, int update, double loss, double same, double spread);
    void *user;
} cgs_pretrain_options;

cgs_pretrain_options cgs_pretrain_defaults(void);

cgs_status cgs_pretrain(const cgs_pretrain_options *o, const char *out, cgs_device *d);

#endif /* CGS_TRAIN_PRETRAIN_H */

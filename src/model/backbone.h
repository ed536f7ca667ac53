/* backbone.h - a frozen ViT with layer scale (DINOv2 ViT-S/14, or anything of its form): images
 * to one token per image and one per patch.
 *
 * Files have torch-hub's or HuggingFace's tensor names; both are read, the first are written.  The
 * position table of a file has its own grid (37 x 37) and is interpolated to the grid of the
 * images, by a rule that differs between the two code bases, as does the preprocessing:
 *
 *   DINO-WM, TS    positions "hub",          196 px, pixels "half"      (v/255 - 0.5) / 0.5
 *   PreJEPA        positions "huggingface",  224 px, pixels "imagenet"
 *
 * Their features are not interchangeable.
 *
 * Order of calls: create and fill the parameters (or load, which does both), settle, then record
 * cgs_backbone_tokens on tapes.  A backbone in training is not settled: its grid is that of its
 * table and its layer scales are 1. */
#ifndef CGS_MODEL_BACKBONE_H
#define CGS_MODEL_BACKBONE_H

#include "core/config.h"
#include "model/params.h"
#include "model/vit.h"

/* Sizes that come from the file. */
typedef struct cgs_backbone_config {
    int width, layers, heads, mlp, patch;
    int grid; /* side of the position table */
} cgs_backbone_config;

/* Preprocessing of images. */
typedef struct cgs_backbone_view {
    int image_size; /* of a frame */
    int size;       /* what it is resized to, a multiple of the patch */
    bool hub;       /* rule of interpolation; false: HuggingFace's */
    bool imagenet;  /* pixel statistics; false: 0.5 */
} cgs_backbone_view;

typedef struct cgs_backbone {
    cgs_backbone_config config;
    cgs_backbone_view view;
    cgs_params params;
    char origin[64]; /* "stand-in" for one trained by this program, "dinov2", or what its file says
                      */
    cgs_tensor cls, pos;
    cgs_affine patch, norm;
    cgs_vit_layer *layer; /* (layers) */
    cgs_tensor *scale;    /* (2 * layers) layer scales, of attention and MLP in turn */
    cgs_tensor used;      /* (P + 1, D) the position table that is added */
    void *used_memory;    /* NULL where it is `pos` itself */
} cgs_backbone;

#define CGS_VIT_S14 ((cgs_backbone_config){384, 12, 6, 1536, 14, 37})

/* training: with gradients and moments.  Weights are zero until filled. */
cgs_status cgs_backbone_create(cgs_backbone **out, const cgs_backbone_config *c,
                               const cgs_backbone_view *v, cgs_device *d, bool training);
void cgs_backbone_destroy(cgs_backbone *b);
/* To be called after the parameters were filled: folds layer scales into the weights (they become
 * 1) and interpolates positions. */
cgs_status cgs_backbone_settle(cgs_backbone *b);

/* table (1 + from*from, D) -> out (1 + to*to, D).  The first row is copied; with equal grids
 * everything is. */
void cgs_interpolate_positions(const float *table, int from, int to, int D, bool hub, float *out);

/* frames (F, S, S, 3) u8 -> tokens after the last norm: (F, 1 + P, D), or (F, 1, D). */
cgs_tensor *cgs_backbone_tokens(cgs_tape *t, cgs_backbone *b, cgs_tensor *frames, bool cls_only);

/* A file's text made safe for results: only letters, digits and "-_. ". */
void cgs_backbone_origin(char origin[64], const char *said);

/* A file's description: sizes from shapes, heads from its metadata, or one per 64 columns.  origin:
 * (64).  view (may be NULL) gets the preprocessing that a stand-in was trained with; other files
 * leave it unchanged. */
cgs_status cgs_backbone_inspect(const char *path, cgs_backbone_config *c, char *origin,
                                cgs_backbone_view *view);
/* Creates it from a file (safetensors or torch, either tensor names) and settles it.  A missing,
 * superfluous or misshapen tensor is named. */
cgs_status cgs_backbone_load(cgs_backbone **out, const char *path, const cgs_backbone_view *v,
                             cgs_device *d);
/* Writes torch-hub's names; the metadata has origin, heads and preprocessing. */
cgs_status cgs_backbone_save(const cgs_backbone *b, const char *path);
/* A hash of the settled weights and the view: equal hashes give equal features. */
cgs_status cgs_backbone_hash(const cgs_backbone *b, uint64_t *hash);

#endif /* CGS_MODEL_BACKBONE_H */

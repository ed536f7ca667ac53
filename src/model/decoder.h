/* decoder.h - images from latents, for inspection.
 *
 *   z (D) --linear--> one token per patch (P, W), + positions
 *         --layers (attention, MLP)--> norm --linear--> pixels of each patch, + mean image
 *
 * It is fitted to the latents of a frozen model and does not change the model, so its images show
 * what information a latent contains.  It is stored in that model's directory (decoder.safetensors)
 * and refused with other weights. */
#ifndef CGS_MODEL_DECODER_H
#define CGS_MODEL_DECODER_H

#include "model/lewm.h"
#include "model/split_record.h"

typedef struct cgs_decoder_card {
    int latent, image, patch; /* D; pixels per side of an image and of a patch */
    int width, layers, heads; /* of its own tokens */
    uint64_t model;           /* cgs_params_checksum of the model it was fitted to */
    uint64_t updates;
    double loss, mean_loss; /* mean squared error of normalised pixels on validation frames; of
                               the mean image */
    cgs_split_record split; /* the model's; no held-out episode was read for the fit */
} cgs_decoder_card;

#define CGS_DECODER_LAYERS 16 /* at most */
#define CGS_DECODER_ROWS 8    /* of one run of cgs_decoder_run's tape */

typedef struct cgs_decoder {
    cgs_decoder_card card;
    cgs_params params;
    cgs_affine in, final_norm, out;
    cgs_tensor pos, mean; /* (P, W), (P, 3 p p) */
    cgs_vit_layer layer[CGS_DECODER_LAYERS];
    cgs_tape *tape; /* of cgs_decoder_run */
    cgs_tensor *z, *patches;
    float *rows, *pixels; /* (ROWS, D), (ROWS * P, 3 p p) */
} cgs_decoder;

/* Weights are zero until initialised or loaded.  Sizes that do not fit are named. */
cgs_status cgs_decoder_create(cgs_decoder **out, const cgs_decoder_card *card, cgs_device *d,
                              bool training);
void cgs_decoder_destroy(cgs_decoder *p);

/* z (B, D) -> normalised pixels as cgs_patchify lays them out (B * P, 3 p p), on a tape. */
cgs_tensor *cgs_decoder_forward(cgs_tape *t, cgs_decoder *p, cgs_tensor *z);

/* The starting point of the fit: the image decoded from an uninformative latent.  Normalised pixels
 * as cgs_patchify lays them out, (P, 3 p p). */
cgs_status cgs_decoder_set_mean(cgs_decoder *p, const float *pixels);

/* z (n, D) -> rgb (n, S, S, 3). */
cgs_status cgs_decoder_run(cgs_decoder *p, const float *z, int n, uint8_t *rgb);

cgs_status cgs_decoder_save(const char *dir, const cgs_decoder *p);
/* The decoder of a model directory; model: the checksum of the weights it must belong to. */
cgs_status cgs_decoder_load(cgs_decoder **out, const char *dir, uint64_t model, cgs_device *d);
#define CGS_DECODER_FILE "decoder.safetensors"

#endif /* CGS_MODEL_DECODER_H */

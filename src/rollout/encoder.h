/* encoder.h - images in, latents out, through a tape of a fixed batch.
 *
 * The tape is run as often as the work needs, the last time with unused rows, so that all memory
 * is planned at creation.  The model is borrowed, is not changed, and must outlive the encoder. */
#ifndef CGS_ROLLOUT_ENCODER_H
#define CGS_ROLLOUT_ENCODER_H

#include "model/model.h"

typedef struct cgs_encoder cgs_encoder;

/* batch: frames in one run of the tape. */
cgs_status cgs_encoder_create(cgs_encoder **out, cgs_model *m, cgs_dtype act, int batch);
void cgs_encoder_destroy(cgs_encoder *e);
/* frames (n, S, S, 3) -> z (n, D).  A latent that is not finite is CGS_ENUMERIC. */
cgs_status cgs_encoder_run(cgs_encoder *e, const uint8_t *frames, int n, float *z);
/* The same for a model that wants proprioception: (n, proprio_dim), standardised. */
cgs_status cgs_encoder_sense(cgs_encoder *e, const uint8_t *frames, const float *proprio, int n,
                             float *z);

#endif /* CGS_ROLLOUT_ENCODER_H */

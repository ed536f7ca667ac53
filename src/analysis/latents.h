/* latents.h - the latents of a motion's frames, computed once and cached in a file.
 *
 * The file is called latents-KEY.safetensors, where KEY is a checksum of the model's weights, the
 * precision, the recorded actions and states and the rows that were encoded: another model or
 * other data has another file. */
#ifndef CGS_ANALYSIS_LATENTS_H
#define CGS_ANALYSIS_LATENTS_H

#include "analysis/motion.h"
#include "rollout/loaded_model.h"

/* frames done of all; false stops */
typedef bool (*cgs_latents_watch)(void *user, const char *dir, double done, double total);

/* The latents of every frame of m, episode by episode: *z (frames, D), which the caller frees.
 * frames = transitions + episodes.  folder: that of the file, NULL: no cache.  A file that cannot
 * be written is a warning.  *cached (may be NULL) tells whether the file was used. */
cgs_status cgs_latents(float **z, const cgs_motion *m, cgs_loaded_model *s, cgs_dataset *data,
                       const char *folder, bool *cached, cgs_latents_watch watch, void *user);

/* Differences of neighbouring frames: change (rows, D) of z (frames, D). */
void cgs_latent_changes(const cgs_motion *m, const float *z, int D, double *change);

#endif /* CGS_ANALYSIS_LATENTS_H */

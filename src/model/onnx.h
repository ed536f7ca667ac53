/* onnx.h - a model as ONNX files, for runtimes that are not this one.
 *
 *   encoder.onnx    pixels  (frames, S, S, 3) u8            -> latent     (frames, D)
 *   predictor.onnx  latents (batch, time, D), actions       -> prediction (batch, time, D)
 *                   (batch, time, frameskip * action_dim), standardised; time <= history
 *
 * prediction[t] is of the latent after latents[t] and actions[t].  A plan's cost is the squared
 * distance of its last predicted latent to the goal's. */
#ifndef CGS_MODEL_ONNX_H
#define CGS_MODEL_ONNX_H

#include "model/store.h"

#define CGS_ONNX_ENCODER "encoder.onnx"
#define CGS_ONNX_PREDICTOR "predictor.onnx"

/* Writes both files; their metadata hold the config.json, with the statistics of the actions. */
cgs_status cgs_lewm_save_onnx(const char *dir, const cgs_lewm *m, const cgs_model_card *card);

#endif /* CGS_MODEL_ONNX_H */

/* predictor.h - the CUDA side of rollout_kernels.h, for the table in rows.cu. */
#ifndef CGS_ROLLOUT_CUDA_PREDICTOR_H
#define CGS_ROLLOUT_CUDA_PREDICTOR_H

#include "rollout/rollout_kernels.h"

/* actions.cu */
bool cgs_cuda_actions_fit(const cgs_device *d, const cgs_action_encoder *e, int A);
void cgs_cuda_actions_embed(cgs_device *d, const cgs_action_encoder *e, const cgs_rollout_run *r,
                            uint16_t *s);
void cgs_cuda_actions_back(cgs_device *d, const cgs_action_encoder *e, const cgs_rollout_run *r,
                           const uint16_t *ds, float *grad);

cgs_status cgs_cuda_predictor_open(cgs_device *d, void **out, const cgs_predictor_weights *w,
                                   int rows, int gradient);
void cgs_cuda_predictor_run(cgs_device *d, void *p, const cgs_predictor_job *j);
void cgs_cuda_predictor_close(cgs_device *d, void *p);

/* The same without gradients, 64 plans per CTA (sm90/tiles.cu), where the GPU has compute
 * capability 9.0; otherwise *out is NULL. */
cgs_status cgs_cuda_tiles_open(cgs_device *d, void **out, const cgs_predictor_weights *w, int rows);
void cgs_cuda_tiles_run(cgs_device *d, const void *p, const cgs_predictor_job *j);
void cgs_cuda_tiles_close(cgs_device *d, void *p);

#endif /* CGS_ROLLOUT_CUDA_PREDICTOR_H */

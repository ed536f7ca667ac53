/* planning.h - the CUDA side of ops/planning.h. */
#ifndef CGS_OPS_CUDA_PLANNING_H
#define CGS_OPS_CUDA_PLANNING_H

#include "ops/cuda/cuda.h"
#include "ops/planning.h"

/* ranks are found by comparing all with all, costs and weights lie in shared memory */
#define CGS_CUDA_MOST_CANDIDATES 4096

extern const cgs_planning cgs_cuda_planning; /* program.c */

void cgs_cuda_plan_sample(cgs_device *d, const cgs_plan_state *s);
void cgs_cuda_plan_refit(cgs_device *d, const cgs_plan_state *s);
void cgs_cuda_plan_reweight(cgs_device *d, const cgs_plan_state *s);
void cgs_cuda_plan_adam(cgs_device *d, const cgs_plan_state *s);
void cgs_cuda_plan_gather(cgs_device *d, const cgs_plan_run *r);
void cgs_cuda_plan_blend(cgs_device *d, float *to, const float *const part[2],
                         const float weight[2], int rows, int run, int valid, int stride);
void cgs_cuda_plan_tails(cgs_device *d, float *to, const float *from, int valid, int T, int n,
                         float factor);

cgs_status cgs_cuda_predictor_open(cgs_device *d, void **out, const cgs_predictor_weights *w,
                                   int rows, int gradient);
void cgs_cuda_predictor_run(cgs_device *d, void *p, const cgs_predictor_job *j);
void cgs_cuda_predictor_close(cgs_device *d, void *p);

/* the same without gradients, 64 plans per block (rollout/cuda/sm90/tiles.cu), where the GPU has
 * compute capability 9.0; otherwise *out is NULL */
cgs_status cgs_cuda_tiles_open(cgs_device *d, void **out, const cgs_predictor_weights *w, int rows);
void cgs_cuda_tiles_run(cgs_device *d, const void *p, const cgs_predictor_job *j);
void cgs_cuda_tiles_close(cgs_device *d, void *p);

#endif /* CGS_OPS_CUDA_PLANNING_H */

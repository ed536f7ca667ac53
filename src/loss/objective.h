/* objective.h - the training objective on a tape:
 *
 *   L = L_pred + lambda_SIGReg L_SIGReg + lambda_TS L_TS + lambda_CGS(n) L_CGS
 *
 * All four terms are always computed (the unused ones are diagnostics); the weights are an
 * input, so that the ramp of lambda_CGS needs no new tape. */
#ifndef CGS_LOSS_OBJECTIVE_H
#define CGS_LOSS_OBJECTIVE_H

#include "model/dinowm.h"
#include "model/lewm.h"

enum { CGS_TERM_PRED, CGS_TERM_SIGREG, CGS_TERM_TS, CGS_TERM_CGS, CGS_TERMS };
extern const char *const cgs_term_names[CGS_TERMS];

typedef struct cgs_objective {
    /* inputs, filled by the caller before each run */
    cgs_tensor *frames;    /* (B*T, S, S, 3) u8, or NULL */
    cgs_tensor *features;  /* DINO-WM: (B*T, P, width) of the backbone instead of frames, or NULL */
    cgs_tensor *proprio;   /* DINO-WM: (B*T, proprio_dim) standardised */
    cgs_tensor *actions;   /* (B, T, d_a)        */
    cgs_tensor *reference; /* (B, N, R)          */
    cgs_tensor *mask;      /* (B, N)             */
    cgs_tensor *weights;   /* (CGS_TERMS)        */
    /* results */
    cgs_tensor *z;    /* (B*T, D) latents   */
    cgs_tensor *zhat; /* (B, N, D) predicted */
    cgs_tensor *term[CGS_TERMS], *total;
} cgs_objective;

/* B windows of history + 1 frames.  training: batch statistics, dropout, gradients. */
cgs_status cgs_objective_build(cgs_objective *o, cgs_tape *t, cgs_lewm *m, int B,
                               int reference_width, int projections, bool per_window,
                               uint64_t sigreg_key, bool training);
/* The same for DINO-WM: targets pass no gradient, and TS, CGS and SIGReg (a diagnostic here) see
 * the aggregated or global latents, without proprioception.  A model without a backbone is given
 * features. */
cgs_status cgs_objective_build_dinowm(cgs_objective *o, cgs_tape *t, cgs_dinowm *m, int B,
                                      int reference_width, int projections, bool per_window,
                                      uint64_t sigreg_key, bool training);

/* Ramp of the CGS weight: 0 at the first update, full after ramp * total updates. */
float cgs_ramp(float weight, float ramp, uint64_t update, uint64_t total);

#endif /* CGS_LOSS_OBJECTIVE_H */

/* prior_pairs.h - what a prior is fitted to: pairs of latents and the plans between them.
 *
 * Latents of all frames used are computed once.  A pair is a frame t, the latent H blocks later and
 * a standardised plan: for behaviour cloning the recorded frame and the recorded plan, for inverse
 * dynamics what the model imagines at the end of a plan, which was recorded elsewhere. */
#ifndef CGS_TRAIN_PRIOR_PAIRS_H
#define CGS_TRAIN_PRIOR_PAIRS_H

#include "train/prior_fit.h"

/* On the host; side 0 is fitted to, side 1 validates. */
typedef struct cgs_prior_pairs {
    cgs_prior_episodes used;
    int D, n;       /* values of a latent, of a plan */
    int stride;     /* rows between frames */
    int ahead;      /* frames from t to the end */
    int64_t frames; /* of all episodes used, one after the other */
    float *z;       /* (frames, D) */
    int64_t *first; /* (episodes + 1) first frame of each episode used */
    int64_t count[2];
    int64_t *start[2]; /* (count) frame t */
    float *plan[2];    /* (count, n) */
    float *end[2];     /* (count, D) imagined; NULL: frame t + ahead */
} cgs_prior_pairs;

/* Free with cgs_prior_pairs_free, also after a failure. */
cgs_status cgs_prior_pairs_make(cgs_prior_pairs *m, cgs_loaded_model *s, cgs_dataset *data,
                                const cgs_prior_fit_config *c, cgs_prior_fit_observer watch,
                                void *user);
void cgs_prior_pairs_free(cgs_prior_pairs *m);

/* Replaces plans by those of other pairs of their side, and ends by what the model imagines. */
cgs_status cgs_prior_pairs_imagine(cgs_prior_pairs *m, cgs_loaded_model *s,
                                   const cgs_prior_fit_config *c, cgs_prior_fit_observer watch,
                                   void *user);

/* The two latents of a pair. */
const float *cgs_prior_pair_start(const cgs_prior_pairs *m, int side, int64_t i);
const float *cgs_prior_pair_end(const cgs_prior_pairs *m, int side, int64_t i);

#endif /* CGS_TRAIN_PRIOR_PAIRS_H */

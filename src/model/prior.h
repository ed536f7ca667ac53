/* prior.h - the behaviour-cloning prior: a plan from the present latent and the goal's.
 *
 *   [z_t | z_goal] (2D) --linear, GELU, linear, GELU, linear--> H blocks of A standardised actions
 *
 * It is fitted to the latents of a frozen model, stored in that model's directory (prior.json,
 * prior.safetensors), and refused with other weights. */
#ifndef CGS_MODEL_PRIOR_H
#define CGS_MODEL_PRIOR_H

#include "model/lewm.h"
#include "model/split_record.h"

/* The contents of prior.json. */
typedef struct cgs_prior_card {
    int width, hidden;  /* D, and of both hidden layers */
    int horizon, block; /* H, A */
    uint64_t model;     /* cgs_params_checksum of the model it was fitted to */
    uint64_t seed, updates;
    int64_t pairs, validation_pairs;
    double loss, validation_loss, zero_loss; /* mean squared errors; zero: of the mean action */
    cgs_split_record split; /* the model's; no held-out episode was read for the fit */
} cgs_prior_card;

typedef struct cgs_prior {
    cgs_prior_card card;
    cgs_params params;
    cgs_affine layer[3];
    cgs_tape *tape; /* of cgs_prior_plan */
    cgs_tensor *in, *out;
    float *rows; /* (CGS_PRIOR_ROWS, 2D or H*A) */
} cgs_prior;

#define CGS_PRIOR_ROWS 16 /* of one run of cgs_prior_plan's tape */

/* A head of the sizes in the card; weights are zero until initialised or loaded. */
cgs_status cgs_prior_create(cgs_prior **out, const cgs_prior_card *card, cgs_device *d,
                            bool training);
void cgs_prior_destroy(cgs_prior *p);

/* pair (B, 2D) -> (B, H*A), on a tape. */
cgs_tensor *cgs_prior_forward(cgs_tape *t, cgs_prior *p, cgs_tensor *pair);

/* z, goal (E, D) -> plan (E, H, A).  Allocates nothing. */
cgs_status cgs_prior_plan(cgs_prior *p, const float *z, const float *goal, int E, float *plan);

/* Weights first, then the card, each atomically. */
cgs_status cgs_prior_save(const char *dir, const cgs_prior *p);
/* The card of the prior of a model directory; CGS_EIO when it has none. */
cgs_status cgs_prior_load_card(cgs_prior_card *card, const char *dir);
/* The prior of a model directory; model: the checksum of the weights it must belong to. */
cgs_status cgs_prior_load(cgs_prior **out, const char *dir, uint64_t model, cgs_device *d);

#endif /* CGS_MODEL_PRIOR_H */

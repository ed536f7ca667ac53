/* prior.h - a prior: a plan from the present latent and the goal's.
 *
 *   [z_t | z_goal] (2D) --linear, GELU, linear, GELU, linear--> H blocks of A standardised actions
 *
 * A prior with a spread has as many outputs again, for a log-variance of each value
 * (gaussian_head.h), and a calibrated scale of it.
 *
 * There are two kinds: behaviour cloning is fitted to latents that were recorded H blocks apart,
 * inverse dynamics to those that the model itself imagines at the end of a plan.  Either is fitted
 * to the latents of a frozen model, stored in that model's directory (prior.json and
 * prior.safetensors, inverse.json and inverse.safetensors), and refused with other weights. */
#ifndef CGS_MODEL_PRIOR_H
#define CGS_MODEL_PRIOR_H

#include "model/lewm.h"
#include "model/split_record.h"

typedef enum cgs_prior_kind { CGS_PRIOR_BEHAVIOUR, CGS_PRIOR_INVERSE } cgs_prior_kind;
enum { CGS_PRIOR_KINDS = 2 };
const char *cgs_prior_kind_name(cgs_prior_kind k);
cgs_status cgs_prior_kind_parse(cgs_prior_kind *k, const char *name); /* "behaviour", "inverse" */

/* The contents of prior.json. */
typedef struct cgs_prior_card {
    cgs_prior_kind kind;
    bool spread;        /* learned, otherwise 1 */
    int width, hidden;  /* D, and of both hidden layers */
    int horizon, block; /* H, A */
    uint64_t model;     /* cgs_params_checksum of the model it was fitted to */
    uint64_t seed, updates;
    int64_t pairs, validation_pairs;
    double loss, validation_loss, zero_loss; /* mean squared errors; zero: of the mean action */
    double likelihood; /* with a spread: mean negative log-likelihood of a validation value, up to
                        * a constant, which chose the head; before calibration */
    cgs_split_record split; /* the model's; no held-out episode was read for the fit */
} cgs_prior_card;

typedef struct cgs_prior {
    cgs_prior_card card;
    cgs_params params;
    cgs_affine layer[3];
    cgs_tensor factor;  /* (H*A) with a spread */
    float *host_factor; /* (H*A) the same */
    cgs_tape *tape;     /* of cgs_prior_plan */
    cgs_tensor *in, *out;
    float *rows; /* (CGS_PRIOR_ROWS, 2D or outputs) */
} cgs_prior;

#define CGS_PRIOR_ROWS 16 /* of one run of cgs_prior_plan's tape */

/* A head of the sizes in the card; weights are zero until initialised or loaded. */
cgs_status cgs_prior_create(cgs_prior **out, const cgs_prior_card *card, cgs_device *d,
                            bool training);
void cgs_prior_destroy(cgs_prior *p);

/* pair (B, 2D) -> (B, outputs), on a tape. */
cgs_tensor *cgs_prior_forward(cgs_tape *t, cgs_prior *p, cgs_tensor *pair);
/* Values in a plan, and outputs of the head: as many, or with a spread twice as many. */
int cgs_prior_values(const cgs_prior_card *c);
int cgs_prior_outputs(const cgs_prior_card *c);

/* z, goal (E, D) -> plan, spread (E, H, A): mean and standard deviation; spread may be NULL, and is
 * 1 where none was learned.  Allocates nothing. */
cgs_status cgs_prior_plan(cgs_prior *p, const float *z, const float *goal, int E, float *plan,
                          float *spread);

/* The factors (H*A) by which a learned spread is wider than the head says. */
cgs_status cgs_prior_calibrate(cgs_prior *p, const float *factor);

/* Weights first, then the card, each atomically. */
cgs_status cgs_prior_save(const char *dir, const cgs_prior *p);
/* The card of a model directory's prior of a kind; CGS_EIO when it has none. */
cgs_status cgs_prior_load_card(cgs_prior_card *card, const char *dir, cgs_prior_kind kind);
/* The prior itself; model: the checksum of the weights it must belong to. */
cgs_status cgs_prior_load(cgs_prior **out, const char *dir, cgs_prior_kind kind, uint64_t model,
                          cgs_device *d);

#endif /* CGS_MODEL_PRIOR_H */

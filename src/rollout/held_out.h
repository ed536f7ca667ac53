/* held_out.h - which episodes of a dataset a model has not seen, nor anything fitted to its
 * latents.
 *
 * There is one split per dataset, fraction and seed (cgs_split_episodes).  A model's card records
 * it; what is fitted to the model's latents reads only episodes that the model trained on and
 * records the same split, so that evaluation can refuse what was fitted otherwise. */
#ifndef CGS_ROLLOUT_HELD_OUT_H
#define CGS_ROLLOUT_HELD_OUT_H

#include "model/prior.h"
#include "model/split_record.h"
#include "rollout/loaded_model.h"

/* held (episodes): 1 for those that the model never trained on.  Refused unless it was trained
 * on this file with a split by episode. */
cgs_status cgs_loaded_model_held_out(const cgs_loaded_model *s, const cgs_source *data,
                                     uint8_t *held);

/* What may be read to fit something to a model's latents. */
typedef struct cgs_fit_episodes {
    int *episode; /* (count) in the order of the file */
    int count;
    cgs_split_record split; /* for the card of what is fitted */
} cgs_fit_episodes;

/* The episodes that the model trained on; all of them, and a record that knows no held-out
 * episodes, where cgs_loaded_model_held_out would refuse.  Free with cgs_fit_episodes_free, also
 * after a failure. */
cgs_status cgs_fit_episodes_of(cgs_fit_episodes *f, const cgs_loaded_model *s,
                               const cgs_source *data);
void cgs_fit_episodes_free(cgs_fit_episodes *f);

/* Refuses what is not known to have been fitted without the model's held-out episodes of this file.
 * r: the split of its card; what, verb: "prior" and the verb that fits it, for the message. */
cgs_status cgs_fitted_without_held_out(const cgs_split_record *r, const cgs_loaded_model *s,
                                       const cgs_source *data, const char *what, const char *verb);
/* The same for a prior in the model's directory. */
cgs_status cgs_prior_without_held_out(const cgs_loaded_model *s, const cgs_source *data,
                                      cgs_prior_kind kind);

#endif /* CGS_ROLLOUT_HELD_OUT_H */

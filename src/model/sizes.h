/* sizes.h - what is known about a model's sizes, and from which source.
 *
 * Shapes of tensors, fields of a config.json and settings of this project all claim some of the
 * sizes.  Each claim is checked against its range and against earlier claims, so contradictory
 * sources are an error that names both.  Unclaimed sizes are deduced where possible, else guessed,
 * and guesses are reported. */
#ifndef CGS_MODEL_SIZES_H
#define CGS_MODEL_SIZES_H

#include "model/lewm.h"
#include "model/tensor_names.h"

/* the settings of the model, and two products of them that shapes determine */
#define CGS_SIZE_COUNT 20
#define CGS_SIZE_ACTION_BLOCK "the action block"
#define CGS_SIZE_INNER "the predictor's attention width"

typedef struct cgs_sizes {
    cgs_lewm_config config;
    int block;                       /* frameskip * action_dim                         */
    int inner;                       /* predictor_heads * predictor_head_width         */
    char source[CGS_SIZE_COUNT][96]; /* "": not claimed yet */
} cgs_sizes;

/* key: a key of cgs_lewm_fields or one of the two above. */
cgs_status cgs_sizes_claim(cgs_sizes *s, const char *key, double value, const char *source);

/* Claims everything that the shapes determine.  All tensors used here exist in the file, so a model
 * of these sizes is not much larger than the file. */
cgs_status cgs_sizes_from_tensors(cgs_sizes *s, const cgs_named_weights *c, const char *path);

/* To be called after all claims: deduces or guesses the other sizes and checks that all fit
 * together; guessed (may be NULL) lists the guessed keys, "" when there are none. */
cgs_status cgs_sizes_settle(cgs_sizes *s, char *guessed, size_t size);

#endif /* CGS_MODEL_SIZES_H */

/* training_recipe.h - named ways of training LeWM: how weights start, what moves them and what
 * is stored.
 *
 * `published` is the paper's, to the letter.  `robust` also learns where patches look alike, and
 * validates and stores weights with batch-norm statistics of their own. */
#ifndef CGS_TRAIN_TRAINING_RECIPE_H
#define CGS_TRAIN_TRAINING_RECIPE_H

#include <stdbool.h>

#include "model/lewm.h"

typedef struct cgs_training_recipe {
    const char *name;
    /* Deviation of the sine and cosine waves that position embeddings start as; 0: they start
     * random with deviation 0.02. */
    float position_waves;
    /* Batch norm's statistics are computed with the weights that are validated or stored, instead
     * of averaged over the updates that led to them. */
    bool own_statistics;
    const char *optimiser; /* what `optim.kind=recipe` stands for */
} cgs_training_recipe;

cgs_status cgs_training_recipe_find(const cgs_training_recipe **out, const char *name);

/* Changes initial weights to those that the recipe starts from. */
cgs_status cgs_training_recipe_start(const cgs_training_recipe *r, cgs_lewm *m);

#endif /* CGS_TRAIN_TRAINING_RECIPE_H */

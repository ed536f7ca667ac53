/* model_card.h - what cgs info says of a model before everything else: what it was trained on, how
 * well it predicts and plans, and what it needs.
 *
 * Plans are found in results of cgs eval (results.jsonl) in the model's directory, in the one above
 * or in the next, where a study has them; a result is of this model when its checksum of weights
 * is. */
#ifndef CGS_CLI_MODEL_CARD_H
#define CGS_CLI_MODEL_CARD_H

#include <cJSON.h>

#include "model/dinowm_store.h"

typedef struct cgs_described {
    const char *dir; /* or a file */
    bool is_dir;
    cgs_model *model;
    const cgs_model_card *card;
    const cgs_dinowm_card *dino; /* or NULL */
    bool has_card;
    uint64_t weights; /* checksum */
} cgs_described;

/* Adds "needs", and "plans" where there are results. */
cgs_status cgs_model_card_add(cJSON *to, const cgs_described *m);

/* What an object of cgs info says of a model, in a few lines; nothing where it is of none. */
void cgs_model_card_print(const cJSON *info);

#endif /* CGS_CLI_MODEL_CARD_H */

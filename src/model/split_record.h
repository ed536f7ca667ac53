/* split_record.h - which episodes of which dataset were held out of a fit, as the cards of models,
 * priors and decoders say.
 *
 * The split itself follows from the number of episodes, the fraction and the seed
 * (cgs_split_episodes in data/windows.h); rollout/held_out.h compares records and makes it. */
#ifndef CGS_MODEL_SPLIT_RECORD_H
#define CGS_MODEL_SPLIT_RECORD_H

#include <stdint.h>

#include "core/status.h"
#include "model/store.h"

#define CGS_SPLIT_BY_EPISODE "episode"

typedef struct cgs_split_record {
    char dataset[256];                       /* file name, or "" */
    int64_t dataset_bytes, dataset_episodes; /* 0: not known */
    char split[16];                          /* "episode", "window", or "": nothing is known */
    double train_fraction;
    uint64_t seed;
} cgs_split_record;

/* What a model's card says. */
cgs_split_record cgs_card_split(const cgs_model_card *card);

struct cJSON;
/* The record as a JSON object, NULL without memory; and back.  j NULL (a file from before records)
 * is a record that knows nothing; anything else that is not a record names the file. */
struct cJSON *cgs_split_record_json(const cgs_split_record *r);
cgs_status cgs_split_record_parse(cgs_split_record *r, const char *path, const struct cJSON *j);

#endif /* CGS_MODEL_SPLIT_RECORD_H */

/* checkpoint.h - all that a bit-exact continuation needs, in one atomic file.
 *
 * A safetensors file of the flat buffers (values, both moments, statistics) whose metadata
 * holds the update number, the settings as text and a CRC-32 of the buffers.  Random streams
 * and the loader need no state: they are functions of the seed and the update number. */
#ifndef CGS_TRAIN_CHECKPOINT_H
#define CGS_TRAIN_CHECKPOINT_H

#include "model/model.h"

typedef struct cgs_checkpoint {
    uint64_t step;   /* updates done */
    char *config;    /* settings as `key = value` lines; owned by the caller of load */
    char *identity;  /* of the dataset; owned likewise */
} cgs_checkpoint;

cgs_status cgs_checkpoint_save(const char *path, const cgs_model *m, const cgs_checkpoint *c);

/* Reads only the metadata. */
cgs_status cgs_checkpoint_peek(const char *path, cgs_checkpoint *c);
/* Fills the model's buffers after checking sizes and checksum. */
cgs_status cgs_checkpoint_load(const char *path, cgs_model *m, cgs_checkpoint *c);
void cgs_checkpoint_free(cgs_checkpoint *c);

#endif /* CGS_TRAIN_CHECKPOINT_H */

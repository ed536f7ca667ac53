/* checkpoint.h - everything that a bit-exact resume needs, in one atomic file.
 *
 * A safetensors file of the flat buffers (values, both moments, statistics) whose metadata
 * holds the update number, the settings as text and a CRC-32 of the buffers.  Random streams
 * and the loader need no state: they are functions of the seed and the update number. */
#ifndef CGS_TRAIN_CHECKPOINT_H
#define CGS_TRAIN_CHECKPOINT_H

#include "model/params.h"

enum { CGS_CHECKPOINT_PARTS = 2 };

/* of a run, in its directory */
#define CGS_CHECKPOINT_FILE "checkpoint.safetensors"

typedef struct cgs_checkpoint {
    uint64_t step;            /* updates done */
    uint64_t batches_tracked; /* updates of batch norm's statistics */
    char *config;             /* settings as `key = value` lines; owned by the caller of load */
    char *identity;           /* of the dataset; owned likewise */
} cgs_checkpoint;

/* part (parts, at most CGS_CHECKPOINT_PARTS): the trained parameter sets, always in the same order.
 */
cgs_status cgs_checkpoint_save(const char *path, cgs_params *const *part, int parts,
                               const cgs_checkpoint *c);

/* Fills the buffers after checking sizes and checksum. */
cgs_status cgs_checkpoint_load(const char *path, cgs_params *const *part, int parts,
                               cgs_checkpoint *c);
/* The same without the buffers. */
cgs_status cgs_checkpoint_inspect(const char *path, cgs_checkpoint *c);
void cgs_checkpoint_free(cgs_checkpoint *c);

/* A resumed run must have the same settings and data: CGS_EARG names the first line that differs.
 * path: for the sentence. */
cgs_status cgs_checkpoint_fits(const cgs_checkpoint *c, const char *path, const char *config,
                               const char *identity);

#endif /* CGS_TRAIN_CHECKPOINT_H */

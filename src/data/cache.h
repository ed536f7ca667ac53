/* cache.h - where files that are derived from a dataset lie: beside it, or, where its folder cannot
 * be written, in a folder of the user's. */
#ifndef CGS_DATA_CACHE_H
#define CGS_DATA_CACHE_H

#include <stddef.h>

#include "core/status.h"

/* DATASET.SUFFIX. */
cgs_status cgs_cache_beside(char *out, size_t size, const char *dataset, const char *suffix);

/* A path that can be written, in this order:
 *   in `folder`, unless that is NULL
 *   beside the dataset
 *   in CGS_CACHE, in XDG_CACHE_HOME/cgs, in HOME/.cache/cgs: the first whose variable is set
 * Except beside the dataset the name has a hash of the dataset's full path, the folder is made, and
 * the log says where. */
cgs_status cgs_cache_place(char *out, size_t size, const char *dataset, const char *suffix,
                           const char *folder);

#endif /* CGS_DATA_CACHE_H */

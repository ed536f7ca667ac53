/* packed.h - the packed cache of a dataset: one memory-mapped file from which any number of threads
 * can read any frame, without libhdf5.
 *
 * Built once from a dataset; stores the name, size and time of its source, so that a stale cache is
 * detected.  See packed.c for the layout. */
#ifndef CGS_DATA_PACKED_H
#define CGS_DATA_PACKED_H

#include "data/dataset.h"

typedef struct cgs_packed cgs_packed;

/* Called now and then while packing; returning false stops with CGS_ESTOPPED. */
typedef bool (*cgs_pack_progress)(void *user, int64_t frames_done, int64_t frames);

/* Packs a dataset: frames, actions and every other number column of at most 256 values a row.
 * image_size: required size of the frames, 0 = any.  Atomic. */
cgs_status cgs_packed_build(const char *path, cgs_dataset *d, int image_size,
                            cgs_pack_progress progress, void *user);

cgs_status cgs_packed_open(cgs_packed **out, const char *path);
void cgs_packed_close(cgs_packed *p);
const cgs_source *cgs_packed_source(const cgs_packed *p);

/* Whether the cache was built from the file as it is now. */
bool cgs_packed_is_fresh(const cgs_packed *p, const char *dataset_path);

/* Opens the cache of a dataset, building it when it is missing, stale or damaged. */
cgs_status cgs_packed_ensure(cgs_packed **out, const char *path, const char *dataset_path,
                             int image_size, cgs_pack_progress progress, void *user);

/* The same with a path by cache.h; folder: where the user wants it, NULL: the usual places.  A
 * fresh cache beside a dataset serves also where it could not be made. */
cgs_status cgs_packed_of(cgs_packed **out, const char *dataset_path, const char *folder,
                         int image_size);

#endif /* CGS_DATA_PACKED_H */

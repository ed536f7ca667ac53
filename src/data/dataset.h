/* dataset.h - reading HDF5 datasets in the stable-worldmodel layout.
 *
 * One file, one flat root group.  Every column is a dataset whose first axis counts
 * rows over all episodes; `ep_len` and `ep_offset` say where an episode lies, and
 * `episode_idx` (or `ep_idx`) and `step_idx`, when present, must agree with them.
 * Layout, chunking, filters and number types are discovered, not assumed; filters
 * deflate, shuffle, fletcher32, LZF, Blosc, LZ4 and Zstandard are decoded here, so no
 * plugin is ever loaded.
 *
 * An opened dataset is a source (source.h): rows, episodes, columns and the reading of
 * images and numbers are reached through cgs_dataset_source. */
#ifndef CGS_DATA_DATASET_H
#define CGS_DATA_DATASET_H

#include "data/findings.h"
#include "data/source.h"

/* As cgs_dataset_open; what contradicts itself is added to `found`, all of it.  The failure names
 * the same. */
cgs_status cgs_dataset_open_finding(cgs_dataset **out, const char *path, cgs_findings *found);

const cgs_source *cgs_dataset_source(const cgs_dataset *d);

/* Consecutive rows of a number column, converted: out (count, values). */
cgs_status cgs_dataset_read_rows(cgs_dataset *d, const char *column, int64_t first, int count,
                                 float *out);

/* A description of how a column is stored: "chunks of 1 row, deflate". */
const char *cgs_dataset_layout(const cgs_dataset *d, int column);

/* Attributes of the file: environment, its version, policy, seed, code version... Values are kept
 * as text; numbers are printed so that they read back exactly. */
typedef struct cgs_attribute {
    char name[CGS_COLUMN_NAME];
    char value[256];
    bool number;
} cgs_attribute;
const cgs_attribute *cgs_dataset_attributes(const cgs_dataset *d, int *count);
/* The value of one, or NULL. */
const char *cgs_dataset_attribute(const cgs_dataset *d, const char *name);

#endif /* CGS_DATA_DATASET_H */

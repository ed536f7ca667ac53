/* resume.h - the settings that a run goes on with.
 *
 * A checkpoint carries all settings of its run, and a resumed run has them.  Only those that change
 * nothing in what was already computed may differ: how long the run is, how often it saves and
 * validates, and where batches come from. */
#ifndef CGS_TRAIN_RESUME_H
#define CGS_TRAIN_RESUME_H

#include "train/checkpoint.h"
#include "train/train.h"

/* The settings as `key = value` lines; the caller frees.  NULL: no memory. */
char *cgs_run_text(const cgs_run_config *c);

/* Compares the settings and the data of a run with those of the checkpoint read from `path`:
 * CGS_EARG names the first setting that may not differ.  stored: its settings. */
cgs_status cgs_resume_fits(cgs_run_config *stored, const cgs_checkpoint *k, const char *path,
                           const cgs_run_config *now, const char *identity);

#endif /* CGS_TRAIN_RESUME_H */

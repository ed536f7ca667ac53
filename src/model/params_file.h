/* params_file.h - a set of parameters as a safetensors file, by the names they were declared with.
 */
#ifndef CGS_MODEL_PARAMS_FILE_H
#define CGS_MODEL_PARAMS_FILE_H

#include "io/safetensors.h"
#include "model/params.h"

/* Writes all stored tensors with a checksum, atomically.  meta: (metas), may be NULL. */
cgs_status cgs_params_save(const cgs_params *p, const char *path, const cgs_meta *meta,
                           size_t metas);
/* Fills all of them from a file that has exactly these.  A missing, superfluous, misshapen or
 * non-finite tensor is named, and damage is detected. */
cgs_status cgs_params_load(cgs_params *p, const char *path);

#endif /* CGS_MODEL_PARAMS_FILE_H */

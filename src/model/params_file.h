/* params_file.h - the learned numbers of a small head, to and from one safetensors file. */
#ifndef CGS_MODEL_PARAMS_FILE_H
#define CGS_MODEL_PARAMS_FILE_H

#include "io/safetensors.h"
#include "model/params.h"

/* Writes all stored tensors, atomically.  meta: (metas), may be NULL. */
cgs_status cgs_params_save(const cgs_params *p, const char *path, const cgs_meta *meta,
                           size_t metas);
/* Fills all of them.  One that is missing, has another shape or is not finite is named. */
cgs_status cgs_params_load(cgs_params *p, const char *path);

#endif /* CGS_MODEL_PARAMS_FILE_H */

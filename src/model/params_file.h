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

/* One of them from a stored tensor, which must have its shape, finite numbers, and no negative
 * variance. */
bool cgs_param_same_shape(const cgs_param *e, const cgs_weight *w);
/* The shape as text: "[192,3,14,14]".  Returns its buffer. */
const char *cgs_param_shape(const cgs_param *e, char text[CGS_SHAPE_TEXT]);
cgs_status cgs_param_fill(cgs_params *p, const cgs_param *e, const cgs_weight *w);

#endif /* CGS_MODEL_PARAMS_FILE_H */

/* params_file.h - a set of parameters as a safetensors file, by the names they were declared with. */
#ifndef CGS_MODEL_PARAMS_FILE_H
#define CGS_MODEL_PARAMS_FILE_H

#include "io/safetensors.h"
#include "model/params.h"

/* Writes all of them, with a checksum and these metadata (the list may have at most 8). */
cgs_status cgs_params_save(const cgs_params *p, const char *path, const cgs_meta *meta, int count);
/* Fills them from a file that holds exactly these tensors; what is missing, superfluous, damaged
 * or of another shape is named.  what: "the backbone", for messages. */
cgs_status cgs_params_load(cgs_params *p, const char *path, const char *what);

#endif /* CGS_MODEL_PARAMS_FILE_H */

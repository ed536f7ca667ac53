/* sharded.h - a model in several safetensors files, which lie beside an index:
 *
 *   {"metadata": {...}, "weight_map": {"NAME": "model-00001-of-00002.safetensors", ...}}
 */
#ifndef CGS_IO_SHARDED_H
#define CGS_IO_SHARDED_H

#include "io/weights.h"

/* Fills the list of an open index with the tensors of all files that it names; called by
 * cgs_weights_open.  A file must be in the folder of the index, and have the tensors that it should
 * have. */
cgs_status cgs_sharded_contents(cgs_weights *w);

#endif /* CGS_IO_SHARDED_H */

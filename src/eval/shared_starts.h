/* shared_starts.h - starts on which several models are compared. */
#ifndef CGS_EVAL_SHARED_STARTS_H
#define CGS_EVAL_SHARED_STARTS_H

#include "eval/starts.h"
#include "rollout/loaded_model.h"

/* Starts for models to be compared; where the rule says held_out, from episodes that none of them
 * trained on.  Free with cgs_starts_free, also after a failure. */
cgs_status cgs_shared_starts(cgs_starts *out, const cgs_loaded_model *s, int models,
                             const cgs_source *data, const cgs_start_rule *rule);

#endif /* CGS_EVAL_SHARED_STARTS_H */

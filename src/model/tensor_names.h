/* tensor_names.h - one name for every tensor of LeWM, whichever name its file uses.
 *
 * The names of this project are those of the published files (Transformers 4.x).  Later
 * releases renamed the parts of the ViT, and training frameworks put names of their own in front:
 * "model.", "module.", "_orig_mod.", "jepa.", "state_dict.", "model_state_dict.", in any order. */
#ifndef CGS_MODEL_TENSOR_NAMES_H
#define CGS_MODEL_TENSOR_NAMES_H

#include <stdbool.h>

#include "io/weights.h"
#include "model/params.h"

/* Our name for a stored name; unchanged where there is only one.  False for tensors of the training
 * that no model needs: sigreg.* and callbacks_*. */
bool cgs_tensor_name(const char *stored, char name[CGS_PARAM_NAME]);

/* The tensors of an open file by our names. */
typedef struct cgs_named_weight {
    char name[CGS_PARAM_NAME];
    const cgs_weight *weight; /* borrowed from the open file */
} cgs_named_weight;

typedef struct cgs_named_weights {
    cgs_named_weight *list; /* (count), sorted by name */
    int count, ignored;
    char some[160]; /* names of those ignored, as many as there is room for */
} cgs_named_weights;

/* Two names of one tensor in a file are an error.  Freed by cgs_named_weights_free. */
cgs_status cgs_named_weights_make(cgs_named_weights *c, const cgs_weights *w);

/* The same without the tensors whose stored name, or our name for it, matches one of the patterns
 * of a shell (count); a pattern that matches nothing is refused. */
cgs_status cgs_named_weights_filter(cgs_named_weights *c, const cgs_weights *w,
                                    char *const *pattern, int count);
void cgs_named_weights_free(cgs_named_weights *c);

/* NULL when the file has no such tensor. */
const cgs_weight *cgs_named_weights_find(const cgs_named_weights *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif /* CGS_MODEL_TENSOR_NAMES_H */

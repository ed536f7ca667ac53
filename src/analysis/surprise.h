/* surprise.h - prediction error of a model along a trajectory.
 *
 * Frames of a recorded episode, one model step apart, are encoded; the predictor gets up to
 * `history` of them with the actions between and predicts the next.  The surprise of step t is
 * |zhat_t - z_t|^2 / D.  An edit changes the episode in a way that the environment would not, and
 * the curve should show where. */
#ifndef CGS_ANALYSIS_SURPRISE_H
#define CGS_ANALYSIS_SURPRISE_H

#include "rollout/loaded_model.h"

typedef enum cgs_edit {
    CGS_EDIT_NONE,
    CGS_EDIT_TELEPORT, /* from the step on, the frames and actions of another episode */
    CGS_EDIT_FREEZE,   /* the frame before the step stays, the actions go on          */
    CGS_EDIT_BLACK,    /* the step's frame alone is black                             */
    CGS_EDIT_REVERSE   /* from the step on, the model gets negated actions */
} cgs_edit;

/* "teleport@7": the kind and the model step at which it happens. */
cgs_status cgs_edit_parse(const char *text, cgs_edit *kind, int *step);
const char *cgs_edit_name(cgs_edit kind);

typedef struct cgs_surprise {
    int steps;     /* frames; step t = 1 ... steps-1 has an error */
    double *error; /* (steps); error[0] is NaN: nothing was predicted */
} cgs_surprise;

/* An episode of the dataset, edited or not.  The caller frees error.  seed: of the other
 * episode of a teleport. */
cgs_status cgs_surprise_measure(cgs_surprise *out, cgs_loaded_model *s, cgs_dataset *data,
                                int episode, cgs_edit kind, int step, uint64_t seed);

#endif /* CGS_ANALYSIS_SURPRISE_H */

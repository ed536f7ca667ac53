/* decode.h - strips of predicted beside simulated frames. */
#ifndef CGS_ANALYSIS_DECODE_H
#define CGS_ANALYSIS_DECODE_H

#include "model/decoder.h"
#include "rollout/loaded_model.h"

/* Planned episodes, as simulated and as predicted by the model. */
typedef struct cgs_strip_options {
    const char *env;     /* NULL: the dataset's */
    const char *planner; /* "mppi" */
    int samples, iters, horizon, budget, goal_offset, episodes;
    double tau; /* 0: of the environment */
    uint64_t seed;
    bool held_out; /* from episodes that the model never trained on */
} cgs_strip_options;
cgs_strip_options cgs_strip_defaults(void);

typedef struct cgs_strip {
    bool found, success;
    int episode, step; /* of the dataset */
    int frames;        /* columns, without the goal */
    int width, height; /* of the image */
    uint8_t *rgb; /* (height, width, 3): simulated frames above, decoded predictions below; the last
                     column is the goal and its decoded latent */
    double pixel_error; /* mean absolute difference of the two rows, of 255 */
} cgs_strip;

/* Plans `episodes` starts and draws the first that failed and the first that succeeded: strip[0]
 * and strip[1]; one that did not occur has found = false.  Free both, also after a failure. */
cgs_status cgs_strips_draw(cgs_strip strip[2], cgs_loaded_model *s, cgs_decoder *p,
                           cgs_dataset *data, const cgs_strip_options *o);
void cgs_strips_free(cgs_strip strip[2]);

#endif /* CGS_ANALYSIS_DECODE_H */

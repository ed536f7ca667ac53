/* anchors.h - recorded moments at which geometry is measured, with the frames and actions that
 * follow them. */
#ifndef CGS_ANALYSIS_ANCHORS_H
#define CGS_ANALYSIS_ANCHORS_H

#include "rollout/loaded_model.h"

typedef struct cgs_anchor {
    int episode, step; /* episode -1: a generated rollout, see cgs_zigzag */
} cgs_anchor;

/* Which moments count: all, or those where the gripper (channel 4) is commanded to close in every
 * action up to the last. */
typedef enum cgs_anchor_rule { CGS_ANCHOR_ANY, CGS_ANCHOR_GRASP } cgs_anchor_rule;

/* Draws `count` moments that `rows` recorded actions follow: episodes in random order, a random
 * moment of each; when all episodes are used they are reused, unless distinct.  Finding fewer than
 * requested is CGS_EARG with the number found. */
cgs_status cgs_anchors_draw(cgs_anchor *out, int count, cgs_dataset *data, int rows,
                            cgs_anchor_rule rule, bool distinct, uint64_t seed);

/* A stretch of frames with the actions between them. */
typedef struct cgs_stretch {
    int frames, frameskip, dim, side;
    uint8_t *pixels; /* (frames, side, side, 3) */
    float *action;   /* ((frames - 1) * frameskip, dim) as recorded */
} cgs_stretch;

/* Allocates a stretch; free also after a failure. */
cgs_status cgs_stretch_create(cgs_stretch *s, int frames, int frameskip, int dim, int side);
void cgs_stretch_free(cgs_stretch *s);
/* The first `images` frames (the others stay as they are) and all actions from an anchor. */
cgs_status cgs_stretch_read(cgs_stretch *s, cgs_dataset *data, const cgs_anchor *a, int images);
/* A seeded zig-zag through free space of TwoRooms, whose episodes are too short to be shown: legs
 * of three action blocks to either side of a random heading, which reverses halfway; speed and
 * start are random, and one that touches a wall is redrawn. */
cgs_status cgs_zigzag(cgs_stretch *s, const cgs_env_class *env, uint64_t seed, int number);

/* Actions as the model sees them: out (blocks, block). */
void cgs_stretch_standardise(const cgs_stretch *s, const cgs_action_scale *scale, int first_block,
                             int blocks, float *out);

#endif /* CGS_ANALYSIS_ANCHORS_H */

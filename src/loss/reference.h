/* reference.h - references of CGS: one vector and one mask per transition.
 *
 *   action      the whole standardised action block (PushT, TwoRooms, Reacher)
 *   xyz-grasp   Cube: XYZ channels of the five primitive actions, only where the gripper
 *               is commanded to close
 *   xyz         Cube: the same channels on every transition
 *   full        Cube: the whole action block (the same as action)
 *   transition  Reacher: displacement of (sin q, cos q), one scale per joint
 *
 * References carry no gradient, so they are computed on the host. */
#ifndef CGS_LOSS_REFERENCE_H
#define CGS_LOSS_REFERENCE_H

#include <stdbool.h>

#include "core/status.h"

typedef enum cgs_reference_kind {
    CGS_REF_ACTION,
    CGS_REF_XYZ_GRASP,
    CGS_REF_XYZ,
    CGS_REF_TRANSITION
} cgs_reference_kind;

typedef enum cgs_grasp_rule { CGS_GRASP_ALL, CGS_GRASP_ANY, CGS_GRASP_MEAN } cgs_grasp_rule;

typedef struct cgs_reference {
    cgs_reference_kind kind;
    cgs_grasp_rule grasp;
    int frameskip, action_dim;
    float joint_scale[2]; /* transition: 1 / RMS of a joint's displacement */
} cgs_reference;

cgs_status cgs_reference_kind_of(const char *name, cgs_reference_kind *kind);
cgs_status cgs_grasp_rule_of(const char *name, cgs_grasp_rule *rule);

/* Width of a reference vector. */
int cgs_reference_width(const cgs_reference *r);
/* The dataset column it needs beside actions, or NULL. */
const char *cgs_reference_column(const cgs_reference *r);

/* Fills the references and masks of the first N transitions of B windows of T > N frames.
 *   actions, raw  (B, T, frameskip * action_dim)   standardised and as recorded
 *   joints        (B, T, 2)                        transition only
 *   out           (B, N, width)    mask (B, N)                                        */
void cgs_reference_fill(const cgs_reference *r, int B, int T, int N, const float *actions,
                        const float *raw, const float *joints, float *out, float *mask);

/* scale_j = 1 / sqrt(mean of (d sin^2 + d cos^2) / 2) over pairs of joint positions. */
void cgs_reference_joint_scale(cgs_reference *r, const float *before, const float *after,
                               long pairs);

#endif /* CGS_LOSS_REFERENCE_H */

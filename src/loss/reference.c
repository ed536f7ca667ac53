/* reference.c - reference vectors of CGS. */
#include "loss/reference.h"

#include <math.h>
#include <string.h>

/* Cube's primitive action is (dx, dy, dz, dyaw, gripper); positive closes the gripper */
enum { XYZ = 3, GRIPPER = 4, CUBE_ACTION = 5, JOINTS = 2 };

cgs_status cgs_reference_kind_of(const char *name, cgs_reference_kind *kind) {
    static const struct {
        const char *name;
        cgs_reference_kind kind;
    } known[] = {{"action", CGS_REF_ACTION},
                 {"full", CGS_REF_ACTION},
                 {"xyz-grasp", CGS_REF_XYZ_GRASP},
                 {"xyz", CGS_REF_XYZ},
                 {"transition", CGS_REF_TRANSITION}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (!strcmp(known[i].name, name)) {
            *kind = known[i].kind;
            return CGS_OK;
        }
    return cgs_fail(CGS_EARG,
                    "loss.cgs.reference: \"%.40s\" is not action, full, xyz-grasp, xyz "
                    "or transition",
                    name);
}

cgs_status cgs_grasp_rule_of(const char *name, cgs_grasp_rule *rule) {
    static const char *const known[] = {"all", "any", "mean"};
    for (int i = 0; i < 3; i++)
        if (!strcmp(known[i], name)) {
            *rule = (cgs_grasp_rule)i;
            return CGS_OK;
        }
    return cgs_fail(CGS_EARG, "loss.cgs.grasp: \"%.40s\" is not all, any or mean", name);
}

int cgs_reference_width(const cgs_reference *r) {
    switch (r->kind) {
    case CGS_REF_ACTION: return r->frameskip * r->action_dim;
    case CGS_REF_XYZ_GRASP:
    case CGS_REF_XYZ: return r->frameskip * XYZ;
    case CGS_REF_TRANSITION: return 2 * JOINTS;
    }
    return 0;
}

const char *cgs_reference_column(const cgs_reference *r) {
    return r->kind == CGS_REF_TRANSITION ? "qpos" : NULL;
}

static bool grasping(const cgs_reference *r, const float *raw) {
    int closing = 0;
    double sum = 0;
    for (int k = 0; k < r->frameskip; k++) {
        float command = raw[k * r->action_dim + GRIPPER];
        closing += command > 0;
        sum += command;
    }
    switch (r->grasp) {
    case CGS_GRASP_ALL: return closing == r->frameskip;
    case CGS_GRASP_ANY: return closing > 0;
    case CGS_GRASP_MEAN: return sum > 0;
    }
    return false;
}

static void joint_displacement(const cgs_reference *r, const float *q, const float *next,
                               float *out) {
    for (int j = 0; j < JOINTS; j++) {
        out[j] = r->joint_scale[j] * (sinf(next[j]) - sinf(q[j]));
        out[JOINTS + j] = r->joint_scale[j] * (cosf(next[j]) - cosf(q[j]));
    }
}

void cgs_reference_fill(const cgs_reference *r, int B, int T, int N, const float *actions,
                        const float *raw, const float *joints, float *out, float *mask) {
    int block = r->frameskip * r->action_dim, width = cgs_reference_width(r);
    for (int b = 0; b < B; b++)
        for (int t = 0; t < N; t++) {
            size_t from = ((size_t)b * (size_t)T + (size_t)t),
                   to = (size_t)b * (size_t)N + (size_t)t;
            const float *a = actions + from * (size_t)block;
            float *v = out + to * (size_t)width;
            mask[to] = 1;
            switch (r->kind) {
            case CGS_REF_ACTION: memcpy(v, a, (size_t)block * sizeof *v); break;
            case CGS_REF_XYZ_GRASP:
                mask[to] = grasping(r, raw + from * (size_t)block);
                __attribute__((fallthrough));
            case CGS_REF_XYZ:
                for (int k = 0; k < r->frameskip; k++)
                    memcpy(v + k * XYZ, a + k * r->action_dim, XYZ * sizeof *v);
                break;
            case CGS_REF_TRANSITION:
                joint_displacement(r, joints + from * JOINTS, joints + (from + 1) * JOINTS, v);
                break;
            }
        }
}

void cgs_reference_joint_scale(cgs_reference *r, const float *before, const float *after,
                               long pairs) {
    for (int j = 0; j < JOINTS; j++) {
        double sum = 0;
        for (long i = 0; i < pairs; i++) {
            double s = sin(after[i * JOINTS + j]) - sin(before[i * JOINTS + j]);
            double c = cos(after[i * JOINTS + j]) - cos(before[i * JOINTS + j]);
            sum += 0.5 * (s * s + c * c);
        }
        /* a joint that never moves has no scale; its displacements are zero anyway */
        r->joint_scale[j] = sum > 0 ? (float)(1 / sqrt(sum / (double)pairs)) : 1;
    }
}

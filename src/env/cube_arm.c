/* cube_arm.c - forward and inverse kinematics of the six arm joints.
 *
 * The inverse is damped least squares on the flange with a limit on the largest joint step;
 * no joint limits, no null-space term, as upstream. */
#include <math.h>
#include <string.h>

#include "env/cube.h"
#include "env/portable.h"

#pragma STDC FP_CONTRACT OFF

/* of the fixed rotations before a joint: none, or +90 degrees about y */
typedef struct link {
    double offset[3]; /* in the link before */
    bool quarter;     /* +90 degrees about y before the joint */
    int axis;         /* of the joint: 1 y, 2 z */
} link;

static const link LINKS[CUBE_ARM] = {
    {{0, 0, 0.163}, false, 2}, {{0, 0.138, 0}, true, 1},  {{0, -0.131, 0.425}, false, 1},
    {{0, 0, 0.392}, true, 1},  {{0, 0.127, 0}, false, 2}, {{0, 0, 0.1}, false, 1},
};
static const double FLANGE = 0.1;   /* along y of the last link */
static const double PINCH = 0.1558; /* along z of the flange    */
static const double DAMPING = 1e-12, LARGEST = CGS_PI / 4, CLOSE = 1e-4;
enum { UPDATES = 20 };

static void shift(double *pos, const double *rot, const double *by) {
    for (int r = 0; r < 3; r++)
        pos[r] += rot[3 * r] * by[0] + rot[3 * r + 1] * by[1] + rot[3 * r + 2] * by[2];
}

/* rot times a rotation about one of its own axes: the other two columns mix */
static void spin(double *rot, int axis, double sine, double cosine) {
    int a = (axis + 1) % 3, b = (axis + 2) % 3;
    for (int r = 0; r < 3; r++) {
        double x = rot[3 * r + a], y = rot[3 * r + b];
        rot[3 * r + a] = cosine * x + sine * y;
        rot[3 * r + b] = cosine * y - sine * x;
    }
}

void cgs_cube_flange(const double *joints, cgs_cube_pose *out, double *J) {
    double pos[3] = {0}, rot[9] = {0, -1, 0, 1, 0, 0, 0, 0, 1}; /* base: +90 degrees about z */
    double origin[CUBE_ARM][3], axis[CUBE_ARM][3];
    for (int k = 0; k < CUBE_ARM; k++) {
        double s, c;
        shift(pos, rot, LINKS[k].offset);
        if (LINKS[k].quarter) spin(rot, 1, 1, 0);
        for (int r = 0; r < 3; r++) {
            origin[k][r] = pos[r];
            axis[k][r] = rot[3 * r + LINKS[k].axis];
        }
        cgs_sincos(joints[k], &s, &c);
        spin(rot, LINKS[k].axis, s, c);
    }
    shift(pos, rot, (const double[3]){0, FLANGE, 0});
    spin(rot, 0, -1, 0);
    memcpy(out->pos, pos, sizeof pos);
    memcpy(out->rot, rot, sizeof rot);
    if (!J) return;
    for (int k = 0; k < CUBE_ARM; k++) {
        const double *a = axis[k];
        double x = pos[0] - origin[k][0], y = pos[1] - origin[k][1], z = pos[2] - origin[k][2];
        J[k] = a[1] * z - a[2] * y;
        J[6 + k] = a[2] * x - a[0] * z;
        J[12 + k] = a[0] * y - a[1] * x;
        for (int r = 0; r < 3; r++) J[18 + 6 * r + k] = a[r];
    }
}

void cgs_cube_pinch(const double *joints, cgs_cube_pose *out) {
    cgs_cube_flange(joints, out, NULL);
    shift(out->pos, out->rot, (const double[3]){0, 0, PINCH});
    spin(out->rot, 2, -1, 0);
}

double cgs_cube_yaw_of(const double *rot) { return atan2(rot[3], rot[0]); }

double cgs_cube_yaw_of_quat(const double *q) {
    return atan2(2 * (q[0] * q[3] + q[1] * q[2]), 1 - 2 * (q[2] * q[2] + q[3] * q[3]));
}

/* The rotation vector of target * current^T, in the world. */
static void rotation_error(const double *target, const double *current, double *out) {
    double d[9];
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 3; c++)
            d[3 * r + c] = target[3 * r] * current[3 * c] + target[3 * r + 1] * current[3 * c + 1] +
                           target[3 * r + 2] * current[3 * c + 2];
    double v[3] = {d[7] - d[5], d[2] - d[6], d[3] - d[1]}; /* 2 sin(angle) axis */
    double twice = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
    double angle = atan2(twice, d[0] + d[4] + d[8] - 1);
    if (twice > 1e-9) {
        for (int r = 0; r < 3; r++) out[r] = v[r] * angle / twice;
        return;
    }
    /* no rotation, or half a turn about an axis given by the diagonal */
    int k = d[0] >= d[4] && d[0] >= d[8] ? 0 : d[4] >= d[8] ? 1 : 2;
    double n = sqrt(fmax(0, (d[4 * k] + 1) / 2));
    for (int r = 0; r < 3; r++) {
        double a = r == k ? n : (d[3 * r + k] + d[3 * k + r]) / (4 * fmax(n, 1e-12));
        out[r] = angle > 1 ? angle * a : 0;
    }
}

/* solves (J J^T + damping) x = e by Cholesky; false when it is not positive */
static bool solve(const double *J, const double *e, double *x) {
    double L[6][6];
    for (int i = 0; i < 6; i++)
        for (int j = 0; j <= i; j++) {
            double sum = i == j ? DAMPING : 0;
            for (int k = 0; k < 6; k++) sum += J[6 * i + k] * J[6 * j + k];
            for (int k = 0; k < j; k++) sum -= L[i][k] * L[j][k];
            if (i == j && !(sum > 0)) return false;
            L[i][j] = i == j ? sqrt(sum) : sum / L[j][j];
        }
    for (int i = 0; i < 6; i++) {
        x[i] = e[i];
        for (int k = 0; k < i; k++) x[i] -= L[i][k] * x[k];
        x[i] /= L[i][i];
    }
    for (int i = 5; i >= 0; i--) {
        for (int k = i + 1; k < 6; k++) x[i] -= L[k][i] * x[k];
        x[i] /= L[i][i];
    }
    return true;
}

int cgs_cube_reach(double *joints, const double *pos, double yaw) {
    /* pinch frame: Rz(yaw) times half a turn about x; the flange is a quarter turn from it */
    double s, c;
    cgs_sincos(yaw, &s, &c);
    double rot[9] = {c, s, 0, s, -c, 0, 0, 0, -1}, flange[3] = {pos[0], pos[1], pos[2]};
    shift(flange, rot, (const double[3]){0, 0, -PINCH});
    spin(rot, 2, 1, 0);
    for (int n = 0; n <= UPDATES; n++) {
        cgs_cube_pose now;
        double J[36], e[6], x[6], step[6], largest = 0;
        cgs_cube_flange(joints, &now, J);
        for (int r = 0; r < 3; r++) e[r] = flange[r] - now.pos[r];
        rotation_error(rot, now.rot, e + 3);
        if (e[0] * e[0] + e[1] * e[1] + e[2] * e[2] <= CLOSE * CLOSE &&
            e[3] * e[3] + e[4] * e[4] + e[5] * e[5] <= CLOSE * CLOSE)
            return n;
        if (n == UPDATES || !solve(J, e, x)) break;
        for (int k = 0; k < 6; k++) {
            step[k] = 0;
            for (int i = 0; i < 6; i++) step[k] += J[6 * i + k] * x[i];
            largest = fmax(largest, fabs(step[k]));
        }
        double scale = largest > LARGEST ? LARGEST / largest : 1;
        for (int k = 0; k < 6; k++) joints[k] += scale * step[k];
    }
    return -1;
}

/* paper_numbers.c - see paper_numbers.h. */
#include "analysis/paper_numbers.h"

#include <string.h>

/* clang-format off */
static const struct {
    const char *env, *target;
    double score[CGS_PHYSICAL_SCORES];
} physical[] = {
    {"pusht", "agent position", {0.999, 0.999, 0.122, 0.266, 0.999, 0.999, 0.999}},
    {"pusht", "block position", {0.121, 0.317, 0.092, 0.372, 0.175, 0.613, 0.384}},
    {"pusht", "block angle", {-0.012, 0.074, 0.045, 0.271, 0.044, 0.543, 0.372}},
    {"cube", "joint position", {0.946, 0.966, 0.718, 0.834, 0.960, 0.997, 0.981}},
    {"cube", "end-effector position", {0.992, 0.994, 0.753, 0.870, 0.993, 0.999, 0.990}},
    {"cube", "end-effector yaw", {0.991, 0.992, 0.528, 0.628, 0.992, 0.998, 0.995}},
    {"cube", "gripper opening", {0.250, 0.961, 0.541, 0.886, 0.853, 0.992, 0.934}},
    {"cube", "block position", {0.492, 0.991, 0.797, 0.863, 0.876, 0.997, 0.976}},
    {"cube", "block yaw", {0.294, 0.916, 0.523, 0.595, 0.569, 0.913, 0.785}},
    {"reacher", "joint position", {0.847, 0.847, 0.093, 0.110, 0.948, 0.993, 0.992}},
    {"reacher", "fingertip position", {-0.006, -0.006, -0.001, 0.251, -0.005, 0.983, 0.977}},
    {"tworooms", "agent position", {0.952, 0.953, 0.047, 0.057, 0.952, 0.965, 0.963}},
};

static const struct {
    const char *env, *target, *method;
    double score[CGS_LATENT_SCORES];
} latent[] = {
    {"pusht", "agent position", "lewm", {0.809, 0.888, 0.807, 0.808, 0.807, 0.808}},
    {"pusht", "agent position", "lewm-ts", {0.831, 0.891, 0.829, 0.830, 0.829, 0.830}},
    {"pusht", "agent position", "lewm-cgs", {0.903, 0.959, 0.901, 0.902, 0.901, 0.902}},
    {"pusht", "block position", "lewm", {0.813, 0.864, 0.791, 0.602, 0.256, 0.603}},
    {"pusht", "block position", "lewm-ts", {0.816, 0.830, 0.817, 0.670, 0.314, 0.678}},
    {"pusht", "block position", "lewm-cgs", {0.847, 0.873, 0.871, 0.655, 0.276, 0.664}},
    {"pusht", "block angle", "lewm", {0.151, 0.604, 0.773, 0.158, 0.423, 0.308}},
    {"pusht", "block angle", "lewm-ts", {0.357, 0.574, 0.808, 0.287, 0.386, 0.404}},
    {"pusht", "block angle", "lewm-cgs", {0.227, 0.601, 0.843, 0.143, 0.450, 0.296}},
    {"cube", "joint position", "lewm", {0.742, 0.747, 0.741, 0.743, 0.723, 0.743}},
    {"cube", "joint position", "lewm-ts", {0.622, 0.643, 0.629, 0.622, 0.631, 0.621}},
    {"cube", "joint position", "lewm-cgs", {0.743, 0.895, 0.748, 0.741, 0.729, 0.741}},
    {"cube", "end-effector position", "lewm", {0.895, 0.969, 0.893, 0.893, 0.891, 0.893}},
    {"cube", "end-effector position", "lewm-ts", {0.710, 0.776, 0.706, 0.708, 0.700, 0.709}},
    {"cube", "end-effector position", "lewm-cgs", {0.931, 0.982, 0.930, 0.930, 0.927, 0.930}},
    {"cube", "end-effector yaw", "lewm", {-0.039, -0.023, -0.036, -0.040, -0.026, -0.042}},
    {"cube", "end-effector yaw", "lewm-ts", {-0.025, -0.020, -0.024, -0.026, -0.010, -0.026}},
    {"cube", "end-effector yaw", "lewm-cgs", {-0.078, 0.830, -0.080, -0.078, -0.063, -0.078}},
    {"cube", "gripper opening", "lewm", {0.490, 0.905, 0.205, 0.494, 0.502, 0.498}},
    {"cube", "gripper opening", "lewm-ts", {0.528, 0.905, 0.296, 0.533, 0.543, 0.537}},
    {"cube", "gripper opening", "lewm-cgs", {0.898, 0.945, 0.381, 0.900, 0.307, 0.901}},
    {"cube", "block position", "lewm", {0.941, 0.970, 0.926, 0.939, 0.517, 0.939}},
    {"cube", "block position", "lewm-ts", {0.946, 0.976, 0.813, 0.943, 0.513, 0.944}},
    {"cube", "block position", "lewm-cgs", {0.918, 0.985, 0.948, 0.916, 0.526, 0.916}},
    {"cube", "block yaw", "lewm", {-0.013, -0.009, -0.054, -0.041, 0.757, 0.101}},
    {"cube", "block yaw", "lewm-ts", {-0.018, -0.020, -0.029, -0.050, 0.750, 0.081}},
    {"cube", "block yaw", "lewm-cgs", {-0.009, 0.426, -0.102, -0.032, 0.751, 0.096}},
    {"reacher", "joint position", "lewm", {0.355, 0.988, 0.368, 0.357, 0.447, 0.364}},
    {"reacher", "joint position", "lewm-ts", {0.347, 0.988, 0.371, 0.348, 0.447, 0.353}},
    {"reacher", "joint position", "lewm-cgs", {0.123, 0.988, 0.135, 0.127, 0.248, 0.134}},
    {"reacher", "fingertip position", "lewm", {0.951, 0.994, 0.155, 0.932, 0.028, 0.932}},
    {"reacher", "fingertip position", "lewm-ts", {0.974, 0.994, 0.157, 0.960, 0.011, 0.959}},
    {"reacher", "fingertip position", "lewm-cgs", {0.899, 0.993, 0.041, 0.883, 0.074, 0.884}},
    {"tworooms", "agent position", "lewm", {0.862, 0.956, 0.815, 0.829, 0.819, 0.827}},
    {"tworooms", "agent position", "lewm-ts", {0.970, 0.984, 0.933, 0.946, 0.928, 0.939}},
    {"tworooms", "agent position", "lewm-cgs", {0.903, 0.976, 0.866, 0.878, 0.867, 0.873}},
};

const cgs_published_mechanism cgs_published_mechanisms[CGS_PUBLISHED_MECHANISMS] = {
    {"lewm", "LeWM", 0.841, 0.751},
    {"lewm-ts", "LeWM+TS", 0.835, 0.803},
    {"lewm-cgs", "LeWM+CGS", 0.685, 0.913},
};
/* clang-format on */

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

const double *cgs_published_physical(const char *env, const char *target) {
    for (int i = 0; i < COUNT(physical); i++)
        if (!strcmp(physical[i].env, env) && !strcmp(physical[i].target, target))
            return physical[i].score;
    return NULL;
}

const double *cgs_published_latent(const char *env, const char *target, const char *method) {
    for (int i = 0; i < COUNT(latent); i++)
        if (!strcmp(latent[i].env, env) && !strcmp(latent[i].target, target) &&
            !strcmp(latent[i].method, method))
            return latent[i].score;
    return NULL;
}

bool cgs_published_prior(const char *env, const char *method, double *rho) {
    static const struct {
        const char *env, *method;
        double rho;
    } known[] = {{"cube", "lewm", 0.262}, {"cube", "lewm-cgs", 0.116}};
    for (int i = 0; i < COUNT(known); i++)
        if (!strcmp(known[i].env, env) && !strcmp(known[i].method, method)) {
            *rho = known[i].rho;
            return true;
        }
    return false;
}

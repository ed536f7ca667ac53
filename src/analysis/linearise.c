/* linearise.c - see linearise.h. */
#include "analysis/linearise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"

#define DIM(...) ((const int[]){__VA_ARGS__})

struct cgs_linearise {
    cgs_tape *tape;
    int D, block;
    cgs_tensor *z, *a, *next, *target; /* (D, 1, D), (D, 1, block), (D, D), (D, D) */
    float *zs, *as, *nexts;            /* host copies of the first three */
};

void cgs_linearise_destroy(cgs_linearise *l) {
    if (!l) return;
    cgs_tape_destroy(l->tape);
    free(l->zs);
    free(l);
}

static cgs_status build(cgs_linearise *l, cgs_lewm *m) {
    int D = l->D;
    size_t n = (size_t)D;
    l->zs = malloc((2 * n * n + n * (size_t)l->block) * sizeof *l->zs);
    if (!l->zs) return cgs_fail(CGS_ENOMEM, "linearisation: no memory");
    l->nexts = l->zs + n * n;
    l->as = l->nexts + n * n;
    CGS_TRY(cgs_tape_create(&l->tape, m->params.device, CGS_F32));
    cgs_tape_freeze_parameters(l->tape);
    l->z = cgs_input(l->tape, "z", CGS_F32, 3, DIM(D, 1, D));
    l->a = cgs_input(l->tape, "actions", CGS_F32, 3, DIM(D, 1, l->block));
    l->target = cgs_input(l->tape, "target", CGS_F32, 2, DIM(D, D));
    cgs_require_grad(l->tape, l->z);
    cgs_require_grad(l->tape, l->a);
    cgs_tensor *ahead;
    cgs_lewm_rollout(l->tape, m, l->z, l->a, &ahead, 1);
    l->next = cgs_keep(cgs_reshape(l->tape, ahead, 2, DIM(D, D)));
    return cgs_tape_finish(l->tape, cgs_mse(l->tape, l->next, l->target));
}

cgs_status cgs_linearise_create(cgs_linearise **out, cgs_lewm *m) {
    cgs_linearise *l = calloc(1, sizeof *l);
    *out = NULL;
    if (!l) return cgs_fail(CGS_ENOMEM, "linearisation: no memory");
    l->D = m->config.width;
    l->block = cgs_lewm_action_block(&m->config);
    cgs_status rc = build(l, m);
    if (rc != CGS_OK) {
        cgs_linearise_destroy(l);
        return rc;
    }
    *out = l;
    return CGS_OK;
}

/* the same point in every row, forward */
static cgs_status forward(cgs_linearise *l, const float *z, const float *a) {
    size_t D = (size_t)l->D, block = (size_t)l->block;
    for (size_t i = 0; i < D; i++) {
        memcpy(l->zs + i * D, z, D * sizeof *z);
        memcpy(l->as + i * block, a, block * sizeof *a);
    }
    CGS_TRY(cgs_tensor_write(l->tape, l->z, l->zs));
    CGS_TRY(cgs_tensor_write(l->tape, l->a, l->as));
    cgs_tape_forward(l->tape);
    CGS_TRY(cgs_tensor_read(l->tape, l->next, l->nexts));
    for (size_t i = 0; i < D; i++)
        if (!isfinite(l->nexts[i]))
            return cgs_fail(CGS_ENUMERIC, "value %zu of a predicted latent is %g", i,
                            (double)l->nexts[i]);
    return CGS_OK;
}

cgs_status cgs_linearise_step(cgs_linearise *l, const float *z, const float *a, float *next) {
    CGS_TRY(forward(l, z, a));
    memcpy(next, l->nexts, (size_t)l->D * sizeof *next);
    return CGS_OK;
}

cgs_status cgs_linearise_at(cgs_linearise *l, const float *z, const float *a, double *A,
                            double *B) {
    size_t D = (size_t)l->D, block = (size_t)l->block;
    CGS_TRY(forward(l, z, a));
    for (size_t i = 0; i < D; i++) l->nexts[i * D + i] -= 1;
    CGS_TRY(cgs_tensor_write(l->tape, l->target, l->nexts));
    cgs_tape_forward(l->tape);
    cgs_tape_backward(l->tape);
    CGS_TRY(cgs_tensor_read_grad(l->tape, l->z, l->zs));
    CGS_TRY(cgs_tensor_read_grad(l->tape, l->a, l->as));
    double mean = (double)(D * D) / 2; /* of the error's gradient: 2 / D^2 per component */
    for (size_t i = 0; i < D * D; i++) A[i] = mean * l->zs[i];
    for (size_t i = 0; i < D * block; i++) B[i] = mean * l->as[i];
    return CGS_OK;
}

cgs_status cgs_linearise_check(cgs_linearise *l, const float *z, const float *a, const double *A,
                               const double *B, uint64_t seed, double *error) {
    const double h = 1e-2; /* f32: rounding is about 1e-7 / h, curvature h^2 */
    size_t D = (size_t)l->D, n = D + (size_t)l->block;
    cgs_rng r = cgs_rng_stream(seed, CGS_STREAM_THEORY, UINT64_C(1) << 41);
    float *x = malloc((n + 2 * D) * sizeof *x), *up = x + n, *down = up + D;
    double *u = malloc(n * sizeof *u), off = 0, size = 0;
    cgs_status rc = x && u ? CGS_OK : cgs_fail(CGS_ENOMEM, "linearisation: no memory");
    for (size_t i = 0; rc == CGS_OK && i < n; i++) u[i] = cgs_rng_normal(&r);
    for (int side = 1; side >= -1 && rc == CGS_OK; side -= 2) {
        for (size_t i = 0; i < n; i++) x[i] = (float)((i < D ? z[i] : a[i - D]) + side * h * u[i]);
        rc = cgs_linearise_step(l, x, x + D, side > 0 ? up : down);
    }
    for (size_t i = 0; rc == CGS_OK && i < D; i++) {
        double derivative = ((double)up[i] - down[i]) / (2 * h), sum = 0;
        for (size_t j = 0; j < D; j++) sum += A[i * D + j] * u[j];
        for (size_t j = D; j < n; j++) sum += B[i * (n - D) + j - D] * u[j];
        off += (derivative - sum) * (derivative - sum);
        size += derivative * derivative;
    }
    *error = rc == CGS_OK ? sqrt(off / size) : NAN;
    free(x);
    free(u);
    return rc;
}

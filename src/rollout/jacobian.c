/* jacobian.c - residuals of plans and their derivatives by the plans.
 *
 * Forward mode carries a tangent for each value of a plan through the run that makes the residual:
 * a plan has tens of values, a residual hundreds.  A device without tangents differentiates the
 * other way: the tape has a row for each value of a residual, all with the same plan, and one
 * backward pass, begun by a one in each, gives all rows of the Jacobian. */
#include <math.h>
#include <stdlib.h>

#include "rollout/rollout_internal.h"

static size_t plan_size(const cgs_rollout *r) { return (size_t)r->config.horizon * (size_t)r->A; }

void rollout_declare_jacobian(cgs_rollout *r) {
    if (r->pushes) cgs_tape_directions(r->tape, (int)plan_size(r));
    for (int i = 0; i < r->parts && !r->pushes; i++) cgs_seed(r->tape, r->now[i]);
}

/* the plan is the end of each row's list, and its j-th value is what changes along direction j */
static cgs_status write_directions(cgs_rollout *r) {
    size_t n = plan_size(r), list = (size_t)r->T * (size_t)r->A;
    size_t rows = (size_t)r->G * (size_t)r->part;
    float *one = calloc(rows * list * n, sizeof *one);
    if (!one) return cgs_fail(CGS_ENOMEM, "rollout: no memory for directions");
    for (size_t row = 0; row < rows; row++)
        for (size_t j = 0; j < n; j++) one[(row * list + list - n + j) * n + j] = 1;
    cgs_status rc = cgs_tensor_write_tangent(r->tape, r->actions, one);
    free(one);
    return rc;
}

/* row i differentiates value i of all parts together */
static cgs_status write_seeds(cgs_rollout *r) {
    cgs_device *d = cgs_tape_device(r->tape);
    size_t rows = (size_t)r->part, at = 0;
    for (int i = 0; i < r->parts; i++) {
        size_t width = (size_t)cgs_cols(r->now[i]);
        if (r->now[i]->dtype != CGS_F32)
            return cgs_fail(CGS_EARG, "rollout: residuals that are rounded have no Jacobian here");
        float *seed = calloc(rows * width, sizeof *seed);
        if (!seed) return cgs_fail(CGS_ENOMEM, "rollout: no memory for seeds");
        for (size_t j = 0; j < width && at + j < rows; j++) seed[(at + j) * width + j] = 1;
        cgs_status rc = d->ops->upload(d, r->now[i]->grad, seed, rows * width * sizeof *seed);
        free(seed);
        CGS_TRY(rc);
        at += width;
    }
    return CGS_OK;
}

cgs_status rollout_begin_jacobian(cgs_rollout *r) {
    return r->pushes ? write_directions(r) : write_seeds(r);
}

/* J (n episodes, R, n) of the run that was just made */
static cgs_status read_tangents(cgs_rollout *r, const rollout_batch *b, float *J) {
    size_t R = (size_t)cgs_rollout_residuals(r), n = plan_size(r), at = 0;
    for (int i = 0; i < r->parts; i++) {
        size_t block = (size_t)cgs_cols(r->now[i]) * n;
        float root = sqrtf(r->weight[i]);
        CGS_TRY(cgs_tensor_read_tangent(r->tape, r->now[i], r->derivative));
        for (size_t g = 0; g < (size_t)b->n; g++)
            for (size_t j = 0; j < block; j++)
                J[g * R * n + at + j] = root * r->derivative[g * block + j];
        at += block;
    }
    return CGS_OK;
}

/* J (R, n) of one episode */
static cgs_status read_gradients(cgs_rollout *r, float *J) {
    size_t n = plan_size(r), list = (size_t)r->T * (size_t)r->A, row = 0;
    CGS_TRY(cgs_tensor_read_grad(r->tape, r->actions, r->derivative));
    for (int i = 0; i < r->parts; i++) {
        float root = sqrtf(r->weight[i]);
        for (int end = (int)row + cgs_cols(r->now[i]); (int)row < end; row++)
            for (size_t j = 0; j < n; j++)
                J[row * n + j] = root * r->derivative[row * list + list - n + j];
    }
    return CGS_OK;
}

static cgs_status differentiate(cgs_rollout *r, const rollout_batch *b, const float *plans,
                                float *cost, float *residual, float *J) {
    size_t e = (size_t)b->e0, R = (size_t)cgs_rollout_residuals(r);
    CGS_TRY(rollout_load(r, b, plans, 1));
    if (r->pushes)
        cgs_tape_push(r->tape);
    else
        cgs_tape_forward(r->tape);
    /* before backward, which may use the memory of what it does not read */
    CGS_TRY(rollout_read_costs(r));
    for (int g = 0; g < b->n; g++) cost[e + (size_t)g] = r->read[g * r->part];
    CGS_TRY(rollout_read_residuals(r, b, 1, residual));
    if (r->pushes) return read_tangents(r, b, J + e * R * plan_size(r));
    cgs_tape_backward(r->tape);
    return read_gradients(r, J + e * R * plan_size(r));
}

cgs_status cgs_rollout_jacobian(void *ctx, const float *plans, int E, float *cost, float *residual,
                                float *jacobian) {
    cgs_rollout *r = ctx;
    int R = cgs_rollout_residuals(r);
    bool own = r->fn || r->residual_fn;
    if (!r->config.jacobian || own || !r->has_goal || E != r->E)
        return cgs_fail(CGS_EARG,
                        "rollout: made for Jacobians %s, own cost %s, goal %s, %d episodes of %d",
                        r->config.jacobian ? "yes" : "no", own ? "yes" : "no",
                        r->has_goal ? "yes" : "no", E, r->E);
    if (!r->pushes && R > r->part)
        return cgs_fail(CGS_EARG, "rollout: residuals of %d values, rows for %d", R, r->part);
    for (int e0 = 0; e0 < E; e0 += r->G) {
        rollout_batch b = {e0, E - e0 < r->G ? E - e0 : r->G, 0, 1};
        CGS_TRY(differentiate(r, &b, plans, cost, residual, jacobian));
    }
    return CGS_OK;
}

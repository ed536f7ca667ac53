/* check.h - three uses of the registry of cases: does the reference's gradient match finite
 * differences of its forward pass, does a backend agree with the reference, how fast is it. */
#ifndef CGS_OPS_CHECK_CHECK_H
#define CGS_OPS_CHECK_CHECK_H

#include "core/measured.h"
#include "ops/check/cases.h"
#include "ops/check/cost.h"

/* the worst disagreement found: |got - want| / (|want| + rms of want) */
typedef struct cgs_mismatch {
    double error;
    char where[64]; /* "out", "d x", "running_mean" ... */
    size_t index;
    double got, want;
} cgs_mismatch;

typedef struct cgs_setup {
    cgs_device *device;
    cgs_dtype act;
} cgs_setup;

/* Runs a case in two setups, from poisoned memory, and compares results, gradients and state.  With
 * `twice`, gradients must be accumulated.  A result that is not finite, or that changes when the
 * same tape runs again, counts as an infinite error. */
cgs_status cgs_check_eval(const cgs_op_case *c, cgs_setup judge, cgs_setup other, bool twice,
                          cgs_mismatch *worst);

/* Compares the gradient of a case with finite differences of its forward pass, element
 * by element (some of them) and along random directions. */
cgs_status cgs_check_grad(const cgs_op_case *c, cgs_device *d, cgs_mismatch *worst);

/* The same for tangents: along directions in which all inputs change, elements of the result's
 * tangent against differences, and its projection against that of the gradient. */
cgs_status cgs_check_tangent(const cgs_op_case *c, cgs_device *d, cgs_mismatch *worst);
/* Compares tangents of two setups. */
cgs_status cgs_check_push(const cgs_op_case *c, cgs_setup judge, cgs_setup other,
                          cgs_mismatch *worst);

typedef struct cgs_timing {
    cgs_measured seconds; /* of no runs where there is nothing to run */
    cgs_cost cost;
} cgs_timing;

/* Measures the case's operation alone; backward->seconds has no runs where there
 * is none. */
cgs_status cgs_measure(const cgs_op_case *c, cgs_setup s, double min_seconds, cgs_timing *forward,
                       cgs_timing *backward);

#endif /* CGS_OPS_CHECK_CHECK_H */

/* cases.h - the registry: every operation at typical, tiny, odd and single-element sizes.  Gradient
 * checks, comparisons of backends and benchmarks all use this list. */
#ifndef CGS_OPS_CHECK_CASES_H
#define CGS_OPS_CHECK_CASES_H

#include "ops/check/trial.h"

#define CGS_CASE_SIZES 8

struct cgs_op_case {
    const char *name; /* "operation/variant" */
    cgs_opcode op;
    cgs_tensor *(*build)(cgs_op_trial *t, const int *n); /* makes leaves, records the operation */
    int n[CGS_CASE_SIZES];
    /* largest |got - want| / (|want| + rms of want) against the reference */
    double tol_f32, tol_bf16;
    /* the same for gradients against finite differences of this step (0: not differentiable at this
     * point), which suffer from the rounding of `out` */
    double tol_gradient, step;
    bool heavy; /* for benchmarks only */
};

extern const cgs_op_case cgs_op_cases[];
extern const int cgs_op_case_count;

#endif /* CGS_OPS_CHECK_CASES_H */

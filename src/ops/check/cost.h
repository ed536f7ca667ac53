/* cost.h - lower bounds of a record's arithmetic and memory traffic. */
#ifndef CGS_OPS_CHECK_COST_H
#define CGS_OPS_CHECK_COST_H

#include "ops/ops.h"

typedef struct cgs_cost {
    double flops; /* a multiplication and an addition count as two */
    double bytes; /* every operand read or written once            */
} cgs_cost;

cgs_cost cgs_forward_cost(const cgs_record *r);
cgs_cost cgs_backward_cost(const cgs_record *r);

#endif /* CGS_OPS_CHECK_COST_H */

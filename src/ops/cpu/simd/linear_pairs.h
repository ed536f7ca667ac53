/* linear_pairs.h - the gradients of a linear layer in bf16, in one pass over the rows; gemm.c
 * says of which layers and in which pieces. */
#ifndef CGS_OPS_CPU_SIMD_LINEAR_PAIRS_H
#define CGS_OPS_CPU_SIMD_LINEAR_PAIRS_H

#include "ops/cpu/simd/simd.h"

/* W in bf16; scratch: linear_pairs_words of them */
void CGS_FN(linear_pairs_backward)(cgs_device *d, const cgs_record *r, const cgs_cpu_pieces *how,
                                   const uint16_t *W, uint32_t *scratch);

#endif /* CGS_OPS_CPU_SIMD_LINEAR_PAIRS_H */

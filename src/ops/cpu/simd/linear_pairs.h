/* linear_pairs.h - the gradients of a linear layer in bf16, in one pass over the rows; gemm.c
 * says of which layers and in which pieces. */
#ifndef CGS_OPS_CPU_SIMD_LINEAR_PAIRS_H
#define CGS_OPS_CPU_SIMD_LINEAR_PAIRS_H

#include "ops/cpu/simd/simd.h"

/* What forward of a fused GELU leaves in place of its input: the slope, from -0.13 to 1.13, as a
 * 16-bit number of steps above the least, 1.1e-5 exact. */
#define CGS_SLOPE_LEAST (-0.25f)
#define CGS_SLOPE_STEP (1.5f / 65536)

/* W in bf16; scratch: linear_pairs_words of them */
void CGS_FN(linear_pairs_backward)(cgs_device *d, const cgs_record *r, const cgs_cpu_pieces *how,
                                   const uint16_t *W, uint32_t *scratch);

#endif /* CGS_OPS_CPU_SIMD_LINEAR_PAIRS_H */

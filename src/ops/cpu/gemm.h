/* gemm.h - matrix products whose shape is known beforehand.
 *
 * A product is prepared once for a shape (which may compile code for it) and shared by
 * all records of that shape; running it allocates no memory of ours. */
#ifndef CGS_OPS_CPU_GEMM_H
#define CGS_OPS_CPU_GEMM_H

#include "ops/cpu/cpu.h"

cgs_status cgs_gemm_cache_create(cgs_gemm_cache **out, bool onednn);
void cgs_gemm_cache_destroy(cgs_gemm_cache *c);

/* Finds or makes the product.  It belongs to the cache. */
cgs_status cgs_gemm_prepare(cgs_device *d, const cgs_product *p, cgs_gemm **out);

/* bias is NULL exactly when the product was prepared without one. */
void cgs_gemm_run(cgs_device *d, cgs_gemm *g, void *C, const void *A, const void *B,
                  const float *bias);

/* The best rate of a square product of this type on this device, FLOP/s: the yardstick
 * for everything else.  Takes about a second. */
cgs_status cgs_bench_gemm_peak(cgs_device *d, cgs_dtype type, double *flops);

#endif /* CGS_OPS_CPU_GEMM_H */

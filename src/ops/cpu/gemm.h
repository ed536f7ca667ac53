/* gemm.h - matrix products whose shape is known in advance.
 *
 * A product is prepared once for a shape (which may compile code for it) and shared by all records
 * of that shape; running it allocates no memory. */
#ifndef CGS_OPS_CPU_GEMM_H
#define CGS_OPS_CPU_GEMM_H

#include "ops/cpu/cpu.h"

cgs_status cgs_gemm_cache_create(cgs_gemm_cache **out, bool onednn, int threads);
void cgs_gemm_cache_destroy(cgs_gemm_cache *c);

/* Finds or makes the product.  It belongs to the cache. */
cgs_status cgs_gemm_prepare(cgs_device *d, const cgs_product *p, cgs_gemm **out);

/* The pieces in which all gradients of a linear layer with n rows, k inputs and m outputs in bf16
 * are made in one pass (simd/linear_pairs.c), none where each is a product of its own. */
cgs_cpu_pieces cgs_gemm_joint(const cgs_device *d, size_t n, size_t k, size_t m);

/* A right factor that stays constant over many runs (weights while planning), prepacked in the
 * layout that a product needs.  Users of the same weights share one. */
/* **out is NULL when the product reads B as it is, so that there is nothing to prepack. */
cgs_status cgs_gemm_prepack(cgs_device *d, cgs_gemm *g, const void *B, cgs_prepacked **out);
void cgs_gemm_drop(cgs_device *d, cgs_prepacked *k);
/* Tells that memory was written: its prepacked copies are rebuilt at the next run. */
void cgs_gemm_changed(cgs_device *d, const void *p, size_t bytes);

/* After the operation that ran a product with k: its copy need not be rebuilt.  Not within it,
 * where a member that comes late has to make the same steps as those before it. */
void cgs_gemm_settle(cgs_prepacked *k);

/* Whether a product, by weights that no pass changes, can also run for some of its rows, by a
 * member of a team alone, with the same bits.  Its prepacked weights have to be fresh then: refresh
 * is run by all members, settle comes after it. */
bool cgs_gemm_separable(const cgs_device *d, const cgs_product *p);
bool cgs_gemm_is_fresh(const cgs_prepacked *k);
void cgs_gemm_refresh(cgs_device *d, const cgs_gemm *g, const void *B, cgs_prepacked *k);

/* Run by all members of a team (core/team.h), with complete inputs; ends with a barrier.  bias is
 * NULL exactly when the product was prepared without one; kept: prepacked B, or NULL. */
void cgs_gemm_run(cgs_device *d, cgs_gemm *g, void *C, const void *A, const void *B,
                  const float *bias, cgs_prepacked *kept);
/* The first rows only, fewer than M if the product is separable; and what of them may be left out,
 * see cgs_product. */
typedef struct cgs_gemm_part {
    size_t rows, tokens, unread, unread_columns;
} cgs_gemm_part;
void cgs_gemm_run_part(cgs_device *d, cgs_gemm *g, const cgs_gemm_part *part, void *C,
                       const void *A, const void *B, const float *bias, cgs_prepacked *kept);

/* What runs a product, and why not what is preferred to it. */
typedef struct cgs_gemm_choice {
    cgs_product p;
    const char *code, *why;
} cgs_gemm_choice;
/* Of the i-th product that was prepared on a CPU device; false after the last. */
bool cgs_gemm_choice_at(const cgs_device *d, int i, cgs_gemm_choice *out);

/* The best rate of a square product of this type on this device, FLOP/s: the reference for
 * everything else.  Takes about a second. */
cgs_status cgs_bench_gemm_peak(cgs_device *d, cgs_dtype type, double *flops);
int cgs_bench_gemm_side(const cgs_device *d); /* rows and columns of that product */

#endif /* CGS_OPS_CPU_GEMM_H */

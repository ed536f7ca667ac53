/* onednn.h - matrix products by oneDNN, versions 2 and 3.
 *
 * onednn.c is the only file that includes <dnnl.h>; a build with ONEDNN=0 takes
 * without_onednn.c in its place, which has no products at all.
 *
 * What a run changes (stream, handles of memory, scratchpad) belongs to a lane, and nothing else
 * is written: threads may run the same product at the same time, each in its own lane.  A run
 * uses the calling thread alone and leaves the number of OpenMP threads that its caller has set. */
#ifndef CGS_OPS_CPU_ONEDNN_H
#define CGS_OPS_CPU_ONEDNN_H

#include "core/cpu.h"
#include "ops/cpu/cpu.h"

typedef struct cgs_onednn cgs_onednn;                 /* the library, opened */
typedef struct cgs_onednn_product cgs_onednn_product; /* compiled for one shape */
typedef struct cgs_onednn_packed cgs_onednn_packed;   /* a right factor in a product's layout */

/* "3.7.2", or "not in this build" */
void cgs_onednn_version(char *text, size_t size);

/* Keeps oneDNN at or below an instruction set, whatever the processor says about itself; AMX means
 * no limit.  It obeys before its first use only: false when something in this process has used it
 * already and it goes beyond.  What people allow it by its own variable, ONEDNN_MAX_CPU_ISA, stays
 * a limit, too. */
bool cgs_onednn_limit(cgs_isa most);

/* *out is NULL in a build without oneDNN. */
cgs_status cgs_onednn_create(cgs_onednn **out, int lanes);
void cgs_onednn_destroy(cgs_onednn *o);

/* A product p that is a block of the product `whole`: A, B and C lie as they do there.  like: the
 * product whose layout of B this one has to read, or NULL for the one it likes best.
 * *out is NULL when oneDNN has no fast product of this kind.  Every other failure is one: another
 * way to multiply would give other bits.  Products end before the library does.  No lane may be
 * running meanwhile. */
cgs_status cgs_onednn_product_create(cgs_onednn_product **out, cgs_onednn *o, const cgs_product *p,
                                     const cgs_product *whole, const cgs_onednn_product *like);
void cgs_onednn_product_destroy(cgs_onednn_product *g);

/* Bytes of a right factor in this product's layout, 0 when it reads B as it is. */
size_t cgs_onednn_packed_bytes(const cgs_onednn_product *g);
/* Whether what was packed for one product can be read by the other. */
bool cgs_onednn_same_layout(const cgs_onednn_product *a, const cgs_onednn_product *b);

/* Memory for a packed right factor; only for products with packed bytes. */
cgs_status cgs_onednn_packed_create(cgs_onednn_packed **out, const cgs_onednn_product *g);
void cgs_onednn_packed_destroy(cgs_onednn_packed *k);

void cgs_onednn_pack(const cgs_onednn_product *g, int lane, cgs_onednn_packed *to, const void *B);

/* packed: B in the product's layout where that is wanted, else NULL.  bias is NULL exactly when
 * the product was created without one. */
void cgs_onednn_run(const cgs_onednn_product *g, int lane, void *C, const void *A, const void *B,
                    const cgs_onednn_packed *packed, const float *bias);

#endif /* CGS_OPS_CPU_ONEDNN_H */

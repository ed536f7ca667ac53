/* onednn.h - matrix products by oneDNN, versions 2 and 3.
 *
 * onednn.c is the only file that includes <dnnl.h>; a build with ONEDNN=0 takes
 * without_onednn.c in its place, which has no products at all.
 *
 * What a run changes (stream, memory handles, scratchpad) belongs to a lane, and nothing else is
 * written: threads may run the same product concurrently, each in its own lane.  A run uses the
 * calling thread alone and restores the caller's number of OpenMP threads. */
#ifndef CGS_OPS_CPU_ONEDNN_H
#define CGS_OPS_CPU_ONEDNN_H

#include "core/cpu.h"
#include "ops/cpu/cpu.h"

typedef struct cgs_onednn cgs_onednn;                 /* the library, opened */
typedef struct cgs_onednn_product cgs_onednn_product; /* compiled for one shape */
typedef struct cgs_onednn_packed cgs_onednn_packed;   /* a right factor in a product's layout */

/* "3.7.2", or "not in this build" */
void cgs_onednn_version(char *text, size_t size);

/* Limits oneDNN to an instruction set, whatever the processor announces; AMX means no limit.
 * Possible only before oneDNN's first use: false when something in this process has already used it
 * and it exceeds the limit.  Its own variable ONEDNN_MAX_CPU_ISA remains a limit, too. */
bool cgs_onednn_limit(cgs_isa most);

/* *out is NULL in a build without oneDNN. */
cgs_status cgs_onednn_create(cgs_onednn **out, int lanes);
void cgs_onednn_destroy(cgs_onednn *o);

/* A product p that is a block of the product `whole`: A, B and C have the same memory layout.
 * like: the product whose layout of B this one must read, or NULL for the preferred one.  *out is
 * NULL when oneDNN has no fast product of this kind.  Every other failure is an error, as another
 * method would give other bits.  Products are destroyed before the library.  No lane may be running
 * meanwhile. */
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

/* packed: B in the product's layout where that is needed, else NULL.  bias is NULL exactly when the
 * product was created without one. */
void cgs_onednn_run(const cgs_onednn_product *g, int lane, void *C, const void *A, const void *B,
                    const cgs_onednn_packed *packed, const float *bias);

#endif /* CGS_OPS_CPU_ONEDNN_H */

/* without_onednn.c - replaces onednn.c in builds with ONEDNN=0: there are no products, so nothing
 * is packed or run. */
#include <stdio.h>

#include "ops/cpu/onednn.h"

void cgs_onednn_version(char *text, size_t size) { snprintf(text, size, "not in this build"); }

bool cgs_onednn_limit(cgs_isa most) {
    (void)most;
    return true;
}

cgs_status cgs_onednn_create(cgs_onednn **out, int lanes) {
    (void)lanes;
    *out = NULL;
    return CGS_OK;
}

void cgs_onednn_destroy(cgs_onednn *o) { (void)o; }

cgs_status cgs_onednn_product_create(cgs_onednn_product **out, cgs_onednn *o, const cgs_product *p,
                                     const cgs_product *whole, const cgs_onednn_product *like) {
    (void)o, (void)p, (void)whole, (void)like;
    *out = NULL;
    return CGS_OK;
}

void cgs_onednn_product_destroy(cgs_onednn_product *g) { (void)g; }

size_t cgs_onednn_packed_bytes(const cgs_onednn_product *g) {
    (void)g;
    return 0;
}

bool cgs_onednn_same_layout(const cgs_onednn_product *a, const cgs_onednn_product *b) {
    return a == b;
}

cgs_status cgs_onednn_packed_create(cgs_onednn_packed **out, const cgs_onednn_product *g) {
    (void)g;
    *out = NULL;
    return cgs_fail(CGS_EDEVICE, "this build has no oneDNN");
}

void cgs_onednn_packed_destroy(cgs_onednn_packed *k) { (void)k; }

void cgs_onednn_pack(const cgs_onednn_product *g, int lane, cgs_onednn_packed *to, const void *B) {
    (void)g, (void)lane, (void)to, (void)B;
}

void cgs_onednn_run(const cgs_onednn_product *g, int lane, void *C, const void *A, const void *B,
                    const cgs_onednn_packed *packed, const float *bias) {
    (void)g, (void)lane, (void)C, (void)A, (void)B, (void)packed, (void)bias;
}

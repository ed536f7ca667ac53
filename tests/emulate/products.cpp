/* products.cpp - matrix products by loops, in place of src/ops/cuda/gemm.c and cuBLASLt. */
#include <cuda_runtime.h>
#include <stdlib.h>
extern "C" {
#include "ops/cuda/cuda.h"

struct cgs_cuda_blas {
    int none;
};
struct cgs_cuda_product {
    cgs_cuda_shape s;
};
cgs_status cgs_cuda_blas_open(cgs_cuda_blas **b) {
    *b = (cgs_cuda_blas *)calloc(1, sizeof **b);
    return CGS_OK;
}
void cgs_cuda_blas_close(cgs_cuda_blas *b) { free(b); }
cgs_status cgs_cuda_product_find(cgs_device *, const cgs_cuda_shape *s, bool,
                                 cgs_cuda_product **out) {
    *out = (cgs_cuda_product *)malloc(sizeof **out); /* lives as long as the program */
    (*out)->s = *s;
    return CGS_OK;
}
static float value(const void *p, cgs_dtype t, size_t i) {
    if (t == CGS_F32) return ((const float *)p)[i];
    uint32_t u = (uint32_t)((const uint16_t *)p)[i] << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}
void cgs_cuda_product_run(cgs_device *d, cgs_cuda_product *p, void *C, const void *A, const void *B,
                          const float *bias, const uint16_t *bias16) {
    emulate::enqueue(cgs_cuda_of(d)->stream, [=] {
        cgs_cuda_shape s = p->s;
        size_t a_row = s.a_transposed ? s.M : s.K, b_row = s.b_transposed ? s.K : s.N;
        std::vector<float> b(s.K * s.N), row(s.N), a(s.K);
        for (size_t k = 0; k < s.K; k++)
            for (size_t n = 0; n < s.N; n++)
                b[k * s.N + n] = value(B, s.in, s.b_transposed ? n * b_row + k : k * b_row + n);
        for (size_t m = 0; m < s.M; m++) {
            for (size_t k = 0; k < s.K; k++)
                a[k] = value(A, s.in, s.a_transposed ? k * a_row + m : m * a_row + k);
            for (size_t n = 0; n < s.N; n++) row[n] = 0;
            for (size_t k = 0; k < s.K; k++)
                for (size_t n = 0; n < s.N; n++) row[n] += a[k] * b[k * s.N + n];
            for (size_t n = 0; n < s.N; n++) {
                size_t i = m * s.N + n;
                float v = row[n];
                if (s.bias) v += bias16 && !bias ? value(bias16, CGS_BF16, n) : bias[n];
                if (s.accumulate) v += value(C, s.out, i);
                if (s.out == CGS_F32)
                    ((float *)C)[i] = v;
                else {
                    uint32_t u;
                    memcpy(&u, &v, 4);
                    ((uint16_t *)C)[i] = (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
                }
            }
        }
    });
}
}

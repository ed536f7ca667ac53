/* mma.cuh - products of small matrices on tensor cores, by whole warps.
 *
 * One product is mma.m16n8k16.  Lane l of a warp holds, of a 16 x 8 result, the pairs of
 * columns 2(l%4) in rows l/4 and l/4 + 8. */
#ifndef CGS_OPS_CUDA_PTX_MMA_CUH
#define CGS_OPS_CUDA_PTX_MMA_CUH

#include "ops/cuda/kernels.cuh"

typedef uint32_t regs4[4];

/* c (16,8) += a (16,16) b (16,8) */
static __device__ __forceinline__ void mma(float (&c)[4], const regs4 &a, uint32_t b0,
                                           uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* ldmatrix: four 8 x 8 matrices; lane l gives the address of row l%8 of matrix l/8 */
static __device__ __forceinline__ void ldmatrix_x4(regs4 &r, const bf16 *p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"((uint32_t)__cvta_generic_to_shared(p))
                 : "memory");
}
static __device__ __forceinline__ void ldmatrix_x4_trans(regs4 &r, const bf16 *p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"((uint32_t)__cvta_generic_to_shared(p))
                 : "memory");
}

/* cp.async: 16 bytes from global to shared memory, without waiting */
static __device__ __forceinline__ void cp_async_16(bf16 *to, const bf16 *from) {
    asm volatile(
        "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
        "l"(from)
        : "memory");
}
/* commit_group closes a group of copies; wait_group waits until at most N younger ones are pending.
 */
static __device__ __forceinline__ void cp_async_commit() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int N> __device__ __forceinline__ void cp_async_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

static __device__ __forceinline__ float exp2_fast(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
static __device__ __forceinline__ float reciprocal_fast(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* GELU and its derivative, exact form, for results that are rounded to bf16: the tail of the
 * normal distribution as a polynomial in t = 1 / (1 + p |x| / sqrt 2) times exp(-x^2 / 2)
 * (Abramowitz and Stegun 7.1.26), absolute error below 1e-7. */
static __device__ __forceinline__ void gelu_parts(float x, float *below, float *density) {
    float t = reciprocal_fast(fmaf(0.3275911f * 0.70710678f, fabsf(x), 1.0f));
    float e = exp2_fast(-0.72134752f * x * x);
    float tail =
        fmaf(t,
             fmaf(t,
                  fmaf(t, fmaf(t, 0.5f * 1.061405429f, 0.5f * -1.453152027f), 0.5f * 1.421413741f),
                  0.5f * -0.284496736f),
             0.5f * 0.254829592f) *
        t * e;
    *below = x >= 0 ? 1.0f - tail : tail;
    *density = 0.39894228f * e;
}
static __device__ __forceinline__ float gelu_rounded(float x) {
    float below, density;
    gelu_parts(x, &below, &density);
    return x * below;
}
static __device__ __forceinline__ float gelu_derivative_rounded(float x) {
    float below, density;
    gelu_parts(x, &below, &density);
    return fmaf(x, density, below);
}

#endif /* CGS_OPS_CUDA_PTX_MMA_CUH */

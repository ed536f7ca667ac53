/* wgmma.cuh - products of matrices on tensor cores by warpgroups (four warps), for compute
 * capability 9.0 alone.
 *
 * A product adds (64,16) times (16,N) to sums (64,N) in registers.  B lies in shared memory, A
 * there or in registers.  A matrix in shared memory has rows of 64 bf16, 128 bytes: 8 chunks of
 * 16 bytes, chunk c of row r at c ^ (r % 8), and its first row at a multiple of 1024 bytes.  Such
 * rows may be those of the operand (K-major: its inner index runs along a row) or its columns
 * (transposed, MN-major: the inner index counts rows).
 *
 * Registers: warp w of the group has rows 16 w .. 16 w + 15 of A and of the sums.  Lane l has of
 * the sums rows l/4 (elements 4 n, 4 n + 1) and l/4 + 8 (4 n + 2, 4 n + 3), columns
 * 8 n + 2 (l%4) and the next; of A the same for n = 0, 1, in pairs: so two neighbouring eights of
 * sums become A of the next product by rounding alone. */
#ifndef CGS_OPS_CUDA_PTX_WGMMA_CUH
#define CGS_OPS_CUDA_PTX_WGMMA_CUH

#include "ops/cuda/ptx/mma.cuh"

/* other targets get kernels that do nothing, and are never launched there */
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define CGS_HAS_WGMMA 1
#else
#define CGS_HAS_WGMMA 0
#endif

enum { WARPGROUP = 128 /* threads of a warpgroup */, ATOM = 1024 /* bytes of 8 rows */ };

/* The matrix descriptor of an operand in shared memory: its first row, a stride of 1024 bytes per 8
 * rows, and the 128-byte swizzle.  The leading dimension offset (bits 16 to 29), from 64 columns to
 * the next, is not needed: no operand here is wider. */
static __device__ __forceinline__ uint64_t smem_descriptor(const void *rows) {
    uint32_t at = (uint32_t)__cvta_generic_to_shared(rows);
    asm volatile("" : "+r"(at)); /* or the compiler keeps dozens of these in registers in a loop */
    return (uint64_t)((at & 0x3ffff) >> 4) | (uint64_t)1 << 16 | (uint64_t)(ATOM >> 4) << 32 |
           (uint64_t)1 << 62;
}
/* the next 16 of the inner index: along rows, or 16 rows on */
static __device__ __forceinline__ uint64_t advance_along_rows(uint64_t m, int step) {
    return m + (uint64_t)(step * 2);
}
static __device__ __forceinline__ uint64_t advance_down_rows(uint64_t m, int step) {
    return m + (uint64_t)(step * (2 * ATOM >> 4));
}

#if CGS_HAS_WGMMA

#define ACC_4(c, i) "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3])
#define ACC_8(c, i) ACC_4(c, i), ACC_4(c, i + 4)
#define ACC_16(c, i) ACC_8(c, i), ACC_8(c, i + 8)
#define ACC_32(c, i) ACC_16(c, i), ACC_16(c, i + 16)
#define ACC_40(c, i) ACC_32(c, i), ACC_8(c, i + 32)
#define ACC_48(c, i) ACC_32(c, i), ACC_16(c, i + 32)
#define ACC_64(c, i) ACC_32(c, i), ACC_32(c, i + 32)
#define ACC_96(c, i) ACC_64(c, i), ACC_32(c, i + 64)
#define NAMES_4 "%0,%1,%2,%3"
#define NAMES_8 NAMES_4 ",%4,%5,%6,%7"
#define NAMES_16 NAMES_8 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define NAMES_32 NAMES_16 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define NAMES_40 NAMES_32 ",%32,%33,%34,%35,%36,%37,%38,%39"
#define NAMES_48 NAMES_40 ",%40,%41,%42,%43,%44,%45,%46,%47"
#define NAMES_64 NAMES_48 ",%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define NAMES_96                                                                                   \
    NAMES_64 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,"                   \
             "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"

/* N columns, N/2 sums per lane; p0 .. are the operands' numbers, which follow those of the sums */
#define WGMMA_OF(N, H, p0, p1, p2, p3, p4, p5, p6)                                                 \
    template <bool TRANSPOSE_A, bool TRANSPOSE_B>                                                  \
    __device__ __forceinline__ void wgmma(float(&c)[H], uint64_t a, uint64_t b, bool add) {        \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #p2 ", 0;\n"                             \
                     "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.bf16.bf16 {" NAMES_##H        \
                     "}, %" #p0 ", %" #p1 ", p, 1, 1, %" #p3 ", %" #p4 ";\n}"                      \
                     : ACC_##H(c, 0)                                                               \
                     : "l"(a), "l"(b), "r"((int)add), "n"((int)TRANSPOSE_A), "n"((int)TRANSPOSE_B) \
                     : "memory");                                                                  \
    }                                                                                              \
    template <bool TRANSPOSE_B>                                                                    \
    __device__ __forceinline__ void wgmma(float(&c)[H], const regs4 &a, uint64_t b, bool add) {    \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #p5 ", 0;\n"                             \
                     "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.bf16.bf16 {" NAMES_##H        \
                     "}, {%" #p0 ", %" #p1 ", %" #p2 ", %" #p3 "}, %" #p4 ", p, 1, 1, %" #p6       \
                     ";\n}"                                                                        \
                     : ACC_##H(c, 0)                                                               \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)add),          \
                       "n"((int)TRANSPOSE_B)                                                       \
                     : "memory");                                                                  \
    }
WGMMA_OF(8, 4, 4, 5, 6, 7, 8, 9, 10)
WGMMA_OF(16, 8, 8, 9, 10, 11, 12, 13, 14)
WGMMA_OF(32, 16, 16, 17, 18, 19, 20, 21, 22)
WGMMA_OF(64, 32, 32, 33, 34, 35, 36, 37, 38)
WGMMA_OF(80, 40, 40, 41, 42, 43, 44, 45, 46)
WGMMA_OF(96, 48, 48, 49, 50, 51, 52, 53, 54)
WGMMA_OF(128, 64, 64, 65, 66, 67, 68, 69, 70)
WGMMA_OF(192, 96, 96, 97, 98, 99, 100, 101, 102)

/* Before the first wgmma of a group: orders it after accesses to its registers. */
static __device__ __forceinline__ void wgmma_fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
static __device__ __forceinline__ void wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/* Waits until at most N younger groups are pending. */
template <int N> __device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}
/* After a wait: the compiler may not read sums earlier. */
template <int H> __device__ __forceinline__ void wgmma_fence_registers(float (&c)[H]) {
#pragma unroll
    for (int i = 0; i < H; i++) asm volatile("" : "+f"(c[i])::"memory");
}

#endif /* CGS_HAS_WGMMA */

/* Makes what this thread wrote to shared memory visible to the async proxy (wgmma, cp.async.bulk);
 * a barrier has to follow. */
static __device__ __forceinline__ void fence_proxy_async() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* Named barriers (bar) of some of a block's threads, by number: 0 is that of __syncthreads. */
static __device__ __forceinline__ void bar_sync(int barrier, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
static __device__ __forceinline__ void bar_arrive(int barrier, int threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

#endif /* CGS_OPS_CUDA_PTX_WGMMA_CUH */

/* mbarrier.cuh - mbarrier objects and the asynchronous copies that complete on them: cp.async.bulk,
 * st.async (compute capability 9).
 *
 * An mbarrier in shared memory goes from phase to phase: a phase completes when the arrivals it was
 * initialised for have come and the expected transaction bytes (expect_tx) are there.  Waiters pass
 * the phase parity, so nobody may be two phases late. */
#ifndef CGS_OPS_CUDA_PTX_MBARRIER_CUH
#define CGS_OPS_CUDA_PTX_MBARRIER_CUH

#include "ops/cuda/ptx/cluster.cuh"

typedef uint64_t mbarrier;

static __device__ __forceinline__ uint32_t shared_address(const void *p) {
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* A barrier (bar.sync) has to follow before others use it. */
static __device__ __forceinline__ void mbarrier_init(mbarrier *c, int arrivals) {
#if CGS_HAS_CLUSTERS
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(c)), "r"(arrivals)
                 : "memory");
#endif
}
/* mbarriers that were initialised become visible to the async proxy */
static __device__ __forceinline__ void fence_mbarrier_init() {
#if CGS_HAS_CLUSTERS
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}
/* arrives, and expects this many bytes more */
static __device__ __forceinline__ void mbarrier_arrive_expect_tx(mbarrier *c, int bytes) {
#if CGS_HAS_CLUSTERS
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(c)),
                 "r"(bytes)
                 : "memory");
#endif
}
/* Waits for the phase of this parity; by whole warps, which are converged again after it. */
static __device__ __forceinline__ void mbarrier_wait_parity(mbarrier *c, uint32_t phase) {
#if CGS_HAS_CLUSTERS
    uint32_t at = shared_address(c), done;
    do {
        asm volatile("{\n.reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done)
                     : "r"(at), "r"(phase & 1)
                     : "memory");
    } while (!done);
    __syncwarp();
#endif
}

/* cp.async.bulk: bytes, a multiple of 16, from global memory to this block's shared memory */
static __device__ __forceinline__ void cp_async_bulk(void *to, const void *from, int bytes,
                                                     mbarrier *c) {
#if CGS_HAS_CLUSTERS
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], "
                 "%2, [%3];" ::"r"(shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(c))
                 : "memory");
#endif
}
/* ... to the L2 cache */
static __device__ __forceinline__ void cp_async_bulk_prefetch_l2(const void *from, int bytes) {
#if CGS_HAS_CLUSTERS
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
#endif
}

/* st.async: 16 bytes to another block of the cluster, completed on its mbarrier; both addresses as
 * mapa() gives them */
static __device__ __forceinline__ void st_async(uint32_t to, uint32_t a, uint32_t b, uint32_t c,
                                                uint32_t d, uint32_t barrier) {
#if CGS_HAS_CLUSTERS
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], "
                 "{%1, %2, %3, %4}, [%5];" ::"r"(to),
                 "r"(a), "r"(b), "r"(c), "r"(d), "r"(barrier)
                 : "memory");
#endif
}

/* adds one to a number in shared memory (atom.acq_rel), ordered with what threads did before and do
 * after */
static __device__ __forceinline__ uint32_t atomic_add_acq_rel(uint32_t *p) {
    uint32_t before = 0;
#if CGS_HAS_CLUSTERS
    asm volatile("atom.acq_rel.cta.shared::cta.add.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "r"(shared_address(p)), "r"(1)
                 : "memory");
#endif
    return before;
}

#endif /* CGS_OPS_CUDA_PTX_MBARRIER_CUH */

/* cluster.cuh - thread block clusters and their distributed shared memory (compute capability 9).
 */
#ifndef CGS_OPS_CUDA_PTX_CLUSTER_CUH
#define CGS_OPS_CUDA_PTX_CLUSTER_CUH

#include "ops/cuda/kernels.cuh"

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define CGS_HAS_CLUSTERS 1
#else
#define CGS_HAS_CLUSTERS 0
#endif

/* barrier.cluster.arrive and .wait by all threads of the cluster; what they wrote before is seen
 * after it.  Its release makes every thread wait until the whole GPU could see what it wrote, a
 * microsecond: for beginnings and ends. */
static __device__ __forceinline__ void cluster_sync() {
#if CGS_HAS_CLUSTERS
    __syncwarp(); /* .aligned: by whole warps */
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
#endif
}

static __device__ __forceinline__ int cluster_rank() {
    unsigned rank = 0;
#if CGS_HAS_CLUSTERS
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
    return (int)rank;
}

/* mapa: the shared::cluster address of the same place in another block of the cluster. */
static __device__ __forceinline__ uint32_t mapa(const void *p, int rank) {
    uint32_t there = 0;
#if CGS_HAS_CLUSTERS
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(there)
        : "r"((uint32_t)__cvta_generic_to_shared(p)), "r"(rank));
#endif
    return there;
}

#endif /* CGS_OPS_CUDA_PTX_CLUSTER_CUH */

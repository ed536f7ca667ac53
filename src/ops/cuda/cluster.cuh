/* cluster.cuh - blocks that read and write each other's shared memory (compute capability 9). */
#ifndef CGS_OPS_CUDA_CLUSTER_CUH
#define CGS_OPS_CUDA_CLUSTER_CUH

#include "ops/cuda/kernels.cuh"

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define CGS_HAS_CLUSTERS 1
#else
#define CGS_HAS_CLUSTERS 0
#endif

/* Waits for all threads of the cluster; what they wrote before is seen after it. */
static __device__ __forceinline__ void cluster_sync() {
#if CGS_HAS_CLUSTERS
    __syncwarp(); /* the barrier wants whole warps */
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
#endif
}

/* The two halves of it: what is between them must not need the others. */
static __device__ __forceinline__ void cluster_arrive() {
#if CGS_HAS_CLUSTERS
    __syncwarp();
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}
static __device__ __forceinline__ void cluster_wait() {
#if CGS_HAS_CLUSTERS
    __syncwarp();
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

static __device__ __forceinline__ int cluster_rank() {
    unsigned rank = 0;
#if CGS_HAS_CLUSTERS
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
    return (int)rank;
}

/* The same place in the shared memory of another block of the cluster. */
template <class T> __device__ __forceinline__ T *in_block(T *p, int rank) {
#if CGS_HAS_CLUSTERS
    uint64_t at = (uint64_t)p, there;
    asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(at), "r"(rank));
    return (T *)there;
#else
    return p;
#endif
}

#endif /* CGS_OPS_CUDA_CLUSTER_CUH */

/* layernorm.cuh - what kernels of norms share: a warp holds a whole row in registers, lane l has V
 * columns out of every 32 V, N times; and each block writes its sums over rows once. */
#ifndef CGS_OPS_CUDA_LAYERNORM_CUH
#define CGS_OPS_CUDA_LAYERNORM_CUH

#include "ops/cuda/kernels.cuh"

/* three blocks per multiprocessor of the largest GPUs run at the same time */
enum { WARPS = 8, MAX_BLOCKS = 3 * 132 };

template <int V, int N> static __device__ __forceinline__ int column(int lane, int i) {
    return (lane + 32 * i) * V;
}

/* to (D): the sum over the block's warps; shared (WARPS, D) may be in use until here */
template <int V, int N>
static __device__ __forceinline__ void write_sums(float *to, const float (&sum)[N][V],
                                                  float *shared, int D) {
    int lane = threadIdx.x;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < N; i++) {
        int c = column<V, N>(lane, i);
#pragma unroll
        for (int k = 0; k < V; k++)
            if (c < D) shared[threadIdx.y * D + c + k] = sum[i][k];
    }
    __syncthreads();
    for (int c = threadIdx.y * 32 + lane; c < D; c += 32 * WARPS) {
        float all = 0;
        for (int l = 0; l < WARPS; l++) all += shared[l * D + c];
        to[c] = all;
    }
}

static inline unsigned gradient_blocks(size_t rows) {
    unsigned blocks = blocks_for(rows, WARPS);
    return blocks < MAX_BLOCKS ? blocks : (unsigned)MAX_BLOCKS;
}

#endif /* CGS_OPS_CUDA_LAYERNORM_CUH */

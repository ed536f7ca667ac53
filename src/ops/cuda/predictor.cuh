/* predictor.cuh - products of a cluster of blocks: weights in the order of mma's registers,
 * activations in shared memory.
 *
 * A product is y = x W^T with W (N, K) as it is stored.  mma.m16n8k16 takes 16 rows of x from
 * shared memory and 8 rows of W from registers: lane l holds W[n0 + l/4][k0 + 2(l%4) + 0, 1, 8, 9].
 * Packed weights hold that for two steps of 16 in 16 bytes a lane, so a warp reads 512 bytes in a
 * row.  They are read once, long before they are needed, and serve all rows. */
#ifndef CGS_OPS_CUDA_PREDICTOR_CUH
#define CGS_OPS_CUDA_PREDICTOR_CUH

#include "ops/cuda/cluster.cuh"

namespace {

enum { WARPS = 8, THREADS = 32 * WARPS };

__device__ __forceinline__ void mma_tile(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                         uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* 16 rows and 16 columns of x; p: this lane's row (l % 16), columns from 8 (l / 16) */
__device__ __forceinline__ void load_a(uint32_t (&r)[4], const bf16 *p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"((uint32_t)__cvta_generic_to_shared(p))
                 : "memory");
}

/* volatile keeps the load where it stands: before the barrier it hides behind */
__device__ __forceinline__ uint4 load_packed(const uint4 *p) {
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p));
    return v;
}

/* Weights of NT tiles of 8 outputs, 32 KP inputs; row: pairs of steps that a tile has in all. */
template <int NT, int KP> struct weights {
    uint4 b[NT][KP];
    template <class F> __device__ __forceinline__ void fetch(const uint4 *W, int row, int pair, F tile) {
#pragma unroll
        for (int n = 0; n < NT; n++)
#pragma unroll
            for (int k = 0; k < KP; k++)
                b[n][k] = load_packed(W + ((size_t)tile(n) * row + pair + k) * 32 + threadIdx.x % 32);
    }
};

/* For each of `tiles` tiles of 16 rows of x (stride elements apart) from tile0 on: the products
 * with all NT tiles of outputs.  end(row, n, c): c holds outputs 2(l%4) + 0, 1 of tile n for row
 * `row` and, behind them, for row + 8; row already has the lane's l/4 in it. */
template <int NT, int KP, class F>
__device__ __forceinline__ void products(const weights<NT, KP> &w, const bf16 *x, int stride,
                                         int tile0, int tiles, F end) {
    int lane = threadIdx.x % 32;
    for (int t = tile0; t < tile0 + tiles; t++) {
        const bf16 *from = x + (size_t)(16 * t + lane % 16) * stride + lane / 16 * 8;
        float c[NT][4] = {};
#pragma unroll
        for (int k = 0; k < KP; k++) {
            uint32_t a[4];
            load_a(a, from + 32 * k);
#pragma unroll
            for (int n = 0; n < NT; n++) mma_tile(c[n], a, w.b[n][k].x, w.b[n][k].y);
            load_a(a, from + 32 * k + 16);
#pragma unroll
            for (int n = 0; n < NT; n++) mma_tile(c[n], a, w.b[n][k].z, w.b[n][k].w);
        }
#pragma unroll
        for (int n = 0; n < NT; n++) end(16 * t + lane / 4, n, c[n]);
    }
}

/* W (N, K) into the order above; a block takes a tile of 8 outputs */
__global__ void __launch_bounds__(THREADS) pack_weights(uint4 *to, const uint16_t *W, int K) {
    int pairs = K / 32;
    for (int i = threadIdx.x; i < pairs * 32; i += THREADS) {
        int lane = i % 32, pair = i / 32;
        const uint16_t *from = W + (size_t)(blockIdx.x * 8 + lane / 4) * K + pair * 32 + 2 * (lane % 4);
        uint32_t v[4];
        for (int q = 0; q < 4; q++) v[q] = from[8 * q] | (uint32_t)from[8 * q + 1] << 16;
        to[((size_t)blockIdx.x * pairs + pair) * 32 + lane] = make_uint4(v[0], v[1], v[2], v[3]);
    }
}

} // namespace

#endif /* CGS_OPS_CUDA_PREDICTOR_CUH */

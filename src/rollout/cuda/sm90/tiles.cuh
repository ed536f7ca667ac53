/* tiles.cuh - what a CTA of tiles.cu works with: rows in registers, a ring of weights in shared
 * memory.
 *
 * A warpgroup has 64 plans of one token.  Its sums of a product with 192 outputs are the token's
 * residual rows: weights are packed so that a lane's sums are runs of four neighbouring columns.
 * Sums 8 i + 2 h, + 1, + 4, + 5 of a lane are columns 16 i + 4 (l%4) on of row l/4 + 8 h. */
#ifndef CGS_ROLLOUT_CUDA_SM90_TILES_CUH
#define CGS_ROLLOUT_CUDA_SM90_TILES_CUH

#include "ops/cuda/clocks.cuh"
#include "ops/cuda/ptx/mbarrier.cuh"
#include "ops/cuda/ptx/wgmma.cuh"

extern "C" {
#include "rollout/cuda/predictor.h"
}

namespace {

enum { D = 192, HEADS = 16, WIDTH = 64, INNER = HEADS * WIDTH, HIDDEN = 2048 };
enum { TOKENS = 3, PLANS = 64, THREADS = TOKENS * WARPGROUP };

/* A slab of weights: 64 outputs of 192 inputs in three pieces of 64 inputs, or 192 outputs of 64
 * inputs; after it a factor and an addend for each of 64 outputs. */
enum { SLAB = 64 * D * 2, PIECE = 64 * 64 * 2, EXTRA = 2 * 64 * 4, PACKED = SLAB + EXTRA };
enum { SLOTS = 5 };
enum {
    HEAD_SLABS = 4, /* q, k, v, output */
    UNIT_SLABS = 2, /* in, out         */
    MLP_SLABS = HIDDEN / 64 * UNIT_SLABS,
    LAYER_SLABS = HEADS * HEAD_SLABS + MLP_SLABS,
};

struct layer_vectors {
    const float *attn_norm_w, *attn_norm_b, *out_b, *mlp_norm_w, *mlp_norm_b, *down_b;
};

struct tiles_task {
    int rows, K, C, H, N, T, layers;
    float ada_eps, norm_eps;
    const unsigned char *slabs; /* (layers LAYER_SLABS + MLP_SLABS, PACKED) in the order of use */
    layer_vectors layer[CGS_PREDICTOR_LAYERS];
    const float *pos, *norm_w, *norm_b, *proj_out_b;
    const float *z, *goal, *modulation;
    float *cost, *latents;
    uint4 *cache;       /* KV: (CTAs, layers, HEADS, TOKENS - 1, 8, WARPGROUP), bf16 */
    float4 *row_memory; /* (CTAs, 2 TOKENS, D / 4, ... ) residual rows, latents: see rows_at */
};

struct tile_smem {
    unsigned char x[TOKENS][PLANS * D * 2]; /* what enters products: pieces of 64 columns */
    unsigned char slab[SLOTS][SLAB];
    uint4 keys[TOKENS - 1][8][WARPGROUP]; /* a thread's keys and values of its two plans */
    float extra[SLOTS][EXTRA / 4];
    mbarrier full[SLOTS];
    uint32_t released[SLOTS];
};

typedef float row_sums[96];

__device__ __forceinline__ float4 run_of(const row_sums &v, int i, int h) {
    return make_float4(v[8 * i + 2 * h], v[8 * i + 2 * h + 1], v[8 * i + 2 * h + 4],
                       v[8 * i + 2 * h + 5]);
}
__device__ __forceinline__ void set_run(row_sums &v, int i, int h, const float4 &f) {
    v[8 * i + 2 * h] = f.x;
    v[8 * i + 2 * h + 1] = f.y;
    v[8 * i + 2 * h + 4] = f.z;
    v[8 * i + 2 * h + 5] = f.w;
}
__device__ __forceinline__ float4 read4(const float *p) {
    return *reinterpret_cast<const float4 *>(p);
}

/* over the four lanes that share a row */
__device__ __forceinline__ float quad_sum(float v) {
    v += __shfl_xor_sync(0xffffffffu, v, 1);
    return v + __shfl_xor_sync(0xffffffffu, v, 2);
}

__device__ __forceinline__ void normalise(row_sums &v, float eps) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float sum = 0, square = 0;
#pragma unroll
        for (int i = 0; i < 12; i++) {
            float4 f = run_of(v, i, h);
            sum += (f.x + f.y) + (f.z + f.w);
        }
        float mean = quad_sum(sum) / D;
#pragma unroll
        for (int i = 0; i < 12; i++) {
            float4 f = run_of(v, i, h);
            f.x -= mean, f.y -= mean, f.z -= mean, f.w -= mean;
            square += (f.x * f.x + f.y * f.y) + (f.z * f.z + f.w * f.w);
            set_run(v, i, h, f);
        }
        float rstd = 1.0f / sqrtf(quad_sum(square) / D + eps);
#pragma unroll
        for (int i = 0; i < 12; i++) {
            float4 f = run_of(v, i, h);
            set_run(v, i, h, make_float4(f.x * rstd, f.y * rstd, f.z * rstd, f.w * rstd));
        }
    }
}

/* v = v (one + scale) + shift, of the row h; the vectors begin at this lane's columns */
__device__ __forceinline__ void scale_shift(row_sums &v, int h, const float *scale,
                                            const float *shift, float one) {
#pragma unroll
    for (int i = 0; i < 12; i++) {
        float4 f = run_of(v, i, h), s = read4(scale + 16 * i), t = read4(shift + 16 * i);
        set_run(v, i, h,
                make_float4(f.x * (one + s.x) + t.x, f.y * (one + s.y) + t.y,
                            f.z * (one + s.z) + t.z, f.w * (one + s.w) + t.w));
    }
}

/* rounded, into x (64 rows in the order of products) */
__device__ __forceinline__ void store_operand(unsigned char *x, const row_sums &v) {
    int lane = threadIdx.x % 32, q = lane % 4, r = lane / 4;
    unsigned char *at = x + threadIdx.x % WARPGROUP / 32 * 2 * ATOM + r * 128 + q % 2 * 8;
#pragma unroll
    for (int i = 0; i < 12; i++) {
        int chunk = (2 * (i % 4) + q / 2) ^ r;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float4 f = run_of(v, i, h);
            *reinterpret_cast<uint2 *>(at + i / 4 * PIECE + h * ATOM + chunk * 16) =
                make_uint2(pack(f.x, f.y), pack(f.z, f.w));
        }
    }
}

/* a thread's part of 64 rows in memory, which it alone writes and reads: 24 runs of four columns */
__device__ __forceinline__ float4 *rows_at(const tiles_task &p, int which) {
    return p.row_memory + ((size_t)blockIdx.x * 2 * TOKENS + which) * (D / 4) * (WARPGROUP / 2) +
           threadIdx.x % WARPGROUP;
}
__device__ __forceinline__ void store_rows(float4 *to, const row_sums &v) {
#pragma unroll
    for (int i = 0; i < 12; i++)
#pragma unroll
        for (int h = 0; h < 2; h++) to[(2 * i + h) * WARPGROUP] = run_of(v, i, h);
}
__device__ __forceinline__ void load_rows(row_sums &v, const float4 *from) {
#pragma unroll
    for (int i = 0; i < 12; i++)
#pragma unroll
        for (int h = 0; h < 2; h++) set_run(v, i, h, from[(2 * i + h) * WARPGROUP]);
}

/* ---- the ring: slab s of a rollout lies in slot s % SLOTS ------------------------------------ */

/* asks for slab s; by one thread, when its slot is free */
__device__ __forceinline__ void fetch_slab(const tiles_task &p, tile_smem &m, int s) {
    int slot = s % SLOTS, position = s % (p.layers * LAYER_SLABS + MLP_SLABS);
    const unsigned char *from = p.slabs + (size_t)position * PACKED;
    mbarrier_arrive_expect_tx(&m.full[slot], PACKED);
    cp_async_bulk(m.slab[slot], from, SLAB, &m.full[slot]);
    cp_async_bulk(m.extra[slot], from + SLAB, EXTRA, &m.full[slot]);
}
__device__ __forceinline__ void await(tile_smem &m, int s) {
    mbarrier_wait_parity(&m.full[s % SLOTS], (uint32_t)(s / SLOTS));
}
/* This warp needs slab s no more; `groups` warpgroups used it.  The last to say so asks for the
 * slab that follows in the slot: nobody has to wait for that. */
__device__ __forceinline__ void release(const tiles_task &p, tile_smem &m, int s, int groups) {
    int slot = s % SLOTS;
    __syncwarp();
    if (threadIdx.x % 32 == 0 &&
        atomic_add_acq_rel(&m.released[slot]) + 1 == 4 * (uint32_t)groups) {
        m.released[slot] = 0;
        if (s + SLOTS < p.H * (p.layers * LAYER_SLABS + MLP_SLABS)) fetch_slab(p, m, s + SLOTS);
    }
    __syncwarp(); /* products need whole warps */
}

#if CGS_HAS_WGMMA

/* c = x W^T for the 64 outputs of slab s */
__device__ __forceinline__ void into_units(float (&c)[32], tile_smem &m, int token, int s) {
    uint64_t x = smem_descriptor(m.x[token]), w = smem_descriptor(m.slab[s % SLOTS]);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < D / 16; k++) {
        int piece = k / 4 * (PIECE >> 4);
        wgmma<false, false>(c, advance_along_rows(x + piece, k % 4),
                            advance_along_rows(w + piece, k % 4), k > 0);
    }
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_fence_registers(c);
}
/* y (+)= a W^T for the 64 inputs of slab s.  It is waited for at once: other warpgroups use the
 * tensor cores meanwhile, and registers for two products at a time are not there. */
__device__ __forceinline__ void into_rows(row_sums &y, const uint32_t (&a)[4][4], tile_smem &m,
                                          int s, bool add) {
    uint64_t w = smem_descriptor(m.slab[s % SLOTS]);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < 4; k++) wgmma<false>(y, a[k], advance_along_rows(w, k), add || k > 0);
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_fence_registers(y);
}

#endif

} // namespace

#endif /* CGS_ROLLOUT_CUDA_SM90_TILES_CUH */

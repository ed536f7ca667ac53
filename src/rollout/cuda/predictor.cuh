/* predictor.cuh - products of a cluster of CTAs: weights in the order of mma's registers,
 * activations in shared memory.
 *
 * A product is y = x W^T with W (N, K) as it is stored.  mma.m16n8k16 takes 16 rows of x from
 * shared memory and 8 rows of W from registers: lane l holds W[n0 + l/4][k0 + 2(l%4) + 0, 1, 8, 9].
 * Packed weights hold that for two steps of 16 in 16 bytes per lane, so a warp reads 512 contiguous
 * bytes. */
#ifndef CGS_ROLLOUT_CUDA_PREDICTOR_CUH
#define CGS_ROLLOUT_CUDA_PREDICTOR_CUH

#include "ops/cuda/ptx/cluster.cuh"

extern "C" {
#include "rollout/cuda/predictor.h"
}

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

/* Weights of NT tiles of 8 outputs, 32 KP inputs. */
template <int NT, int KP> struct weights { uint4 b[NT][KP]; };

/* The tiles of 16 rows that have rows `first` to `end` of x. */
struct row_tiles {
    int from, to;
    __device__ row_tiles(int first, int end) : from(first / 16), to((end + 15) / 16) {}
};

/* For each of these tiles of x (rows `stride` elements apart): the products with all NT tiles of
 * outputs.  end(row, c): c[n] holds outputs 2(l%4) + 0, 1 of tile n for row `row` and, after them,
 * for row + 8; row already has the lane's l/4 in it. */
template <int NT, int KP, class F>
__device__ __forceinline__ void products(const weights<NT, KP> &w, const bf16 *x, int stride,
                                         row_tiles tiles, F end) {
    int lane = threadIdx.x % 32;
    for (int t = tiles.from; t < tiles.to; t++) {
        const bf16 *from = x + (size_t)(16 * t + lane % 16) * stride + lane / 16 * 8;
        float c[NT][4] = {};
        uint32_t a[3][4]; /* two steps ahead: a warp waits longer for rows than for products */
        load_a(a[0], from);
        load_a(a[1], from + 16);
#pragma unroll
        for (int k = 0; k < 2 * KP; k++) {
            if (k + 2 < 2 * KP) load_a(a[(k + 2) % 3], from + 16 * (k + 2));
#pragma unroll
            for (int n = 0; n < NT; n++) {
                const uint4 &b = w.b[n][k / 2];
                mma_tile(c[n], a[k % 3], k % 2 ? b.z : b.x, k % 2 ? b.w : b.y);
            }
        }
        end(16 * t + lane / 4, c);
    }
}

/* W (N, K) into the order above; a CTA takes a tile of 8 outputs */
__global__ void __launch_bounds__(THREADS) pack_weights(uint4 *to, const uint16_t *W, int K) {
    int pairs = K / 32;
    for (int i = threadIdx.x; i < pairs * 32; i += THREADS) {
        int lane = i % 32, pair = i / 32;
        const uint16_t *from =
            W + (size_t)(blockIdx.x * 8 + lane / 4) * K + pair * 32 + 2 * (lane % 4);
        uint32_t v[4];
        for (int q = 0; q < 4; q++) v[q] = from[8 * q] | (uint32_t)from[8 * q + 1] << 16;
        to[((size_t)blockIdx.x * pairs + pair) * 32 + lane] = make_uint4(v[0], v[1], v[2], v[3]);
    }
}

/* the same of W transposed: (K, N); a CTA takes 8 columns of W (N, K) */
__global__ void __launch_bounds__(THREADS)
    pack_transposed(uint4 *to, const uint16_t *W, int N, int K) {
    int pairs = N / 32;
    for (int i = threadIdx.x; i < pairs * 32; i += THREADS) {
        int lane = i % 32, pair = i / 32;
        const uint16_t *from =
            W + (size_t)(pair * 32 + 2 * (lane % 4)) * K + blockIdx.x * 8 + lane / 4;
        uint32_t v[4];
        for (int q = 0; q < 4; q++)
            v[q] = from[(size_t)8 * q * K] | (uint32_t)from[(size_t)(8 * q + 1) * K] << 16;
        to[((size_t)blockIdx.x * pairs + pair) * 32 + lane] = make_uint4(v[0], v[1], v[2], v[3]);
    }
}

/* ---- the predictor --------------------------------------------------------------------------- */

enum { D = 192, HEADS = 16, WIDTH = 64, INNER = HEADS * WIDTH, HIDDEN = 2048, MOST_TOKENS = 4 };
enum { X_ROW = D + 8 }; /* of rows that enter products, in elements: without bank conflicts */
enum { PAIRS_D = D / 32, PAIRS_INNER = INNER / 32, PAIRS_HIDDEN = HIDDEN / 32 };

struct layer_vectors {
    const float *attn_norm_w, *attn_norm_b, *out_b;
    const float *mlp_norm_w, *mlp_norm_b, *in_b, *down_b;
};

/* Packed weights; for products with gradients transposed ones, whose rows are inputs. */
struct packed_layer {
    const uint4 *qkv, *out, *in, *down;
};
struct packed_weights {
    int layers;
    packed_layer layer[CGS_PREDICTOR_LAYERS];
    const uint4 *proj_in, *proj_out;
};

/* What forward saves for backward; rows are padded plans. */
struct saved_pass {
    const uint4 *slabs;       /* of transposed weights */
    float *x1, *x2, *y1, *y2; /* (H, layers, rows, N, D) residual rows, what sub-modules gave */
    float *qkv;               /* (H, layers, HEADS, rows, N, 3 WIDTH) */
    float *pre;               /* (H, layers, rows, N, HIDDEN) before GELU */
    float *last;              /* (H, rows, D) before the final norm */
    float *projected;         /* (H, rows, HIDDEN) before batch norm */
    float *latents;           /* (H, rows, D) */
    float *gradient;          /* as modulation */
    size_t rows;
};

struct task {
    int rows, K, C, H, N, T, layers;
    int R;         /* plans of a cluster, at most 16 */
    int slots;     /* of weight_ring.cuh */
    bool barriers; /* of the cluster, after every wait: see exchange.cuh */
    float ada_eps, norm_eps;
    const uint4 *slabs; /* of weights, in the order of use: weight_ring.cuh */
    layer_vectors layer[CGS_PREDICTOR_LAYERS];
    const float *pos, *norm_w, *norm_b;
    const float *proj_in_b, *proj_out_b;
    const float *proj_scale, *proj_shift; /* (HIDDEN) each: the batch norm between them */
    const float *z, *goal, *modulation;
    float *cost, *latents;
    float *cache; /* KV: (layers, HEADS, padded rows, N - 1, 2 WIDTH) */
    size_t cache_rows;
    saved_pass saved;
};

/* sizes that depend on the number of CTAs in a cluster */
template <int S> struct shape {
    enum {
        OWN = 16 / S, /* heads, and plans of 16 */
        UNITS = HIDDEN / S,
        QKV_TILES = 3 * WIDTH / 8 / WARPS, /* of a warp, for one head */
        IN_TILES = 2, /* ... for a chunk of hidden units, of which it has OWN */
        OUT_TILES = D / 8 / WARPS,
        OUT_PAIRS = OWN * WIDTH / 32,
        DOWN_PAIRS = UNITS / 32,
        QKV_ROW = 3 * WIDTH + 8,
        A_ROW = OWN * WIDTH + 8,
        H_ROW = UNITS + 8,
    };
};

/* rows of all tokens of a window, in whole tiles */
inline __host__ __device__ int padded_rows(int N, int R) { return (N * R + 15) / 16 * 16; }

/* The plans of a cluster: R rows per token, of which the first `existing` are plans. */
struct cluster_plans {
    int R, existing;
    unsigned part; /* of 65536: no divisions */
    size_t row0;   /* the first plan's number */
    __device__ cluster_plans(const task &p, int S)
        : R(p.R), part(65536u / (unsigned)p.R + 1), row0((size_t)(blockIdx.x / (unsigned)S) * p.R) {
        existing = p.rows - (int)row0 < R ? p.rows - (int)row0 : R;
    }
    __device__ int plan(int row) const { return row - token(row) * R; }
    __device__ int token(int row) const { return (int)((unsigned)row * part >> 16); }
};

/* The projector's batch norm as a factor and what is added, (HIDDEN) each. */
__global__ void __launch_bounds__(THREADS)
    settle_norm(float *scale, float *shift, const float *weight, const float *bias,
                const float *mean, const float *var, float eps) {
    int u = (int)(blockIdx.x * THREADS + threadIdx.x);
    if (u >= HIDDEN) return;
    scale[u] = weight[u] / sqrtf(var[u] + eps);
    shift[u] = bias[u] - mean[u] * scale[u];
}

/* what stands between a product and GELU: of units u and u + 1 of the projector its batch norm */
struct unit_norm {
    float2 scale, shift;
    __device__ __forceinline__ unit_norm() {}
    __device__ __forceinline__ unit_norm(const task &p, bool project, int u)
        : scale(make_float2(1, 1)), shift(make_float2(0, 0)) {
        if (!project) return;
        scale = *reinterpret_cast<const float2 *>(p.proj_scale + u);
        shift = *reinterpret_cast<const float2 *>(p.proj_shift + u);
    }
    __device__ __forceinline__ float2 of(float2 v) const {
        return make_float2(v.x * scale.x + shift.x, v.y * scale.y + shift.y);
    }
};

/* ---- rows: lane l has columns 64 j + 2 l and the next of j = 0, 1, 2 ------------------------- */

typedef float2 row_values[3];

__device__ __forceinline__ void read_row(row_values &v, const float *p) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < 3; j++) v[j] = *reinterpret_cast<const float2 *>(p + 64 * j + 2 * lane);
}
__device__ __forceinline__ void write_row(float *p, const row_values &v) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < 3; j++) *reinterpret_cast<float2 *>(p + 64 * j + 2 * lane) = v[j];
}

/* Centres and scales v; returns 1 / its deviation.  Both sums are made at the same time: a row's
 * owner has nothing else to do while it waits for them. */
__device__ __forceinline__ float normalise(row_values &v, float eps) {
    float sum = 0, square = 0;
#pragma unroll
    for (int j = 0; j < 3; j++) {
        sum += v[j].x + v[j].y;
        square += v[j].x * v[j].x + v[j].y * v[j].y;
    }
    float mean = warp_sum(sum) * (1.0f / D);
    float rstd = rsqrtf(fmaxf(warp_sum(square) * (1.0f / D) - mean * mean, 0.0f) + eps);
#pragma unroll
    for (int j = 0; j < 3; j++) {
        v[j].x = (v[j].x - mean) * rstd;
        v[j].y = (v[j].y - mean) * rstd;
    }
    return rstd;
}

/* v = v (one + scale) + shift, element by element */
__device__ __forceinline__ void scale_shift(row_values &v, const row_values &scale,
                                            const row_values &shift, float one) {
#pragma unroll
    for (int j = 0; j < 3; j++) {
        v[j].x = v[j].x * (one + scale[j].x) + shift[j].x;
        v[j].y = v[j].y * (one + scale[j].y) + shift[j].y;
    }
}

/* where a residual row is saved */
__device__ __forceinline__ size_t saved_at(const task &p, int step, int layer, size_t row,
                                           int token) {
    return ((((size_t)step * p.layers + layer) * p.saved.rows + row) * p.N + token);
}

/* where the modulations of a layer begin for token `at` of a plan's actions */
__device__ __forceinline__ size_t modulation_at(const task &p, int layer, size_t row, int at) {
    return ((row * p.T + at) * p.layers + layer) * 6 * D;
}

} // namespace

#endif /* CGS_ROLLOUT_CUDA_PREDICTOR_CUH */

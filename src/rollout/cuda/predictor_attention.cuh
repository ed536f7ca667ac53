/* predictor_attention.cuh - attention of one head over the window of every plan of a cluster, the
 * KV cache for later steps, and q, k, v saved for backward.
 *
 * q, k, v are rows of shared memory: fresh tokens first, keys and values of older ones after. */
#ifndef CGS_ROLLOUT_CUDA_PREDICTOR_ATTENTION_CUH
#define CGS_ROLLOUT_CUDA_PREDICTOR_ATTENTION_CUH

#include "ops/cuda/ptx/mma.cuh"
#include "rollout/cuda/predictor.cuh"

namespace {

enum { QKV_ROW = shape<16>::QKV_ROW };

/* keys and values of a token of the window in the KV cache */
__device__ __forceinline__ float *kv_cache_at(const task &p, int layer, int head, size_t row,
                                              int token) {
    return p.cache +
           ((((size_t)layer * HEADS + head) * p.cache_rows + row) * (p.N - 1) + token) * 2 * WIDTH;
}

/* starts copying those of older tokens; waited for by cp_async_wait<0> and a barrier */
__device__ void load_kv_cache(const task &p, int layer, int head, float *qkv, cluster_plans c,
                              int old, int fresh) {
    const int chunks = 2 * WIDTH / 4;
    for (int i = threadIdx.x; i < old * c.R * chunks; i += THREADS) {
        int part = i % chunks, plan = c.plan(i / chunks), token = c.token(i / chunks);
        if (plan >= c.existing) continue;
        float *to = qkv + (size_t)((fresh + token) * c.R + plan) * QKV_ROW + WIDTH + 4 * part;
        cp_async_16((bf16 *)to,
                    (const bf16 *)(kv_cache_at(p, layer, head, c.row0 + plan, token) + 4 * part));
    }
    cp_async_commit();
}

/* stores those of the fresh tokens, which are tokens `old` on of the window */
__device__ void store_kv_cache(const task &p, int layer, int head, const float *qkv,
                               cluster_plans c, int old, int fresh) {
    const int chunks = 2 * WIDTH / 4;
    for (int i = threadIdx.x; i < fresh * c.R * chunks; i += THREADS) {
        int part = i % chunks, plan = c.plan(i / chunks), token = c.token(i / chunks);
        if (plan >= c.existing) continue;
        const float *from = qkv + (size_t)(token * c.R + plan) * QKV_ROW + WIDTH + 4 * part;
        float *to = kv_cache_at(p, layer, head, c.row0 + plan, old + token) + 4 * part;
        *reinterpret_cast<float4 *>(to) = *reinterpret_cast<const float4 *>(from);
    }
}

/* where q, k, v of a plan's first token are saved for backward */
__device__ __forceinline__ float *saved_qkv(const task &p, int step, int layer, int head,
                                            size_t row) {
    return p.saved.qkv + ((((size_t)step * p.layers + layer) * HEADS + head) * p.saved.rows + row) *
                             p.N * 3 * WIDTH;
}
__device__ void save_qkv(const task &p, int step, int layer, int head, const float *qkv,
                         cluster_plans c, int w) {
    const int chunks = 3 * WIDTH / 4;
    for (int i = threadIdx.x; i < w * c.R * chunks; i += THREADS) {
        int part = i % chunks, plan = c.plan(i / chunks), token = c.token(i / chunks);
        if (plan >= c.existing) continue;
        const float *from = qkv + (size_t)(token * c.R + plan) * QKV_ROW + 4 * part;
        float *to = saved_qkv(p, step, layer, head, c.row0 + plan) + token * 3 * WIDTH + 4 * part;
        *reinterpret_cast<float4 *>(to) = *reinterpret_cast<const float4 *>(from);
    }
}

/* Queries of the newest `asked` of W tokens, of which `fresh` are new; a: (rows, stride).  Eight
 * lanes take one query of one plan, all keys at the same time. */
template <int W>
__device__ __forceinline__ void attend_window(bf16 *a, int stride, const float *qkv,
                                              cluster_plans c, int fresh, int asked) {
    int lane = threadIdx.x % 32, part = lane % 8 * 8, tasks = c.R * asked, old = W - fresh;
    for (int base = (int)threadIdx.x / 32 * 4; base < tasks; base += 4 * WARPS) {
        const bool any = base + lane / 8 < tasks;
        int t = any ? base + lane / 8 : tasks - 1; /* lanes without a task help with the last */
        int plan = c.plan(t), token = W - asked + c.token(t);
        const float *own = qkv + (size_t)plan * QKV_ROW + part;
        size_t token_row = (size_t)c.R * QKV_ROW;
        float q[8], k[W][8], dot[W], most = -INFINITY, sum = 0, o[8] = {};
        auto row_of = [&](int j) {
            return own + (size_t)(j < old ? fresh + j : j - old) * token_row;
        };
        load<8>(q, own + (size_t)(token - old) * token_row);
#pragma unroll
        for (int j = 0; j < W; j++) {
            load<8>(k[j], row_of(j) + WIDTH);
            dot[j] = 0;
#pragma unroll
            for (int i = 0; i < 8; i++) dot[j] += q[i] * k[j][i];
        }
#pragma unroll
        for (int o8 = 4; o8 > 0; o8 >>= 1)
#pragma unroll
            for (int j = 0; j < W; j++) dot[j] += __shfl_xor_sync(0xffffffffu, dot[j], o8);
#pragma unroll
        for (int j = 0; j < W; j++) {
            dot[j] = j <= token ? dot[j] * 0.125f : -INFINITY; /* 1 / sqrt(WIDTH) */
            most = fmaxf(most, dot[j]);
            load<8>(k[j], row_of(j) + 2 * WIDTH);
        }
#pragma unroll
        for (int j = 0; j < W; j++) {
            float e = exp2_fast((dot[j] - most) * 1.44269504f);
            sum += e;
#pragma unroll
            for (int i = 0; i < 8; i++) o[i] += e * k[j][i];
        }
        float inverse = __fdividef(1.0f, sum);
#pragma unroll
        for (int i = 0; i < 8; i++) o[i] *= inverse;
        if (any) store<8>(a + (size_t)((token - old) * c.R + plan) * stride + part, o);
    }
}
/* ... of w */
__device__ __forceinline__ void attend(bf16 *a, int stride, const float *qkv, cluster_plans c,
                                       int w, int fresh, int asked) {
    static_assert(MOST_TOKENS == 4, "a case for every window");
    switch (w) {
    case 1: attend_window<1>(a, stride, qkv, c, fresh, asked); break;
    case 2: attend_window<2>(a, stride, qkv, c, fresh, asked); break;
    case 3: attend_window<3>(a, stride, qkv, c, fresh, asked); break;
    default: attend_window<4>(a, stride, qkv, c, fresh, asked); break;
    }
}

} // namespace

#endif /* CGS_ROLLOUT_CUDA_PREDICTOR_ATTENTION_CUH */

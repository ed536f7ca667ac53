/* predictor_back_parts.cuh - what the backward pass of predictor_back.cuh does besides products:
 * norms, attention, and copies of what forward saved. */
#ifndef CGS_ROLLOUT_CUDA_PREDICTOR_BACK_PARTS_CUH
#define CGS_ROLLOUT_CUDA_PREDICTOR_BACK_PARTS_CUH

#include "rollout/cuda/predictor_attention.cuh"

namespace {

enum { BACKWARD_CTAS = 16 };

/* of rows in shared memory: hidden units and q, k, v of forward, gradients of attention's result
 * and of hidden units or q, k, v; without bank conflicts */
enum {
    PRE_ROW = HIDDEN / BACKWARD_CTAS + 4,
    SAVED_QKV_ROW = 3 * WIDTH + 4,
    DA_ROW = WIDTH + 8,
    DH_ROW = 3 * WIDTH + 8
};

/* gradient by what was normalised to v, from that by v */
__device__ __forceinline__ void normalise_back(row_values &g, const row_values &v, float rstd) {
    float sum = 0, row_dot = 0;
#pragma unroll
    for (int j = 0; j < 3; j++) {
        sum += g[j].x + g[j].y;
        row_dot += g[j].x * v[j].x + g[j].y * v[j].y;
    }
    sum = warp_sum(sum) * (1.0f / D);
    row_dot = warp_sum(row_dot) * (1.0f / D);
#pragma unroll
    for (int j = 0; j < 3; j++) {
        g[j].x = rstd * (g[j].x - sum - v[j].x * row_dot);
        g[j].y = rstd * (g[j].y - sum - v[j].y * row_dot);
    }
}

__device__ __forceinline__ void times_row(row_values &v, const row_values &w) {
#pragma unroll
    for (int j = 0; j < 3; j++) {
        v[j].x *= w[j].x;
        v[j].y *= w[j].y;
    }
}

/* starts copying own hidden units before GELU of all w tokens of a layer of a step */
__device__ void load_hidden(const task &p, int step, int layer, float *to, cluster_plans c, int w) {
    const int units = HIDDEN / BACKWARD_CTAS, chunks = units / 4;
    for (int i = threadIdx.x; i < w * c.R * chunks; i += THREADS) {
        int part = i % chunks, plan = c.plan(i / chunks), token = c.token(i / chunks);
        if (plan >= c.existing) continue;
        cp_async_16((bf16 *)(to + (size_t)(token * c.R + plan) * PRE_ROW + 4 * part),
                    (const bf16 *)(p.saved.pre +
                                   saved_at(p, step, layer, c.row0 + plan, token) * HIDDEN +
                                   cluster_rank() * units + 4 * part));
    }
    cp_async_commit();
}
/* ... of the projector, before its batch norm, in the rows of the newest token */
__device__ void load_projected(const task &p, int step, float *to, cluster_plans c, int w) {
    const int units = HIDDEN / BACKWARD_CTAS, chunks = units / 4;
    for (int i = threadIdx.x; i < c.existing * chunks; i += THREADS) {
        int part = i % chunks, plan = i / chunks;
        cp_async_16((bf16 *)(to + (size_t)((w - 1) * c.R + plan) * PRE_ROW + 4 * part),
                    (const bf16 *)(p.saved.projected +
                                   ((size_t)step * p.saved.rows + c.row0 + plan) * HIDDEN +
                                   cluster_rank() * units + 4 * part));
    }
    cp_async_commit();
}
/* ... q, k, v of the own head */
__device__ void load_qkv(const task &p, int step, int layer, float *to, cluster_plans c, int w) {
    const int chunks = 3 * WIDTH / 4;
    for (int i = threadIdx.x; i < w * c.R * chunks; i += THREADS) {
        int part = i % chunks, plan = c.plan(i / chunks), token = c.token(i / chunks);
        if (plan >= c.existing) continue;
        const float *from = saved_qkv(p, step, layer, cluster_rank(), c.row0 + plan);
        cp_async_16((bf16 *)(to + (size_t)(token * c.R + plan) * SAVED_QKV_ROW + 4 * part),
                    (const bf16 *)(from + (size_t)token * 3 * WIDTH + 4 * part));
    }
    cp_async_commit();
}

/* Gradients of q, k, v from those of attention's result, da, of the newest `asked` of W tokens.
 * Eight lanes take one plan. */
template <int W>
__device__ __forceinline__ void attend_window_back(bf16 *dqkv, const float *qkv, const float *da,
                                                   int R, int asked) {
    int lane = threadIdx.x % 32, part = lane % 8 * 8, plan = (int)threadIdx.x / 32 * 4 + lane / 8;
    const bool any = plan < R;
    if ((int)threadIdx.x / 32 * 4 >= R) return; /* whole warps */
    if (!any) plan = R - 1;                     /* lanes without a plan help with the last */
    const float *own = qkv + (size_t)plan * SAVED_QKV_ROW + part;
    bf16 *to = dqkv + (size_t)plan * DH_ROW + part;
    float k[W][8], dk[W][8] = {}, dv[W][8] = {};
#pragma unroll
    for (int j = 0; j < W; j++) load<8>(k[j], own + (size_t)j * R * SAVED_QKV_ROW + WIDTH);
#pragma unroll
    for (int i = 0; i < W; i++) {
        float dq[8] = {};
        if (i >= W - asked) { /* the same for all lanes */
            float q[8], d[8], weight[W], derivative[W], most = -INFINITY, sum = 0, mean = 0;
            load<8>(q, own + (size_t)i * R * SAVED_QKV_ROW);
            load<8>(d, da + (size_t)(i * R + plan) * DA_ROW + part);
#pragma unroll
            for (int j = 0; j <= i; j++) {
                float v[8];
                load<8>(v, own + (size_t)j * R * SAVED_QKV_ROW + 2 * WIDTH);
                weight[j] = derivative[j] = 0;
#pragma unroll
                for (int c = 0; c < 8; c++) {
                    weight[j] += q[c] * k[j][c];
                    derivative[j] += d[c] * v[c];
                }
            }
#pragma unroll
            for (int o = 4; o > 0; o >>= 1)
#pragma unroll
                for (int j = 0; j <= i; j++) {
                    weight[j] += __shfl_xor_sync(0xffffffffu, weight[j], o);
                    derivative[j] += __shfl_xor_sync(0xffffffffu, derivative[j], o);
                }
#pragma unroll
            for (int j = 0; j <= i; j++) most = fmaxf(most, weight[j]);
#pragma unroll
            for (int j = 0; j <= i; j++) /* scores are products / sqrt(WIDTH) */
                sum += weight[j] = exp2_fast((weight[j] - most) * (0.125f * 1.44269504f));
            float inverse = __fdividef(1.0f, sum);
#pragma unroll
            for (int j = 0; j <= i; j++) {
                weight[j] *= inverse;
                mean += weight[j] * derivative[j];
            }
#pragma unroll
            for (int j = 0; j <= i; j++) {
                float ds = 0.125f * weight[j] * (derivative[j] - mean);
#pragma unroll
                for (int c = 0; c < 8; c++) {
                    dq[c] += ds * k[j][c];
                    dk[j][c] += ds * q[c];
                    dv[j][c] += weight[j] * d[c];
                }
            }
        }
        if (any) store<8>(to + (size_t)i * R * DH_ROW, dq);
    }
#pragma unroll
    for (int j = 0; j < W && any; j++) {
        store<8>(to + (size_t)j * R * DH_ROW + WIDTH, dk[j]);
        store<8>(to + (size_t)j * R * DH_ROW + 2 * WIDTH, dv[j]);
    }
}
/* ... of w */
__device__ __forceinline__ void attend_back(bf16 *dqkv, const float *qkv, const float *da, int R,
                                            int w, int asked) {
    switch (w) {
    case 1: attend_window_back<1>(dqkv, qkv, da, R, asked); break;
    case 2: attend_window_back<2>(dqkv, qkv, da, R, asked); break;
    case 3: attend_window_back<3>(dqkv, qkv, da, R, asked); break;
    default: attend_window_back<4>(dqkv, qkv, da, R, asked); break;
    }
}

} // namespace

#endif /* CGS_ROLLOUT_CUDA_PREDICTOR_BACK_PARTS_CUH */

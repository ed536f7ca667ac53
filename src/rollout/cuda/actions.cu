/* actions.cu - what the predictor is conditioned on: the action encoder of a run's plans in one
 * kernel, and its gradient in another.
 *
 *   smooth = conv a,  pre = in smooth,  sum = out silu(pre),  s = silu(sum)  rounded to bf16
 *
 * All of it in f32 but the last rounding, as cgs_lewm_embed_actions has it on a tape of bf16.  A
 * CTA makes COLUMNS numbers of s for TOKENS tokens: hidden units, which are cheap, are made anew by
 * each CTA that needs them, and stay in shared memory.  Each warp sums over an eighth of them; the
 * order does not depend on how many tokens there are. */
#include "rollout/cuda/run_rows.cuh"

extern "C" {
#include "rollout/cuda/predictor.h"
}

namespace {

enum { THREADS = 256, WARPS = THREADS / 32, TOKENS = 16, COLUMNS = 32, MOST = 64 };
enum { BACK_THREADS = 768, BACK_WARPS = BACK_THREADS / 32 };

struct encoder {
    int smooth, hidden, D;
    const float *conv_w, *conv_b, *in_w, *in_b, *out_w, *out_b;
    float *pre, *sum; /* (tokens, hidden), (tokens, D): for backward, or NULL */
};

__device__ __forceinline__ float silu(float x) { return x / (1.0f + expf(-x)); }
__device__ __forceinline__ float silu_slope(float x) {
    float s = 1.0f / (1.0f + expf(-x));
    return s * (1.0f + x * (1.0f - s));
}

/* elements from one token's hidden units to the next's: four rows at once hit different banks */
__host__ __device__ __forceinline__ int hidden_row(int hidden) { return hidden + 4; }

size_t shared_bytes(int hidden) {
    size_t units = (size_t)TOKENS * hidden_row(hidden), parts = (size_t)WARPS * TOKENS * COLUMNS;
    return (units > parts ? units : parts) * sizeof(float);
}

__global__ void __launch_bounds__(THREADS)
    embed(bf16 *s, encoder e, cgs_rollout_run r, size_t tokens) {
    extern __shared__ __align__(16) float h[]; /* (TOKENS, hidden), then (WARPS, TOKENS, COLUMNS) */
    __shared__ float a[TOKENS][MOST], c[TOKENS][MOST];
    const size_t first = (size_t)blockIdx.x * TOKENS;
    const int col = blockIdx.y * COLUMNS, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int stride = hidden_row(e.hidden), run = e.hidden / WARPS, from = warp * run;

    /* the first weights are on their way meanwhile: lane l has columns l % 8 + 8 j */
    const float *w = e.out_w + (size_t)(col + lane % 8) * e.hidden + from;
    float4 next[4];
#pragma unroll
    for (int j = 0; j < 4; j++) next[j] = *(const float4 *)(w + (size_t)8 * j * e.hidden);

    for (int i = threadIdx.x; i < TOKENS * r.A; i += THREADS) {
        size_t token = first + i / r.A;
        a[i / r.A][i % r.A] = token < tokens ? action_of(r, token, i % r.A) : 0.0f;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < TOKENS * e.smooth; i += THREADS) {
        int t = i / e.smooth, k = i % e.smooth;
        float sum = 0;
        for (int n = 0; n < r.A; n++) sum += a[t][n] * e.conv_w[k * r.A + n];
        c[t][k] = sum + e.conv_b[k];
    }
    __syncthreads();
    for (int j = threadIdx.x; j < e.hidden; j += THREADS) {
        float sum[TOKENS] = {0}, bias = e.in_b[j];
        for (int k = 0; k < e.smooth; k++) {
            float b = e.in_w[(size_t)j * e.smooth + k];
#pragma unroll
            for (int t = 0; t < TOKENS; t++) sum[t] += c[t][k] * b;
        }
#pragma unroll
        for (int t = 0; t < TOKENS; t++) {
            sum[t] += bias;
            h[t * stride + j] = silu(sum[t]);
            if (e.pre && blockIdx.y == 0 && first + t < tokens)
                e.pre[(first + t) * e.hidden + j] = sum[t];
        }
    }
    __syncthreads();

    /* a lane sums for tokens l / 8 + 4 i and its columns */
    const float *x = h + lane / 8 * stride + from;
    float sum[4][4] = {{0}};
    for (int k = 0; k < run; k += 4) {
        float4 b[4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            b[j] = next[j];
            if (k + 4 < run) next[j] = *(const float4 *)(w + (size_t)8 * j * e.hidden + k + 4);
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float4 v = *(const float4 *)(x + 4 * i * stride + k);
#pragma unroll
            for (int j = 0; j < 4; j++) {
                sum[i][j] += v.x * b[j].x;
                sum[i][j] += v.y * b[j].y;
                sum[i][j] += v.z * b[j].z;
                sum[i][j] += v.w * b[j].w;
            }
        }
    }
    __syncthreads(); /* nobody reads hidden units any more */
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            h[(warp * TOKENS + lane / 8 + 4 * i) * COLUMNS + lane % 8 + 8 * j] = sum[i][j];
    __syncthreads();
    for (int i = threadIdx.x; i < TOKENS * COLUMNS; i += THREADS) {
        size_t token = first + i / COLUMNS, at = token * e.D + col + i % COLUMNS;
        if (token >= tokens) break;
        float all = 0;
#pragma unroll
        for (int n = 0; n < WARPS; n++) all += h[n * TOKENS * COLUMNS + i];
        all += e.out_b[col + i % COLUMNS];
        if (e.sum) e.sum[at] = all;
        s[at] = narrow<bf16>(silu(all));
    }
}

/* ds (rows, T, D); grad (rows, H, A).  A CTA has one action; those of the past get no gradient. */
__global__ void __launch_bounds__(BACK_THREADS)
    embed_back(float *grad, const bf16 *ds, encoder e, cgs_rollout_run r) {
    extern __shared__ __align__(16) float shared[]; /* (D) of sum, then (BACK_WARPS, smooth) */
    __shared__ float c[MOST];
    float *parts = shared + e.D;
    const int past = r.C - 1, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const size_t token = (size_t)(blockIdx.x / r.H) * (past + r.H) + past + blockIdx.x % r.H;
    for (int i = threadIdx.x; i < e.D; i += BACK_THREADS)
        shared[i] = widen(ds[token * e.D + i]) * silu_slope(e.sum[token * e.D + i]);
    for (int i = threadIdx.x; i < BACK_WARPS * e.smooth; i += BACK_THREADS) parts[i] = 0;
    __syncthreads();
    for (int from = 0; from < e.hidden; from += BACK_THREADS) { /* whole warps */
        int j = from + threadIdx.x;
        float d = 0;
        if (j < e.hidden) {
#pragma unroll 16
            for (int i = 0; i < e.D; i++) d += shared[i] * e.out_w[(size_t)i * e.hidden + j];
            d *= silu_slope(e.pre[token * e.hidden + j]);
        }
        for (int k = 0; k < e.smooth; k++) {
            float sum = warp_sum(j < e.hidden ? d * e.in_w[(size_t)j * e.smooth + k] : 0.0f);
            if (lane == 0) parts[warp * e.smooth + k] += sum;
        }
    }
    __syncthreads();
    for (int k = threadIdx.x; k < e.smooth; k += BACK_THREADS) {
        float sum = 0;
        for (int n = 0; n < BACK_WARPS; n++) sum += parts[n * e.smooth + k];
        c[k] = sum;
    }
    __syncthreads();
    for (int n = threadIdx.x; n < r.A; n += BACK_THREADS) {
        float sum = 0;
        for (int k = 0; k < e.smooth; k++) sum += c[k] * e.conv_w[k * r.A + n];
        grad[(size_t)blockIdx.x * r.A + n] = sum;
    }
}

const float *values(const cgs_tensor *x) { return (const float *)x->data; }

encoder encoder_of(const cgs_action_encoder *w) {
    return {(int)cgs_numel(w->conv_b),
            (int)cgs_numel(w->in_b),
            (int)cgs_numel(w->out_b),
            values(w->conv_w),
            values(w->conv_b),
            values(w->in_w),
            values(w->in_b),
            values(w->out_w),
            values(w->out_b),
            w->pre,
            w->sum};
}

} // namespace

extern "C" {

bool cgs_cuda_actions_fit(const cgs_device *d, const cgs_action_encoder *w, int A) {
    encoder e = encoder_of(w);
    return A <= MOST && e.smooth <= MOST && e.D % COLUMNS == 0 && e.hidden % (4 * WARPS) == 0 &&
           (uintptr_t)e.out_w % 16 == 0 &&
           shared_bytes(e.hidden) + 2 * sizeof(float) * TOKENS * MOST <=
               (size_t)cgs_cuda_of(d)->max_shared;
}

void cgs_cuda_actions_embed(cgs_device *d, const cgs_action_encoder *w, const cgs_rollout_run *r,
                            uint16_t *s) {
    encoder e = encoder_of(w);
    size_t tokens = (size_t)r->n * r->part * (r->C - 1 + r->H), shared = shared_bytes(e.hidden);
    cudaError_t error =
        cudaFuncSetAttribute(embed, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
    cgs_cuda_note(cgs_cuda_of(d), error, "actions");
    embed<<<dim3(blocks_for(tokens, TOKENS), (unsigned)(e.D / COLUMNS)), THREADS, shared,
            stream_of(d)>>>((bf16 *)s, e, *r, tokens);
    LAUNCHED(d, "actions");
}

void cgs_cuda_actions_back(cgs_device *d, const cgs_action_encoder *w, const cgs_rollout_run *r,
                           const uint16_t *ds, float *grad) {
    encoder e = encoder_of(w);
    size_t shared = (size_t)(e.D + BACK_WARPS * e.smooth) * sizeof(float);
    embed_back<<<(unsigned)(r->n * r->part * r->H), BACK_THREADS, shared, stream_of(d)>>>(
        grad, (const bf16 *)ds, e, *r);
    LAUNCHED(d, "gradients of actions");
}

} /* extern "C" */

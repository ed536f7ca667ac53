/* attention_forward.cu - attention forward by warpgroups (wgmma): bf16 heads of width 64, 256 to
 * 264 tokens that all see each other.
 *
 * A block takes one head of one batch element, all of q, k and v in shared memory.  Each of its
 * two groups takes 64 queries at a time; keys come in pieces of 64, the last of 16, and while
 * tensor cores multiply one piece of probabilities with v they go on to the scores of the next. Two
 * blocks share a multiprocessor: one group's exponentials run beside another's products.
 *
 * 257 tokens are 4 x 64 and one more.  Queries from 256 on are made at the end by single warps,
 * each of which has some of the keys. */
#include "ops/cuda/sm90/attention_wgmma.cuh"

namespace {

enum { GROUPS = 2, WARPS = 4 * GROUPS, PIECE = 64, LAST = PADDED - WHOLE };

/* what a lane keeps of its two rows of queries; sums as in `running` */
struct state {
    float out[32];
    float top[2], sum[2], kept[2]; /* of scores as they are; partial sums of the lane */
};

#if CGS_HAS_WGMMA

/* s (64,N) = q k^T */
template <int H> __device__ __forceinline__ void scores(float (&s)[H], uint64_t q, const bf16 *k) {
    uint64_t keys = smem_descriptor(k);
#pragma unroll
    for (int i = 0; i < WIDTH / 16; i++)
        wgmma<false, false>(s, advance_along_rows(q, i), advance_along_rows(keys, i), i > 0);
}

/* out (64,64) += p v */
template <int N>
__device__ __forceinline__ void mix(float (&out)[32], const regs4 (&p)[N], const bf16 *v,
                                    bool add) {
    uint64_t values = smem_descriptor(v);
#pragma unroll
    for (int i = 0; i < N; i++) wgmma<true>(out, p[i], advance_down_rows(values, i), add || i > 0);
}

/* Scores become probabilities, up to a factor that is the row's; keys from `keys` on are hidden. */
template <bool FIRST, bool MASK, int H, int N>
__device__ __forceinline__ void weigh(state &w, float (&s)[H], regs4 (&p)[N], int keys,
                                      float scale) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; MASK && i < H; i++)
        if (i / 4 * 8 + 2 * (lane % 4) + i % 2 >= keys) s[i] = -INFINITY;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float top = FIRST ? -INFINITY : w.top[half];
#pragma unroll
        for (int i = 0; i < H; i++)
            if (i % 4 / 2 == half) top = fmaxf(top, s[i]);
        top = quad_max(top);
        float base = top * scale, sum = 0;
        if (FIRST) w.kept[half] = 0;
        if (!FIRST) {
            float shrink = exp2_fast(fmaf(w.top[half], scale, -base));
            sum = w.sum[half] * shrink;
            w.kept[half] *= shrink;
#pragma unroll
            for (int i = 0; i < 32; i++)
                if (i % 4 / 2 == half) w.out[i] *= shrink;
        }
#pragma unroll
        for (int i = 0; i < H; i++)
            if (i % 4 / 2 == half) {
                s[i] = exp2_fast(fmaf(s[i], scale, -base));
                sum += s[i];
            }
        w.top[half] = top;
        w.sum[half] = sum;
    }
#pragma unroll
    for (int i = 0; i < N; i++)
#pragma unroll
        for (int k = 0; k < 4; k++) {
            p[i][k] = pack(s[8 * i + 2 * k], s[8 * i + 2 * k + 1]);
            w.kept[k % 2] += both(p[i][k]);
        }
}

/* the queries from 256 on: a warp has every eighth 16 keys, then all are put together */
__device__ __forceinline__ void last_queries(bf16 *out, bf16 *residual, float *lse, bf16 *q,
                                             const bf16 *k, const bf16 *v,
                                             const attention_shape &s) {
    enum { PART = WIDTH + 4 }; /* out, maximum, sums before and after rounding; 16 bytes */
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, rows = s.T - WHOLE;
    float *parts = (float *)q; /* (WARPS, EXTRA, PART), where queries are no longer needed */
    running<> w = {};
    w.top[0] = w.top[1] = -INFINITY;
    regs4 query[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        ldmatrix_x4(query[i], chunk_at(q, WHOLE + lane % 16, 2 * i + lane / 16));
    const int limit[2] = {lane / 4 < rows ? s.T : 0, 0};
    for (int j0 = warp * TILE; j0 < s.T; j0 += WARPS * TILE)
        add_keys<1>(w, query, k, v, j0, limit, s.scale * LOG2E);
    float *mine = parts + (warp * EXTRA + lane / 4) * PART, total = quad_sum(w.sum[0]);
    float weight = quad_sum(w.kept[0]);
#pragma unroll
    for (int n = 0; n < 8; n++) {
        const float pair[2] = {w.out[n][0], w.out[n][1]};
        store<2>(mine + 8 * n + 2 * (lane % 4), pair);
    }
    if (lane % 4 == 0) mine[WIDTH] = w.top[0], mine[WIDTH + 1] = total, mine[WIDTH + 2] = weight;
    __syncthreads();
    for (int e = threadIdx.x; e < rows * WIDTH; e += GROUPS * WARPGROUP) {
        const float *part = parts + e / WIDTH * PART;
        float top = -INFINITY, sum = 0, kept = 0, y = 0;
        for (int i = 0; i < WARPS; i++) top = fmaxf(top, part[i * EXTRA * PART + WIDTH]);
        for (int i = 0; i < WARPS; i++) {
            const float *p = part + i * EXTRA * PART;
            float scale = exp2_fast(p[WIDTH] - top);
            sum += scale * p[WIDTH + 1];
            kept += scale * p[WIDTH + 2];
            y += scale * p[e % WIDTH];
        }
        int row = WHOLE + e / WIDTH;
        size_t to = (size_t)row * s.out_row() + e % WIDTH;
        out[to] = narrow<bf16>(y / kept);
        if (residual) residual[to] = narrow<bf16>(y / kept - widen(out[to]));
        if (e % WIDTH == 0) lse[row] = top / LOG2E + logf(sum);
    }
}

#endif

__global__ void __launch_bounds__(GROUPS *WARPGROUP, 2)
    groups_forward(bf16 *out, bf16 *residual, float *lse, const bf16 *qkv, attention_shape s) {
#if CGS_HAS_WGMMA
    extern __shared__ __align__(16) unsigned char shared[];
    bf16 *q = first_matrix(shared), *k = q + MATRIX, *v = k + MATRIX;
    int b = blockIdx.x / s.heads, h = blockIdx.x % s.heads;
    int group = own_group(), lane = threadIdx.x % 32;
    size_t in_row = s.in_row();
    const bf16 *from = qkv + s.q(b, h);
    out += s.out(b, h);
    if (residual) residual += s.out(b, h);
    lse += (size_t)blockIdx.x * s.T;
    copy_rows(q, from, s.T, PADDED, in_row);
    copy_rows(k, from + s.part(), s.T, PADDED, in_row);
    cp_async_commit();
    copy_rows(v, from + 2 * s.part(), s.T, PADDED, in_row);
    cp_async_commit();
    cp_async_wait<1>();
    fence_proxy_async();
    __syncthreads();

    float scale = s.scale * LOG2E;
#pragma unroll 1
    for (int i0 = group * BLOCK; i0 < WHOLE; i0 += GROUPS * BLOCK) {
        uint64_t queries = smem_descriptor(q + i0 * WIDTH);
        state w;
        float part[PIECE / 2], last[LAST / 2];
        regs4 p[PIECE / 16], p_last[LAST / 16];
        wgmma_fence();
        scores(part, queries, k);
        wgmma_commit();
        if (i0 < GROUPS * BLOCK) { /* the first time round */
            cp_async_wait<0>();
            fence_proxy_async();
            __syncthreads();
        }
        wgmma_wait<0>();
        wgmma_fence_registers(part);
        weigh<true, false>(w, part, p, 0, scale);
#pragma unroll 1
        for (int j = PIECE; j < WHOLE; j += PIECE) {
            wgmma_fence();
            mix(w.out, p, v + (j - PIECE) * WIDTH, j > PIECE);
            scores(part, queries, k + j * WIDTH);
            wgmma_commit();
            wgmma_wait<0>();
            wgmma_fence_registers(part);
            wgmma_fence_registers(w.out);
            weigh<false, false>(w, part, p, 0, scale);
        }
        wgmma_fence();
        mix(w.out, p, v + (WHOLE - PIECE) * WIDTH, true);
        scores(last, queries, k + WHOLE * WIDTH);
        wgmma_commit();
        wgmma_wait<0>();
        wgmma_fence_registers(last);
        wgmma_fence_registers(w.out);
        weigh<false, true>(w, last, p_last, s.T - WHOLE, scale);
        wgmma_fence();
        mix(w.out, p_last, v + WHOLE * WIDTH, true);
        wgmma_commit();
        wgmma_wait<0>();
        wgmma_fence_registers(w.out);

        float total[2] = {quad_sum(w.sum[0]), quad_sum(w.sum[1])};
        for (int half = 0; half < 2; half++) {
            int i = i0 + threadIdx.x % WARPGROUP / 32 * 16 + lane / 4 + 8 * half;
            if (lane % 4 == 0 && i < s.T) lse[i] = w.top[half] * s.scale + logf(total[half]);
        }
        bar_sync(1 + group, WARPGROUP); /* all warps of the group have used its queries */
        float upper = 1.0f / quad_sum(w.kept[0]), lower = 1.0f / quad_sum(w.kept[1]);
        give_block(out, w.out, upper, lower, q + i0 * WIDTH, i0, s.T, s.out_row(), false);
        if (!residual) continue;
#pragma unroll
        for (int i = 0; i < 32; i++) { /* the rounding residual of that */
            float x = w.out[i] * (i % 4 / 2 ? lower : upper);
            w.out[i] = x - widen(narrow<bf16>(x));
        }
        give_block(residual, w.out, 1, 1, q + i0 * WIDTH, i0, s.T, s.out_row(), false);
    }
    if (s.T <= WHOLE) return;
    __syncthreads();
    last_queries(out, residual, lse, q, k, v, s);
#endif
}

size_t shared_bytes() { return 3 * MATRIX * sizeof(bf16) + SLACK; }

} // namespace

extern "C" {

bool cgs_cuda_attention_wgmma_fits(const cgs_device *d, const cgs_record *, const cgs_record *r,
                                   const cgs_record *) {
    return fits_warpgroups(d, r);
}

cgs_status cgs_cuda_attention_wgmma_prepare(cgs_device *, const cgs_record *) {
    cudaError_t e = cudaFuncSetAttribute(
        groups_forward, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes());
    if (e == cudaSuccess) /* two blocks per multiprocessor need nearly all of it */
        e = cudaFuncSetAttribute(groups_forward, cudaFuncAttributePreferredSharedMemoryCarveout,
                                 (int)cudaSharedmemCarveoutMaxShared);
    return e == cudaSuccess ? CGS_OK : cgs_cuda_failed(e, "attention");
}

void cgs_cuda_attention_wgmma_forward(cgs_device *d, const cgs_record *r) {
    attention_shape s = attention_of(d, r);
    unsigned heads = (unsigned)(r->in[0]->dim[0] * s.heads);
    groups_forward<<<heads, GROUPS * WARPGROUP, shared_bytes(), stream_of(d)>>>(
        (bf16 *)r->out->data, attention_residual(r), (float *)r->saved[0]->data,
        (const bf16 *)r->in[0]->data, s);
    LAUNCHED(d, "attention");
}

} /* extern "C" */
